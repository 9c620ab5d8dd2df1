"""Registry of searches for fusion plans.

The package that evaluates systems does not import the package that searches for plans. The evaluating package gets the
search from this registry, by the name in `tilewright.base.entries`.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from tilewright.base.registry import Registry
from tilewright.multicore.scheduling.core_costs import CoreCostRow
from tilewright.multicore.scheduling.result import ScheduleArtifact
from tilewright.pipeline.configuration.fusion_options import FusionOptions
from tilewright.pipeline.stages.multi.items import SystemProblem


@dataclass(frozen=True)
class PlanBounds:
    """Lower bounds of latency and energy over every plan of a network on a system."""

    latency_cycles: int
    energy_pj: float
    covers: str
    """Text that names the plans for which the bounds hold."""


@dataclass(frozen=True, eq=False)
class StartPlan:
    """Plan that was found for one system. It is the start of a search for a plan on another system."""

    plan: Any
    """Stacks, tiles, parts and schedule options, as an object of the package that searches for plans."""
    core_ids: tuple[tuple[int, ...], ...]
    """Id of the core of each part: one tuple for each layer, with one id for each part of the layer."""


@dataclass(frozen=True, eq=False)
class FoundPlan:
    """Best plan that a search found."""

    artifact: ScheduleArtifact
    """Schedule of the plan."""
    costs: Mapping[str, tuple[CoreCostRow, ...]]
    """Cost table of each core file, for the tiles of the plan."""
    schedules: int
    """Number of schedules that the search made."""
    as_start: StartPlan
    """Plan in the form in which a later search on another system can start from it."""
    layer_by_layer: StartPlan | None
    """Best plan in which each stack has one layer, in the form of `as_start`; None if the run fixes the stacks."""
    details: Any
    """Complete result of the search, as an object of the package that searches for plans."""


class PlanCall(Protocol):
    """Search for a plan of one network on one system."""

    def bounds(self) -> PlanBounds:
        """Lower bounds over every plan."""

    def takes(self, start: StartPlan) -> bool:
        """True if the lower bounds of this search also cover the plan `start` of another system."""

    def found(self, starts: Sequence[StartPlan] = (), share: float = 1.0, enough: float = math.inf) -> FoundPlan:
        """Best plan that the search finds. The search may evaluate only the fraction `share` of the plans and schedules
        that its options allow.

        The search first evaluates the plans `starts` of other systems, in the given order. If one of these plans has a
        schedule on this system, the search makes fewer initial plans. It makes none if the objective of the best plan
        is at most `enough`.

        Raises InputError or MappingError if no plan has a schedule, and KeyboardInterrupt for Ctrl-C.
        """


class PlanEngine(Protocol):
    """Engine that searches for plans. One engine serves many systems: it keeps the costs of computation nodes and uses
    them again.
    """

    def call(self, problem: SystemProblem, options: FusionOptions) -> PlanCall:
        """Search for a plan of one network on one system; the search has not begun."""


class PlanEngineKind(Protocol):
    """Function that makes a search engine. There is one function for each kind of search."""

    def __call__(self) -> PlanEngine:
        """Search engine that knows no costs of earlier searches."""


PLAN_ENGINES: Registry[PlanEngineKind] = Registry(__name__)
"""Registry of the kinds of search for plans."""
