"""Whether counts and energy of a schedule are those of its logs."""

import math
from collections import defaultdict

import numpy as np

from tilewright.scheduling.problem import Integers, SchedulingProblem
from tilewright.scheduling.result import Schedule, own_hops
from tilewright.scheduling.state_record import CAUSES, NONE, OFF_CHIP_STREAM

_TOLERANCE = 1e-9


def energy_faults(problem: SchedulingProblem, schedule: Schedule) -> list[str]:
    """Bits over links and words of memories from the logs, energy from those, and the total from its parts."""
    system, graph = problem.system, problem.graph
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
    link_pj = link_bits @ system.link_energy_pj_per_bit
    memory_pj = words_read @ system.memory_read_energy_pj + words_written @ system.memory_write_energy_pj
    on_core = float(np.sum(problem.costs.on_core_energy_pj[graph.cost_row, schedule.allocation]))
    pairs = [("on_core", schedule.on_core_energy_pj, on_core)]
    for i, name in enumerate(CAUSES):
        pairs.append((f"{name} link", schedule.causes[name].link_pj, float(link_pj[i])))
        pairs.append((f"{name} memory", schedule.causes[name].memory_pj, float(memory_pj[i])))
    pairs.append(("total", schedule.energy_pj, sum(found for _, _, found in pairs)))
    return faults + [
        f"energy {name} is {given} pJ, the logs say {found}"
        for name, given, found in pairs
        if not math.isclose(given, found, rel_tol=_TOLERANCE, abs_tol=_TOLERANCE)
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
