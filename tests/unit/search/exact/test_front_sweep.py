"""Sweeps for fronts: complete fronts equal those of brute force, and every mapping is within the stated miss."""

import random
from collections.abc import Iterator

import numpy as np
import pytest
from tilewright.base.errors import MappingError
from tilewright.mapping.constraints import TemporalOrderingEntry
from tilewright.search.evaluate import PreparedProblem
from tilewright.search.exact import front_sweep
from tilewright.search.exact.choice import Choice
from tilewright.search.exact.floors import NO_FLOORS
from tilewright.search.exact.front_sweep import OBJECTIVE, WIDTHS, FrontCandidate, FrontSweep
from tilewright.search.exact.rounds import Incumbent, Watch
from tilewright.search.exact.staircase import Staircase
from tilewright.search.front import on_staircase
from tilewright.search.options import ExactParameters, SearchLimits

from tests.unit.search.exact.exact_brute_force import (
    LARGEST_FREE_SPACE,
    Ordering,
    free_mapping_count,
    search,
    space_of,
)
from tests.unit.search.exact.exact_cases import problems

ROUNDED = 1e-8


def swept(
    prepared: PreparedProblem, allocation: str, tolerance: float, effort: int | None = None, ordering: Ordering = ()
) -> tuple[Staircase, float] | None:
    """The staircase of points of the sweep and how far it may miss the front; None if no mapping fits."""
    energy, latency = (search(prepared, allocation, goal, ordering) for goal in ("energy", "latency"))
    if energy is None or latency is None:
        return None
    known = Staircase(energy.lower_bound, latency.lower_bound)
    known.add([*energy.met, *latency.met])
    choice = Choice(0, 1, 0.0, prepared.layer, prepared.core, NO_FLOORS, lambda: prepared)
    watch = Watch.start(OBJECTIVE, SearchLimits(0.0, effort, None), None, None)
    options = ExactParameters("EDP", allocation)
    return known, FrontSweep([choice], ordering, options, watch, known, tolerance).run()


def cases(
    seeds: range, allocation: str, ordering: Ordering = ()
) -> Iterator[tuple[object, PreparedProblem, np.ndarray, np.ndarray]]:
    """Small problems with the energies and latencies of all their mappings."""
    for where, _, prepared in problems(seeds):
        if allocation == "free" and free_mapping_count(prepared) > LARGEST_FREE_SPACE:
            continue
        spaces = space_of(prepared, allocation, ordering)
        energy = np.concatenate([space.energy_pj[space.fits] for space in spaces])
        latency = np.concatenate([space.latency_cycles[space.fits] for space in spaces])
        yield where, prepared, energy, latency


@pytest.mark.parametrize("allocation", ["greedy", "free"])
def test_complete_fronts_are_those_of_brute_force(allocation: str) -> None:
    """The points with a tolerance of 0 are the staircase of all mappings, and the miss is 0."""
    several = 0
    for where, prepared, energy, latency in cases(range(5000, 5020), allocation):
        try:
            result = swept(prepared, allocation, 0.0)
        except MappingError:
            continue
        if result is None:
            assert not len(energy), where
            continue
        known, miss = result
        kept = on_staircase(energy, latency)
        assert miss == 0.0, where
        assert known.energy.tolist() == pytest.approx(energy[kept].tolist(), rel=1e-9), where
        assert known.latency.tolist() == pytest.approx(latency[kept].tolist(), rel=1e-9), where
        several += len(kept) > 1
    assert several >= 3


@pytest.mark.parametrize(("tolerance", "effort"), [(0.05, None), (0.0, 40), (0.0, 400)])
def test_no_mapping_escapes_by_more_than_stated(tolerance: float, effort: int | None) -> None:
    """No mapping is better than the front by more than the stated miss.

    This holds for sweeps with a tolerance, and for sweeps that end early because their effort is used up.
    """
    ended = 0
    for allocation in ("greedy", "free"):
        for where, prepared, energy, latency in cases(range(5016, 5024), allocation):
            try:
                result = swept(prepared, allocation, tolerance, effort)
            except MappingError:
                continue
            if result is None:
                continue
            known, miss = result
            ratios = np.maximum(known.energy / energy[:, None], known.latency / latency[:, None])
            assert ratios.min(axis=1).max() <= (1 + miss) * (1 + ROUNDED), where
            assert effort is not None or miss <= tolerance, where
            ended += miss > 0
    assert ended or effort is None


