"""The search that ends with a small gap: bounds below brute force, results no worse than others, equal on every
machine.
"""

import itertools
import math
import random
from typing import Any

import pytest
from tilewright.base.errors import InputError, MappingError, TimeBudgetError
from tilewright.search.batch import best_row, cost_orders
from tilewright.search.evaluate import PreparedProblem
from tilewright.search.exact.search import ExactResult, search_exact
from tilewright.search.options import BestParameters, SalsaParameters, SearchOptions
from tilewright.search.salsa import salsa_batches

from tests.unit.search.exact.exact_brute_force import ALLOCATIONS, OBJECTIVES, optimum, space_of
from tests.unit.search.exact.exact_cases import MODELS, problems, random_case
from tests.unit.search.exact.test_exact import best_of_loma

GAPS = (0.0, 0.001, 0.01, 0.1, 0.5)
EFFORTS = (0, 1, 10, 100, 300, 1000, 3000, 10_000, 30_000, 100_000, 1_000_000, None)


def best(prepared: PreparedProblem, objective: str, allocation: str = "greedy", **limits: Any) -> ExactResult | None:
    """The result with limits; None if no mapping is found in time."""
    try:
        return search_exact(prepared, (), BestParameters(objective, allocation, **limits))
    except TimeBudgetError:
        return None


def best_of_salsa(prepared: PreparedProblem, objective: str) -> float:
    """The least value that salsa finds with its default parameters."""
    found = math.inf
    for batch in salsa_batches(prepared, (), SalsaParameters(objective=objective), None, None):
        costed = cost_orders(batch)
        row = best_row(costed, objective)
        if row is not None:
            energy, latency = float(costed.energy_pj[row]), float(costed.latency_cycles[row])
            found = min(found, {"latency": latency, "energy": energy, "EDP": latency * energy}[objective])
    return found


@pytest.mark.parametrize("allocation", ALLOCATIONS)
def test_the_optimum_lies_between_bound_and_value(allocation: str) -> None:
    """The optimum by brute force lies between lower bound and value of the search, for each allowed gap.

    Without a limit of effort, the gap of the result is at most the allowed gap.
    """
    open_gaps = 0
    for (where, _, prepared), gap in itertools.product(problems(range(3000, 3010)), GAPS):
        least = {objective: optimum(space_of(prepared, allocation), objective) for objective in OBJECTIVES}
        for objective in OBJECTIVES:
            result = best(prepared, objective, allocation, largest_gap=gap, effort=None)
            if result is None:
                assert least[objective] == math.inf, (where, objective)
                continue
            assert result.lower_bound <= least[objective] * (1 + 1e-9), (where, objective, gap)
            assert result.value >= least[objective] * (1 - 1e-9), (where, objective, gap)
            assert result.lower_bound >= result.value * (1 - gap) * (1 - 1e-8), (where, objective, gap)
            assert not result.ended_by_effort
            open_gaps += not result.is_proven
    assert open_gaps > 0


def test_bounds_hold_at_every_effort() -> None:
    """Bounds hold at every effort; a search without a proof says that it ended because its effort was used up."""
    ended = 0
    for (where, _, prepared), effort in itertools.product(problems(range(3100, 3105)), EFFORTS):
        spaces = space_of(prepared, "greedy")
        for objective in OBJECTIVES:
            result = best(prepared, objective, effort=effort, largest_gap=0.0)
            least = optimum(spaces, objective)
            if result is None:
                assert least == math.inf or effort is not None
                continue
            assert result.lower_bound <= least * (1 + 1e-9), (where, objective, effort)
            assert result.value >= least * (1 - 1e-9), (where, objective, effort)
            assert result.is_proven or result.ended_by_effort, (where, objective, effort)
            assert (("ended_by_effort", True) in result.notes("best", "greedy")) == result.ended_by_effort
            ended += result.ended_by_effort and not result.is_proven
    assert ended > 3


def test_never_worse_than_loma_and_salsa() -> None:
    """The value is no worse than those of loma and salsa, at twelve efforts and a wide gap, for six and seven loops."""
    cases = 0
    for seed, model in itertools.product(range(3200, 3202), MODELS):
        try:
            prepared = random_case(random.Random(seed), (6, 7)).prepared(model)
        except MappingError:
            continue
        for objective in OBJECTIVES:
            known = min(best_of_loma(prepared, 6, objective), best_of_salsa(prepared, objective))
            for effort, gap in itertools.product(EFFORTS, (0.01, 0.5)):
                result = best(prepared, objective, effort=effort, largest_gap=gap)
                assert (known == math.inf) or (result is not None and result.value <= known * (1 + 1e-9)), (
                    seed,
                    effort,
                )
                cases += 1
    assert cases > 60


def test_equal_efforts_give_equal_results() -> None:
    """Equal efforts give equal results, to the last label."""
    for where, _, prepared in itertools.islice(problems(range(3300, 3310)), 10):
        for effort in (50, 5000):
            assert best(prepared, "EDP", effort=effort) == best(prepared, "EDP", effort=effort), where


def test_more_effort_never_makes_it_worse() -> None:
    """More effort makes neither the value nor the bound worse."""
    for where, _, prepared in itertools.islice(problems(range(3400, 3408)), 8):
        results = [best(prepared, "energy", effort=effort, largest_gap=0.0) for effort in EFFORTS]
        for less, more in itertools.pairwise(result for result in results if result is not None):
            assert more.value <= less.value * (1 + 1e-12), where
            assert more.lower_bound >= less.lower_bound * (1 - 1e-9), where


def test_limits_that_are_none_are_refused() -> None:
    """A gap outside of 0 to 1 and a negative effort are refused."""
    for name, value in (("largest_gap", 1.5), ("largest_gap", -0.1), ("effort", -1), ("effort", 0.5)):
        with pytest.raises(InputError, match=name):
            SearchOptions(temporal_mapping_search_engine="best", **{name: value})
    told = SearchOptions(temporal_mapping_search_engine="exact").without_effect()
    assert {"largest_gap", "effort"} <= told.keys()
    assert not {"largest_gap", "effort"} & SearchOptions(temporal_mapping_search_engine="best").without_effect().keys()
