"""Core of an accelerator, which has an array of operational units and a hierarchy of memories.

The model of a core is the model of zigzag-dse 3.9.1. Sizes are in bits and energies in pJ.
"""

import math
from dataclasses import dataclass, field, replace
from functools import cached_property

from tilewright.base.artifacts.codec import LEFT_OUT
from tilewright.base.errors import InputError, Problem
from tilewright.base.hashes import hash_once
from tilewright.base.operator_groups import MAC
from tilewright.hardware.attributes import Figures, spread
from tilewright.hardware.silicon.memory_cost import CostSource

MEMORY_OPERANDS = ("I1", "I2", "O")
DIRECTIONS = ("tl", "fl", "th", "fh")
"""Directions in which data move between a memory and its neighbouring levels. All tables have the directions in this
order.

`tl` (to low): read for the level below. `fl` (from low): written by the level below. `th` (to high): read for the level
above. `fh` (from high): written by the level above.
"""
TL, FL, TH, FH = range(4)
DIGITAL = "digital"
"""Kind of an array for which the hardware file gives no kind."""
IN_MEMORY = "in-memory"
"""Last word in the name of each kind of in-memory array."""
MM2, NO_UNIT = "mm2", "none"
"""Units of the areas of a core: mm2, or NO_UNIT if the unit is unknown."""
UNROLLED, TILED, ORDERED = "unrolled_dimensions", "tile_dimensions", "loop_order"
"""Keys of the hardware file that give control rules (docs/model/control.md): one of the array, then two of a memory."""
MOST_ORDERS = 4
"""Largest number of memories with a loop order; the kernels have room for no more."""
Dataflow = tuple[tuple[str, tuple[tuple[str, int], ...]], ...]
"""Spatially unrolled loops, in the order of the file: (array dimension, ((loop dimension, factor), ...))."""


@dataclass(frozen=True)
class Port:
    """Port of a memory, with the data directions that use the port."""

    name: str
    port_type: str
    """Type of the port: read, write or read_write."""
    bandwidth_min_bits: int
    """Smallest accessible part of a word, in bits per cycle. The energy of an access counts multiples of this part."""
    bandwidth_max_bits: int
    """Width of a word, in bits per cycle."""
    allocation: tuple[tuple[str, str], ...]
    """Pairs (memory operand, direction) that the port serves, as written in the hardware file."""


@dataclass(frozen=True)
class CacheLevel:
    """Cache between the core and a memory. No mapping places data in it; it shortens requests (`cost.waiting`)."""

    size_bits: int
    request_latency_cycles: float
    """Cycles from a request to the arrival of its data, if the cache has the data."""


@dataclass(frozen=True)
class RunLength:
    """Run-length compression of the data in a memory: each element that is not zero is stored with the number of zeros
    before it (`mapping.zeros`). The decoder is next to the memory, so all other memories have the plain data."""

    operands: tuple[str, ...]
    """Memory operands whose data are compressed."""
    run_bits: int
    """Number of bits that store the number of zeros before an element."""
    pairs: int
    """Number of pairs (number of zeros, element) in a word."""
    word_bits: int
    """Number of bits of a word, which has `pairs` pairs."""


@dataclass(frozen=True)
class ZeroGating:
    """Gating of operations with a zero (`mapping.zeros`): such an operation takes its cycle, but no energy."""

    operands: tuple[str, ...]
    """Memory operands whose zeros stop an operation."""
    reads_of: tuple[str, ...] = ()
    """Memory operands whose reads from the innermost memory can be left out. A read is left out if zeros of the other
    operand stop all operations that need the read."""


