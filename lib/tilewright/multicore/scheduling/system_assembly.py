"""System of a scheduling problem, made from an accelerator of several cores: memories, links, paths, and their names.

Cores are in the order of `MultiCoreAccelerator.core_ids`, links in the order of `MultiCoreAccelerator.links`, and
memories in the order of `MultiCoreAccelerator.memory_instances`. The off-chip core keeps only its memory for outputs.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tilewright.base.errors import InputError, Problem
from tilewright.hardware.core import Memory
from tilewright.hardware.memory_columns import memory_columns
from tilewright.hardware.static_power import system_rates_pj_a_cycle
from tilewright.hardware.system import BUS, MemoryInstance, MultiCoreAccelerator
from tilewright.hardware.system_links import offchip_ports
from tilewright.hardware.system_paths import path_table
from tilewright.multicore.scheduling.problem import Booleans, CoreSystem, Integers

OTHER = "other"
"""Memory operand of data that are not an operand of the layer, such as a bias. These data never stream. A core keeps
them in its memory for I2 (normally the weights). A core without a memory for I2 uses its memory for I1, or, if this is
also missing, its memory for O.
"""
MEMORY_OPERANDS = ("O", "I1", "I2", OTHER)
"""Names of the memory operands. The position of a name is the operand number in a scheduling problem."""
UNLIMITED_BITS_PER_CYCLE = 2**61
"""Width in bits per cycle that stands for unlimited bandwidth. It is above the word width of every memory."""


@dataclass(frozen=True)
class AssembledSystem:
    """System of cores, and the names of its memories."""

    system: CoreSystem
    memory_names: tuple[str, ...]


KNOWN_SYSTEMS = 4
"""Number of accelerators whose systems are cached. A search schedules thousands of plans on the same accelerator.
Finding the paths between all pairs of cores takes longer than computing a schedule.
"""
_known: list[tuple[MultiCoreAccelerator, AssembledSystem]] = []
"""Pairs (accelerator, system of the accelerator), the most recently added pair first."""


def core_system(accelerator: MultiCoreAccelerator) -> AssembledSystem:
    """System of an accelerator, as `_core_system` makes it. The systems of the last KNOWN_SYSTEMS accelerators are
    cached.

    Accelerators are compared by identity, because a comparison of all cores would take as long as a schedule.
    """
    for known, assembled in _known:
        if known is accelerator:
            return assembled
    made = _core_system(accelerator)
    _known[:] = [(accelerator, made), *_known[: KNOWN_SYSTEMS - 1]]
    return made


def _core_system(accelerator: MultiCoreAccelerator) -> AssembledSystem:
    """System of an accelerator. Raises InputError if there is no off-chip core.

    A memory reads and writes one word per cycle. When it reads, the word is as wide as the widest access of the port
    that sends outputs to other memories. When it writes, the word is as wide as the widest access of the port that
    receives inputs. A port that several cores share is also a link of the paths. Data of the operand OTHER are in the
    first memory that the core has for one of these operands: I2, I1, O.
    """
    off_chip_id = accelerator.offchip_core_id
    if off_chip_id is None:
        allowed = "offchip_core: FILE, or offchip_core_id"
        raise InputError(
            [Problem("has no off-chip core to keep weights and results", accelerator.name, allowed=allowed)]
        )
    instances = scheduled_memories(accelerator)
    core_memory = _core_memory(accelerator, instances)
    off_chip = accelerator.core_ids.index(off_chip_id)
    core_memory[off_chip] = core_memory[off_chip, 0]
    path_exists, path_start, path_link = _paths(accelerator)
    columns = memory_columns([instance.memory for instance in instances])
    widths = [_word_bits(accelerator, instance, off_chip_id) for instance in instances]
    system = CoreSystem(
        off_chip_core=off_chip,
        core_memory=core_memory,
        memory_capacity_bits=columns["memory_bits"],
        memory_read_bits=_integers([read for read, _ in widths]),
        memory_write_bits=_integers([write for _, write in widths]),
        memory_read_energy_pj=columns["read_energy_pj"],
        memory_write_energy_pj=columns["write_energy_pj"],
        link_bits_per_cycle=_integers(
            [
                UNLIMITED_BITS_PER_CYCLE if link.bandwidth_bits_per_cycle is None else link.bandwidth_bits_per_cycle
                for link in accelerator.links
            ]
        ),
        link_energy_pj_per_bit=np.array([link.energy_pj_per_bit for link in accelerator.links], np.float64),
        link_is_broadcast=np.array([link.kind == BUS or link.is_multicast for link in accelerator.links], np.bool_),
        path_exists=path_exists,
        path_start=path_start,
        path_link=path_link,
        rates_pj_a_cycle=tuple(system_rates_pj_a_cycle(accelerator).items()),
        link_is_multicast=_multicast(accelerator),
        forwards_constants=accelerator.forwards_constants,
    )
    names = tuple(f"{'+'.join(map(str, instance.core_ids))}: {instance.memory.name}" for instance in instances)
    return AssembledSystem(system, names)


def _multicast(accelerator: MultiCoreAccelerator) -> Booleans | None:
    """True if the link has multicast (one entry for each link); None if no link has it."""
    if not any(link.is_multicast for link in accelerator.links):
        return None
    return np.array([link.is_multicast for link in accelerator.links], np.bool_)


def scheduled_memories(accelerator: MultiCoreAccelerator) -> list[MemoryInstance]:
    """Memories of the system, in order: the top memories of the cores, and the output memory of the off-chip core."""
    return [
        instance
        for instance in accelerator.memory_instances
        if instance.core_ids != (accelerator.offchip_core_id,) or "O" in instance.users[0][1]
    ]


def _integers(values: Sequence[int]) -> Integers:
    return np.array(values, np.int64)


def _core_memory(accelerator: MultiCoreAccelerator, instances: Sequence[MemoryInstance]) -> Integers:
    """Number of the memory that holds an operand on a core: array of shape (cores, MEMORY_OPERANDS). The number is a
    position in `instances`; -1 if the core has no memory for the operand.
    """
    table = np.full((len(accelerator.core_ids), len(MEMORY_OPERANDS)), -1, np.int64)
    for memory, instance in enumerate(instances):
        for core_id, operands in instance.users:
            for operand in operands:
                table[accelerator.core_ids.index(core_id), MEMORY_OPERANDS.index(operand)] = memory
    other = MEMORY_OPERANDS.index(OTHER)
    for operand in ("O", "I1", "I2"):
        held = table[:, MEMORY_OPERANDS.index(operand)]
        table[held >= 0, other] = held[held >= 0]
    return table


def _word_bits(accelerator: MultiCoreAccelerator, instance: MemoryInstance, off_chip_id: int) -> tuple[int, int]:
    """Pair (bits of a word that is read, bits of a word that is written) for transfers between memories. If a memory
    has several ports for these transfers, the port with the narrowest word counts.
    """
    if instance.core_ids == (off_chip_id,):
        read, write, _ = offchip_ports(accelerator.core_of[off_chip_id])
        assert read is not None
        assert write is not None
        return read, write
    read_widths, write_widths = [], []
    for (core_id, operands), name in zip(instance.users, instance.names, strict=True):
        memory = next(m for m in accelerator.core_of[core_id].memories if m.name == name)
        for operand in operands:
            if operand == "O":
                read_widths += _port_widths(memory, operand, "th")
            else:
                write_widths += _port_widths(memory, operand, "fh")
    read = min(read_widths, default=_widest(instance.memory, ("read", "read_write")))
    return read, min(write_widths, default=_widest(instance.memory, ("write", "read_write")))


def _port_widths(memory: Memory, operand: str, direction: str) -> list[int]:
    port = memory.port_of.get((operand, direction))
    return [] if port is None else [memory.ports[port].bandwidth_max_bits]


def _widest(memory: Memory, kinds: tuple[str, ...]) -> int:
    widths = [port.bandwidth_max_bits for port in memory.ports if port.port_type in kinds]
    return max(widths or [port.bandwidth_max_bits for port in memory.ports])


def _paths(accelerator: MultiCoreAccelerator) -> tuple[np.ndarray, Integers, Integers]:
    """Paths between all pairs of cores: the arrays `path_exists`, `path_start` and `path_link` of `CoreSystem`."""
    table = path_table(accelerator)
    pairs = [(source, target) for source in accelerator.core_ids for target in accelerator.core_ids]
    links = [table.path(*pair).links if table.has_path(*pair) else () for pair in pairs]
    exists = np.array([table.has_path(*pair) for pair in pairs], np.bool_)
    start = np.zeros(len(pairs) + 1, np.int64)
    np.cumsum([len(path) for path in links], out=start[1:])
    return exists, start, _integers([link for path in links for link in path])
