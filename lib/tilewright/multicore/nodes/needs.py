"""Elements of tensors that the tiles of a layer read (needs) and make.

Layers make tensors; other tensors come from outside or are constants. If a node only moves data, the needs of its
output are converted, box by box, to needs of its inputs.
"""

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from operator import attrgetter

import numpy as np
import numpy.typing as npt

from tilewright.base.errors import Problem
from tilewright.multicore.nodes.axis_rows import (
    AxisOwners,
    AxisRows,
    access_rows,
    owners_along,
    row_of_contents,
    shares_loops,
    whole_owners,
    whole_row,
)
from tilewright.multicore.nodes.grid import Integers, LayerGrid
from tilewright.multicore.nodes.tiling import LayerTiling
from tilewright.workload.access import AxisIndex, IndexMap, Shape, index_range
from tilewright.workload.dependencies import Boxes, input_boxes
from tilewright.workload.graph import UNSUPPORTED, Workload, WorkloadNode
from tilewright.workload.layer import Layer

_ONE_ROW = np.zeros(1, np.int64)


@dataclass(frozen=True, eq=False)
class Demand:
    """Elements of one tensor that the CNs of a layer need. The name of the tensor is stored elsewhere.

    A *content* is the set of elements for one combination of tiles along `dimensions`. All CNs with this combination
    need the same content. Each content that has elements is an *entry* of the demand.
    """

    dimensions: tuple[str, ...]
    """Dimensions of the layer along which tiles have different contents. Contents are numbered so that the tile of the
    first dimension changes slowest.
    """
    content: Integers
    """Index of the content (set of needed elements) of each entry. The indices ascend, and leave out contents without
    elements.
    """
    is_exact: bool
    """True if the elements are known exactly. Otherwise, the demand has bounding boxes of the elements."""
    axes: tuple[tuple[AxisRows, Integers], ...] | None = None
    """Pairs (rows, number of the row of each entry), one for each axis of the tensor. A row has the indices along the
    axis that one combination of tiles needs. Rows are exact even if there are gaps between the needed indices. The
    value is None if `moved_boxes` gives the needed elements, for example if the tensor reaches the layer through nodes
    that move data.
    """
    moved_boxes: Boxes | None = None
    """Boxes in place of `axes`; None if `axes` is given."""

    @cached_property
    def boxes(self) -> Boxes:
        """Boxes of the entries, limited to the tensor: array of shape (entries, axes, 2). The last axis has the first
        index and the index after the last one
        """
        if self.moved_boxes is not None:
            return self.moved_boxes
        assert self.axes is not None
        boxes = np.empty((len(self.content), len(self.axes), 2), np.int64)
        for axis, (rows, row_of_entry) in enumerate(self.axes):
            boxes[:, axis, 0], boxes[:, axis, 1] = rows.first[row_of_entry], rows.end[row_of_entry]
        return boxes

    @property
    def is_gapped(self) -> bool:
        """True if some boxes have gaps: the box contains indices that are not needed."""
        return self.axes is not None and any(rows.gapped is not None for rows, _ in self.axes)

    def bounds(self, axis: int) -> tuple[Integers, Integers]:
        """Ranges of the boxes along an axis, as arrays (first index, index after the last one). Their order is
        arbitrary, and ranges can be repeated.
        """
        if self.moved_boxes is not None:
            return self.moved_boxes[:, axis, 0], self.moved_boxes[:, axis, 1]
        return self._bounds_of_axes[axis]

    @cached_property
    def _bounds_of_axes(self) -> tuple[tuple[Integers, Integers], ...]:
        assert self.axes is not None
        found = []
        for rows, row_of_entry in self.axes:
            occurs = np.zeros(len(rows.first), dtype=bool)
            occurs[row_of_entry] = True
            found.append((rows.first[occurs], rows.end[occurs]))
        return tuple(found)


@dataclass(frozen=True)
class NetworkTensors:
    """Shapes of the tensors of a network, and the nodes that only move data."""

    workload: Workload
    mover: dict[str, WorkloadNode]
    """Tensor -> node that makes the tensor by only moving data. Constants and outputs of layers have no entry."""
    shape_of: dict[str, Shape]
    """Shape of each tensor, by its name."""


def network_tensors(workload: Workload) -> NetworkTensors:
    """Tensors of a network, with the nodes that move data."""
    constant = {tensor.name for tensor in workload.tensors if tensor.is_constant}
    mover = {
        name: node for node in workload.nodes if node.layer is None for name in node.outputs if name not in constant
    }
    return NetworkTensors(workload, mover, {tensor.name: tensor.shape for tensor in workload.tensors})


