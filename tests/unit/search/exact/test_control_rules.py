"""Searches under rules of the control, compared with all mappings that obey the rules in plain Python."""

import itertools
import math
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from tilewright.base.errors import MappingError
from tilewright.search import loma as loma_module
from tilewright.search.batch import best_row, cost_orders
from tilewright.search.evaluate import PreparedProblem, allocated_boundaries, evaluate_prepared
from tilewright.search.front import on_staircase
from tilewright.search.loma import best_of_few_loops
from tilewright.search.options import SalsaParameters
from tilewright.search.salsa import salsa_batches

from tests.members import members
from tests.plain.control import obeys, with_random_rules
from tests.plain.model import PlainModel
from tests.plain.spatial import DoesNotFitError
from tests.unit.search.exact.exact_brute_force import (
    ALLOCATIONS,
    LARGEST_FREE_SPACE,
    OBJECTIVES,
    Mappings,
    check_optimum,
    free_mapping_count,
    free_mappings,
    greedy_mappings,
    optimum,
    search,
)
from tests.unit.search.exact.exact_cases import MODELS, ExactCase, random_case
from tests.unit.search.exact.test_front_sweep import swept

Ruled = tuple[tuple[int, str], ExactCase, PreparedProblem, PreparedProblem]


def ruled_problems(seeds: range) -> Iterator[Ruled]:
    """Random problems as (seed and profile, case with rules, problem without rules, problem with rules)."""
    for seed in seeds:
        rng = random.Random(seed)
        free_case = random_case(rng)
        case = replace(free_case, core=with_random_rules(rng, free_case.layer, free_case.core))
        for model in MODELS:
            try:
                yield (seed, model), case, free_case.prepared(model), case.prepared(model)
            except MappingError:
                continue


def plain_of(case: ExactCase, model: str) -> PlainModel:
    """The plain model of a case with its rules."""
    return PlainModel(case.layer, case.core, case.links, case.unrolling, model=model)


def obeying(space: Mappings, plain: PlainModel) -> Mappings:
    """The mappings of a free space that obey the rules."""
    kept = []
    for row, order in enumerate(space.orders):
        loops = tuple(space.loops[i] for i in order)
        levels = {}
        for o, operand in enumerate(plain.operands):
            ends = (0, *space.boundaries[row, o, : len(plain.chains[operand])].tolist())
            levels[operand] = tuple(loops[a:b] for a, b in itertools.pairwise(ends))
        kept.append(obeys(loops, levels, plain.chains, plain.allocator.reused))
    rows = np.array(kept, bool)
    return Mappings(
        space.loops,
        space.orders[rows],
        space.boundaries[rows],
        space.energy_pj[rows],
        space.latency_cycles[rows],
    )


def ruled_space(case: ExactCase, model: str, without: PreparedProblem, prepared: PreparedProblem, allocation: str):
    """All mappings that obey the rules.

    Free boundaries are filtered by the plain rules. Greedy boundaries come from the allocator, which
    `test_allocation_is_that_of_plain_rules` compares with the plain allocator.
    """
    if allocation == "free":
        return [obeying(free_mappings(without), plain_of(case, model))]
    return list(greedy_mappings(prepared))


@pytest.fixture
def no_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets searches begin without the best of loma's orders, which for few loops is already the optimum."""
    monkeypatch.setattr(loma_module, "best_row", lambda costed, objective: None)


