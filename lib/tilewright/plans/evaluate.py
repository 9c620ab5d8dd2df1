"""Evaluation of plans, with the functions and the scheduler that an ordinary run on several cores uses, too.

Plans share work: for each cost class (computation nodes with equal costs) and core, the mapping is searched once and
reused for all plans.
"""

import itertools
import math
import random
import time
import zlib
from collections import Counter, OrderedDict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from tilewright.base.artifacts.codec import LEFT_OUT
from tilewright.base.errors import InputError, MappingError
from tilewright.base.objectives import Objective
from tilewright.multicore.allocation.evaluate import INTERRUPTED
from tilewright.multicore.allocation.options import AllocationOptions
from tilewright.multicore.nodes.cut_memory import CutMemory
from tilewright.multicore.nodes.generation import build_cn_graph
from tilewright.multicore.nodes.pieces import data_pieces
from tilewright.multicore.nodes.tiling_options import network_tiling
from tilewright.multicore.scheduling.core_costs import CoreCostRow
from tilewright.multicore.scheduling.cost_classes import cost_classes
from tilewright.multicore.scheduling.options import ScheduleSettings
from tilewright.pipeline.stages.multi.core_mapping import KnownRows, map_core
from tilewright.pipeline.stages.multi.items import CostedCnProblem, SystemProblem
from tilewright.pipeline.stages.multi.kept_operands import class_needs
from tilewright.pipeline.stages.multi.run import MultiCoreProblem, allocate, multi_core_problem
from tilewright.plans.block_cores import block_shapes, block_starts
from tilewright.plans.blocks import Machine
from tilewright.plans.budget import NO_LIMITS, TaskLimits
from tilewright.plans.cores import (
    CoreSearch,
    CutParts,
    LayerCores,
    PartCores,
    PlanFigures,
    SchedulingJudge,
    layer_cores,
    recut_parts,
    starts,
)
from tilewright.plans.detours import detour_steps
from tilewright.plans.plan import Plan, layers_of, planned_mapping
from tilewright.plans.reloads import moved_again_bits
from tilewright.search.options import CnSearchOptions
from tilewright.workload.layer import OUTPUT

Clock = Callable[[], float]
"""Function that returns the current time in seconds."""
MOST_NODES = 60_000
"""Largest number of computation nodes of a plan that is evaluated. Larger plans would take seconds for each schedule.
"""
REMEMBERED = 4
"""Number of plans whose computation nodes are cached. A cached plan can be scheduled again with other cores."""


@dataclass(frozen=True)
class PlanToBeat:
    """Latency of the best plan so far, for networks of one layer. A plan is scheduled only if its lower bound is below
    this latency.
    """

    latency_cycles: int
    machine: Machine
    """Properties of the off-chip port, and number of cores that can run the layer."""


class _BeatenError(MappingError):
    """Error that ends the evaluation of a plan, because its lower bound is not below the latency of the best plan."""


@dataclass(frozen=True)
class Task:
    """Plan to be evaluated, and the effort for this evaluation."""

    plan: Plan
    cores: LayerCores | None = None
    """Cores of a similar plan, from which the first initial allocations are made; None if there is no such plan."""
    tries: int = 0
    """Number of allocations to try after the initial allocations. Each of these allocations is a neighbour of the best
    allocation so far.
    """
    detours: bool = False
    """True if a step can also change the detours (layers whose results move through the off-chip memory)."""
    thorough: bool = False
    """True to evaluate all warm starts, which are initial allocations that do not depend on an earlier plan."""
    by_engine: bool = False
    """True if the allocation engine of a run, for example the genetic algorithm, also searches for cores."""
    as_given: bool = False
    """True to evaluate only the allocation in `cores`."""
    spread: tuple[int, ...] = ()
    """Positions of layers whose parts are also tried on several numbers of cores and in several arrangements
    (`block_starts`).
    """
    on_every_count: bool = False
    """True if the layers in `spread` are tried on every number of cores, as with the argument `every_count` of
    `block_starts`.
    """
    rival: PlanToBeat | None = None
    seed: int = 0
    limits: TaskLimits = NO_LIMITS


