"""Rooflines of a run: what the array and the ports of memories allow, and what each layer reaches (Williams, Waterman,
Patterson: Roofline, Communications of the ACM 52(4), 2009; docs/explain.md).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from tilewright.cost.problem import port_services
from tilewright.hardware.array_model import array_model
from tilewright.hardware.core import Core, Memory
from tilewright.report.port_limits import PortName
from tilewright.report.records import PlacedLayer

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
