"""What would help a run, as text for the terminal."""

from collections.abc import Sequence

from tilewright.exploration.advice import Advice, Advices
from tilewright.exploration.changes import BANDWIDTH, SIZE
from tilewright.report.text_tables import render, text_table

MOST_ROWS = 12
DIGITS = 3
"""Of shares that are told: smaller ones are no 0."""
Rows = Sequence[tuple[int, Advice]]


def advice_text(advices: Advices) -> str:
    """The changes that help, the best first, and what could be taken away without loss."""
    helpful, spare = advices.helpful, advices.spare
    goal = advices.objective
    parts = [f"Lines of {file}\n" for file in dict.fromkeys(one.change.file for one in advices.found)]
    if helpful:
        parts.append(_gains(f"One number changed that helps {goal}", advices, helpful[:MOST_ROWS]))
    else:
        parts.append(f"No change of one number helps {goal}.\n")
    if len(helpful) > MOST_ROWS:
        parts.append(f"  {len(helpful) - MOST_ROWS} others help less\n")
    if spare:
        parts.append("\n" + _losses(f"What can be taken away, one at a time, without loss of {goal}", advices, spare))
    notes = (*_assumed([*helpful[:MOST_ROWS], *spare]), *advices.notes)
    return "".join([*parts, *(f"note: {note}\n" for note in notes)])


def _gains(title: str, advices: Advices, rows: Rows) -> str:
    columns = (f"{advices.objective}, {advices.same_words}", *(("new\nsearch",) if advices.searched else ()))
    table = text_table(title, ("no.", "key", "from -> to", "line"), columns)
    for number, one in rows:
        outcomes = (one.same, *((one.search,) if advices.searched else ()))
        table.add_row(*_names(number, one), *(_change(advices.gain(outcome)) for outcome in outcomes))
    return render(table)


def _losses(title: str, advices: Advices, rows: Rows) -> str:
    table = text_table(title, ("no.", "key", "from -> to", "line"), ("energy", "latency"))
    for number, one in rows:
        pairs = zip(advices.now[:2], one.outcome[:2], strict=True)
        told = [
            _change((now - then) / now if now else 0.0) for now, then in pairs if now is not None and then is not None
        ]
        table.add_row(*_names(number, one), *told)
    return render(table)


def _names(number: int, one: Advice) -> tuple[str, str, str, str]:
    change = one.change
    also = "".join(f", {path[-1]} too" for path, _ in change.also)
    return str(number), change.key, f"{change.before} -> {change.after}{also}", str(change.line)


def _change(gain: float | None) -> str:
    """By how much something becomes less, or more."""
    if gain is None:
        return "does not fit"
    if not gain:
        return "0"
    return f"{-gain:+.1%}" if round(gain, DIGITS) else "-<0.1%" if gain > 0 else "+<0.1%"


def _assumed(rows: Rows) -> list[str]:
    """What the figures take for granted that nobody would sell."""
    changes = [one.change for _, one in rows]
    kinds = {change.kind for change in changes if not change.is_sourced}
    found = []
    if any(change.is_sourced for change in changes):
        found.append("energies and area of a memory with `cost` follow its size and the widths of its ports")
    if BANDWIDTH in kinds:
        found.append("a port of another width has the energy of a word as it was: r_cost and w_cost stay")
    if SIZE in kinds:
        found.append("a memory of another size has the energies and the area that it had")
    return found
