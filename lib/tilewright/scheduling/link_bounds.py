"""What links must carry whatever core each CN is on: data that cannot stay where it is (docs/bounds.md)."""

import math
from dataclasses import dataclass

import numpy as np

from tilewright.scheduling.problem import OUTPUT_OPERAND, Booleans, CoreSystem, Floats, Integers, SchedulingProblem

_ROUNDS = 300
Way = tuple[int, ...]
"""Links that a piece passes; one that it passes twice is there twice."""


@dataclass(frozen=True, eq=False)
class CompulsoryMoves:
    """Kinds of moves and the ways that are open to each; none of them may be left out."""

    bits: Integers
    """[move] of the pieces that must move so, each counted once"""
    start: Integers
    """[move + 1] into the ways"""
    cycles_per_bit: Floats
    """[way, link] that a bit takes of the link"""
    core_to_core_energy_pj: float
    """Least energy of the moves from core to core, over links and in the memories at the ends"""

    def latency_cycles(self) -> float:
        """The best bound by weights on links, which sum to 1: no link carries more than its width."""
        if not len(self.bits):
            return 0.0
        links = self.cycles_per_bit.shape[1]
        logarithm, average, best = np.zeros(links), np.zeros(links), 0.0
        move_of_way = np.repeat(np.arange(len(self.bits)), np.diff(self.start))
        for step in range(1, _ROUNDS + 1):
            weight = np.exp(logarithm - logarithm.max())
            weight /= weight.sum()
            average += (weight - average) / step
            for candidate in (average / average.sum(), weight):
                price = self.cycles_per_bit @ candidate
                cheapest = np.minimum.reduceat(price, self.start[:-1])
                best = max(best, float(self.bits @ cheapest))
            # The first of the cheapest ways of each move.
            ways = np.flatnonzero(price == cheapest[move_of_way])
            ways = ways[np.unique(move_of_way[ways], return_index=True)[1]]
            load = self.bits @ self.cycles_per_bit[ways]
            if load.sum() == 0:
                break
            logarithm += load / load.max() * (2.0 / math.sqrt(step))
        return best


