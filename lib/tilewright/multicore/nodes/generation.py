"""Construction of the graph of computation nodes (CNs) from a tiling: CNs, reads from outside, and classes of CNs.

The CNs of a class have equal loop sizes, windows, relations and precisions. They can belong to different layers.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TypedDict

import numpy as np

from tilewright.base.errors import InputError, Problem
from tilewright.multicore.nodes.cut_memory import CutMemory, Needs
from tilewright.multicore.nodes.flows import DataLink, NeedLink, data_edges
from tilewright.multicore.nodes.graph import ORDERING, CnGraph, CnLayer, SmallIntegers, SourceTensor
from tilewright.multicore.nodes.grid import DimensionTiles, Integers, LayerGrid, sums
from tilewright.multicore.nodes.needs import (
    Demand,
    LayerCut,
    NetworkTensors,
    Producer,
    layer_cuts,
    needs_of_outputs,
    split_reductions,
    unknown_dependencies,
    whole_tensor,
)
from tilewright.multicore.nodes.tiling import LayerTiling, Tiling
from tilewright.workload.dependencies import Boxes
from tilewright.workload.graph import Workload, WorkloadNode
from tilewright.workload.layer import DimensionRelation, Layer


class ReadColumns(TypedDict):
    """Columns of a CN graph for the reads of constants and network inputs (tensors that no layer makes)."""

    sources: tuple[SourceTensor, ...]
    read_cn: Integers
    read_operand: SmallIntegers
    read_content: Integers
    content_source: Integers
    content_bits: Integers
    content_start: Integers
    content_bounds: Integers


class ReadTable:
    """Table of the reads of tensors that no layer makes. A read is a pair of a CN and a content that it reads. A
    content is a box of a tensor; all CNs that read this box share the content.
    """

    def __init__(self, workload: Workload, operands: tuple[str, ...]) -> None:
        self._workload = workload
        self._operands = operands
        self._demands: dict[str, list[Demand]] = {}
        self._reads: list[tuple[str, int, int, Integers, Integers]] = []
        """Reads of each demand, as tuples (tensor, number of the operand, first CN of the reading layer, CNs, entries).

        The last two elements are arrays with one value for each read. `CNs` has the number of the reading CN within the
        layer. `entries` has the index of the entry of the demand that this CN reads.
        """

    def add(self, operand: str, tensor: str, demand: Demand, reading: tuple[Integers, Integers], first_cn: int) -> None:
        """Add the reads that the CNs of a layer make from one tensor. `reading` is the result of `reading_cns`."""
        self._demands.setdefault(tensor, []).append(demand)
        self._reads.append((tensor, self._operands.index(operand), first_cn, *reading))

    def columns(self) -> ReadColumns:
        """Columns of the CN graph that describe the reads in this table. Reads are in the order of CNs, and contents
        are sorted by tensor and box.
        """
        none = np.zeros(0, np.int64)
        sources: list[SourceTensor] = []
        first_content: dict[str, int] = {}
        contents_of: dict[str, Iterator[Integers]] = {}
        """Tensor -> list with one array for each demand. The array has one value for each entry of the demand: the
        number of the content that the entry reads. Contents are numbered separately for each tensor.
        """
        bounds: list[Integers] = [none.reshape(0, 2)]
        counts: list[int] = []
        """Number of contents of each tensor, in the order of `sources`."""
        content_count = 0
        for tensor, demands in self._demands.items():
            known = self._workload.tensor_of[tensor]
            first_content[tensor] = content_count
            distinct, of_demands = _distinct_contents(demands)
            contents_of[tensor] = iter(of_demands)
            counts.append(len(distinct))
            bounds.append(distinct.reshape(-1, 2))
            content_count += counts[-1]
            sources.append(SourceTensor(tensor, known.shape, known.bits, known.is_constant))
        numbers: list[tuple[int, int, int]] = []
        cns: list[Integers] = [none]
        contents: list[Integers] = [none]
        for tensor, operand, first_cn, cn, entry in self._reads:
            numbers.append((first_cn, operand, first_content[tensor]))
            cns.append(cn)
            contents.append(next(contents_of[tensor])[entry])
        lengths = [len(cn) for cn in cns[1:]]
        first_cns, operands, first_contents = np.array(numbers, np.int64).reshape(-1, 3).T.repeat(lengths, axis=1)
        read_cn = np.concatenate(cns) + first_cns
        order = np.argsort(read_cn, kind="stable")
        start = np.zeros(content_count + 1, np.int64)
        ranks_and_bits = np.array([(len(source.shape), source.bits) for source in sources], np.int64).reshape(-1, 2)
        ranks, element_bits = ranks_and_bits.T.repeat(counts, axis=1)
        ranks.cumsum(out=start[1:])
        all_bounds = np.concatenate(bounds)
        return ReadColumns(
            sources=tuple(sources),
            read_cn=read_cn[order],
            read_operand=operands.astype(np.int16)[order],
            read_content=(np.concatenate(contents) + first_contents)[order],
            content_source=np.arange(len(sources)).repeat(counts),
            content_bits=element_bits * _element_counts(all_bounds, start),
            content_start=start,
            content_bounds=all_bounds,
        )


def reading_cns(demand: Demand, grid: LayerGrid) -> tuple[Integers, Integers]:
    """Reads of a demand as arrays (CN in the layer, entry of the demand): one element for each CN and each entry that
    the CN reads.
    """
    content_of_cn, _ = grid.combination_of(demand.dimensions)
    row = np.searchsorted(demand.content, content_of_cn)
    found = row < len(demand.content)
    found[found] = demand.content[row[found]] == content_of_cn[found]
    return np.flatnonzero(found).astype(np.int64), row[found]


def _element_counts(bounds: Integers, start: Integers) -> Integers:
    """Number of elements of the content's box (one entry for each content); 1 for a scalar, which has no axes."""
    counts = np.ones(len(start) - 1, np.int64)
    has_axes = start[1:] > start[:-1]
    if has_axes.any():
        counts[has_axes] = np.multiply.reduceat(bounds[:, 1] - bounds[:, 0], start[:-1][has_axes])
    return counts


