"""Classes of CNs that cost the same."""

from tilewright.multicore.nodes.generation import build_cn_graph

from tests.unit.multicore.nodes.networks import conv, read, two_convolutions
from tests.unit.multicore.nodes.test_generation import tiled


def test_border_tiles_are_classes_of_their_own() -> None:
    """Lines of a 3x3 on 6 lines: the first and the last CN read 2 lines, the others 3; columns are whole."""
    workload = two_convolutions()
    graph = build_cn_graph(workload, tiled(workload, {"a": [("OY", "all")]}))
    assert graph.shape[:6].tolist() == [0, 1, 1, 1, 1, 0]
    first, inner = graph.shapes[:2]
    assert dict(first.data_dimension_sizes) == {"IX": 6, "IY": 2}
    assert dict(inner.data_dimension_sizes) == {"IX": 6, "IY": 3}
    assert first.size_of["OY"] == 1


def test_smaller_tiles_are_classes_of_their_own() -> None:
    """Tiles of equal size are one class, and a smaller last tile is a second class.

    6 lines for 4 tiles: 3 tiles of 2 lines, one class. 4 channels for 3 tiles: 2 tiles of 2 channels, one class. 7
    lines for 2 tiles: a tile of 4 lines and a tile of 3 lines, two classes.
    """
    nodes = [conv("x", "w0", "a")]
    workload = read(nodes, None, {"w0": (4, 4, 1, 1)})
    graph = build_cn_graph(workload, tiled(workload, {"a": [("OY", 4), ("OX", 2)]}))
    assert [shape.size_of["OY"] for shape in graph.shapes] == [2]
    graph = build_cn_graph(workload, tiled(workload, {"a": [("K", 3)]}))
    assert [shape.size_of["K"] for shape in graph.shapes] == [2]
    workload = read(nodes, {"x": (1, 4, 7, 6)}, {"w0": (4, 4, 1, 1)})
    graph = build_cn_graph(workload, tiled(workload, {"a": [("OY", 2)]}))
    assert [shape.size_of["OY"] for shape in graph.shapes] == [4, 3]


def test_layers_of_equal_shape_share_their_classes() -> None:
    """Two layers share one class of CNs if only their names differ."""
    nodes = [conv("x", "w0", "a"), conv("a", "w1", "b")]
    workload = read(nodes, None, {"w0": (4, 4, 1, 1), "w1": (4, 4, 1, 1)})
    graph = build_cn_graph(workload, tiled(workload, {"a": [("OY", 3)], "b": [("OY", 3)]}))
    assert len(graph.shapes) == 1
    assert graph.shapes[0].name == ""


def test_a_layer_that_is_not_cut_costs_what_it_cost() -> None:
    """The only CN of an uncut layer has the sizes and precision of the layer."""
    workload = two_convolutions()
    graph = build_cn_graph(workload, tiled(workload))
    for shape, node in zip(graph.shapes, workload.nodes, strict=True):
        assert node.layer is not None
        assert shape.loop_sizes == node.layer.loop_sizes
        assert dict(shape.data_dimension_sizes) == dict(node.layer.data_dimension_sizes)
        assert shape.precision_bits == node.layer.precision_bits


def test_macs_of_all_cns_are_those_of_the_network() -> None:
    """The MACs of all CNs, border tiles included, add up to those of the network."""
    workload = two_convolutions(side=7)
    tiling = tiled(workload, {"a": [("OY", 3), ("K", 3)], "b": [("OX", 2), ("C", 3), ("OX", 2)]})
    graph = build_cn_graph(workload, tiling)
    assert sum(graph.shapes[shape].mac_count for shape in graph.shape) == sum(
        node.layer.mac_count for node in workload.nodes if node.layer is not None
    )
