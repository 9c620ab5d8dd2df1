"""Checks of data movement: data are present when they are read, data fit the memories, and transfers are possible.

The check of a transfer covers its cores and memories, path, rate, duration, cause and broadcast.
"""

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from tilewright.multicore.scheduling.problem import OUTPUT_OPERAND, Booleans, Integers, SchedulingProblem
from tilewright.multicore.scheduling.schedule import Schedule
from tilewright.multicore.scheduling.state_record import CORE_TO_CORE, EVICTION, NONE, OFF_CHIP_FETCH, SINK_OUTPUT


@dataclass(frozen=True, eq=False)
class _Events:
    """Events of tensor pieces in memories, as columns. An event is an arrival, a read or a stay of a piece in a memory,
    and lasts from `start` to `end`.
    """

    piece: Integers
    memory: Integers
    start: Integers
    end: Integers


def data_faults(problem: SchedulingProblem, schedule: Schedule) -> list[str]:
    """Faults of reads that take place before the data have arrived. Three kinds of reads are checked: reads by
    transfers, reads by CNs, and reads of the results of the network at the end of the schedule.
    """
    faults = []
    lookup = _Lookup(problem, _arrivals(problem, schedule))
    for reads, text in (
        (
            _sent(schedule),
            "tensor piece {piece} is sent from memory {memory} at cycle {start}, before it has arrived there",
        ),
        (_needed(problem, schedule), "CN {cn} starts before tensor piece {piece} is in memory {memory}"),
        (_results(problem, schedule), "tensor piece {piece} is a result, but is not in the off-chip memory at the end"),
    ):
        for read in np.flatnonzero(lookup.last_before(reads) < 0).tolist():
            cn = problem.need_cn[read] if "{cn}" in text else -1
            where = {"piece": reads.piece[read], "memory": reads.memory[read], "start": reads.start[read]}
            faults.append(text.format(cn=cn, **where))
    return faults


def detour_faults(problem: SchedulingProblem, schedule: Schedule, layers: Collection[int]) -> list[str]:
    """Faults of transfers that move a piece directly from core to core although the piece must go through the off-chip
    memory. `layers` has the numbers of the layers whose results must take this detour.
    """
    moves = schedule.transfers
    producer = problem.graph.piece_producer[moves["piece"]]
    is_of_layers = (producer >= 0) & np.isin(problem.graph.layer[producer], list(layers))
    direct = np.flatnonzero(is_of_layers & (moves["cause"] == CORE_TO_CORE))
    return [
        f"tensor piece {moves['piece'][move]} of layer {problem.graph.layer[producer[move]]} moves directly from core"
        f" to core at cycle {moves['start_cycles'][move]}, but must move through the off-chip memory"
        for move in direct.tolist()
    ]


def memory_faults(problem: SchedulingProblem, schedule: Schedule) -> list[str]:
    """Faults of memories. There are four rules:

    * A memory never holds more data than its capacity.
    * A memory never holds less data than the data in use.
    * The content of a memory grows only when data arrive, and only by the size of these data.
    * An on-chip memory is empty at the end.
    """
    faults: list[str] = []
    stays = _stays(problem, schedule)
    for memory, capacity in enumerate(problem.system.memory_capacity_bits.tolist()):
        times, stored = schedule.memory_use(memory)
        over = np.flatnonzero((stored > capacity) | (stored < 0))
        if len(over):
            faults.append(
                f"memory {memory} holds {stored[over[0]]} bits at cycle {times[over[0]]}; it can hold 0 to"
                f" {capacity} bits"
            )
        if int(stored.max(initial=0)) != schedule.peak_bits[memory]:
            faults.append(f"memory {memory}: the recorded peak differs from the largest number of stored bits")
        if len(stored) and stored[-1] != 0 and memory != problem.system.off_chip_memory:
            faults.append(f"memory {memory} holds {stored[-1]} bits at the end; an on-chip memory must be empty then")
        here = stays.memory == memory
        bits = problem.graph.piece_bits[stays.piece[here]]
        rows = schedule.memory_changes[schedule.memory_changes["memory"] == memory]
        rows = rows[rows["change_bits"] > 0]
        gained, arrived = _totals(rows["time_cycles"], rows["change_bits"]), _totals(stays.start[here], bits)
        if not all(np.array_equal(one, other) for one, other in zip(gained, arrived, strict=True)):
            faults.append(f"memory {memory}: the stored bits differ in time or amount from the data that arrive")
        both = np.concatenate((stays.start[here], stays.end[here], times))
        moments, changes = _totals(both, np.concatenate((bits, -bits, np.zeros_like(times))))
        used = np.cumsum(changes)
        place = np.searchsorted(times, moments, side="right") - 1
        held = np.concatenate((np.zeros(1, np.int64), stored))[place + 1]
        for moment in np.flatnonzero(held < used)[:1]:
            faults.append(
                f"memory {memory} holds fewer bits at cycle {moments[moment]} than the {used[moment]} bits in use"
            )
    return faults


def _streams(problem: SchedulingProblem, schedule: Schedule) -> Booleans:
    """True if the operand of the CN streams (one entry for each CN and operand)."""
    found: Booleans = problem.costs.stream_bits[problem.graph.cost_row, schedule.allocation] > 0
    return found


