"""Layers of a step as separate networks, whose inputs and outputs are in the off-chip memory.

Names are replaced by numbers, and each tensor is cropped to the part that the layer accesses. Layers that differ only
in names, or in the position of this part, therefore give equal networks.

A strategy determines how a layer is cut for several cores. TENSOR cuts a layer along its outputs: heads first, then
output columns. For a product with weights, TENSOR also tries a cut along the inputs, followed by a sum over cores
(column- and row-parallel; Shoeybi et al., Megatron-LM, arXiv 1909.08053). `row_parallel` makes this second cut and adds
the nodes that sum the partial results. DATA cuts along requests, and along the new tokens of each request. If the step
is the prompt of one request, DATA is sequence parallel. PIPELINE runs each layer on the core to which the block of the
layer is assigned.
"""

from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Mapping as TableOf
from dataclasses import dataclass, replace
from typing import NamedTuple

from tilewright.base.operator_groups import MAC_ARRAY, VECTOR_UNIT
from tilewright.mapping.constraints import DEFAULT, Mapping, MappingConstraints, TilingEntry
from tilewright.tokens.strategies import DATA, PIPELINE, TENSOR
from tilewright.workload.access import AxisIndex, IndexMap, TensorAccess, access_of_loops, index_range
from tilewright.workload.graph import Tensor, Workload, WorkloadNode
from tilewright.workload.layer import FINAL_OUTPUT, OUTPUT, Layer
from tilewright.workload.nests import NestOperand, nest_layer

NAME = "layer"
"""Name of the layer in a network of one layer, and prefix of the names of its parts."""
_REDUCED = "C"
"""Name of the reduction loop of matrix products."""
_ADD = "Add"


def layer_network(workload: Workload, node: WorkloadNode) -> Workload:
    """Network that contains only the layer of `node`, once, even if the workload repeats the node.

    Each operand reads a separate tensor. If the node stands for several nodes, such as the sums over blocks of keys,
    two operands could otherwise name the same tensor.
    """
    assert node.layer is not None
    places = [_Place(OUTPUT, node.index_maps[0].output.tensor)]
    places += [_Place(one.operand, one.input.tensor) for one in node.index_maps]
    places = list(dict.fromkeys(places))
    number = {place: f"t{index}" for index, place in enumerate(places)}
    crops = {place: _crop(node.index_maps, place, workload.tensor_of[place.tensor].shape) for place in places}
    tensors = []
    for place in places:
        tensor = workload.tensor_of[place.tensor]
        sizes = tuple(size for _, size in crops[place])
        tensors.append(Tensor(number[place], sizes, tensor.bits, is_constant=tensor.is_constant))

    def cropped(operand: str, access: TensorAccess) -> TensorAccess:
        place = _Place(operand, access.tensor)
        pairs = zip(access.axes, crops[place], strict=True)
        axes = tuple(AxisIndex(axis.terms, axis.offset - first) for axis, (first, _) in pairs)
        return TensorAccess(number[place], axes)

    own = tuple(
        replace(one, output=cropped(OUTPUT, one.output), input=cropped(one.operand, one.input))
        for one in node.index_maps
    )
    found = replace(
        node,
        node_id=0,
        name=NAME,
        layer=replace(node.layer, name=NAME),
        sources=(),
        is_network_output=True,
        origin="",
        inputs=tuple(dict.fromkeys(one.input.tensor for one in own)),
        outputs=tuple(dict.fromkeys(one.output.tensor for one in own)),
        index_maps=own,
        repeats=1,
    )
    return _network((found,), tensors)


class _Place(NamedTuple):
    """Tensor, with the operand that accesses it. The operand is '' for a tensor that is not an operand of the layer,
    such as a bias that is read at no cost.
    """

    operand: str
    tensor: str


