"""Details of a run on one core for the page: totals, bottlenecks, roofline, and layers with their mappings.

Energies are in µJ, latencies in cycles. Equal layers share one entry of the list `records`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from tilewright.base.json_values import JsonObject
from tilewright.cost.ledger import term_words
from tilewright.cost.record import LayerRecord
from tilewright.hardware.core import DIRECTIONS
from tilewright.results.bottlenecks import Bottlenecks, cause_words, waited_for
from tilewright.results.bottlenecks_text import has_causes, memory_words
from tilewright.results.error_bars.bars_text import bar_lines
from tilewright.results.front_text import front_lines, point_roles
from tilewright.results.loop_nest import loop_nest_text
from tilewright.results.page.columns import (
    array_text,
    cause_text,
    gain_cycles,
    limit_lines,
    limit_text,
    named_ports,
    port_name,
    rounded,
)
from tilewright.results.records import (
    PlacedLayer,
    Summary,
    memory_energies_pj,
    memory_levels,
    memory_names,
    other_energies_pj,
    work_text,
)
from tilewright.results.run_ledger import ENERGY, LATENCY
from tilewright.results.run_text import (
    alternative_lines,
    assumption,
    bits_lines,
    coverage_lines,
    locality_lines,
    power_lines,
    range_lines,
)
from tilewright.results.text_tables import spatial_text
from tilewright.search.front import front_of

MICRO = 1e6
"""Picojoules in a microjoule."""
MOST_ROOFS = 4
Verdicts = Mapping[str, Any]
"""Content of `bottlenecks.json`."""


def one_core_detail(
    found: Bottlenecks, placed: Sequence[PlacedLayer], summary: Summary, verdicts: Verdicts | None
) -> JsonObject:
    """Data on a run on one core, which the page shows below the row of the run. `verdicts` has the limiting ports; None
    if they are not known.
    """
    kinds = [(layer.record_index, layer.repeats) for layer in placed]
    records = dict(zip(kinds, (layer.record for layer in placed), strict=True))
    limits = {
        (layer.record_index, layer.repeats): (verdicts or {}).get("limits", {}).get(layer.name) for layer in placed
    }
    number = {index: place for place, index in enumerate(records)}
    terms = list(dict.fromkeys(term for record in records.values() for term in record.latency_breakdown_cycles))
    others = list(dict.fromkeys(term for record in records.values() for term in other_energies_pj(record)))
    memories = memory_names(list(records.values()))
    return {
        "notes": _notes(summary),
        **network_parts(found),
        "limit": _limit(verdicts, found),
        "terms": [term_words(term) for term in terms],
        "places": [*map(term_words, others), *memories],
        "directions": list(DIRECTIONS),
        "layers": [[_label(layer), number[kind]] for layer, kind in zip(placed, kinds, strict=True)],
        "records": [
            _record(record, limits[index], terms, others, memories) for index, record in records.items()
        ],
        "roofline": _roofline(verdicts, [layer.name for layer in placed]),
        **front_part(summary),
    }  # fmt: skip


def front_part(summary: Summary) -> JsonObject:
    """JSON object whose only key `front` has the Pareto front of a run for the page; {} if the run searched no front.

    `points` are lists [energy in µJ, latency in cycles, roles], from the least latency to the least energy. Roles are
    texts that describe the point, such as `knee`. There are no points if a layer has no front.
    """
    if summary.get("front") is None:
        return {}
    lines = list(front_lines(summary))
    roles = point_roles(summary)
    if not roles:
        return {"front": {"lines": lines, "points": []}}
    front = front_of(summary["front"])
    return {
        "front": {
            "lines": lines,
            "points": [
                [_micro(one.energy_pj), rounded(one.latency_cycles), list(of_point)]
                for one, of_point in zip(front.points, roles, strict=True)
            ],
            "least_energy": _micro(front.lines[0].level_pj),
            "least_latency": rounded(front.least_latency_cycles),
        }
    }


def _label(layer: PlacedLayer) -> str:
    return f"{layer.repeats:,} x {layer.name}" if layer.repeats > 1 else layer.name


def network_parts(found: Bottlenecks) -> JsonObject:
    """Cycles by cause, and energy by operand and memory (or by other energy term), the largest part first."""
    causes = found.added(LATENCY, cause_words) if has_causes(found) else {}
    energies = found.added(ENERGY, lambda one: (memory_words(one), one.operand))
    return {
        "cycles": [[cause, rounded(cycles)] for cause, cycles in causes.items()],
        "energy": [[place, operand, _micro(energy)] for (place, operand), energy in energies.items()],
    }


def _notes(summary: Summary) -> list[str]:
    assumed = assumption([summary])
    lines = [f"assumed: {assumed}"] if assumed else []
    lines += bits_lines(summary)
    lines += alternative_lines(summary)
    lines += [*coverage_lines(summary)] if "coverage" in summary else []
    return [*lines, *locality_lines(summary), *power_lines(summary), *bar_lines(summary), *range_lines(summary)]


def _micro(energy_pj: float) -> float | int | None:
    return rounded(energy_pj / MICRO)


def _limit(verdicts: Verdicts | None, found: Bottlenecks) -> dict[str, Any]:
    """Limiting port of the network and the savings of each port, or the reason why they are not known."""
    if verdicts is None or verdicts["network_limit"] is None:
        return {"text": "", "unknown": (verdicts or {}).get("limits_not_known", "")}
    verdict = verdicts["network_limit"]
    gains = _gains(verdicts)
    limited = [
        name
        for one in verdicts["limits"].values()
        if one is not None
        and one.get("is_limited", True)
        and (named := named_ports(one)) is not None
        and len(named["ports"]) == 1
        for name in (port_name(named["ports"][0]), *one["ties"])
    ]
    ports = [[name, rounded(gain), limited.count(name)] for name, gain in gains.items() if gain or name in limited]
    return {
        "cause": cause_text(verdict),
        "lines": limit_lines(verdict, found.causes()),
        "array": array_text(verdicts.get("array_use")),
        "text": limit_text(verdict),
        "gain": rounded(gain_cycles(verdict)),
        "ports": sorted(ports, key=lambda row: -(row[1] or 0)),
    }


def _gains(verdicts: Verdicts) -> dict[str, float]:
    """Cycles that doubling the width of a port saves, summed over all layers, by name of the port."""
    gains: dict[str, float] = {}
    for row in verdicts["ports"]:
        if row.get("gain_cycles") is not None:
            gains[port_name(row)] = gains.get(port_name(row), 0.0) + row["gain_cycles"]
    return gains


def _record(
    record: LayerRecord,
    verdict: Mapping[str, Any] | None,
    terms: Sequence[str],
    others: Sequence[str],
    memories: Sequence[str],
) -> dict[str, Any]:
    by_memory, by_term = memory_energies_pj(record), other_energies_pj(record)
    port = waited_for(record)
    parts = [by_term.get(term, 0.0) for term in others]
    parts += [sum(by_memory.get(memory, {}).values()) for memory in memories]
    corrected = record.corrected
    return {
        "type": record.layer.operator_type,
        "work": work_text(record),
        "energy": _micro(record.energy_pj),
        "latency": rounded(record.latency_cycles),
        "use": rounded(100 * record.mac_utilization["with_offloading"]),
        "cycles": [rounded(record.latency_breakdown_cycles.get(term, 0)) for term in terms],
        "parts": [_micro(part) for part in parts],
        "limit": cause_text(verdict),
        "gain": rounded(gain_cycles(verdict)),
        "waits": f"{port.memory} {port.port}" if port else "",
        "corrected": [
            None if corrected.energy_pj is None else _micro(corrected.energy_pj),
            rounded(corrected.latency_cycles),
        ],
        "unrolling": spatial_text(record.spatial_mapping),
        "nest": loop_nest_text(record),
        "levels": [_level(record, *level) for level in memory_levels(record)],
    }


def _level(record: LayerRecord, operand: str, level: int, memory: str) -> list[Any]:
    """Memory level of an operand as a list.

    The items are: operand, memory, size of the memory in bits, loops (innermost first), share of the memory that all
    operands fill (in %), and share that this operand fills (in %). The last items are the energies of the directions,
    in µJ.
    """
    loops = " ".join(f"{dimension} {size:g}" for dimension, size in record.temporal_mapping[operand][level])
    energies = record.energy_breakdown_pj[operand][level]
    return [
        operand,
        memory,
        record.memories[memory].size_bits if memory in record.memories else None,
        loops,
        rounded(100 * record.memory_utilization[operand][level]),
        rounded(100 * record.memory_utilization_individual[operand][level]),
        *(_micro(energies[direction]) for direction in DIRECTIONS),
    ]


def _roofline(verdicts: Verdicts | None, names: Sequence[str]) -> dict[str, Any] | None:
    """Data of the roofline: the roof of the array, and the roofs of ports. None if the roofs are not known. At most
    MOST_ROOFS ports are kept: those whose doubled width saves most cycles, the largest saving first. The roof of a port
    has a point for each layer that uses the port.

    A point is a list [number of the layer, operations per byte, operations per cycle]; a MAC is one operation.
    """
    roofline = (verdicts or {}).get("roofline")
    if not roofline:
        return None
    place = {name: number for number, name in enumerate(names)}
    gains = _gains(verdicts or {"ports": ()})
    ports = [
        {
            "name": port_name(port),
            "bytes": rounded(port["bytes_a_cycle"]),
            "points": [
                [place[one["layer"]], rounded(one["operations_a_byte"]), rounded(one["operations_a_cycle"])]
                for one in port["layers"]
                if one["operations_a_cycle"] > 0
            ],
        }
        for port in roofline["ports"]
        if port["layers"]
    ]
    ports.sort(key=lambda port: -gains.get(str(port["name"]), 0.0))
    return {"peak": rounded(roofline["operations_a_cycle"]), "ports": ports[:MOST_ROOFS]}
