"""One tensor cut into pieces: a grid of segments, or several where parts of it are needed in different ways.

An axis is cut wherever a tile of the producer ends or what some CN needs begins or ends. Readers that need disjoint
parts of an axis (queries, keys and values in one tensor) need not cut the other axes of one another: such parts have
grids of their own where that makes at most half as many pieces.
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tilewright.fusion.axis_join import NOBODY, owners_of_indices
from tilewright.fusion.axis_rows import whole_owners
from tilewright.fusion.flows import Link, flows
from tilewright.fusion.grid import Integers, LayerGrid
from tilewright.fusion.needs import Demand
from tilewright.fusion.outer_loops import LayerTiling
from tilewright.fusion.producers import Producer
from tilewright.workload.access import Shape

OUTSIDE = -1
"""Producer of constants and network inputs."""
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Cutting:
    """The pieces of one tensor, numbered from 0, as layers that are cut alike share them."""

    bits: Integers
    """[piece]"""
    producer: Integers
    """[piece] CN of the producer's layer, or OUTSIDE"""
    needs: tuple[tuple[Integers, Integers], ...]
    """[reader] (CN of its layer, piece)"""


@dataclass(frozen=True, eq=False)
class _Block:
    """A part of a tensor in a grid of pieces, numbered with the last axis fastest."""

    starts: tuple[Integers, ...]
    """For each axis: first index of each segment."""
    sizes: Shape
    made_by: Producer | None
    """How a layer makes it; None from outside."""
    part: tuple[int, Flags] | None = None
    """(axis, [index] whether it is of this block); None: the block is the whole tensor."""

    def as_producer(self) -> Producer:
        """Pieces in the place of CNs."""
        owners = []
        stride = 1
        for axis, (start, size) in reversed(list(enumerate(zip(self.starts, self.sizes, strict=True)))):
            if len(start) == 1:
                owners.append(whole_owners(0, size, size))
            else:
                of_index = np.repeat(np.arange(len(start)) * stride, _lengths(start, size))
                if self.part is not None and self.part[0] == axis:
                    of_index = np.where(self.part[1], of_index, NOBODY)
                owners.append(owners_of_indices(of_index))
            stride *= len(start)
        return Producer(LayerGrid((), LayerTiling(-1)), tuple(reversed(owners)))

    def segments(self, piece: Integers) -> list[Integers]:
        """For each axis: [piece] segment."""
        found = []
        for start in reversed(self.starts):
            if len(start) == 1:
                found.append(np.zeros(len(piece), np.int64))
            else:
                found.append(piece % len(start))
                piece = piece // len(start)
        return found[::-1]

    def is_made(self, piece: Integers) -> Flags:
        """Whether anything makes a piece: parts of a tensor that no CN writes are no data."""
        made = np.ones(len(piece), dtype=bool)
        if self.made_by is not None:
            for start, owners, segment in zip(self.starts, self.made_by.owners, self.segments(piece), strict=True):
                if (owners.run_owner == NOBODY).any():
                    made &= owners.of_index[start[segment]] != NOBODY
        return made

    def bits_and_owner(self, piece: Integers, element_bits: int) -> tuple[Integers, Integers]:
        """([piece] bits, [piece] CN of the producer's layer that makes it, or OUTSIDE)."""
        bits = np.full(len(piece), element_bits, np.int64)
        number = np.zeros(len(piece), np.int64)
        for axis, segment in enumerate(self.segments(piece)):
            start, size = self.starts[axis], self.sizes[axis]
            if len(start) == 1:
                bits *= size
                number += 0 if self.made_by is None else self.made_by.owners[axis].of_index[0]
                continue
            bits *= _lengths(start, size)[segment]
            if self.made_by is not None:
                number += self.made_by.owners[axis].of_index[start[segment]]
        if self.made_by is None:
            return bits, np.full(len(piece), OUTSIDE, np.int64)
        return bits, self.made_by.cns(number)


def _lengths(start: Integers, size: int) -> Integers:
    """[segment] length of the segments of an axis."""
    return np.append(start[1:], size) - start


def cutting(
    shape: Shape,
    element_bits: int,
    readers: tuple[tuple[tuple[Demand, ...], LayerGrid], ...],
    made_by: Producer | None,
) -> Cutting:
    """The pieces of a tensor that anybody needs."""
    bits: list[Integers] = []
    owner: list[Integers] = []
    needs: list[list[tuple[Integers, Integers]]] = [[] for _ in readers]
    count = 0
    for block in _blocks(shape, [demand for demands, _ in readers for demand in demands], made_by):
        as_producer = block.as_producer()
        found = []
        for demands, grid in readers:
            needed = flows([Link(demands, as_producer, grid)])
            cn, piece = needed.target, needed.source
            made = block.is_made(piece)
            found.append((cn, piece) if made.all() else (cn[made], piece[made]))
        used = np.unique(np.concatenate([piece for _, piece in found]))
        for its_needs, (cn, piece) in zip(needs, found, strict=True):
            its_needs.append((cn, np.searchsorted(used, piece) + count))
        for column, values in zip((bits, owner), block.bits_and_owner(used, element_bits), strict=True):
            column.append(values)
        count += len(used)
    return Cutting(_joined(bits), _joined(owner), tuple([_in_order(its_needs) for its_needs in needs]))


