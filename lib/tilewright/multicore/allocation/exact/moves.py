"""Lower bounds of the data movement that an allocation causes: bits over links, and energy.

Pieces of one kind have the same producer and the same readers. Either all of them are outputs of the network, or none
of them is. If data can move over several paths, only the links that all these paths share are certain to carry the
data.

The bounds are sums of conditional terms: whether a term counts depends on the cores of some parts. The relaxation
limits links and energy by these sums. docs/proofs/exact-allocation.md proves each rule in this module.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from tilewright.multicore.allocation.space import AllocationSpace
from tilewright.multicore.scheduling.problem import OUTPUT_OPERAND, Booleans, CoreSystem, Integers, SchedulingProblem

Links = frozenset[int]
_NONE: Links = frozenset()


@dataclass(frozen=True, eq=False)
class Ways:
    """Paths of a system between cores and memories. A path is represented by the set of its links (`Links`)."""

    system: CoreSystem

    @cached_property
    def fetchers(self) -> tuple[tuple[int, ...], ...]:
        """Cores that have the memory, one tuple for each memory. Each of these cores can fetch a piece into the memory
        (rule 10 of docs/multi-core-model/transfers.md).
        """
        memories = range(len(self.system.memory_capacity_bits))
        return tuple(tuple(np.flatnonzero((self.system.core_memory == m).any(axis=1)).tolist()) for m in memories)

    def path(self, source: int, target: int) -> Links | None:
        """Links of the path from a core to another core: empty if both are the same core, None if there is no path."""
        if source == target:
            return _NONE
        if not self.system.path_exists[source * self.system.core_count + target]:
            return None
        return frozenset(self.system.path(source, target).tolist())

    def written(self, core: int) -> Links:
        """Links of the path on which a core writes a piece to the off-chip memory."""
        return self.path(core, self.system.off_chip_core) or _NONE

    def home(self, core: int) -> int:
        """Memory in which a core stores the results of its CNs."""
        return int(self.system.core_memory[core, OUTPUT_OPERAND])

    def into(self, source: int, memory: int) -> list[Links]:
        """Possible paths of a piece from a core into a memory."""
        found = (self.path(source, core) for core in self.fetchers[memory])
        return [path for path in found if path is not None]

    def fetched(self, memory: int) -> list[Links]:
        """Possible paths of a piece from the off-chip memory into a memory."""
        return self.into(self.system.off_chip_core, memory)

    def has_bus(self, core: int) -> bool:
        """True if one transfer from a core can serve several memories. There are two cases:

        * Some path from the core has a bus or a link with multicast (rule 13 of docs/multi-core-model/transfers.md).
        * The core is the off-chip core, and cores forward constants.
        """
        if self.system.forwards_constants and core == self.system.off_chip_core:
            return True
        count = self.system.core_count
        paths = (self.path(core, target) or _NONE for target in range(count))
        return any(bool(self.system.link_is_broadcast[link]) for path in paths for link in path)

    def link_pj(self, links: Links) -> float:
        """Energy in pJ to move one bit over all of these links."""
        return float(sum(self.system.link_energy_pj_per_bit[link] for link in sorted(links)))


def common(paths: list[Links]) -> Links:
    """Links that all paths have in common; empty if there is no path."""
    return frozenset.intersection(*paths) if paths else _NONE


class OnCore(NamedTuple):
    """Literal: the condition that a part runs on a core."""

    part: int
    core: int


class Condition(NamedTuple):
    """Condition of a term. A literal is the condition that a part runs on a core (`OnCore`). The term counts if the
    literal `owner` is true and at least one literal of `any_of` is true. A field that is None is always true.
    """

    owner: OnCore | None = None
    any_of: frozenset[OnCore] | None = None

    def holds(self, part_cores: Sequence[int]) -> bool:
        """True if the condition holds for an allocation, an array with the core of each part."""
        owned = self.owner is None or part_cores[self.owner.part] == self.owner.core
        return owned and (self.any_of is None or any(part_cores[part] == core for part, core in self.any_of))


ALWAYS = Condition()


@dataclass
class ConditionalSum:
    """Sum of amounts. Each amount has a condition, and counts only if this condition holds."""

    terms: dict[Condition, float] = field(default_factory=dict)

    def add(self, amount: float, owner: OnCore | None = None, any_of: Iterable[OnCore] | None = None) -> None:
        """Add a term. If `any_of` is empty, nothing is added, because the condition of the term would never hold."""
        found = None if any_of is None else frozenset(any_of)
        if amount and (found is None or found):
            condition = Condition(owner, found)
            self.terms[condition] = self.terms.get(condition, 0) + amount

    def add_sum(self, other: "ConditionalSum", factor: float = 1) -> None:
        """Add all terms of another sum. Each term is multiplied by `factor`."""
        for condition, amount in other.terms.items():
            self.add(amount * factor, *condition)

    def value(self, part_cores: Sequence[int]) -> float:
        """Value of the sum for an allocation. `part_cores` has the core of each part."""
        return sum(amount for condition, amount in self.terms.items() if condition.holds(part_cores))

    def simplified(self, space: AllocationSpace) -> "ConditionalSum":
        """Sum with the same values, but without conditions that hold for every allocation of the space."""
        found = ConditionalSum()
        for (owner, any_of), amount in self.terms.items():
            if any_of is not None and _is_certain(any_of, owner, space):
                any_of = None
            if owner is not None and len(space.choices[owner.part]) == 1:
                owner = None
            found.add(amount, owner, any_of)
        return found


def _is_certain(any_of: frozenset[OnCore], owner: OnCore | None, space: AllocationSpace) -> bool:
    """True if `owner` implies `any_of`: whenever the literal `owner` is true in an allocation of the space, at least
    one literal of `any_of` is true.
    """
    if owner in any_of:
        return True
    cores_of: dict[int, set[int]] = {}
    for part, core in any_of:
        cores_of.setdefault(part, set()).add(core)
    return any(cores >= set(space.choices[part]) for part, cores in cores_of.items())


@dataclass(frozen=True)
class _Kind:
    """Pieces with the same producer, the same readers, and the same value of `is_output`."""

    maker: int
    """Part that produces the pieces; -1 for constants."""
    row: int
    """Row of the cost table for the CNs that produce the pieces; -1 for constants."""
    is_output: bool
    readers: frozenset[tuple[int, int, int]]
    """Readers of the pieces, as triples (part that reads, row of the cost table for the reading CN, operand that the CN
    reads)
    """


@dataclass
class Moves:
    """Lower bounds of the traffic on links and of the movement energy."""

    links: dict[int, ConditionalSum] = field(default_factory=dict)
    """Bits that move over each link, keyed by the number of the link"""
    memory_pj: ConditionalSum = field(default_factory=ConditionalSum)
    """Energy in pJ of memory accesses, and of links that are on some, but not all, possible paths of a move. The energy
    of links that are on all these paths is computed from `links`.
    """

    def load(self, link: int) -> ConditionalSum:
        """Sum of the bits that move over a link. The caller can add terms to it."""
        return self.links.setdefault(link, ConditionalSum())


def moves_of(
    problem: SchedulingProblem, space: AllocationSpace, needs: Booleans, results: Booleans, made: Booleans
) -> Moves:
    """Lower bounds of the data movement that selected data cause.

    A need is one piece that one CN reads as one operand. Three masks select data:

    * `needs`, with one entry for each need in fetch order, selects needs.
    * `results`, with one entry for each piece, selects outputs of the network.
    * `made`, with one entry for each piece, selects pieces that CNs produce. Moves of all other
      pieces that CNs produce are not counted.
    """
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
        """Add the moves of constants from the off-chip memory into the memories from which CNs read them. Reads that
        stream are left out. `bits` has the size of each piece of this kind.
        """
        arrivals: dict[int, set[OnCore]] = {}
        for literal, operand, streams in self._readers(kind):
            if not streams:
                memory = int(self.problem.system.core_memory[literal.core, operand])
                arrivals.setdefault(memory, set()).add(literal)
        off = self.ways.system.off_chip_core
        self._fetches(None, arrivals, bits, self.ways.has_bus(off))

    def produced(self, kind: _Kind, core: int, bits: Integers) -> None:
        """Add the moves of the results of a part, if the part runs on `core`. The results move to readers and, if
        required, to the off-chip memory.
        """
        owner = OnCore(kind.maker, core)
        streams_out = self._streams(kind.row, core, OUTPUT_OPERAND)
        home = self.ways.home(core)
        arrivals: dict[int, set[OnCore]] = {}
        writers: set[OnCore] = set()
        for literal, operand, streams in self._readers(kind):
            if literal.part == kind.maker and literal.core != core:
                continue  # a part runs on one core only
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
        """Triples (condition, operand, whether the operand streams). The condition is that a part that reads pieces of
        the kind `kind` runs on a core. There is one triple for each such reader and each core that is allowed for it.
        """
        for part, row, operand in sorted(kind.readers):
            for core in self.space.choices[part]:
                yield OnCore(part, core), operand, self._streams(row, core, operand)

    def _streams(self, row: int, core: int, operand: int) -> bool:
        return bool(self.problem.costs.stream_bits[row, core, operand] > 0)

    def _fetches(self, owner: OnCore | None, arrivals: dict[int, set[OnCore]], bits: Integers, shared: bool) -> None:
        """Add the fetches of pieces from the off-chip memory. A literal is the condition that a part runs on a core
        (`OnCore`).

        `arrivals` maps each destination memory to a set of literals. The pieces are fetched into the memory if at least
        one literal of the set is true. If `owner` is given, the literal `owner` must be true, too. If `shared` is true,
        one fetch can serve several memories.
        """
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
        """Add the moves of pieces that `core` produces. A piece moves to a reader directly from its home memory, or
        through the off-chip memory. A literal is the condition that a part runs on a core (`OnCore`).

        `arrivals` maps each destination memory to a set of literals. The pieces move to the memory if at least one
        literal of the set is true. `written` is a set of literals, too. If at least one literal of `written` is true,
        the pieces must be written to the off-chip memory. If `written` is None, they must always be written there. All
        moves take place only if the literal `owner` is true. If `shared` is true, one transfer can serve several
        memories.
        """
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
        """Add terms with the value `amount` to the sum `into`, one term for each destination memory. `arrivals` has one
        set of literals (`OnCore`) for each memory. A term counts if at least one literal of the set of its memory is
        true. If `owner` is given, the literal `owner` must be true, too.

        If `shared` is true, one transfer can serve several memories, and only one term is added. This term counts if at
        least one literal of any set is true.
        """
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
