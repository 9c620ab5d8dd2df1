"""The union of transfer windows: marked cycle by cycle, or computed by nesting if there are too many cycles."""

LONGEST = 1 << 20
"""Largest number of cycles that a test may mark."""
Activity = tuple[int, int, int]
"""(allowed, period, count): the first `allowed` cycles of each period."""


def marked_cycles(windows: list[tuple[int, int]], length: int) -> int:
    """Cycles below `length` inside the first `allowed` cycles of some period, for (allowed, period) pairs."""
    assert length <= LONGEST
    line = bytearray(length)
    for allowed, period in windows:
        assert length % period == 0
        for start in range(0, length, period):
            line[start : start + allowed] = b"\1" * allowed
    return sum(line)


def union_on_time_line(activities: list[Activity]) -> int:
    """Union of (allowed, period, count) activities as in zigzag-dse 3.9.1.

    One longest period is counted, and repeated as often as the first link with this period moves.
    """
    longest = max(period for _, period, _ in activities)
    repeats = next(count for _, period, count in activities if period == longest)
    return one_period([(allowed, period) for allowed, period, _ in activities], longest) * repeats


def union_without_first_windows(windows: list[tuple[int, int]], total: int) -> int:
    """Cycles of `total` in the windows, without each link's own first one, for (allowed, period) pairs."""
    if total <= 4096:
        return marked_without_first_windows(windows, total)
    return union_by_definition(windows, total)


def marked_without_first_windows(windows: list[tuple[int, int]], total: int) -> int:
    """The union without first windows, on a time line of the whole layer with one bit a cycle."""
    line = 0
    for allowed, period in windows:
        line |= _windows_as_bits(allowed, period, total) & ~((1 << period) - 1)
    return line.bit_count()


def _windows_as_bits(allowed: int, period: int, total: int) -> int:
    """A line of `total` bits with the first `allowed` bits of each `period` set."""
    assert total % period == 0
    line, length = (1 << allowed) - 1, period
    while length < total:
        line |= line << length
        length *= 2
    return line & ((1 << total) - 1)


def union_by_definition(windows: list[tuple[int, int]], total: int) -> int:
    """E_K + (T / P_K - 1) F_K, with F_k the union of the first k links over one period of the k-th."""
    ordered = sorted(windows, key=lambda window: window[1])
    without_first, before = 0, None
    for k, (_, period) in enumerate(ordered):
        if before is not None:
            without_first += (period // before - 1) * one_period(ordered[:k], before)
        before = period
    return without_first + (total // ordered[-1][1] - 1) * one_period(ordered, ordered[-1][1])


def one_period(windows: list[tuple[int, int]], period: int) -> int:
    """Cycles that are in a window, over a period that the periods of all windows divide.

    Cycles of a short period are marked one by one. In a long period, each window's period must divide the next.
    """
    if period <= 4096:
        line = 0
        for allowed, own in windows:
            line |= _windows_as_bits(allowed, own, period)
        return line.bit_count()
    return covered(sorted(windows, key=lambda window: window[1]), period)


def covered(windows: list[tuple[int, int]], end: int) -> int:
    """Cycles in [0, end) that are in a window; windows are sorted by period, and each period divides the next."""
    if not windows:
        return 0
    *inner, (allowed, period) = windows
    whole, rest = divmod(end, period)
    inside = allowed + covered(inner, period) - covered(inner, allowed)
    part = min(rest, allowed)
    return whole * inside + part + covered(inner, rest) - covered(inner, part)
