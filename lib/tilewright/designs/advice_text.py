"""Text of the advice on a run for the terminal: changes that help, and resources that can be reduced at no cost."""

import math
from collections.abc import Sequence

from tilewright.base.errors import count_of
from tilewright.base.harmless import ended_lines
from tilewright.base.units import microjoules_text
from tilewright.designs.advice import LEAST_GAIN, Advice, Advices, Pairs, Together
from tilewright.designs.changes import BANDWIDTH, SIZE, SPATIAL, FileChange
from tilewright.designs.held_mappings import Outcome
from tilewright.results.terminal_tables import render, text_table
from tilewright.results.text_tables import NOTHING

MOST_ROWS = 12
DIGITS = 3
"""Number of decimals to which a share is rounded, so that a percentage has one decimal. If a share would be rounded to
0, the text gives an upper limit instead.
"""
Rows = Sequence[tuple[int, Advice]]


def advice_text(advices: Advices) -> str:
    """Text with the changes that help, the best first, and with the resources that can be reduced at no cost."""
    if advices.is_named:
        return _named(advices)
    helpful, spare = advices.helpful, advices.spare
    goal = advices.objective
    parts = [_files(advices)]
    if helpful:
        parts.append(_gains(f"One change that helps {goal}", advices, helpful[:MOST_ROWS]))
    else:
        parts += [f"No single change saves {LEAST_GAIN:.1%} of {goal}.\n", *_together_lines(advices)]
    if len(helpful) > MOST_ROWS:
        parts.append(f"  {len(helpful) - MOST_ROWS} other changes help less\n")
    parts += _pair_lines(advices)
    if spare:
        title = "One change that reduces a resource at no cost: neither energy nor latency increases"
        parts.append("\n" + _losses(title, advices, spare))
        if advices.searched and advices.holds_searches:
            parts.append(
                "  the result of a new search is compared with the best known mapping of each layer on the unchanged"
                " hardware\n"
            )
    if advices.search_gain:
        parts.append(
            f"note: on the unchanged hardware, {_found(advices)} of the new searches change {goal} by"
            f" {_change(advices.search_gain)}: this saving comes from the search, so it is not counted for any change"
            " of the hardware\n"
        )
    changes = [one.change for _, one in (*helpful[:MOST_ROWS], *spare)]
    if advices.pairs is not None and advices.pairs.best is not None:
        changes += advices.pairs.best.changes
    notes = (*assumptions_of(changes), *advices.notes)
    return "".join([*parts, ended_lines(notes, "note: ")])


WITHOUT = "its {} without it"
"""Heading of the column with the gain of a new search on the unchanged hardware. `{}` stands for the results of this
search: mappings or allocations.
"""
_NAMES = ("no.", "key", "from -> to", "line")
"""Headings of the columns that identify a change in the table of advice."""


def _together_lines(advices: Advices) -> list[str]:
    """Lines on the smallest set of changes that helps; [] if there is none."""
    if advices.together is None:
        return []
    changes = " and ".join(f"{one.key} ({one.before} -> {one.after})" for one in advices.together.changes)
    held = " ".join(advices.same_words.split())
    gain = _change(advices.gain(advices.together.outcome))
    return [ended_lines([f"Together, these changes help ({held}): {changes}: {gain} of {advices.objective}."])]


def _named(advices: Advices) -> str:
    """Text on the effect of the changes that the user named."""
    (one,) = advices.found
    change, goal = one.change, advices.objective
    held = " ".join(advices.same_words.split())
    table = text_table("", ("", ""), (f"{goal}", "energy\n[µJ]", "latency\n[cycles]"))
    table.add_row("run", "", "", *_costs(advices.now))
    for words, outcome in ((held, one.same), ("new search", one.search)):
        if outcome is not None:
            table.add_row("changed", words, _change(advices.gain(outcome)), *_costs(outcome))
    files = [f"{part.words} (line {part.line} of {part.file})" if part.line else part.words for part in change.single]
    reasons = dict.fromkeys(one.reason for one in (one.same, one.search) if one is not None and one.reason)
    notes = (*reasons, *assumptions_of([change]), *advices.notes)
    return "".join([ended_lines(files), render(table), ended_lines(notes, "note: ")])


