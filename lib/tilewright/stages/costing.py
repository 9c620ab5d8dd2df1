"""The stage CostModel: what loop orders cost."""

from collections.abc import Iterator
from dataclasses import dataclass

from tilewright.search.batch import OrderBatch, cost_orders
from tilewright.stages.base import Rest, Stage
from tilewright.stages.items import Evaluations
from tilewright.stages.results import tally_key
from tilewright.stages.tally import CandidateTally


@dataclass(frozen=True)
class CostModel(Stage):
    """Costs batches of loop orders with the compiled cost model: energy and latency of each, whether it fits, and if
    none does, why the one that misses by least does not. Stands at the end of every pipeline.

    Example: [Sum, Workload, MinimalLatency, SpatialMappingConversion, TemporalOrderingConversion, CostModel]
    """

    takes = OrderBatch
    gives = None
    returns = Evaluations
    stands_for = "CostModelStage"

    def run(self, item: OrderBatch, rest: Rest) -> Iterator[Evaluations]:
        """One result: the costs of the batch."""
        costs = cost_orders(item)
        tally = CandidateTally(
            *tally_key(item),
            orders=item.visited,
            feasible=int(costs.fits.sum()),
            reason=costs.closest_failure,
            missed_by=float(costs.closest_ratio),
            notes=item.search,
        )
        yield Evaluations(costs, (tally,))
