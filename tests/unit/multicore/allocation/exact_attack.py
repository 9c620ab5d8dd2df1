"""Attacks on the exact search over allocations of random networks on random systems.

Small spaces are enumerated completely. In every space, the relaxation must not exclude allocations whose schedules are
known.
"""

import itertools
import random
from dataclasses import replace

import numpy as np
from tilewright.base.errors import MappingError
from tilewright.base.objectives import OBJECTIVES
from tilewright.multicore.allocation.evaluate import Judge
from tilewright.multicore.allocation.exact.model import NOTHING, RelaxationProgram, wanted
from tilewright.multicore.allocation.exact.moves import OnCore
from tilewright.multicore.allocation.exact.relaxation import Relaxation, relaxation_of
from tilewright.multicore.allocation.exact.search import interchangeable_cores, search_exactly
from tilewright.multicore.allocation.options import AllocationOptions
from tilewright.multicore.allocation.result import AllocationResult, allowed_cores
from tilewright.multicore.allocation.search import schedule_judge, search_allocation
from tilewright.multicore.allocation.space import AllocationSpace, Genome
from tilewright.multicore.scheduling.bounds.certificate import bound_certificate
from tilewright.multicore.scheduling.bounds.lower_bounds import LowerBounds, lower_bounds
from tilewright.multicore.scheduling.check.bound_certificate import certificate_faults
from tilewright.multicore.scheduling.options import ScheduleOptions
from tilewright.multicore.scheduling.problem import SchedulingProblem

from tests.plain.tally import Tally
from tests.unit.multicore.allocation.simple_bounds import simple_bounds
from tests.unit.multicore.scheduling.random_networks import random_network, random_network_on_equal_cores

EQUAL_CORES = 0.25
"""Share of the problems whose cores are all alike."""
ROUNDING = 1e-9
"""Relative error that is allowed for energies."""


def options_of(seed: int, **more: object) -> tuple[ScheduleOptions, AllocationOptions]:
    """Random settings of schedules and an objective, with a short genetic search."""
    draw = random.Random(seed)
    schedules = ScheduleOptions(
        scheduler_candidate_selection=draw.choice(("latency", "memory")),
        operands_to_prefetch=draw.choice(((), (1,), (1, 2))),
        share_divisor=draw.choice((1, 4, 100)),
        prefetch_results=draw.random() < 0.4,
        layers_by_off_chip=tuple(draw.sample(range(8), draw.choice((0, 0, 1, 3)))),
    )
    few = {"objective": draw.choice(tuple(OBJECTIVES)), "nb_ga_individuals": 8, "nb_ga_generations": 6, "jobs": 1}
    return schedules, AllocationOptions(exhaustive_nodes=0, **{**few, **more})  # type: ignore[arg-type]


def bounds_of(problem: SchedulingProblem, space: AllocationSpace) -> LowerBounds:
    """Lower bounds over all allocations of a space."""
    return lower_bounds(problem, allowed_cores(space, problem.system.core_count))


def value_of(result: AllocationResult) -> float:
    """The objective of the chosen allocation."""
    return OBJECTIVES[result.objective].value(result.chosen.energy_pj, float(result.chosen.latency_cycles))


def with_network(problem: SchedulingProblem, multicast: bool, forwarding: bool) -> SchedulingProblem:
    """The problem with multicast on all links, or with cores that forward constants."""
    system = problem.system
    every = np.ones(len(system.link_bits_per_cycle), np.bool_)
    if multicast:
        system = replace(system, link_is_broadcast=every, link_is_multicast=every)
    return replace(problem, system=replace(system, forwards_constants=forwarding))


