"""Random networks on random systems, with a choice of cores.

A layer consists of tiles, which pass data to tiles of later layers. Cores differ from each other and stream operands
that do not fit. Some cores share a memory, some pairs of cores have no path, and buses broadcast.
"""

import random
from dataclasses import replace

import numpy as np
from tilewright.base.errors import InputError
from tilewright.multicore.allocation.space import AllocationSpace, allocation_space
from tilewright.multicore.scheduling.problem import CoreSystem, CostTable, SchedulingProblem

from tests.unit.multicore.scheduling.random_problems import passed_on
from tests.unit.multicore.scheduling.tiny_systems import (
    INPUT,
    WEIGHT,
    Link,
    Memory,
    Node,
    Piece,
    make_problem,
    make_system,
)

Paths = dict[tuple[int, int], list[int]]
_OF_SYSTEM = ("memory_capacity_bits", "memory_read_bits", "memory_write_bits", "link_bits_per_cycle")
LAYOUTS = ("bus", "star", "port and bus", "private links", "two share", "operand memories", "ring")
_TRIES = 20
"""Number of times that memories are doubled until every part has a core."""


def random_network(seed: int, nodes: int = 60, parts: int = 16) -> tuple[SchedulingProblem, AllocationSpace]:
    """A random problem and its space, with at most `nodes` CNs and about `parts` parts. Equal seeds give equal
    results.
    """
    draw = random.Random(seed)
    cores = draw.choice((2, 2, 3, 3, 4))
    layers = draw.randint(2, max(2, min(parts, nodes)))
    tiles = draw.randint(1, max(1, nodes // layers))
    pieces, specs = _layers(draw, cores, layers, tiles)
    largest = max(
        sum(pieces[piece].bits for piece, _ in node.needs) + sum(piece.bits for piece in pieces if piece.producer == cn)
        for cn, node in enumerate(specs)
    )
    system = _system(draw, cores, max(largest, 1))
    for _ in range(_TRIES):
        problem = _unlike_cores(random.Random(seed), make_problem(system, pieces, specs))
        try:
            return problem, allocation_space(problem)
        except InputError:
            system = replace(system, memory_capacity_bits=system.memory_capacity_bits * 2)
    raise AssertionError(f"seed {seed}: no core for some part")


def random_network_on_equal_cores(
    seed: int, nodes: int = 60, parts: int = 16
) -> tuple[SchedulingProblem, AllocationSpace]:
    """A random network on interchangeable cores on a bus, with the costs of the first core that can run a CN."""
    problem, _ = random_network(seed, nodes, parts)
    draw, cores = random.Random(seed), problem.system.core_count - 1
    costs = problem.costs
    first = np.argmax(costs.runtime_cycles[:, :cores] > 0, axis=1)
    rows = np.arange(len(first))
    equal = {}
    for name, table in vars(costs).items():
        equal[name] = table.copy()
        if name != "reads_gaps":
            equal[name][:, :cores] = table[rows, first][:, None]
    memory = Memory(int(problem.system.memory_capacity_bits[:-1].max()) * 2, draw.choice((4, 64)), 1.0, 2.0)
    link = Link(draw.choice((4, 16, 64)), 0.5, draw.random() < 0.5)
    pairs = {(i, j): [0] for i in range(cores + 1) for j in range(cores + 1) if i != j}
    dram = Memory(10**9, 64, 10.0, 20.0)
    system = make_system(list(range(cores + 1)), [*[memory] * cores, dram], [link], pairs)
    widths = {"memory_capacity_bits": np.maximum(system.memory_capacity_bits, 10**5)}
    problem = SchedulingProblem(problem.graph, CostTable(**equal), replace(system, **widths))
    return problem, allocation_space(problem)


def _layers(draw: random.Random, cores: int, layers: int, tiles: int) -> tuple[list[Piece], list[Node]]:
    """Layers of tiles. Each layer reads weights and one or two earlier layers: tile by tile with a halo, or all
    tiles.
    """
    size = draw.choice((20, 100, 600))
    pieces = [Piece(draw.randint(1, size)) for _ in range(tiles)]
    nodes: list[Node] = []
    made = [list(range(tiles))]
    whole, chained, output = draw.random() < 0.3, draw.random() < 0.6, draw.choice((0.0, 0.1))
    for layer in range(layers):
        groups = draw.choice((1, 1, 2)) if tiles > 1 else 1
        weights = []
        for _ in range(groups):
            weights.append(len(pieces))
            pieces.append(Piece(draw.randint(1, 3 * size)))
        sources = sorted({draw.randint(max(0, layer - 2), layer) for _ in range(draw.randint(1, 2))})
        able = [core for core in range(cores) if draw.random() < 0.85] or [draw.randrange(cores)]
        work = draw.randint(1, draw.choice((4, 40, 200)))
        outputs: list[int] = []
        first = len(nodes)
        for tile in range(tiles):
            needs = {(weights[tile % groups], WEIGHT)} if draw.random() < 0.8 else set()
            for source in sources:
                read = range(tiles) if whole else range(tile, min(tiles, tile + 2))
                needs |= {(made[source][place], INPUT) for place in read}
            cycles = {core: max(1, round(work * draw.uniform(0.4, 2.0))) for core in able}
            before = first + tile - groups
            after = [before] if chained and before >= first else []
            outputs.append(len(pieces))
            is_output = layer == layers - 1 or draw.random() < output
            pieces.append(Piece(draw.randint(1, size), len(nodes), is_output))
            nodes.append(Node(cycles, sorted(needs), after, layer, tile % groups, layer // 3, draw.random() * work))
        made.append(outputs)
    return pieces, nodes


def _unlike_cores(draw: random.Random, problem: SchedulingProblem) -> SchedulingProblem:
    """The problem with cores of different energy; on some cores, operands of some layers stream."""
    graph, costs = problem.graph, problem.costs
    stream_bits, rate = costs.stream_bits.copy(), costs.stream_bits_per_cycle.copy()
    energy = costs.on_core_energy_pj * np.array([draw.choice((0.5, 1.0, 1.0, 3.0)) for _ in costs.runtime_cycles[0]])
    share = draw.choice((0.0, 0.05, 0.2))
    for layer in range(int(graph.layer.max()) + 1):
        cns = np.flatnonzero(graph.layer == layer)
        for core in range(problem.system.core_count - 1):
            for operand in range(stream_bits.shape[2]):
                if draw.random() < share:
                    stream_bits[graph.cost_row[cns], core, operand] = draw.randint(1, 600)
                    rate[graph.cost_row[cns], core, operand] = draw.randint(1, 40)
    costs = replace(costs, stream_bits=stream_bits, stream_bits_per_cycle=rate, on_core_energy_pj=energy)
    return replace(problem, costs=costs)


def _system(draw: random.Random, cores: int, largest: int) -> CoreSystem:
    """A system whose memories hold about as much as one CN needs, or a few times as much."""
    layout = draw.choice(LAYOUTS)
    off = cores
    pairs = [(i, j) for i in range(cores + 1) for j in range(cores + 1) if i != j]
    widths = draw.choice(((4,), (1, 8), (8, 64), (1000,)))

    def memory() -> Memory:
        capacity = max(1, round(largest * draw.choice((0.5, 1.0, 1.0, 2.0, 8.0))))
        return Memory(capacity, 8, draw.uniform(0.1, 4.0), draw.uniform(0.1, 4.0))

    def link() -> Link:
        return Link(draw.choice(widths), draw.choice((0.0, 0.2, 2.0)), draw.random() < 0.4)

    dram = Memory(10**9, 8, draw.uniform(1.0, 40.0), draw.uniform(1.0, 40.0))
    rows: list[int | list[int]] = list(range(cores + 1))
    memories = [memory() for _ in range(cores)]
    paths: Paths
    if layout == "bus":
        links, paths = [link()], {pair: [0] for pair in pairs}
    elif layout == "star":
        links, paths = [link() for _ in range(cores + 1)], {(i, j): [i, j] for i, j in pairs}
    elif layout == "port and bus":
        links = [link(), link()]
        paths = {(i, j): [0, 1] if i == off else [1, 0] if j == off else [1] for i, j in pairs}
    elif layout == "private links":
        links = [link() for _ in range(len(pairs) + 1)]
        port = len(pairs)
        paths = {pair: [number, *[port] * (off in pair)] for number, pair in enumerate(pairs)}
    elif layout == "two share":
        rows = [max(core - 1, 0) for core in range(cores + 1)]
        memories = memories[1:]
        links = [link(), link()]
        paths = {(i, j): [] if {i, j} == {0, 1} else [0] if off in (i, j) else [1] for i, j in pairs}
    elif layout == "operand memories":
        rows = [[3 * core, 3 * core + 1, 3 * core + draw.choice((1, 2))] for core in range(cores)]
        rows.append(3 * cores)
        memories = [memory() for _ in range(3 * cores)]
        links, paths = [link(), link()], {(i, j): [0, 1] if i == off else [0] for i, j in pairs}
        if draw.random() < 0.5:
            rows, memories = passed_on(cores), memories[cores - 1 :]
    else:
        links = [link() for _ in range(cores + 1)]
        paths = {(i, j): [place % (cores + 1) for place in range(i, j if j > i else j + cores + 1)] for i, j in pairs}
    share = draw.choice((1.0, 1.0, 0.6, 0.0))
    kept = {pair: path for pair, path in paths.items() if off in pair or draw.random() < share or not path}
    system = make_system(rows, [*memories, dram], links, kept)
    words = {name: _words(draw, len(memories) + 1) for name in ("memory_read_bits", "memory_write_bits")}
    return replace(system, **words)


def _words(draw: random.Random, memories: int) -> np.ndarray:
    return np.array([draw.choice((4, 16, 64, 1000)) for _ in range(memories)], np.int64)


def _scaled(draw: random.Random, values: np.ndarray, least: int = 1) -> np.ndarray:
    """Values with one of them changed; zeros and -1 stay."""
    changed = values.copy()
    places = np.flatnonzero(values > 0)
    if len(places):
        place = draw.choice(places.tolist())
        changed.flat[place] = max(
            least, round(float(values.flat[place]) * draw.choice((0.25, 0.5, 0.9, 1.1, 2.0, 4.0)))
        )
    return changed


def mutated(draw: random.Random, problem: SchedulingProblem) -> SchedulingProblem:
    """The problem with one number changed: bits, widths, words, capacities, runtimes or streams."""
    graph, costs, system = problem.graph, problem.costs, problem.system
    name = draw.choice(("piece_bits", "runtime_cycles", "stream_bits", "stream_bits_per_cycle", *_OF_SYSTEM))
    for part, field in ((graph, "graph"), (costs, "costs"), (system, "system")):
        if hasattr(part, name):
            return replace(problem, **{field: replace(part, **{name: _scaled(draw, getattr(part, name))})})
    raise AssertionError(name)
