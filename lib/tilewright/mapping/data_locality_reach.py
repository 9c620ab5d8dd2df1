"""How far each operand of a layer reaches up the memories of a core, and the core that is left then (zigzag-dse 3.9.1:
data locality)."""

from dataclasses import dataclass, replace

from tilewright.hardware.core import Core, Memory
from tilewright.workload.layer import OUTPUT, Layer
from tilewright.workload.operand_roles import activation_operand, weight_operand

Links = tuple[tuple[str, str], ...]
"""(layer operand, memory operand)."""


@dataclass(frozen=True)
class LayerRoles:
    """The memory operands of a layer by role."""

    activation: str
    output: str
    weight: str | None
    """None for a layer with one input."""


@dataclass(frozen=True)
class MemoryReach:
    """The outermost memory, by index into `Core.memories`, that each role of a layer uses: the layer's data come from
    there, or end there, because that is where they are kept before and after it."""

    layer: str
    activation: int
    output: int
    weight: int | None
    """None for a layer with one input."""
    reserved_bits: tuple[tuple[int, int], ...] = ()
    """(memory, bits of it that other tensors occupy while the layer runs); the reference profile reserves nothing."""


def layer_roles(layer: Layer, links: Links) -> LayerRoles:
    """The memory operands of the roles of a layer."""
    link = dict(links)
    weight = weight_operand(layer)
    return LayerRoles(link[activation_operand(layer)], link[OUTPUT], None if weight is None else link[weight])


def top_memory(core: Core, memory_operand: str) -> int:
    """The last memory that holds an operand; -1 if none does."""
    return max((k for k, memory in enumerate(core.memories) if memory_operand in memory.operands), default=-1)


def remove_unused_memories(core: Core, layer: Layer, links: Links, reach: MemoryReach) -> Core:
    """The core as a layer sees it: each operand up to its reach, and what other tensors occupy taken off.

    Operands in a memory are ordered activation, weight, output, as in the reference; memories and ports that serve
    nothing any more are gone. The name stays: it is the same core.
    """
    roles = layer_roles(layer, links)
    limits = {roles.activation: reach.activation}
    if roles.weight is not None and reach.weight is not None:
        limits[roles.weight] = reach.weight
    limits[roles.output] = reach.output
    reserved = dict(reach.reserved_bits)
    memories = (
        _without_unused(memory, tuple(o for o in limits if o in memory.operands and k <= limits[o]), reserved.get(k, 0))
        for k, memory in enumerate(core.memories)
    )
    return replace(core, memories=tuple(memory for memory in memories if memory.operands))


def _without_unused(memory: Memory, operands: tuple[str, ...], reserved_bits: int) -> Memory:
    ports = (
        replace(port, allocation=tuple(pair for pair in port.allocation if pair[0] in operands))
        for port in memory.ports
    )
    return replace(
        memory,
        size_bits=memory.size_bits - reserved_bits,
        operands=operands,
        ports=tuple(port for port in ports if port.allocation),
    )
