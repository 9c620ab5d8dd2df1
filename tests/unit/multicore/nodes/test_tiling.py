"""Tilings by `cn_define_mode`, by mapping entries and by stacks."""

from typing import Any

import pytest
from onnx.helper import make_node
from tilewright.base.errors import InputError
from tilewright.mapping.source import parse_mapping
from tilewright.multicore.nodes.stacks import layer_stacks
from tilewright.multicore.nodes.tiling import HintLoopOptions, Tiling, hint_loop_tiling, mapped_tiling
from tilewright.multicore.nodes.weights import weight_bits, weight_tiles
from tilewright.workload.graph import Workload

from tests.unit.multicore.nodes.networks import SAME, conv, read, two_convolutions


def three_layers() -> Workload:
    """Convolutions a (4 to 8) and b (8 to 4), and the sum of b and the input: layers 0, 1, 2 of 6 x 6 pixels."""
    nodes = [
        conv("x", "w0", "a", **SAME),
        conv("a", "w1", "b", **SAME),
        make_node("Add", ["b", "x"], ["c"], name="c"),
    ]
    return read(nodes, None, {"w0": (8, 4, 3, 3), "w1": (4, 8, 3, 3)})


def loops(tiling: Tiling) -> list[list[tuple[str, int, int]]]:
    """(dimension, count, tile size) of the loops of each layer."""
    return [[(loop.dimension, loop.count, loop.tile_size) for loop in layer.loops] for layer in tiling.layers]


def hinted(workload: Workload, **options: Any) -> Tiling:
    """The tiling that these hint loop options make."""
    return hint_loop_tiling(workload, HintLoopOptions(**options))


def test_mode_1_puts_the_same_loops_around_every_layer() -> None:
    """Mode 1 skips a dimension that a layer does not have; `all` makes a tile for each line."""
    tiling = hinted(three_layers(), hint_loops=[("OY", "all"), ("C", 2)])
    assert loops(tiling) == [[("OY", 6, 1), ("C", 2, 2)], [("OY", 6, 1), ("C", 2, 4)], [("OY", 6, 1)]]


def test_without_loops_each_layer_is_one_cn() -> None:
    """Each layer is one CN if there are no hint loops."""
    assert loops(hinted(three_layers())) == [[], [], []]


def test_mode_2_keeps_the_loops_inside() -> None:
    """Mode 2 cuts every other dimension into single steps; 6 lines in tiles of 4 are a tile of 4 and one of 2."""
    inside = [("B", "all"), ("K", "all"), ("G", "all"), ("C", 9), ("FX", "all"), ("FY", "all"), ("OY", 4)]
    tiling = hinted(three_layers(), cn_define_mode=2, hint_loops=inside)
    assert loops(tiling) == [[("OX", 6, 1), ("OY", 2, 4)], [("OX", 6, 1), ("OY", 2, 4)], [("OY", 2, 4), ("OX", 6, 1)]]
    assert tiling.notices == (
        "a: C of size 4 is smaller than the size 9 in hint_loops",
        "b: C of size 8 is smaller than the size 9 in hint_loops",
    )


@pytest.mark.parametrize(
    "options",
    [
        {"hint_loops": [[("OY", 2)], [("OX", 3)], []], "layer_cutoffs": (1, 2)},
        {"hint_loops": {(0,): [("OY", 2)], (1,): [("OX", 3)]}},
    ],
)
def test_mode_3_has_loops_for_groups_of_layers(options: dict[str, Any]) -> None:
    """Mode 3 cuts groups of layers, given by cutoffs or by a table; layers outside the table are not cut."""
    tiling = hinted(three_layers(), cn_define_mode=3, **options)
    assert loops(tiling) == [[("OY", 2, 3)], [("OX", 3, 2)], []]


def test_mode_4_splits_the_weights_that_do_not_fit() -> None:
    """The weights of a have 8 x 4 x 9 x 8 = 2304 bits, of which a third fits: 2 of the 8 K, in 4 groups. Those of b
    fit.
    """
    workload = three_layers()
    options = {"hint_loops": [("OY", 3)], "weight_capacity_bits": {0: 768, 1: 2304}}
    tiling = hinted(workload, cn_define_mode=4, **options)
    assert loops(tiling) == [[("OY", 3, 2), ("K", 4, 2)], [("OY", 3, 2)], [("OY", 3, 2)]]
    assert [layer.group_count for layer in tiling.layers] == [4, 1, 1]


