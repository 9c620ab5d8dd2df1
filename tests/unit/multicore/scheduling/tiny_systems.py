"""Small scheduling problems written in a few lines."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from tilewright.multicore.scheduling.problem import CoreSystem, CostTable, NodeGraph, SchedulingProblem

CAUSES = ("off_chip_fetch", "off_chip_stream", "eviction", "sink_output", "core_to_core")
WEIGHT, INPUT = 1, 2


@dataclass(frozen=True)
class Memory:
    """A memory: capacity and words in bits, energies in pJ a word."""

    capacity_bits: int = 10_000
    width_bits: int = 1000
    read_pj: float = 1.0
    write_pj: float = 2.0


@dataclass(frozen=True)
class Link:
    """A link: width and energy."""

    bits_per_cycle: int = 10
    pj_per_bit: float = 0.5
    is_broadcast: bool = False
    is_multicast: bool = False


@dataclass(frozen=True)
class Piece:
    """A piece of data: bits, the CN that makes it (-1: a constant), and whether it is a result of the network."""

    bits: int
    producer: int = -1
    is_output: bool = False


@dataclass(frozen=True)
class Node:
    """A CN: cycles on every core or for each core, (piece, operand) of its needs, and CNs that end before it."""

    cycles: int | Mapping[int, int]
    needs: Sequence[tuple[int, int]] = ()
    after: Sequence[int] = ()
    layer: int = 0
    group: int = 0
    stack: int = 0
    energy_pj: float = 0.0
    streams: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    """operand -> (bits, bits per cycle)"""


def make_system(
    core_memory: Sequence[int | Sequence[int]],
    memories: Sequence[Memory],
    links: Sequence[Link],
    paths: Mapping[tuple[int, int], Sequence[int]],
) -> CoreSystem:
    """A system whose last core is off-chip. A core with one memory number uses this memory for all three operands."""
    cores = len(core_memory)
    has_multicast = any(link.is_multicast for link in links)
    hops = [list(paths.get((source, target), ())) for source in range(cores) for target in range(cores)]
    return CoreSystem(
        off_chip_core=cores - 1,
        core_memory=np.array([[row] * 3 if isinstance(row, int) else list(row) for row in core_memory], np.int64),
        memory_capacity_bits=np.array([memory.capacity_bits for memory in memories], np.int64),
        memory_read_bits=np.array([memory.width_bits for memory in memories], np.int64),
        memory_write_bits=np.array([memory.width_bits for memory in memories], np.int64),
        memory_read_energy_pj=np.array([memory.read_pj for memory in memories]),
        memory_write_energy_pj=np.array([memory.write_pj for memory in memories]),
        link_bits_per_cycle=np.array([link.bits_per_cycle for link in links], np.int64),
        link_energy_pj_per_bit=np.array([link.pj_per_bit for link in links], np.float64),
        link_is_broadcast=np.array([link.is_broadcast or link.is_multicast for link in links], np.bool_),
        path_exists=np.array(
            [(source, target) in paths for source in range(cores) for target in range(cores)], np.bool_
        ),
        path_start=np.cumsum([0] + [len(hop) for hop in hops]),
        path_link=np.array([link for hop in hops for link in hop], np.int64),
        link_is_multicast=np.array([link.is_multicast for link in links], np.bool_) if has_multicast else None,
    )


def bus_system(
    cores: int, capacities: Sequence[int] = (), link: Link | None = None, off_chip: Memory | None = None
) -> CoreSystem:
    """Compute cores, each with one memory, and the off-chip core, all on one link (number 0)."""
    capacities = capacities or [10_000] * cores
    memories = [Memory(capacity) for capacity in capacities] + [off_chip or Memory(10**9, 1000, 10.0, 20.0)]
    pairs = [(i, j) for i in range(cores + 1) for j in range(cores + 1) if i != j]
    return make_system(list(range(cores + 1)), memories, [link or Link()], {pair: [0] for pair in pairs})


def make_problem(system: CoreSystem, pieces: Sequence[Piece], nodes: Sequence[Node]) -> SchedulingProblem:
    """A scheduling problem whose cost table has one row for each CN."""
    cores, operands = system.core_memory.shape
    runtime = np.full((len(nodes), cores), -1, np.int64)
    stream_bits = np.zeros((len(nodes), cores, operands), np.int64)
    stream_rate = np.zeros((len(nodes), cores, operands), np.int64)
    energy = np.zeros((len(nodes), cores))
    for i, node in enumerate(nodes):
        cycles = node.cycles if isinstance(node.cycles, Mapping) else dict.fromkeys(range(cores - 1), node.cycles)
        for core, count in cycles.items():
            runtime[i, core] = count
            energy[i, core] = node.energy_pj
            for operand, (bits, rate) in node.streams.items():
                stream_bits[i, core, operand] = bits
                stream_rate[i, core, operand] = rate
    graph = NodeGraph(
        layer=np.array([node.layer for node in nodes], np.int64),
        group=np.array([node.group for node in nodes], np.int64),
        stack=np.array([node.stack for node in nodes], np.int64),
        cost_row=np.arange(len(nodes)),
        piece_bits=np.array([piece.bits for piece in pieces], np.int64),
        piece_producer=np.array([piece.producer for piece in pieces], np.int64),
        piece_is_output=np.array([piece.is_output for piece in pieces], np.bool_),
        need_start=np.cumsum([0] + [len(node.needs) for node in nodes]),
        need_piece=np.array([piece for node in nodes for piece, _ in node.needs], np.int64),
        need_operand=np.array([operand for node in nodes for _, operand in node.needs], np.int64),
        order_start=np.cumsum([0] + [len(node.after) for node in nodes]),
        order_predecessor=np.array([cn for node in nodes for cn in node.after], np.int64),
    )
    no_gaps = np.zeros((len(nodes), operands), np.bool_)
    costs = CostTable(runtime, energy, stream_bits, stream_rate, no_gaps)
    return SchedulingProblem(graph, costs, system)