@dataclass(frozen=True)
class Memory:
    """Memory of a core. Each instance of the memory serves different units of the array."""

    name: str
    size_bits: int
    read_energy_pj: float
    """Energy in pJ of reading one word of full width."""
    write_energy_pj: float
    operands: tuple[str, ...]
    """Memory operands that the memory holds, as written in the hardware file."""
    ports: tuple[Port, ...]
    served_dimensions: tuple[str, ...]
    """Array dimensions along which one instance serves all units.

    The instance multicasts data to these units or collects data from them. If the tuple is empty, each unit has a
    separate instance.
    """
    area_mm2: float = 0.0
    latency_cycles: int = 1
    """Access latency in cycles, as in the hardware file. The model does not use this number (difference B20)."""
    memory_type: str = "sram"
    force_double_buffering: bool = False
    cost_source: CostSource | None = field(default=None, metadata=LEFT_OUT)
    """Source of the costs of the memory, if the costs come from the library of costs and not from the hardware file."""
    figures: Figures = field(default=(), metadata=spread("memory"))
    """Additional numbers of the memory (`hardware.attributes`), if they differ from their default values."""
    caches: tuple[CacheLevel, ...] = field(default=(), metadata=LEFT_OUT)
    """Caches between the core and the memory, from the smallest to the largest."""
    row_dimensions: tuple[str, ...] = field(default=(), metadata=LEFT_OUT)
    """Loop dimensions along which neighbouring elements are next to each other in the memory. Each operand uses
    only the first of the listed dimensions that it has."""
    run_length: RunLength | None = field(default=None, metadata=LEFT_OUT)
    """Compression of the data in the memory; None if they are not compressed."""
    tile_dimensions: tuple[str, ...] | None = field(default=None, metadata=LEFT_OUT)
    """Loop dimensions along which a tile in the memory can be larger than the tiles below it (docs/model/control.md).
    None allows all loop dimensions."""
    loop_order: tuple[str, ...] = field(default=(), metadata=LEFT_OUT)
    """Order of loop dimensions, inner to outer, in which the control of the memory runs its loops; () for any order."""

    @cached_property
    def frame(self) -> "Memory":
        """Structure of the memory: its operands, its served dimensions, its compression, the rules of its control, and
        the type and the served directions of each port.
        """
        ports = tuple(Port("", port.port_type, 0, 0, port.allocation) for port in self.ports)
        served = self.served_dimensions
        return replace(
            Memory("", 0, 0.0, 0.0, self.operands, ports, served, run_length=self.run_length),
            tile_dimensions=self.tile_dimensions,
            loop_order=self.loop_order,
        )

    @cached_property
    def port_of(self) -> dict[tuple[str, str], int]:
        """Index of the port that serves each pair (memory operand, direction). If several ports list a pair, the last
        of these ports serves it.
        """
        return {pair: index for index, port in enumerate(self.ports) for pair in port.allocation}


@dataclass(frozen=True)
class OperationalArray:
    """Array of multipliers or of other operational units."""

    dimensions: tuple[tuple[str, int], ...]
    """Pairs (array dimension, size), as written in the hardware file."""
    unit_energy_pj: float
    unit_area_mm2: float = 0.0
    systolic_dimensions: tuple[str, ...] = ()
    kind: str = field(default=DIGITAL, metadata=LEFT_OUT)
    """Kind of the array, which selects the cost model of its operations (`hardware.array_model`)."""
    parameters: tuple[tuple[str, float], ...] = field(default=(), metadata=LEFT_OUT)
    """Pairs (name, value) of further numbers that the cost model of this kind of array reads."""
    figures: Figures = field(default=(), metadata=spread("array"))
    """Additional numbers of the array (`hardware.attributes`), if they differ from their default values."""
    command_dimensions: tuple[str, ...] = field(default=(), metadata=LEFT_OUT)
    """Loop dimensions that a command of the array covers; () stands for the innermost loop."""
    zero_gating: ZeroGating | None = field(default=None, metadata=LEFT_OUT)
    """Gating of operations with a zero; None if every operation takes its energy."""
    unrolled_dimensions: tuple[tuple[str, tuple[str, ...]], ...] = field(default=(), metadata=LEFT_OUT)
    """Pairs (array dimension, loop dimensions that the array can unroll along it). An array dimension that is not
    listed can unroll all loop dimensions.
    """

    @cached_property
    def size_of(self) -> dict[str, int]:
        """Size of each array dimension, as a number of units."""
        return dict(self.dimensions)

    @property
    def is_in_memory(self) -> bool:
        """True if the array computes in the memory that stores the weights."""
        return self.kind.endswith(f" {IN_MEMORY}")

    @property
    def unit_count(self) -> int:
        """Number of operational units."""
        return math.prod(size for _, size in self.dimensions)


