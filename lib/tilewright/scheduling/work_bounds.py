"""Cycles that cores and the off-chip memory are busy at least (docs/bounds.md)."""

import math
from collections.abc import Sequence

import numpy as np

from tilewright.scheduling.cn_classes import SLACK, CnClasses
from tilewright.scheduling.problem import OUTPUT_OPERAND, Booleans, Floats, SchedulingProblem
from tilewright.scheduling.system_limits import SystemLimits

_ROUNDS = 400
TrafficLoad = tuple[Floats, float]
"""([class, core] cycles that the streams of a CN take, cycles taken in any case)."""


def core_work(classes: CnClasses, traffic: Sequence[TrafficLoad], ends: int, rounds: int = _ROUNDS) -> int:
    """The best bound by weights on cores and traffic, which sum to 1.

    `ends` are cycles before the first CN and after the last one. Any weights are right; these come from `rounds` steps
    towards what is loaded the most.
    """
    present = np.flatnonzero(classes.count)
    if not len(present):
        return math.ceil(max((cycles for _, cycles in traffic), default=0.0) * (1 - SLACK))
    used = np.flatnonzero(classes.allowed[present].any(axis=0))
    count, allowed = classes.count[present], classes.allowed[np.ix_(present, used)]
    runtime = np.where(allowed, classes.runtime[np.ix_(present, used)], 0.0)
    closed = np.where(allowed, 0.0, np.inf)
    taken = np.array([cycles[np.ix_(present, used)] for cycles, _ in traffic]).reshape(len(traffic), runtime.size)
    fixed = np.array([float(ends)] * len(used) + [cycles for _, cycles in traffic])
    cells = np.arange(len(present)) * len(used)
    """[class] place of its first core in flat tables"""
    logarithm, average, best = np.zeros(len(fixed)), np.zeros(len(fixed)), 0.0
    for step in range(1, rounds + 1):
        weight = np.exp(logarithm - logarithm.max())
        weight /= weight.sum()
        average += (weight - average) / step
        for candidate in (average / average.sum(), weight):
            on_cores, on_traffic = candidate[: len(used)], candidate[len(used) :]
            priced = runtime * on_cores + (on_traffic @ taken).reshape(runtime.shape) + closed
            best = max(best, float(count @ priced.min(axis=1) + candidate @ fixed))
        chosen = cells + priced.argmin(axis=1)
        on_core = np.bincount(chosen - cells, count * runtime.take(chosen), len(used))
        load = fixed + np.concatenate((on_core, taken[:, chosen] @ count))
        if not load.any():
            break
        logarithm += load / load.max() * (2.0 / math.sqrt(step))
    return math.ceil(best * (1 - SLACK))


def traffic_loads(
    problem: SchedulingProblem, classes: CnClasses, limits: SystemLimits, fetched_bits: int, written_bits: int
) -> list[TrafficLoad]:
    """Of what is read from the off-chip memory, of what is written to it, and of both.

    The bits are those of what is fetched or written in any case.
    """
    bits = problem.costs.stream_bits[classes.row].astype(np.float64)
    inward, outward = bits[:, :, 1:].sum(axis=2), bits[:, :, OUTPUT_OPERAND]
    return [
        (inward / limits.read_bits_per_cycle, fetched_bits / limits.read_bits_per_cycle),
        (outward / limits.write_bits_per_cycle, written_bits / limits.write_bits_per_cycle),
        ((inward + outward) / limits.both_bits_per_cycle, (fetched_bits + written_bits) / limits.both_bits_per_cycle),
    ]


def fetched_pieces(problem: SchedulingProblem, classes: CnClasses) -> Booleans:
    """[piece] a constant that must be on chip for some CN."""
    piece, operand = problem.fetch_order
    fetched = np.zeros(len(problem.graph.piece_bits), np.bool_)
    fetched[piece[classes.never_streams[classes.of_cn[problem.need_cn], operand]]] = True
    return fetched & (problem.graph.piece_producer < 0)


def written_pieces(problem: SchedulingProblem, classes: CnClasses) -> Booleans:
    """[piece] a result that must be written off-chip from on chip."""
    graph = problem.graph
    written = graph.piece_is_output.copy()
    results = np.flatnonzero(written)
    written[results] = classes.never_streams[classes.of_cn[graph.piece_producer[results]], OUTPUT_OPERAND]
    return written


def moved_bits(problem: SchedulingProblem, classes: CnClasses) -> tuple[int, int]:
    """Bits that must be fetched in any case, and written."""
    bits = problem.graph.piece_bits
    return int(bits[fetched_pieces(problem, classes)].sum()), int(bits[written_pieces(problem, classes)].sum())


def off_chip_traffic(problem: SchedulingProblem, classes: CnClasses, limits: SystemLimits) -> int:
    """Cycles that compulsory traffic with the off-chip memory takes; of each CN the least that it may stream."""
    if len(classes.count) == 0:
        return 0
    cycles = [
        fixed + float(classes.count @ np.where(classes.allowed, streams, np.inf).min(axis=1))
        for streams, fixed in traffic_loads(problem, classes, limits, *moved_bits(problem, classes))
    ]
    return math.ceil(max(cycles) * (1 - SLACK))
