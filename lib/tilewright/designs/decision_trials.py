"""Statements of a decision that need more than the results of the space: the next changes, and bounds of mappings."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tilewright.base.errors import KeyPath
from tilewright.base.proof import gap_to
from tilewright.designs.advice import LEAST_GAIN, Advices
from tilewright.designs.advice_text import assumptions_of, extent_of_pairs, is_tie, pair_words, share
from tilewright.designs.changes import FileChange
from tilewright.designs.core_trials import OUTERMOST
from tilewright.designs.decision import Decision
from tilewright.designs.decision_text import CERTAINTY, NEXT, Commands, Statement, command_line
from tilewright.designs.held_mappings import Outcome
from tilewright.designs.space import Space
from tilewright.designs.trials import TrialEngine, advices_of, tried, with_pairs

FACTOR = 2
"""Factor by which numbers of the chosen design's hardware are multiplied or divided."""
_EQUAL = 1e-9
"""Largest relative difference at which a value and a bound count as equal."""


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
    """Changes to try next on a run of the chosen design.

    They concern only numbers that no axis or law of the space sets.
    """

    advices: Advices
    """Advice on all these numbers, with pairs of changes."""
    single: TriedChange | None
    """Single change that saves most. None if none saves LEAST_GAIN."""
    set: TriedChange | None
    """Set of changes to try; None if there is none.

    It is a pair that saves more than its changes alone. If no single change helps, it is the smallest set that helps.
    """


def next_changes(space: Space, run: TrialEngine, changes: Sequence[FileChange], jobs: int = 1) -> NextChanges:
    """Changes to try next on a run. Each is tried with the mappings of the run and with a new search."""
    varied = _varied(space)
    free = [one for one in changes if not any(_overlap(path, own) for path, _ in one.system_settings for own in varied)]
    advices = with_pairs(run, advices_of(run, free, search=False, jobs=jobs), jobs)
    single = next((one.change for _, one in advices.helpful), None)
    found = advices.together or (None if advices.pairs is None else advices.pairs.best)
    both = (None if one is None else _tried(run, one) for one in (single, None if found is None else found.change))
    return NextChanges(advices, *both)


def _tried(run: TrialEngine, change: FileChange) -> TriedChange:
    """Change with the costs after it."""
    trial = tried(run, change, search=True)
    return TriedChange(change, trial.same, trial.search)


def _varied(space: Space) -> set[KeyPath]:
    """Paths in the base that the axes and laws of a space set."""
    of_axes = {path for axis in space.axes for settings in axis.settings for path, _ in settings}
    return of_axes | {law.path for law in space.laws if law.path is not None}


def _overlap(one: KeyPath, other: KeyPath) -> bool:
    """True if one path is equal to the other, or leads to a part of it."""
    length = min(len(one), len(other))
    return one[:length] == other[:length]


def next_statements(decision: Decision, runs: Sequence[tuple[Path, NextChanges]]) -> Iterator[Statement]:
    """Statements on the next change and the next set of changes, for each run of the chosen design."""
    for run, found in runs:
        yield _single_statement(decision, run, found)
        yield _set_statement(run, found)


def _single_statement(decision: Decision, run: Path, found: NextChanges) -> Statement:
    advices, single = found.advices, found.single
    ranking = command_line("advise", run, "--no-search", "--no-mapping-changes")
    if single is None:
        text = (
            f"{run.name}: no number of the hardware of {decision.choice.name} that the space does not vary saves"
            f" {LEAST_GAIN:.1%} of {advices.objective}, if it alone is multiplied or divided by {FACTOR}."
        )
        return Statement(NEXT, text, (ranking,))
    text = (
        f"{run.name}: {single.change.words} saves {share(advices.gain(single.same) or 0.0)} of {advices.objective} with"
        f" the {_held(advices)}. {_after_search(advices, single)} No other number that the space does not vary saves"
        f" more with the {_held(advices)} if it alone is multiplied or divided by {FACTOR}.{_assumed(advices, single)}"
    )
    return Statement(NEXT, text, (ranking, _again(run, single)))


