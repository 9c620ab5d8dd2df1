"""Lower bound of the latency from the phases of a schedule (docs/proofs/bounds-phases.md, "Phases").

In a chain of CNs, each CN waits for the previous one. The phases are the runs of these CNs, and the times before,
between and after the runs. The work that a core or link must do in a phase takes at most the length of the phase. Data
that stay on chip from one phase to the next must fit the memories.
"""

from collections.abc import Callable, Sequence

import numpy as np

from tilewright.multicore.scheduling.bounds.chains import NodeChain, chain_of
from tilewright.multicore.scheduling.bounds.classes import CnClasses
from tilewright.multicore.scheduling.bounds.limits import changes
from tilewright.multicore.scheduling.bounds.paths import LongestPaths
from tilewright.multicore.scheduling.bounds.phase_program import Item, PhaseProblem, best_bound_cycles
from tilewright.multicore.scheduling.bounds.work import PossibleMoves
from tilewright.multicore.scheduling.problem import Booleans, Floats, Integers, SchedulingProblem

MOST_CNS = 32
"""Largest number of CNs in a chain. The runs of these CNs divide the schedule into phases."""
MOST_CHOICES = 40_000
"""Largest number of variables of the linear program, as `PhaseProblem.choices` counts them. If a program would have
more variables, a shorter chain with fewer phases is used.
"""


def phases_latency_cycles(
    problem: SchedulingProblem, classes: CnClasses, paths: LongestPaths, moves: PossibleMoves
) -> int:
    """Best lower bound of the latency in cycles from the phases of a schedule; 0 if there are no CNs. The phases belong
    to the chain of CNs that `longest_program` chooses.
    """
    if not len(paths.head):
        return 0
    program = longest_program(
        lambda chain: phase_problem(problem, classes, paths, moves, chain), problem, paths, MOST_CNS, MOST_CHOICES
    )
    return best_bound_cycles(program)


def longest_program(
    make: Callable[[NodeChain], PhaseProblem], problem: SchedulingProblem, paths: LongestPaths, cns: int, choices: int
) -> PhaseProblem:
    """Program that `make` returns for a chain with at most `cns` CNs. If the program has too many variables, `cns` is
    halved until the program has at most `choices` variables or the chain has only one CN.
    """
    while True:
        program = make(chain_of(problem, paths, cns))
        if program.choices <= choices or cns <= 1:
            return program
        cns //= 2


def phase_problem(
    problem: SchedulingProblem, classes: CnClasses, paths: LongestPaths, moves: PossibleMoves, chain: NodeChain
) -> PhaseProblem:
    """Linear program of the work that must be done in the phases of a chain."""
    system = problem.system
    on_chip = np.array([core for core in range(system.core_count) if core != system.off_chip_core])
    memories = MemorySets(problem, classes)
    items = (*_runs(problem, classes, chain, on_chip), *_moves(problem, moves, chain, memories, len(on_chip)))
    nothing = np.zeros((0, 2), np.int64), np.zeros((0, 3), np.int64)
    return PhaseProblem(items, *limits_of_phases(problem, paths, chain, len(on_chip)), *memories.limits(), *nothing)


def limits_of_phases(
    problem: SchedulingProblem, paths: LongestPaths, chain: NodeChain, cores: int
) -> tuple[Integers, Floats]:
    """Pair (smallest length in cycles of each phase, idle cycles). The idle cycles of a resource in a phase are the
    cycles in which it cannot work on any item: array of shape (phases, resources). The resources are the on-chip cores,
    then the links.
    """
    last = 2 * len(chain.cns)
    least = np.zeros(last + 1, np.int64)
    least[1::2] = paths.runtime[chain.cns]
    least[0], least[last] = paths.head[chain.cns[0]], paths.tail[chain.cns[-1]]
    idle = np.zeros((last + 1, cores + len(problem.system.link_bits_per_cycle)))
    idle[0, :cores] = float(paths.release.min())
    idle[last, :cores] = float(paths.writing.min())
    return least, idle


def _runs(problem: SchedulingProblem, classes: CnClasses, chain: NodeChain, on_chip: Integers) -> list[Item]:
    """Items of work for the runs of CNs. An item stands for equal CNs that must run in the same range of phases. The
    ways of an item are the cores on which these CNs can run. The loads of a way include the data that the CNs stream.
    """
    keys = np.stack((classes.of_cn, chain.first, chain.last), axis=1)
    distinct, counts = np.unique(keys, axis=0, return_counts=True)
    loads: dict[int, Floats] = {}
    items = []
    for (number, first, last), count in zip(distinct.tolist(), counts.tolist(), strict=True):
        if number not in loads:
            loads[number] = run_loads(problem, classes, on_chip, number)
        items.append(Item(float(count), loads[number], first, last, np.zeros(len(loads[number]), np.bool_)))
    return items


def run_loads(problem: SchedulingProblem, classes: CnClasses, on_chip: Integers, number: int) -> Floats:
    """Cycles for which the run of one CN of class `number`, with its streams, occupies each resource: array of shape
    (allowed cores, 1 leg, resources). Each allowed core is a way to run the CN. The resources are the on-chip cores,
    then the links.
    """
    system = problem.system
    rows = []
    for place in np.flatnonzero(classes.allowed[number][on_chip]).tolist():
        core, row = int(on_chip[place]), np.zeros(len(on_chip) + len(system.link_bits_per_cycle))
        row[place] = classes.runtime[number, core]
        for operand, bits in enumerate(classes.stream_bits[number, core].tolist()):
            ends = (core, system.off_chip_core) if operand == 0 else (system.off_chip_core, core)
            links = np.unique(system.path(*ends))  # a link that occurs twice counts once
            row[len(on_chip) + links] += bits / system.link_bits_per_cycle[links]
        rows.append(row)
    return np.array(rows)[:, None, :]


