"""What a search over allocations found, as objects and as plain tables."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from tilewright.allocation.point import Evaluation
from tilewright.allocation.space import AllocationSpace, Genome
from tilewright.scheduling.problem import Integers

REASONS_SHOWN = 10


@dataclass(frozen=True)
class GenerationRow:
    """One generation; generation 0 is the first population."""

    generation: int
    evaluations: int
    """Made in this generation."""
    evaluations_so_far: int
    best_latency_cycles: int
    """Of all so far, as the next two."""
    best_energy_pj: float
    best_edp: float
    mean_latency_cycles: float
    """Over the allocations that survive the generation, as the next."""
    mean_energy_pj: float


@dataclass(frozen=True)
class SearchProgress:
    """How far a search is."""

    evaluations: int
    evaluations_planned: int
    """At most."""
    best: Evaluation | None
    """By the objective; None while nothing has a schedule."""
    elapsed_s: float


@dataclass(frozen=True, eq=False)
class AllocationResult:
    """The chosen allocation and what it was chosen from."""

    space: AllocationSpace
    objective: str
    """What the chosen allocation minimises."""
    options: Mapping[str, Any]
    """What the search was told, by name, as a summary tells it: each way to search has its own."""
    chosen: Evaluation
    front: tuple[Evaluation, ...]
    """Pareto front over everything that was evaluated, by rising latency."""
    generations: tuple[GenerationRow, ...]
    """How the search went on; () for one that has no such steps."""
    evaluations: int
    """Distinct allocations that were evaluated."""
    infeasible: Mapping[Genome, str]
    """Evaluated allocations without a schedule, and why."""
    stopped_by: str
    """`generations`, `everything` (the whole space was evaluated: nothing is better), `time_budget` or
    `interrupted`."""

    @property
    def allocation(self) -> Integers:
        """[cn] core of the chosen allocation, as the scheduler takes it."""
        return self.space.allocation(self.chosen.genome)


def pareto_table(result: AllocationResult) -> list[dict[str, Any]]:
    """A row for each point of the front: latency, energy, EDP, whether it is the chosen one, the core of each part."""
    return [
        {
            "latency_cycles": point.latency_cycles,
            "energy_pj": point.energy_pj,
            "edp": point.edp,
            "is_chosen": point.genome == result.chosen.genome,
            "cores": list(result.space.part_cores(point.genome)),
        }
        for point in result.front
    ]


def generation_table(result: AllocationResult) -> list[dict[str, Any]]:
    """A row for each generation, keys as in `GenerationRow`."""
    return [asdict(row) for row in result.generations]


def allocation_table(space: AllocationSpace, genome: Genome) -> list[dict[str, Any]]:
    """A row for each part: layer, group, core, whether there was no other choice."""
    return [
        {"layer": layer, "group": group, "core": core, "is_only_choice": len(space.choices[part]) == 1}
        for part, ((layer, group), core) in enumerate(zip(space.parts, space.part_cores(genome), strict=True))
    ]


def summary(result: AllocationResult) -> dict[str, Any]:
    """Plain data of a search: options, size of the space, evaluations, why it ended, why some have no schedule."""
    reasons = sorted(Counter(result.infeasible.values()).items(), key=lambda item: (-item[1], item[0]))
    return {
        "objective": result.objective,
        **result.options,
        "genes": len(result.space.flexible),
        "allocations": str(result.space.size),
        "evaluations": result.evaluations,
        "infeasible": len(result.infeasible),
        "infeasible_reasons": [{"reason": reason, "count": count} for reason, count in reasons[:REASONS_SHOWN]],
        "excluded_cores": [asdict(exclusion) for exclusion in result.space.exclusions],
        "stopped_by": result.stopped_by,
    }
