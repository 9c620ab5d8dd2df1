"""Pieces of data: parts of tensors that are moved and stored as a whole.

No two pieces share an element. A tensor is cut along each axis at two kinds of positions: where a tile of its producer
ends, and where the needs of some CN begin or end. A halo is then a piece that several CNs need. The data on an edge of
the CN graph are a set of pieces.

A piece moves as a whole, even if some of its elements are not needed. For example, if a CN needs only every second
element of a line (a stride larger than the window), the CN gets the whole line. Lines without needed elements do not
move.

A tensor can have several grids of pieces, because readers can need disjoint parts of one axis. An example is a tensor
with queries, keys and values. In a common grid, cuts for the reader of the queries along other axes would also cut the
keys and the values. Therefore each part gets its own grid if these grids together have at most half as many pieces as a
common grid.
"""

import math
from collections import defaultdict
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from tilewright.multicore.nodes.axis_rows import NOBODY, owners_of_indices
from tilewright.multicore.nodes.cut_memory import CutMemory, TensorPieces
from tilewright.multicore.nodes.flows import NeedLink, flows
from tilewright.multicore.nodes.graph import CnGraph, SmallIntegers, once_a_graph
from tilewright.multicore.nodes.grid import Integers, LayerGrid
from tilewright.multicore.nodes.needs import Demand, LayerCut, Producer, layer_cuts, needs_of_outputs
from tilewright.multicore.nodes.tiling import LayerTiling
from tilewright.workload.access import Shape
from tilewright.workload.graph import Workload, WorkloadNode

OUTSIDE = -1
"""Producer number of pieces of constants and network inputs, which no CN produces."""
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class _Block:
    """Part of a tensor, or a whole tensor, that one grid divides into pieces. The grid divides each axis into segments.
    The pieces are numbered so that the segment of the last axis changes fastest.
    """

    starts: tuple[Integers, ...]
    """First index of each segment: one array for each axis."""
    sizes: Shape
    made_by: Producer | None
    """Producer of the tensor; None if the tensor comes from outside the network."""
    part: tuple[int, Flags] | None = None
    """Pair (axis, mask of the indices of this axis that belong to the block); None if the block is the whole tensor."""

    def as_producer(self) -> Producer:
        """Producer with one CN for each piece of this block. With this producer, `flows` computes which pieces the
        readers need.
        """
        owners = []
        stride = 1
        for axis, (start, size) in reversed(list(enumerate(zip(self.starts, self.sizes, strict=True)))):
            of_index = np.repeat(np.arange(len(start)) * stride, _lengths(start, size))
            if self.part is not None and self.part[0] == axis:
                of_index = np.where(self.part[1], of_index, NOBODY)
            owners.append(owners_of_indices(of_index))
            stride *= len(start)
        return Producer(LayerGrid((), LayerTiling(-1)), tuple(reversed(owners)))

    def segments(self, piece: Integers) -> list[Integers]:
        """Segments to which pieces belong: one array for each axis, with one entry for each piece."""
        found = []
        for start in reversed(self.starts):
            found.append(piece % len(start))
            piece = piece // len(start)
        return found[::-1]

    def is_made(self, piece: Integers) -> Flags:
        """True if the piece has data: some CN makes it, or the tensor comes from outside the network (one entry for
        each piece).
        """
        made = np.ones(len(piece), dtype=bool)
        if self.made_by is not None:
            for start, owners, segment in zip(self.starts, self.made_by.owners, self.segments(piece), strict=True):
                if (owners.run_owner == NOBODY).any():
                    made &= owners.of_index[start[segment]] != NOBODY
        return made

    def bits_and_owner(self, piece: Integers, element_bits: int) -> tuple[Integers, Integers]:
        """Pair (size of each piece in bits, producing CN of each piece as a number within its layer). The CN is OUTSIDE
        if no layer makes the tensor.
        """
        bits = np.full(len(piece), element_bits, np.int64)
        number = np.zeros(len(piece), np.int64)
        for axis, segment in enumerate(self.segments(piece)):
            start, size = self.starts[axis], self.sizes[axis]
            bits *= _lengths(start, size)[segment]
            if self.made_by is not None:
                number += self.made_by.owners[axis].of_index[start[segment]]
        if self.made_by is None:
            return bits, np.full(len(piece), OUTSIDE, np.int64)
        return bits, self.made_by.cns(number)


