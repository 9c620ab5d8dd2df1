"""Time of a mapping: double buffers, stalls of ports, and loading before and after the array computes."""

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from tilewright.hardware.core import Core, Memory

from tests.plain.relevancy import Number
from tests.plain.reuse import Link, Reuse
from tests.plain.switches import Switches
from tests.plain.time_line import union_on_time_line, union_without_first_windows
from tests.plain.zeros import PlainZeros

LinkName = tuple[str, int, str]
"""(operand, memory level, direction)"""
PortName = tuple[int, int]
"""(index of the memory, index of its port)"""
Buffered = dict[str, list[bool]]
"""[operand][architecture level] whether the level has room for the next tile."""


@dataclass(frozen=True)
class Transfer:
    """Transfers of a link on its port."""

    real: int
    """Cycles of one transfer."""
    allowed: int
    period: int
    count: int
    """Number of all transfers (Z)."""
    computing: int
    """Number of transfers while the array computes (n)."""

    @property
    def slack(self) -> int:
        """Cycles that the array waits for this link alone; negative if time is left."""
        return (self.real - self.allowed) * self.computing


@dataclass(frozen=True)
class Loading:
    """A link that loads before the start or unloads after the end."""

    real: int
    count: int
    floor: int
    """Least cycles if the tensor moves only once; equal to `real` if the tensor moves more often."""


class PortTable:
    """The port of each link, for the operands of a layer on a core."""

    def __init__(self, core: Core, link: dict[str, str], chains: dict[str, list[Memory]], zeros: PlainZeros) -> None:
        self.core, self.link, self.chains, self.zeros = core, link, chains, zeros
        by_memory_operand = {m: o for o, m in link.items()}
        self.place: dict[LinkName, PortName] = {}
        self.services: dict[PortName, list[LinkName]] = {}
        for k, memory in enumerate(core.memories):
            named = list(dict.fromkeys(pair for port in memory.ports for pair in port.allocation))
            for name in memory.operands:
                o = by_memory_operand.get(name)
                if o is None:
                    continue
                for owner, direction in named:
                    if owner == name:
                        place = (k, self._port_of(memory, name, direction))
                        entry = (o, chains[o].index(memory), direction)
                        self.place[entry] = place
                        self.services.setdefault(place, []).append(entry)
        self.services = dict(sorted(self.services.items()))

    @staticmethod
    def _port_of(memory: Memory, owner: str, direction: str) -> int:
        """The port that serves a link: the last one that claims it."""
        return max(p for p, port in enumerate(memory.ports) if (owner, direction) in port.allocation)

    def widths(self, name: LinkName) -> tuple[int, int]:
        """(narrowest, widest) bandwidth of a link in bits of uncompressed data; zeros without a port."""
        if name not in self.place:
            return 0, 0
        k, p = self.place[name]
        port = self.core.memories[k].ports[p]
        narrow, wide = port.bandwidth_min_bits, port.bandwidth_max_bits
        return self.zeros.width(name[0], k, name[2], narrow), self.zeros.width(name[0], k, name[2], wide)

    def serves_both_inputs(self, name: LinkName) -> bool:
        """Whether the port of a link also serves the memory operand of the other input."""
        if name not in self.place:
            return False
        k, p = self.place[name]
        memory = self.core.memories[k]
        mine = {
            owner
            for owner, direction in memory.ports[p].allocation
            if owner in memory.operands and self._port_of(memory, owner, direction) == p
        }
        return {"I1", "I2"} <= mine


def real_cycles(link: Link, wide: int) -> int:
    """Cycles of one transfer."""
    return math.ceil(Fraction(link.amount) * link.bits / wide)


def comes_back(name: LinkName) -> bool:
    """Whether a link brings partial sums back."""
    return name[0] == "O" and name[2] in ("tl", "fh")


