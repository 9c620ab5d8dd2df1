"""Schedule of computation nodes (CNs) on cores: times, logs of data movement, use of memories and links."""

from dataclasses import dataclass, field

import numpy as np

from tilewright.multicore.scheduling.energy_ledger import EnergyTerms, total_pj
from tilewright.multicore.scheduling.problem import CoreSystem, Integers

Records = np.ndarray[tuple[int], np.dtype[np.void]]


@dataclass(frozen=True, eq=False)
class Schedule:
    """Result of `simulate`: a schedule. The three logs (transfers, streams, memory changes) are empty if they were not
    recorded.
    """

    allocation: Integers
    """Core that runs the CN (one entry for each CN)"""
    start_cycles: Integers
    """Cycle in which the CN starts (one entry for each CN)"""
    end_cycles: Integers
    """First cycle after the end of the CN (one entry for each CN)"""
    latency_cycles: int
    """Number of cycles until the last CN or transfer ends"""
    transfers: Records
    """Transfers in the order of their start, as records of `state_record.TRANSFER_LOG`. The field `cause` is a position
    in CAUSES.

    The field `broadcast_of` is -1 if the transfer itself uses all links of its path. Otherwise, the transfer refers to
    another transfer of the same piece that started in the same cycle. The field then has the number source * core_count
    + target of the cores of the other transfer. The other transfer moves the data over all links that both paths share.
    A link with multicast carries the data once for a transfer and for all transfers that refer to it.
    """
    streams: Records
    """Streams of CNs over links, as records of STREAM_LOG. A record has the bandwidth in bits per cycle that the CN
    uses on the link
    """
    memory_changes: Records
    """Changes of the number of bits stored in a memory, as records of CHANGE_LOG in the order of time"""
    peak_bits: Integers
    """Largest amount of data in bits that the memory holds at any time (one entry for each memory)"""
    link_bits: Integers
    """Number of bits that moved over each link, by cause: array of shape (causes, links), with the causes in the order
    of CAUSES
    """
    words_read: Integers
    """Number of words that transfers and streams read from each memory, by cause: array of shape (causes, memories),
    with the causes in the order of CAUSES
    """
    words_written: Integers
    """Number of words that transfers and streams wrote to each memory, by cause: array of shape (causes, memories),
    with the causes in the order of CAUSES
    """
    energy_terms_pj: EnergyTerms = field(default_factory=dict)
    """Energy terms in pJ; empty until `with_energy` computes them"""

    @property
    def energy_pj(self) -> float:
        """Sum of all energy terms, in pJ."""
        return total_pj(self.energy_terms_pj)

    def memory_use(self, memory: int) -> tuple[Integers, Integers]:
        """Pair (times, bits stored from each time on) for one memory. The times are distinct and in rising order."""
        rows = self.memory_changes[self.memory_changes["memory"] == memory]
        times, last = _distinct(rows["time_cycles"])
        return times, np.cumsum(rows["change_bits"])[last]


def own_hops(schedule: Schedule, system: CoreSystem) -> tuple[Integers, Integers]:
    """Transfers that count as traffic on links, as two arrays (transfers, links). The entries at the same position are
    a transfer and a link on which it counts.

    If a link carries data once for several transfers, or twice for one transfer, the data count once:

    * A transfer can belong to the broadcast of another transfer (`broadcast_of`). On the links that both paths share,
      only the other transfer counts.
    * In each group of transfers (`groups_of`), only the first transfer that uses a link with multicast counts on this
      link.
    * A link counts once even if it is in a path twice, such as the port of a memory through which the path leads.
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
    transfer, link = transfer[own], link[own]
    if system.link_is_multicast is None:
        return transfer, link
    group = groups_of(schedule, system)[transfer]
    key = np.where(system.link_is_multicast[link], group * on_path.shape[1] + link, -1 - np.arange(len(link)))
    kept = np.sort(np.unique(key, return_index=True)[1])
    return transfer[kept], link[kept]


def groups_of(schedule: Schedule, system: CoreSystem) -> Integers:
    """Number of the group of the transfer (one entry for each transfer). A group is a transfer and all transfers that
    belong to its broadcast.
    """
    moves = schedule.transfers
    pair = moves["source_core"] * system.core_count + moves["target_core"]
    main = np.where(moves["broadcast_of"] < 0, pair, moves["broadcast_of"])
    columns = (main, moves["piece"], moves["source_memory"], moves["start_cycles"])
    found: Integers = np.unique(np.stack(columns, axis=1), axis=0, return_inverse=True)[1].reshape(-1)
    return found


def link_use(schedule: Schedule, system: CoreSystem) -> list[tuple[Integers, Integers]]:
    """Use of each link for figures and checks: pair (times, bits per cycle in use from each time on)."""
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
    """Pair (distinct times, position of the last entry with each of these times). `times` must be in rising order."""
    last = np.flatnonzero(np.append(times[1:] != times[:-1], True)) if len(times) else np.zeros(0, np.int64)
    return times[last], last
