"""Links of an accelerator (Stream: regular graph, connectivity list, off-chip ports), and the paths between its cores.

The path of a pair is the one of least transfer time. A transfer occupies all links of its path at once, at the width of
the narrowest, so that is the path whose narrowest link is widest. Ties go to fewer links, then to the smaller core ids.
Of several links between two cores the widest is taken, of equal ones the first. Data never pass through the off-chip
core or another core that is no router.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from tilewright.errors import InputError, KeyPath, Problem, Problems
from tilewright.hardware.core import Core
from tilewright.hardware.hierarchy import memory_hierarchy
from tilewright.hardware.system import (
    BUS,
    OFFCHIP_PORT,
    POINT_TO_POINT,
    Link,
    MultiCoreAccelerator,
    all_pairs,
    energy_per_bit_pj,
)
from tilewright.hardware.topologies import Pair, Sizes, topology


@dataclass(frozen=True)
class LinkCost:
    """What a link costs: energy of a busy cycle, or of a bit where that is given."""

    unit_energy_pj_per_cycle: float = 0.0
    energy_pj_per_bit: float | None = None


@dataclass(frozen=True)
class Connection:
    """An entry of a connectivity list, with its defaults filled in."""

    core_ids: tuple[int, ...]
    is_bus: bool
    bandwidth_bits_per_cycle: int | None
    cost: LinkCost
    directed: bool = False
    half_duplex: bool = False


@dataclass(frozen=True)
class Graph:
    """A regular graph of cores, with its special cores."""

    topology: str
    sizes: Sizes
    regular: tuple[int, ...]
    """Ids of the cores by their place in the graph."""
    pooling: int | None
    simd: int | None
    bandwidth_bits_per_cycle: int | None
    cost: LinkCost

    def coordinates(self) -> dict[int, Pair]:
        """(column, row) by core id; {} where any layout will do."""
        cells = topology(self.topology).coordinates(self.sizes, len(self.regular))
        return dict(zip(self.regular, cells, strict=False))

    def pairs(self) -> list[Pair]:
        """Pairs of core ids that have a link in each direction."""
        edges = topology(self.topology).edges(self.sizes, len(self.regular))
        return [(self.regular[one], self.regular[other]) for one, other in edges]


def make_link(kind: str, edges: tuple[Pair, ...], bandwidth: int | None, cost: LinkCost, name: str = "") -> Link:
    """A link with its energy per bit, named after what it joins."""
    per_bit, unit = cost.energy_pj_per_bit, cost.unit_energy_pj_per_cycle
    name = name or f"{edges[0][0]}->{edges[0][1]}"
    if per_bit is not None:
        return Link(name, kind, edges, bandwidth, per_bit)
    return Link(name, kind, edges, bandwidth, energy_per_bit_pj(unit, bandwidth), unit)


def connection_links(connection: Connection, sharing: set[Pair]) -> Iterator[Link]:
    """The links of an entry of a connectivity list; pairs in `sharing` share a memory and need none."""
    ids, width, cost = connection.core_ids, connection.bandwidth_bits_per_cycle, connection.cost
    edges = tuple((ids[0], other) for other in ids[1:]) if connection.directed else all_pairs(ids)
    edges = tuple(edge for edge in edges if edge not in sharing)
    if connection.is_bus:
        if edges:
            yield make_link(BUS, edges, width, cost, f"bus {','.join(map(str, ids))}")
    elif connection.half_duplex:
        yield make_link(POINT_TO_POINT, edges, width, cost, f"{ids[0]}<->{ids[1]}")
    else:
        yield from (make_link(POINT_TO_POINT, (edge,), width, cost) for edge in edges)


def graph_links(graph: Graph, sharing: set[Pair]) -> Iterator[Link]:
    """The links of a regular graph: between its cores, of the pooling core, of the SIMD core."""
    width, cost, is_bus = graph.bandwidth_bits_per_cycle, graph.cost, topology(graph.topology).is_bus
    pairs = [] if is_bus else graph.pairs()
    if is_bus:
        on_bus = graph.regular + ((graph.simd,) if graph.simd is not None else ())
        yield from connection_links(Connection(on_bus, True, width, cost), sharing)
    if graph.pooling is not None:
        pairs += [(core_id, graph.pooling) for core_id in graph.regular]
    yield from _both_ways(pairs, width, cost, sharing)
    if not is_bus and graph.simd is not None:
        others = graph.regular + ((graph.pooling,) if graph.pooling is not None else ())
        yield from _both_ways([(core_id, graph.simd) for core_id in others], None, LinkCost(), sharing)


def _both_ways(pairs: list[Pair], width: int | None, cost: LinkCost, sharing: set[Pair]) -> Iterator[Link]:
    for one, other in pairs:
        if (one, other) not in sharing:
            yield make_link(POINT_TO_POINT, ((one, other),), width, cost)
            yield make_link(POINT_TO_POINT, ((other, one),), width, cost)


def offchip_ports(core: Core) -> tuple[int | None, int | None, bool]:
    """(bits per cycle read, bits per cycle written, whether one port does both) of the off-chip memory.

    The first port that can read and the first that can write count; None if there is none.
    """
    ports = core.memories[memory_hierarchy(core).memories_of("O")[0]].ports
    widths = [
        next((port.bandwidth_max_bits for port in ports if port.port_type in kinds), None)
        for kinds in (("read", "read_write"), ("write", "read_write"))
    ]
    return widths[0], widths[1], len(ports) == 1


def offchip_links(offchip_id: int, core: Core, others: tuple[int, ...], cost: LinkCost) -> Iterator[Link]:
    """The links of the off-chip core with all others: one that is shared by all if it has one port, else one a way."""
    read, write, single_port = offchip_ports(core)
    assert read is not None
    assert write is not None
    into = tuple((core_id, offchip_id) for core_id in others)
    out = tuple((offchip_id, core_id) for core_id in others)
    if single_port:
        yield make_link(OFFCHIP_PORT, into + out, write, cost, f"port of {offchip_id}")
    else:
        yield make_link(OFFCHIP_PORT, into, write, cost, f"write port of {offchip_id}")
        yield make_link(OFFCHIP_PORT, out, read, cost, f"read port of {offchip_id}")


def whole_bits(bandwidth: int | float) -> int | None:
    """A bandwidth of a file as that of a link: None for infinite."""
    return None if math.isinf(bandwidth) else int(bandwidth)


_Edges = Mapping[int, Mapping[int, tuple[float, int]]]
"""Sender -> receiver -> (width, index) of its widest link."""
_Label = tuple[int, tuple[int, ...], tuple[int, ...]]
"""(number of links, cores passed, links taken): of equally wide paths, the order of labels is that of preference."""


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
    edges = _widest_edges(accelerator.links)
    routers = {place.core_id for place in accelerator.places if place.is_router}
    widths = sorted({width for receivers in edges.values() for width, _ in receivers.values()}, reverse=True)
    paths: dict[tuple[int, int], Path] = {}
    for sender in accelerator.core_ids:
        sharers = accelerator.sharers_of(sender)
        waiting = set()
        for receiver in accelerator.core_ids:
            if receiver in sharers:
                paths[sender, receiver] = Path(tuple(dict.fromkeys((sender, receiver))), ())
            else:
                waiting.add(receiver)
        for width in widths:
            labels = _labels(edges, width, sharers, routers) if waiting else {}
            for receiver in sorted(waiting):
                found = [labels[core_id] for core_id in accelerator.sharers_of(receiver) if core_id in labels]
                if found:
                    _, core_ids, links = min(found)
                    paths[sender, receiver] = Path(core_ids, links)
                    waiting.remove(receiver)
    return PathTable(paths)


def _widest_edges(links: tuple[Link, ...]) -> _Edges:
    """For each ordered pair its widest link, of equally wide ones the first."""
    edges: dict[int, dict[int, tuple[float, int]]] = {}
    for index, link in enumerate(links):
        width = math.inf if link.bandwidth_bits_per_cycle is None else link.bandwidth_bits_per_cycle
        for sender, receiver in link.edges:
            known = edges.setdefault(sender, {}).get(receiver)
            if known is None or width > known[0]:
                edges[sender][receiver] = (width, index)
    return edges


def _labels(edges: _Edges, least_width: float, sources: tuple[int, ...], routers: set[int]) -> dict[int, _Label]:
    """The best label of every core that can be reached from any of `sources` over links of at least `least_width`.

    Breadth first: cores at one more link, from the labels at hand in their order, so the first label of a core is best.
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