@pytest.mark.parametrize(
    ("capacity_bits", "expected"), [(2304, None), (2303, ("K", 2)), (1000, ("K", 3)), (288, ("K", 8))]
)
def test_the_largest_tile_of_split_weights_fits(capacity_bits: int, expected: tuple[str, int] | None) -> None:
    """Weights are cut over K into tiles that fit.

    The weights of layer a have 8 output channels of 288 bits. A memory of 1000 bits holds 3 of them, so K is cut into
    tiles of 3, 3 and 2.
    """
    layer = three_layers().nodes[0].layer
    assert layer is not None
    assert weight_bits(layer) == 2304
    assert weight_tiles(layer, capacity_bits) == expected


def test_weights_that_fit_in_no_tile_are_told_for_every_layer() -> None:
    """Both layers are reported when their weights fit in no tile."""
    with pytest.raises(InputError, match="weights for one index of K") as caught:
        hinted(three_layers(), cn_define_mode=4, weight_capacity_bits={0: 100, 1: 100})
    assert [problem.path for problem in caught.value.problems] == ["a", "b"]


WRONG_HINTS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "mode": ({"cn_define_mode": 5}, ["no mode for cutting layers into CNs has this number", "1, 2, 3, 4"]),
    "misspelt dimension": ({"hint_loops": [("OYY", 2)]}, ["hint_loops[0]", "'OY'"]),
    "size zero": ({"hint_loops": [("OY", 0)]}, ["at least 1"]),
    "size text": ({"hint_loops": [("OY", "al")]}, ["or all"]),
    "no pair": ({"hint_loops": [["OY"]]}, ["a loop dimension and a size"]),
    "both": ({"hint_loops": [("OYY", 2), ("OX", -1)]}, ["hint_loops[0]", "hint_loops[1]"]),
    "cutoffs": ({"cn_define_mode": 3, "hint_loops": [[], []]}, ["one less than the number of lists"]),
    "cutoffs fall": (
        {"cn_define_mode": 3, "hint_loops": [[], [], []], "layer_cutoffs": (2, 1)},
        ["must be in rising order"],
    ),
    "unknown layer": ({"cn_define_mode": 3, "hint_loops": {(7,): []}}, ["no layer has this id", "7"]),
    "layer twice": ({"cn_define_mode": 3, "hint_loops": {(0, 1): [], (1,): []}}, ["another list"]),
    "table in mode 1": (
        {"hint_loops": {(0,): []}},
        ["must be one list of loops, because the option cn_define_mode is not 3"],
    ),
}


@pytest.mark.parametrize("name", WRONG_HINTS)
def test_wrong_hint_loops_are_told(name: str) -> None:
    """Every wrong hint loop is reported, with the nearest name."""
    options, told = WRONG_HINTS[name]
    with pytest.raises(InputError) as caught:
        hinted(three_layers(), **options)
    for text in told:
        assert text in str(caught.value)


def mapped(workload: Workload, *entries: dict[str, Any], stacks: Any = ((0, 1, 2),)) -> Tiling:
    """The tiling that these mapping entries make."""
    return mapped_tiling(workload, parse_mapping(list(entries)).constraints_of(workload), stacks)


def test_tiles_between_cores_are_the_inner_loops_and_the_groups() -> None:
    """The loop over K for two cores is inside of the loop over lines, and makes the groups."""
    entry = {
        "name": "default",
        "intra_core_tiling": ["OY, all"],
        "inter_core_tiling": ["K, 2"],
        "core_allocation": [0, 1],
    }
    tiling = mapped(three_layers(), entry)
    assert loops(tiling) == [
        [("K", 2, 4), ("OY", 6, 1)],
        [("K", 2, 2), ("OY", 6, 1)],
        [("K", 2, 2), ("OY", 6, 1)],
    ]
    assert [layer.group_loops for layer in tiling.layers] == [(0,), (0,), (0,)]


def test_a_layer_alone_in_its_stack_has_no_tiles_one_after_the_other() -> None:
    """A layer alone in its stack keeps its parts for several cores and has no other tiles."""
    entry = {"name": "default", "intra_core_tiling": ["OY, all"], "inter_core_tiling": ["K, 2"]}
    tiling = mapped(three_layers(), entry, stacks=((0, 1), (2,)))
    assert loops(tiling)[2] == [("K", 2, 2)]


