"""How many bits of weights the memories of an accelerator take: of the cores that may run a layer, and in all."""

from collections.abc import Mapping
from fractions import Fraction

from tilewright.fusion.weights import weight_operand
from tilewright.hardware.core import Memory
from tilewright.hardware.system import MultiCoreAccelerator
from tilewright.mapping.constraints import MappingConstraints
from tilewright.mapping.runnable import core_choice
from tilewright.workload.graph import Workload, WorkloadNode
from tilewright.workload.layer import Layer

_WEIGHTS = "I2"
"""Memory operand of weights where the mapping file says nothing."""


def weight_capacity_bits(
    node: WorkloadNode, entry: MappingConstraints, accelerator: MultiCoreAccelerator, share: float = 1.0
) -> int | None:
    """Bits that weights may take on whichever core runs a layer, rounded down.

    `share` of the smallest top memory that holds weights, of the cores that may run the layer; None if there is none.
    """
    found = smallest_weight_memory(node, entry, accelerator)
    return None if found is None else int(Fraction(repr(share)) * found[1].size_bits)


def smallest_weight_memory(
    node: WorkloadNode, entry: MappingConstraints, accelerator: MultiCoreAccelerator
) -> tuple[int, Memory] | None:
    """(core id, memory): the smallest top memory for weights of the cores that may run a layer, None without one."""
    assert node.layer is not None
    memory_operand = weight_memory_operand(node.layer, entry)
    choice = core_choice(node, entry, accelerator)
    found = [
        (core_id, instance.memory)
        for instance in accelerator.memory_instances
        for core_id, operands in instance.users
        if core_id in choice.core_ids and memory_operand in operands
    ]
    return min(found, key=lambda pair: (pair[1].size_bits, pair[0]), default=None)


def total_weight_capacity_bits(
    workload: Workload, entry_of: Mapping[int, MappingConstraints], accelerator: MultiCoreAccelerator
) -> int:
    """Bits of all top memories for weights but those of the off-chip core; a memory that cores share counts once.

    `entry_of` has the entry of the mapping file for each layer by node id.
    """
    used = {
        _memory_operand(operand, entry_of[node.node_id])
        for node in workload.nodes
        if node.layer is not None and (operand := weight_operand(node.layer)) is not None
    }
    return sum(
        instance.memory.size_bits
        for instance in accelerator.memory_instances
        if any(core_id != accelerator.offchip_core_id and used & set(operands) for core_id, operands in instance.users)
    )


def weight_memory_operand(layer: Layer, entry: MappingConstraints) -> str:
    """The memory operand of a layer's weights."""
    return _memory_operand(weight_operand(layer) or "", entry)


def _memory_operand(operand: str, entry: MappingConstraints) -> str:
    return dict(entry.memory_operand_links).get(operand, _WEIGHTS)
