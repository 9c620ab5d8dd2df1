"""Affine pieces of arrays of indices, and index maps of reshapes and of per-axis indices."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tilewright.workload.onnx.index_maps import (
    NOWHERE,
    Ends,
    TooManyPiecesError,
    axis_pieces,
    grid_pieces,
    reshape_maps,
    separable_maps,
)

from tests.unit.workload.dependency_tables import influences


def axis_indices(indices: list[int]) -> dict[int, int]:
    """Place -> index, from the pieces of an axis; checks that each place occurs once."""
    found: dict[int, int] = {}
    for piece in axis_pieces(indices):
        for values in np.ndindex(*(size for size, _, _ in piece.loops)):
            place = piece.output_start + sum(v * output for v, (_, output, _) in zip(values, piece.loops, strict=True))
            assert place not in found
            found[place] = piece.input_start + sum(v * own for v, (_, _, own) in zip(values, piece.loops, strict=True))
    return found


@given(
    st.one_of(
        st.lists(st.integers(NOWHERE, 4), max_size=25),
        st.builds(lambda count, ratio: [place * 2 // ratio for place in range(count)], *[st.integers(1, 30)] * 2),
        st.builds(lambda count, period: [place % period for place in range(count)], *[st.integers(1, 30)] * 2),
    )
)
@settings(max_examples=200, derandomize=True, deadline=None, database=None)
def test_axis_pieces_tell_every_index_once(indices: list[int]) -> None:
    """The pieces give every index once, for any list of indices; places without an index are left out."""
    expected = {place: index for place, index in enumerate(indices) if index != NOWHERE}
    assert axis_indices(indices) == expected


@pytest.mark.parametrize(
    ("indices", "count"),
    [
        (list(range(5, 50)), 1),
        (list(range(50, 0, -2)), 1),
        ([place // 3 for place in range(300)], 1),
        ([place % 7 for place in range(70)], 1),
        ([place * 2 // 3 for place in range(300)], 3),
        ([NOWHERE] * 4, 0),
        ([3], 1),
    ],
)
def test_regular_indices_are_few_pieces(indices: list[int], count: int) -> None:
    """Constant steps, repetition and periodic patterns need few pieces, however long the axis is."""
    assert len(axis_pieces(indices)) <= count


def test_indices_without_a_pattern_are_refused_beyond_a_limit() -> None:
    """Too many indices without a pattern raise TooManyPiecesError, and the caller has to use a superset."""
    with pytest.raises(TooManyPiecesError):
        axis_pieces(np.random.default_rng(0).integers(0, 10_000, 20_000))


@given(
    st.lists(st.integers(1, 4), max_size=3),
    st.integers(0, 2),
    st.integers(1, 3),
    st.floats(0, 1),
    st.integers(0, 10**6),
)
@settings(max_examples=150, derandomize=True, deadline=None, database=None)
def test_grid_pieces_tell_every_index_vector_once(
    sizes: list[int], components: int, most: int, share: float, seed: int
) -> None:
    """The pieces give every index vector once, for any array of index vectors with some places left out."""
    generator = np.random.default_rng(seed)
    values = generator.integers(0, most, (*sizes, components))
    kept = generator.random(tuple(sizes)) < share
    found = {}
    for piece in grid_pieces(values, kept):
        for place in np.ndindex(*piece.sizes):
            where = tuple(start + own for start, own in zip(piece.starts, place, strict=True))
            assert where not in found
            moved = [own * np.array(step) for own, step in zip(place, piece.steps, strict=True)]
            found[where] = tuple((np.array(piece.base) + sum(moved)).astype(int).tolist())
    expected = {place: tuple(values[place].tolist()) for place in np.ndindex(*sizes) if kept[place]}
    assert found == expected


@st.composite
def two_shapes(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Two shapes of equally many elements, with axes of size 1 between."""
    total = draw(st.sampled_from([1, 6, 12, 24, 30, 36, 60, 72, 120]))

    def shape() -> tuple[int, ...]:
        rest, sizes = total, []
        while rest > 1:
            sizes.append(draw(st.sampled_from([number for number in range(2, rest + 1) if rest % number == 0])))
            rest //= sizes[-1]
            sizes += [1] * draw(st.integers(0, 1))
        return tuple(draw(st.permutations(sizes)))

    return shape(), shape()


@given(two_shapes())
@settings(max_examples=150, derandomize=True, deadline=None, database=None)
def test_reshape_keeps_every_element_at_its_place(shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    """Element n of the output of a reshape is element n of the input, for any factors."""
    source, output = shapes
    maps = reshape_maps(Ends("y", output, "x", source))
    assert all(index_map.is_exact for index_map in maps)
    assert (influences(maps, output, source) == np.eye(math.prod(source), dtype=bool)).all()


@pytest.mark.parametrize(
    ("source", "output", "count"),
    [
        ((1, 197, 768), (1, 197, 12, 64), 1),
        ((2, 3, 4, 5), (6, 20), 1),
        ((4, 6), (6, 4), 4),
        ((1000, 4, 6), (1000, 6, 4), 4),
        ((30_000, 7), (7, 30_000), 19),
    ],
)
def test_reshapes_need_few_maps(source: tuple[int, ...], output: tuple[int, ...], count: int) -> None:
    """A reshape needs one map if the factors of its axes fit, and else at most a few, also for large tensors."""
    assert len(reshape_maps(Ends("y", output, "x", source))) <= count


def test_superset_of_a_reshape_stays_within_common_blocks() -> None:
    """Axes before and after the part of a reshape that does not fit keep their exact place."""
    (index_map,) = reshape_maps(Ends("y", (3, 2003, 2001, 2), "x", (3, 2001, 2003, 2)))
    assert not index_map.is_exact
    assert [index_map.output.axes[axis].terms == index_map.input.axes[axis].terms for axis in (0, 3)] == [True, True]
    small = Ends("y", (2, 4, 3, 2), "x", (2, 3, 4, 2))
    assert len(reshape_maps(small)) > 1


def test_too_many_combinations_of_axes_are_refused() -> None:
    """The pieces of all axes multiply, so too many combinations raise TooManyPiecesError."""
    pieces = axis_pieces(np.random.default_rng(0).permutation(200))
    with pytest.raises(TooManyPiecesError):
        separable_maps(Ends("y", (200, 200), "x", (200, 200)), [pieces, pieces])
