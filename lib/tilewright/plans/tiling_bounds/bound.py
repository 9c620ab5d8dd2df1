"""Lower bounds of latency and energy over every plan of a network on a system."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tilewright.base.json_values import JsonObject
from tilewright.base.measures import ENERGY_PJ, LATENCY_CYCLES
from tilewright.base.objectives import energy_delay_product
from tilewright.base.profile import CORRECTED, profile_by_name
from tilewright.base.proof import CUT_REDUCTIONS, EVERY_PLAN, GIVEN_REDUCTIONS, STEPPED_REDUCTIONS, gap_to
from tilewright.multicore.nodes.partial_sums import reductions_of, why_not_summed
from tilewright.multicore.nodes.tiling import dimension_names
from tilewright.multicore.scheduling.bounds.limits import SLACK, system_limits
from tilewright.multicore.scheduling.options import ScheduleSettings
from tilewright.multicore.scheduling.problem import Booleans, Floats
from tilewright.pipeline.stages.multi.items import SystemProblem
from tilewright.plans.plan import layers_of
from tilewright.plans.tiling_bounds.core_work import LayerWork, layer_work
from tilewright.plans.tiling_bounds.layer_moves import LayerMoves, layer_moves
from tilewright.plans.tiling_bounds.layer_phases import (
    LayerLoads,
    core_work_cycles,
    phases_cycles,
    resources_cycles,
)
from tilewright.workload.layer import OUTPUT, Layer
from tilewright.workload.relevancy import outputs_have_windows


@dataclass(frozen=True)
class TilingBounds:
    """Lower bounds over every plan: all parts, tiles, stacks, allocations and schedules."""

    core_work_cycles: int
    off_chip_traffic_cycles: int
    link_traffic_cycles: int
    phases_cycles: int
    """Lower bound of the latency, in cycles, that follows from phases: the starts of some layers divide a schedule into
    phases, and each phase must be long enough for its work and its traffic.
    """
    energy_pj: float
    covers: str = EVERY_PLAN
    """Set of plans for which the bounds hold, in words."""

    @property
    def latency_terms(self) -> dict[str, int]:
        """Lower bounds of the latency in cycles, by name of the proof (as in `summary.json`)."""
        return {
            "core_work": self.core_work_cycles,
            "off_chip_traffic": self.off_chip_traffic_cycles,
            "link_traffic": self.link_traffic_cycles,
            "phases": self.phases_cycles,
        }

    @property
    def latency_cycles(self) -> int:
        """Largest of the lower bounds of the latency, in cycles."""
        return max(self.latency_terms.values())

    def latency_gap(self, latency_cycles: int) -> float:
        """Gap of a schedule: largest share of its latency that any other plan could save. It is 1 - lower bound /
        latency.
        """
        return gap_to(self.latency_cycles, latency_cycles)


def tiling_bounds(
    problem: SystemProblem,
    model: str,
    settings: ScheduleSettings,
    cuts_reductions: bool = False,
    steps: Sequence[frozenset[str]] | None = None,
) -> TilingBounds:
    """Lower bounds over every plan of a network on a system. `model` is the profile of the cost model. With
    `cuts_reductions`, plans can also cut reductions between cores. `steps` has, for each layer, the reduction
    dimensions that a plan can cut into steps on one core; None: a plan cuts no reduction into steps.
    """
    summed = summed_dimensions(problem) if cuts_reductions else [frozenset[str]() for _ in layers_of(problem.workload)]
    moves = layer_moves(problem)
    cut = summed if steps is None else [one | other for one, other in zip(summed, steps, strict=True)]
    works = layer_works(problem, model, settings, cut)
    limits, found = system_limits(moves.problem.system), moves.moves
    fetched, written = found.bits(moves.kept & found.fetched), found.bits(moves.kept & (found.reader < 0))
    moves = replace(moves, kept=moves.kept & ~_at_additions(problem, moves, summed))
    loads = _loads(problem, moves, works, _reduced(problem, cut))
    traffic = max(
        fetched / limits.read_bits_per_cycle,
        written / limits.write_bits_per_cycle,
        (fetched + written) / limits.both_bits_per_cycle,
    )
    return TilingBounds(
        core_work_cycles=_whole(core_work_cycles(loads)),
        off_chip_traffic_cycles=_whole(traffic),
        link_traffic_cycles=found.compulsory(moves.kept).latency_cycles(),
        phases_cycles=_whole(max(resources_cycles(loads), phases_cycles(loads))),
        energy_pj=_energy_pj(problem, moves, works, (fetched, written)),
        covers=EVERY_PLAN
        + (CUT_REDUCTIONS if cuts_reductions else "" if problem.read is None else GIVEN_REDUCTIONS)
        + (STEPPED_REDUCTIONS if any(steps or ()) else ""),
    )


def summed_dimensions(problem: SystemProblem) -> list[frozenset[str]]:
    """Reduction dimensions along which a plan can cut a layer between cores, as one set for each layer. The set is
    empty for a layer that is not a sum of products.
    """
    return [
        frozenset() if node.layer is None or why_not_summed(node) else frozenset(reductions_of(node.layer))
        for node in layers_of(problem.workload)
    ]


def _at_additions(problem: SystemProblem, moves: LayerMoves, summed: Sequence[frozenset[str]]) -> Booleans:
    """Array with one entry for each reason to move a piece of data. An entry is true if the move may begin or end at
    the cores that add the partial sums of a layer, instead of the cores that run this layer.

    This is possible only if a plan can cut the reduction of the layer (`summed`, the result of `summed_dimensions`).
    The output of the layer then leaves the core of the last addition. Inputs of the layer that are not operands, such
    as a bias, go to this core.
    """
    is_summed = np.array([bool(names) for names in summed], np.bool_)
    added = [
        {index_map.input.tensor for index_map in node.index_maps if names and not index_map.operand}
        for node, names in zip(layers_of(problem.workload), summed, strict=True)
    ]
    found = moves.moves
    pairs = zip(found.reader.tolist(), moves.tensors, strict=True)
    is_added = np.array([reader >= 0 and tensor in added[reader] for reader, tensor in pairs], np.bool_)
    at_additions: Booleans = is_added | ((found.producer >= 0) & is_summed[np.maximum(found.producer, 0)])
    return at_additions


def _reduced(problem: SystemProblem, summed: Sequence[frozenset[str]]) -> tuple[frozenset[str], ...]:
    """Sets of reduction dimensions along which layers can be cut, one set for each layer. A set has the dimensions in
    `summed`, which a plan can cut between cores or into steps, and the dimensions that the mapping file cuts.
    """
    found = []
    for node, names in zip(layers_of(problem.workload), summed, strict=True):
        assert node.layer is not None
        entry = problem.mapping.constraints_for(node.layer)
        own = dimension_names(node.layer, entry)
        given = {own.get(loop.dimension, "") for loop in (*entry.inter_core_tiling, *entry.intra_core_tiling)}
        found.append(names | (given & set(reductions_of(node.layer))))
    return tuple(found)


def any_plan_fields(bounds: TilingBounds, latency_cycles: int, energy_pj: float) -> JsonObject:
    """Fields of `fusion.json` with the lower bounds over every plan, and the gap of a schedule to each bound."""
    least_edp = energy_delay_product(bounds.energy_pj, bounds.latency_cycles)
    return {
        LATENCY_CYCLES: bounds.latency_cycles,
        ENERGY_PJ: bounds.energy_pj,
        "covers": bounds.covers,
        "latency_terms": dict(bounds.latency_terms),
        "gap_latency": bounds.latency_gap(latency_cycles),
        "gap_energy": gap_to(bounds.energy_pj, energy_pj),
        "gap_edp": gap_to(least_edp, energy_delay_product(energy_pj, latency_cycles)),
    }


def _whole(cycles: float) -> int:
    return math.ceil(cycles * (1 - SLACK))


def layer_works(
    problem: SystemProblem, model: str, settings: ScheduleSettings, summed: Sequence[frozenset[str]] | None = None
) -> list[dict[str, LayerWork]]:
    """Lower bounds of the work of each layer, as one dictionary for each layer: name of a core file -> bounds for a
    core with this file. The file of the off-chip core is left out.

    `summed` has, for each layer, the reduction dimensions that a plan can cut between cores or into steps. If `summed`
    is None, a plan can cut only the reduction dimensions that the mapping file cuts.
    """
    is_corrected = profile_by_name(model) == CORRECTED
    has_loading = settings.cn_runtime != "total0"
    known: dict[object, LayerWork] = {}
    rows = []
    nodes = layers_of(problem.workload)
    for node, reduced in zip(nodes, summed or [frozenset[str]()] * len(nodes), strict=True):
        layer = node.layer
        assert layer is not None
        entry = problem.mapping.constraints_for(layer)
        cut = cut_dimensions(layer, [loop.dimension for loop in (*entry.inter_core_tiling, *entry.intra_core_tiling)])
        cut |= reduced
        row = {}
        for name, core in problem.accelerator.distinct_cores.items():
            key = layer.loop_sizes, layer.operand_dimensions, layer.relations, layer.precision_bits, entry, name, cut
            if key not in known:
                known[key] = layer_work(layer, entry, core, is_corrected, has_loading, cut)
            row[name] = known[key]
        rows.append(row)
    return rows


def cut_dimensions(layer: Layer, given: Sequence[str]) -> frozenset[str]:
    """Dimensions along which a plan can cut a layer: the dimensions of the output, and the dimensions in `given`.
    `given` has the dimensions of the loops in the mapping file.

    All dimensions of the layer are returned in two cases: the output has a sliding window, or `given` has a name that
    the layer does not have.
    """
    if outputs_have_windows(layer) or any(name not in layer.size_of for name in given):
        return frozenset(layer.size_of)  # other names for the dimensions in the mapping file, or loops that overlap
    return frozenset((*dict(layer.operand_dimensions)[OUTPUT], *given))


def _loads(
    problem: SystemProblem,
    moves: LayerMoves,
    works: Sequence[dict[str, LayerWork]],
    reduced: tuple[frozenset[str], ...],
) -> LayerLoads:
    files = [place.file_name for place in problem.accelerator.places]
    groups: dict[object, list[int]] = {}
    for core, name in enumerate(files):
        column = moves.allowed[:, core]
        if column.any():
            groups.setdefault((name, column.tobytes()), []).append(core)
    nodes = layers_of(problem.workload)
    cycles: Floats = np.full((len(nodes), len(groups)), np.inf)
    lanes = []
    for layer, work in enumerate(works):
        used = {files[core] for core in np.flatnonzero(moves.allowed[layer]).tolist()}
        is_alike = len(used) == 1
        for group, cores in enumerate(groups.values()):
            if moves.allowed[layer, cores[0]]:
                found = work[files[cores[0]]]
                cycles[layer, group] = found.cycles if is_alike else found.shared_cycles
        only = work[next(iter(used))].lanes if is_alike else ()
        lanes.append(only[0] if len(only) == 1 and only[0].open_units == 1 else None)
    counts = np.array([len(cores) for cores in groups.values()], np.int64)
    return LayerLoads(problem.workload, nodes, cycles, counts, tuple(lanes), moves, reduced)


def _energy_pj(
    problem: SystemProblem, moves: LayerMoves, works: Sequence[dict[str, LayerWork]], off_chip: tuple[int, int]
) -> float:
    """Lower bound in pJ of the energy of every plan. Each layer runs on its cheapest core. Each move that every plan
    makes takes its cheapest path. `off_chip` has two numbers of bits that every plan moves: from the off-chip memory,
    and to the off-chip memory.
    """
    files = [place.file_name for place in problem.accelerator.places]
    cores = sum(
        min(work[files[core]].energy_pj for core in np.flatnonzero(moves.allowed[layer]).tolist())
        for layer, work in enumerate(works)
    )
    return (cores + _moving_pj(moves, *off_chip)) * (1 - SLACK)


def _moving_pj(moves: LayerMoves, fetched_bits: int, written_bits: int) -> float:
    """Least energy in pJ of the moves that every plan makes: in the links, in the off-chip memory, and in the memories
    at both ends of each move.

    `fetched_bits` leave the off-chip memory, and `written_bits` enter it. A plan can divide data among words in any
    way, so a fraction of a word counts as the same fraction of its energy.
    """
    system, found, limits = moves.problem.system, moves.moves, system_limits(moves.problem.system)
    off = system.off_chip_memory
    on_chip = np.arange(len(system.memory_capacity_bits)) != off
    cores = np.arange(system.core_count) != system.off_chip_core
    read, write = (
        system.memory_read_energy_pj / system.memory_read_bits,
        system.memory_write_energy_pj / system.memory_write_bits,
    )
    fetch_pj = limits.read_link_pj[cores].min() + read[off] + write[on_chip].min()
    result_pj = limits.write_link_pj[cores].min() + write[off] + read[on_chip].min()
    total = fetched_bits * float(fetch_pj) + written_bits * float(result_pj)
    most = np.zeros(len(found.piece_bits))
    np.maximum.at(most, found.piece[moves.kept], found.energy_pj[found.kind[moves.kept]])
    return total + float(found.piece_bits @ most)
