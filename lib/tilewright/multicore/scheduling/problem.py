"""The input of the scheduler: computation nodes (CNs) with their data, a cost table, and a system of cores.

All data are arrays, whose shapes, ranges and signs are checked. Lists of different lengths are in CSR form: the entries
of item i are at the positions from `start[i]` up to, but not including, `start[i + 1]`. A *piece* is the unit of data.
CNs produce pieces and need pieces. A piece moves and is stored as a whole, and two pieces never share content. Data
that two CNs share (a halo, a weight) is one piece that both CNs need. The data on an edge between two CNs are all
pieces that the first CN produces and the second CN needs.

Operand 0 is the output operand in `need_operand`, in `core_memory` and in the cost table.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from tilewright.base.errors import InputError, Problem

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Booleans = npt.NDArray[np.bool_]
OUTPUT_OPERAND = 0


@dataclass(frozen=True, eq=False)
class NodeGraph:
    """CNs, pieces, and needs. A need says that a CN reads a piece."""

    layer: Integers
    """[cn] Number of the CN's layer; layers are numbered in the order of the network"""
    group: Integers
    """[cn] Number of the CN's group. A group is a part of a layer that one core runs"""
    stack: Integers
    """[cn] Number of the CN's layer stack; earlier stacks have smaller numbers"""
    cost_row: Integers
    """[cn] Row of the CN in the cost table"""
    piece_bits: Integers
    """[piece] Size of the piece in bits, at least 1"""
    piece_producer: Integers
    """[piece] CN that produces the piece; -1 for a constant, which starts in the off-chip memory"""
    piece_is_output: Booleans
    """[piece] Whether the piece is a result of the network. A result is written off-chip when it is produced"""
    need_start: Integers
    """[cn + 1] Position in need_piece at which the needs of the CN begin"""
    need_piece: Integers
    """[need] Piece that the CN reads"""
    need_operand: Integers
    """[need] Memory operand by which the CN reads the piece"""
    order_start: Integers
    """[cn + 1] Position in order_predecessor at which the predecessors of the CN begin"""
    order_predecessor: Integers
    """[edge] CN that must end before the other CN of the edge starts, although no data flow between them"""

    @property
    def node_count(self) -> int:
        """Number of CNs."""
        return len(self.layer)


@dataclass(frozen=True, eq=False)
class CostTable:
    """Cost of a CN on each core. CNs with the same cost share a row."""

    runtime_cycles: Integers
    """[row, core] Runtime in cycles; -1 where the core cannot run the CN. By default, it includes the time to bring the
    first tiles to the array
    """
    on_core_energy_pj: Floats
    """[row, core] Energy in pJ of the array and the memories of the core, without the off-chip memory and the links"""
    stream_bits: Integers
    """[row, core, operand] Bits that the CN reads from the off-chip memory while it runs (writes to it for operand 0);
    0 where the operand fits the core
    """
    stream_bits_per_cycle: Integers
    """[row, core, operand] Bandwidth in bits per cycle of the operand's stream if no other data use the links"""
    reads_gaps: Booleans
    """[row, operand] Whether a CN can skip elements inside the range that it reads by the operand. A stream can then
    have fewer bits than the pieces
    """


