"""Whether a schedule keeps the rules, worked out again from the problem and the logs without the compiled scheduler:
data where and while they are read, space in memories, transfers that the system can make, counts and energy.

A transfer has its ends, path, rate, length, cause and broadcast checked. Logs of other sizes than the problem, or that
name what it has not, cannot be checked, which is told first.
"""

from collections import defaultdict
from dataclasses import dataclass, replace

import numpy as np

from tilewright.cost.ledger import agree
from tilewright.scheduling.energy_terms import ON_CORE, SCHEDULE_TERMS, energy_terms_of, term_parts
from tilewright.scheduling.problem import OUTPUT_OPERAND, Booleans, Integers, SchedulingProblem
from tilewright.scheduling.result import Records, Schedule, link_use, own_hops
from tilewright.scheduling.state_record import (
    CAUSES,
    CORE_TO_CORE,
    EVICTION,
    NONE,
    OFF_CHIP_FETCH,
    OFF_CHIP_STREAM,
    SINK_OUTPUT,
)


@dataclass(frozen=True, eq=False)
class _Events:
    """Pieces in memories over a time, from `start` to `end`."""

    piece: Integers
    memory: Integers
    start: Integers
    end: Integers


def data_faults(problem: SchedulingProblem, schedule: Schedule) -> list[str]:
    """Reads of data that has not arrived: by transfers, by CNs while they run, of results at the end."""
    faults = []
    lookup = _Lookup(problem, _arrivals(problem, schedule))
    for reads, text in (
        (_sent(schedule), "piece {piece} is sent from memory {memory} at {start}, before it is there"),
        (_needed(problem, schedule), "CN {cn} starts before piece {piece} is in memory {memory}"),
        (_results(problem, schedule), "piece {piece}, a result, is not off-chip at the end"),
    ):
        for read in np.flatnonzero(lookup.last_before(reads) < 0).tolist():
            cn = problem.need_cn[read] if "{cn}" in text else -1
            where = {"piece": reads.piece[read], "memory": reads.memory[read], "start": reads.start[read]}
            faults.append(text.format(cn=cn, **where))
    return faults


def memory_faults(problem: SchedulingProblem, schedule: Schedule) -> list[str]:
    """Capacity at all times, space for all that must be there, every gain by an arrival, all on chip given back."""
    faults: list[str] = []
    stays = _stays(problem, schedule)
    for memory, capacity in enumerate(problem.system.memory_capacity_bits.tolist()):
        times, stored = schedule.memory_use(memory)
        over = np.flatnonzero((stored > capacity) | (stored < 0))
        if len(over):
            faults.append(f"memory {memory} holds {stored[over[0]]} bits at {times[over[0]]}, it has {capacity}")
        if int(stored.max(initial=0)) != schedule.peak_bits[memory]:
            faults.append(f"memory {memory}: the peak does not fit the changes")
        if len(stored) and stored[-1] != 0 and memory != problem.system.off_chip_memory:
            faults.append(f"memory {memory} holds {stored[-1]} bits at the end, when nobody needs them")
        here = stays.memory == memory
        bits = problem.graph.piece_bits[stays.piece[here]]
        rows = schedule.memory_changes[schedule.memory_changes["memory"] == memory]
        rows = rows[rows["change_bits"] > 0]
        gained, arrived = _totals(rows["time_cycles"], rows["change_bits"]), _totals(stays.start[here], bits)
        if not all(np.array_equal(one, other) for one, other in zip(gained, arrived, strict=True)):
            faults.append(f"memory {memory} gains other bits than those that arrive")
        both = np.concatenate((stays.start[here], stays.end[here], times))
        moments, changes = _totals(both, np.concatenate((bits, -bits, np.zeros_like(times))))
        used = np.cumsum(changes)
        place = np.searchsorted(times, moments, side="right") - 1
        held = np.concatenate((np.zeros(1, np.int64), stored))[place + 1]
        for moment in np.flatnonzero(held < used)[:1]:
            faults.append(f"memory {memory} has no space at {moments[moment]} for the {used[moment]} bits in use")
    return faults


def _streams(problem: SchedulingProblem, schedule: Schedule) -> Booleans:
    """[cn, operand]"""
    found: Booleans = problem.costs.stream_bits[problem.graph.cost_row, schedule.allocation] > 0
    return found


