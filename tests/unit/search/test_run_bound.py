"""Lower bound of the objective of a network: below every choice of mappings, and close to the least."""

import itertools
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tilewright.base.objectives import OBJECTIVES, Powers
from tilewright.search.run_bound import LayerBounds, run_bound

from tests.members import members

POWERS = (*OBJECTIVES.values(), Powers(energy=1, latency=2))
Points = list[tuple[float, float]]
SIZES = st.floats(1e-3, 1e9)
LAYERS = st.lists(
    st.tuples(st.lists(st.tuples(SIZES, SIZES), min_size=1, max_size=4), st.integers(1, 3)), min_size=1, max_size=4
)


def bounds_of(points: Points, count: int, powers: Powers) -> LayerBounds:
    """Exact bounds of a layer whose mappings have these energies and latencies."""
    least = [min(point[axis] for point in points) for axis in (0, 1)]
    return LayerBounds(least[0], least[1], min(powers.value(*point) for point in points), count)


def least_of_network(layers: list[tuple[Points, int]], powers: Powers) -> float:
    """The least objective of the sums, over every choice of a mapping for each layer."""
    return min(
        powers.value(
            *(sum(count * point[axis] for point, (_, count) in zip(chosen, layers, strict=True)) for axis in (0, 1))
        )
        for chosen in itertools.product(*(points for points, _ in layers))
    )


@settings(max_examples=members(300, 120), deadline=None)
@given(LAYERS, st.sampled_from(POWERS))
def test_no_choice_of_mappings_is_below(layers: list[tuple[Points, int]], powers: Powers) -> None:
    """The bound under any objective is below every choice of mappings, with exact bounds of layers and with
    lower ones.
    """
    least = least_of_network(layers, powers)
    bounds = [bounds_of(points, count, powers) for points, count in layers]
    assert run_bound(bounds, powers) <= least
    lower = [LayerBounds(one.energy_pj * 0.7, one.latency_cycles * 0.9, one.value * 0.8, one.count) for one in bounds]
    assert run_bound(lower, powers) <= run_bound(bounds, powers) * (1 + 1e-6)


def test_sums_are_bounded_exactly() -> None:
    """The bound of energy or latency, which are sums, is the sum of the layers' bounds."""
    layers = [LayerBounds(0.0, 0.0, 3.0, 2), LayerBounds(0.0, 0.0, 4.0)]
    for name in ("energy", "latency"):
        assert run_bound(layers, OBJECTIVES[name]) == pytest.approx(10.0, rel=1e-8)


def test_the_bound_of_equal_layers_is_that_of_one() -> None:
    """Two equal layers have four times the EDP of one, also without bounds of energy and latency."""
    one = LayerBounds(2.0, 3.0, 8.0)
    assert run_bound([one, one], OBJECTIVES["EDP"]) == pytest.approx(32.0, rel=1e-5)
    assert run_bound([LayerBounds(0.0, 0.0, 8.0, 2)], OBJECTIVES["EDP"]) == pytest.approx(32.0, rel=1e-6)


def test_bounds_of_the_ends_make_it_close() -> None:
    """A network's EDP bound is close if each layer also has bounds of its energy and latency.

    For networks of very different layers, the median bound is within 1 % of the optimum. From the EDP bounds of the
    layers alone, it is more than 10 % below.
    """
    rng, close, loose = random.Random(7), [], []
    for _ in range(200):
        layers = []
        for _ in range(4):
            energy, latency = 10 ** rng.uniform(-1, 1), 10 ** rng.uniform(-1, 1)
            points = [(energy * rng.uniform(1, 1.2), latency * rng.uniform(1, 1.2)) for _ in range(4)]
            layers.append((points, 1))
        powers = OBJECTIVES["EDP"]
        least = least_of_network(layers, powers)
        bounds = [bounds_of(points, count, powers) for points, count in layers]
        close.append(1 - run_bound(bounds, powers) / least)
        loose.append(1 - run_bound([LayerBounds(0.0, 0.0, one.value) for one in bounds], powers) / least)
    assert sorted(close)[100] < 0.01
    assert sorted(loose)[100] > 0.1


def test_no_layers_have_no_cost() -> None:
    """The bound of a network without layers is 0."""
    assert run_bound([], OBJECTIVES["EDP"]) == run_bound([], OBJECTIVES["latency"]) == 0.0
