"""Reductions: the kept mapping, the tally, and the data that a result holds."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from tilewright.base.errors import MappingError
from tilewright.pipeline.stages import (
    CandidateTally,
    CostedBatch,
    Evaluations,
    LayerProblem,
    MappedWorkload,
    NetworkProblem,
    Pipeline,
    Reduction,
    Rest,
    Stage,
    TemporalProblem,
)
from tilewright.pipeline.stages.base import run_stages
from tilewright.pipeline.stages.descriptions import of_core
from tilewright.pipeline.stages.items import Tally, merged_notes
from tilewright.pipeline.stages.run import map_layer
from tilewright.search.options import SearchOptions

from tests.unit.cost.engine_cases import network
from tests.unit.pipeline.stages.stage_cases import CORE, MAPPING, ONE, OPTIONS, SEARCH, TWO, results_of, run

PROBLEM = LayerProblem(TWO, CORE, MAPPING.entries[0], names=("two",))
KEY = (0, ())


@dataclass(frozen=True)
class FewestLoopsInside(Reduction):
    """Keeps the mapping whose innermost loop is the smallest."""

    def rank(self, costs: CostedBatch) -> Sequence[np.ndarray]:
        """Ranks by the size of the innermost loop; mappings that do not fit rank last."""
        inner = np.array([costs.batch.loops[order[0]][1] if len(order) else 1 for order in costs.batch.orders])
        return (np.where(costs.fits, inner, np.inf),)


@dataclass(frozen=True)
class Nothing(Reduction):
    """Accepts no mapping."""

    def rank(self, costs: CostedBatch) -> Sequence[np.ndarray]:
        """Ranks every mapping as infinite."""
        return (np.full(len(costs.energy_pj), np.inf),)


@dataclass(frozen=True)
class Halves(Stage):
    """Runs the stages below it twice."""

    takes = TemporalProblem
    gives = TemporalProblem

    def run(self, item: Any, rest: Rest) -> Iterator[Any]:
        """Yields the results twice."""
        yield from rest(item)
        yield from rest(item)


@pytest.mark.parametrize("objective", ["latency", "energy", "EDP"])
def test_two_reductions_are_one(objective: str) -> None:
    """The chosen mapping and the counts are the same with one reduction for each spatial mapping or only one in all."""
    name = {"latency": "MinimalLatency", "energy": "MinimalEnergy", "EDP": "MinimalEDP"}[objective]
    both = run(None, SearchOptions(lpf_limit=4, objective=objective))
    once = run(["Sum", "Workload", name, *(stage for stage in SEARCH if stage != "MinimalLatency")])
    assert once == both


def test_every_acceptable_mapping_is_ranked() -> None:
    """A user's rank decides among all mappings, and the record names the reduction as its objective."""
    mapped = run([{"replace": "MinimalLatency", "stage": FewestLoopsInside}])
    for record in mapped.records:
        smallest = min((size for _, size in record.loop_order), default=1)
        assert record.loop_order[0][1] == smallest
        assert record.objective == "FewestLoopsInside" == mapped.summary["objective"]


def test_nothing_acceptable_is_told() -> None:
    """A layer fails with this reason if mappings fit but none is acceptable."""
    with pytest.raises(MappingError, match=r"none of the mappings that fit is acceptable to .*Nothing"):
        run([{"replace": "MinimalLatency", "stage": Nothing}])


