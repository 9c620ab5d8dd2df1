"""One exact search over all spatial mappings of a layer; `benchmarks/attack_certificates.py --open` attacks more."""

import copy
import itertools
import math
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from tilewright.base.errors import MappingError
from tilewright.base.objectives import OBJECTIVES as OBJECTIVE_VALUES
from tilewright.base.profile import CORRECTED
from tilewright.mapping.constraints import MappingConstraints, Unrolling
from tilewright.mapping.spatial_generation import limit_to_capacity, spatial_candidates
from tilewright.mapping.spatial_space import SpatialSpace
from tilewright.pipeline.stages.run import map_layer
from tilewright.search.evaluate import PreparedProblem, prepare
from tilewright.search.exact import candidate as candidate_module
from tilewright.search.exact import rounds as rounds_module
from tilewright.search.exact.choice import Choice
from tilewright.search.exact.floors import NO_FLOORS
from tilewright.search.exact.rounds import Incumbent
from tilewright.search.exact.search import ExactParameters, search_candidates, search_choices, search_exact
from tilewright.search.options import MOST_STARTS, BestParameters, SearchOptions

from tests.members import WHOLE_FAMILIES, members
from tests.plain.attack import Outcome
from tests.plain.attack_candidates import attack_candidates, attack_floor
from tests.plain.attack_open import attack_open
from tests.unit.cost.engine_cases import LINKS, constraints, convolution, register_core
from tests.unit.search.exact.exact_brute_force import ALLOCATIONS, OBJECTIVES

PROBLEMS = tuple(range(8)) if WHOLE_FAMILIES else (0, 1, 3, 4, 6, 7)
"""Seeds of problems; brute force takes most of the tests' time for two of them."""
PARTS = 2
SENTENCES = members(8, 4)
WIDE_LAYER = convolution("layer", K=24, C=6, OX=12, OY=10)
LAYER = convolution("layer", K=4, C=3, OX=6, OY=2)
CORE = register_core(buffer_bits=900)


def candidates() -> list[PreparedProblem]:
    """All spatial mappings of a layer, prepared."""
    given = MappingConstraints("default", memory_operand_links=LINKS)
    options = SearchOptions(model="corrected")
    unrollings = spatial_candidates(LAYER, CORE, given, CORRECTED, 0)
    return [prepare(LAYER, CORE, LINKS, unrolling, options) for unrolling in unrollings]


@pytest.mark.parametrize("part", range(PARTS))
def test_certificates_of_all_spatial_mappings_hold(part: int) -> None:
    """The value is the least of brute force over every spatial mapping, order and boundary, and bounds are below it."""
    outcome = Outcome()
    for seed in PROBLEMS[part::PARTS]:
        outcome.add(attack_candidates(seed))
    assert not outcome.differences, outcome.differences[:3]
    assert outcome.counts["proven"] > len(PROBLEMS) // PARTS
    assert outcome.counts["spatial mappings settled by bound"] > 0


def test_floors_are_below_the_tables() -> None:
    """Floors without tables are no larger than bounds with tables."""
    outcome = Outcome()
    for seed in range(150):
        outcome.add(attack_floor(seed))
    assert not outcome.differences, outcome.differences[:3]
    assert outcome.counts["floors"] > 30


def test_the_bound_of_a_choice_counts_if_no_effort_is_left() -> None:
    """The floor of a spatial mapping bounds it if no effort is left, although its loop orders are not searched."""
    problems = candidates()
    optimum = search_candidates(problems, (), ExactParameters("EDP"))
    assert optimum is not None
    assert optimum.is_proven
    least = 0.9 * optimum.value
    choices = [
        Choice(i, 1, 0.0, one.layer, one.core, NO_FLOORS, partial(lambda made: made, one), least=least)
        for i, one in enumerate(problems)
    ]
    result = search_choices(choices, MOST_STARTS, (), BestParameters("EDP", effort=0))
    assert result is not None
    assert result.ended_by_effort
    assert least <= result.lower_bound <= optimum.value


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_a_search_that_begins_with_a_mapping_keeps_its_bounds(objective: str) -> None:
    """The optimum lies between bound and value if the search begins from the best mapping of another objective."""
    problems = candidates()
    optimum = search_candidates(problems, (), ExactParameters(objective))
    for other, effort in itertools.product(OBJECTIVES, (0, 30_000, None)):
        found = search_candidates(problems, (), ExactParameters(other))
        assert optimum is not None
        assert found is not None
        known = Incumbent(found.order, found.boundaries, found.energy_pj, found.latency_cycles)
        choices = [
            Choice(i, 1, 0.0, one.layer, one.core, NO_FLOORS, partial(lambda made: made, one))
            for i, one in enumerate(problems)
        ]
        options = BestParameters(objective, effort=effort, largest_gap=0.02)
        result = search_choices(choices, 3, (), options, known=known)
        assert result is not None
        assert result.lower_bound <= optimum.value * (1 + 1e-9)
        assert optimum.value * (1 - 1e-9) <= result.value <= known.value(objective)
        assert effort is not None or result.gap <= 0.02 + 1e-9


