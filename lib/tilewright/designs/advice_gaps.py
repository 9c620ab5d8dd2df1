"""Gaps to the best mappings, for advice on a run: for the run itself, and for the changes that help most.

A gap is the largest share by which better mappings could reduce the objective.
"""

from collections.abc import Iterator, Sequence
from typing import Protocol

from tilewright.base.errors import InputError, MappingError
from tilewright.base.json_values import JsonObject
from tilewright.base.proof import Bounded
from tilewright.designs.advice import Advice, Advices
from tilewright.designs.evaluate import NetworkEvaluator
from tilewright.designs.held_mappings import Outcome
from tilewright.designs.mapping_gaps import bound_of_design, bound_of_layers
from tilewright.hardware.source import parse_accelerator
from tilewright.hardware.text_edits import with_values
from tilewright.mapping.constraints import Mapping
from tilewright.results.records import PlacedLayer
from tilewright.search.options import SearchOptions
from tilewright.workload.graph import Workload

MOST_BOUNDED = 3
"""Largest number of changes of the hardware file for which a lower bound is computed. One bound takes as long as a new
search, so only the changes that help most get a bound.
"""
NOT_KNOWN = (
    "the gap between the mappings of the run and the best mappings is not known, because the run has no lower bounds"
    " (`tilewright map --bounds` computes them)"
)


class BoundedRun(Protocol):
    """Run on one core whose records can have lower bounds."""

    @property
    def placed(self) -> Sequence[PlacedLayer]:
        """Layers of the run, with their records."""

    @property
    def hardware(self) -> JsonObject:
        """Content of the hardware file."""

    @property
    def network(self) -> Workload:
        """Network of the run."""

    @property
    def mapping(self) -> Mapping:
        """Mapping file of the run."""

    @property
    def options(self) -> SearchOptions:
        """Options of the search."""

    @property
    def objective(self) -> str:
        """Objective that the search of the run minimises."""

    @property
    def now(self) -> Outcome:
        """Costs of the run."""


def gap_notes(run: BoundedRun, advices: Advices) -> list[str]:
    """List of one sentence on gaps to the best mappings. The sentence has the gap of the run. If lower bounds of
    changes were computed, it also has the largest gap after a new search with one of these changes. The sentence is
    NOT_KNOWN if the run has no lower bounds. The list is empty if the advice was made without new searches.
    """
    if not advices.searched:
        return []
    goal, value = run.objective, run.now.value(run.objective)
    own = None if value is None else bound_of_layers([(one.of_one, one.repeats) for one in run.placed], goal, value)
    if own is None:
        return [NOT_KNOWN]
    told = f"with the best mappings, the {goal} of the run could be at most {own.gap:.2%} smaller"
    bounds = list(_bounds_of_changes(run, advices))
    if bounds:
        which = "the change" if advices.is_named else f"change no. {' or '.join(str(number) for number, _ in bounds)}"
        told += (
            f"; with {which}, the {goal} that a new search finds could be at most"
            f" {max(bound.gap for _, bound in bounds):.2%} smaller"
        )
        sure = [number for number, bound in bounds if bound.value < own.lower_bound]
        if sure:
            saves = "the change" if advices.is_named else f"change no. {' or '.join(map(str, sure))}"
            told += (
                f"; with {saves}, the {goal} is below the lower bound of the run: no mapping on the unchanged"
                f" hardware can reach this {goal}"
            )
    engine = run.options.temporal_mapping_search_engine
    return [f"{told} (over the spatial mappings that {engine} tries)"]


def _bounds_of_changes(run: BoundedRun, advices: Advices) -> Iterator[tuple[int, Bounded]]:
    """Pairs (number of the change in the list of advice, `Bounded`). `Bounded` has the objective that a new search
    finds after the change, and a lower bound of this objective. There are at most MOST_BOUNDED pairs, for the
    most helpful changes of the hardware file.
    """
    rows = list(enumerate(advices.found, 1)) if advices.is_named else advices.helpful
    # A changed mapping file can open all spatial mappings, whose bounds take much longer than those of a hardware file.
    rows = [(number, one) for number, one in rows if one.search is not None and not one.change.is_of_mapping]
    rows = [(number, one) for number, one in rows if (advices.gain(one.search) or 0.0) > 0]
    for number, one in rows[:MOST_BOUNDED]:
        found = _bound_of_change(run, one)
        if found is not None:
            yield number, found


def _bound_of_change(run: BoundedRun, one: Advice) -> Bounded | None:
    """Objective after a new search on the changed hardware, together with a lower bound of this objective. None if
    there is no objective or no bound.
    """
    value = None if one.search is None else one.search.value(run.objective)
    if value is None:
        return None
    accelerator = parse_accelerator(with_values(run.hardware, one.change.system_settings))
    try:
        evaluator = NetworkEvaluator(run.network, run.mapping, run.options, bounds=True)
        return bound_of_design(evaluator, accelerator, run.objective, value)
    except (InputError, MappingError):
        return None