@dataclass(frozen=True)
class PlanOutcome:
    """Result of the evaluation of a plan."""

    plan: Plan
    figures: PlanFigures | None
    """Latency and energy of the best schedule; None if the plan has no schedule."""
    cores: LayerCores = ()
    evaluations: int = 0
    """Number of schedules that were made for the plan, including the schedules of the allocation engine."""
    reason: str = ""
    """Reason why the plan has no schedule; '' if the plan has a schedule."""
    moved_again: tuple[int, ...] = ()
    """Number of bits of each layer's data that the schedule moves more than once (one entry for each layer). First
    moves do not count.
    """
    busiest_cycles: int = 0
    """Number of cycles in which the core with the most work computes."""
    most_parts: int = 0
    """Largest number of parts that one core runs."""
    nodes: int = field(default=0, metadata=LEFT_OUT)
    """Number of computation nodes of the plan; 0 for a plan without a schedule."""


@dataclass
class _KeptCut:
    """Network after the cut of a plan (`Plan.cut`). The network is kept for later plans with the same cut, which differ
    only in schedule options.
    """

    costed: CostedCnProblem
    problem: MultiCoreProblem | None = None
    """Scheduling problem, with the schedule options of the first plan that was evaluated with this cut of the network.
    None before the problem is made.
    """


