"""Data cut into pieces that move and are stored as a whole: no two share an element.

A tensor is cut along each axis wherever a tile of its producer ends or what some CN needs begins or ends. Halos are
then pieces of their own that several CNs need, and what an edge of the CN graph carries is the sum of its pieces.
Where a CN needs only every second element of a line (a stride larger than the window), it gets the line whole: a
piece of which anything is needed moves with its gaps. Lines of which nothing is needed do not.
"""

from collections import defaultdict
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tilewright.fusion.axis_join import NOBODY, AxisOwners
from tilewright.fusion.axis_rows import whole_owners
from tilewright.fusion.graph import CnGraph, SmallIntegers
from tilewright.fusion.grid import Integers, LayerGrid
from tilewright.fusion.links import Producer, flow, producer_of
from tilewright.fusion.needs import Demand, NetworkTensors, needs_of_layer, needs_of_output, network_tensors
from tilewright.fusion.outer_loops import LayerTiling
from tilewright.workload.graph import Workload

OUTSIDE = -1
"""Producer of constants and network inputs."""


@dataclass(frozen=True, eq=False)
class DataPieces:
    """All pieces of a network, and who needs which. Pieces that nobody needs and that do not leave are left out."""

    bits: Integers
    """[piece]"""
    producer: Integers
    """[piece] CN, or OUTSIDE"""
    tensor: Integers
    """[piece] place in `tensors`; the pieces of a tensor follow one another"""
    is_output: npt.NDArray[np.bool_]
    """[piece] leaves the network"""
    need_cn: Integers
    """[need] CN; ascending"""
    need_piece: Integers
    """[need]"""
    need_operand: SmallIntegers
    """[need] place in the operands of the CN graph"""
    tensors: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class _Reader:
    """Who needs a tensor for an operand; operand OUTSIDE is what leaves the network."""

    operand: int
    first_cn: int
    grid: LayerGrid
    demands: tuple[Demand, ...]


@dataclass(frozen=True, eq=False)
class _Cutting:
    """The pieces of one tensor, numbered from 0, as layers that are cut alike share them."""

    bits: Integers
    """[piece]"""
    producer: Integers
    """[piece] CN of the producer's layer, or OUTSIDE"""
    needs: tuple[tuple[Integers, Integers], ...]
    """[reader] (CN of its layer, piece)"""


def data_pieces(workload: Workload, graph: CnGraph) -> DataPieces:
    """The pieces of the network of a CN graph that `build_cn_graph` made of the same workload."""
    network = network_tensors(workload)
    readers = _readers(workload, graph, network)
    producers = _producers(workload, graph, network)
    nothing = np.zeros(0, np.int64)
    pieces: list[tuple[Integers, ...]] = [(nothing,) * 4]
    needs: list[tuple[Integers, ...]] = [(nothing,) * 2]
    operands: list[int] = [0]
    count = 0
    for number, (tensor, its_readers) in enumerate(readers.items()):
        made_by, first_cn = producers.get(tensor, (None, 0))
        demands = tuple((reader.demands, reader.grid) for reader in its_readers)
        element_bits = workload.tensor_of[tensor].bits
        cutting = network.alike.once(_cutting, network.shape(tensor), element_bits, demands, made_by)
        found = len(cutting.bits)
        leaving = np.zeros(found, np.int64)
        for reader, (cn, piece) in zip(its_readers, cutting.needs, strict=True):
            if reader.operand == OUTSIDE:
                leaving[piece] = 1
            else:
                needs.append((cn + reader.first_cn, piece + count))
                operands.append(reader.operand)
        owner = cutting.producer if made_by is None else cutting.producer + first_cn
        pieces.append((cutting.bits, owner, np.full(found, number, np.int64), leaving))
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


@dataclass(frozen=True, eq=False)
class _Cut:
    """A tensor in a grid of pieces, numbered with the last axis fastest."""

    starts: tuple[Integers, ...]
    """For each axis: first index of each segment."""
    sizes: tuple[int, ...]
    made_by: Producer | None
    """How a layer makes it; None from outside."""

    def as_producer(self) -> Producer:
        """Pieces in the place of CNs."""
        owners = []
        stride = 1
        for start, size in zip(reversed(self.starts), reversed(self.sizes), strict=True):
            if len(start) == 1:
                owners.append(whole_owners(0, size, size))
            else:
                owners.append(AxisOwners(np.repeat(np.arange(len(start)) * stride, _lengths(start, size))))
            stride *= len(start)
        return Producer(LayerGrid((), LayerTiling(-1)), tuple(reversed(owners)))

    def segments(self, piece: Integers) -> list[Integers]:
        """For each axis: [piece] segment."""
        found = []
        for start in reversed(self.starts):
            if len(start) == 1:
                found.append(np.zeros(len(piece), np.int64))
            else:
                found.append(piece % len(start))
                piece = piece // len(start)
        return found[::-1]

    def is_made(self, piece: Integers) -> npt.NDArray[np.bool_]:
        """Whether anything makes a piece: parts of a tensor that no CN writes are no data."""
        made = np.ones(len(piece), dtype=bool)
        if self.made_by is not None:
            for start, owners, segment in zip(self.starts, self.made_by.owners, self.segments(piece), strict=True):
                if (owners.run_owner == NOBODY).any():
                    made &= owners.of_index[start[segment]] != NOBODY
        return made

    def bits_and_owner(self, piece: Integers, element_bits: int) -> tuple[Integers, Integers]:
        """([piece] bits, [piece] CN of the producer's layer that makes it, or OUTSIDE)."""
        bits = np.full(len(piece), element_bits, np.int64)
        number = np.zeros(len(piece), np.int64)
        for axis, segment in enumerate(self.segments(piece)):
            start, size = self.starts[axis], self.sizes[axis]
            if len(start) == 1:
                bits *= size
                number += 0 if self.made_by is None else self.made_by.owners[axis].of_index[0]
                continue
            bits *= _lengths(start, size)[segment]
            if self.made_by is not None:
                number += self.made_by.owners[axis].of_index[start[segment]]
        if self.made_by is None:
            return bits, np.full(len(piece), OUTSIDE, np.int64)
        return bits, self.made_by.cns(number)


