"""Running the exact search: time budgets, stops, progress, equal results, and the content of its batch."""

import itertools
import json
import math
import threading
from typing import Any

import pytest
from tilewright.base.errors import MappingError
from tilewright.search import loma as loma_module
from tilewright.search.batch import SearchStoppedError, cost_orders
from tilewright.search.evaluate import PreparedProblem, evaluate_prepared, prepare
from tilewright.search.exact import candidate as candidate_module
from tilewright.search.exact import rounds as exact_module
from tilewright.search.exact import search as exact_search
from tilewright.search.exact import tables as exact_tables_module
from tilewright.search.exact.lattice_record import LABELS
from tilewright.search.exact.rounds import WIDTHS
from tilewright.search.exact.search import ExactParameters, exact_batches, search_exact
from tilewright.search.options import SearchOptions

from tests.unit.cost.engine_cases import LINKS, Order, convolution, gemm, register_core
from tests.unit.search.exact.exact_brute_force import (
    ALLOCATIONS,
    LARGEST_FREE_SPACE,
    OBJECTIVES,
    free_mapping_count,
    optimum,
    search,
    space_of,
)
from tests.unit.search.exact.exact_cases import problems

LARGE = convolution("large", K=24, C=12, OX=30, OY=14, FX=3, FY=3)
LARGE_CORE = register_core(buffer_bits=3000)


def large_problem() -> PreparedProblem:
    """A problem that takes the exact search some seconds."""
    return prepare(LARGE, LARGE_CORE, LINKS, (("D1", (("K", 4),)),), SearchOptions())


@pytest.mark.parametrize("allocation", ALLOCATIONS)
def test_time_budget(allocation: str) -> None:
    """The result when the time is over is a mapping that fits, with a bound below the optimum and a gap."""
    prepared = large_problem()
    better = search(prepared, allocation, "EDP", budget_s=1.0)
    assert better is not None
    for budget_s in (1e-9, 0.02):
        result = search(prepared, allocation, "EDP", budget_s=budget_s)
        assert result is not None
        assert result.lower_bound <= better.value <= result.value
        assert result.is_proven is False
        assert result.ended_by_time
        assert ("ended_by_time", True) in result.notes("exact", allocation)
        assert 0 < result.gap <= 1
        record = evaluate_prepared(prepared, result.order, result.boundaries)
        assert record.energy_pj * record.latency_cycles == pytest.approx(result.value, rel=1e-12)


def test_nothing_found_in_time_is_not_nothing_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search that ends before it has a mapping says so, and does not say that no mapping fits."""
    for module in (loma_module, candidate_module):  # neither loma nor salsa, of which one usually finds a mapping
        monkeypatch.setattr(module, "best_row", lambda costed, objective: None)
    with pytest.raises(MappingError, match="within its time budget"):
        search(large_problem(), "free", "EDP", budget_s=1e-9)


def test_bounds_of_cut_searches_are_below_the_optimum() -> None:
    """The bound of a search that is cut short is not above the optimum that brute force finds."""
    unproven = 0
    for where, _, prepared in problems(range(900, 920)):
        spaces = space_of(prepared, "greedy")
        for objective in OBJECTIVES:
            try:
                result = search(prepared, "greedy", objective, budget_s=1e-9)
            except MappingError:
                continue  # nothing found in time
            if result is not None:
                assert result.lower_bound <= optimum(spaces, objective) * (1 + 1e-9), (*where, objective)
                assert result.value >= optimum(spaces, objective) * (1 - 1e-9), (*where, objective)
                unproven += not result.is_proven
    assert unproven > 20


@pytest.mark.parametrize("allocation", ALLOCATIONS)
def test_stop_event(allocation: str) -> None:
    """A search that is asked to stop ends, both before it begins and during the search."""
    stop = threading.Event()
    told: list[int] = []

    def progress(count: int) -> None:
        told.append(count)
        stop.set()

    with pytest.raises(SearchStoppedError):
        search_exact(large_problem(), (), ExactParameters("EDP", allocation), stop, progress)
    assert len(told) == 1
    with pytest.raises(SearchStoppedError):
        search_exact(large_problem(), (), ExactParameters("EDP", allocation), stop)


def test_same_search_same_result() -> None:
    """Two runs of a search, with others between, give equal results and look at equally many prefixes."""
    runs = []
    for _ in range(2):
        results = []
        for _, _, prepared in problems(range(1000, 1010)):
            results += [search(prepared, *both) for both in itertools.product(ALLOCATIONS, OBJECTIVES)]
        runs.append(results)
    assert runs[0] == runs[1]
    assert sum(result is not None for result in runs[0]) > 40


Searched = list[tuple[Any, PreparedProblem, str, str, Any]]


@pytest.fixture(scope="module")
def searched() -> Searched:
    """Some problems and their results for each allocation and objective; the search has its default widths."""
    assert exact_module.WIDTHS == WIDTHS
    ways = [*itertools.product(ALLOCATIONS, OBJECTIVES)]
    return [
        (where, prepared, *way, search(prepared, *way))
        for where, _, prepared in problems(range(1200, 1216))
        for way in ways
    ]


@pytest.mark.parametrize("widths", [(1, LABELS), (1, 2, 4, LABELS), (LABELS,)])
def test_widths_mean_nothing(widths: tuple[int, ...], searched: Searched, monkeypatch: pytest.MonkeyPatch) -> None:
    """The proven value is the same for any widths of rounds; only the number of prefixes differs."""
    different = 0
    monkeypatch.setattr(exact_module, "WIDTHS", widths)
    for where, prepared, allocation, objective, expected in searched:
        result = search(prepared, allocation, objective)
        assert (result is None) == (expected is None), where
        if result is not None and expected is not None:
            assert result.is_proven is expected.is_proven is True, where
            assert result.value == pytest.approx(expected.value, rel=1e-9, abs=0), where
            different += result.nodes != expected.nodes
    assert different > 0


def test_rounds_that_end_early_bound_the_optimum(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some results are not proven with narrow rounds alone, but no bound is above the value of brute force."""
    monkeypatch.setattr(exact_module, "WIDTHS", (1, 2))
    monkeypatch.setattr(loma_module, "best_row", lambda costed, objective: None)
    monkeypatch.setattr(exact_search, "SALSA_ITERATIONS", 1)
    unproven = 0
    for where, _, prepared in problems(range(1300, 1330)):
        for allocation, objective in itertools.product(ALLOCATIONS, OBJECTIVES):
            if allocation == "free" and free_mapping_count(prepared) > LARGEST_FREE_SPACE:
                continue
            try:
                result = search(prepared, allocation, objective)
            except MappingError:
                continue  # nothing found in the narrow rounds
            if result is not None:
                least = optimum(space_of(prepared, allocation), objective)
                assert result.lower_bound <= least * (1 + 1e-9), (*where, allocation, objective)
                assert result.value >= least * (1 - 1e-9), (*where, allocation, objective)
                unproven += not result.is_proven
    assert unproven > 5


