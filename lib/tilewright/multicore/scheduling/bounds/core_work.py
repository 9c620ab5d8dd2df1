"""Lower bound from the work of cores and the off-chip traffic together (docs/proofs.md#bounds, "Work per core")."""

import math
from collections.abc import Sequence

import numpy as np

from tilewright.multicore.scheduling.bounds.classes import CnClasses
from tilewright.multicore.scheduling.bounds.limits import SLACK, SystemLimits
from tilewright.multicore.scheduling.bounds.weights import Weighted, best_by_weights
from tilewright.multicore.scheduling.problem import OUTPUT_OPERAND, Floats, SchedulingProblem

ROUNDS = 400
"""Number of steps of the search for weights."""


TrafficLoad = tuple[Floats, float]
"""Pair ([class, core] cycles that the streams of a CN take, cycles of the traffic that is necessary in every schedule).
"""


def core_work(classes: CnClasses, traffic: Sequence[TrafficLoad], ends: int, rounds: int = ROUNDS) -> int:
    """Lower bound in cycles that `weighted_core_work` finds. This function also works if there are no CNs."""
    if not classes.count.any():
        return math.ceil(max((cycles for _, cycles in traffic), default=0.0) * (1 - SLACK))
    return weighted_core_work(classes, traffic, ends, rounds, cycles_only=True).cycles


def weighted_core_work(
    classes: CnClasses, traffic: Sequence[TrafficLoad], ends: int, rounds: int = ROUNDS, cycles_only: bool = False
) -> Weighted:
    """Best lower bound that a search over weights of cores and traffic finds, with these weights. There must be CNs.

    The first weights belong to the cores that are allowed for some CN, by core number. The other weights belong to the
    entries of `traffic`. `ends` is the number of cycles before the first CN and after the last CN. `rounds` is the
    number of steps of the search. With `cycles_only`, the search can end earlier (`best_by_weights`).
    """
    present = np.flatnonzero(classes.count)
    used = np.flatnonzero(classes.allowed[present].any(axis=0))
    count, allowed = classes.count[present], classes.allowed[np.ix_(present, used)]
    runtime = np.where(allowed, classes.runtime[np.ix_(present, used)], 0.0)
    closed = np.where(allowed, 0.0, np.inf)
    taken = np.array([cycles[np.ix_(present, used)] for cycles, _ in traffic]).reshape(len(traffic), runtime.size)
    fixed = np.array([float(ends)] * len(used) + [cycles for _, cycles in traffic])
    cells = np.arange(len(present)) * len(used)
    """[class] Position of the class's first core in flattened [class, core] tables"""

    def bound(weight: Floats) -> tuple[float, Floats]:
        on_cores, on_traffic = weight[: len(used)], weight[len(used) :]
        priced = runtime * on_cores + (on_traffic @ taken).reshape(runtime.shape) + closed
        return float(count @ priced.min(axis=1) + weight @ fixed), priced

    def load(priced: Floats) -> Floats:
        chosen = cells + priced.argmin(axis=1)
        on_core = np.bincount(chosen - cells, count * runtime.take(chosen), len(used))
        loads: Floats = fixed + np.concatenate((on_core, taken[:, chosen] @ count))
        return loads

    return best_by_weights(len(fixed), rounds, bound, load, cycles_only)


def traffic_loads(
    problem: SchedulingProblem, classes: CnClasses, limits: SystemLimits, fetched_bits: int, written_bits: int
) -> list[TrafficLoad]:
    """Loads of three kinds of off-chip traffic: reads, writes, and reads and writes together.

    `fetched_bits` and `written_bits` are the numbers of bits that every schedule must fetch or write.
    """
    bits = classes.stream_bits.astype(np.float64)
    inward, outward = bits[:, :, 1:].sum(axis=2), bits[:, :, OUTPUT_OPERAND]
    return [
        (inward / limits.read_bits_per_cycle, fetched_bits / limits.read_bits_per_cycle),
        (outward / limits.write_bits_per_cycle, written_bits / limits.write_bits_per_cycle),
        ((inward + outward) / limits.both_bits_per_cycle, (fetched_bits + written_bits) / limits.both_bits_per_cycle),
    ]
