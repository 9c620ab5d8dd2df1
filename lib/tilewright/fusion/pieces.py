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

from tilewright.fusion.cutting import OUTSIDE, cutting
from tilewright.fusion.graph import CnGraph, SmallIntegers
from tilewright.fusion.grid import Integers, LayerGrid
from tilewright.fusion.layer_cuts import LayerCut, layer_cuts
from tilewright.fusion.needs import Demand, NetworkTensors, needs_of_layer, needs_of_outputs, network_tensors
from tilewright.fusion.outer_loops import LayerTiling
from tilewright.fusion.producers import Producer
from tilewright.workload.graph import Workload, WorkloadNode


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


def data_pieces(workload: Workload, graph: CnGraph) -> DataPieces:
    """The pieces of the network of a CN graph that `build_cn_graph` made of the same workload."""
    network = network_tensors(workload)
    nodes = [node for node in workload.nodes if node.layer is not None]
    cuts = layer_cuts(nodes, [layer.tiling for layer in graph.layers], network)
    readers = _readers(nodes, cuts, graph, network)
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
        cut = network.alike.once(cutting, network.shape_of[tensor], element_bits, demands, made_by)
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
    nodes: list[WorkloadNode], cuts: list[LayerCut], graph: CnGraph, network: NetworkTensors
) -> dict[str, list[_Reader]]:
    """Tensor that a layer makes or that comes from outside -> who needs it."""
    readers: dict[str, list[_Reader]] = defaultdict(list)
    for node, cut, layer in zip(nodes, cuts, graph.layers, strict=True):
        for (operand, tensor), demands in needs_of_layer(node, cut.demands, network).items():
            readers[tensor].append(_Reader(graph.operands.index(operand), layer.first_cn, cut.grid, tuple(demands)))
    for tensor, demands in needs_of_outputs(network).items():
        readers[tensor].append(_Reader(OUTSIDE, 0, LayerGrid((), LayerTiling(-1)), tuple(demands)))
    return readers


def _producers(nodes: list[WorkloadNode], cuts: list[LayerCut], graph: CnGraph) -> dict[str, tuple[Producer, int]]:
    """Tensor that a layer makes -> how, and the first CN of the layer."""
    producers: dict[str, tuple[Producer, int]] = {}
    for node, cut, layer in zip(nodes, cuts, graph.layers, strict=True):
        for place_of_map, made_by in cut.producers:
            producers.setdefault(node.index_maps[place_of_map].output.tensor, (made_by, layer.first_cn))
    return producers
