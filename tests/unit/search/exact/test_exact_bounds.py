"""Bounds of the exact search: no label has a bound above its best completion."""

import itertools
import math
import random
from collections import Counter

import numpy as np
import pytest
from tilewright.base.errors import MappingError
from tilewright.mapping.temporal import LoopMultiset, loop_multiset
from tilewright.search.evaluate import PreparedProblem

from tests.unit.search.exact.exact_brute_force import Mappings, free_mapping_count, free_mappings, greedy_mappings
from tests.unit.search.exact.exact_cases import random_case
from tests.unit.search.exact.exact_labels import Label, boundary_columns, generations

MODELS = ("zigzag-3.9.1", "corrected")
OBJECTIVES = ("latency", "energy", "EDP")
LARGEST_FREE_SPACE = 6000
LABELS = 25
"""Number of labels of a generation that are checked."""
ROUNDING = 1 + 1e-9

Space = tuple[LoopMultiset, bool, Mappings]
"""The loops, whether boundaries are free, and every mapping."""


def spaces_of(prepared: PreparedProblem) -> list[Space]:
    """All mappings of a small problem: with free boundaries, and greedy ones for every merging of the loops."""
    spaces: list[Space] = []
    if free_mapping_count(prepared) <= LARGEST_FREE_SPACE:
        spaces.append((loop_multiset(prepared.spatial.temporal_sizes, None), True, free_mappings(prepared)))
    for mappings in greedy_mappings(prepared):
        counts = np.bincount(mappings.orders[0], minlength=len(mappings.loops))
        loops = tuple(zip(mappings.loops, counts.tolist(), strict=True))
        spaces.append((LoopMultiset(loops), False, mappings))
    return [space for space in spaces if space[2].fits.any()]


def incumbents(mappings: Mappings, objective: str, rng: random.Random) -> list[dict[str, float]]:
    """Known values for a search: none, one just above the optimum, and one anywhere.

    For the objective latency, the value is only a limit: bounds above it need not hold, but no label is left out.
    """
    values = mappings.values(objective)[mappings.fits]
    name = "best_latency_cycles" if objective == "latency" else "best"
    known = [float(values.min()) * (1 + 1e-6), float(rng.choice(values.tolist())) * rng.uniform(1, 1.5)]
    return [{}, *({name: value} for value in known)]


def check_label(label: Label, mappings: Mappings, columns: np.ndarray, objective: str, known: dict[str, float]) -> bool:
    """Check that no bound of a label is above its completions; True if a completion beats the known values."""
    values = mappings.values(objective)
    mask = label.completions(mappings, columns)
    if mask.any():
        assert label.energy_bound_pj <= mappings.energy_pj[mask].min() * ROUNDING
    mask &= values < min(known.values(), default=math.inf)
    if not mask.any():
        return False
    assert label.bound <= values[mask].min() * ROUNDING, "the bound is above the best completion"
    if objective != "energy":
        assert label.latency_bound_cycles <= mappings.latency_cycles[mask].min() * ROUNDING
    return True


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_no_bound_is_above_the_best_completion(objective: str) -> None:
    """No completion of a label costs less than the label's bound, in random problems."""
    seen: Counter[str] = Counter()
    for seed, model in itertools.product(range(45), MODELS):
        rng = random.Random(seed)
        try:
            prepared = random_case(rng).prepared(model)
        except MappingError:
            continue
        for multiset, free, mappings in spaces_of(prepared):
            columns = boundary_columns(prepared, mappings)
            for known in incumbents(mappings, objective, rng):
                for labels in generations(prepared, multiset, objective, free, **known):
                    for label in rng.sample(labels, min(LABELS, len(labels))):
                        kind = f"{'free' if free else 'greedy'} {'known' if known else 'unknown'}"
                        seen[kind] += check_label(label, mappings, columns, objective, known)
    assert min(seen.values()) > 400, seen
    assert len(seen) == 4


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_no_generation_loses_the_optimum(objective: str) -> None:
    """Equal labels are merged without losing the optimum: in every generation some label still leads to it."""
    checked = 0
    for seed, model in itertools.product(range(100, 132), MODELS):
        try:
            prepared = random_case(random.Random(seed), (3, 5)).prepared(model)
        except MappingError:
            continue
        for multiset, free, mappings in spaces_of(prepared):
            columns = boundary_columns(prepared, mappings)
            values = mappings.values(objective)
            for labels in generations(prepared, multiset, objective, free):
                if len(labels) > 150:
                    break
                least = min(
                    float(values[label.completions(mappings, columns)].min(initial=math.inf)) for label in labels
                )
                assert least <= values.min() * ROUNDING, (seed, model, len(labels[0].order))
                checked += 1
    assert checked > 100


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_bounds_are_sharp_where_nothing_is_open(objective: str) -> None:
    """Over a quarter of the labels that lack only their last loops have a bound equal to their best completion."""
    sharp = labels_seen = 0
    for seed in range(200, 220):
        prepared = random_case(random.Random(seed), (3, 4)).prepared()
        for multiset, free, mappings in spaces_of(prepared):
            columns = boundary_columns(prepared, mappings)
            values = mappings.values(objective)
            last = list(generations(prepared, multiset, objective, free))[-1:]
            for label in itertools.chain.from_iterable(last):
                mask = label.completions(mappings, columns)
                if mask.any():
                    labels_seen += 1
                    sharp += label.bound >= values[mask].min() * (1 - 1e-9)
    assert labels_seen > 200
    assert sharp > labels_seen / 4
