"""Costs of memories that a hardware file takes from the library, with `cost` or `auto_cost_extraction`."""

import math
from dataclasses import replace
from functools import lru_cache

from tilewright.base.errors import WRITTEN, Problems
from tilewright.base.validation import whole
from tilewright.hardware.plausible_numbers import FAR
from tilewright.hardware.silicon.library import entries
from tilewright.hardware.silicon.memory_cost import (
    DRAM,
    REGISTER_FILE,
    SRAM,
    MemoryCost,
    MemoryShape,
    NoCostError,
    dram_memory,
    register_file_memory,
    sram_memory,
    zigzag_memory,
)
from tilewright.hardware.yaml_schema import CostEntry, MemoryEntry, PortEntry

GIVEN = ("r_cost", "w_cost", "area")
"""Keys that give the costs of a memory as plain numbers."""
_OF_LAW = {SRAM: ("node_nm", "cells"), REGISTER_FILE: ("node_nm",), DRAM: ("type",)}
"""Value of the key `from` in `cost` -> further keys that `cost` can then have, beside `energy_factor`."""
_NEEDED = {SRAM: "node_nm", REGISTER_FILE: "node_nm", DRAM: "type"}
USUAL_CELLS = "hp"
BYTES_A_BIT_AT_1_MHZ_GB = 1e6 / 8 / 1e9
"""Conversion factor: a port of one bit per cycle at 1 MHz moves this many gigabytes per second."""
ROUNDING = 1e-9
MOST_PARTS = 16
"""Largest number of DRAM parts that a memory can need before a caution is given. Servers have up to 12 channels of DRAM
for a processor, and accelerators up to 12 stacks.
"""


def is_from_library(memory: MemoryEntry) -> bool:
    """True if a memory has its costs from the library, not as numbers in the file."""
    return memory.cost is not None or bool(memory.auto_cost_extraction)


def check_library_cost(
    problems: Problems, memory: MemoryEntry, clock_mhz: float | None = None, common_clock_mhz: float | None = None
) -> None:
    """Report a problem if a memory cannot have its cost from the library. Otherwise, report the limits of this cost:
    interpolated and omitted costs as remarks, and a DRAM that needs several parts to reach its bandwidth as a notice.

    `clock_mhz` is the clock in the core file, and `common_clock_mhz` is the clock in the accelerator file. If both are
    None, the bandwidth of a DRAM is not checked.
    """
    key = "cost" if memory.cost is not None else "auto_cost_extraction"
    given = [name for name in GIVEN if getattr(memory, name) is not None]
    if memory.cost is not None and memory.auto_cost_extraction:
        problems.at(("auto_cost_extraction",), "the memory has `cost` too; give only one of them", True, "false")
    elif memory.cost is not None and given:
        message = f"the memory has {', '.join(given)} too; give either these numbers or `cost`"
        problems.at(("cost",), message, allowed="one of the two")
    elif given:
        for name in given:
            problems.unused((name,), f"has no effect, because {key} replaces this number, as in ZigZag")
    if memory.cost is not None and not _is_complete(problems.within("cost"), memory.cost):
        return
    if any(problems.has(name) for name in ("size", "ports", "cost", "mem_type")) or not whole(memory.ports):
        return
    try:
        cost = library_cost(memory)
    except NoCostError as error:
        problems.at((key,), error.message, allowed=error.allowed)
        return
    factor = memory.cost.energy_factor if memory.cost is not None else None
    if factor is not None and factor < 1 / FAR:
        problems.caution(
            ("cost", "energy_factor"), f"the energies are {1 / factor:,.4g} times below those of the library"
        )
    clock = clock_mhz or common_clock_mhz
    for remark in cost.remarks:
        problems.remark((key,), remark)
    if clock is not None:
        _note_parts(problems, memory, clock)
    for notice in [] if memory.cost is not None else _other_words(whole(memory.ports)):
        problems.notice((key,), notice)