def _crop(maps: Iterable[IndexMap], place: _Place, shape: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """Pair (first index, size) of the accessed range, for each axis of a tensor.

    `maps` describe the accesses. If an access reaches beyond the ends of an axis, the range is the whole axis.
    """
    ranges: list[list[tuple[int, int]]] = [[] for _ in shape]
    for one in maps:
        for operand, access in ((OUTPUT, one.output), (one.operand, one.input)):
            if (operand, access.tensor) == place:
                for number, axis in enumerate(access.axes):
                    ranges[number].append(index_range(axis, one.size_of))
    found = []
    for size, own in zip(shape, ranges, strict=True):
        first, last = min((low for low, _ in own), default=0), max((high for _, high in own), default=size - 1)
        found.append((first, last - first + 1) if first >= 0 and last < size else (0, size))
    return tuple(found)


def _network(nodes: tuple[WorkloadNode, ...], tensors: Iterable[Tensor]) -> Workload:
    """Network of `nodes`. The last node makes the output of the network."""
    tensors = tuple(tensors)
    made = {name for node in nodes for name in node.outputs}
    constants = {tensor.name for tensor in tensors if tensor.is_constant}
    read = dict.fromkeys(name for node in nodes for name in node.inputs)
    inputs = tuple(name for name in read if name not in made and name not in constants)
    return Workload(NAME, nodes, tensors, inputs, nodes[-1].outputs)


def row_parallel(network: Workload, count: int) -> Workload | None:
    """Network that computes one matrix product with weights by up to `count` smaller products. The product is cut along
    its input channels. Further nodes add the results of the smaller products.

    The outputs of the smaller products have the precision of partial sums. Each node that adds results adds two
    tensors, with one addition per element. Returns None if the layer is not a matrix product with weights, or if it has
    fewer than `count` input channels.
    """
    (node,) = network.nodes
    layer = node.layer
    assert layer is not None
    if node.unit != MAC_ARRAY or layer.size_of.get(_REDUCED, 1) < count or not layer.constant_operands:
        return None
    if not _only_reduces(node, layer):
        return None
    size = -(-layer.size_of[_REDUCED] // count)
    starts = range(0, layer.size_of[_REDUCED], size)
    output = network.tensor_of[node.outputs[0]]
    bits = layer.bits_of[OUTPUT]
    parts = [Tensor(f"part{place}", output.shape, bits) for place in range(len(starts))]
    nodes = [
        _product(node, part.name, place, start, min(size, layer.size_of[_REDUCED] - start))
        for place, (part, start) in enumerate(zip(parts, starts, strict=True))
    ]
    sums = [Tensor(f"sum{place}", output.shape, bits) for place in range(1, len(parts) - 1)]
    made, maker = parts[0], 0
    for place, other in enumerate(parts[1:], 1):
        target = output if place == len(parts) - 1 else sums[place - 1]
        nodes.append(_sum(len(nodes), (made, maker), (other, place), target, target is output))
        made, maker = target, nodes[-1].node_id
    return _network(tuple(nodes), (*network.tensors, *parts, *sums))


def _only_reduces(node: WorkloadNode, layer: Layer) -> bool:
    """True if the layer is a matrix product: the output has all loops except the reduction loop, and both operands have
    the reduction loop.
    """
    written = {name for axis in node.index_maps[0].output.axes for name, _ in axis.terms}
    moving = {name for name, size in layer.loop_sizes if size > 1}
    read = [one for one in node.index_maps if one.operand]
    has_loop = all(any(name == _REDUCED for axis in one.input.axes for name, _ in axis.terms) for one in read)
    return moving - written == {_REDUCED} and has_loop and len(read) == len(layer.input_operands)


def _product(node: WorkloadNode, target: str, place: int, start: int, size: int) -> WorkloadNode:
    """Node of part number `place` of a matrix product: the product over the input channels from `start` to `start +
    size` - 1.

    If the node of the whole product reads tensors that are not operands, only the first part reads these tensors.
    """
    assert node.layer is not None
    name = f"{NAME}.product{place}"
    loops = tuple((loop, size if loop == _REDUCED else length) for loop, length in node.layer.loop_sizes)
    sums = node.layer.bits_of[OUTPUT]
    precision = tuple((key, sums if key == FINAL_OUTPUT else bits) for key, bits in node.layer.precision_bits)
    maps = []
    for one in node.index_maps:
        if one.operand or not place:
            inner = tuple((loop, size if loop == _REDUCED else length) for loop, length in one.loops)
            output = replace(one.output, tensor=target)
            maps.append(replace(one, loops=inner, output=output, input=_shifted(one.input, start)))
    return replace(
        node,
        node_id=place,
        name=name,
        layer=replace(node.layer, name=name, loop_sizes=loops, precision_bits=precision),
        is_network_output=False,
        inputs=tuple(dict.fromkeys(one.input.tensor for one in maps)),
        outputs=(target,),
        index_maps=tuple(maps),
    )


def _shifted(access: TensorAccess, start: int) -> TensorAccess:
    axes = tuple(AxisIndex(axis.terms, axis.offset + start * dict(axis.terms).get(_REDUCED, 0)) for axis in access.axes)
    return replace(access, axes=axes)


def _sum(
    node_id: int, one: tuple[Tensor, int], other: tuple[Tensor, int], target: Tensor, is_last: bool
) -> WorkloadNode:
    """Node that adds two tensors elementwise and writes the sum to `target`. `one` and `other` are pairs (tensor, id of
    the node that makes the tensor). `is_last` is true if `target` is the output of the network.
    """
    name = f"{NAME}.sum{node_id}"
    names = ("D", "K") if len(target.shape) == 2 else tuple(f"D{axis}" for axis in range(len(target.shape)))
    loops = tuple(zip(names, target.shape, strict=True))
    given = {OUTPUT: target, "I": one[0], "W": other[0]}
    accesses = {key: access_of_loops(tensor.name, names) for key, tensor in given.items()}
    operands = {key: NestOperand(accesses[key], tensor.shape, tensor.bits) for key, tensor in given.items()}
    return WorkloadNode(
        node_id=node_id,
        name=name,
        operator_type=_ADD,
        layer=nest_layer(name, _ADD, loops, operands, target.bits),
        sources=(("W", other[1]), ("I", one[1])),
        is_network_output=is_last,
        unit=VECTOR_UNIT,
        origin_type=_ADD,
        status="modelled",
        inputs=(one[0].name, other[0].name),
        outputs=(target.name,),
        index_maps=tuple(IndexMap(loops, accesses[OUTPUT], accesses[key], key) for key in ("I", "W")),
    )


class Finer(NamedTuple):
    """Finer cut of the part of a layer that runs on one core: the number of pieces along output columns, and the number
    of pieces along rows (requests and tokens).
    """

    columns: int = 1
    rows: int = 1


PLAIN = Finer()
FINER = (PLAIN, Finer(4), Finer(2), Finer(1, 4), Finer(4, 4), Finer(16, 8))
"""Finer cuts that are tried for a core's part of a layer that needs a MAC array, such as a matrix product. If the part
is cut into pieces, the core can fetch the next piece while it computes the current piece. A piece can also fit into the
core's memory if the whole part does not.
"""
FINER_VECTORS = (PLAIN, Finer(4))
"""Finer cuts that are tried for a core's part of a layer that does not need a MAC array."""
FINER_BY_INPUTS = (PLAIN, Finer(4), Finer(16), Finer(64), Finer(16, 4), Finer(16, 16))
"""Finer cuts that are tried for one core's part of a matrix product whose input features are divided among cores."""
_COLUMNS = ("G", "H", "K")
"""Loops over heads (G, H) and output columns (K), in the order in which they are cut. All other output loops except
those in _ROWS are cut after these loops.
"""
_ROWS = ("B", "D")
"""Loops over requests and tokens."""


@dataclass(frozen=True)
class CutLayer:
    """Layer that is cut for several cores: the network after the cut, and the tiling of each node."""

    of: Workload
    """Network of the whole layer, before the cut."""
    network: Workload
    """Network after the cut. If the layer is cut along its inputs, this network has several products and the nodes that
    add their results. Otherwise, this network is the network in the field `of`, and only `mapping` describes the cut.
    """
    mapping: Mapping
    products: int = 0
    """Number of products if the layer is cut along its inputs; otherwise 0. The products are the first nodes of
    `network`.
    """


def cut_layers(network: Workload, entry: MappingConstraints, strategy: str, cores: int) -> Iterator[CutLayer]:
    """Distinct cuts of a layer for `cores` cores. `network` contains only this layer. The cut without finer pieces
    comes first.
    """
    (node,) = network.nodes
    plain = _for_any_core(entry)
    tilings = (tiles_of(node, strategy, cores, finer) for finer in finer_of(node))
    for loops in dict.fromkeys(tilings):
        yield CutLayer(network, network, Mapping((replace(plain, inter_core_tiling=loops),)))
    if strategy == TENSOR and cores > 1:
        yield from _by_inputs(network, plain, cores)


def finer_of(node: WorkloadNode) -> tuple[Finer, ...]:
    """Finer cuts that are tried for the part of a node that one core runs."""
    return FINER if node.unit == MAC_ARRAY else FINER_VECTORS


def _for_any_core(entry: MappingConstraints) -> MappingConstraints:
    """Copy of a mapping entry that applies to all layers. The copy has no tilings and no fixed allocation. If the entry
    fixes an allocation, the copy allows all cores of the allocation.
    """
    fixed = entry.core_allocation_is_fixed
    cores = entry.core_allocation
    return replace(
        entry,
        name=DEFAULT,
        core_allocation=tuple(sorted(set(cores))) if fixed else cores,
        core_allocation_is_fixed=False,
        intra_core_tiling=(),
        inter_core_tiling=(),
        layer_dimension_names=(),
    )


def _by_inputs(network: Workload, plain: MappingConstraints, cores: int) -> Iterator[CutLayer]:
    cut = row_parallel(network, cores)
    if cut is None:
        return
    products = [node for node in cut.nodes if node.unit == MAC_ARRAY]
    sums = [node for node in cut.nodes if node.unit != MAC_ARRAY]
    seen = set()
    for finer in FINER_BY_INPUTS:
        entries = [(node, tiles_of(node, TENSOR, 1, finer)) for node in products]
        entries += [(node, tiles_of(node, TENSOR, cores, finer)) for node in sums]
        named = tuple(replace(plain, name=node.name, inter_core_tiling=loops) for node, loops in entries)
        if named not in seen:
            seen.add(named)
            yield CutLayer(network, cut, Mapping((*named, plain)), len(products))


def tiles_of(node: WorkloadNode, strategy: str, cores: int, finer: Finer = PLAIN) -> tuple[TilingEntry, ...]:
    """Loops that cut a layer into one part per core, and each part into finer pieces.

    A small layer gives fewer parts than there are cores. Loops that divide the layer between cores come first, so that
    their indexes change fastest from one part to the next. Consecutive parts can therefore be assigned to the cores in
    turn.
    """
    assert node.layer is not None
    written = {name for axis in node.index_maps[0].output.axes for name, _ in axis.terms}
    names = [name for name, _ in node.layer.loop_sizes if name in written]
    rows = [name for name in _ROWS if name in names]
    first = [name for name in _COLUMNS if name in names]
    columns = [*first, *(name for name in names if name not in (*first, *rows))]
    sizes = node.layer.size_of
    if strategy == DATA:
        return (*_spread(rows, sizes, cores * finer.rows)[0], *_spread(columns, sizes, finer.columns)[0])
    if strategy == PIPELINE:
        cores = 1
    found, left = _spread(columns, sizes, cores * finer.columns)
    # A layer with too few columns is also cut along its rows between cores.
    more = min(left, cores) if left > 1 else 1
    return (*found, *_spread(rows, sizes, more * finer.rows)[0])


def _spread(names: Sequence[str], sizes: TableOf[str, int], parts: int) -> tuple[tuple[TilingEntry, ...], int]:
    """Pair (loops, factor). The loops make as many parts as possible, but at most `parts`. Dimensions that come first
    in `names` are cut first.

    The factor is `parts` / number of parts that the loops make, rounded up. The factor is 1 if the loops make all
    parts.
    """
    found, left = [], parts
    for place, name in enumerate(names):
        is_last = place == len(names) - 1
        size = sizes[name]
        tiles = min(size, left) if is_last else next(n for n in range(min(size, left), 0, -1) if left % n == 0)
        if tiles > 1:
            found.append(TilingEntry(name, tiles))
            left = -(-left // tiles)
    return tuple(found), left
