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
    """No schedule of the problem with an allowed allocation is below any of these."""

    critical_path_cycles: int
    core_work_cycles: int
    off_chip_traffic_cycles: int
    link_traffic_cycles: int
    before_and_after_cycles: int
    """What must be over before some CN starts, its runtime, and what cannot begin before it ends."""
    phases_cycles: int
    """What must be done between the starts of some CNs, with what memories can hold meanwhile."""
    ordered_phases_cycles: int
    """Bound by phases where nothing is done before what it needs; 0 where that was not looked at."""
    energy_pj: float
    scope: Schedules = field(default_factory=Schedules)
    """Over which schedules they hold."""

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
        """Share of a latency that was found by which the optimum could be smaller."""
        return gap_to(self.latency_cycles, latency_cycles)


def lower_bounds(problem: SchedulingProblem, allowed: Booleans | None = None) -> LowerBounds:
    """Bounds over all allocations with `allowed[cn, core]`; without it, over all cores that the cost table allows.

    For the bounds of one allocation, allow each CN its core only. Raises MappingError where a CN has no core,
    InputError where CNs wait for each other in a circle.
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
    """Cheapest core of each CN with its streams, and the cheapest way of all that must be moved.

    The bits are those of the pieces that must be fetched and written.
    """
    if len(classes.count) == 0:
        return 0.0
    system, energy = problem.system, cn_energy_pj(problem, classes, limits)
    total = float(classes.count @ np.where(classes.allowed, energy, np.inf).min(axis=1))
    total += limits.cheapest_fetch_pj(system, fetched_bits)
    total += limits.cheapest_write_pj(system, written_bits)
    return total * (1 - SLACK)
