"""Checks of the summary of a run on several cores against its schedule."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from types import SimpleNamespace
from typing import Any

import pytest
from tilewright.multicore.scheduling.bounds.lower_bounds import LowerBounds, lower_bounds
from tilewright.multicore.scheduling.options import CAUSAL, ScheduleSettings
from tilewright.multicore.scheduling.result import ScheduleArtifact
from tilewright.peers.stream import STREAM_2023
from tilewright.results.multi.checks import check_multi_run
from tilewright.results.multi.summary import baseline_rows, multi_summary

from tests.unit.results.multi.schedule_cases import every_category

Summary = dict[str, Any]


@cache
def example() -> ScheduleArtifact:
    """A schedule in which data move for every cause."""
    return every_category().artifact


@cache
def bounds_of_example() -> LowerBounds:
    """Lower bounds of the example. Computing them takes most of the time of a summary."""
    return lower_bounds(example().problem)


def checked(artifact: ScheduleArtifact, change: Callable[[Summary], None] = lambda summary: None) -> dict[str, bool]:
    """Check -> whether it holds for the changed summary of the example, for any schedule model."""
    rows = len(artifact.problem.costs.runtime_cycles)
    energy = {"on_core_energy_pj": 1.0, "operational_energy_pj": 1.0, "memory_energy_pj": (), "term_energy_pj": ()}
    costs: Any = {"core": [SimpleNamespace(ideal_cycles=1, **energy) for _ in range(rows)]}
    bounds = bounds_of_example() if artifact.schedule_model == CAUSAL else None
    summary = multi_summary(artifact, bounds, costs, "latency", {"settings": ScheduleSettings().stated()})
    summary["baselines"] = baseline_rows(summary, None, [])
    change(summary)
    return {check.name: check.passed for check in check_multi_run(artifact, summary)}


def carries_more(summary: Summary) -> None:
    """Change a link's utilisation to 1.8."""
    summary["links"][0]["utilisation"] = 1.8


@pytest.mark.parametrize(("model", "allowed"), [(CAUSAL, False), (STREAM_2023, True)])
def test_links_carry_no_more_than_they_can_where_the_model_says_so(model: str, allowed: bool) -> None:
    """More traffic than a link can carry fails the check, except in the model whose streams hold links without using
    them fully.
    """
    artifact = replace(example(), schedule_model=model)
    assert checked(artifact)["uses"]
    assert checked(artifact, carries_more)["uses"] is allowed


@pytest.mark.parametrize(
    ("check", "change"),
    [
        ("totals", lambda summary: summary.update(latency_cycles=summary["latency_cycles"] + 1)),
        ("totals", lambda summary: summary["energy"].update(on_core_pj=summary["energy"]["on_core_pj"] + 1)),
        ("totals", lambda summary: summary.update(edp_pj_cycles=-1.0)),
        ("bounds", lambda summary: summary["lower_bound"].update(latency_cycles=10**9)),
        ("uses", lambda summary: summary["memories"][0].update(peak_bits=summary["memories"][0]["peak_bits"] + 1)),
        ("uses", lambda summary: summary["links"][0].update(bits=0)),
        ("uses", lambda summary: summary["links"].pop()),
        ("uses", lambda summary: summary["cores"][0].update(utilisation=1.01)),
    ],
)
def test_what_is_not_of_the_schedule_is_found(check: str, change: Callable[[Summary], None]) -> None:
    """Each changed number is found by its own check, and by no other."""
    artifact = example()
    assert all(checked(artifact).values())
    found = checked(artifact, change)
    assert [name for name, holds in found.items() if not holds] == [check]
