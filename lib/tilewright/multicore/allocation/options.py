"""Options of the search over allocations: objective, effort and time limit."""

import os
from dataclasses import dataclass
from typing import Annotated, Literal

from tilewright.base.json_values import JsonObject
from tilewright.base.objectives import Chance, Goal
from tilewright.base.parameters import Count, Limits, Parameters, PositiveNumber, Told

AllocationEngine = Literal["genetic", "exact"]
GENETIC, EXACT = "genetic", "exact"


@dataclass(frozen=True, eq=False, repr=False)
class AllocationParameters(Chance, Goal, Parameters):
    """Options of the search for an allocation. The search chooses the point with the best `objective` from the Pareto
    front.
    """

    nb_ga_individuals: Annotated[int, Limits(least=2)] = 16
    """Number of allocations in the population, and of children in each generation."""
    nb_ga_generations: Count = 16
    """Number of generations after the first population."""
    ga_time_budget_s: Annotated[float, Limits(above=0), Told(allowed="numbers above 0, or none")] | None = None
    """Number of seconds after which no further evaluation begins; null: no limit."""
    exhaustive_nodes: Count = 200_000
    """Limit for an exhaustive search: (number of allocations) x (number of CNs). Up to this limit, all allocations are
    evaluated. This takes a few seconds at most and proves that the best allocation is optimal. 0: this option causes no
    exhaustive search.
    """

    allocation_engine: AllocationEngine = "genetic"
    """Search engine. genetic: a genetic algorithm; exact: a genetic algorithm, then a search that continues until the
    best allocation is proven optimal (docs/multi-core-model/allocation.md).
    """
    proof_evaluations: Count = 200_000
    """Largest number of allocations that `exact` schedules after the genetic algorithm."""
    proof_effort: PositiveNumber = 120.0
    """Limit of the solver's work for `exact`, in deterministic time units of about one second."""

    def without_effect(self) -> dict[str, str]:
        """Option -> reason why it has no effect. Options of the exact engine have no effect with another engine."""
        found = super().without_effect()
        if self.allocation_engine != EXACT:
            why = f"has no effect with allocation_engine {self.allocation_engine}"
            found |= dict.fromkeys(("proof_evaluations", "proof_effort"), why)
        return found

    @property
    def planned_evaluations(self) -> int:
        """Largest number of evaluations: the first population and all generations."""
        return self.nb_ga_individuals * (self.nb_ga_generations + 1)

    def evaluates_all(self, allocations: int, nodes: int) -> bool:
        """True if the search evaluates all allocations of a space. `allocations` is the number of allocations in the
        space, and `nodes` the number of CNs.
        """
        return allocations <= self.planned_evaluations or allocations * nodes <= self.exhaustive_nodes


@dataclass(frozen=True, eq=False, repr=False)
class AllocationOptions(AllocationParameters):
    """Options of `search_allocation`."""

    jobs: Count = 0
    """Number of allocations that are evaluated at the same time; 0: one for each processor. The results do not depend
    on this number."""

    @property
    def job_count(self) -> int:
        """Number of allocations that are evaluated in parallel: the option `jobs`, or the number of available
        processors if `jobs` is 0.
        """
        if self.jobs:
            return self.jobs
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

    def stated(self) -> JsonObject:
        """Options by name for the summary of a search, without the objective."""
        names = ("nb_ga_individuals", "nb_ga_generations", "seed")
        stated = {name: getattr(self, name) for name in names} | {"time_budget_s": self.ga_time_budget_s}
        if self.allocation_engine == EXACT:
            stated |= {name: getattr(self, name) for name in ("allocation_engine", "proof_evaluations", "proof_effort")}
        return stated
