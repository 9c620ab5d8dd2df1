"""Probabilities that orders of runs hold within the ranges of their costs."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tilewright.results.pareto import RunPoint, compare, pareto_table
from tilewright.results.two_runs import less_energy_text
from tilewright.results.uncertainty import (
    SAMPLES,
    CostPart,
    UncertainRun,
    cost_parts,
    energy_range_pj,
    front_probabilities,
    less_energy_counts,
)


def run(energy: float, latency: float, area: float | None, *parts: CostPart) -> UncertainRun:
    """A run with these costs and ranges."""
    return UncertainRun(energy, latency, area, parts)


def test_one_law_moves_all_its_users_together() -> None:
    """A run with half as many accesses of one DRAM needs less energy in every sample, as both have the same factor."""
    much, little = CostPart("dram", "dram x", 90.0, 0.0, 0.5, 2.0), CostPart("dram", "dram x", 45.0, 0.0, 0.5, 2.0)
    assert less_energy_counts(run(50, 1, None, little), run(100, 1, None, much)) == (SAMPLES, 0)
    assert less_energy_counts(run(50, 1, None, little), run(50, 1, None, little)) == (0, SAMPLES)


def test_two_laws_are_independent() -> None:
    """Factors are uniform in their logarithm: half of the samples of 40 times a factor from 0.5 to 2 are below 40."""
    part = CostPart("m", "law", 40.0, 0.0, 0.5, 2.0)
    assert _less_share(run(40, 1, None, part), run(40, 1, None)) == pytest.approx(0.5, abs=0.01)
    # 30 f < 40 for f below 4/3: log(4/3 / 0.5) / log(4)
    expected = np.log(4 / 3 / 0.5) / np.log(4)
    other = CostPart("m", "law", 30.0, 0.0, 0.5, 2.0)
    assert _less_share(run(30, 1, None, other), run(40, 1, None)) == pytest.approx(expected, abs=0.01)


def _less_share(a: UncertainRun, b: UncertainRun) -> float:
    less, same = less_energy_counts(a, b)
    assert not same
    return less / SAMPLES


@pytest.mark.parametrize(
    ("factor", "said"),
    [
        (1.0, "A and B need the same energy in all of 100,000 samples"),
        (1.5, "A needs less energy than B in 100.0% of 100,000 samples"),
        (0.5, "A needs less energy than B in 0.0% of 100,000 samples"),
    ],
)
def test_the_sentence_says_whether_two_runs_tie(factor: float, said: str) -> None:
    """The sentence reports two equal runs as equal in all samples, and unequal runs with a share of the samples."""
    part, other = (CostPart("dram", "dram x", energy, 0.0, 0.5, 2.0) for energy in (40.0, 40.0 * factor))
    assert said in less_energy_text(run(40, 1, None, part), run(40 * factor, 1, None, other))


def test_a_rounded_share_is_never_all_samples() -> None:
    """A share is written as 100.0 % only if it covers all samples, and as 0.0 % only if it covers none."""
    part = CostPart("m", "law", 40.0, 0.0, 0.5, 2.0)
    texts = [less_energy_text(run(40, 1, None, part), run(energy, 1, None)) for energy in (20.002, 30, 79.99)]
    assert "less than 0.1% of" in texts[0]
    assert "more than 99.9% of" in texts[2]


@settings(max_examples=10, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 5), st.integers(1, 5), st.integers(1, 5)), min_size=1, max_size=5))
def test_without_ranges_a_front_is_certain(points: list[tuple[int, int, int]]) -> None:
    """The probability without ranges is 1 for runs on the front and 0 for others."""
    runs = [run(*point) for point in points]
    on_front = [
        not any(all(a <= b for a, b in zip(other, own, strict=True)) and other != own for other in points)
        for own in points
    ]
    assert front_probabilities(runs, by_area=True) == [float(is_on) for is_on in on_front]


def test_the_ends_are_those_of_the_parts() -> None:
    """The ends are linear in each cost, and costs without a range stay."""
    parts = (CostPart("a", "x", 10.0, 0.0, 0.5, 2.0), CostPart("b", "y", 20.0, 0.0, 1.0, 1.5))
    assert energy_range_pj(100.0, parts) == (95.0, 120.0)
    assert energy_range_pj(100.0, ()) == (100.0, 100.0)


def candidate(name: str, energy: float, latency: float, **changes: Any) -> RunPoint:
    """A run as a point of a comparison."""
    given = {"run": name, "workload": "w", "workload_digest": "d", "core": name, "objective": "energy", "model": "m"}
    return RunPoint(**given, options=(), energy_pj=energy, latency_cycles=latency, area_mm2=1.0, **changes)


def test_the_comparison_of_runs_tells_ranges_only_where_there_are_some() -> None:
    """The comparison has columns for ranges and a note on ranges only if a run has ranges."""
    summary = {
        "cost_ranges": {
            "energy_pj": [0, 0],
            "area_mm2": None,
            "parts": [{"memory": "m", "law": "x", "energy_pj": 40e6, "area_mm2": 0.0, "low": 0.5, "high": 2.0}],
        }
    }
    ranged = candidate("a", 40e6, 1, cost_parts=cost_parts(summary))
    (group,) = compare([ranged, candidate("b", 40e6, 1)])
    assert group.front_probabilities == pytest.approx((0.5, 0.5), abs=0.01)
    assert "a 20 µJ to 80 µJ, on the front in" in " ".join(group.notes)
    table = pareto_table([group])
    assert table["energy_low_pj"].tolist() == [20e6, 40e6]
    (alone,) = compare([ranged])
    told = " ".join(alone.notes)
    assert "a 20 µJ to 80 µJ (100.0% of its energy varies)" in told
    assert "samples" not in told
    (plain,) = compare([candidate("a", 1, 1), candidate("b", 2, 1)])
    assert plain.front_probabilities == ()
    assert plain.notes == ()
    assert "front_probability" not in pareto_table([plain])


def test_a_front_by_time_is_sampled_by_time() -> None:
    """Samples are compared by time if clocks differ: half the cycles at a quarter of the clock take longer."""
    part = CostPart("m", "x", 40e6, 0.0, 0.5, 2.0)
    slow = candidate("slow", 40e6, 50, cost_parts=(part,), clock_frequency_mhz=100.0)
    (group,) = compare([slow, candidate("fast", 40e6, 100, cost_parts=(part,), clock_frequency_mhz=400.0)])
    assert group.objectives[1] == "latency_s"
    assert group.front_probabilities == (0.0, 1.0)


# Few distinct values, so that ties and equal rows are common.
