"""Results of a search over allocations as objects, tables and `allocation.json`: evaluations, Pareto front, choice,
proof.

In `allocation.json`, a core is identified by its id in the accelerator file, and a layer by its number in the CN graph.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from tilewright.base.errors import InputError, Problem, nearest_name
from tilewright.base.json_values import JsonObject
from tilewright.base.measures import ENERGY_PJ, LATENCY_CYCLES
from tilewright.base.objectives import OBJECTIVES, energy_delay_product
from tilewright.base.proof import BoundedValue
from tilewright.multicore.allocation.space import AllocationSpace, Genome
from tilewright.multicore.scheduling.assembled import SystemNames
from tilewright.multicore.scheduling.problem import Booleans, Integers


@dataclass(frozen=True)
class Evaluation:
    """Allocation with the latency and energy of its schedule."""

    genome: Genome
    latency_cycles: int
    energy_pj: float

    @property
    def edp(self) -> float:
        """Energy-delay product in pJ · cycles."""
        return energy_delay_product(self.energy_pj, self.latency_cycles)

    @property
    def objectives(self) -> tuple[int, float]:
        """Pair (latency in cycles, energy in pJ) for comparisons. Energy is rounded to 12 significant digits, because
        the order of a summation can change the last digits.
        """
        return self.latency_cycles, float(f"{self.energy_pj:.12g}")


_Rank = tuple[float, int, float, Genome]


def _rank(point: Evaluation, objective: str) -> _Rank:
    latency, energy = point.objectives
    value = OBJECTIVES[objective].value(energy, latency)
    return (float(f"{value:.12g}"), latency, energy, point.genome)


def ranked(points: Iterable[Evaluation], objective: str) -> list[Evaluation]:
    """Points sorted by `objective`, best first; ties are broken as in `choose`."""
    return sorted(points, key=lambda point: _rank(point, objective))


def choose(points: Iterable[Evaluation], objective: str) -> Evaluation:
    """Best point by `objective`. Ties go to the point with the least latency, then with the least energy, then with the
    smallest genome (compared part by part). The choice therefore does not depend on the order of the evaluations.
    """
    return min(points, key=lambda point: _rank(point, objective))


def pareto_front(points: Iterable[Evaluation]) -> tuple[Evaluation, ...]:
    """Points that no other point dominates in latency and energy, by ascending latency. Of several points with equal
    latency and energy, the point with the smallest genome is kept.
    """
    front: list[Evaluation] = []
    for point in ranked(points, "latency"):
        if not front or point.objectives[1] < front[-1].objectives[1]:
            front.append(point)
    return tuple(front)


EXHAUSTION = "every allocation was scheduled"
BOUND = "no schedule is below the lower bound"
RELAXATION = "the relaxation excludes every better schedule of every allocation"
EXCLUSIONS = "the relaxation excludes every better allocation that was not scheduled"
EFFORT = "effort"
"""Reason why a search ends without a proof: the allowed number of evaluations is made, or the effort of the solver is
used up.
"""


@dataclass(frozen=True)
class AllocationProof(BoundedValue):
    """Proof that an allocation is the best of its space, or lower bounds if there is no proof."""

    rule: str
    """Rule that proves the allocation optimal; '' if it is not proven optimal."""
    value: float
    """Value of the objective for the best allocation: cycles, pJ or pJ · cycles."""
    lower_bound: float
    """Lower bound of the objective over all allocations of the space. The bound holds for schedules with the schedule
    settings of the search.
    """
    of_any_schedule: float
    """Lower bound of the objective over all schedules, with any schedule settings."""
    excluded: int
    """Number of blocks of allocations that were scheduled and then excluded."""
    certificate: Mapping[str, Any]
    """Certificate that an independent program can check: docs/proofs/exact-allocation.md"""

    @property
    def is_proven(self) -> bool:
        """True if a rule proves that the allocation is the best of its space."""
        return bool(self.rule)

    def stated(self) -> JsonObject:
        """Fields of the proof as JSON values, without the certificate."""
        names = ("is_proven", "rule", "value", "lower_bound", "of_any_schedule", "excluded")
        return {name: getattr(self, name) for name in names} | {"gap": self.gap}


REASONS_SHOWN = 10


Cores = Mapping[str, int | Sequence[int]]
"""Cores by name of the layer: one core id, or a list with one core id for each group of the layer."""


@dataclass(frozen=True)
class GenerationRow:
    """Statistics of one generation; generation 0 is the first population."""

    generation: int
    evaluations: int
    """Number of evaluations in this generation."""
    evaluations_so_far: int
    best_latency_cycles: int
    """Smallest latency of all evaluations so far, in cycles. `best_energy_pj` and `best_edp` are the smallest energy
    and the smallest EDP.
    """
    best_energy_pj: float
    best_edp: float
    mean_latency_cycles: float
    """Mean latency in cycles of the allocations that survive the generation."""
    mean_energy_pj: float
    """Mean energy in pJ of the allocations that survive the generation."""


@dataclass(frozen=True)
class SearchProgress:
    """Progress of a search at one moment."""

    evaluations: int
    evaluations_planned: int
    """Largest number of evaluations that the search can make."""
    best: Evaluation | None
    """Best evaluation so far by the objective; None before the first schedule."""
    elapsed_s: float
    unit: str = "allocations"
    """Plural noun for the items that are evaluated, as used in messages."""
    time_budget_s: float | None = None
    """Time limit of the search in seconds; None: no limit."""

    @property
    def share(self) -> float:
        """Share of the search that is done, from 0 to 1: the larger of two shares, the used share of the evaluations
        and the used share of the time budget.
        """
        by_time = self.elapsed_s / self.time_budget_s if self.time_budget_s else 0.0
        return max(self.evaluations / max(self.evaluations_planned, 1), by_time)


@dataclass(frozen=True, eq=False)
class AllocationResult:
    """Chosen allocation, and data about all evaluations."""

    space: AllocationSpace
    objective: str
    """Objective that the chosen allocation minimises."""
    options: Mapping[str, Any]
    """Options of the search by name, as in the summary. Each engine has its own options."""
    chosen: Evaluation
    front: tuple[Evaluation, ...]
    """Pareto front of all evaluations, by rising latency."""
    generations: tuple[GenerationRow, ...]
    """Statistics of each generation; () for an engine without generations."""
    evaluations: int
    """Number of distinct allocations that were evaluated."""
    infeasible: Mapping[Genome, str]
    """Allocations without a schedule: genome -> reason why there is no schedule."""
    stopped_by: str
    """Reason why the search ended. `generations`: all generations were made. `everything`: the whole space was
    evaluated, which proves that no allocation is better. `proven`: another proof was found. `effort`: the effort was
    used up without a proof. `time_budget`: the time limit ended the search. `interrupted`: Ctrl-C ended the search.
    """
    proof: AllocationProof | None = None
    """Proof for the chosen allocation; None for other searches than the exact search."""

    @property
    def allocation(self) -> Integers:
        """Core of each CN in the chosen allocation, as an array that the scheduler takes."""
        return self.space.allocation(self.chosen.genome)


def pareto_table(result: AllocationResult) -> list[dict[str, Any]]:
    """Table with a row for each point of the Pareto front. The columns are latency, energy, EDP, `is_chosen` (true for
    the chosen point) and `cores` (the core of each part).
    """
    return [
        {
            LATENCY_CYCLES: point.latency_cycles,
            ENERGY_PJ: point.energy_pj,
            "edp": point.edp,
            "is_chosen": point.genome == result.chosen.genome,
            "cores": list(result.space.part_cores(point.genome)),
        }
        for point in result.front
    ]


def generation_table(result: AllocationResult) -> list[JsonObject]:
    """Table with a row for each generation; its columns are the fields of `GenerationRow`."""
    return [asdict(row) for row in result.generations]


def allocation_table(space: AllocationSpace, genome: Genome) -> list[dict[str, Any]]:
    """Table with a row for each part of a layer. The columns are `layer`, `group`, `core` and `is_only_choice` (true if
    the part has no other allowed core).
    """
    return [
        {"layer": layer, "group": group, "core": core, "is_only_choice": len(space.choices[part]) == 1}
        for part, ((layer, group), core) in enumerate(zip(space.parts, space.part_cores(genome), strict=True))
    ]


def summary(result: AllocationResult) -> dict[str, Any]:
    """Summary of a search as plain data: options, size of the space, number of evaluations, reason why the search
    ended, and reasons why allocations have no schedule.
    """
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
        **({} if result.proof is None else {"proof": result.proof.stated()}),
    }


SCHEMA = "tilewright/allocation"


@dataclass(frozen=True)
class SingleCore:
    """Schedule in which one core runs every part that it can run. Each other part runs on its fastest core."""

    core: int
    """Number of the core: its column in the cost table."""
    parts_elsewhere: int
    parts: int
    latency_cycles: int
    energy_pj: float
    energy_parts_pj: Mapping[str, Any]
    """Energy terms in pJ by name, as in `allocation.json`: `on_core`, then for each cause of data movement an object
    with `link_pj` and `memory_pj`, then further terms.
    """


def allocation_document(
    result: AllocationResult, names: SystemNames, settings: Mapping[str, Any], single_cores: Sequence[SingleCore]
) -> dict[str, Any]:
    """Content of `allocation.json` as plain data. `settings` has the schedule settings."""
    ids = names.core_ids
    search = summary(result)
    exclusions = search.pop("excluded_cores")
    return {
        "workload": names.network,
        "hardware": names.accelerator,
        "objective": result.objective,
        "settings": dict(settings),
        "search": search,
        **_figures(result.chosen),
        "allocation": [
            {
                "layer": row["layer"],
                "name": names.layer_names[row["layer"]],
                "group": row["group"],
                "core": ids[row["core"]],
                "core_name": names.core_files[row["core"]],
                "is_only_choice": row["is_only_choice"],
            }
            for row in allocation_table(result.space, result.chosen.genome)
        ],
        "front": [{**row, "cores": [ids[core] for core in row["cores"]]} for row in pareto_table(result)],
        "excluded_cores": [
            {
                "layer": row["layer"],
                "name": names.layer_names[row["layer"]],
                "group": row["group"],
                "core": ids[row["core"]],
                "reason": row["reason"],
            }
            for row in exclusions
        ],
        "single_core": [
            {
                "core": ids[single.core],
                "core_name": names.core_files[single.core],
                "parts": single.parts,
                "parts_elsewhere": single.parts_elsewhere,
                LATENCY_CYCLES: single.latency_cycles,
                ENERGY_PJ: single.energy_pj,
                "edp": energy_delay_product(single.energy_pj, single.latency_cycles),
                "energy_parts_pj": dict(single.energy_parts_pj),
            }
            for single in single_cores
        ],
        **({} if result.proof is None else {"certificate": dict(result.proof.certificate)}),
    }


def _figures(point: Evaluation) -> JsonObject:
    return {LATENCY_CYCLES: point.latency_cycles, ENERGY_PJ: point.energy_pj, "edp": point.edp}


def allocation_genome(document: Mapping[str, Any], space: AllocationSpace, names: SystemNames, file: str) -> Genome:
    """Genome of the allocation in a document (content of `allocation.json`). Raises InputError if the document belongs
    to another CN graph or accelerator.
    """
    column = {core_id: place for place, core_id in enumerate(names.core_ids)}
    rows = document["allocation"]
    found = {(row["layer"], row["group"]): row["core"] for row in rows}
    problems = []
    if set(found) != set(space.parts) or any(row["name"] != _layer_name(names, row["layer"]) for row in rows):
        message = "belongs to another CN graph"
        problems.append(Problem(message, file, value=f"{len(found)} parts", allowed=f"the {len(space.parts)} parts"))
    unknown = sorted({core for core in found.values() if core not in column})
    if unknown:
        allowed = ", ".join(map(str, names.core_ids))
        problems.append(Problem("names a core that does not exist", file, value=str(unknown[0]), allowed=allowed))
    if problems:
        raise InputError(problems)
    return space.genome([column[found[part]] for part in space.parts])


def named_genome(cores: Cores, space: AllocationSpace, names: SystemNames) -> Genome:
    """Genome of the allocation in `cores`, which is keyed by layer name. Layers with only one allowed core can be left
    out. Raises InputError with every layer or core that is wrong or missing.
    """
    column = {core_id: place for place, core_id in enumerate(names.core_ids)}
    message = "no such layer"
    known = names.layer_names
    problems = [Problem(message, path=name, nearest=nearest_name(name, known)) for name in cores if name not in known]
    found = []
    for (layer, group), choices in zip(space.parts, space.choices, strict=True):
        name = known[layer]
        core = _core_of_group(cores.get(name), group)
        if core is None and len(choices) == 1:
            core = names.core_ids[choices[0]]
        if core is None or column.get(core) not in choices:
            allowed = ", ".join(str(names.core_ids[choice]) for choice in choices)
            message, value = ("needs a core", "") if core is None else ("cannot run on this core", str(core))
            problems.append(Problem(message, path=f"{name}, group {group}", value=value, allowed=allowed))
        else:
            found.append(column[core])
    if problems:
        raise InputError(problems)
    return space.genome(found)


def _core_of_group(given: int | Sequence[int] | None, group: int) -> int | None:
    """Core of a group of a layer; None if `given` has no core for the group. If `given` has only one core, all groups
    have this core.
    """
    of_groups = [given] if isinstance(given, int) else list(given or ())
    return of_groups[0] if len(of_groups) == 1 else of_groups[group] if group < len(of_groups) else None


def _layer_name(names: SystemNames, layer: int) -> str:
    return names.layer_names[layer] if layer < len(names.layer_names) else ""


def layer_cores(space: AllocationSpace, genome: Genome, names: SystemNames) -> dict[int, list[int]]:
    """Layer number -> core ids, one for each group of the layer. A group without CNs gets the core of the previous
    group. If no previous group has CNs, it gets the core of the next group with CNs.
    """
    cores_of: dict[int, list[int]] = {}
    for (layer, group), core in zip(space.parts, space.part_cores(genome), strict=True):
        cores = cores_of.setdefault(layer, [])
        core_id = names.core_ids[core]
        cores += [cores[-1] if cores else core_id] * (group - len(cores))
        cores.append(core_id)
    return cores_of


def allowed_cores(space: AllocationSpace, core_count: int) -> Booleans:
    """True if the space allows the CN on the core (one entry for each CN and core). Lower bounds use this array."""
    allowed = np.zeros((len(space.parts), core_count), np.bool_)
    for part, cores in enumerate(space.choices):
        allowed[part, list(cores)] = True
    found: Booleans = allowed[space.part_of_cn]
    return found
