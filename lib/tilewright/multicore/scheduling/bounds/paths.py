"""Lower bounds on latency from longest paths through the CN graph, and from the work before and after one CN.

On a path, each CN runs on its fastest core. The proofs are in docs/proofs/bounds.md.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from tilewright.base.compiled import native_function
from tilewright.base.errors import InputError, Problem
from tilewright.base.record_pointer import pointer_to
from tilewright.multicore.scheduling.bounds.classes import CnClasses
from tilewright.multicore.scheduling.bounds.core_work import ROUNDS, TrafficLoad, core_work, traffic_loads
from tilewright.multicore.scheduling.bounds.limits import SystemLimits, changes, whole_cycles
from tilewright.multicore.scheduling.bounds.paths_kernel import cns_around, longest_paths
from tilewright.multicore.scheduling.bounds.work import PossibleMoves
from tilewright.multicore.scheduling.problem import OUTPUT_OPERAND, Booleans, Integers, SchedulingProblem
from tilewright.multicore.scheduling.state_record import GRAPH

RECORDS = (GRAPH,)
"""Types of the records that the compiled functions take."""


@dataclass(frozen=True, eq=False)
class LongestPaths:
    """Lower bounds in cycles for the times of each CN in every schedule, and for the latency."""

    latency_cycles: int
    head: Integers
    """Smallest number of cycles from the start of the schedule to the start of the CN (one entry for each CN)"""
    runtime: Integers
    """Smallest runtime of the CN in cycles (one entry for each CN)"""
    tail: Integers
    """Smallest number of cycles from the end of the CN to the end of the schedule (one entry for each CN)"""
    release: Integers
    """Smallest number of cycles from the start of the schedule until the constants of the CN have left the off-chip
    memory (one entry for each CN). Constants that the CN may stream are left out. If data that fit a core may stream,
    the number is 0
    """
    writing: Integers
    """Smallest number of cycles from the end of the CN until its results are in the off-chip memory (one entry for each
    CN). Only results of the network are included, and none that the CN may stream. If data that fit a core may stream,
    the number is 0
    """
    may_stream: bool
    """True if the bounds also hold for schedules that stream data although the data fit a core"""
    _record: np.record
    _arrays: dict[str, Integers]
    """Arrays whose addresses the compiled record holds, by field name. They must exist as long as the record."""

    def around(self, cn: int) -> tuple[Booleans, Booleans]:
        """Pair of masks of CNs. The first selects the CNs that end before CN `cn` starts in every schedule. The second
        selects the CNs that start after CN `cn` ends in every schedule.
        """
        native_function(cns_around, RECORDS)(self._record, cn)
        mark = self._arrays["mark"]
        return mark == 1, mark == 2


def paths_through(problem: SchedulingProblem, classes: CnClasses, limits: SystemLimits) -> LongestPaths:
    """Longest paths of a problem. Raises InputError if the dependences of CNs form a cycle.

    If data that fit a core may stream (`classes.may_stream`), all data of a CN can move while the CN runs. The movement
    of data then adds no time to a path.
    """
    runtime = whole_cycles(classes.runtime.min(axis=1))[classes.of_cn]
    start, successor = problem.edges
    if classes.may_stream:
        release, writing, delay = np.zeros_like(runtime), np.zeros_like(runtime), np.zeros_like(successor)
    else:
        release, writing = _release(problem, classes, limits), _writing(problem, classes, limits)
        delay = _edge_delays(problem, classes, limits)
    arrays = {
        "head": release.copy(),
        "runtime": runtime,
        "tail": writing.copy(),
        "waiting": problem.predecessor_count.copy(),
        "queue": np.empty(len(runtime), np.int64),
        "start": start,
        "successor": np.ascontiguousarray(successor),
        "delay": delay,
        "mark": np.zeros(len(runtime), np.int64),
    }
    record: np.record = np.zeros(1, GRAPH).view(np.recarray)[0]
    record["node_count"] = len(runtime)
    for name, array in arrays.items():
        record[name] = pointer_to(array)
    native_function(longest_paths, RECORDS)(record, 0)
    if record["finished"] < len(runtime):
        raise InputError([Problem("computation nodes (CNs) wait for each other in a cycle", path="graph")])
    latency = int(record["latency"])
    times = arrays["head"], runtime, arrays["tail"], release, writing
    return LongestPaths(latency, *times, classes.may_stream, record, arrays)


def _first_of_piece(problem: SchedulingProblem) -> Booleans:
    """Flags, one for each need (a piece of data that a CN reads): True for the first need of the CN for this piece. The
    needs of a CN for the same piece are neighbours in the list of needs.
    """
    piece = problem.fetch_order[0]
    return changes(piece) | changes(problem.need_cn)


def _release(problem: SchedulingProblem, classes: CnClasses, limits: SystemLimits) -> Integers:
    """Smallest number of cycles from the start of the schedule until the constants of the CN have left the off-chip
    memory (one entry for each CN). Constants that the CN may stream are left out.
    """
    piece, operand = problem.fetch_order
    counts = (problem.graph.piece_producer[piece] < 0) & classes.never_streams[classes.of_cn[problem.need_cn], operand]
    counts &= _first_of_piece(problem)
    bits = np.bincount(problem.need_cn[counts], problem.graph.piece_bits[piece[counts]], problem.graph.node_count)
    return whole_cycles(bits / limits.read_bits_per_cycle)


def _writing(problem: SchedulingProblem, classes: CnClasses, limits: SystemLimits) -> Integers:
    """Smallest number of cycles from the end of the CN until its results are in the off-chip memory (one entry for each
    CN). Only results of the network that the CN never streams count.
    """
    pieces = np.flatnonzero(problem.graph.piece_is_output)
    pieces = pieces[classes.never_streams[classes.of_cn[problem.graph.piece_producer[pieces]], OUTPUT_OPERAND]]
    producer = problem.graph.piece_producer[pieces]
    bits = np.bincount(producer, problem.graph.piece_bits[pieces], problem.graph.node_count)
    return whole_cycles(bits / limits.write_bits_per_cycle)


def _edge_delays(problem: SchedulingProblem, classes: CnClasses, limits: SystemLimits) -> Integers:
    """Smallest number of cycles to move a piece from the first CN of the edge to the second CN (one entry for each
    edge). A piece counts with the fastest pair of allowed cores. Of several pieces of an edge, the slowest one counts.
    The number is 0 for an edge without data.
    """
    start, successor = problem.edges
    delay = np.zeros(len(successor), np.int64)
    piece, operand = problem.fetch_order
    producer = problem.graph.piece_producer[piece]
    needs = np.flatnonzero(producer >= 0)
    if len(needs) == 0:
        return delay
    source, target = producer[needs], problem.need_cn[needs]
    operands = problem.system.core_memory.shape[1]
    key = (classes.of_cn[source] * len(classes.row) + classes.of_cn[target]) * operands + operand[needs]
    distinct, inverse = np.unique(key, return_inverse=True)
    rates = np.empty(len(distinct))
    for i, value in enumerate(distinct.tolist()):
        pair, of_operand = divmod(value, operands)
        rates[i] = _best_rate(problem, classes, limits, pair // len(classes.row), pair % len(classes.row), of_operand)
    cycles = whole_cycles(problem.graph.piece_bits[piece[needs]] / rates[inverse.reshape(-1)])
    edge_key = np.repeat(np.arange(problem.graph.node_count), np.diff(start)) * problem.graph.node_count + successor
    np.maximum.at(delay, np.searchsorted(edge_key, source * problem.graph.node_count + target), cycles)
    return delay


def _best_rate(
    problem: SchedulingProblem, classes: CnClasses, limits: SystemLimits, source: int, target: int, operand: int
) -> float:
    """Largest rate at which a piece of data moves from a CN of class `source` to a CN of class `target`, in bits per
    cycle. All pairs of allowed cores are compared. The second CN reads the piece as its operand `operand`.

    The rate is infinite if the piece need not move for at least one pair of cores. The rate is also infinite if there
    is no pair of cores for which the piece can move.
    """
    rows, best = (int(classes.row[source]), int(classes.row[target])), 0.0
    for producer in np.flatnonzero(classes.allowed[source]).tolist():
        for consumer in np.flatnonzero(classes.allowed[target]).tolist():
            best = max(best, pair_rate(problem, limits, rows, (producer, consumer), operand))
            if math.isinf(best):
                return best
    return best if best > 0 else math.inf


def pair_rate(
    problem: SchedulingProblem, limits: SystemLimits, rows: tuple[int, int], cores: tuple[int, int], operand: int
) -> float:
    """Largest rate in bits per cycle at which a piece moves from its producer to a CN that reads the piece by
    `operand`.

    `rows` has the rows of the producer and the reader in the cost table, and `cores` has the cores of both. The rate is
    infinite if the piece need not move, and 0 if it cannot move.
    """
    memory, streams = problem.system.core_memory, problem.costs.stream_bits > 0
    producer, consumer = cores
    out = bool(streams[rows[0], producer, 0])
    off_chip_only = bool(streams[rows[1], consumer, operand])
    home, wanted = int(memory[producer, 0]), int(memory[consumer, operand])
    if (out and off_chip_only) or (not out and not off_chip_only and home == wanted):
        return math.inf
    if off_chip_only:
        return float(limits.write_rate[producer])
    if wanted < 0:
        return 0.0
    if out:
        return float(limits.fetch_rate[wanted])
    return max(float(limits.direct_rate[producer, wanted]), limits.detour_rate(producer, wanted))


_MOST_TRIED, _LEAST_TRIED = 16, 2
"""Largest and smallest number of CNs that `split_latency_cycles` tries in one round. If there are fewer candidates, all
of them are tried. In a graph with at most `_MOST_TRIED` CNs, all CNs are candidates (`latest_cns`).
"""
_MOST_NEEDS = 10**7
"""Limit for the product of two numbers: the number of needs of a graph, and the number of CNs that a round tries. In a
graph with many needs, a round therefore tries fewer CNs, but never fewer than `_LEAST_TRIED`.
"""
_FEW_ROUNDS = 40
"""Number of steps of the search for weights of cores and links, for each CN that is tried. For the best CN, the bound
is then computed again with ROUNDS steps.
"""


def split_latency_cycles(
    problem: SchedulingProblem, classes: CnClasses, limits: SystemLimits, paths: LongestPaths, moves: PossibleMoves
) -> int:
    """Best lower bound of the latency in cycles that follows from a single CN: the work before the start of the CN, the
    runtime of the CN, and the work after its end.

    In a large graph, only the last CN of each layer is a candidate, because it waits for almost all earlier layers.
    First, candidates at equal distances over the network are tried. Then, candidates near the best candidate are tried.
    """
    if not len(paths.head):
        return 0
    split = SplitBounds(problem, classes, limits, paths, moves)
    candidates = latest_cns(problem.graph.layer, paths.head)
    count = int(np.clip(_MOST_NEEDS // max(1, len(problem.need_cn)), _LEAST_TRIED, _MOST_TRIED))
    found: dict[int, int] = {}
    low, high = 0, len(candidates) - 1
    for _ in range(2):
        tried = np.linspace(low, high, count).round().astype(np.int64).tolist()
        for place in (one for one in tried if one not in found):
            # A CN whose bound is smaller than one that is known is not chosen, whatever its bound is.
            known = max(found.values(), default=0) - 1
            found[place] = split.latency_cycles(int(candidates[place]), _FEW_ROUNDS, known)
        best = max(found, key=lambda place: (found[place], -place))
        low, high = max([p for p in found if p < best], default=best), min([p for p in found if p > best], default=best)
    return max(found[best], split.latency_cycles(int(candidates[best]), ROUNDS, found[best]))


@dataclass(frozen=True, eq=False)
class SplitBounds:
    """Lower bounds on latency that follow from single CNs, and the data from which they are computed."""

    problem: SchedulingProblem
    classes: CnClasses
    limits: SystemLimits
    paths: LongestPaths
    moves: PossibleMoves

    def latency_cycles(self, cn: int, rounds: int, known: int = 0) -> int:
        """Lower bound of the latency in cycles that follows from CN `cn`: the cycles before its start, its runtime, and
        the cycles after its end.

        The bound depends on weights of cores and links, and a search finds good weights. If the bound cannot exceed
        `known`, the search can end early. The result is then valid, but not the best bound.
        """
        before, after = self.paths.around(cn)
        runtime, tail = int(self.paths.runtime[cn]), int(self.paths.tail[cn])
        head = int(self.paths.head[cn])
        head = max(head, self.cycles_before(cn, before, rounds, head))
        return head + runtime + max(tail, self.cycles_after(cn, after, rounds, max(tail, known - head - runtime)))

    def cycles_before(self, cn: int, before: Booleans, rounds: int, known: int = 0) -> int:
        """Lower bound of the cycles from the start of the schedule to the start of a CN. In this time, all its
        predecessors (the mask `before`) must run, and the data that the predecessors read must arrive. The data that
        the CN itself reads must also arrive. They count only if they cannot move while the CN runs.

        The bound depends on weights of cores and links, and a search finds good weights. If no weights give more than
        `known` cycles, the search can end early. The result is then valid, but not the best bound.
        """
        reads = _are_among(self.moves.reader, before, self._with_own_data(cn))
        fetched = self.moves.bits(reads & self.moves.fetched)
        first = int(self.paths.release[before].min()) if before.any() else 0
        work = self._work(before, self._traffic(fetched, 0), first, rounds, known)
        return max(work, self.moves.compulsory(reads).latency_cycles(rounds, max(work, known)))

    def _with_own_data(self, cn: int) -> int:
        """The argument `cn` if a bound must include the data of this CN; otherwise -1. A bound includes the data if all
        of them move before or after the run of the CN. It leaves out data that may move during the run.
        """
        return -1 if self.classes.may_stream else cn

    def cycles_after(self, cn: int, after: Booleans, rounds: int, known: int = 0) -> int:
        """Lower bound of the cycles from the end of a CN to the end of the schedule. In this time, all its successors
        (the mask `after`) must run, and the results of the successors must move to their memories. The results of the
        CN itself must also move. They count only if they cannot move while the CN runs.

        The successors also need constants. At the end of the CN, the on-chip memories hold at most as many bits of
        these constants as their capacity; all other bits are fetched later.

        The bound depends on weights of cores and links, and a search finds good weights. If no weights give more than
        `known` cycles, the search can end early. The result is then valid, but not the best bound.
        """
        makes = _are_among(self.moves.producer, after, self._with_own_data(cn))
        reads = _are_among(self.moves.reader, after) & (self.moves.producer < 0)
        fetched = max(0, self.moves.bits(reads) - self._room_bits(reads)) + self.moves.bits(makes & self.moves.fetched)
        written = self.moves.bits(makes & (self.moves.reader < 0))
        last = int(self.paths.writing[after].min()) if after.any() else 0
        work = self._work(after, self._traffic(fetched, written), last, rounds, known)
        return max(work, self.moves.compulsory(makes).latency_cycles(rounds, max(work, known)))

    def _room_bits(self, reads: Booleans) -> int:
        """Total capacity in bits of all on-chip memories in which constants can wait for the CNs that read them. The
        mask `reads` selects the reads of constants.
        """
        system, operands = self.problem.system, self.classes.never_streams.shape[1]
        if system.forwards_constants:  # they can wait on any core
            return int(np.delete(system.memory_capacity_bits, system.off_chip_memory).sum())
        pairs = np.unique(self.classes.of_cn[self.moves.reader[reads]] * operands + self.moves.operand[reads])
        memories = {
            int(memory)
            for pair in pairs.tolist()
            for memory in system.core_memory[self.classes.allowed[pair // operands], pair % operands]
        }
        return sum(int(system.memory_capacity_bits[memory]) for memory in memories - {-1, system.off_chip_memory})

    def _traffic(self, fetched_bits: int, written_bits: int) -> list[TrafficLoad]:
        return traffic_loads(self.problem, self.classes, self.limits, fetched_bits, written_bits)

    def _work(self, cns: Booleans, traffic: list[TrafficLoad], ends: int, rounds: int, known: int) -> int:
        count = np.bincount(self.classes.of_cn[cns], minlength=len(self.classes.count))
        return core_work(replace(self.classes, count=count), traffic, ends, rounds, known)


def _are_among(cns: Integers, chosen: Booleans, more: int = -1) -> Booleans:
    """True if the CN is selected by the mask `chosen`, or is the CN `more` (one value for each entry of `cns`). An
    entry of -1 stands for no CN; its value is False.
    """
    among: Booleans = (cns >= 0) & (chosen[np.maximum(cns, 0)] | (cns == more))
    return among


def latest_cns(layer: Integers, head: Integers) -> Integers:
    """Candidates for `SplitBounds`, sorted by earliest possible start. In a graph with at most `_MOST_TRIED` CNs, all
    CNs are candidates; otherwise, the candidates are the CNs that `latest_of_layers` returns.
    """
    if len(layer) > _MOST_TRIED:
        return latest_of_layers(layer, head)
    order = np.lexsort((np.arange(len(layer)), -head, layer))
    return order[np.argsort(head[order], kind="stable")]


def latest_of_layers(layer: Integers, head: Integers) -> Integers:
    """CN with the largest `head` (earliest possible start) of each layer, sorted by rising `head`. If several CNs of a
    layer have the largest `head`, the first one is taken.
    """
    order = np.lexsort((np.arange(len(layer)), -head, layer))
    latest: Integers = order[np.append(True, layer[order][1:] != layer[order][:-1])]
    return latest[np.argsort(head[latest], kind="stable")]