class PlanEvaluator:
    """Evaluator of plans for one network on one accelerator. The result of a plan does not depend on earlier plans.
    Limits of elapsed time are in seconds of `clock`.
    """

    def __init__(
        self,
        problem: SystemProblem,
        search: CnSearchOptions,
        settings: ScheduleSettings,
        objective: Objective,
        known: KnownRows | None = None,
        clock: Clock = time.monotonic,
    ) -> None:
        self.problem, self.search, self.given, self.objective = problem, search, settings, objective
        self._clock = clock
        self.known: KnownRows = {} if known is None else known
        self._nodes = layers_of(problem.workload)
        self._cuts = CutMemory(problem.workload)
        self._kept: OrderedDict[object, _KeptCut] = OrderedDict()

    def costed(self, plan: Plan, rival: PlanToBeat | None = None) -> CostedCnProblem:
        """Network cut into computation nodes (CNs) by a plan, with the costs of the CNs. Raises InputError if the plan
        cannot cut the network. Raises MappingError if a lower bound shows that the plan cannot beat the latency of
        `rival`, the best plan so far.
        """
        return self._cut_of(plan, rival).costed

    def _cut_of(self, plan: Plan, rival: PlanToBeat | None) -> "_KeptCut":
        found = self._kept.get(plan.cut)
        if found is None:
            found = self._kept[plan.cut] = _KeptCut(self._cut(plan, rival))
            if len(self._kept) > REMEMBERED:
                self._kept.popitem(last=False)
        return found

    def _cut(self, plan: Plan, rival: PlanToBeat | None) -> CostedCnProblem:
        workload, accelerator = self.problem.workload, self.problem.accelerator
        mapping = planned_mapping(self.problem.mapping, self._nodes, plan)
        tiling = network_tiling(workload, mapping, accelerator, plan.tiling_options())
        count = sum(_node_count(layer) for layer in tiling.layers)
        if count > MOST_NODES:
            raise InputError(f"has {count:,} computation nodes, more than {MOST_NODES:,}")
        graph = build_cn_graph(workload, tiling, self._cuts)
        data_pieces(workload, graph, known=self._cuts)  # caches the pieces of this graph for later calls
        classes = cost_classes(graph, workload, mapping)
        needs = class_needs(graph, workload, classes)

        def costs_of(only: Collection[int] | None = None) -> dict[str, tuple[CoreCostRow, ...]]:
            given = (graph, workload, mapping, accelerator)
            return {
                name: map_core(*given, name, self.search, needs=needs, known=self.known, only=only)
                for name in accelerator.distinct_cores
            }

        if rival is not None:
            first = int(classes.of_cn[0])
            rows = [row for found in costs_of((first,)).values() for row in found if not row.reason]
            _check_rival(rows, int((classes.of_cn == first).sum()), rival)
        costs = costs_of()
        described = SystemProblem(workload, accelerator, mapping)
        return CostedCnProblem(described, graph, costs, self.search.model)

    def multi_core_problem(self, plan: Plan, rival: PlanToBeat | None = None) -> MultiCoreProblem:
        """Problem of allocation and scheduling for a plan. Raises InputError if some part of a layer has no allowed
        core. Raises MappingError if a lower bound shows that the plan cannot beat the latency of `rival`, the best plan
        so far.
        """
        kept, settings = self._cut_of(plan, rival), plan.settings(self.given)
        if kept.problem is None:
            kept.problem = multi_core_problem(kept.costed, settings)
        return kept.problem.with_settings(settings)

    def evaluate(self, task: Task) -> PlanOutcome:
        """Result of the search for cores, for the plan of a task: the best schedule found, or the reason why the plan
        has no schedule.
        """
        ends = _TaskEnds(task.limits, self._clock)
        try:
            problem = self.multi_core_problem(task.plan, task.rival)
        except (InputError, MappingError) as error:
            return PlanOutcome(task.plan, None, reason=str(error).partition("\n")[0])
        draw = random.Random(zlib.crc32(repr((task.seed, task.plan)).encode()))
        by_off_chip = problem.options.layers_by_off_chip
        judge = SchedulingJudge(problem)
        recut = recut_parts(problem.space, task.cores)
        shapes = block_shapes(task.plan, problem.space)
        search = CoreSearch(problem.space, judge, self.objective, draw, by_off_chip, CutParts(recut, shapes))

        def is_out_of_schedules() -> bool:
            return search.best is not None and ends.are_schedules_used(search.evaluations)

        begins = starts(problem.space, task.cores, task.thorough)
        if task.as_given:
            begins = itertools.islice(begins, 1)
        for start in begins:
            if task.as_given and layer_cores(problem.space, start, len(self._nodes)) != task.cores:
                reason = "a layer cannot run on the cores that it has in the earlier result"
                return PlanOutcome(task.plan, None, reason=reason)
            search.look_at(start)
            if is_out_of_schedules():
                break
        if task.spread and not is_out_of_schedules():
            chosen = {layer: shapes[layer] for layer in task.spread}
            for start in block_starts(problem.space, chosen, task.on_every_count, search.best):
                search.look_at(start)
                if is_out_of_schedules():
                    break
        detours = detour_steps(problem.assembled.problem) if task.detours else None
        search.improve(task.tries, lambda: ends.are_reached(search.evaluations), detours)
        by_engine = 0
        if task.by_engine and (search.best is None or not ends.are_reached(search.evaluations)):
            engine = self._by_engine(problem, ends, search.evaluations, search.best is None)
            by_engine = engine.evaluations
            for found in engine.allocations:
                search.look_at(found)
        evaluations = search.evaluations + by_engine
        if search.best is None or search.figures is None:
            return PlanOutcome(task.plan, None, evaluations=evaluations, reason="no allocation has a schedule")
        cores = layer_cores(problem.space, search.best, len(self._nodes))
        ids = tuple(self._nodes[layer].node_id for layer in search.by_off_chip)
        again = moved_again_bits(problem.assembled.problem, judge.recorded(search.best, search.by_off_chip))
        plan = replace(task.plan, by_off_chip=ids)
        load = Counter[int]()
        for part, core in enumerate(search.best):
            load[core] += int(problem.space.runtime_cycles[part, core])
        most = max(Counter(search.best).values())
        nodes = len(problem.space.part_of_cn)
        return PlanOutcome(plan, search.figures, cores, evaluations, "", again, max(load.values()), most, nodes)

    def _by_engine(self, problem: MultiCoreProblem, ends: "_TaskEnds", made: int, is_needed: bool) -> "_ByEngine":
        """Best allocation that the default allocation search of a run finds within the limits of a task. `made` is the
        number of schedules that the task has made before. `is_needed` is True if no allocation has a schedule yet; the
        search then ignores the limit of schedules.
        """
        nodes = len(problem.space.part_of_cn)
        options = ends.engine_options(self.objective, None if is_needed else made, nodes)
        if options is None:
            return _ByEngine((), 0)
        try:
            found = allocate(problem, options, clock=ends.engine_clock)
        except MappingError:
            return _ByEngine((), 0)
        if found.stopped_by == INTERRUPTED:
            raise KeyboardInterrupt  # ends the whole search of plans, not only this one
        return _ByEngine((problem.space.part_cores(found.chosen.genome),), found.evaluations)


