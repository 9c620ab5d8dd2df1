"""New searches for two runs at other batch sizes, which show the better run at each batch size."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from tilewright.base.errors import MappingError
from tilewright.designs.core_trials import ExplainedRun
from tilewright.designs.held_mappings import Outcome
from tilewright.designs.order_search import searched_outcome, share_of_difference
from tilewright.results.batch_turn import BatchTurn, batch_turn
from tilewright.results.order_turn import OrderTurn
from tilewright.workload.batches import BatchedNetwork


def batch_turns(
    turns: Sequence[OrderTurn],
    runs: tuple[ExplainedRun, ExplainedRun],
    networks: tuple[BatchedNetwork, BatchedNetwork],
    batches: Sequence[int],
    jobs: int = 1,
) -> tuple[BatchTurn, ...]:
    """Comparisons of two runs at other batch sizes: one `BatchTurn` for each `OrderTurn` in `turns`. A `BatchTurn` has
    the difference of the runs at each batch size, in the measure of the `OrderTurn`.

    The mappings of both runs are searched again for each batch size, with the options of the run. `networks` has the
    network file of each run. `jobs` is a number of processes and does not change the result. Raises InputError if the
    batch size of a network cannot be changed, and MappingError if a search finds no mapping.
    """
    searches = _Searches(runs, networks, jobs)
    # All networks are read first, so that a batch that does not fit is told before the long searches.
    for network in networks:
        for batch in batches:
            network.at(batch)
    return tuple(batch_turn(one, networks[0].batch, batches, _Measured(searches, one).difference) for one in turns)


@dataclass(eq=False)
class _Searches:
    """Costs of both runs after new searches at other batch sizes. Each search is made only once."""

    runs: tuple[ExplainedRun, ExplainedRun]
    networks: tuple[BatchedNetwork, BatchedNetwork]
    jobs: int
    found: dict[tuple[int, int], Outcome] = field(default_factory=dict)

    def total(self, place: int, batch: int) -> Outcome:
        """Energy and latency of the run with index `place` (0 or 1) after a new search with the batch `batch`."""
        if (place, batch) not in self.found:
            run, network = self.runs[place], self.networks[place].at(batch)
            try:
                self.found[place, batch] = searched_outcome(run, run.core, self.jobs, network)
            except MappingError as error:
                raise MappingError(f"with a batch of {batch:,} on {run.core.name}:", *error.args) from error
        return self.found[place, batch]


@dataclass(frozen=True, eq=False)
class _Measured:
    """Difference of two runs in the measure of one `OrderTurn`, as a function of the batch size."""

    searches: _Searches
    turn: OrderTurn

    def difference(self, batch: int) -> float:
        """Relative difference between the two runs after new searches with the batch `batch`: (v2 - v1) / v1, where v1
        and v2 are the values of the first and the second run in the measure of `turn`. `turn.first` is the index of the
        first run.
        """
        cores = [run.core for run in self.searches.runs]
        outcomes = [self.searches.total(place, batch) for place in range(len(cores))]
        return share_of_difference(self.turn, cores, outcomes)
