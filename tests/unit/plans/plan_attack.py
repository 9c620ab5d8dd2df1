"""Attacks on the lower bounds of every plan: random networks, systems and members of the grammar of plans.

A hill climb over allocations seeks schedules as close to the bounds as possible.
"""

import math
import random
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from tilewright.base.errors import InputError, MappingError
from tilewright.multicore.scheduling.options import ScheduleSettings
from tilewright.multicore.scheduling.schedule import Schedule
from tilewright.multicore.scheduling.simulate import Scheduler
from tilewright.pipeline.stages.multi.items import SystemProblem
from tilewright.pipeline.stages.multi.run import MultiCoreProblem
from tilewright.plans.evaluate import PlanEvaluator
from tilewright.plans.plan import Plan, layers_of
from tilewright.plans.tiling_bounds.bound import TilingBounds, summed_dimensions, tiling_bounds
from tilewright.search.options import CnSearchOptions

from tests.plain.tally import Tally
from tests.unit.multi_core.random_grids import random_core_entries, random_small_network, random_wide_system
from tests.unit.multi_core.runs import write_accelerator
from tests.unit.plans.cases import system_problem
from tests.unit.plans.least_rows import LeastRows
from tests.unit.plans.random_plans import random_plan, random_settings, with_random_steps
from tests.unit.plans.test_reductions import with_random_cuts

ROUNDING = 1e-12
"""Relative error that is allowed for the energy of a schedule, a sum of floating-point numbers."""
LIMITS = (1, 1.01, 1.1, 1.5, 2, 4, 1000000)
"""Limits of the ratio latency / bound; schedules within each limit are counted."""


def wide_problem(draw: random.Random, folder: Path) -> SystemProblem:
    """A random network on a random system; some layers may run only on some cores.

    Raises InputError if a layer then has no core.
    """
    network, system = random_small_network(draw), random_wide_system(draw)
    mapping = random_core_entries(draw, network, len(system["cores"])) if draw.random() < 0.5 else None
    return system_problem(network.save(folder), write_accelerator(folder / "hw", system), mapping)


def simple_plan(draw: random.Random, problem: SystemProblem) -> Plan:
    """A random plan, or one whose layers have few parts or none, as such plans come nearer to the bounds."""
    plan = random_plan(draw, problem)
    kept = draw.choice((0.0, 0.2, 1.0))
    tiles = tuple(one if draw.random() < kept else replace(one, between=()) for one in plan.tiles)
    alone = plan.stacks if draw.random() < 0.5 else tuple((node,) for stack in plan.stacks for node in stack)
    return replace(plan, tiles=tiles, stacks=alone)


def attack(seed: int, plans: int = 2, schedules: int = 16) -> Tally:
    """Runs one trial; returns counts and every schedule that is below a bound.

    In a tenth of the trials, costs of tiles come from the cost model. In the others, tiles take only their least work.
    """
    draw, tally = random.Random(seed), Tally()
    with tempfile.TemporaryDirectory() as folder:
        try:
            trial = _trial(draw, seed, Path(folder))
        except (InputError, MappingError) as error:
            tally.counts[f"no case: {type(error).__name__}"] += 1
            return tally
        tally.counts["trials"] += 1
        tally.counts["trials with cut reductions"] += trial.is_cut
        tally.counts["trials with costs of the cost model"] += trial.is_costed
        if (trial.bounds.latency_cycles > 0) != bool(layers_of(trial.problem.workload)):
            tally.wrong.append(f"seed {seed}: bound of {trial.bounds.latency_cycles} cycles")
        ratio = min(_nearest(draw, trial, schedules, tally) for _ in range(plans))
    if ratio < math.inf:
        tally.counts[f"latency at most {next(limit for limit in LIMITS if ratio <= limit):g} times its bound"] += 1
    else:
        tally.counts["trials without a schedule"] += 1
    return tally


@dataclass(frozen=True)
class _Trial:
    """A problem with its bounds."""

    seed: int
    problem: SystemProblem
    is_cut: bool
    steps: list[frozenset[str]]
    """Reductions that plans cut into steps on one core, as one set for each layer."""
    is_costed: bool
    search: CnSearchOptions
    settings: ScheduleSettings
    bounds: TilingBounds


