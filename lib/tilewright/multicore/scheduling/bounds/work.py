"""Lower bounds on the traffic of links, from the pieces that must move (docs/proofs/bounds-traffic.md)."""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from tilewright.multicore.scheduling.bounds.classes import CnClasses
from tilewright.multicore.scheduling.bounds.limits import changes
from tilewright.multicore.scheduling.bounds.weights import ArrayContent, Weighted, best_by_weights
from tilewright.multicore.scheduling.problem import (
    OUTPUT_OPERAND,
    Booleans,
    CoreSystem,
    Floats,
    Integers,
    SchedulingProblem,
)


def fetched_pieces(problem: SchedulingProblem, classes: CnClasses) -> Booleans:
    """True if the piece is a constant that must be fetched (one entry for each piece). This is the case if at least one
    CN never streams the piece.
    """
    piece, operand = problem.fetch_order
    fetched = np.zeros(len(problem.graph.piece_bits), np.bool_)
    fetched[piece[classes.never_streams[classes.of_cn[problem.need_cn], operand]]] = True
    return fetched & (problem.graph.piece_producer < 0)


def written_pieces(problem: SchedulingProblem, classes: CnClasses) -> Booleans:
    """True if the piece is a result that must be written from an on-chip memory to the off-chip memory (one entry for
    each piece). This is the case if the producer never streams the piece.
    """
    graph = problem.graph
    written = graph.piece_is_output.copy()
    results = np.flatnonzero(written)
    written[results] = classes.never_streams[classes.of_cn[graph.piece_producer[results]], OUTPUT_OPERAND]
    return written


_ROUNDS = 300
Way = tuple[tuple[int, ...], ...]
"""Links over which a piece moves: one tuple for each leg, with each link once. A direct way has one leg. A way through
the off-chip memory has two legs: the write, and a fetch at any later time."""


@dataclass(frozen=True, eq=False)
class CompulsoryMoves:
    """Kinds of moves that every schedule must make, with all possible ways of each kind."""

    bits: Integers
    """Total bits of all pieces with this kind of move (one entry for each kind); each piece counts once"""
    start: Integers
    """Index of the first row of `cycles_per_bit` that belongs to the kind of move (one entry for each kind). Each row
    is a way. One additional entry at the end is the total number of ways"""
    cycles_per_bit: Floats
    """Cycles for which a bit occupies the link (one entry for each way and link)"""

    def latency_cycles(self, rounds: int = _ROUNDS, known: int = 0) -> int:
        """Lower bound of the latency in cycles; 0 if there are no moves. It is the largest bound that a search over
        weights of links (`bounds.weights`) finds. The bound is valid because no link carries more than its width in a
        cycle.

        If no weights of links give more than `known` cycles, the search can end early. The result is then valid, but
        not the best bound.
        """
        if not len(self.bits):
            return 0
        return _cycles_of(*(ArrayContent.of(array) for array in vars(self).values()), rounds, known)

    def weighted(self, rounds: int = _ROUNDS, cycles_only: bool = False, known: int = 0) -> Weighted:
        """Largest lower bound in cycles that the search over weights of links finds, with the weight of each link.
        There must be at least one move. With `cycles_only`, the search can end earlier; `best_by_weights` says when."""
        move_of_way = np.repeat(np.arange(len(self.bits)), np.diff(self.start))

        def bound(weight: Floats) -> tuple[float, Integers]:
            price = self.cycles_per_bit @ weight
            cheapest = np.minimum.reduceat(price, self.start[:-1])
            return float(self.bits @ cheapest), np.flatnonzero(price == cheapest[move_of_way])

        def load(ways: Integers) -> Floats:
            # If several ways of a move are cheapest, the first of these ways counts.
            loads: Floats = self.bits @ self.cycles_per_bit[ways[np.unique(move_of_way[ways], return_index=True)[1]]]
            return loads

        return best_by_weights(self.cycles_per_bit.shape[1], rounds, bound, load, cycles_only, known)


@lru_cache(maxsize=2048)
def _cycles_of(bits: ArrayContent, start: ArrayContent, cycles_per_bit: ArrayContent, rounds: int, known: int) -> int:
    moves = CompulsoryMoves(bits.array(), start.array(), cycles_per_bit.array())
    return moves.weighted(rounds, cycles_only=True, known=known).cycles