def test_narrow_sweeps_state_what_they_leave_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The stated miss with one label in each generation still covers every mapping, and is above 0 somewhere."""
    monkeypatch.setattr(front_sweep, "WIDTHS", (1,))
    left = 0
    for where, prepared, energy, latency in cases(range(5024, 5034), "greedy"):
        try:
            result = swept(prepared, "greedy", 0.0)
        except MappingError:
            continue
        if result is not None:
            known, miss = result
            ratios = np.maximum(known.energy / energy[:, None], known.latency / latency[:, None])
            assert ratios.min(axis=1).max() <= (1 + miss) * (1 + ROUNDED), where
            left += miss > 0
    assert left


@pytest.mark.parametrize("allocation", ["greedy", "free"])
def test_points_keep_to_a_temporal_ordering(allocation: str) -> None:
    """The front with a temporal ordering is that of all mappings whose loop orders match the ordering."""
    ordering = (TemporalOrderingEntry("*"), TemporalOrderingEntry("K"))
    found = 0
    for where, prepared, energy, latency in cases(range(5034, 5050), allocation, ordering):
        if "K" not in dict(prepared.spatial.temporal_sizes):
            continue
        try:
            result = swept(prepared, allocation, 0.0, None, ordering)
        except MappingError:
            continue
        if result is not None:
            kept = on_staircase(energy, latency)
            assert result[0].energy.tolist() == pytest.approx(energy[kept].tolist(), rel=1e-9), where
            assert result[0].latency.tolist() == pytest.approx(latency[kept].tolist(), rel=1e-9), where
            found += 1
    assert found


def test_misses_are_those_of_the_definition() -> None:
    """A miss equals its definition on random staircases and bounds.

    For each point, take the larger excess of its energy and latency over the bound. The miss is the least of these.
    """
    rng = random.Random(11)
    for _ in range(50):
        known = Staircase(1.0, 1.0)
        known.add(Incumbent(None, None, rng.uniform(1, 9), float(rng.randint(1, 40))) for _ in range(rng.randint(1, 9)))
        energy = np.array([rng.uniform(1, 9) for _ in range(20)])
        latency = np.array([rng.uniform(1, 40) for _ in range(20)])
        shares = np.maximum(known.energy / energy[:, None], known.latency / latency[:, None]).min(axis=1) - 1
        assert known.misses(energy, latency) == pytest.approx(np.maximum(shares, 0.0), abs=1e-8)


def test_ends_limit_the_product_only_where_they_are_proven() -> None:
    """The largest product is that of two proven ends.

    It has no limit if an end may be missed by more than the tolerance.
    """
    points = [Incumbent(None, None, 4.0, 10.0), Incumbent(None, None, 2.0, 20.0)]
    proven = Staircase(2.0, 10.0)
    proven.add(points)
    assert proven.end_miss == 0.0
    assert proven.largest_product(0.0) == 80.0
    loose = Staircase(1.9, 10.0)
    loose.add(points)
    assert loose.end_miss == pytest.approx(2.0 / 1.9 - 1)
    assert loose.largest_product(0.01) > 1e200


def test_a_sweep_counts_the_distance_of_the_ends() -> None:
    """A sweep counts how far its ends are from the optimum.

    The sweep begins with a point that is 0.4 % worse than the least energy and latency. It finds a better point, or
    states a miss of at least 0.4 %. The first point alone would match every mapping within the tolerance.
    """
    missed = 0
    for where, prepared, energy, latency in cases(range(5000, 5012), "greedy"):
        if not len(energy):
            continue
        known = Staircase(float(energy.min()), float(latency.min()))
        known.add([Incumbent(None, None, float(energy.min()) * 1.004, float(latency.min()) * 1.004)])
        watch = Watch.start(OBJECTIVE, SearchLimits(0.0, None, None), None, None)
        candidate = FrontCandidate(prepared, 0, (), ExactParameters("EDP", "greedy"), watch)
        for part in candidate.front_parts:
            part.sweep(known, WIDTHS[0], 0.01)
        miss = max(part.miss for part in candidate.front_parts)
        ratios = np.maximum(known.energy / energy[:, None], known.latency / latency[:, None])
        assert ratios.min(axis=1).max() <= (1 + miss) * (1 + ROUNDED), where
        missed += miss > 0
    assert missed
