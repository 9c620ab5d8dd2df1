"""Keeping data in lower memories between layers instead of sending them through the top memory.

Two steps: `find_memory_reach` decides for a whole network how far each operand of each layer goes up;
`remove_unused_memories` gives the smaller core on which a layer is then mapped.
"""

from collections.abc import Callable

from tilewright.errors import MappingError
from tilewright.hardware.core import Core
from tilewright.mapping.constraints import Mapping
from tilewright.mapping.data_locality_live import live_reach
from tilewright.mapping.data_locality_reach import MemoryReach, remove_unused_memories
from tilewright.profile import REFERENCE, ModelProfile
from tilewright.registry import Registry
from tilewright.workload.graph import Workload

__all__ = ["MemoryReach", "find_memory_reach", "remove_unused_memories"]

ReachRule = Callable[[Workload, Core, Mapping, ModelProfile, bool], tuple[MemoryReach, ...]]
"""The reach of each layer; the last argument is `data_always_from_top_memory`."""
OTHER_RULES: Registry[ReachRule] = Registry(__name__)
"""Model profile -> its rules, where they are not those of `data_locality_live`."""


def find_memory_reach(
    workload: Workload,
    core: Core,
    mapping: Mapping,
    profile: ModelProfile,
    data_always_from_top_memory: bool = False,
    *,
    even_mapping: bool = False,
) -> tuple[MemoryReach, ...]:
    """The reach of each layer, in order of execution (`Workload.layers_in_order`).

    With `data_always_from_top_memory` inputs of the network come from the top memory and its outputs go there; the
    reference has this option but it changes nothing there (`effective_top_memory_option`). `even_mapping`: layers will
    be mapped with operands that share level boundaries.

    Raises MappingError when an operand of a layer has no memory.
    """
    _check_memories(workload, core, mapping)
    if not profile.live_tensor_capacity:
        return OTHER_RULES[REFERENCE.name](workload, core, mapping, profile, data_always_from_top_memory)
    return live_reach(
        workload,
        core,
        mapping,
        profile,
        data_always_from_top_memory=data_always_from_top_memory,
        even_mapping=even_mapping,
    )


def _check_memories(workload: Workload, core: Core, mapping: Mapping) -> None:
    held = {operand for memory in core.memories for operand in memory.operands}
    missing = [
        f"core '{core.name}' has no memory for operand {operand} ({memory_operand}) of layer '{node.name}'"
        for node in workload.layers_in_order
        if node.layer is not None
        for operand, memory_operand in mapping.constraints_for(node.layer).memory_operand_links
        if operand in node.layer.operands and memory_operand not in held
    ]
    if missing:
        raise MappingError("\n".join(missing))
