"""Scheduling problem of a network on an accelerator: the arrays that join CN graph, cost tables, cores and links.

* Pieces and needs come from `nodes.pieces`. If a reduction is cut into steps, partial sums are pieces, too.
* The memory operand of a need comes from `memory_operand_links` of the layer's mapping entry. Two kinds of data belong
  to the operand OTHER: data that are not an operand of the layer (a bias), and operands that `memory_operand_links`
  does not list. These data are fetched into the memory of the weights, and never stream.
* CNs of a group run in the order of their numbers; the ORDERING edges of the CN graph enforce this.

If a reduction is cut into steps, each step adds to the partial sums of the previous step. The CN graph orders the steps
of a group, and only the last step has outputs. The sums must be kept between two steps. Therefore each step, except the
last step, produces a piece of partial sums. The next step of the same output tile needs this piece. In the model, a
step occupies memory for two pieces while it runs: for the piece that it reads, and for the piece that it produces. This
holds even if the hardware adds in place. Therefore the memory use of a step can be overestimated, but never
underestimated.
"""

from collections.abc import Mapping as Table
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tilewright.base.errors import InputError, Label, Problem, nearest_name
from tilewright.base.profile import CORRECTED
from tilewright.hardware.core import Core
from tilewright.hardware.system import OFFCHIP, CorePlace, MultiCoreAccelerator
from tilewright.mapping.constraints import Mapping
from tilewright.mapping.runnable import can_run_listed
from tilewright.multicore.nodes.graph import ORDERING, CnGraph, CnLayer
from tilewright.multicore.nodes.pieces import OUTSIDE, DataPieces, data_pieces
from tilewright.multicore.scheduling.assembled import (
    ACTIVATION,
    INPUT,
    PARTIAL_SUM,
    WEIGHT,
    AssembledProblem,
    SystemNames,
)
from tilewright.multicore.scheduling.core_costs import CoreCostRow
from tilewright.multicore.scheduling.cost_classes import CostClass, CostClasses, cost_classes
from tilewright.multicore.scheduling.options import CAUSAL, OTHER_MODELS, RUNTIMES, ScheduleSettings
from tilewright.multicore.scheduling.problem import (
    Booleans,
    CostTable,
    Floats,
    Integers,
    NodeGraph,
    SchedulingProblem,
    starts_of,
)
from tilewright.multicore.scheduling.system_assembly import MEMORY_OPERANDS, OTHER, core_system
from tilewright.workload.access import reads_gaps
from tilewright.workload.graph import Workload, WorkloadNode
from tilewright.workload.layer import OUTPUT
from tilewright.workload.relevancy import operand_bits

_CANNOT_RUN = -1
_Column = tuple[Integers, Floats, Integers, Integers]


def place_can_run(place: CorePlace, core: Core, node: WorkloadNode) -> bool:
    """True if the accelerator allows a core to run the layer of a node. A core without a list of operator types can run
    every layer.
    """
    return place.operator_types is None or can_run_listed(core, place.operator_types, node)


def cost_table(
    graph: CnGraph,
    workload: Workload,
    accelerator: MultiCoreAccelerator,
    classes: CostClasses,
    costs: Table[str, Sequence[CoreCostRow]],
    runtime: str,
) -> CostTable:
    """Cost table with a row for each cost class and a column for each core of `accelerator.core_ids`.

    The off-chip core runs no CN. Cores with the same core file have equal costs, but the accelerator can allow
    different operators on them. A CN takes at least one cycle. Raises InputError if `runtime` is not in RUNTIMES, or if
    a core file has no table, or has the table of another graph.
    """
    _check(accelerator, classes, costs, runtime)
    shape = len(classes.classes), len(accelerator.core_ids)
    table = CostTable(
        runtime_cycles=np.full(shape, _CANNOT_RUN, np.int64),
        on_core_energy_pj=np.zeros(shape),
        stream_bits=np.zeros((*shape, len(MEMORY_OPERANDS)), np.int64),
        stream_bits_per_cycle=np.ones((*shape, len(MEMORY_OPERANDS)), np.int64),
        reads_gaps=_reads_gaps(workload, graph, classes),
    )
    columns = {name: _column(costs[name], runtime) for name in accelerator.distinct_cores}
    node_of = {node.node_id: node for node in workload.nodes}
    for column, place in enumerate(accelerator.places):
        if place.role == OFFCHIP:
            continue
        core = accelerator.core_of[place.core_id]
        runs = np.array([_runs(place, core, found, graph, node_of) for found in classes.classes], np.bool_)
        cycles, energy, bits, width = columns[place.file_name]
        table.runtime_cycles[:, column] = np.where(runs, cycles, _CANNOT_RUN)
        table.on_core_energy_pj[:, column] = energy
        table.stream_bits[:, column] = bits
        table.stream_bits_per_cycle[:, column] = width
    return table


