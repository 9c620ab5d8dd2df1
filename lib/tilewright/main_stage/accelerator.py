"""Hardware in the form that the user's stages read, with the class names and attribute names of zigzag-dse 3.9.1.

A user's stage can change the following attributes. The stages below the user's stage then get the changed core:

* core: its name and its list of memories;
* memory: name, size, energies, area, bandwidths and double-buffering;
* array: the sizes of its dimensions, and the energy and the area of a unit.

Setting any other attribute raises AttributeError.
"""

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from tilewright.base.errors import InputError, Problem
from tilewright.hardware.core import Core, Memory, Port
from tilewright.hardware.hierarchy import memory_hierarchy
from tilewright.main_stage.names import Fixed, MemoryOperand, OADimension, Shown


class MemoryPort(Shown):
    """Port of a memory, with bandwidths in bits per cycle."""

    _may_be_set = ("bw_min", "bw_max")

    def __init__(self, port: Port) -> None:
        self.name, self.type = port.name, port.port_type
        self.bw_min, self.bw_max = port.bandwidth_min_bits, port.bandwidth_max_bits
        self._made()


class MemoryInstance(Shown):
    """Memory, with size in bits, energies per word in pJ, and area in mm2."""

    _may_be_set = ("name", "size", "r_cost", "w_cost", "area", "force_double_buffering")

    def __init__(self, memory: Memory) -> None:
        self.name, self.size = memory.name, memory.size_bits
        self.r_cost, self.w_cost, self.area = memory.read_energy_pj, memory.write_energy_pj, memory.area_mm2
        self.latency, self.force_double_buffering = memory.latency_cycles, memory.force_double_buffering
        self.ports = tuple(MemoryPort(port) for port in memory.ports)
        self._memory = memory
        self._made()

    def update_size(self, new_size: int) -> None:
        """Set the size in bits."""
        self.size = new_size

    @property
    def r_bw(self) -> int:
        """Bandwidth of the widest reading port, in bits per cycle."""
        return max((port.bw_max for port in self.ports if "r" in port.type), default=0)

    @property
    def w_bw(self) -> int:
        """Bandwidth of the widest writing port, in bits per cycle."""
        return max((port.bw_max for port in self.ports if "w" in port.type), default=0)

    def __repr__(self) -> str:
        return f"MemoryInstance({self.name})"

    def _state(self) -> tuple[Any, ...]:
        """Values of all attributes that a user's stage can change."""
        ports = tuple((port.bw_min, port.bw_max) for port in self.ports)
        return self.name, self.size, self.r_cost, self.w_cost, self.area, self.force_double_buffering, ports

    def _as_memory(self) -> Memory:
        """Memory of tilewright with the changes of the user's stages. Raises InputError for an invalid size."""
        old = self._memory
        if not (isinstance(self.size, int | float) and self.size >= 1 and self.size == int(self.size)):
            allowed = "a whole number of bits, 1 or more"
            raise InputError(
                [
                    Problem(
                        "is not a valid size for a memory",
                        path=f"{old.name}.size",
                        value=repr(self.size),
                        allowed=allowed,
                    )
                ]
            )
        ports = tuple(
            replace(port, bandwidth_min_bits=int(shown.bw_min), bandwidth_max_bits=int(shown.bw_max))
            for port, shown in zip(old.ports, self.ports, strict=True)
        )
        changed = replace(
            old,
            name=str(self.name),
            size_bits=int(self.size),
            read_energy_pj=self.r_cost,
            write_energy_pj=self.w_cost,
            area_mm2=self.area,
            force_double_buffering=bool(self.force_double_buffering),
            ports=ports,
        )
        return old if changed == old else changed


