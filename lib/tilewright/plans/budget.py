"""Budget of a search for plans: limits of plans, schedules, CPU seconds and elapsed seconds, and the used amount of
each.

With limits of plans and schedules, the result is the same on any machine. With limits of CPU seconds, the result
depends on the machine, but not on other work of the machine. With limits of elapsed seconds, the result depends on the
machine and on its other work.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from tilewright.base.processes import cpu_seconds_used
from tilewright.multicore.allocation.evaluate import TIME_BUDGET
from tilewright.pipeline.configuration.fusion_options import FusionOptions

COUNT, SCHEDULES, CPU_BUDGET = "count", "schedules", "cpu_budget"
"""Reasons why a search ended, in addition to TIME_BUDGET and INTERRUPTED. COUNT: the planned number of plans was
evaluated. SCHEDULES: the planned number of schedules was made. CPU_BUDGET: the CPU seconds were used up.
"""
FINISHES, FINISHES_WITH_FILES, FILES_S, FILES_WITH_PAGE_S = 1.0, 3.0, 0.1, 0.5
"""Numbers that determine the time reserved for the end of a call. The time is FINISHES x (time to compute the bounds
and to check a plan) + FILES_S. FINISHES_WITH_FILES replaces FINISHES if the call also runs the commands that make the
files of the schedule. For a plan with 1,928 nodes, these commands took 2.4 times as long as bounds and check. FILES_S
is the time for other files, in seconds. FILES_WITH_PAGE_S replaces FILES_S if the call also makes the page with a
figure.
"""
LARGER, MEASURED_SHARE = 1.5, 0.02
"""Limits for a new measurement of the reserved time. The measurement is made under two conditions: the best plan has
more than LARGER times as many nodes as the plan of the last measurement, and the expected duration of the measurement
is at most MEASURED_SHARE of the time limit.
"""
UNMEASURED_SHARE, UNMEASURED_S, SHORT_SHARE = 0.06, 0.7, 0.13
"""Upper limit of the reserved time. It is used if the best plan has more nodes than the plan of the last measurement,
but the time is not measured again. The expected time is then too long in most cases: for a plan of mobilenetv2 with
3,841 nodes, 11 s were expected, and 4 s were needed.

