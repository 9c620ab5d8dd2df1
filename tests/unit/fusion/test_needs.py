"""Layers that are cut alike are worked out once, and only these."""

from onnx.helper import make_node
from tilewright.fusion.layer_cuts import LayerCut, layer_cuts
from tilewright.fusion.needs import network_tensors
from tilewright.workload.graph import Workload

from tests.unit.fusion.networks import SAME, conv, read
from tests.unit.fusion.test_generation import tiled

WEIGHTS = {"w0": (4, 4, 3, 3), "w1": (4, 4, 3, 3), "w2": (4, 4, 3, 3)}


def cuts(workload: Workload, counts: dict[str, list[tuple[str, int | str]]]) -> list[LayerCut]:
    """The layers of a network, cut into these numbers of tiles."""
    network = network_tensors(workload)
    tiling = tiled(workload, counts)
    nodes = [node for node in workload.nodes if node.layer is not None]
    return layer_cuts(nodes, [tiling.of_node[node.node_id] for node in nodes], network)


def chain() -> Workload:
    """Three equal convolutions."""
    names = [("x", "w0", "a"), ("a", "w1", "b"), ("b", "w2", "c")]
    return read([conv(*each, **SAME) for each in names], constants=WEIGHTS)


def test_layers_that_differ_in_names_only_are_one() -> None:
    """Equal convolutions of a chain, cut alike."""
    first, second, third = cuts(chain(), {name: [("OY", 3)] for name in "abc"})
    assert first is second is third


def test_another_cut_is_another_layer() -> None:
    """One of three into two tiles instead of three."""
    first, second, third = cuts(chain(), {"a": [("OY", 3)], "b": [("OY", 2)], "c": [("OY", 3)]})
    assert first is third is not second
    assert (first.grid.cn_count, second.grid.cn_count) == (3, 2)


def test_relations_tell_layers_of_equal_loops_apart() -> None:
    """Two convolutions with the same loops: one pads before, the other behind."""
    before, behind = {"pads": [2, 2, 0, 0]}, {"pads": [0, 0, 2, 2]}
    nodes = [conv("x", "w0", "a", **before), conv("x", "w1", "b", **behind), make_node("Add", ["a", "b"], ["y"])]
    first, second, _ = cuts(read(nodes, constants=WEIGHTS), {"a": [("OY", 3)], "b": [("OY", 3)]})
    assert first.node.layer.loop_sizes == second.node.layer.loop_sizes
    assert first is not second
    lines = [[demand.boxes[:, 2].tolist() for demand in cut.demands if demand.dimensions] for cut in (first, second)]
    assert lines == [[[[0, 2], [0, 4], [2, 6]]], [[[0, 4], [2, 6], [4, 6]]]]
