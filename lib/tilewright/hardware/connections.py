"""Reads the connectivity list of an accelerator file (Stream, 2025), with defaults filled in and checked."""

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from tilewright.hardware.interconnect import all_pairs
from tilewright.hardware.system_checks import CoreIds, check_energy_keys, core_list
from tilewright.hardware.system_links import Connection, LinkCost, whole_bits
from tilewright.hardware.system_schema import ConnectionEntry, parse_link_bandwidth
from tilewright.units import parse_energy_pj
from tilewright.validation import Findings, items, parsed, table, validate
from tilewright.yamlfile import KeyPath, YamlDocument

KEY = "core_connectivity"


def read_connections(findings: Findings, ids: CoreIds, sharing: set[tuple[int, int]]) -> tuple[Connection, ...]:
    """The sound entries of the connectivity list; what is wrong with the others is recorded."""
    connections: list[Connection] = []
    joined: dict[tuple[int, int], int] = {}
    for index, value in enumerate(items(table(findings.document.data).get(KEY))):
        path: KeyPath = (KEY, index)
        connection = _connection(findings, path, value, ids)
        if connection is None:
            continue
        _check_pairs(findings, path, index, connection, joined, sharing)
        connections.append(connection)
    return tuple(connections)


def default_cost(data: dict[Any, Any]) -> LinkCost:
    """What links cost that have no cost of their own; values that are refused count as not given."""
    unit = parsed(parse_energy_pj, data.get("unit_energy_cost"))
    return LinkCost(unit or 0.0, parsed(parse_energy_pj, data.get("energy_per_bit")))


def _connection(findings: Findings, path: KeyPath, value: Any, ids: CoreIds) -> Connection | None:
    if not isinstance(value, dict):
        found = core_list(findings, path, value, ids)
        return _finished(findings, path, {}, Connection(found, len(found) > 2, None, LinkCost())) if found else None
    entry: ConnectionEntry | None = validate_part(ConnectionEntry, findings, path)
    check_energy_keys(findings, path, value)
    cores = value.get("cores")
    found = core_list(findings, (*path, "cores"), cores, ids) if isinstance(cores, list) and len(cores) > 1 else None
    if entry is None or found is None:
        return None
    if entry.type == "link" and len(found) != 2:
        findings.problem((*path, "cores"), "a link joins two cores; a bus joins more", list(found), "type: bus")
        return None
    if entry.duplex is not None and (entry.directed or entry.type == "bus"):
        what = "a directed link has one direction" if entry.directed else "all transfers share a bus in any case"
        findings.problem((*path, "duplex"), f"{what}, so there is nothing to choose", entry.duplex, "leave the key out")
        return None
    bare = Connection(found, entry.type == "bus", None, LinkCost(), entry.directed, entry.duplex == "half")
    return _finished(findings, path, value, bare)


def _finished(findings: Findings, path: KeyPath, value: dict[Any, Any], bare: Connection) -> Connection | None:
    """The connection with its bandwidth and cost, its own or those of the file."""
    data = table(findings.document.data)
    # A table at the top is of rates of ports.
    default = None if isinstance(data.get("bandwidth"), dict) else data.get("bandwidth")
    width = value["bandwidth"] if value.get("bandwidth") is not None else default
    if width is None:
        findings.problem(
            path, "has no bandwidth, and the file has none for all", allowed="bandwidth: 64 here or at the top"
        )
        return None
    bandwidth = parsed(parse_link_bandwidth, width)
    own = value.get("unit_energy_cost") is not None or value.get("energy_per_bit") is not None
    cost = default_cost(value if own else data)
    if bandwidth is None:
        return None
    if math.isinf(bandwidth) and cost.energy_pj_per_bit is None and cost.unit_energy_pj_per_cycle:
        message = "transfers over infinite bandwidth take no cycles, so an energy of busy cycles would count as nothing"
        findings.problem(path, message, allowed="energy_per_bit, or unit_energy_cost: 0")
        return None
    return replace(bare, bandwidth_bits_per_cycle=whole_bits(bandwidth), cost=cost)


def _check_pairs(
    findings: Findings,
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
        findings.problem(path, "these cores share memory, so no link joins them", list(connection.core_ids))
    for pair in pairs:
        if pair in joined:
            message = f"core {pair[0]} has a link to core {pair[1]} already, in entry {joined[pair]}"
            findings.problem(path, message, list(connection.core_ids))
            break
    joined.update(dict.fromkeys(pairs, index))


def validate_part(model: Any, findings: Findings, path: KeyPath) -> Any:
    """Build `model` from one value of the document; None, with problems at their places, if it fails."""
    document = findings.document
    value = document.data
    for key in path:
        value = value[key]
    quick = validate(model, Findings(YamlDocument(document.file, value)))
    if quick is not None:
        return quick
    lines = dict(_lines_below(document, path))
    part = Findings(YamlDocument(document.file, value, lines))
    validate(model, part)
    head = document.dotted(path)
    findings.problems += [replace(problem, path=f"{head}.{problem.path}".rstrip(".")) for problem in part.problems]
    return None


def _lines_below(document: YamlDocument, path: KeyPath) -> Iterator[tuple[KeyPath, int]]:
    for key, line in document.lines.items():
        if key[: len(path)] == path:
            yield key[len(path) :], line
