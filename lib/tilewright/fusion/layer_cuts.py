"""Layers cut by their outer loops: what their tiles need and make, once for all layers that are alike."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, fields
from operator import attrgetter

from tilewright.fusion.axis_rows import access_rows
from tilewright.fusion.grid import LayerGrid
from tilewright.fusion.needs import Demand, NetworkTensors, Producer, demand_of_map, producer_of
from tilewright.fusion.tiling import LayerTiling
from tilewright.workload.access import Shape
from tilewright.workload.graph import WorkloadNode
from tilewright.workload.layer import Layer

_all_but_name = attrgetter(*[field.name for field in fields(Layer) if field.name != "name"])


@dataclass(frozen=True, eq=False)
class LayerCut:
    """A layer that is cut; the same object for all layers of a network that differ in names of tensors only."""

    node: WorkloadNode
    """The first of these layers."""
    grid: LayerGrid
    demands: tuple[Demand, ...]
    """[index map] what the CNs need of the tensor that the map reads"""
    producers: tuple[tuple[int, Producer], ...]
    """(index map, how the CNs make the tensor that it writes): the first map of each tensor that the layer makes."""


KnownCuts = dict[Hashable, list[LayerCut]]
"""Sizes of loops -> cuts of layers that have them."""


def layer_cuts(
    nodes: Sequence[WorkloadNode],
    tilings: Sequence[LayerTiling],
    network: NetworkTensors,
    with_sizes: KnownCuts | None = None,
) -> list[LayerCut]:
    """The layers of nodes, each cut by outer loops; new cuts are added to `with_sizes`, those of the same network."""
    # Compared, not hashed, but for what tells most layers apart: that takes less time.
    with_sizes = {} if with_sizes is None else with_sizes
    found = []
    for node, tiling in zip(nodes, tilings, strict=True):
        assert node.layer is not None
        known = with_sizes.setdefault(node.layer.loop_sizes, [])
        cut = next((cut for cut in known if _is_cut_alike(cut, node, tiling, network.shape_of)), None)
        if cut is None:
            cut = _layer_cut(node, tiling, network.shape_of)
            known.append(cut)
        found.append(cut)
    return found


def _is_cut_alike(cut: LayerCut, node: WorkloadNode, tiling: LayerTiling, shape_of: Mapping[str, Shape]) -> bool:
    own = cut.grid.tiling
    loops_are_equal = own.loops == tiling.loops and own.group_loops == tiling.group_loops
    return loops_are_equal and _are_alike(cut.node, node, shape_of)


def _are_alike(node: WorkloadNode, other: WorkloadNode, shape_of: Mapping[str, Shape]) -> bool:
    """Whether two layers differ in names only."""
    if len(node.index_maps) != len(other.index_maps) or _all_but_name(node.layer) != _all_but_name(other.layer):
        return False
    name_of: dict[str, str] = {}
    """Output of one layer -> that of the other."""
    for one, two in zip(node.index_maps, other.index_maps, strict=True):
        output, source = one.output, one.input
        if (
            (output.axes, source.axes, one.loops, one.is_exact)
            != (two.output.axes, two.input.axes, two.loops, two.is_exact)
            or shape_of[output.tensor] != shape_of[two.output.tensor]
            or shape_of[source.tensor] != shape_of[two.input.tensor]
            or name_of.setdefault(output.tensor, two.output.tensor) != two.output.tensor
        ):
            return False
    return len(set(name_of.values())) == len(name_of)


def _layer_cut(node: WorkloadNode, tiling: LayerTiling, shape_of: Mapping[str, Shape]) -> LayerCut:
    assert node.layer is not None
    grid = LayerGrid(node.layer.loop_sizes, tiling)
    demands = []
    producers: dict[str, tuple[int, Producer]] = {}
    for number, index_map in enumerate(node.index_maps):
        output, source = index_map.output, index_map.input.tensor
        rows = access_rows(output, shape_of[output.tensor], index_map, grid)
        if output.tensor not in producers:
            producers[output.tensor] = number, producer_of(rows, grid)
        demands.append(demand_of_map(index_map, shape_of[source], rows, grid))
    return LayerCut(node, grid, tuple(demands), tuple(producers.values()))
