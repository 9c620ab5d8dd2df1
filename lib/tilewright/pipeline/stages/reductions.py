"""Stages that combine results: they keep the best mapping, sum over a network, or make one list of all results."""

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

import numpy as np

from tilewright.base.errors import InputError, Label, Problem, count_of, some_of
from tilewright.base.objectives import ENTERED, ranking, reduction_of
from tilewright.pipeline.stages.base import Rest, Stage
from tilewright.pipeline.stages.data_locality import locality_summary
from tilewright.pipeline.stages.descriptions import NetworkProblem
from tilewright.pipeline.stages.items import Evaluations, LayerRecord, MappedWorkload, Tally
from tilewright.pipeline.stages.layers import model_of, single_row, tally_key, what_is_minimised
from tilewright.search.batch import CostedBatch, first_of_the_best
from tilewright.search.summary import one_a_layer, summarize


@dataclass(frozen=True)
class Reduction(Stage):
    """Base class of stages that keep one mapping. The method `rank` of a subclass decides which mapping is the best.

    Each batch is reduced as soon as it arrives, so that memory use does not grow with the number of loop orders.
    """

    collects = Evaluations
    returns = Evaluations
    minimises: ClassVar[str] = ""
    """Name of the objective of the stage, as in the field `objective` of records. If a subclass sets no objective, the
    name of the subclass is used.
    """

    def __init_subclass__(cls, **others: Any) -> None:
        """Set `minimises` to the name of the subclass if the subclass does not set `minimises`."""
        super().__init_subclass__(**others)
        if "minimises" not in cls.__dict__:
            cls.minimises = cls.__name__

    @abstractmethod
    def rank(self, costs: CostedBatch) -> Sequence[np.ndarray]:
        """Columns of numbers by which mappings are compared, the most important column first. A column has one number
        for each loop order of a batch.

        The mapping with the smallest number wins. If numbers are equal, the next column decides; if all columns are
        equal, the mapping that was found first wins. A mapping with an infinite number in the first column is never
        chosen. Loop orders that do not fit have infinite energy and latency.
        """

    def refusal(self) -> str:
        """Reason in the tally if mappings fit the core but none of them is acceptable."""
        return f"none of the mappings that fit is acceptable to {self.name()}"

    def run(self, item: Any, rest: Rest) -> Iterator[Evaluations]:
        """Yield one result: the best mapping, with the tally of all mappings. If no mapping is acceptable, the result
        has only the tally.
        """
        tally = Tally()
        best: CostedBatch | None = None
        best_rank: tuple[float, ...] = ()
        rank_of: dict[Any, tuple[float, ...]] = {}
        for found in rest(item):
            tally.add(found.tally)
            row, rank = self._best_row(found.costs)
            if found.costs is None or row is None:
                continue
            key = tally_key(found.costs.batch)
            if key not in rank_of or rank < rank_of[key]:
                rank_of[key] = rank
                tally.choose(key, float(found.costs.energy_pj[row]), float(found.costs.latency_cycles[row]))
            if best is None or rank < best_rank:
                best, best_rank = single_row(found.costs, row), rank
        tally.refuse(self.refusal())
        yield Evaluations(best, tuple(tally))

    def _best_row(self, costs: CostedBatch | None) -> tuple[int | None, tuple[float, ...]]:
        """Pair (index of the best loop order of a batch, rank of this loop order). The index is None if no mapping of
        the batch is acceptable.
        """
        if costs is None:
            return None, ()
        columns = self.rank(costs)
        row = first_of_the_best(columns)
        return (None, ()) if row is None else (row, tuple(float(column[row]) for column in columns))


class OfObjective(Reduction):
    """Keeps the best mapping by an objective. This module has a subclass for each objective of `OBJECTIVES`.

    Subclasses for objectives of plug-ins are made at their first use.
    """

    def rank(self, costs: CostedBatch) -> Sequence[np.ndarray]:
        """Columns by which mappings are compared, each with one number for each loop order. The first column is the
        objective. If the objective is energy alone, the second column is latency; if it is latency alone, the second
        column is energy.
        """
        return ranking(self.minimises, costs.energy_pj, costs.latency_cycles)


