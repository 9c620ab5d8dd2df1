"""A plug-in term for the energy of schedules: leakage of cores while they wait.

The term must appear wherever the energy of a schedule is added up, checked, stored, tabulated or drawn.
"""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tilewright.base.errors import InputError
from tilewright.base.registry import enter, withdraw
from tilewright.base.units import energy_text
from tilewright.multicore.scheduling.check.rules import faults_by_rule
from tilewright.multicore.scheduling.energy_ledger import total_pj
from tilewright.multicore.scheduling.energy_terms import SCHEDULE_TERMS, energy_terms_of
from tilewright.multicore.scheduling.problem import SchedulingProblem
from tilewright.multicore.scheduling.result import ScheduleArtifact, read_schedule
from tilewright.multicore.scheduling.schedule import Schedule
from tilewright.multicore.scheduling.simulate import simulate
from tilewright.results.multi.bars import ScheduleView
from tilewright.results.multi.checks import check_multi_run
from tilewright.results.multi.energy_figure import energy_bars, energy_breakdown_figure
from tilewright.results.multi.summary import baseline_rows
from tilewright.results.multi.summary_text import summary_text
from tilewright.results.run_tables import runs_table

from tests.unit.multi_core.runs import DUO, chain, run, write_accelerator, write_mapping

LINES = ("--cn-define-mode", "1", "--hint-loops", '[["OY", "all"]]')
TERM, PJ_A_CYCLE = "idle_leakage", 50.0
ENTRIES = {SCHEDULE_TERMS.owner: {TERM: f"{__name__}:IdleLeakage"}}


class _IdleLeakage:
    """Energy term: a core leaks in every cycle in which it runs nothing."""

    def concerns(self, problem: SchedulingProblem) -> bool:
        """Whether the term applies: always."""
        return True

    def energy_pj(self, problem: SchedulingProblem, schedule: Schedule) -> float:
        """Leakage of all cores but the off-chip core."""
        cores = problem.system.core_count - 1
        busy = int(np.sum(schedule.end_cycles - schedule.start_cycles))
        return PJ_A_CYCLE * (cores * schedule.latency_cycles - busy)


IdleLeakage = _IdleLeakage()


@pytest.fixture(scope="module", autouse=True)
def idle_leakage() -> Iterator[None]:
    """Registers the term while the tests of this file run."""
    enter(ENTRIES)
    yield
    withdraw(ENTRIES)


@pytest.fixture(scope="module")
def folder(idle_leakage: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run of three convolutions on two cores."""
    found = tmp_path_factory.mktemp("run")
    run(found, write_accelerator(found / "hw", DUO), chain(found), write_mapping(found), LINES)
    return found


@pytest.fixture(scope="module")
def summary(folder: Path) -> dict[str, Any]:
    """The summary of the run."""
    return payload(folder / "summary.json")


@pytest.fixture(scope="module")
def artifact(folder: Path) -> ScheduleArtifact:
    """The schedule of the run, read back."""
    return read_schedule(folder / "schedule.npz")


@pytest.mark.parametrize("value", [-1.0, float("nan"), True, None])
def test_what_is_no_energy_is_refused(
    value: object, artifact: ScheduleArtifact, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A negative, missing or non-numeric term raises an error that names the plug-in."""
    monkeypatch.setattr(_IdleLeakage, "energy_pj", lambda self, problem, schedule: value)
    with pytest.raises(InputError, match=f"plug-in {TERM} is not a valid energy for a schedule"):
        energy_terms_of(artifact.problem, artifact.schedule)


def payload(path: Path) -> dict[str, Any]:
    """The payload of an artifact."""
    found: dict[str, Any] = json.loads(path.read_text())["payload"]
    return found


def test_the_total(folder: Path, summary: dict[str, Any], artifact: ScheduleArtifact) -> None:
    """The schedule, the stored file and the summary have the term, and the search for an allocation minimises it."""
    schedule, problem = artifact.schedule, artifact.problem
    leaked = IdleLeakage.energy_pj(problem, schedule)
    withdraw(ENTRIES)
    without = simulate(problem, schedule.allocation)
    enter(ENTRIES)
    assert leaked > 0
    assert schedule.energy_terms_pj == without.energy_terms_pj | {TERM: leaked}
    assert schedule.energy_pj == summary["energy_pj"] == pytest.approx(without.energy_pj + leaked)
    found = payload(folder / "allocation.json")
    assert found["energy_pj"] == summary["energy_pj"]
    assert all(single["energy_parts_pj"][TERM] > 0 for single in found["single_core"])


def test_the_checks(summary: dict[str, Any], artifact: ScheduleArtifact) -> None:
    """A wrong number in the schedule or the summary is found, and so is a schedule without the term."""
    schedule, problem = artifact.schedule, artifact.problem
    assert faults_by_rule(problem, schedule)["energy"] == []
    terms = schedule.energy_terms_pj
    wrong = replace(schedule, energy_terms_pj=terms | {TERM: total_pj(terms)})
    first, second = faults_by_rule(problem, wrong)["energy"]
    assert (first.split(" is ")[0], second.split(" is ")[0]) == (f"energy {TERM}", "energy total")
    missing = {name: energy for name, energy in terms.items() if name != TERM}
    assert faults_by_rule(problem, replace(schedule, energy_terms_pj=missing))["logs"]
    assert all(check.passed for check in check_multi_run(artifact, summary))
    changed = summary | {"energy": summary["energy"] | {"terms_pj": {TERM: 0.0}}}
    assert [check.name for check in check_multi_run(artifact, changed) if not check.passed] == ["totals"]


def test_the_tables(summary: dict[str, Any], artifact: ScheduleArtifact) -> None:
    """The table of all runs and the text of a run have the term."""
    leaked = artifact.schedule.energy_terms_pj[TERM]
    assert summary["energy"]["terms_pj"] == {TERM: leaked}
    assert runs_table({}, {"run": summary})[f"{TERM}_energy_pj"][0] == leaked
    assert "idle leakage" in summary_text(summary)
    share = f"{leaked / summary['energy_pj']:.1%}"
    line = f"the energy includes the terms of plug-ins: idle leakage {energy_text(leaked)} ({share})"
    assert line in summary_text(summary, in_full=False).splitlines()


def test_the_figure(folder: Path, summary: dict[str, Any], artifact: ScheduleArtifact) -> None:
    """The figure draws the term for this run, for the run on a single core, and for another run."""
    view, singles = ScheduleView(artifact), payload(folder / "allocation.json")["single_core"]
    bars = energy_bars(view, summary | {"baselines": baseline_rows(summary, summary, singles)})
    assert len(bars) == 3
    assert all(bar.parts_pj["idle leakage"] > 0 for bar in bars)
    assert bars[0].total_pj == pytest.approx(summary["energy_pj"])
    texts = {text.get_text() for text in energy_breakdown_figure(view, summary).texts}
    assert {"idle leakage", "fetched from off-chip, links"} <= texts
    assert any(text.endswith("; and further terms") for text in texts)
