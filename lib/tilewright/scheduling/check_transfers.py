"""Whether each transfer of a schedule is one that the system can make: ends, path, rate, length, cause, broadcast."""

import numpy as np

from tilewright.scheduling.problem import Booleans, Integers, SchedulingProblem
from tilewright.scheduling.result import Schedule
from tilewright.scheduling.state_record import CORE_TO_CORE, EVICTION, NONE, OFF_CHIP_FETCH, SINK_OUTPUT


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