def _joined(parts: list[Integers]) -> Integers:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _in_order(parts: list[tuple[Integers, Integers]]) -> tuple[Integers, Integers]:
    """(CN, piece) of all blocks by CN."""
    if len(parts) == 1:
        return parts[0]
    cn, piece = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    order = np.argsort(cn, kind="stable")
    return cn[order], piece[order]


def _blocks(shape: Shape, demands: list[Demand], made_by: Producer | None) -> list[_Block]:
    """The tensor as one grid, or along one axis in parts whose grids have at most half as many pieces together."""
    starts = tuple(_segments(axis, size, demands, made_by) for axis, size in enumerate(shape))
    best = [_Block(starts, shape, made_by)]
    if sum(len(start) > 1 for start in starts) < 2 or len(demands) < 2:
        return best
    # The last column that a stride leaves alone is not worth a grid of its own.
    fewest = _cell_count(best) // 2 + 1
    partial = [demand for demand in demands if not _is_whole(demand, shape)]
    for axis in range(len(shape)):
        blocks = _blocks_along(axis, starts, shape, partial, made_by)
        if _cell_count(blocks) < fewest:
            best, fewest = blocks, _cell_count(blocks)
    return best


def _is_whole(demand: Demand, shape: Shape) -> bool:
    """Whether every box is the whole tensor."""
    bounds = [demand.bounds(axis) for axis in range(len(shape))]
    return all(
        bool((first == 0).all() and (end == size).all()) for (first, end), size in zip(bounds, shape, strict=True)
    )


def _cell_count(blocks: list[_Block]) -> int:
    """Cells of the grids of all blocks."""
    count = 0
    for block in blocks:
        lengths = [len(start) for start in block.starts]
        if block.part is not None:
            axis, inside = block.part
            lengths[axis] = int(inside[block.starts[axis]].sum())
        count += math.prod(lengths)
    return count


def _blocks_along(
    axis: int, starts: tuple[Integers, ...], shape: Shape, demands: list[Demand], made_by: Producer | None
) -> list[_Block]:
    """A block for each way in which parts of an axis are needed: none of the demands reaches from one to another."""
    hulls = sorted(
        (int(first.min()), int(end.max()), place)
        for place, (first, end) in enumerate(demand.bounds(axis) for demand in demands)
        if len(first)
    )
    parts: list[tuple[int, int, list[Demand]]] = []
    for first, end, place in hulls:
        if parts and first < parts[-1][1]:
            before = parts.pop()
            parts.append((before[0], max(before[1], end), [*before[2], demands[place]]))
        else:
            parts.append((first, end, [demands[place]]))
    blocks: dict[bytes, _Block] = {}
    rest = np.ones(shape[axis], dtype=bool)
    for first, end, members in parts:
        inside = np.zeros(shape[axis], dtype=bool)
        inside[first:end] = True
        rest &= ~inside
        _add_part(blocks, (axis, inside), starts, shape, members, made_by)
    if rest.any():
        _add_part(blocks, (axis, rest), starts, shape, [], made_by)
    return list(blocks.values())


def _add_part(
    blocks: dict[bytes, _Block],
    part: tuple[int, Flags],
    starts: tuple[Integers, ...],
    shape: Shape,
    demands: list[Demand],
    made_by: Producer | None,
) -> None:
    """Add a part of an axis to the block that has its segments along the other axes, or as a block of its own."""
    axis, inside = part
    own = tuple(
        starts[other] if other == axis else _segments(other, size, demands, made_by) for other, size in enumerate(shape)
    )
    key = b"/".join(start.tobytes() for start in own)
    known = blocks.get(key)
    if known is not None and known.part is not None:
        inside = inside | known.part[1]
    blocks[key] = _Block(own, shape, made_by, (axis, inside))


def _segments(axis: int, size: int, demands: list[Demand], made_by: Producer | None) -> Integers:
    """First index of each segment of an axis: where a tile of the producer or something needed begins or ends."""
    is_uncut = made_by is None or made_by.owners[axis].only is not None
    if is_uncut and size and all(demand.is_whole(axis, size) for demand in demands):
        return np.zeros(1, np.int64)
    begins = np.zeros(size + 1, dtype=bool)
    begins[0] = True
    if made_by is not None:
        begins[made_by.owners[axis].run_start] = True
    for demand in demands:
        for bound in demand.bounds(axis):
            begins[bound] = True
    return np.flatnonzero(begins[:size]).astype(np.int64)
