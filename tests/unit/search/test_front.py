"""Pareto fronts: bounding lines and the stated miss hold for all mappings; fronts of networks equal brute force."""

import itertools
import random
from dataclasses import replace

import numpy as np
import pytest
from tilewright.base.errors import MappingError
from tilewright.search.front import (
    MOST_POINTS,
    BoundedFront,
    FrontPoint,
    SupportingLine,
    columns,
    network_front,
    on_staircase,
    unmatched,
)

from tests.unit.search.exact.exact_brute_force import space_of
from tests.unit.search.exact.exact_cases import problems
from tests.unit.search.front_cases import layer_front

Points = list[tuple[float, float]]
ROUNDED = 1e-8


def check_front(front: BoundedFront, energy: np.ndarray, latency: np.ndarray, where: object) -> None:
    """Checks that no mapping is below a bound, and that a point matches each mapping within the stated miss."""
    own_energy, own_latency = columns(front.points)
    assert (np.diff(own_latency) > 0).all(), where
    assert (np.diff(own_energy) < 0).all(), where
    assert latency.min() >= front.least_latency_cycles * (1 - ROUNDED), where
    for line in front.lines:
        assert (energy + line.pj_a_cycle * latency).min() >= line.level_pj * (1 - ROUNDED), (where, line)
    worst = np.maximum(own_energy / energy[:, None], own_latency / latency[:, None]).min(axis=1).max()
    assert worst <= (1 + front.largest_miss) * (1 + ROUNDED), where


@pytest.mark.parametrize(("allocation", "effort"), [("greedy", None), ("greedy", 2000), ("free", None)])
def test_fronts_of_layers_hold_against_brute_force(allocation: str, effort: int | None) -> None:
    """Every point is a mapping, the bounds hold for all mappings, and the front is complete if no effort ends it."""
    several = 0
    for where, _, prepared in problems(range(5000, 5012 if effort is None else 5006)):
        spaces = space_of(prepared, allocation)
        energy = np.concatenate([space.energy_pj[space.fits] for space in spaces])
        latency = np.concatenate([space.latency_cycles[space.fits] for space in spaces])
        try:
            front = layer_front(prepared, allocation, effort=effort)
        except MappingError:
            continue
        if front is None:
            assert not len(energy), where
            continue
        check_front(front, energy, latency, where)
        known = set(zip(energy.tolist(), latency.tolist(), strict=True))
        assert {(one.energy_pj, one.latency_cycles) for one in front.points} <= known, where
        if effort is None:
            kept = on_staircase(energy, latency)
            own_energy, own_latency = columns(front.points)
            assert front.is_complete, where
            assert own_latency.tolist() == latency[kept].tolist(), where
            assert own_energy.tolist() == pytest.approx(energy[kept].tolist(), rel=1e-9), where
        several += len(front.points) > 1
    assert several >= 2 or effort is not None


def hull(points: Points) -> BoundedFront:
    """Front of known points with its exact lines: those through neighbouring points with no point below."""
    energy, latency = np.array(points).T
    kept = on_staircase(energy, latency)
    weights = {0.0}
    for one, other in itertools.combinations(kept.tolist(), 2):
        weights.add(float((energy[one] - energy[other]) / (latency[other] - latency[one])))
    lines = [SupportingLine(weight, float((energy + weight * latency).min())) for weight in sorted(weights)]
    return BoundedFront(
        tuple(FrontPoint(float(energy[one]), float(latency[one])) for one in kept), tuple(lines), float(latency.min())
    )


def test_fronts_of_networks_are_those_of_brute_force() -> None:
    """Each sum of mappings of a small network is above the lines, and a point matches it within the miss.

    Each point is such a sum.
    """
    rng = random.Random(7)
    for case in range(60):
        layers = []
        for _ in range(rng.randint(1, 4)):
            points = [(rng.uniform(1, 3), float(rng.randint(10, 40))) for _ in range(rng.randint(1, 7))]
            layers.append((hull(points), rng.choice((1, 1, 2, 5))))
        front = network_front(layers)
        sums = np.array(
            [
                [sum(n * getattr(one, name) for one, (_, n) in zip(chosen, layers, strict=True)) for name in NAMES]
                for chosen in itertools.product(*(layer.points for layer, _ in layers))
            ]
        )
        check_front(front, sums[:, 0], sums[:, 1], case)
        kept = on_staircase(sums[:, 0], sums[:, 1])
        assert front.swept_miss is not None
        assert front.swept_miss <= (1 + max(layer.largest_miss for layer, _ in layers)) * 1.0011 - 1, case
        own_energy, own_latency = columns(front.points)
        matched = (own_energy <= sums[kept, 0][:, None] * 1.0011) & (own_latency <= sums[kept, 1][:, None] * 1.0011)
        assert matched.any(axis=1).all(), case
        for point in front.points:
            chosen = [layer.points[index] for index, (layer, _) in zip(point.of_layers, layers, strict=True)]
            for name in NAMES:
                total = sum(n * getattr(one, name) for one, (_, n) in zip(chosen, layers, strict=True))
                assert getattr(point, name) == pytest.approx(total, rel=1e-12), case