def test_without_a_tiling_fused_layers_have_two_tiles_of_lines() -> None:
    """Fused layers get two tiles of lines if they have no tiling, or one over dimensions that the layer lacks."""
    for entry in ({"name": "default"}, {"name": "default", "intra_core_tiling": ["D, 4"]}):
        assert loops(mapped(three_layers(), entry))[:2] == [[("OY", 2, 3)], [("OY", 2, 3)]]


def test_elementwise_layers_answer_to_the_names_of_the_reference() -> None:
    """H and D name axes 1 and 2 of four, which are channels and lines."""
    entry = {"name": "default", "intra_core_tiling": ["D, all"], "inter_core_tiling": ["H, 2"]}
    assert loops(mapped(three_layers(), entry))[2] == [("K", 2, 2), ("OY", 6, 1)]


def test_names_given_to_the_dimensions_count() -> None:
    """`layer_dimension_names` renames the dimensions in the order of the layer: B, K, OY, OX for an addition."""
    entries = (
        {"name": "default"},
        {"name": "Add", "intra_core_tiling": ["rows, 3"], "layer_dimension_names": ["n", "ch", "rows", "cols"]},
    )
    assert loops(mapped(three_layers(), *entries))[2] == [("OY", 3, 2)]


def test_an_open_number_is_one_tile_for_each_core() -> None:
    """`K, *` with three cores cuts 8 into 3, 3 and 2, with a notice; without core_allocation it is an error."""
    entry = {"name": "default", "inter_core_tiling": ["K, *"], "core_allocation": [0, 1, 2]}
    tiling = mapped(three_layers(), entry, stacks=((0,), (1,), (2,)))
    assert loops(tiling)[0] == [("K", 3, 3)]
    assert "a: `K, *` means 3 tiles, one for each core" in tiling.notices
    with pytest.raises(InputError, match="core_allocation, but core_allocation is not given"):
        mapped(three_layers(), {"name": "default", "inter_core_tiling": ["K, *"]})


def test_fixed_cores_must_be_as_many_as_groups() -> None:
    """Three fixed cores for two groups are an error; one fixed core is allowed."""
    entry = {
        "name": "default",
        "inter_core_tiling": ["K, 2"],
        "core_allocation": [0, 1, 2],
        "core_allocation_is_fixed": True,
    }
    with pytest.raises(InputError, match="fixes 3 cores, but a has 2 groups"):
        mapped(three_layers(), entry)
    entry["core_allocation"] = [1]
    assert mapped(three_layers(), entry).of_node[0].group_count == 2


def test_a_tile_larger_than_its_layer_is_told() -> None:
    """8 tiles of 6 lines become 6, with a notice."""
    tiling = mapped(two_convolutions(), {"name": "default", "intra_core_tiling": ["OY, 8"]}, stacks=((0, 1),))
    assert tiling.notices == ("a: OY of size 6 is too small for 8 tiles", "b: OY of size 6 is too small for 8 tiles")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"mode": "lbl"}, ((0,), (1,), (2,))),
        ({}, ((0, 1, 2),)),
        ({"weight_capacity_bits": 4608}, ((0, 1, 2),)),
        ({"weight_capacity_bits": 4607}, ((0,), (1,), (2,))),
        ({"stack_cutoffs": [0, 2]}, ((0,), (1, 2))),
        ({"stack_cutoffs": [1]}, ((0, 1), (2,))),
        ({"stack_cutoffs": [1, 2], "weight_capacity_bits": 2400}, ((0,), (1,), (2,))),
        ({"stacks": [[1, 2]]}, ((0,), (1, 2))),
        ({"stacks": [[2], [1, 0]]}, ((1, 0), (2,))),
    ],
)
def test_stacks(options: dict[str, Any], expected: tuple[tuple[int, ...], ...]) -> None:
    """Stacks follow from the weights: 2304 bits in each convolution and none in the addition."""
    assert layer_stacks(three_layers(), **options) == expected


def test_wrong_stacks_are_told() -> None:
    """An unknown layer, a layer in two stacks and an unknown mode are reported."""
    with pytest.raises(InputError) as caught:
        layer_stacks(three_layers(), stacks=[[0, 9], [0]])
    assert len(caught.value.problems) == 2
    with pytest.raises(InputError, match="lbl, fused"):
        layer_stacks(three_layers(), mode="layer by layer")
