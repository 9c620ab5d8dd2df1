"""Reader of the hardware YAML of one core, in the form of zigzag-dse 3.9.1 and in the forms of other versions.

Until 2025, a memory had the keys `r_bw` and `w_bw`, a number of ports of each kind, and a table per operand that
assigned a port to each direction. Core files of Stream 2.1 give the `type` of a core. The file of a core that only
stores data can omit the array, or can have an array without units.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from tilewright.base.errors import InputError, KeyPath, Problem, Problems
from tilewright.base.file_kinds import HARDWARE, refuse_other_kind
from tilewright.base.units import WrittenArea
from tilewright.base.validation import TableModel, validate
from tilewright.base.yamlfile import YamlDocument, items, table
from tilewright.hardware.access_times import access_note, access_times
from tilewright.hardware.array_model import array_model
from tilewright.hardware.attributes import LEAKAGE, figures_of, gives_zero_power
from tilewright.hardware.control_checks import check_control
from tilewright.hardware.core import (
    MM2,
    NO_UNIT,
    CacheLevel,
    Core,
    Dataflow,
    Memory,
    OperationalArray,
    Port,
    RunLength,
    ZeroGating,
)
from tilewright.hardware.in_memory_circuits import precharging_energy_pj
from tilewright.hardware.memory_costs import is_from_library, library_cost
from tilewright.hardware.physical_rates import CLOCK_KEY, core_in_cycles
from tilewright.hardware.silicon.memory_cost import CostSource
from tilewright.hardware.static_power import clock_period_ns, static_power_mw
from tilewright.hardware.system import CELLS, core_area
from tilewright.hardware.waiting_checks import check_waiting, has_waiting
from tilewright.hardware.yaml_checks import ALONE, OFF_CHIP, STORE, array_kind, check_hardware
from tilewright.hardware.yaml_schema import DataflowEntry, HardwareFile, MemoryEntry, PortEntry, hardware_file
from tilewright.hardware.zero_checks import check_zeros

PORT_KINDS = (("r_port", "read"), ("w_port", "write"), ("rw_port", "read_write"))
_BANDWIDTHS = {"r_bw", "w_bw"}
_OLD_KEYS = {*_BANDWIDTHS, "min_r_granularity", "min_w_granularity", *(key for key, _ in PORT_KINDS)}
_ARRAY_KEYS = {"multiplier_energy": "unit_energy", "multiplier_area": "unit_area"}
_TILE_TYPES = "aie2."


def in_current_form(document: YamlDocument) -> YamlDocument:
    """Document with the keys of zigzag-dse 3.9.1. If `document` has these keys already, it is returned unchanged.

    Invalid parts stay as they are, so that the reader refuses them. Raises InputError for ports that contradict each
    other, and for cores without memory hierarchy.
    """
    data = table(document.data)
    problems: list[Problem] = []
    changed = dict(data)
    if _core_type(document).startswith(_TILE_TYPES):
        message = "cores of this type have no memory hierarchy, which the cost model needs"
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
            name: _translated_memory(document, ("memories", name), memory, problems)
            for name, memory in data["memories"].items()
        }
    if problems:
        raise InputError(problems)
    return document if changed == data else replace(document, data=changed)


def only_stores(document: YamlDocument) -> bool:
    """True if the `type` of a core file says that the core only stores data. No layer can run on such a core."""
    # A type without a namespace is a type of ZigZag.
    return _core_type(document).removeprefix("zigzag.") in ("memory", "shim", "offchip")


def with_dummy_array(document: YamlDocument) -> YamlDocument:
    """Copy of the document of a core, in which an array of one unit without costs replaces the array. The new array has
    the dimensions of the old array. If the old array has no dimensions, the new array has the dimensions that the
    memories serve.
    """
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
    """`type` of a core file; '' if the file gives no type."""
    value = table(document.data).get("type")
    return value if isinstance(value, str) else ""


def _translated_memory(document: YamlDocument, path: KeyPath, memory: Any, problems: list[Problem]) -> Any:
    """Memory in the current form, with a list of ports. A memory that is not in the old form is returned unchanged.

    Contradictions between the ports are added to `problems`.
    """
    if not isinstance(memory, dict) or not set(memory) >= _BANDWIDTHS:
        return memory
    operands = [name for name in items(memory.get("operands")) if isinstance(name, str)]
    tables = items(memory.get("ports"))
    if not all(isinstance(entry, dict) and "name" not in entry for entry in tables):
        return memory
    ports = {
        name: _translated_port(memory, name, key, kind) for key, kind in PORT_KINDS for name in _names(memory, key)
    }
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
        message = "a port that reads and writes has one bandwidth, but w_bw differs from r_bw"
        problems.append(_problem(document, (*path, "w_bw"), message, memory["w_bw"], str(memory["r_bw"])))
    kept = {key: value for key, value in memory.items() if key not in _OLD_KEYS}
    return {**kept, "ports": list(ports.values())}


def _names(memory: dict[Any, Any], key: str) -> list[str]:
    count = memory.get(key, 0)
    return [f"{key}_{number}" for number in range(1, min(count, 64) + 1)] if type(count) is int else []


def _translated_port(memory: dict[Any, Any], name: str, key: str, kind: str) -> dict[str, Any]:
    letter = "w" if key == "w_port" else "r"
    width = memory[f"{letter}_bw"]
    least = memory.get(f"min_{letter}_granularity")
    bandwidths = {"bandwidth_min": width if least is None else least, "bandwidth_max": width}
    return {"name": name, "type": kind, **bandwidths, "allocation": []}


def _problem(document: YamlDocument, path: KeyPath, message: str, value: object, allowed: str) -> Problem:
    return Problem(message, document.file, document.line_of(path), document.dotted(path), repr(value), allowed)


def core_entry(
    document: YamlDocument, notices: list[str] | None = None, use: str = ALONE, clock_mhz: float | None = None
) -> HardwareFile:
    """Checked content of a core file. `use` states what the core is: the only core (ALONE), one of several cores
    (PART), a core that only stores data (STORE), or the off-chip core (OFF_CHIP).

    `clock_mhz` is the clock that the file of several cores gives. If the use is STORE or OFF_CHIP, an array that never
    computes replaces the array of the file. Such a file can therefore omit the array, or give an array without units
    and with any energy. Raises InputError with all mistakes.
    """
    document = with_dummy_array(document) if use in (STORE, OFF_CHIP) else document
    refuse_other_kind(document, HARDWARE)
    document = in_current_form(document)
    problems = Problems(document)
    document = core_in_cycles(document, problems, clock_mhz)
    entry: HardwareFile | None = validate(hardware_file(), document.data, problems)
    if entry is not None:
        check_hardware(problems, document, entry, use, clock_mhz)
        check_waiting(problems, entry, only_stores=use in (STORE, OFF_CHIP))
        check_zeros(problems, entry, is_alone=use == ALONE)
        check_control(problems, entry, is_alone=use == ALONE)
    if entry is not None and not problems.found and use == ALONE:  # several cores have a common clock
        core = core_of(entry)
        period_ns = clock_period_ns(core)
        for path, said in clock_notes(core, period_ns):
            (problems.notice if period_ns is None else problems.caution)(path, said)
    problems.finish(notices)
    assert entry is not None
    return entry


def areas_without_unit(document: YamlDocument, entry: HardwareFile) -> list[str]:
    """List with one notice that the areas of a file have no unit, at the line of the first area. The list is empty if
    the areas have a unit, or if some area is missing.

    Only commands that check the file show this notice. Tables of results have a separate remark on missing areas.
    """
    problems = Problems(document)
    if area_unit(entry) == NO_UNIT and core_area(core_of(entry)).lacks_unit:
        said = "the areas have no unit, so designs are not compared by area; if the unit is mm2, write `area_unit: mm2`"
        problems.notice(_first_area(document), said)
    return problems.notices


def _first_area(document: YamlDocument) -> KeyPath:
    """Path of the first nonzero area in the file. The path is (), which means the whole file, if all areas come from
    the library of costs."""
    places: list[KeyPath] = [("operational_array", "unit_area"), ("multipliers", "multiplier_area")]
    places += [("memories", str(name), "area") for name in table(table(document.data).get("memories"))]
    given = [path for path in places if document.written(path)]
    return min(given, key=document.line_of, default=())


def clock_notes(core: Core, period_ns: float | None) -> Iterator[tuple[KeyPath, str]]:
    """Pairs (path in the file, notice) on a clock that is too fast or missing.

    If the clock is too fast, a notice names the accesses or operations that take longer than a cycle. If the clock is
    missing, the static power from the library of costs is left out, and a notice says so.
    """
    if period_ns is None:
        if power_mw := static_power_mw(core):
            said = (
                f"the static power from the library of costs, {power_mw:.4g} mW, is left out: no file gives the clock"
            )
            yield (CLOCK_KEY,), said
        return
    shortest_ns = array_model(core.operational_array).clock_period_ns(core.operational_array) or 0.0
    if period_ns < shortest_ns:
        yield (CLOCK_KEY,), f"a cycle takes {period_ns:.4g} ns, but the array needs at least {shortest_ns:.4g} ns"
    for one in access_times(core, period_ns):
        if one.is_slow:
            yield ("memories", one.memory), access_note(one.access_ns, period_ns)


def core_of(entry: HardwareFile) -> Core:
    """Core from the checked content of its file."""
    return Core(
        name=entry.name,
        operational_array=_array(entry),
        memories=tuple(_memory(name, memory, _precharging_pj(entry, name)) for name, memory in entry.memories.items()),
        dataflows=tuple(_dataflow(written) for written in _several(entry.dataflows)),
        operator_types=tuple(entry.operator_types),
        area_unit=area_unit(entry),
        clock_frequency_mhz=entry.clock_frequency or 0.0,
        exclusive_dataflows=bool(entry.exclusive_dataflows),
        figures=figures_of("core", _given(entry)),
        waits=has_waiting(entry),
        zero_power_parts=tuple(_zero_power_parts(entry)),
    )


def _zero_power_parts(entry: HardwareFile) -> Iterator[str]:
    """Names of the parts for which the file gives a static power of 0 (`Core.zero_power_parts`)."""
    if gives_zero_power("array", _given(entry.operational_array)):
        yield "array"
    yield from (name for name, memory in entry.memories.items() if gives_zero_power("memory", _given(memory)))
    if gives_zero_power("core", _given(entry)):
        yield "core"


def area_unit(entry: HardwareFile) -> str:
    """Unit of a core's areas. If the file names the unit, the result is this unit. Otherwise, the result is MM2 or
    NO_UNIT (unknown unit).

    The result is MM2 if some area is written with a unit, or if no area is above 0. The result is also MM2 for an
    in-memory array, because the reference adds the areas of the file to areas of its array model, which are in mm2.
    """
    if entry.area_unit is not None:
        return entry.area_unit
    given = [area for area in _areas(entry) if area.amount > 0]
    is_said = any(area.has_unit for area in _areas(entry)) or entry.operational_array.is_imc
    return MM2 if is_said or not given else NO_UNIT


def _areas(entry: HardwareFile) -> list[WrittenArea]:
    """Areas that the file gives. Areas from the library of costs are left out: they are in mm2, but they do not show
    the unit of plain numbers in the file."""
    own = [memory.area for memory in entry.memories.values() if not is_from_library(memory)]
    written = [entry.operational_array.unit_area, *own]
    return [area for area in written if area is not None]


def _several(written: DataflowEntry | list[DataflowEntry] | None) -> list[DataflowEntry]:
    """Alternative dataflows of a core. A single table gives one dataflow, and an empty table gives none."""
    if isinstance(written, list):
        return written
    return [written] if written else []


def _dataflow(entry: DataflowEntry) -> Dataflow:
    return tuple((name, tuple(unrollings)) for name, unrollings in entry.items())


def _array(entry: HardwareFile) -> OperationalArray:
    array = entry.operational_array
    gating = array.zero_gating
    return OperationalArray(
        dimensions=tuple(zip(array.dimensions, array.sizes, strict=True)),
        unit_energy_pj=array.unit_energy or 0.0,
        unit_area_mm2=array.unit_area.amount if array.unit_area else 0.0,
        systolic_dimensions=tuple(array.systolic_dimensions),
        kind=array_kind(array),
        parameters=_in_memory_parameters(entry) if array.is_imc else (),
        figures=figures_of("array", _given(array)),
        command_dimensions=tuple(array.command_dimensions or ()),
        unrolled_dimensions=tuple((name, tuple(can)) for name, can in (array.unrolled_dimensions or {}).items()),
        zero_gating=None if gating is None else ZeroGating(tuple(gating.operands), tuple(gating.reads_of or ())),
    )


def _in_memory_parameters(entry: HardwareFile) -> tuple[tuple[str, float], ...]:
    """Pairs (name, value) of the numbers that only in-memory arrays have (`hardware.in_memory_circuits`)."""
    array = entry.operational_array
    # check_in_memory requires them.
    assert array.input_precision is not None
    assert array.bit_serial_precision is not None
    activations, weights = array.input_precision
    return (
        ("activation_bits", activations),
        ("weight_bits", weights),
        ("bit_serial_precision", array.bit_serial_precision),
        ("adc_resolution", array.adc_resolution or 0),
        ("cell_bits", entry.memories[CELLS].size),
    )


def _precharging_pj(entry: HardwareFile, name: str) -> float:
    """Energy in pJ that reading a word of the memory `name` takes in addition to `r_cost`. Only cells of an in-memory
    array that hold several weights take this energy; otherwise, the result is 0.
    """
    precision = entry.operational_array.input_precision
    if name != CELLS or not entry.operational_array.is_imc or precision is None:
        return 0.0
    cells = entry.memories[CELLS]
    word_bits = max(port.bandwidth_max for port in cells.ports)
    return precharging_energy_pj(cells.size, precision[1]) * word_bits / precision[1]


def _memory(name: str, entry: MemoryEntry, precharging_pj: float = 0.0) -> Memory:
    read_pj, write_pj, area_mm2, source = _costs(entry)
    return Memory(
        name=name,
        size_bits=entry.size,
        read_energy_pj=read_pj + precharging_pj if precharging_pj else read_pj,
        write_energy_pj=write_pj,
        operands=tuple(entry.operands),
        ports=tuple(_port(port) for port in entry.ports),
        served_dimensions=tuple(entry.served_dimensions),
        area_mm2=area_mm2,
        latency_cycles=entry.latency,
        memory_type=entry.mem_type,
        force_double_buffering=entry.force_double_buffering,
        cost_source=source,
        figures=figures_of("memory", _of_library(source) | _given(entry)),
        caches=tuple(CacheLevel(one.size, one.request_latency_cycles) for one in entry.caches or ()),
        row_dimensions=tuple(entry.row_dimensions or ()),
        run_length=_run_length(entry),
        tile_dimensions=None if entry.tile_dimensions is None else tuple(entry.tile_dimensions),
        loop_order=tuple(entry.loop_order or ()),
    )


def _run_length(entry: MemoryEntry) -> RunLength | None:
    """Compression of the data in a memory; None if the file gives none."""
    code = entry.run_length
    return None if code is None else RunLength(tuple(code.operands), code.run_bits, code.pairs, code.word)


def _of_library(source: CostSource | None) -> dict[str, Any]:
    """Attributes from the library of costs: key -> value. A value in the hardware file replaces the value from the
    library.
    """
    return {} if source is None else {LEAKAGE.key: source.leakage_mw}


def _given(entry: TableModel) -> dict[str, Any]:
    """Values of a table by key, without the keys that have no value."""
    return {key: value for key in type(entry).model_fields if (value := getattr(entry, key)) is not None}


def _costs(entry: MemoryEntry) -> tuple[float, float, float, CostSource | None]:
    """Read energy, write energy and area of a memory, and the source of these costs. The source is None if the hardware
    file gives the costs."""
    if is_from_library(entry):
        found = library_cost(entry)
        return found.read_energy_pj, found.write_energy_pj, found.area_mm2, found.source
    # check_hardware requires both.
    assert entry.r_cost is not None
    assert entry.w_cost is not None
    return entry.r_cost, entry.w_cost, entry.area.amount if entry.area else 0.0, None


def _port(entry: PortEntry) -> Port:
    return Port(
        name=entry.name,
        port_type=entry.type,
        bandwidth_min_bits=entry.bandwidth_min,
        bandwidth_max_bits=entry.bandwidth_max,
        allocation=tuple(entry.allocation),
    )
