"""Checks across the fields of a core file; fields that are broken, which is told, are holes in it."""

import math

from tilewright.errors import WRITTEN, Problems
from tilewright.hardware.array_model import is_known
from tilewright.hardware.core import DIGITAL, DIRECTIONS, MEMORY_OPERANDS
from tilewright.hardware.dataflow_checks import check_dataflows
from tilewright.hardware.direction_checks import FORBIDDEN_DIRECTIONS, check_directions
from tilewright.hardware.yaml_schema import ArrayEntry, HardwareFile, MemoryEntry, PortEntry
from tilewright.validation import each, names_of, whole
from tilewright.yamlfile import YamlDocument

ALONE, PART, STORE, OFF_CHIP = "alone", "part", "store", "off chip"
"""What a core file describes: a core by itself, one of several that computes, one that only stores, the off-chip one,
of which nothing is unusual."""
NOT_YET = "not supported yet"
IN_MEMORY_KEYS = ("imc_type", "adc_resolution", "bit_serial_precision")
"""What only arrays that compute in memory have."""
LARGEST_ARRAY = 2**40
"""Units of an array: a million times those of the largest chip."""


def check_hardware(problems: Problems, document: YamlDocument, entry: HardwareFile, use: str = ALONE) -> None:
    """Record every problem across fields, and notices of what is unusual."""
    for path in document.repeated:
        if len(path) == 2 and path[0] == "memories":
            problems.at(path, "another memory has this name, and only the last one would count", path[1])
    dimensions: list[str] = []
    if entry.operational_array is not None:
        _check_array(problems.within("operational_array"), entry.operational_array)
        dimensions = names_of(entry.operational_array.dimensions)
    memories = {name: memory for name, memory in (entry.memories or {}).items() if memory is not None}
    for name, memory in memories.items():
        _check_memory(problems.within("memories", name), memory, dimensions)
    written = document.written(("memories",))
    if isinstance(written, dict) and len(memories) == len(written):
        _check_operands_have_memories(problems, memories)
    if use in (ALONE, PART):
        check_directions(problems, entry, memories, is_part=use == PART)
    _note_narrowing_memories(problems, memories)
    problems.repeated(("operator_types",), entry.operator_types or (), "is listed twice")
    if entry.operational_array is not None:
        check_dataflows(problems.within("dataflows"), entry.dataflows, entry.operational_array)
    if use == OFF_CHIP:
        problems.notices.clear()
    _note_unmodelled_keys(problems, entry)


def _note_unmodelled_keys(problems: Problems, entry: HardwareFile) -> None:
    """Note keys of Stream 2.1 that change no number here."""
    if entry.operand_precision is not None and entry.operand_precision.model_fields_set:
        accumulator = entry.operand_precision.accumulator
        ours = "widths of operands and of partial sums come from the workload"
        theirs = f"; Stream takes {accumulator} for partial sums of convolutions and matrix products"
        problems.notice(("operand_precision",), f"not used: {ours}{theirs if accumulator else ''}")
    if entry.banks is not None:
        problems.notice(("banks",), "not used: no access waits for a bank")


def _check_array(problems: Problems, array: ArrayEntry) -> None:
    if array.dimensions is not None and array.sizes is not None and len(array.dimensions) != len(array.sizes):
        allowed = f"{len(array.dimensions)} items"
        problems.at(("sizes",), "needs one size for each of `dimensions`", WRITTEN, allowed)
    if math.prod(whole(array.sizes)) > LARGEST_ARRAY:
        problems.at(("sizes",), "the array has more than 2^40 units", WRITTEN)
    problems.repeated(("dimensions",), array.dimensions or (), "the array dimension is given twice")
    _check_dimensions(problems, "systolic_dimensions", array.systolic_dimensions, names_of(array.dimensions))
    if array.is_imc and is_known(array_kind(array)):
        return
    if array.is_imc:
        problems.at(("is_imc",), f"in-memory computing arrays are {NOT_YET}", True, "false")
    for key in IN_MEMORY_KEYS:
        if getattr(array, key):
            problems.at((key,), f"in-memory computing arrays are {NOT_YET}", WRITTEN, "leave the key out")


