"""What no allocation can beat: lower bounds on latency and energy of the schedules of a problem (docs/bounds.md)."""

import math
from dataclasses import dataclass

import numpy as np

from tilewright.compiled import native_function
from tilewright.errors import InputError, MappingError, Problem
from tilewright.record_pointer import pointer_to
from tilewright.scheduling.bounds_kernel import longest_paths
from tilewright.scheduling.link_bounds import compulsory_moves
from tilewright.scheduling.problem import Booleans, Floats, Integers, SchedulingProblem
from tilewright.scheduling.state_record import GRAPH
from tilewright.scheduling.system_limits import SystemLimits, system_limits

_ROUNDS = 400
_SLACK = 1e-9
"""Part by which sums of floating-point numbers are lowered before they count as bounds."""


@dataclass(frozen=True)
class LowerBounds:
    """No schedule of the problem with an allowed allocation is below any of these."""

    critical_path_cycles: int
    core_work_cycles: int
    off_chip_traffic_cycles: int
    link_traffic_cycles: int
    energy_pj: float

    @property
    def latency_cycles(self) -> int:
        """The largest bound on the latency."""
        return max(
            self.critical_path_cycles, self.core_work_cycles, self.off_chip_traffic_cycles, self.link_traffic_cycles
        )

    def latency_gap(self, latency_cycles: int) -> float:
        """How much smaller, relative to a latency that was found, the optimum could be."""
        return max(0.0, 1.0 - self.latency_cycles / latency_cycles) if latency_cycles else 0.0


@dataclass(frozen=True, eq=False)
class _Classes:
    """CNs with the same row of the cost table and the same allowed cores."""

    of_cn: Integers
    count: Integers
    row: Integers
    allowed: Booleans
    """[class, core]"""
    runtime: Floats
    """[class, core] with streams at full width; infinite where not allowed"""
    never_streams: Booleans
    """[class, operand] on no allowed core"""


def lower_bounds(problem: SchedulingProblem, allowed: Booleans | None = None) -> LowerBounds:
    """Bounds over all allocations with `allowed[cn, core]`; without it, over all cores that the cost table allows.

    For the bounds of one allocation, allow each CN its core only. Raises MappingError where a CN has no core,
    InputError where CNs wait for each other in a circle.
    """
    classes = _classes(problem, allowed)
    limits = system_limits(problem.system)
    release = _release(problem, classes, limits)
    tail = _tail(problem, classes, limits)
    shortest = _ceil(classes.runtime.min(axis=1))[classes.of_cn]
    path = _critical_path(problem, classes, limits, shortest, release, tail)
    moves = compulsory_moves(problem, classes.allowed, classes.never_streams, classes.of_cn)
    ends = int(release.min()) + int(tail.min()) if len(release) else 0
    return LowerBounds(
        critical_path_cycles=path,
        core_work_cycles=_core_work(classes, _traffic_loads(problem, classes, limits), ends),
        off_chip_traffic_cycles=_traffic(problem, classes, limits),
        link_traffic_cycles=math.ceil(moves.latency_cycles() * (1 - _SLACK)),
        energy_pj=_energy(problem, classes, limits) + moves.core_to_core_energy_pj * (1 - _SLACK),
    )


def _classes(problem: SchedulingProblem, allowed: Booleans | None) -> _Classes:
    graph, costs = problem.graph, problem.costs
    runs = costs.runtime_cycles >= 1
    runs[:, problem.system.off_chip_core] = False
    mask = runs[graph.cost_row] if allowed is None else runs[graph.cost_row] & allowed
    if not bool(np.all(mask.any(axis=1))):
        raise MappingError(f"CN {int(np.flatnonzero(~mask.any(axis=1))[0])} has no core that can run it")
    if allowed is None:
        distinct, of_cn, count = np.unique(graph.cost_row[:, None], axis=0, return_inverse=True, return_counts=True)
        class_mask = runs[distinct[:, 0]]
    else:
        table = np.concatenate((graph.cost_row[:, None], mask), axis=1)
        distinct, of_cn, count = np.unique(table, axis=0, return_inverse=True, return_counts=True)
        class_mask = distinct[:, 1:].astype(np.bool_)
    row = distinct[:, 0]
    streams = costs.stream_bits[row] > 0
    return _Classes(
        of_cn=of_cn.reshape(-1).astype(np.int64),
        count=count.astype(np.int64),
        row=row.astype(np.int64),
        allowed=class_mask,
        runtime=np.where(class_mask, _streaming_runtime(problem)[row], np.inf),
        never_streams=~np.any(streams & class_mask[:, :, None], axis=1),
    )