def _set_statement(run: Path, found: NextChanges) -> Statement:
    advices, pairs, chosen = found.advices, found.advices.pairs, found.set
    assert pairs is not None
    extent = f"{extent_of_pairs(pairs)}, among the numbers that the space does not vary"
    if chosen is None:
        text = (
            f"{run.name}: of {extent}, none saves {LEAST_GAIN:.1%} of {advices.objective} more than its changes alone."
        )
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
            f"{run.name}: {'two limits tie; ' if is_tie(advices, pairs.best) else ''}together, {chosen.change.words}"
            f" {pair_words(advices, pairs.best)}, with the {_held(advices)}. {_after_search(advices, chosen)} Of"
            f" {extent}, this pair saves most, among those that save at least {LEAST_GAIN:.1%} more than their changes"
            f" alone."
        )
    return Statement(NEXT, text + _assumed(advices, chosen), (_again(run, chosen),))


def _held(advices: Advices) -> str:
    """Text on the choices of the run that stay the same."""
    return " ".join(advices.same_words.split())


def _again(run: Path, one: TriedChange) -> str:
    """Command that makes a change and searches again."""
    keys = ",".join(part.key for part in one.change.single)
    return command_line("advise", run, "--together", keys)


def _after_search(advices: Advices, one: TriedChange) -> str:
    """Sentence on a new search after a change."""
    if one.search is None:
        return "No run with the change was made."
    gain = advices.gain(one.search)
    if gain is None:
        return f"A run with the change has no result: {one.search.reason}."
    if abs(gain) < _EQUAL:
        return f"A run with the change has the same {advices.objective}."
    return f"A run with the change has {share(abs(gain))} {'less' if gain > 0 else 'more'} {advices.objective}."


def _assumed(advices: Advices, one: TriedChange) -> str:
    """Sentence on the assumptions behind the gain of a change."""
    notes = [*assumptions_of([one.change]), *(note for note in advices.notes if OUTERMOST not in note)]
    return f" Assumed: {'; '.join(notes)}." if notes else ""


@dataclass(frozen=True)
class MappingBounds:
    """Objectives of the choice and the runner-up after a search with bounds, with the lower bound of the runner-up."""

    choice: float
    runner_up: float
    bound: float | None
    """Lower bound of the runner-up's objective over all mappings that the bounds of the search cover. None if a layer
    has no bound.
    """


def bounds_statement(decision: Decision, bounds: MappingBounds, pairs: Sequence[tuple[Path, Path]]) -> Statement:
    """Statement on the order of the choice and the runner-up after a search with bounds.

    `pairs` has the runs of both designs for each network.
    """
    assert decision.runner_up is not None
    first, second, words = decision.choice.name, decision.runner_up.design.name, decision.measure.words
    again = tuple(command_line("compare", *pair) for pair in pairs)
    searched = "After a search with bounds (`best`) on both designs,"
    if bounds.runner_up < bounds.choice * (1 - _EQUAL):
        text = (
            f"{searched} the order turns: {second} has {share(gap_to(bounds.runner_up, bounds.choice))} less {words}"
            f" than {first}. The search of the space decided, not the hardware."
        )
    elif bounds.bound is None:
        text = (
            f"{searched} the order stays, but mappings that were not found could turn it: the search gives no lower"
            f" bound for some layer on {second}."
        )
    elif bounds.bound > bounds.choice * (1 + _EQUAL):
        text = (
            f"{searched} the order is certain over all mappings that the bounds cover: {first} is"
            f" {share(gap_to(bounds.choice, bounds.bound))} below the lower bound of {second}. Other designs were not"
            " searched again."
        )
    else:
        text = (
            f"{searched} the order stays, but mappings that were not found could turn it: {second} could have up to"
            f" {share(gap_to(bounds.bound, bounds.choice))} less {words} than {first}."
        )
    return Statement(CERTAINTY, text, again)


def search_statements(decision: Decision, space: Space, commands: Commands, objective: str) -> Iterator[Statement]:
    """Statements that mappings were searched for another objective than that of the decision, if this is so."""
    goal = space.options.objective
    if goal != objective and decision.depends_on_mappings and decision.runner_up is not None:
        yield Statement(
            CERTAINTY,
            f"The mappings of all designs were searched for the least {goal}, not for the least {objective}: other"
            f" mappings can have less {decision.measure.words}. Set `objective: {objective}` under `options` in"
            f" {commands.space}.",
            (commands.explore(),),
        )


def unbounded_statements(decision: Decision, space: Space, commands: Commands, objective: str) -> Iterator[Statement]:
    """Statements that other mappings could turn the order, for a decision without a search with bounds."""
    if decision.depends_on_mappings and decision.runner_up is not None:
        text = "Whether better mappings turn the order of the choice and the runner-up was not examined."
        again = () if space.is_of_systems else (commands.decide(objective, "--bounds"),)
        yield Statement(CERTAINTY, f"{text} This command examines it." if again else text, again)
