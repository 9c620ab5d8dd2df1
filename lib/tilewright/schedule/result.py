"""A schedule: when each CN runs, what moves when over which links, what is in the memories, energy by cause."""

from dataclasses import dataclass

import numpy as np

from tilewright.schedule.problem import CoreSystem, Floats, Integers
from tilewright.schedule.state import CAUSES, MEMORY_COLUMNS, STREAM_COLUMNS, TRANSFER_COLUMNS


@dataclass(frozen=True)
class CauseEnergy:
    """Energy of the data that moved for one cause."""

    link_pj: float
    memory_pj: float


@dataclass(frozen=True, eq=False)
class Schedule:
    """What `simulate` found. Logs are empty where they were not recorded."""

    allocation: Integers
    """[cn] core"""
    start_cycles: Integers
    """[cn]"""
    end_cycles: Integers
    """[cn] first cycle after it"""
    latency_cycles: int
    """End of the last CN or transfer"""
    transfers: Integers
    """[transfer, column of TRANSFER_COLUMNS], by start; `broadcast_of` is the pair of cores (source * cores + target)
    whose transfer, started in the same cycle, carries the data over the links that both paths have, else -1"""
    streams: Integers
    """[stream, column of STREAM_COLUMNS]: what a CN takes of a link for operands that stream while it runs"""
    memory_changes: Integers
    """[change, column of MEMORY_COLUMNS], by time: bits stored"""
    peak_bits: Integers
    """[memory]"""
    link_bits: Integers
    """[cause, link] moved"""
    words_read: Integers
    """[cause, memory]"""
    words_written: Integers
    """[cause, memory]"""
    on_core_energy_pj: float
    causes: dict[str, CauseEnergy]
    """By name of CAUSES"""

    @property
    def energy_pj(self) -> float:
        """Sum of all parts."""
        return self.on_core_energy_pj + sum(cause.link_pj + cause.memory_pj for cause in self.causes.values())

    def transfer_column(self, name: str) -> Integers:
        """A column of the transfers by its name in TRANSFER_COLUMNS."""
        return self.transfers[:, TRANSFER_COLUMNS.index(name)]

    def stream_column(self, name: str) -> Integers:
        """A column of the streams by its name in STREAM_COLUMNS."""
        return self.streams[:, STREAM_COLUMNS.index(name)]

    def memory_column(self, name: str) -> Integers:
        """A column of the memory changes by its name in MEMORY_COLUMNS."""
        return self.memory_changes[:, MEMORY_COLUMNS.index(name)]

    def memory_use(self, memory: int) -> tuple[Integers, Integers]:
        """(times, bits stored from each time on) of one memory; each time once."""
        rows = self.memory_changes[self.memory_column("memory") == memory]
        times, first = _distinct(rows[:, 0])
        return times, rows[:, 2].cumsum()[first]

    def link_use(self, system: CoreSystem, link: int) -> tuple[Integers, Integers]:
        """(times, bits per cycle used from each time on) of one link; each time once."""
        return link_use(self, system)[link]


def link_use(schedule: Schedule, system: CoreSystem) -> list[tuple[Integers, Integers]]:
    """(times, bits per cycle used from each time on) of each link."""
    changes: list[list[tuple[int, int]]] = [[] for _ in system.link_bits_per_cycle]
    for _, _, _, _, source, target, start, end, rate, main in schedule.transfers.tolist():
        carried = set(system.path(*divmod(main, system.core_count)).tolist()) if main >= 0 else set()
        for link in system.path(source, target).tolist():
            if link not in carried:
                changes[link] += [(start, rate), (end, -rate)]
    for _, link, start, end, rate, _ in schedule.streams.tolist():
        changes[link] += [(start, rate), (end, -rate)]
    return [_steps(of_link) for of_link in changes]


def _steps(changes: list[tuple[int, int]]) -> tuple[Integers, Integers]:
    table = np.array(sorted(changes), np.int64).reshape(-1, 2)
    times, last = _distinct(table[:, 0])
    return times, table[:, 1].cumsum()[last]


def _distinct(times: Integers) -> tuple[Integers, Integers]:
    """(distinct times, position of the last entry of each) of times in rising order."""
    last = np.flatnonzero(np.append(times[1:] != times[:-1], True)) if len(times) else np.zeros(0, np.int64)
    return times[last], last


def cause_energies(
    system: CoreSystem, link_bits: Integers, words_read: Integers, words_written: Integers
) -> dict[str, CauseEnergy]:
    """Energy by cause from counts; link_bits [cause, link], words [cause, memory]."""
    link_pj: Floats = link_bits @ system.link_energy_pj_per_bit
    memory_pj: Floats = words_read @ system.memory_read_energy_pj + words_written @ system.memory_write_energy_pj
    return {name: CauseEnergy(float(link_pj[i]), float(memory_pj[i])) for i, name in enumerate(CAUSES)}
