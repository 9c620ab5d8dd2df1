"""Statements about limits of the search behind a decision, such as known gaps or a search for another objective."""

from collections.abc import Iterator

from tilewright.base.errors import count_of
from tilewright.designs.advice_text import share
from tilewright.designs.decision import Decision
from tilewright.designs.decision_text import CERTAINTY, Commands, Statement, count_or_none, more_text
from tilewright.designs.error_bars import can_have_bars
from tilewright.designs.known_gaps import KnownGap, known_gap, largest_gap, needed_gap, own_gaps, within_gap
from tilewright.designs.space import Space
from tilewright.results.error_bars.bars_text import PAGE


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
    needed, equal = needed_gap(decision), decision.runner_up.equal
    more = more_text(decision.runner_up.excess, words, first)
    margin = f"{second} has {more}, so {share(needed)} less would reverse the order."
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
            f" {count_or_none(count)} of {others}{tied if count else ''} could have less {words} than {first}."
            f"{_larger_gap_words(decision, space, gap)}"
        )
    if gap.is_of_runner_up:
        return f"{margin} {known} Therefore better {better} of {second} cannot reverse the order."
    return f"{margin} {known} A gap of {second} up to this size would not reverse the order."


def _larger_gap_words(decision: Decision, space: Space, gap: KnownGap) -> str:
    """Sentence on the largest known gap, which is the gap that `explore` uses. The sentence says how many designs could
    be better than the chosen design if results can improve by this gap. '' if no known gap is larger than `gap`.
    """
    largest = largest_gap(decision, space.options.objective)
    if largest is None or largest.share <= gap.share:
        return ""
    count = within_gap(decision, largest.share)
    return (
        f" `explore` uses the largest gap of any design on one network, {share(largest.share)}: with that gap,"
        f" {count_or_none(count)} could be better."
    )


def _own_gap_words(decision: Decision, goal: str) -> str:
    """Sentence on the gaps of the chosen design; '' if they are not known."""
    own = own_gaps(decision, goal, decision.choice.name)
    if not own:
        return ""
    is_single = len(decision.answer.exploration.networks) == 1
    told = ", ".join(share(gap) if is_single else f"{share(gap)} on {network}" for network, gap in own.items())
    name, words = decision.choice.name, decision.measure.words
    return f"Better temporal mappings could give {name} itself at most {told} less {words}. "


def latency_statements(decision: Decision, space: Space) -> Iterator[Statement]:
    """Statement that the latencies have no error bars, with the option that makes them. None if the decision does not
    depend on latencies, or if no errors of predictions for the designs are measured.
    """
    _, time, product, _ = decision.front.measures
    if decision.objective in (time, product) and decision.runner_up is not None and can_have_bars(space):
        text = (
            "The latencies are predictions without error bars. The option `--error-bars CLASS` of `tilewright explore`"
            f" makes error bars ({PAGE})."
        )
        yield Statement(CERTAINTY, text)


def unbounded_statements(decision: Decision, space: Space, commands: Commands, objective: str) -> Iterator[Statement]:
    """Statement that it is open whether better mappings reverse the order of the two best designs.

    It is made for decisions without a search with bounds. There is no statement if the decision does not depend on
    mappings, or if there is no second-best design.
    """
    if decision.depends_on_mappings and decision.runner_up is not None:
        text = _gap_words(decision, space)
        if not space.is_of_systems and known_gap(decision, space.options.objective) is not None:
            text += " These gaps cover only the spatial mappings that were searched; others can be much better."
        text += " It was not examined whether other mappings reverse the order of the choice and the runner-up."
        again = () if space.is_of_systems else (commands.decide(objective, "--bounds"),)
        yield Statement(CERTAINTY, f"{text} This command examines it." if again else text, again)
