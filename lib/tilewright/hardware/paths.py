"""Over which links data go from core to core.

The path of a pair is the one of least transfer time: the least sum, over its links, of the time that a bit occupies
each of them (one over the bandwidth). Ties go to fewer links, then to the smaller core ids, then to the earlier link.
Data never pass through the off-chip core or another core that is no router.
"""

import heapq
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from tilewright.errors import InputError, Problem
from tilewright.hardware.interconnect import Link
from tilewright.hardware.system import MultiCoreAccelerator

_Edges = Mapping[int, Mapping[int, tuple[int, int]]]
"""Sender -> receiver -> (time of a bit in whole units, index of the link)."""
_Label = tuple[int, int, tuple[int, ...], tuple[int, ...]]
"""(time, number of links, cores passed, links taken): the order of labels is the order of preference."""


@dataclass(frozen=True)
class Path:
    """How data of one core get to another."""

    core_ids: tuple[int, ...]
    """Sender, routers, receiver. Where cores share memory the ends may be other cores of the same memory; one core
    alone, or one for each of sender and receiver that share: nothing has to move."""
    links: tuple[int, ...]
    """Indices into `MultiCoreAccelerator.links`; () if nothing has to move."""

    def bandwidth_bits_per_cycle(self, links: tuple[Link, ...]) -> int | None:
        """Bandwidth of the narrowest link; None: infinite."""
        widths = [width for index in self.links if (width := links[index].bandwidth_bits_per_cycle) is not None]
        return min(widths, default=None)

    def energy_pj_per_bit(self, links: tuple[Link, ...]) -> float:
        """Energy of a bit over all links."""
        return math.fsum(links[index].energy_pj_per_bit for index in self.links)


class PathTable:
    """The path of every ordered pair of cores."""

    def __init__(self, paths: dict[tuple[int, int], Path]) -> None:
        self._paths = paths

    def path(self, sender: int, receiver: int) -> Path:
        """The path of a pair. Raises InputError naming the pair if there is none."""
        if (sender, receiver) not in self._paths:
            message = f"there is no path from core {sender} to core {receiver}"
            raise InputError([Problem(message, allowed="a link, or links over cores that are routers")])
        return self._paths[sender, receiver]

    def has_path(self, sender: int, receiver: int) -> bool:
        """Whether data of `sender` can get to `receiver` over links or a shared memory."""
        return (sender, receiver) in self._paths

    def items(self) -> list[tuple[tuple[int, int], Path]]:
        """((sender, receiver), path) of all pairs that have one, in rising order."""
        return sorted(self._paths.items(), key=lambda item: item[0])


@lru_cache(maxsize=64)
def path_table(accelerator: MultiCoreAccelerator) -> PathTable:
    """The paths of all pairs that have one; pairs of equal cores and of cores that share memory need no link."""
    edges = _fastest_edges(accelerator.links)
    routers = {place.core_id for place in accelerator.places if place.is_router}
    paths: dict[tuple[int, int], Path] = {}
    for sender in accelerator.core_ids:
        sharers = accelerator.sharers_of(sender)
        labels = _labels(edges, sharers, routers)
        for receiver in accelerator.core_ids:
            if receiver in sharers:
                paths[sender, receiver] = Path(tuple(dict.fromkeys((sender, receiver))), ())
                continue
            found = [labels[core_id] for core_id in accelerator.sharers_of(receiver) if core_id in labels]
            if found:
                _, _, core_ids, links = min(found)
                paths[sender, receiver] = Path(core_ids, links)
    return PathTable(paths)


def _fastest_edges(links: tuple[Link, ...]) -> _Edges:
    """For each ordered pair its fastest link, of equally fast ones the first; times in whole units."""
    unit = math.lcm(*(link.bandwidth_bits_per_cycle or 1 for link in links))
    edges: dict[int, dict[int, tuple[int, int]]] = {}
    for index, link in enumerate(links):
        time = 0 if link.bandwidth_bits_per_cycle is None else unit // link.bandwidth_bits_per_cycle
        for sender, receiver in link.edges:
            known = edges.setdefault(sender, {}).get(receiver)
            if known is None or (time, index) < known:
                edges[sender][receiver] = (time, index)
    return edges


def _labels(edges: _Edges, sources: tuple[int, ...], routers: set[int]) -> dict[int, _Label]:
    """The best label of every core that can be reached from any of `sources` (Dijkstra).

    The order of labels is kept when both are extended by the same link, so the first label of a core is its best.
    """
    best: dict[int, _Label] = {}
    waiting: list[_Label] = [(0, 0, (core_id,), ()) for core_id in sources]
    heapq.heapify(waiting)
    while waiting:
        label = heapq.heappop(waiting)
        time, count, core_ids, links = label
        core_id = core_ids[-1]
        if core_id in best:
            continue
        best[core_id] = label
        if count and core_id not in routers:
            continue
        for receiver, (edge_time, link) in edges.get(core_id, {}).items():
            if receiver not in best:
                heapq.heappush(waiting, (time + edge_time, count + 1, (*core_ids, receiver), (*links, link)))
    return best