@dataclass(frozen=True, eq=False)
class PossibleMoves:
    """Reasons why pieces (parts of tensors that move as a whole) must move. There are two kinds of reasons: a CN reads
    the piece, or the piece is a result of the network. The arrays have one entry for each reason, for each piece, or
    for each kind of move."""

    piece: Integers
    """Number of the piece (one entry for each reason to move a piece). The numbers are in ascending order. The reasons
    of one piece are sorted by the cost of the cheapest way to move the piece, the highest cost first. The cost of a way
    is the sum of its cycles per bit: for each link, the cycles for which one bit occupies the link.
    """
    piece_bits: Integers
    """Size of the piece in bits (one entry for each piece)"""
    reader: Integers
    """CN that reads the piece (one entry for each reason); -1 for a result of the network"""
    producer: Integers
    """CN that produces the piece (one entry for each reason to move a piece); -1 for a constant"""
    fetched: Booleans
    """True if the piece comes from the off-chip memory (one entry for each reason). This holds for constants and for
    data that their producer streams out"""
    operand: Integers
    """Operand for which the CN reads the piece, as a column of `CoreSystem.core_memory` (one entry for each reason to
    move a piece); OUTPUT_OPERAND for a result"""
    kind: Integers
    """Index of the kind of move (one entry for each reason to move a piece). It is an index into `ways`, `evicting`,
    `stays` and `energy_pj`"""
    ways: tuple[Floats, ...]
    """Cycles for which one bit occupies a link: one array of shape (ways, 2 legs, links) for each kind of move. A way
    through the off-chip memory has two legs: the write, and the fetch at the same time or later. A direct way uses only
    the first leg. If data of this kind need not move over a link, or if there is no path, the array has 0 ways.
    """
    evicting: tuple[Floats, ...]
    """Ways through the off-chip memory, in the form of `ways`: one array for each kind of move. This field also has
    ways for data that need not move over a link, whereas `ways` has none for such data."""
    stays: Booleans
    """True if the data need not move over a link (one entry for each kind of move). There are two cases: the piece can
    be read where it was produced, or the path has no links
    """
    energy_pj: Floats
    """Smallest energy in pJ to move one bit (one entry for each kind of move). It includes the links, the memories at
    both ends, and the off-chip memory if the way goes through it. The energy is 0 for fetches, for results, and for
    data that need not move"""

    def once(self, kept: Booleans) -> Integers:
        """Position of the first selected reason of each piece. The mask `kept` selects reasons to move pieces. Pieces
        without a selected reason are left out."""
        chosen = np.flatnonzero(kept)
        return chosen[changes(self.piece[chosen])]

    def bits(self, kept: Booleans) -> int:
        """Total bits of the pieces that have a selected reason. The mask `kept` selects reasons."""
        return int(self.piece_bits[self.piece[self.once(kept)]].sum())

    def compulsory(self, kept: Booleans) -> CompulsoryMoves:
        """Moves that are necessary for selected reasons, grouped by kind of move. The mask `kept` selects the reasons.
        For each piece, only its first selected reason counts."""
        chosen = self.once(kept)
        bits = np.zeros(len(self.ways), np.int64)
        np.add.at(bits, self.kind[chosen], self.piece_bits[self.piece[chosen]])
        used = [number for number, table in enumerate(self.ways) if bits[number] and len(table)]
        start = np.zeros(len(used) + 1, np.int64)
        np.cumsum([len(self.ways[number]) for number in used], out=start[1:])
        tables = [self.ways[number].sum(axis=1) for number in used]
        return CompulsoryMoves(bits[used], start, np.concatenate(tables) if tables else np.zeros((0, 0)))

    def core_to_core_energy_pj(self) -> float:
        """Lower bound, in pJ, of the energy of all moves from core to core. If a piece has several moves, only the move
        that needs the most energy counts.
        """
        most = np.zeros(len(self.piece_bits))
        np.maximum.at(most, self.piece, self.energy_pj[self.kind])
        return float(self.piece_bits @ most)


