"""Cores that can run a layer, reasons why other cores cannot, and work that gets no cost.

The accelerator file or the core file gives the operators that a core can run (`operator_types`). If neither file does,
each core that the mapping file names for a layer can run the layer. If the mapping file names no core, the role of a
core decides: a compute core runs all operators, a pooling core runs pooling, and a vector unit (simd) runs layers that
need a vector unit.
"""

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

from tilewright.base.json_values import JsonObject
from tilewright.base.operator_groups import (
    ALL,
    KNOWN_TYPES,
    MAC,
    VECTOR,
    VECTOR_UNIT,
    bare_type,
    is_listed,
    may_do_macs,
    work_counts,
)
from tilewright.hardware.core import Core
from tilewright.hardware.system import MEMORY, OFFCHIP, POOLING, SIMD, CorePlace, MultiCoreAccelerator
from tilewright.mapping.constraints import MappingConstraints
from tilewright.workload.graph import APPROXIMATED, UNSUPPORTED, Workload, WorkloadNode
from tilewright.workload.layer import OUTPUT, Layer

NOT_RUN = "not run by the core"
WITHOUT_WEIGHTS = ("Pooling", "Add")
"""Operator types, as in YAML files, of layers that have no weights. An in-memory array cannot run such layers, because
it needs weights in its cells (zigzag-dse 3.9.1)."""
NOT_MODELLED = "not modelled"
"""Reasons why an operator gets no cost. NOT_MODELLED: the model profile has no layer for the operator. NOT_RUN: the
core cannot run the operator (see `can_run`).
"""


@dataclass(frozen=True)
class UncostedWork:
    """Operators of one type that get no cost, all for the same reason."""

    operator_type: str
    """Operator type as in the network file. For an operator that is costed in parts, this is the type of the whole
    operator."""
    reason: str
    """Reason why the operators get no cost: NOT_RUN or NOT_MODELLED."""
    node_count: int
    mac_count: int | None
    """Number of multiply-accumulates; None if unknown."""
    operation_count: int | None
    """Number of operations other than multiply-accumulates; None if unknown."""

    def to_dict(self) -> JsonObject:
        """Data of this object as a JSON object, for the summary of a run."""
        return {
            "operator_type": self.operator_type,
            "reason": self.reason,
            "nodes": self.node_count,
            "mac_count": self.mac_count,
            "operation_count": self.operation_count,
        }

    @property
    def text(self) -> str:
        """Line of output, such as `17 Relu (2,308,992 operations) not run by the core`."""
        counts = [
            f"{count:,} {what}"
            for count, what in ((self.mac_count, "MACs"), (self.operation_count, "operations"))
            if count
        ]
        known = ", ".join(counts) if counts or None not in (self.mac_count, self.operation_count) else "work unknown"
        return f"{self.node_count} {self.operator_type}{f' ({known})' if known else ''} {self.reason}"


def can_run(core: Core, node: WorkloadNode) -> bool:
    """True if a core can run the layer of a node.

    The `operator_types` of the core must list at least one of three names: the unit that the layer needs, the type of
    the layer, or the type of the operator of which the layer is a part. A layer from a YAML file needs no particular
    unit, and counts as a layer for the MAC array. In-memory arrays cannot run layers without weights.
    """
    return can_run_listed(core, core.operator_types, node)


def can_run_listed(core: Core, listed: tuple[str, ...], node: WorkloadNode) -> bool:
    """True if a core can run a layer. `listed` replaces the list of operators in the core's own file."""
    if core.operational_array.is_in_memory and node.operator_type in WITHOUT_WEIGHTS:
        return False
    return _listed(listed, node)


