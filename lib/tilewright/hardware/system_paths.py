"""Paths between the cores of an accelerator: for each pair, the path of least transfer time.

The key `equal_paths` of the file decides among paths of equal width and equal number of links. With `core_ids`, the
path whose list of core ids is first in lexicographic order is taken.

With `load`, the senders choose their paths one after the other: first the off-chip core, then the other cores by id. A
sender chooses paths to near receivers first, by the number of links; receivers at the same distance come by id. A path
to a receiver extends a chosen path to a neighbour of the receiver by one link. Among these paths, the sender takes the
path whose most loaded link has the smallest load. Ties go to the smaller sum of the loads, then to the smaller core
ids. The load of a link is the number of chosen paths that contain the link, divided by the width of the link.

With either value of `equal_paths`, the paths of equal width from one sender form a tree.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from tilewright.base.errors import InputError, KeyPath, Problem, Problems
from tilewright.hardware.system import (
    BY_LOAD,
    Link,
    MultiCoreAccelerator,
    all_pairs,
)
from tilewright.hardware.topologies import Pair

_Edges = Mapping[int, Mapping[int, tuple[float, int]]]
"""Sender -> receiver -> pair (width, link index) of the widest link from the sender to the receiver."""


_Label = tuple[int, tuple[int, ...], tuple[int, ...]]
"""Label of a path: (number of links, ids of the cores from the first to the last, indices of the links). Among equally
wide paths, the path with the smallest label is taken, unless loads decide (`_Loads`).
"""


@dataclass(frozen=True)
class Path:
    """Path of data from one core to another."""

    core_ids: tuple[int, ...]
    """Ids of the cores along the path: the sender, the routers, the receiver.

    The path can start or end at another core that shares a memory with the sender or the receiver. If no data have to
    move, the path is one core, or a sender and a receiver that share memory.
    """
    links: tuple[int, ...]
    """Indices into `MultiCoreAccelerator.links`; () if no data have to move."""

    def bandwidth_bits_per_cycle(self, links: tuple[Link, ...]) -> int | None:
        """Bandwidth of the narrowest link of the path in bits per cycle; None if all links have infinite bandwidth."""
        widths = [width for index in self.links if (width := links[index].bandwidth_bits_per_cycle) is not None]
        return min(widths, default=None)

    def energy_pj_per_bit(self, links: tuple[Link, ...]) -> float:
        """Energy of moving a bit over all links of the path."""
        return math.fsum(links[index].energy_pj_per_bit for index in self.links)


class PathTable:
    """Paths between cores: one path for each ordered pair (sender, receiver) that is connected."""

    def __init__(self, paths: dict[tuple[int, int], Path]) -> None:
        self._paths = paths

    def path(self, sender: int, receiver: int) -> Path:
        """Path from `sender` to `receiver`. If there is no path, raises InputError with the two ids."""
        if (sender, receiver) not in self._paths:
            message = f"there is no path from core {sender} to core {receiver}"
            raise InputError([Problem(message, allowed="a link, or a chain of links through routers")])
        return self._paths[sender, receiver]

    def has_path(self, sender: int, receiver: int) -> bool:
        """True if data of `sender` can reach `receiver` over links or a shared memory."""
        return (sender, receiver) in self._paths

    def items(self) -> list[tuple[tuple[int, int], Path]]:
        """Pairs ((sender, receiver), path) of all paths, sorted by ids."""
        return sorted(self._paths.items(), key=lambda item: item[0])


@lru_cache(maxsize=64)
def path_table(accelerator: MultiCoreAccelerator) -> PathTable:
    """Paths between the cores of an accelerator. A core needs no link to itself or to a core that shares its memory."""
    edges = _widest_edges(accelerator.links)
    loads = _Loads(accelerator.links) if accelerator.equal_paths == BY_LOAD else None
    routers = {place.core_id for place in accelerator.places if place.is_router}
    widths = sorted({width for receivers in edges.values() for width, _ in receivers.values()}, reverse=True)
    paths: dict[tuple[int, int], Path] = {}
    sharers_of = {core_id: accelerator.sharers_of(core_id) for core_id in accelerator.core_ids}
    off_chip = accelerator.offchip_core_id
    for sender in sorted(accelerator.core_ids, key=lambda core_id: (loads is None or core_id != off_chip, core_id)):
        sharers = sharers_of[sender]
        waiting = set()
        for receiver in accelerator.core_ids:
            if receiver in sharers:
                paths[sender, receiver] = Path(tuple(dict.fromkeys((sender, receiver))), ())
            else:
                waiting.add(receiver)
        for width in widths:
            labels: dict[int, _Label] = {}
            if waiting and loads is None:
                labels = _labels(edges, width, sharers, routers)
            elif waiting and loads is not None:
                labels = loads.labels(edges, width, sharers, routers)
            for receiver in sorted(waiting):
                found = [labels[core_id] for core_id in sharers_of[receiver] if core_id in labels]
                if found:
                    _, core_ids, links = min(found)
                    paths[sender, receiver] = Path(core_ids, links)
                    waiting.remove(receiver)
                    if loads is not None:
                        loads.add(links)
    return PathTable(paths)


def _widest_edges(links: tuple[Link, ...]) -> _Edges:
    """Widest link of each ordered pair of cores; the first of several equally wide links."""
    edges: dict[int, dict[int, tuple[float, int]]] = {}
    for index, link in enumerate(links):
        width = math.inf if link.bandwidth_bits_per_cycle is None else link.bandwidth_bits_per_cycle
        for sender, receiver in link.edges:
            known = edges.setdefault(sender, {}).get(receiver)
            if known is None or width > known[0]:
                edges[sender][receiver] = (width, index)
    return edges


def _labels(edges: _Edges, least_width: float, sources: tuple[int, ...], routers: set[int]) -> dict[int, _Label]:
    """Best label of each core that can be reached from any of `sources` over links of width `least_width` or more.

    The breadth-first search extends all labels by one link, in the order of the labels. The first label that reaches a
    core is therefore the best label of this core.
    """
    last: dict[int, _Label] = {core_id: (0, (core_id,), ()) for core_id in sources}
    best = dict(last)
    while last:
        found: dict[int, _Label] = {}
        for count, core_ids, links in sorted(last.values()):
            if count and core_ids[-1] not in routers:
                continue
            for receiver, (width, link) in edges.get(core_ids[-1], {}).items():
                if receiver not in best and receiver not in found and width >= least_width:
                    found[receiver] = (count + 1, (*core_ids, receiver), (*links, link))
        best |= found
        last = found
    return best


class _Loads:
    """Loads of links. The load of a link is the number of already chosen paths that contain the link, divided by the
    width of the link.
    """

    def __init__(self, links: tuple[Link, ...]) -> None:
        self._widths = [link.bandwidth_bits_per_cycle for link in links]
        self._counts = [0] * len(links)

    def add(self, links: tuple[int, ...]) -> None:
        """Add one chosen path to the path counts of its links."""
        for link in links:
            self._counts[link] += 1

    def labels(
        self, edges: _Edges, least_width: float, sources: tuple[int, ...], routers: set[int]
    ) -> dict[int, _Label]:
        """Labels, by core id, of paths from any of `sources` over links of width `least_width` or more. A core without
        such a path has no label.

        Paths grow by one link at a time, so each path has as few links as possible. If several paths reach the same
        core, the path whose most loaded link has the smallest load is chosen. Paths that are chosen for earlier cores
        add to the loads for later cores. A path can pass only through `routers`.
        """
        trial = list(self._counts)
        last: dict[int, _Label] = {core_id: (0, (core_id,), ()) for core_id in sources}
        best = dict(last)
        while last:
            choices: dict[int, list[_Label]] = {}
            for count, core_ids, links in last.values():
                if count and core_ids[-1] not in routers:
                    continue
                for receiver, (width, link) in edges.get(core_ids[-1], {}).items():
                    if receiver not in best and width >= least_width:
                        longer = count + 1, (*core_ids, receiver), (*links, link)
                        choices.setdefault(receiver, []).append(longer)
            last = {}
            for receiver in sorted(choices):
                last[receiver] = min(choices[receiver], key=lambda label: (*self._load(label[2], trial), label))
                for link in last[receiver][2]:
                    trial[link] += 1
            best |= last
        return best

    def _load(self, links: tuple[int, ...], counts: list[int]) -> tuple[float, float]:
        """Pair (largest load, sum of the loads) of the links of a path. The load of a link is its number of paths in
        `counts`, divided by its width.
        """
        loads = [counts[link] / width if (width := self._widths[link]) else 0.0 for link in links]
        return max(loads), math.fsum(loads)


_MOST_LISTED = 8


def check_paths(problems: Problems, accelerator: MultiCoreAccelerator, place: KeyPath) -> None:
    """Report a problem for the pairs of cores between which no data can move.

    The function also reports two kinds of notices: pairs whose data must pass through the off-chip core, and links that
    no path uses.
    """
    table = path_table(accelerator)
    missing = [pair for pair in all_pairs(accelerator.core_ids) if not table.has_path(*pair)]
    lost = [pair for pair in missing if not _through_memory(table, accelerator.offchip_core_id, pair)]
    if lost:
        allowed = "links in both directions, directly or through routers"
        problems.at(place, f"no data can get from core {_listed(lost)}", allowed=allowed)
    in_place = _in_place(accelerator)
    by_way = [pair for pair in missing if pair not in lost and pair not in in_place]
    if by_way:
        problems.notice(place, f"the only path from core {_listed(by_way)} is over the off-chip memory")
    used = {index for _, path in table.items() for index in path.links}
    unused = [link.name for index, link in enumerate(accelerator.links) if index not in used]
    if unused and not lost:
        more = f" and {len(unused) - _MOST_LISTED} more" if len(unused) > _MOST_LISTED else ""
        problems.notice(place, f"no path uses {', '.join(unused[:_MOST_LISTED])}{more}, because other links are faster")


def _in_place(accelerator: MultiCoreAccelerator) -> set[Pair]:
    """Pairs (sender, receiver) in which the receiver shares the memory that holds the outputs of the sender."""
    return {
        (sender, receiver)
        for instance in accelerator.memory_instances
        for sender, held in instance.users
        for receiver in instance.core_ids
        if "O" in held and receiver != sender
    }


def _through_memory(table: PathTable, offchip: int | None, pair: Pair) -> bool:
    if offchip is None or offchip in pair:
        return False
    return table.has_path(pair[0], offchip) and table.has_path(offchip, pair[1])


def _listed(pairs: list[Pair]) -> str:
    """Text of pairs of cores, grouped by sender: "1 to 0; 2 to 0, 1"."""
    of_sender: dict[int, list[int]] = {}
    for sender, receiver in pairs:
        of_sender.setdefault(sender, []).append(receiver)
    parts = [f"{sender} to {', '.join(map(str, receivers))}" for sender, receivers in of_sender.items()]
    more = f"; and from {len(parts) - _MOST_LISTED} more" if len(parts) > _MOST_LISTED else ""
    return "; ".join(parts[:_MOST_LISTED]) + more
