"""Edges and overlaps of tiles, worked out by hand, if operators that move data lie between two layers."""

from dataclasses import replace

import numpy as np
import pytest
from onnx.helper import make_node
from tilewright.base.errors import InputError
from tilewright.multicore.nodes.generation import build_cn_graph
from tilewright.multicore.nodes.graph import ORDERING, CnGraph
from tilewright.multicore.nodes.tiling import LayerTiling, OuterLoop, Tiling

from tests.unit.multicore.nodes.networks import IMAGE, SAME, cn_name, content_box, conv, read, two_convolutions
from tests.unit.multicore.nodes.test_generation import assert_equals_enumeration, tiled

ELEMENT_BITS = 8
"""Bits of an element without quantisation, as in the reference."""
LINES = [("OY", "all")]


def edges(graph: CnGraph) -> dict[tuple[str, str], int]:
    """(source, target) -> elements, for the edges that carry data."""
    return {
        (cn_name(graph, int(source)), cn_name(graph, int(target))): int(bits) // ELEMENT_BITS
        for source, target, operand, bits in zip(
            graph.edge_source, graph.edge_target, graph.edge_operand, graph.edge_bits, strict=True
        )
        if operand != ORDERING
    }


def test_a_window_needs_its_neighbours_and_no_padding() -> None:
    """3x3 on 6 lines of 8 channels x 6 pixels: line 0 needs lines 0 and 1; line 2 needs lines 1, 2 and 3."""
    workload = two_convolutions()
    graph = build_cn_graph(workload, tiled(workload, {"a": LINES, "b": LINES}))
    found = edges(graph)
    assert {pair: n for pair, n in found.items() if pair[1] in ("1.0", "1.2")} == {
        ("0.0", "1.0"): 48,
        ("0.1", "1.0"): 48,
        ("0.1", "1.2"): 48,
        ("0.2", "1.2"): 48,
        ("0.3", "1.2"): 48,
    }
    assert len(found) == 16
    assert graph.links[0].is_exact
    assert graph.links[0].bits == sum(found.values()) * ELEMENT_BITS


