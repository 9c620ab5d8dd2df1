"""Compiled event loop of the scheduler (rules: docs/multi-core-model/scheduling.md)."""

from tilewright.base.compiled import kernel
from tilewright.multicore.scheduling import access_kernel as at
from tilewright.multicore.scheduling.candidate_kernel import (
    add_candidate,
    add_event,
    claim_next,
    pop_event,
    prepare_next,
)
from tilewright.multicore.scheduling.prepare_kernel import prepare
from tilewright.multicore.scheduling.residency_kernel import store, unpin
from tilewright.multicore.scheduling.share_kernel import is_asleep
from tilewright.multicore.scheduling.state_record import (
    ARRIVING,
    AWAKE,
    CLAIMED,
    DONE,
    EMPTY,
    NONE,
    OFF_CHIP,
    OFF_CHIP_STREAM,
    PRESENT,
    STUCK,
    UNTIL_WIDTH,
    UNTIL_WOKEN,
)
from tilewright.multicore.scheduling.transfer_kernel import (
    end_flight,
    fetch,
    forward,
    prefetch,
    produce,
    skip_served,
    write_first,
)


@kernel
def run(q, s, _count):
    """Simulate from time 0 until no event is left, and write the outcome to `s.status`. The argument `_count` is
    ignored. Every entry point of compiled code has this argument.
    """
    prepare(q, s)
    if s.status != DONE:
        return
    for cn in range(q.node_count):
        if at.node_state(s, cn).unstarted == 0:
            add_candidate(q, s, cn)
    act(q, s)
    while s.events_count > 0:
        s.now = at.event(s, 0).cycles
        while s.events_count > 0 and at.event(s, 0).cycles == s.now:
            what = pop_event(s)
            if what < q.core_count:
                end_node(q, s, what)
            else:
                end_flight(q, s, what - q.core_count)
        act(q, s)
    if s.finished < q.node_count:
        s.status = STUCK


@kernel
def act(q, s):
    """Perform all actions that are possible at the current time. Cores choose CNs and claim space for them, and
    requests are served from the oldest to the newest. These steps are repeated until nothing changes. Then cores start
    prefetches.
    """
    changed = True
    while changed:
        changed = prepare_cores(q, s)
        changed = claim_for_cores(q, s) or changed
        changed = serve_requests(q, s) or changed
    core = at.next_flag(s.to_forward, 0, q.core_count)
    while core < q.core_count:
        forward(q, s, core)
        core = at.next_flag(s.to_forward, core + 1, q.core_count)
    core = at.next_flag(s.to_prefetch, 0, q.core_count)
    while core < q.core_count:
        prefetch(q, s, core)
        core = at.next_flag(s.to_prefetch, core + 1, q.core_count)
    memory = at.next_flag(s.changed_memory, 0, q.memory_count)
    while memory < q.memory_count:
        at.lower_flag(s.changed_memory, memory)
        room = at.memory_state(s, memory)
        room.peak_bits = max(room.peak_bits, room.stored_bits)
        memory = at.next_flag(s.changed_memory, memory + 1, q.memory_count)


@kernel
def prepare_cores(q, s):
    """Let cores choose the CNs that they prepare. A core chooses only if it got a new candidate, or started its CN,
    since its last choice. Returns True if a core now prepares another CN than before.
    """
    changed = False
    core = at.next_flag(s.to_prepare, 0, q.core_count)
    while core < q.core_count:
        at.lower_flag(s.to_prepare, core)
        changed = prepare_next(q, s, core) or changed
        core = at.next_flag(s.to_prepare, core + 1, q.core_count)
    return changed


@kernel
def claim_for_cores(q, s):
    """Try to claim space for the CN of each core whose CN has no space yet. Returns True if a claim succeeds."""
    changed = False
    core = at.next_flag(s.to_claim, 0, q.core_count)
    while core < q.core_count:
        changed = claim_next(q, s, core) or changed
        core = at.next_flag(s.to_claim, core + 1, q.core_count)
    return changed


@kernel
def serve_requests(q, s):
    """Try to serve each request once, from the oldest to the newest. Returns True if any request is served.

    If the core or memory of a served request still waits, the request moves to the end of the queue; otherwise, it is
    removed. A request that failed is tried again only after a change that can let it succeed (`is_asleep`).
    """
    count = s.requests_count
    kept = 0
    moved = 0
    for i in range(count):
        who = at.request(s, i).value
        served = not is_asleep(s, who) and serve_awake(q, s, who)
        if not served:
            at.request(s, kept).value = who
            kept += 1
        elif is_waiting(q, s, who):
            at.request(s, count + moved).value = who
            moved += 1
    for i in range(moved):
        at.request(s, kept + i).value = at.request(s, count + i).value
    s.requests_count = kept + moved
    return kept < count


@kernel
def serve_awake(q, s, who):
    """Start one action for a requester, as `serve` does. If the action cannot start, no new attempt is made until a
    change wakes the requester.
    """
    at.wait(s, who).asleep = UNTIL_WOKEN
    served = serve(q, s, who)
    if served:
        at.wait(s, who).asleep = AWAKE
    return served


