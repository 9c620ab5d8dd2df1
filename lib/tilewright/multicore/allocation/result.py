"""Results of a search over allocations as objects, tables and `allocation.json`: evaluations, Pareto front, choice,
proof.

Cores are named by their ids in the accelerator file, layers by their numbers in the CN graph.
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
        """(Latency, energy) for comparisons.

        Energy is rounded to 12 significant digits, so that the order of summation makes no difference.
        """
        return self.latency_cycles, float(f"{self.energy_pj:.12g}")


_Rank = tuple[float, int, float, Genome]


def _rank(point: Evaluation, objective: str) -> _Rank:
    latency, energy = point.objectives
    value = OBJECTIVES[objective].value(energy, latency)
    return (float(f"{value:.12g}"), latency, energy, point.genome)


def ranked(points: Iterable[Evaluation], objective: str) -> list[Evaluation]:
    """Points ordered by `objective`, best first; ties are broken as in `choose`."""
    return sorted(points, key=lambda point: _rank(point, objective))


def choose(points: Iterable[Evaluation], objective: str) -> Evaluation:
    """Best point by `objective`.

    If several points are equally good, the point with the least latency is chosen, then the least energy, then the
    smallest genome (core numbers are compared part by part). Therefore the choice does not depend on the order of
    evaluation.
    """
    return min(points, key=lambda point: _rank(point, objective))


def pareto_front(points: Iterable[Evaluation]) -> tuple[Evaluation, ...]:
    """Undominated points in latency and energy, by rising latency.

    If several points have equal latency and energy, only the point with the smallest genome is kept.
    """
    front: list[Evaluation] = []
    for point in ranked(points, "latency"):
        if not front or point.objectives[1] < front[-1].objectives[1]:
            front.append(point)
    return tuple(front)


EXHAUSTION = "every allocation was scheduled"
BOUND = "no schedule is below the lower bound"
RELAXATION = "no schedule of any allocation meets the relaxation and is better"
EXCLUSIONS = "no allocation that was not scheduled meets the relaxation and is better"
EFFORT = "effort"
"""Reason why a search ends without a proof: the evaluations or the effort of the solver were used up."""


@dataclass(frozen=True)
class AllocationProof(BoundedValue):
    """Proof that an allocation is the best of its space, or only lower bounds if this is not proven."""

    rule: str
    """Rule that proves the allocation optimal; '' if it is not proven optimal."""
    value: float
    """Value of the objective for the best allocation: cycles, pJ or pJ · cycles."""
    lower_bound: float
    """Lower bound of the objective over all allocations of the space with these schedule settings."""
    of_any_schedule: float
    """Lower bound of the objective over all schedules with any settings."""
    excluded: int
    """Number of blocks of allocations that the search has scheduled and excluded."""
    certificate: Mapping[str, Any]
    """Certificate that another program can check: docs/proofs.md#exact-allocation"""

    @property
    def is_proven(self) -> bool:
        """Whether a rule proves that no allocation is better."""
        return bool(self.rule)

    def stated(self) -> JsonObject:
        """Proof as JSON values, without the certificate."""
        names = ("is_proven", "rule", "value", "lower_bound", "of_any_schedule", "excluded")
        return {name: getattr(self, name) for name in names} | {"gap": self.gap}


REASONS_SHOWN = 10


Cores = Mapping[str, int | Sequence[int]]
"""Core id by name of the layer, or one core id for each group of the layer."""


@dataclass(frozen=True)
class GenerationRow:
    """Statistics of one generation; generation 0 is the first population."""

    generation: int
    evaluations: int
    """Number of evaluations in this generation."""
    evaluations_so_far: int
    best_latency_cycles: int
    """Least latency of all evaluations so far. The next two fields are the least energy and the least EDP."""
    best_energy_pj: float
    best_edp: float
    mean_latency_cycles: float
    """Mean latency of the allocations that survive the generation. The next field is the mean energy of these
    allocations."""
    mean_energy_pj: float


@dataclass(frozen=True)
class SearchProgress:
    """Progress of a search."""

    evaluations: int
    evaluations_planned: int
    """Largest number of evaluations."""
    best: Evaluation | None
    """Best evaluation by the objective; None before the first schedule."""
    elapsed_s: float
    unit: str = "allocations"
    """Plural noun for the evaluated items in messages."""
    time_budget_s: float | None = None
    """Time limit of the search in seconds; None: no limit."""

    @property
    def share(self) -> float:
        """Share of the search that is done. This is the share of the evaluations or of the time budget, whichever is
        larger.
        """
        by_time = self.elapsed_s / self.time_budget_s if self.time_budget_s else 0.0
        return max(self.evaluations / max(self.evaluations_planned, 1), by_time)


