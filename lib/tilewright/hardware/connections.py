"""Reads the connectivity list of an accelerator file (Stream, 2025), with defaults filled in and checked."""

import math
from dataclasses import replace
from typing import Any

from tilewright.errors import KeyPath, Problems
from tilewright.hardware.interconnect import all_pairs
from tilewright.hardware.system_checks import CoreIds, check_energy_keys, core_list
from tilewright.hardware.system_links import Connection, LinkCost, whole_bits
from tilewright.hardware.system_schema import ConnectionEntry, parse_link_bandwidth
from tilewright.units import parse_energy_pj
from tilewright.validation import items, parsed, validate

KEY = "core_connectivity"


def read_connections(
    problems: Problems, data: dict[Any, Any], ids: CoreIds, sharing: set[tuple[int, int]]
) -> tuple[Connection, ...]:
    """The sound entries of the connectivity list; what is wrong with the others is recorded."""
    connections: list[Connection] = []
    joined: dict[tuple[int, int], int] = {}
    for index, value in enumerate(items(data.get(KEY))):
        path: KeyPath = (KEY, index)
        connection = _connection(problems, path, value, data, ids)
        if connection is None:
            continue
        _check_pairs(problems, path, index, connection, joined, sharing)
        connections.append(connection)
    return tuple(connections)


def default_cost(data: dict[Any, Any]) -> LinkCost:
    """What links cost that have no cost of their own; values that are refused count as not given."""
    unit = parsed(parse_energy_pj, data.get("unit_energy_cost"))
    return LinkCost(unit or 0.0, parsed(parse_energy_pj, data.get("energy_per_bit")))


def _connection(problems: Problems, path: KeyPath, value: Any, data: dict[Any, Any], ids: CoreIds) -> Connection | None:
    if not isinstance(value, dict):
        found = core_list(problems, path, value, ids)
        return (
            _finished(problems, path, {}, data, Connection(found, len(found) > 2, None, LinkCost())) if found else None
        )
    entry: ConnectionEntry | None = validate(ConnectionEntry, value, problems.within(*path))
    check_energy_keys(problems, path, value)
    cores = value.get("cores")
    found = core_list(problems, (*path, "cores"), cores, ids) if isinstance(cores, list) and len(cores) > 1 else None
    if entry is None or found is None:
        return None
    if entry.type == "link" and len(found) != 2:
        problems.at((*path, "cores"), "a link joins two cores; a bus joins more", list(found), "type: bus")
        return None
    if entry.duplex is not None and (entry.directed or entry.type == "bus"):
        what = "a directed link has one direction" if entry.directed else "all transfers share a bus in any case"
        problems.at((*path, "duplex"), f"{what}, so there is nothing to choose", entry.duplex, "leave the key out")
        return None
    bare = Connection(found, entry.type == "bus", None, LinkCost(), entry.directed, entry.duplex == "half")
    return _finished(problems, path, value, data, bare)


def _finished(
    problems: Problems, path: KeyPath, value: dict[Any, Any], data: dict[Any, Any], bare: Connection
) -> Connection | None:
    """The connection with its bandwidth and cost, its own or those of the file."""
    # A table at the top is of rates of ports.
    default = None if isinstance(data.get("bandwidth"), dict) else data.get("bandwidth")
    width = value["bandwidth"] if value.get("bandwidth") is not None else default
    if width is None:
        problems.at(path, "has no bandwidth, and the file has none for all", allowed="bandwidth: 64 here or at the top")
        return None
    bandwidth = parsed(parse_link_bandwidth, width)
    own = value.get("unit_energy_cost") is not None or value.get("energy_per_bit") is not None
    cost = default_cost(value if own else data)
    if bandwidth is None:
        return None
    if math.isinf(bandwidth) and cost.energy_pj_per_bit is None and cost.unit_energy_pj_per_cycle:
        message = "transfers over infinite bandwidth take no cycles, so an energy of busy cycles would count as nothing"
        problems.at(path, message, allowed="energy_per_bit, or unit_energy_cost: 0")
        return None
    return replace(bare, bandwidth_bits_per_cycle=whole_bits(bandwidth), cost=cost)


def _check_pairs(
    problems: Problems,
    path: KeyPath,
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
        problems.at(path, "these cores share memory, so no link joins them", list(connection.core_ids))
    for pair in pairs:
        if pair in joined:
            message = f"core {pair[0]} has a link to core {pair[1]} already, in entry {joined[pair]}"
            problems.at(path, message, list(connection.core_ids))
            break
    joined.update(dict.fromkeys(pairs, index))