def _memory_of(problem: SchedulingProblem, schedule: Schedule) -> Integers:
    """[cn, operand] memory that holds it while the CN runs: that of its core, or the off-chip memory if it streams."""
    system = problem.system
    found: Integers = np.where(
        _streams(problem, schedule), system.off_chip_memory, system.core_memory[schedule.allocation]
    )
    return found


def _arrivals(problem: SchedulingProblem, schedule: Schedule) -> _Events:
    """From when on pieces take space (start) and can be read (end): constants, what CNs make, what transfers bring.

    What is written off-chip counts there when it has arrived, whole.
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
    """What transfers read."""
    moves = schedule.transfers
    return _Events(moves["piece"], moves["source_memory"], moves["start_cycles"], moves["end_cycles"])


def _needed(problem: SchedulingProblem, schedule: Schedule) -> _Events:
    """[need] what CNs read."""
    piece, operand = problem.fetch_order
    cn = problem.need_cn
    memory = _memory_of(problem, schedule)[cn, operand]
    return _Events(piece, memory, schedule.start_cycles[cn], schedule.end_cycles[cn])


def _results(problem: SchedulingProblem, schedule: Schedule) -> _Events:
    """What must be off-chip at the end."""
    results = np.flatnonzero(problem.graph.piece_is_output)
    end = np.full(len(results), schedule.latency_cycles)
    return _Events(results, np.full(len(results), problem.system.off_chip_memory), end, end)


class _Lookup:
    """Finds the arrivals that reads depend on."""

    def __init__(self, problem: SchedulingProblem, arrivals: _Events) -> None:
        self._memories = len(problem.system.memory_capacity_bits)
        self._times = np.sort(arrivals.end)
        key = self._key(arrivals, arrivals.end)
        self._order = np.argsort(key, kind="stable")
        self._sorted = key[self._order]

    def _key(self, events: _Events, time: Integers) -> Integers:
        """A number that orders by place, then by time; an arrival at the time itself comes no later."""
        place = events.piece * self._memories + events.memory
        found: Integers = place * (len(self._times) + 1) + np.searchsorted(self._times, time, side="right")
        return found

    def last_before(self, reads: _Events) -> Integers:
        """[read] the last arrival of its piece in its memory that ends no later than the read starts, else -1."""
        key = self._key(reads, reads.start)
        last = np.searchsorted(self._sorted, key, side="right") - 1
        if not len(self._order):
            return np.full(len(last), -1)
        places = len(self._times) + 1
        same = (last >= 0) & (reads.memory >= 0) & (self._sorted[last] // places == key // places)
        return np.where(same, self._order[last], -1)


def _stays(problem: SchedulingProblem, schedule: Schedule) -> _Events:
    """[arrival] how long a piece stays at least: until its last read before it arrives again; off-chip for ever.

    What stays in between is not logged, but nothing can be read after an arrival that did not stay until then.
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
    """(distinct times, sum of the bits of each)."""
    order = np.argsort(times, kind="stable")
    distinct, first = np.unique(times[order], return_index=True)
    return distinct, np.add.reduceat(bits[order], first) if len(first) else distinct


