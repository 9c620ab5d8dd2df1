"""The exact search with temporal orderings: results obey the orderings, and no better mapping obeys them."""

import random
from collections import Counter

import pytest
from tilewright.base.errors import MappingError
from tilewright.mapping.constraints import TemporalOrderingEntry
from tilewright.mapping.temporal import loop_multiset
from tilewright.search import loma as loma_module
from tilewright.search.evaluate import PreparedProblem, prepare
from tilewright.search.options import SearchOptions

from tests.unit.cost.engine_cases import LINKS, constraints, gemm, register_core
from tests.unit.search.exact.exact_brute_force import (
    ALLOCATIONS,
    LARGEST_FREE_SPACE,
    OBJECTIVES,
    Ordering,
    check_optimum,
    free_mapping_count,
    matches,
    search,
    space_of,
)
from tests.unit.search.exact.exact_cases import problems


@pytest.fixture
def no_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets searches begin without the best of loma's orders."""
    monkeypatch.setattr(loma_module, "best_row", lambda costed, objective: None)


def random_ordering(rng: random.Random, prepared: PreparedProblem) -> Ordering:
    """A random ordering of some or all loops, each with or without a size.

    It gives the innermost loops, the outermost loops, both, loops between two gaps, or all loops.
    """
    sizes = prepared.spatial.temporal_sizes
    limit = rng.choice((None, None, 2, 3))
    loops = [loop for loop, count in loop_multiset(sizes, limit).loops for _ in range(count)]
    rng.shuffle(loops)
    sized = rng.choice((0.0, 0.0, 0.5, 1.0))
    entries = [TemporalOrderingEntry(d, size if rng.random() < sized else None) for d, size in loops]
    gap = TemporalOrderingEntry("*")
    first, last = rng.randint(0, len(loops)), rng.randint(0, len(loops))
    shape = rng.choice(("inside", "outside", "both", "middle", "complete"))
    if shape == "inside":
        return tuple(entries[:first])
    if shape == "outside":
        return (gap, *entries[first:])
    if shape == "both":
        return (*entries[: min(first, last)], gap, *entries[max(first, last) :])
    if shape == "middle":
        return (gap, *entries[min(first, last) : max(first, last)], gap)
    return tuple(entries)


@pytest.mark.usefixtures("no_start")
@pytest.mark.parametrize("allocation", ALLOCATIONS)
def test_orderings_are_met(allocation: str) -> None:
    """The result meets the ordering and has the least value of all mappings that do; None if no mapping does."""
    seen: Counter[str] = Counter()
    for where, _, prepared in problems(range(600, 690)):
        if allocation == "free" and free_mapping_count(prepared) > LARGEST_FREE_SPACE:
            continue
        ordering = random_ordering(random.Random(where[0]), prepared)
        objective = OBJECTIVES[where[0] % 3]
        result = search(prepared, allocation, objective, ordering)
        check_optimum(result, space_of(prepared, allocation, ordering), objective, (*where, ordering))
        if result is not None:
            assert matches(result.order, ordering), (*where, ordering)
            seen["gap" if any(entry.dimension == "*" for entry in ordering) else "no gap"] += 1
            seen["sized"] += any(entry.size is not None for entry in ordering)
        else:
            seen["none"] += 1
    assert min(seen["gap"], seen["no gap"], seen["sized"], seen["none"]) > 15, seen


def test_complete_ordering_leaves_boundaries_to_choose() -> None:
    """A complete ordering is the order of the result; `free` still chooses its boundaries, and can gain by that."""
    gains = 0
    for where, _, prepared in problems(range(730, 810)):
        found = search(prepared, "greedy", "energy")
        if found is None or not found.order:
            continue
        ordering = tuple(TemporalOrderingEntry(*loop) for loop in found.order)
        greedy, free = (search(prepared, allocation, "energy", ordering) for allocation in ALLOCATIONS)
        assert greedy is not None, where
        assert free is not None, where
        assert greedy.order == free.order == found.order, where
        assert greedy.value == pytest.approx(found.value, rel=1e-12), where
        assert free.value <= greedy.value * (1 + 1e-9), where
        gains += free.value < greedy.value * 0.999
    assert gains > 3


def test_impossible_orderings() -> None:
    """Sizes that do not divide raise an error; an ordering that no order meets gives no result."""
    prepared = prepare(gemm(C=2, D=2, K=2), register_core(), LINKS, (("D1", ()),), SearchOptions())
    for allocation in ALLOCATIONS:
        with pytest.raises(MappingError, match="whose product does not divide"):
            search(prepared, allocation, "energy", constraints((), [["C", 3]]).temporal_ordering)
        twice = constraints((), [["C", "*"], ["C", "*"]]).temporal_ordering
        assert search(prepared, allocation, "energy", twice) is None


def test_ordering_of_loops_that_are_not_there() -> None:
    """An ordering of a dimension that has no temporal loop does not change the result."""
    prepared = prepare(gemm(C=1, D=1, K=1), register_core(), LINKS, (("D1", ()),), SearchOptions())
    ordering = constraints((), [["FX", "*"]]).temporal_ordering
    for allocation in ALLOCATIONS:
        result = search(prepared, allocation, "latency", ordering)
        assert result == search(prepared, allocation, "latency")
        assert result is not None
        assert result.order == ()
        assert result.is_proven