def _distinct_contents(demands: Sequence[Demand]) -> tuple[Boxes, list[Integers]]:
    """Pair (distinct boxes in lexicographic order, positions). `positions` has an array for each demand: the position
    of the box of each entry among the distinct boxes.
    """
    boxes = [demand.boxes for demand in demands]
    distinct, number = _distinct(np.concatenate(boxes))
    return distinct, np.split(number, np.cumsum([len(part) for part in boxes[:-1]]))


def _distinct(boxes: Boxes) -> tuple[Boxes, Integers]:
    """Pair (distinct boxes in lexicographic order, position of each box among the distinct boxes)."""
    columns = boxes.reshape(len(boxes), -1)
    if not columns.shape[1] or len(boxes) < 2:
        return boxes[:1], np.zeros(len(boxes), np.int64)
    steps = columns[1:] - columns[:-1]
    if (steps >= 0).all() and steps.any(axis=1).all():  # already sorted and distinct, as usual
        return boxes, np.arange(len(boxes), dtype=np.int64)
    order = np.lexsort(columns.T[::-1])
    ordered = columns[order]
    is_new = np.append(True, (ordered[1:] != ordered[:-1]).any(axis=1))
    number = np.empty(len(boxes), np.int64)
    number[order] = np.cumsum(is_new) - 1
    return boxes[order[is_new]], number


_FIELDS = tuple(field.name for field in fields(Layer) if field.name != "name")
_KEPT = tuple(name for name in _FIELDS if name not in ("loop_sizes", "padding", "data_dimension_sizes"))
"""Names of fields that have the same value for a layer and for all its CNs."""


def shape_classes(layer: Layer, grid: LayerGrid) -> tuple[Integers, list[Layer]]:
    """Pair (class number of each CN, list with a layer for each class). CNs in one class have equal sizes. The layer of
    a class has the sizes of these CNs, and no name.

    CNs at a border and CNs inside can be in different classes, for two reasons: the tile at the border is smaller, or
    the input that the tile needs extends into the padding. In the layer of a class, `data_dimension_sizes` has the
    sizes of the input that a CN reads. Padding is not counted.
    """
    loops = {name: _tile_sizes(name, tiles) for name, tiles in grid.cut_tiles.items()}
    windows = {item.data_dimension: _window_sizes(layer, item, grid) for item in layer.relations}
    varying = tuple([sizes for sizes in (*loops.values(), *windows.values()) if sizes[0].kind_count > 1])
    classes = _classes(grid, varying)
    kept = {name: getattr(layer, name) for name in _KEPT}
    shapes = []
    for number in range(classes.count):
        loop_sizes = tuple((layer.size_of | _sizes_in_class(number, classes, loops)).items())
        data_sizes = tuple(_sizes_in_class(number, classes, windows).items())
        shapes.append(Layer("", loop_sizes=loop_sizes, data_dimension_sizes=data_sizes, **kept))
    return classes.of_cn, shapes