def test_batches_are_reduced_as_they_come(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many small batches give the record that one large batch gives."""
    whole = map_layer(ONE, CORE, MAPPING.entries[0], OPTIONS)
    monkeypatch.setattr("tilewright.search.loma.BATCH_ORDERS", 7)
    assert map_layer(ONE, CORE, MAPPING.entries[0], OPTIONS) == whole


def one_layer() -> NetworkProblem:
    """A network of one layer."""
    return of_core(network([TWO]), CORE, MAPPING)


def test_result_of_a_reduction_holds_one_row() -> None:
    """The result of a reduction has a batch with a single loop order. The arrays of the batch are copies: they keep no
    larger arrays in memory."""
    stages = Pipeline.build(None, OPTIONS).stages
    below = stages[[stage.name() for stage in stages].index("Workload") + 1 :]
    (found,) = run_stages(below, PROBLEM)
    assert isinstance(found, Evaluations)
    assert found.costs is not None
    assert found.costs.batch.orders.shape[0] == 1
    assert found.costs.batch.orders.base is None
    assert len(found.tally) > 1
    assert sum(entry.feasible for entry in found.tally) > 1


def test_without_a_reduction_every_mapping_is_counted_apart() -> None:
    """A pipeline without a reduction gives the best mapping of each layer, and says how many others there were."""
    pipeline = ["Workload", "SpatialMappingGenerator", "SpatialMappingConversion", "Loma", "CostModel"]
    mapped = run(pipeline, SearchOptions(lpf_limit=2))
    best = run(None, SearchOptions(lpf_limit=2))
    assert [record.alternatives for record in mapped.records] == [record.evaluations - 1 for record in best.records]
    assert [record.loop_order for record in mapped.records] == [record.loop_order for record in best.records]
    assert mapped.summary["latency_cycles"] == best.summary["latency_cycles"]
    assert len(mapped.summary["layer_index"]) == 3


def test_a_list_is_the_same_results() -> None:
    """Listify changes only the form of results, wherever it stands."""
    plain = run()
    assert run([{"insert": "Listify", "before": "Sum"}]) == plain
    assert run([{"insert": "Listify", "after": "Sum"}, {"drop": "Sum"}]) == plain
    below = ["Sum", "Workload", "Listify", "MinimalLatency", *SEARCH]
    assert run(below) == plain


def test_sum_adds_up_records() -> None:
    """Totals are equal with and without Sum; with Sum, there is one result."""
    assert run([{"drop": "Sum"}]) == run()
    (result,) = results_of(["Sum", "Workload", "MinimalLatency", *SEARCH], one_layer())
    assert isinstance(result, MappedWorkload)
    assert result.summary["energy_pj"] == result.records[0].energy_pj


# tally ----------------------------------------------------------------------------------------------------------------


def test_counts_of_one_spatial_mapping_add_up() -> None:
    """Parts of one candidate become one row, and candidates keep the order in which they first appeared."""
    tally = Tally()
    tally.add([CandidateTally(1, (), 10, 4), CandidateTally(0, (), 5, 0, reason="far", missed_by=3.0)])
    tally.add([CandidateTally(1, (), 10, 1), CandidateTally(0, (), 5, 0, reason="close", missed_by=1.5)])
    rows = [entry.row() for entry in tally]
    assert [(row.temporal_orders, row.feasible, row.reason) for row in rows] == [(20, 5, ""), (10, 0, "close")]


def test_the_closest_reason_is_told() -> None:
    """The reason that is kept is the one that missed by least, or the first of equals; if a mapping fits, none
    is kept.
    """
    far = CandidateTally(*KEY, 1, 0, reason="far", missed_by=9.0)
    near = CandidateTally(*KEY, 1, 0, reason="near", missed_by=2.0)
    assert far.plus(near).reason == near.plus(far).reason == "near"
    assert far.plus(CandidateTally(*KEY, 1, 0, reason="also", missed_by=9.0)).reason == "far"
    assert far.plus(CandidateTally(*KEY, 3, 2)).reason == ""


def test_same_candidate_met_twice() -> None:
    """Mappings that a stage hands on twice count twice, in one row."""
    once, twice = run(), run([{"insert": Halves, "before": "Loma"}])
    for record, other in zip(once.records, twice.records, strict=True):
        assert len(other.candidates) == len(record.candidates)
        assert other.evaluations == 2 * record.evaluations
        assert other.loop_order == record.loop_order


def test_notes_of_searches_are_put_together() -> None:
    """Merged notes have the smallest bound and the sum of work, and are proven if all are.

    Other values are those of the chosen result.
    """
    one = {"engine": "exact", "proven": True, "value": 8.0, "lower_bound": 8.0, "gap": 0.0, "nodes": 5}
    two = {"engine": "exact", "proven": False, "value": 9.0, "lower_bound": 6.0, "gap": 0.3, "nodes": 7}
    chosen, other = (CandidateTally(i, (), notes=tuple(notes.items())) for i, notes in enumerate((one, two)))
    assert merged_notes([chosen, other, CandidateTally(2, ())], chosen) == {
        "engine": "exact",
        "proven": False,
        "value": 8.0,
        "lower_bound": 6.0,
        "gap": 0.25,
        "nodes": 12,
    }
    assert merged_notes([CandidateTally(0, ())], None) == {}
