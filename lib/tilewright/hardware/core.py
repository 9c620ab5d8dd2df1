"""A core: an operational array and a hierarchy of memories, sizes in bits and energies in pJ (zigzag-dse 3.9.1)."""

import math
from dataclasses import dataclass, field, replace
from functools import cached_property

from tilewright.base.artifacts.codec import LEFT_OUT
from tilewright.base.errors import InputError, Problem
from tilewright.base.operator_groups import MAC
from tilewright.hardware.attributes import Figures, spread
from tilewright.hardware.silicon.memory_cost import CostSource

MEMORY_OPERANDS = ("I1", "I2", "O")
DIRECTIONS = ("tl", "fl", "th", "fh")
"""Data directions of a memory, in the order used everywhere.

They are: read out to low, written by low, read out to high, written by high.
"""
TL, FL, TH, FH = range(4)
DIGITAL = "digital"
"""Default kind of array."""
IN_MEMORY = "in-memory"
"""Last word of the kinds of in-memory arrays."""
MM2, NO_UNIT = "mm2", "none"
"""Units of a core's areas: mm2, or NO_UNIT if its file does not say."""
Dataflow = tuple[tuple[str, tuple[tuple[str, int], ...]], ...]
"""Loops unrolled at the same time: (array dimension, ((loop dimension, factor), ...)), as written."""


@dataclass(frozen=True)
class Port:
    """A port of a memory and the links that it serves."""

    name: str
    port_type: str
    """read, write or read_write."""
    bandwidth_min_bits: int
    """Smallest accessible part of a word in bits per cycle, which sets the granularity of energy."""
    bandwidth_max_bits: int
    """Word width, bits per cycle."""
    allocation: tuple[tuple[str, str], ...]
    """(memory operand, direction) pairs as written."""


@dataclass(frozen=True)
class Memory:
    """A memory; there is one instance for each set of array elements that an instance serves."""

    name: str
    size_bits: int
    read_energy_pj: float
    """Energy of reading one full-width word."""
    write_energy_pj: float
    operands: tuple[str, ...]
    """Memory operands that it holds, as written."""
    ports: tuple[Port, ...]
    served_dimensions: tuple[str, ...]
    """Array dimensions over which one instance multicasts or collects; () means one instance per array element."""
    area_mm2: float = 0.0
    latency_cycles: int = 1
    """Access latency as in the file; the model does not use it (B20)."""
    memory_type: str = "sram"
    force_double_buffering: bool = False
    cost_source: CostSource | None = field(default=None, metadata=LEFT_OUT)
    """Source of its costs, if they come from the library of costs instead of the hardware file."""
    figures: Figures = field(default=(), metadata=spread("memory"))
    """Additional numbers (`hardware.attributes`) that differ from their default."""

    @cached_property
    def frame(self) -> "Memory":
        """Memory without name and figures."""
        ports = tuple(Port("", port.port_type, 0, 0, port.allocation) for port in self.ports)
        return Memory("", 0, 0.0, 0.0, self.operands, ports, self.served_dimensions)

    @cached_property
    def port_of(self) -> dict[tuple[str, str], int]:
        """Index of the port that serves each (memory operand, direction); a later claim overrides."""
        return {pair: index for index, port in enumerate(self.ports) for pair in port.allocation}


@dataclass(frozen=True)
class OperationalArray:
    """The array of multipliers (or other operational units)."""

    dimensions: tuple[tuple[str, int], ...]
    """(array dimension, size), as written."""
    unit_energy_pj: float
    unit_area_mm2: float = 0.0
    systolic_dimensions: tuple[str, ...] = ()
    kind: str = field(default=DIGITAL, metadata=LEFT_OUT)
    """Kind, which selects the cost model of operations (`hardware.array_model`)."""
    parameters: tuple[tuple[str, float], ...] = field(default=(), metadata=LEFT_OUT)
    """Further numbers that the model of this kind reads."""
    figures: Figures = field(default=(), metadata=spread("array"))
    """Additional numbers (`hardware.attributes`) that differ from their default."""

    @cached_property
    def size_of(self) -> dict[str, int]:
        """Size of each array dimension."""
        return dict(self.dimensions)

    @property
    def is_in_memory(self) -> bool:
        """True if the array computes in memory, where weights are stored."""
        return self.kind.endswith(f" {IN_MEMORY}")

    @property
    def unit_count(self) -> int:
        """Number of operational units."""
        return math.prod(size for _, size in self.dimensions)


@dataclass(frozen=True)
class Core:
    """One core. Memories in file order, which is bottom-up for every operand."""

    name: str
    operational_array: OperationalArray
    memories: tuple[Memory, ...]
    dataflows: tuple[Dataflow, ...] = ()
    """Alternative dataflows; the multi-core flow takes the best if the mapping file gives no spatial mapping."""
    operator_types: tuple[str, ...] = (MAC,)
    """Operators that the core can run: ONNX operator types and groups of them (`operator_groups`)."""
    area_unit: str = field(default=MM2, metadata=LEFT_OUT)
    """Unit of its areas.

    With NO_UNIT, areas (called mm2 in names) have no unit and must not be shown as mm2 or compared
    (`system.core_area`).
    """
    clock_frequency_mhz: float = field(default=0.0, metadata=LEFT_OUT)
    """Clock frequency; 0 if not given (`hardware.static_power`)."""
    unseen_power_mw: tuple[tuple[str, float], ...] = field(default=(), metadata=LEFT_OUT)
    """Pairs (term, power) of memories that the layer's view of the core lacks, but that still draw static power."""
    exclusive_dataflows: bool = field(default=False, metadata=LEFT_OUT)
    """True if the array runs only its dataflows (`mapping.dataflows`)."""
    figures: Figures = field(default=(), metadata=spread("core"))
    """Additional numbers (`hardware.attributes`) that differ from their default."""

    @cached_property
    def frame(self) -> "Core":
        """Core without names and figures: its memories' operands, ports and served dimensions.

        Many designs of a space share it.
        """
        array = replace(self.operational_array, unit_energy_pj=0.0, unit_area_mm2=0.0, figures=())
        return Core("", array, tuple(memory.frame for memory in self.memories))


@dataclass(frozen=True)
class Accelerator:
    """One or more cores. The single-core flow uses exactly one."""

    name: str
    cores: tuple[Core, ...]


def single_core(accelerator: Accelerator) -> Core:
    """The only core of an accelerator. Raises InputError if there are several."""
    if len(accelerator.cores) != 1:
        raise InputError([several_cores_problem(accelerator)])
    return accelerator.cores[0]


def several_cores_problem(accelerator: Accelerator, file: str = "") -> Problem:
    """Problem to report if an accelerator has several cores where one is required."""
    message = (
        f"{accelerator.name} has {len(accelerator.cores)} cores, and one is needed here; for several there are runs"
        " with `flow: multi` and the verbs cns, cost, allocate, schedule (docs/multi-core.md)"
    )
    return Problem(message, file)
