"""Whether a schedule keeps the rules, worked out again from the problem and the logs without the compiled scheduler."""

from collections import defaultdict

import numpy as np

from tilewright.scheduling.check_energy import energy_faults, stream_loads
from tilewright.scheduling.check_logs import log_faults
from tilewright.scheduling.check_residency import data_faults, memory_faults
from tilewright.scheduling.check_transfers import transfer_faults
from tilewright.scheduling.problem import SchedulingProblem
from tilewright.scheduling.result import Schedule, link_use


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
