"""Results in the JSON layouts of zigzag-dse 3.9.1, including its fields for in-memory arrays.

A *complete* object has the outputs and inputs of one layer, or the sums over a network. A *simple* object has energy
and latency. docs/artifacts/report.md#exports lists the intended differences from the layouts of zigzag-dse. tilewright
does not read these files.

The area of an in-memory array is the area in the records. With the model `corrected`, this area includes all instances
of each memory (fault B15, docs/model.md).
"""

import json
import pickle
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Any

from tilewright.base.measures import AREA_MM2, ENERGY_PJ, LATENCY_CYCLES
from tilewright.cost.ledger import ACCESSES
from tilewright.cost.record import LayerRecord
from tilewright.hardware.core import DIRECTIONS, Core, Memory, OperationalArray
from tilewright.hardware.hierarchy import memory_hierarchy
from tilewright.results.records import Summary, layers_in_order
from tilewright.workload.layer import Layer

JsonObject = dict[str, Any]
COMPONENTS = (
    "local_bl_precharging",
    "dacs",
    "adcs",
    "mults",
    "analog_bl_addition",
    "adders_regular",
    "adders_pv",
    "accumulators",
)
"""Parts of the energy of operations, in the order of the reference (zigzag-dse). The reference lists the first part by
mistake; in tilewright, this part belongs to the energy for reading the cells.
"""


def with_in_memory_outputs(
    outputs: JsonObject,
    terms: Mapping[str, float],
    parts: Mapping[str, float],
    core_figures: Mapping[str, Any],
) -> JsonObject:
    """Outputs of a layer or a network, with additional groups of fields for in-memory arrays.

    `terms` has the energy terms in pJ, and `parts` has the parts of the latency in cycles. `core_figures` has the clock
    period in ns and the areas in mm2, each as a total and by component. The keys of `core_figures` are those of a
    record or a summary.
    """
    energy, latency = dict(outputs["energy"]), dict(outputs["latency"])
    energy["operational_energy_breakdown"] = {name: terms.get(name, 0.0) for name in COMPONENTS}
    latency["computation_breakdown"] = {
        "mac_computation": parts.get("ideal", 0) + parts.get("spatial_stall", 0),
        "memory_stalling": parts.get("temporal_stall", 0),
    }
    clock = {
        "tclk (ns)": core_figures["clock_period_ns"],
        "tclk_breakdown (ns)": dict(core_figures["clock_breakdown_ns"]),
    }
    area = core_figures["area_breakdown_mm2"]
    found = {
        "total_area": core_figures[AREA_MM2],
        # The colon is a part of the key in the reference.
        "total_area_breakdown:": {
            "imc_area": sum(area["array"].values()),
            "mem_area": sum(area["memories"].values()),
        },
        "total_area_breakdown_further": {
            "imc_area_breakdown": dict(area["array"]),
            "mem_area_breakdown": dict(area["memories"]),
        },
    }
    return {**outputs, "energy": energy, "latency": latency, "clock": clock, "area (mm^2)": found}


def in_memory_array(array: OperationalArray) -> JsonObject:
    """Array for in-memory computing as JSON values: its type, its parameters by name, and its sizes. The fields for the
    costs of one operational unit are left out.
    """
    unit = {"imc_type": array.kind.split()[0], **dict(array.parameters)}
    return {"operational_unit": unit, "dimensions": dict(array.dimensions)}


Levels = dict[str, list[dict[str, float]]]
"""Energies or numbers of accesses, by operand: a list with one table for each memory level. A table has one value for
each direction, by name of the direction.
"""
DIRECTION_NAMES = {"tl": "rd_out_to_low", "fl": "wr_in_by_low", "th": "rd_out_to_high", "fh": "wr_in_by_high"}
INDENT = 4
PICKLE_PROTOCOL = 5
COMPLETE, SIMPLE = "complete", "simple"


