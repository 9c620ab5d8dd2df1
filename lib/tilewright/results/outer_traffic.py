"""Bits that move between the outermost memory of an operand and the next inner level, or the array."""

from collections.abc import Sequence
from typing import NamedTuple

from tilewright.base.profile import profile_by_name
from tilewright.hardware.core import Core
from tilewright.results.checks import needed_bits
from tilewright.results.records import PlacedLayer
from tilewright.workload.graph import Workload
from tilewright.workload.relevancy import operand_elements


class Traffic(NamedTuple):
    """Bits of an operand that move between its outermost memory and the next inner level, or the array, in a layer."""

    layer: str
    memory: str
    operand: str
    moved_bits: float
    """Bits of the accessed words, which need not be full: words that are read for inputs, and words that are written
    for outputs or read for partial sums.
    """
    needed_bits: float
    """Bits of the data of the operand, which move at least once."""
    is_direct: bool
    """True if no inner memory holds the operand, so that the array accesses the outermost memory for each operation."""


def traffic_of(placed: Sequence[PlacedLayer], core: Core, network: Workload) -> tuple[Traffic, ...]:
    """Traffic of each layer and operand."""
    layers = {node.layer.name: node.layer for node in network.nodes if node.layer is not None}
    memories = {memory.name: memory for memory in core.memories}
    found = []
    for placed_layer in placed:
        record, repeats = placed_layer.of_one, placed_layer.repeats
        for operand, names in record.memory_levels.items():
            memory, link = memories[names[-1]], record.memory_operand_links[operand]
            words = record.word_accesses[operand][len(names) - 1]
            ports = {way: memory.port_of.get((link, way)) for way in (("fl", "tl") if operand == "O" else ("tl",))}
            moved = sum(
                words[way] * memory.ports[port].bandwidth_max_bits for way, port in ports.items() if port is not None
            )
            elements = operand_elements(layers[record.layer.name], operand, profile_by_name(record.model))
            needed = needed_bits(record, operand, memory, elements)
            bits = moved * repeats, float(needed * repeats)
            found.append(Traffic(placed_layer.name, memory.name, operand, *bits, is_direct=len(names) == 1))
    return tuple(found)
