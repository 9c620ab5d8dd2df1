"""Simulated annealing: optimum, determinism, constraints, and orders that do not fit."""

import json
import math
import os
import subprocess
import sys
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from tilewright.base.errors import MappingError
from tilewright.cost.problem import new_record
from tilewright.mapping.temporal import prime_factors
from tilewright.search import salsa
from tilewright.search.batch import NOTHING_MATCHES, OrderBatch, SearchStoppedError, best_row, cost_orders
from tilewright.search.evaluate import PreparedProblem, prepare
from tilewright.search.loma import loma_batches
from tilewright.search.options import SearchOptions
from tilewright.search.salsa import OrderSpace, SalsaParameters, draw_order, random_start, salsa_batches
from tilewright.search.salsa_kernel import CHAIN_DTYPE, random_below, random_bits, random_fraction

from tests.unit.cost.engine_cases import (
    LINKS,
    Case,
    cases,
    constraints,
    convolution,
    gemm,
    rank,
    register_core,
    small_core,
)

CORE = small_core(buffer_bits=600)
OBJECTIVES = ("latency", "energy", "EDP")
LAYERS = (
    convolution("one", K=8, C=3, OX=6, FX=3),
    gemm("two", C=12, D=5, K=6),
    convolution("three", padding=1, K=4, OX=4, OY=4, FX=3, FY=3),
)


def problem(layer: Any, core: Any = CORE, unrolling: Any = (("D1", (("K", 4),)),), **options: Any) -> PreparedProblem:
    """A prepared small problem."""
    return prepare(layer, core, LINKS, unrolling, SearchOptions(**options))


def ordering(pairs: list[list[Any]]) -> Any:
    """Entries of a temporal ordering."""
    return constraints((), pairs).temporal_ordering


def best_cost(batch: OrderBatch, objective: str) -> tuple[float, ...] | None:
    """The rank of the best order of a batch; None if no order fits."""
    costed = cost_orders(batch)
    row = best_row(costed, objective)
    return None if row is None else rank(objective, costed.energy_pj[row], costed.latency_cycles[row])


def optimum(prepared: PreparedProblem, objective: str, entries: Any = ()) -> tuple[float, ...] | None:
    """The least rank of all orders of the prime factors."""
    costs = [best_cost(batch, objective) for batch in loma_batches(prepared, entries, None)]
    return min((cost for cost in costs if cost is not None), default=None)


def annealed(prepared: PreparedProblem, objective: str, entries: Any = (), **options: Any) -> OrderBatch:
    """The only batch of an annealing."""
    (batch,) = salsa_batches(prepared, entries, SalsaParameters(objective, **options))
    return batch


def note(batch: OrderBatch, name: str) -> Any:
    """One of the search's notes on itself."""
    return dict(batch.search)[name]


# optimum --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("layer", LAYERS, ids=lambda layer: layer.name)
def test_long_chains_find_the_optimum(layer: Any, objective: str) -> None:
    """Some chain of 3000 iterations finds the least cost of all orders of the prime factors, where these can be
    enumerated.
    """
    prepared = problem(layer)
    batch = annealed(prepared, objective, salsa_iteration_number=3000, salsa_restarts=5)
    assert best_cost(batch, objective) == optimum(prepared, objective)
    assert len(batch.orders) == 5


@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(cases(), st.sampled_from(OBJECTIVES), st.integers(0, 3))
def test_never_worse_than_the_start_nor_better_than_the_optimum(case: Case, objective: str, seed: int) -> None:
    """The result of random problems is no worse than the start and no better than the optimum of the prime factors.

    If no order of the prime factors fits, one of merged loops may fit: a level that takes no part of a loop leaves it
    to other levels.
    """
    options = SearchOptions(temporal_mapping_type="even" if case.even else "uneven")
    prepared = prepare(case.layer, case.core, case.links, case.unrolling, options)
    batch = annealed(prepared, objective, salsa_iteration_number=300, seed=seed)
    found = best_cost(batch, objective)
    space = OrderSpace.of(prepared, ())
    start, _ = random_start(space, Random(salsa._random_state(seed, 0, "start")))
    event("fits" if found else "nothing fits")
    if start is not None:
        assert found is not None
        assert found <= rank(objective, start.energy_pj, start.latency_cycles)
    if math.perm(len(space.multiset)) <= 50_000:
        best = optimum(prepared, objective)
        assert best is None or found is not None
        if any(len(batch.loop_order(row)) < len(space.multiset) for row in range(len(batch.orders))):
            event("merged loops")
        else:
            assert (best is None) == (found is None)
            assert best is None or best <= found


