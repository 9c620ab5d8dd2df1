"""Pieces of data: the data of an edge are the sum of its pieces."""

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, note, settings
from hypothesis import strategies as st
from onnx.helper import make_node
from tilewright.multicore.nodes.generation import build_cn_graph
from tilewright.multicore.nodes.graph import ORDERING, CnGraph
from tilewright.multicore.nodes.needs import layer_cuts, needs_of_layer, network_tensors
from tilewright.multicore.nodes.pieces import OUTSIDE, DataPieces, data_pieces
from tilewright.workload.source import parse_workload

from tests.unit.multicore.nodes.networks import content_box, conv, read, two_convolutions
from tests.unit.multicore.nodes.test_generation import random_tiling, tiled
from tests.unit.workload.onnx.random_graphs import random_graph


def assert_pieces_make_up_the_graph(graph: CnGraph, pieces: DataPieces, has_gaps: bool) -> None:
    """Pieces carry the bits of all edges, reads and outputs; if strides leave gaps, edges may carry extra bits."""
    edges: dict[tuple[int, int, int], int] = {}
    for source, target, operand, bits in zip(
        graph.edge_source.tolist(),
        graph.edge_target.tolist(),
        graph.edge_operand.tolist(),
        graph.edge_bits,
        strict=True,
    ):
        if operand != ORDERING:
            edges[source, target, operand] = int(bits)
    carried: dict[tuple[int, int, int], int] = defaultdict(int)
    outside: dict[tuple[int, str], set[int]] = defaultdict(set)
    for cn, piece, operand in zip(
        pieces.need_cn.tolist(), pieces.need_piece.tolist(), pieces.need_operand.tolist(), strict=True
    ):
        producer = int(pieces.producer[piece])
        if producer == OUTSIDE:
            outside[cn, pieces.tensors[pieces.tensor[piece]]].add(piece)
        else:
            carried[producer, cn, operand] += int(pieces.bits[piece])
    assert carried.keys() == edges.keys()
    assert all(carried[edge] >= bits for edge, bits in edges.items())
    if not has_gaps:
        assert carried == edges
    boxes: dict[tuple[int, str], set[int]] = defaultdict(set)
    for cn, content in zip(graph.read_cn.tolist(), graph.read_content.tolist(), strict=True):
        source_tensor = graph.sources[graph.content_source[content]]
        whole = np.arange(int(np.prod(source_tensor.shape))).reshape(source_tensor.shape)
        box = tuple(slice(low, high) for low, high in content_box(graph, content).tolist())
        boxes[cn, source_tensor.name] |= set(whole[box].ravel().tolist())
    bits_of = {source.name: source.bits for source in graph.sources}
    for (cn, name), needed in outside.items():
        # A content is a box; pieces leave out the gaps in it.
        assert sum(int(pieces.bits[piece]) for piece in needed) <= len(boxes[cn, name]) * bits_of[name]
    assert set(outside) == set(boxes)
    leaving = np.zeros(graph.cn_count, np.int64)
    made = np.zeros(graph.cn_count, np.int64)
    inside = pieces.producer != OUTSIDE
    np.add.at(made, pieces.producer[inside], pieces.bits[inside])
    np.add.at(leaving, pieces.producer[inside], np.where(pieces.is_output, pieces.bits, 0)[inside])
    assert (made <= graph.output_bits).all()
    assert (leaving == graph.network_output_bits).all()
    assert (pieces.bits > 0).all()
    assert (np.diff(pieces.need_cn) >= 0).all()