def _reads_gaps(workload: Workload, graph: CnGraph, classes: CostClasses) -> Booleans:
    """Array of shape (cost classes, memory operands): True if CNs of the class can skip elements inside the range that
    they read for the operand.
    """
    found = np.zeros((len(classes.classes), len(MEMORY_OPERANDS)), np.bool_)
    node_of = {node.node_id: node for node in workload.nodes}
    for row, one in enumerate(classes.classes):
        sizes, links = dict(graph.shapes[one.shape].loop_sizes), dict(one.constraints.memory_operand_links)
        nodes = (node_of[graph.layers[layer].node_id] for layer in one.layers)
        for index_map in (index_map for node in nodes for index_map in node.index_maps):
            operand = links.get(index_map.operand, OTHER)
            if reads_gaps(index_map, sizes):
                found[row, MEMORY_OPERANDS.index(operand if operand in MEMORY_OPERANDS else OTHER)] = True
    return found


def row_reasons(
    graph: CnGraph,
    workload: Workload,
    accelerator: MultiCoreAccelerator,
    classes: CostClasses,
    costs: Table[str, Sequence[CoreCostRow]],
) -> dict[tuple[int, int], str]:
    """Pair (row of the class, column of the core) -> reason why the core cannot run this cost class."""
    node_of = {node.node_id: node for node in workload.nodes}
    reasons: dict[tuple[int, int], str] = {}
    for column, place in enumerate(accelerator.places):
        if place.role == OFFCHIP:
            continue
        core = accelerator.core_of[place.core_id]
        for row, cost_class in enumerate(classes.classes):
            node = node_of[graph.layers[cost_class.layers[0]].node_id]
            reason = costs[place.file_name][row].reason
            if not place_can_run(place, core, node):
                reason = f"runs {', '.join(place.operator_types or ())}, not {node.origin_type or node.operator_type}"
            if reason:
                reasons[row, column] = reason
    return reasons


def _check(
    accelerator: MultiCoreAccelerator, classes: CostClasses, costs: Table[str, Sequence[CoreCostRow]], runtime: str
) -> None:
    problems = []
    if runtime not in RUNTIMES:
        nearest = nearest_name(runtime, RUNTIMES)
        allowed = ", ".join(RUNTIMES)
        problems.append(Problem("unknown", path="cn_runtime", value=runtime, allowed=allowed, nearest=nearest))
    for name in accelerator.distinct_cores:
        if name not in costs:
            problems.append(Problem("has no cost table", path=Label(name)))
        elif [row.cost_class for row in costs[name]] != list(range(len(classes.classes))):
            message = "the cost table belongs to another CN graph or mapping"
            found, wanted = len(costs[name]), len(classes.classes)
            problems.append(Problem(message, path=name, value=f"{found} rows", allowed=f"{wanted}, one per class"))
    if problems:
        raise InputError(problems)


def _runs(
    place: CorePlace, core: Core, cost_class: CostClass, graph: CnGraph, node_of: Table[int, WorkloadNode]
) -> bool:
    """True if the accelerator allows a core to run a cost class. All layers of a class have the same operator type."""
    return place_can_run(place, core, node_of[graph.layers[cost_class.layers[0]].node_id])


def _column(rows: Sequence[CoreCostRow], runtime: str) -> _Column:
    """Columns of the cost table that all cores with the same core file have in common, as four arrays: runtime in
    cycles, energy in pJ, streamed bits, and bandwidth of the stream in bits per cycle. The first two arrays have shape
    (rows,), and the last two have shape (rows, memory operands). The runtime is -1 if the core cannot run the cost
    class of the row. `runtime` is one of RUNTIMES.
    """
    cycles = np.array(
        [max(getattr(row, f"{runtime}_cycles"), 1) if row.can_run else _CANNOT_RUN for row in rows], np.int64
    )
    energy = np.array([row.on_core_energy_pj for row in rows], np.float64)
    bits = np.zeros((len(rows), len(MEMORY_OPERANDS)), np.int64)
    width = np.ones_like(bits)
    for number, row in enumerate(rows):
        for stream in row.streams:
            operand = MEMORY_OPERANDS.index(stream.operand)
            bits[number, operand] = stream.bits
            width[number, operand] = max(stream.bits_per_cycle, 1)
    return cycles, energy, bits, width


