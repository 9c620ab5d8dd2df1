"""Checks of a core file that involve several fields: array, dataflows, memories, ports, and in-memory arrays.

Invalid fields are None in the checked tree, and are reported elsewhere.

The ports of a memory must carry these directions:
* for an input: reading to the level below (tl), and writing from the level above (fh);
* for an output: writing from the level below (fl), and reading to the level above (th);
* for an output whose partial sums move back: also tl and fh. Partial sums move back only if a loop order moves them up
  before they are final.

The topmost memory of an operand has no level above, and does not need fh and th.
"""

import math
import re
from collections.abc import Iterator, Mapping

from tilewright.base.errors import WRITTEN, Caution, Problems, count_of, nearest_name
from tilewright.base.operator_groups import ALL, MAC
from tilewright.base.validation import TableModel, each, names_of, whole
from tilewright.base.yamlfile import YamlDocument
from tilewright.hardware.attributes import Owner, attributes
from tilewright.hardware.core import DIGITAL, DIRECTIONS, IN_MEMORY, MEMORY_OPERANDS
from tilewright.hardware.hierarchy import hierarchy_of
from tilewright.hardware.memory_costs import check_library_cost, is_from_library
from tilewright.hardware.physical_rates import CLOCK_KEY
from tilewright.hardware.plausible_numbers import report_bit_of_memory, report_clock, report_operation
from tilewright.hardware.static_power import missing_clock
from tilewright.hardware.system import CELLS
from tilewright.hardware.yaml_schema import ArrayEntry, DataflowEntry, HardwareFile, MemoryEntry, PortEntry

IN_MEMORY_KEYS = ("imc_type", "adc_resolution", "bit_serial_precision")
"""Keys that only in-memory arrays have."""
_POWERS_OF_TWO = "1, 2, 4, 8, ..."


def check_in_memory(
    problems: Problems, array: ArrayEntry, memories: Mapping[str, MemoryEntry | None], is_computing: bool
) -> None:
    """Report errors in an in-memory array and in its cells. In any other array, report keys that only in-memory arrays
    can have; if `is_computing` is true, also report a missing `unit_energy`."""
    place = problems.within("operational_array")
    if not array.is_imc:
        for key in IN_MEMORY_KEYS:
            if getattr(array, key):
                message = "only in-memory arrays (with `is_imc: true`) can have this key"
                place.at((key,), message, WRITTEN, "leave the key out")
        is_misspelt = any(one.nearest == "unit_energy" for one in place.found)
        if is_computing and array.unit_energy is None and not place.has("unit_energy") and not is_misspelt:
            place.at(("unit_energy",), "required key is missing")
        return
    _check_kind(place, array)
    _check_precisions(place, array)
    _check_sides(place, array)
    _check_cells(problems.within("memories"), array, memories)
    for key in ("unit_energy", "unit_area"):
        if getattr(array, key):
            place.unused((key,), "not used: the cost of an in-memory array comes from a model of its circuits")


def _check_kind(problems: Problems, array: ArrayEntry) -> None:
    if array.imc_type is None and not problems.has("imc_type"):
        problems.at(("imc_type",), "required key is missing: kind of in-memory array", allowed="analog, digital")
    if array.imc_type == "digital" and array.adc_resolution:
        problems.at(
            ("adc_resolution",), "a digital in-memory array has no converters", WRITTEN, "0, or leave the key out"
        )
    if array.imc_type == "analog" and not array.adc_resolution and not problems.has("adc_resolution"):
        problems.notice(
            ("adc_resolution",), "missing or 0, so the analog-to-digital converters of the array cost nothing"
        )