def _costs(outcome: Outcome) -> tuple[str, str]:
    """Texts of energy and latency; NOTHING if there are no costs."""
    energy, latency, _ = outcome
    return (NOTHING if energy is None else microjoules_text(energy), NOTHING if latency is None else f"{latency:,.0f}")


def pair_words(advices: Advices, pair: Together) -> str:
    """Text that compares the saving of a pair of changes with the saving of each of the two changes alone."""
    alone = [advices.gain(one) or 0.0 for one in pair.alone]
    told = " and ".join(f"{share(gain)}" if gain > 0 else "nothing" for gain in alone)
    return f"save {share(advices.gain(pair.outcome) or 0.0)} of {advices.objective}; alone they save {told}"


TIE = "Two limits are about equally tight"
"""Text for two limits that are about equally tight, so that a change of only one of them helps little."""
OF_CHANGES = "the sum of the savings of its two changes"
"""Saving with which the saving of a pair is compared."""


def best_of_pairs(extent: str) -> str:
    """Sentence on the best pair: the number of pairs that were tried, and the rule by which a pair counts. `extent` is
    the text of `extent_of_pairs`.
    """
    return (
        f"Of {extent}, this pair saves most. A pair counts only if it saves at least {LEAST_GAIN:.1%} more than"
        f" {OF_CHANGES}."
    )


def is_tie(advices: Advices, pair: Together) -> bool:
    """True if two limits of the run are about equally tight, so that a change of only one of them helps little. This is
    the case if the savings of the two changes alone add up to at most half of the saving of the pair.
    """
    alone = sum(max(advices.gain(one) or 0.0, 0.0) for one in pair.alone)
    return alone <= (advices.gain(pair.outcome) or 0.0) / 2


def extent_of_pairs(pairs: Pairs) -> str:
    """Text with the number of pairs that were tried, and with the kinds of their changes."""
    kinds = "changes of sizes, widths and array sides"
    of = f"the {pairs.changes} {kinds} that save most alone" if pairs.left_out else f"{pairs.changes} {kinds}"
    return f"{count_of(pairs.tried, 'pair')} of {of}"


def _pair_lines(advices: Advices) -> list[str]:
    """Lines on the best pair of changes; [] if no pairs were tried."""
    pairs = advices.pairs
    if pairs is None:
        return []
    held = " ".join(advices.same_words.split())
    if pairs.best is None:
        text = (
            f"Of {extent_of_pairs(pairs)}, no pair saves {LEAST_GAIN:.1%} of {advices.objective} more than {OF_CHANGES}"
            f" ({held})."
        )
    else:
        text = (
            f"{f'{TIE}: together' if is_tie(advices, pairs.best) else 'Together'}, {pairs.best.change.words}"
            f" {pair_words(advices, pairs.best)} ({held}). {best_of_pairs(extent_of_pairs(pairs))}"
        )
    return [ended_lines([text])]


def _files(advices: Advices) -> str:
    """Text with the names of the files to which the line numbers in the tables belong. If a file was not found, the
    text says why its lines are missing, and which option names the file.
    """
    changes = [one.change for one in advices.found]
    files = dict.fromkeys(one.file for one in changes if not one.is_of_mapping and one.line)
    mappings = dict.fromkeys(one.file for one in changes if one.is_of_mapping and one.file)
    missing = []
    for kind, is_of_mapping in (("hardware", False), ("mapping", True)):
        lines = [one.line for one in changes if one.is_of_mapping == is_of_mapping]
        if lines and not any(lines):
            missing.append(
                f"The column `line` has no line numbers of the {kind} file: runs do not record paths, and the file was"
                f" not found in `config`, in the folder above the run or in the working folder; --{kind} FILE names it."
            )
    return "".join(
        [
            ended_lines(files, "Line numbers are those of "),
            ended_lines(mappings, "Line numbers of `mapping: ...` are those of "),
            ended_lines(missing),
        ]
    )


