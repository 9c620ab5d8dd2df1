"""The union of transfer windows, cycle by cycle."""

LONGEST = 1 << 20
"""Cycles that a test may mark."""


def marked_cycles(windows: list[tuple[int, int]], length: int) -> int:
    """Cycles below `length` inside the first `allowed` cycles of some period, for (allowed, period) pairs."""
    assert length <= LONGEST
    line = bytearray(length)
    for allowed, period in windows:
        assert length % period == 0
        for start in range(0, length, period):
            line[start : start + allowed] = b"\1" * allowed
    return sum(line)


def union_on_time_line(activities: list[tuple[int, int, int]]) -> int:
    """Union of (allowed, period, count) activities as zigzag-dse 3.9.1 counts it: one longest period, repeated."""
    for allowed, period, count in activities:
        if allowed == period:
            return period * count
    longest = max(period for _, period, _ in activities)
    repeats = next(count for _, period, count in activities if period == longest)
    return marked_cycles([(allowed, period) for allowed, period, _ in activities], longest) * repeats
