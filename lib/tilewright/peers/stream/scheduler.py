"""Scheduler of the model `stream-2023`: the rules of Stream in the version that was validated against chips in 2023.

The model is only for comparison with published numbers, because it is not causal. A decision can take memory space and
links at an earlier time than decisions that were made before it. A tensor is ready as soon as it is registered in a
memory, even if it arrives there later. docs/multi-core-model/scheduling.md lists the rules.

The scheduler is plain Python and makes one pass over the CNs in the order of decisions. A transfer moves the whole
output of a CN, over the path with the fewest links. A link carries one transfer at a time. Links and memories are
booked in the order of decisions.
"""

import heapq
from bisect import bisect_left, bisect_right, insort
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import product

import numpy as np

from tilewright.base.errors import InputError, MappingError, Problem
from tilewright.multicore.scheduling.energy_ledger import CAUSES
from tilewright.multicore.scheduling.options import ScheduleOptions
from tilewright.multicore.scheduling.problem import CoreSystem, Integers, SchedulingProblem
from tilewright.multicore.scheduling.result import with_energy
from tilewright.multicore.scheduling.schedule import Schedule
from tilewright.multicore.scheduling.state_record import (
    CHANGE_LOG,
    CORE_TO_CORE,
    EVICTION,
    NONE,
    OFF_CHIP_FETCH,
    OFF_CHIP_STREAM,
    SINK_OUTPUT,
    STREAM_LOG,
    TRANSFER_LOG,
)


class LinkTimes:
    """Busy times of links, booked in the order of decisions.

    As in Stream, a transfer starts on a link only after all transfers that were decided earlier have left the link; it
    cannot use earlier gaps. With `fills_gaps`, a transfer can use such gaps.
    """

    def __init__(self, fills_gaps: bool = False) -> None:
        self.fills_gaps = fills_gaps
        self.last_end = 0
        self._free: dict[int, int] = defaultdict(int)
        self._taken: dict[int, list[tuple[int, int]]] = defaultdict(list)

    def earliest(self, cycles: Mapping[int, int], time: int) -> int:
        """First cycle, at `time` or later, in which a transfer can start. `cycles` has, by link, the number of cycles
        for which the link must be free.
        """
        if not self.fills_gaps:
            return max([time, *(self._free[link] for link in cycles)])
        while True:
            start = max([time, *(self._gap(link, length, time) for link, length in cycles.items())])
            if start == time:
                return start
            time = start

    def take(self, link: int, start: int, end: int) -> None:
        """Book a link from the time `start` to the time `end`, so that no other transfer uses it."""
        self._free[link] = end
        self.last_end = max(self.last_end, end)
        if self.fills_gaps and end > start:
            insort(self._taken[link], (start, end))

    def _gap(self, link: int, length: int, time: int) -> int:
        """First cycle, at `time` or later, from which a link is free for `length` cycles."""
        taken = self._taken[link]
        for start, end in taken[max(bisect_right(taken, (time, time)) - 1, 0) :]:
            if time + length <= start:
                break
            time = max(time, end)
        return time


class Usage:
    """Used bits of a memory over time: `used[i]` bits are used from `times[i]` on, until the next time."""

    def __init__(self, capacity_bits: int) -> None:
        self.capacity_bits = capacity_bits
        self.times = [0]
        self.used = [0]

    def add(self, time: int, bits: int) -> None:
        """Change the number of used bits by `bits`, from `time` on."""
        place = bisect_left(self.times, time)
        if place == len(self.times) or self.times[place] != time:
            self.times.insert(place, time)
            self.used.insert(place, self.used[place - 1])
        for i in range(place, len(self.used)):
            self.used[i] += bits

    def free_at(self, time: int) -> int:
        """Number of bits of the memory that are free in the cycle `time`."""
        return self.capacity_bits - self.used[bisect_right(self.times, time) - 1]

    def first_fit(self, time: int, bits: int) -> int | None:
        """First cycle, at `time` or later, from which `bits` always fit; None if there is no such cycle."""
        first = bisect_right(self.times, time) - 1
        for i in range(len(self.used) - 1, first - 1, -1):
            if self.used[i] + bits > self.capacity_bits:
                return self.times[i + 1] if i + 1 < len(self.times) else None
        return time


