"""Links of an accelerator: links of a regular graph or a connectivity list, as in Stream, and links of the ports of the
off-chip memory.

If several links join two cores, the widest link is taken; among equally wide links, the first. A transfer occupies all
links of its path at the same time, at the width of the narrowest link.

The path of a pair of cores is the path of least transfer time: the path whose narrowest link is widest. Ties go to the
path with fewer links; the key `equal_paths` of the accelerator file decides among the remaining paths. Data pass only
through cores that are routers, and the off-chip core is never a router.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from tilewright.hardware.core import Core
from tilewright.hardware.hierarchy import memory_hierarchy
from tilewright.hardware.system import (
    BUS,
    OFFCHIP_PORT,
    POINT_TO_POINT,
    Link,
    all_pairs,
    energy_per_bit_pj,
)
from tilewright.hardware.topologies import Pair, Sizes, topology


@dataclass(frozen=True)
class LinkCost:
    """Energy of a link in pJ: per busy cycle, or per bit if the file gives an energy per bit."""

    unit_energy_pj_per_cycle: float = 0.0
    energy_pj_per_bit: float | None = None


@dataclass(frozen=True)
class Connection:
    """Entry of a connectivity list. Default values replace missing values."""

    core_ids: tuple[int, ...]
    is_bus: bool
    bandwidth_bits_per_cycle: int | None
    cost: LinkCost
    directed: bool = False
    half_duplex: bool = False
    is_multicast: bool = False


@dataclass(frozen=True)
class Graph:
    """Regular graph of cores, with its pooling core and its SIMD core."""

    topology: str
    sizes: Sizes
    regular: tuple[int, ...]
    """Ids of the regular cores (all but the pooling, SIMD and off-chip core), in the order of their positions in the
    graph."""
    pooling: int | None
    simd: int | None
    bandwidth_bits_per_cycle: int | None
    cost: LinkCost

    def coordinates(self) -> dict[int, Pair]:
        """Core id -> position (column, row) in drawings; {} if the topology has no fixed layout."""
        cells = topology(self.topology).coordinates(self.sizes, len(self.regular))
        return dict(zip(self.regular, cells, strict=False))

    def pairs(self) -> list[Pair]:
        """Pairs of ids of regular cores; each pair has a link in both directions."""
        edges = topology(self.topology).edges(self.sizes, len(self.regular))
        return [(self.regular[one], self.regular[other]) for one, other in edges]


def make_link(kind: str, edges: tuple[Pair, ...], bandwidth: int | None, cost: LinkCost, name: str = "") -> Link:
    """Link with its energy per bit. If `name` is '', the link is named after the two cores of its first edge, such as
    "0->1".
    """
    per_bit, unit = cost.energy_pj_per_bit, cost.unit_energy_pj_per_cycle
    name = name or f"{edges[0][0]}->{edges[0][1]}"
    if per_bit is not None:
        return Link(name, kind, edges, bandwidth, per_bit)
    return Link(name, kind, edges, bandwidth, energy_per_bit_pj(unit, bandwidth), unit)


def connection_links(connection: Connection, sharing: set[Pair]) -> Iterator[Link]:
    """Links of one entry of a connectivity list. Pairs of cores in `sharing` share a memory and need no link."""
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


def with_multicast(links: Iterable[Link], is_multicast: bool) -> list[Link]:
    """List of `links`. If `is_multicast` is true, each link in the list carries data only once for all its receivers;
    otherwise, the links are unchanged.
    """
    return [replace(link, is_multicast=True) if is_multicast else link for link in links]


def graph_links(graph: Graph, sharing: set[Pair]) -> Iterator[Link]:
    """Links of a regular graph: links between its cores, links of the pooling core, and links of the SIMD core."""
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
    """Triple (read width, write width, is_single) of the off-chip memory. Widths are in bits per cycle; `is_single` is
    True if the memory has only one port.

    The first port that can read gives the read width, and the first port that can write gives the write width. A width
    is None if there is no such port.
    """
    ports = core.memories[memory_hierarchy(core).memories_of("O")[0]].ports
    widths = [
        next((port.bandwidth_max_bits for port in ports if port.port_type in kinds), None)
        for kinds in (("read", "read_write"), ("write", "read_write"))
    ]
    return widths[0], widths[1], len(ports) == 1


def offchip_links(
    offchip_id: int,
    core: Core,
    others: tuple[int, ...],
    cost: LinkCost,
    name: str = "port",
    given: tuple[int | None, ...] = (),
) -> Iterator[Link]:
    """Links between the off-chip core and the `others`. If the off-chip memory has one port, one link carries both
    directions. Otherwise, each direction has its own link.

    If `given` is (), the links have the bandwidths of the ports of the off-chip memory. Otherwise, `given` has one
    element: the bandwidth of all links in bits per cycle, or None for infinite bandwidth.
    """
    read, write, single_port = offchip_ports(core)
    assert read is not None
    assert write is not None
    if given:
        read = write = given[0]
    into = tuple((core_id, offchip_id) for core_id in others)
    out = tuple((offchip_id, core_id) for core_id in others)
    if single_port:
        yield make_link(OFFCHIP_PORT, into + out, write, cost, f"{name} of {offchip_id}")
    else:
        yield make_link(OFFCHIP_PORT, into, write, cost, f"write {name} of {offchip_id}")
        yield make_link(OFFCHIP_PORT, out, read, cost, f"read {name} of {offchip_id}")


def whole_bits(bandwidth: int | float) -> int | None:
    """Bandwidth of a link in whole bits per cycle, from the bandwidth in a file. None stands for infinite bandwidth."""
    return None if math.isinf(bandwidth) else int(bandwidth)
