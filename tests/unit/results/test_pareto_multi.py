"""Runs on several cores are compared with each other, apart from runs on one core."""

from typing import Any

from tilewright.results.pareto import RunPoint, compare, multi_candidate, pareto_table

SETTINGS = {"schedule_model": "causal", "share_divisor": 4, "cn_runtime": "total1"}


def point(run: str, latency: int, energy: float, area: float | None = None, **changes: Any) -> RunPoint:
    """The point of a run, made from its summary."""
    settings = {**SETTINGS, "operands_to_prefetch": [], "scheduler_candidate_selection": "latency"}
    summary = {
        "workload": "net",
        "hardware": f"hw_{run}",
        "objective": "latency",
        "model": "corrected",
        "latency_cycles": latency,
        "energy_pj": energy,
        "settings": settings | changes,
        "area_mm2": area,
        "area_note": "" if area else "area not given",
    }
    return multi_candidate(run, summary, {"inputs": {"workload": "digest"}})


def single(run: str, latency: int) -> RunPoint:
    """A run of the network on one core."""
    options = (("lpf_limit", "6"),)
    return RunPoint(run, "net", "digest", "hw", "latency", "corrected", options, 5.0, latency, None)


def test_variants_of_hardware_and_of_cutting_are_one_group() -> None:
    """Runs that differ in choices are one group, and the run with more latency and energy is dominated."""
    (group,) = compare([point("a", 10, 3.0), point("b", 12, 4.0, operands_to_prefetch=["W"]), point("c", 20, 1.0)])
    assert [group.on_front(index) for index in range(3)] == [True, False, True]
    assert (group.difference, group.objectives) == ("", ("energy_pj", "latency_cycles"))


def test_areas_count_where_all_are_known() -> None:
    """Areas are compared if all are known; here they keep a smaller run on the front."""
    (group,) = compare([point("a", 10, 3.0, 2.0), point("b", 12, 4.0, 1.0)])
    assert [group.on_front(index) for index in range(2)] == [True, True]
    assert group.objectives[-1] == "area_mm2"


def test_other_models_of_time_are_other_groups() -> None:
    """Runs with different schedule models are different groups, because their cycles have another meaning."""
    found = compare([point("a", 10, 3.0), point("b", 9, 2.0, schedule_model="stream-2023")])
    assert [group.difference for group in found] == ["schedule_model causal", "schedule_model stream-2023"]


def test_runs_of_one_core_are_a_group_of_their_own() -> None:
    """Runs on one core are a group of their own, as their off-chip accesses are part of layers, not of a schedule."""
    found = compare([single("s", 1), point("a", 10, 3.0), single("t", 2)])
    assert [(group.difference, len(group.candidates)) for group in found] == [("one core", 2), ("several cores", 1)]
    table = pareto_table(found)
    assert list(table["pareto"]) == ["true", "false", "true"]
    assert list(table["group"]) == ["one core", "one core", "several cores"]
