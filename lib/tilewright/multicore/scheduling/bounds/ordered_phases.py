"""Lower bound by phases that also follows the order of dependent work (docs/proofs/bounds-ordered-phases.md, "Phases in
order").

CNs of a layer form one item if they have the same cost, the same phases and the same position in their groups. Pieces
form one item if they move in the same way between the same items. If item B waits for item A, there is a constraint for
the end of each phase: the started share of B is at most the finished share of A.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np

from tilewright.multicore.scheduling.bounds.chains import NodeChain
from tilewright.multicore.scheduling.bounds.classes import CnClasses
from tilewright.multicore.scheduling.bounds.limits import changes
from tilewright.multicore.scheduling.bounds.paths import LongestPaths
from tilewright.multicore.scheduling.bounds.phase_program import Item, PhaseProblem, best_bound_cycles
from tilewright.multicore.scheduling.bounds.phases import (
    MemorySets,
    limits_of_phases,
    longest_program,
    run_loads,
    ways_of,
)
from tilewright.multicore.scheduling.bounds.work import PossibleMoves
from tilewright.multicore.scheduling.problem import Integers, SchedulingProblem

MOST_CNS = 16
"""Largest number of CNs in a chain. The run of each of these CNs is a phase. In experiments, longer chains hardly ever
gave larger bounds.
"""
MOST_CHOICES = 20_000
"""Largest number of variables of the linear program, as `PhaseProblem.choices` counts them. If a program would have
more variables, a shorter chain with fewer phases is used. Longer chains hardly give larger bounds: for a plan of
mobilenetv2 with 5,769 CNs, a limit of 40,000 gave 866,375 cycles in 27 CPU s; 20,000 gave 871,899 cycles in 7 CPU s.
"""
MOST_EDGES = 100_000
"""Largest number of edges of a graph for which the bound from ordered phases is computed."""
MOST_PLACES = 28
"""Largest number of positions in one group of a layer. CNs at the same position of different groups can form one item.
In a group with more CNs, neighbouring CNs share a position.
"""
Pairs = list[tuple[int, int]]


@dataclass(eq=False)
class Members:
    """Members of items, with their weights. A member is a piece of data, or the run of a CN. The weight of a piece is
    its size in bits, and the weight of a run is 1. The members of an item have an order.
    """

    item_of: dict[int, int] = field(default_factory=dict)
    weight: dict[int, int] = field(default_factory=dict)
    of_item: dict[int, list[int]] = field(default_factory=dict)

    def add(self, item: int, members: Iterable[int], weights: Iterable[int]) -> None:
        """Append members, with their weights, to the members that an item already has."""
        for member, weight in zip(members, weights, strict=True):
            self.item_of[member], self.weight[member] = item, weight
            self.of_item.setdefault(item, []).append(member)


def ordered_phases_latency_cycles(
    problem: SchedulingProblem, classes: CnClasses, paths: LongestPaths, moves: PossibleMoves
) -> int:
    """Best lower bound of the latency in cycles from phases with constraints on the order of dependent work. The bound
    is 0 if there are no CNs, if the graph has more than MOST_EDGES edges, or if the linear program is too large.
    """
    if not len(paths.head) or len(problem.edges[1]) > MOST_EDGES:
        return 0
    program = longest_program(
        lambda chain: ordered_phase_problem(problem, classes, paths, moves, chain),
        problem,
        paths,
        MOST_CNS,
        MOST_CHOICES,
    )
    return best_bound_cycles(program) if program.choices <= MOST_CHOICES else 0


def ordered_phase_problem(
    problem: SchedulingProblem, classes: CnClasses, paths: LongestPaths, moves: PossibleMoves, chain: NodeChain
) -> PhaseProblem:
    """Linear-program data for the phases of a chain, with constraints on the order of dependent work."""
    return OrderedPhases(problem, classes, moves, chain).program(paths)


class OrderedPhases:
    """Work that must be done in the phases of a chain of CNs. The work is divided into items. An item has units of work
    of equal size: runs of CNs, or bits that move. The fields also list pairs of items in which one item waits for the
    other item.
    """

    def __init__(self, problem: SchedulingProblem, classes: CnClasses, moves: PossibleMoves, chain: NodeChain) -> None:
        self.problem, self.classes, self.moves, self.chain = problem, classes, moves, chain
        system = problem.system
        self.on_chip = np.array([core for core in range(system.core_count) if core != system.off_chip_core])
        self.memories = MemorySets(problem, classes)
        self.items: list[Item] = []
        self.runs, self.moved, self.fetched = Members(), Members(), Members()
        self.place = _places(problem)
        self.waits: dict[tuple[int, int], Pairs] = {}
        """Pairs (member of the first item, member of the second item), by (first item, second item). The second member
        waits for the first member.
        """
        self.reader_of: dict[int, tuple[int, int]] = {}
        """Fetched piece -> pair (CN, operand) that reads the piece. If several pairs read the piece, the listed pair is
        the one that keeps the piece in memory longest.
        """
        self.kind_of: dict[int, int] = {}
        """Piece -> kind of move, for pieces that are produced on chip and must move. All pieces of an item have the
        same kind.
        """
        self.sets: dict[int, int] = {}
        """Item -> index of the set of memories that can hold its fetched pieces"""

    def program(self, paths: LongestPaths) -> PhaseProblem:
        """Data of the linear program for the phases: items, orders, stays, and the limits of phases and memories. An
        order is a pair of items in which the second item waits for the first. A stay says that fetched data occupy
        memories until their readers run. If the program has more than MOST_CHOICES variables, orders and stays are left
        out. They take long to find, and `longest_program` does not use a program of this size.
        """
        self._add_runs()
        self._add_fetches(paths)
        by_move = self._add_moves()
        program = PhaseProblem(
            tuple(self.items),
            *limits_of_phases(self.problem, paths, self.chain, len(self.on_chip)),
            *self.memories.limits(),
            orders=np.zeros((0, 2), np.int64),
            stays=np.zeros((0, 3), np.int64),
        )
        if program.choices > MOST_CHOICES:
            return program
        self._wait_for_edges(by_move)
        orders, stays = self._constraints()
        return replace(program, orders=orders, stays=stays)

    def _constraints(self) -> tuple[Integers, Integers]:
        """Pair (`PhaseProblem.orders`, `PhaseProblem.stays`) for the items that match evenly (`_is_even`)."""
        orders, stays = [], []
        for (before, after), pairs in self.waits.items():
            says = self.items[after].first < self.items[before].last
            if (says or before in self.sets) and self._is_even(before, after, pairs):
                if says:
                    orders.append((before, after))
                if before in self.sets:
                    stays.append((before, after, self.sets[before]))
        return np.array(orders, np.int64).reshape(-1, 2), np.array(stays, np.int64).reshape(-1, 3)

    def _add_runs(self) -> None:
        graph, chain = self.problem.graph, self.chain
        cns = np.arange(graph.node_count)
        keys = np.stack((graph.layer, self.place, self.classes.of_cn, chain.first, chain.last), axis=1)
        loads: dict[int, np.ndarray] = {}
        for key, members in _grouped(keys, np.lexsort((cns, graph.group))):
            _, _, number, first, last = key
            if number not in loads:
                loads[number] = run_loads(self.problem, self.classes, self.on_chip, number)
            self.runs.add(len(self.items), members, [1] * len(members))
            free = np.zeros(len(loads[number]), np.bool_)
            self.items.append(Item(float(len(members)), loads[number], first, last, free))

    def _add_fetches(self, paths: LongestPaths) -> None:
        """Add items for pieces from the off-chip memory. If a piece has several readers, it is assigned to the reader
        that keeps the piece in memory longest.
        """
        moves, chain = self.moves, self.chain
        chosen = np.flatnonzero(moves.fetched)
        reader = moves.reader[chosen]
        order = np.lexsort((chosen, -paths.head[reader], -chain.first[reader], moves.piece[chosen]))
        chosen = chosen[order][changes(moves.piece[chosen[order]])]
        reader, producer = moves.reader[chosen], moves.producer[chosen]
        begin = np.where(producer >= 0, chain.first[np.maximum(producer, 0)], 0)
        items = np.array([self.runs.item_of[int(one)] for one in reader], np.int64)
        keys = np.stack((moves.kind[chosen], begin, chain.arrives[reader], items, moves.operand[chosen]), axis=1)
        for key, members in _grouped(keys, np.lexsort((moves.piece[chosen], reader))):
            kind, first, last, after, operand = key
            number = self._add_item(kind, first, last, moves.piece[chosen[members]].tolist(), self.fetched)
            if number is None:
                continue
            self.sets[number] = self.memories.of(-1, int(reader[members[0]]), operand)
            for place in members:
                piece = int(moves.piece[chosen[place]])
                self.reader_of[piece] = int(reader[place]), operand
                self.waits.setdefault((number, after), []).append((piece, int(reader[place])))
                if producer[place] >= 0:
                    maker = int(producer[place])
                    self.waits.setdefault((self.runs.item_of[maker], number), []).append((maker, piece))

    def _add_moves(self) -> set[tuple[int, int]]:
        """Add items for pieces of data that are produced on chip and must move. Pieces form one item if they have the
        same kind of move, the same phases, the same producing items and the same waiting items. If a piece needs
        several kinds of move, only the first kind counts.

        Returns pairs (piece, CN): the CN reads the piece, and therefore waits for its move.
        """
        moves, chain = self.moves, self.chain
        chosen = np.flatnonzero(~moves.fetched & ~moves.stays[moves.kind])
        pieces, begin = np.unique(moves.piece[chosen], return_index=True)
        first_kind = moves.kind[chosen[begin]]
        place = np.searchsorted(pieces, moves.piece[chosen])
        chosen = chosen[moves.kind[chosen] == first_kind[place]]  # any kind of move is valid; the first is taken
        place = np.searchsorted(pieces, moves.piece[chosen])
        reader, phases = moves.reader[chosen], len(chain.cns) * 2
        arrives = np.where(reader >= 0, chain.arrives[np.maximum(reader, 0)], phases)
        last = np.full(len(pieces), phases)
        np.minimum.at(last, place, arrives)
        producer = self.problem.graph.piece_producer[pieces]
        made_in = np.array([self.runs.item_of[int(one)] for one in producer], np.int64)
        keys = np.stack((first_kind, chain.first[producer], last, made_in, self._readers(place, reader)), axis=1)
        for key, members in _grouped(keys, np.lexsort((pieces, producer))):
            kind, since, until, before, _ = key
            number = self._add_item(kind, since, until, pieces[members].tolist(), self.moved)
            if number is not None:
                self.kind_of |= {int(pieces[one]): kind for one in members}
                made = [(int(producer[one]), int(pieces[one])) for one in members]
                self.waits.setdefault((before, number), []).extend(made)
        waiting = set()
        for piece, cn in zip(moves.piece[chosen].tolist(), reader.tolist(), strict=True):
            if cn >= 0 and piece in self.moved.item_of:
                self.waits.setdefault((self.moved.item_of[piece], self.runs.item_of[cn]), []).append((piece, cn))
                waiting.add((piece, cn))
        return waiting

    def _readers(self, place: Integers, reader: Integers) -> Integers:
        """Set of items whose CNs wait for the piece, as a number (one entry for each piece). Equal sets have the same
        number.

        `place` and `reader` have one entry for each move. `place` is the position of the piece that moves. `reader` is
        the CN that reads the piece; it is -1 if the move only writes the piece off-chip.
        """
        found: list[set[int]] = [set() for _ in range(int(place.max(initial=-1)) + 1)]
        for piece, cn in zip(place.tolist(), reader.tolist(), strict=True):
            if cn >= 0:
                found[piece].add(self.runs.item_of[cn])
        numbers: dict[frozenset[int], int] = {}
        return np.array([numbers.setdefault(frozenset(one), len(numbers)) for one in found], np.int64)

    def _add_item(self, kind: int, first: int, last: int, pieces: list[int], members: Members) -> int | None:
        """Add an item for `pieces`, and add the pieces to `members`. The pieces move in the phases `first` to `last`,
        by a move of the kind `kind`. Returns the number of the item. If this kind of move has no possible way, nothing
        is added, and the result is None.
        """
        links = len(self.problem.system.link_bits_per_cycle)
        loads, _ = ways_of(self.moves, kind, len(self.on_chip), links)
        if not len(loads):
            return None
        bits = self.moves.piece_bits[pieces].tolist()
        members.add(len(self.items), pieces, bits)
        self.items.append(Item(float(sum(bits)), loads, first, last, np.zeros(len(loads), np.bool_)))
        return len(self.items) - 1

    def _wait_for_edges(self, by_move: set[tuple[int, int]]) -> None:
        """Add waits of CNs for their predecessors. A wait is left out if both CNs belong to the same item. It is also
        left out if the CN already waits for the move of a piece that the predecessor produces. `by_move` has the waits
        for moves, as pairs (piece, CN).
        """
        problem = self.problem
        producer = problem.graph.piece_producer
        piece = problem.fetch_order[0]
        moved = {
            (int(producer[one]), cn)
            for one, cn in zip(piece.tolist(), problem.need_cn.tolist(), strict=True)
            if (one, cn) in by_move
        }
        start, successor = problem.edges
        source = np.repeat(np.arange(problem.graph.node_count), np.diff(start))
        item_of = self.runs.item_of
        for before, after in zip(source.tolist(), successor.tolist(), strict=True):
            pair = item_of[before], item_of[after]
            if (before, after) not in moved and pair[0] != pair[1]:
                self.waits.setdefault(pair, []).append((before, after))

    def _is_even(self, before: int, after: int, pairs: Pairs) -> bool:
        """True if two items match evenly. To test this, each member of `after` divides its weight among the members of
        `before` for which it waits. The match is even if the members of `before` then receive weights in proportion to
        their own weights.

        `pairs` has pairs (member of `before`, member of `after` that waits for it). Two divisions of the weights are
        tried. In the first, the members of both items lie side by side in their order (`_spread`). In the second, each
        member of `after` divides its weight among all members for which it waits (`_is_even_by_shares`).
        """
        first, second = self._members(before), self._members(after)
        known = set(pairs)
        return all(pair in known for pair in _spread(first, second)) or _is_even_by_shares(first, second, known)

    def _members(self, item: int) -> list[tuple[int, int]]:
        """Pairs (member, weight) of an item, in the order of its members."""
        for members in (self.runs, self.moved, self.fetched):
            if item in members.of_item:
                return [(one, members.weight[one]) for one in members.of_item[item]]
        raise KeyError(item)


def _is_even_by_shares(
    first: list[tuple[int, int]], second: list[tuple[int, int]], pairs: set[tuple[int, int]]
) -> bool:
    """True if two items match evenly under one division of weights. `first` and `second` have the pairs (member,
    weight) of the two items. `pairs` has pairs (member of `first`, member of `second` that waits for it).

    Each member of `second` divides its weight among all members of `first` for which it waits, in proportion to the
    weights of these members. The match is even if the members of `first` then receive weights in proportion to their
    own weights. If a member of `second` waits for no member of `first`, the result is False.
    """
    of_second: dict[int, list[int]] = {}
    for one, other in pairs:
        of_second.setdefault(other, []).append(one)
    if len(of_second) < len(second):
        return False
    weight = dict(first)
    whole = sum(weight.values()), sum(one for _, one in second)
    taken = dict.fromkeys(weight, Fraction(0))
    for other, its_weight in second:
        total = sum(weight[one] for one in of_second[other])
        for one in of_second[other]:
            taken[one] += Fraction(its_weight * weight[one], total)
    return all(taken[one] * whole[0] == its_weight * whole[1] for one, its_weight in first)


def _spread(first: list[tuple[int, int]], second: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Pairs (member of `first`, member of `second`) that overlap if the members of each list lie on a line, one after
    another. The length of a member is its weight, and both lines are scaled to the same total length. `first` and
    `second` have pairs (member, weight).
    """
    total_first, total_second = (sum(weight for _, weight in one) for one in (first, second))
    place, other = 0, 0
    end, other_end = first[0][1] * total_second, second[0][1] * total_first
    while True:
        yield first[place][0], second[other][0]
        if end <= other_end:
            place += 1
        if end >= other_end:
            other += 1
        if place == len(first) or other == len(second):
            return
        if end <= other_end:
            end, other_end = (
                end + first[place][1] * total_second,
                (other_end if end < other_end else other_end + second[other][1] * total_first),
            )
        else:
            other_end += second[other][1] * total_first


