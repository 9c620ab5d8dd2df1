"""`summary.json` of a run on several cores: totals, parts, bounds, reloads, and use of cores, memories and links."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tilewright.base.artifacts.codec import encode
from tilewright.base.errors import count_of
from tilewright.base.measures import AREA_MM2, EDP_PJ_CYCLES, ENERGY_PJ, LATENCY_CYCLES
from tilewright.base.objectives import OBJECTIVES, energy_delay_product
from tilewright.base.proof import gap_to
from tilewright.base.units import size_text
from tilewright.cost.ledger import TERMS_PJ, named_terms
from tilewright.cost.rates import rates
from tilewright.hardware.static_power import static_power_fields, system_clock_period_ns, system_power_mw
from tilewright.hardware.system import MultiCoreAccelerator, system_area
from tilewright.multicore.scheduling.bounds.lower_bounds import LatencyBounds, LowerBounds
from tilewright.multicore.scheduling.core_costs import CoreCostRow
from tilewright.multicore.scheduling.energy_ledger import CAUSES, ON_CORE, further_terms, terms_of_summary
from tilewright.multicore.scheduling.problem import OUTPUT_OPERAND, Booleans, Integers
from tilewright.multicore.scheduling.result import ScheduleArtifact
from tilewright.multicore.scheduling.schedule import link_use
from tilewright.multicore.scheduling.system_assembly import UNLIMITED_BITS_PER_CYCLE
from tilewright.results.multi.use import CoreUse, LinkUse, MemoryUse

LEAST_FACTOR = 1.5
"""Smallest ratio (loaded bits / bits of the data) at which reloading of data is reported."""
CONSTANTS, RESULTS = "constants", "results"
"""Kinds of data. CONSTANTS, such as weights, belong to the layer that reads them. RESULTS of a layer belong to the
layer that makes them.
"""
STREAMED, COPIED, EVICTED = "streamed", "copied", "evicted"
_WHY = {
    STREAMED: "they do not fit into the memory of the core, so each tile reads them",
    COPIED: "several cores fetch them",
    EVICTED: "they are evicted to make room for other data, and are fetched again",
}


def reload_rows(artifact: ScheduleArtifact) -> list[dict[str, Any]]:
    """Rows on reloaded data, one for each layer and kind of data (CONSTANTS or RESULTS). Data get a row if the bits
    that are read from off-chip are at least LEAST_FACTOR times the size of the data. The row with most extra bits comes
    first.

    `bits` is the size of the data of `layer`. `loaded_bits` is the number of bits that are read from off-chip for these
    data. `cause` is the main cause of the extra bits: streamed (an operand stays off-chip), copied (to several
    memories), or evicted.
    """
    graph = artifact.graph
    layers = len(artifact.names.layer_names)
    is_constant = graph.piece_producer < 0
    layer = artifact.piece_layer
    fetched, copies = _fetched(artifact)
    needed = np.zeros(len(graph.piece_bits), np.bool_)
    needed[artifact.problem.fetch_order[0]] = True
    counts = np.bincount(graph.layer, minlength=layers)
    streams = dict(zip((CONSTANTS, RESULTS), _streamed(artifact, layers), strict=True))
    rows = []
    for data, chosen in ((CONSTANTS, is_constant & needed), (RESULTS, ~is_constant & needed)):
        bits = _by_layer(graph.piece_bits, layer, chosen, layers)
        loads = _by_layer(graph.piece_bits * fetched, layer, chosen, layers)
        once = _by_layer(graph.piece_bits * copies, layer, chosen, layers)
        for number in range(layers):
            loaded = int(loads[number] + streams[data][number])
            if not bits[number] or loaded < LEAST_FACTOR * bits[number]:
                continue
            again = {
                STREAMED: int(streams[data][number]),
                COPIED: int(max(once[number] - bits[number], 0)),
                EVICTED: int(max(loads[number] - once[number], 0)),
            }
            rows.append(
                {
                    "layer": artifact.names.layer_names[number],
                    "data": data,
                    "bits": int(bits[number]),
                    "loaded_bits": loaded,
                    "factor": loaded / int(bits[number]),
                    "tiles": int(counts[number]),
                    "cause": max(again, key=lambda cause: again[cause]),
                }
            )
    return sorted(rows, key=lambda row: row["bits"] - row["loaded_bits"])


def reload_lines(rows: Sequence[dict[str, Any]], most: int) -> list[str]:
    """Text lines on reloaded data, at most `most` of them."""
    lines = [
        f"{row['layer']}: its {row['data']} ({size_text(row['bits'])}) are loaded {row['factor']:,.1f} times by"
        f" {count_of(row['tiles'], 'tile')}: {_WHY[row['cause']]}"
        for row in rows[:most]
    ]
    more = f"data of {count_of(len(rows) - most, 'more layer')} are also loaded again"
    return lines + ([more] if len(rows) > most else [])


def _by_layer(values: Integers, layer: Integers, chosen: Booleans, layers: int) -> Integers:
    found = np.zeros(layers, np.int64)
    np.add.at(found, layer[chosen], values[chosen])
    return found


def _fetched(artifact: ScheduleArtifact) -> tuple[Integers, Integers]:
    """Pair of arrays with one entry for each piece (the unit of data that moves as a whole): number of fetches of the
    piece from the off-chip memory, and number of memories that fetch it at least once. A broadcast counts as one fetch
    by one memory.
    """
    moves, pieces = artifact.schedule.transfers, len(artifact.graph.piece_bits)
    moves = moves[(moves["cause"] == CAUSES.index("off_chip_fetch")) & (moves["broadcast_of"] < 0)]
    memories = len(artifact.system.memory_capacity_bits)
    pairs = np.unique(moves["piece"] * memories + moves["target_memory"])
    return np.bincount(moves["piece"], minlength=pieces), np.bincount(pairs // memories, minlength=pieces)


def _streamed(artifact: ScheduleArtifact, layers: int) -> tuple[Integers, Integers]:
    """Pair of arrays with one entry for each layer: bits of constants that stream to the layer, and bits of its results
    that stream to other layers.
    """
    graph, problem = artifact.graph, artifact.problem
    streams = problem.costs.stream_bits[graph.cost_row, artifact.schedule.allocation]
    piece, operand = problem.fetch_order
    cn = problem.need_cn
    streams_here = (operand != OUTPUT_OPERAND) & (streams[cn, operand] > 0)
    cn, piece, operand = cn[streams_here], piece[streams_here], operand[streams_here]
    # The bits of a stream are divided among all pieces that the node needs for the operand, by their sizes.
    key = cn * streams.shape[1] + operand
    total = np.zeros(streams.size, np.int64)
    np.add.at(total, key, graph.piece_bits[piece])
    share = graph.piece_bits[piece] / np.maximum(total[key], 1) * streams.reshape(-1)[key]
    is_constant = graph.piece_producer[piece] < 0
    read, made = np.zeros(layers), np.zeros(layers)
    np.add.at(read, graph.layer[cn[is_constant]], share[is_constant])
    np.add.at(made, artifact.piece_layer[piece[~is_constant]], share[~is_constant])
    return np.rint(read).astype(np.int64), np.rint(made).astype(np.int64)


SCHEMA = "tilewright/multi-summary"
SINGLE_CORE, LAYER_BY_LAYER, THIS_RUN = "single_core", "layer_by_layer", "this_run"
"""Names of the rows in the summary field `baselines`."""
OFF_CHIP_STREAM = "off_chip_stream"
Summary = dict[str, Any]


def multi_summary(
    artifact: ScheduleArtifact,
    bounds: LowerBounds | None,
    costs: Mapping[str, Sequence[CoreCostRow]],
    objective: str,
    others: Mapping[str, Any],
) -> Summary:
    """Summary of a schedule. `costs` are the cost tables by core file. The fields in `others` are added unchanged.

    The gap of a value is the value minus its lower bound, as a share of the value (`gap_to`).
    """
    schedule, names = artifact.schedule, artifact.names
    energy, latency = schedule.energy_pj, schedule.latency_cycles
    cores = core_uses(artifact, costs)
    return {
        "workload": names.network,
        "hardware": names.accelerator,
        "schedule_model": artifact.schedule_model,
        "objective": objective,
        LATENCY_CYCLES: latency,
        ENERGY_PJ: energy,
        EDP_PJ_CYCLES: energy_delay_product(energy, latency),
        "energy": {
            "on_core_pj": schedule.energy_terms_pj[ON_CORE],
            "on_core_operational_pj": sum(row.operational_energy_pj for row in cores),
            "on_core_memory_pj": _added([row.memory_energy_pj for row in cores]),
            "causes": _cause_rows(artifact),
            **_term_fields(artifact, cores),
        },
        **_bound_fields(bounds, latency, energy),
        "cores": encode(cores),
        "memories": encode(memory_uses(artifact)),
        "links": encode(link_uses(artifact)),
        "reloads": reload_rows(artifact),
        "layers": len(names.layer_names),
        "cn_count": artifact.graph.node_count,
        "edge_count": len(artifact.edges[0]),
        "piece_count": len(artifact.graph.piece_bits),
        "cost_classes": len(artifact.problem.costs.runtime_cycles),
        **others,
    }


def area_fields(accelerator: MultiCoreAccelerator) -> Summary:
    """Summary fields with the area of all on-chip cores in mm², and a note. The area is null if the area of a part is
    missing, or if areas have no unit; the note has the reason. In a core whose array model computes an area, the area
    of a memory may be missing. The total then leaves out this memory, and the note names it.
    """
    area = system_area(accelerator)
    return {AREA_MM2: area.mm2, "area_note": area.note}


def rate_fields(accelerator: MultiCoreAccelerator, latency_cycles: int, energy_pj: float, mac_count: int) -> Summary:
    """Summary fields with seconds, watts and operations per second, and with the parts that have a static power; {} if
    the clock is not known."""
    clock_ns, power_mw = system_clock_period_ns(accelerator), system_power_mw(accelerator)
    found = rates(clock_ns, latency_cycles, energy_pj, mac_count, power_mw, system_area(accelerator).mm2)
    return found | (static_power_fields(accelerator.cores) if found else {})


def _bound_fields(bounds: LowerBounds | None, latency: int, energy: float) -> Summary:
    """Summary fields with the lower bounds and the gaps to the bounds. All fields are null if there is no valid
    bound.
    """
    if bounds is None:
        return {"lower_bound": None, "gap_latency": None, "gap_latency_if_copied": None, "gap_energy": None}
    return {
        "lower_bound": {
            **_latency_fields(bounds),
            ENERGY_PJ: bounds.energy_pj,
            "covers": bounds.scope.text,
            "if_copied": _latency_fields(bounds.if_copied),
        },
        "gap_latency": bounds.latency_gap(latency),
        "gap_latency_if_copied": bounds.if_copied.latency_gap(latency),
        "gap_energy": gap_to(bounds.energy_pj, energy),
    }


def _latency_fields(terms: LatencyBounds) -> Summary:
    """Lower bound of the latency in cycles, and its terms; the bound is the largest term."""
    return {
        LATENCY_CYCLES: terms.latency_cycles,
        "latency_terms": {
            "critical_path": terms.critical_path_cycles,
            "core_work": terms.core_work_cycles,
            "off_chip_traffic": terms.off_chip_traffic_cycles,
            "link_traffic": terms.link_traffic_cycles,
            "before_and_after": terms.before_and_after_cycles,
            "phases": terms.phases_cycles,
            "phases_in_order": terms.ordered_phases_cycles,
        },
    }


def _cause_rows(artifact: ScheduleArtifact) -> Summary:
    """Energy of links and memories, moved bits, and number of transfers, by cause of data movement. All streams of a CN
    count as one transfer.
    """
    schedule, graph = artifact.schedule, artifact.graph
    moves = schedule.transfers
    bits = np.zeros(len(CAUSES), np.int64)
    np.add.at(bits, moves["cause"], graph.piece_bits[moves["piece"]])
    count = np.bincount(moves["cause"], minlength=len(CAUSES))
    streams = artifact.problem.costs.stream_bits[graph.cost_row, schedule.allocation]
    bits[CAUSES.index(OFF_CHIP_STREAM)] += streams.sum()
    count[CAUSES.index(OFF_CHIP_STREAM)] += int(np.any(streams > 0, axis=1).sum())
    return {
        name: {
            **encode(schedule.energy_terms_pj[name]),
            "bits": int(bits[number]),
            "transfers": int(count[number]),
        }
        for number, name in enumerate(CAUSES)
    }


def core_uses(artifact: ScheduleArtifact, costs: Mapping[str, Sequence[CoreCostRow]]) -> list[CoreUse]:
    """Use of each core except the off-chip core. `costs` are the cost tables by core file."""
    schedule, names, graph = artifact.schedule, artifact.names, artifact.graph
    core_count, rows = artifact.system.core_count, len(artifact.problem.costs.runtime_cycles)
    busy = _sums(schedule.allocation, schedule.end_cycles - schedule.start_cycles, core_count)
    runs = np.bincount(schedule.allocation * rows + graph.cost_row, minlength=core_count * rows)
    latency = max(schedule.latency_cycles, 1)
    found = []
    for core, file in enumerate(names.core_files):
        if core == artifact.system.off_chip_core:
            continue
        count = runs[core * rows : (core + 1) * rows]
        used = [(int(count[row]), costs[file][row]) for row in np.flatnonzero(count).tolist()]
        found.append(
            CoreUse(
                core=names.core_ids[core],
                name=file,
                role=names.core_roles[core],
                cn_count=int(count.sum()),
                busy_cycles=int(busy[core]),
                utilisation=int(busy[core]) / latency,
                array_utilisation=sum(times * row.ideal_cycles for times, row in used) / latency,
                energy_pj=sum(times * row.on_core_energy_pj for times, row in used),
                operational_energy_pj=sum(times * row.operational_energy_pj for times, row in used),
                memory_energy_pj=_added([_times(times, row.memory_energy_pj) for times, row in used]),
                term_energy_pj=_added([_times(times, row.term_energy_pj) for times, row in used]),
            )
        )
    return found


def _times(times: int, energies_pj: Sequence[tuple[str, float]]) -> dict[str, float]:
    """Energies in pJ of `times` equal CNs, by name of the memory or energy term. `energies_pj` are the energies of one
    CN.
    """
    return {name: times * energy for name, energy in energies_pj}


def memory_uses(artifact: ScheduleArtifact) -> list[MemoryUse]:
    """Use of each memory that holds data of CNs."""
    system, names = artifact.system, artifact.names
    rows = []
    for memory, name in enumerate(names.memory_names):
        users = np.flatnonzero(np.any(system.core_memory == memory, axis=1))
        capacity, peak = int(system.memory_capacity_bits[memory]), int(artifact.schedule.peak_bits[memory])
        ids = tuple(names.core_ids[core] for core in users.tolist())
        rows.append(MemoryUse(name, ids, capacity, peak, peak / capacity))
    return rows


def link_uses(artifact: ScheduleArtifact) -> list[LinkUse]:
    """Use of each link."""
    schedule, system, names = artifact.schedule, artifact.system, artifact.names
    latency = max(schedule.latency_cycles, 1)
    bits = schedule.link_bits.sum(axis=0)
    rows = []
    for link, (times, used) in enumerate(link_use(schedule, system)):
        width = int(system.link_bits_per_cycle[link])
        spans = np.diff(np.append(times, latency))
        is_limited = width < UNLIMITED_BITS_PER_CYCLE
        rows.append(
            LinkUse(
                name=names.link_names[link],
                kind=names.link_kinds[link],
                width_bits_per_cycle=width if is_limited else None,
                bits=int(bits[link]),
                busy=float(spans[used > 0].sum()) / latency,
                utilisation=int(bits[link]) / (width * latency) if is_limited else None,
            )
        )
    return rows


def baseline_rows(
    summary: Summary, layer_by_layer: Summary | None, singles: Sequence[Summary], planned: Summary | None = None
) -> list[Summary]:
    """Rows that compare this run with its baselines, in this order: the best single core, the layer-by-layer schedule
    on all cores, and this run. Unknown baselines are left out.

    `planned` is the best layer-by-layer schedule that the search for the plan of this run found. If `planned` is better
    in the objective than `layer_by_layer`, it replaces `layer_by_layer`, so that ratios refer to the best known
    baseline.

    `gap` is the gap between the latency and the lower bound of a row. The row of the single core has the lower bound of
    `layer_by_layer`. `speedup` is the latency of the row divided by the latency of this run. `energy_ratio` is the
    energy of the row divided by the energy of this run. `energy_parts_pj` are the energy terms.
    """
    rows = []
    objective = OBJECTIVES.get(summary["objective"], OBJECTIVES["EDP"])
    bound = (layer_by_layer or {}).get("lower_bound")
    known = [row for row in (layer_by_layer, planned) if row is not None]
    best_known = min(known, key=lambda row: objective.value(row[ENERGY_PJ], row[LATENCY_CYCLES]), default=None)
    if singles:
        best = min(singles, key=lambda row: (objective.value(row[ENERGY_PJ], row[LATENCY_CYCLES]), row["core"]))
        rows.append(
            {"name": SINGLE_CORE, "core": best["core"], "core_name": best["core_name"], **_figures(best, bound)}
        )
    if best_known is not None:
        own_bound = best_known.get("lower_bound")
        rows.append({"name": LAYER_BY_LAYER, "core": None, "core_name": None, **_figures(best_known, own_bound)})
    rows.append({"name": THIS_RUN, "core": None, "core_name": None, **_figures(summary, summary["lower_bound"])})
    own = rows[-1]
    return [
        {
            **row,
            "speedup": row[LATENCY_CYCLES] / max(own[LATENCY_CYCLES], 1),
            "energy_ratio": row[ENERGY_PJ] / own[ENERGY_PJ] if own[ENERGY_PJ] else None,
        }
        for row in rows
    ]


def _figures(row: Mapping[str, Any], bound: Mapping[str, Any] | None) -> Summary:
    latency, energy = row[LATENCY_CYCLES], row[ENERGY_PJ]
    gap = gap_to(bound[LATENCY_CYCLES], latency) if bound and latency else None
    return {
        LATENCY_CYCLES: latency,
        ENERGY_PJ: energy,
        EDP_PJ_CYCLES: energy_delay_product(energy, latency),
        "gap": gap,
        "energy_parts_pj": row["energy_parts_pj"]
        if "energy_parts_pj" in row
        else encode(terms_of_summary(row["energy"])),
    }


def _sums(place: Integers, values: Integers, count: int) -> Integers:
    found = np.zeros(count, np.int64)
    np.add.at(found, place, values)
    return found


def term_fields(artifact: ScheduleArtifact, costs: Mapping[str, Sequence[CoreCostRow]]) -> Summary:
    """Field `energy_terms_pj` of `fusion.json`: energies in pJ of the terms of plug-ins and of static power, by name.
    {} if there are none. `costs` are the cost tables by core file."""
    return _where_any(TERMS_PJ, named_terms({"energy": _term_fields(artifact, core_uses(artifact, costs))}))


def _term_fields(artifact: ScheduleArtifact, cores: Sequence[CoreUse]) -> Summary:
    """Energies in pJ of the further terms in the cores, and of the further terms of the schedule."""
    return {
        **_where_any("on_core_terms_pj", _added([row.term_energy_pj for row in cores])),
        **_where_any("terms_pj", further_terms(artifact.schedule.energy_terms_pj)),
    }


def _where_any(key: str, table: dict[str, float]) -> dict[str, dict[str, float]]:
    return {key: table} if table else {}


def _added(tables: Sequence[Mapping[str, float]]) -> dict[str, float]:
    total: dict[str, float] = defaultdict(float)
    for table in tables:
        for name, value in table.items():
            total[name] += value
    return dict(total)
