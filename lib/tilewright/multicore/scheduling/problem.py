"""Input of the scheduler: computation nodes (CNs) with their data, a cost table, and a system of cores.

All data are arrays. The shapes, ranges and signs of the arrays are checked. Lists of different lengths are in CSR form:
the entries of item i are at the positions `start[i]` to `start[i + 1]` - 1.

A *piece* is the unit of data. CNs produce pieces and need pieces. A piece moves and is stored as a whole, and two
pieces never share content. Data that two CNs share (a halo, a weight) are one piece that both CNs need. The data on an
edge between two CNs are all pieces that the first CN produces and the second CN needs.

Operand 0 is the output operand in `need_operand`, in `core_memory` and in the cost table.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from tilewright.base.errors import InputError, Problem, count_of

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Booleans = npt.NDArray[np.bool_]
OUTPUT_OPERAND = 0


@dataclass(frozen=True, eq=False)
class NodeGraph:
    """CNs, pieces, and needs. A need says that a CN reads a piece."""

    layer: Integers
    """Number of the CN's layer (one entry for each CN); layers are numbered in the order of the network"""
    group: Integers
    """Number of the CN's group (one entry for each CN). A group is a part of a layer that one core runs"""
    stack: Integers
    """Number of the CN's layer stack (one entry for each CN); earlier stacks have smaller numbers"""
    cost_row: Integers
    """Row of the CN in the cost table (one entry for each CN)"""
    piece_bits: Integers
    """Size of the piece in bits, at least 1 (one entry for each piece)"""
    piece_producer: Integers
    """CN that produces the piece (one entry for each piece); -1 for a constant, which starts in the off-chip memory"""
    piece_is_output: Booleans
    """True if the piece is a result of the network (one entry for each piece). A result is written off-chip when it is
    produced
    """
    need_start: Integers
    """Position in `need_piece` at which the needs of the CN begin (one entry for each CN, and one more at the end)"""
    need_piece: Integers
    """Piece that the CN reads (one entry for each need)"""
    need_operand: Integers
    """Memory operand by which the CN reads the piece (one entry for each need)"""
    order_start: Integers
    """Position in `order_predecessor` at which the predecessors of the CN begin (one entry for each CN, and one more at
    the end)
    """
    order_predecessor: Integers
    """CN that must end before another CN starts, even if no data flow between the two CNs (one entry for each pair of
    CNs). The pairs are grouped by the CN that waits.
    """

    @property
    def node_count(self) -> int:
        """Number of CNs."""
        return len(self.layer)


@dataclass(frozen=True, eq=False)
class CostTable:
    """Cost of a CN on each core. CNs with the same cost share a row."""

    runtime_cycles: Integers
    """Runtime in cycles (one entry for each row and core); -1 where the core cannot run the CN. By default, the runtime
    includes the time to bring the first tiles to the array
    """
    on_core_energy_pj: Floats
    """Energy in pJ of the array and the memories of the core, without the off-chip memory and the links (one entry for
    each row and core)
    """
    stream_bits: Integers
    """Bits that the CN reads from the off-chip memory while it runs (one entry for each row, core and operand). For
    operand 0, the number is a sum: bits that the CN writes to the off-chip memory, and bits of partial sums that it
    reads from the off-chip memory. The number is 0 where the operand fits the core
    """
    stream_bits_per_cycle: Integers
    """Bandwidth in bits per cycle that the operand's stream uses if the links carry no other data (one entry for each
    row, core and operand)
    """
    reads_gaps: Booleans
    """True if the operand's data can have gaps: the CN skips elements inside the range that it reads (one entry for
    each row and operand). A stream can then have fewer bits than the pieces
    """


