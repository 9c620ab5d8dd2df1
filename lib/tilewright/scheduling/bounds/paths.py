"""Longest paths through the graph of CNs, each CN on its fastest core (docs/bounds.md)."""

import math
from dataclasses import dataclass

import numpy as np

from tilewright.compiled import native_function
from tilewright.errors import InputError, Problem
from tilewright.record_pointer import pointer_to
from tilewright.scheduling.bounds.limits import CnClasses, SystemLimits, whole_cycles
from tilewright.scheduling.bounds.paths_kernel import cns_around, longest_paths
from tilewright.scheduling.problem import Booleans, Integers, SchedulingProblem
from tilewright.scheduling.state_record import GRAPH


@dataclass(frozen=True, eq=False)
class LongestPaths:
    """What no schedule is below, CN by CN."""

    latency_cycles: int
    head: Integers
    """[cn] cycles before its start"""
    runtime: Integers
    """[cn] cycles that it runs"""
    tail: Integers
    """[cn] cycles after its end"""
    release: Integers
    """[cn] cycles until the constants that it never streams can have left the off-chip memory"""
    writing: Integers
    """[cn] cycles after its end until the results that it never streams can be off-chip"""
    _record: np.record
    _arrays: dict[str, Integers]
    """What the record points to."""

    def around(self, cn: int) -> tuple[Booleans, Booleans]:
        """([cn] ends before a CN starts, [cn] starts after it ends), whatever the schedule."""
        native_function(cns_around, (GRAPH,))(self._record, cn)
        mark = self._arrays["mark"]
        return mark == 1, mark == 2


def paths_through(problem: SchedulingProblem, classes: CnClasses, limits: SystemLimits) -> LongestPaths:
    """The longest paths of a problem. Raises InputError where CNs wait for each other in a circle."""
    release, writing = _release(problem, classes, limits), _writing(problem, classes, limits)
    runtime = whole_cycles(classes.runtime.min(axis=1))[classes.of_cn]
    start, successor = problem.edges
    arrays = {
        "head": release.copy(),
        "runtime": runtime,
        "tail": writing.copy(),
        "waiting": problem.predecessor_count.copy(),
        "queue": np.empty(len(runtime), np.int64),
        "start": start,
        "successor": np.ascontiguousarray(successor),
        "delay": _edge_delays(problem, classes, limits),
        "mark": np.zeros(len(runtime), np.int64),
    }
    record: np.record = np.zeros(1, GRAPH).view(np.recarray)[0]
    record["node_count"] = len(runtime)
    for name, array in arrays.items():
        record[name] = pointer_to(array)
    native_function(longest_paths, (GRAPH,))(record, 0)
    if record["finished"] < len(runtime):
        raise InputError([Problem("CNs wait for each other in a circle", path="graph")])
    latency = int(record["latency"])
    return LongestPaths(latency, arrays["head"], runtime, arrays["tail"], release, writing, record, arrays)


def _first_of_piece(problem: SchedulingProblem) -> Booleans:
    """[need] the first of its CN's needs of the piece; needs of a piece lie side by side."""
    piece = problem.fetch_order[0]
    first = np.ones(len(piece), np.bool_)
    first[1:] = (piece[1:] != piece[:-1]) | (problem.need_cn[1:] != problem.need_cn[:-1])
    return first


def _release(problem: SchedulingProblem, classes: CnClasses, limits: SystemLimits) -> Integers:
    """[cn] cycles until the constants that it never streams can have left the off-chip memory."""
    piece, operand = problem.fetch_order
    counts = (problem.graph.piece_producer[piece] < 0) & classes.never_streams[classes.of_cn[problem.need_cn], operand]
    counts &= _first_of_piece(problem)
    bits = np.bincount(problem.need_cn[counts], problem.graph.piece_bits[piece[counts]], problem.graph.node_count)
    return whole_cycles(bits / limits.read_bits_per_cycle)


def _writing(problem: SchedulingProblem, classes: CnClasses, limits: SystemLimits) -> Integers:
    """[cn] cycles after its end until the results that it never streams can be off-chip."""
    pieces = np.flatnonzero(problem.graph.piece_is_output)
    pieces = pieces[classes.never_streams[classes.of_cn[problem.graph.piece_producer[pieces]], 0]]
    producer = problem.graph.piece_producer[pieces]
    bits = np.bincount(producer, problem.graph.piece_bits[pieces], problem.graph.node_count)
    return whole_cycles(bits / limits.write_bits_per_cycle)


def _edge_delays(problem: SchedulingProblem, classes: CnClasses, limits: SystemLimits) -> Integers:
    """[edge] cycles that data needs from CN to CN on the best pair of allowed cores."""
    start, successor = problem.edges
    delay = np.zeros(len(successor), np.int64)
    piece, operand = problem.fetch_order
    producer = problem.graph.piece_producer[piece]
    needs = np.flatnonzero(producer >= 0)
    if len(needs) == 0:
        return delay
    source, target = producer[needs], problem.need_cn[needs]
    operands = problem.system.core_memory.shape[1]
    key = (classes.of_cn[source] * len(classes.row) + classes.of_cn[target]) * operands + operand[needs]
    distinct, inverse = np.unique(key, return_inverse=True)
    rates = np.empty(len(distinct))
    for i, value in enumerate(distinct.tolist()):
        pair, of_operand = divmod(value, operands)
        rates[i] = _best_rate(problem, classes, limits, pair // len(classes.row), pair % len(classes.row), of_operand)
    cycles = whole_cycles(problem.graph.piece_bits[piece[needs]] / rates[inverse.reshape(-1)])
    edge_key = np.repeat(np.arange(problem.graph.node_count), np.diff(start)) * problem.graph.node_count + successor
    np.maximum.at(delay, np.searchsorted(edge_key, source * problem.graph.node_count + target), cycles)
    return delay


def _best_rate(
    problem: SchedulingProblem, classes: CnClasses, limits: SystemLimits, source: int, target: int, operand: int
) -> float:
    """Bits per cycle of a piece from a CN of one class to one of another; infinite if it need not move."""
    memory, streams = problem.system.core_memory, problem.costs.stream_bits > 0
    best = 0.0
    for producer in np.flatnonzero(classes.allowed[source]).tolist():
        out = bool(streams[classes.row[source], producer, 0])
        for consumer in np.flatnonzero(classes.allowed[target]).tolist():
            off_chip_only = bool(streams[classes.row[target], consumer, operand])
            home, wanted = int(memory[producer, 0]), int(memory[consumer, operand])
            if (out and off_chip_only) or (not out and not off_chip_only and home == wanted):
                return math.inf
            if off_chip_only:
                best = max(best, limits.write_rate[producer])
            elif wanted >= 0 and out:
                best = max(best, limits.fetch_rate[wanted])
            elif wanted >= 0:
                best = max(best, limits.direct_rate[producer, wanted], limits.detour_rate(producer, wanted))
    return best if best > 0 else math.inf
