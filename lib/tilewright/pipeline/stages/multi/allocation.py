"""Stage InterCoreMapping, which chooses the core of each part of a layer, and its base class CoreAllocation."""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tilewright.base.artifacts.files import make_folder
from tilewright.base.errors import InputError, MappingError, count_of
from tilewright.base.objectives import Goal
from tilewright.multicore.allocation.evaluate import EVERYTHING, INTERRUPTED, Evaluator
from tilewright.multicore.allocation.options import EXACT, AllocationOptions, AllocationParameters
from tilewright.multicore.allocation.progress import allocation_progress
from tilewright.multicore.allocation.result import AllocationResult, Evaluation, choose, pareto_front
from tilewright.multicore.allocation.search import schedule_judge
from tilewright.multicore.allocation.space import Genome
from tilewright.multicore.scheduling.options import CAUSAL, ScheduleSettings
from tilewright.pipeline.stages.base import Control, Rest, Stage
from tilewright.pipeline.stages.multi import run as multi_run
from tilewright.pipeline.stages.multi.items import CostedCnProblem
from tilewright.pipeline.stages.multi.result import MultiCoreResult
from tilewright.pipeline.stages.multi.run import MultiCoreProblem, only_genome
from tilewright.pipeline.stages.multi.slices import Slice

GenomeOf = Callable[[MultiCoreProblem], Genome]
"""Function that returns an allocation for a problem: one core for each part of a layer that can run on several cores.
"""
PROPOSALS = "proposals"
"""Reason why the search ended: all allocations that the stage proposed were evaluated."""


@dataclass(frozen=True)
class CoreAllocation(ScheduleSettings, Goal, Stage):
    """Base class of the stages that choose a core for every part of every layer.

    A subclass proposes allocations, and each of them is scheduled. The result is the allocation with the least
    `objective`. The Pareto front has the allocations that no other allocation dominates in latency and energy. Of
    several allocations with equal latency and energy, the front has only one.
    """

    takes = CostedCnProblem
    gives = None
    returns = MultiCoreResult

    @property
    def settings(self) -> ScheduleSettings:
        """Settings with which each allocation is scheduled."""
        return self.part(ScheduleSettings)

    @abstractmethod
    def allocations(self, problem: MultiCoreProblem) -> Iterable[Genome]:
        """Allocations to be evaluated. An allocation is a tuple with the core of each part that can run on several
        cores, in the order of `problem.space.flexible`. `problem.space.gene_choices` has the allowed cores of these
        parts.
        """

    def run(self, item: CostedCnProblem, rest: Rest) -> Iterator[MultiCoreResult]:
        """Yield one result: the schedule of the best allocation. Raises InputError if network, costs and cores do not
        match.
        """
        problem = multi_run.multi_core_problem(item, self.settings)
        found = self.search(problem, rest.control)
        yield MultiCoreResult(problem, found)

    def search(self, problem: MultiCoreProblem, control: Control) -> AllocationResult:
        """Best of the proposed allocations. Raises MappingError if no allocation has a schedule, and InputError if an
        allocation gives a part to a core that is not allowed.
        """
        space = problem.space
        genomes = list(dict.fromkeys(_checked(space.gene_choices, genome) for genome in self.allocations(problem)))
        judge = schedule_judge(problem.assembled.problem, problem.options)
        with Evaluator(space, judge, control.threads) as evaluator:
            evaluator.evaluate(genomes)
            points = list(evaluator.points.values())
            if not points and evaluator.stopped_by == INTERRUPTED:
                raise KeyboardInterrupt
            if not points:
                reasons = "; ".join(dict.fromkeys(evaluator.infeasible.values()))
                raise MappingError(
                    f"no proposed allocation has a schedule ({count_of(len(genomes), 'allocation')}"
                    f" proposed): {reasons}"
                )
            return AllocationResult(
                space=space,
                objective=self.objective,
                options={},
                chosen=choose(points, self.objective),
                front=pareto_front(points),
                generations=(),
                evaluations=evaluator.count,
                infeasible=dict(evaluator.infeasible),
                stopped_by=evaluator.stopped_by or (EVERYTHING if evaluator.count == space.size else PROPOSALS),
            )


def _checked(choices: tuple[tuple[int, ...], ...], genome: Any) -> Genome:
    """Proposed allocation as a tuple of core ids. Raises InputError if the number of cores is wrong, or if a core is
    not allowed.
    """
    cores = tuple(int(core) for core in genome)
    if len(cores) != len(choices):
        raise InputError(
            f"an allocation names {count_of(len(cores), 'core')}, but it must name"
            f" {count_of(len(choices), 'core')}, one for each part of a layer"
        )
    wrong = [
        f"part {place}: core {core} is not one of {list(choices[place])}"
        for place, core in enumerate(cores)
        if core not in choices[place]
    ]
    if wrong:
        raise InputError(f"an allocation has cores that are not allowed: {'; '.join(wrong[:5])}")
    return cores


