"""Budgets of a search of plans: the given limit ends the search, and only limits of seconds depend on the machine."""

import multiprocessing
import random
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tilewright.multicore.scheduling.options import ScheduleSettings
from tilewright.multicore.scheduling.simulate import Scheduler
from tilewright.pipeline.configuration.fusion_options import FusionOptions
from tilewright.plans.answer import Fusion
from tilewright.plans.budget import CPU_BUDGET, FINISHES_WITH_FILES, SCHEDULES, CpuMeter, SearchBudget, TimeLimit
from tilewright.plans.call import fused as fused_plan
from tilewright.plans.evaluate import NO_LIMITS, PlanEvaluator, Task, TaskLimits
from tilewright.results.multi.search_end import search_end
from tilewright.search.options import CnSearchOptions

from tests.unit.cli.multi_core import write_network
from tests.unit.plans.cases import fused, options, random_case, space_of, system_problem


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A network of three convolutions, one after the other."""
    return write_network(tmp_path_factory.mktemp("network"))


class JumpingClock:
    """A clock on a busy machine: it advances by up to an hour between two calls."""

    def __init__(self, seed: int) -> None:
        self.draw, self.now_s = random.Random(seed), 0.0

    def __call__(self) -> float:
        """Seconds of the clock."""
        self.now_s += 3600 * self.draw.random()
        return self.now_s


def told(found: Fusion) -> tuple[Any, ...]:
    """The answer of a search, its plans in order, and its mapping file."""
    return found.document, found.found.tried, found.mapping_text


@pytest.mark.slow
def test_schedules_give_the_same_result_at_any_load(network: Path) -> None:
    """A limit of schedules gives equal results at any speed of the clock, in one process and in several."""
    problem = system_problem(network)
    alone = fused_plan(problem, options(nb_schedules=150, nb_plans=4000), clock=JumpingClock(1))
    shared = fused_plan(problem, options(nb_schedules=150, nb_plans=4000, jobs=2), clock=JumpingClock(2))
    assert told(alone) == told(shared)
    assert alone.found.stopped_by == SCHEDULES


@pytest.mark.parametrize("schedules", [1, 7, 40, 90])
def test_only_the_last_plan_exceeds_the_schedules(schedules: int, tmp_path: Path) -> None:
    """Fewer schedules than the limit are made before the last plan; each schedule is counted once."""
    network, hardware = random_case(schedules, tmp_path)
    found = fused(network, hardware, nb_schedules=schedules, nb_plans=4000).found
    assert found.stopped_by == SCHEDULES
    assert found.evaluations >= schedules
    of_plans = sum(one.evaluations for one in found.tried)
    assert found.evaluations > of_plans if found.segments else found.evaluations == of_plans
    assert found.evaluations - max(one.evaluations for one in found.tried) < schedules


@pytest.mark.parametrize("limits", [NO_LIMITS, TaskLimits(schedules=40), TaskLimits(schedules=3)])
def test_every_schedule_is_counted(limits: TaskLimits, network: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Evaluations equal the counted calls of the scheduler, those of the allocation engine included; limits are
    kept.
    """
    calls, run = [], Scheduler.__call__

    def counted(self: Scheduler, *given: Any, record: bool = False, **others: Any) -> Any:
        calls.append(record)
        return run(self, *given, record=record, **others) if record else run(self, *given, **others)

    monkeypatch.setattr(Scheduler, "__call__", counted)
    problem = system_problem(network)
    evaluator = PlanEvaluator(problem, options().part(CnSearchOptions), ScheduleSettings(), "latency")
    task = Task(space_of(network).layer_by_layer(None), thorough=True, by_engine=True, tries=5, limits=limits)
    outcome = evaluator.evaluate(task)
    assert outcome.figures is not None
    assert outcome.evaluations == calls.count(False)
    if limits.schedules is not None:
        assert outcome.evaluations <= limits.schedules + 1  # the engine's best is scheduled again


