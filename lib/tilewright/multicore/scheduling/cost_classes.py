"""Classes of computation nodes that cost the same on every core (docs/multi-core-model.md#cost-of-a-node-on-a-core)."""

from dataclasses import dataclass, replace

import numpy as np

from tilewright.mapping.constraints import Mapping, MappingConstraints
from tilewright.multicore.nodes.graph import CnGraph, once_a_graph
from tilewright.multicore.nodes.grid import Integers, LayerGrid
from tilewright.workload.graph import Workload, WorkloadNode

_STEPS = 4
"""A step of a reduction goes on with partial sums or not, and leaves partial sums or not."""


@dataclass(frozen=True)
class CostClass:
    """CNs that pose the same problem to a core, whatever their names and layers."""

    shape: int
    """Place in `CnGraph.shapes`."""
    constraints: MappingConstraints
    """What the mapping file says that matters on one core; without a name."""
    takes_partial_sums: bool
    """Whether a CN before it has begun the reduction: it goes on with the partial sums of that one."""
    leaves_partial_sums: bool
    """Whether a CN after it goes on with the reduction: what it makes are partial sums."""
    layers: tuple[int, ...]
    """Numbers of the layers in the graph that have such CNs. A core can run all of them or none, by their operators."""
    cn_count: int


@dataclass(frozen=True, eq=False)
class CostClasses:
    """All classes of a graph, in the order of their first CNs."""

    classes: tuple[CostClass, ...]
    of_cn: Integers
    """[cn] place in `classes`"""


@once_a_graph
def cost_classes(graph: CnGraph, workload: Workload, mapping: Mapping) -> CostClasses:
    """The classes of a graph.

    CNs are of one class if their shapes are equal, the mapping file says the same for them, they are at the same kind
    of step of a reduction, and cores that can run the layer of one can run that of the other.
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
    """An entry of a mapping file without its name and without what only matters between cores."""
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
    """[cn] 1 if it takes partial sums, plus 2 if it leaves some."""
    written = {name for index_map in node.index_maps for axis in index_map.output.axes for name, _ in axis.terms}
    steps = np.zeros(grid.cn_count, np.int64)
    for dimension in grid.tiled_dimensions:
        if dimension not in written:
            tile = grid.tile_of(dimension)
            steps |= (tile > 0) + 2 * (tile < grid.tiles[dimension].count - 1)
    return steps
