"""Lower bound of the latency from the work of cores and the off-chip traffic together (docs/proofs/bounds.md, "Work per
core").
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from tilewright.multicore.scheduling.bounds.classes import CnClasses
from tilewright.multicore.scheduling.bounds.limits import SLACK, SystemLimits
from tilewright.multicore.scheduling.bounds.weights import ArrayContent, Weighted, best_by_weights
from tilewright.multicore.scheduling.problem import OUTPUT_OPERAND, Booleans, Floats, Integers, SchedulingProblem

ROUNDS = 400
"""Number of steps of the search for the weights of resources (`bounds.weights`)."""


TrafficLoad = tuple[Floats, float]
"""Load of one kind of off-chip traffic, as a pair. The first element has the cycles that the streams of one CN take:
array of shape (classes, cores). The second element is the total cycles of the fetches and writes that every schedule
must make.
"""


def core_work(
    classes: CnClasses, traffic: Sequence[TrafficLoad], ends: int, rounds: int = ROUNDS, known: int = 0
) -> int:
    """Lower bound of the latency in cycles: the bound of `weighted_core_work`, without its weights. A problem without
    CNs is also accepted.

    The search for weights can end early if no weights give more than `known` cycles. The result is then a valid bound,
    but can be smaller than the result of a complete search. Results are cached, because many calls have the same
    numbers of CNs in each class.
    """
    if not classes.count.any():
        return math.ceil(max((cycles for _, cycles in traffic), default=0.0) * (1 - SLACK))
    work = _work_of(classes, traffic, ends)
    return _cycles_of(*(ArrayContent.of(array) for array in vars(work).values()), rounds, known)


@lru_cache(maxsize=2048)
def _cycles_of(
    count: ArrayContent,
    allowed: ArrayContent,
    runtime: ArrayContent,
    taken: ArrayContent,
    fixed: ArrayContent,
    rounds: int,
    known: int,
) -> int:
    contents = count, allowed, runtime, taken, fixed
    return _Work(*(content.array() for content in contents)).weighted(rounds, True, known).cycles


def weighted_core_work(classes: CnClasses, traffic: Sequence[TrafficLoad], ends: int, rounds: int = ROUNDS) -> Weighted:
    """Largest lower bound that a search over the weights of resources finds, and the weights that give this bound. The
    resources are the cores and the off-chip traffic (`bounds.weights`). The problem must have CNs.

    The first weights belong to the cores that are allowed for at least one CN, in the order of their numbers. The
    following weights belong to the entries of `traffic`. `ends` is the number of cycles before the first CN plus the
    number of cycles after the last CN. `rounds` is the number of steps of the search.
    """
    return _work_of(classes, traffic, ends).weighted(rounds)


def _work_of(classes: CnClasses, traffic: Sequence[TrafficLoad], ends: int) -> "_Work":
    present = np.flatnonzero(classes.count)
    used = np.flatnonzero(classes.allowed[present].any(axis=0))
    count, allowed = classes.count[present], classes.allowed[np.ix_(present, used)]
    runtime = np.where(allowed, classes.runtime[np.ix_(present, used)], 0.0)
    taken = np.array([cycles[np.ix_(present, used)] for cycles, _ in traffic]).reshape(len(traffic), runtime.size)
    fixed = np.array([float(ends)] * len(used) + [cycles for _, cycles in traffic])
    return _Work(count, allowed, runtime, taken, fixed)


@dataclass(frozen=True, eq=False)
class _Work:
    """Input of the search for weights: the classes that have CNs, the cores that are allowed for some of these CNs, and
    the off-chip traffic.
    """

    count: Integers
    """Number of CNs in the class (one entry for each class)"""
    allowed: Booleans
    """True if the core is allowed for the CNs of the class (one entry for each class and core)"""
    runtime: Floats
    """Runtime in cycles (one entry for each class and core); 0 where the core is not allowed"""
    taken: Floats
    """Cycles of off-chip traffic for the streams of one CN: array with a row for each kind of traffic, and a column for
    each pair (class, core)
    """
    fixed: Floats
    """Cycles of the resource that every schedule takes, on whatever cores the CNs run (one entry for each core, then
    one for each kind of traffic). For a core, these cycles are before its first CN and after its last CN. For a kind of
    traffic, these are the cycles of the fetches and writes that no schedule can avoid.
    """

    def weighted(self, rounds: int, cycles_only: bool = False, known: int = 0) -> Weighted:
        """Largest lower bound that a search over the weights of cores and traffic finds, and the weights that give this
        bound. With `cycles_only`, the search can end earlier (see `best_by_weights`).
        """
        count, runtime, taken, fixed = self.count, self.runtime, self.taken, self.fixed
        classes, cores = runtime.shape
        closed = np.where(self.allowed, 0.0, np.inf)
        cells = np.arange(classes) * cores
        """Start of the row of the class in a flattened array of shape (classes, cores) (one entry for each class)"""

        def bound(weight: Floats) -> tuple[float, Floats]:
            on_cores, on_traffic = weight[:cores], weight[cores:]
            priced = runtime * on_cores + (on_traffic @ taken).reshape(runtime.shape) + closed
            return float(count @ priced.min(axis=1) + weight @ fixed), priced

        def load(priced: Floats) -> Floats:
            chosen = cells + priced.argmin(axis=1)
            on_core = np.bincount(chosen - cells, count * runtime.take(chosen), cores)
            loads: Floats = fixed + np.concatenate((on_core, taken[:, chosen] @ count))
            return loads

        return best_by_weights(len(fixed), rounds, bound, load, cycles_only, known)


def traffic_loads(
    problem: SchedulingProblem, classes: CnClasses, limits: SystemLimits, fetched_bits: int, written_bits: int
) -> list[TrafficLoad]:
    """Loads of three kinds of off-chip traffic: reads, writes, and both together. Each load consists of streams and of
    further traffic that every schedule has: `fetched_bits` are read, and `written_bits` are written.
    """
    bits = classes.stream_bits.astype(np.float64)
    inward, outward = bits[:, :, 1:].sum(axis=2), bits[:, :, OUTPUT_OPERAND]
    return [
        (inward / limits.read_bits_per_cycle, fetched_bits / limits.read_bits_per_cycle),
        (outward / limits.write_bits_per_cycle, written_bits / limits.write_bits_per_cycle),
        ((inward + outward) / limits.both_bits_per_cycle, (fetched_bits + written_bits) / limits.both_bits_per_cycle),
    ]
