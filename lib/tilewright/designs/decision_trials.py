"""Statements of a decision that need single designs: changes to try next, axes without a cost, the base design."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tilewright.base.errors import KeyPath
from tilewright.designs.advice import LEAST_GAIN, Advices
from tilewright.designs.advice_text import (
    OF_CHANGES,
    TIE,
    assumptions_of,
    best_of_pairs,
    extent_of_pairs,
    is_tie,
    pair_words,
    share,
)
from tilewright.designs.base_design import base_sentence
from tilewright.designs.changes import ENERGY, FileChange
from tilewright.designs.core_trials import OUTERMOST
from tilewright.designs.decision import Decision
from tilewright.designs.decision_text import CHOICE, NEXT, TURN, Commands, Statement, command_line
from tilewright.designs.free_axes import free_axes, free_sentence
from tilewright.designs.held_mappings import Outcome
from tilewright.designs.proposed_values import new_notices, proposal_sentences
from tilewright.designs.space import Space
from tilewright.designs.trials import TrialEngine, advices_of, tried, with_pairs

FACTOR = 2
"""Factor by which numbers of the chosen design's hardware are multiplied or divided, to find changes to try next."""
_EQUAL = 1e-9
"""Largest gain or loss, as a share, at which the costs after a change count as the same."""


@dataclass(frozen=True)
class TriedChange:
    """Change of the chosen design's hardware, with the costs on one network after the change."""

    change: FileChange
    same: Outcome
    """Costs after the change with the mappings of the run."""
    search: Outcome | None
    """Costs after the change with newly searched mappings. None if the run allows no new search."""


@dataclass(frozen=True)
class NextChanges:
    """Changes to try next on a run of the chosen design. Hardware numbers are left out if an axis or a law of the space
    sets them.
    """

    advices: Advices
    """Advice on changes of single numbers, and on pairs of such changes."""
    single: TriedChange | None
    """Single change that saves most. None if no change saves at least LEAST_GAIN."""
    set: TriedChange | None
    """Set of changes to try; None if there is none.

    If no single change helps, this is the smallest set of changes that helps. Otherwise, or if no set helps, it is the
    pair of changes that saves most (`Pairs.best`). A pair is considered only if it saves at least LEAST_GAIN more than
    the sum of the savings of its two changes alone.
    """


def next_changes(space: Space, run: TrialEngine, changes: Sequence[FileChange], jobs: int = 1) -> NextChanges:
    """Changes to try next on a run.

    Only changes of numbers that the space does not vary are tried. Energies are not tried, because they follow from the
    technology and from sizes. A first trial keeps the choices of the run, such as its mappings. For the best single
    change and for the best set of changes, a second trial makes a new search, if the run allows one.
    """
    varied = _varied(space)
    chosen = [one for one in changes if one.kind != ENERGY]
    free = [one for one in chosen if not any(_overlap(path, own) for path, _ in one.system_settings for own in varied)]
    advices = with_pairs(run, advices_of(run, free, search=False, jobs=jobs), jobs)
    single = next((one.change for _, one in advices.helpful), None)
    found = advices.together or (None if advices.pairs is None else advices.pairs.best)
    both = (None if one is None else _tried(run, one) for one in (single, None if found is None else found.change))
    return NextChanges(advices, *both)


def _tried(run: TrialEngine, change: FileChange) -> TriedChange:
    """Change, together with the costs after the change."""
    trial = tried(run, change, search=True)
    return TriedChange(change, trial.same, trial.search)


def _varied(space: Space) -> set[KeyPath]:
    """Paths that the axes or laws of a space set in the base hardware file."""
    of_axes = {path for axis in space.axes for settings in axis.settings for path, _ in settings}
    return of_axes | {law.path for law in space.laws if law.path is not None}


def _overlap(one: KeyPath, other: KeyPath) -> bool:
    """True if the two paths are equal, or if one of them is the beginning of the other."""
    length = min(len(one), len(other))
    return one[:length] == other[:length]


def next_statements(decision: Decision, runs: Sequence[tuple[Path, NextChanges]]) -> Iterator[Statement]:
    """Statements on the single change and on the set of changes to try next, for each run of the chosen design."""
    for run, found in runs:
        yield _single_statement(decision, run, found)
        yield _set_statement(run, found)


