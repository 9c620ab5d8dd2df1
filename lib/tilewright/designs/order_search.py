"""New mapping searches for two runs after one hardware number was changed.

They show which run is better if the mappings of both runs suit the changed hardware.
"""

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
from tilewright.workload.graph import Workload


def searched_turns(
    turns: Sequence[OrderTurn], runs: tuple[ExplainedRun, ExplainedRun], jobs: int = 1
) -> tuple[SearchedTurn, ...]:
    """Results of new searches, one for each changed hardware number in `turns`. A result has the factor on this number
    that reverses the order of the two runs after new searches.

    For each tried factor, the mappings of both runs are searched again, with the options of the run. `jobs` is a number
    of processes and does not change the result. Raises MappingError if a search finds no mapping. Raises InputError if
    a changed clock makes a bandwidth per second smaller than a bit per cycle.
    """
    searches = _Searches(runs, jobs)
    found = []
    for one in turns:
        for turn in searchable(one):
            measured = _Measured(searches, one, turn.number)
            found.append(searched_turn(one, turn, measured.difference))
    return tuple(found)


def changed_core(run: ExplainedRun, number: UncertainNumber, place: int, factor: float) -> Core:
    """Core of a run after one number of the core is multiplied by a factor. `place` is the index of the run: 0 or 1.

    If the clock changes, the hardware file is read again, because bandwidths per second depend on the clock.
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
    """Energies and latencies of both runs after new searches. Each search is made once."""

    runs: tuple[ExplainedRun, ExplainedRun]
    jobs: int
    found: dict[tuple[int, Core], Outcome] = field(default_factory=dict)

    def total(self, place: int, core: Core) -> Outcome:
        """Energy and latency of a run on a core with newly searched mappings. `place` is the index of the run: 0
        or 1.
        """
        if (place, core) not in self.found:
            self.found[place, core] = searched_outcome(self.runs[place], core, self.jobs)
        return self.found[place, core]


@dataclass(frozen=True, eq=False)
class _Measured:
    """Relative difference between the two runs in the measure of `turn`, as a function of the factor by which `number`
    is multiplied. The mappings are searched again for each factor.
    """

    searches: _Searches
    turn: OrderTurn
    number: UncertainNumber

    def difference(self, factor: float) -> float:
        """Relative difference between the two runs after `number` is multiplied by `factor` and the mappings are
        searched again. It is (v2 - v1) / v1, where v1 and v2 are the values of the first and the second run in the
        measure of `turn`. The first run is the one with the smaller value before the change.
        """
        cores = [changed_core(run, self.number, place, factor) for place, run in enumerate(self.searches.runs)]
        return share_of_difference(
            self.turn, cores, [self.searches.total(place, core) for place, core in enumerate(cores)]
        )


def searched_outcome(run: ExplainedRun, core: Core, jobs: int, network: Workload | None = None) -> Outcome:
    """Energy and latency of a run on a core with newly searched mappings. The search has the options of the run. If
    `network` is not None, it replaces the network of the run. Raises MappingError if no mapping is found.
    """
    workload = run.network if network is None else network
    searched = map_workload(workload, core, run.mapping, run.options, threads=jobs).summary
    return Outcome(searched[ENERGY_PJ], searched[LATENCY_CYCLES])


def share_of_difference(turn: OrderTurn, cores: Sequence[Core], outcomes: Sequence[Outcome]) -> float:
    """Relative difference between the two runs: (v2 - v1) / v1, where v1 and v2 are the values of the first and the
    second run in the measure of `turn`. `turn.first` is the index of the first run.

    `cores` and `outcomes` have an entry for each run. Latencies are in seconds if both clocks are known.
    """
    by_time = all(core.clock_frequency_mhz for core in cores)
    values = []
    for core, (energy, cycles, _) in zip(cores, outcomes, strict=True):
        assert energy is not None
        assert cycles is not None
        latency = cycles / (core.clock_frequency_mhz * 1e6) if by_time else cycles
        values.append(BUILT_IN[turn.measure].value(energy, latency))
    first, second = (values[place] for place in (turn.first, 1 - turn.first))
    return second / first - 1
