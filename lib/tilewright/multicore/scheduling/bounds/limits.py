"""Limits from which lower bounds are computed: largest rates of a system, smallest energies of moves, and rounding."""

import math
from dataclasses import dataclass

import numpy as np

from tilewright.multicore.scheduling.problem import Booleans, CoreSystem, Floats, Integers


@dataclass(frozen=True, eq=False)
class SystemLimits:
    """Largest rates in bits per cycle, and smallest energies in pJ. A rate is 0 if there is no path. A rate is infinite
    if neither a link nor a memory limits it.
    """

    read_bits_per_cycle: float
    """Largest total rate of data from the off-chip memory, in bits per cycle"""
    write_bits_per_cycle: float
    """Largest total rate of data to the off-chip memory, in bits per cycle"""
    both_bits_per_cycle: float
    """Largest total rate of data from and to the off-chip memory together, in bits per cycle"""
    fetch_rate: Floats
    """Largest rate in bits per cycle of one piece from the off-chip memory to the memory (one entry for each memory)"""
    direct_rate: Floats
    """Largest rate in bits per cycle of one piece from the output memory of the core to the memory (one entry for each
    core and memory)
    """
    write_rate: Floats
    """Largest rate in bits per cycle of one piece from the output memory of the core to the off-chip memory (one entry
    for each core)
    """
    read_link_pj: Floats
    """Energy in pJ to move one bit over the path from the off-chip core to the core (one entry for each core)"""
    write_link_pj: Floats
    """Energy in pJ to move one bit over the path from the core to the off-chip core (one entry for each core)"""

    def detour_rate(self, core: int, memory: int) -> float:
        """Largest rate in bits per cycle of a piece on a detour: the piece is written from the output memory of a core
        to the off-chip memory, and then fetched into a memory. The rate is the number of bits divided by the time of
        both transfers together. The rate is 0 if one of the transfers has no path.
        """
        rates = self.write_rate[core], self.fetch_rate[memory]
        return 1.0 / sum(1.0 / float(rate) for rate in rates) if min(rates) > 0 else 0.0

    def cheapest_fetch_pj(self, system: CoreSystem, bits: Integers) -> float:
        """Smallest energy in pJ to fetch every piece once from the off-chip memory. `bits` has the size of each
        piece.
        """
        return float(np.sum(self.fetch_pj(system, bits)))

    def cheapest_write_pj(self, system: CoreSystem, bits: Integers) -> float:
        """Smallest energy in pJ to write every piece once to the off-chip memory. `bits` has the size of each piece."""
        return float(np.sum(self.write_pj(system, bits)))

    def fetch_pj(self, system: CoreSystem, bits: Integers) -> Floats:
        """Smallest energy in pJ to fetch each piece of data from the off-chip memory: array [piece]. `bits` has the
        size of each piece.
        """
        off = system.off_chip_memory
        words = -(-bits // system.memory_read_bits[off]) * system.memory_read_energy_pj[off]
        found: Floats = (
            self._over_links(system, self.read_link_pj, bits) + words + _cheapest(bits, system, writing=True)
        )
        return found

    def write_pj(self, system: CoreSystem, bits: Integers) -> Floats:
        """Smallest energy in pJ to write each piece of data to the off-chip memory: array [piece]. `bits` has the size
        of each piece.
        """
        off = system.off_chip_memory
        words = -(-bits // system.memory_write_bits[off]) * system.memory_write_energy_pj[off]
        found: Floats = (
            self._over_links(system, self.write_link_pj, bits) + words + _cheapest(bits, system, writing=False)
        )
        return found

    def _over_links(self, system: CoreSystem, link_pj: Floats, bits: Integers) -> Floats:
        """Energy in pJ to move each piece of data over the links of the cheapest path between the off-chip core and
        another core: array [piece]. `link_pj` has the energy per bit (one entry for each core). If `bits` is empty, the
        result is empty, even if there is no other core.
        """
        least = float(np.min(_compute(system, link_pj), initial=math.inf))
        found: Floats = np.zeros(len(bits))
        if len(bits):
            found += bits * least
        return found


def _compute(system: CoreSystem, values: Floats) -> Floats:
    """Entries of `values` without the entry of the off-chip core. `values` has one entry for each core."""
    compute: Floats = values[np.arange(len(values)) != system.off_chip_core]
    return compute


def _cheapest(bits: Integers, system: CoreSystem, writing: bool) -> Floats:
    """Smallest energy in pJ to access each piece of data in an on-chip memory: array [piece]. `bits` has the size of
    each piece. If `writing` is true, the piece is written; otherwise, it is read.
    """
    width = system.memory_write_bits if writing else system.memory_read_bits
    energy = system.memory_write_energy_pj if writing else system.memory_read_energy_pj
    on_chip = [memory for memory in range(len(width)) if memory != system.off_chip_memory]
    least: Floats = np.min([-(-bits // width[memory]) * energy[memory] for memory in on_chip], axis=0)
    return least


def system_limits(system: CoreSystem) -> SystemLimits:
    """Limits of a system, computed from its links, paths and memory words."""
    off, cores, memories = system.off_chip_core, system.core_count, len(system.memory_capacity_bits)
    reading = [system.path(off, core).tolist() for core in range(cores) if core != off and _reaches(system, off, core)]
    writing = [system.path(core, off).tolist() for core in range(cores) if core != off and _reaches(system, core, off)]
    fetch, direct, write = np.zeros(memories), np.zeros((cores, memories)), np.zeros(cores)
    for source in range(cores):
        home = int(system.core_memory[source, 0])
        if home >= 0 and source != off and _reaches(system, source, off):
            write[source] = _rate(system, source, off, home, system.off_chip_memory)
        for target in range(cores):
            if target == off or home < 0 or not _reaches(system, source, target):
                continue
            for memory in {int(memory) for memory in system.core_memory[target] if memory >= 0}:
                rate = _rate(system, source, target, home, memory)
                direct[source, memory] = max(direct[source, memory], rate)
                if source == off:
                    fetch[memory] = max(fetch[memory], rate)
    return SystemLimits(
        read_bits_per_cycle=_cut([reading], system),
        write_bits_per_cycle=_cut([writing], system),
        both_bits_per_cycle=_cut([reading, writing], system),
        fetch_rate=fetch,
        direct_rate=direct,
        write_rate=write,
        read_link_pj=np.array([float(system.link_energy_pj_per_bit[system.path(off, c)].sum()) for c in range(cores)]),
        write_link_pj=np.array([float(system.link_energy_pj_per_bit[system.path(c, off)].sum()) for c in range(cores)]),
    )


def _reaches(system: CoreSystem, source: int, target: int) -> bool:
    return source == target or bool(system.path_exists[source * system.core_count + target])


def _rate(system: CoreSystem, source: int, target: int, read: int, written: int) -> float:
    """Full rate in bits per cycle of a transfer from memory `read` to memory `written` over the path between two cores
    (rule 11 of docs/multi-core-model/transfers.md).
    """
    widths = system.link_bits_per_cycle[system.path(source, target)].tolist()
    return float(min([*widths, system.memory_read_bits[read], system.memory_write_bits[written]]))


def _cut(directions: list[list[list[int]]], system: CoreSystem) -> float:
    """Largest total rate over paths, in bits per cycle; infinite if there are no paths or if a path has no links.

    The rate is the smallest of three widths:

    * the width of the narrowest link that all paths share;
    * the total width of the links at the off-chip end of the paths;
    * the total width of the links at the opposite end of the paths.

    `directions` has one or two lists of paths. If there are two lists, the first has the paths from the off-chip core,
    and the second has the paths to the off-chip core. If there is only one list, it has the paths of one of the two
    directions.
    """
    paths = [path for direction in directions for path in direction]
    if not paths or any(len(path) == 0 for path in paths):
        return math.inf
    common = set.intersection(*(set(path) for path in paths))
    limits = [float(system.link_bits_per_cycle[link]) for link in common]
    for ends in ([0, -1], [-1, 0]):
        links = {path[end] for direction, end in zip(directions, ends, strict=False) for path in direction}
        limits.append(float(system.link_bits_per_cycle[list(links)].sum()))
    return min(limits)


SLACK = 1e-9
"""Share by which a sum of floating-point numbers is lowered before the sum is used as a lower bound. Such sums are not
exact.
"""


def changes(values: Integers) -> Booleans:
    """True if the value differs from the previous value (one entry for each position); True for the first value."""
    found: Booleans = np.ones(len(values), np.bool_)
    found[1:] = values[1:] != values[:-1]
    return found


def whole_cycles(values: Floats) -> Integers:
    """Lower bounds as whole numbers of cycles. Each value is first lowered by the share SLACK, because floating-point
    sums are not exact, and then rounded up.
    """
    return np.ceil(values * (1 - SLACK)).astype(np.int64)