def _sizes_in_class(number: int, classes: "_Classes", by_tile: Mapping[str, "_Sizes"]) -> dict[str, int]:
    """Sizes of one CN of class `number`, by dimension. `by_tile` has the sizes of each dimension in all its tiles."""
    found = {}
    for dimension, sizes in by_tile.items():
        tiles = classes.tile.get(sizes)
        found[dimension] = sizes[0].sizes[tiles[number] if tiles else 0]
    return found


@dataclass(frozen=True, eq=False)
class _Lengths:
    """Sizes of a dimension, one for each tile or combination of tiles. Equal sizes have the same number in `kinds`."""

    sizes: tuple[int, ...]
    kinds: Integers
    """Position of the tile's size among the distinct sizes (one entry for each tile)"""
    kind_count: int


_Sizes = tuple[_Lengths, tuple[str, ...]]
"""Pair of the sizes of a dimension (one for each tile or combination of tiles) and the loop dimensions that are cut
into these tiles.
"""


@dataclass(frozen=True, eq=False)
class _Classes:
    """Classes of a layer's CNs. CNs of a class have equal sizes."""

    of_cn: Integers
    count: int
    tile: dict[_Sizes, list[int]]
    """Tiles of the first CN of each class: sizes of the tiles of one dimension -> list with one index for each class.
    The index selects the size of the CN from these sizes. Dimensions with only one size have no entry.
    """


def _classes(grid: LayerGrid, varying: tuple[_Sizes, ...]) -> _Classes:
    """Classes of the CNs of a grid, numbered in the order of their first CN. Two CNs are in one class if they have the
    same size in each element of `varying`.
    """
    if not varying:
        return _Classes(np.zeros(grid.cn_count, np.int64), 1, {})
    key = np.zeros(grid.cn_count, np.int64)
    tiles = [grid.combination_of(dimensions)[0] for _, dimensions in varying]
    for (lengths, _), tile in zip(varying, tiles, strict=True):
        key = key * lengths.kind_count + lengths.kinds[tile]
    examples, of_cn = _first_of_each(key)
    places = {sizes: tile[examples].tolist() for sizes, tile in zip(varying, tiles, strict=True)}
    return _Classes(of_cn, len(examples), places)


