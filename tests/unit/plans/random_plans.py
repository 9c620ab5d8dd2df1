"""Random members of the space of plans, drawn from its grammar (docs/proofs/every-plan.md), and schedules of them."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace

from tilewright.base.errors import InputError, MappingError
from tilewright.mapping.constraints import TilingEntry
from tilewright.multicore.scheduling.options import ScheduleSettings
from tilewright.multicore.scheduling.simulate import Scheduler
from tilewright.pipeline.stages.multi.items import SystemProblem
from tilewright.plans.cores import PlanFigures
from tilewright.plans.evaluate import PlanEvaluator
from tilewright.plans.plan import LayerTiles, Loops, Plan, layers_of
from tilewright.search.options import CnSearchOptions
from tilewright.workload.layer import OUTPUT, Layer
from tilewright.workload.relevancy import outputs_have_windows


def random_loops(draw: random.Random, layer: Layer, most: int) -> Loops:
    """Random loops, up to `most`, over dimensions of the output, with random numbers of tiles."""
    own = dict(layer.operand_dimensions)[OUTPUT]
    names = [name for name in own if layer.size_of.get(name, 1) > 1]
    if outputs_have_windows(layer):
        return ()
    chosen = draw.sample(names, min(len(names), draw.randint(0, most)))
    return tuple(TilingEntry(name, draw.randint(2, layer.size_of[name])) for name in chosen)


def random_plan(draw: random.Random, problem: SystemProblem) -> Plan:
    """A random plan: parts along up to three dimensions, tiles along up to two, stacks of consecutive layers, and
    rules.
    """
    nodes = layers_of(problem.workload)
    fused = draw.random() < 0.7
    tiles = []
    for node in nodes:
        assert node.layer is not None
        between = random_loops(draw, node.layer, 3) if draw.random() < 0.7 else ()
        within = random_loops(draw, node.layer, 2) or (TilingEntry(next(iter(node.layer.size_of)), 1),)
        tiles.append(LayerTiles(between, within))
    stacks: list[tuple[int, ...]] = []
    for node in nodes:
        if stacks and fused and draw.random() < 0.7:
            stacks[-1] = (*stacks[-1], node.node_id)
        else:
            stacks.append((node.node_id,))
    detours = tuple(node.node_id for node in nodes if draw.random() < 0.15)
    prefetch = ("W",) if draw.random() < 0.5 else ()
    selection = draw.choice(("latency", "memory", "progress"))
    return Plan(tuple(tiles), tuple(stacks), selection, prefetch, draw.random() < 0.5, detours)


def with_random_steps(draw: random.Random, problem: SystemProblem, plan: Plan, steps: Sequence[frozenset[str]]) -> Plan:
    """The plan with random numbers of steps along some of the reductions in `steps`.

    Steps stand inside and outside of the other loops over tiles.
    """
    tiles = []
    for node, given, names in zip(layers_of(problem.workload), plan.tiles, steps, strict=True):
        assert node.layer is not None
        sizes = {name: node.layer.size_of[name] for name in sorted(names) if node.layer.size_of[name] > 1}
        chosen = [name for name in sizes if draw.random() < 0.7 and not outputs_have_windows(node.layer)]
        loops = tuple(TilingEntry(name, draw.randint(2, sizes[name])) for name in chosen)
        within = (*given.within, *loops) if draw.random() < 0.5 else (*loops, *given.within)
        tiles.append(replace(given, within=within))
    return replace(plan, tiles=tuple(tiles))


def random_settings(draw: random.Random) -> ScheduleSettings:
    """Random settings of the kind that no search changes."""
    return ScheduleSettings(
        cn_runtime=draw.choice(("total0", "total1", "total1", "total2")), share_divisor=draw.choice((1, 4, 16))
    )


def schedules(
    draw: random.Random, problem: SystemProblem, search: CnSearchOptions, settings: ScheduleSettings, plans: int
) -> Iterator[tuple[Plan, PlanFigures]]:
    """Schedules of random plans, each with several random allocations. Plans without a schedule are left out."""
    evaluator = PlanEvaluator(problem, search, settings, "latency")
    for _ in range(plans):
        plan = random_plan(draw, problem)
        try:
            found = evaluator.multi_core_problem(plan)
        except (InputError, MappingError):
            continue
        scheduler = Scheduler(found.assembled.problem, replace(found.options, record=False))
        for _ in range(4):
            few = draw.sample(range(8), 8)[: draw.randint(1, 8)]
            cores = [draw.choice([core for core in some if core in few] or list(some)) for some in found.space.choices]
            genome = found.space.genome(tuple(cores))
            try:
                made = scheduler(found.space.allocation(genome))
            except MappingError:
                continue
            yield plan, PlanFigures(made.latency_cycles, made.energy_pj)
