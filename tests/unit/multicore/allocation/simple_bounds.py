"""Bounds of the relaxation for one allocation, computed without a solver to check the program."""

from tilewright.multicore.allocation.exact.relaxation import Precedence, Relaxation


def simple_bounds(relaxation: Relaxation, part_cores: tuple[int, ...]) -> tuple[int, float]:
    """Lower bounds (latency in cycles, energy in pJ) on all schedules of an allocation, which gives the core of each
    part.

    They use the part of the relaxation that needs no solver, and leave out that a core runs one CN at a time.
    """
    part_of = relaxation.space.part_of_cn.tolist()
    core = [part_cores[part] for part in part_of]
    start = [release[core[cn]] for cn, release in enumerate(relaxation.release_cycles)]
    after: dict[int, list[Precedence]] = {}
    for edge in relaxation.precedences:
        after.setdefault(edge.first, []).append(edge)
    waiting = [0] * len(core)
    for edge in relaxation.precedences:
        waiting[edge.second] += 1
    ready = [cn for cn, count in enumerate(waiting) if count == 0]
    latency = 0
    for cn in ready:
        end = start[cn] + relaxation.runtime_cycles[cn][core[cn]]
        latency = max(latency, end + relaxation.tail_cycles[cn][core[cn]])
        for edge in after.get(cn, ()):
            start[edge.second] = max(start[edge.second], end + edge.delays[core[cn], core[edge.second]])
            waiting[edge.second] -= 1
            if waiting[edge.second] == 0:
                ready.append(edge.second)
    loads = [-(-int(load.bits.value(part_cores)) // load.bits_per_cycle) for load in relaxation.links]
    work = [int(work.value(part_cores)) for work in relaxation.core_work]
    for split in relaxation.splits:
        before = [-(-int(load.bits.value(part_cores)) // load.bits_per_cycle) for load in split.before]
        before += [int(work.value(part_cores)) for work in split.work_before]
        behind = [-(-int(load.bits.value(part_cores)) // load.bits_per_cycle) for load in split.after]
        behind += [int(work.value(part_cores)) for work in split.work_after]
        runtime = relaxation.runtime_cycles[split.cn][core[split.cn]]
        latency = max(latency, max([*before, start[split.cn]]) + runtime + max(behind, default=0))
    return max([latency, *loads, *work]), relaxation.energy_pj.value(part_cores)
