"""Functions behind the multi-core verbs: they make the scheduling problem of a run, search for an allocation, and make
the schedule of an allocation.
"""

import json
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
    """Network on an accelerator, with all data that allocation and scheduling need."""

    inputs: CostedCnProblem
    """Network cut into CNs, with the costs of each CN on each core."""
    assembled: AssembledProblem
    """Scheduling problem, with the names of the cores, memories, links, layers and tensors that it numbers."""
    space: AllocationSpace
    """Cores that the mapping file and the accelerator allow for each part of a layer."""
    settings: ScheduleSettings
    """Settings of schedules, as the user gives them."""
    options: ScheduleOptions
    """Settings in the form that the scheduler uses."""

    @cached_property
    def bounds(self) -> LowerBounds | None:
        """Lower bounds of latency and energy that hold for every allocation in `space`. None for schedule models that
        are not causal, because the bounds are not valid for such models.
        """
        if self.settings.schedule_model != CAUSAL:
            return None
        scheduling = self.assembled.problem
        bounds = lower_bounds(scheduling, allowed_cores(self.space, scheduling.system.core_count))
        choices = self.space.choices
        return replace(bounds, scope=Schedules(len(choices), sum(len(cores) == 1 for cores in choices)))

    def with_settings(self, settings: ScheduleSettings) -> "MultiCoreProblem":
        """Problem with other settings of schedules. `settings` must have the same `schedule_model` and `cn_runtime`,
        because the scheduling problem depends on these two settings.
        """
        assert settings.schedule_model == self.settings.schedule_model
        assert settings.cn_runtime == self.settings.cn_runtime
        given, operands = self.inputs.descriptions, self.assembled.names.operand_names
        return replace(self, settings=settings, options=settings.options(given.workload, given.mapping, operands))


def multi_core_problem(inputs: CostedCnProblem, settings: ScheduleSettings | None = None) -> MultiCoreProblem:
    """Problem of allocation and scheduling, made from the inputs of a run. Raises InputError with all inputs that do
    not match each other.
    """
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
    """Best allocation that a search finds. `options` has the search engine, and `clock` measures the time budget.

    Raises MappingError if no allocation has a schedule, and InputError if the engine is `exact` and the schedule model
    has no proofs.
    """
    scheduling = problem.assembled.problem
    judge = schedule_judge(scheduling, problem.options)
    if options is None or options.allocation_engine == GENETIC:
        return search_allocation(problem.space, judge, options, progress, clock)
    from tilewright.multicore.allocation.exact.search import search_exactly  # slow import of a solver

    if problem.bounds is None:
        raise InputError([engine_problem(problem.settings.schedule_model)])
    return search_exactly(scheduling, problem.space, judge, problem.bounds, options, progress, clock)


def engine_problem(schedule_model: str) -> Problem:
    """Problem that reports a schedule model for which the exact engine has no proofs."""
    message = f"the exact engine does not support the schedule model {schedule_model}"
    return Problem(message, path="allocation_engine", value=EXACT, allowed=f"{GENETIC}, or schedule_model: {CAUSAL}")


def single_cores(problem: MultiCoreProblem) -> tuple[SingleCore, ...]:
    """Schedules in which one compute core runs every part that it can run; each other part runs on its fastest core.
    There is one schedule for each compute core that can run at least one part. If no part can run on a compute core,
    there is one schedule for each other core that can run a part.

    A core is left out if its allocation has no schedule. The result is () if the mapping allows only one allocation.
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
    """Text of a mapping file that fixes the cores of an allocation. A run with this file has the same schedule."""
    given = problem.inputs.descriptions
    cores = layer_cores(problem.space, genome, problem.assembled.names)
    entries = fixed_entries(cores, problem.inputs.graph, given.workload, given.mapping)
    head = f"Cores of {given.workload.name} on {given.accelerator.name}, chosen by tilewright."
    if given.mapping.stacks:  # a file with ordinary entries cannot contain stacks
        graph = problem.inputs.graph
        stacks = [[graph.layers[place].node_id for place in stack] for stack in graph.stacks]
        head += f" The stacks of this run need the option layer_stacks: {json.dumps(stacks)}"
    return mapping_text(entries, head)


def only_genome(space: AllocationSpace) -> Genome:
    """Genome (tuple of cores) of the only allocation of a space. Raises InputError if a part can run on several
    cores.
    """
    if space.flexible:
        message = (
            f"no allocation is given, but {len(space.flexible)} of {len(space.parts)} parts of layers can run on"
            " several cores"
        )
        raise InputError(
            [Problem(message, path="allocation", allowed="an allocation, or a mapping with one core for each part")]
        )
    return ()


def schedule(problem: MultiCoreProblem, genome: Genome) -> ScheduleArtifact:
    """Schedule of an allocation, with its logs and the problem.

    A schedule of the causal model is checked; an error in it would be a bug of tilewright and raises AssertionError.
    Raises MappingError if the allocation has no schedule.
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
