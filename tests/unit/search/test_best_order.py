"""The best of all orders, found with bounds: equal to costing all orders, to the last bit."""

from itertools import islice

import numpy as np
import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from tilewright.base.errors import MappingError
from tilewright.base.objectives import ranking
from tilewright.base.profile import REFERENCE, SWITCHES
from tilewright.cost.breakdown import verify
from tilewright.search.batch import CostedBatch, OrderBatch, best_row, cost_orders
from tilewright.search.best_order import MOST_ORDERS, OrderSet, can_be_tabulated
from tilewright.search.evaluate import PreparedProblem, prepare, workspace_of
from tilewright.search.loma import loma_batches
from tilewright.search.options import SearchOptions

from tests.members import members
from tests.unit.cost.engine_cases import LINKS, Case, cases, convolution, small_core

MODELS = (REFERENCE.name, "corrected", *(f"corrected-{switch}" for switch in SWITCHES))


def batch_of(problem: PreparedProblem) -> OrderBatch | None:
    """The batch of all orders of few loops; None if they cannot be tabulated."""
    batches = list(islice(loma_batches(problem, (), 6), 2))
    return batches[0] if len(batches) == 1 and can_be_tabulated(batches[0]) else None


def expected(costs: list[CostedBatch], objective: str) -> tuple[int, int] | None:
    """Batch and row of the first of the best orders."""
    best: tuple[int, int] | None = None
    rank: tuple[float, ...] = ()
    for place, costed in enumerate(costs):
        row = best_row(costed, objective)
        if row is not None:
            found = ranking(objective, float(costed.energy_pj[row]), float(costed.latency_cycles[row]))
            if best is None or found < rank:
                best, rank = (place, row), found
    return best


def check(batches: tuple[OrderBatch, ...], objective: str) -> None:
    """Checks that both searches of a set of orders agree; the second run knows where the allocator puts loops."""
    costs = [cost_orders(batch) for batch in batches]
    best = expected(costs, objective)
    orders = OrderSet(batches, objective)
    for _ in range(2):
        found = orders.best()
        for costed, bounds in zip(costs, orders.bounds, strict=True):
            fit = costed.fits
            assert (bounds[fit, 0] <= costed.energy_pj[fit]).all()
            assert (bounds[fit, 1] <= costed.latency_cycles[fit]).all()
        if best is None:
            assert found is None
            continue
        assert found is not None
        place, row = best
        assert found.energy_pj == costs[place].energy_pj[row]
        assert found.latency_cycles == costs[place].latency_cycles[row]
        alone = workspace_of(batches[place].problem, batches[place].loop_order(row), None)
        for name in ("words", "energy", "terms", "totals"):
            assert np.array_equal(found.workspace[name], alone[name])
        verify(found.problem, found.workspace)


@settings(max_examples=members(300, 100), deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(cases(), st.sampled_from(("energy", "latency", "EDP")), st.sampled_from(MODELS))
def test_it_is_what_costing_all_orders_finds(case: Case, objective: str, model: str) -> None:
    """The result equals costing all orders, under every objective and profile; bounds are lower bounds."""
    options = SearchOptions(model=model, temporal_mapping_type="even" if case.even else "uneven")
    batches = []
    for unrolling in (case.unrolling, ()):
        try:
            batch = batch_of(prepare(case.layer, case.core, case.links, unrolling, options))
        except MappingError:
            continue
        if batch is not None:
            batches.append(batch)
    event(f"{len(batches)} spatial mappings")
    if batches:
        check(tuple(batches), objective)


@pytest.mark.parametrize("objective", ["energy", "latency", "EDP"])
def test_figures_may_change_between_searches(objective: str) -> None:
    """A kept set of orders gives the right result after sizes, energies and widths have changed."""
    layer, options = convolution("one", K=8, C=6, OX=6, FX=3), SearchOptions(model="corrected")
    unrolling = (("D1", (("K", 4),)),)
    kept: OrderSet | None = None
    for bits, energy in ((4096, 10.0), (600, 10.0), (4096, 0.5), (1200, 40.0), (600, 10.0)):
        core = small_core(buffer_bits=bits, granularity=16 if energy > 20 else 8)
        problem = prepare(layer, core, LINKS, unrolling, options)
        problem.arrays.read_energy_pj[2] = energy
        batch = batch_of(problem)
        assert batch is not None
        fresh = OrderSet((batch,), objective)
        if kept is None:
            kept = OrderSet((batch,), objective)
        kept.arrays[0] = problem.arrays
        one, other = kept.best(), fresh.best()
        assert one is not None
        assert other is not None
        assert (one.energy_pj, one.latency_cycles) == (other.energy_pj, other.latency_cycles)
        check((batch,), objective)


def test_many_orders_are_not_tabulated() -> None:
    """Too many orders are not tabulated."""
    layer = convolution("one", K=30, C=30, OX=30, FX=3)
    problem = prepare(layer, small_core(), LINKS, (), SearchOptions(model="corrected"))
    batch = next(loma_batches(problem, (), 8))
    assert len(batch.orders) > MOST_ORDERS
    assert not can_be_tabulated(batch)
