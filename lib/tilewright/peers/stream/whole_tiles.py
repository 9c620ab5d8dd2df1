"""Graph and data of a network in the model `stream-2023`: all CNs of a layer are equal and run in one chain, and each
CN makes one tensor.

* All CNs of a layer have the same cost: a CN at a border costs as much as an inner CN, and padding counts as data.
* All CNs of a layer run in one chain, even if they use different weights. CNs with the same part of the weights stay on
  one core.
* Each CN makes one tensor. A CN that reads a part of a tensor needs the complete tensor. For data that no CN makes
  (constants and network inputs), there is one tensor for each combination of tiles on which the operand depends. Such a
  tensor includes halos and padding, and shares no data with other tensors.

docs/multi-core-model/scheduling.md has the other rules. docs/accuracy/three-chips.md has the resulting numbers.
"""

from collections.abc import Iterator
from dataclasses import replace
from math import prod

import numpy as np
import numpy.typing as npt

from tilewright.multicore.nodes.graph import ORDERING, CnGraph, CnLayer
from tilewright.multicore.nodes.grid import Integers
from tilewright.multicore.nodes.pieces import OUTSIDE, DataPieces
from tilewright.multicore.scheduling.assembled import AssembledProblem
from tilewright.multicore.scheduling.options import ScheduleModel
from tilewright.multicore.scheduling.problem import SchedulingProblem, starts_of
from tilewright.peers.stream.scheduler import fewest_links, simulate_stream_2023
from tilewright.workload.access import IndexMap
from tilewright.workload.graph import Workload, WorkloadNode
from tilewright.workload.layer import Layer


def whole_tile_graph(workload: Workload, graph: CnGraph) -> CnGraph:
    """CN graph made from `graph`. All CNs of a layer have the same shape, and ordering edges connect these CNs into one
    chain. Each data edge carries the complete output of its source CN.
    """
    nodes = _layer_nodes(workload, graph)
    shapes: dict[Layer, int] = {}
    shape_of_layer = [
        shapes.setdefault(_tile(node, layer), len(shapes)) for node, layer in zip(nodes, graph.layers, strict=True)
    ]
    data = graph.edge_operand != ORDERING
    source, target = _chains(graph)
    columns = (
        (graph.edge_source[data], source),
        (graph.edge_target[data], target),
        (graph.edge_operand[data], np.full(len(source), ORDERING, np.int16)),
        (graph.output_bits[graph.edge_source[data]], np.zeros(len(source), np.int64)),
    )
    edges = [np.concatenate(pair) for pair in columns]
    order = np.argsort(edges[1], kind="stable")
    return replace(
        graph,
        shapes=tuple(shapes),
        shape=np.array(shape_of_layer, np.int64)[graph.cn_layer],
        edge_source=edges[0][order],
        edge_target=edges[1][order],
        edge_operand=edges[2][order],
        edge_bits=edges[3][order],
    )


def whole_tile_problem(assembled: AssembledProblem, workload: Workload, graph: CnGraph) -> AssembledProblem:
    """Scheduling problem with complete tensors in place of pieces. All CNs of a layer form one chain, and have the same
    cost.

    `assembled` must be made from `graph`. If `graph` comes from `whole_tile_graph`, the CNs of a layer already have the
    same cost. In any other graph, CNs at borders can have their own costs. All CNs of a layer then get the cost of its
    largest CN; of equally large CNs, the one with the least padding counts.
    """
    operand_table = np.zeros((len(graph.layers), len(graph.operands) + 1), np.int64)
    needs = assembled.pieces
    operand_table[graph.cn_layer[needs.need_cn], needs.need_operand] = assembled.problem.graph.need_operand
    pieces = _tensors(workload, graph, needs.tensors)
    source, target = _chains(graph)
    nodes = replace(
        assembled.problem.graph,
        cost_row=assembled.problem.graph.cost_row[_full_tiles(graph)],
        piece_bits=pieces.bits,
        piece_producer=np.where(pieces.producer == OUTSIDE, -1, pieces.producer),
        piece_is_output=pieces.is_output,
        need_start=starts_of(pieces.need_cn, graph.cn_count),
        need_piece=pieces.need_piece,
        need_operand=operand_table[graph.cn_layer[pieces.need_cn], pieces.need_operand],
        order_start=starts_of(target, graph.cn_count),
        order_predecessor=source,
    )
    problem = SchedulingProblem(nodes, assembled.problem.costs, fewest_links(assembled.problem.system))
    return replace(assembled, problem=problem, pieces=pieces)


def _layer_nodes(workload: Workload, graph: CnGraph) -> list[WorkloadNode]:
    """Node of each layer of the graph, in the order of the layers."""
    node_of = {node.node_id: node for node in workload.nodes}
    return [node_of[layer.node_id] for layer in graph.layers]


def _full_tiles(graph: CnGraph) -> Integers:
    """Index, for each CN, of the largest CN of the same layer. If several CNs are equally large, the CN that reads most
    data is taken, because it has the least padding. If there is still a tie, the first CN is taken."""
    ranks = [(shape.mac_count, prod(size for _, size in shape.data_dimension_sizes)) for shape in graph.shapes]
    work, read = np.array(ranks, np.float64).reshape(-1, 2)[graph.shape].T
    order = np.lexsort((np.arange(graph.cn_count), -read, -work, graph.cn_layer))
    first = order[[layer.first_cn for layer in graph.layers]]
    found: Integers = first[graph.cn_layer]
    return found


def _tile(node: WorkloadNode, cn_layer: CnLayer) -> Layer:
    """First tile of a layer, changed to an inner tile: without padding, and with data that are not clipped at a
    border.
    """
    assert node.layer is not None
    grid = cn_layer.grid
    sizes = tuple((name, int(grid.tiles[name].end[0] - grid.tiles[name].start[0])) for name, _ in node.layer.loop_sizes)
    return replace(node.layer, name="", loop_sizes=sizes, padding=())


