"""Data cut into pieces that move and are stored as a whole: no two share an element.

A tensor is cut along each axis wherever a tile of its producer ends or what some CN needs begins or ends. Halos are
then pieces of their own that several CNs need, and what an edge of the CN graph carries is the sum of its pieces.
Where a CN needs only every second element of a line (a stride larger than the window), it gets the line whole: a
piece of which anything is needed moves with its gaps. Lines of which nothing is needed do not.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tilewright.fusion.axis_join import NOBODY
from tilewright.fusion.graph import CnGraph, SmallIntegers
from tilewright.fusion.grid import Integers, LayerGrid
from tilewright.fusion.links import Producer, flow, producer_of
from tilewright.fusion.needs import Needs, NetworkTensors, needs_of_layer, needs_of_output, network_tensors
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
    """What one layer needs of a tensor for one operand; operand -1 is the outside."""

    operand: int
    first_cn: int
    grid: LayerGrid
    needs: list[Needs]


def data_pieces(workload: Workload, graph: CnGraph) -> DataPieces:
    """The pieces of the network of a CN graph that `build_cn_graph` made of the same workload."""
    network = network_tensors(workload)
    readers = _readers(workload, graph, network)
    producers = _producers(workload, graph, network)
    nothing = np.zeros(0, np.int64)
    pieces: list[tuple[Integers, ...]] = [(nothing,) * 4]
    needs: list[tuple[Integers, ...]] = [(nothing,) * 3]
    count = 0
    for number, (tensor, its_readers) in enumerate(readers.items()):
        cut, found = _pieces_of_tensor(network.shape(tensor), its_readers, producers.get(tensor))
        used = np.unique(np.concatenate([nothing, *(piece for _, _, piece in found)]))
        bits, owner = cut.bits_and_owner(used, workload.tensor_of[tensor].bits)
        leaving = np.zeros(len(used), np.int64)
        for operand, cn, piece in found:
            place = np.searchsorted(used, piece)
            if operand == OUTSIDE:
                leaving[place] = 1
            else:
                needs.append((cn, place + count, np.full(len(cn), operand, np.int64)))
        pieces.append((bits, owner, np.full(len(used), number, np.int64), leaving))
        count += len(used)
    bits, owner, tensor_of_piece, leaves = (np.concatenate(column) for column in zip(*pieces, strict=True))
    cn, piece, operand_column = (np.concatenate(column) for column in zip(*needs, strict=True))
    order = np.argsort(cn, kind="stable")
    return DataPieces(
        bits=bits,
        producer=owner,
        tensor=tensor_of_piece,
        is_output=leaves.astype(bool),
        need_cn=cn[order],
        need_piece=piece[order],
        need_operand=operand_column[order].astype(np.int16),
        tensors=tuple(readers),
    )


@dataclass(frozen=True, eq=False)
class _Cut:
    """A tensor in a grid of pieces, numbered with the last axis fastest."""

    starts: tuple[Integers, ...]
    """For each axis: first index of each segment."""
    sizes: tuple[int, ...]
    made_by: tuple[Producer, int] | None
    """How a layer makes it, and the first CN of the layer; None from outside."""

    def as_producer(self) -> Producer:
        """Pieces in the place of CNs."""
        owners = []
        stride = 1
        for start, size in zip(reversed(self.starts), reversed(self.sizes), strict=True):
            lengths = np.diff(np.append(start, size))
            owners.append(np.repeat(np.arange(len(start)) * stride, lengths))
            stride *= len(start)
        return Producer(LayerGrid((), LayerTiling(-1)), tuple(reversed(owners)), 0, True)

    def segments(self, piece: Integers) -> list[Integers]:
        """For each axis: [piece] segment."""
        found = []
        for start in reversed(self.starts):
            found.append(piece % len(start))
            piece = piece // len(start)
        return found[::-1]

    def is_made(self, piece: Integers) -> npt.NDArray[np.bool_]:
        """Whether anything makes a piece: parts of a tensor that no CN writes are no data."""
        made = np.ones(len(piece), dtype=bool)
        if self.made_by is not None:
            for start, owner, segment in zip(self.starts, self.made_by[0].owners, self.segments(piece), strict=True):
                made &= owner[start[segment]] != NOBODY
        return made

    def bits_and_owner(self, piece: Integers, element_bits: int) -> tuple[Integers, Integers]:
        """([piece] bits, [piece] CN that makes it)."""
        bits = np.full(len(piece), element_bits, np.int64)
        number = np.zeros(len(piece), np.int64)
        for axis, segment in enumerate(self.segments(piece)):
            bits *= np.diff(np.append(self.starts[axis], self.sizes[axis]))[segment]
            if self.made_by is not None:
                number += self.made_by[0].owners[axis][self.starts[axis][segment]]
        if self.made_by is None:
            return bits, np.full(len(piece), OUTSIDE, np.int64)
        producer, first_cn = self.made_by
        return bits, producer.cns(number) + first_cn


def _readers(workload: Workload, graph: CnGraph, network: NetworkTensors) -> dict[str, list[_Reader]]:
    """Tensor that a layer makes or that comes from outside -> who needs it."""
    readers: dict[str, list[_Reader]] = defaultdict(list)
    nodes = [node for node in workload.nodes if node.layer is not None]
    for node, layer in zip(nodes, graph.layers, strict=True):
        grouped: dict[tuple[str, str], list[Needs]] = defaultdict(list)
        for needs in needs_of_layer(node, layer.grid, network):
            grouped[needs.operand, needs.tensor].append(needs)
        for (operand, tensor), all_needs in grouped.items():
            readers[tensor].append(_Reader(graph.operands.index(operand), layer.first_cn, layer.grid, all_needs))
    leaving: dict[str, list[Needs]] = defaultdict(list)
    for output in workload.outputs:
        for needs in needs_of_output(output, network):
            leaving[needs.tensor].append(needs)
    for tensor, all_needs in leaving.items():
        readers[tensor].append(_Reader(OUTSIDE, 0, LayerGrid((), LayerTiling(-1)), all_needs))
    return readers


def _producers(workload: Workload, graph: CnGraph, network: NetworkTensors) -> dict[str, tuple[Producer, int]]:
    producers = {}
    nodes = [node for node in workload.nodes if node.layer is not None]
    for node, layer in zip(nodes, graph.layers, strict=True):
        for tensor in dict.fromkeys(index_map.output.tensor for index_map in node.index_maps):
            producer, _ = producer_of(node, tensor, network.shape(tensor), layer.grid)
            producers[tensor] = producer, layer.first_cn
    return producers


def _pieces_of_tensor(
    shape: Sequence[int], readers: list[_Reader], made_by: tuple[Producer, int] | None
) -> tuple[_Cut, list[tuple[int, Integers, Integers]]]:
    """How a tensor is cut, and (operand, [need] CN, [need] piece) of all who need it."""
    starts = []
    for axis, size in enumerate(shape):
        begins = np.zeros(size + 1, dtype=bool)
        begins[0] = True
        if made_by is not None:
            owner = made_by[0].owners[axis]
            begins[1:size] |= owner[1:] != owner[:-1]
        for needs in (needs for reader in readers for needs in reader.needs):
            begins[needs.boxes[:, axis, 0]] = begins[needs.boxes[:, axis, 1]] = True
        starts.append(np.flatnonzero(begins[:size]).astype(np.int64))
    cut = _Cut(tuple(starts), tuple(shape), made_by)
    as_producer = cut.as_producer()
    found = []
    for reader in readers:
        cn, piece, _, _ = flow(reader.needs, as_producer, reader.grid)
        made = cut.is_made(piece)
        found.append((reader.operand, cn[made] + reader.first_cn, piece[made]))
    return cut, found
