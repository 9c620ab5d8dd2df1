"""A second scheduler by the rules of docs/multi-core-model/scheduling.md, in plain Python.

It uses dictionaries and sorted lists, no heaps and no machine code.
"""

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from tilewright.multicore.scheduling.options import ScheduleOptions
from tilewright.multicore.scheduling.problem import SchedulingProblem

CAUSES = ("off_chip_fetch", "off_chip_stream", "eviction", "sink_output", "core_to_core")


@dataclass
class Copy:
    """A copy of a piece in a memory."""

    piece: int
    memory: int
    core: int
    state: str = "absent"
    pins: int = 0
    uses: int = 0


@dataclass
class Slot:
    """The CN that a core prepares."""

    cn: int
    tentative: bool
    claimed: bool = False
    needs: list[tuple[int, int]] = field(default_factory=list)
    """(piece, memory) pairs that may still have to be fetched"""


class SlowScheduler:
    """Scheduler that runs once and keeps the results in its attributes."""

    def __init__(self, problem: SchedulingProblem, allocation: Any, options: ScheduleOptions) -> None:
        graph, costs, system = problem.graph, problem.costs, problem.system
        self.system, self.options = system, options
        self.costs = problem.costs
        self.count = graph.node_count
        self.core_of = [int(core) for core in allocation]
        self.off_core, self.off_memory = system.off_chip_core, system.off_chip_memory
        self.bits = graph.piece_bits.tolist()
        self.producer = graph.piece_producer.tolist()
        self.is_output = graph.piece_is_output.tolist()
        self.graph = graph
        self.runtime = [int(costs.runtime_cycles[graph.cost_row[cn], self.core_of[cn]]) for cn in range(self.count)]
        self.streams: list[dict[int, tuple[int, int]]] = []
        for cn in range(self.count):
            place = graph.cost_row[cn], self.core_of[cn]
            entries = zip(costs.stream_bits[place].tolist(), costs.stream_bits_per_cycle[place].tolist(), strict=True)
            self.streams.append({operand: entry for operand, entry in enumerate(entries) if entry[0]})
        self.outputs: list[list[int]] = [[] for _ in range(self.count)]
        for piece, cn in enumerate(self.producer):
            if cn >= 0:
                self.outputs[cn].append(piece)
        self.needs: list[list[tuple[int, int]]] = []
        self.streamed: list[list[int]] = []
        self.predecessors: list[set[int]] = []
        for cn in range(self.count):
            span = slice(graph.need_start[cn], graph.need_start[cn + 1])
            pairs = zip(graph.need_piece[span].tolist(), graph.need_operand[span].tolist(), strict=True)
            pairs = sorted(pairs, key=lambda pair: (self.producer[pair[0]] >= 0, pair))
            memory = system.core_memory[self.core_of[cn]]
            kept = [(piece, int(memory[operand])) for piece, operand in pairs if operand not in self.streams[cn]]
            self.needs.append(kept)
            self.streamed.append([piece for piece, operand in pairs if operand in self.streams[cn]])
            after = graph.order_predecessor[graph.order_start[cn] : graph.order_start[cn + 1]].tolist()
            self.predecessors.append(
                {self.producer[piece] for piece, _ in pairs if self.producer[piece] >= 0} | set(after)
            )
            if self.options.stack_order == "barrier":
                self.predecessors[cn].update(np.flatnonzero(graph.stack < graph.stack[cn]).tolist())
        self.successors = [[i for i in range(self.count) if cn in self.predecessors[i]] for cn in range(self.count)]
        self.prepare()

    def prepare(self) -> None:
        """Set the state at time 0."""
        memories = range(len(self.system.memory_capacity_bits))
        self.copies: dict[tuple[int, int], Copy] = {}
        self.home: dict[int, tuple[int, int]] = {}
        self.off_chip = {piece: "there" if cn < 0 else "no" for piece, cn in enumerate(self.producer)}
        self.stream_uses: dict[int, int] = defaultdict(int)
        self.detours: set[tuple[int, int]] = set()
        """Copies that take a detour"""
        for piece, cn in enumerate(self.producer):
            if cn >= 0 and 0 not in self.streams[cn]:
                place = piece, int(self.system.core_memory[self.core_of[cn], 0])
                self.home[piece] = place
                self.copies[place] = Copy(piece, place[1], self.core_of[cn])
        for cn in range(self.count):
            for place in self.needs[cn]:
                copy = self.copies.setdefault(place, Copy(*place, self.core_of[cn]))
                copy.uses += 1
                if self.needs_detour(place, self.core_of[cn]):
                    self.detours.add(place)
            for piece in self.streamed[cn]:
                self.stream_uses[piece] += 1
        self.claimed = dict.fromkeys(memories, 0)
        self.stored = dict.fromkeys(memories, 0)
        self.peak = dict.fromkeys(memories, 0)
        self.free = self.system.link_bits_per_cycle.tolist()
        cores = range(len(self.system.core_memory))
        self.slot: dict[int, Slot | None] = dict.fromkeys(cores)
        self.running: dict[int, int | None] = dict.fromkeys(cores)
        self.busy_until = dict.fromkeys(cores, 0)
        self.candidates: dict[int, set[int]] = {core: set() for core in cores}
        self.new_candidate = dict.fromkeys(cores, False)
        self.writes: dict[int, list[tuple[Copy, str]]] = {memory: [] for memory in memories}
        self.requests: list[tuple[str, int]] = []
        self.events: list[tuple[int, int, Any]] = []
        self.started = [False] * self.count
        self.start, self.end = [-1] * self.count, [-1] * self.count
        self.shares: dict[int, dict[int, int]] = {}
        self.prefetches: dict[int, list[tuple[int, int]]] = {core: [] for core in cores}
        self.prefetching: dict[int, tuple[int, int] | None] = dict.fromkeys(cores)
        self.forwards: dict[int, list[Copy]] = {core: [] for core in cores}
        self.forwarding: dict[int, tuple[int, int] | None] = dict.fromkeys(cores)
        self.list_prefetches()
        self.turns = [self.turn(cn) for cn in range(self.count)]
        self.now, self.number = 0, 0
        self.tree: set[int] = set()
        """Links and listeners of the latest transfer"""
        self.link_bits = np.zeros((5, len(self.free)), np.int64)
        self.words_read = np.zeros((5, len(memories)), np.int64)
        self.words_written = np.zeros((5, len(memories)), np.int64)
        self.transfers: list[tuple[int, ...]] = []
        self.store(self.off_memory, sum(self.bits[piece] for piece, cn in enumerate(self.producer) if cn < 0))

    def needs_detour(self, place: tuple[int, int], core: int) -> bool:
        """Whether a CN on a core can get a piece into a memory only by way of the off-chip memory."""
        home = self.home.get(place[0], place)
        return home != place and not (
            self.goes_direct(place[0])
            and self.can_send(self.copies[home].core, core)
            and self.can_send(core, self.off_core)
        )

    def goes_direct(self, piece: int) -> bool:
        """Whether other memories may get a piece directly from its home."""
        made_by = self.producer[piece]
        return made_by < 0 or int(self.graph.layer[made_by]) not in self.options.layers_by_off_chip

    def list_prefetches(self) -> None:
        """List the constants that each core prefetches, in the order of CNs or of progress, each once."""
        seen = set()
        by_progress = self.options.scheduler_candidate_selection == "progress"
        for cn in sorted(range(self.count), key=self.progress) if by_progress else range(self.count):
            span = slice(self.graph.need_start[cn], self.graph.need_start[cn + 1])
            pairs = zip(self.graph.need_piece[span].tolist(), self.graph.need_operand[span].tolist(), strict=True)
            for piece, operand in sorted(pairs):
                place = piece, int(self.system.core_memory[self.core_of[cn], operand])
                wanted = operand in self.options.operands_to_prefetch and operand not in self.streams[cn]
                if wanted and self.producer[piece] < 0 and place not in seen:
                    seen.add(place)
                    self.prefetches[self.core_of[cn]].append(place)

    # Memories.

    def store(self, memory: int, bits: int) -> None:
        """Add bits to the contents of a memory."""
        self.stored[memory] += bits

    def key(self, copy: Copy) -> int:
        """Key of eviction: remaining uses times bits."""
        uses = copy.uses
        if self.home.get(copy.piece) == (copy.piece, copy.memory):
            others = [
                other
                for place, other in self.copies.items()
                if place[0] == copy.piece and other is not copy and place not in self.detours
            ]
            uses += sum(other.uses > 0 and other.state != "present" for other in others)
        return uses * self.bits[copy.piece]

    def sweep(self) -> None:
        """Drop copies that are present, unpinned and of no further use."""
        for copy in self.copies.values():
            if copy.state == "present" and copy.pins == 0 and self.key(copy) == 0:
                self.drop(copy)

    def drop(self, copy: Copy) -> None:
        """Drop a copy and free its space."""
        copy.state = "absent"
        self.claimed[copy.memory] -= self.bits[copy.piece]
        self.store(copy.memory, -self.bits[copy.piece])

    def unpin(self, copy: Copy) -> None:
        """Take one pin off a copy; with the last pin, a reserved copy loses its space."""
        copy.pins -= 1
        if copy.pins == 0 and copy.state == "reserved":
            copy.state = "absent"
            self.claimed[copy.memory] -= self.bits[copy.piece]

    def home_present(self, copy: Copy) -> bool:
        """Whether the piece is present in its home memory, which is not the memory of the copy."""
        place = self.home.get(copy.piece)
        return place is not None and self.copies[place] is not copy and self.copies[place].state == "present"

    def evict(self, copy: Copy) -> None:
        """Evict a copy: drop it, or write it off-chip first."""
        if self.off_chip[copy.piece] != "no" or self.home_present(copy):
            self.drop(copy)
        else:
            copy.state = "leaving"
            self.claimed[copy.memory] -= self.bits[copy.piece]
            self.write(copy, "eviction")

    def write(self, copy: Copy, cause: str) -> None:
        """Ask for a copy to be written off-chip."""
        self.off_chip[copy.piece] = "being written"
        if not self.writes[copy.memory]:
            self.requests.append(("memory", copy.memory))
        self.writes[copy.memory].append((copy, cause))

    def places(self, cn: int) -> list[Copy]:
        """The copies that must be present while a CN runs."""
        return [self.copies[place] for place in self.needs[cn]] + [
            self.copies[self.home[piece]] for piece in self.outputs[cn] if piece in self.home
        ]

    def claim(self, cn: int) -> bool:
        """Claim all space that a CN needs, or none."""
        places = self.places(cn)
        if any(copy.state == "leaving" for copy in places):
            return False
        lacking: dict[int, int] = defaultdict(int)
        for copy in {id(copy): copy for copy in places}.values():
            lacking[copy.memory] += self.bits[copy.piece] if copy.state == "absent" else 0
        memories = {int(memory) for memory in self.system.core_memory[self.core_of[cn]] if memory >= 0}
        victims = []
        for memory in sorted(memories):
            excess = self.claimed[memory] + lacking[memory] - int(self.system.memory_capacity_bits[memory])
            loose = [copy for copy in self.copies.values() if copy.memory == memory and copy.state == "present"]
            loose = [copy for copy in loose if copy.pins == 0 and not any(copy is place for place in places)]
            if excess > sum(self.bits[copy.piece] for copy in loose):
                return False
            victims.append((memory, excess))
        for copy in places:
            copy.pins += 1
            if copy.state == "absent":
                copy.state = "reserved"
                self.claimed[copy.memory] += self.bits[copy.piece]
        seen = set()
        for memory in self.system.core_memory[self.core_of[cn]].tolist():
            if memory < 0 or memory in seen:
                continue
            seen.add(memory)
            while self.claimed[memory] > self.system.memory_capacity_bits[memory]:
                loose = [copy for copy in self.copies.values() if copy.memory == memory and copy.state == "present"]
                loose = [copy for copy in loose if copy.pins == 0]
                self.evict(min(loose, key=lambda copy: (self.key(copy), copy.piece)))
        return True

    # Links.

    def can_send(self, source: int, target: int) -> bool:
        """Whether there is a path from one core to another; a core can always send to itself."""
        return source == target or bool(self.system.path_exists[source * self.system.core_count + target])

    def path(self, source: int, target: int) -> list[int]:
        """The links of the path between two cores."""
        return self.system.path(source, target).tolist()

    def share(self, source: int, target: int, source_memory: int, target_memory: int, bits: int) -> int:
        """The bits per cycle that a transfer gets now; 0 if it has to wait."""
        ends = int(self.system.memory_read_bits[source_memory]), int(self.system.memory_write_bits[target_memory])
        links = self.path(source, target)
        full = min([bits, *ends, *(int(self.system.link_bits_per_cycle[link]) for link in links)])
        share = min([full, *(self.free[link] for link in links)])
        return share if share * self.options.share_divisor >= full else 0

    def add_event(self, cycles: int, what: Any) -> None:
        """Add an event at the end of something."""
        self.events.append((cycles, self.number, what))
        self.number += 1

    def fly(
        self, copy: Copy, cause: str, source: int, target: int, memories: tuple[int, int], rate: int,
        read: Copy | None = None, shared: tuple[int, int] | None = None,
    ) -> None:  # fmt: skip
        """Start a transfer."""
        bits, row = self.bits[copy.piece], CAUSES.index(cause)
        carried = self.path(*shared) if shared else []
        if shared is None:
            self.tree = set()
        links = []
        for link in self.path(source, target):
            if link not in carried and not self.is_carried(link):
                links.append(link)
            self.tree.add(link)
        for link in links:
            self.free[link] -= rate
            self.link_bits[row, link] += bits
        if shared is None:
            self.words_read[row, memories[0]] += -(-bits // int(self.system.memory_read_bits[memories[0]]))
        self.words_written[row, memories[1]] += -(-bits // int(self.system.memory_write_bits[memories[1]]))
        end = self.now - (-bits // rate)
        cores = len(self.system.core_memory)
        main = shared[0] * cores + shared[1] if shared else -1
        self.transfers.append((copy.piece, row, *memories, source, target, self.now, end, rate, main))
        self.add_event(end, ("flight", copy, cause, target, links, rate, read))

    def is_carried(self, link: int) -> bool:
        """Whether a link with multicast already carries the data of the latest transfer."""
        return bool(self.system.multicast[link]) and link in self.tree

    def can_listen(self, own: list[int], main: list[int], rate: int) -> bool:
        """Whether a core at the end of a path can receive the latest transfer, over a bus or by multicast."""
        is_reached = any(self.system.link_is_broadcast[link] for link in own if link in main)
        is_reached |= all(path and bool(self.system.multicast[path[0]]) for path in (own, main))
        rest = [link for link in own if link not in main and not self.is_carried(link)]
        return bool(is_reached) and all(self.free[link] >= rate for link in rest)

    def is_spread_to_all(self, main: list[int]) -> bool:
        """Whether a transfer also delivers the piece to cores that do not wait for the piece yet."""
        return self.options.prefetch_results or any(self.system.multicast[link] for link in main)

    def source_of(self, copy: Copy, core: int) -> tuple[int, int, Copy | None] | None:
        """(core, memory, copy that is read) from which a core can fetch a copy now."""
        direct = self.home_present(copy) and self.goes_direct(copy.piece)
        if direct and self.can_send(self.copies[self.home[copy.piece]].core, core):
            home = self.copies[self.home[copy.piece]]
            return home.core, home.memory, home
        if self.off_chip[copy.piece] == "there":
            return self.off_core, self.off_memory, None
        return None

    def is_forwarded(self, copy: Copy) -> bool:
        """Whether cores forward the piece."""
        return self.system.forwards_constants and self.producer[copy.piece] < 0

    def fastest_source(self, copy: Copy, core: int) -> tuple[int, int, Copy | None]:
        """(core, memory, copy that is read) from which a constant arrives soonest now."""
        choices: list[tuple[int, int, Copy | None]] = [(self.off_core, self.off_memory, None)]
        for place, other in self.copies.items():
            if place[0] == copy.piece and other is not copy and other.state == "present":
                choices += [(other.core, other.memory, other)] if self.can_send(other.core, core) else []

        def rank(choice: tuple[int, int, Copy | None]) -> tuple[int, ...]:
            rate = self.share(choice[0], core, choice[1], copy.memory, self.bits[copy.piece])
            # If nothing can be sent, the off-chip memory counts, and the fetch waits.
            return (-rate, len(self.path(choice[0], core)), choice[0]) if rate else (0, choice[2] is not None, 0)

        return min(choices, key=rank)

    def can_come_from(self, source: int, copy: Copy, core: int) -> bool:
        """Whether a listener can have a copy from a source."""
        if self.is_forwarded(copy):
            return self.can_send(source, core)
        found = self.source_of(copy, core)
        return found is not None and found[0] == source

    def fits(self, copy: Copy) -> bool:
        """Whether the memory has physical space for the copy."""
        return self.stored[copy.memory] + self.bits[copy.piece] <= self.system.memory_capacity_bits[copy.memory]

    def begin(self, copy: Copy, read: Copy | None) -> None:
        """Mark a copy as arriving, and pin the copy that is read."""
        copy.state = "arriving"
        self.store(copy.memory, self.bits[copy.piece])
        if read is not None:
            read.pins += 1

    def fetch(self, copy: Copy, core: int) -> bool:
        """Start to fetch a copy."""
        found = self.fastest_source(copy, core) if self.is_forwarded(copy) else self.source_of(copy, core)
        if found is None or not self.fits(copy):
            return False
        source, memory, read = found
        rate = self.share(source, core, memory, copy.memory, self.bits[copy.piece])
        if rate == 0:
            return False
        cause = "off_chip_fetch" if source == self.off_core else "core_to_core"
        self.begin(copy, read)
        self.fly(copy, cause, source, core, (memory, copy.memory), rate, read)
        self.spread(copy, cause, source, core, memory, rate, read)
        return True

    def spread(
        self, copy: Copy, cause: str, source: int, core: int, memory: int, rate: int, read: Copy | None
    ) -> None:  # fmt: skip
        """Let other cores that need the piece listen to the transfer."""
        main = self.path(source, core)
        for other, slot in self.slot.items():
            if slot is None or not slot.claimed or not any(self.system.link_is_broadcast[link] for link in main):
                continue
            listener = self.next_fetch(slot)
            if listener is None or listener.piece != copy.piece:
                continue
            own = self.path(source, other)
            if not self.can_come_from(source, listener, other) or not self.fits(listener):
                continue
            if not self.can_listen(own, main, rate) or self.system.memory_write_bits[listener.memory] < rate:
                continue
            self.begin(listener, read)
            self.fly(listener, cause, source, other, (memory, listener.memory), rate, read, (source, core))
        if self.is_spread_to_all(main) and any(self.system.link_is_broadcast[link] for link in main):
            self.overhear(copy, cause, source, core, memory, rate, read)

    def overhear(
        self, copy: Copy, cause: str, source: int, core: int, memory: int, rate: int, read: Copy | None
    ) -> None:  # fmt: skip
        """Give the piece to every core on the bus that will need it."""
        main = self.path(source, core)
        for other in self.elsewhere(copy.piece):
            bits = self.bits[other.piece]
            free = int(self.system.memory_capacity_bits[other.memory]) - self.claimed[other.memory]
            is_unclaimed = other.state == "absent" and other.uses > 0 and free >= bits
            if not (is_unclaimed or other.state == "reserved") or not self.fits(other):
                continue
            own = self.path(source, other.core)
            if not self.can_come_from(source, other, other.core) or not self.can_listen(own, main, rate):
                continue
            if self.system.memory_write_bits[other.memory] >= rate:
                self.claimed[other.memory] += bits if is_unclaimed else 0
                self.begin(other, read)
                self.fly(other, cause, source, other.core, (memory, other.memory), rate, read, (source, core))

    def elsewhere(self, piece: int) -> list[Copy]:
        """Copies of a piece outside its home memory."""
        return [self.copies[place] for place in self.copies if place[0] == piece and place != self.home.get(piece)]

    def next_fetch(self, slot: Slot) -> Copy | None:
        """The next need of a prepared CN whose fetch has not begun."""
        while slot.needs and self.copies[slot.needs[0]].state != "reserved":
            slot.needs.pop(0)
        return self.copies[slot.needs[0]] if slot.needs else None

    # Decisions.

    def choose(self, core: int) -> Slot:
        """The best candidate for the slot of a core."""
        horizon = max(self.now, self.busy_until[core])

        def ready(cn: int) -> int:
            return max((self.end[before] for before in self.predecessors[cn]), default=0)

        def rank(cn: int) -> Any:
            if self.options.scheduler_candidate_selection == "memory":
                return int(self.graph.stack[cn]), -int(self.graph.layer[cn]), *self.turns[cn], cn
            if self.options.scheduler_candidate_selection == "progress":
                return self.progress(cn)
            return ready(cn), cn

        soon = [cn for cn in self.candidates[core] if ready(cn) <= horizon]
        later = self.candidates[core]
        cn = min(soon, key=rank) if soon else min(later, key=lambda cn: (ready(cn), cn))
        return Slot(cn, not soon, False, list(self.needs[cn]))

    def progress(self, cn: int) -> Any:
        """Rule 3, by progress: stack, share of earlier CNs in the layer, deepest layer first. Steps of a tile stay
        together.
        """
        layer = int(self.graph.layer[cn])
        members = [other for other in range(self.count) if self.graph.layer[other] == layer]
        place = sorted((self.first_step(other), other) for other in members).index((self.first_step(cn), cn))
        return int(self.graph.stack[cn]), Fraction(place, len(members)), -layer, cn

    def first_step(self, cn: int) -> int:
        """The first CN of the reduction steps that make a CN's output."""
        span = range(int(self.graph.need_start[cn]), int(self.graph.need_start[cn + 1]))
        makers = {self.producer[int(self.graph.need_piece[need])] for need in span}
        before = [maker for maker in makers if maker >= 0 and self.graph.layer[maker] == self.graph.layer[cn]]
        return self.first_step(min(before)) if before else cn

    def turn(self, cn: int) -> tuple[int, int]:
        """Rule 3: (place in the group, group) where the constants shared by CNs of the layer fit, else (group, 0)."""
        layer, group = int(self.graph.layer[cn]), int(self.graph.group[cn])
        members = [other for other in range(self.graph.node_count) if self.graph.layer[other] == layer]
        place = sum(self.graph.group[other] == group for other in members if other < cn)
        return (int(place), group) if self.shared_constants_fit(members) else (group, 0)

    def shared_constants_fit(self, members: list[int]) -> bool:
        """Whether the constants that several CNs of a layer share fit in each memory of every core that runs
        such a CN.
        """
        graph, system = self.graph, self.system
        needs: Counter[tuple[int, int]] = Counter()
        for cn in members:
            for need in range(int(graph.need_start[cn]), int(graph.need_start[cn + 1])):
                piece = int(graph.need_piece[need])
                if graph.piece_producer[piece] < 0:
                    needs[int(graph.need_operand[need]), piece] += 1
        bits: Counter[int] = Counter()
        for (operand, piece), count in needs.items():
            bits[operand] += int(graph.piece_bits[piece]) if count > 1 else 0
        used = {self.core_of[cn] for cn in members}
        return all(
            bits[operand] <= system.memory_capacity_bits[memory]
            for core in used
            for operand in bits
            if (memory := int(system.core_memory[core, operand])) >= 0
        )

    def prepare_next(self, core: int) -> bool:
        """Fill the slot of a core, or change it for a better CN."""
        slot = self.slot[core]
        if slot is None:
            if not self.candidates[core]:
                return False
            self.slot[core] = self.choose(core)
            self.candidates[core].remove(self.slot[core].cn)
            self.new_candidate[core] = False
            self.requests.append(("core", core))
            return True
        if not slot.tentative or not self.new_candidate[core]:
            return False
        self.new_candidate[core] = False
        ready = max((self.end[before] for before in self.predecessors[slot.cn]), default=0)
        if ready <= max(self.now, self.busy_until[core]):
            slot.tentative = False
            return False
        self.candidates[core].add(slot.cn)
        better = self.choose(core)
        self.candidates[core].remove(better.cn)
        if better.cn == slot.cn:
            slot.tentative = better.tentative
            return False
        if slot.claimed:
            for copy in self.places(slot.cn):
                self.unpin(copy)
        self.slot[core] = better
        return True

    def start_node(self, core: int) -> bool:
        """Start the prepared CN if all its copies are present."""
        slot = self.slot[core]
        assert slot is not None
        cn = slot.cn
        if self.running[core] is not None or any(self.end[before] > self.now for before in self.predecessors[cn]):
            return False
        if any(self.copies[place].state != "present" for place in self.needs[cn]):
            return False
        if any(self.off_chip[piece] != "there" for piece in self.streamed[cn]):
            return False
        made = [self.copies[self.home[piece]] for piece in self.outputs[cn] if piece in self.home]
        memory = int(self.system.core_memory[core, 0])
        bits = sum(self.bits[copy.piece] for copy in made)
        if bits and self.stored[memory] + bits > self.system.memory_capacity_bits[memory]:
            return False
        cycles = self.start_streams(cn, core)
        if cycles == 0:
            return False
        self.start[cn], self.end[cn] = self.now, self.now + cycles
        self.running[core], self.busy_until[core], self.slot[core] = cn, self.now + cycles, None
        for copy in made:
            self.begin(copy, None)
        self.started[cn] = True
        self.add_event(self.end[cn], ("node", core))
        for after in self.successors[cn]:
            if all(self.started[before] for before in self.predecessors[after]):
                self.candidates[self.core_of[after]].add(after)
                self.new_candidate[self.core_of[after]] = True
        return True

    def start_streams(self, cn: int, core: int) -> int:
        """Start the streams of a CN; returns its cycles, or 0 if links are too full."""
        demand: dict[int, int] = defaultdict(int)
        load: dict[int, int] = defaultdict(int)
        for operand, (bits, rate) in self.streams[cn].items():
            for link in self.path(core, self.off_core) if operand == 0 else self.path(self.off_core, core):
                demand[link] += rate
                load[link] += bits
        cycles, shares = self.runtime[cn], {}
        for link in demand:
            full = min(demand[link], int(self.system.link_bits_per_cycle[link]))
            shares[link] = min(full, self.free[link])
            if shares[link] * self.options.share_divisor < full:
                return 0
            cycles = max(cycles, -(-load[link] // shares[link]))
        self.shares[core] = shares
        for link, share in shares.items():
            self.free[link] -= share
            self.link_bits[1, link] += load[link]
        for operand, (bits, _) in self.streams[cn].items():
            if operand == 0:
                words = -(-bits // int(self.system.memory_write_bits[self.off_memory]))
                self.words_written[1, self.off_memory] += words
            else:
                self.words_read[1, self.off_memory] += -(-bits // int(self.system.memory_read_bits[self.off_memory]))
        return cycles

    def serve(self, kind: str, who: int) -> bool:
        """Start one action for a request."""
        if kind == "memory":
            copy, cause = self.writes[who][0]
            rate = self.share(copy.core, self.off_core, who, self.off_memory, self.bits[copy.piece])
            if rate:
                self.writes[who].pop(0)
                self.fly(copy, cause, copy.core, self.off_core, (who, self.off_memory), rate)
            return rate > 0
        slot = self.slot[who]
        if slot is None or not slot.claimed:
            return False
        copy = self.next_fetch(slot)
        return self.start_node(who) if copy is None else self.fetch(copy, who)

    def act(self) -> None:
        """Do everything that can start at this time."""
        changed = True
        while changed:
            changed = False
            for core in self.slot:
                changed |= self.prepare_next(core)
            for slot in self.slot.values():
                if slot is not None and not slot.claimed and self.claim(slot.cn):
                    slot.claimed = changed = True
            kept, moved = [], []
            for kind, who in self.requests:
                if not self.serve(kind, who):
                    kept.append((kind, who))
                    continue
                changed = True
                if self.writes[who] if kind == "memory" else self.slot[who] is not None:
                    moved.append((kind, who))
            self.requests = kept + moved
        for core in self.slot:
            self.forward(core)
        for core in self.slot:
            self.prefetch(core)
        self.peak = {memory: max(peak, self.stored[memory]) for memory, peak in self.peak.items()}

    def prefetch(self, core: int) -> None:
        """Start to fetch a constant ahead of its use."""
        waiting = self.prefetches[core]
        if self.prefetching[core]:
            return
        while waiting and (self.copies[waiting[0]].state != "absent" or self.copies[waiting[0]].uses == 0):
            waiting.pop(0)
        if not waiting:
            return
        copy = self.copies[waiting[0]]
        bits = self.bits[copy.piece]
        if self.claimed[copy.memory] + bits > self.system.memory_capacity_bits[copy.memory] or not self.fits(copy):
            return
        if self.is_forwarded(copy):
            if self.fetch(copy, core):
                self.claimed[copy.memory] += bits
                self.prefetching[core] = waiting[0]
            return
        rate = self.share(self.off_core, core, self.off_memory, copy.memory, bits)
        if rate:
            self.claimed[copy.memory] += bits
            self.begin(copy, None)
            self.prefetching[core] = waiting[0]
            self.fly(copy, "off_chip_fetch", self.off_core, core, (self.off_memory, copy.memory), rate)
            if self.is_spread_to_all(self.path(self.off_core, core)):
                self.spread(copy, "off_chip_fetch", self.off_core, core, self.off_memory, rate, None)

    def forward(self, core: int) -> None:
        """Start to fetch a result ahead of its use."""
        waiting = self.forwards[core]
        if self.forwarding[core]:
            return
        while waiting and (
            waiting[0].state != "absent" or waiting[0].uses == 0 or self.source_of(waiting[0], core) is None
        ):
            waiting.pop(0)
        if not waiting:
            return
        copy = waiting[0]
        if self.claimed[copy.memory] + self.bits[copy.piece] > self.system.memory_capacity_bits[copy.memory]:
            return
        if self.fetch(copy, core):
            self.claimed[copy.memory] += self.bits[copy.piece]
            self.forwarding[core] = copy.piece, copy.memory

    # Events.

    def run(self) -> "SlowScheduler":
        """Simulate until no event is left."""
        for cn in range(self.count):
            if not self.predecessors[cn]:
                self.candidates[self.core_of[cn]].add(cn)
                self.new_candidate[self.core_of[cn]] = True
        self.act()
        while self.events:
            self.now = min(self.events)[0]
            ending = sorted(event[:2] for event in self.events if event[0] == self.now)
            for cycles, number in ending:
                (event,) = [event for event in self.events if event[:2] == (cycles, number)]
                self.events.remove(event)
                if event[2][0] == "node":
                    self.end_node(event[2][1])
                else:
                    self.end_flight(*event[2][1:])
                self.sweep()
            self.act()
        return self

    def end_flight(self, copy: Copy, cause: str, core: int, links: list[int], rate: int, read: Copy | None) -> None:
        """End a transfer."""
        for link in links:
            self.free[link] += rate
        if cause in ("eviction", "sink_output"):
            self.off_chip[copy.piece] = "there"
            self.store(self.off_memory, self.bits[copy.piece])
            if copy.state == "leaving":
                copy.state = "absent"
                self.store(copy.memory, -self.bits[copy.piece])
            else:
                self.unpin(copy)
            return
        if self.prefetching[core] == (copy.piece, copy.memory):
            self.prefetching[core] = None
        if self.forwarding[core] == (copy.piece, copy.memory):
            self.forwarding[core] = None
        copy.state = "present"
        if read is not None:
            self.unpin(read)

    def end_node(self, core: int) -> None:
        """End a CN."""
        cn = self.running[core]
        assert cn is not None
        self.running[core] = None
        for link, share in self.shares.pop(core, {}).items():
            self.free[link] += share
        for piece in self.outputs[cn]:
            if piece not in self.home:
                self.off_chip[piece] = "there"
                self.store(self.off_memory, self.bits[piece])
                continue
            copy = self.copies[self.home[piece]]
            copy.state = "present"
            if self.options.prefetch_results:
                for other in self.elsewhere(piece):
                    self.forwards[other.core].append(other)
            if self.is_output[piece]:
                self.write(copy, "sink_output")
            elif self.stream_uses[piece] or any(place[0] == piece for place in self.detours):
                self.write(copy, "eviction")
            else:
                self.unpin(copy)
        for place in self.needs[cn]:
            self.copies[place].uses -= 1
            self.unpin(self.copies[place])