def _streaming_runtime(problem: SchedulingProblem) -> Floats:
    """[row, core] runtime where all streams get the full width of their links."""
    costs, system = problem.costs, problem.system
    runtime = costs.runtime_cycles.astype(np.float64)
    for row, core in np.argwhere(np.any(costs.stream_bits > 0, axis=2)).tolist():
        load = np.zeros(len(system.link_bits_per_cycle), np.int64)
        for operand, bits in enumerate(costs.stream_bits[row, core].tolist()):
            ends = (core, system.off_chip_core) if operand == 0 else (system.off_chip_core, core)
            np.add.at(load, system.path(*ends), bits)
        cycles = -(-load // system.link_bits_per_cycle)
        runtime[row, core] = max(runtime[row, core], float(cycles.max(initial=0)))
    return runtime


def _first_of_piece(problem: SchedulingProblem) -> Booleans:
    """[need] the first of its CN's needs of the piece; needs of a piece lie side by side."""
    piece = problem.fetch_order[0]
    first = np.ones(len(piece), np.bool_)
    first[1:] = (piece[1:] != piece[:-1]) | (problem.need_cn[1:] != problem.need_cn[:-1])
    return first


def _release(problem: SchedulingProblem, classes: _Classes, limits: SystemLimits) -> Integers:
    """[cn] cycles until the constants that it never streams can have left the off-chip memory."""
    piece, operand = problem.fetch_order
    counts = (problem.graph.piece_producer[piece] < 0) & classes.never_streams[classes.of_cn[problem.need_cn], operand]
    counts &= _first_of_piece(problem)
    bits = np.bincount(problem.need_cn[counts], problem.graph.piece_bits[piece[counts]], problem.graph.node_count)
    return _cycles(bits, limits.read_bits_per_cycle)


def _tail(problem: SchedulingProblem, classes: _Classes, limits: SystemLimits) -> Integers:
    """[cn] cycles after its end until the results that it never streams can be off-chip."""
    pieces = np.flatnonzero(problem.graph.piece_is_output)
    pieces = pieces[classes.never_streams[classes.of_cn[problem.graph.piece_producer[pieces]], 0]]
    producer = problem.graph.piece_producer[pieces]
    bits = np.bincount(producer, problem.graph.piece_bits[pieces], problem.graph.node_count)
    return _cycles(bits, limits.write_bits_per_cycle)


def _cycles(bits: Floats | Integers, bits_per_cycle: float) -> Integers:
    return _ceil(bits / bits_per_cycle)


def _ceil(values: Floats) -> Integers:
    return np.ceil(values * (1 - _SLACK)).astype(np.int64)


def _critical_path(
    problem: SchedulingProblem,
    classes: _Classes,
    limits: SystemLimits,
    runtime: Integers,
    release: Integers,
    tail: Integers,
) -> int:
    start, successor = problem.edges
    arrays = {
        "head": release.copy(),
        "runtime": runtime,
        "tail": tail,
        "waiting": problem.predecessor_count.copy(),
        "queue": np.empty(len(runtime), np.int64),
        "start": start,
        "successor": np.ascontiguousarray(successor),
        "delay": _edge_delays(problem, classes, limits),
    }
    record: np.record = np.zeros(1, GRAPH).view(np.recarray)[0]
    record["node_count"] = len(runtime)
    for name, array in arrays.items():
        record[name] = pointer_to(array)
    native_function(longest_paths, (GRAPH,))(record, 0)
    if record["finished"] < len(runtime):
        raise InputError([Problem("CNs wait for each other in a circle", path="graph")])
    return int(record["latency"])


def _edge_delays(problem: SchedulingProblem, classes: _Classes, limits: SystemLimits) -> Integers:
    """[edge] cycles that data needs from CN to CN on the best pair of allowed cores."""
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
    cycles = _ceil(problem.graph.piece_bits[piece[needs]] / rates[inverse.reshape(-1)])
    edge_key = np.repeat(np.arange(problem.graph.node_count), np.diff(start)) * problem.graph.node_count + successor
    np.maximum.at(delay, np.searchsorted(edge_key, source * problem.graph.node_count + target), cycles)
    return delay


def _best_rate(
    problem: SchedulingProblem, classes: _Classes, limits: SystemLimits, source: int, target: int, operand: int
) -> float:
    """Bits per cycle of a piece from a CN of one class to one of another; infinite if it need not move."""
    memory, streams = problem.system.core_memory, problem.costs.stream_bits > 0
    best = 0.0
    for producer in np.flatnonzero(classes.allowed[source]).tolist():
        out = bool(streams[classes.row[source], producer, 0])
        for consumer in np.flatnonzero(classes.allowed[target]).tolist():
            off_chip_only = bool(streams[classes.row[target], consumer, operand])
            home, wanted = int(memory[producer, 0]), int(memory[consumer, operand])
            if (out and off_chip_only) or (not out and not off_chip_only and home == wanted):
                return math.inf
            if off_chip_only:
                best = max(best, limits.write_rate[producer])
            elif wanted >= 0 and out:
                best = max(best, limits.fetch_rate[wanted])
            elif wanted >= 0:
                best = max(best, limits.direct_rate[producer, wanted], limits.detour_rate(producer, wanted))
    return best if best > 0 else math.inf


def _core_work(classes: _Classes, traffic: list[tuple[Floats, float]], ends: int) -> int:
    """The best bound by weights on cores and traffic, which sum to 1.

    `traffic` holds ([class, core] cycles that a CN takes of it, cycles that it takes in any case); `ends` are cycles
    before the first CN and after the last one. Any weights are right; these come from a few hundred steps towards what
    is loaded the most.
    """
    if len(classes.count) == 0:
        return 0
    used = np.flatnonzero(classes.allowed.any(axis=0))
    allowed = classes.allowed[:, used]
    runtime = np.where(allowed, classes.runtime[:, used], 0.0)
    taken = np.array([cycles[:, used] for cycles, _ in traffic]).reshape(len(traffic), *runtime.shape)
    fixed = np.array([float(ends)] * len(used) + [cycles for _, cycles in traffic])
    rows = np.arange(len(runtime))
    logarithm, average, best = np.zeros(len(fixed)), np.zeros(len(fixed)), 0.0
    for step in range(1, _ROUNDS + 1):
        weight = np.exp(logarithm - logarithm.max())
        average += (weight / weight.sum() - average) / step
        for candidate in (average / average.sum(), weight / weight.sum()):
            on_cores, on_traffic = np.split(candidate, [len(used)])
            priced = np.where(allowed, runtime * on_cores + np.tensordot(on_traffic, taken, axes=1), np.inf)
            best = max(best, float(classes.count @ priced.min(axis=1) + candidate @ fixed))
        choice = priced.argmin(axis=1)
        on_core = np.bincount(choice, classes.count * runtime[rows, choice], len(used))
        load = fixed + np.concatenate((on_core, taken[:, rows, choice] @ classes.count))
        if load.sum() == 0:
            break
        logarithm += load / load.max() * (2.0 / math.sqrt(step))
    return math.ceil(best * (1 - _SLACK))


def _traffic_loads(problem: SchedulingProblem, classes: _Classes, limits: SystemLimits) -> list[tuple[Floats, float]]:
    """Of what is read from the off-chip memory, what is written to it, and both: ([class, core] cycles of the streams
    of a CN, cycles of what must be fetched or written in any case)."""
    fetched, written, _, _ = _moved_bits(problem, classes)
    bits = problem.costs.stream_bits[classes.row].astype(np.float64)
    inward, outward = bits[:, :, 1:].sum(axis=2), bits[:, :, 0]
    reads, writes = float(problem.graph.piece_bits[fetched].sum()), float(problem.graph.piece_bits[written].sum())
    return [
        (inward / limits.read_bits_per_cycle, reads / limits.read_bits_per_cycle),
        (outward / limits.write_bits_per_cycle, writes / limits.write_bits_per_cycle),
        ((inward + outward) / limits.both_bits_per_cycle, (reads + writes) / limits.both_bits_per_cycle),
    ]


def _moved_bits(problem: SchedulingProblem, classes: _Classes) -> tuple[Booleans, Booleans, int, int]:
    """([piece] must be fetched, [piece] must be written off-chip, bits that must be streamed in, and out)."""
    graph = problem.graph
    piece, operand = problem.fetch_order
    fetched = np.zeros(len(graph.piece_bits), np.bool_)
    fetched[piece[classes.never_streams[classes.of_cn[problem.need_cn], operand]]] = True
    fetched &= graph.piece_producer < 0
    written = graph.piece_is_output.copy()
    results = np.flatnonzero(written)
    written[results] = classes.never_streams[classes.of_cn[graph.piece_producer[results]], 0]
    bits = problem.costs.stream_bits[classes.row].astype(np.float64)
    inward = np.where(classes.allowed, bits[:, :, 1:].sum(axis=2), np.inf).min(axis=1)
    outward = np.where(classes.allowed, bits[:, :, 0], np.inf).min(axis=1)
    return fetched, written, int(classes.count @ inward), int(classes.count @ outward)


def _traffic(problem: SchedulingProblem, classes: _Classes, limits: SystemLimits) -> int:
    """Cycles that compulsory traffic with the off-chip memory takes."""
    if len(classes.count) == 0:
        return 0
    fetched, written, inward, outward = _moved_bits(problem, classes)
    reads = int(problem.graph.piece_bits[fetched].sum()) + inward
    writes = int(problem.graph.piece_bits[written].sum()) + outward
    cycles = [reads / limits.read_bits_per_cycle, writes / limits.write_bits_per_cycle]
    cycles.append((reads + writes) / limits.both_bits_per_cycle)
    return math.ceil(max(cycles) * (1 - _SLACK))


def _energy(problem: SchedulingProblem, classes: _Classes, limits: SystemLimits) -> float:
    """Cheapest core of each CN with its streams, and the cheapest way of all that must be moved."""
    if len(classes.count) == 0:
        return 0.0
    costs, system = problem.costs, problem.system
    off = system.off_chip_memory
    bits = costs.stream_bits[classes.row]
    words = -(
        -bits // np.where(np.arange(bits.shape[2]) == 0, system.memory_write_bits[off], system.memory_read_bits[off])
    )
    energy = costs.on_core_energy_pj[classes.row].copy()
    energy += bits[:, :, 0] * limits.write_link_pj + bits[:, :, 1:].sum(axis=2) * limits.read_link_pj
    energy += words[:, :, 0] * system.memory_write_energy_pj[off]
    energy += words[:, :, 1:].sum(axis=2) * system.memory_read_energy_pj[off]
    total = float(classes.count @ np.where(classes.allowed, energy, np.inf).min(axis=1))
    fetched, written, _, _ = _moved_bits(problem, classes)
    total += limits.cheapest_fetch_pj(system, problem.graph.piece_bits[fetched])
    total += limits.cheapest_write_pj(system, problem.graph.piece_bits[written])
    return total * (1 - _SLACK)
