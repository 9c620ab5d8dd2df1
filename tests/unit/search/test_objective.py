"""A plug-in's objective: every search minimises it, and certificates of the exact search hold."""

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from tilewright.base import objectives
from tilewright.base.errors import InputError
from tilewright.base.objectives import BUILT_IN, OBJECTIVES, Goal, Powers, ranking, reduction_of
from tilewright.base.parameters import parameters_of
from tilewright.base.registry import enter, withdraw
from tilewright.base.stage_table import STAGES
from tilewright.multicore.allocation.result import Evaluation, choose
from tilewright.pipeline.stages import reductions
from tilewright.pipeline.stages.catalogue import CATALOGUES
from tilewright.search.batch import best_row, cost_orders
from tilewright.search.exact.search import search_exact
from tilewright.search.loma import loma_batches
from tilewright.search.options import ExactParameters, SalsaParameters
from tilewright.search.salsa import salsa_batches

from tests.unit.search.exact.exact_brute_force import ALLOCATIONS, LARGEST_FREE_SPACE, free_mapping_count, space_of
from tests.unit.search.exact.exact_cases import problems

NAME = "OwnED2P"
ED2P = Powers(energy=1, latency=2)
NO_POWERS, TOO_HIGH, A_TEXT = Powers(), Powers(energy=10), "ED2P"
FAULTS = {
    ("EDP", "ED2P"): "has the name EDP, which is built in",
    ("ED 2P", "ED2P"): "the name must be a Python identifier",
    ("NONE", "NO_POWERS"): "has the powers (0, 0)",
    ("HIGH", "TOO_HIGH"): "has the powers (10, 0)",
    ("TEXT", "A_TEXT"): "is no objective",
    ("eDP", "ED2P"): "the name must be a Python identifier, and MinimalEDP must not be the name of a stage",
}
"""(name, object of this module) -> part of the error message."""


@pytest.fixture(autouse=True)
def _entered() -> Iterator[None]:
    entries = {objectives.__name__: {NAME: f"{__name__}:ED2P"}}
    enter(entries)
    yield
    withdraw(entries)


def ed2p(energy_pj: Any, latency_cycles: Any) -> Any:
    """Energy times latency squared."""
    return energy_pj * latency_cycles * latency_cycles


@pytest.mark.parametrize("allocation", ALLOCATIONS)
def test_the_exact_search_proves_the_optimum(allocation: Any) -> None:
    """The proven value is the least of every mapping by brute force, under both model profiles."""
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
    """The best row of a batch has the least value, and a chain never ends above its start."""
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
    """The chosen allocation has the least value. Ties are decided as under any other objective."""
    points = [Evaluation((2,), 10, 4.0), Evaluation((1,), 10, 4.0), Evaluation((0,), 8, 6.3), Evaluation((3,), 20, 1.0)]
    assert choose(points, NAME).genome == (1,)
    assert ranking(NAME, 3.0, 5.0) == (75.0,)


def test_what_is_declared_is_what_can_be_chosen() -> None:
    """Each declared objective is a choice of the option and has a stage that keeps the mapping with its least value.

    This includes the objective of a plug-in.
    """
    (parameter,) = parameters_of(Goal)
    assert tuple(OBJECTIVES) == parameter.choices == (*BUILT_IN, NAME)
    assert set(BUILT_IN) <= set(re.findall(r"\w+", parameter.sentence))
    listed = [stage.name for stage in STAGES if stage.name.startswith("Minimal")]
    assert [reduction_of(goal) for goal in BUILT_IN] == listed
    for flow in ("single", "core"):
        kind = CATALOGUES[flow].stage_class(CATALOGUES[flow].canonical_name("MinimalOwnED2PStage"))
        assert issubclass(kind, reductions.OfObjective)
        assert kind is reductions.MinimalOwnED2P
        assert (kind.minimises, kind.name()) == (NAME, "MinimalOwnED2P")
    assert CATALOGUES["multi"].canonical_name("MinimalOwnED2P") == ""


@pytest.mark.parametrize(("named", "message"), FAULTS.items(), ids=[name for name, _ in FAULTS])
def test_a_plug_in_at_fault_is_refused(named: tuple[str, str], message: str) -> None:
    """A plug-in is refused if its name is taken or makes no stage, or if it is no product of powers."""
    entries = {objectives.__name__: {named[0]: f"{__name__}:{named[1]}"}}
    enter(entries)
    try:
        with pytest.raises(InputError) as raised:
            objectives.ENTERED[named[0]]
    finally:
        withdraw(entries)
    assert message in str(raised.value)
