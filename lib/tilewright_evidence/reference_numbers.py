"""Comparison of our results with results of the reference tool zigzag-dse, which are stored in points files and flow
files.

A points file has fixed mappings, one JSON object per line. The object has a layer, a core, a spatial mapping and a loop
order. It also has either the result of zigzag-dse 3.9.1, or the error with which zigzag-dse refuses the mapping
(tests/conformance/data/README.md). A flow file has the best mappings that the search of zigzag-dse found.
"""

import gzip
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tilewright.base.artifacts.codec import encode
from tilewright.base.errors import MappingError
from tilewright.base.harmless import terminal_lines
from tilewright.base.json_values import JsonObject
from tilewright.base.measures import ENERGY_PJ, LATENCY_CYCLES
from tilewright.base.profile import REFERENCE
from tilewright.cost.ledger import ACCESSES
from tilewright.cost.record import LayerRecord, LoopOrder
from tilewright.hardware.array_model import ArrayRefusalError, total
from tilewright.hardware.core import Core
from tilewright.hardware.yaml_reader import read_accelerator
from tilewright.mapping.constraints import MappingConstraints, TemporalOrderingEntry, as_unrolling
from tilewright.mapping.spatial import convert_spatial_mapping
from tilewright.mapping.spatial_generation import spatial_candidates
from tilewright.mapping.yaml_reader import read_mapping
from tilewright.pipeline.stages.run import map_layer, map_workload
from tilewright.search.evaluate import PreparedProblem, evaluate_prepared, prepare
from tilewright.search.options import SearchOptions
from tilewright.workload.layer import Layer, parse_equation, parse_relation
from tilewright.workload.yaml_reader import read_workload_yaml

TOLERANCE = 1e-9
"""Largest relative difference between our values and the reference values at which a point counts as close."""
SUM_TOLERANCE = 1e-12
"""Tolerance for sums: our sum and the sum of the reference count as equal if their relative difference is at most
SUM_TOLERANCE. The sums are memory shares, totals of a network, and energies, clock periods and areas of in-memory
arrays.

The reference adds these numbers with Python's `sum`, whose last bit differs between Python 3.11 and 3.12.
"""
SPATIAL, ALLOCATION, COST_MODEL = "spatial", "allocation", "cost_model"
"""Stages at which the reference refuses a point:

* SPATIAL: no spatial mapping is possible.
* ALLOCATION: the tiles of the loop order do not fit into the memories.
* COST_MODEL: the reference has no energy for the mapping on an in-memory array. Switch B14 in docs/model.md repairs
  this.
"""
_SUMS = ("utilization", "network", "in-memory sum")


@dataclass
class ConformanceReport:
    """Result of a comparison, which is filled in while the comparison runs."""

    name: str
    points: int = 0
    equal: int = 0
    """Number of points with equal results: all values are equal bit for bit, or both tools refuse the point at the same
    stage. For sums, a relative difference of at most SUM_TOLERANCE counts as equal.
    """
    close: int = 0
    """Number of points that are not `equal`, but close: for each value of the point, the relative difference from the
    value of the reference is at most TOLERANCE.
    """
    rejected: int = 0
    """Number of points that both tools refuse at the same stage. `equal` includes them."""
    not_tried: int = 0
    """Number of points that are not compared, because the file has no spatial mapping or no loop order for them.
    `points` does not count them. Points that the reference refuses at the stage SPATIAL are always compared.
    """
    worst_relative_difference: float = 0.0
    mismatches: list[str] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        """True if there is a point, and every point is equal or close."""
        return self.points > 0 and self.equal + self.close == self.points

    def add(self, identity: str, pairs: Iterable[tuple[str, Any, Any]]) -> None:
        """Count one point as equal, close or different. `pairs` has a triple for each value of the point: (name of the
        value, our value, value of the reference).
        """
        self.points += 1
        unequal = [(what, ours, theirs) for what, ours, theirs in pairs if ours != theirs]
        worst = max((relative_difference(ours, theirs) for _, ours, theirs in unequal), default=0.0)
        differences = [
            (what, ours, theirs)
            for what, ours, theirs in unequal
            if not (what.startswith(_SUMS) and relative_difference(ours, theirs) <= SUM_TOLERANCE)
        ]
        self.worst_relative_difference = max(self.worst_relative_difference, worst)
        if not differences:
            self.equal += 1
        elif worst <= TOLERANCE:
            self.close += 1
        else:
            told = ", ".join(f"{what} {ours!r} instead of {theirs!r}" for what, ours, theirs in differences[:4])
            self.mismatches.append(f"{identity}: {told}")


