"""Schedule of computation nodes on cores: times, logs of moved data, use of memories and links."""

from dataclasses import dataclass, field

import numpy as np

from tilewright.multicore.scheduling.energy_ledger import EnergyTerms, total_pj
from tilewright.multicore.scheduling.problem import CoreSystem, Integers

Records = np.ndarray[tuple[int], np.dtype[np.void]]


@dataclass(frozen=True, eq=False)
class Schedule:
    """What `simulate` found. The three logs are empty where they were not recorded."""

    allocation: Integers
    """[cn] core"""
    start_cycles: Integers
    """[cn]"""
    end_cycles: Integers
    """[cn] first cycle after it"""
    latency_cycles: int
    """End of the last CN or transfer"""
    transfers: Records
    """Transfers by start, records of `state_record.TRANSFER_LOG`: `cause` is a position in CAUSES, `broadcast_of` is
    the pair of cores (source * cores + target) whose transfer, started in the same cycle, carries the data over the
    links that both paths have, else -1"""
    streams: Records
    """Records of STREAM_LOG: what a CN takes of a link for operands that stream while it runs"""
    memory_changes: Records
    """Changes by time, records of CHANGE_LOG: bits stored"""
    peak_bits: Integers
    """[memory]"""
    link_bits: Integers
    """[cause, link] moved"""
    words_read: Integers
    """[cause, memory]"""
    words_written: Integers
    """[cause, memory]"""
    energy_terms_pj: EnergyTerms = field(default_factory=dict)
    """None before `with_energy`"""

    @property
    def energy_pj(self) -> float:
        """Sum of all terms."""
        return total_pj(self.energy_terms_pj)

    def memory_use(self, memory: int) -> tuple[Integers, Integers]:
        """(times, bits stored from each time on) of one memory; each time once."""
        rows = self.memory_changes[self.memory_changes["memory"] == memory]
        times, last = _distinct(rows["time_cycles"])
        return times, np.cumsum(rows["change_bits"])[last]


def own_hops(schedule: Schedule, system: CoreSystem) -> tuple[Integers, Integers]:
    """(transfer, link) of each link that a transfer loads itself, without those of a broadcast it listens to.

    A link that stands twice in a path, as the port of a memory on a way through that memory, is there once.
    """
    moves, cores = schedule.transfers, system.core_count
    pair = moves["source_core"] * cores + moves["target_core"]
    length = system.path_start[pair + 1] - system.path_start[pair]
    transfer = np.repeat(np.arange(len(moves)), length)
    within = np.arange(len(transfer)) - np.repeat(np.cumsum(length) - length, length)
    hop = np.repeat(system.path_start[pair], length) + within
    link = system.path_link[hop]
    pair_of_hop = np.repeat(np.arange(cores * cores), np.diff(system.path_start))
    on_path = np.zeros((cores * cores, len(system.link_bits_per_cycle)), np.bool_)
    on_path[pair_of_hop, system.path_link] = True
    is_first = np.zeros(len(system.path_link), np.bool_)
    is_first[np.unique(pair_of_hop * on_path.shape[1] + system.path_link, return_index=True)[1]] = True
    main = moves["broadcast_of"][transfer]
    own = is_first[hop] & ((main < 0) | ~on_path[np.maximum(main, 0), link])
    return transfer[own], link[own]


def link_use(schedule: Schedule, system: CoreSystem) -> list[tuple[Integers, Integers]]:
    """(times, bits per cycle used from each time on) of each link, for drawing and for checks."""
    transfer, link = own_hops(schedule, system)
    moves, streams = schedule.transfers[transfer], schedule.streams
    links = np.concatenate((link, streams["link"]))
    rates = np.concatenate((moves["bits_per_cycle"], streams["bits_per_cycle"]))
    starts = np.concatenate((moves["start_cycles"], streams["start_cycles"]))
    ends = np.concatenate((moves["end_cycles"], streams["end_cycles"]))
    steps = []
    for of_link in range(len(system.link_bits_per_cycle)):
        users = np.flatnonzero(links == of_link)
        times = np.concatenate((starts[users], ends[users]))
        order = np.argsort(times, kind="stable")
        distinct, last = _distinct(times[order])
        changes = np.concatenate((rates[users], -rates[users]))
        steps.append((distinct, np.cumsum(changes[order])[last]))
    return steps


def _distinct(times: Integers) -> tuple[Integers, Integers]:
    """(distinct times, position of the last entry of each) of times in rising order."""
    last = np.flatnonzero(np.append(times[1:] != times[:-1], True)) if len(times) else np.zeros(0, np.int64)
    return times[last], last