@dataclass(frozen=True)
class InterCoreMapping(AllocationParameters, CoreAllocation):
    """Allocates each part of each layer to a core by a genetic algorithm, and schedules the best allocation.

    If there are only few possible allocations, all of them are evaluated. With `allocation_engine: exact`, the search
    continues until the best allocation is proven to be optimal. docs/multi-core-model/allocation.md and
    docs/multi-core-model/scheduling.md explain the rules.

    Example: {set: InterCoreMapping, parameters: {nb_ga_individuals: 32, operands_to_prefetch: [W]}}
    """

    plot_hof: bool = False
    """True if the schedule of every allocation of the Pareto front (the hall of fame) is drawn. The figures are written
    to the folder of exports.
    """

    stands_for = "InterCoreMappingStage, later GeneticAlgorithmAllocationStage"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.allocation_engine == EXACT and self.schedule_model != CAUSAL:
            raise InputError([multi_run.engine_problem(self.schedule_model)])
        # Set for this object, not for its class: a stage writes files only with `plot_hof`.
        object.__setattr__(self, "exports", self.plot_hof)

    def allocations(self, problem: MultiCoreProblem) -> Iterable[Genome]:
        """Empty sequence. The genetic algorithm cannot propose all allocations in advance, because each generation
        depends on the results of the previous one.
        """
        return ()

    def search(self, problem: MultiCoreProblem, control: Control) -> AllocationResult:
        """Best allocation that the search finds. Raises MappingError if no allocation has a schedule."""
        given = problem.inputs
        title = f"{given.graph.network} on {given.descriptions.accelerator.name}"
        with allocation_progress(title, control.show_progress) as tell:
            return multi_run.allocate(problem, self.part(AllocationOptions, jobs=control.threads), tell)

    def run(self, item: CostedCnProblem, rest: Rest) -> Iterator[MultiCoreResult]:
        """Yield one result: the schedule of the best allocation. Raises InputError if network, costs and cores do not
        match.
        """
        for result in super().run(item, rest):
            if self.plot_hof:
                _draw_hall_of_fame(result, rest.control.exports)
            yield result


def _draw_hall_of_fame(result: MultiCoreResult, folder: Path) -> None:
    """Draw the schedule of each allocation of the Pareto front. The files are `hall_of_fame_N.svg` and
    `hall_of_fame_N.png` in `folder`; number 1 is the fastest allocation.
    """
    from tilewright.results.multi.bars import ScheduleView, tile_ranges
    from tilewright.results.multi.gantt import write_schedule_figure

    make_folder(folder)
    tiles = tile_ranges(result.problem.inputs.graph)
    for number, point in enumerate(result.allocation.front, 1):
        artifact = multi_run.schedule(result.problem, point.genome)
        write_schedule_figure(ScheduleView(artifact, tiles), folder / f"hall_of_fame_{number}")


@dataclass(frozen=True)
class FixedAllocation(CoreAllocation):
    """Schedules one known allocation. `tilewright schedule` uses this stage in place of the search."""

    genome_of: GenomeOf = field(default=lambda problem: only_genome(problem.space))
    """Function from a problem to the known allocation: one core for each part with more than one allowed core. The
    default function requires that there is no such part.
    """

    def allocations(self, problem: MultiCoreProblem) -> Iterable[Genome]:
        """Tuple with the known allocation."""
        return (self.genome_of(problem),)

    def run(self, item: CostedCnProblem, rest: Rest) -> Iterator[MultiCoreResult]:
        """Yield one result: the schedule of the allocation. Raises InputError if network, costs, cores and allocation
        do not match, and MappingError if the allocation has no schedule.
        """
        problem = multi_run.multi_core_problem(item, self.settings)
        space = problem.space
        genome = _checked(space.gene_choices, self.genome_of(problem))
        made = multi_run.schedule(problem, genome)
        found = made.schedule
        point = Evaluation(genome, found.latency_cycles, found.energy_pj)
        allocation = AllocationResult(
            space=space,
            objective=self.objective,
            options={},
            chosen=point,
            front=(point,),
            generations=(),
            evaluations=1,
            infeasible={},
            stopped_by=EVERYTHING if space.size == 1 else PROPOSALS,
        )
        yield MultiCoreResult(problem, allocation, made)


def in_place_of_search(
    stages: Slice, genome_of: Callable[[MultiCoreProblem], Genome], given: ScheduleSettings
) -> Slice:
    """Stages of `tilewright allocate` with a known allocation in place of the last stage, which is the search. Stages
    that only observe results are left out, because their files describe the search.
    """
    values = settings_of(stages, given).as_dict()
    above = tuple(stage for stage in stages.stages[:-1] if not stage.observes)
    return replace(stages, stages=(*above, FixedAllocation(**values, genome_of=genome_of)))


def settings_of(stages: Slice, given: ScheduleSettings) -> ScheduleSettings:
    """Schedule settings of the last stage of `tilewright allocate`; `given` if the last stage has no settings."""
    last = stages.stages[-1]
    return last.settings if isinstance(last, CoreAllocation) else given


def objective_of(stages: Slice, given: str) -> str:
    """Objective of the last stage of `tilewright allocate`; `given` if the last stage has no objective."""
    last = stages.stages[-1]
    return last.objective if isinstance(last, CoreAllocation) else given