@kernel
def serve(q, s, who):
    """Start one action for a requester: a core fetches data or starts its prepared CN; a memory starts a write to the
    off-chip memory. Returns True if the action starts. `who` is the number of a core, or, for a memory, its number plus
    the number of cores.
    """
    if who >= q.core_count:
        return write_first(q, s, who - q.core_count)
    state = at.core(s, who)
    if state.slot_state != CLAIMED:
        return False
    skip_served(q, s, who)
    if state.issued < at.needs_of(q, state.slot).stop:
        return fetch(q, s, at.need_copy(s, state.issued), who, who)
    return can_start(q, s, who) and start_node(q, s, who)


@kernel
def is_waiting(q, s, who):
    """True if a requester still waits. A core waits if it has a CN in its slot. A memory waits if it has copies to
    write off-chip.
    """
    if who >= q.core_count:
        return at.memory_state(s, who - q.core_count).write_first != NONE
    return at.core(s, who).slot_state != EMPTY


@kernel
def can_start(q, s, core):
    """True if the prepared CN of a core can start.

    The core must be idle, all predecessors must have ended, all inputs must be present, and the outputs must have
    space.
    """
    state = at.core(s, core)
    cn = state.slot
    if state.running != NONE or at.node_state(s, cn).ready_cycles > s.now:
        return False
    while state.arrived < at.needs_of(q, cn).stop:
        copy = at.need_copy(s, state.arrived)
        if copy >= 0 and at.copy(s, copy).state != PRESENT:
            return False
        if copy < 0 and at.piece_state(s, at.need(q, state.arrived).piece).off_chip != OFF_CHIP:
            return False
        state.arrived += 1
    bits = 0
    for output in at.outputs_of(q, cn):
        bits += at.piece(q, at.output_piece(q, output)).bits
    streams_out = at.stream(q, cn, core, 0).bits > 0
    return bits == 0 or streams_out or at.fits(q, s, at.memory_of(q, core, 0), bits)


@kernel
def start_node(q, s, core):
    """Start the prepared CN if all links of its streams have enough free bandwidth. Returns True if the CN starts."""
    state = at.core(s, core)
    cn = state.slot
    cycles = start_streams(q, s, core, cn)
    if cycles == 0:
        return False
    end = s.now + cycles
    at.node_state(s, cn).start_cycles = s.now
    at.node_state(s, cn).end_cycles = end
    state.running = cn
    state.busy_until = end
    state.slot = NONE
    state.slot_state = EMPTY
    at.raise_flag(s.to_prepare, core)
    for output in at.outputs_of(q, cn):
        copy = at.home_of_output(q, s, output)
        if copy >= 0:
            at.copy(s, copy).state = ARRIVING
            store(q, s, at.copy(s, copy).memory, at.bits_of(q, s, copy))
    add_event(s, end, core)
    for edge in at.successors_of(q, cn):
        predecessor_started(q, s, at.successor(q, edge), end)
    if q.stack_count > 0:
        pass_barrier(q, s, cn, end)
    return True


@kernel
def predecessor_started(q, s, cn, end):
    """Count a started predecessor of a CN; the predecessor ends at the time `end`. The CN becomes a candidate when all
    its predecessors have started.
    """
    after = at.node_state(s, cn)
    after.ready_cycles = max(after.ready_cycles, end)
    after.unstarted -= 1
    if after.unstarted == 0:
        add_candidate(q, s, cn)


@kernel
def pass_barrier(q, s, cn, end):
    """Count a CN as started in its stack; the CN ends at the time `end`. When all CNs of the stack have started, the
    end of the stack is known. CNs of the next stack can then be chosen; they can start from this end on.
    """
    s.stacks_end = max(s.stacks_end, end)
    stack = at.stack_of(q, cn)
    left = at.cell(s.stack_left, stack)
    left.value -= 1
    if left.value == 0 and stack + 1 < q.stack_count:
        for place in at.places_of_stack(q, stack + 1):
            predecessor_started(q, s, at.stack_cn(q, place), s.stacks_end)


@kernel
def start_streams(q, s, core, cn):
    """Reserve bandwidth of the links for the streams of a CN that starts now. Returns the number of cycles that the CN
    takes.

    On each link, the CN requests the sum of the bandwidths of its streams, but at most the bandwidth of the link. The
    CN gets the smaller of two amounts: the requested bandwidth and the free bandwidth. If the free bandwidth of a link
    is less than 1 / `share_divisor` of the requested bandwidth, the CN must wait. The function then reserves nothing
    and returns 0.
    """
    cycles = at.cost(q, cn, core).runtime_cycles
    if not at.cost(q, cn, core).has_streams:
        return cycles
    count = list_stream_links(q, s, core, cn)
    for number in range(count):
        link = at.stream_link(q, s, core, number).value
        state = at.link_state(s, link)
        full = min(state.demand, at.link(q, link).bits_per_cycle)
        share = min(full, state.free_bits_per_cycle)
        if share * q.share_divisor < full:
            wait_for_stream(q, s, core, link, full)
            return 0
        state.demand = share
        cycles = max(cycles, at.words(state.load, share))
    for number in range(count):
        link = at.stream_link(q, s, core, number).value
        state = at.link_state(s, link)
        at.stream_share(q, s, core, number).value = state.demand
        state.free_bits_per_cycle -= state.demand
        at.link_bits(q, s, OFF_CHIP_STREAM, link).value += state.load
        if q.record:
            log_stream(s, cn, link, s.now + cycles)
    at.core(s, core).stream_count = count
    count_stream_words(q, s, cn, core)
    return cycles


