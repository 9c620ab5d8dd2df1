"""Makers of the terms of a schedule's energy: cores, data that moves by cause, static power, and what is entered.

A further term is one object with the attributes of `ScheduleTerm`, entered in `SCHEDULE_TERMS` under a name that no
term of cost tables has; `energy_ledger` has the terms as numbers.
"""

from dataclasses import dataclass
from typing import Protocol

from tilewright.base.errors import InputError, Problem
from tilewright.base.registry import Registry, lacking, methods_of, taken
from tilewright.hardware.attributes import power_terms
from tilewright.multicore.scheduling.energy_ledger import CAUSES, ON_CORE, CauseEnergy, EnergyTerms
from tilewright.multicore.scheduling.problem import SchedulingProblem
from tilewright.multicore.scheduling.schedule import Schedule


class ScheduleTerm(Protocol):
    """A term of the energy of schedules besides those on cores and of data that moves."""

    def concerns(self, problem: SchedulingProblem) -> bool:
        """Whether a problem has it at all; where not, its schedules do not name it."""

    def energy_pj(self, problem: SchedulingProblem, schedule: Schedule) -> float:
        """What it adds for a schedule, by its times and counts; not negative, so that the lower bounds hold."""


def _fault(name: str, entry: object) -> str:
    return taken(name, (ON_CORE, *CAUSES, *power_terms())) or lacking(entry, methods_of(ScheduleTerm))


SCHEDULE_TERMS: Registry[ScheduleTerm] = Registry(__name__, _fault)
"""Terms by name, in the order in which they add up after all others."""


@dataclass(frozen=True)
class PowerOfCores:
    """Static power of all cores from the start to the end of a schedule; the costs of CNs do not have it."""

    pj_a_cycle: float

    def concerns(self, problem: SchedulingProblem) -> bool:
        """Whether cores draw any."""
        return self.pj_a_cycle > 0

    def energy_pj(self, problem: SchedulingProblem, schedule: Schedule) -> float:
        """Energy that all cores draw in a cycle, whether they run or wait, times the latency."""
        return self.pj_a_cycle * schedule.latency_cycles


def further_schedule_terms(problem: SchedulingProblem) -> dict[str, ScheduleTerm]:
    """The terms of static power and the entered terms that the schedules of a problem have."""
    known: dict[str, ScheduleTerm] = {name: PowerOfCores(rate) for name, rate in problem.system.rates_pj_a_cycle}
    known |= {name: SCHEDULE_TERMS[name] for name in SCHEDULE_TERMS.names}
    found = {name: term for name, term in known.items() if term.concerns(problem)}
    if both := [name for name in (ON_CORE, *CAUSES) if name in found]:
        message = "is a term of the energy of schedules, and one of static power"
        raise InputError([Problem(message, "attributes of hardware", value=name) for name in both])
    return found


def energy_terms_of(problem: SchedulingProblem, schedule: Schedule) -> EnergyTerms:
    """Every term of the energy of a schedule, from the cores of its CNs, its times and its counts."""
    system = problem.system
    on_core = problem.costs.on_core_energy_pj[problem.graph.cost_row, schedule.allocation]
    read_pj = schedule.words_read @ system.memory_read_energy_pj
    moved = zip(
        (schedule.link_bits @ system.link_energy_pj_per_bit).tolist(),
        (read_pj + schedule.words_written @ system.memory_write_energy_pj).tolist(),
        strict=True,
    )
    entered = {name: term.energy_pj(problem, schedule) for name, term in further_schedule_terms(problem).items()}
    return {ON_CORE: float(on_core.sum()), **dict(zip(CAUSES, map(CauseEnergy._make, moved), strict=True)), **entered}