def compulsory_moves(
    problem: SchedulingProblem, allowed: Booleans, never_streams: Booleans, of_cn: Integers
) -> CompulsoryMoves:
    """The moves of a problem; `allowed` [class, core], `never_streams` [class, operand], `of_cn` the class of each CN.

    A constant must reach a memory that some CN reads it from; a result must leave its producer's memory; what one CN
    makes for another must move if no two allowed cores of theirs have it in one memory. Of a piece that several CNs
    need one move counts, the longest. What may stream is left out.
    """
    graph = problem.graph
    sets, set_of_class = np.unique(allowed, axis=0, return_inverse=True)
    set_of_class = set_of_class.reshape(-1)
    operands = problem.system.core_memory.shape[1]
    outside = len(sets)
    piece, operand = problem.fetch_order
    reader, producer = of_cn[problem.need_cn], graph.piece_producer[piece]
    made = producer >= 0
    source = np.where(made, set_of_class[of_cn[np.maximum(producer, 0)]], outside)
    stays = never_streams[reader, operand] & (~made | never_streams[of_cn[np.maximum(producer, 0)], OUTPUT_OPERAND])
    kept = np.flatnonzero(stays & ~graph.piece_is_output[piece])
    results = np.flatnonzero(graph.piece_is_output)
    results = results[never_streams[of_cn[graph.piece_producer[results]], OUTPUT_OPERAND]]
    pieces = np.concatenate((piece[kept], results))
    sources = np.concatenate((source[kept], set_of_class[of_cn[graph.piece_producer[results]]]))
    targets = np.concatenate((set_of_class[reader[kept]], np.full(len(results), outside)))
    by = np.concatenate((operand[kept], np.full(len(results), OUTPUT_OPERAND)))
    key = (sources * (outside + 1) + targets) * operands + by
    kinds, kind = np.unique(key, return_inverse=True)
    ways = [_ways(problem.system, sets, outside, int(number), operands) for number in kinds.tolist()]
    is_between = (kinds // operands // (outside + 1) != outside) & (kinds // operands % (outside + 1) != outside)
    return _joined(problem, pieces, kind.reshape(-1), ways, is_between)


def _joined(
    problem: SchedulingProblem, pieces: Integers, kind: Integers, ways: list[dict[Way, float]], is_between: Booleans
) -> CompulsoryMoves:
    """Each piece in the kind of move that takes most time if nothing else moves."""
    widths = problem.system.link_bits_per_cycle
    tables = [np.array([_load(way, widths) for way in found]).reshape(len(found), len(widths)) for found in ways]
    longest = np.array([table.sum(axis=1).min() if len(table) else 0.0 for table in tables])
    order = np.lexsort((-longest[kind], pieces)) if len(pieces) else pieces
    first = np.ones(len(order), np.bool_)
    first[1:] = pieces[order][1:] != pieces[order][:-1]
    chosen = order[first]
    bits = np.zeros(len(ways), np.int64)
    np.add.at(bits, kind[chosen], problem.graph.piece_bits[pieces[chosen]])
    used = [number for number in range(len(ways)) if bits[number] and len(tables[number])]
    start = np.zeros(len(used) + 1, np.int64)
    np.cumsum([len(tables[number]) for number in used], out=start[1:])
    return CompulsoryMoves(
        bits=bits[used],
        start=start,
        cycles_per_bit=np.concatenate([np.zeros((0, len(widths))), *(tables[number] for number in used)]),
        core_to_core_energy_pj=_energy_between_cores(problem, pieces, kind, ways, is_between),
    )


def _energy_between_cores(
    problem: SchedulingProblem, pieces: Integers, kind: Integers, ways: list[dict[Way, float]], is_between: Booleans
) -> float:
    """Of each piece the move that takes most energy; fetches and results are counted elsewhere."""
    least = np.array([min(found.values(), default=0.0) for found in ways])
    most = np.zeros(len(problem.graph.piece_bits))
    moves = np.flatnonzero(is_between[kind])
    np.maximum.at(most, pieces[moves], least[kind[moves]])
    return float(problem.graph.piece_bits @ most)


def _load(way: Way, widths: Integers) -> Floats:
    load = np.zeros(len(widths))
    np.add.at(load, list(way), 1.0 / widths[list(way)])
    return load


def _ways(system: CoreSystem, sets: Booleans, outside: int, kind: int, operands: int) -> dict[Way, float]:
    """Way -> its least energy per bit; {} where nothing needs to move over a link, or nothing can."""
    pair, operand = divmod(kind, operands)
    source, target = divmod(pair, outside + 1)
    off = system.off_chip_core
    senders = [off] if source == outside else np.flatnonzero(sets[source]).tolist()
    readers = [off] if target == outside else np.flatnonzero(sets[target]).tolist()
    found: dict[Way, float] = {}
    for sender in senders:
        home = int(system.core_memory[sender, OUTPUT_OPERAND])
        for wanted in {int(system.core_memory[reader, operand]) for reader in readers} - {-1}:
            if home == wanted:
                return {}
            # A memory that several cores share may be filled by any of them.
            for fetcher in np.flatnonzero(np.any(system.core_memory == wanted, axis=1)).tolist():
                for path, off_chip_pj in _paths(system, sender, fetcher):
                    if not path:
                        return {}
                    energy = _energy(system, path, home, wanted) + off_chip_pj
                    found[path] = min(energy, found.get(path, math.inf))
    return found


def _paths(system: CoreSystem, sender: int, receiver: int) -> list[tuple[Way, float]]:
    """The direct path of a pair, and the one by way of the off-chip memory with the energy of a bit there; none
    within a core needs a link."""
    off, cores, memory = system.off_chip_core, system.core_count, system.off_chip_memory
    paths: list[tuple[Way, float]] = [((), 0.0)] if sender == receiver else []
    if system.path_exists[sender * cores + receiver]:
        paths.append((tuple(system.path(sender, receiver).tolist()), 0.0))
    through = off not in (sender, receiver) and system.path_exists[sender * cores + off]
    if through and system.path_exists[off * cores + receiver]:
        written = system.memory_write_energy_pj[memory] / system.memory_write_bits[memory]
        read = system.memory_read_energy_pj[memory] / system.memory_read_bits[memory]
        links = *system.path(sender, off).tolist(), *system.path(off, receiver).tolist()
        paths.append((links, float(written + read)))
    return paths


def _energy(system: CoreSystem, path: Way, home: int, wanted: int) -> float:
    """Least energy of a bit: its links, its part of a word at both ends."""
    links = float(system.link_energy_pj_per_bit[list(path)].sum())
    read = float(system.memory_read_energy_pj[home] / system.memory_read_bits[home])
    return links + read + float(system.memory_write_energy_pj[wanted] / system.memory_write_bits[wanted])
