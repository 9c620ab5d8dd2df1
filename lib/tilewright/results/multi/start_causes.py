"""Causes of the start of each computation node (CN) and each transfer of a schedule, derived from the logs.

An *item* is a CN or a transfer. In a causal schedule, an item begins only at time 0 or when something else happens
(docs/multi-core-model.md#scheduling). So each start after time 0 has a *cause*: an item that ends at this time, or a CN
that begins at this time, after which its core can prepare the next CN. A chain of causes leads back to time 0 without a
gap.

Several items can end at the time of a start. Each of the following kinds of causes is tried in order, and the first
kind for which there is an item gives the cause. If there are several items of this kind, the one with the smallest
number is taken:

1. data: the required data were made, or arrived, at this time;
2. core (for CNs): the core was busy until this time;
3. link: for a transfer, a link on its path was too full just before; for a CN, an item on a link of its streams ended;
4. memory: for a transfer, its target was too full just before; for a CN, room in its output memory became free;
5. core (for transfers): a CN of the core began, after which the core could prepare the next CN, or a CN ended;
6. order: the previous fetch or write in the same queue ended, or a CN that must come before ended or began;
7. memory: room in another memory of the core became free, for which data could have waited;
8. other: any other item that ended at this time.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from tilewright.multicore.scheduling.options import CAUSAL
from tilewright.multicore.scheduling.problem import OUTPUT_OPERAND, Integers
from tilewright.multicore.scheduling.schedule import link_use, own_hops
from tilewright.results.multi.bars import CATEGORIES, ScheduleView, listeners

CAUSES = ("begin", "data", "core", "memory", "link", "order", "other")
BEGIN, DATA, CORE, MEMORY, LINK, ORDER, OTHER = range(len(CAUSES))
NOTHING = -1
Cause = tuple[int, int]
"""Pair (index in CAUSES, item). An item is the number of a CN, or the number of a transfer plus the number of all CNs;
NOTHING for a start at time 0.
"""


@dataclass(frozen=True, eq=False)
class StartCauses:
    """Causes of the starts of all items. CNs come first, then transfers."""

    kind: Integers
    """[item] Index of the cause in CAUSES."""
    item: Integers
    """[item] Item whose end or begin caused the start; NOTHING for a start at time 0."""

    def chain(self, item: int) -> list[int]:
        """Chain of items that ends with `item`, in reverse order. `item` comes first, then the item that caused its
        start, and so on, back to an item that began at time 0.
        """
        found = [item]
        while self.item[found[-1]] != NOTHING:
            found.append(int(self.item[found[-1]]))
        return found


class ChainPart(NamedTuple):
    """Part of the chain of causes that leads to the end of a schedule."""

    what: str
    """Activity: COMPUTING or MOVING."""
    place: str
    """Core that computes, or kind of the moving data (from CATEGORIES)."""
    layer: str
    """Layer of the CN, or of the data. The layer of data is the layer that makes them; for constants and inputs of the
    network, the first layer that reads them.
    """
    start_cycles: int
    end_cycles: int

    @property
    def cycles(self) -> int:
        """Duration, in cycles."""
        return self.end_cycles - self.start_cycles


COMPUTING, MOVING = "computing", "moving"


def latency_chain(view: ScheduleView) -> tuple[ChainPart, ...]:
    """Parts of the latency: the chain of causes of the item that ends last.

    The parts cover the time from cycle 0 to the end of this item, without a gap. If several items end last, the first
    of them is taken; CNs come before transfers. () if causes are not known or the schedule is empty.
    """
    causes, schedule, names = start_causes(view), view.schedule, view.names
    if causes is None or not len(causes.kind):
        return ()
    moves, nodes = schedule.transfers, view.node_count
    starts = np.concatenate((schedule.start_cycles, moves["start_cycles"])).tolist()
    ends = np.concatenate((schedule.end_cycles, moves["end_cycles"]))
    last = int(np.argmax(ends))
    piece_layer, category = view.artifact.piece_layer, view.transfer_category
    parts, end = [], int(ends[last])
    for item in causes.chain(last):
        if item < nodes:
            place, layer = names.core_names[schedule.allocation[item]], view.node_layer[item]
        else:
            place, layer = CATEGORIES[category[item - nodes]], piece_layer[moves["piece"][item - nodes]]
        if starts[item] < end:
            what = COMPUTING if item < nodes else MOVING
            parts.append(ChainPart(what, place, names.layer_names[layer] if layer >= 0 else "", starts[item], end))
        end = starts[item]
    return tuple(reversed(parts))


def start_causes(view: ScheduleView) -> StartCauses | None:
    """Causes of the start of each CN and each transfer. None if the schedule model is not causal, because an item can
    then begin at a time at which no other item ends.
    """
    if view.artifact.schedule_model != CAUSAL:
        return None
    logs = ScheduleLogs(view)
    causes = [*(_cause_of_node(logs, cn) for cn in range(view.node_count)), *_causes_of_transfers(logs)]
    pairs = np.array(causes, np.int64).reshape(-1, 2)
    return StartCauses(pairs[:, 0], pairs[:, 1])


class _Move(NamedTuple):
    """Transfer of a schedule. The field names are those of the log of transfers."""

    piece: int
    source_memory: int
    target_memory: int
    target_core: int
    start_cycles: int
    end_cycles: int


@dataclass(eq=False)
class _Index:
    """Items by place and time. A place is a number that stands for a core or a memory, for example. If several items
    have the same place and time, only the first added item is kept.
    """

    items: dict[tuple[int, int], int] = field(default_factory=dict)

    def add(self, places: Iterable[int], times: Iterable[int], items: Iterable[int]) -> None:
        """Add items, which must be sorted by number."""
        for place, time, item in zip(places, times, items, strict=True):
            self.items.setdefault((place, time), item)

    def at(self, place: int, time: int) -> int:
        """Item at a place and a time; NOTHING if there is none."""
        return self.items.get((place, time), NOTHING)

    def at_one_of(self, places: Iterable[int], time: int) -> int:
        """Item at the first of these places that has an item at this time; NOTHING if no place has an item."""
        return next((item for place in places if (item := self.at(place, time)) != NOTHING), NOTHING)


class ScheduleLogs:
    """Items that end and begin at each place and time, read from the logs of a schedule."""

    def __init__(self, view: ScheduleView) -> None:
        schedule, system, problem = view.schedule, view.system, view.artifact.problem
        self.view, self.nodes = view, view.node_count
        self.start, self.end = schedule.start_cycles.tolist(), schedule.end_cycles.tolist()
        self.core_of, self.producer = schedule.allocation.tolist(), problem.graph.piece_producer.tolist()
        self.output_memory = system.core_memory[:, OUTPUT_OPERAND].tolist()
        memories = [{memory for memory in row if memory >= 0} for row in system.core_memory.tolist()]
        self.memories_of = list(map(sorted, memories))
        self.cores_of = [
            [core for core, own in enumerate(memories) if memory in own]
            for memory in range(len(system.memory_capacity_bits))
        ]
        piece, operand = problem.fetch_order
        memory_of_need = system.core_memory[schedule.allocation[problem.need_cn], operand]
        needs = list(zip(piece.tolist(), memory_of_need.tolist(), strict=True))
        self.needs_of = [needs[first:last] for first, last in pairwise(problem.graph.need_start.tolist())]
        """[cn] Pairs (piece, memory) that the CN reads. The memory is the one that holds the operand on the core of the
        CN.
        """
        moves = schedule.transfers
        self.moves = [_Move(*row) for row in zip(*(moves[name].tolist() for name in _Move._fields), strict=True)]
        changes = schedule.memory_changes
        freed = changes[changes["change_bits"] < 0]
        self.frees = set(zip(freed["memory"].tolist(), freed["time_cycles"].tolist(), strict=True))
        self._index()

    def _index(self) -> None:
        """Build the indices by core, by memory and by link. The index `ends` has all items at place 0."""
        self.ends, self.ends_on_core, self.begins_on_core = _Index(), _Index(), _Index()
        self.ends_in_memory, self.ends_on_link, self.arrives = _Index(), _Index(), _Index()
        self.ends_to_core, self.ends_from_memory = _Index(), _Index()
        cns, transfers = range(self.nodes), range(self.nodes, self.nodes + len(self.moves))
        self.ends_on_core.add(self.core_of, self.end, cns)
        self.begins_on_core.add(self.core_of, self.start, cns)
        for cn in cns:
            memories = self.memories_of[self.core_of[cn]]
            self.ends_in_memory.add(memories, [self.end[cn]] * len(memories), [cn] * len(memories))
        ends = [move.end_cycles for move in self.moves]
        sources = [move.source_memory for move in self.moves]
        self.arrives.add((self.place(move.piece, move.target_memory) for move in self.moves), ends, transfers)
        self.ends_to_core.add((move.target_core for move in self.moves), ends, transfers)
        for index in (self.ends_from_memory, self.ends_in_memory):
            index.add(sources, ends, transfers)
        self.ends.add([0] * (self.nodes + len(ends)), [*self.end, *ends], [*cns, *transfers])
        self._index_links(ends)

    def _index_links(self, ends: Sequence[int]) -> None:
        streams = self.view.schedule.streams
        transfer, link = (column.tolist() for column in own_hops(self.view.schedule, self.view.system))
        self.ends_on_link.add(link, (ends[one] for one in transfer), (one + self.nodes for one in transfer))
        cns, links = streams["cn"].tolist(), streams["link"].tolist()
        self.ends_on_link.add(links, streams["end_cycles"].tolist(), cns)
        self.streams_of: dict[int, list[int]] = {}
        for cn, one in zip(cns, links, strict=True):
            self.streams_of.setdefault(cn, []).append(one)

    def place(self, piece: int, memory: int) -> int:
        """Place number of the pair (piece, memory), for indices."""
        return piece * (len(self.cores_of) + 1) + memory

    def freed(self, memories: Iterable[int], time: int) -> int:
        """Item whose end at a given time freed room in one of these memories; otherwise NOTHING."""
        return self.ends_in_memory.at_one_of((one for one in memories if (one, time) in self.frees), time)


_Asked = Sequence[tuple[int, Callable[[], int]]]
"""Kinds of causes, each with the function that finds the causing item."""


def _first(asked: _Asked) -> Cause | None:
    """First kind of cause that has an item, with this item."""
    return next(((kind, item) for kind, find in asked if (item := find()) != NOTHING), None)


def _cause_of_node(logs: ScheduleLogs, cn: int) -> Cause:
    time, core = logs.start[cn], logs.core_of[cn]
    if time == 0:
        return BEGIN, NOTHING
    if (item := _data_of_node(logs, cn)) != NOTHING:
        return DATA, item
    if (item := logs.ends_on_core.at(core, time)) != NOTHING:
        return CORE, item
    asked: _Asked = (
        (LINK, lambda: logs.ends_on_link.at_one_of(logs.streams_of.get(cn, ()), time)),
        (MEMORY, lambda: logs.freed([logs.output_memory[core]], time)),
        (ORDER, lambda: _ended_before(logs, cn)),
        (MEMORY, lambda: logs.freed(logs.memories_of[core], time)),
    )
    return _first(asked) or (OTHER, logs.ends.at(0, time))


def _data_of_node(logs: ScheduleLogs, cn: int) -> int:
    """CN that made an input of `cn`, or transfer that brought an input, exactly when `cn` began; otherwise NOTHING.
    Transfers to the off-chip memory also count, because streamed data are read from there.
    """
    time, needs = logs.start[cn], logs.needs_of[cn]
    makers = (logs.producer[piece] for piece, _ in needs)
    made = min((maker for maker in makers if maker >= 0 and logs.end[maker] == time), default=NOTHING)
    if made != NOTHING:
        return made
    off_chip = logs.view.system.off_chip_memory
    places = (logs.place(piece, one) for piece, memory in needs for one in (memory, off_chip))
    return min((item for place in places if (item := logs.arrives.at(place, time)) != NOTHING), default=NOTHING)


def _ended_before(logs: ScheduleLogs, cn: int) -> int:
    """CN without data for `cn` that had to end before `cn` could begin; otherwise NOTHING. It is a predecessor in the
    order, or a CN of an earlier stack if stacks wait for each other.
    """
    graph, time = logs.view.artifact.graph, logs.start[cn]
    before = graph.order_predecessor[int(graph.order_start[cn]) : int(graph.order_start[cn + 1])].tolist()
    ended = min((one for one in before if logs.end[one] == time), default=logs.ends.at(0, time))
    is_earlier = NOTHING < ended < logs.nodes and graph.stack[ended] < graph.stack[cn]
    return ended if ended in before or is_earlier else NOTHING


def _causes_of_transfers(logs: ScheduleLogs) -> list[Cause]:
    """Causes of all transfers. A transfer that only receives a broadcast has the cause of the main transfer."""
    full_links, lacks_room = links_too_full(logs), _lack_room(logs)
    main_of = {one: main for main, others in listeners(logs.view).items() for one in others}
    causes: dict[int, Cause] = {}
    of_queue: dict[tuple[bool, int, int], Cause] = {}
    late = []
    for transfer, move in enumerate(logs.moves):
        if transfer in main_of:
            continue
        cause = _cause_of_transfer(logs, move, full_links.get(transfer, ()), transfer in lacks_room)
        if cause is None:
            late.append(transfer)
        else:
            causes[transfer] = cause
            of_queue.setdefault((*_queue(logs, move), move.start_cycles), cause)
    for transfer in late:
        move = logs.moves[transfer]
        # The next transfer of a queue is tried after the previous one has begun: the same cause delayed both.
        known = of_queue.get((*_queue(logs, move), move.start_cycles))
        causes[transfer] = known or _late_cause(logs, move)
    return [causes[main_of.get(transfer, transfer)] for transfer in range(len(logs.moves))]


def _queue(logs: ScheduleLogs, move: _Move) -> tuple[bool, int]:
    """Queue of a transfer: the fetches of a core, or the writes of a memory to the off-chip memory. Transfers of a
    queue begin one after another.
    """
    is_write = move.target_memory == logs.view.system.off_chip_memory
    return is_write, move.source_memory if is_write else move.target_core


def _cause_of_transfer(logs: ScheduleLogs, move: _Move, full_links: Iterable[int], lacks_room: bool) -> Cause | None:
    """Cause that directly delayed a transfer; None if there is none."""
    time, maker = move.start_cycles, logs.producer[move.piece]
    if time == 0:
        return BEGIN, NOTHING
    is_made = maker >= 0 and logs.end[maker] == time
    is_write, place = _queue(logs, move)
    cores = logs.cores_of[place] if is_write else [place]
    asked: _Asked = (
        (DATA, lambda: maker if is_made else logs.arrives.at(logs.place(move.piece, move.source_memory), time)),
        (LINK, lambda: logs.ends_on_link.at_one_of(full_links, time)),
        (MEMORY, lambda: logs.freed([move.target_memory], time) if lacks_room else NOTHING),
        (CORE, lambda: logs.begins_on_core.at_one_of(cores, time)),
        (CORE, lambda: logs.ends_on_core.at_one_of(cores, time)),
        (MEMORY, lambda: logs.freed([move.target_memory, move.source_memory], time)),
    )
    return _first(asked)


def _late_cause(logs: ScheduleLogs, move: _Move) -> Cause:
    """Cause of the start of a transfer for which `_cause_of_transfer` finds none."""
    time, (is_write, place) = move.start_cycles, _queue(logs, move)
    asked: _Asked = (
        (ORDER, lambda: (logs.ends_from_memory if is_write else logs.ends_to_core).at(place, time)),
        (ORDER, lambda: _begun_before(logs, move)),
        (MEMORY, lambda: logs.freed(logs.memories_of[move.target_core], time)),
    )
    return _first(asked) or (OTHER, logs.ends.at(0, time))


def _begun_before(logs: ScheduleLogs, move: _Move) -> int:
    """CN that began at the same time as a transfer and makes another input of a reader of the transferred data. Before
    this CN began, no core could prepare the reader.
    """
    problem = logs.view.artifact.problem
    start, need = problem.piece_needs
    readers = problem.need_cn[need[int(start[move.piece]) : int(start[move.piece + 1])]].tolist()
    served = [
        reader
        for reader in readers
        if logs.start[reader] >= move.end_cycles and move.target_memory in logs.memories_of[logs.core_of[reader]]
    ]
    makers = {logs.producer[piece] for reader in served for piece, _ in logs.needs_of[reader]}
    return min((one for one in makers if one >= 0 and logs.start[one] == move.start_cycles), default=NOTHING)


def links_too_full(logs: ScheduleLogs) -> dict[int, list[int]]:
    """Links that delayed a transfer, by transfer. Just before the transfer began, the free width of such a link was
    less than the width that the transfer uses.
    """
    schedule, system = logs.view.schedule, logs.view.system
    transfer, link = own_hops(schedule, system)
    found: dict[int, list[int]] = {}
    for number, (times, used) in enumerate(link_use(schedule, system)):
        own = transfer[link == number]
        moves = schedule.transfers[own]
        free = system.link_bits_per_cycle[number] - _before(times, used, moves["start_cycles"])
        for one in own[free < moves["bits_per_cycle"]].tolist():
            found.setdefault(one, []).append(number)
    return found


def _lack_room(logs: ScheduleLogs) -> set[int]:
    """Transfers that their target memory delayed. Just before the transfer began, the free room of the memory was less
    than the size of the data.
    """
    moves, bits = logs.view.schedule.transfers, logs.view.artifact.graph.piece_bits
    found: set[int] = set()
    for memory, capacity in enumerate(logs.view.system.memory_capacity_bits.tolist()):
        own = np.flatnonzero(moves["target_memory"] == memory)
        held = _before(*logs.view.schedule.memory_use(memory), moves["start_cycles"][own])
        found.update(own[held + bits[moves["piece"][own]] > capacity].tolist())
    return found


def _before(times: Integers, values: Integers, when: Integers) -> Integers:
    """Values of a step function just before the times in `when`. Before its first step, the function is 0."""
    step = np.searchsorted(times, when, side="left") - 1
    return np.append(values, 0)[step]