def _first_of_each(key: Integers) -> tuple[Integers, Integers]:
    """Pair (first CN of each class, class of each CN). CNs with the same value in `key` are in one class. Classes are
    ordered by their first CN.
    """
    _, first, number = np.unique(key, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty(len(first), np.int64)
    rank[order] = np.arange(len(first))
    return first[order], rank[number.reshape(-1)]


def _tile_sizes(name: str, tiles: DimensionTiles) -> _Sizes:
    return _lengths(tiles.lengths), (name,)


def _lengths(values: Integers) -> _Lengths:
    distinct, kinds = np.unique(values, return_inverse=True)
    return _Lengths(tuple(values.tolist()), kinds.reshape(-1), len(distinct))


def _window_sizes(layer: Layer, relation: DimensionRelation, grid: LayerGrid) -> _Sizes:
    """Pair (sizes of a data dimension such as input rows, loop dimensions on which these sizes depend).

    Only loop dimensions that are cut into tiles are listed. There is one size for each combination of tiles along these
    loop dimensions. Indices in the padding are not counted.
    """
    whole = _whole_size(layer, relation)
    cut = grid.cut_tiles
    dimensions = tuple([name for name, _ in relation.terms if name in cut])
    if not dimensions:
        return _lengths(np.array([whole])), ()
    first = last = -dict(layer.padding).get(relation.data_dimension, (0, 0))[0]
    terms = []
    for name, coefficient in relation.terms:
        if name in cut:
            terms.append((cut[name], coefficient))
        else:
            last += coefficient * (layer.size_of[name] - 1)
    return _windows(terms, first, last, whole), dimensions


def _windows(terms: list[tuple[DimensionTiles, int]], low: int, high: int, whole: int) -> _Lengths:
    """Sizes of the index ranges (windows) that CNs read along a data dimension. There is one size for each combination
    of tiles of the cut loops. The tile of the first loop changes slowest. Indices in the padding are not counted.

    `terms` has a pair (tiles, coefficient) for each cut loop. `low` and `high` are the first and the last index of the
    window if all cut loops are at 0. `whole` is the size of the data dimension without padding.
    """
    first, last = np.array([low]), np.array([high])
    for tiles, coefficient in terms:
        below, above = coefficient * tiles.start, coefficient * tiles.last
        first, last = sums(first, below), sums(last, above)
    return _lengths(np.maximum(np.minimum(last, whole - 1) - np.maximum(first, 0) + 1, 1))


def _whole_size(layer: Layer, relation: DimensionRelation) -> int:
    """Size of the data dimension without padding. The layer gives this size. If the layer does not give the size, it is
    computed from the loops and the padding.
    """
    for data_dimension, size in layer.data_dimension_sizes:
        if data_dimension == relation.data_dimension:
            return size
    reach = 1 + sum(coefficient * (layer.size_of[name] - 1) for name, coefficient in relation.terms)
    return max(1, reach - sum(dict(layer.padding).get(relation.data_dimension, (0, 0))))


@dataclass
class _Building:
    """CN graph under construction. Layers are added one by one."""

    network: NetworkTensors
    layers: tuple[CnLayer, ...]
    cuts: tuple[LayerCut, ...]
    """Cut of the layer (one entry for each layer)"""
    operands: tuple[str, ...]
    producers: dict[str, tuple[int, Producer]]
    """Tensor -> pair (number of the layer that makes the tensor, producer). The producer has the elements that each CN
    of this layer makes (`Producer`).
    """
    links: list[DataLink] = field(default_factory=list)
    """Links into the layers, in the order of the consuming layers."""

    def bits(self, tensor: str) -> int:
        return self.network.workload.tensor_of[tensor].bits


def build_cn_graph(workload: Workload, tiling: Tiling, known: CutMemory | None = None) -> CnGraph:
    """CN graph of a network that was read with its tensors (profile `corrected`).

    `known` is a cache of cuts of the same network, which saves time. Raises InputError in three cases: the network has
    no tensors, a layer is not in exactly one stack, or a reduction is split over cores.
    """
    nodes = [node for node in workload.nodes if node.layer is not None]
    _check(workload, nodes, tiling)
    known = known or CutMemory(workload)
    building = _start(nodes, tiling, known)
    reads = ReadTable(workload, building.operands)
    for number, node in enumerate(nodes):
        _connect(building, number, known.needs(node, building.cuts[number]), reads)
    shape, shapes = _shapes(building)
    group = _joined([cut.grid.groups for cut in building.cuts])
    first, second = _ordering_edges(building, group)
    along = data_edges(building.links, _outputs(building), building.layers, building.operands)
    target = np.concatenate([second, along.target])
    order = np.argsort(target, kind="stable")
    number_of = {node.node_id: number for number, node in enumerate(nodes)}
    none = np.zeros(len(first), np.int64)
    return CnGraph(
        network=workload.name,
        layers=building.layers,
        stacks=tuple([tuple([number_of[node_id] for node_id in stack]) for stack in tiling.stacks]),
        operands=building.operands,
        shapes=shapes,
        links=along.links,
        notices=(*tiling.notices, *unknown_dependencies(building.network)),
        group=group,
        shape=shape,
        output_bits=along.outside_bits[0],
        network_output_bits=along.outside_bits[1],
        edge_source=np.concatenate([first, along.source])[order],
        edge_target=target[order],
        edge_operand=np.concatenate([np.full(len(none), ORDERING, np.int16), along.operand])[order],
        edge_bits=np.concatenate([none, along.bits])[order],
        **reads.columns(),
    )


def _shapes(building: _Building) -> tuple[Integers, tuple[Layer, ...]]:
    """Pair (shape of each CN, as a number; layer of each shape). Shapes are numbered in the order in which layers first
    use them.
    """
    places: dict[Layer, int] = {}
    shape_of_cn: dict[LayerCut, Integers] = {}
    for cut in building.cuts:
        if cut not in shape_of_cn:
            assert cut.node.layer is not None
            classes, examples = shape_classes(cut.node.layer, cut.grid)
            numbers = [places.setdefault(example, len(places)) for example in examples]
            shape_of_cn[cut] = np.array(numbers)[classes]
    return _joined([shape_of_cn[cut] for cut in building.cuts]), tuple(places)


def _check(workload: Workload, nodes: list[WorkloadNode], tiling: Tiling) -> None:
    lacking = [node for node in nodes if not node.index_maps]
    if lacking or (nodes and not workload.tensors):
        message = "the layers do not describe the tensors between them; read the network with `model: corrected`"
        raise InputError([Problem(message, path=node.name) for node in lacking[:1]] or message)
    stacks_of = Counter([node_id for stack in tiling.stacks for node_id in stack])
    problems = [
        Problem(
            "must have a tiling and be in exactly one stack",
            path=node.name,
            value=f"in {stacks_of[node.node_id]} stacks",
        )
        for node in nodes
        if node.node_id not in tiling.of_node or stacks_of[node.node_id] != 1
    ]
    if problems:
        raise InputError(problems)


def _start(nodes: list[WorkloadNode], tiling: Tiling, known: CutMemory) -> _Building:
    stack_of = {node_id: stack for stack, members in enumerate(tiling.stacks) for node_id in members}
    tilings = [tiling.of_node[node.node_id] for node in nodes]
    cuts = layer_cuts(nodes, tilings, known.network, known.cuts)
    layers: list[CnLayer] = []
    operands: dict[str, None] = {}
    producers: dict[str, tuple[int, Producer]] = {}
    problems: list[Problem] = []
    first = 0
    for number, (node, layer_tiling, cut) in enumerate(zip(nodes, tilings, cuts, strict=True)):
        assert node.layer is not None
        count = cut.grid.cn_count
        place = (node.layer.loop_sizes, layer_tiling, first, count, stack_of[node.node_id], node.outputs)
        layers.append(CnLayer(node.node_id, node.name, node.operator_type, *place))
        first += count
        for index_map in node.index_maps:
            operands[index_map.operand] = None
        for place_of_map, producer in cut.producers:
            index_map = node.index_maps[place_of_map]
            producers.setdefault(index_map.output.tensor, (number, producer))
            if layer_tiling.group_loops:
                problems += split_reductions(node.name, index_map, producer)
    if problems:
        raise InputError(problems)
    return _Building(known.network, tuple(layers), tuple(cuts), tuple(operands), producers)


def _connect(building: _Building, number: int, needs: Needs, reads: ReadTable) -> None:
    """Add the edges into the CNs of a layer. Also add the CNs' reads of tensors that no layer makes."""
    layer, cut = building.layers[number], building.cuts[number]
    for (operand, tensor), demands in needs.items():
        made_by = building.producers.get(tensor)
        if made_by is None:
            for demand in demands:
                reads.add(operand, tensor, demand, reading_cns(demand, cut.grid), layer.first_cn)
            continue
        link = NeedLink(tuple(demands), made_by[1], cut.grid)
        building.links.append(DataLink(link, made_by[0], number, operand, tensor, building.bits(tensor)))


def _ordering_edges(building: _Building, group: Integers) -> tuple[Integers, Integers]:
    """Arrays (source, target) of ordering edges. An edge leads from a CN to the next CN of the same group and layer."""
    group_counts = np.array([cut.grid.tiling.group_count for cut in building.cuts])
    first_group = (group_counts.cumsum() - group_counts).repeat([layer.cn_count for layer in building.layers])
    # Groups use the smallest integer type that holds them, because 16-bit numbers are sorted in linear time.
    group_of_network = (group + first_group).astype(np.min_scalar_type(int(group_counts.sum())))
    order = np.argsort(group_of_network, kind="stable")
    same = group_of_network[order[1:]] == group_of_network[order[:-1]]
    return order[:-1][same], order[1:][same]


def _outputs(building: _Building) -> list[DataLink]:
    """Links from layers to the outside, which add bits to `outside_bits`. There are two kinds. A link for the final
    outputs of a layer adds to row 0. A link for the final outputs that leave the network adds to row 1.
    """
    outside = LayerGrid((), LayerTiling(-1))
    links = []
    for tensor, (number, producer) in building.producers.items():
        link = NeedLink((whole_tensor(tensor, building.network),), producer, outside)
        links.append(DataLink(link, number, 0, "", tensor, building.bits(tensor)))
    for tensor, demands in needs_of_outputs(building.network).items():
        if tensor in building.producers:
            number, producer = building.producers[tensor]
            link = NeedLink(tuple(demands), producer, outside)
            links.append(DataLink(link, number, 1, "", tensor, building.bits(tensor)))
    return links


def _joined(parts: Sequence[Integers]) -> Integers:
    return np.concatenate(parts) if parts else _none()


def _none() -> Integers:
    return np.zeros(0, np.int64)
