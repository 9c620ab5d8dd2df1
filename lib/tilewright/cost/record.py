"""The full breakdown of one evaluated mapping as plain data: what artifacts, tables and figures are made of."""

import itertools
from typing import Any

import numpy as np

from tilewright.cost.loading_kernel import computing_transfers
from tilewright.cost.problem import Problem, port_services
from tilewright.cost.workspace import (
    ENERGY,
    IDEAL_TEMPORAL,
    LATENCY,
    MEMORY_ENERGY,
    OFFLOADING,
    ONLOADING,
    STALL,
    Workspace,
)
from tilewright.hardware.areas import core_area
from tilewright.hardware.core import DIRECTIONS, Core
from tilewright.hardware.hierarchy import memory_hierarchy
from tilewright.mapping.constraints import Unrolling
from tilewright.mapping.spatial import ConvertedSpatialMapping
from tilewright.workload.graph import work_counts
from tilewright.workload.layer import Layer

Record = dict[str, Any]
LoopOrder = tuple[tuple[str, int], ...]
"""(loop dimension, size) from the innermost loop outwards."""


def number(value: float) -> int | float:
    """A float as an integer where it is one: the same number in fewer characters."""
    return int(value) if float(value).is_integer() and abs(value) < 2**53 else float(value)


def breakdown(
    layer: Layer,
    core: Core,
    links: tuple[tuple[str, str], ...],
    spatial: ConvertedSpatialMapping,
    order: LoopOrder,
    problem: Problem,
    ws: Workspace,
) -> Record:
    """The record of the mapping that was evaluated last in `ws`. Energy in pJ, time in cycles, sizes in bits."""
    chains = [memory_hierarchy(core).memories_of(dict(links)[operand]) for operand in layer.operands]
    energy, latency = float(ws.totals[ENERGY]), float(ws.totals[LATENCY])
    return {
        "layer": layer_record(layer),
        "core": core.name,
        "spatial_mapping": unrolling_record(spatial.unrolling),
        "memory_operand_links": dict(links),
        "loop_order": [list(loop) for loop in order],
        "temporal_mapping": _temporal_levels(layer, order, problem, ws),
        "spatial_levels": {
            operand: [[[d, number(f)] for d, f in level] for level in levels] for operand, levels in spatial.integer
        },
        "memory_levels": {
            operand: [core.memories[k].name for k in chain]
            for operand, chain in zip(layer.operands, chains, strict=True)
        },
        "memories": {
            memory.name: {"size_bits": memory.size_bits, "operands": list(memory.operands)} for memory in core.memories
        },
        "energy_pj": energy,
        "mac_energy_pj": float(problem.mac_energy_pj),
        "memory_energy_pj": float(ws.totals[MEMORY_ENERGY]),
        "latency_cycles": latency,
        "edp_pj_cycles": latency * energy,
        "latency_breakdown_cycles": _latency_breakdown(problem, ws),
        "energy_breakdown_pj": _per_link(layer, problem, ws.energy),
        "word_accesses": _per_link(layer, problem, ws.words),
        "memory_utilization": _per_level(layer, problem, ws.shared_utilization),
        "memory_utilization_individual": _per_level(layer, problem, ws.utilization),
        "mac_utilization": _mac_utilization(problem, ws),
        "ports": _port_records(layer, core, problem, ws),
        "area_mm2": core_area(core).mm2,
    }


def layer_record(layer: Layer) -> Record:
    """What a reader of a record needs to know of the layer."""
    return {
        "name": layer.name,
        "operator_type": layer.operator_type,
        "equation": layer.equation,
        "loop_sizes": dict(layer.loop_sizes),
        "precision_bits": dict(layer.precision_bits),
        **work_counts("", layer.mac_count),
    }


def layer_on_unit(layer: Record, unit: str) -> Record:
    """The layer of a record with its operations counted as what they are on the unit that it needs in its network."""
    return {**layer, **work_counts(unit, layer["mac_count"] + layer["operation_count"])}


def unrolling_record(unrolling: Unrolling) -> dict[str, dict[str, int]]:
    """Array dimension -> loop dimension -> factor."""
    return {name: dict(factors) for name, factors in unrolling}


def _temporal_levels(layer: Layer, order: LoopOrder, problem: Problem, ws: Workspace) -> Record:
    """Per operand and memory level the loops it keeps, after merging stationary loops down."""
    result = {}
    for o, operand in enumerate(layer.operands):
        bounds = [0, *ws.merged[o, : problem.level_count[o]].tolist()]
        result[operand] = [[list(loop) for loop in order[first:end]] for first, end in itertools.pairwise(bounds)]
    return result


def _latency_breakdown(problem: Problem, ws: Workspace) -> Record:
    return {
        "ideal": int(problem.ideal_cycles),
        "spatial_stall": number(ws.totals[IDEAL_TEMPORAL] - problem.ideal_cycles),
        "temporal_stall": number(ws.totals[STALL]),
        "onloading": number(ws.totals[ONLOADING]),
        "offloading": number(ws.totals[OFFLOADING]),
        "drain": int(problem.drain_cycles),
    }


def _mac_utilization(problem: Problem, ws: Workspace) -> Record:
    """Ideal cycles over actual ones, adding stalls, on-loading, off-loading (and drain) one after another."""
    computing = ws.totals[IDEAL_TEMPORAL]
    with_stalls = computing + ws.totals[STALL]
    with_onloading = with_stalls + ws.totals[ONLOADING]
    spans = (computing, with_stalls, with_onloading, ws.totals[LATENCY])
    names = ("spatial", "with_stalls", "with_onloading", "with_offloading")
    return {name: float(problem.ideal_cycles / span) for name, span in zip(names, spans, strict=True)}


def _per_link(layer: Layer, problem: Problem, values: np.ndarray) -> Record:
    return {
        operand: [dict(zip(DIRECTIONS, values[o, m].tolist(), strict=True)) for m in range(problem.level_count[o])]
        for o, operand in enumerate(layer.operands)
    }


def _per_level(layer: Layer, problem: Problem, values: np.ndarray) -> Record:
    return {operand: values[o, : problem.level_count[o]].tolist() for o, operand in enumerate(layer.operands)}


def _port_records(layer: Layer, core: Core, problem: Problem, ws: Workspace) -> list[Record]:
    """Per port its stall or slack, and the transfers it serves."""
    v = 1 if problem.spatial_differs else 0
    records = []
    for p, (k, port, _) in enumerate(port_services(core)):
        activities = []
        for s in range(problem.port_start[p], problem.port_start[p + 1]):
            place = (problem.service_operand[s], problem.service_level[s], problem.service_direction[s])
            count = int(ws.count[(v, *place)])
            if count == 0:
                continue
            real, allowed = int(ws.transfer_cycles[place]), int(ws.allowed_cycles[place])
            activities.append(
                {
                    "operand": layer.operands[place[0]],
                    "level": int(place[1]),
                    "direction": DIRECTIONS[place[2]],
                    "real_cycles": real,
                    "allowed_cycles": allowed,
                    "period_cycles": int(ws.period[(v, *place)]),
                    "period_count": count,
                    "stall_slack_cycles": (real - allowed)
                    * computing_transfers.py_func(problem, place[0], place[2], count),
                }
            )
        records.append(
            {
                "memory": core.memories[k].name,
                "port": core.memories[k].ports[port].name,
                "stall_slack_cycles": int(ws.port_stall[p]),
                "activities": activities,
            }
        )
    return records
