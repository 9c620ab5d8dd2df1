"""Random scheduling problems that have a schedule: DAGs of a few CNs on systems of a few cores."""

import random
from dataclasses import replace

import numpy as np
from tilewright.multicore.scheduling.problem import CoreSystem, Integers, SchedulingProblem

from tests.unit.multicore.scheduling.tiny_systems import Link, Memory, Node, Piece, make_problem, make_system

LAYOUTS = ("bus", "shared memory", "private links", "port and bus", "operand memories", "two share")
EVERY, SOME, NONE = 1.0, 0.6, 0.0
"""Share of the paths that a system keeps, among paths that its CNs do not need."""


def random_problem(seed: int, nodes: int = 12) -> tuple[SchedulingProblem, Integers]:
    """A random problem and an allocation. Equal seeds give equal results."""
    draw = random.Random(seed)
    count = draw.randint(1, nodes)
    pieces: list[Piece] = [Piece(draw.choice((1, 7, 40, 64, 100))) for _ in range(draw.randint(1, 5))]
    constants, specs = len(pieces), []
    for cn in range(count):
        candidates = range(len(pieces))
        needs = sorted({(draw.choice(candidates), draw.choice((1, 2))) for _ in range(draw.randint(0, 4))})
        after = [draw.randrange(cn)] if cn and draw.random() < 0.2 else []
        streams = {}
        for operand in (0, 1, 2):
            if draw.random() < 0.1:
                streams[operand] = (draw.randint(1, 300), draw.randint(1, 40))
        for _ in range(draw.randint(0, 2)):
            pieces.append(Piece(draw.choice((1, 13, 50, 90)), cn, draw.random() < 0.2))
        layer, group = cn // 3, draw.randint(0, 1)
        specs.append(Node(draw.randint(1, 30), needs, after, layer, group, cn // 6, 1.5, streams))
    assert constants <= len(pieces)
    cores = draw.randint(1, 3)
    room = max(
        sum(pieces[piece].bits for piece, _ in node.needs) + sum(piece.bits for piece in pieces if piece.producer == cn)
        for cn, node in enumerate(specs)
    )
    system = random_system(draw, cores, max(room, 1))
    allocation = np.array([draw.randrange(cores) for _ in range(count)])
    makes = {piece.producer for piece in pieces} | {cn for cn, node in enumerate(specs) if 0 in node.streams}
    reads = {cn for cn, node in enumerate(specs) if node.needs or {1, 2} & set(node.streams)}
    wanted = {(int(allocation[cn]), cores) for cn in makes if cn >= 0} | {(cores, int(allocation[cn])) for cn in reads}
    system = without_paths(draw, system, draw.choice((EVERY, EVERY, SOME, NONE)), wanted)
    return make_problem(system, pieces, specs), allocation


def without_paths(draw: random.Random, system: CoreSystem, share: float, wanted: set[tuple[int, int]]) -> CoreSystem:
    """The system with all wanted paths and a share of the others. Other data take a detour over the off-chip memory."""
    cores = system.core_count
    hops = {(i, j): system.path(i, j).tolist() for i in range(cores) for j in range(cores)}
    exists = {pair for pair, found in zip(hops, system.path_exists.tolist(), strict=True) if found}
    kept = {pair for pair in hops if pair in exists and (pair in wanted or draw.random() < share)}
    return replace(
        system,
        path_exists=np.array([pair in kept for pair in hops], np.bool_),
        path_start=np.cumsum([0] + [len(hop) if pair in kept else 0 for pair, hop in hops.items()]),
        path_link=np.array([link for pair, hop in hops.items() if pair in kept for link in hop], np.int64),
    )


def passed_on(cores: int) -> list[int | list[int]]:
    """[core] memories of the output and the two inputs, off-chip core last.

    Each core reads the memory that the core before it writes, and has its own memory of weights.
    """
    rows: list[int | list[int]] = [[core + 1, core, cores + 1 + core] for core in range(cores)]
    return [*rows, 2 * cores + 1]


def random_system(draw: random.Random, cores: int, room: int):
    """A system whose every memory has at least `room` bits, often hardly more."""
    layout = draw.choice(LAYOUTS)
    off = cores
    width = draw.choice((7, 32, 1000))

    def memory() -> Memory:
        return Memory(room + draw.choice((0, 0, 30, 100, 1000)), width, 1.25, 2.5)

    def link(is_broadcast: bool = False) -> Link:
        return Link(draw.choice((3, 8, 20)), 0.5, is_broadcast)

    dram = Memory(10**9, draw.choice((16, 64)), 10.0, 20.0)
    pairs = [(i, j) for i in range(cores + 1) for j in range(cores + 1) if i != j]
    if layout == "shared memory":
        paths = {(i, j): [0] if off in (i, j) else [] for i, j in pairs}
        return make_system([0] * cores + [1], [memory(), dram], [link()], paths)
    if layout == "operand memories":
        own = [[3 * core, 3 * core + 1, 3 * core + 2] for core in range(cores)]
        memories = [memory() for _ in range(3 * cores)]
        if draw.random() < 0.5:
            own, memories = passed_on(cores)[:-1], memories[cores - 1 :]
            return make_system([*own, 2 * cores + 1], [*memories, dram], [link(True)], {pair: [0] for pair in pairs})
        return make_system([*own, 3 * cores], [*memories, dram], [link(True)], {pair: [0] for pair in pairs})
    if layout == "two share":
        rows = [max(core - 1, 0) for core in range(cores + 1)] if cores > 1 else [0, 1]
        paths = {(i, j): [] if {i, j} == {0, 1} and cores > 1 else [0] for i, j in pairs}
        return make_system(rows, [*(memory() for _ in range(max(rows))), dram], [link(draw.random() < 0.5)], paths)
    memories = [memory() for _ in range(cores)]
    rows = list(range(cores + 1))
    if layout == "bus":
        return make_system(rows, [*memories, dram], [link(draw.random() < 0.7)], {pair: [0] for pair in pairs})
    if layout == "port and bus":
        paths = {(i, j): [0, 1] if i == off else [1, 0] if j == off else [1] for i, j in pairs}
        return make_system(rows, [*memories, dram], [link(), link(True)], paths)
    number = {pair: index for index, pair in enumerate(pairs)}
    port = len(pairs)
    paths = {pair: [number[pair], port] if off in pair else [number[pair]] for pair in pairs}
    return make_system(rows, [*memories, dram], [link() for _ in range(port + 1)], paths)
