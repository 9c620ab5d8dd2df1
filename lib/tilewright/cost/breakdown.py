"""Record of one evaluated mapping with all breakdowns, and checks of invariants.

Every result must satisfy the invariants.
"""

import itertools
import math

import numpy as np

from tilewright.base.objectives import energy_delay_product
from tilewright.base.profile import ModelProfile
from tilewright.cost.energy_terms import array_use, energy_term_names
from tilewright.cost.latency_terms import latency_term_names
from tilewright.cost.ledger import ROUNDING
from tilewright.cost.loading_kernel import computing_transfers
from tilewright.cost.problem import Problem, port_services
from tilewright.cost.rates import core_figures
from tilewright.cost.record import (
    LayerFacts,
    LayerRecord,
    LinkFigures,
    LoopOrder,
    MemoryFacts,
    PortActivity,
    PortRecord,
    number,
    unrolling_record,
)
from tilewright.cost.workspace import ENERGY, IDEAL_TEMPORAL, LATENCY, OFFLOADING, ONLOADING, STALL, Workspace
from tilewright.hardware.core import DIRECTIONS, Core
from tilewright.hardware.hierarchy import memory_hierarchy
from tilewright.mapping.spatial import ConvertedSpatialMapping
from tilewright.mapping.zeros import active_share
from tilewright.workload.layer import Layer


def breakdown(
    layer: Layer,
    core: Core,
    links: tuple[tuple[str, str], ...],
    spatial: ConvertedSpatialMapping,
    order: LoopOrder,
    problem: Problem,
    ws: Workspace,
) -> LayerRecord:
    """Record of the mapping that was last evaluated in `ws`. Energy in pJ, time in cycles, sizes in bits."""
    chains = [memory_hierarchy(core).memories_of(dict(links)[operand]) for operand in layer.operands]
    energy, latency = float(ws.totals[ENERGY]), float(ws.totals[LATENCY])
    profile = ModelProfile("", *map(bool, problem.switches))
    return LayerRecord(
        layer=LayerFacts.of(layer),
        core=core.name,
        spatial_mapping=unrolling_record(spatial.unrolling),
        memory_operand_links=dict(links),
        loop_order=order,
        temporal_mapping=_temporal_levels(layer, order, problem, ws),
        spatial_levels={
            operand: tuple(tuple((d, number(f)) for d, f in level) for level in levels)
            for operand, levels in spatial.integer
        },
        memory_levels={
            operand: tuple(core.memories[k].name for k in chain)
            for operand, chain in zip(layer.operands, chains, strict=True)
        },
        memories={memory.name: MemoryFacts(memory.size_bits, memory.operands) for memory in core.memories},
        energy_pj=energy,
        energy_terms_pj=dict(zip(energy_term_names(core), ws.terms[: problem.term_count].tolist(), strict=True)),
        latency_cycles=latency,
        edp_pj_cycles=energy_delay_product(energy, latency),
        latency_breakdown_cycles=dict(zip(latency_term_names(core), latency_terms(problem, ws), strict=True)),
        energy_breakdown_pj=_per_link(layer, problem, ws.energy),
        word_accesses=_per_link(layer, problem, ws.words),
        memory_utilization=_per_level(layer, problem, ws.shared_utilization),
        memory_utilization_individual=_per_level(layer, problem, ws.utilization),
        mac_utilization=_mac_utilization(problem, ws),
        ports=_port_records(layer, core, problem, ws),
        **core_figures(core, profile),
        array_use=array_use(layer, core, spatial.unrolling, profile, links),
        cycles_per_operation=int(problem.cycles_per_operation),
        zeros=dict(layer.zeros),
        active_share=active_share(layer, core, dict(links)),
        array_dimensions=tuple(core.operational_array.size_of),
    )


def _temporal_levels(
    layer: Layer, order: LoopOrder, problem: Problem, ws: Workspace
) -> dict[str, tuple[LoopOrder, ...]]:
    """Temporal loops of each operand at each of its memory levels: operand -> loops by level, innermost level first.
    If the innermost loops of a level do not change the operand's data, these loops belong to the level below.
    """
    result = {}
    for operand, count, merged in zip(layer.operands, _level_counts(problem), ws["merged"].tolist(), strict=False):
        bounds = [0, *merged[:count]]
        result[operand] = tuple(order[first:end] for first, end in itertools.pairwise(bounds))
    return result


def latency_terms(problem: Problem | np.void, ws: Workspace | np.void) -> tuple[float, ...]:
    """Terms of the latency of the mapping in `ws`, in cycles, in the order of `latency_term_names`."""
    ideal, totals = int(problem["ideal_cycles"]), ws["totals"].tolist()
    further = problem["further_cycles"][: problem["further_count"]].tolist()
    waiting = list(map(number, ws["waiting"].tolist())) if problem["has_waiting"] else []
    return (
        ideal,
        number(totals[IDEAL_TEMPORAL] - ideal),
        number(totals[STALL]),
        number(totals[ONLOADING]),
        number(totals[OFFLOADING]),
        int(problem["fixed_cycles"]) - sum(further),
        *waiting,
        *further,
    )


