"""Checks across the fields of a hardware file, on raw data: they run also when other fields are broken."""

import math
from typing import Any

from tilewright.errors import KeyPath, Problems
from tilewright.hardware.core import DIRECTIONS, MEMORY_OPERANDS
from tilewright.hardware.dataflow_checks import check_dataflows
from tilewright.hardware.direction_checks import FORBIDDEN_DIRECTIONS, check_directions
from tilewright.hardware.yaml_schema import parse_allocation
from tilewright.units import LARGEST_WHOLE_NUMBER, parse_bandwidth_bits
from tilewright.validation import items, parsed, table, texts
from tilewright.yamlfile import YamlDocument

ALONE, PART, STORE = "alone", "part", "store"
"""What a core file describes: a core by itself, one of several that computes, one that only stores."""
NOT_YET = "not supported yet"
LARGEST_ARRAY = 2**40
"""Units of an array: a million times those of the largest chip."""


def check_hardware(document: YamlDocument, problems: Problems, use: str = ALONE) -> None:
    """Record every problem across fields, and notices of what is unusual. `use` is ALONE, PART or STORE."""
    data = table(document.data)
    array = table(data.get("operational_array"))
    _check_array(problems, array)
    dimensions = [name for name in texts(array.get("dimensions")) if name is not None]
    memories = table(data.get("memories"))
    for path in document.repeated:
        if len(path) == 2 and path[0] == "memories":
            problems.at(path, "another memory has this name, and only the last one would count", path[1])
    for name, memory in memories.items():
        if isinstance(name, str):
            _check_memory(problems, ("memories", name), table(memory), dimensions)
    _check_operands_have_memories(problems, memories)
    if use != STORE:
        check_directions(data, problems, is_part=use == PART)
    _note_narrowing_memories(problems, memories)
    problems.repeated(("operator_types",), items(data.get("operator_types")), "is listed twice")
    check_dataflows(problems, data.get("dataflows"), array)


def note_unmodelled_keys(document: YamlDocument, problems: Problems) -> None:
    """Note keys of Stream 2.1 that change no number here."""
    data = table(document.data)
    if data.get("operand_precision"):
        accumulator = table(data["operand_precision"]).get("accumulator")
        ours = "widths of operands and of partial sums come from the workload"
        theirs = f"; Stream takes {accumulator} for partial sums of convolutions and matrix products"
        problems.notice(("operand_precision",), f"not used: {ours}{theirs if accumulator else ''}")
    if data.get("banks"):
        problems.notice(("banks",), "not used: no access waits for a bank")


def _check_array(problems: Problems, array: dict[Any, Any]) -> None:
    path: KeyPath = ("operational_array",)
    dimensions, sizes = array.get("dimensions"), array.get("sizes")
    if isinstance(dimensions, list) and isinstance(sizes, list) and len(dimensions) != len(sizes):
        problems.at((*path, "sizes"), "needs one size for each of `dimensions`", sizes, f"{len(dimensions)} items")
    counts = [size for size in items(sizes) if type(size) is int and 0 < size <= LARGEST_WHOLE_NUMBER]
    if math.prod(counts) > LARGEST_ARRAY:
        problems.at((*path, "sizes"), "the array has more than 2^40 units", sizes)
    names = texts(dimensions)
    problems.repeated((*path, "dimensions"), names, "the array dimension is given twice")
    known = [name for name in names if name is not None]
    for index, name in enumerate(texts(array.get("systolic_dimensions"))):
        if name is not None and name not in known:
            problems.unknown_name((*path, "systolic_dimensions", index), "no such array dimension", name, known)
    if array.get("is_imc") is True:
        problems.at((*path, "is_imc"), f"in-memory computing arrays are {NOT_YET}", True, "false")
    for key in ("imc_type", "adc_resolution", "bit_serial_precision"):
        if array.get(key) not in (None, 0, False):
            problems.at((*path, key), f"in-memory computing arrays are {NOT_YET}", array[key], "leave the key out")


