"""InterCoreMapping, the stage that chooses which core runs what, and its base class for other ways to choose."""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tilewright.base.artifacts.files import make_folder
from tilewright.base.errors import InputError, MappingError
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
"""Gives the cores of the parts with a choice."""
PROPOSALS = "proposals"
"""Why a search ended that evaluated what a stage proposes."""


@dataclass(frozen=True)
class CoreAllocation(ScheduleSettings, Goal, Stage):
    """Base of the stages that give every part of a layer a core: a subclass proposes allocations.

    Each is scheduled; the best by `objective` is the result, and those that no other is better than in both latency and
    energy are the Pareto front.
    """

    takes = CostedCnProblem
    gives = None
    returns = MultiCoreResult

    @property
    def settings(self) -> ScheduleSettings:
        """How schedules are made."""
        return self.part(ScheduleSettings)

    @abstractmethod
    def allocations(self, problem: MultiCoreProblem) -> Iterable[Genome]:
        """The allocations to be tried: for each part with a choice, in the order of `problem.space.flexible`, one of
        its cores in `problem.space.gene_choices`."""

    def run(self, item: CostedCnProblem, rest: Rest) -> Iterator[MultiCoreResult]:
        """The schedule of the best allocation. Raises InputError where network, costs and cores do not fit together."""
        problem = multi_run.multi_core_problem(item, self.settings)
        found = self.search(problem, rest.control)
        yield MultiCoreResult(problem, found)

    def search(self, problem: MultiCoreProblem, control: Control) -> AllocationResult:
        """The best of the proposed allocations. Raises MappingError where none has a schedule, InputError for one that
        gives a part another core than it may have."""
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
                raise MappingError(f"none of {len(genomes)} proposed allocations has a schedule: {reasons}")
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
    """A proposed genome as plain numbers. Raises InputError if it is none of this space."""
    cores = tuple(int(core) for core in genome)
    if len(cores) != len(choices):
        raise InputError(f"an allocation names {len(cores)} cores for {len(choices)} parts with a choice")
    wrong = [
        f"part {place}: {core}, not of {list(choices[place])}"
        for place, core in enumerate(cores)
        if core not in choices[place]
    ]
    if wrong:
        raise InputError(f"an allocation names cores that parts may not have: {'; '.join(wrong[:5])}")
    return cores


@dataclass(frozen=True)
class InterCoreMapping(AllocationParameters, CoreAllocation):
    """Searches which core runs which part of each layer by a genetic algorithm, and schedules the best allocation.

    Where there are few allocations, all of them are tried. With `allocation_engine: exact` the search goes on until the
    best is proven to be the best. docs/multi-core-model.md#allocation and docs/multi-core-model.md#scheduling have the
    rules.

    Example: {set: InterCoreMapping, parameters: {nb_ga_individuals: 32, operands_to_prefetch: [W]}}
    """

    plot_hof: bool = False
    """Draw the schedule of every allocation of the Pareto front, the hall of fame, into the folder of exports."""

    stands_for = "InterCoreMappingStage, later GeneticAlgorithmAllocationStage"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.allocation_engine == EXACT and self.schedule_model != CAUSAL:
            raise InputError([multi_run.engine_problem(self.schedule_model)])
        # Of this stage, not of its class: it writes where it is asked to.
        object.__setattr__(self, "exports", self.plot_hof)

    def allocations(self, problem: MultiCoreProblem) -> Iterable[Genome]:
        """None beforehand: each generation follows from the one before."""
        return ()

    def search(self, problem: MultiCoreProblem, control: Control) -> AllocationResult:
        """The best allocation that was found. Raises MappingError where none has a schedule."""
        given = problem.inputs
        title = f"{given.graph.network} on {given.descriptions.accelerator.name}"
        with allocation_progress(title, control.show_progress) as tell:
            return multi_run.allocate(problem, self.part(AllocationOptions, threads=control.threads), tell)

    def run(self, item: CostedCnProblem, rest: Rest) -> Iterator[MultiCoreResult]:
        """The schedule of the best allocation. Raises InputError where network, costs and cores do not fit together."""
        for result in super().run(item, rest):
            if self.plot_hof:
                _draw_hall_of_fame(result, rest.control.exports)
            yield result


def _draw_hall_of_fame(result: MultiCoreResult, folder: Path) -> None:
    """The schedule of each allocation of the front, the fastest first, as `hall_of_fame_1.svg` and `.png`, ..."""
    from tilewright.results.multi.bars import ScheduleView, tile_ranges
    from tilewright.results.multi.gantt import write_schedule_figure

    make_folder(folder)
    tiles = tile_ranges(result.problem.inputs.graph)
    for number, point in enumerate(result.allocation.front, 1):
        artifact = multi_run.schedule(result.problem, point.genome)
        write_schedule_figure(ScheduleView(artifact, tiles), folder / f"hall_of_fame_{number}")


@dataclass(frozen=True)
class FixedAllocation(CoreAllocation):
    """Schedules one allocation that is known: what `tilewright schedule` puts in place of the search."""

    genome_of: GenomeOf = field(default=lambda problem: only_genome(problem.space))
    """The core of each part with a choice; by default there must be none."""

    def allocations(self, problem: MultiCoreProblem) -> Iterable[Genome]:
        """The one."""
        return (self.genome_of(problem),)

    def run(self, item: CostedCnProblem, rest: Rest) -> Iterator[MultiCoreResult]:
        """The schedule of the allocation, which is simulated once.

        Raises InputError where network, costs, cores and allocation do not fit together, MappingError where the
        allocation has no schedule.
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
    """The slice of `tilewright allocate` with an allocation that is known in place of its last stage.

    Those that only look at results are left out: what they write is of the search.
    """
    values = settings_of(stages, given).as_dict()
    above = tuple(stage for stage in stages.stages[:-1] if not stage.observes)
    return replace(stages, stages=(*above, FixedAllocation(**values, genome_of=genome_of)))


def settings_of(stages: Slice, given: ScheduleSettings) -> ScheduleSettings:
    """How the slice of `tilewright allocate` makes schedules: as its last stage says, or as is given where it does
    not."""
    last = stages.stages[-1]
    return last.settings if isinstance(last, CoreAllocation) else given


def objective_of(stages: Slice, given: str) -> str:
    """What the allocation that the slice chooses minimises: as its last stage says, or as is given where it does
    not."""
    last = stages.stages[-1]
    return last.objective if isinstance(last, CoreAllocation) else given
