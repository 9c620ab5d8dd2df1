"""The scheduling problem of a network on an accelerator: CN graph, cost tables, cores and links joined as arrays.

* Pieces and needs are those of `fusion.pieces`, and partial sums where a reduction is cut (`scheduling.partial_sums`).
* A need's memory operand is what `memory_operand_links` of the layer's mapping entry says. What a layer reads by no
  operand (a bias), or by an operand without a link, is OTHER: kept beside the weights, fetched, and never streamed.
* CNs of a group run in the order of their numbers: the ORDERING edges of the CN graph.
"""

from collections.abc import Mapping as Table
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from tilewright.fusion.graph import ORDERING, CnGraph
from tilewright.fusion.grid import Integers
from tilewright.fusion.pieces import OUTSIDE, DataPieces, data_pieces
from tilewright.hardware.system import MultiCoreAccelerator
from tilewright.mapping.constraints import Mapping
from tilewright.scheduling.core_costs import CoreCostRow
from tilewright.scheduling.cost_assembly import cost_table, row_reasons
from tilewright.scheduling.cost_classes import CostClasses, cost_classes
from tilewright.scheduling.models import CAUSAL, OTHER_MODELS
from tilewright.scheduling.partial_sums import partial_sums
from tilewright.scheduling.problem import NodeGraph, SchedulingProblem, starts_of
from tilewright.scheduling.settings import ScheduleSettings
from tilewright.scheduling.system_assembly import MEMORY_OPERANDS, OTHER, core_system
from tilewright.workload.graph import Workload
from tilewright.workload.layer import OUTPUT

WEIGHT, INPUT, ACTIVATION, PARTIAL_SUM = "weight", "input", "activation", "partial_sum"
"""Where a piece comes from: a constant, an input of the network, a layer, a step of a layer's reduction."""


@dataclass(frozen=True)
class SystemNames:
    """What the numbers of a scheduling problem stand for, for people."""

    network: str
    accelerator: str
    core_ids: tuple[int, ...]
    core_names: tuple[str, ...]
    """Id and name of the core file."""
    core_files: tuple[str, ...]
    core_roles: tuple[str, ...]
    memory_names: tuple[str, ...]
    """Ids of the cores that use it and its name in their files."""
    link_names: tuple[str, ...]
    link_kinds: tuple[str, ...]
    operand_names: tuple[str, ...]
    """Memory operands by number."""
    layer_names: tuple[str, ...]
    layer_operator_types: tuple[str, ...]
    tensor_names: tuple[str, ...]
    tensor_kinds: tuple[str, ...]
    """WEIGHT, INPUT, ACTIVATION or PARTIAL_SUM."""


@dataclass(frozen=True, eq=False)
class AssembledProblem:
    """A scheduling problem, its names, and what it was made of."""

    problem: SchedulingProblem
    names: SystemNames
    pieces: DataPieces
    """Partial sums included."""
    classes: CostClasses
    """Rows of the cost table."""
    reasons: Table[tuple[int, int], str] = field(default_factory=dict)
    """(row of the cost table, core) -> why the core cannot run it."""


def scheduling_problem(
    workload: Workload,
    graph: CnGraph,
    accelerator: MultiCoreAccelerator,
    mapping: Mapping,
    costs: Table[str, Sequence[CoreCostRow]],
    runtime: str = "total1",
) -> AssembledProblem:
    """The problem of scheduling `graph`, which `build_cn_graph` made of `workload`, on an accelerator.

    `costs` has the rows of each distinct core file of the accelerator, one for each cost class; `runtime` is one of
    RUNTIMES. Raises InputError with everything that is missing or does not fit.
    """
    classes = cost_classes(graph, workload, mapping)
    table = cost_table(graph, workload, accelerator, classes, costs, runtime)
    assembled = core_system(accelerator)
    pieces, kinds = _all_pieces(workload, graph)
    nodes = _node_graph(workload, graph, mapping, classes, pieces)
    names = SystemNames(
        network=workload.name,
        accelerator=accelerator.name,
        core_ids=accelerator.core_ids,
        core_names=tuple(f"{place.core_id}: {place.file_name}" for place in accelerator.places),
        core_files=tuple(place.file_name for place in accelerator.places),
        core_roles=tuple(place.role for place in accelerator.places),
        memory_names=assembled.memory_names,
        link_names=tuple(link.name for link in accelerator.links),
        link_kinds=tuple(link.kind for link in accelerator.links),
        operand_names=MEMORY_OPERANDS,
        layer_names=tuple(layer.name for layer in graph.layers),
        layer_operator_types=tuple(layer.operator_type for layer in graph.layers),
        tensor_names=pieces.tensors,
        tensor_kinds=kinds,
    )
    reasons = row_reasons(graph, workload, accelerator, classes, costs)
    return AssembledProblem(SchedulingProblem(nodes, table, assembled.system), names, pieces, classes, reasons)