def relative_difference(ours: Any, theirs: Any) -> float:
    """Relative difference |ours - theirs| / |theirs| of two numbers; infinite if one of them is not a number."""
    if isinstance(ours, int | float) and isinstance(theirs, int | float):
        return abs(ours - theirs) / max(abs(theirs), 1e-300)
    return float("inf")


def compare_points(path: Path | str, hardware_directory: Path | str) -> ConformanceReport:
    """Evaluate every point of a points file. Compare energy, latency and their breakdowns with the reference.

    If the reference refused a point, the comparison checks that our model refuses it at the same stage.
    """
    report = ConformanceReport(Path(path).name)
    cores: dict[str, Core] = {}
    for point in read_points(path):
        name = point["hardware"]
        if name not in cores:
            cores[name] = read_accelerator(Path(hardware_directory) / f"{name}.yaml").cores[0]
        _compare_point(report, point, cores[name])
    return report


def read_points(path: Path | str) -> Iterator[dict[str, Any]]:
    """Points of a JSON-lines file, which may be compressed with gzip."""
    opened = gzip.open(path, "rt") if str(path).endswith(".gz") else Path(path).open()  # noqa: SIM115
    with opened as stream:
        for line in stream:
            yield json.loads(line)


def _compare_point(report: ConformanceReport, point: dict[str, Any], core: Core) -> None:
    expected, stopped_at = point.get("result"), point.get("stage", "")
    if stopped_at != SPATIAL and not ("spatial_mapping" in point and "loop_order_inner_to_outer" in point):
        report.not_tried += 1
        return
    refused_at = SPATIAL
    order = tuple((dimension, size) for dimension, size in point.get("loop_order_inner_to_outer", ()))
    try:
        if stopped_at == SPATIAL:
            _build_spatial_mapping(point, core)
            report.add(point["id"], [("outcome", "accepted spatial mapping", f"rejected: {point['error']}")])
            return
        prepared = _prepare_point(point, core)
        refused_at = ALLOCATION
        record = evaluate_prepared(prepared, order)
    except MappingError as error:
        if isinstance(error, ArrayRefusalError):
            refused_at = COST_MODEL if _fits_repaired(point, core, order) else ALLOCATION
        ours, theirs = (
            f"rejected at stage {refused_at}",
            f"rejected at stage {stopped_at}" if stopped_at else "accepted",
        )
        report.rejected += ours == theirs
        report.add(point["id"], [("outcome", ours if ours == theirs else f"{ours}: {error}", theirs)])
        return
    if expected is None:
        report.add(point["id"], [("outcome", "accepted", f"rejected: {point['error']}")])
    else:
        report.add(point["id"], _value_pairs(record, expected))


def _fits_repaired(point: JsonObject, core: Core, order: LoopOrder) -> bool:
    """True if the tiles of a loop order fit into the memories. The function is called for a point on an in-memory array
    if our model of the reference has no energy for it.

    The reference checks the memories before it computes the energy. If the tiles fit, it refuses the point at the stage
    COST_MODEL; otherwise, it refuses the point at the stage ALLOCATION. The check uses our model of the reference with
    switch B14, which repairs the energy. The result is also true if this model refuses the spatial mapping on the
    array.
    """
    try:
        evaluate_prepared(_prepare_point(point, core, f"{REFERENCE.name}+complete_in_memory_model"), order)
    except ArrayRefusalError:
        return True
    except MappingError:
        return False
    return True