def complete_layer(record: LayerRecord, core: Core, layer: Layer | None = None, name: str = "") -> JsonObject:
    """Parts `outputs` and `inputs` of the file that zigzag-dse writes for one layer. `core` can be the complete core,
    even if the layer ran without some of its memories. `layer` gives the dimension relations, which are not in the
    record; without `layer`, the relations are null. `name` replaces the layer name of the record."""
    own_core = core_of_record(record, core)
    described = {
        "name": name or record.layer.name,
        "type": record.layer.operator_type,
        "equation": reference_equation(record),
        "equation_relations": _relations(layer) if layer is not None else None,
        "loop_dimensions": dict(record.layer.loop_sizes),
        "operand_precision": dict(record.layer.precision_bits),
        "user_spatial_mapping": _user_spatial_mapping(record, own_core),
        "memory_operand_links": dict(record.memory_operand_links),
    }
    memory = {
        "utilization": {operand: list(shares) for operand, shares in record.memory_utilization.items()},
        "word_accesses": _directions(record.word_accesses),
    }
    parts, terms = record.latency_breakdown_cycles, record.energy_terms_pj
    levels = record.energy_breakdown_pj
    outputs = {
        "memory": memory,
        "energy": _energy(record.energy_pj, terms, levels, level_energies(levels)),
        **_latency(parts, record.latency_cycles),
    }
    if record.clock_period_ns is not None:
        outputs = with_in_memory_outputs(outputs, terms, parts, vars(record))
    return {
        "outputs": outputs,
        "inputs": {
            "accelerator": _accelerator(own_core),
            "layer": described,
            "spatial_mapping": _loop_texts(_in_link_order(record, record.spatial_levels)),
            "temporal_mapping": _loop_texts(record.temporal_mapping),
        },
    }


def complete_network(
    records: Sequence[LayerRecord], summary: Summary | None, core: Core, layer_ids: Mapping[str, int] | None = None
) -> JsonObject:
    """Sums over all layers of a network, in the JSON layout that zigzag-dse uses for complete results
    (`overall_complete.json`). `layer_ids` has the node id of each layer, by layer name; without it, the layers are
    numbered from 0.

    Fields that cannot be summed (utilization of memories, mappings) are null.
    """
    layers = layers_in_order(records, summary)
    placed = [layer.record for layer in layers]
    parts: dict[str, float] = {}
    energies: Levels = {}
    words: Levels = {}
    energies_of: dict[str, list[float]] = {}
    total, terms = 0.0, {ACCESSES: 0.0}
    for record in placed:
        total += record.energy_pj
        for term, energy in record.energy_terms_pj.items():
            terms[term] = terms.get(term, 0.0) + energy
        for part, cycles in record.latency_breakdown_cycles.items():
            parts[part] = parts.get(part, 0) + cycles
        _add_levels(energies, record.energy_breakdown_pj)
        _add_levels(words, record.word_accesses)
        for operand, added in level_energies(record.energy_breakdown_pj).items():
            pairs = zip_longest(energies_of.get(operand, []), added, fillvalue=0)
            energies_of[operand] = [one + other for one, other in pairs]
    outputs = {
        "memory": {"utilization": None, "word_accesses": _directions(words)},
        "energy": _energy(total, terms, energies, energies_of),
        **_latency(parts, sum(record.latency_cycles for record in placed)),
    }
    if placed and placed[0].clock_period_ns is not None:
        outputs = with_in_memory_outputs(outputs, terms, parts, vars(placed[0]))
    return {
        "outputs": outputs,
        "inputs": {
            "accelerator": _accelerator(core),
            "layer": [layer_ids[layer.name] if layer_ids else place for place, layer in enumerate(layers)],
            "spatial_mapping": None,
            "temporal_mapping": None,
        },
    }


def simple_result(totals: LayerRecord | Summary) -> JsonObject:
    """Energy in pJ and latency in cycles, from the record of a layer or the summary of a network.

    For an in-memory array, the result also has the clock period in ns and the area in mm2.
    """
    known = vars(totals) if isinstance(totals, LayerRecord) else totals
    result = {"energy": known[ENERGY_PJ], "latency": known[LATENCY_CYCLES]}
    if known.get("clock_period_ns") is not None:
        result |= {"tclk (ns)": known["clock_period_ns"], "area": known[AREA_MM2]}
    return result


def complete_layers(
    records: Sequence[LayerRecord], summary: Summary | None, core: Core, layers: Mapping[str, Layer] | None = None
) -> dict[str, JsonObject]:
    """Content of `<layer>_complete.json` for each layer of a network, by layer name, in execution order."""
    known = layers or {}
    return {
        placed.name: complete_layer(placed.record, core, known.get(placed.name), placed.name)
        for placed in layers_in_order(records, summary)
    }