def _mac_utilization(problem: Problem, ws: Workspace) -> dict[str, float]:
    """Utilizations of the array. Each utilization is the ideal cycles divided by a number of actual cycles.

    The actual cycles of `spatial` are the cycles of the temporal loops. `with_stalls` adds the stalls to them,
    `with_onloading` then adds on-loading, and `with_offloading` then adds all other terms of the latency.
    """
    computing = ws.totals[IDEAL_TEMPORAL]
    with_stalls = computing + ws.totals[STALL]
    with_onloading = with_stalls + ws.totals[ONLOADING]
    spans = (computing, with_stalls, with_onloading, ws.totals[LATENCY])
    names = ("spatial", "with_stalls", "with_onloading", "with_offloading")
    return {name: float(problem.ideal_cycles / span) for name, span in zip(names, spans, strict=True)}


def _per_link(layer: Layer, problem: Problem, values: np.ndarray) -> LinkFigures:
    return {
        operand: tuple(dict(zip(DIRECTIONS, level, strict=True)) for level in levels[:count])
        for operand, count, levels in zip(layer.operands, _level_counts(problem), values.tolist(), strict=False)
    }


def _per_level(layer: Layer, problem: Problem, values: np.ndarray) -> dict[str, tuple[float, ...]]:
    return {
        operand: tuple(levels[:count])
        for operand, count, levels in zip(layer.operands, _level_counts(problem), values.tolist(), strict=False)
    }


def _level_counts(problem: Problem) -> list[int]:
    """Number of memory levels of each operand, in the order of the operands."""
    counts: list[int] = problem["level_count"].tolist()
    return counts


def _port_records(layer: Layer, core: Core, problem: Problem, ws: Workspace) -> tuple[PortRecord, ...]:
    """Record of each port: its stall (positive) or slack (negative) in cycles, and the links that it serves. Links
    without transfers are left out.
    """
    # Each access to a record of numpy takes microseconds, and an access to a list takes none.
    v = 1 if problem["spatial_differs"] else 0
    services = [problem[f"service_{name}"].tolist() for name in ("operand", "level", "direction")]
    counts, periods = ws["count"][v].tolist(), ws["period"][v].tolist()
    transfers, allowances = ws["transfer_cycles"].tolist(), ws["allowed_cycles"].tolist()
    starts, stalls = problem["port_start"].tolist(), ws["port_stall"].tolist()
    records = []
    for p, (k, port, _) in enumerate(port_services(core)):
        activities = []
        for s in range(starts[p], starts[p + 1]):
            o, m, x = (service[s] for service in services)
            count = int(counts[o][m][x])
            if count == 0:
                continue
            real, allowed = int(transfers[o][m][x]), int(allowances[o][m][x])
            activities.append(
                PortActivity(
                    operand=layer.operands[o],
                    level=m,
                    direction=DIRECTIONS[x],
                    real_cycles=real,
                    allowed_cycles=allowed,
                    period_cycles=int(periods[o][m][x]),
                    period_count=count,
                    stall_slack_cycles=int((real - allowed) * computing_transfers.py_func(problem, o, x, count)),
                )
            )
        memory = core.memories[k]
        records.append(PortRecord(memory.name, memory.ports[port].name, int(stalls[p]), tuple(activities)))
    return tuple(records)


class InvariantError(RuntimeError):
    """Error for a physically impossible result. The result is not reported."""


def verify(problem: Problem | np.void, ws: Workspace | np.void) -> None:
    """Raise InvariantError if the evaluation in `ws` is physically impossible.

    Numbers of accesses, cycles and energies must be finite and not negative, and parts must add up to their totals.
    """
    terms = ws["terms"]
    violations = [
        name
        for name, values in (
            ("word accesses", ws["words"]),
            ("energies", ws["energy"]),
            ("transfer cycles", ws["transfer_cycles"]),
            ("loading cycles", ws["load"]),
            ("terms of the energy", terms),
            ("waiting terms", ws["waiting"]),
            ("totals", ws["totals"]),
        )
        if not (values.min() >= 0 and values.max() < np.inf)  # also a violation if a value is NaN
    ]
    totals = ws["totals"].tolist()
    accesses = float(ws["energy"][: problem["operand_count"]].sum())
    parts = totals[IDEAL_TEMPORAL] + totals[STALL] + totals[ONLOADING] + totals[OFFLOADING] + problem["fixed_cycles"]
    parts += ws["waiting"].sum() if problem["has_waiting"] else 0.0
    for name, total, expected in (
        ("memory energy", terms[problem["access_term"]], accesses),
        ("energy", totals[ENERGY], float(terms[: problem["term_count"]].sum())),
        ("latency", totals[LATENCY], parts),
    ):
        if not math.isclose(total, expected, rel_tol=ROUNDING, abs_tol=1e-12):
            violations.append(f"sum of {name}")
    if violations:
        raise InvariantError(f"the cost of a mapping contradicts itself: wrong {', '.join(violations)}")