def _lengths(start: Integers, size: int) -> Integers:
    """Length of each segment, in elements."""
    return np.append(start[1:], size) - start


def cutting(
    shape: Shape,
    element_bits: int,
    readers: tuple[tuple[tuple[Demand, ...], LayerGrid], ...],
    made_by: Producer | None,
) -> TensorPieces:
    """Pieces of a tensor, and the needs of each reader. Pieces that no reader needs are left out."""
    bits: list[Integers] = []
    owner: list[Integers] = []
    needs: list[list[tuple[Integers, Integers]]] = [[] for _ in readers]
    count = 0
    for block in _blocks(shape, [demand for demands, _ in readers for demand in demands], made_by):
        as_producer = block.as_producer()
        found = []
        for demands, grid in readers:
            needed = flows([NeedLink(demands, as_producer, grid)])
            cn, piece = needed.target, needed.source
            made = block.is_made(piece)
            found.append((cn[made], piece[made]))
        used = np.unique(np.concatenate([piece for _, piece in found]))
        for its_needs, (cn, piece) in zip(needs, found, strict=True):
            its_needs.append((cn, np.searchsorted(used, piece) + count))
        for column, values in zip((bits, owner), block.bits_and_owner(used, element_bits), strict=True):
            column.append(values)
        count += len(used)
    return TensorPieces(np.concatenate(bits), np.concatenate(owner), tuple(_in_order(its_needs) for its_needs in needs))


def _in_order(parts: list[tuple[Integers, Integers]]) -> tuple[Integers, Integers]:
    """Pair of arrays (CN, piece): the pairs of arrays in `parts`, joined and sorted by CN."""
    cn, piece = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    order = np.argsort(cn, kind="stable")
    return cn[order], piece[order]


def _blocks(shape: Shape, demands: list[Demand], made_by: Producer | None) -> list[_Block]:
    """Blocks of a tensor: one grid of the whole tensor, or one grid for each part of an axis. The grids of the parts
    are used if together they have at most half as many pieces as the single grid.
    """
    starts = tuple(_segments(axis, size, demands, made_by) for axis, size in enumerate(shape))
    best = [_Block(starts, shape, made_by)]
    if sum(len(start) > 1 for start in starts) < 2 or len(demands) < 2:
        return best
    # Because of this limit, a last column that no CN needs (because of a stride) gets no separate grid.
    fewest = _cell_count(best) // 2 + 1
    partial = [demand for demand in demands if not _is_whole(demand, shape)]
    for axis in range(len(shape)):
        blocks = _blocks_along(axis, starts, shape, partial, made_by)
        if _cell_count(blocks) < fewest:
            best, fewest = blocks, _cell_count(blocks)
    return best


def _is_whole(demand: Demand, shape: Shape) -> bool:
    """True if every box of a demand is the whole tensor."""
    bounds = [demand.bounds(axis) for axis in range(len(shape))]
    return all(
        bool((first == 0).all() and (end == size).all()) for (first, end), size in zip(bounds, shape, strict=True)
    )


def _cell_count(blocks: list[_Block]) -> int:
    """Total number of pieces of `blocks`. Pieces that no reader needs are also counted."""
    count = 0
    for block in blocks:
        lengths = [len(start) for start in block.starts]
        if block.part is not None:
            axis, inside = block.part
            lengths[axis] = int(inside[block.starts[axis]].sum())
        count += math.prod(lengths)
    return count


