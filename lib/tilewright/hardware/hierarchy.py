"""Memory hierarchy of a core, from the innermost to the outermost level of each operand (zigzag-dse 3.9.1).

A core exchanges data with other cores through its top memories, which cores can share.
"""

import itertools
import math
from dataclasses import dataclass
from functools import lru_cache
from graphlib import TopologicalSorter

from tilewright.hardware.core import Core, Memory


@dataclass(frozen=True)
class MemoryHierarchy:
    """Levels of the memories of a core. Each memory is identified by its index in `Core.memories`."""

    topological_order: tuple[int, ...]
    levels_of: tuple[tuple[str, tuple[int, ...]], ...]
    """Pairs (memory operand, indices of the memories that hold the operand, innermost first)."""
    inner_memories: tuple[int, ...]
    """Memories that are the innermost level for every operand they hold."""

    def memories_of(self, memory_operand: str) -> tuple[int, ...]:
        """Memories that hold an operand, innermost first; () if no memory holds the operand."""
        return dict(self.levels_of).get(memory_operand, ())


@lru_cache(maxsize=256)
def memory_hierarchy(core: Core) -> MemoryHierarchy:
    """Hierarchy of the memories of `core`.

    Memories are placed in the order of the file. A memory lies above the memories of earlier entries that share an
    operand with it; for each operand, only the highest of these count. The height of a memory is its highest level
    among all its operands. If these rules do not order two memories, they keep the order of the file, inner to outer.
    """
    return hierarchy_of(tuple(memory.operands for memory in core.memories))


def hierarchy_of(held: tuple[tuple[str, ...], ...]) -> MemoryHierarchy:
    """Hierarchy of memories, from the operands that each memory holds. `held[i]` has the operands of memory i of the
    file."""
    below: dict[int, list[int]] = {}
    highest_level: list[int] = []
    operands = list(dict.fromkeys(itertools.chain.from_iterable(held)))
    count = dict.fromkeys(operands, 0)
    for index, own in enumerate(held):
        below[index] = []
        for operand in own:
            holders = [i for i in range(index) if operand in held[i]]
            if holders:
                top = max(highest_level[i] for i in holders)
                below[index] += [i for i in holders if highest_level[i] == top and i not in below[index]]
        highest_level.append(max((count[operand] for operand in own), default=0))
        for operand in own:
            count[operand] += 1
    order = tuple(TopologicalSorter(below).static_order())
    levels = tuple((o, tuple(i for i in order if o in held[i])) for o in operands)
    inner = tuple(i for i, lower in below.items() if not lower)
    return MemoryHierarchy(order, levels, inner)


def instance_count(core: Core, memory_index: int) -> int:
    """Number of instances of a memory. An instance serves all units along the served dimensions. There is one instance
    for each position along the other array dimensions."""
    served = core.memories[memory_index].served_dimensions
    return math.prod(size for name, size in core.operational_array.dimensions if name not in served)


@lru_cache(maxsize=256)
def top_memories(core: Core) -> tuple[tuple[Memory, tuple[str, ...]], ...]:
    """Pairs (memory, memory operands for which it is the outermost level), in the order of the hardware file."""
    operands_of: dict[int, list[str]] = {}
    for operand, chain in memory_hierarchy(core).levels_of:
        operands_of.setdefault(chain[-1], []).append(operand)
    return tuple((core.memories[index], tuple(operands_of[index])) for index in sorted(operands_of))


def shared_memory_names(cores: list[Core]) -> list[str]:
    """Names of the top memories that every core of `cores` has."""
    names = [[memory.name for memory, _ in top_memories(core)] for core in cores]
    return [name for name in names[0] if all(name in others for others in names)]


def memory_differences(one: Memory, other: Memory) -> list[str]:
    """Names of the properties in which two descriptions of one physical memory differ; [] if the descriptions are
    equal.

    Operands, port allocation and served dimensions are not compared, because they can differ between the cores that
    share the memory.
    """
    facts = {
        "size": (one.size_bits, other.size_bits),
        "r_cost": (one.read_energy_pj, other.read_energy_pj),
        "w_cost": (one.write_energy_pj, other.write_energy_pj),
        "ports": (_ports(one), _ports(other)),
    }
    return [name for name, (here, there) in facts.items() if here != there]


def _ports(memory: Memory) -> list[tuple[str, int, int]]:
    return sorted((port.port_type, port.bandwidth_min_bits, port.bandwidth_max_bits) for port in memory.ports)