def _chains(graph: CnGraph) -> tuple[Integers, Integers]:
    """Pairs (CN, next CN of the same layer), as two arrays of indices: the first CNs and the next CNs."""
    target = np.flatnonzero(graph.cn_layer[1:] == graph.cn_layer[:-1]) + 1
    return (target - 1).astype(np.int64), target.astype(np.int64)


def _tensors(workload: Workload, graph: CnGraph, names: tuple[str, ...]) -> DataPieces:
    """Pieces of data: first one piece for the output of each CN, then one piece for each tensor that no CN makes.

    `names` are the names of the tensors of the network.
    """
    makers = np.flatnonzero(graph.output_bits > 0)
    piece_of_cn = np.full(graph.cn_count, -1, np.int64)
    piece_of_cn[makers] = np.arange(len(makers))
    data = graph.edge_operand != ORDERING
    column_of = {name: number for number, name in enumerate(names)}
    made_by_layer = np.array([column_of.get(layer.outputs[0], 0) for layer in graph.layers], np.int64)
    bits, tensor = [graph.output_bits[makers]], [made_by_layer[graph.cn_layer[makers]]]
    need_cn, need_operand = [graph.edge_target[data]], [graph.edge_operand[data].astype(np.int64)]
    need_piece = [piece_of_cn[graph.edge_source[data]]]
    count = len(makers)
    for number, operand, index_map in _reads(workload, graph):
        layer = graph.layers[number]
        content, sizes = _contents(layer, index_map, workload.tensor_of[index_map.input.tensor].bits)
        need_cn.append(np.arange(layer.cn_count) + layer.first_cn)
        need_operand.append(np.full(layer.cn_count, operand, np.int64))
        need_piece.append(content + count)
        bits.append(sizes)
        tensor.append(np.full(len(sizes), column_of.get(index_map.input.tensor, 0), np.int64))
        count += len(sizes)
    columns = [np.concatenate(parts) for parts in (need_cn, need_piece, need_operand)]
    order = np.argsort(columns[0], kind="stable")
    producer = np.full(count, OUTSIDE, np.int64)
    producer[: len(makers)] = makers
    is_output = np.zeros(count, np.bool_)
    is_output[: len(makers)] = _is_in_sink(graph)[makers]
    return DataPieces(
        bits=np.concatenate(bits),
        producer=producer,
        tensor=np.concatenate(tensor),
        is_output=is_output,
        need_cn=columns[0][order],
        need_piece=columns[1][order],
        need_operand=columns[2][order].astype(np.int16),
        tensors=names,
    )


def _is_in_sink(graph: CnGraph) -> npt.NDArray[np.bool_]:
    """True if the layer of the CN has outputs that go off-chip (one entry for each CN). A layer has such outputs if one
    of its CNs has no successor.
    """
    source, _ = _chains(graph)
    has_successor = np.zeros(graph.cn_count, np.bool_)
    has_successor[source] = True
    has_successor[graph.edge_source[graph.edge_operand != ORDERING]] = True
    is_sink = np.zeros(len(graph.layers), np.bool_)
    is_sink[graph.cn_layer[~has_successor]] = True
    return is_sink[graph.cn_layer]


def _reads(workload: Workload, graph: CnGraph) -> Iterator[tuple[int, int, IndexMap]]:
    """Triples (index of the layer, index of the operand, index map) in the order of layers. There is one triple for
    each index map of an operand whose data no CN makes (constants and network inputs).
    """
    pairs = {*zip(graph.cn_layer[graph.read_cn].tolist(), graph.read_operand.tolist(), strict=True)}
    for number, node in enumerate(_layer_nodes(workload, graph)):
        for index_map in node.index_maps:
            operand = graph.operands.index(index_map.operand)
            if (number, operand) in pairs:
                yield number, operand, index_map


def _contents(layer: CnLayer, index_map: IndexMap, element_bits: int) -> tuple[Integers, Integers]:
    """Pair of arrays for an operand of a layer: for each CN of the layer, the index of the tensor that the CN reads;
    and the size in bits of each tensor.

    CNs whose tiles are equal in all dimensions of the operand read the same tensor. The size of a tensor is the size of
    a box. Along each axis, the box reaches from the first to the last element that the loops of the CN address,
    including padding and gaps.
    """
    grid = layer.grid
    used = {name for axis in index_map.input.axes for name, factor in axis.terms if factor}
    content, _ = grid.combination_of([name for name in grid.tiled_dimensions if name in used])
    distinct, example, content = np.unique(content, return_index=True, return_inverse=True)
    bits = np.full(len(distinct), element_bits, np.int64)
    for axis in index_map.input.axes:
        length = np.ones(len(distinct), np.int64)
        own = [term for term in axis.terms if term[0] in grid.tiles]
        for name, factor in own or axis.terms:
            if name in grid.tiles:
                first, end = (bound[example] for bound in grid.ranges(name))
                length += abs(factor) * (end - first - 1)
            else:  # a loop that is not a loop of the layer: it covers all indices that can be needed
                length += abs(factor) * (index_map.size_of[name] - 1)
        bits *= length
    return content.reshape(-1), bits


MODEL = ScheduleModel(whole_tile_problem, simulate_stream_2023, ("share_divisor", "layers_by_off_chip"))
"""Schedule model `stream-2023`: complete tensors in place of pieces, and a scheduler that is not causal. A decision can
take memory space and links at an earlier time than decisions that were made before it. The model ignores the settings
`share_divisor` and `layers_by_off_chip`.
"""
