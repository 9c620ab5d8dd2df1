"""Checks that a schedule follows the rules.

The checks use the problem and the logs, but not the compiled scheduler.

First, the shapes and the ranges of values of all arrays and logs are checked (`log_faults`). If this check finds
faults, only these faults are reported, because the other checks cannot read such logs.
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
    """Faults that prevent the other checks from reading the logs; [] if there are none."""
    if len(schedule.memory_changes) == 0 and len(problem.graph.piece_bits):
        return ["the schedule was made without logs, so it cannot be checked"]
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
        faults.append("a CN is on a core that does not exist")
    if schedule.energy_terms_pj.keys() != {ON_CORE, *CAUSES, *further_schedule_terms(problem)}:
        faults.append(f"wrong energy terms: {', '.join(sorted(schedule.energy_terms_pj.keys() - {ON_CORE}))}")
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
            faults.append(f"{name} are not sorted by time")
    return faults


def _out_of_range(name: str, log: Records, ranges: dict[str, int]) -> list[str]:
    """Faults of a log: columns with entries outside their range. `ranges` has a number for each column; the entries
    must be from 0 to this number minus 1.
    """
    return [
        f"{name}: {column} is out of range"
        for column, count in ranges.items()
        if np.any((log[column] < 0) | (log[column] >= count))
    ]


def energy_faults(problem: SchedulingProblem, schedule: Schedule) -> list[str]:
    """Faults of counts and energy. The numbers of bits over links must equal the numbers in the logs. The numbers of
    words that memories read and write must also equal the numbers in the logs. The energy terms must follow from these
    counts. The total energy must be the sum of the terms.
    """
    link_bits, words_read, words_written = _counts(problem, schedule)
    faults = [
        f"{name} of {CAUSES[cause]} at {place} is {given[cause, place]}, but the logs give {found[cause, place]}"
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
        f"energy {name} is {given} pJ, but the logs give {found}"
        for name, given, found in pairs
        if not agree(given, found)
    ]


def _counts(problem: SchedulingProblem, schedule: Schedule) -> tuple[Integers, Integers, Integers]:
    """Counts that follow from the logs of transfers and streams, as a triple of arrays: bits moved, words read, words
    written. The first array has the shape (causes, links), the other two have the shape (causes, memories).
    """
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
    """Bits that a CN streams over a link, by (CN, link)."""
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
    """Faults of a recorded schedule, as messages; empty if there are none.

    The checks are:

    * Each CN runs once, on a core that can run it. The duration of the CN is its runtime on this core, or the time of
      its streams if the streams take longer. The CN starts after the end of its predecessors. If stacks are barriers,
      the CN also starts after the end of all CNs of earlier stacks.
    * No two CNs overlap on a core.
    * Each transfer goes from a memory of its source core to a memory of its target core. Between two different cores,
      there is a path. The data are in the source memory when the transfer starts. If cores do not forward constants, a
      constant comes from the off-chip memory. A transfer moves at most one word per cycle. Its duration is its number
      of bits divided by its rate, rounded up.
    * A transfer that is part of a broadcast refers to a transfer that exists. Both transfers move the same data from
      the same source memory, with the same start and the same rate. One broadcast can serve the paths of both
      transfers.
    * All inputs of a CN have arrived when the CN starts. Operands that stream are in the off-chip memory. Results of
      the network end in the off-chip memory.
    * No link ever moves more bits per cycle than its width.
    * The content of a memory is never larger than the capacity of the memory. The content is never smaller than the
      data that must stay in the memory from their arrival to their last use. The content grows only if data arrive. At
      the end, no data are left on chip.
    * The energy is the sum of its terms. The terms, and the counts of bits and words, follow from the logs.

    Schedules of the schedule model `stream-2023` fail the checks, because this model is not causal.
    """
    return [fault for faults in faults_by_rule(problem, schedule, has_barriers).values() for fault in faults]


def faults_by_rule(problem: SchedulingProblem, schedule: Schedule, has_barriers: bool = False) -> dict[str, list[str]]:
    """Faults of a recorded schedule, by type of rule. The list of a type is empty if no rule of this type is broken. If
    the logs of the schedule are invalid, the only type is `logs`, because no other rule can then be checked.
    """
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
    """Faults of CNs. Each CN must run once, for its runtime, after its predecessors."""
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
        faults.append(f"CN {successor[edge]} starts before its predecessor CN {source[edge]} ends")
    last = max(int(end.max(initial=0)), int(schedule.transfers["end_cycles"].max(initial=0)))
    if schedule.latency_cycles != last:
        faults.append(f"the latency is {schedule.latency_cycles}, but the last CN or transfer ends at {last}")
    return faults


def _barrier_faults(problem: SchedulingProblem, schedule: Schedule) -> list[str]:
    """Faults of barriers. A CN may start only after all earlier stacks have ended."""
    faults, ended = [], 0
    for stack in sorted(set(problem.graph.stack.tolist())):
        cns = np.flatnonzero(problem.graph.stack == stack)
        early = cns[schedule.start_cycles[cns] < ended]
        faults += [
            f"CN {cn} of stack {stack} starts before cycle {ended}, the end of the last earlier stack" for cn in early
        ]
        ended = max(ended, int(schedule.end_cycles[cns].max()))
    return faults


def _core_faults(problem: SchedulingProblem, schedule: Schedule) -> list[str]:
    """Faults of cores. The CNs of a core must not overlap. The streams of a CN must have a path, last as long as the
    CN, and be wide enough for the streamed bits.
    """
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
            faults.append(
                f"the stream of CN {cn} ({bits} bits over link {link}) does not last exactly as long as the CN"
            )
    wanted = stream_loads(problem, schedule)
    faults += [f"CN {cn}: wrong number of streamed bits over link {link}" for cn, link in sorted({*wanted, *taken})
               if wanted.get((cn, link), 0) != taken.get((cn, link), 0)]  # fmt: skip
    system = problem.system
    exists = system.path_exists.reshape(system.core_count, system.core_count)
    streamed = problem.costs.stream_bits[problem.graph.cost_row, schedule.allocation] > 0
    lost = streamed[:, 0] & ~exists[schedule.allocation, system.off_chip_core]
    lost |= np.any(streamed[:, 1:], axis=1) & ~exists[system.off_chip_core, schedule.allocation]
    return faults + [
        f"CN {cn} streams data, but a path between its core and the off-chip core is missing"
        for cn in np.flatnonzero(lost)
    ]


def _link_faults(problem: SchedulingProblem, schedule: Schedule) -> list[str]:
    """Faults of links. No link may carry more than its width at any time."""
    faults = []
    for link, (times, used) in enumerate(link_use(schedule, problem.system)):
        over = np.flatnonzero(used > problem.system.link_bits_per_cycle[link])
        if len(over):
            at = times[over[0]]
            faults.append(f"link {link} carries {used[over[0]]} bits per cycle at cycle {at}, more than its width")
        if len(used) and used[-1] != 0:
            faults.append(f"link {link} is in use after the end of the schedule")
    return faults