def doubtful_statements(
    decision: Decision, space: Space, runs: Sequence[tuple[Path, NextChanges]] = ()
) -> Iterator[Statement]:
    """Statements on proposed numbers that are doubtful. A proposed number is a value that continues an axis, or a
    change to try next. A number is doubtful in two cases: it is probably a mistake, or a single hardware part cannot
    reach it, such as a bandwidth that needs several DRAM parts.
    """
    rows, name = decision.front.rows, decision.choice.name
    index = int(rows.loc[rows["design"] == name, "index"].iloc[0])
    if not runs:
        for sentence in proposal_sentences(space, ((end, index) for end in decision.ends)):
            yield Statement(TURN, sentence)
    hardware = space.design(index).hardware
    for run, found in runs:
        for one in filter(None, (found.single, found.set)):
            for notice in new_notices(hardware, one.change.system_settings):
                yield Statement(NEXT, f"{run.name}: with {one.change.words}: {notice}.")


def _single_statement(decision: Decision, run: Path, found: NextChanges) -> Statement:
    advices, single = found.advices, found.single
    ranking = command_line("advise", run, "--no-search", "--no-mapping-changes")
    if single is None:
        text = (
            f"{run.name}: each hardware number of {decision.choice.name} was multiplied or divided by {FACTOR}, except"
            f" energies and the numbers that the design space varies; each of these changes saves less than"
            f" {LEAST_GAIN:.1%} of {advices.objective}."
        )
        return Statement(NEXT, text, (ranking,))
    text = (
        f"{run.name}: {single.change.words} saves {share(advices.gain(single.same) or 0.0)} of {advices.objective} with"
        f" the {_held(advices)}. {_after_search(advices, single)} No other hardware number saves more with"
        f" the {_held(advices)} if it is multiplied or divided by {FACTOR} (energies, and numbers that the design"
        " space varies, were not tried)."
        f"{_assumed(advices, single)}"
    )
    return Statement(NEXT, text, (ranking, _again(run, single)))


def _set_statement(run: Path, found: NextChanges) -> Statement:
    advices, pairs, chosen = found.advices, found.advices.pairs, found.set
    assert pairs is not None
    extent = f"{extent_of_pairs(pairs)} (no energies, and only numbers that the space does not vary)"
    if chosen is None:
        text = f"{run.name}: of {extent}, no pair saves {LEAST_GAIN:.1%} of {advices.objective} more than {OF_CHANGES}."
        return Statement(NEXT, text)
    if advices.together is not None:
        gain = share(advices.gain(chosen.same) or 0.0)
        text = (
            f"{run.name}: together, {chosen.change.words} save {gain} of {advices.objective} with the {_held(advices)},"
            f" although no single change helps. {_after_search(advices, chosen)}"
        )
    else:
        assert pairs.best is not None
        text = (
            f"{run.name}: {f'{TIE.lower()}; ' if is_tie(advices, pairs.best) else ''}together, {chosen.change.words}"
            f" {pair_words(advices, pairs.best)}, with the {_held(advices)}. {_after_search(advices, chosen)}"
            f" {best_of_pairs(extent)}"
        )
    return Statement(NEXT, text + _assumed(advices, chosen), (_again(run, chosen),))


def _held(advices: Advices) -> str:
    """Words for the part of the run that stays in a trial without a new search, such as `same mappings`."""
    return " ".join(advices.same_words.split())


def _again(run: Path, one: TriedChange) -> str:
    """Command that makes a change and searches mappings again."""
    keys = ",".join(part.key for part in one.change.single)
    return command_line("advise", run, "--together", keys)


def _after_search(advices: Advices, one: TriedChange) -> str:
    """Sentence on a new search after a change."""
    if one.search is None:
        return "No new search was made for the change."
    gain = advices.gain(one.search)
    if gain is None:
        return f"With a new search, the change gives no result: {one.search.reason}."
    if abs(gain) < _EQUAL:
        return f"With a new search, the change gives the same {advices.objective}."
    saves = f"{share(abs(gain))} {'less' if gain > 0 else 'more'} {advices.objective}"
    return f"With a new search, the change gives {saves}."


def _assumed(advices: Advices, one: TriedChange) -> str:
    """Sentence on the assumptions behind the gain of a change."""
    notes = [*assumptions_of([one.change]), *(note for note in advices.notes if OUTERMOST not in note)]
    return f" Assumed: {'; '.join(notes)}." if notes else ""


def free_statements(decision: Decision, space: Space, commands: Commands) -> Iterator[Statement]:
    """Statements on the axes that change no cost for the chosen design."""
    rows, name = decision.front.rows, decision.choice.name
    index = int(rows.loc[rows["design"] == name, "index"].iloc[0])
    for axis in free_axes(space, index):
        yield Statement(TURN, free_sentence(axis, name, decision.front, decision.objective), (commands.explore(),))


def base_statements(decision: Decision, space: Space, commands: Commands) -> Iterator[Statement]:
    """Statement that compares the choice with the design that has the values of the hardware file; none if no design
    has all these values.
    """
    if text := base_sentence(space, decision.front, decision.objective):
        yield Statement(CHOICE, text, (commands.explore(),))