def test_orders_are_of_all_prime_factors() -> None:
    """Each order has every prime factor that is left to iterate, as often as it occurs."""
    prepared = problem(gemm(C=12, D=30, K=64))
    batch = annealed(prepared, "energy", salsa_iteration_number=50, salsa_restarts=3)
    expected = Counter((d, p) for d, size in prepared.spatial.temporal_sizes for p in prime_factors(size))
    assert all(Counter(batch.loop_order(row)) == expected for row in range(3))
    assert sum(expected.values()) == 10


def test_neighbours_that_do_not_fit_are_rejected() -> None:
    """Chains end in the best of the few orders that fit.

    The top memory has room for final outputs (32 x 8 bits, with I and W 640), not for partial sums (896). So all C has
    to be done in the buffer.
    """
    core = register_core(buffer_bits=120, top_bits=700)
    prepared = problem(gemm(C=4, D=4, K=8), core, (("D1", ()),))
    space = OrderSpace.of(prepared, ())
    random = Random(1)
    draws = cost_orders(space.batch([draw_order(space, random) or [] for _ in range(400)]))
    assert 0 < draws.fits.sum() < 200, "otherwise the test shows nothing"
    batch = annealed(prepared, "energy", salsa_iteration_number=2000, salsa_restarts=4)
    assert cost_orders(batch).fits.all()
    assert best_cost(batch, "energy") == optimum(prepared, "energy")


# determinism ----------------------------------------------------------------------------------------------------------


def results(seed: int = 3) -> list[Any]:
    """Orders and counts of all small layers under all objectives."""
    found = []
    for layer in LAYERS:
        for objective in OBJECTIVES:
            batch = annealed(problem(layer), objective, salsa_iteration_number=200, salsa_restarts=3, seed=seed)
            found.append([batch.orders.tolist(), batch.visited, [list(pair) for pair in batch.search]])
    return found


def test_the_seed_decides() -> None:
    """Equal seeds give equal orders, and another seed gives other results."""
    assert results() == results()
    assert results() != results(seed=4)


def test_threads_and_processes_do_not_change_the_answer() -> None:
    """Four threads at once, and another process with random hashes of names, give the same orders."""
    expected = results()
    with ThreadPoolExecutor(4) as pool:
        assert all(found == expected for found in pool.map(lambda _: results(), range(4)))
    script = "import json; from tests.unit.search.test_salsa import results; print(json.dumps(results()))"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONHASHSEED": "7"}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == expected


