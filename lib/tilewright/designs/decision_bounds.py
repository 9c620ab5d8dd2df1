"""Statement of a decision after a search with bounds: whether other mappings can reverse the order of two designs."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tilewright.base.errors import count_of
from tilewright.base.proof import gap_to
from tilewright.designs.advice_text import share
from tilewright.designs.decision import Decision
from tilewright.designs.decision_text import CERTAINTY, CHOICE, Statement, command_line, count_or_none
from tilewright.designs.known_gaps import below, largest_gap
from tilewright.results.uncertainty import SAMPLES, samples_text

AFTER_BOUNDS = "After a search with bounds (`best`)"
"""First words of each statement that is made from a search with bounds."""
_EQUAL = 1e-9
"""Largest relative difference at which a value and a bound count as equal."""


@dataclass(frozen=True)
class MappingBounds:
    """Objective after a search with bounds: values and lower bounds for the chosen design and for the runner-up.

    A lower bound holds for all mappings that the bounds of the search cover, including mappings that the search did not
    evaluate. It is None if the search gives no bound for a layer.
    """

    choice: float
    runner_up: float
    bound: float | None
    """Lower bound of the runner-up's objective."""
    choice_bound: float | None = None
    """Lower bound of the chosen design's objective."""

    @property
    def is_reversed(self) -> bool:
        """True if the search finds a smaller objective for the runner-up than for the chosen design."""
        return self.runner_up < self.choice * (1 - _EQUAL)


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
    if bounds.is_reversed:
        text = f"{searched} {_reversed_order(decision, bounds)}"
    elif bounds.bound is None:
        text = (
            f"{searched} the order stays, but mappings that were not found could reverse it: the search gives no lower"
            f" bound for some layer on {second}."
        )
    elif bounds.bound > bounds.choice * (1 + _EQUAL):
        text = (
            f"{searched} the order is certain for all mappings that the bounds cover: {first} is"
            f" {share(gap_to(bounds.choice, bounds.bound))} below the lower bound of {second}."
            f"{_at_nominal_costs(decision)}"
        )
    else:
        text = (
            f"{searched} the order stays, but mappings that were not found could reverse it: {second} could have up to"
            f" {share(gap_to(bounds.bound, bounds.choice))} less {words} than {first}."
        )
    if len(decision.answer.exploration.networks) > 1:
        text += " These statements are for the sums over all networks, not for each network."
    text += f" {_found_again(decision, bounds)}{_others(decision, bounds, goal)}"
    return Statement(CERTAINTY, text, again)


def reversed_statements(decision: Decision, bounds: MappingBounds) -> tuple[Statement, ...]:
    """Warning beside the choice if a search with bounds finds a better mapping for the runner-up; otherwise ()."""
    if not bounds.is_reversed:
        return ()
    assert decision.runner_up is not None
    first, second, measure = decision.choice.name, decision.runner_up.design.name, decision.measure
    text = (
        f"Warning: after a search with bounds, {second} has less {measure.words} than {first}:"
        f" {measure.text(bounds.runner_up)} {measure.unit}, not {measure.text(bounds.choice)} {measure.unit}. This"
        " choice, the table and most other statements come from the search of the space."
    )
    return (Statement(CHOICE, text, ()),)


def _reversed_order(decision: Decision, bounds: MappingBounds) -> str:
    """Text on an order that a search with bounds reverses: how certain the new order is."""
    assert decision.runner_up is not None
    first, second, words = decision.choice.name, decision.runner_up.design.name, decision.measure.words
    less = f"{second} has {share(gap_to(bounds.runner_up, bounds.choice))} less {words} than {first}"
    costs = "" if decision.odds is None else " This holds at the nominal costs."
    if bounds.choice_bound is None:
        return (
            f"the order is reversed: {less}. Mappings that were not found could restore the order: the search gives no"
            f" lower bound for some layer on {first}."
        )
    if bounds.choice_bound > bounds.runner_up * (1 + _EQUAL):
        return (
            f"the order is reversed for all mappings that the bounds cover: {less}, and is"
            f" {share(gap_to(bounds.runner_up, bounds.choice_bound))} below the lower bound of {first}. The choice was"
            f" due to the search of the space, not to the hardware.{costs}"
        )
    return (
        f"the order is open: {less}, but mappings that were not found could give {first} up to"
        f" {share(gap_to(bounds.choice_bound, bounds.runner_up))} less {words} than {second}. The search does not show"
        " which design is better."
    )


def _at_nominal_costs(decision: Decision) -> str:
    """Sentence which says that the order of the two designs is certain only at the nominal costs. '' if the choice is
    the best in all samples of the costs, or if no costs have ranges.
    """
    odds, words = decision.odds, decision.measure.words
    if odds is None or odds.choice >= 1:
        return ""
    return (
        f" This is certain at the nominal costs only: within the ranges of the costs, {decision.choice.name} has the"
        f" least {words} in {samples_text(odds.choice)} of {SAMPLES:,} samples."
    )


def no_runner_up_statement(decision: Decision) -> Statement:
    """Statement that no search with bounds was made, for a decision without a second-best design."""
    text = (
        "No mappings were searched with bounds: such a search compares the choice with a runner-up, but"
        f" {decision.choice.name} is the only compared design."
    )
    return Statement(CERTAINTY, text)


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
        f"{told}. If it saved {share(most)} for them ({source}), {count_or_none(number)} of them would"
        f" have less {words} than {first} after its new search."
    )
