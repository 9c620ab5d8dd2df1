"""Whether a schedule keeps the rules, worked out again from the problem and the logs without the compiled scheduler."""

import math
from collections import defaultdict

import numpy as np

from tilewright.schedule.problem import Integers, SchedulingProblem
from tilewright.schedule.result import Schedule, link_use, own_hops
from tilewright.schedule.state_record import CAUSES, NONE

_TOLERANCE = 1e-9


def check_schedule(problem: SchedulingProblem, schedule: Schedule) -> list[str]:
    """Everything that is wrong with a recorded schedule, in words; empty where nothing is.

    Checked: each CN runs once, on a core that can run it, as long as its runtime there or longer, after its
    predecessors; no two CNs overlap on a core; transfers start where their data is and last long enough; every input
    has arrived when a CN starts; what streams is off-chip; results end off-chip; no link carries more than its width
    and no memory holds more than its capacity, or less than what the CNs that run keep there, at any time; energy is
    the sum of its parts, and those follow from the logs. Schedules of the model `stream-2023` fail: it is not causal.
    """
    return [fault for faults in faults_by_rule(problem, schedule).values() for fault in faults]


def faults_by_rule(problem: SchedulingProblem, schedule: Schedule) -> dict[str, list[str]]:
    """What is wrong with a recorded schedule, by the kind of rule that is broken; the lists are empty where none is."""
    if len(schedule.memory_changes) == 0 and len(problem.graph.piece_bits):
        return {"logs": ["the schedule was made without logs, so that it cannot be checked"]}
    return {
        "nodes": _node_faults(problem, schedule),
        "cores": _core_faults(problem, schedule),
        "data": _data_faults(problem, schedule),
        "links": _link_faults(problem, schedule),
        "memories": _memory_faults(problem, schedule),
        "energy": _energy_faults(problem, schedule),
    }


def _node_faults(problem: SchedulingProblem, schedule: Schedule) -> list[str]:
    """Each CN once, long enough, in order."""
    start, end = schedule.start_cycles, schedule.end_cycles
    runtime = problem.costs.runtime_cycles[problem.graph.cost_row, schedule.allocation]
    faults = [f"CN {cn} has not run" for cn in np.flatnonzero(start < 0)]
    faults += [f"CN {cn} is on a core that cannot run it" for cn in np.flatnonzero(runtime < 1)]
    faults += [f"CN {cn} is shorter than its runtime" for cn in np.flatnonzero(end - start < runtime)]
    first, successor = problem.edges
    source = np.repeat(np.arange(len(start)), np.diff(first))
    for edge in np.flatnonzero(start[successor] < end[source]):
        faults.append(f"CN {successor[edge]} starts before its predecessor {source[edge]} ends")
    last = max(int(end.max(initial=0)), int(schedule.transfers["end_cycles"].max(initial=0)))
    if schedule.latency_cycles != last:
        faults.append(f"the latency is {schedule.latency_cycles}, the last end {last}")
    return faults


def _core_faults(problem: SchedulingProblem, schedule: Schedule) -> list[str]:
    """No overlap on a core, and streams as long as their CN and wide enough for their bits."""
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
    wanted = _stream_loads(problem, schedule)
    faults += [f"CN {cn}: streams over link {link} are wrong" for cn, link in sorted({*wanted, *taken})
               if wanted.get((cn, link), 0) != taken.get((cn, link), 0)]  # fmt: skip
    return faults


def _stream_loads(problem: SchedulingProblem, schedule: Schedule) -> dict[tuple[int, int], int]:
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