@dataclass(frozen=True, eq=False)
class AllocationResult:
    """Chosen allocation, and data about the evaluations from which it was chosen."""

    space: AllocationSpace
    objective: str
    """Objective that the chosen allocation minimises."""
    options: Mapping[str, Any]
    """Options of the search by name, as in the summary; each engine has different options."""
    chosen: Evaluation
    front: tuple[Evaluation, ...]
    """Pareto front over all evaluations, by rising latency."""
    generations: tuple[GenerationRow, ...]
    """Course of the search; () for an engine without generations."""
    evaluations: int
    """Number of distinct allocations that were evaluated."""
    infeasible: Mapping[Genome, str]
    """Reasons why evaluated allocations have no schedule, by allocation."""
    stopped_by: str
    """Reason why the search ended: `generations`, `everything` (the whole space was evaluated, so nothing is better),
    `proven`, `effort` (the effort was used up without a proof), `time_budget` or `interrupted`.
    """
    proof: AllocationProof | None = None
    """Proof of the exact search for the chosen allocation."""

    @property
    def allocation(self) -> Integers:
        """[cn] Core of the CN in the chosen allocation, in the form that the scheduler reads."""
        return self.space.allocation(self.chosen.genome)


def pareto_table(result: AllocationResult) -> list[dict[str, Any]]:
    """Rows for the points of the front. The columns are latency, energy, EDP, whether the point is chosen, and the core
    of each part.
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
    """Rows for the generations, with keys as in `GenerationRow`."""
    return [asdict(row) for row in result.generations]


def allocation_table(space: AllocationSpace, genome: Genome) -> list[dict[str, Any]]:
    """Rows for the parts. The columns are layer, group, core, and whether the part has no other allowed core."""
    return [
        {"layer": layer, "group": group, "core": core, "is_only_choice": len(space.choices[part]) == 1}
        for part, ((layer, group), core) in enumerate(zip(space.parts, space.part_cores(genome), strict=True))
    ]


def summary(result: AllocationResult) -> dict[str, Any]:
    """Summary of a search as plain data: options, size of the space, evaluations, the reason why the search ended, and
    the reasons why allocations have no schedule.
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
    """Schedule in which one core runs every part that it can run, and all other parts run on their fastest cores."""

    core: int
    """Column of the core."""
    parts_elsewhere: int
    parts: int
    latency_cycles: int
    energy_pj: float
    energy_parts_pj: Mapping[str, Any]
    """Energy terms by name, as in files: `on_core`, `link_pj` and `memory_pj` for each cause of movement, and further
    terms.
    """


def allocation_document(
    result: AllocationResult, names: SystemNames, settings: Mapping[str, Any], single_cores: Sequence[SingleCore]
) -> dict[str, Any]:
    """Content of `allocation.json` as plain data. `settings` has the settings of the schedules."""
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
    """Genome of the allocation in a document. Raises InputError if the document belongs to another CN graph or
    accelerator.
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
    """Genome of an allocation that `cores` gives by names of layers. Layers with only one allowed core can be left out.

    Raises InputError with every layer or core that is wrong or missing.
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
    """Core of a group. If `given` is a single core, all groups have this core."""
    of_groups = [given] if isinstance(given, int) else list(given or ())
    return of_groups[0] if len(of_groups) == 1 else of_groups[group] if group < len(of_groups) else None


def _layer_name(names: SystemNames, layer: int) -> str:
    return names.layer_names[layer] if layer < len(names.layer_names) else ""


def layer_cores(space: AllocationSpace, genome: Genome, names: SystemNames) -> dict[int, list[int]]:
    """Core id of each group, by layer; groups without CNs get the core of the previous group."""
    cores_of: dict[int, list[int]] = {}
    for (layer, group), core in zip(space.parts, space.part_cores(genome), strict=True):
        cores = cores_of.setdefault(layer, [])
        core_id = names.core_ids[core]
        cores += [cores[-1] if cores else core_id] * (group - len(cores))
        cores.append(core_id)
    return cores_of


def allowed_cores(space: AllocationSpace, core_count: int) -> Booleans:
    """[cn, core] True where the space allows the CN on the core, for lower bounds."""
    allowed = np.zeros((len(space.parts), core_count), np.bool_)
    for part, cores in enumerate(space.choices):
        allowed[part, list(cores)] = True
    found: Booleans = allowed[space.part_of_cn]
    return found