class LatencyModel:
    """Latency of a layer on a core from the links of its operands."""

    def __init__(self, operands: tuple[str, ...], table: PortTable, switches: Switches, phases: int = 1) -> None:
        """An operation of the array takes `phases` cycles."""
        self.operands, self.table, self.switches, self.phases = (operands, table, switches, phases)
        self.core, self.chains = table.core, table.chains
        self.every_transfer = "every_transfer_takes_port_time" in switches
        self.memo: dict[object, tuple[int, int]] = {}

    def on(self, switch: str) -> bool:
        """Whether a switch is on."""
        return switch in self.switches

    # double buffers -------------------------------------------------------------------------------------------------

    def buffer_choices(self, effective: dict[tuple[str, int], int], held: dict[int, list[str]]) -> Iterator[Buffered]:
        """The choices of double buffers of which the best is taken; `effective` has the bits of (operand, memory
        level).
        """
        if not self.on("best_double_buffers"):
            yield self._in_turn(effective, held)
            return
        sets = []
        for k, memory in enumerate(self.core.memories):
            masks = self._maximal_sets(memory, {o: effective[o, self.chains[o].index(memory)] for o in held[k]})
            sets.append(masks)
        for choice in itertools.product(*sets):
            buffered = {o: [False] * (len(self.chains[o]) + 1) for o in self.operands}
            for memory, chosen in zip(self.core.memories, choice, strict=True):
                for o in chosen:
                    buffered[o][self.chains[o].index(memory) + 1] = True
            yield buffered

    def _maximal_sets(self, memory: Memory, effective: dict[str, int]) -> list[frozenset[str]]:
        """Largest sets of operands whose second tiles also fit, by descending bit mask."""
        operands = [o for o in self.operands if o in effective]
        used = sum(effective.values())
        fitting = [
            frozenset(chosen)
            for size in range(len(operands) + 1)
            for chosen in itertools.combinations(operands, size)
            if not chosen or used + sum(effective[o] for o in chosen) <= memory.size_bits
        ]
        maximal = [one for one in fitting if not any(one < other for other in fitting)]
        return sorted(maximal, key=lambda one: -sum(1 << self.operands.index(o) for o in one))

    def _in_turn(self, effective: dict[tuple[str, int], int], held: dict[int, list[str]]) -> Buffered:
        """The reference's double buffers: one operand after the other is buffered, if there is still room for it."""
        own = {(o, m): bits / self.chains[o][m].size_bits for (o, m), bits in effective.items()}
        group = {
            (o, m): [(p, self.chains[p].index(memory)) for p in held[self.core.memories.index(memory)]]
            for o in self.operands
            for m, memory in enumerate(self.chains[o])
        }
        shared = {place: sum(own[other] for other in others) for place, others in group.items()}
        result = {o: [False] for o in self.operands}
        for o in self.operands:
            for m in range(len(self.chains[o])):
                enough = shared[o, m] <= 0.5
                if not enough and own[o, m] <= 1 - shared[o, m]:
                    enough = True
                    for other in group[o, m]:
                        shared[other] += own[o, m]
                result[o].append(enough)
        return result

    # stalls ---------------------------------------------------------------------------------------------------------

    def transfers(self, links: dict[LinkName, Link], buffered: Buffered) -> dict[PortName, dict[LinkName, Transfer]]:
        """The transfers on each port."""
        result: dict[PortName, dict[LinkName, Transfer]] = {}
        for place, served in self.table.services.items():
            result[place] = {}
            for name in served:
                o, m, direction = name
                link = links[name]
                if link.count == 0:
                    continue
                real = real_cycles(link, self.table.widths(name)[1])
                doubled = buffered[o][m if direction in ("tl", "fl") else m + 1]
                back = self.every_transfer and comes_back(name)
                result[place][name] = Transfer(
                    real,
                    link.period if doubled else link.window,
                    link.period,
                    link.count,
                    link.count if back else link.count - 1,
                )
        return result

    def port_stall(self, transfers: tuple[Transfer, ...], total: int) -> int:
        """Cycles that the array waits for a port; negative if the port has time left."""
        if len(transfers) < 2:
            return sum(transfer.slack for transfer in transfers)
        windows = sum(transfer.allowed * transfer.computing for transfer in transfers)
        if self.on("consistent_window_union"):
            union = union_without_first_windows([(x.allowed, x.period) for x in transfers], total)
        else:
            union = union_on_time_line([(x.allowed, x.period, x.count) for x in transfers])
        slack = [transfer.slack for transfer in transfers]
        return sum(s for s in slack if s > 0) + max(0, sum(s for s in slack if s <= 0) + windows - union)

    # loading --------------------------------------------------------------------------------------------------------

    def loadings(self, links: dict[LinkName, Link], reuse: dict[str, Reuse]) -> dict[PortName, dict[LinkName, Loading]]:
        """Links of each port that load once before the start or unload once after the end."""
        result: dict[PortName, dict[LinkName, Loading]] = {}
        for place, served in self.table.services.items():
            result[place] = {}
            for name in served:
                link = links[name]
                if link.count == 0 or comes_back(name):
                    continue
                wide = self.table.widths(name)[1]
                real = real_cycles(link, wide)
                floor = real if link.count > 1 else self._floor(name, link, reuse[name[0]], wide)
                result[place][name] = Loading(real, link.count, min(real, floor))
        return result

    def _floor(self, name: LinkName, link: Link, reuse: Reuse, wide: int) -> int:
        """Cycles for the data that the array needs at its start or has at its end, without other transfers."""
        if self.every_transfer and name[1] == 0 and name[2] in ("tl", "fl"):
            return real_cycles(link, wide)
        at_lanes = "wide_until_added" in self.switches and name == ("O", 0, "th")
        bits = reuse.elements[1] * (link.bits if at_lanes else reuse.precision[1])
        if self.on("per_level_loading_floor"):
            bits = min(bits * math.prod(reuse.boost[1 : name[1] + 1]), math.ceil(link.amount * link.bits))
        return math.ceil(Fraction(bits) / wide)

    def reduced(
        self, loadings: dict[PortName, dict[LinkName, Loading]], links: dict[LinkName, Link], computing: int
    ) -> dict[LinkName, Number]:
        """Loading times of the reference: each port hides the part for which it has time while the array computes."""
        load: dict[LinkName, Number] = {}
        for place, entries in loadings.items():
            if not entries:
                continue
            wide = self.table.widths(self.table.services[place][0])[1]
            exact = self.on("per_level_loading_floor")
            required: Number = 0
            for name, entry in entries.items():
                load[name] = entry.real
                if entry.count > 1:
                    moved, own = links[name].bandwidth, self.table.widths(name)[1]
                    # Bits that are counted otherwise (`sum_bits`) are not cut to whole bits before they are rounded up.
                    whole = moved if links[name].is_widened else int(moved)
                    required += (moved / self.phases if exact else math.ceil(whole / self.phases)) * (wide / own)
            spare = max(0, ((wide - required) / wide) * computing)
            once = [(name, entry) for name, entry in entries.items() if entry.count == 1]
            for name, entry in sorted(once, key=lambda pair: -pair[1].real):
                reduction = min(entry.real - entry.floor, spare)
                load[name] = entry.real - reduction
                spare -= reduction
        return load

    def onloading(self, load: dict[LinkName, Number]) -> Number:
        """Cycles of loading before the start."""
        parts = []
        for o in self.operands[1:]:
            shared: Number = 0
            half: Number = 0
            individual: Number = 0
            for m in range(len(self.chains[o]) - 1):
                cycles = max(load.get((o, m, "fh"), 0), load.get((o, m + 1, "tl"), 0))
                both = [self.table.serves_both_inputs((o, m, "fh")), self.table.serves_both_inputs((o, m + 1, "tl"))]
                if all(both) or (any(both) and self.on("serial_half_shared_loading")):
                    shared += cycles
                elif any(both):
                    half = cycles
                else:
                    individual += cycles
            if self.every_transfer:
                first = load.get((o, 0, "tl"), 0)
                if self.table.serves_both_inputs((o, 0, "tl")):
                    shared += first
                else:
                    individual += first
            parts.append((shared, half, individual))
        if len(parts) == 1:
            shared, _, individual = parts[0]
            return shared + individual if self.on("serial_half_shared_loading") else individual
        (sx, hx, ix), (sy, hy, iy) = parts
        return min(sx + max(sy + hy + iy, hx + ix), sy + max(sx + hx + ix, hy + iy))

    def offloading(self, load: dict[LinkName, Number]) -> Number:
        """Cycles of unloading after the end."""
        levels = len(self.chains["O"])
        pairs = sum(max(load.get(("O", m, "th"), 0), load.get(("O", m + 1, "fl"), 0)) for m in range(levels - 1))
        return pairs + (load.get(("O", 0, "fl"), 0) if self.every_transfer else 0)

    # latency --------------------------------------------------------------------------------------------------------

    def spans(
        self, links: dict[LinkName, Link], reuse: dict[str, Reuse], choices: Iterator[Buffered], total: int
    ) -> tuple[int, Number, Number, dict[PortName, dict[LinkName, Transfer]], dict[PortName, int]]:
        """(temporal stall, on-loading, off-loading, transfers of each port, stall of each port)."""
        best = None
        for buffered in choices:
            transfers = self.transfers(links, buffered)
            stalls = {place: self.port_stall(tuple(served.values()), total) for place, served in transfers.items()}
            stall = max(0, *stalls.values()) if stalls else 0
            if best is None or stall < best[0]:
                best = (stall, transfers, stalls)
        assert best is not None
        stall, transfers, stalls = best
        loadings = self.loadings(links, reuse)
        if not self.every_transfer:
            load = self.reduced(loadings, links, total + stall)
            return stall, self.onloading(load), self.offloading(load), transfers, stalls
        on, off = self._overlapped(loadings, transfers, total + stall)
        return stall, on, off, transfers, stalls

    def _overlapped(
        self,
        loadings: dict[PortName, dict[LinkName, Loading]],
        transfers: dict[PortName, dict[LinkName, Transfer]],
        computing: int,
    ) -> tuple[Number, Number]:
        """(on-loading, off-loading) that remain visible beside computing and busy ports."""
        floors: dict[LinkName, Number] = {n: x.floor for port in loadings.values() for n, x in port.items()}
        full: dict[LinkName, Number] = {n: x.real for port in loadings.values() for n, x in port.items()}

        def both(load: dict[LinkName, Number]) -> Number:
            return self.onloading(load) + self.offloading(load)

        whole = max(computing + both(floors), both(full))
        for place, served in transfers.items():
            busy = sum(transfer.real * transfer.computing for transfer in served.values())
            whole = max(whole, busy + both(floors | {n: x.real for n, x in loadings[place].items()}))
        visible = whole - computing
        least = self.onloading(floors)
        on = least + min(visible - both(floors), self.onloading(full) - least)
        return on, visible - on
