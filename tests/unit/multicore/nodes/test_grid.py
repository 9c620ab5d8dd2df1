"""Numbers, ranges and groups of the CNs of one layer, worked out by hand."""

import pytest
from tilewright.multicore.nodes.grid import LayerGrid
from tilewright.multicore.nodes.tiling import LayerTiling, OuterLoop, counted_loops, layer_tiling
from tilewright.workload.layer import Layer

from tests.unit.multicore.nodes.brute_force import ranges_of_cns


def layer(**sizes: int) -> Layer:
    """A layer with these loops."""
    return Layer("l", "Conv", (("O", tuple(sizes)), ("I", tuple(sizes))), tuple(sizes.items()))


def grid(counts: list[tuple[str, int | str]], **sizes: int) -> LayerGrid:
    """The grid of a layer cut into these numbers of tiles, innermost loop first."""
    loops, _ = counted_loops(layer(**sizes), counts)
    return LayerGrid(tuple(sizes.items()), layer_tiling(0, loops, [True] * len(loops)))


def pairs(cut: LayerGrid, dimension: str) -> list[tuple[int, int]]:
    """(first, end) of every CN."""
    first, end = cut.ranges(dimension)
    return list(zip(first.tolist(), end.tolist(), strict=True))


def test_the_first_loop_counts_fastest() -> None:
    """K 2 inside of OY 3: CNs 0 and 1 are the halves of K of the first line."""
    cut = grid([("K", 2), ("OY", 3)], K=8, OY=3)
    assert pairs(cut, "K") == [(0, 4), (4, 8)] * 3
    assert pairs(cut, "OY") == [(0, 1), (0, 1), (1, 2), (1, 2), (2, 3), (2, 3)]


@pytest.mark.parametrize(
    ("size", "count", "expected"),
    [
        (6, 3, [(0, 2), (2, 4), (4, 6)]),
        (7, 2, [(0, 4), (4, 7)]),
        (7, 3, [(0, 3), (3, 6), (6, 7)]),
        (6, 4, [(0, 2), (2, 4), (4, 6)]),
        (5, 9, [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)]),
        (5, "all", [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)]),
        (5, 1, [(0, 5)]),
    ],
)
def test_the_last_tile_is_what_is_left(size: int, count: int | str, expected: list[tuple[int, int]]) -> None:
    """Tiles that do not divide their dimension are followed by a smaller one; nothing is padded or rounded away."""
    assert pairs(grid([("OY", count)], OY=size), "OY") == expected


def test_of_loops_over_one_dimension_the_first_is_the_finest() -> None:
    """K of 8 is cut into 2 tiles outside (0-4, 4-8), and each tile into 2 inside."""
    assert pairs(grid([("K", 2), ("OY", 2), ("K", 2)], K=8, OY=2), "K") == [
        *((0, 2), (2, 4), (0, 2), (2, 4)),
        *((4, 6), (6, 8), (4, 6), (6, 8)),
    ]


def test_empty_tiles_get_no_cn() -> None:
    """Tiles without elements get no CN.

    10 channels are cut into 2 tiles of 5, each tile of 5 into tiles of 3 and 2, and each of those into 3 tiles of at
    most one channel. A tile of 2 channels leaves the third tile empty.
    """
    cut = grid([("K", 3), ("K", 2), ("K", 2)], K=10)
    assert [loop.tile_size for loop in cut.loops] == [1, 3, 5]
    assert pairs(cut, "K") == [(k, k + 1) for k in range(10)]
    assert cut.full_numbers is not None
    assert cut.full_numbers.tolist() == [0, 1, 2, 3, 4, 6, 7, 8, 9, 10]


@pytest.mark.parametrize(
    "counts",
    [
        [("K", 3), ("OY", 2), ("K", 2), ("OX", "all"), ("K", 2)],
        [("OY", 2), ("OY", 3), ("OX", 2), ("OX", 2)],
        [("OX", 4), ("K", 3), ("OY", 5)],
    ],
)
def test_ranges_equal_an_odometer(counts: list[tuple[str, int | str]]) -> None:
    """The formulas give the ranges that counting the loops one by one gives."""
    sizes = {"K": 10, "OY": 7, "OX": 5}
    loops, _ = counted_loops(layer(**sizes), counts)
    tiling = layer_tiling(0, loops, [False] * len(loops))
    expected = ranges_of_cns(layer(**sizes), tiling)
    cut = LayerGrid(tuple(sizes.items()), tiling)
    assert cut.cn_count == len(expected)
    for dimension in sizes:
        assert pairs(cut, dimension) == [box[dimension] for box in expected]


def test_groups_are_the_values_of_the_group_loops() -> None:
    """The loop over K makes 2 groups; the loop over lines makes none."""
    tiling = LayerTiling(0, (OuterLoop("K", 2, 4), OuterLoop("OY", 3, 1)), (0,))
    assert LayerGrid((("K", 8), ("OY", 3)), tiling).groups.tolist() == [0, 1, 0, 1, 0, 1]
    assert tiling.group_count == 2


def test_fewer_tiles_than_asked_for_are_told() -> None:
    """A count that gives fewer tiles and a count larger than the dimension each give a notice."""
    _, notices = counted_loops(layer(OY=6, K=3), [("OY", 4), ("K", 8)])
    assert notices == [
        "l: OY of size 6 gives 3 tiles of size 2, not 4 tiles",
        "l: K of size 3 is too small for 8 tiles",
    ]
