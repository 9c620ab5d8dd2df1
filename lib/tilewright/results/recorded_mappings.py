"""Mappings of a run: their evaluation on the core of the run or on another core, and their export as a mapping file."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from tilewright.base.artifacts.codec import encode
from tilewright.base.errors import InputError, Label, MappingError, Problem, nearest_name
from tilewright.base.harmless import ended_lines
from tilewright.base.yamlfile import HarmlessDumper
from tilewright.cost.record import UNEVEN, LayerRecord
from tilewright.hardware.core import Core
from tilewright.mapping.constraints import MappingConstraints
from tilewright.mapping.yaml_reader import read_mapping
from tilewright.search.evaluate import evaluate_given, latency_given
from tilewright.search.options import SearchOptions
from tilewright.workload.graph import Workload
from tilewright.workload.layer import Layer

DEFAULT = "default"
Entry = dict[str, Any]


def mapping_entries(records: Sequence[LayerRecord], array_dimensions: Sequence[str] = ()) -> list[Entry]:
    """Entries of a mapping file as lists and dicts: one entry for each layer name, and `default`.

    An entry fixes the whole spatial mapping, the complete temporal ordering, and all other settings that affect the
    results of the run, except the cost model. Array dimensions that a mapping does not use are written without loops,
    so that no generator fills them later. Records of `evaluate` do not contain these dimensions; `array_dimensions`
    must then name them.

    Raises InputError for two cases that a mapping file cannot express: two layers of one name have different mappings,
    or a stage changed the core.
    """
    entries: dict[str, Entry] = {}
    problems = []
    for record in records:
        if record.core_is_changed:
            message = "a stage changed the core of this layer, which no mapping file can express"
            problems.append(Problem(message, path=record.layer.name))
        for name in record.names:
            entry = _entry(name, record, array_dimensions)
            if entries.setdefault(name, entry) != entry:
                problems.append(Problem("two layers of this name have different mappings", path=Label(name)))
    if problems:
        raise InputError(problems)
    if DEFAULT not in entries:
        entries[DEFAULT] = _default_entry(records)
    return list(entries.values())


def mapping_yaml(records: Sequence[LayerRecord], array_dimensions: Sequence[str] = ()) -> str:
    """Text of a mapping file with the entries of `mapping_entries`."""
    head = "# Made by tilewright from the mappings of a run; loops of temporal_ordering are innermost first.\n"
    models = " and ".join(dict.fromkeys(record.model for record in records if record.model))
    head += ended_lines([f"The run used model {models}: other models give other results."] if models else [], "# ")
    entries = [_with_flow_pairs(entry) for entry in mapping_entries(records, array_dimensions)]
    texts = [yaml.dump([entry], Dumper=_Dumper, sort_keys=False, width=1000) for entry in entries]
    return head + "\n".join(texts)


def _entry(name: str, record: LayerRecord, array_dimensions: Sequence[str]) -> Entry:
    known = array_dimensions or record.array_dimensions
    factors_of = {dimension: record.spatial_mapping.get(dimension, {}) for dimension in known}
    # The order of the record decides which factor is adjusted, so dimensions left out come last.
    factors_of = {**record.spatial_mapping, **{d: f for d, f in factors_of.items() if not f}}
    return {
        "name": name,
        "spatial_mapping": {
            array_dimension: [f"{dimension}, {factor}" for dimension, factor in factors.items()]
            for array_dimension, factors in factors_of.items()
        },
        "memory_operand_links": dict(record.memory_operand_links),
        # A loop of size 1 does nothing, and the dialect has no complete ordering with one.
        "temporal_ordering": [[dimension, size] for dimension, size in record.loop_order if size != 1],
        **_level_boundaries(record),
        **_reach(record),
        **_settings(record),
    }


def _settings(record: LayerRecord) -> Entry:
    """Search settings of a layer that differ from their defaults."""
    found: Entry = {}
    if record.temporal_mapping_type != UNEVEN:
        found["temporal_mapping_type"] = record.temporal_mapping_type
    if not record.access_same_data_considered_as_no_access:
        found["access_same_data_considered_as_no_access"] = False
    return found


def _level_boundaries(record: LayerRecord) -> Entry:
    """Part of an entry of a mapping file: the level boundaries of each operand. A boundary is the number of loops up to
    and including a memory level; loops with one iteration do not count.

    {} if the search did not choose the boundaries, or if all loops have one iteration.
    """
    given = record.level_boundaries
    sizes = [size for _, size in record.loop_order]
    if given is None or all(size == 1 for size in sizes):
        return {}
    return {
        "level_boundaries": {
            operand: _FlowPair(sum(size != 1 for size in sizes[:bound]) for bound in bounds)
            for operand, bounds in given.items()
        }
    }


def _reach(record: LayerRecord) -> Entry:
    """Field `memory_reach` of a layer's entry in a mapping file: the topmost memory that each operand of the layer
    uses, and, for each memory, the number of bits that data of other layers occupy while the layer runs. {} if the
    record does not limit the memories of the layer.
    """
    reach = record.memory_reach
    if reach is None:
        return {}
    # Empty tables are left out.
    return {"memory_reach": {key: table for key, table in encode(reach).items() if table}}


def _default_entry(records: Sequence[LayerRecord]) -> Entry:
    entry: Entry = {"name": DEFAULT}
    if records:
        entry["memory_operand_links"] = dict(records[0].memory_operand_links)
    return entry


class _FlowPair(list[Any]):
    """List that YAML writes on one line: a loop of a temporal ordering, or the level boundaries of an operand."""


class _Dumper(HarmlessDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


_Dumper.add_representer(
    _FlowPair, lambda dumper, pair: dumper.represent_sequence("tag:yaml.org,2002:seq", pair, flow_style=True)
)


def _with_flow_pairs(entry: Entry) -> Entry:
    if "temporal_ordering" not in entry:
        return entry
    return {**entry, "temporal_ordering": [_FlowPair(loop) for loop in entry["temporal_ordering"]]}


@dataclass(frozen=True, eq=False)
class RecordedMapping:
    """Mapping of a record: unrolling, loop order and all other settings that `tilewright export` writes."""

    record: LayerRecord
    layer: Layer
    given: MappingConstraints

    def on(self, core: Core) -> LayerRecord:
        """Layer record of the mapping on a core, as `tilewright evaluate` makes it. Raises MappingError if the mapping
        does not fit the core.
        """
        return evaluate_given(self.layer, core, self.given, SearchOptions(model=self.record.model))

    def latency_cycles_on(self, core: Core) -> float:
        """Latency in cycles of the mapping on a core. Raises MappingError if the mapping does not fit."""
        return latency_given(self.layer, core, self.given, SearchOptions(model=self.record.model))


def recorded_mappings(records: Sequence[LayerRecord], core: Core, network: Workload) -> tuple[RecordedMapping, ...]:
    """Mappings of `records`, in the same order. The records are those of a run of `network` on `core`.

    Raises InputError if the network does not have the layer of a record, or if a mapping does not fit `core`. Also
    raises InputError if the cost model computes other costs than the record has: then the input files are not those of
    the run, or a cost stage of a user computed the recorded costs. Also raises the errors of `mapping_entries`.
    """
    mapping = read_mapping(mapping_entries(records))
    layers = {node.layer.name: node.layer for node in network.nodes if node.layer is not None}
    problems, found = [], []
    for record in records:
        name = record.layer.name
        layer = layers.get(name)
        if layer is None:
            nearest = nearest_name(name, list(layers))
            problems.append(Problem("the workload has no such layer", path=name, nearest=nearest))
            continue
        one = RecordedMapping(record, layer, mapping.constraints_for(layer))
        if reason := _difference(one, core):
            problems.append(Problem(reason, path=Label(name)))
        found.append(one)
    if problems:
        raise InputError(problems)
    return tuple(found)


def _difference(recorded: RecordedMapping, core: Core) -> str:
    """Problem of a recorded mapping on `core`, as text: the mapping does not fit, or its costs differ from the recorded
    costs. '' if there is no problem.
    """
    record = recorded.record
    try:
        again = recorded.on(core)
    except MappingError as error:
        return f"the mapping of the run does not fit this hardware: {error}"
    if (again.energy_pj, again.latency_cycles) == (record.energy_pj, record.latency_cycles):
        return ""
    return (
        f"for this mapping, the cost model gives {again.energy_pj:.10g} pJ and {again.latency_cycles:.10g} cycles, but"
        f" the run has {record.energy_pj:.10g} pJ and {record.latency_cycles:.10g} cycles: the run used a cost stage of"
        " a user, or other input files"
    )
