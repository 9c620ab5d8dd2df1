"""Compiled event loop of the scheduler (rules: docs/multi-core-model.md#scheduling)."""

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
from tilewright.multicore.scheduling.state_record import (
    ARRIVING,
    CLAIMED,
    DONE,
    EMPTY,
    NONE,
    OFF_CHIP,
    OFF_CHIP_STREAM,
    PRESENT,
    STUCK,
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
    """Simulate from time 0 until no event is left, and write the outcome to `s.status`.

    All entry points of compiled code take a count; this one ignores it.
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
    """Perform all actions that are possible at the current time. First come choices of CNs and claims, then requests
    from the oldest to the newest, and finally prefetches.
    """
    changed = True
    while changed:
        changed = False
        for core in range(q.core_count):
            changed = prepare_next(q, s, core) or changed
        for core in range(q.core_count):
            changed = claim_next(q, s, core) or changed
        changed = serve_requests(q, s) or changed
    if q.prefetches_results:
        for core in range(q.core_count):
            forward(q, s, core)
    for core in range(q.core_count):
        prefetch(q, s, core)
    for memory in range(q.memory_count):
        room = at.memory_state(s, memory)
        room.peak_bits = max(room.peak_bits, room.stored_bits)


@kernel
def serve_requests(q, s):
    """Try to serve each request once, from the oldest to the newest. Returns True if any request is served.

    A served request moves to the end of the queue if its core or memory still waits. Otherwise it is removed.
    """
    count = s.requests_count
    kept = 0
    moved = 0
    for i in range(count):
        who = at.request(s, i).value
        served = serve(q, s, who)
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
def serve(q, s, who):
    """Start one action of a requester: a fetch or the prepared CN of a core, or a write of a memory. Returns True if it
    starts.

    `who` is the number of a core, or the number of cores plus the number of a memory.
    """
    if who >= q.core_count:
        return write_first(q, s, who - q.core_count)
    state = at.core(s, who)
    if state.slot_state != CLAIMED:
        return False
    skip_served(q, s, who)
    if state.issued < at.needs_of(q, state.slot).stop:
        return fetch(q, s, at.need_copy(s, state.issued), who)
    return can_start(q, s, who) and start_node(q, s, who)


@kernel
def is_waiting(q, s, who):
    """True if a core still has a CN in its slot, or a memory still has copies to write off-chip."""
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
    """Count a predecessor that has started and ends at `end`. The CN becomes a candidate when all its predecessors have
    started.
    """
    after = at.node_state(s, cn)
    after.ready_cycles = max(after.ready_cycles, end)
    after.unstarted -= 1
    if after.unstarted == 0:
        add_candidate(q, s, cn)


@kernel
def pass_barrier(q, s, cn, end):
    """Count a CN of a stack that has started. CNs of the next stack wait until all CNs of this stack are counted."""
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

    On each link, the CN asks for the sum of the bandwidths of its streams, at most the bandwidth of the link. It gets
    this sum or the free bandwidth, whichever is less. If a link has too little free bandwidth, the CN must wait. The
    function then reserves nothing and returns 0.
    """
    cycles = at.cost(q, cn, core).runtime_cycles
    if not at.cost(q, cn, core).has_streams:
        return cycles
    for link in range(q.link_count):
        at.link_state(s, link).demand = 0
        at.link_state(s, link).load = 0
    for operand in range(q.operand_count):
        stream = at.stream(q, cn, core, operand)
        if stream.bits > 0:
            for hop in at.hops_of(q, stream_pair(q, core, operand)):
                state = at.link_state(s, at.link_of(q, hop))
                state.demand += stream.bits_per_cycle
                state.load += stream.bits
    for link in range(q.link_count):
        state = at.link_state(s, link)
        if state.demand > 0:
            full = min(state.demand, at.link(q, link).bits_per_cycle)
            share = min(full, state.free_bits_per_cycle)
            if share * q.share_divisor < full:
                return 0
            state.demand = share
            cycles = max(cycles, at.words(state.load, share))
    for link in range(q.link_count):
        state = at.link_state(s, link)
        at.stream_share(q, s, core, link).value = state.demand
        state.free_bits_per_cycle -= state.demand
        at.link_bits(q, s, OFF_CHIP_STREAM, link).value += state.load
        if state.demand > 0 and q.record:
            log_stream(s, cn, link, s.now + cycles)
    count_stream_words(q, s, cn, core)
    return cycles


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
    """Number of the pair of cores between which an operand's stream flows."""
    return at.pair_of(q, core, q.off_chip_core) if operand == 0 else at.pair_of(q, q.off_chip_core, core)


@kernel
def log_stream(s, cn, link, end):
    """Add a row to the log of streams. If the log is full, only the number of rows rises."""
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
    """End a CN on a core: free its links, make its outputs present, and remove one use of each copy that it needed."""
    cn = at.core(s, core).running
    at.core(s, core).running = NONE
    s.finished += 1
    if at.cost(q, cn, core).has_streams:
        for link in range(q.link_count):
            share = at.stream_share(q, s, core, link)
            at.link_state(s, link).free_bits_per_cycle += share.value
            share.value = 0
    for output in at.outputs_of(q, cn):
        produce(q, s, at.output_piece(q, output))
    for need in at.needs_of(q, cn):
        copy = at.need_copy(s, need)
        if copy >= 0:
            at.copy(s, copy).uses -= 1
            unpin(q, s, copy)