def possible_moves(problem: SchedulingProblem, classes: CnClasses, with_streamed: bool = False) -> PossibleMoves:
    """Moves that can be necessary in a schedule of a problem.

    A constant must reach a memory from which some CN reads it. A result must leave the memory of its producer. Data
    between two CNs must move if no allowed cores of the two CNs share the memory. Data are left out if their reader or
    their producer streams them on at least one allowed core.

    With `with_streamed`, streamed data between CNs are included in two cases. In the first case, the producer streams
    the data out on every allowed core, and the reader streams them on no allowed core; the data must then be fetched.
    In the second case, the reader streams the data on every allowed core, and the producer streams them out on no
    allowed core; the data must then be written off-chip.
    """
    graph, of_cn, never_streams = problem.graph, classes.of_cn, classes.never_streams
    sets, set_of_class = np.unique(classes.allowed, axis=0, return_inverse=True)
    set_of_cn = set_of_class.reshape(-1)[of_cn]
    operands = problem.system.core_memory.shape[1]
    outside = len(sets)
    piece, operand = problem.fetch_order
    producer = graph.piece_producer[piece]
    made = producer >= 0
    maker = np.maximum(producer, 0)
    is_copied = never_streams[of_cn[problem.need_cn], operand]
    kept = is_copied & (~made | never_streams[of_cn[maker], OUTPUT_OPERAND]) & ~graph.piece_is_output[piece]
    leaves = graph.piece_is_output.copy()
    fetched = ~made
    if with_streamed:
        streamed_out = made & classes.always_streams[of_cn[maker], OUTPUT_OPERAND]
        kept |= is_copied & streamed_out
        fetched = fetched | streamed_out
        leaves[piece[made & classes.always_streams[of_cn[problem.need_cn], operand]]] = True
    kept = np.flatnonzero(kept)
    results = np.flatnonzero(leaves)
    results = results[never_streams[of_cn[graph.piece_producer[results]], OUTPUT_OPERAND]]
    sources = np.where(fetched, outside, set_of_cn[maker])[kept]
    sources = np.concatenate((sources, set_of_cn[graph.piece_producer[results]]))
    targets = np.concatenate((set_of_cn[problem.need_cn[kept]], np.full(len(results), outside)))
    by = np.concatenate((operand[kept], np.full(len(results), OUTPUT_OPERAND)))
    kinds, kind = np.unique((sources * (outside + 1) + targets) * operands + by, return_inverse=True)
    described = [_kind(problem.system, sets, outside, int(number), operands) for number in kinds.tolist()]
    ways = [{} if one.stays else _ways(problem.system, one) for one in described]
    by_off_chip = [_ways_by_off_chip(problem.system, one) for one in described]
    is_between = (kinds // operands // (outside + 1) != outside) & (kinds // operands % (outside + 1) != outside)
    widths = problem.system.link_bits_per_cycle
    tables, evicting = (
        [np.array([_load(way, widths) for way in found]).reshape(-1, _LEGS, len(widths)) for found in of_kind]
        for of_kind in (ways, by_off_chip)
    )
    longest = np.array([table.sum(axis=(1, 2)).min() if len(table) else 0.0 for table in tables])
    pieces, kind = np.concatenate((piece[kept], results)), kind.reshape(-1)
    order = np.lexsort((-longest[kind], pieces)) if len(pieces) else pieces
    return PossibleMoves(
        piece=pieces[order],
        piece_bits=graph.piece_bits,
        reader=np.concatenate((problem.need_cn[kept], np.full(len(results), -1)))[order],
        producer=np.concatenate((producer[kept], graph.piece_producer[results]))[order],
        fetched=np.concatenate((fetched[kept], np.zeros(len(results), np.bool_)))[order],
        operand=by[order],
        kind=kind[order],
        ways=tuple(tables),
        evicting=tuple(evicting),
        stays=np.array([one.stays for one in described], np.bool_),
        energy_pj=np.where(is_between, [min(found.values(), default=0.0) for found in ways], 0.0),
    )


_LEGS = 2
"""Largest number of legs of a way. A way through the off-chip memory has two legs, because the fetch can be much later
than the write."""


def _load(way: Way, widths: Integers) -> Floats:
    """Cycles for which a bit occupies a link: array of shape (2 legs, links). If both legs have the same links, the
    first row has the cycles of both legs, and the second row is 0.
    """
    loads = np.zeros((_LEGS, len(widths)))
    for load, links in zip(loads, way, strict=False):
        load[list(links)] = 1.0 / widths[list(links)]
    if np.array_equal(loads[0], loads[1]):
        return np.stack((loads.sum(axis=0), np.zeros(len(widths))))
    return loads


class _Kind(NamedTuple):
    """Possible senders and destinations of the pieces with one kind of move."""

    senders: list[int]
    """Cores that can send the piece; the off-chip core for constants."""
    wanted: list[int]
    """Memories from which the piece can be read; the off-chip memory for results."""
    stays: bool
    """True if the piece need not move over a link. There are two cases: some sender produces it in a memory from which
    it can be read, or some path from a sender to a reader has no links."""


def _kind(system: CoreSystem, sets: Booleans, outside: int, kind: int, operands: int) -> _Kind:
    pair, operand = divmod(kind, operands)
    source, target = divmod(pair, outside + 1)
    off = system.off_chip_core
    senders = [off] if source == outside else np.flatnonzero(sets[source]).tolist()
    readers = [off] if target == outside else np.flatnonzero(sets[target]).tolist()
    wanted = sorted({int(system.core_memory[reader, operand]) for reader in readers} - {-1})
    homes = {int(system.core_memory[sender, OUTPUT_OPERAND]) for sender in senders}
    found = _Kind(senders, wanted, not homes.isdisjoint(wanted))
    if found.stays:
        return found
    paths = [path for sender, fetcher, _ in _ends(system, found) for path, _ in _paths(system, sender, fetcher)]
    return found._replace(stays=any(not any(path) for path in paths))


def _ends(system: CoreSystem, kind: _Kind) -> list[tuple[int, int, int]]:
    """Triples (sender, fetching core, memory) of all possible transfers. If several cores share a memory, each of these
    cores can fetch into it."""
    fetchers = {memory: np.flatnonzero(np.any(system.core_memory == memory, axis=1)).tolist() for memory in kind.wanted}
    return [
        (sender, fetcher, memory) for sender in kind.senders for memory in kind.wanted for fetcher in fetchers[memory]
    ]


def _ways(system: CoreSystem, kind: _Kind) -> dict[Way, float]:
    """Way -> smallest energy in pJ to move one bit over this way; {} if there is no way."""
    found: dict[Way, float] = {}
    for sender, fetcher, memory in _ends(system, kind):
        for path, off_chip_pj in _paths(system, sender, fetcher):
            links = [link for leg in path for link in leg]
            energy = _energy(system, links, int(system.core_memory[sender, OUTPUT_OPERAND]), memory) + off_chip_pj
            found[path] = min(energy, found.get(path, math.inf))
    return found


def _ways_by_off_chip(system: CoreSystem, kind: _Kind) -> dict[Way, None]:
    """Ways on which a piece is written to the off-chip memory and then fetched again. The ways are the keys of a dict;
    all values are None. A piece can take such a way even if it could stay in its memory.
    """
    ways = (_by_off_chip(system, sender, fetcher) for sender, fetcher, _ in _ends(system, kind))
    return dict.fromkeys(way for way in ways if way is not None)


def _paths(system: CoreSystem, sender: int, receiver: int) -> list[tuple[Way, float]]:
    """Ways from a sender to a receiver, as pairs (way, energy). The energy, in pJ per bit, is the energy to write the
    data to the off-chip memory and to read them back. For a direct way, the energy is 0.

    The ways are the direct path and the way through the off-chip memory. If the sender is the receiver, a way without
    links is added.
    """
    memory = system.off_chip_memory
    paths: list[tuple[Way, float]] = [((), 0.0)] if sender == receiver else []
    if system.path_exists[sender * system.core_count + receiver]:
        direct = _links(system, sender, receiver)
        paths.append(((direct,) if direct else (), 0.0))
    around = _by_off_chip(system, sender, receiver)
    if around is not None:
        written = system.memory_write_energy_pj[memory] / system.memory_write_bits[memory]
        read = system.memory_read_energy_pj[memory] / system.memory_read_bits[memory]
        paths.append((around, float(written + read)))
    return paths


def _by_off_chip(system: CoreSystem, sender: int, receiver: int) -> Way | None:
    """Way through the off-chip memory: the sender writes the data, and the receiver fetches them. None if there is no
    such way."""
    off, cores = system.off_chip_core, system.core_count
    if off in (sender, receiver):
        return None
    if not (system.path_exists[sender * cores + off] and system.path_exists[off * cores + receiver]):
        return None
    return (_links(system, sender, off), _links(system, off, receiver))


def _links(system: CoreSystem, sender: int, receiver: int) -> tuple[int, ...]:
    """Links of a path, each once. A transfer occupies a link for bits / rate cycles, even if the path contains the link
    twice."""
    return tuple(dict.fromkeys(system.path(sender, receiver).tolist()))


def _energy(system: CoreSystem, path: list[int], home: int, wanted: int) -> float:
    """Smallest energy in pJ to move a bit: the energy of the links, plus the energy of the two memories at the ends of
    the path. The energy of a memory is the energy of a word divided by the bits of a word.
    """
    links = float(system.link_energy_pj_per_bit[path].sum())
    read = float(system.memory_read_energy_pj[home] / system.memory_read_bits[home])
    return links + read + float(system.memory_write_energy_pj[wanted] / system.memory_write_bits[wanted])
