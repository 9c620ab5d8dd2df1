"""Lower bounds on latency and energy of all schedules of a problem (docs/proofs.md#bounds)."""

from dataclasses import dataclass, field

import numpy as np

from tilewright.base.proof import Schedules, gap_to
from tilewright.multicore.scheduling.bounds.classes import CnClasses, cn_classes
from tilewright.multicore.scheduling.bounds.core_work import core_work, traffic_loads
from tilewright.multicore.scheduling.bounds.limits import SLACK, SystemLimits, system_limits
from tilewright.multicore.scheduling.bounds.ordered_phases import ordered_phases_latency_cycles
from tilewright.multicore.scheduling.bounds.paths import paths_through, split_latency_cycles
from tilewright.multicore.scheduling.bounds.phases import phases_latency_cycles
from tilewright.multicore.scheduling.bounds.streamed_or_moved import cn_energy_pj, off_chip_traffic, streamed_or_moved
from tilewright.multicore.scheduling.bounds.work import fetched_pieces, possible_moves, written_pieces
from tilewright.multicore.scheduling.problem import Booleans, Integers, SchedulingProblem


@dataclass(frozen=True)
class LowerBounds:
    """Lower bounds of all schedules of a problem with an allowed allocation."""

    critical_path_cycles: int
    core_work_cycles: int
    off_chip_traffic_cycles: int
    link_traffic_cycles: int
    before_and_after_cycles: int
    """Bound from one CN: the work that must end before the CN starts, its runtime, and the work after its end."""
    phases_cycles: int
    """Bound from the work that must be done between the starts of some CNs, with the capacity of memories."""
    ordered_phases_cycles: int
    """Bound from phases that also respects the order of dependent work; 0 if it was not computed."""
    energy_pj: float
    scope: Schedules = field(default_factory=Schedules)
    """Schedules for which the bounds hold."""

    @property
    def latency_cycles(self) -> int:
        """The largest bound on the latency."""
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
        """Largest share of a found latency by which the optimum can be smaller."""
        return gap_to(self.latency_cycles, latency_cycles)


def lower_bounds(problem: SchedulingProblem, allowed: Booleans | None = None) -> LowerBounds:
    """Lower bounds over all allocations that `allowed` [cn, core] permits.

    Without `allowed`, all cores that the cost table allows are permitted. To get the bounds of one allocation, permit
    only one core for each CN. Raises MappingError if a CN has no core, and InputError if the dependences of CNs form a
    cycle.
    """
    classes, limits = cn_classes(problem, allowed), system_limits(problem.system)
    paths, moves = paths_through(problem, classes, limits), possible_moves(problem, classes)
    with_streamed = possible_moves(problem, classes, with_streamed=True)
    ends = int(paths.release.min()) + int(paths.writing.min()) if len(paths.release) else 0
    fetched, written = fetched_pieces(problem, classes), written_pieces(problem, classes)
    bits = problem.graph.piece_bits
    traffic = traffic_loads(problem, classes, limits, int(bits[fetched].sum()), int(bits[written].sum()))
    either = streamed_or_moved(problem, classes, fetched)
    return LowerBounds(
        critical_path_cycles=paths.latency_cycles,
        core_work_cycles=core_work(classes, traffic, ends),
        off_chip_traffic_cycles=off_chip_traffic(problem, classes, limits, traffic, either),
        link_traffic_cycles=moves.compulsory(np.ones(len(moves.piece), np.bool_)).latency_cycles(),
        before_and_after_cycles=split_latency_cycles(problem, classes, limits, paths, with_streamed),
        phases_cycles=phases_latency_cycles(problem, classes, paths, with_streamed),
        ordered_phases_cycles=ordered_phases_latency_cycles(problem, classes, paths, with_streamed),
        energy_pj=_energy(problem, classes, limits, bits[fetched], bits[written])
        + either.energy_pj(problem, classes, limits) * (1 - SLACK)
        + moves.core_to_core_energy_pj() * (1 - SLACK),
    )


def _energy(
    problem: SchedulingProblem, classes: CnClasses, limits: SystemLimits, fetched_bits: Integers, written_bits: Integers
) -> float:
    """Least energy in pJ: each CN with its streams on the cheapest core, and all necessary fetches and writes in the
    cheapest way.

    `fetched_bits` and `written_bits` have the sizes of the pieces that must be fetched or written.
    """
    if len(classes.count) == 0:
        return 0.0
    system, energy = problem.system, cn_energy_pj(problem, classes, limits)
    total = float(classes.count @ np.where(classes.allowed, energy, np.inf).min(axis=1))
    total += limits.cheapest_fetch_pj(system, fetched_bits)
    total += limits.cheapest_write_pj(system, written_bits)
    return total * (1 - SLACK)