def unknown_dependencies(network: NetworkTensors) -> list[str]:
    """Messages about tensors with unknown dependences, and about outputs of the network with unknown size. A tensor
    that no node reads gets a message about dependences only if it is an output of the network. The graph has no edges
    for unknown dependences.
    """
    tensors = network.workload.tensor_of
    told = []
    unsupported = [node for node in network.workload.nodes if node.status == UNSUPPORTED]
    if unsupported:
        read = {name for node in network.workload.nodes for name in node.inputs} | set(network.workload.outputs)
    for node in unsupported:
        mapped = {index_map.output.tensor for index_map in node.index_maps}
        for name in node.outputs:
            is_constant = name in tensors and tensors[name].is_constant
            if name in read and name not in mapped and not is_constant:
                reason = f"{node.operator_type} is not modelled"
                told.append(f"{node.name}: the dependences of {name} are not known, because {reason}")
    told += [
        f"{name}: the size of this output is not known" for name in network.workload.outputs if name not in tensors
    ]
    return told


def needs_of_layer(
    node: WorkloadNode, demands: Sequence[Demand], network: NetworkTensors
) -> dict[tuple[str, str], list[Demand]]:
    """Demands of the CNs of a layer for source tensors: (operand of the layer, source tensor) -> demands. The operand
    is '' for an input that is not an operand of the layer, such as a bias.

    `demands` has one demand for each index map of the layer: the demand for the tensor that the index map reads. This
    tensor can be the output of a node that only moves data; its demand is then converted to demands for source tensors.
    """
    found: dict[tuple[str, str], list[Demand]] = {}
    for index_map, demand in zip(node.index_maps, demands, strict=True):
        tensor = index_map.input.tensor
        if tensor not in network.mover:
            found.setdefault((index_map.operand, tensor), []).append(demand)
            continue
        for source, needed in sources_of(tensor, demand, network):
            found.setdefault((index_map.operand, source), []).append(needed)
    return found


def needs_of_outputs(network: NetworkTensors) -> dict[str, list[Demand]]:
    """Demands for the outputs of the network, by source tensor. Each demand has one content, which is the whole output.
    Outputs of unknown size are left out.
    """
    found: dict[str, list[Demand]] = {}
    for output in network.workload.outputs:
        if output in network.workload.tensor_of:
            for source, needed in sources_of(output, whole_tensor(output, network), network):
                found.setdefault(source, []).append(needed)
    return found


def whole_tensor(tensor: str, network: NetworkTensors) -> Demand:
    """Demand for all elements of a tensor. The whole tensor is a single content."""
    axes = tuple((whole_row(0, size, size), _ONE_ROW) for size in network.shape_of[tensor])
    return Demand((), _ONE_ROW, True, axes)


def sources_of(tensor: str, demand: Demand, network: NetworkTensors) -> Iterator[tuple[str, Demand]]:
    """Pairs (source tensor, demand for this source tensor), one for each path from a source tensor to `tensor`. The
    nodes on these paths only move data. The demands are computed from `demand`, the demand for `tensor`. If `tensor`
    itself is a source tensor, the result is the single pair (`tensor`, `demand`).

    A source tensor is made by a layer, comes from outside the network, or is constant.
    """
    if tensor not in network.mover:
        yield tensor, demand
        return
    for index_map in network.mover[tensor].index_maps:
        if index_map.output.tensor != tensor:
            continue
        behind = _behind(index_map, demand, network.shape_of[tensor], network.shape_of[index_map.input.tensor])
        if len(behind.content):
            yield from sources_of(index_map.input.tensor, behind, network)


def _behind(index_map: IndexMap, demand: Demand, shape: Shape, input_shape: Shape) -> Demand:
    """Demand for the input of a node that moves data, computed from a demand for its output."""
    boxes, possible = input_boxes(index_map, demand.boxes, shape, input_shape)
    is_exact = (
        demand.is_exact
        and not demand.is_gapped
        and bool(possible.any())
        and _keeps_boxes(index_map, demand.boxes, boxes, shape, possible)
    )
    content, boxes = demand.content[possible], boxes[possible]
    if len(content) == 1:
        spans = zip(boxes[0].tolist(), input_shape, strict=True)
        axes = tuple((whole_row(first, end, size), _ONE_ROW) for (first, end), size in spans)
        return Demand(demand.dimensions, content, is_exact, axes)
    return Demand(demand.dimensions, content, is_exact, None, boxes)