def _gains(title: str, advices: Advices, rows: Rows) -> str:
    has_search = advices.searched or any(one.search for _, one in rows)
    columns = (f"{advices.objective}, {advices.same_words}", *(("new\nsearch",) if has_search else ()))
    has_held = any(one.held for _, one in rows)
    columns += (WITHOUT.format(_found(advices)).replace(" without", "\nwithout"),) if has_held else ()
    table = text_table(title, _NAMES, columns)
    table.columns[_NAMES.index("key")].no_wrap = True  # so that a person can copy a key
    for number, one in rows:
        outcomes = (one.same, *((one.search,) if has_search else ()))
        outcomes += (one.held,) if has_held else ()
        told = (NOTHING if outcome is None else _change(advices.gain(outcome)) for outcome in outcomes)
        table.add_row(*_names(number, one), *told)
    return render(table) + (ended_lines([_held_legend(advices)], "  ") if has_held else "")


def _held_legend(advices: Advices) -> str:
    """Sentence on the last column of the table of gains."""
    found = _found(advices)
    return (
        f"{WITHOUT.format(found)}: result of the {found} of the new search on the unchanged hardware, compared with the"
        " run. A saving in this column comes from the search, not from the change"
    )


def _found(advices: Advices) -> str:
    """Word for the result of a search: mappings or allocations."""
    return {"mappings": "mappings", "allocation": "allocations"}[advices.same_words.split()[-1]]


def _losses(title: str, advices: Advices, rows: Rows) -> str:
    table = text_table(title, (*_NAMES, "by"), ("energy", "latency"))
    table.columns[_NAMES.index("key")].no_wrap = True
    for number, one in rows:
        outcome = advices.free_outcome(one) or one.outcome
        base = advices.now if outcome is one.same else advices.known or advices.now
        pairs = zip(base[:2], outcome[:2], strict=True)
        told = [
            _change((now - then) / now if now else 0.0) for now, then in pairs if now is not None and then is not None
        ]
        by = " ".join(advices.same_words.split()) if outcome is one.same else "a new search"
        table.add_row(*_names(number, one), by, *told)
    return render(table)


def _names(number: int, one: Advice) -> tuple[str, str, str, str]:
    change = one.change
    also = "".join(f", {path[-1]} too" for path, _ in change.also)
    return str(number), change.key, f"{change.before} -> {change.after}{also}", str(change.line or NOTHING)


def share(part: float) -> str:
    """Share as a percentage. If it would be rounded to 0, the text gives an upper limit instead."""
    return f"{part:,.1%}" if part >= LEAST_GAIN / 2 else f"less than {LEAST_GAIN:.1%}"


def excess_text(excess: float, comparative: str, other: str) -> str:
    """Comparison with another value, such as "3.4% more than that of b". There is no percentage if that value is 0."""
    if math.isinf(excess):
        return f"{comparative} {other}, which is 0"
    return f"{share(excess)} {comparative} {other}"


def _change(gain: float | None) -> str:
    """Text of the change that a saving `gain` makes, such as "-3.2%" for 0.032. "does not fit" if `gain` is None."""
    if gain is None:
        return "does not fit"
    if not gain:
        return "0"
    return f"{-gain:+.1%}" if round(gain, DIGITS) else "-<0.1%" if gain > 0 else "+<0.1%"


def assumptions_of(changes: Sequence[FileChange]) -> list[str]:
    """Sentences on the assumptions behind the savings of changes. Example: "a memory with a changed size is counted
    with the old energies and the old area".
    """
    changes = [part for change in changes for part in change.single]
    kinds = {
        change.kind for change in changes if not (change.is_sourced or (change.kind == BANDWIDTH and change.is_per_bit))
    }
    found = []
    if any(change.is_sourced for change in changes):
        found.append(
            "energies and area of a memory with the key `cost` follow its size, its cells and the widths of its ports"
        )
    if any(change.is_per_bit and change.kind == BANDWIDTH for change in changes):
        found.append(
            "a memory with an energy per bit keeps this energy, so its energies per word follow the widths of its ports"
        )
    if BANDWIDTH in kinds:
        found.append(
            "a port with a changed width is counted with the old energy per word: r_cost and w_cost do not change"
        )
    if SIZE in kinds:
        found.append("a memory with a changed size is counted with the old energies and the old area")
    if SPATIAL in kinds:
        found.append(
            "the hardware file does not say which spatial mappings the array can execute; where a spatial mapping is"
            " left out, the search chooses one for each layer"
        )
    return found