def _check_memory(problems: Problems, path: KeyPath, memory: dict[Any, Any], dimensions: list[str]) -> None:
    if memory.get("auto_cost_extraction") is True:
        message = f"cost extraction with CACTI is {NOT_YET}; give r_cost, w_cost and area"
        problems.at((*path, "auto_cost_extraction"), message, True, "false")
    else:
        for key in ("r_cost", "w_cost"):
            if memory and memory.get(key) is None:
                problems.at((*path, key), "required key is missing")
    problems.repeated((*path, "operands"), texts(memory.get("operands")), "the operand is given twice")
    served = texts(memory.get("served_dimensions"))
    problems.repeated((*path, "served_dimensions"), served, "the array dimension is given twice")
    for index, name in enumerate(served):
        if name is not None and dimensions and name not in dimensions:
            problems.unknown_name((*path, "served_dimensions", index), "no such array dimension", name, dimensions)
    _check_ports(problems, (*path, "ports"), memory)


def _check_ports(problems: Problems, path: KeyPath, memory: dict[Any, Any]) -> None:
    ports = [table(port) for port in items(memory.get("ports"))]
    names = [name if isinstance(name := port.get("name"), str) else None for port in ports]
    for index, name in enumerate(names):
        if name is not None and name in names[:index]:
            problems.at((*path, index, "name"), "another port of this memory has the same name", name)
    owners: dict[tuple[str, str], str] = {}
    for index, port in enumerate(ports):
        _check_bandwidths(problems, (*path, index), port)
        _check_allocation(problems, (*path, index), port, memory, owners)


def _check_bandwidths(problems: Problems, path: KeyPath, port: dict[Any, Any]) -> None:
    smallest = parsed(parse_bandwidth_bits, port.get("bandwidth_min"))
    largest = parsed(parse_bandwidth_bits, port.get("bandwidth_max"))
    if smallest is not None and largest is not None and smallest > largest:
        message = f"is greater than bandwidth_max ({largest} bits per cycle)"
        problems.at((*path, "bandwidth_min"), message, port["bandwidth_min"], f"1 to {largest}")


def _check_allocation(
    problems: Problems,
    path: KeyPath,
    port: dict[Any, Any],
    memory: dict[Any, Any],
    owners: dict[tuple[str, str], str],
) -> None:
    held = [name for name in texts(memory.get("operands")) if name is not None]
    kind = port.get("type")
    forbidden = FORBIDDEN_DIRECTIONS.get(kind, ()) if isinstance(kind, str) else ()
    for index, text in enumerate(texts(port.get("allocation"))):
        pair = parsed(parse_allocation, text) if text is not None else None
        if pair is None:
            continue
        place = (*path, "allocation", index)
        if held and pair[0] not in held:
            problems.unknown_name(place, "the memory does not hold this operand", pair[0], held)
        if pair[1] in forbidden:
            allowed = ", ".join(direction for direction in DIRECTIONS if direction not in forbidden)
            problems.at(place, f"a {kind} port cannot carry this direction", pair[1], allowed)
        owner = str(port.get("name"))
        if owners.get(pair, owner) != owner:
            problems.notice(place, f"'{', '.join(pair)}' is taken over from port {owners[pair]}, which comes earlier")
        owners[pair] = owner


def _check_operands_have_memories(problems: Problems, memories: dict[Any, Any]) -> None:
    held = {operand for memory in memories.values() for operand in texts(table(memory).get("operands"))}
    if not memories or any(not items(table(memory).get("operands")) for memory in memories.values()):
        return
    for operand in MEMORY_OPERANDS:
        if operand not in held:
            problems.at(("memories",), f"no memory holds operand {operand}", allowed="every operand needs one")


def _note_narrowing_memories(problems: Problems, memories: dict[Any, Any]) -> None:
    """Note a memory of which more instances exist than of the one below it: the levels may be in the wrong order."""
    for operand in MEMORY_OPERANDS:
        below: tuple[Any, set[str | None]] | None = None
        for name, memory in memories.items():
            if operand not in texts(table(memory).get("operands")):
                continue
            served = set(texts(table(memory).get("served_dimensions")))
            if below is not None and not served >= below[1]:
                message = f"serves fewer array dimensions than {below[0]}, which is below it for operand {operand}"
                problems.notice(("memories", name, "served_dimensions"), message)
            below = (name, served)
