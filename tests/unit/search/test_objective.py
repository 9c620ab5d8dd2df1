"""Another objective in the place of a declared one: every search minimises it, certificates of the exact one hold."""

from typing import Any, get_args

import numpy as np
import pytest
from tilewright.base.objectives import OBJECTIVES, Objective, Powers, ranking
from tilewright.base.stage_table import STAGES
from tilewright.multicore.allocation.result import Evaluation, choose
from tilewright.pipeline.stages.pipeline import REDUCTION_OF
from tilewright.search.batch import best_row, cost_orders
from tilewright.search.exact.search import search_exact
from tilewright.search.loma import loma_batches
from tilewright.search.options import ExactParameters, SalsaParameters
from tilewright.search.salsa import salsa_batches

from tests.unit.search.exact.exact_brute_force import ALLOCATIONS, LARGEST_FREE_SPACE, free_mapping_count, space_of
from tests.unit.search.exact.exact_cases import problems

NAME: Objective = "EDP"
"""What the other one is declared as, because parameters take the declared names only."""


@pytest.fixture(autouse=True)
def _declared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(OBJECTIVES, NAME, Powers(energy=1, latency=2))


def ed2p(energy_pj: Any, latency_cycles: Any) -> Any:
    """Energy times latency squared."""
    return energy_pj * latency_cycles * latency_cycles


@pytest.mark.parametrize("allocation", ALLOCATIONS)
def test_the_exact_search_proves_the_optimum(allocation: Any) -> None:
    """Of every mapping by brute force, under both model profiles."""
    count = 0
    for where, _, prepared in problems(range(500, 520)):
        if allocation == "free" and free_mapping_count(prepared) > LARGEST_FREE_SPACE:
            continue
        values = [
            ed2p(space.energy_pj[space.fits], space.latency_cycles[space.fits])
            for space in space_of(prepared, allocation)
        ]
        result = search_exact(prepared, (), ExactParameters(NAME, allocation))
        if result is None:
            assert not sum(map(len, values)), where
            continue
        assert result.is_proven, where
        assert result.value == pytest.approx(min(found.min() for found in values if len(found)), rel=1e-9), where
        count += 1
    assert count > 8


def test_loma_and_salsa_minimise_it() -> None:
    """The best row of a batch is the one of the least value; a chain never ends above where it begins."""
    for where, _, prepared in problems(range(540, 550)):
        found = []
        for batch in loma_batches(prepared, (), 4):
            costed = cost_orders(batch)
            row = best_row(costed, NAME)
            if row is not None:
                found.append(float(ed2p(costed.energy_pj[row], costed.latency_cycles[row])))
                assert found[-1] == np.min(ed2p(costed.energy_pj, costed.latency_cycles)), where
        short, long = (
            min(
                float(ed2p(costed.energy_pj, costed.latency_cycles).min())
                for costed in map(
                    cost_orders,
                    salsa_batches(prepared, (), SalsaParameters(objective=NAME, salsa_iteration_number=count)),
                )
            )
            for count in (1, 2000)
        )
        assert long <= short, where
        exact = search_exact(prepared, (), ExactParameters(NAME))
        assert exact is None or not found or min(*found, long) >= exact.value * (1 - 1e-9), where


def test_the_chosen_allocation_is_the_best() -> None:
    """With ties as under any objective; what leaves no metric out has no other rank."""
    points = [Evaluation((2,), 10, 4.0), Evaluation((1,), 10, 4.0), Evaluation((0,), 8, 6.3), Evaluation((3,), 20, 1.0)]
    assert choose(points, NAME).genome == (1,)
    assert ranking(NAME, 3.0, 5.0) == (75.0,)


def test_what_is_declared_is_what_can_be_chosen() -> None:
    """The choices of the option, and a stage for each that keeps the best."""
    assert tuple(OBJECTIVES) == tuple(REDUCTION_OF) == get_args(Objective)
    assert list(REDUCTION_OF.values()) == [stage.name for stage in STAGES if stage.name.startswith("Minimal")]
