"""Lower bounds of latency and energy over every plan of a network on a system."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tilewright.base.json_values import JsonObject
from tilewright.base.measures import ENERGY_PJ, LATENCY_CYCLES
from tilewright.base.objectives import energy_delay_product
from tilewright.base.profile import CORRECTED, profile_by_name
from tilewright.base.proof import EVERY_PLAN, gap_to
from tilewright.multicore.scheduling.bounds.limits import SLACK, system_limits
from tilewright.multicore.scheduling.options import ScheduleSettings
from tilewright.multicore.scheduling.problem import Floats
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
    """Bound from the work and the traffic before, between and after the starts of some layers."""
    energy_pj: float

    @property
    def latency_terms(self) -> dict[str, int]:
        """Lower bounds of the latency in cycles, by name of the argument."""
        return {
            "core_work": self.core_work_cycles,
            "off_chip_traffic": self.off_chip_traffic_cycles,
            "link_traffic": self.link_traffic_cycles,
            "phases": self.phases_cycles,
        }

    @property
    def latency_cycles(self) -> int:
        """The largest bound on the latency."""
        return max(self.latency_terms.values())

    def latency_gap(self, latency_cycles: int) -> float:
        """Largest share of a found latency by which the optimum can be smaller."""
        return gap_to(self.latency_cycles, latency_cycles)


def tiling_bounds(problem: SystemProblem, model: str, settings: ScheduleSettings) -> TilingBounds:
    """Lower bounds over every plan of a network on a system. `model` is the profile of the cost model."""
    moves = layer_moves(problem)
    works = layer_works(problem, model, settings)
    loads = _loads(problem, moves, works)
    limits, found, kept = system_limits(moves.problem.system), moves.moves, moves.kept
    fetched, written = found.bits(kept & found.fetched), found.bits(kept & (found.reader < 0))
    traffic = max(
        fetched / limits.read_bits_per_cycle,
        written / limits.write_bits_per_cycle,
        (fetched + written) / limits.both_bits_per_cycle,
    )
    return TilingBounds(
        core_work_cycles=_whole(core_work_cycles(loads)),
        off_chip_traffic_cycles=_whole(traffic),
        link_traffic_cycles=found.compulsory(kept).latency_cycles(),
        phases_cycles=_whole(max(resources_cycles(loads), phases_cycles(loads))),
        energy_pj=_energy_pj(problem, moves, works),
    )


def any_plan_fields(bounds: TilingBounds, latency_cycles: int, energy_pj: float) -> JsonObject:
    """Fields of `fusion.json` with the lower bounds over every plan, and the gaps of a schedule to them."""
    least_edp = energy_delay_product(bounds.energy_pj, bounds.latency_cycles)
    return {
        LATENCY_CYCLES: bounds.latency_cycles,
        ENERGY_PJ: bounds.energy_pj,
        "covers": EVERY_PLAN,
        "latency_terms": dict(bounds.latency_terms),
        "gap_latency": bounds.latency_gap(latency_cycles),
        "gap_energy": gap_to(bounds.energy_pj, energy_pj),
        "gap_edp": gap_to(least_edp, energy_delay_product(energy_pj, latency_cycles)),
    }


def _whole(cycles: float) -> int:
    return math.ceil(cycles * (1 - SLACK))


def layer_works(problem: SystemProblem, model: str, settings: ScheduleSettings) -> list[dict[str, LayerWork]]:
    """[layer] Least work on each core file that can run the layer."""
    is_corrected = profile_by_name(model) == CORRECTED
    has_loading = settings.cn_runtime != "total0"
    known: dict[object, LayerWork] = {}
    rows = []
    for node in layers_of(problem.workload):
        layer = node.layer
        assert layer is not None
        entry = problem.mapping.constraints_for(layer)
        cut = cut_dimensions(layer, [loop.dimension for loop in (*entry.inter_core_tiling, *entry.intra_core_tiling)])
        row = {}
        for name, core in problem.accelerator.distinct_cores.items():
            key = layer.loop_sizes, layer.operand_dimensions, layer.relations, layer.precision_bits, entry, name, cut
            if key not in known:
                known[key] = layer_work(layer, entry, core, is_corrected, has_loading, cut)
            row[name] = known[key]
        rows.append(row)
    return rows


def cut_dimensions(layer: Layer, given: Sequence[str]) -> frozenset[str]:
    """Dimensions along which a plan can cut a layer: those of the output, and those of loops in the mapping file."""
    if outputs_have_windows(layer) or any(name not in layer.size_of for name in given):
        return frozenset(layer.size_of)  # other names for the dimensions in the mapping file, or loops that overlap
    return frozenset((*dict(layer.operand_dimensions)[OUTPUT], *given))


def _loads(problem: SystemProblem, moves: LayerMoves, works: Sequence[dict[str, LayerWork]]) -> LayerLoads:
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
    return LayerLoads(problem.workload, nodes, cycles, counts, tuple(lanes), moves)


def _energy_pj(problem: SystemProblem, moves: LayerMoves, works: Sequence[dict[str, LayerWork]]) -> float:
    """Least energy in pJ: every layer on its cheapest core, and the cheapest way of all data that every plan moves."""
    files = [place.file_name for place in problem.accelerator.places]
    cores = sum(
        min(work[files[core]].energy_pj for core in np.flatnonzero(moves.allowed[layer]).tolist())
        for layer, work in enumerate(works)
    )
    return (cores + _moving_pj(moves)) * (1 - SLACK)


def _moving_pj(moves: LayerMoves) -> float:
    """Least energy in pJ of links, of the off-chip memory, and of the memories at both ends of moves. Parts of words
    count as parts, because a cut decides how data are divided among words.
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
    total = found.bits(moves.kept & found.fetched) * float(fetch_pj)
    total += found.bits(moves.kept & (found.reader < 0)) * float(result_pj)
    most = np.zeros(len(found.piece_bits))
    np.maximum.at(most, found.piece[moves.kept], found.energy_pj[found.kind[moves.kept]])
    return total + float(found.piece_bits @ most)
