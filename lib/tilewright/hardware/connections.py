"""Reads the connectivity list of an accelerator file (Stream, 2025), with defaults filled in and checked."""

import itertools
import math
from collections.abc import Iterator
from dataclasses import replace

from tilewright.errors import Problems
from tilewright.hardware.core_paths import CoreIds
from tilewright.hardware.system import all_pairs
from tilewright.hardware.system_checks import check_energy_keys, core_list
from tilewright.hardware.system_links import Connection, LinkCost, whole_bits
from tilewright.hardware.system_schema import ConnectionEntry, ConnectivityFile


def read_connections(
    problems: Problems, entry: ConnectivityFile, ids: CoreIds, sharing: set[tuple[int, int]]
) -> tuple[Connection, ...]:
    """The sound entries of the connectivity list; what is wrong with the others is recorded."""
    connections: list[Connection] = []
    joined: dict[tuple[int, int], int] = {}
    for index, written in enumerate(entry.core_connectivity or ()):
        place = problems.within("core_connectivity", index)
        bare = None if written is None else _bare_connection(place, written, ids)
        connection = None if bare is None else _finished(place, written, problems, entry, bare)
        if connection is None:
            continue
        for one in _for_copies(connection, ids):
            _check_pairs(place, index, one, joined, sharing)
            connections.append(one)
    return tuple(connections)


def _for_copies(connection: Connection, ids: CoreIds) -> Iterator[Connection]:
    """The connection of cores and of their copies: a bus joins all of them, of links each pair has its own."""
    first, *others = connection.core_ids
    if connection.is_bus and not connection.directed:
        yield replace(connection, core_ids=ids.with_copies(connection.core_ids))
    elif connection.is_bus:
        for sender in ids.with_copies([first]):
            yield replace(connection, core_ids=(sender, *ids.with_copies(others)))
    else:
        for pair in itertools.product(ids.with_copies([first]), ids.with_copies(others)):
            yield replace(connection, core_ids=pair)


def default_cost(entry: ConnectivityFile | ConnectionEntry) -> LinkCost:
    """What links cost that have no cost of their own."""
    return LinkCost(entry.unit_energy_cost or 0.0, entry.energy_per_bit)


def _bare_connection(problems: Problems, entry: ConnectionEntry | list[int], ids: CoreIds) -> Connection | None:
    """A connection without bandwidth and cost; None, with problems, if some of it is wrong."""
    if isinstance(entry, list):
        found = core_list(problems, (), entry, ids)
        return Connection(found, len(found) > 2, None, LinkCost()) if found else None
    is_broken = problems.has()
    check_energy_keys(problems, entry)
    found = core_list(problems, ("cores",), entry.cores, ids)
    if is_broken or found is None:
        return None
    if entry.type == "link" and len(found) != 2:
        problems.at(("cores",), "a link joins two cores; a bus joins more", list(found), "type: bus")
        return None
    if entry.duplex is not None and (entry.directed or entry.type == "bus"):
        what = "a directed link has one direction" if entry.directed else "all transfers share a bus in any case"
        problems.at(("duplex",), f"{what}, so there is nothing to choose", entry.duplex, "leave the key out")
        return None
    return Connection(found, entry.type == "bus", None, LinkCost(), bool(entry.directed), entry.duplex == "half")


def _finished(
    place: Problems, written: ConnectionEntry | list[int], problems: Problems, file: ConnectivityFile, bare: Connection
) -> Connection | None:
    """The connection with its bandwidth and cost, its own or those of the file."""
    own = written if isinstance(written, ConnectionEntry) else ConnectionEntry.model_construct()
    # A table at the top is of rates of ports.
    default = None if isinstance(file.bandwidth, dict) else file.bandwidth
    bandwidth = default if own.bandwidth is None else own.bandwidth
    if bandwidth is None and file.bandwidth is None and problems.has("bandwidth"):
        return None
    if bandwidth is None:
        place.at((), "has no bandwidth, and the file has none for all", allowed="bandwidth: 64 here or at the top")
        return None
    has_cost = own.unit_energy_cost is not None or own.energy_per_bit is not None
    cost = default_cost(own if has_cost else file)
    if math.isinf(bandwidth) and cost.energy_pj_per_bit is None and cost.unit_energy_pj_per_cycle:
        message = "transfers over infinite bandwidth take no cycles, so an energy of busy cycles would count as nothing"
        place.at((), message, allowed="energy_per_bit, or unit_energy_cost: 0")
        return None
    return replace(bare, bandwidth_bits_per_cycle=whole_bits(bandwidth), cost=cost)


def _check_pairs(
    problems: Problems,
    index: int,
    connection: Connection,
    joined: dict[tuple[int, int], int],
    sharing: set[tuple[int, int]],
) -> None:
    """Record a second link between two cores, and one between cores that share memory."""
    if connection.is_bus:
        return
    first, second = connection.core_ids
    pairs = ((first, second),) if connection.directed else all_pairs(connection.core_ids)
    if (first, second) in sharing:
        problems.at((), "these cores share memory, so no link joins them", list(connection.core_ids))
    for pair in pairs:
        if pair in joined:
            message = f"core {pair[0]} has a link to core {pair[1]} already, in entry {joined[pair]}"
            problems.at((), message, list(connection.core_ids))
            break
    joined.update(dict.fromkeys(pairs, index))