class MemorySets:
    """Sets of memories in which data can be stored, numbered in the order of their first use."""

    def __init__(self, problem: SchedulingProblem, classes: CnClasses) -> None:
        self._system, self._classes = problem.system, classes
        self._numbers: dict[frozenset[int], int] = {}
        self._known: dict[tuple[int, int, int], int] = {}

    def of(self, producer: int, reader: int, operand: int) -> int:
        """Index of the set of on-chip memories in which a piece can be stored before a CN reads the piece. A piece is a
        part of a tensor that moves as a whole.

        `producer` is the CN that makes the piece, or -1 if the piece comes from the off-chip memory. `reader` is the CN
        that reads the piece, and `operand` is its operand that contains the piece.
        """
        of_cn = self._classes.of_cn
        key = (int(of_cn[producer]) if producer >= 0 else -1, int(of_cn[reader]), operand)
        if key not in self._known:
            memory, allowed = self._system.core_memory, self._classes.allowed
            found = {int(one) for one in memory[allowed[key[1]], operand]}
            if key[0] < 0 and self._system.forwards_constants:
                found = set(range(len(self._system.memory_capacity_bits)))  # it can wait on any core
            elif key[0] >= 0:
                found |= {int(one) for one in memory[allowed[key[0]], 0]}
            chosen = frozenset(found - {-1, self._system.off_chip_memory})
            self._known[key] = self._numbers.setdefault(chosen, len(self._numbers))
        return self._known[key]

    def limits(self) -> tuple[Floats, Booleans]:
        """Pair (capacity in bits of each set, array of shape (sets, sets): true if the first set is a subset of the
        second).
        """
        sets = list(self._numbers)
        capacity = self._system.memory_capacity_bits
        room = np.array([float(sum(int(capacity[memory]) for memory in one)) for one in sets])
        inside = np.array([[one <= other for other in sets] for one in sets], np.bool_)
        return room, inside.reshape(len(sets), len(sets))


def _moves(
    problem: SchedulingProblem, moves: PossibleMoves, chain: NodeChain, memories: MemorySets, cores: int
) -> list[Item]:
    """Items of work for the pieces (parts of tensors that move as a whole) that must move. A piece must move to a CN
    that reads the piece. A result of the network must move to the off-chip memory.

    If a piece must move for several reasons (`PossibleMoves`), only one of these reasons counts.
    """
    producer, reader = moves.producer, moves.reader
    if not len(moves.piece):
        return []
    last_phase = 2 * len(chain.cns)
    made, is_read = producer >= 0, reader >= 0
    of_maker, of_reader = np.maximum(producer, 0), np.maximum(reader, 0)
    first = np.where(made, chain.first[of_maker], 0)
    last = np.where(is_read, chain.arrives[of_reader], last_phase)
    until = np.where(is_read, chain.first[of_reader], -1)
    at_home = made & ~moves.fetched
    since = np.where(at_home, chain.last[of_maker] + 1, -1)
    # For a fetched piece, the reader for which the piece must stay longest counts; for other pieces, the reader that
    # waits least. Ties go to the first reason.
    urgency = np.where(moves.fetched, -until, last)
    order = np.lexsort((np.arange(len(urgency)), urgency, moves.piece))
    order = order[changes(moves.piece[order])]
    sets = [
        memories.of(int(producer[one]) if at_home[one] else -1, int(reader[one]), int(moves.operand[one]))
        if is_read[one]
        else -1
        for one in order.tolist()
    ]
    columns = (moves.kind[order], first[order], last[order], until[order], since[order], np.array(sets, np.int64))
    distinct, inverse = np.unique(np.stack(columns, axis=1), axis=0, return_inverse=True)
    bits = np.bincount(inverse.reshape(-1), moves.piece_bits[moves.piece[order]], len(distinct))
    items = []
    for row, count in zip(distinct.tolist(), bits.tolist(), strict=True):
        kind, begin, end, to, since_phase, memory_set = row
        loads, holds = ways_of(moves, kind, cores, len(problem.system.link_bits_per_cycle))
        if len(loads):
            since_or_none = None if since_phase < 0 else since_phase
            items.append(Item(count, loads, begin, end, holds & (memory_set >= 0), memory_set, since_or_none, to))
    return items


def ways_of(moves: PossibleMoves, kind: int, cores: int, links: int) -> tuple[Floats, Booleans]:
    """Pair of arrays for the ways to move data of the kind `kind`. A way has one or two moves, its legs.

    The first array, of shape (ways, legs, resources), has the cycles for which a bit occupies a resource. The resources
    are the `cores` on-chip cores, followed by the `links` links. The second array has one entry for each way. The entry
    is True if a bit that takes the way stays on chip.
    """
    evicting = moves.evicting[kind]
    legs = evicting.shape[1]
    direct: Sequence[Floats] = [np.zeros((legs, links))] if moves.stays[kind] else list(moves.ways[kind])
    direct = [way for way in direct if not any(np.array_equal(way, other) for other in evicting)]
    ways = np.array([*direct, *evicting]).reshape(-1, legs, links)
    holds = np.arange(len(ways)) < len(direct)
    return np.concatenate((np.zeros((len(ways), legs, cores)), ways), axis=2), holds
