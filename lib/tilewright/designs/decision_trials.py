"""Statements of a decision that need more than the table of results: changes to try next, and bounds of mappings."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tilewright.base.errors import KeyPath, count_of
from tilewright.base.proof import gap_to
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
from tilewright.designs.decision_text import CERTAINTY, CHOICE, NEXT, TURN, Commands, Statement, command_line
from tilewright.designs.free_axes import free_axes, free_sentence
from tilewright.designs.held_mappings import Outcome
from tilewright.designs.known_gaps import below, known_gap, largest_gap, needed_gap, own_gaps, within_gap
from tilewright.designs.space import Space
from tilewright.designs.trials import TrialEngine, advices_of, tried, with_pairs

AFTER_BOUNDS = "After a search with bounds (`best`)"
"""First words of each statement that is made from a search with bounds."""
FACTOR = 2
"""Factor by which numbers of the chosen design's hardware are multiplied or divided, to find changes to try next."""
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
    the sum of what its two changes save alone.
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
    """Words that say what a trial without a new search keeps from the run, such as `same mappings`."""
    return " ".join(advices.same_words.split())


def _again(run: Path, one: TriedChange) -> str:
    """Command that makes a change and searches mappings again."""
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
    """Values of the objective after a search with bounds: for the chosen design, for the runner-up, and a lower bound
    for the runner-up.
    """

    choice: float
    runner_up: float
    bound: float | None
    """Lower bound of the runner-up's objective. It holds for all mappings that the bounds of the search cover,
    including mappings that the search did not evaluate. None if the search gives no bound for a layer.
    """


def bounds_statement(
    decision: Decision, bounds: MappingBounds, pairs: Sequence[tuple[Path, Path]], goal: str
) -> Statement:
    """Statement on the order of the chosen design and the second best design after a search with bounds.

    `pairs` has the runs of both designs for each network. `goal` is the objective of the search of the space.
    """
    assert decision.runner_up is not None
    first, second, words = decision.choice.name, decision.runner_up.design.name, decision.measure.words
    again = tuple(command_line("compare", *pair) for pair in pairs)
    searched = f"{AFTER_BOUNDS} on both designs,"
    if bounds.runner_up < bounds.choice * (1 - _EQUAL):
        text = (
            f"{searched} the order is reversed: {second} has {share(gap_to(bounds.runner_up, bounds.choice))} less"
            f" {words} than {first}. The choice was due to the search of the space, not to the hardware."
        )
    elif bounds.bound is None:
        text = (
            f"{searched} the order stays, but mappings that were not found could reverse it: the search gives no lower"
            f" bound for some layer on {second}."
        )
    elif bounds.bound > bounds.choice * (1 + _EQUAL):
        text = (
            f"{searched} the order is certain for all mappings that the bounds cover: {first} is"
            f" {share(gap_to(bounds.choice, bounds.bound))} below the lower bound of {second}."
        )
    else:
        text = (
            f"{searched} the order stays, but mappings that were not found could reverse it: {second} could have up to"
            f" {share(gap_to(bounds.bound, bounds.choice))} less {words} than {first}."
        )
    if len(decision.answer.exploration.networks) > 1:
        text += " All of this is for the sums over all networks, not for each network."
    text += f" {_found_again(decision, bounds)}{_others(decision, bounds, goal)}"
    return Statement(CERTAINTY, text, again)


def _found_again(decision: Decision, bounds: MappingBounds) -> str:
    """Sentence with the values before and after the search with bounds."""
    assert decision.runner_up is not None
    measure = decision.measure
    pairs = ((decision.choice, bounds.choice), (decision.runner_up.design, bounds.runner_up))
    found = " and ".join(
        f"{design.name} has {measure.text(value)} {measure.unit}"
        f" ({measure.text(design.measures[decision.objective])} in the space)"
        for design, value in pairs
    )
    return f"With the mappings of this search, {found}."