def json_text(value: Any) -> str:
    """Text of a JSON export, formatted as in zigzag-dse 3.9.1: four blanks per level, no newline at the end.

    Raises ValueError for NaN and infinities, which JSON does not have.
    """
    return json.dumps(value, ensure_ascii=False, allow_nan=False, indent=INDENT)


def pickle_bytes(values: Sequence[JsonObject]) -> bytes:
    """Pickled list of plain dicts. Equal lists give equal bytes."""
    # A pickle also records which strings are the same object in memory. After a copy, only the content matters.
    return pickle.dumps(json.loads(json_text(list(values))), protocol=PICKLE_PROTOCOL)


def export_file_name(name: str, form: str) -> str:
    """File name of a JSON export: `form` is COMPLETE or SIMPLE, `name` a layer name or OVERALL.

    Slashes of layer names become underscores.
    """
    return f"{name.replace('/', '_')}_{form}.json"


def reference_equation(record: LayerRecord) -> str:
    """Equation of a layer as in zigzag-dse 3.9.1, which writes `=` in place of `+=`."""
    return str(record.layer.equation).replace("+=", "=")


def core_of_record(record: LayerRecord, core: Core) -> Core:
    """Copy of `core` that has only the memories listed in `record`, with the operands and capacities in `record`."""
    used = record.memories
    memories = tuple(
        replace(memory, operands=tuple(used[memory.name].operands), size_bits=used[memory.name].size_bits)
        for memory in core.memories
        if memory.name in used
    )
    return core if memories == core.memories else replace(core, memories=memories)


def _energy(
    total: float,
    terms: Mapping[str, float],
    levels: Mapping[str, Sequence[Mapping[str, float]]],
    level_energies: Mapping[str, Sequence[float]],
) -> JsonObject:
    return {
        "energy_total": total,
        # The reference has only energy of accesses and of operations. Here, all other energy counts as operations.
        "operational_energy": sum(energy for term, energy in terms.items() if term != ACCESSES) or 0.0,
        "memory_energy": terms[ACCESSES],
        "memory_energy_breakdown_per_level": {operand: list(levels) for operand, levels in level_energies.items()},
        "memory_energy_breakdown_per_level_per_operand": _directions(levels),
    }


def level_energies(levels: Mapping[str, Sequence[Mapping[str, float]]]) -> dict[str, list[float]]:
    """Energy of each level, by operand.

    Reads and writes are added in the order of the reference (`CostModelEvaluation.calc_memory_energy_cost`), because
    the order decides the last digit.
    """
    return {
        operand: [(level["th"] + level["tl"]) + (level["fh"] + level["fl"]) for level in of_operand]
        for operand, of_operand in levels.items()
    }


def _latency(parts: Mapping[str, float], latency_cycles: float) -> JsonObject:
    """Objects under the keys `latency` and `spatial` of the object `outputs`. The off-loading cycles include the cycles
    to drain the array. A utilization is the number of ideal cycles divided by the number of actual cycles.
    """
    # A network without layers has no parts.
    ideal, spatial, stall, onloading = (
        parts.get(part, 0) for part in ("ideal", "spatial_stall", "temporal_stall", "onloading")
    )
    computing = ideal + spatial
    with_stalls = computing + stall
    with_onloading = with_stalls + onloading
    spans = (computing, with_stalls, with_onloading, latency_cycles)
    names = ("ideal", "stalls", "stalls_onloading", "stalls_onloading_offloading")
    return {
        "latency": {
            "data_onloading": onloading,
            "computation": with_stalls,
            "data_offloading": latency_cycles - with_onloading,
        },
        "spatial": {
            "mac_utilization": {name: ideal / span if span else 0.0 for name, span in zip(names, spans, strict=True)}
        },
    }


def _directions(levels: Mapping[str, Sequence[Mapping[str, float]]]) -> JsonObject:
    return {
        operand: [{name: level[direction] for direction, name in DIRECTION_NAMES.items()} for level in of_operand]
        for operand, of_operand in levels.items()
    }