@dataclass(frozen=True, eq=False)
class CoreSystem:
    """Cores, memories, links, and the path between every pair of cores. Transfers end in these memories."""

    off_chip_core: int
    core_memory: Integers
    """[core, operand] Memory that holds the operand of a CN on the core; -1 where there is no such memory"""
    memory_capacity_bits: Integers
    """[memory] Capacity in bits"""
    memory_read_bits: Integers
    """[memory] Width in bits of a word that is read; a memory reads one word per cycle"""
    memory_write_bits: Integers
    """[memory] Width in bits of a word that is written; a memory writes one word per cycle"""
    memory_read_energy_pj: Floats
    """[memory] Energy in pJ to read a word"""
    memory_write_energy_pj: Floats
    """[memory] Energy in pJ to write a word"""
    link_bits_per_cycle: Integers
    """[link] Bandwidth in bits per cycle that all transfers over the link share, in both directions. A memory port can
    also be a link
    """
    link_energy_pj_per_bit: Floats
    """[link] Energy in pJ to move a bit over the link"""
    link_is_broadcast: Booleans
    """[link] True for a bus and for a link with multicast: one transfer can serve several cores"""
    path_exists: Booleans
    """[source * core_count + target] Whether there is a path from the source core to the target core"""
    path_start: Integers
    """[source * core_count + target, and one end entry] Position in path_link at which the path from the source core to
    the target core begins
    """
    path_link: Integers
    """[hop] Link of one step of a path"""
    rates_pj_a_cycle: tuple[tuple[str, float], ...] = ()
    """(energy term, pJ per cycle) pairs, in the order in which the terms are added. All cores together need this energy
    in every cycle, whether they work or wait"""
    link_is_multicast: Booleans | None = None
    """[link] True where the link has multicast: it carries a piece once for all cores that receive the piece together.
    Such links are also True in `link_is_broadcast`. None: no link has multicast"""
    forwards_constants: bool = False
    """True if a core sends constants that it holds to other cores"""

    @property
    def multicast(self) -> Booleans:
        """[link] True where the link has multicast."""
        if self.link_is_multicast is None:
            return np.zeros(len(self.link_bits_per_cycle), np.bool_)
        return self.link_is_multicast

    @property
    def core_count(self) -> int:
        """Number of cores, the off-chip core included."""
        return len(self.core_memory)

    @property
    def off_chip_memory(self) -> int:
        """Number of the memory of the off-chip core."""
        return int(self.core_memory[self.off_chip_core, OUTPUT_OPERAND])

    def path(self, source: int, target: int) -> Integers:
        """Links from one core to another."""
        pair = source * self.core_count + target
        return self.path_link[self.path_start[pair] : self.path_start[pair + 1]]