@pytest.mark.parametrize(("allocation", "objective"), list(itertools.product(ALLOCATIONS, OBJECTIVES)))
def test_one_search_finds_what_many_find(allocation: str, objective: str) -> None:
    """The value equals the least value of separate searches for all spatial mappings."""
    options = ExactParameters(objective, allocation)
    found = [search_exact(prepared, (), options) for prepared in candidates()]
    together = search_candidates(candidates(), (), options)
    assert together is not None
    assert together.is_proven
    assert together.value == pytest.approx(min(one.value for one in found if one is not None), rel=1e-9)
    assert together.searched + together.settled_by_bound == len(found)


@pytest.mark.parametrize("allocation", ALLOCATIONS)
def test_without_time_nothing_is_proven(allocation: str) -> None:
    """A search without time proves nothing: the optimum is between its lower bound and its value."""
    best = search_candidates(candidates(), (), ExactParameters("EDP", allocation))
    result = search_candidates(candidates(), (), ExactParameters("EDP", allocation, 1e-9))
    assert best is not None
    assert result is not None
    assert not result.is_proven
    assert result.lower_bound <= best.value <= result.value


def test_what_is_too_large_is_not_proven(monkeypatch: pytest.MonkeyPatch) -> None:
    """A layer is not proven if the tables have no room for a spatial mapping, unless a floor settles this mapping."""
    problems = candidates()
    refused = max(range(len(problems)), key=lambda i: math.prod(size for _, size in problems[i].spatial.temporal_sizes))
    monkeypatch.setattr(candidate_module, "energy_floor", lambda *arguments: 0.0)
    make = rounds_module.new_search

    def new_search(prepared: PreparedProblem, *others: Any) -> Any:
        if prepared is problems[refused]:
            raise MappingError("no room")
        return make(prepared, *others)

    monkeypatch.setattr(rounds_module, "new_search", new_search)
    result = search_candidates(problems, (), ExactParameters("energy", "free"))
    assert result is not None
    assert not result.is_proven
    assert result.lower_bound < result.value


def test_equal_problems_are_searched_once() -> None:
    """The first of two equal spatial mappings is searched, and the second is settled by its bound."""
    (first, *_) = candidates()
    result = search_candidates([first, replace(first)], (), ExactParameters("energy", "free"))
    assert result is not None
    assert (result.candidate, result.searched, result.settled_by_bound) == (0, 1, 1)


@pytest.mark.parametrize(("count", "covers"), [(None, "all spatial mappings"), (2, "the first 2 spatial mappings")])
def test_record_says_what_a_proof_covers(count: int | None, covers: str) -> None:
    """A proof covers all spatial mappings of open sides, or those asked for, and the record says so."""
    options = SearchOptions(
        model="corrected",
        temporal_mapping_search_engine="exact",
        objective="energy",
        allocation="free",
        nb_spatial_mappings_generated=count,
    )
    record = map_layer(LAYER, CORE, constraints(), options)
    expected = search_candidates(candidates()[:count], (), options)
    assert expected is not None
    assert record.search["covers"].startswith(covers)
    counts = record.search["spatial_mappings"]
    assert counts["allowed"] == count or count is None
    assert counts["allowed"] == counts["searched"] + counts["settled_by_bound"]
    assert record.energy_pj == record.search["value"] == record.search["lower_bound"]
    assert record.energy_pj == expected.value or (count is None and record.energy_pj < expected.value)
    assert record.search["proven"]


def test_divisors_of_a_loop_that_lanes_do_not_have_are_searched() -> None:
    """A side of 3 lanes also takes 2 of a loop of 6, though 2 does not divide 3; here this is the optimum."""
    layer = convolution("layer", K=6, C=1, OX=1, OY=1)
    core = register_core(array=(("D1", 3),))
    space = SpatialSpace(layer, core, constraints(), CORRECTED)
    assert (("D1", (("K", 2),)),) in [choice.unrolling for choice in space]