def model_problem(
    workload: Workload,
    graph: CnGraph,
    accelerator: MultiCoreAccelerator,
    mapping: Mapping,
    costs: Table[str, Sequence[CoreCostRow]],
    settings: ScheduleSettings,
) -> AssembledProblem:
    """The scheduling problem of a run as its schedule model sees it.

    The arguments are those of `scheduling_problem`, with all settings of the schedule. Raises InputError as that does.
    """
    assembled = scheduling_problem(workload, graph, accelerator, mapping, costs, settings.cn_runtime)
    if settings.schedule_model == CAUSAL:
        return assembled
    return OTHER_MODELS[settings.schedule_model].problem(assembled, workload, graph)


def _all_pieces(workload: Workload, graph: CnGraph) -> tuple[DataPieces, tuple[str, ...]]:
    """The pieces of the network with its partial sums behind them, and the kind of each tensor."""
    pieces = data_pieces(workload, graph)
    made = {tensor for layer in graph.layers for tensor in layer.outputs}
    kinds = [
        ACTIVATION if tensor in made else WEIGHT if workload.tensor_of[tensor].is_constant else INPUT
        for tensor in pieces.tensors
    ]
    sums = partial_sums(workload, graph)
    if not len(sums.bits):
        return pieces, tuple(kinds)
    layers, tensor = np.unique(sums.layer, return_inverse=True)
    count = len(sums.bits)
    need_cn = np.concatenate((pieces.need_cn, sums.reader))
    order = np.argsort(need_cn, kind="stable")
    need_piece = np.concatenate((pieces.need_piece, len(pieces.bits) + np.arange(count)))
    need_operand = np.concatenate((pieces.need_operand, np.full(count, _PARTIAL, np.int16)))
    joined = DataPieces(
        bits=np.concatenate((pieces.bits, sums.bits)),
        producer=np.concatenate((pieces.producer, sums.producer)),
        tensor=np.concatenate((pieces.tensor, tensor.reshape(-1) + len(pieces.tensors))),
        is_output=np.concatenate((pieces.is_output, np.zeros(count, np.bool_))),
        need_cn=need_cn[order],
        need_piece=need_piece[order],
        need_operand=need_operand[order],
        tensors=(*pieces.tensors, *(f"partial sums of {graph.layers[layer].name}" for layer in layers.tolist())),
    )
    return joined, (*kinds, *([PARTIAL_SUM] * len(layers)))


_PARTIAL = -1
"""Operand of a need of partial sums, which are of the output."""


def _node_graph(
    workload: Workload, graph: CnGraph, mapping: Mapping, classes: CostClasses, pieces: DataPieces
) -> NodeGraph:
    count = graph.cn_count
    memory_operand = _memory_operands(workload, graph, mapping)
    ordering = graph.edge_operand == ORDERING
    order_target, order_source = graph.edge_target[ordering], graph.edge_source[ordering]
    by_target = np.argsort(order_target, kind="stable")
    return NodeGraph(
        layer=graph.cn_layer.astype(np.int64),
        group=graph.group.astype(np.int64),
        stack=np.array([layer.stack for layer in graph.layers], np.int64)[graph.cn_layer],
        cost_row=classes.of_cn.astype(np.int64),
        piece_bits=pieces.bits.astype(np.int64),
        piece_producer=np.where(pieces.producer == OUTSIDE, -1, pieces.producer).astype(np.int64),
        piece_is_output=pieces.is_output & (pieces.producer != OUTSIDE),
        need_start=starts_of(pieces.need_cn, count),
        need_piece=pieces.need_piece.astype(np.int64),
        need_operand=memory_operand[graph.cn_layer[pieces.need_cn], pieces.need_operand],
        order_start=starts_of(order_target, count),
        order_predecessor=order_source[by_target].astype(np.int64),
    )


def _memory_operands(workload: Workload, graph: CnGraph, mapping: Mapping) -> Integers:
    """[layer, operand of the CN graph] memory operand; the last column is that of partial sums."""
    table = np.full((len(graph.layers), len(graph.operands) + 1), MEMORY_OPERANDS.index(OTHER), np.int64)
    table[:, _PARTIAL] = MEMORY_OPERANDS.index(OUTPUT)
    node_of = {node.node_id: node for node in workload.nodes}
    for number, cn_layer in enumerate(graph.layers):
        layer = node_of[cn_layer.node_id].layer
        assert layer is not None
        for operand, memory_operand in mapping.constraints_for(layer).memory_operand_links:
            if operand in graph.operands and memory_operand in MEMORY_OPERANDS:
                table[number, graph.operands.index(operand)] = MEMORY_OPERANDS.index(memory_operand)
    return table