def test_chains_do_not_depend_on_how_many_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first 3 of 5 chains equal 3 chains alone, also if they run in small blocks."""
    prepared = problem(LAYERS[1])
    three = annealed(prepared, "energy", salsa_iteration_number=500, salsa_restarts=3)
    monkeypatch.setattr(salsa, "BLOCK_ITERATIONS", 7)
    five = annealed(prepared, "energy", salsa_iteration_number=500, salsa_restarts=5)
    assert five.orders[:3].tolist() == three.orders.tolist()


def test_random_numbers() -> None:
    """The generator is SplitMix64, with the first numbers of its authors' program for state 1234567.

    Numbers below a count, and fractions, are spread evenly.
    """
    chain = new_record(CHAIN_DTYPE)
    chain.random_state = 1234567
    bits = [int(random_bits(chain)) for _ in range(5)]
    assert bits == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]
    drawn = Counter(random_below(chain, 6) for _ in range(6000))
    assert set(drawn) == set(range(6))
    assert all(900 < count < 1100 for count in drawn.values())
    fractions = [random_fraction(chain) for _ in range(2000)]
    assert 0 <= min(fractions) < 0.01 < 0.99 < max(fractions) < 1
    assert abs(sum(fractions) / 2000 - 0.5) < 0.02


def test_long_chains_cool_to_the_same_temperature() -> None:
    """Each of up to 1000 iterations lowers the temperature by 0.5 %, as in the reference; longer chains end equally
    cold.
    """
    space = OrderSpace.of(problem(LAYERS[1]), ())
    start, _ = random_start(space, Random(0))
    assert start is not None
    for iterations, factor in ((10, 0.995), (1000, 0.995), (50_000, 0.995 ** (1 / 50))):
        search = salsa._Salsa(space, SalsaParameters("energy", salsa_iteration_number=iterations), None, None)
        chain = search._new_chain(start, 0)
        assert math.isclose(chain.cooling, factor, rel_tol=1e-15)
        assert chain.temperature == 0.05


# constraints ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pairs", "holds"),
    [
        ([["K", "*"], ["D", "*"]], lambda o: (o[0][0], o[1][0]) == ("K", "D")),
        ([["*", "*"], ["C", "*"], ["D", 2]], lambda o: o[-2][0] == "C" and o[-1] == ("D", 2)),
        ([["K", 4], ["*", "*"], ["C", "*"]], lambda o: o[0] == ("K", 4) and o[-1][0] == "C"),
        ([["*", "*"], ["D", 3], ["K", 2], ["*", "*"]], lambda o: o.index(("K", 2), o.index(("D", 3))) > 0),
    ],
)
def test_orderings_are_respected(pairs: list[list[Any]], holds: Any) -> None:
    """Every chain ends in an order that matches the ordering, and the best is the best of those."""
    prepared = problem(gemm(C=4, D=6, K=8), register_core(buffer_bits=500), (("D1", ()),))
    batch = annealed(prepared, "latency", ordering(pairs), salsa_iteration_number=3000, salsa_restarts=4)
    assert all(holds(batch.loop_order(row)) for row in range(4))
    assert best_cost(batch, "latency") == optimum(prepared, "latency", ordering(pairs))


def test_every_matching_order_can_be_a_start() -> None:
    """Random starts under an ordering are exactly the orders that match it."""
    prepared = problem(gemm(C=4, D=2, K=4), register_core(), (("D1", ()),))
    entries = ordering([["K", "*"], ["*", "*"], ["C", 2], ["*", "*"]])
    space = OrderSpace.of(prepared, entries)
    random = Random(5)
    drawn = {tuple(space.loops[i] for i in draw_order(space, random) or ()) for _ in range(2000)}
    batches = list(loma_batches(prepared, entries, None))
    assert drawn == {batch.loop_order(row) for batch in batches for row in range(len(batch.orders))}


def test_complete_ordering_is_just_that_order() -> None:
    """A complete ordering is evaluated once, not split into primes."""
    prepared = problem(gemm(C=4, D=6, K=4), register_core(), (("D1", ()),))
    batch = annealed(prepared, "energy", ordering([["K", 4], ["D", 6], ["C", 4]]))
    assert [batch.loop_order(0)] == [(("K", 4), ("D", 6), ("C", 4))]
    assert (len(batch.orders), batch.visited, note(batch, "iterations")) == (1, 1, 0)


def test_ordering_that_nothing_meets() -> None:
    """An ordering with more loops of a dimension than there are matches nothing; a size that does not divide is an
    error.
    """
    prepared = problem(gemm(C=2, D=2, K=2), register_core(), (("D1", ()),))
    batch = annealed(prepared, "energy", ordering([["C", "*"], ["C", "*"]]))
    assert cost_orders(batch).closest_failure == NOTHING_MATCHES
    with pytest.raises(MappingError, match="whose product does not divide the 2 iterations"):
        annealed(prepared, "energy", ordering([["C", 3], ["D", "*"]]))


@pytest.mark.parametrize(("sizes", "length"), [({}, 0), ({"K": 7}, 1), ({"K": 8}, 3)])
def test_layers_with_one_order(sizes: dict[str, int], length: int) -> None:
    """No loops, one loop, or equal loops: there is one order, evaluated without iterations."""
    batch = annealed(problem(gemm(**sizes), register_core(), (("D1", ()),)), "latency")
    assert batch.orders.shape == (1, length)
    assert cost_orders(batch).fits.all()
    assert (batch.visited, note(batch, "iterations")) == (1, 0)


# starts ---------------------------------------------------------------------------------------------------------------


def test_nothing_fits() -> None:
    """The orders in the batch give the reason if no order fits.

    Before that, the search tries all random starts and all orders of few loops.
    """
    core = register_core(buffer_bits=64, top_bits=300)
    prepared = problem(gemm(C=4, D=4, K=4), core, (("D1", ()),))
    batch = annealed(prepared, "energy")
    costed = cost_orders(batch)
    assert "memory 'top' is too small" in costed.closest_failure
    assert batch.visited == 1000 + 90


def test_start_in_the_best_order_of_few_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    """A chain starts in the best of all orders of merged loops, split into primes, if no random order fits."""
    monkeypatch.setattr(salsa, "START_DRAWS", ())
    prepared = problem(gemm(C=12, D=10, K=16), register_core(buffer_bits=800), (("D1", ()),))
    few, visited = salsa.fallback_order(OrderSpace.of(prepared, ()), "energy")
    assert few is not None
    batch = annealed(prepared, "energy", salsa_iteration_number=1, salsa_restarts=2)
    split = tuple((d, p) for d, size in few for p in prime_factors(size))
    whole = best_cost(OrderBatch.of_orders(prepared, [split]), "energy")
    found = best_cost(batch, "energy")
    assert found is not None
    assert whole is not None
    assert found <= whole
    assert batch.visited == visited + 2


def test_order_of_few_loops_that_cannot_be_split(monkeypatch: pytest.MonkeyPatch) -> None:
    """The merged order is the answer if the best order of merged loops does not match the ordering once split."""
    monkeypatch.setattr(salsa, "START_DRAWS", ())
    prepared = problem(gemm(C=12, D=10, K=16), register_core(buffer_bits=800), (("D1", ()),))
    entries = ordering([["K", "*"], ["D", "*"], ["*", "*"]])
    few, visited = salsa.fallback_order(OrderSpace.of(prepared, entries), "energy")
    batch = annealed(prepared, "energy", entries)
    assert few is not None
    assert few[0] != ("K", 2), "otherwise it can be split"
    assert batch.loop_order(0) == few
    assert batch.visited == visited


# running --------------------------------------------------------------------------------------------------------------


def test_what_the_search_says_of_itself() -> None:
    """The notes of a search name the engine, the seed, its options, and the number of evaluations.

    Evaluations include the start of each chain.
    """
    prepared = problem(LAYERS[1])
    batch = annealed(prepared, "energy", salsa_iteration_number=100, salsa_restarts=2, seed=9)
    assert dict(batch.search) == {
        "engine": "salsa",
        "seed": 9,
        "restarts": 2,
        "iterations": 100,
        "start_temperature": 0.05,
        "evaluations": batch.visited,
    }
    assert batch.visited >= 202
    assert json.loads(json.dumps(dict(batch.search))) == dict(batch.search)


def test_progress_and_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Progress is reported after each block, and a stop ends the search before the next one."""
    monkeypatch.setattr(salsa, "BLOCK_ITERATIONS", 30)
    prepared = problem(LAYERS[1])
    told: list[int] = []
    options = SalsaParameters("energy", salsa_iteration_number=100, salsa_restarts=2)
    list(salsa_batches(prepared, (), options, None, told.append))
    assert told == [30, 30, 30, 10] * 2
    stop = threading.Event()
    told.clear()

    def advance(iterations: int) -> None:
        told.append(iterations)
        stop.set()

    with pytest.raises(SearchStoppedError):
        list(salsa_batches(prepared, (), SalsaParameters("energy", salsa_iteration_number=100), stop, advance))
    assert told == [30]