@hash_once
@dataclass(frozen=True)
class Core:
    """Core of an accelerator. The memories are in the order of the file, which is bottom-up for every operand."""

    name: str
    operational_array: OperationalArray
    memories: tuple[Memory, ...]
    dataflows: tuple[Dataflow, ...] = ()
    """Alternative dataflows. A run on several cores takes the best one if the mapping file gives no spatial mapping."""
    operator_types: tuple[str, ...] = (MAC,)
    """Operators that the core can run: ONNX operator types, or groups of operator types (`operator_groups`)."""
    area_unit: str = field(default=MM2, metadata=LEFT_OUT)
    """Unit of the areas of the core.

    NO_UNIT means that the unit is unknown, although names of fields contain mm2. Areas of unknown unit must not be
    shown as mm2 or compared (`system.core_area`).
    """
    clock_frequency_mhz: float = field(default=0.0, metadata=LEFT_OUT)
    """Clock frequency in MHz; 0 if the hardware file gives none."""
    unseen_power_mw: tuple[tuple[str, float], ...] = field(default=(), metadata=LEFT_OUT)
    """Static power of removed memories: pairs (energy term, power in mW). A memory is removed if a layer does not use
    it."""
    exclusive_dataflows: bool = field(default=False, metadata=LEFT_OUT)
    """True if the array can run only the listed dataflows (`mapping.dataflows`)."""
    waits: bool = field(default=False, metadata=LEFT_OUT)
    """True if the hardware file has keys of calls, commands or requests (`cost.waiting`).

    The field stays true if the memory with requests is removed because a layer does not use this memory.
    """
    figures: Figures = field(default=(), metadata=spread("core"))
    """Additional numbers of the core (`hardware.attributes`), if they differ from their default values."""
    zero_power_parts: tuple[str, ...] = field(default=(), compare=False, metadata=LEFT_OUT)
    """Parts for which the hardware file gives a static power of 0: `array`, `core` and names of memories. Cores that
    differ only in this field are equal, because a static power that is not given counts as 0, too."""

    @cached_property
    def frame(self) -> "Core":
        """Structure of the core, without its name: the array without costs, and the frame of each memory.

        Many designs of a design space have the same frame.
        """
        array = replace(
            self.operational_array, unit_energy_pj=0.0, unit_area_mm2=0.0, figures=(), command_dimensions=()
        )
        return Core("", array, tuple(memory.frame for memory in self.memories))


@dataclass(frozen=True)
class Accelerator:
    """Accelerator with one or more cores. The single-core flow needs exactly one core."""

    name: str
    cores: tuple[Core, ...]


def single_core(accelerator: Accelerator) -> Core:
    """Single core of an accelerator. Raises InputError if the accelerator does not have exactly one core."""
    if len(accelerator.cores) != 1:
        raise InputError([several_cores_problem(accelerator)])
    return accelerator.cores[0]


def several_cores_problem(accelerator: Accelerator, file: str = "") -> Problem:
    """Problem to report for an accelerator with several cores where exactly one core is required."""
    message = (
        f"{accelerator.name} has {len(accelerator.cores)} cores, but one core is required here; for several cores, use"
        " a run with `flow: multi`, or the verbs cns, cost, allocate, schedule (docs/multi-core.md)"
    )
    return Problem(message, file)
