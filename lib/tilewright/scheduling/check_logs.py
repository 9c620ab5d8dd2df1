"""Whether a schedule can be checked at all: its arrays have the sizes of the problem and name what it has."""

import numpy as np

from tilewright.scheduling.problem import SchedulingProblem
from tilewright.scheduling.result import Records, Schedule
from tilewright.scheduling.state_record import CAUSES, NONE


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
    if set(schedule.causes) != set(CAUSES):
        faults.append(f"there is energy for {', '.join(sorted(schedule.causes))}")
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
