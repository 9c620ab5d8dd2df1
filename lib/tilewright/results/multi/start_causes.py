"""Causes of the start of each computation node (CN) and each transfer of a schedule, derived from the logs.

An *item* is a CN or a transfer. In a causal schedule, an item begins only at time 0 or when another item ends or begins
(docs/multi-core-model/scheduling.md). Each start after time 0 therefore has a *cause*: another item that ends at the
time of the start, or a CN that begins at this time. (When a CN begins, its core can prepare the next CN.) A chain of
causes leads back to time 0 without a gap.

Several items can end or begin at the time of a start. The kinds of causes are therefore tried in the order of the lists
below, until an item is found. Some kinds concern several links, cores or memories. The first of these links, cores or
memories that has an item gives the cause. If several items qualify there, the item with the smallest number is taken;
on a link, transfers come before CNs.

Kinds of causes for the start of a CN:

1. data: an input of the CN was made, or arrived, at this time.
2. core: the core was busy until this time.
3. link: an item ended on a link over which the CN streams data.
4. memory: room became free in the memory of the outputs of the CN.
5. order: another CN ended that had to end before this CN could begin.
6. memory: room became free in any memory of the core.
7. other: any other item ended at this time.

Kinds of causes for the start of a transfer:

1. data: the data were made, or arrived at the source, at this time.
2. link: an item ended on a link of the path that was too full just before.
3. memory: room became free in the target memory, if this memory was too full just before.
4. core: a CN began or ended on the target core. For a write to the off-chip memory: a CN began or ended on a core with
   the source memory.
5. memory: room became free in the target memory or in the source memory.
6. Another transfer of the same queue began at the same time, and has a cause of the kinds 1 to 5. Both transfers then
   have this cause.
7. order: another transfer to the target core ended, or a CN began whose start the transfer had to await. For a write to
   the off-chip memory: another transfer from the source memory ended, or such a CN began.
8. memory: room became free in any memory of the target core.
9. other: any other item ended at this time.
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
"""Pair (index of the kind of cause in CAUSES, number of the item that is the cause).

Items are CNs and transfers. CNs are numbered from 0; the numbers of transfers follow those of all CNs. The number is
NOTHING for a start at time 0.
"""


@dataclass(frozen=True, eq=False)
class StartCauses:
    """Causes of the starts of all CNs and transfers (items) of a schedule, as arrays of shape (items,). CNs come first,
    then transfers.
    """

    kind: Integers
    """Kind of the cause of each item's start, as an index in CAUSES: array of shape (items,)."""
    item: Integers
    """Number of the causing item of each item: array of shape (items,). The end or start of the causing item let the
    other item start. NOTHING for a start at time 0.
    """

    def chain(self, item: int) -> list[int]:
        """Chain of items that ends with `item`, in reverse order: `item`, then the item that caused its start, and so
        on, back to an item that began at time 0.
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
    """Name of the core that computes, or category of the moving data (one of CATEGORIES)."""
    layer: str
    """Layer of the CN, or of the data. Data belong to the layer that makes them; constants and inputs of the network
    belong to the first layer that reads them.
    """
    start_cycles: int
    end_cycles: int

    @property
    def cycles(self) -> int:
        """Duration, in cycles."""
        return self.end_cycles - self.start_cycles


COMPUTING, MOVING = "computing", "moving"


def latency_chain(view: ScheduleView) -> tuple[ChainPart, ...]:
    """Chain of CNs (computation nodes) and transfers that leads to the end of the schedule, the earliest part first.
    The start of each part is caused by the part before it.

    The parts cover the time from cycle 0 to the end of the last CN or transfer, without a gap. If several CNs end last,
    the chain leads to the first of these CNs. If only transfers end last, it leads to the first of these transfers. If
    the causes are not known or the schedule is empty, the result is ().
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
    """Causes of the start of each CN and each transfer. None if the schedule model is not causal: a CN or transfer can
    then begin at a time at which nothing else begins or ends.
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
    """Numbers of CNs and transfers (items) by place and time. A place is a core, a memory, a link, or a pair (piece,
    memory), given by its number; one index has only places of one kind.

    If several items have the same place and time, only the one that was added first is kept.
    """

    items: dict[tuple[int, int], int] = field(default_factory=dict)

    def add(self, places: Iterable[int], times: Iterable[int], items: Iterable[int]) -> None:
        """Add an item for each pair of place and time. If several items have the same place and time, only the first of
        them is kept. The items of a call must be in ascending order, so that the smallest item is kept.
        """
        for place, time, item in zip(places, times, items, strict=True):
            self.items.setdefault((place, time), item)

    def at(self, place: int, time: int) -> int:
        """Item at a place (as defined for `_Index`) and a time in cycles; NOTHING if there is none."""
        return self.items.get((place, time), NOTHING)

    def at_one_of(self, places: Iterable[int], time: int) -> int:
        """Item at the first of `places` that has an item at this time; NOTHING if none of the places has one."""
        return next((item for place in places if (item := self.at(place, time)) != NOTHING), NOTHING)


class ScheduleLogs:
    """Logs of a schedule, with indices that find CNs and transfers by time and place. A place is a core, a memory, a
    link, or an arriving piece. An index finds the items that begin, or the items that end.
    """

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
        """Data that each CN reads, as pairs (piece, memory), in one list for each CN. The memory belongs to the CN's
        core, and holds the operand.
        """
        moves = schedule.transfers
        self.moves = [_Move(*row) for row in zip(*(moves[name].tolist() for name in _Move._fields), strict=True)]
        changes = schedule.memory_changes
        freed = changes[changes["change_bits"] < 0]
        self.frees = set(zip(freed["memory"].tolist(), freed["time_cycles"].tolist(), strict=True))
        self._index()

    def _index(self) -> None:
        """Build the indices that find CNs and transfers by core, by memory, by link, or by arriving piece. The index
        `ends` finds them only by time, so all its entries have the place 0.
        """
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
        """Key of the pair (piece, memory) in the index `arrives`."""
        return piece * (len(self.cores_of) + 1) + memory

    def freed(self, memories: Iterable[int], time: int) -> int:
        """Number of the CN or transfer whose end at `time` freed room in one of `memories`; NOTHING if there is no such
        CN or transfer.
        """
        return self.ends_in_memory.at_one_of((one for one in memories if (one, time) in self.frees), time)


_Asked = Sequence[tuple[int, Callable[[], int]]]
"""Kinds of causes, each with the function that finds the item for this kind."""


def _first(asked: _Asked) -> Cause | None:
    """Pair (kind of cause, item) of the first kind in `asked` whose function finds an item; None if no function finds
    one.
    """
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
    """Item that made an input of `cn` ready exactly when `cn` began: the CN that made the input, or the transfer that
    brought it. NOTHING if there is none. Transfers to the off-chip memory also count, because streamed data are read
    from there.
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
    """CN that had to end before `cn` could begin, although it makes no data for `cn`: a predecessor in the order of
    CNs, or a CN of an earlier stack if stacks wait for each other. NOTHING if there is none.
    """
    graph, time = logs.view.artifact.graph, logs.start[cn]
    before = graph.order_predecessor[int(graph.order_start[cn]) : int(graph.order_start[cn + 1])].tolist()
    ended = min((one for one in before if logs.end[one] == time), default=logs.ends.at(0, time))
    is_earlier = NOTHING < ended < logs.nodes and graph.stack[ended] < graph.stack[cn]
    return ended if ended in before or is_earlier else NOTHING


