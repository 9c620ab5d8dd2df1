"""Stages that keep less than they get: the best mapping, the sum over a network, or everything as one list."""

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

import numpy as np

from tilewright.base.errors import InputError, Problem, count_of, some_of
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
    """Base of stages that keep one mapping, chosen by the `rank` of a subclass.

    Batches are reduced as they come, so that memory does not grow with the number of orders.
    """

    collects = Evaluations
    returns = Evaluations
    minimises: ClassVar[str] = ""
    """Name of the objective in a record."""

    def __init_subclass__(cls, **others: Any) -> None:
        """Set `minimises` of a subclass that does not set it to the name of the subclass."""
        super().__init_subclass__(**others)
        if "minimises" not in cls.__dict__:
            cls.minimises = cls.__name__

    @abstractmethod
    def rank(self, costs: CostedBatch) -> Sequence[np.ndarray]:
        """Columns, with one number for each order of a batch, by which mappings are compared, the most important first.

        The smallest value wins; ties are decided by the next column, and finally by the order of discovery. An infinite
        value in the first column makes a mapping unacceptable; orders that do not fit have infinite energy and latency.
        """

    def refusal(self) -> str:
        """Reason why no mapping is acceptable although some fit."""
        return f"none of the mappings that fit is acceptable to {self.name()}"

    def run(self, item: Any, rest: Rest) -> Iterator[Evaluations]:
        """Yield one result: the best mapping with the tally of all, or only the tally."""
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
        """(index of the first best row of a batch, its rank); the index is None if none is acceptable."""
        if costs is None:
            return None, ()
        columns = self.rank(costs)
        row = first_of_the_best(columns)
        return (None, ()) if row is None else (row, tuple(float(column[row]) for column in columns))


class OfObjective(Reduction):
    """Keeps the best mapping by an objective; this module has a subclass for each of `OBJECTIVES`.

    Those for objectives of plug-ins are made when they are asked for.
    """

    def rank(self, costs: CostedBatch) -> Sequence[np.ndarray]:
        """Columns: the objective, then the metric that it does not include."""
        return ranking(self.minimises, costs.energy_pj, costs.latency_cycles)


@dataclass(frozen=True)
class MinimalLatency(OfObjective):
    """Keeps the mapping with the fewest cycles; of equal ones the one with less energy, then the first found.

    Example: [Sum, Workload, MinimalLatency, SpatialMappingGenerator, SpatialMappingConversion, Loma, CostModel]
    """

    minimises = "latency"
    stands_for = "MinimalLatencyStage"


@dataclass(frozen=True)
class MinimalEnergy(OfObjective):
    """Keeps the mapping with the least energy; of equal ones the one with fewer cycles, then the first found.

    Example: {replace: MinimalLatency, stage: MinimalEnergy}
    """

    minimises = "energy"
    stands_for = "MinimalEnergyStage"


@dataclass(frozen=True)
class MinimalEDP(OfObjective):
    """Keeps the mapping with the smallest product of energy and cycles; of equal ones the first found.

    Example: {replace: MinimalLatency, stage: MinimalEDP}
    """

    minimises = "EDP"
    stands_for = "MinimalEDPStage"


@cache
def _reduction(objective: str) -> type[OfObjective]:
    """Stage that keeps the best mapping by an objective of a plug-in."""
    doc = f"Keeps the mapping of least {objective}, an objective of a plug-in; of equal ones the first found."
    own = {"__doc__": doc, "__module__": __name__, "minimises": objective}
    return dataclass(frozen=True)(type(reduction_of(objective), (OfObjective,), own))


def __getattr__(name: str) -> type[OfObjective]:
    """Stage of that name for an objective of a plug-in. Raises AttributeError if there is no such objective."""
    for objective in ENTERED.names:
        if name == reduction_of(objective):
            return _reduction(objective)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


@dataclass(frozen=True)
class Sum(Stage):
    """Sums the layers of a network, which run one after another, into its summary.

    A layer counts once: if stages in between yield several records of it, only the first.

    Example: {drop: Sum}
    """

    takes = NetworkProblem
    collects = LayerRecord
    returns = MappedWorkload
    stands_for = "SumStage"

    def run(self, item: NetworkProblem, rest: Rest) -> Iterator[MappedWorkload]:
        """Yield one result: all records with the totals."""
        yield summed(item, rest(item), rest.stages)


def summed(item: NetworkProblem, found: Iterable[LayerRecord], stages: tuple[Stage, ...]) -> MappedWorkload:
    """Network with its totals, from the results of `stages`. Raises InputError if layers are missing."""
    records = one_a_layer(found)
    known = {name for record in records for name in record.names}
    wanted = [node.layer.name for node in item.workload.layers_in_order if node.layer is not None]
    if missing := [name for name in wanted if name not in known]:
        told = f"the pipeline passes on no record of {count_of(len(missing), 'layer')}, so there is no total"
        raise InputError([Problem(f"{told}: {some_of(missing)}", path=item.workload.name)])
    reduced = next((record.objective for record in records if record.alternatives), "")
    objective, model = what_is_minimised(stages) or reduced, model_of(stages)
    locality = locality_summary(item, records, model)
    summary = summarize(item.workload, item.core, objective, model, records, item.coverage, locality)
    return MappedWorkload(records, summary)


@dataclass(frozen=True)
class Listify(Stage):
    """Passes on everything that it gets as one list.

    Example: {insert: Listify, before: Sum}
    """

    returns = list
    stands_for = "ListifyStage"

    def run(self, item: Any, rest: Rest) -> Iterator[list[Any]]:
        """Yield one result: the list."""
        yield list(rest(item))
