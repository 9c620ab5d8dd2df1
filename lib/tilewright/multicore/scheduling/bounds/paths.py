"""Lower bounds on latency from longest paths through the CN graph, and from the work before and after one CN.

On a path, each CN runs on its fastest core. The proofs are in docs/proofs.md#bounds.
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
    """[cn] Smallest number of cycles before the CN starts"""
    runtime: Integers
    """[cn] Smallest runtime of the CN in cycles"""
    tail: Integers
    """[cn] Smallest number of cycles from the end of the CN to the end of the schedule"""
    release: Integers
    """[cn] Smallest number of cycles until the constants that the CN never streams have left the off-chip memory. It is
    0 if data that fit a core may stream
    """
    writing: Integers
    """[cn] Smallest number of cycles from the end of the CN until the results that it never streams are off-chip. It is
    0 if data that fit a core may stream
    """
    may_stream: bool
    """True if the bounds also hold for schedules that stream data although the data fit a core"""
    _record: np.record
    _arrays: dict[str, Integers]
    """Arrays behind the addresses in the record, by field name."""

    def around(self, cn: int) -> tuple[Booleans, Booleans]:
        """Pair ([cn] whether it ends before CN `cn` starts, [cn] whether it starts after CN `cn` ends). True means that
        this holds in every schedule.
        """
        native_function(cns_around, RECORDS)(self._record, cn)
        mark = self._arrays["mark"]
        return mark == 1, mark == 2


def paths_through(problem: SchedulingProblem, classes: CnClasses, limits: SystemLimits) -> LongestPaths:
    """Longest paths of a problem. Raises InputError if the dependences of CNs form a cycle.

    If data that fit a core may stream, all data of a CN can move while it runs on a core that need not be the fastest.
    Therefore only runtimes count in this case.
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
        raise InputError([Problem("CNs wait for each other in a cycle", path="graph")])
    latency = int(record["latency"])
    times = arrays["head"], runtime, arrays["tail"], release, writing
    return LongestPaths(latency, *times, classes.may_stream, record, arrays)


def _first_of_piece(problem: SchedulingProblem) -> Booleans:
    """[need] Whether it is the first need of its CN for its piece. Needs of a CN for the same piece are adjacent."""
    piece = problem.fetch_order[0]
    return changes(piece) | changes(problem.need_cn)


def _release(problem: SchedulingProblem, classes: CnClasses, limits: SystemLimits) -> Integers:
    """[cn] Smallest number of cycles until the constants that the CN never streams have left the off-chip memory."""
    piece, operand = problem.fetch_order
    counts = (problem.graph.piece_producer[piece] < 0) & classes.never_streams[classes.of_cn[problem.need_cn], operand]
    counts &= _first_of_piece(problem)
    bits = np.bincount(problem.need_cn[counts], problem.graph.piece_bits[piece[counts]], problem.graph.node_count)
    return whole_cycles(bits / limits.read_bits_per_cycle)


def _writing(problem: SchedulingProblem, classes: CnClasses, limits: SystemLimits) -> Integers:
    """[cn] Smallest number of cycles from the end of the CN until the results that it never streams are off-chip."""
    pieces = np.flatnonzero(problem.graph.piece_is_output)
    pieces = pieces[classes.never_streams[classes.of_cn[problem.graph.piece_producer[pieces]], OUTPUT_OPERAND]]
    producer = problem.graph.piece_producer[pieces]
    bits = np.bincount(producer, problem.graph.piece_bits[pieces], problem.graph.node_count)
    return whole_cycles(bits / limits.write_bits_per_cycle)


def _edge_delays(problem: SchedulingProblem, classes: CnClasses, limits: SystemLimits) -> Integers:
    """[edge] Cycles to move the data of the edge from the first CN to the second CN, with the fastest pair of allowed
    cores.
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
    """Largest rate in bits per cycle of a piece from a CN of class `source` to a CN of class `target`; infinite if the
    piece need not move.
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
    """Largest rate in bits per cycle of a piece from its producer to a CN that reads it by `operand`.

    `rows` has the rows of producer and reader in the cost table, and `cores` has their cores. The rate is infinite if
    the piece need not move, and 0 if it cannot move.
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
"""Largest and smallest number of CNs for which bounds are computed in a round; at most one CN of each layer."""
_MOST_NEEDS = 10**7
"""Upper limit of the needs of a graph times the number of CNs in a round. Large graphs therefore get fewer CNs."""
_FEW_ROUNDS = 40
"""Number of steps of the search for weights, for each CN except the best one, which gets more steps."""


def split_latency_cycles(
    problem: SchedulingProblem, classes: CnClasses, limits: SystemLimits, paths: LongestPaths, moves: PossibleMoves
) -> int:
    """Best lower bound in cycles that follows from single CNs: the work before a CN starts, and the work after it ends.

    The candidates are the last CNs of layers, because these CNs wait for almost all earlier layers. Candidates at equal
    distances over the network are tried first, then candidates near the best one.
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
        found |= {
            place: split.latency_cycles(int(candidates[place]), _FEW_ROUNDS) for place in tried if place not in found
        }
        best = max(found, key=lambda place: (found[place], -place))
        low, high = max([p for p in found if p < best], default=best), min([p for p in found if p > best], default=best)
    return max(found[best], split.latency_cycles(int(candidates[best]), ROUNDS))


