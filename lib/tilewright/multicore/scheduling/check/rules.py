"""Checks that a schedule keeps the rules, from the problem and the logs, without the compiled scheduler.

Logs of other sizes than the problem, or that name what it has not, cannot be checked, which is told first.
"""

from collections import defaultdict
from dataclasses import replace

import numpy as np

from tilewright.cost.ledger import agree
from tilewright.multicore.scheduling.check.movement import data_faults, memory_faults, transfer_faults
from tilewright.multicore.scheduling.energy_ledger import CAUSES, ON_CORE, term_parts
from tilewright.multicore.scheduling.energy_terms import energy_terms_of, further_schedule_terms
from tilewright.multicore.scheduling.problem import Integers, SchedulingProblem
from tilewright.multicore.scheduling.schedule import Records, Schedule, link_use, own_hops
from tilewright.multicore.scheduling.state_record import NONE, OFF_CHIP_STREAM


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
    if schedule.energy_terms_pj.keys() != {ON_CORE, *CAUSES, *further_schedule_terms(problem)}:
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


def check_schedule(problem: SchedulingProblem, schedule: Schedule, has_barriers: bool = False) -> list[str]:
    """Everything that is wrong with a recorded schedule, in words; empty where nothing is.

    Checked: each CN runs once, on a core that can run it, as long as its runtime there or its streams take, after its
    predecessors and, where stacks are barriers, after all of earlier ones; no two CNs overlap on a core; transfers are
    between memories of cores that have a path, from where their data is, at no more than a word a cycle, as long as
    their bits take, and share links only with the transfer whose broadcast they listen to; every input has arrived when
    a CN starts; what streams is off-chip; results end off-chip; no link carries more than its width at any time; no
    memory holds more than its capacity, or less than what stays there from its arrival to its last use; all that it
    gains arrives, and nothing is left on chip; energy is the sum of its parts, and those and the counts of bits and
    words follow from the logs. Schedules of the model
    `stream-2023` fail: it is not causal.
    """
    return [fault for faults in faults_by_rule(problem, schedule, has_barriers).values() for fault in faults]


def faults_by_rule(problem: SchedulingProblem, schedule: Schedule, has_barriers: bool = False) -> dict[str, list[str]]:
    """What is wrong with a recorded schedule, by the kind of rule that is broken; the lists are empty where none is."""
    logs = log_faults(problem, schedule)
    if logs:
        return {"logs": logs}
    return {
        "nodes": _node_faults(problem, schedule) + (_barrier_faults(problem, schedule) if has_barriers else []),
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


def _barrier_faults(problem: SchedulingProblem, schedule: Schedule) -> list[str]:
    """Nothing of a stack before the end of all earlier ones."""
    faults, ended = [], 0
    for stack in sorted(set(problem.graph.stack.tolist())):
        cns = np.flatnonzero(problem.graph.stack == stack)
        early = cns[schedule.start_cycles[cns] < ended]
        faults += [f"CN {cn} of stack {stack} starts before earlier stacks have ended, at {ended}" for cn in early]
        ended = max(ended, int(schedule.end_cycles[cns].max()))
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
