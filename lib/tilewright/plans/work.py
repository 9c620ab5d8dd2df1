"""Work of one process in a search: it evaluates plans and segments, with a cache for the costs of computation nodes."""

import time
from collections import OrderedDict
from collections.abc import Hashable, Mapping
from dataclasses import dataclass

from tilewright.base.objectives import Objective
from tilewright.multicore.scheduling.options import ScheduleSettings
from tilewright.pipeline.stages.multi.core_mapping import KnownRows
from tilewright.pipeline.stages.multi.items import SystemProblem
from tilewright.plans.cores import PlanFigures
from tilewright.plans.evaluate import Clock, PlanEvaluator, PlanOutcome, Task
from tilewright.plans.plan import Plan, layers_of
from tilewright.plans.segments import Segment, likeness, part_of_network
from tilewright.plans.space import PlanSpace
from tilewright.search.options import CnSearchOptions

REMEMBERED_PARTS = 8
"""Largest number of cached evaluators. Each evaluator evaluates plans for the layers of one segment. It is used again
if the same layers are tried with other tiles.
"""


@dataclass(frozen=True, eq=False)
class PlanWork:
    """Input that every process of a search gets."""

    problem: SystemProblem
    search: CnSearchOptions
    settings: ScheduleSettings
    objective: Objective
    clock: Clock = time.monotonic
    """Clock for time limits, in seconds."""
    known: KnownRows | None = None
    """Costs of computation nodes from earlier searches with the same options on the same cores."""


@dataclass(frozen=True, eq=False)
class SegmentTask:
    """Task that schedules a segment as a separate network, once for each rule of candidate selection."""

    segment: Segment
    selections: tuple[str, ...]
    prefetch: tuple[str, ...]
    prefetch_results: bool
    node_ids: tuple[int, ...]
    """Ids of the layers of the segment."""


@dataclass(frozen=True)
class SegmentOutcome:
    """Costs of a segment."""

    figures: Mapping[str, PlanFigures]
    """Latency and energy of the segment, by rule of candidate selection. Rules without a schedule are left out."""
    evaluations: int


class PlanWorker:
    """Callable object that runs the tasks of one process."""

    def __init__(self, given: PlanWork) -> None:
        self._given = given
        self._known: KnownRows = {} if given.known is None else given.known
        self._nodes = layers_of(given.problem.workload)
        self._whole = self._evaluator(given.problem)
        self._parts: OrderedDict[tuple[int, int], PlanEvaluator] = OrderedDict()

    def __call__(self, task: Task | SegmentTask) -> PlanOutcome | SegmentOutcome:
        """Result of a task: a PlanOutcome for a Task, or a SegmentOutcome for a SegmentTask."""
        return self._whole.evaluate(task) if isinstance(task, Task) else self._segment(task)

    def _evaluator(self, problem: SystemProblem) -> PlanEvaluator:
        given = self._given
        return PlanEvaluator(problem, given.search, given.settings, given.objective, self._known, given.clock)

    def _segment(self, task: SegmentTask) -> SegmentOutcome:
        place = task.segment.first, task.segment.last
        evaluator = self._parts.get(place)
        if evaluator is None:
            evaluator = self._parts[place] = self._evaluator(part_of_network(self._given.problem, self._nodes, *place))
            if len(self._parts) > REMEMBERED_PARTS:
                self._parts.popitem(last=False)
        stacks = (task.node_ids,) if task.segment.is_fused else tuple((node_id,) for node_id in task.node_ids)
        figures: dict[str, PlanFigures] = {}
        evaluations = 0
        for selection in task.selections:
            plan = Plan(task.segment.tiles, stacks, selection, task.prefetch, task.prefetch_results)
            spread = tuple(range(len(plan.tiles))) if task.segment.in_blocks else ()
            found: PlanOutcome = evaluator.evaluate(Task(plan, spread=spread))
            evaluations += found.evaluations
            if found.figures is not None:
                figures[selection] = found.figures
        return SegmentOutcome(figures, evaluations)


def make_worker(given: PlanWork) -> PlanWorker:
    """Worker that runs the tasks of one process. `given` is the input that every process gets."""
    return PlanWorker(given)


def segment_task(segment: Segment, selections: tuple[str, ...], space: PlanSpace) -> SegmentTask:
    """Task that schedules a segment with each of the rules in `selections`."""
    prefetch = space.prefetchable if space.fixed.prefetch is None else space.fixed.prefetch
    results = space.is_on_several_cores if space.fixed.prefetch_results is None else space.fixed.prefetch_results
    return SegmentTask(segment, selections, prefetch, results, space.node_ids[segment.first : segment.last + 1])


class Likeness:
    """Keys of the segments of a network, used to find segments with equal costs."""

    def __init__(self, problem: SystemProblem) -> None:
        self._problem, self._nodes = problem, layers_of(problem.workload)
        self._of_part: dict[tuple[int, int], Hashable] = {}
        self._numbers: dict[Hashable, int] = {}

    def of(self, segment: Segment) -> Hashable:
        """Key of a segment. Two segments with equal keys have equal costs."""
        place = segment.first, segment.last
        if place not in self._of_part:
            part = likeness(part_of_network(self._problem, self._nodes, *place))
            self._of_part[place] = self._numbers.setdefault(part, len(self._numbers))
        return self._of_part[place], segment.tiles, segment.is_fused, segment.in_blocks
