"""Schedules of random plans on wide systems with multicast, forwarding and sums over cores.

The checker finds no fault in them, and a second scheduler in plain Python makes equal schedules.
"""

import random
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
from tilewright.base.errors import InputError, MappingError
from tilewright.multicore.scheduling.check.rules import check_schedule
from tilewright.multicore.scheduling.options import ScheduleOptions
from tilewright.multicore.scheduling.problem import Integers, SchedulingProblem
from tilewright.multicore.scheduling.schedule import Schedule
from tilewright.multicore.scheduling.simulate import simulate
from tilewright.pipeline.stages.multi.items import SystemProblem
from tilewright.plans.evaluate import PlanEvaluator
from tilewright.search.options import CnSearchOptions

from tests.plain.tally import Tally
from tests.unit.multi_core.random_grids import random_small_network, random_wide_system
from tests.unit.multi_core.runs import write_accelerator
from tests.unit.multicore.scheduling.slow_scheduler import SlowScheduler
from tests.unit.plans.cases import system_problem
from tests.unit.plans.least_rows import LeastRows
from tests.unit.plans.plan_attack import simple_plan
from tests.unit.plans.random_plans import random_settings
from tests.unit.plans.test_reductions import with_random_cuts

MOST_NODES = 60
"""Largest number of computation nodes for which the plain scheduler still takes little time."""


def attack(seed: int, schedules: int = 4) -> Tally:
    """Faults of the schedules of one random plan, and counts of the schedules with each kind of content."""
    draw, tally = random.Random(seed), Tally()
    with tempfile.TemporaryDirectory() as folder:
        try:
            problem = _problem(draw, Path(folder))
            settings, search = random_settings(draw), CnSearchOptions(lpf_limit=2)
            rows = LeastRows(problem, search.model, settings.cn_runtime, seed)
            plan = simple_plan(draw, problem)
            found = PlanEvaluator(problem, search, settings, "latency", rows).multi_core_problem(plan)
        except (InputError, MappingError):
            tally.counts["plans without a problem"] += 1
            return tally
    scheduling = found.assembled.problem
    if scheduling.graph.node_count > MOST_NODES:
        tally.counts["plans with too many nodes"] += 1
        return tally
    options = replace(found.options, stack_order=draw.choice(("priority", "priority", "barrier")), record=True)
    has_sums = any("#sum" in node.name for node in problem.workload.nodes)
    shapes = {entry.reduction.shape for entry in problem.mapping.entries if entry.reduction is not None and has_sums}
    for _ in range(schedules):
        cores = tuple(draw.choice(some) for some in found.space.choices)
        allocation = found.space.allocation(found.space.genome(cores))
        try:
            made = simulate(scheduling, allocation, options)
        except MappingError:
            tally.counts["allocations without a schedule"] += 1
            continue
        faults = [*check_schedule(scheduling, made, options.has_barriers)]
        faults += unlike_the_plain_one(scheduling, allocation, options, made)
        tally.wrong += [f"seed {seed}, cores {cores}: {text}" for text in faults]
        kinds = ["or without sums", *shapes, *_kinds(scheduling, made)]
        tally.counts.update({f"schedules with {text}": 1 for text in kinds})
    return tally


def _problem(draw: random.Random, folder: Path) -> SystemProblem:
    """A random network, in which some reductions are cut, on a random system with multicast or forwarding."""
    network, system = random_small_network(draw), random_wide_system(draw)
    system |= draw.choice(({"multicast": True}, {"forwarding": True}, {"multicast": True, "forwarding": True}))
    problem = system_problem(network.save(folder), write_accelerator(folder / "hw", system))
    return with_random_cuts(draw, problem)


def unlike_the_plain_one(
    problem: SchedulingProblem, allocation: Integers, options: ScheduleOptions, made: Schedule
) -> Iterator[str]:
    """Differences from the schedule of the plain scheduler."""
    slow = SlowScheduler(problem, allocation, options).run()
    if made.transfers.tolist() != slow.transfers:
        yield "other transfers than those of the plain scheduler"
    if (made.start_cycles.tolist(), made.end_cycles.tolist()) != (slow.start, slow.end):
        yield "other times of nodes than those of the plain scheduler"
    if made.latency_cycles != slow.now:
        yield f"{made.latency_cycles} cycles, but {slow.now} in the plain scheduler"
    if made.peak_bits.tolist() != list(slow.peak.values()):
        yield "other peaks of memories than those of the plain scheduler"
    for name in ("link_bits", "words_read", "words_written"):
        if not np.array_equal(getattr(made, name), getattr(slow, name)):
            yield f"other {name} than those of the plain scheduler"


def _kinds(problem: SchedulingProblem, made: Schedule) -> Iterator[str]:
    """Names of the kinds of content in a schedule."""
    moves = made.transfers
    if np.any(moves["broadcast_of"] >= 0):
        yield "receivers that listen"
        if np.any(problem.system.multicast):
            yield "receivers that listen and multicast"
    is_constant = problem.graph.piece_producer[moves["piece"]] < 0
    if np.any(is_constant & (moves["source_core"] != problem.system.off_chip_core)):
        yield "forwarded constants"
    if np.any(problem.costs.stream_bits[problem.graph.cost_row] > 0):
        yield "streams"
    if len(moves) and np.any(moves["source_core"] != problem.system.off_chip_core):
        yield "moves between cores or to the off-chip memory"
