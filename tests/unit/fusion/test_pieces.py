"""Pieces of data: what an edge carries is the sum of its pieces."""

from collections import defaultdict

import numpy as np
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st
from tilewright.errors import InputError
from tilewright.fusion.generation import build_cn_graph
from tilewright.fusion.graph import ORDERING, CnGraph
from tilewright.fusion.needs import needs_of_layer, network_tensors
from tilewright.fusion.pieces import OUTSIDE, DataPieces, data_pieces
from tilewright.workload.source import parse_workload

from tests.unit.fusion.networks import conv, read, two_convolutions
from tests.unit.fusion.test_generation import random_tiling, tiled
from tests.unit.workload.onnx.random_graphs import random_graph


def assert_pieces_make_up_the_graph(graph: CnGraph, pieces: DataPieces, has_gaps: bool) -> None:
    """Edges, reads and outputs are sums of pieces; where strides leave gaps, pieces hold more."""
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
        box = tuple(slice(low, high) for low, high in graph.content_box(content).tolist())
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
    """Operators of all families, cut at random."""
    built = data.draw(random_graph())
    note(repr(built))
    try:
        workload = parse_workload(built.model(), "corrected")
    except InputError:
        return
    graph = build_cn_graph(workload, data.draw(random_tiling(workload)))
    network = network_tensors(workload)
    all_needs = [
        needs
        for node, layer in zip((node for node in workload.nodes if node.layer), graph.layers, strict=True)
        for needs in needs_of_layer(node, layer.grid, network)
    ]
    has_gaps = any(rows.gapped is not None for needs in all_needs for rows, _ in needs.demand.axes or ())
    assert_pieces_make_up_the_graph(graph, data_pieces(workload, graph), has_gaps)


def test_halos_are_shared_pieces() -> None:
    """Two tiles of 3 lines into two of 3 with a 3x3 window: lines 0-1, 2, 3, 4-5; each CN needs three of four."""
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
    """1x1 with stride 2: lines 0, 2 and 4 of 6 move whole (all but the last pixel, after which nothing is needed)."""
    nodes = [conv("x", "w0", "a"), conv("a", "w1", "b", strides=[2, 2])]
    workload = read(nodes, None, {"w0": (4, 4, 1, 1), "w1": (4, 4, 1, 1)})
    graph = build_cn_graph(workload, tiled(workload, {"a": [("OY", "all")]}))
    pieces = data_pieces(workload, graph)
    of_a = pieces.tensor == pieces.tensors.index("a")
    assert pieces.producer[of_a].tolist() == [0, 2, 4]
    assert pieces.bits[of_a].tolist() == [4 * 5 * 8] * 3
    assert_pieces_make_up_the_graph(graph, pieces, has_gaps=True)
