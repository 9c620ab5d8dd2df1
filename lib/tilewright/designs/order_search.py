"""New searches for two runs with a changed number, to find their order with mappings that fit the change."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from tilewright.base.measures import ENERGY_PJ, LATENCY_CYCLES
from tilewright.base.objectives import BUILT_IN
from tilewright.designs.bandwidth_numbers import with_bandwidth
from tilewright.designs.core_trials import ExplainedRun
from tilewright.designs.held_mappings import Outcome
from tilewright.hardware.core import Core, Memory, single_core
from tilewright.hardware.physical_rates import CLOCK_KEY
from tilewright.hardware.source import parse_accelerator
from tilewright.pipeline.stages.run import map_workload
from tilewright.results.order_turn import BANDWIDTH, CLOCK, MAC_ENERGY, OrderTurn, UncertainNumber
from tilewright.results.searched_turn import SearchedTurn, searchable, searched_turn


def searched_turns(
    turns: Sequence[OrderTurn], runs: tuple[ExplainedRun, ExplainedRun], jobs: int = 1
) -> tuple[SearchedTurn, ...]:
    """Turns of the order of two runs after new searches. For each factor that is tried, the mappings of both runs are
    searched again.

    Each search has the options of its run. The number of `jobs` does not change the result. Raises MappingError if a
    search finds no mapping. Raises InputError if a changed clock makes a bandwidth per second smaller than a bit per
    cycle.
    """
    searches = _Searches(runs, jobs)
    found = []
    for one in turns:
        for turn in searchable(one):
            measured = _Measured(searches, one, turn.number)
            found.append(searched_turn(one, turn, measured.difference))
    return tuple(found)


def changed_core(run: ExplainedRun, number: UncertainNumber, place: int, factor: float) -> Core:
    """Core of a run in which a number is multiplied by a factor. `place` is the index of the run: 0 or 1.

    A changed clock is read with the hardware file, because bandwidths per second depend on it.
    """
    core, parts = run.core, number.parts[place]
    if not parts or factor == 1:
        return core
    if number.kind == CLOCK:
        clock = f"{core.clock_frequency_mhz * factor!r} MHz"
        return single_core(parse_accelerator({**run.hardware, CLOCK_KEY: clock}))
    if number.kind == BANDWIDTH:
        return with_bandwidth(core, parts, factor)
    if number.kind == MAC_ENERGY:
        array = core.operational_array
        return replace(core, operational_array=replace(array, unit_energy_pj=array.unit_energy_pj * factor))
    return replace(core, memories=tuple(_scaled(one, factor) if one.name in parts else one for one in core.memories))


def _scaled(memory: Memory, factor: float) -> Memory:
    energies = memory.read_energy_pj * factor, memory.write_energy_pj * factor
    return replace(memory, read_energy_pj=energies[0], write_energy_pj=energies[1])


@dataclass(eq=False)
class _Searches:
    """Totals of both runs after new searches. Each search is made once."""

    runs: tuple[ExplainedRun, ExplainedRun]
    jobs: int
    found: dict[tuple[int, Core], Outcome] = field(default_factory=dict)

    def total(self, place: int, core: Core) -> Outcome:
        """Energy and latency of a run on a core with newly searched mappings."""
        if (place, core) not in self.found:
            run = self.runs[place]
            summary = map_workload(run.network, core, run.mapping, run.options, threads=self.jobs).summary
            self.found[place, core] = Outcome(summary[ENERGY_PJ], summary[LATENCY_CYCLES])
        return self.found[place, core]


@dataclass(frozen=True, eq=False)
class _Measured:
    """Difference of two runs in a measure, by the factor on a number."""

    searches: _Searches
    turn: OrderTurn
    number: UncertainNumber

    def difference(self, factor: float) -> float:
        """Value of the second run minus that of the first run, as a share of the first."""
        cores = [changed_core(run, self.number, place, factor) for place, run in enumerate(self.searches.runs)]
        by_time = all(core.clock_frequency_mhz for core in cores)
        values = []
        for place, core in enumerate(cores):
            energy, cycles = self.searches.total(place, core)[:2]
            assert energy is not None
            assert cycles is not None
            latency = cycles / (core.clock_frequency_mhz * 1e6) if by_time else cycles
            values.append(BUILT_IN[self.turn.measure].value(energy, latency))
        first, second = (values[place] for place in (self.turn.first, 1 - self.turn.first))
        return second / first - 1