The upper limit is the larger of two times: the last measured time, and FINISHES x a share of the time limit. The share
is UNMEASURED_SHARE. For a short time limit, the share is larger: SHORT_SHARE, but at most UNMEASURED_S seconds.
"""
CUTS_TIME_SHARE = 0.03
"""Share of a time limit that is reserved for measuring the benefits of cuts between stacks."""
IsPast = Callable[[], bool]
"""Function that returns True when a step of a search has used its share of the budget."""


@dataclass(frozen=True)
class TaskLimits:
    """Limits of the evaluation of one plan. No further allocation is tried after a limit is reached. None: no limit."""

    seconds: float | None = None
    """Limit of the elapsed time in seconds, as measured by the `clock` of the search."""
    cpu_seconds: float | None = None
    """Limit of the CPU seconds of the process that evaluates the plan."""
    schedules: int | None = None
    """Largest number of schedules that may be made for the plan."""


NO_LIMITS: TaskLimits = TaskLimits()
"""`TaskLimits` of a task that has no limits."""


class CpuMeter:
    """Meter of the CPU seconds that this process and its worker processes use. The meter begins at `start_s`, a number
    of CPU seconds since the start of this process. None stands for now.
    """

    def __init__(self, start_s: float | None = None) -> None:
        self._start_s = cpu_seconds_used() if start_s is None else start_s

    @property
    def spent_s(self) -> float:
        """CPU seconds since the start."""
        return cpu_seconds_used() - self._start_s


@dataclass
class TimeLimit:
    """Limit of the seconds that a call uses: elapsed time or CPU time."""

    reason: str
    """Reason that is reported if this limit ends the search."""
    budget_s: float
    elapsed: Callable[[], float]
    """Function that returns the seconds since the call began."""
    reserve_s: float | None = None
    """Seconds reserved for the end of the call, which computes the bounds, checks the result and writes files. The time
    for measuring the benefit of cuts is reserved separately. None until `SearchBudget.reserve` sets this value.
    """
    measured_s: float = 0.0
    """Seconds that bounds and check took in the last measurement."""
    measured_s_a_node: float = 0.0
    """Increase of the measured seconds for each additional node, from the last two measurements."""
    until_s: float = math.inf
    """Value of `elapsed`, in seconds, at which a part of the search ends."""

    @property
    def left_s(self) -> float:
        """Seconds that are left for plans."""
        reserved = CUTS_TIME_SHARE * self.budget_s + (self.reserve_s or 0.0)
        return max(0.0, min(self.budget_s - reserved, self.until_s) - self.elapsed())

    @property
    def is_over(self) -> bool:
        """True if only the seconds reserved for the end of the call are left. The call then stops measuring the
        benefits of cuts between stacks.
        """
        return self.elapsed() >= self.budget_s - (self.reserve_s or 0.0)


@dataclass
class SearchBudget:
    """Budget of one search: the limits, and the counts of the plans and of the schedules used so far."""

    most_plans: int
    most_schedules: int | None = None
    clock_limit: TimeLimit | None = None
    cpu_limit: TimeLimit | None = None
    processes: int = 1
    meter: CpuMeter = field(default_factory=CpuMeter)
    plans: int = 0
    """Number of plans that were evaluated, including plans for parts of the network."""
    schedules: int = 0
    finishes: float = FINISHES
    """Time reserved for the end of the call, as a multiple of the time that the bounds and the check of the best plan
    take.
    """
    files_s: float = FILES_S
    """Number of seconds reserved for the files that do not depend on the size of the plan. These seconds are added to
    the time that `finishes` gives.
    """
    measured_nodes: int = 0
    """Number of nodes of the plan in the last time measurement of `finish` (see `reserve`); 0 before the first one."""

    @property
    def time_limits(self) -> tuple[TimeLimit, ...]:
        """Limits of seconds: first the limit of elapsed time, then the limit of CPU time. A limit that is not set is
        left out.
        """
        return tuple(limit for limit in (self.clock_limit, self.cpu_limit) if limit is not None)

    @property
    def plans_left(self) -> int:
        """Number of plans that can still be evaluated."""
        return self.most_plans - self.plans

    @property
    def schedules_left(self) -> int | None:
        """Number of schedules that can still be made; None if there is no limit."""
        return None if self.most_schedules is None else max(0, self.most_schedules - self.schedules)

    @property
    def seconds_left(self) -> float | None:
        """Number of seconds that are left for plans: the smaller of the numbers that the limits of elapsed time and CPU
        time leave. None if neither limit is set.
        """
        return min((limit.left_s for limit in self.time_limits), default=None)

    def reason_to_end(self) -> str:
        """Reason why a search must end now; '' if it may continue. The limit of the number of plans is not checked,
        because each step of a search considers `plans_left` when it chooses its plans.
        """
        if self.schedules_left == 0:
            return SCHEDULES
        return next((limit.reason for limit in self.time_limits if limit.left_s <= 0), "")

    def reserve(self, finish: Callable[[], object], nodes: int) -> None:
        """Reserve seconds for the end of the call. `finish` does the work of the end of the call for the best plan,
        which has `nodes` nodes.

        The reserve is computed from the seconds that `finish` takes. `finish` runs at the first call of this method. At
        later calls, `finish` runs only under two conditions: the plan has many more nodes than before, and `finish` is
        expected to take a small share of each time limit. Otherwise, the reserve is estimated from the number of nodes
        of the best plan.
        """
        limits = self.time_limits
        if not limits:
            return
        is_larger = nodes > LARGER * self.measured_nodes
        is_short = all(self._expected_s(limit, nodes) <= MEASURED_SHARE * limit.budget_s for limit in limits)
        is_measured = limits[0].reserve_s is None or (is_larger and is_short)
        if is_measured:
            self._measure(finish, nodes)
        for limit in limits:
            reserve = self.finishes * self._expected_s(limit, nodes) + self.files_s
            if not is_measured and nodes > self.measured_nodes:
                share_s = UNMEASURED_SHARE * limit.budget_s
                short_s = min(UNMEASURED_S, SHORT_SHARE * limit.budget_s)
                reserve = min(reserve, max(self.finishes * max(share_s, short_s), limit.measured_s))
            limit.reserve_s = min(reserve, max(0.0, limit.budget_s - limit.elapsed()))

    def _measure(self, finish: Callable[[], object], nodes: int) -> None:
        """Run `finish` for a plan with `nodes` nodes, and keep the seconds that it takes."""
        before = [limit.elapsed() for limit in self.time_limits]
        finish()
        for limit, start in zip(self.time_limits, before, strict=True):
            took_s = limit.elapsed() - start
            limit.measured_s_a_node = max(0.0, took_s - limit.measured_s) / max(1, nodes - self.measured_nodes)
            limit.measured_s = took_s
        self.measured_nodes = nodes

    def _expected_s(self, limit: TimeLimit, nodes: int) -> float:
        """Seconds that the end of the call is expected to take for a plan with `nodes` nodes."""
        return max(0.0, limit.measured_s + limit.measured_s_a_node * (nodes - self.measured_nodes))

    def after(self, share: float) -> IsPast:
        """Function that returns True as soon as `share` of the remaining seconds, or of the remaining schedules, is
        used.
        """
        ends = [(limit, limit.elapsed() + share * limit.left_s) for limit in self.time_limits]
        left = self.schedules_left
        most = math.inf if left is None else self.schedules + share * left
        return lambda: self.schedules >= most or any(limit.elapsed() >= end for limit, end in ends)

    def part(self, number: int, count: int) -> "SearchBudget":
        """Budget of part `number` of a search that is divided into `count` equal parts. The part gets its share of the
        remaining plans and schedules. The remaining seconds are divided equally among this part and the later parts.
        """
        left = self.schedules_left
        schedules = None if left is None else _share(left, number, count)
        clock_limit, cpu_limit = (
            None if limit is None else replace(limit, until_s=limit.elapsed() + limit.left_s / (count - number))
            for limit in (self.clock_limit, self.cpu_limit)
        )
        plans = _share(max(0, self.plans_left), number, count)
        made = (clock_limit, cpu_limit, self.processes, self.meter)
        return SearchBudget(
            plans, schedules, *made, finishes=self.finishes, files_s=self.files_s, measured_nodes=self.measured_nodes
        )

    def task_limits(self, tasks: int, is_first: bool) -> TaskLimits:
        """Limits for each plan of a batch with `tasks` plans. While no plan has a schedule (`is_first`), no time is
        reserved for the end of the call.
        """
        seconds, cpu_seconds = (
            None if limit is None else max(0.0, limit.budget_s - limit.elapsed()) if is_first else limit.left_s
            for limit in (self.clock_limit, self.cpu_limit)
        )
        if cpu_seconds is not None:
            cpu_seconds /= max(1, min(self.processes, tasks))
        return TaskLimits(seconds, cpu_seconds, self.schedules_left)


def _share(total: int, number: int, count: int) -> int:
    """Size of part `number` (counted from 0) if a total is divided into `count` parts that differ by at most 1."""
    return total * (number + 1) // count - total * number // count


def search_budget(
    options: FusionOptions,
    clock: Callable[[], float],
    start_s: float,
    meter: CpuMeter | None = None,
    finishes: float = FINISHES,
    files_s: float = FILES_S,
) -> SearchBudget:
    """Budget that the options give a search. `start_s` is the time on `clock` at which the call began. `meter` counts
    the CPU seconds of the call; None for a meter that begins now. `finishes` is FINISHES or FINISHES_WITH_FILES, and
    `files_s` is FILES_S or FILES_WITH_PAGE_S.
    """
    used, seconds, cpu_seconds = meter or CpuMeter(), options.fusion_time_budget_s, options.fusion_cpu_budget_s
    return SearchBudget(
        options.nb_plans,
        options.nb_schedules,
        None if seconds is None else TimeLimit(TIME_BUDGET, seconds, lambda: clock() - start_s),
        None if cpu_seconds is None else TimeLimit(CPU_BUDGET, cpu_seconds, lambda: used.spent_s),
        options.job_count,
        used,
        finishes=finishes,
        files_s=files_s,
    )