@settings(derandomize=True, deadline=None, database=None, max_examples=100, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_random_graphs_are_made_up_of_pieces(data: st.DataObject) -> None:
    """Graphs of operators of all families, cut at random, are sums of pieces."""
    built = data.draw(random_graph())
    note(repr(built))
    assume(built.nodes)
    workload = parse_workload(built.model(), "corrected")
    graph = build_cn_graph(workload, data.draw(random_tiling(workload)))
    network = network_tensors(workload)
    nodes = [node for node in workload.nodes if node.layer]
    cuts = layer_cuts(nodes, [layer.tiling for layer in graph.layers], network)
    all_demands = [
        demand
        for node, cut in zip(nodes, cuts, strict=True)
        for demands in needs_of_layer(node, cut.demands, network).values()
        for demand in demands
    ]
    has_gaps = any(demand.is_gapped for demand in all_demands)
    assert_pieces_make_up_the_graph(graph, data_pieces(workload, graph), has_gaps)


def test_halos_are_shared_pieces() -> None:
    """A 3x3 window between two tiles of 3 lines each: pieces are lines 0-1, 2, 3 and 4-5, and each CN needs three of
    them.
    """
    workload = two_convolutions()
    graph = build_cn_graph(workload, tiled(workload, {"a": [("OY", 2)], "b": [("OY", 2)]}))
    pieces = data_pieces(workload, graph)
    of_a = pieces.tensor == pieces.tensors.index("a")
    assert pieces.bits[of_a].tolist() == [2 * 48 * 8, 48 * 8, 48 * 8, 2 * 48 * 8]
    assert pieces.producer[of_a].tolist() == [0, 0, 1, 1]
    first = int(np.flatnonzero(of_a)[0])
    needed = [pieces.need_piece[(pieces.need_cn == cn) & of_a[pieces.need_piece]] - first for cn in (2, 3)]
    assert [piece.tolist() for piece in needed] == [[0, 1, 2], [1, 2, 3]]


def test_lines_that_a_stride_skips_do_not_move() -> None:
    """1x1 with stride 2: of 6 lines, only 0, 2 and 4 move, without the last pixel, which nobody needs."""
    nodes = [conv("x", "w0", "a"), conv("a", "w1", "b", strides=[2, 2])]
    workload = read(nodes, None, {"w0": (4, 4, 1, 1), "w1": (4, 4, 1, 1)})
    graph = build_cn_graph(workload, tiled(workload, {"a": [("OY", "all")]}))
    pieces = data_pieces(workload, graph)
    of_a = pieces.tensor == pieces.tensors.index("a")
    assert pieces.producer[of_a].tolist() == [0, 2, 4]
    assert pieces.bits[of_a].tolist() == [4 * 5 * 8] * 3
    assert_pieces_make_up_the_graph(graph, pieces, has_gaps=True)


@pytest.mark.parametrize("has_reader_of_all", [False, True])
def test_readers_of_disjoint_parts_do_not_cut_one_another(has_reader_of_all: bool) -> None:
    """A part of a tensor is cut only by the tiles of its own readers.

    Columns of [6, 12] are split into three parts of 4. The first part is read in 6 rows, the second in 4 columns, and
    the third as a whole. This makes 6 + 4 + 1 = 11 pieces, not 6 x (1 + 4 + 1).
    """
    nodes = [
        make_node("MatMul", ["x", "w"], ["y"], name="y"),
        make_node("Split", ["y"], ["q", "k", "v"], name="split", axis=1, num_outputs=3),
        *(make_node("Relu", [name], [f"{name}_out"], name=f"{name}_out") for name in ("q", "k", "v")),
        *([make_node("Sigmoid", ["y"], ["all"], name="all")] if has_reader_of_all else []),
    ]
    workload = read(nodes, {"x": (6, 4)}, {"w": (4, 12)})
    layer = next(node.layer for node in workload.nodes if node.name == "q_out")
    assert layer is not None
    row, column = (name for name, _ in layer.loop_sizes)
    tiling = tiled(workload, {"q_out": [(row, 6)], "k_out": [(column, 4)]})
    graph = build_cn_graph(workload, tiling)
    pieces = data_pieces(workload, graph)
    of_y = pieces.tensor == pieces.tensors.index("y")
    assert pieces.bits[of_y].tolist() == [4 * 8] * 6 + [6 * 8] * 4 + [24 * 8]
    assert_pieces_make_up_the_graph(graph, pieces, has_gaps=False)
    first = int(np.flatnonzero(of_y)[0])
    needed = {
        layer.name: [
            (pieces.need_piece[(pieces.need_cn == layer.first_cn + cn) & of_y[pieces.need_piece]] - first).tolist()
            for cn in range(layer.cn_count)
        ]
        for layer in graph.layers
    }
    assert needed["q_out"] == [[0], [1], [2], [3], [4], [5]]
    assert needed["k_out"] == [[6], [7], [8], [9]]
    assert needed["v_out"] == [[10]]
    assert not has_reader_of_all or needed["all"] == [list(range(11))]


def test_parts_that_overlap_are_cut_by_all_their_readers() -> None:
    """Overlapping parts of a tensor are cut by the tiles of both readers.

    The tensor has 6 rows and 12 columns. One reader takes columns 0-7, row by row. The other takes columns 4-11, one
    column at a time. Each of the 6 rows is cut into columns 0-3 and 8 single columns: 9 pieces.
    """
    nodes = [
        make_node("MatMul", ["x", "w"], ["y"], name="y"),
        make_node("Slice", ["y", "zero", "eight", "one"], ["q"], name="slice_q"),
        make_node("Slice", ["y", "four", "twelve", "one"], ["k"], name="slice_k"),
        *(make_node("Relu", [name], [f"{name}_out"], name=f"{name}_out") for name in ("q", "k")),
    ]
    constants = {"w": (4, 12), "zero": [0], "one": [1], "four": [4], "eight": [8], "twelve": [12]}
    workload = read(nodes, {"x": (6, 4)}, constants)
    layer = next(node.layer for node in workload.nodes if node.name == "q_out")
    assert layer is not None
    row, column = (name for name, _ in layer.loop_sizes)
    graph = build_cn_graph(workload, tiled(workload, {"q_out": [(row, 6)], "k_out": [(column, 8)]}))
    pieces = data_pieces(workload, graph)
    assert_pieces_make_up_the_graph(graph, pieces, has_gaps=False)
    of_y = pieces.tensor == pieces.tensors.index("y")
    assert int(of_y.sum()) == 6 * 9