def test_a_broken_bound_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mapping that costs less than the bound of its label raises AssertionError."""

    def new_search(*arguments: Any) -> Any:
        record = exact_tables_module.new_search(*arguments)
        record.broken = 1
        return record

    monkeypatch.setattr(exact_module, "new_search", new_search)
    with pytest.raises(AssertionError, match="costs less than the bound"):
        search(large_problem(), "free", "energy")


@pytest.mark.parametrize("allocation", ALLOCATIONS)
def test_no_time_at_all(allocation: str) -> None:
    """A search without time makes no tables.

    Its result is a mapping with a simple bound: the passes for the latency, the array's energy for the energy.
    """
    prepared = large_problem()
    for objective in OBJECTIVES:
        result = search_exact(prepared, (), ExactParameters(objective, allocation, time_budget_s=1e-9))
        assert result is not None
        passes = math.prod(size for _, size in prepared.spatial.temporal_sizes)
        least = {"latency": passes, "energy": float(prepared.arrays.fixed_energy_pj)}
        assert result.lower_bound == least.get(objective, least["latency"] * least["energy"])
        assert (result.is_proven, result.nodes) == (False, 0)
        assert result.value > result.lower_bound


def test_progress_counts_prefixes() -> None:
    """The reported progress adds up to the prefixes of the result."""
    told: list[int] = []
    prepared = prepare(gemm(C=8, D=12, K=6), register_core(buffer_bits=300), LINKS, (("D1", ()),), SearchOptions())
    result = search_exact(prepared, (), ExactParameters("energy", "free"), None, told.append)
    assert result is not None
    assert sum(told) == result.nodes > 0


@pytest.mark.parametrize("allocation", ALLOCATIONS)
def test_batch_carries_the_certificate(allocation: str) -> None:
    """The batch has one mapping with its cost, and JSON values that say what is proven."""
    for where, _, prepared in itertools.islice(problems(range(1100, 1140)), 30):
        result = search(prepared, allocation, "EDP")
        (batch,) = exact_batches(prepared, (), ExactParameters("EDP", allocation))
        costed = cost_orders(batch)
        if result is None:
            assert not costed.fits.any(), where
            assert costed.closest_failure, where
            continue
        notes = json.loads(json.dumps(dict(batch.search)))
        assert [notes[name] for name in ("engine", "allocation", "gap")] == ["exact", allocation, 0]
        assert notes["proven"] is True
        assert notes["value"] == notes["lower_bound"] == result.value
        assert batch.visited == notes["nodes"] == result.nodes
        assert (batch.loop_order(0), batch.level_boundaries(0)) == (result.order, result.boundaries)
        assert float(costed.energy_pj[0] * costed.latency_cycles[0]) == pytest.approx(result.value, rel=1e-12)


def test_orders_in_space() -> None:
    """The number of orders is that of the prime factors, plus all mergings if memories are allocated greedily."""
    prepared = prepare(gemm(C=4, D=2, K=3), register_core(), LINKS, (("D1", ()),), SearchOptions())
    free, greedy = search(prepared, "free", "energy"), search(prepared, "greedy", "energy")
    merged: Order = (("C", 4), ("D", 2), ("K", 3))
    assert free is not None
    assert greedy is not None
    assert free.orders_in_space == 12
    assert greedy.orders_in_space == 12 + math.factorial(len(merged))
