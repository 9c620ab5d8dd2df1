"""Simulated schedules for figures, from the small systems of the scheduler's tests."""

from collections.abc import Sequence
from functools import cache

import numpy as np
from tilewright.multicore.scheduling.assembled import SystemNames
from tilewright.multicore.scheduling.problem import CostTable, NodeGraph, SchedulingProblem
from tilewright.multicore.scheduling.result import ScheduleArtifact
from tilewright.multicore.scheduling.simulate import simulate
from tilewright.results.multi.bars import ScheduleView

from tests.unit.multicore.scheduling.random_problems import random_problem
from tests.unit.multicore.scheduling.tiny_systems import (
    INPUT,
    WEIGHT,
    Link,
    Memory,
    Node,
    Piece,
    bus_system,
    make_problem,
    make_system,
)

KINDS = ("weight", "input", "activation")


def made_up_names(problem: SchedulingProblem, network: str = "net") -> SystemNames:
    """Invented names for a problem of the tests."""
    system = problem.system
    cores, links = range(system.core_count), range(len(system.link_bits_per_cycle))
    layers = range(int(problem.graph.layer.max(initial=-1)) + 1)
    return SystemNames(
        network=network,
        accelerator="system",
        core_ids=tuple(cores),
        core_names=tuple(f"{core}: core" for core in cores),
        core_files=tuple("core" for _ in cores),
        core_roles=tuple("offchip" if core == system.off_chip_core else "compute" for core in cores),
        memory_names=tuple(f"memory {memory}" for memory in range(len(system.memory_capacity_bits))),
        link_names=tuple(f"link {link}" for link in links),
        link_kinds=tuple("bus" if system.link_is_broadcast[link] else "link" for link in links),
        operand_names=("O", "I1", "I2"),
        layer_names=tuple(f"/layer{layer}/conv/Conv" for layer in layers),
        layer_operator_types=tuple("Conv" for _ in layers),
        tensor_names=KINDS,
        tensor_kinds=KINDS,
    )


def view_of(problem: SchedulingProblem, allocation: Sequence[int], network: str = "net") -> ScheduleView:
    """View of a problem's schedule. A constant is a weight if a CN reads it as operand WEIGHT, else an input."""
    graph = problem.graph
    tensor = np.where(graph.piece_producer >= 0, KINDS.index("activation"), KINDS.index("input"))
    tensor[graph.need_piece[(graph.need_operand == WEIGHT) & (graph.piece_producer[graph.need_piece] < 0)]] = 0
    schedule = simulate(problem, np.array(allocation))
    return ScheduleView(ScheduleArtifact(problem, schedule, made_up_names(problem, network), tensor))


def random_view(seed: int) -> ScheduleView:
    """A schedule of a random problem whose CNs are numbered layer by layer."""
    problem, allocation = random_problem(seed)
    return view_of(problem, allocation.tolist())


def every_category() -> ScheduleView:
    """Two cores and a DRAM on a bus of 10 bits a cycle, with data that move for each reason.

    Layer 0 on core 0 reads a weight and an input. Layer 1 on core 1 reads the result of layer 0, and layer 2 on core 0
    streams. Core 0 has room for one weight at a time, so the result of layer 0 for layer 3 is evicted and read again.
    """
    pieces = [
        *(Piece(40), Piece(30)),  # 0: weight, 1: input of CN 0
        *(Piece(20, 0), Piece(15, 0)),  # 2: for CN 1, 3: for CN 3
        Piece(25, 1, True),  # 4: a result
        *(Piece(80), Piece(10, 2), Piece(5, 3, True)),  # 5: weight of CN 2; 6: what it makes; 7: a result
    ]
    nodes = [
        Node(8, [(0, WEIGHT), (1, INPUT)], layer=0, energy_pj=2.0),
        Node(6, [(2, INPUT)], layer=1, energy_pj=3.0),
        Node(9, [(5, WEIGHT)], after=[0], layer=2, streams={INPUT: (50, 5)}, energy_pj=4.0),
        Node(5, [(3, INPUT), (6, INPUT)], layer=3, energy_pj=5.0),
    ]
    # CN 0 leaves 35 bits, CN 2 needs 90 of 110: the 15 bits for CN 3 must leave for it.
    return view_of(make_problem(bus_system(2, [110, 200]), pieces, nodes), [0, 1, 0, 0])


def broadcast() -> ScheduleView:
    """Both cores fetch one weight over a bus: one transfer with one listener."""
    nodes = [Node(6, [(0, WEIGHT)], layer=0), Node(7, [(0, WEIGHT)], layer=1)]
    return view_of(make_problem(bus_system(2, link=Link(is_broadcast=True)), [Piece(40)], nodes), [0, 1])


def within_a_core() -> ScheduleView:
    """A core with a memory for each operand: the result of CN 0 moves to the memory of inputs without a link."""
    memories = [Memory(), Memory(), Memory(), Memory(10**9, 1000, 10.0, 20.0)]
    system = make_system([[0, 1, 2], 3], memories, [Link()], {(0, 1): [0], (1, 0): [0], (0, 0): []})
    return view_of(make_problem(system, [Piece(60, 0)], [Node(5), Node(3, [(0, INPUT)], layer=1)]), [0, 0])


def pipeline(layers: int = 5, lines: int = 30, cores: int = 4) -> ScheduleView:
    """Layers of many CNs; each CN reads its layer's weights and a line of the layer before."""
    count = layers * lines
    number = np.arange(count)
    inside = number >= lines
    layer = number // lines
    need_piece = np.stack((layer, layers + np.where(inside, lines + number - lines, number)), axis=1)
    graph = NodeGraph(
        layer=layer,
        group=np.zeros(count, np.int64),
        stack=np.zeros(count, np.int64),
        cost_row=layer,
        piece_bits=np.concatenate((np.full(layers, 600), np.full(lines, 80), 40 + number % 7)),
        piece_producer=np.concatenate((np.full(layers + lines, -1), number)),
        piece_is_output=np.concatenate((np.zeros(layers + lines, np.bool_), layer == layers - 1)),
        need_start=np.arange(count + 1) * 2,
        need_piece=need_piece.reshape(-1),
        need_operand=np.tile([WEIGHT, INPUT], count),
        order_start=np.zeros(count + 1, np.int64),
        order_predecessor=np.zeros(0, np.int64),
    )
    runtime = np.full((layers, cores + 1), -1, np.int64)
    runtime[:, :cores] = 20 + 7 * np.arange(layers)[:, None] % 13 + np.arange(cores)
    streams = np.zeros((layers, cores + 1, 3), np.int64)
    costs = CostTable(runtime, runtime * 1.5, streams, streams, np.zeros_like(streams[:, 0], np.bool_))
    system = bus_system(cores, [100_000] * cores, Link(256, 0.5, True))
    return view_of(SchedulingProblem(graph, costs, system), (layer % cores).tolist())


@cache
def large_pipeline() -> ScheduleView:
    """A schedule of 10^5 CNs, made once for each process. Tests only read it."""
    return pipeline(40, 2500, 8)
