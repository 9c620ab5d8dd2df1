"""Index maps: boxes of dependencies, compared with all pairs of elements that depend on each other."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tilewright.workload.access import (
    AxisIndex,
    IndexMap,
    Shape,
    TensorAccess,
    affine,
    fixed,
    identity_map,
    index_range,
    loop,
    reads_gaps,
)
from tilewright.workload.dependencies import input_boxes

from tests.unit.workload.dependency_tables import dependency_pairs, influences

Case = tuple[IndexMap, Shape, Shape]


def make_map(
    loops: dict[str, int], output: list[AxisIndex], source: list[AxisIndex], output_shape: Shape, input_shape: Shape
) -> Case:
    """A map with the shapes of its tensors."""
    accesses = TensorAccess("y", tuple(output)), TensorAccess("x", tuple(source))
    return IndexMap(tuple(loops.items()), *accesses), output_shape, input_shape


SHARP: dict[str, Case] = {
    "convolution, padded": make_map(
        {"K": 2, "C": 3, "OY": 4, "FY": 3}, [loop("K"), loop("OY")],
        [loop("C"), affine(("OY", 1), ("FY", 1), offset=-1)], (2, 4), (3, 4),
    ),
    "strided windows of one element with padding": make_map(
        {"OY": 4, "FY": 1}, [loop("OY")], [affine(("OY", 2), ("FY", 1), offset=-1)], (4,), (6,)
    ),
    "grouped channels": make_map(
        {"G": 3, "K": 2, "C": 2}, [affine(("G", 2), ("K", 1))], [affine(("G", 2), ("C", 1))], (6,), (6,)
    ),
    "flat axis to rows and columns": make_map(
        {"A": 3, "B": 4}, [affine(("A", 4), ("B", 1))], [loop("A"), loop("B")], (12,), (3, 4)
    ),
    "rows and columns to a flat axis": make_map(
        {"A": 3, "B": 4}, [loop("A"), loop("B")], [affine(("A", 4), ("B", 1))], (3, 4), (12,)
    ),
    "flat axis to an axis of the same loops": make_map(
        {"A": 3, "B": 4}, [affine(("A", 4), ("B", 1))], [affine(("A", 8), ("B", 2), offset=1)], (12,), (24,)
    ),
    "reversed": make_map({"A": 5}, [loop("A")], [loop("A", -1, 4)], (5,), (5,)),
    "slice of every second element": make_map({"A": 3}, [loop("A")], [loop("A", 2, 1)], (3,), (7,)),
    "second input of a concatenation": make_map({"A": 3}, [loop("A", 1, 2)], [loop("A")], (6,), (3,)),
    "broadcast": make_map({"A": 3, "B": 2}, [loop("A"), loop("B")], [fixed(0), loop("B")], (3, 2), (1, 2)),
    "scalar output": make_map({"A": 3}, [], [loop("A")], (), (3,)),
    "cropped output": make_map({"A": 5}, [loop("A", 1, -2)], [loop("A")], (3,), (5,)),
}  # fmt: skip


def smallest_boxes(case: Case, boxes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The smallest boxes around the dependencies, found element by element."""
    index_map, output_shape, input_shape = case
    outputs, inputs = dependency_pairs(index_map, output_shape, input_shape)
    places = np.array(np.unravel_index(outputs, output_shape or (1,))).T[:, : len(output_shape)]
    sources = np.array(np.unravel_index(inputs, input_shape or (1,))).T[:, : len(input_shape)]
    found = np.zeros((len(boxes), len(input_shape), 2), dtype=np.int64)
    possible = np.zeros(len(boxes), dtype=bool)
    for number, box in enumerate(boxes):
        chosen = sources[((places >= box[:, 0]) & (places < box[:, 1])).all(axis=1)]
        possible[number] = len(chosen) > 0
        if len(chosen):
            found[number, :, 0], found[number, :, 1] = chosen.min(axis=0), chosen.max(axis=0) + 1
    return found, possible


def all_boxes(shape: Shape) -> np.ndarray:
    """Every box of a tensor, also empty boxes and boxes that reach outside."""
    ends = [[(low, high) for low in range(-1, size + 1) for high in range(low, size + 2)] for size in shape]
    return np.array(list(product(*ends)), dtype=np.int64).reshape(-1, len(shape), 2) if shape else np.zeros((1, 0, 2))


@pytest.mark.parametrize("name", SHARP)
def test_boxes_are_the_smallest(name: str) -> None:
    """The input box of every output box is the hull of the elements that it depends on."""
    case = SHARP[name]
    boxes = all_boxes(case[1])
    expected, expected_possible = smallest_boxes(case, boxes)
    found, possible = input_boxes(case[0], boxes, case[1], case[2])
    assert (possible == expected_possible).all()
    assert (found == expected).all()


@st.composite
def any_map(draw: st.DrawFn) -> Case:
    """A map of up to four loops with any coefficients."""
    loops = {name: draw(st.integers(1, 4)) for name in "ABCD"[: draw(st.integers(0, 4))]}

    def axes() -> list[AxisIndex]:
        rank = draw(st.integers(0, 2))
        return [
            AxisIndex(
                tuple((name, draw(st.integers(-3, 3))) for name in loops if draw(st.booleans())),
                draw(st.integers(-3, 3)),
            )
            for _ in range(rank)
        ]

    output, source = axes(), axes()
    shapes = [tuple(draw(st.integers(1, 6)) for _ in side) for side in (output, source)]
    return make_map(loops, output, source, shapes[0], shapes[1])


