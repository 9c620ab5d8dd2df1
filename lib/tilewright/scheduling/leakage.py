"""The term of the energy of schedules that time costs: static power of all cores from the start to the end."""

from typing import NamedTuple

from tilewright.scheduling.problem import SchedulingProblem
from tilewright.scheduling.result import Schedule


class _Leakage(NamedTuple):
    """Cores leak while they run and while they wait; it is counted here alone, not in the costs of CNs."""

    def concerns(self, problem: SchedulingProblem) -> bool:
        """Whether cores have static power."""
        return problem.system.leakage_pj_a_cycle > 0

    def energy_pj(self, problem: SchedulingProblem, schedule: Schedule) -> float:
        """What all cores leak in a cycle, times the latency."""
        return problem.system.leakage_pj_a_cycle * schedule.latency_cycles


LEAKAGE = _Leakage()