def _check_precisions(problems: Problems, array: ArrayEntry) -> None:
    if array.input_precision is None and not problems.has("input_precision"):
        told = "required key is missing: the numbers of bits of an activation and of a weight"
        problems.at(("input_precision",), told, allowed="[activation bits, weight bits]")
    if array.bit_serial_precision is None and not problems.has("bit_serial_precision"):
        told = "required key is missing: the number of input bits that arrive at a time"
        problems.at(("bit_serial_precision",), told, allowed=_POWERS_OF_TWO)
    for index, bits in enumerate(array.input_precision or ()):
        if bits is not None and not _is_power_of_two(bits):
            problems.at(("input_precision", index), "must be a power of two", bits, _POWERS_OF_TWO)
    serial, activations = array.bit_serial_precision, array.input_precision[0] if array.input_precision else None
    if serial is None:
        return
    if not _is_power_of_two(serial):
        problems.at(("bit_serial_precision",), "must be a power of two", WRITTEN, _POWERS_OF_TWO)
    elif activations is not None and serial > activations:
        told = f"is more than the number of bits of an activation ({activations})"
        problems.at(("bit_serial_precision",), told, WRITTEN, f"up to {activations}")


def _check_sides(problems: Problems, array: ArrayEntry) -> None:
    names = names_of(array.dimensions)
    if array.dimensions and len(names) == len(array.dimensions) < 2:
        told = "an in-memory array has two dimensions or more: word lines, bit lines, then banks"
        problems.at(("dimensions",), told, WRITTEN, "[D1, D2]")
        return
    if array.imc_type != "digital" or array.sizes is None or len(array.sizes) != len(names):
        return
    index = names.index(sorted(names)[1]) if len(names) > 1 else 0
    rows = array.sizes[index]
    if rows is not None and not _is_power_of_two(rows):
        told = (
            f"the size of {names[index]} (the bit lines) must be a power of two, because a digital in-memory array"
            f" has adder trees"
        )
        problems.at(("sizes", index), told, rows, _POWERS_OF_TWO)


def _check_cells(problems: Problems, array: ArrayEntry, memories: Mapping[str, MemoryEntry | None]) -> None:
    if CELLS not in memories:
        told = f"an in-memory array needs the memory '{CELLS}', which holds the weights (I2) in the array"
        problems.at((), told, nearest=nearest_name(CELLS, list(memories)))
        return
    cells = memories[CELLS]
    if cells is None:
        return
    if cells.operands and [name for name in cells.operands if name is not None] != ["I2"]:
        problems.at((CELLS, "operands"), "cells of an in-memory array can only hold weights", WRITTEN, "[I2]")
    if cells.served_dimensions:
        told = "must be empty, because there is a cell at each crossing of word lines and bit lines"
        problems.at((CELLS, "served_dimensions"), told, WRITTEN, "[]")
    for key in ("cost", "auto_cost_extraction"):
        if getattr(cells, key):
            told = "the library of costs has no cells: give r_cost, w_cost and area"
            problems.at((CELLS, key), told, WRITTEN, "leave the key out")
    weights = array.input_precision[-1] if array.input_precision else None
    if cells.size and weights and cells.size % weights:
        told = f"must be a multiple of the {weights} bits of a weight (input_precision)"
        problems.at((CELLS, "size"), told, WRITTEN, f"{weights}, {2 * weights}, ...")


def _is_power_of_two(number: int) -> bool:
    return number > 0 and number & (number - 1) == 0


_OUTPUT = "O"
FORBIDDEN_DIRECTIONS = {"read": ("fh", "fl"), "write": ("th", "tl")}
"""Directions that a port of each type (read, write) cannot carry."""
_WAYS = {False: (("tl", "fh"), ()), True: (("fl", "th"), ("tl", "fh"))}
"""Directions that the ports of a memory must carry for an operand. The key is True for the output operand and False for
an input.

A value is a pair of tuples. The first tuple has the directions that every layer needs. The second tuple has the
directions that a layer needs only if it reads partial sums back. The topmost memory of an operand does not need the
second direction of either tuple.
"""
ALWAYS = ", which every layer needs"
WITH_INPUT = ", which every layer with this input needs"
PARTIAL = ": loop orders that read partial sums back will be refused"