def _causes_of_transfers(logs: ScheduleLogs) -> list[Cause]:
    """Cause of each transfer. A transfer that only receives the broadcast of another transfer has the cause of this
    other transfer.
    """
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
    """Queue of a transfer, as a pair (True for a write to the off-chip memory, index).

    All writes from one memory to the off-chip memory are in one queue; the index is that of the source memory. All
    other transfers to one core are in one queue; the index is that of the core. The transfers of a queue begin in the
    order of the queue; several can begin in the same cycle.
    """
    is_write = move.target_memory == logs.view.system.off_chip_memory
    return is_write, move.source_memory if is_write else move.target_core


def _cause_of_transfer(logs: ScheduleLogs, move: _Move, full_links: Iterable[int], lacks_room: bool) -> Cause | None:
    """Cause of a transfer among the kinds 1 to 5 in the description of this module; None if none of these kinds
    applies. A start at time 0 has the cause BEGIN.

    `full_links` are the links that were too full just before the transfer began. `lacks_room` is True if its target
    memory was too full just before.
    """
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
    """Cause of the start of a transfer for which `_cause_of_transfer` finds no cause."""
    time, (is_write, place) = move.start_cycles, _queue(logs, move)
    asked: _Asked = (
        (ORDER, lambda: (logs.ends_from_memory if is_write else logs.ends_to_core).at(place, time)),
        (ORDER, lambda: _begun_before(logs, move)),
        (MEMORY, lambda: logs.freed(logs.memories_of[move.target_core], time)),
    )
    return _first(asked) or (OTHER, logs.ends.at(0, time))


def _begun_before(logs: ScheduleLogs, move: _Move) -> int:
    """CN for whose start a transfer waited, so that both begin at the same time; NOTHING if there is none. The CN makes
    an input of a reader: of a CN that reads the transferred data after the transfer, on a core with the target memory.

    This core can prepare the reader only when all CNs that make inputs of the reader have begun.
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
    """Indices of the links that were too full for a transfer, by index of the transfer. Just before the transfer began,
    the free width of such a link was less than the width that the transfer uses. Transfers without such a link are left
    out.
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
    """Indices of the transfers whose target memory was too full: just before the transfer began, the free room in this
    memory was smaller than the moved data.
    """
    moves, bits = logs.view.schedule.transfers, logs.view.artifact.graph.piece_bits
    found: set[int] = set()
    for memory, capacity in enumerate(logs.view.system.memory_capacity_bits.tolist()):
        own = np.flatnonzero(moves["target_memory"] == memory)
        held = _before(*logs.view.schedule.memory_use(memory), moves["start_cycles"][own])
        found.update(own[held + bits[moves["piece"][own]] > capacity].tolist())
    return found


def _before(times: Integers, values: Integers, when: Integers) -> Integers:
    """Values of a step function just before the times in `when`. The function is 0 before its first step."""
    step = np.searchsorted(times, when, side="left") - 1
    return np.append(values, 0)[step]