def fewest_links(system: CoreSystem) -> CoreSystem:
    """Copy of a system in which every path has the fewest links.

    A path goes through the off-chip core if it then has fewer links, or if there is no direct path.
    """
    off, cores = system.off_chip_core, system.core_count
    found: list[list[int] | None] = []
    for source, target in product(range(cores), repeat=2):
        ways = [[(source, target)]]
        if off not in (source, target) and source != target:
            ways.append([(source, off), (off, target)])
        links = [
            [link for pair in way for link in system.path(*pair).tolist()]
            for way in ways
            if all(system.path_exists[one * cores + other] for one, other in way)
        ]
        found.append(min(links, key=len, default=None))
    return replace(
        system,
        path_exists=np.array([path is not None for path in found], np.bool_),
        path_start=np.cumsum([0, *(len(path or ()) for path in found)]),
        path_link=np.array([link for path in found for link in path or ()], np.int64),
    )


Tensor = tuple[str, int]
"""Tensor as ("output", CN) or ("constant", piece)."""
ARRIVAL, GAPS, EARLY = "arrival", "gaps", "early"
REPAIRS = (ARRIVAL, GAPS, EARLY)
"""Rules that can replace single rules of Stream, to measure the effect of each rule. ARRIVAL: a tensor is ready when it
has arrived. GAPS: transfers use gaps on links. EARLY: transfers start as early as data, links and memory allow.
"""


@dataclass
class _Stored:
    """Two times of a tensor in a memory: the time from which it takes space, and the time from which it can be read."""

    reserved: int
    available: int