@given(any_map())
@settings(max_examples=150, derandomize=True, deadline=None)
def test_boxes_hold_all_dependencies_of_any_map(case: Case) -> None:
    """Boxes of any map hold every needed element and nothing outside of the tensor."""
    boxes = all_boxes(case[1])
    expected, expected_possible = smallest_boxes(case, boxes)
    found, possible = input_boxes(case[0], boxes, case[1], case[2])
    assert (possible | ~expected_possible).all()
    own = expected_possible
    assert (found[own, :, 0] <= expected[own, :, 0]).all()
    assert (found[own, :, 1] >= expected[own, :, 1]).all()
    assert (found >= 0).all()
    assert (found[:, :, 1] <= np.array(case[2], dtype=np.int64)).all()


@st.composite
def single_term_map(draw: st.DrawFn) -> Case:
    """A map with one loop for each output axis, and input axes with unit steps over at most two loops, with padding."""
    loops = {name: draw(st.integers(1, 4)) for name in "ABC"}
    output = [loop(name, 1, draw(st.integers(-1, 1))) for name in "AB"]
    inner = draw(st.sampled_from(["B", "C"]))
    terms = ((inner, 1),) if inner == "C" else (("B", 1), ("C", 1))
    source = [loop("A"), AxisIndex(terms, draw(st.integers(-2, 1)))]
    shapes = [tuple(draw(st.integers(1, 6)) for _ in side) for side in (output, source)]
    return make_map(loops, output, source, shapes[0], shapes[1])


@given(single_term_map())
@settings(max_examples=60, derandomize=True, deadline=None)
def test_boxes_are_the_smallest_for_single_loops_and_unit_steps(case: Case) -> None:
    """Boxes are the smallest if every output axis is one loop and steps are 1."""
    boxes = all_boxes(case[1])
    expected, expected_possible = smallest_boxes(case, boxes)
    found, possible = input_boxes(case[0], boxes, case[1], case[2])
    assert (possible == expected_possible).all()
    assert (found == expected).all()


def test_many_large_boxes_need_no_enumeration() -> None:
    """Ten thousand boxes of a large convolution are found in one call without enumeration."""
    loops = {"K": 4096, "C": 4096, "OY": 4096, "FY": 3}
    source = [loop("C"), affine(("OY", 1), ("FY", 1), offset=-1)]
    index_map, *shapes = make_map(loops, [loop("K"), loop("OY")], source, (4096, 4096), (4096, 4096))
    rows = np.arange(10_000) % 4096
    boxes = np.stack([np.stack([rows * 0, rows * 0 + 16], 1), np.stack([rows, rows + 1], 1)], axis=1)
    found, possible = input_boxes(index_map, boxes, *shapes)
    assert possible.all()
    assert (found[:, 0] == [0, 4096]).all()
    assert (found[100, 1] == [99, 102]).all()
    assert (found[0, 1] == [0, 2]).all()


def test_identity_map_pairs_every_element_with_itself() -> None:
    """The table of an identity map is the identity matrix."""
    table = influences([identity_map("y", "x", (2, 3))], (2, 3), (2, 3))
    assert (table == np.eye(6, dtype=bool)).all()


def test_pairs_leave_out_padding_and_cropped_results() -> None:
    """Output 0 of a padded window reads the elements 0 and 1 of each row only."""
    case = SHARP["convolution, padded"]
    outputs, inputs = dependency_pairs(*case)
    assert sorted(set(inputs[outputs == 0].tolist())) == [0, 1, 4, 5, 8, 9]
    assert math.prod(case[1]) == 8


def test_index_range_follows_the_signs() -> None:
    """A negative coefficient reaches its smallest index at the last value of its loop."""
    assert index_range(affine(("A", 2), ("B", -3), offset=1), {"A": 3, "B": 2}) == (-2, 5)


@given(st.lists(st.tuples(st.integers(-4, 4), st.integers(1, 4)), min_size=1, max_size=3), st.integers(1, 4))
def test_gaps_are_values_between_the_ends_that_no_loop_value_gives(terms: list[tuple[int, int]], tile: int) -> None:
    """An axis has gaps if some index between its ends comes from no loop values; every index is tried.

    The first loop may have the size of a tile. Coefficients of 0 are left out.
    """
    loops = {f"L{number}": size for number, (_, size) in enumerate(terms)}
    axis = AxisIndex(tuple((name, step) for name, (step, _) in zip(loops, terms, strict=True)))
    index_map = IndexMap(tuple(loops.items()), TensorAccess("y", ()), TensorAccess("x", (axis,)))
    sizes = {**loops, "L0": min(tile, loops["L0"])}
    values = {
        sum(step * value for (step, _), value in zip(terms, each, strict=True))
        for each in product(*(range(size) for size in sizes.values()))
    }
    assert reads_gaps(index_map, {"L0": sizes["L0"], "K": 7}) == (len(values) < max(values) - min(values) + 1)


def test_a_map_that_is_a_superset_can_have_gaps() -> None:
    """A map that is a superset can have gaps, because its true reads are not known."""
    assert not reads_gaps(identity_map("y", "x", (3, 4)), {})
    assert reads_gaps(identity_map("y", "x", (3, 4), is_exact=False), {})
