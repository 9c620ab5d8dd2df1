"""What is taken over time: links, by one transfer at a time, and memories, in the order of decisions."""

from bisect import bisect_left, bisect_right, insort
from collections import defaultdict
from collections.abc import Mapping


class LinkTimes:
    """When links are taken, in the order of decisions.

    As the reference has it, a link is free from the end of the last transfer that was decided: gaps before it stay
    empty. With `fills_gaps` a transfer may go into a gap.
    """

    def __init__(self, fills_gaps: bool = False) -> None:
        self.fills_gaps = fills_gaps
        self.last_end = 0
        self._free: dict[int, int] = defaultdict(int)
        self._taken: dict[int, list[tuple[int, int]]] = defaultdict(list)

    def earliest(self, cycles: Mapping[int, int], time: int) -> int:
        """The first time, `time` or later, from which each link is free for its number of cycles."""
        if not self.fills_gaps:
            return max([time, *(self._free[link] for link in cycles)])
        while True:
            start = max([time, *(self._gap(link, length, time) for link, length in cycles.items())])
            if start == time:
                return start
            time = start

    def take(self, link: int, start: int, end: int) -> None:
        """A link is taken from start to end."""
        self._free[link] = end
        self.last_end = max(self.last_end, end)
        if self.fills_gaps and end > start:
            insort(self._taken[link], (start, end))

    def _gap(self, link: int, length: int, time: int) -> int:
        """The first time, `time` or later, from which a link is free for `length` cycles."""
        taken = self._taken[link]
        for start, end in taken[max(bisect_right(taken, (time, time)) - 1, 0) :]:
            if time + length <= start:
                break
            time = max(time, end)
        return time


class Usage:
    """Bits used in a memory from each time on."""

    def __init__(self, capacity_bits: int) -> None:
        self.capacity_bits = capacity_bits
        self.times = [0]
        self.used = [0]

    def add(self, time: int, bits: int) -> None:
        """Change the use from a time on."""
        place = bisect_left(self.times, time)
        if place == len(self.times) or self.times[place] != time:
            self.times.insert(place, time)
            self.used.insert(place, self.used[place - 1])
        for i in range(place, len(self.used)):
            self.used[i] += bits

    def free_at(self, time: int) -> int:
        """Bits that are free at a time."""
        return self.capacity_bits - self.used[bisect_right(self.times, time) - 1]

    def first_fit(self, time: int, bits: int) -> int | None:
        """First time from `time` on from which the bits fit for ever."""
        first = bisect_right(self.times, time) - 1
        for i in range(len(self.used) - 1, first - 1, -1):
            if self.used[i] + bits > self.capacity_bits:
                return self.times[i + 1] if i + 1 < len(self.times) else None
        return time
