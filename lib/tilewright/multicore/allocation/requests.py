"""The `core_allocation` of a mapping file as requests to the search, and back."""

from dataclasses import replace
from typing import Any

from tilewright.base.errors import InputError, Problem
from tilewright.base.json_values import JsonObject
from tilewright.hardware.system import MultiCoreAccelerator
from tilewright.mapping.constraints import WILDCARD, Mapping, MappingConstraints, TilingEntry
from tilewright.mapping.runnable import core_choice
from tilewright.mapping.words import ALL_TILES
from tilewright.mapping.yaml_writer import as_entry
from tilewright.multicore.allocation.space import LayerRequest
from tilewright.multicore.nodes.graph import CnGraph
from tilewright.multicore.nodes.tiling import dimension_names
from tilewright.workload.graph import Workload
from tilewright.workload.layer import Layer


def layer_requests(
    graph: CnGraph, workload: Workload, mapping: Mapping, accelerator: MultiCoreAccelerator
) -> tuple[LayerRequest, ...]:
    """A request for each layer of a CN graph; cores are columns, the places of ids in `accelerator.core_ids`.

    Fixed cores are those of the entry, one for each group or one for all; a layer that is not cut into groups may run
    on any of them.
    Else the request names the cores that may run the layer by entry, operator types and roles (`mapping.core_choice`).
    An id that no core has becomes a column that none has, so that the space of allocations says so. Raises InputError
    with each layer that none of its cores can run.
    """
    column = {core_id: place for place, core_id in enumerate(accelerator.core_ids)}
    node_of = {node.node_id: node for node in workload.nodes}
    requests = []
    problems = []
    for number, cn_layer in enumerate(graph.layers):
        node = node_of[cn_layer.node_id]
        assert node.layer is not None
        entry = mapping.constraints_for(node.layer)
        named = [column.get(core_id, len(column)) for core_id in entry.core_allocation]
        if entry.core_allocation_is_fixed:
            groups = cn_layer.tiling.group_count
            cores = tuple(named if groups > 1 else dict.fromkeys(named))
            if len(cores) == 1:
                cores *= groups
            requests.append(LayerRequest(number, cores, groups > 1 or len(cores) == 1))
            continue
        choice = core_choice(node, entry, accelerator)
        unknown = tuple(dict.fromkeys(place for place in named if place == len(column)))
        cores = (*(column[core_id] for core_id in choice.core_ids), *unknown)
        if not cores:
            why = "; ".join(f"core {core_id} {reason}" for core_id, reason in choice.reasons)
            problems.append(Problem(f"no core can run it ({why})", path=cn_layer.name))
        requests.append(LayerRequest(number, cores))
    if problems:
        raise InputError(problems)
    return tuple(requests)


def fixed_entries(
    cores_of: dict[int, list[int]], graph: CnGraph, workload: Workload, mapping: Mapping
) -> list[JsonObject]:
    """Entries of a mapping file that fix the cores of every layer, and behind them those of `mapping`.

    `cores_of` has the core ids of the groups of each layer. Each entry repeats what the original says for its layer,
    under the layer's name: an exact name goes before all other selectors; tilings say how the layer really is cut,
    since more tiles than a layer has are a slip in an entry for this layer alone. Raises InputError for layers of one
    name on different cores, which no mapping file can tell apart.
    """
    node_of = {node.node_id: node for node in workload.nodes}
    entries: dict[str, dict[str, Any]] = {}
    problems = []
    for number, cn_layer in enumerate(graph.layers):
        layer = node_of[cn_layer.node_id].layer
        assert layer is not None
        entry = as_entry(_tiled_as_it_is(layer, mapping.constraints_for(layer)))
        fixed = {"core_allocation": cores_of[number], "core_allocation_is_fixed": True}
        fixed_entry = {**entry, "name": layer.name, **fixed}
        if entries.setdefault(layer.name, fixed_entry) != fixed_entry:
            problems.append(Problem("two layers of this name run on different cores", path=layer.name))
    if problems:
        raise InputError(problems)
    others = [as_entry(entry) for entry in mapping.entries if entry.name not in entries]
    return [*entries.values(), *others]


def _tiled_as_it_is(layer: Layer, entry: MappingConstraints) -> MappingConstraints:
    """An entry with the loops that the layer has, none with more tiles than it has, and numbers in place of `*`."""
    names = dimension_names(layer, entry)

    def possible(loops: tuple[TilingEntry, ...]) -> tuple[TilingEntry, ...]:
        known = [loop for loop in loops if loop.dimension in names]
        return tuple(replace(loop, tiles=tiles(loop, layer.size_of[names[loop.dimension]])) for loop in known)

    def tiles(loop: TilingEntry, size: int) -> int | str:
        if loop.tiles == ALL_TILES:
            return ALL_TILES
        wanted = max(1, len(entry.core_allocation)) if loop.tiles == WILDCARD else int(loop.tiles)
        return min(wanted, size)

    return replace(
        entry,
        intra_core_tiling=possible(entry.intra_core_tiling),
        inter_core_tiling=possible(entry.inter_core_tiling),
    )