def _lengths(start: Integers, size: int) -> Integers:
    """[segment] length of the segments of an axis."""
    return np.append(start[1:], size) - start


def _readers(workload: Workload, graph: CnGraph, network: NetworkTensors) -> dict[str, list[_Reader]]:
    """Tensor that a layer makes or that comes from outside -> who needs it."""
    readers: dict[str, list[_Reader]] = defaultdict(list)
    nodes = [node for node in workload.nodes if node.layer is not None]
    for node, layer in zip(nodes, graph.layers, strict=True):
        grid = network.alike.grid(layer.loop_sizes, layer.tiling)
        grouped: dict[tuple[str, str], list[Demand]] = defaultdict(list)
        for needs in needs_of_layer(node, grid, network):
            grouped[needs.operand, needs.tensor].append(needs.demand)
        for (operand, tensor), demands in grouped.items():
            readers[tensor].append(_Reader(graph.operands.index(operand), layer.first_cn, grid, tuple(demands)))
    leaving: dict[str, list[Demand]] = defaultdict(list)
    for output in workload.outputs:
        for needs in needs_of_output(output, network):
            leaving[needs.tensor].append(needs.demand)
    for tensor, demands in leaving.items():
        readers[tensor].append(_Reader(OUTSIDE, 0, LayerGrid((), LayerTiling(-1)), tuple(demands)))
    return readers


def _producers(workload: Workload, graph: CnGraph, network: NetworkTensors) -> dict[str, tuple[Producer, int]]:
    """Tensor that a layer makes -> how, and the first CN of the layer."""
    producers = {}
    nodes = [node for node in workload.nodes if node.layer is not None]
    for node, layer in zip(nodes, graph.layers, strict=True):
        grid = network.alike.grid(layer.loop_sizes, layer.tiling)
        for tensor in dict.fromkeys(index_map.output.tensor for index_map in node.index_maps):
            made_by = producer_of(node, tensor, network.shape(tensor), grid, network.alike)
            producers[tensor] = made_by, layer.first_cn
    return producers


def _cutting(
    shape: tuple[int, ...],
    element_bits: int,
    readers: tuple[tuple[tuple[Demand, ...], LayerGrid], ...],
    made_by: Producer | None,
) -> _Cutting:
    """The pieces of a tensor that anybody needs."""
    cut = _Cut(tuple(_segments(axis, size, readers, made_by) for axis, size in enumerate(shape)), shape, made_by)
    as_producer = cut.as_producer()
    found = []
    for demands, grid in readers:
        cn, piece, _, _ = flow(demands, as_producer, grid)
        made = cut.is_made(piece)
        found.append((cn, piece) if made.all() else (cn[made], piece[made]))
    used = np.unique(np.concatenate([piece for _, piece in found]))
    bits, owner = cut.bits_and_owner(used, element_bits)
    return _Cutting(bits, owner, tuple((cn, np.searchsorted(used, piece)) for cn, piece in found))


def _segments(
    axis: int, size: int, readers: tuple[tuple[tuple[Demand, ...], LayerGrid], ...], made_by: Producer | None
) -> Integers:
    """First index of each segment of an axis: where a tile of the producer or something needed begins or ends."""
    is_uncut = made_by is None or made_by.owners[axis].only is not None
    if is_uncut and size and all(demand.is_whole(axis, size) for demands, _ in readers for demand in demands):
        return np.zeros(1, np.int64)
    begins = np.zeros(size + 1, dtype=bool)
    begins[0] = True
    if made_by is not None:
        begins[made_by.owners[axis].run_start] = True
    for demands, _ in readers:
        for demand in demands:
            for bound in demand.bounds(axis):
                begins[bound] = True
    return np.flatnonzero(begins[:size]).astype(np.int64)
