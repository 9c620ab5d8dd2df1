"""Known points of a front in the record of a sweep, compared with the staircase."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from tilewright.base.compiled import Kernel
from tilewright.search.exact.known_kernel import is_matched, longest_unknown
from tilewright.search.exact.rounds import Incumbent
from tilewright.search.exact.staircase import ROUNDED, Staircase


@pytest.fixture(autouse=True)
def _plain_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Kernel, "__call__", lambda self, *arguments: self.py_func(*arguments))


def drawn(draw: np.random.Generator) -> Staircase:
    """Staircase of drawn points, with lower bounds of energy and latency that some points reach."""
    count = int(draw.integers(1, 12))
    energy, latency = draw.integers(20, 60, count).astype(float), draw.integers(20, 60, count).astype(float)
    known = Staircase(float(energy.min()) - int(draw.integers(0, 3)), float(latency.min()) - int(draw.integers(0, 3)))
    known.add(Incumbent(None, None, *pair) for pair in zip(energy.tolist(), latency.tolist(), strict=True))
    return known


def record_of(known: Staircase, tolerance: float) -> SimpleNamespace:
    """Fields of the record of a sweep that `known_kernel` reads."""
    return SimpleNamespace(
        sweeps=True,
        known_count=len(known.energy),
        known_energy=known.energy,
        known_latency=known.latency,
        known_tolerance=1 + max(tolerance, ROUNDED),
        known_floor_energy=known.least_energy_pj,
        known_floor_latency=known.least_latency_cycles,
        known_share=1.0,
    )


@pytest.mark.parametrize("tolerance", [0.0, 0.009, 0.2])
def test_matched_labels_are_those_whose_miss_is_within_the_tolerance(tolerance: float) -> None:
    """A label is matched exactly if its miss is at most the tolerance. The share kept is 1 plus this miss."""
    draw = np.random.default_rng(7)
    matched = 0
    for _ in range(400):
        known = drawn(draw)
        for energy, latency in draw.integers(15, 65, (5, 2)).astype(float).tolist():
            x, miss = record_of(known, tolerance), known.miss(energy, latency)
            assert is_matched(x, energy, latency) == (miss <= tolerance)
            assert x.known_share - 1 == pytest.approx(max(0.0, miss) if miss <= tolerance else 0.0, abs=1e-12)
            matched += miss <= tolerance
    assert matched > 100


def test_longer_completions_are_dominated() -> None:
    """A known point has at most the given energy and at most the longest latency, or the limit did not change."""
    draw = np.random.default_rng(8)
    shorter = 0
    for _ in range(400):
        known, energy = drawn(draw), float(draw.integers(15, 65))
        x = record_of(known, 0.0)
        longest = longest_unknown(x, energy, 1e9)
        reached = [point for point in known.points if point.energy_pj <= energy]
        assert longest == min((point.latency_cycles for point in reached), default=1e9)
        assert longest_unknown(x, energy, 1.0) == 1.0
        shorter += math.isfinite(longest) and longest < 1e9
    assert shorter > 100


def test_a_search_for_one_objective_knows_no_points() -> None:
    """A record that is not that of a sweep matches nothing, and shortens no latency."""
    x = record_of(drawn(np.random.default_rng(9)), 0.5)
    x.sweeps = False
    assert not is_matched(x, 1e9, 1e9)
    assert longest_unknown(x, 1e9, 2e9) == 2e9
