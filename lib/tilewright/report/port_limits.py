"""What limits a layer: which port of a memory, and what the array and the ports of memories allow (docs/explain.md).

Of a port: what the mapping of a layer takes with it twice as wide, for one port after the other. Each number is that
of the cost model with the changed core, not an estimate, so that no other port helps more. Rooflines are those of
Williams, Waterman, Patterson: Roofline, Communications of the ACM 52(4), 2009.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, NamedTuple

from tilewright.cost.problem import port_services
from tilewright.errors import MappingError
from tilewright.hardware.array_model import array_model
from tilewright.hardware.core import Core, Memory
from tilewright.report.recorded_mappings import RecordedMapping
from tilewright.report.records import PlacedLayer

WIDER = 2
"""How much wider a port is made to see whether it limits."""
LEAST_SHARE = 0.01
"""A port limits where twice its width saves at least this share of the latency (docs/explain.md)."""


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
    """As it is."""
    ports: tuple[Widened, ...]
    """Of each port alone, the least latency first; ports of equal latency in the order of the hardware file."""
    together: Widened | None = None
    """Where no port alone helps: of two ports, or else of all ports at once, the best; None where that does not help
    either."""

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
    def is_limited(self) -> bool:
        """Whether the best port, or several together, would save enough that it is said to limit."""
        best = self.limiting or self.together
        return best is not None and saves_enough(self.gain_cycles(best), self.latency_cycles)

    def with_wider(self, name: PortName) -> float:
        """The latency with this port wider."""
        return next(one.latency_cycles for one in self.ports if one.ports == (name,))

    def times(self, count: int) -> "PortLimit":
        """Of `count` equal layers that run one after another."""
        if count == 1:
            return self
        ports = tuple(one._replace(latency_cycles=one.latency_cycles * count) for one in self.ports)
        both = self.together and self.together._replace(latency_cycles=self.together.latency_cycles * count)
        return PortLimit(self.latency_cycles * count, ports, both)

    def _helping(self, place: int) -> Widened | None:
        found = self.ports[place] if place < len(self.ports) else None
        return found if found is not None and found.latency_cycles < self.latency_cycles else None


def saves_enough(gain_cycles: float, latency_cycles: float) -> bool:
    """Whether that is worth saying that something limits: LEAST_SHARE of the latency."""
    return gain_cycles > 0 and gain_cycles >= LEAST_SHARE * latency_cycles


def port_limit(mapping: RecordedMapping, core: Core) -> PortLimit:
    """What the mapping of a layer takes on `core`, with each port twice as wide."""
    found, names = wider_ports(mapping, core), port_names(core)
    latency = found.latency_cycles
    if found.limiting is not None:
        return found
    wider = _best_first(_widened(mapping, core, combinations(names, 2)))
    if not wider or wider[0].latency_cycles >= latency:
        wider = tuple(_widened(mapping, core, [tuple(names)]))
    helps = bool(wider) and wider[0].latency_cycles < latency
    return replace(found, together=wider[0] if helps else None)


def wider_ports(mapping: RecordedMapping, core: Core) -> PortLimit:
    """The same for each port alone, also where none helps."""
    singles = ((name,) for name in port_names(core))
    return PortLimit(mapping.record.latency_cycles, _best_first(_widened(mapping, core, singles)))


def limit_of_network(limits: Sequence[PortLimit], core: Core) -> PortLimit:
    """What layers that run one after another take, with each port of the core twice as wide for all of them."""
    found = []
    for name in port_names(core):
        found.append(Widened((name,), math.fsum(limit.with_wider(name) for limit in limits)))
    return PortLimit(math.fsum(limit.latency_cycles for limit in limits), _best_first(found))


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


def _widened(mapping: RecordedMapping, core: Core, choices: Iterable[tuple[PortName, ...]]) -> Iterator[Widened]:
    for ports in choices:
        try:
            yield Widened(ports, mapping.on(with_wider_ports(core, ports)).latency_cycles)
        except MappingError:  # cycles beyond what can be counted, no gain
            yield Widened(ports, math.inf)


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
    """Of the whole array."""
    ports: tuple[PortRoof, ...]

    def of_layer(self, layer: str) -> "Roofline":
        """The same with one layer alone."""
        ports = (replace(roof, points=tuple(one for one in roof.points if one.layer == layer)) for roof in self.ports)
        return replace(self, ports=tuple(ports))

    def as_object(self) -> dict[str, Any]:
        """As plain data."""
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
