"""Classes of computation nodes (CNs) with equal cost (docs/multi-core-model/node-costs.md)."""

from dataclasses import dataclass, replace

import numpy as np

from tilewright.mapping.constraints import Mapping, MappingConstraints
from tilewright.multicore.nodes.graph import CnGraph, once_a_graph
from tilewright.multicore.nodes.grid import Integers, LayerGrid
from tilewright.workload.graph import Workload, WorkloadNode

_STEPS = 4
"""Number of kinds of reduction steps. A step can take partial sums of an earlier step or not. It can leave partial sums
for a later step or not.
"""


@dataclass(frozen=True)
class CostClass:
    """CNs that have the same cost on each core, although their names and layers can differ."""

    shape: int
    """Position of the shape in `CnGraph.shapes`."""
    constraints: MappingConstraints
    """Constraints from the mapping file that affect the mapping within one core, without the name of the entry."""
    takes_partial_sums: bool
    """True if the CNs of this class continue a reduction that earlier CNs began, and therefore take partial sums."""
    leaves_partial_sums: bool
    """True if later CNs continue the reduction, so that the CNs of this class leave partial sums as results."""
    layers: tuple[int, ...]
    """Numbers of the layers in the graph that have CNs of this class. All these layers have the same operator type, so
    a core can run either all of them or none.
    """
    cn_count: int


@dataclass(frozen=True, eq=False)
class CostClasses:
    """All cost classes of a graph, in the order of their first CNs."""

    classes: tuple[CostClass, ...]
    of_cn: Integers
    """Position of the CN's cost class in `classes` (one entry for each CN)"""


@once_a_graph
def cost_classes(graph: CnGraph, workload: Workload, mapping: Mapping) -> CostClasses:
    """Cost classes of a graph.

    Two CNs belong to one class if they agree in four properties:

    * the shape;
    * the constraints in the mapping file that matter within one core;
    * the kind of reduction step;
    * the properties of the operator that decide which cores can run it.
    """
    node_of = {node.node_id: node for node in workload.nodes}
    kinds: dict[tuple[MappingConstraints, tuple[str, ...]], int] = {}
    parts = []
    for layer in graph.layers:
        node = node_of[layer.node_id]
        assert node.layer is not None
        what_runs_it = (node.operator_type, node.origin_type, node.unit)
        number = kinds.setdefault((on_one_core(mapping.constraints_for(node.layer)), what_runs_it), len(kinds))
        parts.append(number * _STEPS + _reduction_steps(node, layer.grid))
    kind = np.concatenate(parts) if parts else np.zeros(0, np.int64)
    key = kind * max(len(graph.shapes), 1) + graph.shape
    _, first, of_cn = np.unique(key, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    of_cn = rank[of_cn.reshape(-1)]
    layer_pairs = np.unique(of_cn * max(len(graph.layers), 1) + graph.cn_layer)
    layers_of: list[list[int]] = [[] for _ in order]
    for pair in layer_pairs.tolist():
        layers_of[pair // len(graph.layers)].append(pair % len(graph.layers))
    counts = np.bincount(of_cn, minlength=len(order)).tolist()
    constraints = [entry for entry, _ in kinds]
    classes = tuple(
        CostClass(
            int(graph.shape[cn]),
            constraints[int(kind[cn]) // _STEPS],
            bool(kind[cn] & 1),
            bool(kind[cn] & 2),
            tuple(layers_of[place]),
            counts[place],
        )
        for place, cn in enumerate(first[order])
    )
    return CostClasses(classes, of_cn)


def on_one_core(entry: MappingConstraints) -> MappingConstraints:
    """Copy of a mapping entry for use within one core: without its name, and without the keys that matter only between
    cores.
    """
    plain = MappingConstraints("")
    return replace(
        plain,
        spatial_mapping=entry.spatial_mapping,
        spatial_mapping_hint=entry.spatial_mapping_hint,
        memory_operand_links=entry.memory_operand_links,
        temporal_ordering=entry.temporal_ordering,
        level_boundaries=entry.level_boundaries,
        temporal_mapping_type=entry.temporal_mapping_type,
        access_same_data_considered_as_no_access=entry.access_same_data_considered_as_no_access,
    )


def _reduction_steps(node: WorkloadNode, grid: LayerGrid) -> Integers:
    """Kind of reduction step, as a number from 0 to 3 (one entry for each CN of the grid). The number is a sum: 1 if
    the CN takes partial sums of an earlier CN, plus 2 if the CN leaves partial sums for a later CN.
    """
    written = {name for index_map in node.index_maps for axis in index_map.output.axes for name, _ in axis.terms}
    steps = np.zeros(grid.cn_count, np.int64)
    for dimension in grid.tiled_dimensions:
        if dimension not in written:
            tile = grid.tile_of(dimension)
            steps |= (tile > 0) + 2 * (tile < grid.tiles[dimension].count - 1)
    return steps