def _blocks_along(
    axis: int, starts: tuple[Integers, ...], shape: Shape, demands: list[Demand], made_by: Producer | None
) -> list[_Block]:
    """Blocks of a tensor if `axis` is divided into parts. The parts are chosen so that no demand needs indices of two
    parts. Parts with the same segments along the other axes share a block.
    """
    hulls = sorted(
        (int(first.min()), int(end.max()), place)
        for place, (first, end) in enumerate(demand.bounds(axis) for demand in demands)
        if len(first)
    )
    parts: list[tuple[int, int, list[Demand]]] = []
    for first, end, place in hulls:
        if parts and first < parts[-1][1]:
            before = parts.pop()
            parts.append((before[0], max(before[1], end), [*before[2], demands[place]]))
        else:
            parts.append((first, end, [demands[place]]))
    blocks: dict[bytes, _Block] = {}
    rest = np.ones(shape[axis], dtype=bool)
    for first, end, members in parts:
        inside = np.zeros(shape[axis], dtype=bool)
        inside[first:end] = True
        rest &= ~inside
        _add_part(blocks, (axis, inside), starts, shape, members, made_by)
    if rest.any():
        _add_part(blocks, (axis, rest), starts, shape, [], made_by)
    return list(blocks.values())


def _add_part(
    blocks: dict[bytes, _Block],
    part: tuple[int, Flags],
    starts: tuple[Integers, ...],
    shape: Shape,
    demands: list[Demand],
    made_by: Producer | None,
) -> None:
    """Add a part of a tensor to `blocks`. `part` is a pair (axis, mask of the indices of this axis that belong to the
    part). Along all other axes, `demands` and `made_by` cut the part into segments. The part joins the block with the
    same segments or, if there is none, becomes a new block.
    """
    axis, inside = part
    own = tuple(
        starts[other] if other == axis else _segments(other, size, demands, made_by) for other, size in enumerate(shape)
    )
    key = b"/".join(start.tobytes() for start in own)
    known = blocks.get(key)
    if known is not None and known.part is not None:
        inside = inside | known.part[1]
    blocks[key] = _Block(own, shape, made_by, (axis, inside))


def _segments(axis: int, size: int, demands: list[Demand], made_by: Producer | None) -> Integers:
    """First index of each segment of one axis of a tensor. Segments begin at two kinds of indices: where a tile of the
    producer begins or ends, and where a box of `demands` begins or ends.
    """
    begins = np.zeros(size + 1, dtype=bool)
    begins[0] = True
    if made_by is not None:
        begins[made_by.owners[axis].run_start] = True
    for demand in demands:
        for bound in demand.bounds(axis):
            begins[bound] = True
    return np.flatnonzero(begins[:size]).astype(np.int64)


@dataclass(frozen=True, eq=False)
class DataPieces:
    """Pieces of all tensors of a network, with the CNs (computation nodes) that need each piece. A piece is a part of a
    tensor that is moved and stored as a whole. Only pieces that a CN needs, and pieces of network outputs, are
    included.
    """

    bits: Integers
    """Size of the piece in bits (one entry for each piece)"""
    producer: Integers
    """Computation node (CN) that produces the piece (one entry for each piece); OUTSIDE if the piece belongs to a
    constant or to a network input
    """
    tensor: Integers
    """Position, in `tensors`, of the tensor to which the piece belongs (one entry for each piece). The pieces of one
    tensor have consecutive numbers
    """
    is_output: npt.NDArray[np.bool_]
    """True if the piece leaves the network (one entry for each piece)"""
    need_cn: Integers
    """CN that needs the piece (one entry for each need, sorted by this column)"""
    need_piece: Integers
    """Piece that is needed (one entry for each need)"""
    need_operand: SmallIntegers
    """Position, in `operands` of the CN graph, of the operand for which the CN needs the piece (one entry for each
    need)
    """
    tensors: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class _Reader:
    """Reader of a tensor: a layer that reads the tensor for one of its operands, or the outside of the network. For the
    outside, `operand` is OUTSIDE.
    """

    operand: int
    first_cn: int
    grid: LayerGrid
    demands: tuple[Demand, ...]


