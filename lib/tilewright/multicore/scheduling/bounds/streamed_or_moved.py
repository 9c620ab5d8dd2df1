"""Lower bounds for data that a CN streams on some of its allowed cores.

On the other allowed cores of the CN, the data must move before or after the run (docs/proofs/bounds-traffic.md).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tilewright.multicore.scheduling.bounds.classes import CnClasses
from tilewright.multicore.scheduling.bounds.core_work import TrafficLoad
from tilewright.multicore.scheduling.bounds.limits import SLACK, SystemLimits, changes
from tilewright.multicore.scheduling.problem import OUTPUT_OPERAND, Booleans, Floats, Integers, SchedulingProblem


@dataclass(frozen=True, eq=False)
class StreamedOrMoved:
    """Pairs of a piece and the CN that reads or produces it. The piece streams on some allowed cores of the CN. If the
    CN runs on another allowed core, the piece must be fetched or written. Each pair is an entry of the arrays below.
    """

    piece: Integers
    """Number of the piece (one value for each pair of a piece and its CN)"""
    cn: Integers
    """Number of the CN that reads or produces the piece (one value for each pair of a piece and its CN)"""
    operand: Integers
    """Operand by which the CN reads the piece, or `OUTPUT_OPERAND` for a result (one value for each pair)"""

    def more(
        self, problem: SchedulingProblem, classes: CnClasses, of_class: Floats, amount: Floats, own: Booleans
    ) -> float:
        """Amount by which some entries raise a lower bound. The mask `own` selects these entries. An entry is a pair of
        a piece and its CN.

        The lower bound is a sum over CNs, each on its cheapest allowed core. `of_class` has the value of a CN without
        the entries: array of shape (classes, cores). `amount` has one value for each entry. If the piece does not
        stream on a core, the piece must move, and this value is added to the value of the CN on this core.
        """
        cns, place = np.unique(self.cn[own], return_inverse=True)
        if not len(cns):
            return 0.0
        of_cn = classes.of_cn[cns]
        taken = np.where(classes.allowed[of_cn], of_class[of_cn], np.inf)
        streams = problem.costs.stream_bits[classes.row[classes.of_cn[self.cn[own]]], :, self.operand[own]] > 0
        with_moves = taken.copy()
        np.add.at(with_moves, place.reshape(-1), np.where(streams, 0.0, amount[own][:, None]))
        return float(np.sum(with_moves.min(axis=1) - taken.min(axis=1)))

    def energy_pj(self, problem: SchedulingProblem, classes: CnClasses, limits: SystemLimits) -> float:
        """Energy in pJ by which the moves of the pieces raise the lower bound of the total energy of all CNs."""
        if not len(self.piece):
            return 0.0
        bits, out = problem.graph.piece_bits[self.piece], self.operand == OUTPUT_OPERAND
        amount = np.zeros(len(bits))
        amount[out] = limits.write_pj(problem.system, bits[out])
        amount[~out] = limits.fetch_pj(problem.system, bits[~out])
        every = np.ones(len(bits), np.bool_)
        return self.more(problem, classes, cn_energy_pj(problem, classes, limits), amount, every)


def streamed_or_moved(problem: SchedulingProblem, classes: CnClasses, fetched: Booleans) -> StreamedOrMoved:
    """Pieces that a schedule must either stream or move: constants that are not in the mask `fetched`, and results of
    the network that can stream. Only one CN counts for a constant: the first CN that reads the constant and can fetch
    it. If data that fit a core may stream (`may_stream`), the result has no pieces.
    """
    if classes.may_stream:
        return StreamedOrMoved(*(np.zeros(0, np.int64) for _ in range(3)))
    graph, (piece, operand) = problem.graph, problem.fetch_order
    may_fetch = ~classes.always_streams[classes.of_cn[problem.need_cn], operand]
    needs = np.flatnonzero((graph.piece_producer[piece] < 0) & ~fetched[piece] & may_fetch)
    needs = needs[np.argsort(piece[needs], kind="stable")]
    needs = needs[changes(piece[needs])]
    results = np.flatnonzero(graph.piece_is_output)
    results = results[~classes.never_streams[classes.of_cn[graph.piece_producer[results]], OUTPUT_OPERAND]]
    return StreamedOrMoved(
        np.concatenate((piece[needs], results)),
        np.concatenate((problem.need_cn[needs], graph.piece_producer[results])),
        np.concatenate((operand[needs], np.full(len(results), OUTPUT_OPERAND))),
    )


def cn_energy_pj(problem: SchedulingProblem, classes: CnClasses, limits: SystemLimits) -> Floats:
    """Energy in pJ of a CN on the core, including the energy of its streams (one entry for each class and core)."""
    costs, system = problem.costs, problem.system
    off = system.off_chip_memory
    bits = costs.stream_bits[classes.row]
    is_out = np.arange(bits.shape[2]) == OUTPUT_OPERAND
    words = -(-bits // np.where(is_out, system.memory_write_bits[off], system.memory_read_bits[off]))
    energy: Floats = costs.on_core_energy_pj[classes.row].copy()
    energy += bits[:, :, 0] * limits.write_link_pj + bits[:, :, 1:].sum(axis=2) * limits.read_link_pj
    energy += words[:, :, 0] * system.memory_write_energy_pj[off]
    energy += words[:, :, 1:].sum(axis=2) * system.memory_read_energy_pj[off]
    return energy


def off_chip_traffic(
    problem: SchedulingProblem,
    classes: CnClasses,
    limits: SystemLimits,
    traffic: Sequence[TrafficLoad],
    either: StreamedOrMoved,
) -> int:
    """Lower bound in cycles from the off-chip traffic that every schedule needs. It is the largest of three bounds:
    from reads, from writes, and from both together. In each bound, every CN runs on the allowed core that causes the
    least traffic.
    """
    if len(classes.count) == 0:
        return 0
    bits, out = problem.graph.piece_bits[either.piece].astype(np.float64), either.operand == OUTPUT_OPERAND
    rates = limits.read_bits_per_cycle, limits.write_bits_per_cycle, limits.both_bits_per_cycle
    cycles = []
    for (streams, fixed), rate, own in zip(traffic, rates, (~out, out, out | ~out), strict=True):
        least = float(classes.count @ np.where(classes.allowed, streams, np.inf).min(axis=1))
        cycles.append(fixed + least + either.more(problem, classes, streams, bits / rate, own))
    return math.ceil(max(cycles) * (1 - SLACK))