def _data_faults(problem: SchedulingProblem, schedule: Schedule) -> list[str]:
    """Data is somewhere before it is sent, and in place while it is needed.

    The stays of a piece in a memory are not logged, so a piece counts as there from its first arrival or production on;
    that nothing is kept without its space follows from the bits that each memory holds.
    """
    graph, system, moves = problem.graph, problem.system, schedule.transfers
    memories = len(system.memory_capacity_bits)
    streams = problem.costs.stream_bits[graph.cost_row, schedule.allocation] > 0
    memory_of = np.where(streams, system.off_chip_memory, system.core_memory[schedule.allocation])
    producer = graph.piece_producer
    made = np.where(producer < 0, 0, schedule.end_cycles[producer])
    home = np.where(producer < 0, system.off_chip_memory, memory_of[producer, 0])
    places = np.concatenate(
        (np.arange(len(producer)) * memories + home, moves["piece"] * memories + moves["target_memory"])
    )
    times = np.concatenate((made, moves["end_cycles"]))
    order = np.lexsort((times, places))
    known, first = np.unique(places[order], return_index=True)
    earliest = times[order][first]

    def missing(piece: Integers, memory: Integers, time: Integers) -> Integers:
        """Entries whose piece is not in the memory at that time."""
        key = piece * memories + memory
        found = np.minimum(np.searchsorted(known, key), len(known) - 1)
        return np.flatnonzero((known[found] != key) | (earliest[found] > time)) if len(key) else np.zeros(0, np.int64)

    faults = []
    for move in missing(moves["piece"], moves["source_memory"], moves["start_cycles"]):
        what, source, start = (int(moves[name][move]) for name in ("piece", "source_memory", "start_cycles"))
        faults.append(f"piece {what} is sent from memory {source} at {start}, before it is there")
    lasting = (moves["end_cycles"] - moves["start_cycles"]) * moves["bits_per_cycle"]
    for move in np.flatnonzero(lasting < graph.piece_bits[moves["piece"]]):
        faults.append(f"transfer {move} of piece {moves['piece'][move]} is too short for its bits")
    piece, operand = problem.fetch_order
    needed_in = memory_of[problem.need_cn, operand]
    for need in missing(piece, needed_in, schedule.start_cycles[problem.need_cn]):
        cn = problem.need_cn[need]
        faults.append(f"CN {cn} starts before piece {piece[need]} is in memory {needed_in[need]}")
    results = np.flatnonzero(graph.piece_is_output)
    off_chip = np.full(len(results), system.off_chip_memory)
    for result in missing(results, off_chip, np.full(len(results), schedule.latency_cycles)):
        faults.append(f"piece {results[result]}, a result, is not off-chip at the end")
    return faults


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


def _memory_faults(problem: SchedulingProblem, schedule: Schedule) -> list[str]:
    """Capacity at all times, space for all that must be there, and every change explained by an arrival or an end."""
    faults, system = [], problem.system
    for memory, capacity in enumerate(system.memory_capacity_bits.tolist()):
        times, stored = schedule.memory_use(memory)
        over = np.flatnonzero((stored > capacity) | (stored < 0))
        if len(over):
            faults.append(f"memory {memory} holds {stored[over[0]]} bits at {times[over[0]]}, it has {capacity}")
        if int(stored.max(initial=0)) != schedule.peak_bits[memory]:
            faults.append(f"memory {memory}: the peak does not fit the changes")
        moments, used = _bits_in_use(problem, schedule, memory)
        place = np.searchsorted(times, moments, side="right") - 1
        held = np.where(place < 0, 0, stored[place]) if len(stored) else np.zeros(len(moments), np.int64)
        for moment in np.flatnonzero(held < used):
            faults.append(f"memory {memory} has no space at {moments[moment]} for the {used[moment]} bits in use")
    return faults