def test_cpu_seconds_end_the_search(network: Path) -> None:
    """A limit of CPU seconds ends the search after the first plan with a schedule; waiting takes no CPU seconds."""
    found = fused(network, fusion_cpu_budget_s=1e-6, nb_plans=4000)
    assert (found.found.stopped_by, len(found.found.tried)) == (CPU_BUDGET, 1)
    problem = system_problem(network)
    patient = fused_plan(problem, options(nb_plans=12, fusion_cpu_budget_s=1e6), clock=JumpingClock(3))
    assert patient.found.stopped_by == "count"
    assert told(patient)[1:] == told(fused_plan(problem, options(nb_plans=12)))[1:]


def test_cpu_seconds_of_children_count() -> None:
    """CPU seconds of a worker count while it runs, and once after it has ended."""
    meter, own_s = CpuMeter(), time.process_time()
    worker = multiprocessing.get_context("spawn").Process(target=busy_until, args=(2.0,))
    worker.start()
    while meter.spent_s - (time.process_time() - own_s) < 1.0:
        assert worker.is_alive()
        time.sleep(0.05)
    worker.join()
    assert 1.9 <= meter.spent_s - (time.process_time() - own_s) < 3.0


def test_cpu_seconds_count_from_the_start_of_a_process() -> None:
    """CPU seconds before the call count if the process was started for the call."""
    now_s = time.process_time()
    assert CpuMeter(0.0).spent_s >= now_s
    assert CpuMeter().spent_s < now_s


def busy_until(cpu_s: float) -> None:
    """Compute until this process has used some CPU seconds."""
    while time.process_time() < cpu_s:
        pass


def test_the_end_of_a_call_is_measured_again_for_a_larger_plan() -> None:
    """The end of the call is measured again if the best plan has twice as many nodes and measuring takes little time.

    Otherwise, the reserve is proportional to the nodes of the best plan.
    """
    now, takes = [0.0], [1.0]
    limit = TimeLimit("time_budget", 300.0, lambda: now[0])
    budget = SearchBudget(10, clock_limit=limit, finishes=FINISHES_WITH_FILES)

    def finish() -> None:
        now[0] += takes[0]

    budget.reserve(finish, 100)
    assert limit.reserve_s == 3 * 1.0 + 0.1
    takes[0] = 2.0
    budget.reserve(finish, 150)
    assert limit.reserve_s == 3 * 1.5 + 0.1
    budget.reserve(finish, 200)
    assert (limit.reserve_s, now[0]) == (3 * 2.0 + 0.1, 1.0 + 2.0)
    budget.reserve(finish, 100)
    assert (limit.reserve_s, now[0]) == (3 * 1.0 + 0.1, 1.0 + 2.0)
    budget.reserve(finish, 600)
    assert (limit.reserve_s, now[0]) == (3 * 2.0 + 0.1, 1.0 + 2.0 + 2.0)
    assert budget.part(0, 2).measured_nodes == 600


def test_a_large_plan_is_not_measured_if_this_takes_long() -> None:
    """The reserve is estimated if it takes long to measure the end of the call; it is at most 6 % of the limit.

    For a short limit, the reserve is at most 0.7 s and at most 13 % of the limit. A call that writes files reserves
    three times as much.
    """
    now = [0.0]
    limit = TimeLimit("time_budget", 180.0, lambda: now[0])
    budget = SearchBudget(10, clock_limit=limit)

    def finish() -> None:
        now[0] += 1.0

    budget.reserve(finish, 100)
    budget.reserve(finish, 400)
    assert (limit.reserve_s, now[0]) == (1.0 * 4 + 0.1, 1.0)
    budget.reserve(finish, 10_000)
    assert (limit.reserve_s, now[0]) == (0.06 * 180.0, 1.0)
    now[0] = 175.0
    budget.reserve(finish, 10_000)
    assert limit.reserve_s == 5.0
    budget.finishes = FINISHES_WITH_FILES
    for short_s, reserve_s in ((180.0, 3 * 0.06 * 180), (9.0, 3 * 0.7), (4.0, 3 * 0.13 * 4)):
        now[0] = 0.0
        limit.budget_s = short_s
        budget.reserve(finish, 10_000)
        assert limit.reserve_s == pytest.approx(reserve_s)


