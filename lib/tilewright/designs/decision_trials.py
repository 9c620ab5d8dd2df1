"""Statements of a decision that need more than the results of the space: the next change, and bounds of mappings."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tilewright.base.errors import KeyPath
from tilewright.base.proof import gap_to
from tilewright.designs.advice import LEAST_GAIN, Advices
from tilewright.designs.advice_text import assumptions_of
from tilewright.designs.changes import FileChange
from tilewright.designs.core_trials import OUTERMOST
from tilewright.designs.decision import Decision
from tilewright.designs.decision_text import CERTAINTY, NEXT, Commands, Statement, command_line, share
from tilewright.designs.space import Space

FACTOR = 2
"""Factor by which a number of the hardware of the choice is multiplied or divided."""
_EQUAL = 1e-9
"""Relative difference below which a value and a bound count as equal."""


@dataclass(frozen=True)
class NextChange:
    """Single change of the hardware of the choice that saves most of the objective of the search, for one network."""

    change: FileChange
    gain: float
    """Share of the objective that the change saves with the same mappings."""
    notes: tuple[str, ...]
    """Simplifying assumptions behind the gain."""


def next_change(space: Space, advices: Advices) -> NextChange | None:
    """Change that saves most, among the changes of numbers that neither an axis nor a law of the space sets; None if
    none of them saves LEAST_GAIN."""
    varied = _varied(space)
    for _, one in advices.helpful:
        if not any(_overlap(path, own) for path, _ in one.change.system_settings for own in varied):
            clock = [note for note in advices.notes if OUTERMOST not in note]
            return NextChange(one.change, advices.hardware_gain(one) or 0.0, (*assumptions_of([one.change]), *clock))
    return None


def _varied(space: Space) -> set[KeyPath]:
    """Paths that the axes and laws of a space set."""
    of_axes = {path for axis in space.axes for settings in axis.settings for path, _ in settings}
    return of_axes | {law.path for law in space.laws if law.path is not None}


def _overlap(one: KeyPath, other: KeyPath) -> bool:
    """Whether one path is the other one or a part of it."""
    length = min(len(one), len(other))
    return one[:length] == other[:length]


def next_statements(space: Space, decision: Decision, runs: Sequence[tuple[Path, Advices]]) -> Iterator[Statement]:
    """Statements on the next change, one for each run of the choice with the advice on it."""
    for run, advices in runs:
        again = (command_line("advise", run, "--no-search", "--no-mapping-changes"),)
        found = next_change(space, advices)
        if found is None:
            text = (
                f"{run.name}: no number of the hardware of {decision.choice.name} that the space does not vary saves"
                f" {LEAST_GAIN:.1%} of {advices.objective}, if it alone is multiplied or divided by {FACTOR}."
            )
        else:
            notes = f" Assumed: {'; '.join(found.notes)}." if found.notes else ""
            held = " ".join(advices.same_words.split())
            text = (
                f"{run.name}: {found.change.words} saves {share(found.gain)} of {advices.objective} with the {held}."
                " No other number that the space does not vary saves more if it alone is multiplied or divided by"
                f" {FACTOR}.{notes}"
            )
        yield Statement(NEXT, text, again)


@dataclass(frozen=True)
class MappingBounds:
    """Objectives of the choice and the runner-up after a search with bounds, and the lower bound of the runner-up."""

    choice: float
    runner_up: float
    bound: float | None
    """Lower bound of the objective of the runner-up over all mappings that its bounds cover; None if the search gives
    no bound for some layer."""


def bounds_statement(decision: Decision, bounds: MappingBounds, pairs: Sequence[tuple[Path, Path]]) -> Statement:
    """Statement on the order of the choice and the runner-up after a search with bounds. `pairs` are the runs of both
    designs for each network."""
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
    """Statement that mappings were searched for another objective than that of the decision, if they were."""
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
    """Statement that mappings can turn the order, for a decision without a search with bounds."""
    if decision.depends_on_mappings and decision.runner_up is not None:
        text = "Whether better mappings turn the order of the choice and the runner-up was not examined."
        again = () if space.is_of_systems else (commands.decide(objective, "--bounds"),)
        yield Statement(CERTAINTY, f"{text} This command examines it." if again else text, again)