def _memory_of(problem: SchedulingProblem, schedule: Schedule) -> Integers:
    """Memory that holds the operand while the CN runs (one entry for each CN and operand). It is a memory of the CN's
    core, or the off-chip memory if the operand streams.
    """
    system = problem.system
    found: Integers = np.where(
        _streams(problem, schedule), system.off_chip_memory, system.core_memory[schedule.allocation]
    )
    return found


def _arrivals(problem: SchedulingProblem, schedule: Schedule) -> _Events:
    """Arrivals of pieces in memories: constants, results of CNs, and pieces that transfers bring.

    An arriving piece occupies space from the time `start`, and can be read from the time `end`. In the off-chip memory,
    it occupies space only from `end`.
    """
    graph, moves, off_chip = problem.graph, schedule.transfers, problem.system.off_chip_memory
    constants, made = np.flatnonzero(graph.piece_producer < 0), np.flatnonzero(graph.piece_producer >= 0)
    producer = graph.piece_producer[made]
    memory = _memory_of(problem, schedule)[producer, OUTPUT_OPERAND]
    nothing = np.zeros(len(constants), np.int64)
    piece = np.concatenate((constants, made, moves["piece"]))
    where = np.concatenate((np.full(len(constants), off_chip), memory, moves["target_memory"]))
    start = np.concatenate((nothing, schedule.start_cycles[producer], moves["start_cycles"]))
    end = np.concatenate((nothing, schedule.end_cycles[producer], moves["end_cycles"]))
    return _Events(piece, where, np.where(where == off_chip, end, start), end)


def _sent(schedule: Schedule) -> _Events:
    """Reads of pieces by transfers."""
    moves = schedule.transfers
    return _Events(moves["piece"], moves["source_memory"], moves["start_cycles"], moves["end_cycles"])


def _needed(problem: SchedulingProblem, schedule: Schedule) -> _Events:
    """Reads of pieces by CNs, one event for each need."""
    piece, operand = problem.fetch_order
    cn = problem.need_cn
    memory = _memory_of(problem, schedule)[cn, operand]
    return _Events(piece, memory, schedule.start_cycles[cn], schedule.end_cycles[cn])


def _results(problem: SchedulingProblem, schedule: Schedule) -> _Events:
    """Reads of the results of the network from the off-chip memory at the end of the schedule, one for each result."""
    results = np.flatnonzero(problem.graph.piece_is_output)
    end = np.full(len(results), schedule.latency_cycles)
    return _Events(results, np.full(len(results), problem.system.off_chip_memory), end, end)