@pytest.mark.usefixtures("no_start")
@pytest.mark.parametrize("allocation", ALLOCATIONS)
def test_value_is_that_of_brute_force(allocation: str) -> None:
    """The proven value is the least of all mappings that obey the rules; there is a result if and only if one fits."""
    seen: Counter[str] = Counter()
    for where, case, without, prepared in ruled_problems(range(members(400, 110))):
        if free_mapping_count(prepared) > LARGEST_FREE_SPACE:
            continue
        spaces = ruled_space(case, where[1], without, prepared, allocation)
        for objective in OBJECTIVES:
            check_optimum(search(prepared, allocation, objective), spaces, objective, (*where, objective))
        possible = optimum(spaces, "EDP") < math.inf
        seen["possible" if possible else "impossible"] += 1
        seen["ruled"] += bool(prepared.arrays.has_control)
        seen["ordered"] += bool(prepared.arrays.ordered_count)
        if possible:
            freely = [free_mappings(without)] if allocation == "free" else list(greedy_mappings(without))
            seen["worse"] += optimum(spaces, "EDP") > optimum(freely, "EDP") * (1 + 1e-9)
    print(seen)
    assert seen["possible"] > members(120, 30), seen
    assert seen["impossible"] > members(60, 15), seen
    assert seen["ordered"] > members(100, 25), seen
    assert seen["worse"] > members(40, 10), seen


def test_allocation_is_that_of_plain_rules() -> None:
    """Greedy allocation under rules equals the plain allocation for every order of small problems.

    Given boundaries are refused exactly if the plain rules refuse them.
    """
    fits = misfits = 0
    for where, case, _, prepared in ruled_problems(range(1000, 1000 + members(240, 80))):
        plain = plain_of(case, where[1])
        for space in greedy_mappings(prepared):
            for order in space.orders[:40]:
                loops = tuple(space.loops[i] for i in order)
                own = allocated_boundaries(prepared, loops)
                try:
                    levels = plain.allocate(loops)
                except DoesNotFitError:
                    assert own is None, (where, loops)
                    misfits += 1
                    continue
                ends = tuple(tuple(itertools.accumulate(map(len, levels[o]))) for o in plain.operands)
                assert own == ends, (where, loops)
                fits += 1
    print(fits, misfits)
    assert fits > members(1200, 300)
    assert misfits > members(1200, 300)


@pytest.mark.parametrize("allocation", ALLOCATIONS)
def test_complete_fronts_are_those_of_brute_force(allocation: str) -> None:
    """A sweep without tolerance gives the Pareto front of all mappings that obey the rules."""
    several = 0
    for where, case, without, prepared in ruled_problems(range(2000, 2000 + members(120, 40))):
        if free_mapping_count(prepared) > LARGEST_FREE_SPACE // 4:
            continue
        found = swept(prepared, allocation, 0.0)
        spaces = ruled_space(case, where[1], without, prepared, allocation)
        energy = np.concatenate([space.energy_pj[space.fits] for space in spaces])
        latency = np.concatenate([space.latency_cycles[space.fits] for space in spaces])
        if found is None:
            assert not len(energy), where
            continue
        known, miss = found
        kept = on_staircase(energy, latency)
        assert miss == 0.0, where
        assert known.energy.tolist() == pytest.approx(energy[kept].tolist(), rel=1e-9), where
        assert known.latency.tolist() == pytest.approx(latency[kept].tolist(), rel=1e-9), where
        several += len(kept) > 1
    assert several >= members(12, 3)


def test_loma_and_salsa_keep_the_rules() -> None:
    """Mappings of loma and salsa obey the plain rules and are no better than the proven optimum."""
    count = 0
    for where, case, _, prepared in ruled_problems(range(3000, 3000 + members(100, 30))):
        result = search(prepared, "greedy", "EDP")
        found = best_of_few_loops(prepared, (), "EDP")
        orders = [] if found.order is None else [found.order]
        for batch in salsa_batches(prepared, (), SalsaParameters(objective="EDP", salsa_iteration_number=60)):
            row = best_row(cost_orders(batch), "EDP")
            orders += [] if row is None else [batch.loop_order(row)]
        if result is None:
            assert not orders, where
            continue
        plain = plain_of(case, where[1])
        for order in orders:
            plain.allocate(order)
            record = evaluate_prepared(prepared, order)
            assert record.energy_pj * record.latency_cycles >= result.value * (1 - 1e-9), where
            count += 1
    assert count > members(60, 20)