def restrict_to_core(workload: Workload, core: Core) -> tuple[Workload, tuple[UncostedWork, ...]]:
    """Network as a core runs it, and the uncosted work for each operator type that the core does not run.

    A layer that the core cannot run becomes a node that passes data on at no cost. If the core runs all layers, the
    result is the workload itself.
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
    """Copy of a network in which the field `layer_left_out` is None in every node. The field has a layer that the core
    could not run.

    Two runs have run the same network if this function gives equal results for their networks. The field can differ
    even if both runs left out the same layers, because only runs on in-memory arrays fill the field.
    """
    if not any(node.layer_left_out for node in workload.nodes):
        return workload
    return replace(workload, nodes=tuple(replace(node, layer_left_out=None) for node in workload.nodes))


def unmodelled_work(workload: Workload) -> tuple[UncostedWork, ...]:
    """Work without a cost, because the model profile has no layer for the operator: one item for each operator type."""
    return _rows((node for node in workload.nodes if is_unmodelled(workload, node)), NOT_MODELLED)


def is_unmodelled(workload: Workload, node: WorkloadNode) -> bool:
    """True if a node, as read from the network file, does work for which there is no layer.

    Some model profiles have layers for a few operators only, and their workloads have no tensors. With these profiles,
    every node that computes but has no layer counts as not modelled.
    """
    if node.layer is not None:
        return False
    return node.status == UNSUPPORTED or (not workload.tensors and bare_type(node.origin_type) in KNOWN_TYPES)


def passed_through(workload: Workload) -> dict[str, int]:
    """Operator type -> number of nodes that only move data, in descending order of this number. Such nodes have no
    cost. A node that moves data for an operator with layers is not counted."""
    with_layers = {node.origin for node in workload.nodes if node.layer is not None or node.unit} - {""}
    moves: Counter[str] = Counter()
    for node in workload.nodes:
        is_part = node.origin in with_layers or node.whole_id is not None
        if not (node.layer or node.unit or is_unmodelled(workload, node) or is_part):
            moves[node.origin_type or node.operator_type] += node.repeats
    return dict(moves.most_common())


def approximated_work(workload: Workload) -> dict[str, int]:
    """Operator type -> number of operators of this type whose work or dependences are only estimated, sorted by type.
    Operators without layers are not counted.
    """
    nodes = [node for node in workload.nodes if node.layer is not None and node.status == APPROXIMATED]
    operators = {(node.origin_type or node.operator_type, node.origin or node.name): node.repeats for node in nodes}
    found: Counter[str] = Counter()
    for (kind, _), repeats in sorted(operators.items()):
        found[kind] += repeats
    return dict(found)


def coverage_fields(workload: Workload, coverage: JsonObject) -> JsonObject:
    """Fields of a summary about work without costs: `coverage`, `passed_through` (nodes that only move data) and, if
    there are any, `approximated` (operators whose work or dependences are only estimated).
    """
    approximated = approximated_work(workload)
    stated = {"approximated": approximated} if approximated else {}
    return {"coverage": coverage, "passed_through": passed_through(workload), **stated}


def work_of(nodes: Iterable[WorkloadNode]) -> tuple[int, int]:
    """Numbers of multiply-accumulates and of other operations, summed over the layers of some nodes."""
    macs = operations = 0
    for node in nodes:
        if node.layer is not None:
            counts = work_counts(node.unit, node.layer.mac_count)
            macs += counts["mac_count"] * node.repeats
            operations += counts["operation_count"] * node.repeats
    return macs, operations


def coverage_of(workload: Workload, uncosted: tuple[UncostedWork, ...]) -> JsonObject:
    """Share of a network's work that gets a cost, as plain data. `workload` is the network that runs; its layers get a
    cost. The work in `uncosted` gets no cost.

    A share is null if the total work is unknown.
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
    """Number of elements of all outputs, from the tensors if they are known, else from the loops of the layer."""
    layer, tensors = node.layer, workload.tensor_of
    assert layer is not None
    if node.outputs and all(name in tensors for name in node.outputs):
        return sum(tensors[name].element_count for name in node.outputs)
    return math.prod(layer.size_of.get(dimension, 1) for dimension in dict(layer.operand_dimensions)[OUTPUT])


def _rows(nodes: Iterable[WorkloadNode], reason: str) -> tuple[UncostedWork, ...]:
    """Uncosted work, one item per operator type, in descending order of the number of nodes. All parts of one operator
    count as one node."""
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
    return UncostedWork(operator_type, reason, count, None if may_do_macs(operator_type) else 0, None)


COMPUTES_NOTHING = ", which computes nothing"
"""End of the text with the reason why a memory or the off-chip core cannot run a layer."""
_TYPES_OF_ROLE = {POOLING: ("pooling",), SIMD: (VECTOR,)}


@dataclass(frozen=True)
class CoreChoice:
    """Cores that can run a layer."""

    core_ids: tuple[int, ...]
    """Ids of the cores, in the order of the mapping entry. If the entry names no core, the ids are ascending."""
    reasons: tuple[tuple[int, str], ...]
    """Pairs (core id, reason why the core cannot run the layer). If the mapping entry names cores, only the named cores
    are considered. Otherwise all cores on chip are considered.
    """


def core_choice(node: WorkloadNode, entry: MappingConstraints, accelerator: MultiCoreAccelerator) -> CoreChoice:
    """Cores that can run the layer of a node under its mapping entry. Unknown core ids are left out."""
    named = [core_id for core_id in entry.core_allocation if core_id in accelerator.place_of]
    candidates = named if entry.core_allocation else accelerator.onchip_core_ids
    found = {core_id: _reason(node, entry, accelerator, core_id) for core_id in candidates}
    allowed = tuple(core_id for core_id, reason in found.items() if not reason)
    return CoreChoice(allowed, tuple((core_id, reason) for core_id, reason in found.items() if reason))


def runs_operator(place: CorePlace, node: WorkloadNode, is_named: bool) -> bool:
    """True if a core can run the operator of a node, judged only by the operator type. The `operator_types` in the
    hardware files decide. If the files give no operator types, a core that the mapping entry names (`is_named`) runs
    every operator. For any other core, the role of the core decides.
    """
    return _listed(_operator_types(place, is_named), node)


def _operator_types(place: CorePlace, is_named: bool) -> tuple[str, ...]:
    """Operator types that the files of the hardware declare for a core. Without a declaration, the types follow from
    the mapping entry or from the role of the core.
    """
    if place.operator_types is not None:
        return place.operator_types
    return (ALL,) if is_named else _TYPES_OF_ROLE.get(place.role, (ALL,))


def _listed(listed: tuple[str, ...], node: WorkloadNode) -> bool:
    """True if `listed` contains at least one of these names: ALL, the unit that the layer needs, the operator type of
    the layer, or the type of the operator of which the layer is a part.
    """
    if ALL in listed or (VECTOR if node.unit == VECTOR_UNIT else MAC) in listed:
        return True
    return is_listed(node.operator_type, listed) or is_listed(node.origin_type, listed)


def _reason(node: WorkloadNode, entry: MappingConstraints, accelerator: MultiCoreAccelerator, core_id: int) -> str:
    """Reason why a core cannot run a layer; '' if the core can run it."""
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
    """Memory operands that the layer uses and that no memory of the core holds."""
    links = dict(entry.memory_operand_links)
    held = {operand for memory in core.memories for operand in memory.operands}
    used = [links[operand] for operand in layer.operands if operand in links]
    return [operand for operand in dict.fromkeys(used) if operand not in held]