@pytest.mark.parametrize("part", range(PARTS))
def test_the_sentence_of_an_open_proof_holds(part: int) -> None:
    """The claim of a record with open sides holds for every mapping that its sentence covers."""
    outcome = Outcome()
    for seed in range(part * SENTENCES // PARTS, (part + 1) * SENTENCES // PARTS):
        outcome.add(attack_open(seed))
    assert not outcome.differences, outcome.differences[:3]
    assert outcome.counts["proven"] > SENTENCES // PARTS


def test_the_engine_best_proves_the_same_optima() -> None:
    """The engine `best` begins with the spatial mappings of the least floors; with enough effort, it leaves out
    none.
    """
    outcome = Outcome()
    for seed in range(700, 703):
        outcome.add(attack_open(seed, model="corrected", engine="best"))
    outcome.add(attack_open(2018, engine="best"))  # outputs have their final bits, fewer than those of partial sums
    assert not outcome.differences, outcome.differences[:3]
    assert outcome.counts["proven"] > 6


def test_table_has_the_mappings_that_fit() -> None:
    """The table of a space has only listed mappings, and each that fits in the innermost memories.

    Loops of one lane are ignored. The table may have a mapping that does not fit with partial sums in all lanes,
    because the model can need less room.
    """
    for array, bits in (((("D1", 4), ("D2", 6)), 900), ((("D1", 3), ("D2", 2), ("D3", 4)), 16)):
        core = register_core(array=array, buffer_bits=bits)
        for layer, mixed in ((LAYER, False), (LAYER, True), (WIDE_LAYER, False)):
            space = SpatialSpace(layer, core, constraints(), CORRECTED, mixed)
            fitting, listed = set(), set()
            for choice in space:
                listed.add(without_single_lanes(choice.unrolling))
                draft = {name: dict(factors) for name, factors in choice.unrolling}
                cut = limit_to_capacity(copy.deepcopy(draft), layer, core, constraints(), CORRECTED)
                if cut == draft:
                    fitting.add(without_single_lanes(choice.unrolling))
            table = space.table()
            assert table is not None
            found = [without_single_lanes(one) for n in range(len(table.lanes)) for one in space.of_table(table, n)]
            assert len(set(found)) == len(found)
            assert fitting <= set(found) <= listed


def without_single_lanes(unrolling: Unrolling) -> tuple[tuple[str, frozenset[tuple[str, int]]], ...]:
    """The unrolling with only those factors that have several lanes."""
    return tuple((name, frozenset(factor for factor in factors if factor[1] > 1)) for name, factors in unrolling)


def test_more_spatial_mappings_never_make_it_worse_in_no_time() -> None:
    """`exact` with almost no time is no worse than loma and salsa, and its bound is not above the optimum."""
    for objective in OBJECTIVES:
        found = {}
        for engine in ("loma", "salsa", "exact"):
            options = SearchOptions(
                model="corrected",
                temporal_mapping_search_engine=engine,  # type: ignore[arg-type]
                objective=objective,  # type: ignore[arg-type]
                time_budget_s=1e-9,
            )
            record = map_layer(WIDE_LAYER, CORE, constraints(), options)
            found[engine] = OBJECTIVE_VALUES[objective].value(record.energy_pj, record.latency_cycles)
        best = map_layer(
            WIDE_LAYER,
            CORE,
            constraints(),
            SearchOptions(model="corrected", temporal_mapping_search_engine="exact", objective=objective),  # type: ignore[arg-type]
        ).search
        assert best["lower_bound"] * (1 - 1e-9) <= found["exact"] <= min(found["loma"], found["salsa"])
        assert not record.search["proven"]
        assert record.search["lower_bound"] <= best["value"]


def test_given_spatial_mapping_is_all_that_is_covered() -> None:
    """The proof covers only the given spatial mapping if the mapping file fixes every side of the array."""
    given = replace(constraints(), spatial_mapping=(("D1", (("K", 2),)),))
    options = SearchOptions(temporal_mapping_search_engine="exact")
    record = map_layer(LAYER, CORE, given, options)
    assert record.search["covers"] == "the spatial mapping of the mapping file"
    assert record.search["spatial_mappings"] == {"allowed": 1, "searched": 1, "settled_by_bound": 0}