def _add_levels(sums: Levels, levels: Mapping[str, Sequence[Mapping[str, float]]]) -> None:
    """Add the energies or the numbers of accesses of a record to `sums`, by operand and level. A level that is missing
    in the record or in `sums` counts as 0.
    """
    for operand, of_operand in levels.items():
        pairs = zip_longest(sums.get(operand, []), of_operand, fillvalue=dict.fromkeys(DIRECTIONS, 0))
        sums[operand] = [{d: one[d] + other[d] for d in DIRECTIONS} for one, other in pairs]


def _loop_texts(levels: Mapping[str, Sequence[Sequence[Sequence[Any]]]]) -> JsonObject:
    return {
        operand: [[f"({dimension}, {size})" for dimension, size in loops] for loops in of_operand]
        for operand, of_operand in levels.items()
    }


def _in_link_order(record: LayerRecord, table: Mapping[str, Any]) -> dict[str, Any]:
    linked = [operand for operand in record.memory_operand_links if operand in table]
    return {operand: table[operand] for operand in (*linked, *(o for o in table if o not in linked))}


def _relations(layer: Layer) -> list[str]:
    return [
        f"{relation.data_dimension} = " + " + ".join(f"{factor}*{dimension}" for dimension, factor in relation.terms)
        for relation in layer.relations
    ]


def _user_spatial_mapping(record: LayerRecord, core: Core) -> JsonObject:
    mapping = {dimension: dict(factors) for dimension, factors in record.spatial_mapping.items()}
    return mapping | {name: {} for name in core.operational_array.size_of if name not in mapping}


def _accelerator(core: Core) -> JsonObject:
    array = core.operational_array
    hierarchy = memory_hierarchy(core)
    texts = [_memory_text(memory, core) for memory in core.memories]
    levels = {operand: list(chain) for operand, chain in hierarchy.levels_of}
    return {
        "id": 0,
        "name": core.name,
        "operational_array": _array(array),
        "memory_hierarchy": [texts[index] for index in hierarchy.topological_order],
        "mem_hierarchy_dict": {operand: [texts[index] for index in chain] for operand, chain in levels.items()},
        "dataflows": _dataflows(core),
        **({"exclusive_dataflows": True} if core.exclusive_dataflows else {}),
        "mem_size_dict": {
            operand: [core.memories[index].size_bits for index in chain] for operand, chain in levels.items()
        },
        # The reference writes these four fields, but never fills them.
        "mem_r_bw_dict": {},
        "mem_w_bw_dict": {},
        "mem_r_bw_min_dict": {},
        "mem_w_bw_min_dict": {},
        "mem_sharing_list": _sharing(core, levels),
    }


def _array(array: OperationalArray) -> JsonObject:
    if array.is_in_memory:
        return in_memory_array(array)
    return {
        "operational_unit": {"energy_cost": array.unit_energy_pj, "area": array.unit_area_mm2},
        "dimensions": dict(array.dimensions),
        "systolic_dimensions": sorted(array.systolic_dimensions),
    }


def _memory_text(memory: Memory, core: Core) -> str:
    served = [name for name in core.operational_array.size_of if name in memory.served_dimensions]
    served_text = "{" + ", ".join(served) + "}" if served else "set()"
    operands = ", ".join(memory.operands)
    return f"MemoryLevel(instance={memory.name},operands=[{operands}], served_dimensions={served_text})"


def _dataflows(core: Core) -> Any:
    """Dataflows of a core as JSON value: a table for a single dataflow, as in the reference; a list of tables for
    several dataflows; None without dataflows.
    """
    tables = [{dimension: dict(factors) for dimension, factors in dataflow} for dataflow in core.dataflows]
    if len(tables) > 1:
        return tables
    return tables[0] if tables else None


def _sharing(core: Core, levels: Mapping[str, Sequence[int]]) -> list[dict[str, int]]:
    """Memories of a core that several operands share. Each memory has one table: operand -> level of the memory in the
    hierarchy of this operand.
    """
    found = []
    for chain in levels.values():
        for index in chain:
            level_of = {
                operand: sum(operand in lower.operands for lower in core.memories[:index])
                for operand in core.memories[index].operands
            }
            if len(level_of) > 1 and level_of not in found:
                found.append(level_of)
    return found