class MemoryLevel(Shown):
    """Memory with its position in the hierarchy of a core."""

    def __init__(self, memory: Memory, identifier: int, level_of: dict[str, int], array: "OperationalArray") -> None:
        self.memory_instance = MemoryInstance(memory)
        self.operands = tuple(MemoryOperand(operand) for operand in memory.operands)
        self.mem_level_of_operands = Fixed((MemoryOperand(operand), level) for operand, level in level_of.items())
        self.served_dimensions = tuple(OADimension(name) for name in memory.served_dimensions)
        self.id, self.oa_dim_sizes = identifier, array.dimension_sizes
        self._made()

    @property
    def name(self) -> str:
        """Name of the memory."""
        return self.memory_instance.name

    @property
    def ports(self) -> tuple[MemoryPort, ...]:
        """Ports of the memory."""
        return self.memory_instance.ports

    @property
    def read_energy(self) -> float:
        """Energy of reading a word, in pJ."""
        return self.memory_instance.r_cost

    @property
    def write_energy(self) -> float:
        """Energy of writing a word, in pJ."""
        return self.memory_instance.w_cost

    @property
    def unroll_count(self) -> int:
        """Number of instances of the memory."""
        return math.prod(size for name, size in self.oa_dim_sizes.items() if name not in self.served_dimensions)

    def __str__(self) -> str:
        served = "{" + ", ".join(self.served_dimensions) + "}" if self.served_dimensions else "set()"
        operands = ", ".join(self.operands)
        return f"MemoryLevel(instance={self.name},operands=[{operands}], served_dimensions={served})"

    __repr__ = __str__


class MemoryHierarchy(Shown):
    """Memories of a core. A user's stage removes a memory from the core by removing it from `mem_level_list`."""

    def __init__(self, core: Core, array: "OperationalArray") -> None:
        hierarchy = memory_hierarchy(core)
        levels = {
            index: {operand: chain.index(index) for operand, chain in hierarchy.levels_of if index in chain}
            for index in range(len(core.memories))
        }
        self.name, self.operational_array = core.name, array
        self.mem_level_list = [
            MemoryLevel(memory, index, levels[index], array) for index, memory in enumerate(core.memories)
        ]
        self._order = hierarchy.topological_order
        self._made()

    def topological_sort(self) -> Iterator[MemoryLevel]:
        """Memories from inner to outer: each memory comes after all memories below it."""
        known = {level.id: level for level in self.mem_level_list}
        return (known[index] for index in self._order if index in known)

    nodes = node_list = property(lambda self: list(self.topological_sort()))

    @property
    def nb_levels(self) -> dict[str, int]:
        """Number of memories of each operand, by operand."""
        return {operand: len(self.get_memory_levels(operand)) for operand in self.get_operands()}

    def get_memory_levels(self, mem_op: str) -> list[MemoryLevel]:
        """Memories of one operand, innermost first."""
        return [level for level in self.topological_sort() if mem_op in level.operands]

    def get_operands(self) -> list[MemoryOperand]:
        """Operands that the memories of the core hold."""
        return list(dict.fromkeys(operand for level in self.mem_level_list for operand in level.operands))

    def get_inner_memories(self) -> list[MemoryLevel]:
        """Memories without a memory below them."""
        return [level for level in self.topological_sort() if not any(level.mem_level_of_operands.values())]

    def get_outer_memories(self) -> list[MemoryLevel]:
        """Memories without a memory above them: each is the outermost memory of all its operands."""
        top = self.nb_levels
        return [
            level
            for level in self.topological_sort()
            if all(at == top[operand] - 1 for operand, at in level.mem_level_of_operands.items())
        ]

    def get_operand_top_level(self, operand: str) -> MemoryLevel:
        """Outermost memory of an operand. Raises ValueError if no memory holds it."""
        if not (levels := self.get_memory_levels(operand)):
            raise ValueError(f"no memory holds {operand}")
        return levels[-1]


class OperationalUnit(Shown):
    """Operational unit, with the energy of an operation in pJ and the area of the unit in mm2."""

    _may_be_set = ("energy_cost", "area")

    def __init__(self, energy_cost: float, area: float) -> None:
        self.energy_cost, self.area = energy_cost, area
        self._made()

    @property
    def cost(self) -> float:
        """Energy of an operation, in pJ."""
        return self.energy_cost


class OperationalArray(Shown):
    """Array of operational units. A user's stage can change the sizes in `dimension_sizes`."""

    def __init__(self, core: Core) -> None:
        array = core.operational_array
        self.dimension_sizes = {OADimension(name): size for name, size in array.dimensions}
        self.unit = OperationalUnit(array.unit_energy_pj, array.unit_area_mm2)
        self._made()

    @property
    def dimensions(self) -> list[OADimension]:
        """Names of the dimensions."""
        return list(self.dimension_sizes)

    @property
    def total_unit_count(self) -> int:
        """Number of units in the array."""
        return math.prod(self.dimension_sizes.values())

    @property
    def total_area(self) -> float:
        """Area of all units, in mm2."""
        return self.unit.area * self.total_unit_count


