"""Registry of searches for fusion plans.

The package that evaluates systems does not import the package that searches for plans. Instead, it gets the search by
name from this registry. `tilewright.base.entries` lists the search under its name.
"""

from collections.abc import Mapping
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
    """Plans for which the bounds hold, in words."""


@dataclass(frozen=True, eq=False)
class StartPlan:
    """Plan that was found for one system, as the start of a search for a plan on another system."""

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
    start_figures: tuple[int, float] | None
    """Pair (latency in cycles, energy in pJ) of the start plan on this system. None without a start plan, or if the
    start plan has no schedule on this system.
    """
    details: Any
    """Complete result of the search, as an object of the package that searches for plans."""


class PlanCall(Protocol):
    """Search for a plan of one network on one system."""

    def bounds(self) -> PlanBounds:
        """Lower bounds over every plan."""

    def found(self, start: StartPlan | None) -> FoundPlan:
        """Best plan that the search finds. If there is a start plan, the search evaluates it first.

        Raises InputError or MappingError if no plan has a schedule, and KeyboardInterrupt for Ctrl-C.
        """


class PlanEngine(Protocol):
    """Search for plans. One engine serves many systems, and keeps costs of computation nodes for later systems."""

    def call(self, problem: SystemProblem, options: FusionOptions) -> PlanCall:
        """Make the search for a plan of one network on one system; the search is not started yet."""


class PlanEngineKind(Protocol):
    """Function that makes a search engine. Each kind of search has one such function."""

    def __call__(self) -> PlanEngine:
        """Engine without any costs of earlier searches."""


PLAN_ENGINES: Registry[PlanEngineKind] = Registry(__name__)
"""Registry of the kinds of search for plans."""
