"""Which cores of an accelerator may run a layer, by what the files say, and why the others may not.

What a core can run is said by the accelerator or its core file (`operator_types`). Where nothing is said, the mapping
file decides: a core that it names runs the layer. Where it names none, the role decides: a compute core runs anything,
a pooling core poolings, a vector unit (simd) what needs one.
"""

from dataclasses import dataclass

from tilewright.hardware.core import Core
from tilewright.hardware.system import MEMORY, OFFCHIP, POOLING, SIMD, CorePlace, MultiCoreAccelerator
from tilewright.hardware.top_memories import top_memories
from tilewright.mapping.constraints import MappingConstraints
from tilewright.operator_groups import ALL, MAC, VECTOR, is_listed
from tilewright.workload.graph import VECTOR_UNIT, WorkloadNode
from tilewright.workload.layer import Layer

COMPUTES_NOTHING = ", which computes nothing"
"""How the reasons end of cores that only store."""
_TYPES_OF_ROLE = {POOLING: ("pooling",), SIMD: (VECTOR,)}


@dataclass(frozen=True)
class CoreChoice:
    """The cores that may run a layer."""

    core_ids: tuple[int, ...]
    """In the order of the mapping entry, or rising if it names none."""
    reasons: tuple[tuple[int, str], ...]
    """(core id, why it may not) of the others that the entry names, or of all others on chip."""


def core_choice(node: WorkloadNode, entry: MappingConstraints, accelerator: MultiCoreAccelerator) -> CoreChoice:
    """Who may run the layer of a node under its mapping entry. Ids that no core has are left out."""
    named = [core_id for core_id in entry.core_allocation if core_id in accelerator.place_of]
    candidates = named if entry.core_allocation else accelerator.onchip_core_ids
    found = {core_id: _reason(node, entry, accelerator, core_id) for core_id in candidates}
    allowed = tuple(core_id for core_id, reason in found.items() if not reason)
    return CoreChoice(allowed, tuple((core_id, reason) for core_id, reason in found.items() if reason))


def runs_operator(place: CorePlace, node: WorkloadNode, is_named: bool) -> bool:
    """Whether a core in its place runs the operator of a node; `is_named` by the mapping entry."""
    return _listed(_operator_types(place, is_named), node)


def _operator_types(place: CorePlace, is_named: bool) -> tuple[str, ...]:
    """What a core is said to run, else what it runs by being named or by its role."""
    if place.operator_types is not None:
        return place.operator_types
    return (ALL,) if is_named else _TYPES_OF_ROLE.get(place.role, (ALL,))


def _listed(listed: tuple[str, ...], node: WorkloadNode) -> bool:
    """By the unit that the layer needs, by its operator type, or by that of the operator of which it is a part."""
    if ALL in listed or (VECTOR if node.unit == VECTOR_UNIT else MAC) in listed:
        return True
    return is_listed(node.operator_type, listed) or is_listed(node.origin_type, listed)


def _reason(node: WorkloadNode, entry: MappingConstraints, accelerator: MultiCoreAccelerator, core_id: int) -> str:
    """Why a core may not run a layer; '' if it may."""
    place = accelerator.place_of[core_id]
    if place.role == OFFCHIP:
        return f"is the off-chip core{COMPUTES_NOTHING}"
    if place.role == MEMORY:
        return f"is a memory{COMPUTES_NOTHING}"
    if not runs_operator(place, node, core_id in entry.core_allocation):
        listed = _operator_types(place, core_id in entry.core_allocation)
        return f"runs {', '.join(listed)}, not {node.origin_type or node.operator_type}"
    assert node.layer is not None
    lacking = _operands_without_memory(node.layer, entry, accelerator.core_of[core_id])
    if lacking:
        return f"has no memory for {', '.join(lacking)}"
    return ""


def _operands_without_memory(layer: Layer, entry: MappingConstraints, core: Core) -> list[str]:
    """Memory operands that the layer uses and no memory of the core holds."""
    links = dict(entry.memory_operand_links)
    held = {operand for _, operands in top_memories(core) for operand in operands}
    used = [links[operand] for operand in layer.operands if operand in links]
    return [operand for operand in dict.fromkeys(used) if operand not in held]