def transfer_faults(problem: SchedulingProblem, schedule: Schedule) -> list[str]:
    """What is wrong with transfers, each taken by itself or with the one whose broadcast it listens to."""
    moves = schedule.transfers
    wrong = {
        "is not between memories of its cores": ~_at_ends(problem, schedule),
        "has no path": ~_has_path(problem, schedule),
        "is faster than the words of its memories": moves["bits_per_cycle"] > _words(problem, schedule),
        "does not last as long as its bits take": moves["end_cycles"] - moves["start_cycles"]
        != -(-problem.graph.piece_bits[moves["piece"]] // moves["bits_per_cycle"]),
        "has the wrong cause": moves["cause"] != _causes(problem, schedule),
    }
    faults = [
        f"transfer {move} of piece {moves['piece'][move]} {what}"
        for what, found in wrong.items()
        for move in np.flatnonzero(found)
    ]
    return faults + _broadcast_faults(problem, schedule)


def _at_ends(problem: SchedulingProblem, schedule: Schedule) -> Booleans:
    """[transfer] its memories belong to its cores."""
    moves, memory_of = schedule.transfers, problem.system.core_memory
    source = np.any(memory_of[moves["source_core"]] == moves["source_memory"][:, None], axis=1)
    target = np.any(memory_of[moves["target_core"]] == moves["target_memory"][:, None], axis=1)
    found: Booleans = source & target
    return found


def _has_path(problem: SchedulingProblem, schedule: Schedule) -> Booleans:
    """[transfer] there is a path between its cores, or they are one."""
    source, target = schedule.transfers["source_core"], schedule.transfers["target_core"]
    found: Booleans = (source == target) | problem.system.path_exists[source * problem.system.core_count + target]
    return found


def _words(problem: SchedulingProblem, schedule: Schedule) -> Integers:
    """[transfer] bits of the narrower of the words at its ends."""
    read = problem.system.memory_read_bits[schedule.transfers["source_memory"]]
    written = problem.system.memory_write_bits[schedule.transfers["target_memory"]]
    found: Integers = np.minimum(read, written)
    return found


def _causes(problem: SchedulingProblem, schedule: Schedule) -> Integers:
    """[transfer] why it moves, from its ends: results are written as such, all else to make room or to be streamed."""
    moves, off_chip = schedule.transfers, problem.system.off_chip_memory
    inward, outward = moves["source_memory"] == off_chip, moves["target_memory"] == off_chip
    written = np.where(problem.graph.piece_is_output[moves["piece"]], SINK_OUTPUT, EVICTION)
    within = np.where(inward, OFF_CHIP_FETCH, CORE_TO_CORE)
    return np.where(inward & outward, NONE, np.where(outward, written, within))


def _broadcast_faults(problem: SchedulingProblem, schedule: Schedule) -> list[str]:
    """Listeners without a transfer of the same piece, from the same memory at the same time, over a common bus."""
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
        common = set(system.path(*divmod(main, system.core_count)).tolist())
        common &= set(system.path(int(row["source_core"]), int(row["target_core"])).tolist())
        if (main, *(int(row[name]) for name in columns)) not in known or not common & buses:
            faults.append(f"transfer {move} of piece {row['piece']} listens to a broadcast that there is not")
    return faults


def log_faults(problem: SchedulingProblem, schedule: Schedule) -> list[str]:
    """What keeps the other checks from reading a schedule; [] where nothing does."""
    if len(schedule.memory_changes) == 0 and len(problem.graph.piece_bits):
        return ["the schedule was made without logs, so that it cannot be checked"]
    nodes, pieces = problem.graph.node_count, len(problem.graph.piece_bits)
    cores, links = problem.system.core_count, len(problem.system.link_bits_per_cycle)
    memories, causes = len(problem.system.memory_capacity_bits), len(CAUSES)
    faults = [
        f"{name} has shape {getattr(schedule, name).shape}, not {shape}"
        for name, shape in (
            ("allocation", (nodes,)), ("start_cycles", (nodes,)), ("end_cycles", (nodes,)), ("peak_bits", (memories,)),
            ("link_bits", (causes, links)), ("words_read", (causes, memories)), ("words_written", (causes, memories)),
        )
        if getattr(schedule, name).shape != shape
    ]  # fmt: skip
    if np.any((schedule.allocation < 0) | (schedule.allocation >= cores)):
        faults.append("a CN is on a core that there is not")
    if schedule.energy_terms_pj.keys() != {ON_CORE, *CAUSES, *SCHEDULE_TERMS.names}:
        faults.append(f"there is energy for {', '.join(sorted(schedule.energy_terms_pj.keys() - {ON_CORE}))}")
    ranges = {"piece": pieces, "cause": causes, "source_memory": memories, "target_memory": memories}
    ranges |= {"source_core": cores, "target_core": cores}
    faults += _out_of_range("transfers", schedule.transfers, ranges)
    faults += _out_of_range("streams", schedule.streams, {"cn": nodes, "link": links})
    faults += _out_of_range("memory_changes", schedule.memory_changes, {"memory": memories})
    main = schedule.transfers["broadcast_of"]
    if np.any((main < NONE) | (main >= cores * cores)):
        faults.append("transfers: broadcast_of is out of range")
    for name, log in (("transfers", schedule.transfers), ("streams", schedule.streams)):
        if np.any(log["bits_per_cycle"] < 1):
            faults.append(f"{name}: bits_per_cycle is not positive")
    for name, times in (
        ("transfers", schedule.transfers["start_cycles"]), ("memory_changes", schedule.memory_changes["time_cycles"]),
    ):  # fmt: skip
        if np.any(times[1:] < times[:-1]) or np.any(times[:1] < 0):
            faults.append(f"{name} are not in the order of time")
    return faults


def _out_of_range(name: str, log: Records, ranges: dict[str, int]) -> list[str]:
    """Columns of a log with entries that are not from 0 to below a number."""
    return [
        f"{name}: {column} is out of range"
        for column, count in ranges.items()
        if np.any((log[column] < 0) | (log[column] >= count))
    ]


def energy_faults(problem: SchedulingProblem, schedule: Schedule) -> list[str]:
    """Bits over links and words of memories from the logs, energy from those, and the total from its parts."""
    link_bits, words_read, words_written = _counts(problem, schedule)
    faults = [
        f"{name} of {CAUSES[cause]} at {place} is {given[cause, place]}, the logs say {found[cause, place]}"
        for name, given, found in (
            ("link_bits", schedule.link_bits, link_bits),
            ("words_read", schedule.words_read, words_read),
            ("words_written", schedule.words_written, words_written),
        )
        for cause, place in np.argwhere(given != found).tolist()
    ]
    by_logs = replace(schedule, link_bits=link_bits, words_read=words_read, words_written=words_written)
    given = {(term, part): energy for term, part, energy in term_parts(schedule.energy_terms_pj)}
    pairs = [
        (f"{term} {part}".rstrip(), given[term, part], energy)
        for term, part, energy in term_parts(energy_terms_of(problem, by_logs))
    ]
    pairs.append(("total", schedule.energy_pj, sum(found for _, _, found in pairs)))
    return faults + [
        f"energy {name} is {given} pJ, the logs say {found}" for name, given, found in pairs if not agree(given, found)
    ]


def _counts(problem: SchedulingProblem, schedule: Schedule) -> tuple[Integers, Integers, Integers]:
    """([cause, link] bits, [cause, memory] words read, and written) of transfers and streams."""
    system, moves = problem.system, schedule.transfers
    link_bits = np.zeros((len(CAUSES), len(system.link_bits_per_cycle)), np.int64)
    words_read = np.zeros((len(CAUSES), len(system.memory_capacity_bits)), np.int64)
    words_written = np.zeros_like(words_read)
    bits, cause = problem.graph.piece_bits[moves["piece"]], moves["cause"]
    move, link = own_hops(schedule, system)
    np.add.at(link_bits, (cause[move], link), bits[move])
    source, target = moves["source_memory"], moves["target_memory"]
    read = np.where(moves["broadcast_of"] == NONE, -(-bits // system.memory_read_bits[source]), 0)
    np.add.at(words_read, (cause, source), read)
    np.add.at(words_written, (cause, target), -(-bits // system.memory_write_bits[target]))
    for (_, over), load in stream_loads(problem, schedule).items():
        link_bits[OFF_CHIP_STREAM, over] += load
    off_chip = system.off_chip_memory
    streamed = problem.costs.stream_bits[problem.graph.cost_row, schedule.allocation]
    into, out_of = -(-streamed[:, 0] // system.memory_write_bits[off_chip]), streamed[:, 1:]
    words_written[OFF_CHIP_STREAM, off_chip] += int(into.sum())
    words_read[OFF_CHIP_STREAM, off_chip] += int((-(-out_of // system.memory_read_bits[off_chip])).sum())
    return link_bits, words_read, words_written


def stream_loads(problem: SchedulingProblem, schedule: Schedule) -> dict[tuple[int, int], int]:
    """(cn, link) → bits that stream over it."""
    system = problem.system
    loads: dict[tuple[int, int], int] = defaultdict(int)
    bits = problem.costs.stream_bits[problem.graph.cost_row, schedule.allocation]
    for cn, operand in np.argwhere(bits > 0).tolist():
        core = int(schedule.allocation[cn])
        ends = (core, system.off_chip_core) if operand == 0 else (system.off_chip_core, core)
        for link in system.path(*ends).tolist():
            loads[cn, link] += int(bits[cn, operand])
    return dict(loads)


def check_schedule(problem: SchedulingProblem, schedule: Schedule) -> list[str]:
    """Everything that is wrong with a recorded schedule, in words; empty where nothing is.

    Checked: each CN runs once, on a core that can run it, as long as its runtime there or its streams take, after its
    predecessors; no two CNs overlap on a core; transfers are between memories of cores that have a path, from where
    their data is, at no more than a word a cycle, as long as their bits take, and share links only with the transfer
    whose broadcast they listen to; every input has arrived when a CN starts; what streams is off-chip; results end
    off-chip; no link carries more than its width at any time; no memory holds more than its capacity, or less than what
    stays there from its arrival to its last use; all that it gains arrives, and nothing is left on chip; energy is the
    sum of its parts, and those and the counts of bits and words follow from the logs. Schedules of the model
    `stream-2023` fail: it is not causal.
    """
    return [fault for faults in faults_by_rule(problem, schedule).values() for fault in faults]


def faults_by_rule(problem: SchedulingProblem, schedule: Schedule) -> dict[str, list[str]]:
    """What is wrong with a recorded schedule, by the kind of rule that is broken; the lists are empty where none is."""
    logs = log_faults(problem, schedule)
    if logs:
        return {"logs": logs}
    return {
        "nodes": _node_faults(problem, schedule),
        "cores": _core_faults(problem, schedule),
        "data": transfer_faults(problem, schedule) + data_faults(problem, schedule),
        "links": _link_faults(problem, schedule),
        "memories": memory_faults(problem, schedule),
        "energy": energy_faults(problem, schedule),
    }


def _node_faults(problem: SchedulingProblem, schedule: Schedule) -> list[str]:
    """Each CN once, as long as it takes, in order."""
    start, end = schedule.start_cycles, schedule.end_cycles
    runtime = problem.costs.runtime_cycles[problem.graph.cost_row, schedule.allocation]
    faults = [f"CN {cn} has not run" for cn in np.flatnonzero(start < 0)]
    unable = (runtime < 1) | (schedule.allocation == problem.system.off_chip_core)
    faults += [f"CN {cn} is on a core that cannot run it" for cn in np.flatnonzero(unable)]
    wanted = runtime.copy()
    np.maximum.at(wanted, schedule.streams["cn"], -(-schedule.streams["bits"] // schedule.streams["bits_per_cycle"]))
    faults += [
        f"CN {cn} runs for {end[cn] - start[cn]} cycles, not {wanted[cn]}"
        for cn in np.flatnonzero(end - start != wanted)
    ]
    first, successor = problem.edges
    source = np.repeat(np.arange(len(start)), np.diff(first))
    for edge in np.flatnonzero(start[successor] < end[source]):
        faults.append(f"CN {successor[edge]} starts before its predecessor {source[edge]} ends")
    last = max(int(end.max(initial=0)), int(schedule.transfers["end_cycles"].max(initial=0)))
    if schedule.latency_cycles != last:
        faults.append(f"the latency is {schedule.latency_cycles}, the last end {last}")
    return faults


def _core_faults(problem: SchedulingProblem, schedule: Schedule) -> list[str]:
    """No overlap on a core, and streams over a path, as long as their CN and wide enough for their bits."""
    faults = []
    order = np.lexsort((schedule.start_cycles, schedule.allocation))
    before, after = order[:-1], order[1:]
    same = schedule.allocation[before] == schedule.allocation[after]
    for place in np.flatnonzero(same & (schedule.start_cycles[after] < schedule.end_cycles[before])):
        faults.append(f"CNs {before[place]} and {after[place]} overlap on core {schedule.allocation[before[place]]}")
    taken: dict[tuple[int, int], int] = defaultdict(int)
    for cn, link, start, end, rate, bits in schedule.streams.tolist():
        taken[cn, link] += bits
        if (start, end) != (schedule.start_cycles[cn], schedule.end_cycles[cn]) or rate * (end - start) < bits:
            faults.append(f"CN {cn} does not stream its {bits} bits over link {link} while it runs")
    wanted = stream_loads(problem, schedule)
    faults += [f"CN {cn}: streams over link {link} are wrong" for cn, link in sorted({*wanted, *taken})
               if wanted.get((cn, link), 0) != taken.get((cn, link), 0)]  # fmt: skip
    system = problem.system
    exists = system.path_exists.reshape(system.core_count, system.core_count)
    streamed = problem.costs.stream_bits[problem.graph.cost_row, schedule.allocation] > 0
    lost = streamed[:, 0] & ~exists[schedule.allocation, system.off_chip_core]
    lost |= np.any(streamed[:, 1:], axis=1) & ~exists[system.off_chip_core, schedule.allocation]
    return faults + [f"CN {cn} streams where there is no path" for cn in np.flatnonzero(lost)]


def _link_faults(problem: SchedulingProblem, schedule: Schedule) -> list[str]:
    """Width of each link at all times."""
    faults = []
    for link, (times, used) in enumerate(link_use(schedule, problem.system)):
        over = np.flatnonzero(used > problem.system.link_bits_per_cycle[link])
        if len(over):
            faults.append(f"link {link} carries {used[over[0]]} bits per cycle at {times[over[0]]}")
        if len(used) and used[-1] != 0:
            faults.append(f"link {link} is in use for ever")
    return faults
