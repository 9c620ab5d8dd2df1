"""Lower bounds on latency and energy of all schedules of a problem (docs/proofs/bounds.md)."""

from dataclasses import dataclass, field

import numpy as np

from tilewright.base.proof import Schedules, gap_to
from tilewright.multicore.scheduling.bounds.classes import CnClasses, cn_classes
from tilewright.multicore.scheduling.bounds.core_work import core_work, traffic_loads
from tilewright.multicore.scheduling.bounds.forwarding import bounded_problem
from tilewright.multicore.scheduling.bounds.limits import SLACK, SystemLimits, system_limits
from tilewright.multicore.scheduling.bounds.ordered_phases import ordered_phases_latency_cycles
from tilewright.multicore.scheduling.bounds.paths import paths_through, split_latency_cycles
from tilewright.multicore.scheduling.bounds.phases import phases_latency_cycles
from tilewright.multicore.scheduling.bounds.streamed_or_moved import cn_energy_pj, off_chip_traffic, streamed_or_moved
from tilewright.multicore.scheduling.bounds.work import fetched_pieces, possible_moves, written_pieces
from tilewright.multicore.scheduling.problem import Booleans, SchedulingProblem


@dataclass(frozen=True)
class LatencyBounds:
    """Lower bounds of the latency in cycles. Each bound has a different proof. The largest bound is the bound of the
    problem.
    """

    critical_path_cycles: int
    core_work_cycles: int
    off_chip_traffic_cycles: int
    link_traffic_cycles: int
    before_and_after_cycles: int
    """Largest of the bounds that were computed for single CNs. The bound of a CN is a sum: the cycles of the work that
    must end before the CN starts, the runtime of the CN, and the cycles of the work after its end.
    """
    phases_cycles: int
    """Bound from phases: a chain of CNs, each of which waits for the previous CN, divides the schedule into phases. The
    work of a phase must fit its length, and the stored data must fit the memories.
    """
    ordered_phases_cycles: int
    """Bound like `phases_cycles` that also considers the order of dependent work; 0 if this bound was not computed."""

    @property
    def latency_cycles(self) -> int:
        """Largest of the bounds on the latency, in cycles."""
        return max(
            self.critical_path_cycles,
            self.core_work_cycles,
            self.off_chip_traffic_cycles,
            self.link_traffic_cycles,
            self.before_and_after_cycles,
            self.phases_cycles,
            self.ordered_phases_cycles,
        )

    def latency_gap(self, latency_cycles: int) -> float:
        """Largest possible distance of a latency from the optimum, as a share of this latency."""
        return gap_to(self.latency_cycles, latency_cycles)


@dataclass(frozen=True)
class LowerBounds(LatencyBounds):
    """Lower bounds on latency and energy, over all schedules of a problem that use an allowed allocation.

    If data fit a core, a schedule can either copy the data before use or stream them. The bounds in `if_copied` hold
    only for schedules that copy such data. All other bounds on latency hold for both kinds of schedules, and do not
    grow if memories become larger, with one exception (docs/proofs/bounds-traffic.md#if-data-that-fit-may-stream).
    """

    energy_pj: float
    if_copied: LatencyBounds
    """Bounds for schedules that copy data before use if the data fit the core. The scheduler makes only such schedules.
    """
    scope: Schedules = field(default_factory=Schedules)
    """Set of schedules for which the bounds hold."""


def lower_bounds(problem: SchedulingProblem, allowed: Booleans | None = None) -> LowerBounds:
    """Lower bounds over all allocations that the array `allowed` (one entry for each CN and core) permits. Without
    `allowed`, all cores with a runtime in the cost table are permitted.

    For the bounds of one allocation, permit only one core for each CN. Raises MappingError if a CN has no core, and
    InputError if the dependences of CNs form a cycle.
    """
    problem = bounded_problem(problem)
    limits = system_limits(problem.system)
    copied, streamed = (cn_classes(problem, allowed, may_stream) for may_stream in (False, True))
    return LowerBounds(
        **vars(_latency_bounds(problem, streamed, limits)),
        energy_pj=_energy(problem, copied, limits),
        if_copied=_latency_bounds(problem, copied, limits),
    )


def _latency_bounds(problem: SchedulingProblem, classes: CnClasses, limits: SystemLimits) -> LatencyBounds:
    """Bounds of the latency. `classes` says whether data that fit a core may stream."""
    paths, moves = paths_through(problem, classes, limits), possible_moves(problem, classes)
    with_streamed = possible_moves(problem, classes, with_streamed=True)
    ends = int(paths.release.min()) + int(paths.writing.min()) if len(paths.release) else 0
    fetched, written = fetched_pieces(problem, classes), written_pieces(problem, classes)
    bits = problem.graph.piece_bits
    traffic = traffic_loads(problem, classes, limits, int(bits[fetched].sum()), int(bits[written].sum()))
    either = streamed_or_moved(problem, classes, fetched)
    return LatencyBounds(
        critical_path_cycles=paths.latency_cycles,
        core_work_cycles=core_work(classes, traffic, ends),
        off_chip_traffic_cycles=off_chip_traffic(problem, classes, limits, traffic, either),
        link_traffic_cycles=moves.compulsory(np.ones(len(moves.piece), np.bool_)).latency_cycles(),
        before_and_after_cycles=split_latency_cycles(problem, classes, limits, paths, with_streamed),
        phases_cycles=phases_latency_cycles(problem, classes, paths, with_streamed),
        ordered_phases_cycles=ordered_phases_latency_cycles(problem, classes, paths, with_streamed),
    )


def _energy(problem: SchedulingProblem, classes: CnClasses, limits: SystemLimits) -> float:
    """Lower bound in pJ of the energy of a schedule. It is the sum of two parts:

    * energy of each CN, on the allowed core with the smallest energy. This energy includes the streams of the CN, and
      the fetches and writes that only some allowed cores require (`StreamedOrMoved`);
    * energy of each move that every schedule must make, over the cheapest way for this move.
    """
    moves, fetched = possible_moves(problem, classes), fetched_pieces(problem, classes)
    total = 0.0
    if len(classes.count):
        system, bits = problem.system, problem.graph.piece_bits
        on_cores = np.where(classes.allowed, cn_energy_pj(problem, classes, limits), np.inf)
        total = float(classes.count @ on_cores.min(axis=1))
        total += limits.cheapest_fetch_pj(system, bits[fetched])
        total += limits.cheapest_write_pj(system, bits[written_pieces(problem, classes)])
        total *= 1 - SLACK
    total += streamed_or_moved(problem, classes, fetched).energy_pj(problem, classes, limits) * (1 - SLACK)
    return total + moves.core_to_core_energy_pj() * (1 - SLACK)