def _bits_in_use(problem: SchedulingProblem, schedule: Schedule, memory: int) -> tuple[Integers, Integers]:
    """(times, bits from each time on) that the CNs that run keep in a memory on chip."""
    graph, system = problem.graph, problem.system
    streams = problem.costs.stream_bits[graph.cost_row, schedule.allocation] > 0
    here = (system.core_memory[schedule.allocation] == memory) & ~streams & (memory != system.off_chip_memory)
    piece, operand = problem.fetch_order
    needs = np.flatnonzero(here[problem.need_cn, operand])
    made = np.flatnonzero((graph.piece_producer >= 0) & here[graph.piece_producer, 0]) if len(here) else needs[:0]
    pieces = np.concatenate((piece[needs], made))
    cns = np.concatenate((problem.need_cn[needs], graph.piece_producer[made]))
    # Stays of the same piece that touch are one; each piece has its own stretch of a common time line.
    stretch = pieces * (int(schedule.end_cycles.max(initial=0)) + 2)
    order = np.argsort(stretch + schedule.start_cycles[cns], kind="stable")
    starts, ends = (stretch + schedule.start_cycles[cns])[order], (stretch + schedule.end_cycles[cns])[order]
    longest = np.maximum.accumulate(ends) if len(ends) else ends
    first = np.ones(len(starts), np.bool_)
    first[1:] = starts[1:] > longest[:-1]
    last = np.append(first[1:], np.ones(min(len(first), 1), np.bool_))
    bits = graph.piece_bits[pieces[order]]
    times = np.concatenate(((starts - stretch[order])[first], (longest - stretch[order])[last]))
    changes = np.concatenate((bits[first], -bits[last]))
    order = np.argsort(times, kind="stable")
    distinct, place = np.unique(times[order], return_index=True)
    return distinct, np.add.reduceat(changes[order], place).cumsum() if len(place) else distinct


def _energy_faults(problem: SchedulingProblem, schedule: Schedule) -> list[str]:
    """Parts from the logs, and the total from the parts."""
    system, graph = problem.system, problem.graph
    link_pj, memory_pj = np.zeros(len(CAUSES)), np.zeros(len(CAUSES))
    moves = schedule.transfers
    bits, cause = graph.piece_bits[moves["piece"]], moves["cause"]
    move, link = own_hops(schedule, system)
    np.add.at(link_pj, cause[move], bits[move] * system.link_energy_pj_per_bit[link])
    read = -(-bits // system.memory_read_bits[moves["source_memory"]])
    read_pj = read * system.memory_read_energy_pj[moves["source_memory"]]
    np.add.at(memory_pj, cause, np.where(moves["broadcast_of"] == NONE, read_pj, 0.0))
    written = -(-bits // system.memory_write_bits[moves["target_memory"]])
    np.add.at(memory_pj, cause, written * system.memory_write_energy_pj[moves["target_memory"]])
    stream = CAUSES.index("off_chip_stream")
    off_chip = system.off_chip_memory
    for (_, over), load in _stream_loads(problem, schedule).items():
        link_pj[stream] += load * system.link_energy_pj_per_bit[over]
    for operand, streamed in enumerate(problem.costs.stream_bits[graph.cost_row, schedule.allocation].T):
        width = (system.memory_read_bits if operand else system.memory_write_bits)[off_chip]
        energy = (system.memory_read_energy_pj if operand else system.memory_write_energy_pj)[off_chip]
        memory_pj[stream] += float(np.sum(-(-streamed // width))) * energy
    on_core = float(np.sum(problem.costs.on_core_energy_pj[graph.cost_row, schedule.allocation]))
    pairs = [("on_core", schedule.on_core_energy_pj, on_core)]
    for i, name in enumerate(CAUSES):
        pairs.append((f"{name} link", schedule.causes[name].link_pj, float(link_pj[i])))
        pairs.append((f"{name} memory", schedule.causes[name].memory_pj, float(memory_pj[i])))
    pairs.append(("total", schedule.energy_pj, sum(given for _, given, _ in pairs)))
    return [
        f"energy {name} is {given} pJ, the logs say {found}"
        for name, given, found in pairs
        if not math.isclose(given, found, rel_tol=_TOLERANCE, abs_tol=_TOLERANCE)
    ]