@dataclass(frozen=True, eq=False)
class SplitBounds:
    """Lower bounds on latency that follow from single CNs, and the data from which they are computed."""

    problem: SchedulingProblem
    classes: CnClasses
    limits: SystemLimits
    paths: LongestPaths
    moves: PossibleMoves

    def latency_cycles(self, cn: int, rounds: int) -> int:
        """Lower bound on latency that follows from one CN."""
        before, after = self.paths.around(cn)
        head = max(int(self.paths.head[cn]), self.cycles_before(cn, before, rounds))
        tail = max(int(self.paths.tail[cn]), self.cycles_after(cn, after, rounds))
        return head + int(self.paths.runtime[cn]) + tail

    def cycles_before(self, cn: int, before: Booleans, rounds: int) -> int:
        """Smallest number of cycles before a CN starts. All its predecessors have run by then, and the data that they
        read have arrived. The data of the CN itself have also arrived, unless they may stream.
        """
        reads = _are_among(self.moves.reader, before, self._with_own_data(cn))
        fetched = self.moves.bits(reads & self.moves.fetched)
        first = int(self.paths.release[before].min()) if before.any() else 0
        work = self._work(before, self._traffic(fetched, 0), first, rounds)
        return max(work, self.moves.compulsory(reads).latency_cycles(rounds))

    def _with_own_data(self, cn: int) -> int:
        """CN `cn` if all its data move before or after its run; -1 if its data may move during the run."""
        return -1 if self.classes.may_stream else cn

    def cycles_after(self, cn: int, after: Booleans, rounds: int) -> int:
        """Smallest number of cycles after a CN ends. All its successors run in this time, and their results move. The
        results of the CN itself also move, unless they may stream.

        The constants that the successors need are fetched in this time, except as many as fit on chip before the CN
        ends.
        """
        makes = _are_among(self.moves.producer, after, self._with_own_data(cn))
        reads = _are_among(self.moves.reader, after) & (self.moves.producer < 0)
        fetched = max(0, self.moves.bits(reads) - self._room_bits(reads)) + self.moves.bits(makes & self.moves.fetched)
        written = self.moves.bits(makes & (self.moves.reader < 0))
        last = int(self.paths.writing[after].min()) if after.any() else 0
        work = self._work(after, self._traffic(fetched, written), last, rounds)
        return max(work, self.moves.compulsory(makes).latency_cycles(rounds))

    def _room_bits(self, reads: Booleans) -> int:
        """Total capacity in bits of all on-chip memories from which CNs can read constants. `reads` [need] selects the
        needs that read constants.
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

    def _work(self, cns: Booleans, traffic: list[TrafficLoad], ends: int, rounds: int) -> int:
        count = np.bincount(self.classes.of_cn[cns], minlength=len(self.classes.count))
        return core_work(replace(self.classes, count=count), traffic, ends, rounds)


def _are_among(cns: Integers, chosen: Booleans, more: int = -1) -> Booleans:
    """[entry] Whether the CN in this entry of `cns` is in `chosen` or equal to `more`. The entry -1 stands for no CN,
    and gives False.
    """
    among: Booleans = (cns >= 0) & (chosen[np.maximum(cns, 0)] | (cns == more))
    return among


def latest_cns(layer: Integers, head: Integers) -> Integers:
    """Candidates for `SplitBounds`, sorted by earliest start: all CNs of a small graph, else the CNs that
    `latest_of_layers` returns.
    """
    if len(layer) > _MOST_TRIED:
        return latest_of_layers(layer, head)
    order = np.lexsort((np.arange(len(layer)), -head, layer))
    return order[np.argsort(head[order], kind="stable")]


def latest_of_layers(layer: Integers, head: Integers) -> Integers:
    """CN of each layer with the largest `head`, the earliest possible start. The first of several such CNs is taken.
    The result is sorted by rising `head`.
    """
    order = np.lexsort((np.arange(len(layer)), -head, layer))
    latest: Integers = order[np.append(True, layer[order][1:] != layer[order][:-1])]
    return latest[np.argsort(head[latest], kind="stable")]