def demand_of_map(index_map: IndexMap, shape: Shape, output_rows: Sequence[AxisRows], grid: LayerGrid) -> Demand:
    """Demand of the CNs of a grid for the tensor that an index map reads. `shape` is the shape of this tensor.
    `output_rows` has one `AxisRows` for each axis of the tensor that the map writes.
    """
    rows = access_rows(index_map.input, shape, index_map, grid)
    dimensions, content, row_of = _contents_of(grid, [row.dimensions for row in rows])
    if any(row.has_empty_rows for row in rows):
        filled = np.ones(len(content), dtype=bool)
        for row, place in zip(rows, row_of, strict=True):
            filled &= row.first[place] < row.end[place]
        content, row_of = content[filled], [place[filled] for place in row_of]
    # Loop values that write outside of the tensor need no input.
    is_cropped = any(row.is_clipped for row in output_rows)
    is_exact = index_map.is_exact and not is_cropped and not shares_loops(index_map.input, index_map)
    return Demand(dimensions, content, is_exact, tuple(zip(rows, row_of, strict=True)))


def _contents_of(
    grid: LayerGrid, cut_by: Sequence[tuple[str, ...]]
) -> tuple[tuple[str, ...], Integers, list[Integers]]:
    """Triple (dimensions, numbers of all contents, rows). A content is the set of elements that one combination of
    tiles needs. The contents differ only along the dimensions of the triple. `rows` has an array for each axis of the
    tensor, with one entry for each content: the row of the axis that has the indices of the content.

    `cut_by` has a tuple for each axis: the dimensions that cut the axis.
    """
    used = {dimension for own in cut_by for dimension in own}
    dimensions = tuple([dimension for dimension in grid.cut_tiles if dimension in used])
    counts = tuple([grid.cut_tiles[dimension].count for dimension in dimensions])
    content = np.arange(math.prod(counts), dtype=np.int64)
    return dimensions, content, [row_of_contents(own, dimensions, counts) for own in cut_by]


def _keeps_boxes(
    index_map: IndexMap, outputs: Boxes, inputs: Boxes, shape: Shape, possible: npt.NDArray[np.bool_]
) -> bool:
    """True if an exact demand stays exact when boxes of outputs are converted to boxes of inputs. This requires that
    every element of an input box is needed for the output box from which the input box was computed.

    The function recognizes two cases. In the first case, every axis follows at most one loop, with step 1 or -1. In the
    second case, as in a reshape, different output elements depend on different input elements, and both boxes have the
    same number of elements. `possible` marks the boxes with dependences; only these boxes are compared.
    """
    if not index_map.is_exact or shares_loops(index_map.input, index_map):
        return False
    every_axis = (*index_map.output.axes, *index_map.input.axes)
    if all(_follows_one_loop(axis, index_map) for axis in every_axis) and not shares_loops(index_map.output, index_map):
        return True
    if not _is_one_to_one(index_map):
        return False
    window = [index_range(axis, index_map.size_of) for axis in index_map.output.axes]
    if math.prod(last - first + 1 for first, last in window) != math.prod(size for _, size in index_map.loops):
        return False
    needed = np.ones(len(outputs), np.int64)
    for axis, ((first, last), size) in enumerate(zip(window, shape, strict=True)):
        start, end = (
            np.maximum(outputs[:, axis, 0], max(first, 0)),
            np.minimum(outputs[:, axis, 1], min(last + 1, size)),
        )
        needed *= np.maximum(end - start, 0)
    return bool((needed == np.prod(inputs[:, :, 1] - inputs[:, :, 0], axis=1))[possible].all())


def _follows_one_loop(axis: AxisIndex, index_map: IndexMap) -> bool:
    factors = [factor for name, factor in axis.terms if factor and index_map.size_of[name] > 1]
    return not factors or (len(factors) == 1 and abs(factors[0]) == 1)


def _is_one_to_one(index_map: IndexMap) -> bool:
    """True if different combinations of loop values certainly have different output elements and different input
    elements. A result of False is not certain.
    """
    for access in (index_map.output, index_map.input):
        used = {name for axis in access.axes for name, factor in axis.terms if factor}
        if shares_loops(access, index_map) or any(size > 1 and name not in used for name, size in index_map.loops):
            return False
        for axis in access.axes:
            reach = 1
            for factor, name in sorted((abs(factor), name) for name, factor in axis.terms if factor):
                if index_map.size_of[name] > 1 and factor < reach:
                    return False
                reach += factor * (index_map.size_of[name] - 1)
    return True