class _ByEngine(NamedTuple):
    """Result of the allocation search of an ordinary run (`Task.by_engine`), for one plan."""

    allocations: tuple[PartCores, ...]
    """Best allocation, as a tuple of length 1; () if no allocation has a schedule, or if too few schedules are left for
    a search.
    """
    evaluations: int


class _TaskEnds:
    """Limits at which the evaluation of a task's plan ends: points in time, and a number of schedules. Time is counted
    from the creation of this object.
    """

    def __init__(self, limits: TaskLimits, clock: Clock) -> None:
        self._limits = limits
        given = ((clock, limits.seconds), (time.process_time, limits.cpu_seconds))
        self._ends = [(reading, reading() + seconds) for reading, seconds in given if seconds is not None]
        self._clock = clock

    def are_schedules_used(self, made: int) -> bool:
        """True if `made`, the number of schedules made so far, has reached the limit of the task. False if the task has
        no limit of schedules.
        """
        return self._limits.schedules is not None and made >= self._limits.schedules

    def are_reached(self, made: int) -> bool:
        """True if a limit of the task is reached. Either a time limit has passed, or the limit of schedules is reached:
        `made` is the number of schedules made so far.
        """
        return self.are_schedules_used(made) or any(reading() >= end for reading, end in self._ends)

    @property
    def _first(self) -> tuple[Clock, float] | None:
        """Limit of time that is reached first, as a pair: the clock of the limit, and the time on this clock. None if
        the task has no limit of time.
        """
        return min(self._ends, key=lambda pair: pair[1] - pair[0](), default=None)

    @property
    def engine_clock(self) -> Clock:
        """Clock that measures the time limit of the allocation engine."""
        return self._clock if self._first is None else self._first[0]

    def engine_options(self, objective: Objective, made: int | None, nodes: int) -> AllocationOptions | None:
        """Options with which the allocation engine stays within the limits of the task. `made` is the number of
        schedules that the task has made before; None lifts the limit of schedules. `nodes` is the number of computation
        nodes of the plan. The result is None if too few schedules are left.
        """
        first = self._first
        seconds = None if first is None else max(first[1] - first[0](), 1.0)
        options = AllocationOptions(objective=objective, jobs=1, ga_time_budget_s=seconds)
        if self._limits.schedules is None or made is None:
            return options
        left = self._limits.schedules - made
        generations = min(options.nb_ga_generations, left // options.nb_ga_individuals - 1)
        if generations < 1:
            return None
        every = min(options.exhaustive_nodes, left * nodes)
        return replace(options, nb_ga_generations=generations, exhaustive_nodes=every)


def _check_rival(rows: Sequence[CoreCostRow], count: int, rival: PlanToBeat) -> None:
    """Raise MappingError if a lower bound for `count` equal CNs is not below the latency of `rival`.

    `rows` has the costs of one CN, one row for each kind of core. Two lower bounds are used: computation on all cores
    at the same time, and traffic of the CNs at the off-chip port.
    """
    if not rows:
        return
    of = rival.machine
    work = math.ceil(count / of.cores) * min(row.total0_cycles for row in rows)
    inward = min(sum(one.bits for one in row.streams if one.operand != OUTPUT) for row in rows)
    outward = min(sum(one.bits for one in row.streams if one.operand == OUTPUT) for row in rows)
    reading, writing = count * inward / of.read_bits_per_cycle, count * outward / of.write_bits_per_cycle
    widest = max(of.read_bits_per_cycle, of.write_bits_per_cycle)
    both = count * (inward + outward) / widest if of.shares_port else 0.0
    least = max(work, math.floor(max(reading, writing, both)))
    if least >= rival.latency_cycles:
        raise _BeatenError(f"not scheduled: takes {least:,} cycles or more, and a plan with fewer cycles is known")


def _node_count(layer: object) -> int:
    count = 1
    for loop in layer.loops:  # type: ignore[attr-defined]
        count *= loop.count
    return count