def _build_spatial_mapping(point: dict[str, Any], core: Core) -> None:
    """Check the spatial mappings that a search tries for a point. Raises MappingError if there is none, or if one of
    them is impossible.
    """
    layer = reference_layer(point["layer"])
    requested, links = as_unrolling(point["spatial_mapping_requested"]), _links(point)
    constraints = MappingConstraints(layer.name, requested, memory_operand_links=links)
    for unrolling in spatial_candidates(layer, core, constraints, REFERENCE):
        convert_spatial_mapping(unrolling, layer, core, links, REFERENCE)


def _prepare_point(point: dict[str, Any], core: Core, model: str = REFERENCE.name) -> PreparedProblem:
    """Input of the cost model for a point, with the spatial mapping of the reference.

    Raises MappingError if this mapping is impossible.
    """
    options = SearchOptions(temporal_mapping_type=point.get("temporal_mapping_type") or "uneven", model=model)
    return prepare(
        reference_layer(point["layer"]),
        core,
        _links(point),
        as_unrolling(point["spatial_mapping"]),
        options,
        same_data_is_no_access=point.get("access_same_data_considered_as_no_access", True),
    )


def _links(point: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    return tuple(point["layer"]["memory_operand_links"].items())


def _value_pairs(record: LayerRecord, expected: dict[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """Triples (name of the value, our value, value of the reference) for all values that both tools have."""
    parts = record.latency_breakdown_cycles
    computing = parts["ideal"] + parts["spatial_stall"]
    stalled = computing + parts["temporal_stall"]
    ours = {
        "mem_energy": record.energy_terms_pj[ACCESSES],
        "latency_total0": stalled,
        "latency_total1": stalled + parts["onloading"],
        "latency_total2": record.latency_cycles,
        "ideal_cycle": parts["ideal"],
        "ideal_temporal_cycle": computing,
        "temporal_stall": parts["temporal_stall"],
        "onloading": parts["onloading"],
        "offloading": parts["offloading"],
        "systolic_drain": parts["drain"],
    }
    yield from ((what, value, expected[what]) for what, value in ours.items() if what in expected)
    yield from _energy_pairs(record, expected)
    for operand, levels in expected.get("word_accesses", {}).items():
        for level, directions in enumerate(levels):
            for direction, words in directions.items():
                place = f"{operand} level {level} {direction}"
                yield f"words {place}", record.word_accesses[operand][level][direction], words
                if "energy_breakdown_dirs" in expected:
                    energy = expected["energy_breakdown_dirs"][operand][level][direction]
                    yield f"energy {place}", record.energy_breakdown_pj[operand][level][direction], energy
    for operand, shares in expected.get("mem_utilization_shared", {}).items():
        for level, share in enumerate(shares):
            yield f"utilization {operand} {level}", record.memory_utilization[operand][level], share
    merged = expected.get("temporal_levels_stationary")
    if merged is not None:
        yield "temporal mapping", encode(record.temporal_mapping), merged


def _energy_pairs(record: LayerRecord, expected: dict[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """Triples (name of the value, our value, value of the reference) for the energies, and for the values that exist
    only for in-memory arrays.

    For an in-memory array, the names of the energies begin with `in-memory sum` (see SUM_TOLERANCE). The reason is that
    the reference adds the energies of components with Python's `sum`.
    """
    sums = "in-memory sum " if "imc" in expected else ""
    terms = record.energy_terms_pj
    arrays = total(terms[term] for term in list(terms)[: list(terms).index(ACCESSES)])
    ours = {"energy_total": record.energy_pj, "mac_energy": arrays, "mem_energy": terms[ACCESSES]}
    yield from ((f"{sums}{what}", value, expected[what]) for what, value in ours.items() if what in expected)
    yield from _in_memory_pairs(record, expected.get("imc", {}))


def _in_memory_pairs(record: LayerRecord, expected: dict[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """Triples (name of the value, our value, value of the reference) for the values that the reference gives only for
    in-memory arrays.

    These values are the clock period, the areas, and the cycles of an operation. The terms of the energy, of the clock
    period and of the areas are also compared. `expected` has the values of the reference. For other arrays, it is
    empty, and the function yields nothing.
    """
    areas = {where: total(parts.values()) for where, parts in record.area_breakdown_mm2.items()}
    ours = {
        "tclk": record.clock_period_ns,
        "area_total": record.area_mm2,
        "imc_area": areas.get("array"),
        "mem_area": areas.get("memories"),
    }
    yield from ((f"in-memory sum {what}", value, expected[what]) for what, value in ours.items() if what in expected)
    if "cycles_per_op" in expected:
        yield "cycles_per_op", record.cycles_per_operation, expected["cycles_per_op"]
    breakdowns = {
        "mac_energy_breakdown": record.energy_terms_pj,
        "tclk_breakdown": record.clock_breakdown_ns,
        "imc_area_breakdown": record.area_breakdown_mm2.get("array", {}),
        "mem_area_breakdown": record.area_breakdown_mm2.get("memories", {}),
    }
    for name, parts in breakdowns.items():
        for part, value in expected.get(name, {}).items():
            yield f"{name} {part}", parts.get(part, 0), value


def compare_flow(path: Path | str, hardware_directory: Path | str) -> ConformanceReport:
    """Search the best mapping of each layer in a flow file. Compare these mappings and the totals of the network with
    the reference.

    A flow file has one of two forms. The form `unique_layers` lists each distinct layer with the constraints on its
    mapping. The form `layers` names a workload file and a mapping file, in the folders `workload` and `mapping` beside
    the hardware folder.
    """
    flow = json.loads(Path(path).read_text())
    report = ConformanceReport(Path(path).name)
    directory = Path(hardware_directory)
    core = read_accelerator(directory / f"{flow['hardware']}.yaml").cores[0]
    options = SearchOptions(
        objective=flow["objective"],
        lpf_limit=flow["lpf_limit"],
        temporal_mapping_type=flow["temporal_mapping_type"],
        nb_spatial_mappings_generated=flow["nb_spatial_mappings"],
        enable_mix_spatial_mapping=flow["mixed_spatial_mapping"],
    )
    if "unique_layers" in flow:
        _compare_layers(report, flow, core, options)
    else:
        _compare_network(report, flow, core, options, directory.parent)
    return report


def _compare_network(
    report: ConformanceReport, flow: dict[str, Any], core: Core, options: SearchOptions, directory: Path
) -> None:
    """Map the whole network of a workload file. Compare each layer with the layer of the same name in the reference,
    and then the totals of the network.
    """
    workload = read_workload_yaml(directory / "workload" / f"{flow['workload']}.yaml")
    mapping = read_mapping(directory / "mapping" / f"{flow['mapping']}.yaml")
    options = replace(options, exploit_data_locality=bool(flow.get("inter_layer_locality", False)))
    mapped = map_workload(workload, core, mapping, options)
    records = {name: mapped.records[index] for name, index in mapped.summary["layer_index"]}
    for entry in flow["layers"]:
        name = entry["layer"]["name"]
        unrolling = ("spatial mapping", records[name].spatial_mapping, entry["spatial_mapping"])
        report.add(name, [unrolling, *_value_pairs(records[name], entry["result"])])
    energy, latency = mapped.summary[ENERGY_PJ], mapped.summary[LATENCY_CYCLES]
    _add_totals(report, flow, energy, latency)


def _add_totals(report: ConformanceReport, flow: dict[str, Any], energy: float, latency: float) -> None:
    theirs = flow["network_energy"], flow["network_latency"]
    report.add("network", [("network energy", energy, theirs[0]), ("network latency", latency, theirs[1])])


def _compare_layers(report: ConformanceReport, flow: dict[str, Any], core: Core, options: SearchOptions) -> None:
    """Search the best mapping of each distinct layer, and compare this mapping with the mapping of the reference. The
    totals of the network are sums in the order of its layers.
    """
    found = []
    for entry in flow["unique_layers"]:
        record = _search(entry, core, options)
        found.append(record)
        expected = entry.get("result")
        if record is None or expected is None:
            report.rejected += record is None and expected is None
            report.add(entry["layer"]["name"], [("outcome", record is not None, expected is not None)])
        else:
            report.add(entry["layer"]["name"], _value_pairs(record, expected))
    if "network_energy" in flow:
        in_order = [record for _, index in flow["layers"] if (record := found[index])]
        energy = sum(record.energy_pj for record in in_order)
        _add_totals(report, flow, energy, sum(record.latency_cycles for record in in_order))


def _search(entry: dict[str, Any], core: Core, options: SearchOptions) -> LayerRecord | None:
    spatial, hints, ordering, _ = entry["spatial_mapping_requested"]
    constraints = MappingConstraints(
        "reference",
        as_unrolling(spatial or {}),
        tuple((name, tuple(dimensions)) for name, dimensions in hints.items()),
        tuple(entry["layer"]["memory_operand_links"].items()),
        _ordering(ordering),
    )
    try:
        return map_layer(reference_layer(entry["layer"]), core, constraints, options)
    except MappingError:
        return None


def _ordering(text: str) -> tuple[TemporalOrderingEntry, ...]:
    """Constraint on the loop order, parsed from a text such as `[(D1, None), (K, 2)]`, which lists pairs (loop
    dimension, size). The size None stands for any size.
    """
    entries = []
    for pair in text.strip("[]").replace("(", "").split(")"):
        words = [word.strip() for word in pair.split(",") if word.strip()]
        if words:
            entries.append(TemporalOrderingEntry(words[0], None if words[1] == "None" else int(words[1])))
    return tuple(entries)


def reference_layer(entry: dict[str, Any]) -> Layer:
    """Layer that `entry` describes. `entry` is the value of a key `layer` in a points file or a flow file."""
    return Layer(
        name=entry["name"],
        operator_type=entry["type"],
        operand_dimensions=parse_equation(entry["equation"]),
        loop_sizes=tuple(zip(entry["loop_dims"], entry["loop_sizes"], strict=True)),
        relations=tuple(parse_relation(text) for text in entry["dimension_relations"]),
        precision_bits=tuple(entry["operand_precision"].items()),
        data_dimension_sizes=tuple(entry["pr_layer_dim_sizes"].items()),
        constant_operands=tuple(entry["constant_operands"]),
    )


def report_text(reports: Iterable[ConformanceReport]) -> str:
    """Text of the reports. A table has the numbers of points that are equal, close or different. Lines describe the
    different points, at most ten for each report.
    """
    lines = [
        f"{'set':<58}{'points':>8}{'equal':>8}{'close':>8}{'differ':>8}{'rejected':>10}{'not tried':>11}"
        "  worst difference"
    ]
    rows = list(reports)
    lines += [_row_text(row) for row in rows]
    total = ConformanceReport("total")
    for row in rows:
        for count in ("points", "equal", "close", "rejected", "not_tried"):
            setattr(total, count, getattr(total, count) + getattr(row, count))
        total.worst_relative_difference = max(total.worst_relative_difference, row.worst_relative_difference)
    lines.append(_row_text(total))
    lines.append(
        "equal: bit for bit; shares of memories and totals of networks within 1e-12, because the last bit of the "
        "reference's sums depends on its Python version"
    )
    lines.append("rejected: points that both tools refuse at the same stage; they count as equal")
    lines += [f"  {row.name} {mismatch}" for row in rows for mismatch in row.mismatches[:10]]
    return terminal_lines(lines)


def _row_text(row: ConformanceReport) -> str:
    differ = row.points - row.equal - row.close
    return (
        f"{row.name:<58}{row.points:>8}{row.equal:>8}{row.close:>8}{differ:>8}{row.rejected:>10}{row.not_tried:>11}"
        f"  {row.worst_relative_difference:.2e}"
    )
