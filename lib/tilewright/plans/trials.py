"""Evaluation of plans in a search: result of each plan, and the best plans so far."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from tilewright.base.processes import in_processes
from tilewright.plans.budget import COUNT, IsPast, SearchBudget
from tilewright.plans.cores import PlanFigures
from tilewright.plans.evaluate import PlanOutcome, Task
from tilewright.plans.plan import Plan
from tilewright.plans.space import PlanSpace
from tilewright.plans.work import PlanWork, SegmentOutcome, SegmentTask, make_worker

BATCH = 12
"""Number of plans in a batch. All plans of a batch are chosen before any of them is evaluated."""
ELITE = 4
"""Number of best plans that are kept as starting points of random steps."""


@dataclass(frozen=True)
class Tried:
    """Plan that a search evaluated, with the numbers that describe it and its result."""

    number: int
    """Number of the plan, in the order of evaluation."""
    origin: str
    figures: PlanFigures | None
    stacks: int
    evaluations: int
    """Number of schedules that were made for the plan."""
    is_best: bool
    """True if the plan was the best so far when it was evaluated."""
    reason: str = ""


@dataclass(frozen=True, eq=False)
class FusionResult:
    """Result of the search for plans."""

    best: PlanOutcome
    layer_by_layer: PlanOutcome | None
    """Best plan in which each stack has one layer; None if the run fixes the stacks."""
    tried: tuple[Tried, ...]
    segments: int
    """Number of distinct segments that were scheduled as separate networks."""
    evaluations: int
    """Number of schedules made in the complete search."""
    stopped_by: str
    start: PlanOutcome | None = None
    """Result of the start plan (the plan of an earlier search) with exactly the cores of that search; None if the
    search has no start plan.
    """


Progress = Callable[[int, int, PlanOutcome | None, float], None]
"""Callback after each evaluated plan. It has four arguments: the number of plans evaluated so far, the largest number
of plans that the search may evaluate, the best outcome so far (None if there is none), and the elapsed seconds.
"""


def never() -> bool:
    """Condition that is always False, for steps without a limit."""
    return False


def is_better(outcome: PlanOutcome, other: PlanOutcome | None, objective: str) -> bool:
    """True if a plan has a schedule, and `other` has none or is worse by the objective."""
    if outcome.figures is None:
        return False
    if other is None or other.figures is None:
        return True
    return outcome.figures.rank(objective) < other.figures.rank(objective)


def is_layer_by_layer(plan: Plan) -> bool:
    """True if each layer of a plan is a separate stack."""
    return all(len(stack) == 1 for stack in plan.stacks)


@dataclass
class Trials:
    """Plans that a search has evaluated, within its budget."""

    space: PlanSpace
    objective: str
    budget: SearchBudget
    progress: Progress = lambda done, planned, best, elapsed: None
    elapsed: Callable[[], float] = lambda: 0.0
    """Function that returns the seconds since the call began."""
    finish: Callable[[FusionResult], object] = lambda found: None
    """Function that does the work at the end of a call: it computes the bounds and checks a result.

    If the search has time limits, the function is also called earlier, to measure how long this work takes. These calls
    come after the first plan with a schedule, and after a later best plan with many more nodes.
    """
    best: PlanOutcome | None = None
    lbl: PlanOutcome | None = None
    """Best plan in which each stack has one layer; None if the run fixes the stacks."""
    start: PlanOutcome | None = None
    """Outcome of the start plan (the plan of an earlier result) with exactly the cores of that result; None if the
    search has no start plan.
    """
    tried: list[Tried] = field(default_factory=list)
    elite: dict[Plan, PlanOutcome] = field(default_factory=dict)
    """Best plans so far, at most ELITE, the best first. The key is the plan without its detours through the off-chip
    memory; the value is the result of the plan. Of several plans that differ only in detours, only the best is kept.
    """
    segments: int = 0
    evaluations: int = 0
    stopped_by: str = ""
    reasons: dict[str, None] = field(default_factory=dict)
    """Reasons why plans have no schedule, in the order in which they occurred."""
    work: Callable[[Sequence[Any]], Iterator[Any]] | None = None
    """Function that runs tasks; None outside of the context `working`."""

    @contextlib.contextmanager
    def working(self, work: PlanWork) -> Iterator[None]:
        """Context in which plans can be evaluated, in this process or in worker processes."""
        make = partial(make_worker, work)
        with in_processes(make, BATCH, self.budget.processes, self._seconds_left) as self.work:
            yield

    def another(self, budget: SearchBudget, before: int) -> "Trials":
        """New `Trials` without plans, with the budget `budget`. The new `Trials` use the same processes as this object.
        In reports of progress, `before` is added to the number of their plans.
        """

        def show(done: int, planned: int, best: PlanOutcome | None, elapsed_s: float) -> None:
            self.progress(before + done, max(before + done, self.budget.most_plans), best, elapsed_s)

        return Trials(
            self.space, self.objective, budget, show, self.elapsed, self.finish, reasons=self.reasons, work=self.work
        )

    def _seconds_left(self) -> float | None:
        return None if self.best is None else self.budget.seconds_left

    def is_over(self) -> bool:
        """True if the search ends now. No limit ends the search before one plan has a schedule."""
        if self.best is None:
            return False
        if self.budget.time_limits:
            best = self.best
            self.budget.reserve(lambda: self.finish(self.result(best)), best.nodes)
        self.stopped_by = self.stopped_by or self.budget.reason_to_end()
        return bool(self.stopped_by)

    def after(self, share: float) -> IsPast:
        """Function that tells a step of the search when to end.

        The function returns True if the search is over, or if the step has used `share` of the seconds or schedules
        that were left when `after` was called. If no plan had a schedule at that time, it returns True only if the
        search is over.
        """
        if self.best is None:
            return self.is_over
        self.is_over()  # reserves the time for the end of the call
        is_used = self.budget.after(share)
        return lambda: self.is_over() or is_used()

    def look_at(self, tasks: Sequence[Task], origin: str | Sequence[str], is_past: IsPast = never) -> list[PlanOutcome]:
        """Evaluate tasks, and add their outcomes to the tried plans. Return the outcomes. The list is shorter than
        `tasks` if the search ends early or if `is_past` returns True.
        """
        outcomes: list[PlanOutcome] = []
        if self.is_over():
            return outcomes
        origins: Iterator[str] = iter([origin] * len(tasks) if isinstance(origin, str) else origin)
        limits = self.budget.task_limits(len(tasks), self.best is None)
        for outcome in self._done([replace(task, limits=limits) for task in tasks]):
            outcomes.append(outcome)
            self.keep(outcome, next(origins))
            if self.is_over() or is_past():
                break
        return outcomes

    def segment_costs(self, tasks: Sequence[SegmentTask], is_past: IsPast) -> Iterator[SegmentOutcome]:
        """Costs of segments, in the order of the tasks. The iterator ends early if `is_past` returns True."""
        for found in self._done(tasks):
            self.segments += 1
            self.budget.plans += 1
            self._count(found.evaluations)
            yield found
            self._say()
            if is_past():
                return

    def _done(self, tasks: Sequence[Any]) -> Iterator[Any]:
        assert self.work is not None, "plans are evaluated in the context `working`"
        yield from self.work(tasks)

    def _count(self, schedules: int) -> None:
        self.evaluations += schedules
        self.budget.schedules += schedules

    def keep(self, outcome: PlanOutcome, origin: str) -> None:
        """Add the outcome of a plan to the tried plans, and count it. If the plan is among the best plans so far, its
        outcome is also kept in `elite`.
        """
        self._count(outcome.evaluations)
        self.budget.plans += 1
        is_best = self.offer(outcome)
        if outcome.reason:
            self.reasons[outcome.reason] = None
        row = (len(outcome.plan.stacks), outcome.evaluations, is_best, outcome.reason)
        self.tried.append(Tried(len(self.tried), origin, outcome.figures, *row))
        self._say()

    def offer(self, outcome: PlanOutcome) -> bool:
        """Keep the outcome of a plan if it is among the best so far. The outcome is not added to the tried plans.
        Returns True if it is the best of all.
        """
        is_best = self.is_better(outcome, self.best)
        if is_best:
            self.best = outcome
        is_alone = self.space.fixed.stacks is None and is_layer_by_layer(outcome.plan)
        if is_alone and self.is_better(outcome, self.lbl):
            self.lbl = outcome
        plan = outcome.plan.without_detours
        if outcome.figures is not None and self.is_better(outcome, self.elite.get(plan)):
            self.elite[plan] = outcome
            kept = sorted(self.elite.values(), key=self.rank)[:ELITE]
            self.elite = {one.plan.without_detours: one for one in kept}
        return is_best

    def _say(self) -> None:
        done = self.budget.plans
        self.progress(done, max(done, self.budget.most_plans), self.best, self.elapsed())

    def rank(self, outcome: PlanOutcome) -> tuple[float, ...]:
        """Rank of a plan by the objective; a smaller rank is better. The plan must have a schedule."""
        assert outcome.figures is not None
        return outcome.figures.rank(self.objective)

    def is_better(self, outcome: PlanOutcome, other: PlanOutcome | None) -> bool:
        """True if a plan has a schedule, and `other` has none or is worse."""
        return is_better(outcome, other, self.objective)

    def result(self, best: PlanOutcome) -> FusionResult:
        """Result of the search if it ended now with the plan `best`."""
        tried, stopped_by = tuple(self.tried), self.stopped_by or COUNT
        return FusionResult(best, self.lbl, tried, self.segments, self.evaluations, stopped_by, self.start)
