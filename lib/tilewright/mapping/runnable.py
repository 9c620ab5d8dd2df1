"""Cores that may run a layer by what the files say, why others may not, and the work that is left uncosted.

What a core can run is said by the accelerator or its core file (`operator_types`). Where nothing is said, the mapping
file decides: a core that it names runs the layer. Where it names none, the role decides: a compute core runs anything,
a pooling core poolings, a vector unit (simd) what needs one.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

from tilewright.base.json_values import JsonObject
from tilewright.base.operator_groups import (
    ALL,
    KNOWN_TYPES,
    MAC,
    MAC_TYPES,
    SEQUENCE_TYPES,
    UNMODELLED_WITHOUT_MACS,
    VECTOR,
    VECTOR_UNIT,
    bare_type,
    is_listed,
    work_counts,
)
from tilewright.hardware.core import Core
from tilewright.hardware.system import MEMORY, OFFCHIP, POOLING, SIMD, CorePlace, MultiCoreAccelerator
from tilewright.mapping.constraints import MappingConstraints
from tilewright.workload.graph import Workload, WorkloadNode
from tilewright.workload.layer import OUTPUT, Layer

NOT_RUN = "not run by the core"
WITHOUT_WEIGHTS = ("Pooling", "Add")
"""Operator types that an array which computes in memory does not run: layers of YAML files without weights to keep in
its cells (zigzag-dse 3.9.1)."""
NOT_MODELLED = "not modelled"
"""Why work is not costed: the core does not have the operator among its `operator_types`; the model profile has no
layer for it."""

UNSUPPORTED = "unsupported"
"""Status of a node of which the reader says that its work is not modelled (see coverage.json)."""


@dataclass(frozen=True)
class UncostedWork:
    """The operators of one type whose work is not costed, for one reason."""

    operator_type: str
    """Operator type as in the network file; of a decomposed operator the type of the whole."""
    reason: str
    """NOT_RUN or NOT_MODELLED."""
    node_count: int
    mac_count: int | None
    """Multiply-accumulates; None if they are not known."""
    operation_count: int | None
    """Other operations; None if they are not known."""

    def to_dict(self) -> JsonObject:
        """Plain data for the summary of a run."""
        return {
            "operator_type": self.operator_type,
            "reason": self.reason,
            "nodes": self.node_count,
            "mac_count": self.mac_count,
            "operation_count": self.operation_count,
        }

    @property
    def text(self) -> str:
        """A line for people: 17 Relu (2,308,992 operations) not run by the core."""
        counts = [
            f"{count:,} {what}"
            for count, what in ((self.mac_count, "MACs"), (self.operation_count, "operations"))
            if count
        ]
        known = ", ".join(counts) if counts or None not in (self.mac_count, self.operation_count) else "work unknown"
        return f"{self.node_count} {self.operator_type}{f' ({known})' if known else ''} {self.reason}"


def can_run(core: Core, node: WorkloadNode) -> bool:
    """Whether a core can run the layer of a node.

    By the unit that the layer needs, by its operator type, or by that of the operator of which it is a part. A layer
    that needs no particular unit (those of a YAML file) counts as one for multipliers. In-memory arrays run nothing
    without weights.
    """
    return can_run_listed(core, core.operator_types, node)


def can_run_listed(core: Core, listed: tuple[str, ...], node: WorkloadNode) -> bool:
    """Whether a core can run a layer, where it is said to run other operators than its own file says."""
    if core.operational_array.is_in_memory and node.operator_type in WITHOUT_WEIGHTS:
        return False
    return _listed(listed, node)


def restrict_to_core(workload: Workload, core: Core) -> tuple[Workload, tuple[UncostedWork, ...]]:
    """The network as a core runs it, and a row for each operator type that it does not run.

    A layer that the core cannot run becomes a node that passes its data on, at no cost. The workload itself is returned
    where the core runs all of it.
    """
    left_out = {node.node_id for node in workload.nodes if node.layer is not None and not can_run(core, node)}
    if not left_out:
        return workload, ()
    in_memory = core.operational_array.is_in_memory
    nodes = tuple(
        replace(
            node,
            layer=None,
            output_elements=_output_elements(workload, node),
            layer_left_out=node.layer if in_memory else None,
        )
        if node.node_id in left_out
        else node
        for node in workload.nodes
    )
    not_run = (node for node in workload.nodes if node.node_id in left_out)
    return replace(workload, nodes=nodes), _rows(not_run, NOT_RUN)


def without_layers_left_out(workload: Workload) -> Workload:
    """The network by which runs are compared: cores that leave out the same layers run the same one, whatever their
    arrays keep of them."""
    if not any(node.layer_left_out for node in workload.nodes):
        return workload
    return replace(workload, nodes=tuple(replace(node, layer_left_out=None) for node in workload.nodes))


def unmodelled_work(workload: Workload) -> tuple[UncostedWork, ...]:
    """A row for each operator type for which the model profile has no layer, though it does work."""
    return _rows((node for node in workload.nodes if is_unmodelled(workload, node)), NOT_MODELLED)


def is_unmodelled(workload: Workload, node: WorkloadNode) -> bool:
    """Whether a node of a network as it was read does work for which it has no layer.

    A profile that has layers for some operators only tells no tensors: whatever else computes there is not modelled.
    """
    if node.layer is not None:
        return False
    return node.status == UNSUPPORTED or (not workload.tensors and bare_type(node.origin_type) in KNOWN_TYPES)


def work_of(nodes: Iterable[WorkloadNode]) -> tuple[int, int]:
    """(multiply-accumulates, other operations) of all layers of some nodes."""
    macs = operations = 0
    for node in nodes:
        if node.layer is not None:
            counts = work_counts(node.unit, node.layer.mac_count)
            macs += counts["mac_count"] * node.repeats
            operations += counts["operation_count"] * node.repeats
    return macs, operations


def coverage_of(workload: Workload, uncosted: tuple[UncostedWork, ...]) -> JsonObject:
    """How much of the work of a network is costed, as plain data; `workload` is what is left to be run.

    Shares are null where the whole is not known.
    """
    macs, operations = work_of(workload.nodes)
    return {
        "complete": not uncosted,
        "mac_share": _share(macs, [row.mac_count for row in uncosted]),
        "operation_share": _share(operations, [row.operation_count for row in uncosted]),
        "mac_count": macs,
        "operation_count": operations,
        "not_costed": [row.to_dict() for row in uncosted],
    }


def _share(costed: int, others: list[int | None]) -> float | None:
    known = [count for count in others if count is not None]
    if len(known) < len(others):
        return None
    total = costed + sum(known)
    return costed / total if total else 1.0


def _output_elements(workload: Workload, node: WorkloadNode) -> int:
    """Elements of all outputs: of the tensors where they are known, else by the loops of the layer."""
    layer, tensors = node.layer, workload.tensor_of
    assert layer is not None
    if node.outputs and all(name in tensors for name in node.outputs):
        return sum(tensors[name].element_count for name in node.outputs)
    return math.prod(layer.size_of.get(dimension, 1) for dimension in dict(layer.operand_dimensions)[OUTPUT])


def _rows(nodes: Iterable[WorkloadNode], reason: str) -> tuple[UncostedWork, ...]:
    """Rows by operator type, most nodes first; the parts of an operator count as one node."""
    by_type: dict[str, list[WorkloadNode]] = {}
    for node in nodes:
        by_type.setdefault(node.origin_type or node.operator_type, []).append(node)
    rows = [_row(operator_type, reason, found) for operator_type, found in by_type.items()]
    return tuple(sorted(rows, key=lambda row: -row.node_count))


def _row(operator_type: str, reason: str, nodes: list[WorkloadNode]) -> UncostedWork:
    count = sum({node.origin or node.name: node.repeats for node in nodes}.values())
    if all(node.layer is not None for node in nodes):
        return UncostedWork(operator_type, reason, count, *work_of(nodes))
    macs = [node.uncosted_mac_count for node in nodes]
    if None not in macs:
        return UncostedWork(operator_type, reason, count, sum(mac for mac in macs if mac is not None), None)
    return UncostedWork(operator_type, reason, count, None if _may_do_macs(operator_type) else 0, None)


def _may_do_macs(operator_type: str) -> bool:
    """False for operators of which it is known that they do not multiply and accumulate; no other one is taken so."""
    if operator_type in (*UNMODELLED_WITHOUT_MACS, *SEQUENCE_TYPES):
        return False
    name = bare_type(operator_type)
    return name in MAC_TYPES or name not in KNOWN_TYPES


COMPUTES_NOTHING = ", which computes nothing"
"""How the reasons end of cores that only store."""
_TYPES_OF_ROLE = {POOLING: ("pooling",), SIMD: (VECTOR,)}


@dataclass(frozen=True)
class CoreChoice:
    """The cores that may run a layer."""

    core_ids: tuple[int, ...]
    """Ids of the cores in the order of the mapping entry, or rising if it names none."""
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
    """Whether a layer is listed by the unit that it needs, by its operator type, or by that of the operator of which it
    is a part."""
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
    held = {operand for memory in core.memories for operand in memory.operands}
    used = [links[operand] for operand in layer.operands if operand in links]
    return [operand for operand in dict.fromkeys(used) if operand not in held]