def check_directions(
    problems: Problems, entry: HardwareFile, memories: dict[str, MemoryEntry], is_part: bool = False
) -> None:
    """Report directions that no port carries. A direction that every layer needs gives a problem; a direction that only
    some layers need gives a notice.

    If `is_part` is true, the core is one of several cores. The `operator_types` in its file then decide which layers,
    and therefore which inputs, the core has.
    """
    is_said = "operator_types" in entry.model_fields_set or not is_part
    types = (entry.operator_types or ()) if is_said else ()
    has_both_inputs = MAC in types or ALL in types
    lacking: dict[tuple[str, str], list[str]] = {}
    for name, memory, operand, is_top in _levels(memories):
        carried = _carried(memory)
        if carried is None:
            continue
        always, sometimes = _WAYS[operand == _OUTPUT]
        told = ALWAYS if operand == _OUTPUT or has_both_inputs else WITH_INPUT
        count = 1 if is_top else 2
        for reason, ways in ((told, always[:count]), (PARTIAL, sometimes[:count])):
            pairs = [f"'{operand}, {way}'" for way in ways if (operand, way) not in carried]
            if pairs:
                lacking.setdefault((name, reason), []).extend(pairs)
    for (name, reason), pairs in lacking.items():
        record = problems.at if reason == ALWAYS else problems.notice
        record(("memories", name, "ports"), f"no port carries {', '.join(pairs)}{reason}")


def _levels(memories: dict[str, MemoryEntry]) -> Iterator[tuple[str, MemoryEntry, str, bool]]:
    """Tuples (name, memory, operand, is_topmost) for all operands of all memories. `is_topmost` is True if the memory
    is the topmost memory of the operand.
    """
    held = tuple(tuple(dict.fromkeys(whole(memory.operands))) for memory in memories.values())
    top_of = {operand: levels[-1] for operand, levels in hierarchy_of(held).levels_of}
    for index, (name, memory) in enumerate(memories.items()):
        for operand in held[index]:
            yield name, memory, operand, top_of[operand] == index


def _carried(memory: MemoryEntry) -> set[tuple[str, str]] | None:
    """Pairs (operand, direction) that the ports carry; None if some pairs are invalid. An invalid pair is reported
    elsewhere. Such a pair can be a misspelt form of a pair that seems to be missing. If there is an invalid pair,
    missing pairs are therefore not reported.
    """
    found: set[tuple[str, str]] = set()
    for port in memory.ports or (None,):
        if port is None or port.allocation is None:
            return None
        forbidden = FORBIDDEN_DIRECTIONS.get(port.type, ())
        for pair in port.allocation:
            if pair is None or pair[0] not in (memory.operands or ()) or pair[1] in forbidden:
                return None
            found.add(pair)
    return found


EXCLUSIVE = "exclusive_dataflows"
USUAL_LOOPS = ("B", "K", "G", "C", "D", "H", *(tensor + axis for tensor in "OIF" for axis in "XYZ"))
"""Names that loop dimensions usually have in ONNX networks and in ZigZag's examples, besides D0 to D9."""
_USUAL_LOOP = re.compile(f"{'|'.join(USUAL_LOOPS)}|D[0-9]")


def is_usual_loop(name: str) -> bool:
    """True if `name` is a usual name of a loop dimension (`USUAL_LOOPS`, or D0 to D9). Loop dimensions of layers in
    YAML files can also have other names.
    """
    return _USUAL_LOOP.fullmatch(name) is not None


def check_dataflows(problems: Problems, written: DataflowEntry | list[DataflowEntry] | None, array: ArrayEntry) -> None:
    """Report unknown array dimensions, repeated dataflows, and unusual or repeated loop dimensions. Also report loops
    that take more lanes than their array dimension has."""
    known = names_of(array.dimensions)
    size_of = dict(zip(array.dimensions or (), array.sizes or (), strict=False))
    alternatives = [written] if isinstance(written, dict) else written or []
    for index, dataflow in each(alternatives):
        place = problems if isinstance(written, dict) else problems.within(index)
        for name, loops in dataflow.items() if known else ():
            if name not in known:
                place.unknown_name((name,), "no such array dimension", name, known)
            else:
                _check_size(place.within(name), loops, size_of.get(name))
    problems.repeated((), [_meaning(entry) or None for entry in alternatives], "this dataflow is given before")