def attack(
    seed: int,
    nodes: int = 60,
    enumerated: int = 30_000,
    seconds: float = 60.0,
    checked: int = 2,
    multicast: bool = False,
    forwarding: bool = False,
) -> Tally:
    """Checks one problem. Returns counts and a list of errors."""
    tally, name = Tally(), f"seed {seed}"
    of_equal_cores = random.Random(seed).random() < EQUAL_CORES
    problem, space = (random_network_on_equal_cores if of_equal_cores else random_network)(seed, nodes)
    problem = with_network(problem, multicast, forwarding)
    tally.counts["problems with interchangeable cores"] += bool(interchangeable_cores(problem, space))
    schedules, options = options_of(seed, ga_time_budget_s=seconds)
    judge, bounds = schedule_judge(problem, schedules), bounds_of(problem, space)
    allowed = allowed_cores(space, problem.system.core_count)
    weights = bound_certificate(problem, allowed, bounds)
    tally.wrong += [f"{name}: {text}" for text in certificate_faults(problem, allowed, weights)]
    tally.wrong += [f"{name}: {text}" for text in wrong_exclusions(problem, space, seed, schedules, bounds, checked)]
    try:
        block = random.Random(seed).choice((1, 8, 64, 256))
        found = search_exactly(problem, space, judge, bounds, options, block=block)
    except MappingError:
        tally.counts["problems without a schedule"] += 1
        return tally
    assert found.proof is not None
    known = "one" if not space.flexible else "few" if space.size <= enumerated else "many"
    tally.counts[f"problems with {known} allocations"] += 1
    tally.counts[f"{known}: {'proven, ' + found.proof.rule if found.proof.is_proven else 'not proven'}"] += 1
    tally.counts["evaluations"] += found.evaluations
    tally.counts["proven optimal"] += found.proof.is_proven
    tally.counts["proven with more than 40 computation nodes"] += (
        found.proof.is_proven and problem.graph.node_count > 40
    )
    if known != "few":
        return tally
    every = AllocationOptions(exhaustive_nodes=10**9, objective=options.objective, jobs=1)
    best = value_of(search_allocation(space, judge, every))
    if found.proof.is_proven and value_of(found) > best * (1 + ROUNDING):
        tally.wrong.append(f"{name}: {value_of(found)} is called the best, but {best} is less")
    if found.proof.lower_bound > best * (1 + ROUNDING):
        tally.wrong.append(f"{name}: the lower bound is {found.proof.lower_bound}, but {best} is less")
    tally.counts["equal to enumeration"] += found.proof.is_proven
    tally.wrong += [f"{name}: {text}" for text in wrong_blocks(space, judge, found)]
    return tally


def wrong_blocks(space: AllocationSpace, judge: Judge, found: AllocationResult) -> list[str]:
    """Blocks of a certificate whose stated best value differs from the best of all their schedules."""
    assert found.proof is not None
    powers, wrong = OBJECTIVES[found.objective], []
    for block in found.proof.certificate["blocks"]:
        values = []
        options = [
            [core] if core is not None else cores for core, cores in zip(block["cores"], space.choices, strict=True)
        ]
        for cores in itertools.product(*options):
            try:
                latency, energy = judge(np.array(cores)[space.part_of_cn])
            except MappingError:
                continue
            values.append(float(powers.value(energy, latency)))
        if min(values, default=None) != block["best"]:
            wrong.append(f"block {block}: the best is {min(values, default=None)}")
    return wrong


def wrong_exclusions(
    problem: SchedulingProblem,
    space: AllocationSpace,
    seed: int,
    schedules: ScheduleOptions,
    bounds: LowerBounds,
    checked: int,
) -> list[str]:
    """Allocations that the relaxation excludes although their schedules are better than the value to beat."""
    draw, judge, wrong = random.Random(seed), schedule_judge(problem, schedules), []
    relaxation = relaxation_of(problem, space)
    for number in range(10 * checked):
        genome = tuple(draw.choice(cores) for cores in space.gene_choices)
        try:
            latency, energy = judge(space.allocation(genome))
        except MappingError:
            continue
        least_latency, least_energy = simple_bounds(relaxation, space.part_cores(genome))
        if least_latency > latency or least_energy > energy * (1 + ROUNDING):
            wrong.append(f"{genome} costs {latency}, {energy}, but the relaxation {least_latency}, {least_energy}")
        if number < checked:
            wrong += _excluded(relaxation, genome, latency, energy, bounds)
    return wrong


def _excluded(relaxation: Relaxation, genome: Genome, latency: int, energy: float, bounds: LowerBounds) -> list[str]:
    """Errors of the program: objectives for which it excludes an allocation that is slightly better than asked for."""
    wrong = []
    for objective, powers in OBJECTIVES.items():
        value = powers.value(energy * (1 + 3e-9), float(latency + (powers.energy == 0)))
        if value <= 0:
            continue
        aim = wanted(powers, value, bounds.latency_cycles, bounds.energy_pj)
        program = RelaxationProgram(relaxation, aim)
        for part, core in enumerate(relaxation.space.part_cores(genome)):
            if len(relaxation.space.choices[part]) > 1:
                program.model.add(program.literals.of_core[OnCore(part, core)] == 1)
        if program.solve(10.0, 0).status == NOTHING:
            wrong.append(f"{genome} costs {latency}, {energy}, but {objective} {value} excludes it")
    return wrong