_MOST_LISTED = 8


def check_paths(problems: Problems, accelerator: MultiCoreAccelerator, place: KeyPath) -> None:
    """Record pairs of cores between which nothing can move.

    Noted are pairs whose data must be written to the off-chip memory and read again, and links that no path takes.
    """
    table = path_table(accelerator)
    missing = [pair for pair in all_pairs(accelerator.core_ids) if not table.has_path(*pair)]
    lost = [pair for pair in missing if not _through_memory(table, accelerator.offchip_core_id, pair)]
    if lost:
        allowed = "links in both directions, over cores that are routers"
        problems.at(place, f"no data can get from core {_listed(lost)}", allowed=allowed)
    in_place = _in_place(accelerator)
    by_way = [pair for pair in missing if pair not in lost and pair not in in_place]
    if by_way:
        problems.notice(place, f"only over the off-chip memory can data get from core {_listed(by_way)}")
    used = {index for _, path in table.items() for index in path.links}
    unused = [link.name for index, link in enumerate(accelerator.links) if index not in used]
    if unused and not lost:
        more = f" and {len(unused) - _MOST_LISTED} more" if len(unused) > _MOST_LISTED else ""
        problems.notice(place, f"no path takes {', '.join(unused[:_MOST_LISTED])}{more}: others are faster")


def _in_place(accelerator: MultiCoreAccelerator) -> set[Pair]:
    """Pairs of cores of which the second has the outputs of the first in a memory of its own."""
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
    """Pairs in words, those of one receiver together: "1 to 0; 2 to 0, 1"."""
    of_sender: dict[int, list[int]] = {}
    for sender, receiver in pairs:
        of_sender.setdefault(sender, []).append(receiver)
    parts = [f"{sender} to {', '.join(map(str, receivers))}" for sender, receivers in of_sender.items()]
    more = f"; and from {len(parts) - _MOST_LISTED} more" if len(parts) > _MOST_LISTED else ""
    return "; ".join(parts[:_MOST_LISTED]) + more
