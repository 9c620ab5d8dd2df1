"""The verbs of the multi-core flow as functions: the scheduling problem of a run, its allocation, its schedule."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

from tilewright.base.artifacts.codec import encode
from tilewright.base.errors import InputError, MappingError, Problem
from tilewright.base.proof import Schedules
from tilewright.hardware.system import COMPUTE
from tilewright.mapping.yaml_writer import mapping_text
from tilewright.multicore.allocation.options import EXACT, GENETIC, AllocationOptions
from tilewright.multicore.allocation.requests import fixed_entries, layer_requests
from tilewright.multicore.allocation.result import (
    AllocationResult,
    SearchProgress,
    SingleCore,
    allowed_cores,
    layer_cores,
)
from tilewright.multicore.allocation.search import on_one_core, schedule_judge, search_allocation
from tilewright.multicore.allocation.space import AllocationSpace, Genome, allocation_space
from tilewright.multicore.scheduling.assembled import AssembledProblem
from tilewright.multicore.scheduling.assembly import model_problem
from tilewright.multicore.scheduling.bounds.lower_bounds import LowerBounds, lower_bounds
from tilewright.multicore.scheduling.check.rules import check_schedule
from tilewright.multicore.scheduling.options import CAUSAL, ScheduleOptions, ScheduleSettings
from tilewright.multicore.scheduling.result import ScheduleArtifact, schedule_artifact
from tilewright.multicore.scheduling.simulate import Scheduler, simulate
from tilewright.pipeline.stages.multi.items import CostedCnProblem


@dataclass(frozen=True, eq=False)
class MultiCoreProblem:
    """A network on an accelerator, ready to be allocated and scheduled."""

    inputs: CostedCnProblem
    assembled: AssembledProblem
    space: AllocationSpace
    """The cores that the mapping file and the accelerator leave for each part of a layer."""
    settings: ScheduleSettings
    options: ScheduleOptions
    """The settings as the scheduler takes them."""

    @cached_property
    def bounds(self) -> LowerBounds | None:
        """What no allocation of the space is below; None for a model that is not causal: it does not hold for that."""
        if self.settings.schedule_model != CAUSAL:
            return None
        scheduling = self.assembled.problem
        bounds = lower_bounds(scheduling, allowed_cores(self.space, scheduling.system.core_count))
        choices = self.space.choices
        return replace(bounds, scope=Schedules(len(choices), sum(len(cores) == 1 for cores in choices)))


def multi_core_problem(inputs: CostedCnProblem, settings: ScheduleSettings | None = None) -> MultiCoreProblem:
    """The problem of the inputs of a run. Raises InputError with everything that does not fit together."""
    settings = settings or ScheduleSettings()
    given = inputs.descriptions
    described = (given.workload, inputs.graph, given.accelerator, given.mapping)
    assembled = model_problem(*described, inputs.costs, settings)
    options = settings.options(given.workload, given.mapping, assembled.names.operand_names)
    requests = layer_requests(inputs.graph, given.workload, given.mapping, given.accelerator)
    space = allocation_space(assembled.problem, requests, assembled.names, assembled.reasons)
    return MultiCoreProblem(inputs, assembled, space, settings, options)


def allocate(
    problem: MultiCoreProblem,
    options: AllocationOptions | None = None,
    progress: Callable[[SearchProgress], None] | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> AllocationResult:
    """The best allocation that a search finds, by the engine that the options name; a time budget is by the clock.

    Raises MappingError where none has a schedule, InputError where the schedules are of a model for which nothing is
    proven and the engine is `exact`.
    """
    scheduling = problem.assembled.problem
    judge = schedule_judge(scheduling, problem.options)
    if options is None or options.allocation_engine == GENETIC:
        return search_allocation(problem.space, judge, options, progress, clock)
    from tilewright.multicore.allocation.exact.search import search_exactly  # its solver takes half a second to import

    if problem.bounds is None:
        raise InputError([engine_problem(problem.settings.schedule_model)])
    return search_exactly(scheduling, problem.space, judge, problem.bounds, options, progress, clock)


def engine_problem(schedule_model: str) -> Problem:
    """Problem that the exact engine proves nothing of a model of schedules."""
    message = f"proves nothing of schedules of the model {schedule_model}"
    return Problem(message, path="allocation_engine", value=EXACT, allowed=f"{GENETIC}, or schedule_model: {CAUSAL}")


def single_cores(problem: MultiCoreProblem) -> tuple[SingleCore, ...]:
    """Schedules of the network on each compute core that can run anything, as far as possible, by the same scheduler.

    Where no compute core can, for each other core. A core on which that has no schedule is left out; nothing is found
    where the mapping leaves no choice.
    """
    space = problem.space
    if not space.flexible:
        return ()
    roles = problem.assembled.names.core_roles
    used = sorted({core for choices in space.choices for core in choices})
    compute = [core for core in used if roles[core] == COMPUTE]
    scheduler = Scheduler(problem.assembled.problem, replace(problem.options, record=False))
    found = []
    for core in compute or used:
        genome = space.genome(on_one_core(space, core))
        elsewhere = sum(core not in choices for choices in space.choices)
        try:
            made = scheduler(space.allocation(genome))
        except MappingError:
            continue
        parts = encode(made.energy_terms_pj)
        found.append(SingleCore(core, elsewhere, len(space.parts), made.latency_cycles, made.energy_pj, parts))
    return tuple(found)


def fixed_mapping_text(problem: MultiCoreProblem, genome: Genome) -> str:
    """The mapping file with the cores of an allocation fixed: it reproduces the schedule."""
    given = problem.inputs.descriptions
    cores = layer_cores(problem.space, genome, problem.assembled.names)
    entries = fixed_entries(cores, problem.inputs.graph, given.workload, given.mapping)
    return mapping_text(entries, f"Cores of {given.workload.name} on {given.accelerator.name}, chosen by tilewright.")


def only_genome(space: AllocationSpace) -> Genome:
    """The genome of a space without a choice. Raises InputError where there is one."""
    if space.flexible:
        message = f"{len(space.flexible)} of {len(space.parts)} parts of layers may run on several cores"
        raise InputError(
            [Problem(message, path="allocation", allowed="an allocation, or one core for each in the mapping")]
        )
    return ()


def schedule(problem: MultiCoreProblem, genome: Genome) -> ScheduleArtifact:
    """The schedule of an allocation, with its logs and the problem.

    A schedule of the causal model is verified: a fault is an error of ours (AssertionError). Raises MappingError where
    the allocation has no schedule.
    """
    scheduling = problem.assembled.problem
    found = simulate(scheduling, problem.space.allocation(genome), problem.options)
    model = problem.settings.schedule_model
    if model == CAUSAL:
        faults = check_schedule(scheduling, found, problem.settings.has_barriers)
        if faults:
            more = f" (and {len(faults) - 5} more)" if len(faults) > 5 else ""
            raise AssertionError(f"the schedule breaks its rules: {'; '.join(faults[:5])}{more}")
    return schedule_artifact(problem.assembled, found, model, None, problem.options.operands_to_prefetch)
