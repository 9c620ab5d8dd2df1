"""What the search over allocations looks for, and how long."""

import math
import os
from dataclasses import dataclass, fields
from typing import Any

from tilewright.errors import InputError, Problem, nearest_name
from tilewright.search.options import LARGEST_SEED, OBJECTIVES

_LEAST_COUNTS = {"nb_ga_individuals": 2, "nb_ga_generations": 0, "seed": 0, "exhaustive_nodes": 0, "threads": 0}


@dataclass(frozen=True)
class AllocationOptions:
    """Options of `search_allocation`; raises InputError with every value that is not allowed."""

    objective: str = "latency"
    """What the chosen point of the Pareto front minimises: latency, energy or EDP (their product)."""
    nb_ga_individuals: int = 16
    """Allocations in the population, and children in each generation."""
    nb_ga_generations: int = 16
    """Generations after the first population."""
    seed: int = 0
    """Where the random numbers start."""
    time_budget_s: float | None = None
    """Time after which no further evaluation is started; None: no limit."""
    exhaustive_nodes: int = 200_000
    """Where allocations × CNs are no more than this, all allocations are evaluated instead; 0: never for this reason.
    That takes a few seconds at most, and what is found is proven to be the best."""
    threads: int = 0
    """Threads that evaluate; 0: one for each processor. Results do not depend on it."""

    def __post_init__(self) -> None:
        problems = [problem for field in fields(self) if (problem := _problem(field.name, getattr(self, field.name)))]
        if problems:
            raise InputError(problems)

    def stated(self) -> dict[str, Any]:
        """The options by name for the summary of a search, but for the objective."""
        names = ("nb_ga_individuals", "nb_ga_generations", "seed", "time_budget_s")
        return {name: getattr(self, name) for name in names}

    @property
    def planned_evaluations(self) -> int:
        """Most evaluations that the first population and all generations make."""
        return self.nb_ga_individuals * (self.nb_ga_generations + 1)

    def evaluates_all(self, allocations: int, nodes: int) -> bool:
        """Whether a space of so many allocations of so many CNs is evaluated completely."""
        return allocations <= self.planned_evaluations or allocations * nodes <= self.exhaustive_nodes

    @property
    def thread_count(self) -> int:
        """Threads, with 0 resolved."""
        if self.threads:
            return self.threads
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _problem(name: str, value: Any) -> Problem | None:
    """What is wrong with the value of one option."""
    if name == "objective" and value not in OBJECTIVES:
        allowed, nearest = ", ".join(OBJECTIVES), nearest_name(str(value), OBJECTIVES)
        return Problem("unknown value", path=name, value=repr(value), allowed=allowed, nearest=nearest)
    if name in _LEAST_COUNTS:
        least = _LEAST_COUNTS[name]
        if not (type(value) is int and least <= value <= LARGEST_SEED):
            return Problem("not a count", path=name, value=repr(value), allowed=f"integers from {least}")
    if name == "time_budget_s" and value is not None:
        number = type(value) in (int, float) and math.isfinite(value) and value > 0
        if not number:
            return Problem("not a positive number", path=name, value=repr(value), allowed="numbers above 0, or none")
    return None