@dataclass(frozen=True, eq=False)
class PartialSums:
    """Pieces of partial sums. Each field is an array with one entry per piece."""

    bits: Integers
    producer: Integers
    """CN that produces the partial sums (one entry for each piece)"""
    reader: Integers
    """CN that adds to the partial sums (one entry for each piece)"""
    layer: Integers
    """Number of the piece's layer in the CN graph (one entry for each piece)"""


def partial_sums(workload: Workload, graph: CnGraph) -> PartialSums:
    """Pieces of partial sums of all layers whose reduction is cut into steps. They are ordered by layer, then by output
    tile.
    """
    none = np.zeros(0, np.int64)
    columns: list[tuple[Integers, ...]] = [(none,) * 4]
    nodes = [node for node in workload.nodes if node.layer is not None]
    for number, (node, layer) in enumerate(zip(nodes, graph.layers, strict=True)):
        if not _reduced_dimensions(node, layer):
            continue
        producer, reader = _steps(node, layer)
        shapes, of_piece = np.unique(graph.shape[producer], return_inverse=True)
        bits = np.array([operand_bits(graph.shapes[shape], OUTPUT, CORRECTED) for shape in shapes], np.int64)
        columns.append((bits[of_piece.reshape(-1)], producer, reader, np.full(len(producer), number, np.int64)))
    return PartialSums(*(np.concatenate(column) for column in zip(*columns, strict=True)))


def _reduced_dimensions(node: WorkloadNode, layer: CnLayer) -> tuple[str, ...]:
    """Dimensions that are cut into tiles and do not index any output of the layer."""
    written = {
        name for index_map in node.index_maps for axis in index_map.output.axes for name, factor in axis.terms if factor
    }
    return tuple(dimension for dimension in layer.grid.tiled_dimensions if dimension not in written)


def _steps(node: WorkloadNode, layer: CnLayer) -> tuple[Integers, Integers]:
    """Pairs of consecutive CNs of an output tile, as arrays (CN, next CN). The next CN adds to the partial sums of the
    same output tile.
    """
    reduced = _reduced_dimensions(node, layer)
    tile, _ = layer.grid.combination_of([name for name in layer.grid.tiled_dimensions if name not in reduced])
    order = np.argsort(tile, kind="stable").astype(np.int64)
    same = tile[order[1:]] == tile[order[:-1]]
    return order[:-1][same] + layer.first_cn, order[1:][same] + layer.first_cn


def scheduling_problem(
    workload: Workload,
    graph: CnGraph,
    accelerator: MultiCoreAccelerator,
    mapping: Mapping,
    costs: Table[str, Sequence[CoreCostRow]],
    runtime: str = "total1",
) -> AssembledProblem:
    """Problem of scheduling the CN graph `graph` of `workload` (see `build_cn_graph`) on an accelerator.

    For each distinct core file of the accelerator, `costs` has one row for each cost class. `runtime` is one of
    RUNTIMES. Raises InputError with all inputs that are missing or do not fit each other.
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
    """Scheduling problem in the form of the schedule model that `settings` names. All other arguments are the same as
    for `scheduling_problem`, which always makes the form of the causal model.
    """
    assembled = scheduling_problem(workload, graph, accelerator, mapping, costs, settings.cn_runtime)
    if settings.schedule_model == CAUSAL:
        return assembled
    return OTHER_MODELS[settings.schedule_model].problem(assembled, workload, graph)


def _all_pieces(workload: Workload, graph: CnGraph) -> tuple[DataPieces, tuple[str, ...]]:
    """Pair (data pieces, kind of each tensor). The pieces of the network come first, then the pieces of partial
    sums.
    """
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
"""Operand number for needs of partial sums. Partial sums are held in the memory of the output operand."""


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
    """Memory operand of each operand of each layer, as an index in `MEMORY_OPERANDS`: array of shape (layers, operands
    of the CN graph + 1). The last column is for partial sums.
    """
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
