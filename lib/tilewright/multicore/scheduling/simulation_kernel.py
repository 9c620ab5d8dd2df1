"""The event loop of the scheduler (compiled): docs/multi-core-model.md#scheduling has its rules."""

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
    """Simulate from time 0 until nothing is left to happen; `s.status` says how it went. Entry points take a count."""
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
    """Do all that can be done at this time: choices and claims, then requests from the oldest on, then prefetches."""
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
    """Go once through the requests, oldest first; one that got something goes to the end. True if any did."""
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
    """Start one thing for a core or, beyond the cores, for the writes of a memory; True if that was possible."""
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
    """Whether there is more to be started for a core or a memory."""
    if who >= q.core_count:
        return at.memory_state(s, who - q.core_count).write_first != NONE
    return at.core(s, who).slot_state != EMPTY


@kernel
def can_start(q, s, core):
    """Whether the prepared CN has an idle core, its predecessors' ends, all inputs and space for what it makes."""
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
    """Start the prepared CN unless a link that it streams over has too little width left; True if it started."""
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
    """One of the predecessors of a CN has started and ends then; with the last one the CN is a candidate."""
    after = at.node_state(s, cn)
    after.ready_cycles = max(after.ready_cycles, end)
    after.unstarted -= 1
    if after.unstarted == 0:
        add_candidate(q, s, cn)


@kernel
def pass_barrier(q, s, cn, end):
    """Count a CN of a stack that has started; the last one is what all CNs of the next stack wait for."""
    s.stacks_end = max(s.stacks_end, end)
    stack = at.stack_of(q, cn)
    left = at.cell(s.stack_left, stack)
    left.value -= 1
    if left.value == 0 and stack + 1 < q.stack_count:
        for place in at.places_of_stack(q, stack + 1):
            predecessor_started(q, s, at.stack_cn(q, place), s.stacks_end)


@kernel
def start_streams(q, s, core, cn):
    """Cycles that the CN takes if it starts now, 0 if it must wait for links; takes its shares of them.

    On each link the CN asks for the sum of the bandwidths of its streams and gets that or what is free.
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
    """Words at the off-chip end of the streams of a CN."""
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
    """The pair of cores between which an operand streams."""
    return at.pair_of(q, core, q.off_chip_core) if operand == 0 else at.pair_of(q, q.off_chip_core, core)


@kernel
def log_stream(s, cn, link, end):
    """Add a row to the log; rows beyond its room are counted only."""
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
    """The CN on a core ends: what it made is there, what it needed has one use less."""
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