def _note_parts(problems: Problems, memory: MemoryEntry, clock_mhz: float) -> None:
    """Report a DRAM that moves more data per second than one part of its type can. The report is a caution if more than
    MOST_PARTS parts are needed. Nothing is reported if the bandwidth of a part is not known.
    """
    part = entries().get(memory.cost.type or "") if memory.cost is not None else None
    if part is None or part.bandwidth_gbyte_s is None:
        return
    bits = max(port.bandwidth_max for port in whole(memory.ports))
    gbyte_s = bits * clock_mhz * BYTES_A_BIT_AT_1_MHZ_GB
    parts = gbyte_s / part.bandwidth_gbyte_s
    if parts <= 1 + ROUNDING:
        return
    conditions = part.conditions.partition(";")[0]
    told = (
        f"{bits:,} bits per cycle at {clock_mhz:g} MHz are {gbyte_s:,.4g} GB/s; one {part.what} gives"
        f" {part.bandwidth_gbyte_s:g} GB/s ({conditions}), so the memory needs {math.ceil(parts - ROUNDING):,} of them"
    )
    (problems.caution if parts > MOST_PARTS else problems.notice)(("cost",), told)


def _is_complete(problems: Problems, cost: CostEntry) -> bool:
    """True if `cost` has no problem so far, has the key that its `from` requires, and has only keys that its `from`
    allows. Missing and excess keys are reported as problems."""
    law = getattr(cost, "from")
    if law is None:
        return False
    found = len(problems.found)
    if getattr(cost, _NEEDED[law]) is None and not problems.has(_NEEDED[law]):
        problems.at((_NEEDED[law],), f"required key is missing for `from: {law}`")
    for key in ("node_nm", "cells", "type"):
        if key not in _OF_LAW[law] and getattr(cost, key) is not None:
            problems.at(
                (key,), f"not a key of `from: {law}`", WRITTEN, ", ".join(("from", *_OF_LAW[law], "energy_factor"))
            )
    return len(problems.found) == found and not problems.has()


def library_cost(memory: MemoryEntry) -> MemoryCost:
    """Costs of a memory from the library; the keys of `cost` are checked already. Raises NoCostError."""
    shape = memory_shape(memory.size, whole(memory.ports))
    if memory.cost is not None:
        cost = memory.cost
        found = _of_law(shape, getattr(cost, "from"), cost.node_nm or 0.0, cost.cells or USUAL_CELLS, cost.type or "")
        return _with_factor(found, 1.0 if cost.energy_factor is None else cost.energy_factor)
    return _of_zigzag(memory.size, _zigzag_word_bits(whole(memory.ports)), memory.mem_type)


def _with_factor(cost: MemoryCost, factor: float) -> MemoryCost:
    """Costs in which the energies are multiplied by `factor`, which the hardware file gives. The name of the law and
    one step in the source of the costs state the factor.
    """
    if factor == 1:
        return cost
    told = f"energies × {factor:g}, a factor of the hardware file"
    source = replace(cost.source, law=f"{cost.source.law}, energies × {factor:g}", steps=(*cost.source.steps, told))
    read, write = cost.read_energy_pj * factor, cost.write_energy_pj * factor
    return replace(cost, read_energy_pj=read, write_energy_pj=write, source=source, remarks=(*cost.remarks, told))


def memory_shape(size_bits: int, ports: list[PortEntry]) -> MemoryShape:
    """Parameters that determine the cost of a memory."""
    read = [port.bandwidth_max for port in ports if port.type != "write"]
    write = [port.bandwidth_max for port in ports if port.type != "read"]
    return MemoryShape(size_bits, max(read, default=0), max(write, default=0), len(ports))


def _zigzag_word_bits(ports: list[PortEntry]) -> int:
    """Word width in bits for which zigzag-dse asks CACTI for the costs of the memory."""
    for kind in ("read", "read_write"):
        for port in ports:
            if port.type == kind:
                return port.bandwidth_max
    raise NoCostError("no port reads", "a port of type read or read_write")


def _other_words(ports: list[PortEntry]) -> list[str]:
    """List with one text if some ports are wider or narrower than the word for which zigzag-dse computes energies; []
    otherwise."""
    word = _zigzag_word_bits(ports)
    others = dict.fromkeys(f"{port.name} {port.bandwidth_max}" for port in ports if port.bandwidth_max != word)
    told = f"ports of other widths ({', '.join(others)}) have the energies of a word of {word} bits"
    return [f"{told}, as in zigzag-dse"] if others else []


@lru_cache(maxsize=1024)
def _of_law(shape: MemoryShape, law: str, node_nm: float, cells: str, dram_type: str) -> MemoryCost:
    if law == SRAM:
        return sram_memory(shape, node_nm, cells)
    return register_file_memory(shape, node_nm) if law == REGISTER_FILE else dram_memory(shape, dram_type)


@lru_cache(maxsize=1024)
def _of_zigzag(size_bits: int, word_bits: int, memory_type: str) -> MemoryCost:
    return zigzag_memory(size_bits, word_bits, memory_type)