class Accelerator(Shown):
    """Core with its memories. In zigzag-dse, an accelerator has one core."""

    _may_be_set = ("name",)

    def __init__(self, core: Core) -> None:
        self.id, self.name = 0, core.name
        self.operational_array = OperationalArray(core)
        self.memory_hierarchy = MemoryHierarchy(core, self.operational_array)
        self._core = core
        self._read = self._state()
        self._made()

    def _state(self) -> tuple[Any, ...]:
        """Values of all attributes that a user's stage can change."""
        array, memories = self.operational_array, self.memory_hierarchy.mem_level_list
        sides = *array.dimension_sizes.items(), array.unit.energy_cost, array.unit.area
        return self.name, sides, tuple(level.memory_instance._state() for level in memories)

    @property
    def cores(self) -> list["Accelerator"]:
        """List with this core as its only entry. Scripts for zigzag-dse before 3.0 read this list, because an
        accelerator of these releases has a list of cores.
        """
        return [self]

    def get_core(self, core_id: int = 0) -> "Accelerator":
        """Core with the number `core_id`. For 0, the result is this core. Any other number raises ValueError."""
        if core_id != 0:
            raise ValueError(f"{self.name} has only core 0, not core {core_id}")
        return self

    @property
    def mem_hierarchy_dict(self) -> dict[MemoryOperand, list[MemoryLevel]]:
        """Memories by operand, innermost first."""
        hierarchy = self.memory_hierarchy
        return {operand: hierarchy.get_memory_levels(operand) for operand in hierarchy.get_operands()}

    @property
    def mem_size_dict(self) -> dict[MemoryOperand, list[int]]:
        """Sizes of memories in bits, by operand, innermost first."""
        return {
            operand: [level.memory_instance.size for level in levels]
            for operand, levels in self.mem_hierarchy_dict.items()
        }

    def get_memory_level(self, mem_op: str, mem_lv: int) -> MemoryLevel:
        """Memory of an operand at a level. Level 0 is the innermost memory."""
        return self.memory_hierarchy.get_memory_levels(mem_op)[mem_lv]

    def get_top_memory_instance(self, mem_op: str) -> MemoryInstance:
        """Outermost memory of an operand."""
        return self.memory_hierarchy.get_operand_top_level(mem_op).memory_instance

    def recalculate_memory_hierarchy_information(self) -> None:
        """Do nothing. In zigzag-dse, this call updates stored tables of the hierarchy. In tilewright, each table is
        computed whenever a stage reads the table.
        """

    def __str__(self) -> str:
        return f"Accelerator({self.name})"

    __repr__ = __str__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Accelerator) and self.as_core() == other.as_core()

    def __hash__(self) -> int:
        return hash(self._core)

    def as_core(self) -> Core:
        """Core of tilewright with the changes of the user's stages. If the user's stages changed nothing, the result is
        the original core. Raises InputError for invalid sizes.
        """
        core, array = self._core, self.operational_array
        if self._state() == self._read:
            return core
        sizes = {str(name): size for name, size in array.dimension_sizes.items()}
        wrong = [
            Problem(
                "is not a valid size for a side of the array",
                path=name,
                value=repr(size),
                allowed="a whole number, 1 or more",
            )
            for name, size in sizes.items()
            if not isinstance(size, int) or size < 1
        ]
        if wrong or list(sizes) != [name for name, _ in core.operational_array.dimensions]:
            raise InputError(wrong or "sides of an array can be resized, but not added, renamed or removed")
        changed = replace(
            core,
            name=str(self.name),
            operational_array=replace(
                core.operational_array,
                dimensions=tuple(sizes.items()),
                unit_energy_pj=array.unit.energy_cost,
                unit_area_mm2=array.unit.area,
            ),
            memories=tuple(level.memory_instance._as_memory() for level in self.memory_hierarchy.mem_level_list),
        )
        return core if changed == core else changed


def core_of(given: Any) -> Core | None:
    """Core in a value of the keyword `accelerator`. The result is None if the value is a description that no parser has
    read yet.
    """
    return given.as_core() if isinstance(given, Accelerator) else None