def array_kind(array: ArrayEntry) -> str:
    """The kind of an array, under which there may be a model of it (`hardware.array_model`)."""
    return f"{array.imc_type} in-memory" if array.is_imc else DIGITAL


def _check_dimensions(problems: Problems, key: str, names: list[str], known: list[str]) -> None:
    for index, name in each(names):
        if known and name not in known:
            problems.unknown_name((key, index), "no such array dimension", name, known)


def _check_memory(problems: Problems, memory: MemoryEntry, dimensions: list[str]) -> None:
    if memory.auto_cost_extraction:
        message = f"cost extraction with CACTI is {NOT_YET}; give r_cost, w_cost and area"
        problems.at(("auto_cost_extraction",), message, True, "false")
    else:
        for key in ("r_cost", "w_cost"):
            if getattr(memory, key) is None and not problems.has(key):
                problems.at((key,), "required key is missing")
    problems.repeated(("operands",), memory.operands or (), "the operand is given twice")
    problems.repeated(("served_dimensions",), memory.served_dimensions or (), "the array dimension is given twice")
    _check_dimensions(problems, "served_dimensions", memory.served_dimensions, dimensions)
    _check_ports(problems, memory)


def _check_ports(problems: Problems, memory: MemoryEntry) -> None:
    names: list[str] = []
    owners: dict[tuple[str, str], str] = {}
    for index, port in each(memory.ports):
        if port.name in names:
            problems.at(("ports", index, "name"), "another port of this memory has the same name", port.name)
        names += [port.name] if port.name is not None else []
        _check_bandwidths(problems.within("ports", index), port)
        _check_allocation(problems.within("ports", index), port, names_of(memory.operands), owners)


def _check_bandwidths(problems: Problems, port: PortEntry) -> None:
    smallest, largest = port.bandwidth_min, port.bandwidth_max
    if smallest is not None and largest is not None and smallest > largest:
        message = f"is greater than bandwidth_max ({largest} bits per cycle)"
        problems.at(("bandwidth_min",), message, WRITTEN, f"1 to {largest}")


def _check_allocation(problems: Problems, port: PortEntry, held: list[str], owners: dict[tuple[str, str], str]) -> None:
    forbidden = FORBIDDEN_DIRECTIONS.get(port.type, ())
    for index, pair in each(port.allocation):
        place = ("allocation", index)
        if held and pair[0] not in held:
            problems.unknown_name(place, "the memory does not hold this operand", pair[0], held)
        if pair[1] in forbidden:
            allowed = ", ".join(direction for direction in DIRECTIONS if direction not in forbidden)
            problems.at(place, f"a {port.type} port cannot carry this direction", pair[1], allowed)
        owner = str(port.name)
        if owners.get(pair, owner) != owner:
            problems.notice(place, f"'{', '.join(pair)}' is taken over from port {owners[pair]}, which comes earlier")
        owners[pair] = owner


def _check_operands_have_memories(problems: Problems, memories: dict[str, MemoryEntry]) -> None:
    held = {operand for memory in memories.values() for operand in memory.operands or ()}
    if not memories or any(not memory.operands for memory in memories.values()):
        return
    for operand in MEMORY_OPERANDS:
        if operand not in held:
            problems.at(("memories",), f"no memory holds operand {operand}", allowed="every operand needs one")


def _note_narrowing_memories(problems: Problems, memories: dict[str, MemoryEntry]) -> None:
    """Note a memory of which more instances exist than of the one below it: the levels may be in the wrong order."""
    for operand in MEMORY_OPERANDS:
        below: tuple[str, set[str]] | None = None
        for name, memory in memories.items():
            if operand not in (memory.operands or ()):
                continue
            served = set(whole(memory.served_dimensions))
            if below is not None and not served >= below[1]:
                message = f"serves fewer array dimensions than {below[0]}, which is below it for operand {operand}"
                problems.notice(("memories", name, "served_dimensions"), message)
            below = (name, served)
