"""Topmost memory that each operand of a layer uses, and the smaller core that remains without the memories above (data
locality of zigzag-dse 3.9.1).
"""

from dataclasses import dataclass, replace

from tilewright.base.errors import MappingError
from tilewright.hardware.attributes import power_terms
from tilewright.hardware.core import Core, Memory
from tilewright.hardware.static_power import memory_power_mw
from tilewright.mapping.constraints import GivenReach, MappingConstraints
from tilewright.workload.layer import OUTPUT, Layer, activation_operand, weight_operand

Links = tuple[tuple[str, str], ...]
"""Pairs (layer operand, memory operand)."""


@dataclass(frozen=True)
class LayerRoles:
    """Memory operands of the activation, the output and the weights of a layer."""

    activation: str
    output: str
    weight: str | None
    """Memory operand of the weights; None for a layer with one input."""


@dataclass(frozen=True)
class MemoryReach:
    """Outermost memories that the activation, the output and the weights of a layer use, as indices into
    `Core.memories`.

    The activation and the weights are in these memories before the layer runs. The output is in its memory after the
    layer has run.
    """

    layer: str
    activation: int
    output: int
    weight: int | None
    """Outermost memory of the weights; None for a layer with one input."""
    reserved_bits: tuple[tuple[int, int], ...] = ()
    """Pairs (memory, bits that other tensors occupy while the layer runs). The reference profile reserves nothing."""


def layer_roles(layer: Layer, links: Links) -> LayerRoles:
    """Memory operands of the activation, the output and the weights of a layer."""
    link = dict(links)
    weight = weight_operand(layer)
    return LayerRoles(link[activation_operand(layer)], link[OUTPUT], None if weight is None else link[weight])


def top_memory(core: Core, memory_operand: str) -> int:
    """Index of the topmost memory that holds a memory operand; -1 if no memory holds it."""
    return max((k for k, memory in enumerate(core.memories) if memory_operand in memory.operands), default=-1)


def remove_unused_memories(core: Core, layer: Layer, links: Links, reach: MemoryReach) -> Core:
    """Core with only the parts that a layer can use. Each operand uses memories only up to its topmost memory in
    `reach`. The size of each memory is reduced by the bits that other tensors occupy.

    Operands in a memory are ordered activation, weight, output, as in the reference. Memories and ports that no longer
    serve an operand are removed. The removed memories still draw static power. The name of the core stays the same.
    """
    reserved, left = dict(reach.reserved_bits), operands_left(core, layer, links, reach)
    memories = (
        _with_operands(memory, operands, reserved.get(k, 0))
        for k, (memory, operands) in enumerate(zip(core.memories, left, strict=True))
        if operands
    )
    gone = [k for k, operands in enumerate(left) if not operands]
    before = dict(core.unseen_power_mw)
    unseen = {term: before.get(term, 0.0) + sum(memory_power_mw(core, k, term) for k in gone) for term in power_terms()}
    power = tuple((term, power_mw) for term, power_mw in unseen.items() if power_mw)
    return replace(core, memories=tuple(memories), unseen_power_mw=power)


def operands_left(core: Core, layer: Layer, links: Links, reach: MemoryReach) -> tuple[tuple[str, ...], ...]:
    """Memory operands that still use each memory, as one tuple per memory. Each operand of the layer uses memories only
    up to its topmost memory in `reach`. Operands that the layer does not have are left out."""
    roles = layer_roles(layer, links)
    limits = {roles.activation: reach.activation}
    if roles.weight is not None and reach.weight is not None:
        limits[roles.weight] = reach.weight
    limits[roles.output] = reach.output
    return tuple(
        tuple([o for o in limits if o in memory.operands and k <= limits[o]]) for k, memory in enumerate(core.memories)
    )


def ports_left(memory: Memory, operands: tuple[str, ...]) -> list[int]:
    """Indices of the ports of a memory that serve at least one of `operands`."""
    return [p for p, port in enumerate(memory.ports) if any(owner in operands for owner, _ in port.allocation)]


