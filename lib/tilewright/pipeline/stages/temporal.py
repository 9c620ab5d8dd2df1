"""Temporal mappers (stages that make loop orders for a layer with a spatial mapping), and the stage CostModel."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from tilewright.base.errors import MappingError
from tilewright.cost.waiting import waiting_keys
from tilewright.hardware.core import Core
from tilewright.mapping.constraints import TemporalOrderingEntry, Unrolling
from tilewright.mapping.temporal import complete_order, counted_boundaries, loop_multiset
from tilewright.pipeline.stages.base import Control, Rest, Stage
from tilewright.pipeline.stages.items import CandidateTally, Evaluations, TemporalProblem
from tilewright.pipeline.stages.layers import tally_key
from tilewright.search.batch import OrderBatch, cost_orders
from tilewright.search.evaluate import allocated_boundaries, boundaries_of
from tilewright.search.loma import layer_ordering, loma_batches
from tilewright.search.options import BestParameters, ExactParameters, LomaParameters, SalsaParameters
from tilewright.workload.layer import Layer
from tilewright.workload.relevancy import outputs_have_windows

if TYPE_CHECKING:
    from tilewright.search.exact.choice import Choice
    from tilewright.search.exact.layer_bound import GoalBounds
    from tilewright.search.exact.rounds import Incumbent
    from tilewright.search.exact.search import ExactResult

OPEN_ORDER = (
    "temporal_ordering does not fix every loop; give every loop with its size, or search with Loma, Salsa or Exact"
)

NO_PROOF_OF_WINDOWS = (
    "the outputs are addressed by a sliding window, for which the exact search has no bounds; the mapping is"
    " the best one that Loma finds, with greedy allocation"
)


def reason_without_proof(layer: Layer, core: Core) -> str:
    """Reason why the exact search gives no proof for a layer on a core; '' if the exact search gives a proof."""
    if outputs_have_windows(layer):
        return NO_PROOF_OF_WINDOWS
    if core.waits:
        keys = ", ".join(waiting_keys(core)) or "for a memory that the layer does not use"
        return (
            f"the latency includes waiting (keys in the hardware file: {keys}), for which the exact search has no"
            " bounds; the mapping is the best one that Loma finds, with greedy allocation"
        )
    return ""


@dataclass(frozen=True)
class TemporalMapper(Stage):
    """Base class of stages that make loop orders and hand them on in batches."""

    takes = TemporalProblem
    gives = OrderBatch
    collects = Evaluations
    returns = Evaluations

    def batches(self, item: TemporalProblem, rest: Rest) -> Iterator[OrderBatch]:
        """Batches of loop orders to be evaluated."""
        raise NotImplementedError

    def run(self, item: TemporalProblem, rest: Rest) -> Iterator[Any]:
        """Yield the results of one batch after another. If the mapping file gives a complete temporal mapping, the only
        batch is this mapping.
        """
        for batch in given_mapping(item) if item.given_boundaries else self.batches(item, rest):
            yield from rest(batch)


def given_mapping(item: TemporalProblem) -> Iterator[OrderBatch]:
    """Batch with one mapping: the loop order and the level boundaries of the mapping file. Raises MappingError if the
    loop order leaves a gap, or if its loop sizes do not cover the layer.
    """
    order = complete_order(layer_ordering(item.ordering, item), item.spatial.temporal_sizes)
    if order is None:
        raise MappingError(f"level_boundaries are given, but {OPEN_ORDER}")
    given = counted_boundaries(item.given_boundaries, item.ordering, item.layer)
    yield OrderBatch.of_orders(item, [order], [boundaries_of(item.layer, dict(given))])


@dataclass(frozen=True)
class BoundedMapper(TemporalMapper):
    """Base class of temporal mappers whose own search gives no lower bound."""

    bounds: bool = field(default=False, kw_only=True)
    """True if a lower bound of the layer's objective is also computed. The bound holds for all loop orders of the
    spatial mappings that are tried. Its computation does not change the mapping that is found.
    """

    def bounds_of(
        self,
        choices: "Sequence[Choice]",
        ordering: tuple[TemporalOrderingEntry, ...],
        objective: str,
        known: "Incumbent",
        control: Control,
    ) -> "GoalBounds":
        """Lower bounds of a layer's costs, for all loop orders of the spatial mappings in `choices`. `known` is the
        best mapping found.
        """
        from tilewright.search.exact.layer_bound import layer_bounds

        return layer_bounds(choices, ordering, objective, known, control.stop)


@dataclass(frozen=True)
class Loma(LomaParameters, BoundedMapper):
    """Tries all orders of the loop factors. If the mapping file has a temporal ordering, only orders that agree with
    this temporal ordering are tried.

    Orders are made and evaluated in batches, so that memory use does not grow with the number of orders.

    Example: {set: Loma, parameters: {lpf_limit: 8}}
    """

    stands_for = "LomaStage"

    def run(self, item: TemporalProblem, rest: Rest) -> Iterator[Any]:
        """Yield the results of one batch after another. If the mapping file gives a complete temporal mapping, the only
        batch is this mapping.
        """
        orders = loma_batches(item, item.ordering, self.lpf_limit, rest.control.stop)
        for batch in given_mapping(item) if item.given_boundaries else orders:
            yield from rest(batch)
            rest.control.advance(batch.visited)

    def order_total(self, item: TemporalProblem) -> int:
        """Number of loop orders that are tried; 0 if the temporal ordering of the mapping file is impossible."""
        entries, sizes = layer_ordering(item.ordering, item), item.spatial.temporal_sizes
        if complete_order(entries, sizes) is not None:
            return 1
        try:
            return loop_multiset(sizes, self.lpf_limit, entries).order_count
        except MappingError:
            return 0


@dataclass(frozen=True)
class Salsa(SalsaParameters, BoundedMapper):
    """Searches the orders of all prime factors by simulated annealing. Use this stage for layers with so many orders
    that not all orders can be tried.

    A neighbour of an order has two loops exchanged or one loop moved. A neighbour that does not fit the core is
    rejected. The same seed gives the same result. If the pipeline does not set `objective`, this stage has the
    objective of the nearest reduction above it.

    Example: {replace: Loma, stage: Salsa, parameters: {salsa_iteration_number: 5000, salsa_restarts: 4}}
    """

    stands_for = "SalsaStage"

    def batches(self, item: TemporalProblem, rest: Rest) -> Iterator[OrderBatch]:
        """Batches, each with the best order of one chain of the annealing."""
        from tilewright.search.salsa import salsa_batches

        control = rest.control
        return salsa_batches(item, item.ordering, self, control.stop, control.advance)

    def order_total(self, item: TemporalProblem) -> int:
        """Total number of neighbours that the chains of the annealing try."""
        return self.salsa_iteration_number * self.salsa_restarts


@dataclass(frozen=True)
class Exact(ExactParameters, TemporalMapper):
    """Finds the optimum over the orders of all prime factors by branch and bound. A certificate proves the optimum.

    If the spatial mappings of a layer come from SpatialMappingGenerator or CustomSpatialMappingGenerator, one search
    with one certificate covers all of them. Spatial mappings from another stage are searched one by one. If the time
    budget ends before the proof, the result is the best mapping found, with a lower bound and the gap to this bound.
    The field `search` of the record says whether the result is proven. If the pipeline does not set `objective`, this
    stage has the objective of the nearest reduction above it. There is no proof in two cases: a sliding window
    addresses the outputs of a layer, or calls, commands or requests of the core take time (docs/model/waiting.md). In
    these two cases, Loma searches the layer.

    Example: {replace: Loma, stage: Exact, parameters: {allocation: free, time_budget_s: 10}}
    """

    stands_for = "nothing; LomaStage without lpf_limit visits the same orders"

    def batches(self, item: TemporalProblem, rest: Rest) -> Iterator[OrderBatch]:
        """Batch with the best loop order. If the exact search gives no proof (`reason_without_proof`), the result has
        the batches of all loop orders that Loma tries, each with the reason.
        """
        from tilewright.search.exact.search import exact_batches

        self._check(item)
        control = rest.control
        if reason := reason_without_proof(item.layer, item.core):
            for batch in loma_batches(item, item.ordering, LomaParameters().lpf_limit, control.stop):
                yield replace(batch, search=(("no_proof", reason),))
                control.advance(batch.visited)
            return
        batches = exact_batches(item, item.ordering, self, control.stop, control.advance)
        yield from (with_boundaries(batch) if self.allocation == "free" else batch for batch in batches)

    def search(
        self,
        choices: "Iterable[Choice]",
        starts: int,
        ordering: tuple[TemporalOrderingEntry, ...],
        control: Control,
        known: "Incumbent | None" = None,
        *,
        looks_at_all: bool = False,
    ) -> "ExactResult | None":
        """Optimum over all spatial mappings of a layer. None if no mapping fits, or if the exact search has no bounds
        for the layer on its core (`reason_without_proof`).

        The search can begin with a `known` mapping of the layer; the field `candidate` of this mapping is not used.
        `looks_at_all` is explained in `search_choices`.
        Raises MappingError if the search finds no mapping and cannot prove that no mapping fits.
        """
        from tilewright.search.exact.search import search_choices

        first = list(islice(choices, max(1, starts)))
        if first and reason_without_proof(first[0].layer, first[0].core):
            return None
        given = chain(first, choices), starts, ordering, self, control.stop, control.advance, known
        return search_choices(*given, looks_at_all=looks_at_all)

    def _check(self, item: TemporalProblem) -> None:
        if self.allocation == "free" and item.arrays.even:
            raise MappingError(
                "the mapping file requires even mappings, which cannot be combined with allocation: free"
            )


@dataclass(frozen=True)
class Best(BestParameters, Exact):
    """Finds the best mapping, with a lower bound. This stage first searches in the same way as Loma and Salsa, then by
    branch and bound in the same way as Exact.

    The search of a layer ends when the gap is at most `largest_gap`, or when `effort` is spent. Until 1/32 of `effort`
    is spent, the search ends only when the gap is at most half of `largest_gap`. The remaining gap is reported. The
    result is never worse than the results of Loma and Salsa with their default parameters, except if `near_optimum`
    accepts a loss. The result is the same on every machine, except if a time budget ends the search. In all other
    respects, this stage is like Exact.

    Example: {replace: Loma, stage: Best, parameters: {largest_gap: 0.05, effort: 100000}}
    """

    stands_for = "nothing; LomaStage without lpf_limit visits the same orders"


@dataclass(frozen=True)
class BestForNetwork(Best):
    """Stage that searches a layer for the EDP of its network: the least energy + `pj_a_cycle` * latency.

    If the stage Workload searches a layer again, this stage replaces Best (`network_choice`). The notes of the search
    have value, lower bound and gap of the weighted sum.
    """

    pj_a_cycle: float = 0.0
    """Weight of the latency in pJ per cycle."""

    @classmethod
    def of(cls, mapper: Best, pj_a_cycle: float, largest_gap: float, effort: int | None) -> "BestForNetwork":
        """Stage with the parameters of `mapper`, but with other limits of the search: `largest_gap`, `effort`, and no
        time budget. `ends`, `front` and `near_optimum` are off. `pj_a_cycle` is the weight of the latency.
        """
        own = {one.name: getattr(mapper, one.name) for one in fields(Best)}
        limits: dict[str, Any] = {"largest_gap": largest_gap, "effort": effort, "time_budget_s": None}
        only = {"ends": False, "front": False, "near_optimum": 0.0}
        return cls(**{**own, **limits, **only, "pj_a_cycle": pj_a_cycle})


@dataclass(frozen=True)
class ExactAnswer(TemporalMapper):
    """Stage that hands on the result of a search over all spatial mappings of a layer. After the search, it takes the
    place of the temporal mapper in the pipeline.
    """

    result: "ExactResult"
    unrolling: Unrolling
    """Unrolling of the spatial mapping with which the result was found."""
    allocation: str
    notes: tuple[tuple[str, object], ...]

    def batches(self, item: TemporalProblem, rest: Rest) -> Iterator[OrderBatch]:
        """Batch with the best loop order that the search found, if `item` has the spatial mapping of this loop order;
        otherwise nothing.
        """
        from tilewright.search.exact.search import batch_of

        if item.spatial.unrolling != self.unrolling:
            return
        batch = batch_of(item, self.result, self.notes)
        yield with_boundaries(batch) if self.allocation == "free" else batch


def with_boundaries(batch: OrderBatch) -> OrderBatch:
    """Batch in which each loop order has level boundaries, which assign loops to memory levels. If the batch has no
    boundaries, the greedy allocator computes them. The batch is returned unchanged if it is empty or if an order does
    not fit.

    A search with free allocation calls this function for its result. The loop order in the result can later be written
    to a mapping file. If the file had no level boundaries, a run with free allocation that reads the file would search
    for boundaries again.
    """
    if batch.boundaries is not None or not len(batch.orders):
        return batch
    orders = [batch.loop_order(row) for row in range(len(batch.orders))]
    found = [allocated_boundaries(batch.problem, order) for order in orders]
    given = [bounds for bounds in found if bounds is not None]
    if len(given) < len(orders):
        return batch
    return OrderBatch.of_orders(batch.problem, orders, given, batch.visited, batch.search)


@dataclass(frozen=True)
class TemporalOrderingConversion(TemporalMapper):
    """Uses exactly the loop order that the mapping file gives as `temporal_ordering`, without a search.

    If the ordering is not complete, the layer has no mapping, and the tally says why.

    Example: {replace: Loma, stage: TemporalOrderingConversion}
    """

    stands_for = "TemporalOrderingConversionStage"

    def batches(self, item: TemporalProblem, rest: Rest) -> Iterator[OrderBatch]:
        """Batch with one loop order: the order that the mapping file gives. Raises MappingError if this order leaves a
        gap, or if its loop sizes do not cover the layer.
        """
        entries = layer_ordering(item.ordering, item)
        order = complete_order(entries, item.spatial.temporal_sizes)
        if order is None:
            raise MappingError(OPEN_ORDER)
        yield OrderBatch.of_orders(item, [order])

    def order_total(self, item: TemporalProblem) -> int:
        """Number of orders: 1."""
        return 1


@dataclass(frozen=True)
class CostModel(Stage):
    """Computes energy and latency of batches of loop orders with the compiled cost model, and checks whether each order
    fits the core. If no order fits, the tally has the reason for the order that is closest to fitting. Every pipeline
    ends with this stage.

    Example: [Sum, Workload, MinimalLatency, SpatialMappingConversion, TemporalOrderingConversion, CostModel]
    """

    takes = OrderBatch
    gives = None
    returns = Evaluations
    stands_for = "CostModelStage"

    def run(self, item: OrderBatch, rest: Rest) -> Iterator[Evaluations]:
        """Yield one result: the costs of the batch."""
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
