"""The terms of the energy of a schedule: that on cores, that of data that moves, by cause, that of static power, and
those that are entered.

The ledger of a schedule, as `cost.ledger` has that of a layer: ordered, named terms that sum to the total. What adds
up, checks, tabulates or draws the energy of schedules iterates over them; only who makes a term names it. A further
term is one object with the attributes of `ScheduleTerm`, entered in `SCHEDULE_TERMS` under a name that no term of
cost tables has.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from tilewright.cost.ledger import term_words
from tilewright.registry import Registry

if TYPE_CHECKING:
    from tilewright.scheduling.problem import SchedulingProblem
    from tilewright.scheduling.result import Schedule

CAUSES = ("off_chip_fetch", "off_chip_stream", "eviction", "sink_output", "core_to_core")
"""Why data moves; in logs and counts a cause is its position, which `state_record` names."""
ON_CORE = "on_core"
"""The term of all that computation nodes cost on their cores, as the cost table has it."""
_WORDS = {
    ON_CORE: "on core",
    "off_chip_fetch": "fetched from off-chip",
    "core_to_core": "between cores",
    "eviction": "evictions",
    "sink_output": "outputs",
    "off_chip_stream": "streams",
}
READING_ORDER = tuple(_WORDS)
"""The order in which people are shown the terms; further ones come last."""


class CauseEnergy(NamedTuple):
    """A term of two parts: the energy of the data that moved for one cause."""

    link_pj: float
    memory_pj: float


TermEnergy = float | CauseEnergy
EnergyTerms = dict[str, TermEnergy]
"""Term -> energy, in the order in which they add up: ON_CORE, those of CAUSES, the entered ones."""


class ScheduleTerm(Protocol):
    """A term of the energy of schedules besides those on cores and of data that moves."""

    def concerns(self, problem: "SchedulingProblem") -> bool:
        """Whether a problem has it at all; where not, its schedules do not name it."""

    def energy_pj(self, problem: "SchedulingProblem", schedule: "Schedule") -> float:
        """What it adds for a schedule, by its times and counts; not negative, so that the lower bounds hold."""


SCHEDULE_TERMS: Registry[ScheduleTerm] = Registry(__name__)
"""Terms by name, in the order in which they add up after all others."""


@dataclass(frozen=True)
class PowerOfCores:
    """Static power of all cores from the start to the end of a schedule; the costs of CNs do not have it."""

    pj_a_cycle: float

    def concerns(self, problem: "SchedulingProblem") -> bool:
        """Whether cores draw any."""
        return self.pj_a_cycle > 0

    def energy_pj(self, problem: "SchedulingProblem", schedule: "Schedule") -> float:
        """Energy that all cores draw in a cycle, whether they run or wait, times the latency."""
        return self.pj_a_cycle * schedule.latency_cycles


def further_schedule_terms(problem: "SchedulingProblem") -> dict[str, ScheduleTerm]:
    """The terms of static power and the entered terms that the schedules of a problem have."""
    known: dict[str, ScheduleTerm] = {name: PowerOfCores(rate) for name, rate in problem.system.rates_pj_a_cycle}
    known |= {name: SCHEDULE_TERMS[name] for name in SCHEDULE_TERMS.names}
    return {name: term for name, term in known.items() if term.concerns(problem)}


def energy_terms_of(problem: "SchedulingProblem", schedule: "Schedule") -> EnergyTerms:
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


def term_pj(energy: TermEnergy) -> float:
    """The energy of a term."""
    return sum(energy) if isinstance(energy, CauseEnergy) else energy


def total_pj(terms: EnergyTerms) -> float:
    """The sum of all terms."""
    first, *others = map(term_pj, terms.values())
    return first + sum(others)


def moved_pj(terms: EnergyTerms) -> float:
    """The sum of the terms of data that moves."""
    return sum(sum(energy) for energy in terms.values() if isinstance(energy, CauseEnergy))


def further_terms(terms: EnergyTerms) -> dict[str, float]:
    """The entered terms."""
    singles = {name: energy for name, energy in terms.items() if not isinstance(energy, CauseEnergy)}
    return {name: energy for name, energy in singles.items() if name != ON_CORE}


def term_parts(terms: EnergyTerms) -> Iterator[tuple[str, str, float]]:
    """(term, part, energy) of all numbers; the part is '' where the term is one number, else `link` or `memory`."""
    for name, energy in terms.items():
        if isinstance(energy, CauseEnergy):
            yield from ((name, field.removesuffix("_pj"), value) for field, value in energy._asdict().items())
        else:
            yield name, "", energy


def words_of(term: str) -> str:
    """What people read for a term."""
    return _WORDS.get(term, term_words(term))


def in_reading_order(terms: EnergyTerms) -> EnergyTerms:
    """The terms in READING_ORDER."""
    return {name: terms[name] for name in dict.fromkeys((*READING_ORDER, *terms)) if name in terms}


def terms_of_summary(energy: Mapping[str, Any]) -> EnergyTerms:
    """The terms from the table `energy` of a summary."""
    return terms_of_parts({ON_CORE: energy["on_core_pj"], **energy["causes"], **energy.get("terms_pj", {})})


def terms_of_parts(parts: Mapping[str, Any]) -> EnergyTerms:
    """The terms from their form in a file: a number, or an object with the numbers of a cause."""
    return {
        name: CauseEnergy(energy["link_pj"], energy["memory_pj"]) if isinstance(energy, Mapping) else energy
        for name, energy in parts.items()
    }