def _trial(draw: random.Random, seed: int, folder: Path) -> _Trial:
    problem, is_cut, is_costed = wide_problem(draw, folder), draw.random() < 0.4, draw.random() < 0.1
    search = CnSearchOptions(lpf_limit=2, objective=draw.choice(("latency", "energy")))
    settings = random_settings(draw)
    summed = [names if draw.random() < 0.8 else frozenset() for names in summed_dimensions(problem)]
    steps = summed if not is_cut and draw.random() < 0.5 else [frozenset[str]() for _ in summed]
    bounds = tiling_bounds(problem, search.model, settings, is_cut, steps)
    return _Trial(seed, problem, is_cut, steps, is_costed, search, settings, bounds)


def _nearest(draw: random.Random, trial: _Trial, schedules: int, tally: Tally) -> float:
    """Least ratio latency / bound of the schedules of one random plan; infinite if the plan has no schedule."""
    cut = with_random_cuts(draw, trial.problem) if trial.is_cut else trial.problem
    plan = simple_plan(draw, cut)
    if any(trial.steps):
        plan = with_random_steps(draw, trial.problem, plan, trial.steps)
        tally.counts["plans with reductions in steps"] += 1
    rows = None if trial.is_costed else LeastRows(cut, trial.search.model, trial.settings.cn_runtime, trial.seed)
    evaluator = PlanEvaluator(cut, trial.search, trial.settings, "latency", rows)
    try:
        found = evaluator.multi_core_problem(plan)
    except (InputError, MappingError):
        tally.counts["plans without computation nodes"] += 1
        return math.inf
    tally.counts["plans"] += 1
    layers = [node.layer for node in layers_of(cut.workload) if node.layer is not None]
    operands = sorted({operand for layer in layers for operand in layer.input_operands})
    best, current = math.inf, _spread(draw, found)
    for _ in range(schedules):
        tried = _spread(draw, found) if best == math.inf or draw.random() < 0.1 else _moved(draw, found, current)
        rules = _other_rules(draw, plan, operands) if draw.random() < 0.3 else plan
        other = found if rules is plan else evaluator.multi_core_problem(rules)
        scheduler = Scheduler(other.assembled.problem, replace(other.options, record=False))
        try:
            made = scheduler(found.space.allocation(found.space.genome(tuple(tried))))
        except MappingError:
            tally.counts["allocations without a schedule"] += 1
            continue
        tally.counts["schedules"] += 1
        name = f"seed {trial.seed}, {rules}, cores {tried}"
        tally.wrong += [f"{name}: {text}" for text in wrong_bounds(trial.bounds, made)]
        ratio = made.latency_cycles / max(1, trial.bounds.latency_cycles)
        if ratio <= best:
            best, current, found, plan = ratio, tried, other, rules
    return best


def wrong_bounds(bounds: TilingBounds, made: Schedule) -> Iterator[str]:
    """One text for each bound that the schedule violates."""
    for term, cycles in bounds.latency_terms.items():
        if cycles > made.latency_cycles:
            yield f"{term} {cycles}, but a schedule takes {made.latency_cycles}"
    if bounds.energy_pj > made.energy_pj * (1 + ROUNDING):
        yield f"{bounds.energy_pj} pJ, but a schedule takes {made.energy_pj}"


def _spread(draw: random.Random, found: MultiCoreProblem) -> list[int]:
    """Core of each part: one of a few random cores, if the part may run there."""
    few = draw.sample(range(8), 8)[: draw.randint(1, 8)]
    return [draw.choice([one for one in some if one in few] or list(some)) for some in found.space.choices]


def _moved(draw: random.Random, found: MultiCoreProblem, cores: list[int]) -> list[int]:
    """The cores, changed for one or two parts."""
    tried = list(cores)
    for _ in range(draw.choice((0, 1, 1, 2)) if tried else 0):
        part = draw.randrange(len(tried))
        tried[part] = draw.choice(found.space.choices[part])
    return tried


def _other_rules(draw: random.Random, plan: Plan, operands: list[str]) -> Plan:
    """The plan with other rules of the schedule; tiles and stacks stay."""
    detours = tuple(node for stack in plan.stacks for node in stack if draw.random() < draw.choice((0.0, 0.2, 0.8)))
    return replace(
        plan,
        selection=draw.choice(("latency", "memory", "progress")),
        prefetch=tuple(name for name in operands if draw.random() < 0.5),
        prefetch_results=draw.random() < 0.5,
        by_off_chip=detours,
    )