def test_a_share_of_a_budget_is_one_of_each_limit() -> None:
    """A share of a budget has a part of each limit, seconds or schedules. The time reserved for the end is kept."""
    now = [0.0]
    limit = TimeLimit("time_budget", 100.0, lambda: now[0])
    budget = SearchBudget(10, most_schedules=50, clock_limit=limit)

    def finish() -> None:
        now[0] += 4.0

    budget.reserve(finish, 100)
    assert limit.reserve_s == 4.0 + 0.1
    budget.reserve(finish, 100)
    assert now[0] == 4.0
    assert limit.left_s == pytest.approx(100 - 3 - 4.1 - 4)
    is_past = budget.after(0.5)
    now[0] += 44.0
    assert not is_past()
    now[0] += 0.5
    assert is_past()
    now[0] -= 30.0
    is_past = budget.after(0.1)
    budget.schedules = 5
    assert is_past()
    assert budget.task_limits(4, False) == TaskLimits(limit.left_s, None, 45)
    budget.schedules = 50
    assert budget.reason_to_end() == SCHEDULES


def test_a_limit_replaces_the_default_time() -> None:
    """The default time limit does not apply if another limit is given; a time limit that is given does."""
    assert FusionOptions().fusion_time_budget_s == 120
    assert FusionOptions(nb_schedules=9).fusion_time_budget_s is None
    assert FusionOptions(fusion_cpu_budget_s=9).fusion_time_budget_s is None
    assert FusionOptions(nb_schedules=9, fusion_time_budget_s=120).fusion_time_budget_s == 120
    assert FusionOptions(nb_schedules=None).fusion_time_budget_s == 120
    with pytest.raises(TypeError, match="nb_schedule"):
        FusionOptions(nb_schedule=9)


def test_the_end_is_told_by_its_number() -> None:
    """Each reason for the end is stated with the limit that caused it."""
    search = {"plans": 3000, "segments": 1001, "schedules": 20_012, "stopped_by": "count", "nb_plans": 4000}
    assert search_end(search) == (
        "ended after 4,001 plans of the network or a part of it, because of the limit of 4,000 (nb_plans);"
        " initial plans and the last search for cores are evaluated even beyond this limit"
    )
    search |= {"stopped_by": "schedules", "nb_schedules": 20_000}
    assert search_end(search) == "ended after 20,012 schedules, because of the limit of 20,000 (nb_schedules)"
    search |= {"stopped_by": "cpu_budget", "fusion_cpu_budget_s": 60.0}
    assert search_end(search) == "ended by the limit of 60 CPU seconds for the call (fusion_cpu_budget_s)"
    search |= {"stopped_by": "time_budget", "fusion_time_budget_s": 0.5}
    assert search_end(search) == "ended by the limit of 0.5 seconds for the call (fusion_time_budget_s)"
    assert search_end(search | {"searches": 3}) == (
        "ended by the limit of 0.5 seconds for this search (fusion_time_budget_s); this limit is the share of this"
        " search: 3 searches divide each limit of the call equally"
    )
    assert search_end(search | {"stopped_by": "interrupted"}) == "interrupted by Ctrl-C"


def test_work_that_measured_the_end_is_used_again(network: Path) -> None:
    """A search that measured the end of the call uses the measured problem and schedule again.

    Its answer equals that of a search without measurement.
    """
    problem = system_problem(network)
    measured = fused_plan(problem, options(nb_plans=12, fusion_cpu_budget_s=3600.0))
    plain = fused_plan(problem, options(nb_plans=12))
    for one in (measured, plain):
        one.document["search"].pop("fusion_cpu_budget_s")
    assert measured.document == plain.document
    other = replace(plain, found=replace(plain.found, best=replace(plain.best, cores=())))
    other.take_over(measured)
    assert "multi_core_problem" not in vars(other)
