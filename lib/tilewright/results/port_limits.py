"""Ports of memories that limit a layer, and rooflines of array and ports (docs/bottlenecks/explain.md#explain-a-run).

For each port, the cost model computes the latency of the layer's mapping on a core with this port twice as wide. If no
single port saves enough cycles, the smallest set of ports that saves enough is found in the same way. The numbers are
exact results of the cost model, not estimates.

Rooflines are those of Williams, Waterman, Patterson: Roofline, Communications of the ACM 52(4), 2009.
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
"""Factor by which the width of a port is multiplied to find out whether the port limits the latency."""
UNLIMITED = 2**20
"""Factor by which the width of every port is multiplied, so that each transfer takes one cycle."""
LEAST_SHARE = 0.01
"""Smallest saving, as a share of the latency, with which a port counts as limiting
(docs/bottlenecks/explain.md#explain-a-run).
"""
WIDER_SAVES = "cycles that twice the width saves"
_ANY_CYCLE = 1e-9
"""Threshold in cycles for a saving; it is smaller than any real saving."""


class PortName(NamedTuple):
    """Name of a port of a memory."""

    memory: str
    port: str

    def __str__(self) -> str:
        return f"{self.memory} {self.port}"


class Widened(NamedTuple):
    """Latency of a mapping if some ports are WIDER times as wide and all else is unchanged."""

    ports: tuple[PortName, ...]
    latency_cycles: float

    @property
    def name(self) -> str:
        """Text with the names of the ports."""
        return " and ".join(map(str, self.ports))


@dataclass(frozen=True)
class PortLimit:
    """Latencies of a layer or of a whole network: for each port, the latency if only this port is wider."""

    latency_cycles: float
    """Latency without changes, in cycles."""
    ports: tuple[Widened, ...]
    """Latency for each port if only this port is wider, the lowest latency first. Ports of equal latency are in the
    order of the hardware file.
    """
    together: Widened | None = None
    """Smallest set of two or more ports that saves at least LEAST_SHARE of the latency if all its ports are WIDER times
    as wide. Among sets of equal size, the set that saves most is chosen. If no tried set saves LEAST_SHARE, and no
    single port saves any cycle, the field has the smallest set that saves some cycles.

    None if a single port saves LEAST_SHARE, if no such set was found, or if no sets were tried.
    """
    unlimited_cycles: float | None = None
    """Latency if all ports are UNLIMITED times as wide. None if doubled widths already save LEAST_SHARE of the latency,
    or if this latency was not computed.
    """

    @property
    def limiting(self) -> Widened | None:
        """Port whose double width saves most cycles; None if no single port saves a cycle."""
        return self._helping(0)

    @property
    def runner_up(self) -> Widened | None:
        """Port with the second largest saving from a double width, in cycles. None if this port saves no cycle."""
        return self._helping(1)

    @property
    def ties(self) -> tuple[Widened, ...]:
        """Ports whose double width saves most cycles: first `limiting`, then all other ports that save equally many
        cycles. () if no single port saves a cycle.
        """
        best = self.limiting
        return () if best is None else tuple(one for one in self.ports if one.latency_cycles == best.latency_cycles)

    def gain_cycles(self, widened: Widened) -> float:
        """Cycles that a wider port, or a set of wider ports, saves; negative if the latency increases."""
        return self.latency_cycles - widened.latency_cycles

    @property
    def named(self) -> Widened | None:
        """Port, or set of ports, that reports present as the limit.

        The result is the port `limiting` if this port saves LEAST_SHARE of the latency. Otherwise, the result is the
        set `together` if this set saves LEAST_SHARE. If neither of them saves this share, the result is `limiting`; it
        is `together` if there is no `limiting`. None if neither exists.
        """
        return next(
            (one for one in (self.limiting, self.together) if self._is_enough(one)), self.limiting or self.together
        )

    @property
    def is_limited(self) -> bool:
        """True if `named` saves at least LEAST_SHARE of the latency."""
        return self._is_enough(self.named)

    @property
    def is_limited_by_one(self) -> bool:
        """True if the port `limiting` alone saves at least LEAST_SHARE of the latency."""
        return self._is_enough(self.limiting)

    @property
    def is_beyond_width(self) -> bool:
        """True if all ports together, each UNLIMITED times as wide, are known to save less than LEAST_SHARE of the
        latency."""
        most = self.unlimited_cycles
        if most is None or math.isinf(most):
            return False
        return not saves_enough(self.latency_cycles - most, self.latency_cycles)

    @property
    def verdict(self) -> Verdict:
        """Verdict on the ports: it names the port that saves most cycles if it is widened. The verdict compares all
        single ports. If `named` is a set of ports, this set is compared, too.
        """
        found = self.ports if self.named is None or len(self.named.ports) == 1 else (self.named, *self.ports)
        rivals = [(one.name, self.gain_cycles(one)) for one in found]
        return Verdict.of(WIDER_SAVES, "cycles", self.latency_cycles, rivals, "-")

    def with_wider(self, name: PortName) -> float:
        """Latency in cycles if only the port `name` is WIDER times as wide."""
        return next(one.latency_cycles for one in self.ports if one.ports == (name,))

    def times(self, count: int) -> "PortLimit":
        """Latencies of `count` equal layers that run one after another."""
        if count == 1:
            return self
        ports = tuple(one._replace(latency_cycles=one.latency_cycles * count) for one in self.ports)
        both = self.together and self.together._replace(latency_cycles=self.together.latency_cycles * count)
        most = None if self.unlimited_cycles is None else self.unlimited_cycles * count
        return PortLimit(self.latency_cycles * count, ports, both, most)

    def _is_enough(self, widened: Widened | None) -> bool:
        return widened is not None and saves_enough(self.gain_cycles(widened), self.latency_cycles)

    def _helping(self, place: int) -> Widened | None:
        found = self.ports[place] if place < len(self.ports) else None
        return found if found is not None and found.latency_cycles < self.latency_cycles else None


def saves_enough(gain_cycles: float, latency_cycles: float) -> bool:
    """True if a saving is large enough to be reported: at least LEAST_SHARE of the latency."""
    return gain_cycles > 0 and gain_cycles >= LEAST_SHARE * latency_cycles


def port_limit(mapping: RecordedMapping, core: Core) -> PortLimit:
    """Latencies of a layer's mapping on `core`: for each port, the latency if only this port is twice as wide. If no
    single port saves LEAST_SHARE of the latency, the result also has the smallest set of ports that saves this share
    (`PortLimit.together`). If no set saves this share, the result also has the latency with ports of any width
    (`PortLimit.unlimited_cycles`).
    """
    names = port_names(core)
    found = with_sets(wider_ports(mapping, core), names, lambda ports: wider_cycles(mapping, core, ports))
    return found if found.is_limited else replace(found, unlimited_cycles=wider_cycles(mapping, core, names, UNLIMITED))


def with_sets(
    found: PortLimit, names: Sequence[PortName], latency_of: Callable[[tuple[PortName, ...]], float]
) -> PortLimit:
    """Copy of the port limit `found` with a set of ports, if no single port saves LEAST_SHARE of the latency. The set
    is the smallest one that saves this share. If no set saves this share, and no single port saves any cycle, the
    smallest set that saves some cycles is taken.

    `latency_of` returns the latency in cycles if all ports of a set are WIDER times as wide.
    """
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
    """Latency without changes, and for each port the latency if only this port is twice as wide. Sets of several ports
    are not tried.
    """
    singles = [Widened((name,), wider_cycles(mapping, core, (name,))) for name in port_names(core)]
    return PortLimit(mapping.record.latency_cycles, _best_first(singles))


def limit_of_network(
    limits: Sequence[PortLimit], core: Core, mappings: Sequence[tuple[RecordedMapping, int]] = ()
) -> PortLimit:
    """Latencies of layers that run one after another: for each port of the core, the latency of all layers together if
    only this port is twice as wide. `limits` has the same latencies for each single layer.

    `mappings` are pairs (mapping, number of layers that have it). If `mappings` are given and no single port saves
    LEAST_SHARE of the latency, the result also has the smallest set of ports that saves this share.
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
    """Ports of a core that serve at least one operand, in the order of the hardware file."""
    services = port_services(core)
    return [PortName(core.memories[k].name, core.memories[k].ports[p].name) for k, p, _ in services]


def with_wider_ports(core: Core, ports: Iterable[PortName], factor: int = WIDER) -> Core:
    """Core with some ports `factor` times as wide. All else is unchanged, including the energy per word access."""
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


def wider_cycles(mapping: RecordedMapping, core: Core, ports: Sequence[PortName], factor: int = WIDER) -> float:
    """Latency of a mapping in cycles if the ports `ports` are `factor` times as wide; infinite if the cost model
    refuses the mapping.
    """
    try:
        return mapping.latency_cycles_on(with_wider_ports(core, ports, factor))
    except MappingError:  # no gain
        return math.inf


def _best_first(found: Iterable[Widened]) -> tuple[Widened, ...]:
    return tuple(sorted(found, key=lambda one: one.latency_cycles))


BITS_A_BYTE = 8


class RooflinePoint(NamedTuple):
    """Point of a layer in the roofline plot of a port."""

    layer: str
    operations_a_byte: float
    """Operations per byte that the port moves; a MAC is one operation. Unused bits of a word count as moved."""
    operations_a_cycle: float
    """Operations per cycle that the layer achieves."""


@dataclass(frozen=True)
class PortRoof:
    """Roof of a port, with the layers that use the port."""

    port: PortName
    bytes_a_cycle: float
    points: tuple[RooflinePoint, ...]


@dataclass(frozen=True)
class Roofline:
    """Roofline of a core: the roof of its array, and the roofs of its memory ports. Ports of memories that do not serve
    the whole array are left out.
    """

    operations_a_cycle: float
    """Operations of the whole array per cycle: the roof of the array."""
    ports: tuple[PortRoof, ...]

    def of_layer(self, layer: str) -> "Roofline":
        """Roofline with only one layer."""
        ports = (replace(roof, points=tuple(one for one in roof.points if one.layer == layer)) for roof in self.ports)
        return replace(self, ports=tuple(ports))

    def as_object(self) -> dict[str, Any]:
        """Roofline as a JSON object."""
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
    """Roofs of a core, with the layers of a run as points. Ports are in the order of the hardware file."""
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
    """List with the point of a layer in the roofline plot of a port; [] if the layer moves no data over the port.
    `port` is the index of the port in `memory`, and `bytes_a_word` is the width of the port in bytes.
    """
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
