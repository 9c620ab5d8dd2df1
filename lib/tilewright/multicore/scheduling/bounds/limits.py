"""Limits from which lower bounds follow: rates of a system, least energy of moves, and the search for weights."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np

from tilewright.multicore.scheduling.problem import Booleans, CoreSystem, Floats, Integers


@dataclass(frozen=True, eq=False)
class SystemLimits:
    """Largest rates in bits per cycle, and least energies. A rate is infinite if no link and no memory limits the rate,
    and 0 if there is no path.
    """

    read_bits_per_cycle: float
    """Largest total rate of the data that leave the off-chip memory"""
    write_bits_per_cycle: float
    """Largest total rate of the data that enter the off-chip memory"""
    both_bits_per_cycle: float
    """Largest total rate of the data that leave or enter the off-chip memory"""
    fetch_rate: Floats
    """[memory] Largest rate of one piece from the off-chip memory into the memory"""
    direct_rate: Floats
    """[core, memory] Largest rate of one piece from the output memory of the core into the memory"""
    write_rate: Floats
    """[core] Largest rate of one piece from the output memory of the core into the off-chip memory"""
    read_link_pj: Floats
    """[core] Energy in pJ of the links that a bit uses from the off-chip memory to the core"""
    write_link_pj: Floats
    """[core] Energy in pJ of the links that a bit uses from the core to the off-chip memory"""

    def detour_rate(self, core: int, memory: int) -> float:
        """Bits per cycle of a piece that is written off-chip from the output memory of a core, and then fetched."""
        rates = self.write_rate[core], self.fetch_rate[memory]
        return 1.0 / sum(1.0 / float(rate) for rate in rates) if min(rates) > 0 else 0.0

    def cheapest_fetch_pj(self, system: CoreSystem, bits: Integers) -> float:
        """Least energy of fetching pieces from the off-chip memory, each once."""
        return float(np.sum(self.fetch_pj(system, bits)))

    def cheapest_write_pj(self, system: CoreSystem, bits: Integers) -> float:
        """Least energy of writing pieces to the off-chip memory, each once."""
        return float(np.sum(self.write_pj(system, bits)))

    def fetch_pj(self, system: CoreSystem, bits: Integers) -> Floats:
        """[piece] Least energy to fetch the piece from the off-chip memory, in pJ."""
        off = system.off_chip_memory
        words = -(-bits // system.memory_read_bits[off]) * system.memory_read_energy_pj[off]
        found: Floats = (
            self._over_links(system, self.read_link_pj, bits) + words + _cheapest(bits, system, writing=True)
        )
        return found

    def write_pj(self, system: CoreSystem, bits: Integers) -> Floats:
        """[piece] Least energy to write the piece to the off-chip memory, in pJ."""
        off = system.off_chip_memory
        words = -(-bits // system.memory_write_bits[off]) * system.memory_write_energy_pj[off]
        found: Floats = (
            self._over_links(system, self.write_link_pj, bits) + words + _cheapest(bits, system, writing=False)
        )
        return found

    def _over_links(self, system: CoreSystem, link_pj: Floats, bits: Integers) -> Floats:
        """[piece] Least energy to move the piece over links, in pJ. A system without any path is allowed if there are
        no pieces."""
        least = float(np.min(_compute(system, link_pj), initial=math.inf))
        found: Floats = np.zeros(len(bits))
        if len(bits):
            found += bits * least
        return found


def _compute(system: CoreSystem, values: Floats) -> Floats:
    """Values of all cores except the off-chip core."""
    compute: Floats = values[np.arange(len(values)) != system.off_chip_core]
    return compute


def _cheapest(bits: Integers, system: CoreSystem, writing: bool) -> Floats:
    """[piece] Least energy to read or write the piece in a memory on chip, in pJ."""
    width = system.memory_write_bits if writing else system.memory_read_bits
    energy = system.memory_write_energy_pj if writing else system.memory_read_energy_pj
    on_chip = [memory for memory in range(len(width)) if memory != system.off_chip_memory]
    least: Floats = np.min([-(-bits // width[memory]) * energy[memory] for memory in on_chip], axis=0)
    return least


def system_limits(system: CoreSystem) -> SystemLimits:
    """The limits that follow from links, paths and words."""
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
    """Full rate of a transfer in bits per cycle (rule 11 of docs/multi-core-model.md#scheduling)."""
    widths = system.link_bits_per_cycle[system.path(source, target)].tolist()
    return float(min([*widths, system.memory_read_bits[read], system.memory_write_bits[written]]))


def _cut(directions: list[list[list[int]]], system: CoreSystem) -> float:
    """Largest total rate over paths in bits per cycle.

    The rate is the width of a link that all paths share, or the total width of all links at one end of the paths,
    whichever is smaller. The first list has paths from the off-chip core; a second list has paths to the off-chip core.
    If there is only one list, its paths can have either direction.
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
"""Share by which sums of floating-point numbers are lowered before they are used as lower bounds, because such sums are
not exact."""


def changes(values: Integers) -> Booleans:
    """[position] True where the value differs from the value before; True for the first value."""
    found: Booleans = np.ones(len(values), np.bool_)
    found[1:] = values[1:] != values[:-1]
    return found


def whole_cycles(values: Floats) -> Integers:
    """Lower bounds on numbers of cycles, rounded up."""
    return np.ceil(values * (1 - SLACK)).astype(np.int64)


Choice = TypeVar("Choice")


class Weighted(NamedTuple):
    """Lower bound, and the weights of resources from which the bound follows."""

    cycles: int
    weights: Floats
    """[resource] Weights that sum to 1"""


def best_by_weights(
    resources: int,
    rounds: int,
    bound: Callable[[Floats], tuple[float, Choice]],
    load: Callable[[Choice], Floats],
    cycles_only: bool = False,
) -> Weighted:
    """Largest lower bound in cycles that a search over weights finds, rounded up. The weights of a bound sum to 1.

    `bound` returns the bound that follows from weights, and the choice that is cheapest at these weights. `load`
    returns the load that a choice puts on each resource. Any weights give a valid bound. The search makes `rounds`
    steps; each step raises the weights of the most loaded resources. With `cycles_only`, the search ends when no
    weights give another cycle: the cycles are the same as those of all steps, but the weights can differ.
    """
    logarithm, average, best = np.zeros(resources), np.zeros(resources), 0.0
    weights: Floats = np.full(resources, 1.0 / max(resources, 1))
    ceiling = _Ceiling(resources)
    for step in range(1, rounds + 1):
        weight = np.exp(logarithm - logarithm.max())
        weight /= weight.sum()
        average += (weight - average) / step
        by_average, _ = bound(average / average.sum())
        by_weight, cheapest = bound(weight)
        if max(by_average, by_weight) > best:
            best, weights = max((by_average, average / average.sum()), (by_weight, weight), key=lambda found: found[0])
        loads = load(cheapest)
        if not loads.any() or (cycles_only and _cycles(best) >= ceiling.cycles_with(loads)):
            break
        logarithm += loads / loads.max() * (2.0 / math.sqrt(step))
    return Weighted(_cycles(best), weights)


class _Ceiling:
    """Upper limit of all bounds by weights, from the loads of choices.

    A bound is at most the weighted load of any choice, thus at most the largest load of any mix of choices.
    """

    def __init__(self, resources: int) -> None:
        self._mixes = np.zeros((2, resources))
        """[mix, resource] Sum of the loads so far: each load once, and each load times the number of its step"""
        self._shares = np.zeros((2, 1))
        """[mix] Number of loads in the sum"""
        self._least = math.inf

    def cycles_with(self, loads: Floats) -> int:
        """The limit in cycles, rounded up as bounds are, with the loads of one more choice."""
        share = np.array([[1.0], [float(self._shares[0, 0]) + 1]])
        self._mixes += share * loads
        self._shares += share
        self._least = min(self._least, float(loads.max()), float((self._mixes / self._shares).max(axis=1).min()))
        return _cycles(self._least * (1 + SLACK / 10))


def _cycles(bound: float) -> int:
    """A bound by weights, rounded up to whole cycles."""
    return math.ceil(bound * (1 - SLACK))