@dataclass(frozen=True)
class MinimalLatency(OfObjective):
    """Keeps the mapping with the fewest cycles. If several mappings have the fewest cycles, the mapping with the least
    energy is kept. If several mappings are equal in cycles and energy, the mapping that was found first is kept.

    Example: [Sum, Workload, MinimalLatency, SpatialMappingGenerator, SpatialMappingConversion, Loma, CostModel]
    """

    minimises = "latency"
    stands_for = "MinimalLatencyStage"


@dataclass(frozen=True)
class MinimalEnergy(OfObjective):
    """Keeps the mapping with the least energy. If several mappings have the least energy, the mapping with the fewest
    cycles is kept. If several mappings are equal in energy and cycles, the mapping that was found first is kept.

    Example: {replace: MinimalLatency, stage: MinimalEnergy}
    """

    minimises = "energy"
    stands_for = "MinimalEnergyStage"


@dataclass(frozen=True)
class MinimalEDP(OfObjective):
    """Keeps the mapping with the smallest product of energy and cycles. If several mappings have the smallest product,
    the mapping that was found first is kept.

    Example: {replace: MinimalLatency, stage: MinimalEDP}
    """

    minimises = "EDP"
    stands_for = "MinimalEDPStage"


@cache
def _reduction(objective: str) -> type[OfObjective]:
    """Stage that keeps the best mapping by an objective of a plug-in."""
    doc = (
        f"Keeps the mapping with the least {objective}, an objective of a plug-in. Of equal mappings, the first one"
        " found is kept."
    )
    own = {"__doc__": doc, "__module__": __name__, "minimises": objective}
    return dataclass(frozen=True)(type(reduction_of(objective), (OfObjective,), own))


def __getattr__(name: str) -> type[OfObjective]:
    """Stage `name` for an objective of a plug-in. Raises AttributeError if there is no such objective."""
    for objective in ENTERED.names:
        if name == reduction_of(objective):
            return _reduction(objective)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


@dataclass(frozen=True)
class Sum(Stage):
    """Sums energy and latency of all layers of a network into a summary. The layers run one after another.

    If later stages yield several records of a layer, only the first one is used.

    Example: {drop: Sum}
    """

    takes = NetworkProblem
    collects = LayerRecord
    returns = MappedWorkload
    stands_for = "SumStage"

    def run(self, item: NetworkProblem, rest: Rest) -> Iterator[MappedWorkload]:
        """Yield one result: the records of all layers, with the totals of the network."""
        yield summed(item, rest(item), rest.stages)


def summed(item: NetworkProblem, found: Iterable[LayerRecord], stages: tuple[Stage, ...]) -> MappedWorkload:
    """Records and totals of a network, from the results of `stages`. Raises InputError if a layer has no record."""
    records = one_a_layer(found)
    known = {name for record in records for name in record.names}
    wanted = [node.layer.name for node in item.workload.layers_in_order if node.layer is not None]
    if missing := [name for name in wanted if name not in known]:
        told = f"the pipeline yields no record of {count_of(len(missing), 'layer')}, so there are no totals"
        raise InputError([Problem(f"{told}: {some_of(missing)}", path=Label(item.workload.name))])
    reduced = next((record.objective for record in records if record.alternatives), "")
    objective, model = what_is_minimised(stages) or reduced, model_of(stages)
    locality = locality_summary(item, records, model)
    summary = summarize(item.workload, item.core, objective, model, records, item.coverage, locality)
    return MappedWorkload(records, summary)


@dataclass(frozen=True)
class Listify(Stage):
    """Collects all results into one list, and passes on this list.

    Example: {insert: Listify, before: Sum}
    """

    returns = list
    stands_for = "ListifyStage"

    def run(self, item: Any, rest: Rest) -> Iterator[list[Any]]:
        """Yield one result: the list of all results of the stages after this one."""
        yield list(rest(item))