@dataclass(frozen=True, eq=False)
class Producer:
    """CNs of a layer that make a tensor, and the elements that each CN makes."""

    grid: LayerGrid
    owners: tuple[AxisOwners, ...]
    """Owners of the indices along each axis of the tensor (one entry for each axis). The owner of an index is the tile
    that makes the index. The tile is given by a number: its contribution to the number of its CN. The number of a CN is
    the sum of the contributions along all axes, plus `last_step`.
    """
    last_step: int = 0
    """Part of the number of a CN: the sum of the contributions of the last tile along each reduction dimension. Only
    CNs with these tiles have final values.
    """
    is_exact: bool = True
    """True if no two tiles of output dimensions contribute to the same element. In a transposed convolution, two tiles
    can contribute to one element. Tiles along reduction dimensions are not considered.
    """
    unsplittable: tuple[str, ...] = ()
    """Dimensions whose tiles contribute to the same elements. These tiles must be in one group."""

    def cns(self, owner: Integers) -> Integers:
        """Number of the CN that makes each of several elements. `owner` has one value for each element: the sum of the
        owners along all axes.
        """
        return self.grid.cn_of(owner + self.last_step)


def producer_of(rows: Sequence[AxisRows], grid: LayerGrid) -> Producer:
    """Producer of one output of a layer. `rows` has one `AxisRows` for each axis of the output."""
    owners: list[AxisOwners] = []
    shared: list[str] = []
    written: list[str] = []
    for row in rows:
        if row.only is not None:
            owners.append(whole_owners(*row.only, row.size))
            continue
        made, together = owners_along(row)
        owners.append(made)
        written += row.dimensions
        if together:
            shared += row.dimensions
    reduced = [dimension for dimension in grid.cut_tiles if dimension not in written]
    last_step = sum([int(grid.cut_tiles[dimension].number.max()) for dimension in reduced])
    return Producer(grid, tuple(owners), last_step, not shared, (*reduced, *shared))


SPLIT_REDUCTION = "a reduction cannot be split over cores without the key `reduction`, which says how parts are added"
"""Message on a loop over cores that cuts a reduction."""


def split_reductions(name: str, index_map: IndexMap, producer: Producer) -> list[Problem]:
    """Problems of the layer called `name`, one for each loop over cores that would split a reduction.

    All steps of a reduction must run on one core. Therefore the steps, and all tiles that contribute to the same
    elements, must be in one group.
    """
    if not producer.unsplittable:
        return []
    grid = producer.grid
    problems = []
    for place in grid.tiling.group_loops:
        dimension = grid.loops[place].dimension
        if dimension in producer.unsplittable:
            kept = _kept(index_map) - set(producer.unsplittable)
            allowed = ", ".join(name for name, _ in index_map.loops if name in kept)
            problems.append(Problem(SPLIT_REDUCTION, path=name, value=dimension, allowed=allowed))
    return problems


def _kept(index_map: IndexMap) -> set[str]:
    return {name for axis in index_map.output.axes for name, _ in axis.terms}


_all_but_name = attrgetter(*[field.name for field in fields(Layer) if field.name != "name"])


@dataclass(frozen=True, eq=False)
class LayerCut:
    """Layer with its cut into CNs. One object serves all layers of a network that differ only in the names of
    tensors.
    """

    node: WorkloadNode
    """First node of the network that uses this object."""
    grid: LayerGrid
    demands: tuple[Demand, ...]
    """Demand of the CNs for the tensor that the index map reads (one entry for each index map)"""
    producers: tuple[tuple[int, Producer], ...]
    """Pairs (number of an index map, producer of the tensor that the map writes). If several maps write a tensor, only
    the first one is listed.
    """


KnownCuts = dict[Hashable, list[LayerCut]]
"""(Loop sizes, loops and group loops of a tiling) -> cuts of layers that have these sizes and loops."""


def layer_cuts(
    nodes: Sequence[WorkloadNode],
    tilings: Sequence[LayerTiling],
    network: NetworkTensors,
    known_cuts: KnownCuts | None = None,
) -> list[LayerCut]:
    """Cuts of layers into CNs by the outer loops in `tilings`, one for each node in `nodes`. New cuts are added to
    `known_cuts`, a cache of cuts of the same network.
    """
    # To save time, only the sizes and loops, which distinguish most cuts, are hashed; the other fields are compared.
    known_cuts = {} if known_cuts is None else known_cuts
    found = []
    for node, tiling in zip(nodes, tilings, strict=True):
        assert node.layer is not None
        known = known_cuts.setdefault((node.layer.loop_sizes, tiling.loops, tiling.group_loops), [])
        cut = next((cut for cut in known if _are_alike(cut.node, node, network.shape_of)), None)
        if cut is None:
            cut = _layer_cut(node, tiling, network.shape_of)
            known.append(cut)
        found.append(cut)
    return found


def _are_alike(node: WorkloadNode, other: WorkloadNode, shape_of: Mapping[str, Shape]) -> bool:
    """True if two layers are equal except for names."""
    if len(node.index_maps) != len(other.index_maps) or _all_but_name(node.layer) != _all_but_name(other.layer):
        return False
    name_of: dict[str, str] = {}
    """Output tensor of `node` -> corresponding output tensor of `other`."""
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