def _check_exclusive_dataflows(problems: Problems, entry: HardwareFile, use: str) -> None:
    """Report a problem if `exclusive_dataflows` is set without dataflows, because the array could then run no layer.
    Report a notice if the key has no effect, because the file describes the only core (`use` is ALONE) or a core that
    only stores data (STORE).
    """
    if not entry.exclusive_dataflows:
        return
    if not entry.dataflows and not problems.has("dataflows"):
        message = "needs `dataflows`, but the file has none: give the dataflows of the array, or leave this key out"
        problems.at((EXCLUSIVE,), message, WRITTEN, "false")
    elif use == ALONE:
        said = "has an effect only in runs of several cores; on one core, the mapping file gives the spatial mapping"
        problems.notice((EXCLUSIVE,), said)
    elif use == STORE:
        problems.notice((EXCLUSIVE,), "not used: no layer runs on a core that only stores data")


def _check_size(problems: Problems, loops: list[tuple[str, int]], size: int | None) -> None:
    factors: dict[str, int] = {}
    for index, (name, factor) in each(loops):
        if not is_usual_loop(name):
            near = nearest_name(name, USUAL_LOOPS)
            meant = f" (did you mean '{near}'?)" if near else ""
            problems.notice((index,), f"layers usually have no loop dimension {name}{meant}")
        if name in factors:
            problems.unused((index,), f"{name} is given twice here; the last one counts")
        factors[name] = factor
    lanes = math.prod(factors.values())
    if size is not None and lanes > size:
        # Not an error, as in mapping files.
        problems.notice((), f"takes {lanes} lanes, and the array has {size} here: the excess lanes are left out")


def _meaning(entry: DataflowEntry | None) -> dict[str, dict[str, int]]:
    """Array dimension -> loops of a dataflow, in a form that does not depend on order and spelling in the file."""
    return {name: dict(whole(loops)) for name, loops in (entry or {}).items()}


ALONE, PART, STORE, OFF_CHIP = "alone", "part", "store", "off chip"
"""Uses of a core file: the only core of an accelerator, a computing core of an accelerator of several cores, a core
that only stores data, and the off-chip core. In the file of the off-chip core, unusual values are reported only if they
are probably mistakes.
"""
LARGEST_ARRAY = 2**40
"""Largest allowed number of units of an array: a million times the number of units of the largest chip that exists."""


def check_hardware(
    problems: Problems,
    document: YamlDocument,
    entry: HardwareFile,
    use: str = ALONE,
    clock_mhz: float | None = None,
) -> None:
    """Report errors that involve several fields as problems, and unusual values as notices.

    `use` is the use of the core file (ALONE, PART, STORE or OFF_CHIP). `clock_mhz` is the clock of the accelerator of
    several cores that contains the core; None if there is no such clock.
    """
    for path in document.repeated:
        if len(path) == 2 and path[0] == "memories":
            problems.at(path, "another memory has this name, and only the last one would count", path[1])
    dimensions: list[str] = []
    if entry.operational_array is not None:
        _check_array(problems.within("operational_array"), entry.operational_array)
        dimensions = names_of(entry.operational_array.dimensions)
    memories = {name: memory for name, memory in (entry.memories or {}).items() if memory is not None}
    if entry.operational_array is not None:
        is_said = "operator_types" in entry.model_fields_set or use == ALONE
        types = entry.operator_types if is_said else None
        _check_unit_energy(problems.within("operational_array"), entry.operational_array, types, memories)
    report_clock(problems, (CLOCK_KEY,), entry.clock_frequency)
    in_memory = entry.operational_array is not None and bool(entry.operational_array.is_imc)
    for name, memory in memories.items():
        own = problems.within("memories", name)
        # Other errors in library costs of cells are not reported, because the library has no cells.
        if not (in_memory and name == CELLS and is_from_library(memory)):
            _check_costs(own, memory, entry.clock_frequency, clock_mhz)
        _check_memory(own, memory, dimensions)
    written = document.written(("memories",))
    if isinstance(written, dict) and len(memories) == len(written):
        _check_operands_have_memories(problems, memories)
    if entry.operational_array is not None:
        check_in_memory(problems, entry.operational_array, entry.memories or {}, use in (ALONE, PART))
    if use in (ALONE, PART):
        check_directions(problems, entry, memories, is_part=use == PART)
    _note_narrowing_memories(problems, memories)
    problems.repeated(("operator_types",), entry.operator_types or (), "is listed twice")
    if entry.operational_array is not None:
        check_dataflows(problems.within("dataflows"), entry.dataflows, entry.operational_array)
    _check_exclusive_dataflows(problems, entry, use)
    if use == ALONE and not entry.clock_frequency and not problems.has(CLOCK_KEY):
        _check_clock(problems, entry, memories)
    if use == OFF_CHIP:
        problems.notices[:] = [notice for notice in problems.notices if isinstance(notice, Caution)]
    _note_unmodelled_keys(problems, entry)


