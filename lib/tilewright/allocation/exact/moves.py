"""What must move for an allocation, and what that loads and costs at least: sums over links, and of energy.

Each rule below is proven in docs/allocation.md. The pieces of equal maker, readers and use are one kind.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from tilewright.allocation.exact.sums import ConditionalSum, OnCore
from tilewright.allocation.exact.ways import Ways, common
from tilewright.allocation.space import AllocationSpace
from tilewright.scheduling.problem import OUTPUT_OPERAND, Booleans, Integers, SchedulingProblem


@dataclass(frozen=True)
class _Kind:
    """Pieces that are treated alike."""

    maker: int
    """Part; -1 for constants."""
    row: int
    """Of the cost table, of their maker; -1 for constants."""
    is_output: bool
    readers: frozenset[tuple[int, int, int]]
    """(part, row of the cost table, operand)"""


@dataclass
class Moves:
    """What all moves load and cost at least."""

    links: dict[int, ConditionalSum] = field(default_factory=dict)
    """Link -> bits"""
    memory_pj: ConditionalSum = field(default_factory=ConditionalSum)
    """Energy of words, and of links that some way of several passes"""

    def load(self, link: int) -> ConditionalSum:
        """The bits of a link."""
        return self.links.setdefault(link, ConditionalSum())


def moves_of(
    problem: SchedulingProblem, space: AllocationSpace, needs: Booleans, results: Booleans, made: Booleans
) -> Moves:
    """The moves for some needs [need, in fetch order], for results of the network [piece] and for what is made [piece]:
    of a piece that is not, only constants move."""
    builder = _Builder(problem, space, Ways(problem.system))
    for kind, pieces in _kinds(problem, space, needs, results, made).items():
        bits = problem.graph.piece_bits[np.array(pieces)]
        if kind.maker < 0:
            builder.constant(kind, bits)
        else:
            for core in space.choices[kind.maker]:
                builder.produced(kind, core, bits)
    return builder.moves


def _kinds(
    problem: SchedulingProblem, space: AllocationSpace, needs: Booleans, results: Booleans, made: Booleans
) -> dict[_Kind, list[int]]:
    graph, part = problem.graph, space.part_of_cn
    start, order = problem.piece_needs
    operand, reader = problem.fetch_order[1], problem.need_cn
    kinds: dict[_Kind, list[int]] = {}
    for piece, producer in enumerate(graph.piece_producer.tolist()):
        if producer >= 0 and not made[piece]:
            continue
        chosen = [need for need in order[start[piece] : start[piece + 1]].tolist() if needs[need]]
        readers = frozenset(
            (int(part[cn]), int(graph.cost_row[cn]), int(operand[n])) for n in chosen for cn in [reader[n]]
        )
        is_output = bool(graph.piece_is_output[piece] and results[piece])
        if readers or is_output:
            row = int(graph.cost_row[producer]) if producer >= 0 else -1
            maker = int(part[producer]) if producer >= 0 else -1
            kinds.setdefault(_Kind(maker, row, is_output, readers), []).append(piece)
    return kinds


@dataclass(frozen=True, eq=False)
class _Builder:
    problem: SchedulingProblem
    space: AllocationSpace
    ways: Ways
    moves: Moves = field(default_factory=Moves)

    def constant(self, kind: _Kind, bits: Integers) -> None:
        """A constant comes from the off-chip memory into each memory in which some CN has it."""
        arrivals: dict[int, set[OnCore]] = {}
        for literal, operand, streams in self._readers(kind):
            if not streams:
                memory = int(self.problem.system.core_memory[literal.core, operand])
                arrivals.setdefault(memory, set()).add(literal)
        off = self.ways.system.off_chip_core
        self._fetches(None, arrivals, bits, self.ways.has_bus(off))

    def produced(self, kind: _Kind, core: int, bits: Integers) -> None:
        """What a part makes on a core: it is written off-chip for some reasons, and moves to those who need it."""
        owner = OnCore(kind.maker, core)
        streams_out = self._streams(kind.row, core, OUTPUT_OPERAND)
        home = self.ways.home(core)
        arrivals: dict[int, set[OnCore]] = {}
        writers: set[OnCore] = set()
        for literal, operand, streams in self._readers(kind):
            if literal.part == kind.maker and literal.core != core:
                continue  # a part runs on one core
            if streams:
                writers.add(literal)
                continue
            memory = int(self.problem.system.core_memory[literal.core, operand])
            if streams_out or memory != home:
                arrivals.setdefault(memory, set()).add(literal)
                if not self.ways.into(core, memory):
                    writers.add(literal)
        off = self.ways.system.off_chip_core
        if streams_out:
            self._fetches(owner, arrivals, bits, self.ways.has_bus(off))
            return
        written: set[OnCore] | None = None if kind.is_output else writers
        shared = self.ways.has_bus(off) or self.ways.has_bus(core)
        self._direct(owner, core, arrivals, written, bits, shared)

    def _readers(self, kind: _Kind) -> Iterable[tuple[OnCore, int, bool]]:
        """(part on core, operand, whether that streams there) of all that read pieces of a kind."""
        for part, row, operand in sorted(kind.readers):
            for core in self.space.choices[part]:
                yield OnCore(part, core), operand, self._streams(row, core, operand)

    def _streams(self, row: int, core: int, operand: int) -> bool:
        return bool(self.problem.costs.stream_bits[row, core, operand] > 0)

    def _fetches(self, owner: OnCore | None, arrivals: dict[int, set[OnCore]], bits: Integers, shared: bool) -> None:
        """Pieces come from the off-chip memory into memories."""
        total, off = int(bits.sum()), self.ways.system.off_chip_memory
        certain = {memory: common(self.ways.fetched(memory)) for memory in arrivals}
        for link in sorted(frozenset().union(*certain.values())):
            chosen = [arrivals[memory] for memory in sorted(arrivals) if link in certain[memory]]
            self._count(self.moves.load(link), total, owner, chosen, shared)
        self._count(self.moves.memory_pj, self._read_pj(off, bits), owner, list(arrivals.values()), shared)
        for memory, literals in sorted(arrivals.items()):
            self.moves.memory_pj.add(self._written_pj(memory, bits), owner, literals)
            if not shared:
                extra = [self.ways.link_pj(path - certain[memory]) for path in self.ways.fetched(memory)]
                self.moves.memory_pj.add(total * min(extra, default=0.0), owner, literals)

    def _direct(
        self,
        owner: OnCore,
        core: int,
        arrivals: dict[int, set[OnCore]],
        written: set[OnCore] | None,
        bits: Integers,
        shared: bool,
    ) -> None:
        """Pieces come from their home, or by way of the off-chip memory; `written` (None: always) are those for whom
        they are written off-chip in any case."""
        total, off = int(bits.sum()), self.ways.system.off_chip_memory
        out, home = self.ways.written(core), self.ways.home(core)
        straight = {memory: self.ways.into(core, memory) for memory in arrivals}
        fetched = {memory: self.ways.fetched(memory) for memory in arrivals}
        certain = {memory: common(straight[memory] + fetched[memory]) for memory in arrivals}
        once = {memory: out & common(straight[memory]) if straight[memory] else out for memory in arrivals}
        for link in sorted(out.union(*certain.values())):
            each = [arrivals[memory] for memory in sorted(arrivals) if link in certain[memory]]
            self._count(self.moves.load(link), total, owner, each, shared)
            if link in out and each:
                self.moves.load(link).add(total, owner, written)
            elif link in out:
                some = [arrivals[memory] for memory in sorted(arrivals) if link in once[memory]]
                reasons = None if written is None else written.union(*some)
                self.moves.load(link).add(total, owner, reasons)
        self.moves.memory_pj.add(self._read_pj(home, bits) + self._written_pj(off, bits), owner, written)
        read = min(self._read_pj(home, bits), self._read_pj(off, bits))
        self._count(self.moves.memory_pj, read, owner, list(arrivals.values()), shared)
        for memory, literals in sorted(arrivals.items()):
            self.moves.memory_pj.add(self._written_pj(memory, bits), owner, literals)
            if not shared:
                extra = [self.ways.link_pj(path - certain[memory] - out) for path in straight[memory]]
                extra += [self.ways.link_pj(path - certain[memory]) for path in fetched[memory]]
                self.moves.memory_pj.add(total * min(extra, default=0.0), owner, literals)

    @staticmethod
    def _count(
        into: ConditionalSum, amount: float, owner: OnCore | None, arrivals: list[set[OnCore]], shared: bool
    ) -> None:
        """Once for each memory, or once for all where one transfer can serve several."""
        if shared:
            into.add(amount, owner, set().union(*arrivals))
            return
        for literals in arrivals:
            into.add(amount, owner, literals)

    def _read_pj(self, memory: int, bits: Integers) -> float:
        system = self.ways.system
        return float((-(-bits // system.memory_read_bits[memory])).sum() * system.memory_read_energy_pj[memory])

    def _written_pj(self, memory: int, bits: Integers) -> float:
        system = self.ways.system
        return float((-(-bits // system.memory_write_bits[memory])).sum() * system.memory_write_energy_pj[memory])
