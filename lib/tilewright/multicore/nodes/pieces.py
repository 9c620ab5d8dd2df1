"""Pieces of data that are moved and stored as a whole; no two pieces share an element.

A tensor is cut along each axis wherever a tile of its producer ends, and wherever the needs of some CN begin or end.
Halos are then pieces that several CNs need, and the data on an edge of the CN graph are a set of pieces.

A piece moves as a whole, even if some of its elements are not needed. For example, if a CN needs only every second
element of a line (a stride larger than the window), the CN gets the whole line. Lines without needed elements do not
move.

A tensor has one grid of pieces or several grids. Readers can need disjoint parts of an axis, such as queries, keys and
values in one tensor. The needs of one reader should then not cut the part of another reader along the other axes. Each
part gets a separate grid if the separate grids together have at most half as many pieces as one common grid.
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
    """Part of a tensor with a separate grid of pieces. In the numbering of the pieces, the segment of the last axis
    changes fastest.
    """

    starts: tuple[Integers, ...]
    """[axis] First index of each segment of the axis."""
    sizes: Shape
    made_by: Producer | None
    """Producer of the tensor; None if the tensor comes from outside the network."""
    part: tuple[int, Flags] | None = None
    """Pair (axis, [index] whether the index belongs to this block); None if the block is the whole tensor."""

    def as_producer(self) -> Producer:
        """Producer with one CN for each piece of this block. With this producer, `flows` computes the pieces that
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
        """[axis][piece] Segment of the axis to which the piece belongs."""
        found = []
        for start in reversed(self.starts):
            found.append(piece % len(start))
            piece = piece // len(start)
        return found[::-1]

    def is_made(self, piece: Integers) -> Flags:
        """[piece] Whether some CN makes the piece. Parts of a tensor that no CN makes have no data."""
        made = np.ones(len(piece), dtype=bool)
        if self.made_by is not None:
            for start, owners, segment in zip(self.starts, self.made_by.owners, self.segments(piece), strict=True):
                if (owners.run_owner == NOBODY).any():
                    made &= owners.of_index[start[segment]] != NOBODY
        return made

    def bits_and_owner(self, piece: Integers, element_bits: int) -> tuple[Integers, Integers]:
        """Pair ([piece] size in bits, [piece] CN within the producer's layer, or OUTSIDE)."""
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
    """[segment] Length of the segment, in elements."""
    return np.append(start[1:], size) - start


def cutting(
    shape: Shape,
    element_bits: int,
    readers: tuple[tuple[tuple[Demand, ...], LayerGrid], ...],
    made_by: Producer | None,
) -> TensorPieces:
    """Pieces of a tensor that some reader needs, and the needs of each reader."""
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
    """Arrays (CN, piece) of all blocks, joined and sorted by CN."""
    cn, piece = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    order = np.argsort(cn, kind="stable")
    return cn[order], piece[order]


def _blocks(shape: Shape, demands: list[Demand], made_by: Producer | None) -> list[_Block]:
    """Blocks of a tensor: one grid of the whole tensor, or one grid for each part of an axis. Several grids are used if
    they have at most half as many pieces as the single grid.
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
    """Total number of cells in the grids of blocks, including cells that no reader needs."""
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
    """Blocks of the parts of an axis with different needs; no demand spans two blocks."""
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
    """Add a part of an axis to the block with the same segments along the other axes. Without such a block, the part
    becomes a new block.
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
    """First index of each segment of an axis. Segments begin where a tile of the producer or a need begins or ends."""
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
    """All pieces of a network, with the CNs that need each piece. Pieces that are neither needed nor outputs are left
    out.
    """

    bits: Integers
    """[piece] Size of the piece in bits"""
    producer: Integers
    """[piece] CN that produces the piece, or OUTSIDE"""
    tensor: Integers
    """[piece] Position of the piece's tensor in `tensors`; the pieces of a tensor are consecutive"""
    is_output: npt.NDArray[np.bool_]
    """[piece] Whether the piece leaves the network"""
    need_cn: Integers
    """[need] CN that needs the piece; the column is in ascending order"""
    need_piece: Integers
    """[need] Piece that is needed"""
    need_operand: SmallIntegers
    """[need] Position of the operand in the list of operands of the CN graph"""
    tensors: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class _Reader:
    """Reader of a tensor for one operand. The operand number OUTSIDE stands for data that leave the network."""

    operand: int
    first_cn: int
    grid: LayerGrid
    demands: tuple[Demand, ...]


@once_a_graph
def data_pieces(workload: Workload, graph: CnGraph, known: CutMemory | None = None) -> DataPieces:
    """Pieces of the network of a CN graph. `workload` must be the network from which `build_cn_graph` made the graph.
    `known` is a cache from other graphs of the same network, which saves time.
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
    """Readers by tensor, for all tensors that a layer makes or that come from outside."""
    readers: dict[str, list[_Reader]] = defaultdict(list)
    for node, cut, layer in zip(nodes, cuts, graph.layers, strict=True):
        for (operand, tensor), demands in known.needs(node, cut).items():
            readers[tensor].append(_Reader(graph.operands.index(operand), layer.first_cn, cut.grid, tuple(demands)))
    for tensor, demands in needs_of_outputs(known.network).items():
        readers[tensor].append(_Reader(OUTSIDE, 0, LayerGrid((), LayerTiling(-1)), tuple(demands)))
    return readers


def _producers(nodes: list[WorkloadNode], cuts: list[LayerCut], graph: CnGraph) -> dict[str, tuple[Producer, int]]:
    """Pair (producer of each tensor, first CN of its producing layer), both keyed by tensor."""
    producers: dict[str, tuple[Producer, int]] = {}
    for node, cut, layer in zip(nodes, cuts, graph.layers, strict=True):
        for place_of_map, made_by in cut.producers:
            producers.setdefault(node.index_maps[place_of_map].output.tensor, (made_by, layer.first_cn))
    return producers
