"""Requests to the search for an allocation, made from `core_allocation` in a mapping file.

The module also makes mapping entries that fix the cores of an allocation that was found.
"""

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
    """Request for each layer of a CN graph. A request names cores by their positions in `accelerator.core_ids`. There
    are three cases:

    * The mapping entry fixes the cores, and the layer is cut into groups. The request has the core of each group. If
      the entry names only one core, all groups have this core.
    * The entry fixes the cores, and the layer is not cut into groups. The layer can run on any of the named cores.
    * The entry does not fix cores. The request has all cores that the entry, the operator types and the roles of cores
      allow (`mapping.core_choice`).

    An unknown core id becomes a position that no core has; `allocation_space` reports it as an error. Raises InputError
    that lists the layers that no allowed core can run.
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
            problems.append(Problem(f"no core can run the layer ({why})", path=cn_layer.name))
        requests.append(LayerRequest(number, cores))
    if problems:
        raise InputError(problems)
    return tuple(requests)


def fixed_entries(
    cores_of: dict[int, list[int]], graph: CnGraph, workload: Workload, mapping: Mapping
) -> list[JsonObject]:
    """Mapping entries that fix the cores of every layer, followed by the entries of `mapping` that no new entry
    replaces. `cores_of` has the core ids of each layer's groups, by the number of the layer.

    A new entry copies the entry of `mapping` that applies to its layer. Its name is the exact name of the layer,
    because an exact name takes precedence over all other selectors. Its tilings describe how the layer was actually
    cut, because an entry for a single layer must not ask for more tiles than the layer has.

    Raises InputError if layers of the same name run on different cores, because a mapping file cannot distinguish these
    layers.
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
    """Copy of a mapping entry with the loops that actually cut the layer: numbers replace `*`, and no number of tiles
    is above the size of its dimension.
    """
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
