"""Whether the arrays of a scheduling problem fit together: shapes, ranges, signs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tilewright.errors import Problem

if TYPE_CHECKING:
    from tilewright.scheduling.problem import CoreSystem, CostTable, Integers, NodeGraph


def graph_problems(graph: NodeGraph) -> list[Problem]:
    """Everything that is wrong with CNs, pieces and needs taken by themselves."""
    nodes, pieces = len(graph.layer), len(graph.piece_bits)
    problems = [
        Problem(f"must have {nodes} entries, one a CN", path=name, value=str(len(getattr(graph, name))))
        for name in ("group", "stack", "cost_row")
        if len(getattr(graph, name)) != nodes
    ]
    problems += [
        Problem(f"must have {pieces} entries, one a piece", path=name, value=str(len(getattr(graph, name))))
        for name in ("piece_producer", "piece_is_output")
        if len(getattr(graph, name)) != pieces
    ]
    if len(graph.need_operand) != len(graph.need_piece):
        problems.append(Problem("must be as long as need_piece", path="need_operand"))
    problems += _csr_problems("need_start", graph.need_start, nodes, len(graph.need_piece))
    problems += _csr_problems("order_start", graph.order_start, nodes, len(graph.order_predecessor))
    problems += _range_problems("need_piece", graph.need_piece, 0, pieces)
    problems += _range_problems("order_predecessor", graph.order_predecessor, 0, nodes)
    problems += _range_problems("piece_producer", graph.piece_producer, -1, nodes)
    problems += _range_problems("piece_bits", graph.piece_bits, 1, 2**53)
    if not problems and bool(np.any(graph.piece_is_output & (graph.piece_producer < 0))):
        problems.append(Problem("marks a constant as a result of the network", path="piece_is_output"))
    return problems


def cost_table_problems(costs: CostTable, cores: int, operands: int) -> list[Problem]:
    """Everything that is wrong with the cost table, given how many cores and operands there are."""
    rows = len(costs.runtime_cycles)
    problems = []
    for name, shape in (
        ("runtime_cycles", (rows, cores)),
        ("on_core_energy_pj", (rows, cores)),
        ("stream_bits", (rows, cores, operands)),
        ("stream_bits_per_cycle", (rows, cores, operands)),
    ):
        if getattr(costs, name).shape != shape:
            problems.append(Problem(f"must have shape {shape}", path=name, value=str(getattr(costs, name).shape)))
    if problems:
        return problems
    runs = costs.runtime_cycles != -1
    if bool(np.any(costs.runtime_cycles[runs] < 1)):
        problems.append(Problem("must be at least 1, or -1 where a core cannot run the CN", path="runtime_cycles"))
    energy = costs.on_core_energy_pj[runs]
    if not bool(np.all(np.isfinite(energy) & (energy >= 0))):
        problems.append(Problem("must be finite and not negative", path="on_core_energy_pj"))
    if bool(np.any(costs.stream_bits < 0)):
        problems.append(Problem("must not be negative", path="stream_bits"))
    if bool(np.any((costs.stream_bits > 0) & (costs.stream_bits_per_cycle < 1))):
        problems.append(Problem("must be at least 1 where bits are streamed", path="stream_bits_per_cycle"))
    return problems


def system_problems(system: CoreSystem) -> list[Problem]:
    """Everything that is wrong with cores, memories, links and paths."""
    cores, memories, links = len(system.core_memory), len(system.memory_capacity_bits), len(system.link_bits_per_cycle)
    problems = [
        Problem(f"must have {count} entries", path=name, value=str(len(getattr(system, name))))
        for names, count in (
            (("memory_read_bits", "memory_write_bits", "memory_read_energy_pj", "memory_write_energy_pj"), memories),
            (("link_energy_pj_per_bit", "link_is_broadcast"), links),
            (("path_exists",), cores * cores),
        )
        for name in names
        if len(getattr(system, name)) != count
    ]
    problems += _range_problems("core_memory", system.core_memory.ravel(), -1, memories)
    for name in ("memory_capacity_bits", "memory_read_bits", "memory_write_bits", "link_bits_per_cycle"):
        problems += _range_problems(name, getattr(system, name), 1, 2**62)
    for name in ("memory_read_energy_pj", "memory_write_energy_pj", "link_energy_pj_per_bit"):
        energy = getattr(system, name)
        if not bool(np.all(np.isfinite(energy) & (energy >= 0))):
            problems.append(Problem("must be finite and not negative", path=name))
    problems += _csr_problems("path_start", system.path_start, cores * cores, len(system.path_link))
    problems += _range_problems("path_link", system.path_link, 0, links)
    if not 0 <= system.off_chip_core < cores:
        problems.append(Problem("is no core", path="off_chip_core", value=str(system.off_chip_core)))
    elif not problems:
        problems += _off_chip_problems(system)
    return problems


def _off_chip_problems(system: CoreSystem) -> list[Problem]:
    """The off-chip core has one memory, which no other core shares."""
    own = system.core_memory[system.off_chip_core]
    others = np.delete(system.core_memory, system.off_chip_core, axis=0)
    if len(set(own.tolist())) != 1 or own[0] < 0:
        return [Problem("must be the same memory for every operand of the off-chip core", path="core_memory")]
    if bool(np.any(others == own[0])):
        return [Problem("gives the off-chip memory to another core too", path="core_memory")]
    return []


def _csr_problems(name: str, start: Integers, count: int, total: int) -> list[Problem]:
    if len(start) != count + 1 or start[0] != 0 or start[-1] != total or bool(np.any(np.diff(start) < 0)):
        return [Problem(f"must rise from 0 to {total} in {count + 1} entries", path=name)]
    return []


def _range_problems(name: str, values: Integers, low: int, high: int) -> list[Problem]:
    """Values must be at least `low` and below `high`."""
    wrong = np.flatnonzero((values < low) | (values >= high))
    if len(wrong) == 0:
        return []
    message = f"has {len(wrong)} entries out of range, the first at {wrong[0]}"
    return [Problem(message, path=name, value=str(values[wrong[0]]), allowed=f"{low} to {high - 1}")]