@once_a_graph
def data_pieces(workload: Workload, graph: CnGraph, known: CutMemory | None = None) -> DataPieces:
    """Pieces of all tensors of a network. `graph` must be the CN graph that `build_cn_graph` made from `workload`.
    `known` is a cache that all graphs of one network can share; it saves time.
    """
    known = known or CutMemory(workload)
    nodes = [node for node in workload.nodes if node.layer is not None]
    cuts = layer_cuts(nodes, [layer.tiling for layer in graph.layers], known.network, known.cuts)
    readers = _readers(nodes, cuts, graph, known)
    producers = _producers(nodes, cuts, graph)
    nothing = np.zeros(0, np.int64)
    pieces: list[tuple[Integers, ...]] = [(nothing,) * 4]
    needs: list[tuple[Integers, ...]] = [(nothing,) * 2]
    operands: list[int] = [0]
    count = 0
    for number, (tensor, its_readers) in enumerate(readers.items()):
        made_by, first_cn = producers.get(tensor, (None, 0))
        demands = tuple((reader.demands, reader.grid) for reader in its_readers)
        element_bits = workload.tensor_of[tensor].bits
        given = known.network.shape_of[tensor], element_bits, demands, made_by
        cut = known.pieces(given, partial(cutting, *given))
        found = len(cut.bits)
        leaving = np.zeros(found, np.int64)
        for reader, (cn, piece) in zip(its_readers, cut.needs, strict=True):
            if reader.operand == OUTSIDE:
                leaving[piece] = 1
            else:
                needs.append((cn + reader.first_cn, piece + count))
                operands.append(reader.operand)
        owner = cut.producer if made_by is None else cut.producer + first_cn
        pieces.append((cut.bits, owner, np.full(found, number, np.int64), leaving))
        count += found
    bits, owner, tensor_of_piece, leaves = (np.concatenate(column) for column in zip(*pieces, strict=True))
    cn, piece = (np.concatenate(column) for column in zip(*needs, strict=True))
    operand = np.repeat(np.array(operands, np.int16), [len(cns) for cns, _ in needs])
    order = np.argsort(cn, kind="stable")
    return DataPieces(
        bits=bits,
        producer=owner,
        tensor=tensor_of_piece,
        is_output=leaves.astype(bool),
        need_cn=cn[order],
        need_piece=piece[order],
        need_operand=operand[order],
        tensors=tuple(readers),
    )


def _readers(
    nodes: list[WorkloadNode], cuts: list[LayerCut], graph: CnGraph, known: CutMemory
) -> dict[str, list[_Reader]]:
    """Tensor -> its readers: the layers that need data of the tensor and, for outputs of the network, the outside of
    the network.
    """
    readers: dict[str, list[_Reader]] = defaultdict(list)
    for node, cut, layer in zip(nodes, cuts, graph.layers, strict=True):
        for (operand, tensor), demands in known.needs(node, cut).items():
            readers[tensor].append(_Reader(graph.operands.index(operand), layer.first_cn, cut.grid, tuple(demands)))
    for tensor, demands in needs_of_outputs(known.network).items():
        readers[tensor].append(_Reader(OUTSIDE, 0, LayerGrid((), LayerTiling(-1)), tuple(demands)))
    return readers


def _producers(nodes: list[WorkloadNode], cuts: list[LayerCut], graph: CnGraph) -> dict[str, tuple[Producer, int]]:
    """Tensor -> pair (producer of the tensor, first CN of the layer that produces it)."""
    producers: dict[str, tuple[Producer, int]] = {}
    for node, cut, layer in zip(nodes, cuts, graph.layers, strict=True):
        for place_of_map, made_by in cut.producers:
            producers.setdefault(node.index_maps[place_of_map].output.tensor, (made_by, layer.first_cn))
    return producers
