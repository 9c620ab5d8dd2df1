"""Which cores can run which parts of layers, whatever else runs where.

A core can run a CN if the cost table has a runtime, the core has a memory for each operand that does not stream, what
the CN keeps while it runs fits these memories, and the off-chip memory is reached. These are the checks of the
scheduler that look at one CN and its core only; made before the search, no evaluation is spent on what they forbid.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tilewright.scheduling.problem import OUTPUT_OPERAND, Booleans, Integers, SchedulingProblem

NO_COST = "it has no cost there: the core cannot run it"


@dataclass(frozen=True)
class Unfit:
    """CNs that a core cannot run for one reason; `texts` says why, for the first CN of a part."""

    cns: Integers
    texts: tuple[str, ...]
    """One for each of `cns`"""


def unfit_for_core(
    problem: SchedulingProblem, core: int, reasons: Mapping[tuple[int, int], str] | None = None
) -> list[Unfit]:
    """Everything that keeps a core from running CNs; the plainest reason first.

    `reasons` says why there is no cost, by row of the cost table and core.
    """
    if core == problem.system.off_chip_core:
        cns = np.arange(problem.graph.node_count)
        return [Unfit(cns, ("it is the off-chip core",) * len(cns))]
    cannot = np.flatnonzero(problem.costs.runtime_cycles[problem.graph.cost_row, core] < 1)
    why = [(reasons or {}).get((row, core), NO_COST) for row in range(len(problem.costs.runtime_cycles))]
    found = [Unfit(cannot, tuple(map(why.__getitem__, problem.graph.cost_row[cannot].tolist())))]
    return [*found, *_without_path(problem, core), *_without_memory(problem, core)]


def _streams(problem: SchedulingProblem, core: int) -> Booleans:
    """[cn, operand] streams from or to the off-chip memory."""
    streams: Booleans = problem.costs.stream_bits[problem.graph.cost_row, core] > 0
    return streams


def _without_path(problem: SchedulingProblem, core: int) -> list[Unfit]:
    """CNs that read on a core without a path from the off-chip core, or write on one without a path to it; what streams
    is read and written too."""
    system, graph = problem.system, problem.graph
    found, streams = [], _streams(problem, core)
    inward = bool(system.path_exists[system.off_chip_core * system.core_count + core])
    outward = bool(system.path_exists[core * system.core_count + system.off_chip_core])
    if not inward:
        cns = np.flatnonzero((np.diff(graph.need_start) > 0) | np.any(streams[:, OUTPUT_OPERAND + 1 :], axis=1))
        found.append(Unfit(cns, ("no path from the off-chip core",) * len(cns)))
    if not outward:
        makes = np.bincount(graph.piece_producer[graph.piece_producer >= 0], minlength=graph.node_count) > 0
        cns = np.flatnonzero(makes | streams[:, OUTPUT_OPERAND])
        found.append(Unfit(cns, ("no path to the off-chip core",) * len(cns)))
    return found


def _without_memory(problem: SchedulingProblem, core: int) -> list[Unfit]:
    """CNs that lack a memory on the core, and CNs that do not fit."""
    graph, system = problem.graph, problem.system
    memory_of, memories = system.core_memory[core], len(system.memory_capacity_bits)
    streams = _streams(problem, core)
    produced = np.flatnonzero(graph.piece_producer >= 0)
    cn = np.concatenate((problem.need_cn, graph.piece_producer[produced]))
    piece = np.concatenate((problem.fetch_order[0], produced))
    operand = np.concatenate((problem.fetch_order[1], np.full(len(produced), OUTPUT_OPERAND)))
    kept = ~streams[cn, operand]
    cn, piece, operand = cn[kept], piece[kept], operand[kept]
    memory = memory_of[operand]
    absent = memory < 0
    lacking = Unfit(cn[absent], tuple(f"no memory for operand {number}" for number in operand[absent]))
    # A piece that a CN reads by two operands is one copy in a memory that holds both.
    key = np.sort((cn[~absent] * memories + memory[~absent]) * max(len(graph.piece_bits), 1) + piece[~absent])
    key = key[np.append(True, key[1:] != key[:-1])[: len(key)]]  # np.unique hashes, which is slow for such keys
    place, piece = np.divmod(key, max(len(graph.piece_bits), 1))
    places, index = np.unique(place, return_inverse=True)
    needed_bits = np.zeros(len(places), np.int64)
    np.add.at(needed_bits, index, graph.piece_bits[piece])
    over = needed_bits > system.memory_capacity_bits[places % memories]
    texts = tuple(
        f"CN {place // memories} needs {bits} bits in memory {place % memories}, "
        f"which has {system.memory_capacity_bits[place % memories]}"
        for place, bits in zip(places[over].tolist(), needed_bits[over].tolist(), strict=True)
    )
    return [lacking, Unfit(places[over] // memories, texts)]
