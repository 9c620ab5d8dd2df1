"""Small instances of the allocation problem: chains and meshes of layers on a few unlike cores."""

import itertools
import random
from collections.abc import Sequence

from tilewright.multicore.allocation.result import Evaluation
from tilewright.multicore.allocation.search import schedule_judge
from tilewright.multicore.allocation.space import AllocationSpace, allocation_space
from tilewright.multicore.scheduling.problem import SchedulingProblem

from tests.unit.multicore.scheduling.tiny_systems import (
    INPUT,
    WEIGHT,
    Link,
    Memory,
    Node,
    Piece,
    bus_system,
    make_problem,
)

LAYERS, TILES = 7, 2


def instance(seed: int, cores: int = 3, layers: int = LAYERS, tiles: int = TILES) -> SchedulingProblem:
    """Layers of a few tiles on unlike cores on a bus. Equal seeds give equal instances.

    A layer reads one or two earlier layers tile by tile, and a weight. Some layers run on some cores only, fast cores
    need more energy, and memories hold only a part of the live data.
    """
    draw = random.Random(seed)
    speed = [draw.choice((1.0, 1.0, 2.0, 3.0)) for _ in range(cores)]
    pieces = [Piece(draw.choice((200, 400))) for _ in range(tiles)]
    nodes: list[Node] = []
    made: list[list[int]] = [list(range(tiles))]
    for layer in range(layers):
        weight = len(pieces)
        pieces.append(Piece(draw.choice((100, 500, 1500))))
        work = draw.randint(20, 200)
        able = [core for core in range(cores) if draw.random() < 0.85] or [draw.randrange(cores)]
        sources = sorted({draw.randint(max(0, layer - 2), layer) for _ in range(draw.randint(1, 2))})
        outputs = []
        for tile in range(tiles):
            cycles = {core: max(1, round(work / speed[core] * draw.uniform(0.8, 1.2))) for core in able}
            needs = [(weight, WEIGHT), *((made[source][tile], INPUT) for source in sources)]
            outputs.append(len(pieces))
            pieces.append(Piece(draw.choice((100, 300)), len(nodes), layer == layers - 1))
            nodes.append(Node(cycles, needs, layer=layer, energy_pj=work * draw.uniform(0.5, 1.5)))
        made.append(outputs)
    capacities = [draw.choice((3000, 5000, 8000)) for _ in range(cores)]
    link = Link(draw.choice((4, 16, 64)), 0.2, draw.random() < 0.5)
    problem = make_problem(bus_system(cores, capacities, link, Memory(10**9, 64, 10.0, 20.0)), pieces, nodes)
    for core in range(cores):
        problem.costs.on_core_energy_pj[:, core] *= speed[core]
    return problem


def brute_force(problem: SchedulingProblem, space: AllocationSpace) -> list[Evaluation]:
    """Every allocation with the cost of its schedule, computed by the scheduler alone."""
    judge = schedule_judge(problem)
    return [Evaluation(genome, *judge(space.allocation(genome))) for genome in itertools.product(*space.gene_choices)]


def non_dominated(points: Sequence[Evaluation]) -> set[tuple[int, float]]:
    """(latency, energy) of the points that no other point dominates, by comparing all pairs."""
    values = {point.objectives for point in points}
    return {
        (latency, energy)
        for latency, energy in values
        if not any(other != (latency, energy) and other[0] <= latency and other[1] <= energy for other in values)
    }


def space_of(problem: SchedulingProblem) -> AllocationSpace:
    """The space of allocations without requests from a mapping file."""
    return allocation_space(problem)
