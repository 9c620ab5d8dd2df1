"""Computation of the energy terms of a schedule: cores, data movement by cause, static power, and registered terms.

A further term is an object with the methods of `ScheduleTerm`. It is registered in `SCHEDULE_TERMS` under a name that
no term of cost tables has. `energy_ledger` stores and sums the computed terms.
"""

from dataclasses import dataclass
from typing import Protocol

from tilewright.base.errors import InputError, Problem
from tilewright.base.registry import Registry, lacking, methods_of, taken
from tilewright.cost.energy_terms import is_energy, wrong_energy
from tilewright.hardware.attributes import power_terms
from tilewright.multicore.scheduling.energy_ledger import CAUSES, ON_CORE, CauseEnergy, EnergyTerms
from tilewright.multicore.scheduling.problem import SchedulingProblem
from tilewright.multicore.scheduling.schedule import Schedule


class ScheduleTerm(Protocol):
    """Further energy term of schedules, in addition to computation and data movement."""

    def concerns(self, problem: SchedulingProblem) -> bool:
        """True if schedules of this problem have the term."""

    def energy_pj(self, problem: SchedulingProblem, schedule: Schedule) -> float:
        """Energy of the term in pJ, from the times and counts of a schedule. The energy must not be negative, because
        the lower bounds leave this term out.
        """


def _fault(name: str, entry: object) -> str:
    return taken(name, (ON_CORE, *CAUSES, *power_terms())) or lacking(entry, methods_of(ScheduleTerm))


SCHEDULE_TERMS: Registry[ScheduleTerm] = Registry(__name__, _fault)
"""Registered terms by name. They are added after all other terms, in the order of `SCHEDULE_TERMS.names`."""


@dataclass(frozen=True)
class PowerOfCores:
    """Energy term for the static power of all cores in a schedule. The costs of CNs do not include static power."""

    pj_a_cycle: float

    def concerns(self, problem: SchedulingProblem) -> bool:
        """True if some core has static power."""
        return self.pj_a_cycle > 0

    def energy_pj(self, problem: SchedulingProblem, schedule: Schedule) -> float:
        """Static energy in pJ: energy of all cores per cycle x latency in cycles. Cores that wait count, too."""
        return self.pj_a_cycle * schedule.latency_cycles


def further_schedule_terms(problem: SchedulingProblem) -> dict[str, ScheduleTerm]:
    """Energy terms of the schedules of a problem, by name, in addition to computation and data movement. These terms
    are the static power of cores, and the registered terms whose method `concerns` returns true for the problem. Raises
    InputError if a static power has the name ON_CORE or a name in CAUSES.
    """
    known: dict[str, ScheduleTerm] = {name: PowerOfCores(rate) for name, rate in problem.system.rates_pj_a_cycle}
    known |= {name: SCHEDULE_TERMS[name] for name in SCHEDULE_TERMS.names}
    found = {name: term for name, term in known.items() if term.concerns(problem)}
    if both := [name for name in (ON_CORE, *CAUSES) if name in found]:
        message = "this static power has the same name as another energy term"
        raise InputError([Problem(message, "attributes of hardware", value=name) for name in both])
    return found


def energy_terms_of(problem: SchedulingProblem, schedule: Schedule) -> EnergyTerms:
    """Energy terms of a schedule, computed from its allocation, times and counts. Raises InputError if a plug-in gives
    a value that is not a valid energy.
    """
    system = problem.system
    on_core = problem.costs.on_core_energy_pj[problem.graph.cost_row, schedule.allocation]
    read_pj = schedule.words_read @ system.memory_read_energy_pj
    moved = zip(
        (schedule.link_bits @ system.link_energy_pj_per_bit).tolist(),
        (read_pj + schedule.words_written @ system.memory_write_energy_pj).tolist(),
        strict=True,
    )
    entered = {name: term.energy_pj(problem, schedule) for name, term in further_schedule_terms(problem).items()}
    if wrong := [(name, value) for name, value in entered.items() if not is_energy(value)]:
        raise InputError([wrong_energy(name, "a schedule", value) for name, value in wrong])
    return {ON_CORE: float(on_core.sum()), **dict(zip(CAUSES, map(CauseEnergy._make, moved), strict=True)), **entered}