@kernel
def wait_for_stream(q, s, core, link, full):
    """Let the request of a core wait until a link has enough free bandwidth for the streams of the core's CN. The CN
    requests `full` bits per cycle on this link. A share of 1 / `share_divisor` of this bandwidth is enough.
    """
    wait = at.wait(s, core)
    wait.copy = NONE
    wait.link = link
    wait.needed_bits_per_cycle = at.words(full, q.share_divisor)
    wait.asleep = UNTIL_WIDTH


@kernel
def list_stream_links(q, s, core, cn):
    """List the links that the streams of a CN use, each once and in rising order. For each of these links, add up the
    demand and the load of the streams. Returns the number of links.
    """
    for operand in range(q.operand_count):
        if at.stream(q, cn, core, operand).bits > 0:
            for hop in at.hops_of(q, stream_pair(q, core, operand)):
                at.link_state(s, at.link_of(q, hop)).demand = 0
                at.link_state(s, at.link_of(q, hop)).load = 0
    count = 0
    for operand in range(q.operand_count):
        stream = at.stream(q, cn, core, operand)
        if stream.bits > 0:
            for hop in at.hops_of(q, stream_pair(q, core, operand)):
                link = at.link_of(q, hop)
                if at.link_state(s, link).demand == 0:
                    insert_stream_link(q, s, core, count, link)
                    count += 1
                at.link_state(s, link).demand += stream.bits_per_cycle
                at.link_state(s, link).load += stream.bits
    return count


@kernel
def insert_stream_link(q, s, core, count, link):
    """Insert a link into the sorted list of the links that the streams of a core use. The list has `count` links."""
    number = count
    while number > 0 and at.stream_link(q, s, core, number - 1).value > link:
        at.stream_link(q, s, core, number).value = at.stream_link(q, s, core, number - 1).value
        number -= 1
    at.stream_link(q, s, core, number).value = link


@kernel
def count_stream_words(q, s, cn, core):
    """Count the words that the streams of a CN read from and write to the off-chip memory."""
    memory = at.memory(q, q.off_chip_memory)
    for operand in range(q.operand_count):
        bits = at.stream(q, cn, core, operand).bits
        if operand == 0:
            words = at.words(bits, memory.write_bits)
            at.words_written(q, s, OFF_CHIP_STREAM, q.off_chip_memory).value += words
        else:
            at.words_read(q, s, OFF_CHIP_STREAM, q.off_chip_memory).value += at.words(bits, memory.read_bits)


@kernel
def stream_pair(q, core, operand):
    """Number of the pair (source core, target core) between which an operand's stream flows. Outputs stream from the
    core to the off-chip core, inputs in the other direction."""
    return at.pair_of(q, core, q.off_chip_core) if operand == 0 else at.pair_of(q, q.off_chip_core, core)


@kernel
def log_stream(s, cn, link, end):
    """Add a row to the log of streams. If the log is full, the row is only counted."""
    row = s.streams_count
    s.streams_count = row + 1
    if row < s.stream_room:
        stream = at.stream_row(s, row)
        stream.cn = cn
        stream.link = link
        stream.start_cycles = s.now
        stream.end_cycles = end
        stream.bits_per_cycle = at.link_state(s, link).demand
        stream.bits = at.link_state(s, link).load


@kernel
def end_node(q, s, core):
    """End a CN on a core: free the links of its streams, make its outputs present, and remove its uses and its pins
    from the copies that it needed.
    """
    cn = at.core(s, core).running
    at.core(s, core).running = NONE
    s.finished += 1
    at.wait(s, core).asleep = AWAKE
    for edge in at.successors_of(q, cn):
        at.wait(s, at.core_of(q, at.successor(q, edge))).asleep = AWAKE
    if q.stack_count > 0:
        for other in range(q.core_count):
            at.wait(s, other).asleep = AWAKE
    if at.cost(q, cn, core).has_streams:
        for number in range(at.core(s, core).stream_count):
            link = at.stream_link(q, s, core, number).value
            at.link_state(s, link).free_bits_per_cycle += at.stream_share(q, s, core, number).value
    for output in at.outputs_of(q, cn):
        produce(q, s, at.output_piece(q, output))
    for need in at.needs_of(q, cn):
        copy = at.need_copy(s, need)
        if copy >= 0:
            at.copy(s, copy).uses -= 1
            unpin(q, s, copy)
