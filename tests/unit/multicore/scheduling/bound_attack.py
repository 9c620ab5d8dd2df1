"""Attacks on the lower bounds: random problems, settings and sets of allowed cores.

A hill climb over allocations, and over numbers of the problem, seeks schedules as near to the bounds as possible.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from tilewright.base.errors import InputError, MappingError
from tilewright.multicore.scheduling.bounds.classes import cn_classes
from tilewright.multicore.scheduling.bounds.limits import system_limits
from tilewright.multicore.scheduling.bounds.lower_bounds import LowerBounds, lower_bounds
from tilewright.multicore.scheduling.bounds.paths import SplitBounds, paths_through
from tilewright.multicore.scheduling.bounds.work import possible_moves
from tilewright.multicore.scheduling.options import ScheduleOptions
from tilewright.multicore.scheduling.problem import Booleans, Integers, SchedulingProblem
from tilewright.multicore.scheduling.schedule import Schedule
from tilewright.multicore.scheduling.simulate import Scheduler

from tests.plain.tally import Tally
from tests.unit.multicore.scheduling.random_networks import mutated, random_network

ROUNDING = 1e-12
"""Relative error that is allowed for the energy of a schedule, a sum of floating-point numbers."""

LIMITS = (1, 1.01, 1.1, 1.5, 2, 1000000)
"""Limits of the ratio latency / bound; schedules within each limit are counted."""


@dataclass(frozen=True, eq=False)
class Target:
    """A problem whose bounds are attacked."""

    problem: SchedulingProblem
    allowed: Booleans
    """[cn, core] whether the core is allowed"""
    part_of_cn: Integers
    """[cn] number of the part; CNs of one part run on one core"""
    options: ScheduleOptions
    bounds: LowerBounds

    def choices(self) -> list[list[int]]:
        """[part] cores that are allowed for all CNs of the part."""
        parts = int(self.part_of_cn.max()) + 1
        return [np.flatnonzero(self.allowed[self.part_of_cn == part].all(axis=0)).tolist() for part in range(parts)]


def target(seed: int) -> Target:
    """A random target. Equal seeds give equal targets."""
    draw = random.Random(seed)
    problem, space = random_network(seed, draw.choice((4, 12, 30, 60)))
    part_of_cn = space.part_of_cn if draw.random() < 0.7 else np.arange(problem.graph.node_count)
    allowed = np.zeros((problem.graph.node_count, problem.system.core_count), np.bool_)
    how = draw.choice(("all", "some", "one"))
    for part in range(int(part_of_cn.max()) + 1):
        cns = np.flatnonzero(part_of_cn == part)
        cores = list(space.choices[int(space.part_of_cn[cns[0]])])
        kept = {"all": len(cores), "some": draw.randint(1, len(cores)), "one": 1}[how]
        allowed[np.ix_(cns, draw.sample(cores, kept))] = True
    options = ScheduleOptions(
        scheduler_candidate_selection=draw.choice(("latency", "memory", "progress")),
        operands_to_prefetch=draw.choice(((), (1,), (2,), (1, 2))),
        share_divisor=draw.choice((1, 2, 4, 100)),
        prefetch_results=draw.random() < 0.4,
        layers_by_off_chip=tuple(draw.sample(range(12), draw.choice((0, 0, 1, 3, 6)))),
        record=False,
        stack_order=draw.choice(("priority", "barrier")),
    )
    return Target(problem, allowed, part_of_cn, options, lower_bounds(problem, allowed))


def attack(seed: int, evaluations: int = 60, mutations: int = 1) -> Tally:
    """Runs one trial; returns counts and every schedule that is below a bound."""
    draw, aim, tally = random.Random(-seed - 1), target(seed), Tally()
    tally.counts["trials"] += 1
    chosen = _climb(draw, aim, evaluations, tally, f"seed {seed}")
    for step in range(mutations if chosen is not None and draw.random() < 0.5 else 0):
        assert chosen is not None
        try:
            problem = mutated(draw, aim.problem)
            other = replace(aim, problem=problem, bounds=lower_bounds(problem, aim.allowed))
        except InputError:
            continue
        found = _climb(draw, other, evaluations // 4, tally, f"seed {seed}, {step + 1} mutations", chosen[1])
        if found is not None and found[0] < chosen[0]:
            aim, chosen = other, found
    if chosen is not None:
        tally.wrong += [f"seed {seed}: {text}" for text in _wrong_of_cn(draw, aim, chosen[1])]
        tally.counts[f"latency at most {next(limit for limit in LIMITS if chosen[0] <= limit):g} times its bound"] += 1
    return tally


def _climb(
    draw: random.Random, aim: Target, evaluations: int, tally: Tally, name: str, start: list[int] | None = None
) -> tuple[float, list[int]] | None:
    """Best pair (latency over its bound, core of each part) of a hill climb; None if no allocation has a schedule."""
    choices, scheduler = aim.choices(), Scheduler(aim.problem, aim.options)
    current = start or [draw.choice(cores) for cores in choices]
    best: tuple[float, list[int]] | None = None
    for _ in range(evaluations):
        tried = list(current)
        for _ in range(draw.choice((0, 1, 1, 2)) if best is not None else 0):
            part = draw.randrange(len(choices))
            tried[part] = draw.choice(choices[part])
        try:
            schedule = scheduler(np.array(tried)[aim.part_of_cn])
        except MappingError:
            tally.counts["allocations without a schedule"] += 1
            continue
        tally.counts["schedules"] += 1
        tally.wrong += [f"{name}, cores {tried}: {text}" for text in wrong_bounds(aim.bounds, schedule)]
        ratio = schedule.latency_cycles / max(aim.bounds.if_copied.latency_cycles, 1)
        if best is None or ratio <= best[0]:
            best, current = (ratio, tried), tried
    return best


def wrong_bounds(bounds: LowerBounds, schedule: Schedule) -> Iterator[str]:
    """One text for each bound that the schedule violates."""
    for kind, terms in (("", bounds), ("if copied ", bounds.if_copied)):
        for name, cycles in vars(terms).items():
            if name.endswith("_cycles") and cycles > schedule.latency_cycles:
                yield f"{kind}{name} {cycles}, but a schedule takes {schedule.latency_cycles}"
    if bounds.energy_pj > schedule.energy_pj * (1 + ROUNDING):
        yield f"energy_pj {bounds.energy_pj}, but a schedule takes {schedule.energy_pj}"


def _wrong_of_cn(draw: random.Random, aim: Target, cores: list[int]) -> Iterator[str]:
    """Yield bounds that the schedule of an allocation violates.

    The bounds are those around one CN and, in half of the draws, those for the allocated cores.
    """
    problem, allocation = aim.problem, np.array(cores)[aim.part_of_cn]
    schedule = Scheduler(problem, aim.options)(allocation)
    own = np.zeros_like(aim.allowed)
    own[np.arange(len(allocation)), allocation] = True
    allowed = draw.choice((aim.allowed, own))
    if allowed is own:
        yield from wrong_bounds(lower_bounds(problem, own), schedule)
    classes, limits = cn_classes(problem, allowed, may_stream=draw.random() < 0.5), system_limits(problem.system)
    paths, moves = paths_through(problem, classes, limits), possible_moves(problem, classes, with_streamed=True)
    split, cn = SplitBounds(problem, classes, limits, paths, moves), draw.randrange(len(allocation))
    before, after = paths.around(cn)
    start = max(int(paths.head[cn]), split.cycles_before(cn, before, 20))
    rest = max(int(paths.tail[cn]), split.cycles_after(cn, after, 20))
    if start > schedule.start_cycles[cn]:
        yield f"CN {cn} starts at {schedule.start_cycles[cn]}, not before {start}"
    if schedule.end_cycles[cn] + rest > schedule.latency_cycles:
        yield f"CN {cn} ends at {schedule.end_cycles[cn]} of {schedule.latency_cycles}, and {rest} cycles follow"