@dataclass(frozen=True, eq=False)
class SchedulingProblem:
    """Checked input of the scheduler. Raises InputError with every fault of the arrays.

    A CN fetches the pieces that it needs in a fixed order: first constants, then produced pieces, each in the order of
    their numbers.
    """

    graph: NodeGraph
    costs: CostTable
    system: CoreSystem

    def __post_init__(self) -> None:
        problems: list[Problem] = graph_problems(self.graph)
        problems += cost_table_problems(self.costs, self.system.core_count, self.system.core_memory.shape[1])
        problems += system_problems(self.system)
        if not problems and len(self.graph.layer):
            if self.graph.cost_row.min() < 0 or self.graph.cost_row.max() >= len(self.costs.runtime_cycles):
                problems.append(Problem("names a row that the cost table does not have", path="cost_row"))
            operands = self.graph.need_operand
            if len(operands) and (operands.min() < 0 or operands.max() >= self.system.core_memory.shape[1]):
                problems.append(Problem("names an operand that no core has", path="need_operand"))
        if problems:
            raise InputError(problems)

    @cached_property
    def need_cn(self) -> Integers:
        """[need] CN that reads the piece."""
        return np.repeat(np.arange(self.graph.node_count), np.diff(self.graph.need_start))

    @cached_property
    def fetch_order(self) -> tuple[Integers, Integers]:
        """Columns (need_piece, need_operand), with the needs of each CN in the order in which the CN fetches the
        pieces.
        """
        piece, operand = self.graph.need_piece, self.graph.need_operand
        key = piece + len(self.graph.piece_bits) * (self.graph.piece_producer[piece] >= 0)
        same_cn = self.need_cn[1:] == self.need_cn[:-1]
        if bool(np.all(~same_cn | (key[1:] > key[:-1]))):
            return piece, operand
        order = np.lexsort((operand, key, self.need_cn))
        return piece[order], operand[order]

    @cached_property
    def piece_needs(self) -> tuple[Integers, Integers]:
        """CSR (start, need) of the needs of each piece. Needs are numbered in fetch order."""
        return _group(self.fetch_order[0], len(self.graph.piece_bits))

    @cached_property
    def outputs(self) -> tuple[Integers, Integers]:
        """CSR (start, piece) of the pieces that each CN produces."""
        produced = np.flatnonzero(self.graph.piece_producer >= 0)
        start, order = _group(self.graph.piece_producer[produced], self.graph.node_count)
        return start, produced[order]

    @cached_property
    def edges(self) -> tuple[Integers, Integers]:
        """CSR (start, successor) of the distinct CNs that wait for the data or for the end of each CN."""
        count = self.graph.node_count
        producer = self.graph.piece_producer[self.fetch_order[0]]
        order_node = np.repeat(np.arange(count), np.diff(self.graph.order_start))
        source = np.concatenate((producer[producer >= 0], self.graph.order_predecessor))
        target = np.concatenate((self.need_cn[producer >= 0], order_node))
        key = np.sort(source * max(count, 1) + target)  # np.unique hashes, which is slow for many distinct values
        key = key[np.append(True, key[1:] != key[:-1])] if len(key) else key
        return starts_of(key // max(count, 1), count), key % max(count, 1)

    @cached_property
    def predecessor_count(self) -> Integers:
        """[cn] Number of distinct CNs for which the CN waits."""
        return np.bincount(self.edges[1], minlength=self.graph.node_count).astype(np.int64)

    @cached_property
    def topological_order(self) -> Integers:
        """CNs in an order in which each CN follows all its predecessors. If the graph has a cycle, some CNs are
        missing.
        """
        start, successor = self.edges
        waiting = self.predecessor_count.copy()
        order = list(np.flatnonzero(waiting == 0))
        for cn in order:
            for following in successor[start[cn] : start[cn + 1]]:
                waiting[following] -= 1
                if waiting[following] == 0:
                    order.append(following)
        return np.array(order, np.int64)


def _group(owner: Integers, count: int) -> tuple[Integers, Integers]:
    """CSR (start, position): the positions in `owner` of each owner's entries, in rising order."""
    return starts_of(owner, count), np.argsort(owner, kind="stable").astype(np.int64)


def starts_of(owner: Integers, count: int) -> Integers:
    """CSR start array: position of the first entry of each of `count` owners, and finally the number of all entries."""
    start = np.zeros(count + 1, np.int64)
    np.cumsum(np.bincount(owner, minlength=count), out=start[1:])
    return start


def graph_problems(graph: NodeGraph) -> list[Problem]:
    """Faults of CNs, pieces and needs that can be found without the cost table and the system."""
    nodes, pieces = len(graph.layer), len(graph.piece_bits)
    problems = [
        Problem(f"must have {nodes} entries, one for each CN", path=name, value=str(len(getattr(graph, name))))
        for name in ("group", "stack", "cost_row")
        if len(getattr(graph, name)) != nodes
    ]
    problems += [
        Problem(f"must have {pieces} entries, one for each piece", path=name, value=str(len(getattr(graph, name))))
        for name in ("piece_producer", "piece_is_output")
        if len(getattr(graph, name)) != pieces
    ]
    if len(graph.need_operand) != len(graph.need_piece):
        problems.append(Problem("must have as many entries as need_piece", path="need_operand"))
    problems += _csr_problems("need_start", graph.need_start, nodes, len(graph.need_piece))
    problems += _csr_problems("order_start", graph.order_start, nodes, len(graph.order_predecessor))
    problems += _range_problems("need_piece", graph.need_piece, 0, pieces)
    problems += _range_problems("order_predecessor", graph.order_predecessor, 0, nodes)
    problems += _range_problems("piece_producer", graph.piece_producer, -1, nodes)
    problems += _range_problems("piece_bits", graph.piece_bits, 1, 2**53)
    if not problems and bool(np.any(graph.piece_is_output & (graph.piece_producer < 0))):
        problems.append(Problem("marks a constant as a result of the network", path="piece_is_output"))
    return problems


def cost_table_problems(costs: CostTable, cores: int, operands: int) -> list[Problem]:
    """Faults of a cost table, for these numbers of cores and operands."""
    rows = len(costs.runtime_cycles)
    problems = []
    for name, shape in (
        ("runtime_cycles", (rows, cores)),
        ("on_core_energy_pj", (rows, cores)),
        ("stream_bits", (rows, cores, operands)),
        ("stream_bits_per_cycle", (rows, cores, operands)),
        ("reads_gaps", (rows, operands)),
    ):
        if getattr(costs, name).shape != shape:
            problems.append(Problem(f"must have shape {shape}", path=name, value=str(getattr(costs, name).shape)))
    if problems:
        return problems
    runs = costs.runtime_cycles != -1
    if bool(np.any(costs.runtime_cycles[runs] < 1)):
        problems.append(Problem("must be at least 1, or -1 where a core cannot run the CN", path="runtime_cycles"))
    energy = costs.on_core_energy_pj[runs]
    if not bool(np.all(np.isfinite(energy) & (energy >= 0))):
        problems.append(Problem("must be finite and not negative", path="on_core_energy_pj"))
    if bool(np.any(costs.stream_bits < 0)):
        problems.append(Problem("must not be negative", path="stream_bits"))
    if bool(np.any((costs.stream_bits > 0) & (costs.stream_bits_per_cycle < 1))):
        problems.append(Problem("must be at least 1 where bits are streamed", path="stream_bits_per_cycle"))
    return problems


def system_problems(system: CoreSystem) -> list[Problem]:
    """Faults of cores, memories, links and paths."""
    cores, memories, links = len(system.core_memory), len(system.memory_capacity_bits), len(system.link_bits_per_cycle)
    problems = [
        Problem(f"must have {count} entries", path=name, value=str(len(getattr(system, name))))
        for names, count in (
            (("memory_read_bits", "memory_write_bits", "memory_read_energy_pj", "memory_write_energy_pj"), memories),
            (("link_energy_pj_per_bit", "link_is_broadcast"), links),
            (("path_exists",), cores * cores),
        )
        for name in names
        if len(getattr(system, name)) != count
    ]
    if system.link_is_multicast is not None:
        if len(system.link_is_multicast) != links:
            problems.append(Problem(f"must have {links} entries", path="link_is_multicast"))
        elif bool(np.any(system.link_is_multicast & ~system.link_is_broadcast[:links])):
            problems.append(Problem("marks a link that link_is_broadcast does not mark", path="link_is_multicast"))
    problems += _range_problems("core_memory", system.core_memory.ravel(), -1, memories)
    for name in ("memory_capacity_bits", "memory_read_bits", "memory_write_bits", "link_bits_per_cycle"):
        problems += _range_problems(name, getattr(system, name), 1, 2**62)
    for name in ("memory_read_energy_pj", "memory_write_energy_pj", "link_energy_pj_per_bit"):
        energy = getattr(system, name)
        if not bool(np.all(np.isfinite(energy) & (energy >= 0))):
            problems.append(Problem("must be finite and not negative", path=name))
    problems += _csr_problems("path_start", system.path_start, cores * cores, len(system.path_link))
    problems += _range_problems("path_link", system.path_link, 0, links)
    if not 0 <= system.off_chip_core < cores:
        problems.append(Problem("is not the number of a core", path="off_chip_core", value=str(system.off_chip_core)))
    elif not problems:
        problems += _off_chip_problems(system)
    return problems


def _off_chip_problems(system: CoreSystem) -> list[Problem]:
    """Faults of the off-chip memory. The off-chip core must have exactly one memory, which no other core uses."""
    own = system.core_memory[system.off_chip_core]
    others = np.delete(system.core_memory, system.off_chip_core, axis=0)
    if len(set(own.tolist())) != 1 or own[0] < 0:
        return [Problem("must be the same memory for every operand of the off-chip core", path="core_memory")]
    if bool(np.any(others == own[0])):
        return [Problem("the memory of the off-chip core is also a memory of another core", path="core_memory")]
    return []


def _csr_problems(name: str, start: Integers, count: int, total: int) -> list[Problem]:
    if len(start) != count + 1 or start[0] != 0 or start[-1] != total or bool(np.any(np.diff(start) < 0)):
        return [Problem(f"must have {count + 1} entries that begin at 0, never fall, and end at {total}", path=name)]
    return []


def _range_problems(name: str, values: Integers, low: int, high: int) -> list[Problem]:
    """Fault of an array with values below `low`, or values of at least `high`."""
    wrong = np.flatnonzero((values < low) | (values >= high))
    if len(wrong) == 0:
        return []
    message = f"has {len(wrong)} entries out of range, the first at {wrong[0]}"
    return [Problem(message, path=name, value=str(values[wrong[0]]), allowed=f"{low} to {high - 1}")]
