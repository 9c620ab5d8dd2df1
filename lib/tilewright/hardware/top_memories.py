"""The memories at the top of a core's hierarchy, through which it exchanges data, and which of them cores can share."""

from functools import lru_cache

from tilewright.hardware.core import Core, Memory
from tilewright.hardware.hierarchy import memory_hierarchy


@lru_cache(maxsize=256)
def top_memories(core: Core) -> tuple[tuple[Memory, tuple[str, ...]], ...]:
    """(memory, memory operands of which it is the outermost level) in the order of the hardware file."""
    operands_of: dict[int, list[str]] = {}
    for operand, chain in memory_hierarchy(core).levels_of:
        operands_of.setdefault(chain[-1], []).append(operand)
    return tuple((core.memories[index], tuple(operands_of[index])) for index in sorted(operands_of))


def shared_memory_names(cores: list[Core]) -> list[str]:
    """Names of the top memories that all of `cores` have."""
    names = [[memory.name for memory, _ in top_memories(core)] for core in cores]
    return [name for name in names[0] if all(name in others for others in names)]


def memory_differences(one: Memory, other: Memory) -> list[str]:
    """In what two descriptions of one physical memory contradict each other; [] if in nothing.

    Operands, port allocation and served dimensions belong to the core, so they may differ.
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