@dataclass
class _Run:
    """State of one run of the scheduler: times, transfers, streams, counts, and content of memories."""

    problem: SchedulingProblem
    allocation: Integers
    options: ScheduleOptions
    core_idle: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    stored: dict[int, dict[Tensor, _Stored]] = field(default_factory=lambda: defaultdict(dict))
    uses: dict[Tensor, dict[int, int]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(int)))
    transfers: list[tuple[int, ...]] = field(default_factory=list)
    streams: list[tuple[int, ...]] = field(default_factory=list)

    def __post_init__(self) -> None:
        graph, system = self.problem.graph, fewest_links(self.problem.system)
        self.system, self.off_core, self.off_memory = system, system.off_chip_core, system.off_chip_memory
        self.links = LinkTimes(GAPS in self.options.model_repairs)
        self.usage = [Usage(int(bits)) for bits in system.memory_capacity_bits]
        self.users = [
            np.flatnonzero(np.any(system.core_memory == memory, axis=1)).tolist() for memory in range(len(self.usage))
        ]
        self.start = np.full(graph.node_count, -1, np.int64)
        self.end = np.full(graph.node_count, -1, np.int64)
        shape = len(CAUSES), len(system.memory_capacity_bits)
        self.link_bits = np.zeros((len(CAUSES), len(system.link_bits_per_cycle)), np.int64)
        self.words_read, self.words_written = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
        self.bits: dict[Tensor, int] = defaultdict(int)
        self.piece_of: dict[Tensor, int] = {}
        for piece, (bits, producer) in enumerate(
            zip(graph.piece_bits.tolist(), graph.piece_producer.tolist(), strict=True)
        ):
            tensor = ("constant", piece) if producer < 0 else ("output", producer)
            self.bits[tensor] += bits
            self.piece_of.setdefault(tensor, piece)
            if producer < 0:
                self.keep(tensor, self.off_memory, _Stored(0, 0))
        self.sinks = set(graph.piece_producer[graph.piece_is_output].tolist())
        self.needs = [self.needs_of(cn) for cn in range(graph.node_count)]
        for needs in self.needs:
            for tensor, memory in needs:
                self.uses[tensor][memory] += 1

    def too_large(self, cn: int) -> list[int]:
        """Indices of the operands that a CN streams from or to the off-chip memory while it runs."""
        bits = self.problem.costs.stream_bits[self.problem.graph.cost_row[cn], self.allocation[cn]]
        return np.flatnonzero(bits).tolist()

    def needs_of(self, cn: int) -> list[tuple[Tensor, int]]:
        """Pairs (tensor, memory), one for each tensor that a CN needs, smallest tensor first. Operands that stream are
        left out.

        The tensors are constants and outputs of other layers.
        """
        graph, (pieces, operands) = self.problem.graph, self.problem.fetch_order
        too_large = self.too_large(cn)
        found: dict[tuple[Tensor, int], None] = {}
        for need in range(graph.need_start[cn], graph.need_start[cn + 1]):
            piece, operand = int(pieces[need]), int(operands[need])
            producer = int(graph.piece_producer[piece])
            if operand in too_large or (producer >= 0 and graph.layer[producer] == graph.layer[cn]):
                continue
            memory = int(self.system.core_memory[self.allocation[cn], operand])
            found[("constant", piece) if producer < 0 else ("output", producer), memory] = None
        return sorted(found, key=lambda need: (self.bits[need[0]], need))

    def keep(self, tensor: Tensor, memory: int, stored: _Stored) -> None:
        """Register a tensor in a memory."""
        self.stored[memory][tensor] = stored
        self.usage[memory].add(stored.reserved, self.bits[tensor])

    def remove(self, tensor: Tensor, memory: int, time: int) -> None:
        """Remove a tensor from a memory. Its space is free from `time` on."""
        del self.stored[memory][tensor]
        self.usage[memory].add(time, -self.bits[tensor])

    def move(self, tensor: Tensor, source: int, core: int, memory: int, start: int, cause: int) -> int:
        """Move a tensor to the memory `memory` of the core `core`. Each link of the path is booked from the time
        `start`, for as long as this link needs. Returns the time from which the last link of the path is free again.

        The port widths of the source memory are used to count both the words that are read and the words that are
        written.
        """
        sender, bits = self.sender(source, core), self.bits[tensor]
        end = start
        for link in self.path(sender, core) or ():
            end = start - (-bits // int(self.system.link_bits_per_cycle[link]))
            self.links.take(link, start, end)
            self.link_bits[cause, link] += bits
        self.words_read[cause, source] += -(-bits // int(self.system.memory_read_bits[source]))
        self.words_written[cause, memory] += -(-bits // int(self.system.memory_write_bits[source]))
        rate = -(-bits // max(end - start, 1))
        self.transfers.append((self.piece_of[tensor], cause, source, memory, sender, core, start, end, rate, NONE))
        return end

    def transfer(self, tensor: Tensor, core: int, memory: int, time: int, keep: set[Tensor], cause: int) -> int:
        """Transfer a tensor to the memory `memory` of the core `core`. Returns the cycle in which the transfer ends.

        If the memory already holds the tensor, nothing moves. The result is then 0 or, with the repair ARRIVAL
        (REPAIRS), the cycle in which the tensor has arrived.

        The earliest start is `time` minus the duration of the transfer. With the repair EARLY, the transfer starts as
        early as possible. `keep` has the tensors that must not be evicted to make space. `cause` is a position in
        CAUSES, or NONE. NONE stands for OFF_CHIP_FETCH if the tensor comes from the off-chip memory, and otherwise for
        CORE_TO_CORE.
        """
        if tensor in self.stored[memory]:
            return self.stored[memory][tensor].available if ARRIVAL in self.options.model_repairs else 0
        holders = {m: stored[tensor] for m, stored in self.stored.items() if tensor in stored}
        source = min(holders, key=lambda m: self.users[m][0])
        links, bits = self.path(self.sender(source, core), core) or (), self.bits[tensor]
        cycles = {link: -(-bits // int(self.system.link_bits_per_cycle[link])) for link in links}
        wanted = holders[source].available
        if EARLY not in self.options.model_repairs:
            wanted = max(wanted, time - max(cycles.values(), default=0))
        wanted = self.links.earliest(cycles, wanted)
        start = self.usage[memory].first_fit(wanted, bits)
        if start is None:
            start = max(wanted, self.make_space(memory, bits, time, keep))
        start = self.links.earliest(cycles, start)
        if cause == NONE:
            cause = OFF_CHIP_FETCH if source == self.off_memory else CORE_TO_CORE
        end = self.move(tensor, source, core, memory, start, cause)
        self.keep(tensor, memory, _Stored(start, end))
        if source != self.off_memory != memory and self.uses[tensor][source] == 0:
            self.remove(tensor, source, end)
        return end

    def path(self, source: int, target: int) -> list[int] | None:
        """Links of the path from one core to another; None if there is no path."""
        if not self.system.path_exists[source * self.system.core_count + target]:
            return None
        found: list[int] = self.system.path(source, target).tolist()
        return found

    def sender(self, memory: int, core: int) -> int:
        """First core that uses a memory and has a path to `core`. Raises MappingError if there is no such core."""
        for user in self.users[memory]:
            if user == core or self.path(user, core) is not None:
                return user
        names = " or ".join(map(str, self.users[memory]))
        raise MappingError(f"there is no path from core {names} to core {core}")

    def make_space(self, memory: int, bits: int, time: int, keep: set[Tensor]) -> int:
        """Evict tensors until `bits` fit at `time`. The tensor with the smallest product (remaining uses in this
        memory) * (bits) is evicted first. Tensors in `keep` stay. Returns the time at which the last write-back ends;
        `time` if there is no write-back.

        Raises MappingError if too few tensors can be evicted. No tensor is evicted from the off-chip memory.
        """
        lacking = bits - self.usage[memory].free_at(time)
        if lacking <= 0:
            return time
        if memory == self.off_memory:
            raise MappingError(f"stream-2023: the off-chip memory has no room for {bits} bits in cycle {time}")
        candidates = [t for t, stored in self.stored[memory].items() if stored.reserved <= time and t not in keep]
        candidates.sort(key=lambda tensor: (self.uses[tensor][memory] * self.bits[tensor], tensor))
        end = time
        for tensor in candidates:
            if lacking <= 0:
                break
            lacking -= self.bits[tensor]
            end = max(end, self.evict(tensor, memory, time))
        if lacking > 0:
            raise MappingError(f"stream-2023: memory {memory} cannot free {bits} bits in cycle {time}")
        return end

    def evict(self, tensor: Tensor, memory: int, time: int) -> int:
        """Evict a tensor, and write it back if the off-chip memory does not have it. Returns the time at which the
        write-back ends; `time` if there is no write-back.

        The space of the tensor is free at `time`, before the write-back ends.
        """
        end = time
        if tensor not in self.stored[self.off_memory]:
            end = self.transfer(tensor, self.off_core, self.off_memory, time, set(), EVICTION)
        self.remove(tensor, memory, time)
        return end

    def block(self, cn: int, time: int, runtime: int) -> int:
        """Book the links over which operands of a CN stream, for the `runtime` cycles of the CN. Returns the cycle in
        which the CN starts: the first cycle, at `time` or later, from which all these links are free for `runtime`
        cycles.
        """
        core = int(self.allocation[cn])
        bits = self.problem.costs.stream_bits[self.problem.graph.cost_row[cn], core].tolist()
        loads: dict[int, int] = defaultdict(int)
        for operand in self.too_large(cn):
            ends = (core, self.off_core) if operand == 0 else (self.off_core, core)
            for link in self.system.path(*ends).tolist():
                loads[link] += bits[operand]
            width = (self.system.memory_write_bits if operand == 0 else self.system.memory_read_bits)[self.off_memory]
            words = self.words_written if operand == 0 else self.words_read
            words[OFF_CHIP_STREAM, self.off_memory] += -(-bits[operand] // int(width))
        start = self.links.earliest(dict.fromkeys(loads, runtime), time)
        for link, load in loads.items():
            self.links.take(link, start, start + runtime)
            self.link_bits[OFF_CHIP_STREAM, link] += load
            self.streams.append((cn, link, start, start + runtime, -(-load // runtime), load))
        return start

    def run_node(self, cn: int, ready: int) -> None:
        """Schedule one CN. Later steps do not change the times of this CN."""
        core = int(self.allocation[cn])
        runtime = int(self.problem.costs.runtime_cycles[self.problem.graph.cost_row[cn], core])
        if core == self.off_core or runtime < 1:
            raise MappingError(f"CN {cn} of layer {self.problem.graph.layer[cn]} cannot run on core {core}")
        needs, too_large = self.needs[cn], self.too_large(cn)
        keep = {tensor for tensor, _ in needs}
        time = max(self.core_idle[core], ready)
        for memory in sorted({int(self.system.core_memory[core, operand]) for operand in too_large}):
            loose = [t for t, stored in self.stored[memory].items() if stored.reserved <= time and t not in keep]
            for tensor in loose:
                time = max(time, self.evict(tensor, memory, time))
        for tensor, memory in needs:
            time = max(time, self.transfer(tensor, core, memory, time, keep, NONE))
        if too_large:
            time = self.block(cn, time, runtime)
        output, makes = ("output", cn), self.bits.get(("output", cn), 0) > 0
        memory = self.off_memory if 0 in too_large else int(self.system.core_memory[core, 0])
        if makes and memory != self.off_memory:
            time = max(time, self.make_space(memory, self.bits[output], time, keep))
        self.start[cn], self.end[cn] = time, time + runtime
        self.core_idle[core] = time + runtime
        if makes:
            self.keep(output, memory, _Stored(time, time + runtime))
        self.release(needs, time + runtime)
        if makes and cn in self.sinks and memory != self.off_memory:
            self.transfer(output, self.off_core, self.off_memory, time + runtime, set(), SINK_OUTPUT)
            if sum(self.uses[output].values()) == 0:
                self.remove(output, memory, time + runtime)

    def release(self, needs: list[tuple[Tensor, int]], end: int) -> None:
        """Reduce the number of uses by one for each pair (tensor, memory) in `needs`. A tensor without further uses in
        any memory is removed at time `end` from all memories, including the off-chip memory.
        """
        for tensor, memory in needs:
            self.uses[tensor][memory] -= 1
            if sum(self.uses[tensor].values()) == 0:
                for place in [m for m, stored in self.stored.items() if tensor in stored]:
                    self.remove(tensor, place, end)


def simulate_stream_2023(problem: SchedulingProblem, allocation: Integers, options: ScheduleOptions) -> Schedule:
    """Schedule of `problem` for an allocation, by the rules of the model `stream-2023`.

    Raises MappingError if a CN cannot run, or if a memory has no space for a tensor. Raises InputError if CNs wait for
    each other in a cycle, or if `options` names a repair of the model that is not in REPAIRS.
    """
    unknown = [repair for repair in options.model_repairs if repair not in REPAIRS]
    if unknown:
        allowed = ", ".join(REPAIRS)
        raise InputError([Problem("unknown", path="model_repairs", value=name, allowed=allowed) for name in unknown])
    run = _Run(problem, allocation, options)
    for cn in range(problem.graph.node_count):
        for tensor, memory in run.needs[cn]:
            if tensor[0] == "constant" and _is_prefetched(problem, cn, tensor[1], options):
                run.transfer(tensor, int(allocation[cn]), memory, 0, set(), NONE)
    first, successor = problem.edges
    waiting, ready = problem.predecessor_count.copy(), np.zeros(problem.graph.node_count, np.int64)
    layer, deep = problem.graph.layer, options.scheduler_candidate_selection == "memory"

    def key(cn: int) -> tuple[int, int, int]:
        return (-int(layer[cn]), -cn, cn) if deep else (int(ready[cn]), cn, cn)

    candidates = [key(cn) for cn in np.flatnonzero(waiting == 0).tolist()]
    heapq.heapify(candidates)
    while candidates:
        cn = heapq.heappop(candidates)[2]
        run.run_node(cn, int(ready[cn]))
        for after in successor[first[cn] : first[cn + 1]].tolist():
            ready[after] = max(ready[after], run.end[cn])
            waiting[after] -= 1
            if waiting[after] == 0:
                heapq.heappush(candidates, key(after))
    if bool(np.any(run.end < 0)):
        raise InputError([Problem("computation nodes (CNs) wait for each other in a cycle", path="graph")])
    return _schedule(problem, allocation, run)


def _is_prefetched(problem: SchedulingProblem, cn: int, piece: int, options: ScheduleOptions) -> bool:
    pieces, operands = problem.fetch_order
    span = slice(problem.graph.need_start[cn], problem.graph.need_start[cn + 1])
    return bool(np.any((pieces[span] == piece) & np.isin(operands[span], options.operands_to_prefetch)))


def _schedule(problem: SchedulingProblem, allocation: Integers, run: _Run) -> Schedule:
    changes = [
        (time, memory, used - before)
        for memory, usage in enumerate(run.usage)
        for time, used, before in zip(usage.times, usage.used, [0, *usage.used], strict=False)
        if used != before
    ]
    schedule = Schedule(
        allocation=allocation,
        start_cycles=run.start,
        end_cycles=run.end,
        latency_cycles=max(int(run.end.max(initial=0)), run.links.last_end),
        transfers=np.array(run.transfers, TRANSFER_LOG),
        streams=np.array(run.streams, STREAM_LOG),
        memory_changes=np.array(sorted(changes), CHANGE_LOG),
        peak_bits=np.array([max(usage.used) for usage in run.usage], np.int64),
        link_bits=run.link_bits,
        words_read=run.words_read,
        words_written=run.words_written,
    )
    return with_energy(problem, schedule)
