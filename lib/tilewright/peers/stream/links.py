"""Links of the model `stream-2023`: paths of the fewest, and each taken by one transfer at a time."""

from bisect import bisect_right, insort
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from itertools import product

import numpy as np

from tilewright.scheduling.problem import CoreSystem


def fewest_links(system: CoreSystem) -> CoreSystem:
    """A system whose paths go by way of the off-chip core where these are fewer links, or the only ones."""
    off, cores = system.off_chip_core, system.core_count
    found: list[list[int] | None] = []
    for source, target in product(range(cores), repeat=2):
        ways = [[(source, target)]]
        if off not in (source, target) and source != target:
            ways.append([(source, off), (off, target)])
        links = [
            [link for pair in way for link in system.path(*pair).tolist()]
            for way in ways
            if all(system.path_exists[one * cores + other] for one, other in way)
        ]
        found.append(min(links, key=len, default=None))
    return replace(
        system,
        path_exists=np.array([path is not None for path in found], np.bool_),
        path_start=np.cumsum([0, *(len(path or ()) for path in found)]),
        path_link=np.array([link for path in found for link in path or ()], np.int64),
    )


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