def _check_clock(problems: Problems, entry: HardwareFile, memories: dict[str, MemoryEntry]) -> None:
    """Report static power in a file without a clock. Without a clock, static power gives no energy per cycle. Cores
    with an in-memory array are exempt, because the model of the array has a clock."""
    leaking = [name for name, memory in memories.items() if _draws("memory", memory)]
    array = entry.operational_array
    leaking += ["the array"] if array is not None and _draws("array", array) else []
    leaking += ["the core"] if _draws("core", entry) else []
    if leaking and not (array is not None and array.is_imc):  # the model of an in-memory array has a clock
        problems.at((CLOCK_KEY,), missing_clock(", ".join(leaking)), allowed="200 MHz, 1.2 GHz")


def _draws(owner: Owner, entry: TableModel) -> bool:
    """True if a table of the file gives static power."""
    return any(getattr(entry, one.key, None) for one in attributes(owner) if one.term)


def _note_unmodelled_keys(problems: Problems, entry: HardwareFile) -> None:
    """Report as unused the keys of ZigZag and of Stream 2.1 that change no number in results."""
    for name, memory in (entry.memories or {}).items():
        if memory is not None and memory.latency and memory.latency > 1:
            problems.unused(
                ("memories", name, "latency"), "not modelled: in the model, an access takes one cycle", WRITTEN
            )
    array = entry.operational_array
    if array is not None and array.input_precision and not array.is_imc:
        path = ("operational_array", "input_precision")
        problems.unused(path, "not used: only in-memory arrays have this key; the workload gives the bits of operands")
    if entry.operand_precision is not None and entry.operand_precision.model_fields_set:
        accumulator = entry.operand_precision.accumulator
        ours = "widths of operands and of partial sums come from the workload"
        theirs = f"; Stream takes {accumulator} for partial sums of convolutions and matrix products"
        problems.unused(("operand_precision",), f"not used: {ours}{theirs if accumulator else ''}")
    if entry.banks is not None:
        problems.unused(("banks",), "not used: in the model, accesses never wait for a bank")


def _check_array(problems: Problems, array: ArrayEntry) -> None:
    if array.dimensions is not None and array.sizes is not None and len(array.dimensions) != len(array.sizes):
        allowed = f"{len(array.dimensions)} items"
        problems.at(("sizes",), "needs one size for each of `dimensions`", WRITTEN, allowed)
    if math.prod(whole(array.sizes)) > LARGEST_ARRAY:
        problems.at(("sizes",), "the array has more than 2^40 units", WRITTEN)
    problems.repeated(("dimensions",), array.dimensions or (), "the array dimension is given twice")
    _check_dimensions(problems, "systolic_dimensions", array.systolic_dimensions, names_of(array.dimensions))


