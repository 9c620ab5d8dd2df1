"""Limits of a layer: the port of a memory, and what array and ports allow (docs/bottlenecks.md#explain-a-run).

Of a port: what the mapping of a layer takes with it twice as wide, for one port after the other, and for the smallest
set of ports where none helps alone. Each number is that of the cost model with the changed core, not an estimate, so
that no other port helps more. Rooflines are those of
Williams, Waterman, Patterson: Roofline, Communications of the ACM 52(4), 2009.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from tilewright.base.errors import MappingError
from tilewright.cost.problem import port_services
from tilewright.hardware.array_model import array_model
from tilewright.hardware.core import Core, Memory
from tilewright.results.recorded_mappings import RecordedMapping
from tilewright.results.records import PlacedLayer
from tilewright.results.verdict import Verdict, smallest_set

WIDER = 2
"""How much wider a port is made to see whether it limits."""
LEAST_SHARE = 0.01
"""A port limits where twice its width saves at least this share of the latency (docs/bottlenecks.md#explain-a-run)."""
WIDER_SAVES = "cycles that twice the width saves"
_ANY_CYCLE = 1e-9
"""Less than any cycle that could be saved."""


class PortName(NamedTuple):
    """A port of a memory."""

    memory: str
    port: str

    def __str__(self) -> str:
        return f"{self.memory} {self.port}"


class Widened(NamedTuple):
    """What a mapping takes with some ports WIDER times as wide, all else alike."""

    ports: tuple[PortName, ...]
    latency_cycles: float

    @property
    def name(self) -> str:
        """The ports in words."""
        return " and ".join(map(str, self.ports))


@dataclass(frozen=True)
class PortLimit:
    """What a layer, or all of a network, takes with each port wider than it is."""

    latency_cycles: float
    """Latency as it is."""
    ports: tuple[Widened, ...]
    """Gain of each port alone, the least latency first; ports of equal latency in the order of the hardware file."""
    together: Widened | None = None
    """Where no port alone saves LEAST_SHARE: the smallest set of ports that does, of equally small ones the best; where
    none does and no port alone saves a cycle, the smallest that saves any; None where nothing helps."""

    @property
    def limiting(self) -> Widened | None:
        """The port that limits; None where no single one would help."""
        return self._helping(0)

    @property
    def runner_up(self) -> Widened | None:
        """The next one, if it would help."""
        return self._helping(1)

    @property
    def ties(self) -> tuple[Widened, ...]:
        """All ports that would help as much as the one that limits, that one first."""
        best = self.limiting
        return () if best is None else tuple(one for one in self.ports if one.latency_cycles == best.latency_cycles)

    def gain_cycles(self, widened: Widened) -> float:
        """Cycles that a wider port saves; less than 0 where it costs some."""
        return self.latency_cycles - widened.latency_cycles

    @property
    def named(self) -> Widened | None:
        """What is said to limit: the best port where it saves enough, or else the ports that do so together."""
        return next(
            (one for one in (self.limiting, self.together) if self._is_enough(one)), self.limiting or self.together
        )

    @property
    def is_limited(self) -> bool:
        """Whether the best port, or several together, would save enough that it is said to limit."""
        return self._is_enough(self.named)

    @property
    def is_limited_by_one(self) -> bool:
        """Whether the best port alone would save enough."""
        return self._is_enough(self.limiting)

    @property
    def verdict(self) -> Verdict:
        """What the ports would save, each alone, or those that help together."""
        found = self.ports if self.named is None or len(self.named.ports) == 1 else (self.named, *self.ports)
        rivals = [(one.name, self.gain_cycles(one)) for one in found]
        return Verdict.of(WIDER_SAVES, "cycles", self.latency_cycles, rivals, "-")

    def with_wider(self, name: PortName) -> float:
        """The latency with this port wider."""
        return next(one.latency_cycles for one in self.ports if one.ports == (name,))

    def times(self, count: int) -> "PortLimit":
        """Limit of `count` equal layers that run one after another."""
        if count == 1:
            return self
        ports = tuple(one._replace(latency_cycles=one.latency_cycles * count) for one in self.ports)
        both = self.together and self.together._replace(latency_cycles=self.together.latency_cycles * count)
        return PortLimit(self.latency_cycles * count, ports, both)

    def _is_enough(self, widened: Widened | None) -> bool:
        return widened is not None and saves_enough(self.gain_cycles(widened), self.latency_cycles)

    def _helping(self, place: int) -> Widened | None:
        found = self.ports[place] if place < len(self.ports) else None
        return found if found is not None and found.latency_cycles < self.latency_cycles else None


def saves_enough(gain_cycles: float, latency_cycles: float) -> bool:
    """Whether that is worth saying that something limits: LEAST_SHARE of the latency."""
    return gain_cycles > 0 and gain_cycles >= LEAST_SHARE * latency_cycles


def port_limit(mapping: RecordedMapping, core: Core) -> PortLimit:
    """What the mapping of a layer takes on `core` with each port twice as wide, or several where none helps alone."""
    return with_sets(wider_ports(mapping, core), port_names(core), lambda ports: wider_cycles(mapping, core, ports))


def with_sets(
    found: PortLimit, names: Sequence[PortName], latency_of: Callable[[tuple[PortName, ...]], float]
) -> PortLimit:
    """Limit with the smallest set of ports that helps, where none helps alone; `latency_of` is told sets."""
    if found.is_limited_by_one:
        return found
    latency, known = found.latency_cycles, dict[tuple[PortName, ...], float]()

    def saved(ports: tuple[PortName, ...]) -> float:
        if ports not in known:
            known[ports] = latency - latency_of(ports)
        return known[ports]

    made = smallest_set(names, saved, max(LEAST_SHARE * latency, _ANY_CYCLE))
    if made is None and found.limiting is None:
        made = smallest_set(names, saved, _ANY_CYCLE)
    return found if made is None else replace(found, together=Widened(made[0], latency - made[1]))


def wider_ports(mapping: RecordedMapping, core: Core) -> PortLimit:
    """Limit for each port alone, also where none helps."""
    singles = [Widened((name,), wider_cycles(mapping, core, (name,))) for name in port_names(core)]
    return PortLimit(mapping.record.latency_cycles, _best_first(singles))


def limit_of_network(
    limits: Sequence[PortLimit], core: Core, mappings: Sequence[tuple[RecordedMapping, int]] = ()
) -> PortLimit:
    """What layers that run one after another take, with each port of the core twice as wide for all of them.

    With their mappings, each so many times, also with several ports twice as wide where none helps alone.
    """
    found = []
    for name in port_names(core):
        found.append(Widened((name,), math.fsum(limit.with_wider(name) for limit in limits)))
    made = PortLimit(math.fsum(limit.latency_cycles for limit in limits), _best_first(found))
    if not mappings:
        return made
    counts: dict[int, int] = {}
    for one, count in mappings:
        counts[id(one)] = counts.get(id(one), 0) + count
    distinct = {id(one): one for one, _ in mappings}

    def latency_of(ports: tuple[PortName, ...]) -> float:
        return math.fsum(wider_cycles(distinct[key], core, ports) * count for key, count in counts.items())

    return with_sets(made, port_names(core), latency_of)


def port_names(core: Core) -> list[PortName]:
    """The ports of a core that serve something, in the order of the hardware file."""
    services = port_services(core)
    return [PortName(core.memories[k].name, core.memories[k].ports[p].name) for k, p, _ in services]


def with_wider_ports(core: Core, ports: Iterable[PortName], factor: int = WIDER) -> Core:
    """The core with some ports wider; nothing else of it changes, not even the energy of a word."""
    wider = set(ports)
    memories = []
    for memory in core.memories:
        widths = [
            replace(port, bandwidth_max_bits=port.bandwidth_max_bits * factor)
            if (memory.name, port.name) in wider
            else port
            for port in memory.ports
        ]
        memories.append(replace(memory, ports=tuple(widths)))
    return replace(core, memories=tuple(memories))


def wider_cycles(mapping: RecordedMapping, core: Core, ports: tuple[PortName, ...]) -> float:
    """What a mapping takes with these ports wider; infinite where its cycles are beyond what can be counted."""
    try:
        return mapping.on(with_wider_ports(core, ports)).latency_cycles
    except MappingError:  # no gain
        return math.inf


def _best_first(found: Iterable[Widened]) -> tuple[Widened, ...]:
    return tuple(sorted(found, key=lambda one: one.latency_cycles))


BITS_A_BYTE = 8


class RooflinePoint(NamedTuple):
    """A layer below the roof of a port."""

    layer: str
    operations_a_byte: float
    """Operations for each byte that the port moves, words counted as whole ones."""
    operations_a_cycle: float
    """What the layer reaches."""


@dataclass(frozen=True)
class PortRoof:
    """The roof of a port, and the layers that use it."""

    port: PortName
    bytes_a_cycle: float
    points: tuple[RooflinePoint, ...]


@dataclass(frozen=True)
class Roofline:
    """The roofs of a core: of its array, and of each port of a memory that serves the whole array."""

    operations_a_cycle: float
    """Operations of the whole array in a cycle."""
    ports: tuple[PortRoof, ...]

    def of_layer(self, layer: str) -> "Roofline":
        """Roofline with one layer alone."""
        ports = (replace(roof, points=tuple(one for one in roof.points if one.layer == layer)) for roof in self.ports)
        return replace(self, ports=tuple(ports))

    def as_object(self) -> dict[str, Any]:
        """Roofline as plain data."""
        ports = [
            {
                "memory": roof.port.memory,
                "port": roof.port.port,
                "bytes_a_cycle": roof.bytes_a_cycle,
                "layers": [point._asdict() for point in roof.points],
            }
            for roof in self.ports
        ]
        return {"operations_a_cycle": self.operations_a_cycle, "ports": ports}


def roofline(placed: Sequence[PlacedLayer], core: Core) -> Roofline:
    """The roofs of a core with the layers of a run; ports in the order of the hardware file."""
    array = core.operational_array
    peak = array.unit_count / array_model(array).cycles_per_operation(array)
    roofs = []
    for k, p, _ in port_services(core):
        memory = core.memories[k]
        if set(memory.served_dimensions) >= set(array.size_of):
            wide = memory.ports[p].bandwidth_max_bits / BITS_A_BYTE
            points = tuple(point for layer in placed for point in _points(layer, memory, p, wide))
            roofs.append(PortRoof(PortName(memory.name, memory.ports[p].name), wide, points))
    return Roofline(peak, tuple(roofs))


def _points(layer: PlacedLayer, memory: Memory, port: int, bytes_a_word: float) -> list[RooflinePoint]:
    """The point of a layer; none where it moves nothing over the port."""
    record = layer.record
    words = 0.0
    for operand, names in record.memory_levels.items():
        for level, name in enumerate(names):
            for direction, count in record.word_accesses[operand][level].items():
                served = memory.port_of.get((record.memory_operand_links[operand], direction))
                words += count if name == memory.name and served == port else 0
    if not words:
        return []
    work = record.layer.work
    return [RooflinePoint(layer.name, work / (words * bytes_a_word), work / record.latency_cycles)]