def _others(decision: Decision, bounds: MappingBounds, goal: str) -> str:
    """Sentence on the designs that were not searched again; '' if there are none."""
    assert decision.runner_up is not None
    first, words = decision.choice.name, decision.measure.words
    searched = (first, decision.runner_up.design.name)
    count = decision.front.compared_count - len(searched)
    if not count:
        return ""
    told = f" {count_of(count, 'other design')} {'were' if count > 1 else 'was'} not searched again"
    values = (decision.choice.measures, bounds.choice), (decision.runner_up.design.measures, bounds.runner_up)
    found = max(gap_to(value, measures[decision.objective]) for measures, value in values)
    gap = largest_gap(decision, goal)
    if gap is not None and gap.share > found:
        most, source = gap.share, "the largest gap that `explore` found on one network"
    elif found:
        most, source = found, "the larger saving of this search for the two designs"
    else:
        return f"{told}, and how much this search would save for them is not known."
    number = below(decision, most, bounds.choice, searched)
    return (
        f"{told}. If it saved {share(most)} for them ({source}), {_number(number)} of them would"
        f" have less {words} than {first} after its new search."
    )


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


def search_statements(decision: Decision, space: Space, commands: Commands, objective: str) -> Iterator[Statement]:
    """Statement that the search minimised another objective than the decision; none if the objectives are equal."""
    goal = space.options.objective
    if goal != objective and decision.depends_on_mappings and decision.runner_up is not None:
        yield Statement(
            CERTAINTY,
            f"The mappings of all designs were searched for the least {goal}, not for the least {objective}: other"
            f" mappings can have less {decision.measure.words}. Set `objective: {objective}` under `options` in"
            f" {commands.space}.",
            (commands.explore(),),
        )


def _gap_words(decision: Decision, space: Space) -> str:
    """Sentences that compare the margin of the choice with the known gap of the mappings or plans."""
    assert decision.runner_up is not None
    first, second, words = decision.choice.name, decision.runner_up.design.name, decision.measure.words
    excess, needed, equal = share(decision.runner_up.excess), needed_gap(decision), decision.runner_up.equal
    margin = f"{second} has {excess} more {words} than {first}, so {share(needed)} less would reverse the order."
    if equal:
        margin = f"{second} has as little {words} as {first}."
    goal = space.options.objective
    gap = known_gap(decision, goal)
    if gap is None:
        return f"{margin} No gap to the best {words} is known."
    better = "plans" if space.is_of_systems else "temporal mappings"
    known = _own_gap_words(decision, goal)
    if gap.is_of_runner_up:
        known += f"Better {better} could give {second} at most {share(gap.share)} less {words}."
    else:
        known += (
            f"The gap of {second} is not known; the largest gap that `explore` found on one network is"
            f" {share(gap.share)} (of {count_of(gap.designs, 'design')})."
        )
    if gap.share >= needed:
        count = within_gap(decision, gap.share)
        others = count_of(decision.front.compared_count - 1, "other design")
        tied = f", among them {'the one that ties' if equal == 1 else f'the {equal:,} that tie'}," if equal else ""
        open_order = "better mappings can break the tie" if equal else "a gap of this size could reverse it"
        return (
            f"{margin} {known} Therefore the order is not proven, because {open_order}: with such a gap,"
            f" {_number(count)} of {others}{tied if count else ''} could have less {words} than {first}."
        )
    if gap.is_of_runner_up:
        return f"{margin} {known} Therefore no better {better} of {second} reverse the order."
    return f"{margin} {known} A gap of {second} up to this size would not reverse the order."


def _number(count: int) -> str:
    """Number of designs as text."""
    return f"{count:,}" if count else "none"


def _own_gap_words(decision: Decision, goal: str) -> str:
    """Sentence on the gaps of the chosen design; '' if they are not known."""
    own = own_gaps(decision, goal, decision.choice.name)
    if not own:
        return ""
    is_single = len(decision.answer.exploration.networks) == 1
    told = ", ".join(share(gap) if is_single else f"{share(gap)} on {network}" for network, gap in own.items())
    name, words = decision.choice.name, decision.measure.words
    return f"Better temporal mappings could give {name} itself at most {told} less {words}. "


def unbounded_statements(decision: Decision, space: Space, commands: Commands, objective: str) -> Iterator[Statement]:
    """Statement which says that it was not examined whether better mappings reverse the order of the two best designs.

    It is made for decisions without a search with bounds. There is no statement if the decision does not depend on
    mappings, or if there is no second-best design.
    """
    if decision.depends_on_mappings and decision.runner_up is not None:
        text = _gap_words(decision, space)
        if not space.is_of_systems and known_gap(decision, space.options.objective) is not None:
            text += " These gaps cover only the spatial mappings that were searched."
        text += " It was not examined whether other mappings reverse the order of the choice and the runner-up."
        again = () if space.is_of_systems else (commands.decide(objective, "--bounds"),)
        yield Statement(CERTAINTY, f"{text} This command examines it." if again else text, again)