def test_an_edge_carries_the_overlap_not_the_tile() -> None:
    """Tiles of 3 lines feed tiles of 2 lines: 0-1 needs lines 0-2, 2-3 needs 1-4, 4-5 needs 3-5, with 48 elements a
    line.
    """
    workload = two_convolutions()
    graph = build_cn_graph(workload, tiled(workload, {"a": [("OY", 2)], "b": [("OY", 3)]}))
    lines = {pair: elements // 48 for pair, elements in edges(graph).items()}
    assert lines == {("0.0", "1.0"): 3, ("0.0", "1.1"): 2, ("0.1", "1.1"): 2, ("0.1", "1.2"): 3}


def test_only_the_last_step_of_a_reduction_feeds_others() -> None:
    """The producer is cut into 2 steps of C: only step 1 has the sums. Each of the consumer's 2 steps of C
    needs half.
    """
    workload = two_convolutions()
    graph = build_cn_graph(workload, tiled(workload, {"a": [("C", 2)], "b": [("C", 2)]}))
    assert edges(graph) == {("0.1", "1.0"): 4 * 36, ("0.1", "1.1"): 4 * 36}
    ordering = graph.edge_operand == ORDERING
    assert list(zip(graph.edge_source[ordering], graph.edge_target[ordering], strict=True)) == [(0, 1), (2, 3)]
    assert graph.output_bits[:2].tolist() == [0, 8 * 36 * ELEMENT_BITS]


def test_a_stride_larger_than_the_window_skips_lines() -> None:
    """A 1x1 window with stride 2 on 6 lines needs only lines 0, 2 and 4, and of each line only pixels 0, 2 and 4."""
    nodes = [conv("x", "w0", "a"), conv("a", "w1", "b", strides=[2, 2])]
    workload = read(nodes, None, {"w0": (8, 4, 1, 1), "w1": (4, 8, 1, 1)})
    graph = assert_equals_enumeration(workload, tiled(workload, {"a": LINES}))
    assert edges(graph) == {("0.0", "1.0"): 24, ("0.2", "1.0"): 24, ("0.4", "1.0"): 24}


def test_depthwise_channels_need_their_own_channel_only() -> None:
    """The loop over G has 4 tiles: each half of the producer's channels feeds two groups."""
    nodes = [conv("x", "w0", "a"), conv("a", "w1", "b", group=4)]
    workload = read(nodes, None, {"w0": (4, 4, 1, 1), "w1": (4, 1, 1, 1)})
    graph = build_cn_graph(workload, tiled(workload, {"a": [("K", 2)], "b": [("G", 4)]}))
    assert edges(graph) == {("0.0", "1.0"): 36, ("0.0", "1.1"): 36, ("0.1", "1.2"): 36, ("0.1", "1.3"): 36}


def between(nodes: list, constants: dict, weight: tuple[int, ...] = (4, 4, 1, 1)):  # type: ignore[no-untyped-def,type-arg]
    """A convolution `a`, moves of data from `a` to `m`, and a convolution `b`; both convolutions are cut into lines."""
    whole = [conv("x", "w0", "a"), *nodes, conv("m", "w1", "b")]
    workload = read(whole, None, {"w0": (4, 4, 1, 1), "w1": weight, **constants})
    return workload, tiled(workload, {"a": LINES, "b": LINES})


MOVES = {
    "Transpose": ([make_node("Transpose", ["a"], ["m"], perm=[0, 1, 3, 2])], {}),
    "Slice": (
        [make_node("Slice", ["a", "from", "to", "axes"], ["m"])],
        {"from": [2], "to": [5], "axes": [2]},
    ),
    "Pad": ([make_node("Pad", ["a", "pads"], ["m"])], {"pads": [0, 0, 1, 0, 0, 0, 0, 0]}),
    "Split and Concat, turned round": (
        [
            make_node("Split", ["a"], ["p", "q"], axis=2, num_outputs=2),
            make_node("Concat", ["q", "p"], ["m"], axis=2),
        ],
        {},
    ),
    "Reshape there and back": (
        [make_node("Reshape", ["a", "flat"], ["f"]), make_node("Reshape", ["f", "image"], ["m"])],
        {"flat": [4, 36], "image": [1, 4, 6, 6]},
    ),
    "depth to space": ([make_node("DepthToSpace", ["a"], ["m"], blocksize=2)], {}),
}


@pytest.mark.parametrize("name", MOVES)
def test_moves_of_data_are_looked_through(name: str) -> None:
    """Edges and elements behind a move equal the enumeration, and the links are marked exact except for one move."""
    nodes, constants = MOVES[name]
    weight = (4, 1, 1, 1) if name == "depth to space" else (4, 4, 1, 1)
    graph = assert_equals_enumeration(*between(nodes, constants, weight))
    assert graph.data_edge_count > 0
    assert all(link.is_exact for link in graph.links) or name == "depth to space"


def test_what_is_needed_along_two_ways_flows_once() -> None:
    """b reads lines 0-3 and 2-5 of a, joined: 6 lines of 24 elements flow, not 8."""
    nodes = [
        make_node("Slice", ["a", "zero", "four", "two"], ["p"]),
        make_node("Slice", ["a", "two", "six", "two"], ["q"]),
        make_node("Concat", ["p", "q"], ["m"], axis=2),
    ]
    workload, _ = between(nodes, {"zero": [0], "two": [2], "four": [4], "six": [6]})
    for cut in ({}, {"a": [("OY", 3)]}, {"a": LINES, "b": [("OY", 2)]}, {"a": [("OY", 2)], "b": [("OY", 3), ("K", 2)]}):
        graph = assert_equals_enumeration(workload, tiled(workload, cut))
        assert all(link.is_exact for link in graph.links)
    graph = build_cn_graph(workload, tiled(workload))
    assert edges(graph) == {("0.0", "1.0"): 6 * 24}


def test_flattened_images_are_bounded_by_boxes_and_said_to_be() -> None:
    """A fully connected layer that reads 10 of 36 pixels in a row: the box is larger than the need, and the link is
    marked inexact.
    """
    nodes = [
        conv("x", "w0", "a"),
        make_node("Reshape", ["a", "flat"], ["m"]),
        make_node("Gemm", ["m", "w1"], ["b"], name="b"),
    ]
    workload = read(nodes, None, {"w0": (4, 4, 1, 1), "w1": (144, 3), "flat": [1, 144]})
    graph = assert_equals_enumeration(workload, tiled(workload, {"a": LINES, "b": [("C", 15)]}))
    assert [link.is_exact for link in graph.links] == [False]
    graph = assert_equals_enumeration(workload, tiled(workload, {"a": LINES, "b": [("C", 4)]}))
    assert [link.is_exact for link in graph.links] == [True], "a tile is a channel"


def test_weights_are_told_apart_by_their_ranges() -> None:
    """CNs that read different ranges of a tensor need different contents.

    K is cut into 2 tiles and the lines into 6. The weights have two contents, each read by 6 CNs. The input has 6
    contents, with halos that are clipped at the borders.
    """
    workload = two_convolutions()
    graph = build_cn_graph(workload, tiled(workload, {"a": [("K", 2), ("OY", 6)]}))
    first = graph.read_cn < 12
    by_tensor: dict[str, list[int]] = {}
    for content in graph.read_content[first].tolist():
        by_tensor.setdefault(graph.sources[graph.content_source[content]].name, []).append(content)
    assert {name: len(set(contents)) for name, contents in by_tensor.items()} == {"w0": 2, "x": 6}
    assert [by_tensor["w0"].count(content) for content in sorted(set(by_tensor["w0"]))] == [6, 6]
    boxes = [content_box(graph, content)[2].tolist() for content in sorted(set(by_tensor["x"]))]
    assert boxes == [[0, 2], [0, 3], [1, 4], [2, 5], [3, 6], [4, 6]]
    assert graph.content_bits[sorted(set(by_tensor["w0"]))].tolist() == [4 * 4 * 9 * ELEMENT_BITS] * 2


def test_what_leaves_the_network_is_known_per_cn() -> None:
    """The sum of both results leaves the network; the result of layer a does not."""
    workload = two_convolutions()
    graph = build_cn_graph(workload, tiled(workload, {"a": LINES, "b": [("OY", 4)]}))
    assert graph.network_output_bits.tolist() == [0] * 6 + [2 * 24 * ELEMENT_BITS] * 3


def test_a_reduction_split_over_cores_is_refused() -> None:
    """Groups by C raise an error, because they would leave partial sums on two cores."""
    workload = two_convolutions()
    cut = LayerTiling(workload.nodes[0].node_id, (OuterLoop("C", 2, 2),), (0,))
    rest = LayerTiling(workload.nodes[1].node_id)
    with pytest.raises(InputError, match="reduction cannot be split over cores without") as caught:
        build_cn_graph(workload, Tiling((cut, rest), ((cut.node_id, rest.node_id),)))
    assert caught.value.problems[0].allowed == "B, K, G, OX, OY"


def test_tiles_that_add_to_the_same_elements_run_on_one_core() -> None:
    """Lines of a transposed convolution with overlapping windows may run in order on one core, not on several cores."""
    nodes = [make_node("ConvTranspose", ["x", "w0"], ["a"], name="a"), conv("a", "w1", "b")]
    workload = read(nodes, {"x": (1, 2, 4, 4)}, {"w0": (2, 2, 3, 3), "w1": (2, 2, 1, 1)})
    node = next(node for node in workload.nodes if node.layer is not None)
    assert node.layer is not None
    assert_equals_enumeration(workload, tiled(workload, {node.name: LINES, "b": LINES}))
    cut = LayerTiling(node.node_id, (OuterLoop("OY", node.layer.size_of["OY"], 1),), (0,))
    others = tuple(
        LayerTiling(other.node_id) for other in workload.nodes if other.layer is not None and other is not node
    )
    ids = (cut.node_id, *(other.node_id for other in others))
    with pytest.raises(InputError, match="reduction"):
        build_cn_graph(workload, Tiling((cut, *others), (ids,)))


def test_both_operands_from_one_producer_are_two_edges() -> None:
    """A product of a tensor with itself, cut into lines, has two edges from each producer CN."""
    nodes = [conv("x", "w0", "a"), make_node("Mul", ["a", "a"], ["b"], name="b")]
    workload = read(nodes, None, {"w0": (4, 4, 1, 1)})
    graph = assert_equals_enumeration(workload, tiled(workload, {"a": LINES, "b": LINES}))
    names = [graph.operands[operand] for operand in graph.edge_operand if operand != ORDERING]
    assert sorted(names) == ["I"] * 6 + ["W"] * 6


def test_a_list_of_layers_without_tensors_is_refused() -> None:
    """A workload without tensors raises an error; the reference profile reads workloads without tensors."""
    workload = two_convolutions()
    bare = replace(workload, tensors=(), nodes=tuple(replace(node, index_maps=()) for node in workload.nodes))
    with pytest.raises(InputError, match="do not describe the tensors between them"):
        build_cn_graph(bare, tiled(workload))


def test_columns_are_sorted_and_of_equal_length() -> None:
    """Targets and readers ascend, and every edge comes from an earlier CN."""
    nodes = [conv("x", "w0", "a", **SAME), make_node("Add", ["a", "x"], ["b"], name="b")]
    workload = read(nodes, {"x": IMAGE}, {"w0": (4, 4, 3, 3)})
    graph = build_cn_graph(workload, tiled(workload, {"a": LINES, "b": [("OX", 3)]}))
    assert (np.diff(graph.edge_target) >= 0).all()
    assert (np.diff(graph.read_cn) >= 0).all()
    assert (graph.edge_source < graph.edge_target).all()
    assert len(graph.edge_source) == len(graph.edge_target) == len(graph.edge_operand) == len(graph.edge_bits)


def test_a_layer_in_no_stack_is_told() -> None:
    """Both layers are reported when no stack contains them."""
    workload = two_convolutions()
    with pytest.raises(InputError, match="in exactly one stack") as caught:
        build_cn_graph(workload, replace(tiled(workload), stacks=()))
    assert [problem.path for problem in caught.value.problems] == ["a", "b"]


def test_edges_of_many_nodes_are_as_many_as_arithmetic_says() -> None:
    """The number of edges is as expected if every CN makes one of n x n pixels.

    The 3x3 windows of layer b read (3n - 2)^2 pixels in total. Each pixel of layer c reads one pixel of a and one of b.
    Order edges chain the CNs of each layer.
    """
    side = 60
    nodes = [
        conv("x", "w0", "a", **SAME),
        conv("a", "w1", "b", **SAME),
        make_node("Add", ["a", "b"], ["c"], name="c"),
    ]
    workload = read(nodes, {"x": (1, 2, side, side)}, {"w0": (2, 2, 3, 3), "w1": (2, 2, 3, 3)})
    pixels = [("OX", "all"), ("OY", "all")]
    graph = build_cn_graph(workload, tiled(workload, dict.fromkeys("abc", pixels)))
    assert graph.cn_count == 3 * side**2
    assert graph.data_edge_count == (3 * side - 2) ** 2 + 2 * side**2
    assert len(graph.edge_source) - graph.data_edge_count == 3 * (side**2 - 1)
    assert set(graph.edge_bits[graph.edge_operand != ORDERING].tolist()) == {2 * ELEMENT_BITS}
