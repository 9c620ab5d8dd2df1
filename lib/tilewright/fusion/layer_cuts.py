"""What follows from the outer loops of a layer: its grid, what its CNs need and how they make its outputs."""

from collections.abc import Hashable
from dataclasses import dataclass, fields
from operator import attrgetter
from typing import Any

from tilewright.fusion.axis_rows import AxisRows, access_rows
from tilewright.fusion.grid import LayerGrid
from tilewright.fusion.needs import Demand, NetworkTensors, demand_of_map
from tilewright.fusion.outer_loops import LayerTiling
from tilewright.fusion.producers import Producer, producer_of
from tilewright.workload.graph import WorkloadNode
from tilewright.workload.layer import Layer

_all_but_name = attrgetter(*[field.name for field in fields(Layer) if field.name != "name"])
_Relations = tuple[tuple[Any, ...], ...]
"""For each index map: all of it but names, and which of the outputs of the layer it writes."""


@dataclass(frozen=True, eq=False)
class LayerCut:
    """A layer that is cut; the same object for all layers of a network that differ in names of tensors only."""

    layer: Layer
    """The first of these layers."""
    relations: _Relations
    grid: LayerGrid
    demands: tuple[Demand, ...]
    """[index map] what the CNs need of the tensor that the map reads"""
    producers: tuple[tuple[int, Producer], ...]
    """(index map, how the CNs make the tensor that it writes): the first map of each tensor that the layer makes."""


def layer_cut(node: WorkloadNode, tiling: LayerTiling, network: NetworkTensors) -> LayerCut:
    """The layer of a node, cut by outer loops."""
    assert node.layer is not None
    layer, relations = node.layer, _relations(node, network)
    # Compared, not hashed, but for what tells most layers apart: that takes less time.
    cuts: list[LayerCut] = network.alike.once_for((tiling.loops, tiling.group_loops, layer.loop_sizes), list)
    for cut in cuts:
        if cut.relations == relations and _all_but_name(cut.layer) == _all_but_name(layer):
            return cut
    cuts.append(_layer_cut(node, relations, tiling, network))
    return cuts[-1]


def _relations(node: WorkloadNode, network: NetworkTensors) -> _Relations:
    shape_of = network.shape_of
    outputs = [index_map.output.tensor for index_map in node.index_maps]
    return tuple(
        [
            (
                *(index_map.output.axes, index_map.input.axes, index_map.loops, index_map.is_exact),
                *(shape_of[output], shape_of[index_map.input.tensor], outputs.index(output)),
            )
            for index_map, output in zip(node.index_maps, outputs, strict=True)
        ]
    )


def _layer_cut(node: WorkloadNode, relations: _Relations, tiling: LayerTiling, network: NetworkTensors) -> LayerCut:
    assert node.layer is not None
    alike, shape_of = network.alike, network.shape_of
    grid = alike.grid(node.layer.loop_sizes, tiling)
    demands = []
    written: dict[Hashable, list[AxisRows]] = {}
    producers: dict[str, tuple[int, Producer]] = {}
    for number, index_map in enumerate(node.index_maps):
        output, source = index_map.output, index_map.input.tensor
        key = output.tensor, output.axes, index_map.loops
        rows = written.get(key)
        if rows is None:
            rows = written[key] = access_rows(output, shape_of[output.tensor], index_map, grid, alike)
        if output.tensor not in producers:
            producers[output.tensor] = number, producer_of(rows, grid, alike)
        demands.append(demand_of_map(index_map, shape_of[source], rows, grid, alike))
    return LayerCut(node.layer, relations, grid, tuple(demands), tuple(producers.values()))
