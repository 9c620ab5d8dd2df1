"""Copies of data between memories: which way they go, what they cost, and how long several of them take together
(DeFiNES, section IV; its data copy actions).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from tilewright.errors import MappingError
from tilewright.hardware.core import DIRECTIONS, FH, FL, TH, TL, Core
from tilewright.hardware.hierarchy import memory_hierarchy


@dataclass(frozen=True)
class Link:
    """One side of a hop: a memory that is read or written through a port."""

    memory: int
    port: tuple[int, int]
    """(memory, port of it)."""
    narrow_bits: int
    wide_bits: int
    word_pj: float

    def words(self, bits: int) -> float:
        """Accesses of full-width words, in parts as small as the port allows."""
        return math.ceil(bits / self.narrow_bits) * (self.narrow_bits / self.wide_bits)


@dataclass(frozen=True)
class Hop:
    """From one memory to the next."""

    read: Link
    write: Link

    def cycles(self, bits: int) -> int:
        """The slower side decides."""
        return max(math.ceil(bits / self.read.wide_bits), math.ceil(bits / self.write.wide_bits))


@dataclass(frozen=True)
class Copy:
    """Data that go from one memory to another, through those between them."""

    bits: int
    hops: tuple[Hop, ...]

    @property
    def path(self) -> tuple[int, ...]:
        """Memories from source to destination."""
        return (self.hops[0].read.memory, *[hop.write.memory for hop in self.hops]) if self.hops else ()


@dataclass(frozen=True)
class CopyCost:
    """What copies that take place together cost."""

    energy_pj: float
    latency_cycles: int
    words: tuple[tuple[int, float, float], ...]
    """(memory, words read, words written)."""


@lru_cache(maxsize=4096)
def hops_between(core: Core, source_operand: str, source: int, operand: str, target: int) -> tuple[Hop, ...]:
    """The hops from a memory in which data lie as one memory operand to another where they lie as `operand`.

    Within the hierarchy of one operand the way is straight; else it leads through the lowest memory above the source
    that holds both.
    """
    if source == target:
        return ()
    hierarchy = memory_hierarchy(core)
    up, down = hierarchy.memories_of(source_operand), hierarchy.memories_of(operand)
    for chain, name in ((down, operand), (up, source_operand)):
        if source in chain and target in chain:
            return _straight(core, name, chain, source, target)
    shared = next(k for k in up[up.index(source) :] if k in down)
    climb = _straight(core, source_operand, up, source, shared)
    return climb + _straight(core, operand, down, shared, target)


def _straight(core: Core, operand: str, chain: tuple[int, ...], source: int, target: int) -> tuple[Hop, ...]:
    first, last = chain.index(source), chain.index(target)
    step = 1 if last > first else -1
    leave, enter = (TH, FL) if step > 0 else (TL, FH)
    return tuple(
        [
            Hop(_link(core, operand, chain[m], leave), _link(core, operand, chain[m + step], enter))
            for m in range(first, last, step)
        ]
    )


def _link(core: Core, operand: str, memory: int, direction: int) -> Link:
    """One side of a hop; a memory without a port for that direction is used through any other of the operand, or else
    of another one. Raises MappingError where there is none.
    """
    held = core.memories[memory]
    reads = direction in (TL, TH)
    ways = [DIRECTIONS[x] for x in (direction, *((TL, TH) if reads else (FH, FL)))]
    links = [(owner, way) for owner in (operand, *held.operands) for way in ways]
    place = next((held.port_of[link] for link in links if link in held.port_of), None)
    if place is None:
        raise MappingError(
            f"memory '{held.name}' has no port through which copies could {'leave' if reads else 'enter'}"
        )
    port = held.ports[place]
    cost = held.read_energy_pj if reads else held.write_energy_pj
    return Link(memory, (memory, place), port.bandwidth_min_bits, port.bandwidth_max_bits, cost)


def cost_of_copies(copies: Sequence[Copy], time_passes_on_used_ports: bool) -> CopyCost:
    """Energy of all, and the time until the last port is done.

    Hops of a copy follow one another; copies share ports. A port needs at least as long as it is busy, from the first
    time it is used on, and until the last of its transfers would end by itself.
    """
    energy = 0.0
    words: dict[int, list[float]] = {}
    busy: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for copy in copies:
        time = 0
        used: set[tuple[int, int]] = set()
        for hop in copy.hops:
            out, into = hop.read.words(copy.bits), hop.write.words(copy.bits)
            energy += out * hop.read.word_pj + into * hop.write.word_pj
            words.setdefault(hop.read.memory, [0.0, 0.0])[0] += out
            words.setdefault(hop.write.memory, [0.0, 0.0])[1] += into
            cycles = hop.cycles(copy.bits)
            busy.setdefault(hop.read.port, []).append((time, time + cycles))
            busy.setdefault(hop.write.port, []).append((time, time + cycles))
            passes = time_passes_on_used_ports or hop.write.port not in used | {hop.read.port}
            used |= {hop.read.port, hop.write.port}
            time += cycles if passes else 0
    latency = max((_port_cycles(ranges) for ranges in busy.values()), default=0)
    return CopyCost(energy, latency, tuple([(k, *counts) for k, counts in words.items()]))  # type: ignore[misc]


def _port_cycles(ranges: list[tuple[int, int]]) -> int:
    start, end = min(first for first, _ in ranges), max(last for _, last in ranges)
    return max(end, start + sum(last - first for first, last in ranges))
