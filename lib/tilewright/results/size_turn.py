"""Order of two runs with another size of one on-chip memory, with the same mappings or with newly searched mappings.

A size is a choice for one accelerator, so it is changed in only one of the two runs. Costs from the library follow the
size. Costs that are written in the hardware file stay the same.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tilewright.base.json_values import JsonObject
from tilewright.results.order_turn import NAMES, NEGLIGIBLE, OrderTurn, percent

LARGEST_STEP = 3
"""Largest change of a size: multiplication or division by 2 to the power of LARGEST_STEP."""
TOLERANCE = 0.04
"""Accuracy of a bisection between two sizes of a memory, `near` and `far`; `near` is closer to the present size. The
bisection ends if |log(far / near)| is at most this share of |log(far / present size)|.
"""
_BYTE_BITS = 8


class SizedMemory(NamedTuple):
    """On-chip memory of one of two runs."""

    place: int
    """Index of the run: 0 or 1."""
    name: str
    size_bits: int
    """Present size of one instance of the memory, in bits."""
    has_library_costs: bool
    """True if the costs come from the library of costs, so that they follow the size."""

    @property
    def step_bits(self) -> int:
        """Step between possible sizes of the memory in bits: 8 (a byte), or 1 if the present size is no whole number of
        bytes.
        """
        return 1 if self.size_bits % _BYTE_BITS else _BYTE_BITS

    def resized(self, factor: float) -> int:
        """Size in bits after multiplication by a factor, rounded to a multiple of `step_bits` and at least
        `step_bits`.
        """
        return max(1, round(self.size_bits * factor / self.step_bits)) * self.step_bits

    @property
    def words(self) -> str:
        """Name of the memory with its run."""
        return f"{self.name} in {NAMES[self.place]}"

    def text(self, bits: int) -> str:
        """Text of a size."""
        unit = "B" if self.step_bits == _BYTE_BITS else "b"
        return f"{bits // self.step_bits:,} {unit}"


class TriedSize(NamedTuple):
    """Difference between the two runs at a tried size of one memory."""

    difference: float | None
    """Relative difference between the two runs: (v2 - v1) / v1, with the value v1 of the first run and the value v2 of
    the second run. None if the runs cannot be compared at this size.
    """
    reason: str = ""
    """Reason why the runs cannot be compared at this size; '' if they can be compared."""


class SizeTurn(NamedTuple):
    """Size of a memory at which the order of two runs is reversed, and the nearest tried size at which it is not
    reversed.
    """

    memory: SizedMemory
    bits: int
    difference: float
    before_bits: int
    before: TriedSize


@dataclass(frozen=True)
class SizeOrder:
    """Order of two runs in one measure (which run has the lower value), and whether another size of one on-chip memory
    reverses this order.
    """

    measure: str
    first: int
    is_searched: bool
    """True if mappings were searched for each size; False if the runs keep their mappings for all sizes."""
    now: float
    """Relative difference between the two runs at the present sizes: (v2 - v1) / v1, with the value v1 of the first run
    and the value v2 of the second run.
    """
    turn: SizeTurn | None = None
    """Smallest change that was found to reverse the order; None if none was found."""
    nearest: tuple[SizedMemory, int, float] | None = None
    """Triple (memory, size in bits, difference) of the tried size at which the second run comes closest to the first
    run. None if a size reverses the order, or if no size was tried.
    """
    misfits: tuple[tuple[SizedMemory, int, str], ...] = ()
    """Triples (memory, size in bits, reason) of sizes at which the runs cannot be compared. Sizes of the memory beyond
    such a size were not tried.
    """


Difference = Callable[[SizedMemory, int], TriedSize]
"""Function that compares both runs after the size of one memory is changed. Its arguments are the memory and the new
size in bits.
"""


def size_order(
    one: OrderTurn, memories: Sequence[SizedMemory], difference: Difference, is_searched: bool
) -> SizeOrder | None:
    """Order of two runs in the measure of `one`, with the smallest change of the size of one memory that reverses this
    order. None if there is no memory to change.

    The tried sizes are the present size times 2, 4, ... and divided by 2, 4, ... . Each factor is tried with one
    memory after another before a larger factor is tried. At the first factor that reverses the order with at least one
    memory, the change of each such memory is made as small as TOLERANCE allows. The smallest change is returned.
    """
    if not memories:
        return None
    now = difference(memories[0], memories[0].size_bits).difference
    assert now is not None
    found = SizeOrder(one.measure, one.first, is_searched, now)
    if now < 0:
        return found
    rows = [_Row(memory, way, difference) for memory in memories for way in (1, -1)]
    for step in range(1, LARGEST_STEP + 1):
        turned = [turn for row in rows if (turn := row.advance(step)) is not None]
        if turned:
            best = min(turned, key=lambda turn: _change(turn.memory, turn.bits))
            return SizeOrder(one.measure, one.first, is_searched, now, best, None, _misfits(rows))
    tried = [(row.memory, bits, value) for row in rows for bits, value in row.tried]
    nearest = min(tried, key=lambda point: point[2], default=None)
    return SizeOrder(one.measure, one.first, is_searched, now, None, nearest, _misfits(rows))


def _change(memory: SizedMemory, bits: int) -> tuple[float, bool]:
    """Sort key of the change of a memory to the size `bits`: smaller ratios first. Of two changes with the same ratio,
    the increase comes first.
    """
    return round(abs(math.log(bits / memory.size_bits)), 9), bits < memory.size_bits


def _misfits(rows: "Sequence[_Row]") -> tuple[tuple[SizedMemory, int, str], ...]:
    return tuple((row.memory, *row.misfit) for row in rows if row.misfit is not None)


@dataclass(eq=False)
class _Row:
    """Series of sizes of one memory that are tried one after another, in ascending or in descending order."""

    memory: SizedMemory
    way: int
    """Direction in which sizes are tried: 1 for sizes above the present size, -1 for sizes below it."""
    difference: Difference
    tried: list[tuple[int, float]] = field(default_factory=list)
    """Pairs (size in bits, difference) for the tried sizes that do not reverse the order. The difference is that of
    `TriedSize`.
    """
    misfit: tuple[int, str] | None = None
    """Pair (size in bits, reason) for a tried size at which the runs cannot be compared. Among several such sizes, the
    pair has the size nearest to the present size. Sizes farther away are not tried. None if the runs can be compared at
    all tried sizes.
    """

    def advance(self, step: int) -> SizeTurn | None:
        """Try the next size: the present size times 2 to the power of `way` x `step`. If the runs cannot be compared at
        this size, the nearest size at which they can be compared is tried instead.

        Returns None if the order of the runs is not reversed at this size. Otherwise, returns the smallest change that
        a bisection between the previous size and this size finds.
        """
        bits, before = self.memory.resized(2.0 ** (self.way * step)), self._last
        if self.misfit is not None or bits == before:
            return None
        found = self.difference(self.memory, bits)
        if found.difference is None:
            fitting = self._nearest_fitting(before, bits, found.reason)
            if fitting is None:
                return None
            bits, found = fitting
        assert found.difference is not None
        if found.difference >= 0:
            self.tried.append((bits, found.difference))
            return None
        return self._smallest(before, bits, found.difference)

    @property
    def _last(self) -> int:
        return self.tried[-1][0] if self.tried else self.memory.size_bits

    def _nearest_fitting(self, fits: int, misfit: int, reason: str) -> tuple[int, TriedSize] | None:
        """Size nearest to `misfit` at which the runs can be compared, as a pair (size in bits, result at this size).
        None if no such size was found between `fits` and `misfit`. The runs can be compared at the size `fits`, but not
        at the size `misfit`, because of `reason`.

        The size is found by bisection. Afterwards, `self.misfit` is a pair (size, reason). Among the tried sizes at
        which the runs cannot be compared, it has the size nearest to `fits`.
        """
        start, found = fits, TriedSize(None)
        while (middle := self._middle(fits, misfit)) is not None:
            tried = self.difference(self.memory, middle)
            if tried.difference is None:
                misfit, reason = middle, tried.reason
            else:
                fits, found = middle, tried
        self.misfit = misfit, reason
        return None if fits == start else (fits, found)

    def _smallest(self, before: int, bits: int, value: float) -> SizeTurn:
        """Change found by a bisection between two sizes. The order is not reversed at the size `before`, but is
        reversed at the size `bits`. `value` is the difference of the runs at `bits`.
        """
        last = self.difference(self.memory, before)
        while (middle := self._middle(before, bits)) is not None:
            tried = self.difference(self.memory, middle)
            if tried.difference is not None and tried.difference < 0:
                bits, value = middle, tried.difference
            else:
                before, last = middle, tried
        return SizeTurn(self.memory, bits, value, before, last)

    def _middle(self, near: int, far: int) -> int | None:
        """Size at the geometric mean of the sizes `near` and `far`, rounded to a possible size of the memory. None if
        `near` and `far` are close enough (TOLERANCE), or if the rounded size is equal to one of them.
        """
        distance, change = abs(math.log(far / near)), abs(math.log(far / self.memory.size_bits))
        middle = self.memory.resized(math.sqrt(near * far) / self.memory.size_bits)
        return None if distance <= TOLERANCE * change or middle in (near, far) else middle


@dataclass(frozen=True)
class SizesOfRuns:
    """Order of two runs in each measure (which run has the lower value), and whether another size of one on-chip memory
    reverses this order.
    """

    memories: tuple[SizedMemory, ...]
    """On-chip memories of both runs."""
    held: tuple[SizeOrder, ...]
    """Order of the runs at other memory sizes, if the runs keep their mappings; one element for each measure."""
    searched: tuple[SizeOrder, ...] | None = None
    """Order of the runs at other memory sizes, with newly searched mappings; one element for each measure. None if no
    mappings were searched.
    """

    @property
    def lines(self) -> tuple[str, ...]:
        """Sentences on the order of the two runs with other sizes of memories."""
        searched = () if self.searched is None else size_lines(self.searched, self.memories, is_searched=True)
        return (*size_lines(self.held, self.memories, is_searched=False), *searched)

    @property
    def objects(self) -> list[JsonObject]:
        """Results of the tried sizes as JSON objects, one for each measure: first with the mappings of the runs, then
        with newly searched mappings (if these were searched).
        """
        return [size_object(one) for one in (*self.held, *(self.searched or ()))]


# texts ----------------------------------------------------------------------------------------------------------------


def size_lines(orders: Sequence[SizeOrder], memories: Sequence[SizedMemory], is_searched: bool) -> Iterator[str]:
    """Sentences on the order of two runs with other sizes of their memories: one sentence for each measure, a sentence
    on sizes that could not be tried (if there are some), and sentences on the changes that were tried.

    `memories` are all on-chip memories of both runs.
    """
    yield from map(_line, orders)
    yield from _misfit_line(orders, is_searched)
    written = [memory.words for memory in memories if not memory.has_library_costs]
    if is_searched:
        costs = f"; the costs of {', '.join(written)} are written by hand and stay the same" if written else ""
        yield (
            "sizes, searched again: each size of an on-chip memory was changed alone, by up to"
            f" {2**LARGEST_STEP} times; the mappings of the changed run were searched for each tried size{costs}"
        )
        return
    if len(written) < len(memories):
        yield (
            "sizes: each size of an on-chip memory with costs from the library was changed alone, by up to"
            f" {2**LARGEST_STEP} times, with the same mappings; the costs follow the size"
        )
    if written:
        yield (
            f"sizes: other sizes of {', '.join(written)} change no result as long as the mappings stay the same,"
            " because the hardware file gives the costs of these memories; --search-again also searches mappings for"
            " other sizes"
        )


def _misfit_line(orders: Sequence[SizeOrder], is_searched: bool) -> Iterator[str]:
    """Yield a sentence that names the sizes at which the runs cannot be compared, and says that no sizes beyond these
    sizes were tried. Yield nothing if the runs can be compared at all tried sizes.
    """
    found = dict.fromkeys(misfit for one in orders for misfit in one.misfits)
    texts = [f"{memory.text(bits)} of {memory.words}: {reason}" for memory, bits, reason in found]
    if texts:
        again = ", searched again" if is_searched else ""
        yield f"sizes{again}: no sizes beyond the following ones were tried: {'; '.join(texts)}"


def _line(one: SizeOrder) -> str:
    first, second = NAMES[one.first], NAMES[1 - one.first]
    said = f"sizes, searched again, {one.measure}:" if one.is_searched else f"sizes, {one.measure}:"
    if one.now < 0:
        return f"{said} without any change, {second} is already {percent(-one.now)} below {first}"
    if one.turn is None:
        mappings = "newly searched mappings" if one.is_searched else "the same mappings"
        near = f"; no tried size brings {second} nearer to {first}"
        if one.nearest is not None and one.nearest[2] < one.now * (1 - NEGLIGIBLE):
            memory, bits, share = one.nearest
            near = f"; {second} comes nearest with {memory.text(bits)} of {memory.words}, {_above(share)} {first}"
        return f"{said} with {mappings}, no tried size reverses the order{near}"
    memory, bits, share, before, last = one.turn
    bound = "at least" if bits > memory.size_bits else "at most"
    change = f"{bound} {memory.text(bits)} of {memory.words} ({memory.text(memory.size_bits)} now)"
    present = ", the present size" if before == memory.size_bits else ""
    not_yet = f"still {_above(last.difference)} {first}" if last.difference is not None else last.reason
    text = f"{said} {second} is {percent(-share)} below {first} with {change}"
    return f"{text}; with {memory.text(before)}{present}, {not_yet}"


def _above(share: float) -> str:
    return f"{percent(share)} above" if share else "equal to"


def size_object(one: SizeOrder) -> JsonObject:
    """Order of two runs under changes of one size, as a JSON object."""
    turn = one.turn
    return {
        "measure": one.measure,
        "first": NAMES[one.first],
        "is_searched": one.is_searched,
        "difference_now": one.now,
        "turn": None
        if turn is None
        else {
            "run": NAMES[turn.memory.place],
            "memory": turn.memory.name,
            "size_bits_now": turn.memory.size_bits,
            "size_bits": turn.bits,
            "difference": turn.difference,
            "not_turned_size_bits": turn.before_bits,
            "difference_not_turned": turn.before.difference,
        },
        "without_value": [
            {"run": NAMES[memory.place], "memory": memory.name, "size_bits": bits, "reason": reason}
            for memory, bits, reason in one.misfits
        ],
    }