@dataclass(frozen=True, eq=False)
class CoreSystem:
    """Cores, links, the path between every pair of cores, and the memories in which transfers start and end."""

    off_chip_core: int
    core_memory: Integers
    """Memory that holds the operand of a CN on the core (one entry for each core and operand); -1 where there is no
    such memory
    """
    memory_capacity_bits: Integers
    """Capacity in bits (one entry for each memory)"""
    memory_read_bits: Integers
    """Width in bits of a word that is read (one entry for each memory); a memory reads one word per cycle"""
    memory_write_bits: Integers
    """Width in bits of a word that is written (one entry for each memory); a memory writes one word per cycle"""
    memory_read_energy_pj: Floats
    """Energy in pJ to read a word (one entry for each memory)"""
    memory_write_energy_pj: Floats
    """Energy in pJ to write a word (one entry for each memory)"""
    link_bits_per_cycle: Integers
    """Bandwidth of the link in bits per cycle (one entry for each link). All transfers over the link, in both
    directions, share this bandwidth. A memory port can also be a link
    """
    link_energy_pj_per_bit: Floats
    """Energy in pJ to move a bit over the link (one entry for each link)"""
    link_is_broadcast: Booleans
    """True for a bus and for a link with multicast (one entry for each link). On such a link, one transfer can serve
    several cores
    """
    path_exists: Booleans
    """True if there is a path from the source core to the target core. The entry of a pair of cores is at the position
    source * core_count + target
    """
    path_start: Integers
    """Position in `path_link` at which the path of a pair of cores begins. The entry of a pair is at the position
    source * core_count + target; one more entry at the end is the length of `path_link`
    """
    path_link: Integers
    """Link of one step of a path (one entry for each step of each path)"""
    rates_pj_a_cycle: tuple[tuple[str, float], ...] = ()
    """Pairs (energy term, pJ per cycle), in the order in which the terms are added. All cores together need this energy
    in every cycle, whether they work or wait
    """
    link_is_multicast: Booleans | None = None
    """True if the link has multicast: it carries a piece once for all cores that receive the piece together (one entry
    for each link). Such links are also true in `link_is_broadcast`. None: no link has multicast
    """
    forwards_constants: bool = False
    """True if a core can send a constant from its memory to other cores. The constant then need not come from the
    off-chip core.
    """

    @property
    def multicast(self) -> Booleans:
        """True if the link has multicast (one entry for each link)."""
        if self.link_is_multicast is None:
            return np.zeros(len(self.link_bits_per_cycle), np.bool_)
        return self.link_is_multicast

    @property
    def core_count(self) -> int:
        """Number of cores, including the off-chip core."""
        return len(self.core_memory)

    @cached_property
    def stream_width(self) -> int:
        """Largest number of links that the streams of a CN can use, over all cores. On a core, it is the number of
        links on the path to the off-chip core plus the number of links on the path back.
        """
        links = np.diff(self.path_start).reshape(self.core_count, -1)
        return int((links[:, self.off_chip_core] + links[self.off_chip_core]).max())

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
    """Checked input of the scheduler. Raises one InputError that lists every fault of the arrays.

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
        """CN that reads the piece (one entry for each need)."""
        return np.repeat(np.arange(self.graph.node_count), np.diff(self.graph.need_start))

    @cached_property
    def fetch_order(self) -> tuple[Integers, Integers]:
        """Needs in fetch order, as columns (need_piece, need_operand): the needs of each CN are in the order in which
        the CN fetches the pieces.
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
        """Needs for each piece, in CSR form (start, need). A need is one CN that reads the piece; needs are numbered in
        fetch order.
        """
        return _group(self.fetch_order[0], len(self.graph.piece_bits))

    @cached_property
    def outputs(self) -> tuple[Integers, Integers]:
        """Pieces that each CN produces, in CSR form (start, piece)."""
        produced = np.flatnonzero(self.graph.piece_producer >= 0)
        start, order = _group(self.graph.piece_producer[produced], self.graph.node_count)
        return start, produced[order]

    @cached_property
    def edges(self) -> tuple[Integers, Integers]:
        """Successors of each CN, in CSR form (start, successor). The successors of a CN are the distinct CNs that wait
        for its data or for its end.
        """
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
        """Number of distinct CNs for which the CN waits (one entry for each CN)."""
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
    """Positions of the entries of each owner, in CSR form (start, position). `owner` has the owner of each entry. The
    positions of owner n are `position[start[n] : start[n + 1]]`, in ascending order. `count` is the number of owners.
    """
    return starts_of(owner, count), np.argsort(owner, kind="stable").astype(np.int64)


def starts_of(owner: Integers, count: int) -> Integers:
    """Start array of a CSR form: for each of the `count` owners, the position of its first entry. The last value is the
    number of all entries.
    """
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
        problems.append(Problem("must have the same number of entries as need_piece", path="need_operand"))
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
    """Faults of a cost table for a system with `cores` cores and `operands` operands."""
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
        return [
            Problem(f"must have {count + 1} entries that begin at 0, never decrease, and end at {total}", path=name)
        ]
    return []


def _range_problems(name: str, values: Integers, low: int, high: int) -> list[Problem]:
    """List with one problem if the array `name` has values below `low`, or values of `high` or more; [] otherwise."""
    wrong = np.flatnonzero((values < low) | (values >= high))
    if len(wrong) == 0:
        return []
    message = f"has {count_of(len(wrong), 'value')} out of range, the first at index {wrong[0]}"
    return [Problem(message, path=name, value=str(values[wrong[0]]), allowed=f"{low} to {high - 1}")]
