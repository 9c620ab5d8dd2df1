"""Costs of the parts of a core: energy per MAC, and energy per access to each memory.

Each cost has its source and its range.
"""

from dataclasses import dataclass

from tilewright.hardware.attributes import Figures
from tilewright.hardware.core import DIGITAL, Core, Memory
from tilewright.hardware.system import on_chip_memories

LIBRARY_SRAM = "sram "
"""Prefix of the names of all cost laws for an SRAM with one port for reads and writes."""
BY_HAND = "hardware file"
"""Source of costs that the hardware file gives as numbers."""


@dataclass(frozen=True)
class MemoryPart:
    """Costs of a memory."""

    name: str
    size_bits: int
    read_energy_pj: float
    """Energy in pJ of reading one word."""
    write_energy_pj: float
    read_bits: int
    """Width in bits of a word that is read: the width of the widest read port."""
    write_bits: int
    port_count: int
    law: str
    """Law of the library of costs that gave the energies, such as `sram 22 nm hp`; '' if the hardware file gives the
    energies.
    """
    low: float
    """Smallest factor by which the energies can be multiplied; 1 if no range is known."""
    high: float
    is_on_chip: bool

    @property
    def bit_energies_pj(self) -> tuple[float, float]:
        """Energies in pJ of reading and of writing a bit."""
        return self.read_energy_pj / max(1, self.read_bits), self.write_energy_pj / max(1, self.write_bits)

    @property
    def has_range(self) -> bool:
        """True if the library of costs gives a range for the energies."""
        return (self.low, self.high) != (1.0, 1.0)


@dataclass(frozen=True)
class HardwareCosts:
    """Energy costs of a core: one operation of its array, and accesses to each of its memories."""

    unit_energy_pj: float | None
    """Energy in pJ of one operation of the array. None for an in-memory array, whose energy follows from its circuits.
    """
    memories: tuple[MemoryPart, ...]
    figures: tuple[tuple[str, Figures], ...] = ()
    """Attributes as pairs (name of the part, attributes). The part is a memory, `array`, or '' for the core itself."""

    @property
    def sources(self) -> tuple[str, ...]:
        """Sources of the energies of memories: laws of the library of costs, or BY_HAND."""
        return tuple(sorted({memory.law or BY_HAND for memory in self.memories}))


def hardware_costs(core: Core) -> HardwareCosts:
    """Costs of the parts of a core. The memories are in the order of the core."""
    array, on_chip = core.operational_array, on_chip_memories(core)
    memories = tuple(_part(memory, index in on_chip) for index, memory in enumerate(core.memories))
    parts = (("", core.figures), ("array", array.figures), *((memory.name, memory.figures) for memory in core.memories))
    figures = tuple(part for part in parts if part[1])
    return HardwareCosts(array.unit_energy_pj if array.kind == DIGITAL else None, memories, figures)


def _part(memory: Memory, is_on_chip: bool) -> MemoryPart:
    source = memory.cost_source
    return MemoryPart(
        name=memory.name,
        size_bits=memory.size_bits,
        read_energy_pj=memory.read_energy_pj,
        write_energy_pj=memory.write_energy_pj,
        read_bits=_word_bits(memory, "read"),
        write_bits=_word_bits(memory, "write"),
        port_count=len(memory.ports),
        law="" if source is None else source.law,
        low=1.0 if source is None else source.relative_range[0],
        high=1.0 if source is None else source.relative_range[1],
        is_on_chip=is_on_chip,
    )


def _word_bits(memory: Memory, direction: str) -> int:
    """Width in bits of the widest port of a memory for `direction`, which is `read` or `write`; 0 if the memory has no
    such port.
    """
    return max((port.bandwidth_max_bits for port in memory.ports if direction in port.port_type), default=0)
