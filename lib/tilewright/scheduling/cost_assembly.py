"""The cost table of a scheduling problem from the tables of the cores."""

from collections.abc import Mapping as Table
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tilewright.errors import InputError, Problem, nearest_name
from tilewright.fusion.graph import CnGraph
from tilewright.hardware.core import Core
from tilewright.hardware.system import OFFCHIP, CorePlace, MultiCoreAccelerator
from tilewright.mapping.runnable import can_run
from tilewright.scheduling.core_costs import CoreCostRow
from tilewright.scheduling.cost_classes import CostClass, CostClasses
from tilewright.scheduling.problem import CostTable, Floats, Integers
from tilewright.scheduling.settings import RUNTIMES
from tilewright.scheduling.system_assembly import MEMORY_OPERANDS
from tilewright.workload.graph import Workload, WorkloadNode

_CANNOT_RUN = -1
_Column = tuple[Integers, Floats, Integers, Integers]


def place_can_run(place: CorePlace, core: Core, node: WorkloadNode) -> bool:
    """Whether the accelerator lets a core run the layer of a node; where nothing is said of the core, any."""
    return place.operator_types is None or can_run(replace(core, operator_types=place.operator_types), node)


def cost_table(
    graph: CnGraph,
    workload: Workload,
    accelerator: MultiCoreAccelerator,
    classes: CostClasses,
    costs: Table[str, Sequence[CoreCostRow]],
    runtime: str,
) -> CostTable:
    """Rows are cost classes, columns the cores of `accelerator.core_ids`; the off-chip core runs nothing.

    Cores of one file have equal costs, but the accelerator may allow each of them other operators. A CN takes a cycle
    at least. Raises InputError if the runtime is unknown, and for each core file whose table is missing or of another
    graph.
    """
    _check(accelerator, classes, costs, runtime)
    shape = len(classes.classes), len(accelerator.core_ids)
    table = CostTable(
        runtime_cycles=np.full(shape, _CANNOT_RUN, np.int64),
        on_core_energy_pj=np.zeros(shape),
        stream_bits=np.zeros((*shape, len(MEMORY_OPERANDS)), np.int64),
        stream_bits_per_cycle=np.ones((*shape, len(MEMORY_OPERANDS)), np.int64),
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


def row_reasons(
    graph: CnGraph,
    workload: Workload,
    accelerator: MultiCoreAccelerator,
    classes: CostClasses,
    costs: Table[str, Sequence[CoreCostRow]],
) -> dict[tuple[int, int], str]:
    """(row, column of the core) -> why the core cannot run the class, where it cannot."""
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
            problems.append(Problem("has no cost table", path=name))
        elif [row.cost_class for row in costs[name]] != list(range(len(classes.classes))):
            message = "the cost table is of another CN graph or mapping"
            found, wanted = len(costs[name]), len(classes.classes)
            problems.append(Problem(message, path=name, value=f"{found} rows", allowed=f"{wanted}, one a class"))
    if problems:
        raise InputError(problems)


def _runs(
    place: CorePlace, core: Core, cost_class: CostClass, graph: CnGraph, node_of: Table[int, WorkloadNode]
) -> bool:
    """Whether the accelerator lets a core run a class; its layers are of one kind."""
    return place_can_run(place, core, node_of[graph.layers[cost_class.layers[0]].node_id])


def _column(rows: Sequence[CoreCostRow], runtime: str) -> _Column:
    """([row] cycles, energy, [row, operand] bits that stream, their width) of the cores of one file."""
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