def _places(problem: SchedulingProblem) -> Integers:
    """Position of the CN within its group of the layer (one entry for each CN). In a group with more than `MOST_PLACES`
    CNs, the positions are scaled to 0 to `MOST_PLACES` - 1, so that neighbouring CNs share a position.
    """
    graph = problem.graph
    order = np.lexsort((np.arange(graph.node_count), graph.group, graph.layer))
    begin = np.flatnonzero(changes(graph.layer[order]) | changes(graph.group[order]))
    size = np.diff(np.append(begin, len(order)))
    rank, sizes = np.arange(len(order)) - np.repeat(begin, size), np.repeat(size, size)
    place = np.empty(len(order), np.int64)
    place[order] = np.where(sizes > MOST_PLACES, rank * MOST_PLACES // sizes, rank)
    return place


def _grouped(keys: Integers, order: Integers) -> Iterator[tuple[list[int], list[int]]]:
    """Pairs (key, members), one for each distinct row of `keys`. The members are the positions of the rows that are
    equal to the key. `order` has the positions of all rows; the members of a key are in the same order as in `order`.
    """
    if not len(keys):
        return
    distinct, of_row = np.unique(keys[order], axis=0, return_inverse=True)
    by_key = np.argsort(of_row.reshape(-1), kind="stable")
    counts = np.bincount(of_row.reshape(-1), minlength=len(distinct))
    for key, members in zip(distinct.tolist(), np.split(order[by_key], np.cumsum(counts)[:-1]), strict=True):
        yield key, members.tolist()