def test_a_network_is_matched_within_the_largest_miss_of_its_layers() -> None:
    """The miss that sweeps prove for a network is at most the largest miss of its layers."""
    rng = random.Random(19)
    for case in range(20):
        layers, mappings = [], []
        for _ in range(3):
            energy = np.array([rng.uniform(1, 3) for _ in range(30)])
            latency = np.array([float(rng.randint(10, 40)) for _ in range(30)])
            kept = on_staircase(energy, latency)
            kept = kept[[place for place in range(len(kept)) if place in (0, len(kept) - 1) or rng.random() < 0.5]]
            escape = unmatched(energy, latency, energy[kept], latency[kept]).max()
            points = tuple(FrontPoint(float(energy[one]), float(latency[one])) for one in kept)
            line = SupportingLine(0.0, float(energy.min()))
            layers.append((BoundedFront(points, (line,), float(latency.min()), float(escape)), 1))
            mappings.append(list(zip(energy.tolist(), latency.tolist(), strict=True)))
        front = network_front(layers)
        sums = np.array([np.sum(chosen, axis=0) for chosen in itertools.product(*mappings)])
        check_front(front, sums[:, 0], sums[:, 1], case)
        assert front.swept_miss is not None
        assert front.swept_miss <= (1 + max(layer.largest_miss for layer, _ in layers)) * 1.0011 - 1, case


def test_a_small_layer_adds_little_to_the_miss_of_a_network() -> None:
    """A layer with 1 % of the energy and latency adds little to the miss of a network.

    This layer misses 50 % and the other layer nothing, so the network misses less than 1 %. Without bounds of the other
    layer, nothing below 50 % follows.
    """
    exact = replace(hull([(100.0, 2000.0), (200.0, 1000.0)]), swept_miss=0.0)
    points = (FrontPoint(1.5, 15.0),)
    small = BoundedFront(points, (SupportingLine(0.0, 1.0),), 10.0, 0.5)
    assert network_front([(exact, 1), (small, 1)]).swept_miss == pytest.approx(0.5 / 101, rel=1e-6)
    unbounded = BoundedFront(exact.points, (SupportingLine(0.0, 0.0),), 0.0, 0.0)
    assert network_front([(unbounded, 1), (small, 1)]).swept_miss == pytest.approx(0.5)
    unknown = BoundedFront(points, (SupportingLine(0.0, 1.0),), 0.0, None)
    assert network_front([(exact, 1), (unknown, 1)]).swept_miss == pytest.approx(15.0 / 1000)


def test_the_knee_remains_when_points_are_dropped() -> None:
    """The knee of the kept points is that of all sums, and kept points match each sum within 0.1 %."""
    rng = random.Random(31)
    for case in range(10):
        layers = [(hull([(rng.uniform(1, 1.05), rng.uniform(1, 1.1)) for _ in range(30)]), 1) for _ in range(4)]
        front = network_front(layers)
        sums = np.array([[0.0, 0.0]])
        for layer, _ in layers:
            points = np.column_stack(columns(layer.points))
            sums = (sums[:, None] + points[None]).reshape(-1, 2)
        energy, latency = sums[on_staircase(sums[:, 0], sums[:, 1])].T
        weights = (energy - energy[-1]) / (energy[0] - energy[-1]) + (latency - latency[0]) / (latency[-1] - latency[0])
        knee, own = int(weights.argmin()), front.points[front.knee]
        assert own.energy_pj == pytest.approx(energy[knee], rel=1e-12), case
        assert unmatched(energy, latency, *columns(front.points)).max() <= 0.001, case
        assert len(front.points) < len(energy) or len(energy) < 10, case


NAMES = ("energy_pj", "latency_cycles")


def test_many_sums_are_thinned_to_few_points() -> None:
    """A network's front has at most MOST_POINTS points, its two ends among them; its lines add up the layers' lines."""
    rng = random.Random(3)
    layers = [(hull([(rng.uniform(1, 9), float(rng.randint(10, 10**6))) for _ in range(40)]), 1) for _ in range(12)]
    front = network_front(layers)
    assert 20 < len(front.points) <= MOST_POINTS
    for name, place in (("latency_cycles", 0), ("energy_pj", -1)):
        least = sum(getattr(layer.points[place], name) for layer, _ in layers)
        assert getattr(front.points[place], name) == pytest.approx(least, rel=1e-12)
    for line in front.lines:
        level = sum(float(layer.support(np.array([line.pj_a_cycle]))[0]) for layer, _ in layers)
        assert line.level_pj == pytest.approx(level, rel=1e-8)


def test_nothing_is_claimed_without_bounds() -> None:
    """The miss is infinite if a bound is 0, and 0 if the energy and its bound are 0."""
    points = (FrontPoint(5.0, 10.0), FrontPoint(4.0, 20.0))
    assert BoundedFront(points, (SupportingLine(0.0, 0.0),), 10.0).largest_miss == np.inf
    assert BoundedFront((FrontPoint(0.0, 10.0),), (SupportingLine(0.0, 0.0),), 10.0).largest_miss == 0.0


def test_the_knee_lies_farthest_below_the_ends() -> None:
    """The knee is the corner of three points, farthest below the line of the two ends."""
    front = hull([(100.0, 10.0), (20.0, 11.0), (19.0, 40.0)])
    assert front.points[front.knee] == FrontPoint(20.0, 11.0)
    assert (front.ends.latency.latency_cycles, front.ends.energy.energy_pj) == (10.0, 19.0)
