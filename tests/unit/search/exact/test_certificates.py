"""The exact search against plain brute force; `benchmarks/attack_certificates.py` attacks many more problems."""

import pytest
from tilewright.mapping.temporal import loop_multiset

from tests.plain.attack import ALLOCATIONS, Outcome, attack
from tests.plain.problems import random_problem
from tests.plain.space import OBJECTIVES, greedy_multisets
from tests.plain.spatial import DoesNotFitError

PROBLEMS = 16
PARTS = 4


@pytest.mark.parametrize("part", range(PARTS))
def test_certificates_hold(part: int) -> None:
    """A proven value is the least of all mappings, by a model that shares no code with the package.

    By this model, the mapping found costs as much as the package says.
    """
    outcome = Outcome()
    for seed in range(part * PROBLEMS // PARTS, (part + 1) * PROBLEMS // PARTS):
        outcome.add(attack(seed))
    assert not outcome.differences, outcome.differences[:3]
    assert outcome.counts["proven"] > PROBLEMS // PARTS
    for allocation in ALLOCATIONS:
        for objective in OBJECTIVES:
            assert outcome.counts[f"searches: {allocation} {objective}"] > PROBLEMS // PARTS // 3


def test_loops_of_the_greedy_space() -> None:
    """Brute force merges the loops that the package merges, at every limit."""
    for seed in range(300):
        try:
            sizes = random_problem(seed).plain().temporal_sizes
        except DoesNotFitError:
            continue
        expected = set()
        for limit in (None, *range(1, 40)):
            loops = loop_multiset(tuple(sizes.items()), limit, ()).loops
            expected.add(tuple(sorted(loop for loop, count in loops for _ in range(count))))
        assert greedy_multisets(sizes) == expected