def _check_unit_energy(
    problems: Problems, array: ArrayEntry, types: list[str] | None, memories: Mapping[str, MemoryEntry]
) -> None:
    """Report an energy per operation that is outside the range of the cost library."""
    if not array.is_imc and array.unit_energy:
        nodes = [memory.cost.node_nm for memory in memories.values() if memory.cost and memory.cost.node_nm]
        report_operation(problems, ("unit_energy",), array.unit_energy, types, nodes)


def array_kind(array: ArrayEntry) -> str:
    """Kind of an array: the name of its array model (`hardware.array_model`)."""
    return f"{array.imc_type} {IN_MEMORY}" if array.is_imc else DIGITAL


def _check_dimensions(problems: Problems, key: str, names: list[str], known: list[str]) -> None:
    for index, name in each(names):
        if known and name not in known:
            problems.unknown_name((key, index), "no such array dimension", name, known)


def _check_costs(
    problems: Problems, memory: MemoryEntry, clock_mhz: float | None, common_clock_mhz: float | None
) -> None:
    if is_from_library(memory):
        check_library_cost(problems, memory, clock_mhz, common_clock_mhz)
    elif not problems.has("cost"):
        for key in ("r_cost", "w_cost"):
            if getattr(memory, key) is None and not problems.has(key):
                problems.at((key,), "required key is missing")


def _check_memory(problems: Problems, memory: MemoryEntry, dimensions: list[str]) -> None:
    problems.repeated(("operands",), memory.operands or (), "the operand is given twice")
    problems.repeated(("served_dimensions",), memory.served_dimensions or (), "the array dimension is given twice")
    _check_dimensions(problems, "served_dimensions", memory.served_dimensions, dimensions)
    _check_ports(problems, memory)
    _warn_of_memory(problems, memory)


def _warn_of_memory(problems: Problems, memory: MemoryEntry) -> None:
    """Report ports that are wider than the whole memory, and an energy per bit outside of the range of the library of
    costs."""
    widths = [port.bandwidth_max for _, port in each(memory.ports) if port.bandwidth_max is not None]
    for index, port in each(memory.ports):
        if memory.size is not None and port.bandwidth_max is not None and port.bandwidth_max > memory.size:
            told = (
                f"a word has {count_of(port.bandwidth_max, 'bit')}, but the memory holds {count_of(memory.size, 'bit')}"
            )
            problems.caution(("ports", index, "bandwidth_max"), told)
    for key in ("r_cost", "w_cost"):
        energy_pj = getattr(memory, key)
        if energy_pj is not None and widths:
            report_bit_of_memory(problems, (key,), energy_pj / max(widths), memory.mem_type or "")


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
            problems.unused(
                place,
                f"port {owners[pair]} also lists '{', '.join(pair)}'; only the last port that lists a pair carries it",
            )
        owners[pair] = owner


def _check_operands_have_memories(problems: Problems, memories: dict[str, MemoryEntry]) -> None:
    held = {operand for memory in memories.values() for operand in memory.operands or ()}
    if not memories or any(not memory.operands for memory in memories.values()):
        return
    for operand in MEMORY_OPERANDS:
        if operand not in held:
            problems.at(("memories",), f"no memory holds operand {operand}", allowed="every operand needs one")


def _note_narrowing_memories(problems: Problems, memories: dict[str, MemoryEntry]) -> None:
    """Report a notice for each memory that serves fewer array dimensions than the memory below it. Such a memory has
    more instances than the memory below, and is possibly at the wrong level."""
    for operand in MEMORY_OPERANDS:
        below: tuple[str, set[str]] | None = None
        for name, memory in memories.items():
            if operand not in (memory.operands or ()):
                continue
            served = set(whole(memory.served_dimensions))
            if below is not None and not served >= below[1]:
                message = f"serves fewer array dimensions than {below[0]}, the memory below it for operand {operand}"
                problems.notice(("memories", name, "served_dimensions"), message)
            below = (name, served)