def _with_operands(memory: Memory, operands: tuple[str, ...], reserved_bits: int) -> Memory:
    ports = (memory.ports[p] for p in ports_left(memory, operands))
    return replace(
        memory,
        size_bits=memory.size_bits - reserved_bits,
        operands=operands,
        ports=tuple(
            replace(port, allocation=tuple(pair for pair in port.allocation if pair[0] in operands)) for port in ports
        ),
    )


def core_for(layer: Layer, core: Core, constraints: MappingConstraints) -> Core:
    """Core with only the parts that a layer can use. The result is the unchanged core if the mapping file does not
    limit the topmost memories of the layer's operands. Raises MappingError if a limit does not fit the core or the
    layer, for example if the core has no memory of this name.
    """
    given = constraints.memory_reach
    if given is None:
        return core
    links = constraints.memory_operand_links
    return remove_unused_memories(core, layer, links, _reach_by_index(core, layer, links, given))


def reach_of_core(core: Core, reduced: Core, layer: Layer, links: Links) -> GivenReach | None:
    """Memory reach (`GivenReach`) for which `core_for` reduces `core` to `reduced`, the smaller core of a layer.
    None if there is no such reach.
    """
    sizes = {memory.name: memory.size_bits for memory in reduced.memories}
    link = dict(links)
    if any(top_memory(reduced, link[operand]) < 0 for operand in layer.operands):
        return None
    reach = GivenReach(
        tuple((operand, reduced.memories[top_memory(reduced, link[operand])].name) for operand in layer.operands),
        tuple(
            (memory.name, taken)
            for memory in core.memories
            if (taken := memory.size_bits - sizes.get(memory.name, memory.size_bits))
        ),
    )
    try:
        made = core_for(layer, core, MappingConstraints("", memory_operand_links=links, memory_reach=reach))
    except MappingError:
        return None
    return reach if made == reduced else None


def _reach_by_index(core: Core, layer: Layer, links: Links, given: GivenReach) -> MemoryReach:
    topmost, place_of = dict(given.topmost), {memory.name: k for k, memory in enumerate(core.memories)}
    faults = [f"{fault.message}: {fault.value}" for fault in reach_faults(core, links, given)]
    faults += [f"no topmost memory for operand {operand}" for operand in layer.operands if operand not in topmost]
    if faults:
        raise MappingError(f"memory_reach of layer '{layer.name}': {'; '.join(faults)}")
    weight = weight_operand(layer)
    return MemoryReach(
        layer.name,
        place_of[topmost[activation_operand(layer)]],
        place_of[topmost[OUTPUT]],
        None if weight is None else place_of[topmost[weight]],
        tuple((place_of[name], bits) for name, bits in given.occupied_bits),
    )


@dataclass(frozen=True)
class ReachFault:
    """Fault of the key `memory_reach` in a mapping file: a part of its value does not fit the core."""

    path: tuple[str, str]
    """Keys within `memory_reach` that lead to the faulty value."""
    message: str
    value: str | int
    is_unknown: bool = False
    """True if the core has no memory with the name that the mapping file gives."""


def reach_faults(core: Core, links: Links, given: GivenReach) -> list[ReachFault]:
    """Faults of `memory_reach`: unknown memories, memories that do not hold their operand, and memories smaller than
    their `occupied_bits` (bits of other tensors that stay in the memory while the layer runs)."""
    memories, link = {memory.name: memory for memory in core.memories}, dict(links)
    named = [("topmost", *pair) for pair in given.topmost]
    named += [("occupied_bits", name, name) for name, _ in given.occupied_bits]
    unknown = f"core {core.name} has no such memory"
    faults = [ReachFault((key, item), unknown, name, True) for key, item, name in named if name not in memories]
    faults += [
        ReachFault(("topmost", operand), f"this memory does not hold memory operand {link[operand]}", name)
        for operand, name in given.topmost
        if name in memories and operand in link and link[operand] not in memories[name].operands
    ]
    return faults + [
        ReachFault(("occupied_bits", name), f"is more than the {memories[name].size_bits} bits of this memory", bits)
        for name, bits in given.occupied_bits
        if name in memories and bits > memories[name].size_bits
    ]
