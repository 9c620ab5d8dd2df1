"""Random meshes, tori, rings, buses and hypercubes of cores, with and without multicast, and problems on them."""

import itertools
import random
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from tilewright.hardware.topologies import topology
from tilewright.multicore.scheduling.problem import CoreSystem, Integers, SchedulingProblem

from tests.unit.multicore.scheduling.random_problems import random_problem
from tests.unit.multicore.scheduling.tiny_systems import Link, Memory, make_system

Pair = tuple[int, int]
Shapes = tuple[tuple[str, Mapping[str, int]], ...]
SHAPES: Shapes = (
    ("2d_mesh", {"nb_rows": 2, "nb_cols": 2}),
    ("2d_mesh", {"nb_rows": 1, "nb_cols": 3}),
    ("2d_mesh", {"nb_rows": 3, "nb_cols": 2}),
    ("2d_torus", {"nb_rows": 3, "nb_cols": 2}),
    ("ring", {"cores": 3}),
    ("ring", {"cores": 5}),
    ("bus", {"cores": 4}),
)
LARGE_SHAPES: Shapes = (
    ("2d_mesh", {"nb_rows": 4, "nb_cols": 3}),
    ("2d_torus", {"nb_rows": 3, "nb_cols": 3}),
    ("2d_torus", {"nb_rows": 4, "nb_cols": 4}),
    ("ring", {"cores": 9}),
    ("bus", {"cores": 9}),
    ("hypercube", {"cores": 8}),
    ("hypercube", {"cores": 16}),
)
EDGE, EVERYWHERE, TWO_PLACES = "edge", "everywhere", "two places"
"""The cores that have a link to the off-chip memory: one core, all cores by one port, or two cores."""


def shortest_paths(edges: list[Pair], cores: int) -> dict[Pair, list[int]]:
    """Shortest path between each pair of cores, as positions in `edges`; of equal paths, the one over smaller core ids.

    Only the first `cores` cores pass data on.
    """
    nodes = sorted({node for edge in edges for node in edge})
    number = {edge: position for position, edge in reversed(list(enumerate(edges)))}
    found: dict[Pair, list[int]] = {}
    for source in nodes:
        ways = {source: (source,)}
        last = [source]
        while last:
            new: dict[int, tuple[int, ...]] = {}
            for node in last:
                if node != source and node >= cores:
                    continue
                for receiver in nodes:
                    if (node, receiver) in number and receiver not in ways:
                        new[receiver] = min(new.get(receiver, (*ways[node], receiver)), (*ways[node], receiver))
            ways |= new
            last = sorted(new)
        for target, way in ways.items():
            if target != source:
                found[source, target] = [number[pair] for pair in itertools.pairwise(way)]
    return found


def edges_between(name: str, sizes: Mapping[str, int], cores: int) -> list[Pair]:
    """Pairs of linked cores in a shape of network. In a hypercube, the numbers of two linked cores differ in
    one bit.
    """
    if name == "hypercube":
        return [(core, core ^ bit) for core in range(cores) for bit in (1, 2, 4, 8) if core < core ^ bit < cores]
    return list(topology(name).edges(sizes, cores))


def random_mesh(
    draw: random.Random,
    room: int,
    share: float | None = None,
    forwards: bool | None = None,
    shapes: Shapes = SHAPES,
) -> CoreSystem:
    """A network of cores, the off-chip core last.

    `share` is the part of the links with multicast; None draws it. If `forwards` is True, cores forward constants;
    if it is None, they do so in half of the networks.
    """
    name, sizes = draw.choice(shapes)
    cores = sizes["cores"] if "cores" in sizes else sizes["nb_rows"] * sizes["nb_cols"]
    off, place = cores, draw.choice((EDGE, EVERYWHERE, TWO_PLACES))
    share = draw.choice((0.0, 0.5, 1.0, 1.0)) if share is None else share
    links: list[Link] = []
    edges: list[Pair] = []
    of_edge: list[int] = []

    def add(pairs: list[Pair], is_bus: bool = False) -> None:
        links.append(Link(draw.choice((3, 8, 20)), 0.5, is_bus, draw.random() < share))
        edges.extend(pairs)
        of_edge.extend([len(links) - 1] * len(pairs))

    if name == "bus":
        add([(i, j) for i in range(cores) for j in range(cores) if i != j], is_bus=True)
    for one, other in edges_between(name, sizes, cores):
        add([(one, other)])
        add([(other, one)])
    at = {EDGE: [[draw.randrange(cores)]], EVERYWHERE: [list(range(cores))], TWO_PLACES: [[0], [cores - 1]]}[place]
    for port in at:
        into, out = [(core, off) for core in port], [(off, core) for core in port]
        if draw.random() < 0.5:
            add(into + out)
        else:
            add(into)
            add(out)
    paths = {pair: [of_edge[edge] for edge in way] for pair, way in shortest_paths(edges, cores).items()}
    memories = [Memory(room + draw.choice((0, 30, 100, 1000)), draw.choice((7, 32, 1000)), 1.25, 2.5)] * cores
    dram = Memory(10**9, 64, 10.0, 20.0)
    system = make_system(list(range(cores + 1)), [*memories, dram], links, paths)
    return replace(system, forwards_constants=draw.random() < 0.5 if forwards is None else forwards)


def problem_on_a_mesh(
    seed: int,
    nodes: int = 14,
    share: float | None = None,
    forwards: bool | None = None,
    shapes: Shapes = SHAPES,
) -> tuple[SchedulingProblem, Integers]:
    """A random problem on a random network of cores, and an allocation. Equal seeds give equal results."""
    problem, _ = random_problem(seed, nodes)
    draw = random.Random(seed + 1)
    graph, costs = problem.graph, problem.costs
    most = [
        int(graph.piece_bits[graph.need_piece[graph.need_start[cn] : graph.need_start[cn + 1]]].sum())
        + int(graph.piece_bits[graph.piece_producer == cn].sum())
        for cn in range(graph.node_count)
    ]
    system = random_mesh(draw, max([*most, 1]), share, forwards, shapes)
    cores = system.core_count
    columns = np.zeros(cores, np.int64)  # every core runs a CN as the first core did
    columns[-1] = costs.runtime_cycles.shape[1] - 1
    spread = replace(
        costs,
        **{
            name: getattr(costs, name)[:, columns].copy()
            for name in ("runtime_cycles", "on_core_energy_pj", "stream_bits", "stream_bits_per_cycle")
        },
    )
    allocation = np.array([draw.randrange(cores - 1) for _ in range(graph.node_count)])
    return SchedulingProblem(graph, spread, system), allocation
