"""Tiles along an axis make all needed positions, each once if tiles keep data, and read nothing outside of the
input.
"""

from itertools import pairwise

from hypothesis import assume, given
from hypothesis import strategies as st
from tilewright.tiles.depth_first.axes import AxisWindow, axis_tiles, tile_ends


@st.composite
def chains(draw: st.DrawFn) -> tuple[AxisWindow, ...]:
    """Windows one after the other; the output of each is as long as the input of the next."""
    size = draw(st.integers(1, 24))
    windows: list[AxisWindow] = []
    for _ in range(draw(st.integers(1, 4))):
        stride, extent = draw(st.integers(1, 3)), draw(st.integers(1, 4))
        before, after = draw(st.integers(0, extent - 1)), draw(st.integers(0, extent - 1))
        present = (size - 1) * stride + extent - before - after
        assume(present >= 1)
        windows.append(AxisWindow(stride, extent, before, present, size))
        size = present
    return tuple(reversed(windows))


def needed(windows: tuple[AxisWindow, ...], outputs: set[int]) -> list[set[int]]:
    """[tensor] the positions from the first to the last one on which some outputs depend."""
    found = [outputs]
    for window in reversed(windows):
        reads = {
            o * window.stride - window.before + f
            for o in found[0]
            for f in range(window.extent)
            if 0 <= o * window.stride - window.before + f < window.input_size
        }
        found.insert(0, set(range(min(reads), max(reads) + 1)) if reads else set())
    return found


@given(chains(), st.integers(1, 30))
def test_tiles_that_compute_again_are_each_alone(windows: tuple[AxisWindow, ...], tile: int) -> None:
    """A tile that keeps nothing makes exactly the positions that its outputs need."""
    start = 0
    for own, end in zip(axis_tiles(windows, tile, False), tile_ends(windows[-1].output_size, tile), strict=True):
        sets = needed(windows, set(range(start, end)))
        assume(all(sets))
        assert list(own.made) == [len(positions) for positions in sets]
        assert list(own.read) == [len(positions) for positions in sets[:-1]]
        assert not any(own.reused)
        assert not any(own.kept)
        start = end
    assert start == windows[-1].output_size


@given(chains(), st.integers(1, 30))
def test_tiles_that_keep_make_everything_once(windows: tuple[AxisWindow, ...], tile: int) -> None:
    """The positions that a keeping tile reads are made by it or kept, and no position is made twice."""
    tiles = axis_tiles(windows, tile, True)
    done = [set[int]() for _ in range(len(windows) + 1)]
    start = 0
    for own, end in zip(tiles, tile_ends(windows[-1].output_size, tile), strict=True):
        wanted = set(range(start, end))
        for i in range(len(windows), -1, -1):
            new = wanted - done[i]
            assert own.made[i] == len(new)
            if i < len(windows):
                if wanted:
                    assert own.read[i] == len(wanted)
                    assert own.reused[i] == len(wanted & done[i])
                else:
                    assert own.read[i] == own.made[i] == 0
            done[i] |= wanted
            wanted = needed(windows[:i], new)[-2] if i and new else set()
        start = end
    for before, after in pairwise(tiles):
        assert all(kept <= made for kept, made in zip(before.kept, before.made, strict=False))
        assert all(kept <= reused for kept, reused in zip(before.kept, after.reused, strict=True))
    assert not any(tiles[-1].kept)


@given(chains(), st.integers(1, 30), st.booleans())
def test_the_remainder_comes_first(windows: tuple[AxisWindow, ...], tile: int, keeps: bool) -> None:
    """Tiles cover the output, and all but the first have the full size."""
    tiles = axis_tiles(windows, tile, keeps)
    assert [own.made[-1] for own in tiles[1:]] == [min(tile, windows[-1].output_size)] * (len(tiles) - 1)
    assert sum(own.made[-1] for own in tiles) == windows[-1].output_size
    assert [own.is_first for own in tiles] == [place == 0 for place in range(len(tiles))]
    assert [own.is_last for own in tiles[::-1]] == [place == 0 for place in range(len(tiles))]
