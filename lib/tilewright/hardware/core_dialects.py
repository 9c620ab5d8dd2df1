"""Core files of other versions of the tools, brought into the form that the reader knows (zigzag-dse 3.9.1).

Until 2025 a memory had `r_bw` and `w_bw`, a number of ports of each kind, and for each operand a table of direction to
port. Core files of Stream 2.1 say the `type` of a core; those of a core that only stores give its array no units.
"""

from dataclasses import replace
from typing import Any

from tilewright.errors import InputError, KeyPath, Problem
from tilewright.yamlfile import YamlDocument, items, table

PORT_KINDS = (("r_port", "read"), ("w_port", "write"), ("rw_port", "read_write"))
_BANDWIDTHS = {"r_bw", "w_bw"}
_OLD_KEYS = {*_BANDWIDTHS, "min_r_granularity", "min_w_granularity", *(key for key, _ in PORT_KINDS)}
_ARRAY_KEYS = {"multiplier_energy": "unit_energy", "multiplier_area": "unit_area"}
_TILE_TYPES = "aie2."


def in_current_form(document: YamlDocument) -> YamlDocument:
    """The document with the keys of zigzag-dse 3.9.1; itself if it has no others.

    What is broken is left as it is, for the reader to refuse. Raises InputError for ports that contradict each other
    and for cores that have no memory hierarchy.
    """
    data = table(document.data)
    problems: list[Problem] = []
    changed = dict(data)
    if _core_type(document).startswith(_TILE_TYPES):
        message = "cores of this type have no memory hierarchy, which every number here comes from"
        problems.append(_problem(document, ("type",), message, data["type"], "compute, memory, offchip, shim"))
    if "multipliers" in changed and "operational_array" not in changed:
        changed = {("operational_array" if key == "multipliers" else key): value for key, value in changed.items()}
    array = changed.get("operational_array")
    if isinstance(array, dict):
        changed["operational_array"] = {
            (_ARRAY_KEYS[key] if key in _ARRAY_KEYS and _ARRAY_KEYS[key] not in array else key): value
            for key, value in array.items()
        }
    if isinstance(data.get("memories"), dict):
        changed["memories"] = {
            name: _memory(document, ("memories", name), memory, problems) for name, memory in data["memories"].items()
        }
    if problems:
        raise InputError(problems)
    return document if changed == data else replace(document, data=changed)


def only_stores(document: YamlDocument) -> bool:
    """Whether the `type` of a core file says that no layer can run on the core."""
    # Without a namespace the type is that of ZigZag.
    return _core_type(document).removeprefix("zigzag.") in ("memory", "shim", "offchip")


def with_dummy_array(document: YamlDocument) -> YamlDocument:
    """The document with an array of one unit that costs nothing, on the dimensions that its memories serve."""
    data = table(document.data)
    array = table(data.get("operational_array", data.get("multipliers")))
    served = [
        name
        for memory in table(data.get("memories")).values()
        for name in items(table(memory).get("served_dimensions"))
    ]
    dimensions = array.get("dimensions") or list(dict.fromkeys(served)) or ["D1"]
    count = len(dimensions) if isinstance(dimensions, list) else 1
    array = {key: value for key, value in array.items() if key not in ("multiplier_energy", "multiplier_area")}
    dummy = {**array, "dimensions": dimensions, "sizes": [1] * count, "unit_energy": 0, "unit_area": 0}
    rest = {key: value for key, value in data.items() if key != "multipliers"}
    return replace(document, data={**rest, "operational_array": dummy}) if data else document


def _core_type(document: YamlDocument) -> str:
    """The `type` of a core file, '' if it has none."""
    value = table(document.data).get("type")
    return value if isinstance(value, str) else ""


def _memory(document: YamlDocument, path: KeyPath, memory: Any, problems: list[Problem]) -> Any:
    """A memory with a list of ports; itself if it is not written in the old form."""
    if not isinstance(memory, dict) or not set(memory) >= _BANDWIDTHS:
        return memory
    operands = [name for name in items(memory.get("operands")) if isinstance(name, str)]
    tables = items(memory.get("ports"))
    if not all(isinstance(entry, dict) and "name" not in entry for entry in tables):
        return memory
    ports = {name: _port(memory, name, key, kind) for key, kind in PORT_KINDS for name in _names(memory, key)}
    if len(tables) != len(operands):
        message = "needs one table of directions for each of `operands`"
        problems.append(_problem(document, (*path, "ports"), message, len(tables), f"{len(operands)} tables"))
        return memory
    for index, (operand, directions) in enumerate(zip(operands, tables, strict=True)):
        for direction, name in directions.items():
            if name in ports:
                ports[name]["allocation"].append(f"{operand}, {direction}")
            else:
                place = (*path, "ports", index, direction)
                problems.append(_problem(document, place, "no such port", name, ", ".join(ports) or "none"))
    if memory.get("rw_port") and memory["r_bw"] != memory["w_bw"]:
        message = "a port that reads and writes has one bandwidth, this is not r_bw"
        problems.append(_problem(document, (*path, "w_bw"), message, memory["w_bw"], str(memory["r_bw"])))
    kept = {key: value for key, value in memory.items() if key not in _OLD_KEYS}
    return {**kept, "ports": list(ports.values())}


def _names(memory: dict[Any, Any], key: str) -> list[str]:
    count = memory.get(key, 0)
    return [f"{key}_{number}" for number in range(1, min(count, 64) + 1)] if type(count) is int else []


def _port(memory: dict[Any, Any], name: str, key: str, kind: str) -> dict[str, Any]:
    letter = "w" if key == "w_port" else "r"
    width = memory[f"{letter}_bw"]
    least = memory.get(f"min_{letter}_granularity")
    bandwidths = {"bandwidth_min": width if least is None else least, "bandwidth_max": width}
    return {"name": name, "type": kind, **bandwidths, "allocation": []}


def _problem(document: YamlDocument, path: KeyPath, message: str, value: object, allowed: str) -> Problem:
    return Problem(message, document.file, document.line_of(path), document.dotted(path), repr(value), allowed)