class _Lookup:
    """Lookup of arrivals: for each read, the arrival that brought the data."""

    def __init__(self, problem: SchedulingProblem, arrivals: _Events) -> None:
        self._memories = len(problem.system.memory_capacity_bits)
        self._times = np.sort(arrivals.end)
        key = self._key(arrivals, arrivals.end)
        self._order = np.argsort(key, kind="stable")
        self._sorted = key[self._order]

    def _key(self, events: _Events, time: Integers) -> Integers:
        """Sort key of events: piece, memory, then time. If an arrival and a read are at the same time, the arrival
        comes first.
        """
        place = events.piece * self._memories + events.memory
        found: Integers = place * (len(self._times) + 1) + np.searchsorted(self._times, time, side="right")
        return found

    def last_before(self, reads: _Events) -> Integers:
        """Index of the last arrival that the read can use (one entry for each read); -1 if there is no such arrival.
        The arrival must bring the same piece into the same memory, and must not end after the start of the read.
        """
        key = self._key(reads, reads.start)
        last = np.searchsorted(self._sorted, key, side="right") - 1
        if not len(self._order):
            return np.full(len(last), -1)
        places = len(self._times) + 1
        same = (last >= 0) & (reads.memory >= 0) & (self._sorted[last] // places == key // places)
        return np.where(same, self._order[last], -1)


def _stays(problem: SchedulingProblem, schedule: Schedule) -> _Events:
    """Shortest possible stay in a memory for each arrival of a tensor piece in this memory.

    The logs of the schedule do not say when a piece leaves a memory. The piece must stay at least from its arrival
    until the last read that uses this arrival. In the off-chip memory, a piece stays until the end of the schedule.
    """
    arrivals = _arrivals(problem, schedule)
    lookup, until = _Lookup(problem, arrivals), arrivals.end.copy()
    for reads in (_sent(schedule), _needed(problem, schedule)):
        found = lookup.last_before(reads)
        np.maximum.at(until, found[found >= 0], reads.end[found >= 0])
    last = max(int(until.max(initial=0)), schedule.latency_cycles) + 1
    until = np.where(arrivals.memory == problem.system.off_chip_memory, last, until)
    return _Events(arrivals.piece, arrivals.memory, arrivals.start, until)


def _totals(times: Integers, bits: Integers) -> tuple[Integers, Integers]:
    """Pair (distinct times, sum of the bits at each time)."""
    order = np.argsort(times, kind="stable")
    distinct, first = np.unique(times[order], return_index=True)
    return distinct, np.add.reduceat(bits[order], first) if len(first) else distinct


def transfer_faults(problem: SchedulingProblem, schedule: Schedule) -> list[str]:
    """Faults of transfers. Each transfer is checked alone. A transfer that is part of a broadcast is also checked
    together with the transfer to which it refers.
    """
    moves = schedule.transfers
    wrong = {
        "has a memory that does not belong to its cores": ~_at_ends(problem, schedule),
        "has no path": ~_has_path(problem, schedule),
        "has a rate above the word width of its memories": moves["bits_per_cycle"] > _words(problem, schedule),
        "has a number of cycles that does not follow from its bits and rate": moves["end_cycles"]
        - moves["start_cycles"]
        != -(-problem.graph.piece_bits[moves["piece"]] // moves["bits_per_cycle"]),
        "has the wrong cause": moves["cause"] != _causes(problem, schedule),
    }
    if not problem.system.forwards_constants:
        is_constant = problem.graph.piece_producer[moves["piece"]] < 0
        is_elsewhere = moves["source_memory"] != problem.system.off_chip_memory
        wrong["is a constant, but does not come from the off-chip memory"] = is_constant & is_elsewhere
    faults = [
        f"transfer {move} of tensor piece {moves['piece'][move]} {what}"
        for what, found in wrong.items()
        for move in np.flatnonzero(found)
    ]
    return faults + _broadcast_faults(problem, schedule)


def _at_ends(problem: SchedulingProblem, schedule: Schedule) -> Booleans:
    """True if the two memories of the transfer belong to its two cores (one entry for each transfer)."""
    moves, memory_of = schedule.transfers, problem.system.core_memory
    source = np.any(memory_of[moves["source_core"]] == moves["source_memory"][:, None], axis=1)
    target = np.any(memory_of[moves["target_core"]] == moves["target_memory"][:, None], axis=1)
    found: Booleans = source & target
    return found


def _has_path(problem: SchedulingProblem, schedule: Schedule) -> Booleans:
    """True if the two cores of the transfer have a path or are the same core (one entry for each transfer)."""
    source, target = schedule.transfers["source_core"], schedule.transfers["target_core"]
    found: Booleans = (source == target) | problem.system.path_exists[source * problem.system.core_count + target]
    return found


def _words(problem: SchedulingProblem, schedule: Schedule) -> Integers:
    """Smaller of two widths in bits (one entry for each transfer): the word that is read in the source memory, and the
    word that is written in the target memory.
    """
    read = problem.system.memory_read_bits[schedule.transfers["source_memory"]]
    written = problem.system.memory_write_bits[schedule.transfers["target_memory"]]
    found: Integers = np.minimum(read, written)
    return found


def _causes(problem: SchedulingProblem, schedule: Schedule) -> Integers:
    """Correct cause of the transfer, which follows from its source memory and target memory (one entry for each
    transfer). A write to the off-chip memory is a SINK_OUTPUT if the data are a result of the network, and otherwise an
    EVICTION. If both memories are the off-chip memory, the cause is NONE.
    """
    moves, off_chip = schedule.transfers, problem.system.off_chip_memory
    inward, outward = moves["source_memory"] == off_chip, moves["target_memory"] == off_chip
    written = np.where(problem.graph.piece_is_output[moves["piece"]], SINK_OUTPUT, EVICTION)
    within = np.where(inward, OFF_CHIP_FETCH, CORE_TO_CORE)
    return np.where(inward & outward, NONE, np.where(outward, written, within))


def _broadcast_faults(problem: SchedulingProblem, schedule: Schedule) -> list[str]:
    """Faults of transfers that belong to the broadcast of another transfer (`broadcast_of`).

    Both transfers must move the same piece of a tensor, from the same memory, at the same time and rate. In addition,
    at least one of three conditions must be true:

    * The two paths share a bus.
    * The two paths share a link with multicast.
    * The first links of both paths have multicast. The source then sends into both links at once.
    """
    moves, system = schedule.transfers, problem.system
    columns = ("piece", "source_memory", "start_cycles", "bits_per_cycle")
    listeners = np.flatnonzero(moves["broadcast_of"] != NONE)
    if not len(listeners):
        return []
    mains = moves[moves["broadcast_of"] == NONE]
    pair = mains["source_core"] * system.core_count + mains["target_core"]
    known = set(zip(pair.tolist(), *(mains[name].tolist() for name in columns), strict=True))
    buses = set(np.flatnonzero(system.link_is_broadcast).tolist())
    faults = []
    for move in listeners.tolist():
        row = moves[move]
        main = int(row["broadcast_of"])
        paths = (
            system.path(*divmod(main, system.core_count)),
            system.path(int(row["source_core"]), int(row["target_core"])),
        )
        is_joined = bool(set(paths[0].tolist()) & set(paths[1].tolist()) & buses)
        is_joined |= all(len(path) and system.multicast[path[0]] for path in paths)
        if (main, *(int(row[name]) for name in columns)) not in known or not is_joined:
            faults.append(f"transfer {move} of tensor piece {row['piece']} refers to a broadcast that does not exist")
    return faults
