"""Cycles of each core of a schedule by cause: the core computes, waits for something, or has nothing to run.

The cycles of a core add up to the latency. The cycles in which a computation node (CN) runs are divided as in the cost
table. The cycles before a CN are assigned to causes of waiting (docs/bottlenecks/explain.md#explain-a-run):

1. After all data of the CN are present, the CN waits for one of three things (`start_causes`): bandwidth of a link for
   its streams, room in a memory, or its turn.
2. Before all data are present, the input that becomes ready last decides the cause. If several inputs become ready last
   at the same time, an input from a CN takes precedence over an input from a transfer.

If the last input comes from a CN, the cause is "data not made yet" until that CN ends. If the last input comes from a
transfer, the cause is "data on the way" while the transfer lasts. Between its request and its start, the transfer waits
for bandwidth of a link, for room in a memory, or for its turn.

A transfer is requested when three conditions hold: its data are made, all predecessors of the CN have started, and the
preceding fetch of the same CN has begun (docs/multi-core-model/scheduling.md). The condition that is met last decides
the cause of the cycles before the request. A prefetch is requested when its data are made.

A transfer can begin because its data have just arrived at its source. The same rules then apply to the transfer that
brought the data to this source.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tilewright.multicore.scheduling.core_costs import CoreCostRow
from tilewright.multicore.scheduling.problem import OUTPUT_OPERAND
from tilewright.results.multi.bars import CATEGORIES, ScheduleView
from tilewright.results.multi.start_causes import (
    DATA,
    LINK,
    MEMORY,
    NOTHING,
    ScheduleLogs,
    StartCauses,
    links_too_full,
    start_causes,
)

ARRAY, IDLE_UNITS, STALLS, ONLOADING, CALLS, OFFLOADING, COMPUTING, STREAMS = (
    "array at work",
    "idle units",
    "stalls of the array",
    "on-loading",
    "calls, commands, requests",
    "off-loading",
    "computing",
    "slower by streams",
)
"""Causes of cycles in which a core runs a CN. Without the cost table of the core, the only such cause is COMPUTING."""
NOT_MADE, MOVING, FULL_LINK, NO_ROOM, TURN = (
    "data not made yet",
    "data on the way",
    "no width on a link",
    "no room in a memory",
    "its turn",
)
"""Causes of cycles in which a core waits."""
IDLE = "nothing to run"
"""Cause of the cycles of a core after its last CN, or of all cycles of a core without CNs."""
CAUSES_OF_CYCLES = (
    *(ARRAY, IDLE_UNITS, STALLS, ONLOADING, CALLS, OFFLOADING, COMPUTING, STREAMS),
    *(NOT_MADE, MOVING, FULL_LINK, NO_ROOM, TURN, IDLE),
)
"""Causes of cycles in the order in which they are shown."""
BUSY_CAUSES = CAUSES_OF_CYCLES[: CAUSES_OF_CYCLES.index(NOT_MADE)]
"""Causes of cycles in which the core runs a CN."""
WAITS = tuple(cause for cause in CAUSES_OF_CYCLES if cause not in (*BUSY_CAUSES, IDLE))
"""Causes of cycles in which the core waits."""

if TYPE_CHECKING:
    from tilewright.multicore.scheduling.core_costs import CoreCosts


class CoreCycles(NamedTuple):
    """Cycles of a core by layer and cause."""

    core: str
    layer: str
    """Layer of the CN that runs or waits; '' if there is no CN."""
    cause: str
    """Cause: one of CAUSES_OF_CYCLES."""
    what: str
    """Detail of the cause. NOT_MADE: the layer whose data are not made yet. MOVING: the category of the data on the
    way, one of CATEGORIES. FULL_LINK: the link. NO_ROOM: the memory. All other causes: ''.
    """
    cycles: int


class _Stretch(NamedTuple):
    """Interval in which a CN waits for a single cause."""

    start_cycles: int
    cause: str
    what: str


def core_cycles(view: ScheduleView, costs: "CoreCosts | None") -> tuple[CoreCycles, ...]:
    """Cycles of each core except the off-chip core, sorted by core, layer and cause. Rows with 0 cycles are left out.

    `costs` are the cost tables by core file. If they are missing, the cycles in which CNs run are not divided by cause.
    The result is () if the schedule model is not causal, because causes of waiting are then not defined.
    """
    causes = start_causes(view)
    if causes is None:
        return ()
    waits = _Waits(view, causes)
    sums: dict[tuple[int, int, str, str], int] = {}
    for core in range(view.system.core_count):
        if core == view.system.off_chip_core:
            continue
        for layer, cause, what, cycles in _of_core(view, waits, costs, core):
            key = (core, layer, cause, what)
            sums[key] = sums.get(key, 0) + cycles
    cores, layers = view.names.core_names, view.names.layer_names
    order = sorted(sums, key=lambda key: (key[0], key[1], CAUSES_OF_CYCLES.index(key[2]), key[3]))
    return tuple(
        CoreCycles(cores[core], layers[layer] if layer >= 0 else "", cause, what, sums[core, layer, cause, what])
        for core, layer, cause, what in order
        if sums[core, layer, cause, what]
    )


def _of_core(
    view: ScheduleView, waits: "_Waits", costs: "CoreCosts | None", core: int
) -> Iterator[tuple[int, str, str, int]]:
    """Tuples (layer, cause, detail, cycles) of a core, in order of time from cycle 0 to the end of the schedule. The
    layer is an index; -1 if there is no layer.
    """
    schedule = view.schedule
    own = np.flatnonzero(schedule.allocation == core)
    own = own[np.argsort(schedule.start_cycles[own], kind="stable")]
    runtimes = view.artifact.problem.costs.runtime_cycles[view.artifact.graph.cost_row[own], core].tolist()
    rows = None if costs is None else costs[view.names.core_files[core]]
    free = 0
    for cn, runtime in zip(own.tolist(), runtimes, strict=True):
        start, end, layer = int(schedule.start_cycles[cn]), int(schedule.end_cycles[cn]), int(view.node_layer[cn])
        until = start
        for stretch in waits.before(cn, free):
            begin = max(stretch.start_cycles, free)
            yield layer, stretch.cause, stretch.what, until - begin
            until = begin
        row = None if rows is None else rows[int(view.artifact.graph.cost_row[cn])]
        for cause, cycles in _parts(row, runtime):
            yield layer, cause, "", cycles
        yield layer, STREAMS, "", end - start - runtime
        free = end
    yield -1, IDLE, "", schedule.latency_cycles - free


def _parts(row: CoreCostRow | None, runtime: int) -> Iterator[tuple[str, int]]:
    """Pairs (cause, cycles) that divide the runtime of a CN into the same parts as in the cost table. If the runtime is
    shorter than the sum of these parts, the last parts are shortened, down to 0. If the table has no parts, the cause
    of the whole runtime is COMPUTING.
    """
    if row is None or row.spatial_stall_cycles is None:
        yield COMPUTING, runtime
        return
    busy = row.ideal_cycles + row.spatial_stall_cycles
    ends = (
        (ARRAY, row.ideal_cycles),
        (IDLE_UNITS, busy),
        (STALLS, row.total0_cycles),
        (ONLOADING, row.total1_cycles - row.waiting_cycles),
        (CALLS, row.total1_cycles),
        (OFFLOADING, runtime),
    )
    before = 0
    for cause, end in ends:
        reached = min(max(end, before), runtime)
        yield cause, reached - before
        before = reached


class _Waits:
    """Causes of the cycles in which CNs wait before they start."""

    def __init__(self, view: ScheduleView, causes: StartCauses) -> None:
        self.view, self.causes, self.logs = view, causes, ScheduleLogs(view)
        self._links_of = links_too_full(self.logs)
        self._arrivals: dict[int, list[tuple[int, int]]] = {}
        """Transfers that bring a piece to a memory. The keys are numbers of pairs (piece, memory), as in
        `ScheduleLogs.place`. The values are sorted pairs (cycle at which the transfer ends, index of the transfer).
        """
        for transfer, move in enumerate(self.logs.moves):
            place = self.logs.place(move.piece, move.target_memory)
            self._arrivals.setdefault(place, []).append((move.end_cycles, transfer))
        for found in self._arrivals.values():
            found.sort()
        start, successor = view.artifact.problem.edges
        sources = np.repeat(np.arange(view.node_count), np.diff(start))
        order = np.argsort(successor, kind="stable")
        self._first: list[int] = np.searchsorted(successor[order], np.arange(view.node_count + 1)).tolist()
        self._before: list[int] = sources[order].tolist()

    def before(self, cn: int, since: int) -> Iterator[_Stretch]:
        """Intervals that together cover the time in which a CN waits, from `since` to its start. The last interval
        comes first.
        """
        start = self.logs.start[cn]
        if start <= since:
            return
        ready, item = self._ready(cn)
        if ready < start:
            yield _Stretch(ready, *self._held_up(cn, self.logs.streams_of.get(cn, ())))
        yield from self._until_ready(cn, item, since)

    def _until_ready(self, cn: int, item: int, since: int) -> Iterator[_Stretch]:
        """Intervals in which a CN waits from cycle `since` until the CN or transfer `item` ends, the last interval
        first. When `item` ends, the last missing input of the CN is available.
        """
        nodes, logs = self.logs.nodes, self.logs
        known, last = max(((logs.start[one], -one) for one in self._predecessors(cn)), default=(0, -NOTHING))
        has_begun = True
        while item >= nodes:
            move = logs.moves[item - nodes]
            if has_begun:
                yield _Stretch(move.start_cycles, MOVING, CATEGORIES[self.view.transfer_category[item - nodes]])
            if move.start_cycles <= since:
                return
            has_begun = True
            before = int(self.causes.item[item])
            if int(self.causes.kind[item]) == DATA and before >= nodes:
                item = before
                continue
            maker = logs.producer[move.piece]
            asked, after = (logs.end[maker], maker) if maker >= 0 else (0, NOTHING)
            if known < move.start_cycles:  # else it is fetched ahead
                asked, after = max((asked, after), (known, -last), key=lambda pair: pair[0])
                fetch = self._fetch_before(cn, item - nodes)
                if fetch != NOTHING and logs.moves[fetch].start_cycles > asked:
                    asked, after, has_begun = logs.moves[fetch].start_cycles, nodes + fetch, False
            if asked < move.start_cycles:
                yield _Stretch(asked, *self._held_up(item, self._links_of.get(item - nodes, ())))
            item = after
        if item != NOTHING:
            yield _Stretch(since, NOT_MADE, self.view.names.layer_names[self.view.node_layer[item]])

    def _fetch_before(self, cn: int, transfer: int) -> int:
        """Index of the fetch directly before the fetch `transfer`, among the fetches of the same CN; NOTHING if there
        is none. `transfer` cannot begin before this earlier fetch has begun.
        """
        fetched = self._fetches(cn)
        if transfer not in fetched:
            return NOTHING
        moves, start = self.logs.moves, self.logs.moves[transfer].start_cycles
        earlier = [one for one in fetched[: fetched.index(transfer)] if moves[one].start_cycles <= start]
        return max(reversed(earlier), key=lambda one: moves[one].start_cycles, default=NOTHING)

    def _predecessors(self, cn: int) -> list[int]:
        return self._before[self._first[cn] : self._first[cn + 1]]

    def _ready(self, cn: int) -> tuple[int, int]:
        """Pair (time at which all inputs of a CN are present, number of the CN or transfer that ends at this time).
        Numbers of transfers follow those of all CNs. If the CN waits for no input, the pair is (0, NOTHING).
        """
        logs = self.logs
        ends = [(logs.end[one], one) for one in self._predecessors(cn)]
        ends += [(logs.moves[one].end_cycles, logs.nodes + one) for one in self._fetches(cn)]
        ready = max((end for end, _ in ends), default=0)
        return ready, min((item for end, item in ends if end == ready), default=NOTHING)

    def _fetches(self, cn: int) -> list[int]:
        """Indices of the transfers that brought the inputs of a CN, in the order of fetching. If several transfers
        brought the same input before the CN starts, only the latest one counts.
        """
        found, start = [], (self.logs.start[cn], len(self.logs.moves))
        for piece, memory in self._places(cn):
            arrivals = self._arrivals.get(self.logs.place(piece, memory), [])
            if known := bisect_right(arrivals, start):
                found.append(arrivals[known - 1][1])
        return found

    def _places(self, cn: int) -> Iterator[tuple[int, int]]:
        """Pairs (piece that a CN reads, memory from which it reads the piece). Streamed data are read from the off-chip
        memory.
        """
        artifact, core = self.view.artifact, self.logs.core_of[cn]
        graph, costs, system = artifact.graph, artifact.problem.costs, self.view.system
        streams = costs.stream_bits[int(graph.cost_row[cn]), core]
        own = slice(int(graph.need_start[cn]), int(graph.need_start[cn + 1]))
        pieces, operands = (column[own].tolist() for column in artifact.problem.fetch_order)
        for piece, operand in zip(pieces, operands, strict=True):
            is_streamed = operand != OUTPUT_OPERAND and streams[operand] > 0
            yield piece, system.off_chip_memory if is_streamed else int(system.core_memory[core, operand])

    def _held_up(self, item: int, links: Sequence[int]) -> tuple[str, str]:
        """Pair (cause, detail) that explains why a CN or a transfer could not begin earlier. `links` are the links that
        can have delayed it.
        """
        kind, cause, time = int(self.causes.kind[item]), int(self.causes.item[item]), self._start(item)
        if kind == LINK:
            used = [link for link in links if self.logs.ends_on_link.at(link, time) != NOTHING]
            return FULL_LINK, self.view.link_label((used or [*links] or [self._link_of(cause, time)])[0])
        if kind == MEMORY:
            is_node = item < self.logs.nodes
            moves = self.logs.moves
            core = self.logs.core_of[item] if is_node else -1
            memory = self.logs.output_memory[core] if is_node else moves[item - self.logs.nodes].target_memory
            return NO_ROOM, self.view.names.memory_names[memory]
        return TURN, ""

    def _link_of(self, item: int, time: int) -> int:
        """Index of the first link that the CN or transfer `item` stops using at cycle `time`."""
        links = range(len(self.view.system.link_bits_per_cycle))
        return next(link for link in links if self.logs.ends_on_link.at(link, time) == item)

    def _start(self, item: int) -> int:
        logs = self.logs
        return logs.start[item] if item < logs.nodes else logs.moves[item - logs.nodes].start_cycles
