"""Classes of CNs that cost the same."""

from dataclasses import replace

import pytest
from onnx.helper import make_node
from tilewright.mapping.constraints import Mapping, MappingConstraints, TilingEntry
from tilewright.multicore.scheduling.cost_classes import cost_classes, on_one_core

from tests.unit.multicore.nodes.networks import SAME, conv, read, two_convolutions
from tests.unit.pipeline.stages.multi.core_cases import ANY, cut


def test_classes_are_numbered_by_their_first_cn_and_cover_all_cns() -> None:
    """Six lines of two convolutions make two classes each: border lines and inner lines. First CNs number the
    classes.
    """
    workload = two_convolutions()
    graph = cut(workload, ("OY", "all"))
    found = cost_classes(graph, workload, ANY)
    assert [one.cn_count for one in found.classes] == [2, 4, 2, 4]
    assert found.of_cn.tolist() == [0, 1, 1, 1, 1, 0, 2, 3, 3, 3, 3, 2]
    assert [one.layers for one in found.classes] == [(0,), (0,), (1,), (1,)]
    assert [graph.shapes[one.shape].size_of["K"] for one in found.classes] == [8, 8, 4, 4]


def test_equal_layers_are_one_class_whatever_they_are_called() -> None:
    """Two convolutions of equal sizes, one behind the other, are one class."""
    nodes = [conv("x", "w", "a", **SAME), conv("a", "v", "b", **SAME)]
    workload = read(nodes, constants={"w": (4, 4, 3, 3), "v": (4, 4, 3, 3)})
    found = cost_classes(cut(workload), workload, ANY)
    assert [(one.layers, one.cn_count) for one in found.classes] == [((0, 1), 2)]


def test_what_the_mapping_file_says_for_one_core_makes_classes() -> None:
    """A different spatial mapping makes a second class; cores, tilings and names of entries do not."""
    nodes = [conv("x", "w", "a", **SAME), conv("a", "v", "b", **SAME)]
    workload = read(nodes, constants={"w": (4, 4, 3, 3), "v": (4, 4, 3, 3)})
    other = replace(MappingConstraints("b"), core_allocation=(1,), intra_core_tiling=(TilingEntry("OY", 2),))
    alike = Mapping((other, MappingConstraints("default")))
    assert len(cost_classes(cut(workload), workload, alike).classes) == 1
    unlike = Mapping((replace(other, spatial_mapping=(("D1", (("K", 4),)),)), MappingConstraints("default")))
    found = cost_classes(cut(workload), workload, unlike).classes
    assert [one.layers for one in found] == [(0,), (1,)]
    assert found[1].constraints == on_one_core(unlike.entries[0])
    assert found[1].constraints.name == ""


def test_a_part_of_an_operator_is_no_class_with_that_operator_alone() -> None:
    """An Exp that is a part of Softmax and an Exp alone are different classes, as a core may run only one of them."""
    nodes = [make_node("Exp", ["x"], ["a"], name="a"), make_node("Softmax", ["a"], ["b"], name="b")]
    workload = read(nodes, {"x": (1, 8)})
    graph = cut(workload)
    types = {node.node_id: (node.origin_type, node.operator_type) for node in workload.nodes}
    for one in cost_classes(graph, workload, ANY).classes:
        assert len({types[graph.layers[number].node_id][0] for number in one.layers}) == 1


@pytest.mark.parametrize(
    ("loops", "expected"),
    [
        ((("C", 4),), [(False, True, 1), (True, True, 2), (True, False, 1)]),
        ((("C", 2), ("OY", 3)), [(False, True, 2), (True, False, 2), (False, True, 1), (True, False, 1)]),
        ((("C", 2), ("FX", "all")), [(False, True, 1), (True, True, 4), (True, False, 1)]),
        ((("OY", 3), ("K", 2)), [(False, False, 4), (False, False, 2)]),
    ],
    ids=lambda value: str(value) if isinstance(value, tuple) else None,
)
def test_steps_of_a_reduction_are_classes(loops: tuple[tuple[str, int], ...], expected: list[object]) -> None:
    """Steps of a reduction are classes: the first step takes no partial sums, and the last step leaves none."""
    nodes = [conv("x", "w", "a")]
    workload = read(nodes, {"x": (1, 4, 9, 9)}, {"w": (8, 4, 3, 3)})
    found = cost_classes(cut(workload, *loops), workload, ANY).classes
    assert [(one.takes_partial_sums, one.leaves_partial_sums, one.cn_count) for one in found] == expected
