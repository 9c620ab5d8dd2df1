"""The event loop of the scheduler (compiled): docs/scheduling.md has its rules."""

from tilewright.compiled import kernel
from tilewright.scheduling.access_kernel import bits_of, cost_of, memory_of, stream_of, words
from tilewright.scheduling.candidate_kernel import add_candidate, add_event, claim_next, pop_event, prepare_next
from tilewright.scheduling.prepare_kernel import prepare
from tilewright.scheduling.residency_kernel import store, unpin
from tilewright.scheduling.state_record import (
    ARRIVING,
    CLAIMED,
    DONE,
    EMPTY,
    NONE,
    OFF_CHIP,
    OFF_CHIP_STREAM,
    PRESENT,
    STUCK,
    cell_at,
    copy_at,
    core_at,
    event_at,
    link_at,
    link_state_at,
    memory_at,
    memory_state_at,
    need_at,
    node_at,
    node_state_at,
    pair_at,
    piece_at,
    piece_state_at,
    stream_log_at,
)
from tilewright.scheduling.transfer_kernel import end_flight, fetch, prefetch, produce, skip_served, write_first


@kernel
def run(q, s, _count):
    """Simulate from time 0 until nothing is left to happen; `s.status` says how it went. Entry points take a count."""
    prepare(q, s)
    if s.status != DONE:
        return
    for cn in range(q.node_count):
        if node_state_at(s.nodes, cn).unstarted == 0:
            add_candidate(q, s, cn)
    act(q, s)
    while s.events_count > 0:
        s.now = event_at(s.events, 0).cycles
        while s.events_count > 0 and event_at(s.events, 0).cycles == s.now:
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
    cores = q.core_count
    changed = True
    while changed:
        changed = False
        for core in range(cores):
            changed = prepare_next(q, s, core) or changed
        for core in range(cores):
            changed = claim_next(q, s, core) or changed
        changed = serve_requests(q, s) or changed
    for core in range(cores):
        prefetch(q, s, core)
    for i in range(q.memory_count):
        memory = memory_state_at(s.memories, i)
        memory.peak_bits = max(memory.peak_bits, memory.stored_bits)


@kernel
def serve_requests(q, s):
    """Go once through the requests, oldest first; one that got something goes to the end. True if any did."""
    count = s.requests_count
    kept = 0
    moved = 0
    for i in range(count):
        who = cell_at(s.request, i).value
        served = serve(q, s, who)
        if not served:
            cell_at(s.request, kept).value = who
            kept += 1
        elif is_waiting(q, s, who):
            cell_at(s.request, count + moved).value = who
            moved += 1
    for i in range(moved):
        cell_at(s.request, kept + i).value = cell_at(s.request, count + i).value
    s.requests_count = kept + moved
    return kept < count


@kernel
def serve(q, s, who):
    """Start one thing for a core or, beyond the cores, for the writes of a memory; True if that was possible."""
    cores = q.core_count
    if who >= cores:
        return write_first(q, s, who - cores)
    if core_at(s.cores, who).slot_state != CLAIMED:
        return False
    skip_served(q, s, who)
    need = core_at(s.cores, who).issued
    if need < node_at(q.nodes, core_at(s.cores, who).slot + 1).need_start:
        return fetch(q, s, cell_at(s.need_copy, need).value, who)
    return can_start(q, s, who) and start_node(q, s, who)


@kernel
def is_waiting(q, s, who):
    """Whether there is more to be started for a core or a memory."""
    cores = q.core_count
    if who >= cores:
        return memory_state_at(s.memories, who - cores).write_first != NONE
    return core_at(s.cores, who).slot_state != EMPTY


@kernel
def can_start(q, s, core):
    """Whether the prepared CN has an idle core, its predecessors' ends, all inputs and space for what it makes."""
    cn = core_at(s.cores, core).slot
    if core_at(s.cores, core).running != NONE or node_state_at(s.nodes, cn).ready_cycles > s.now:
        return False
    while core_at(s.cores, core).arrived < node_at(q.nodes, cn + 1).need_start:
        need = core_at(s.cores, core).arrived
        copy = cell_at(s.need_copy, need).value
        if copy >= 0 and copy_at(s.copies, copy).state != PRESENT:
            return False
        if copy < 0 and piece_state_at(s.pieces, need_at(q.needs, need).piece).off_chip != OFF_CHIP:
            return False
        core_at(s.cores, core).arrived += 1
    bits = 0
    for k in range(node_at(q.nodes, cn).output_start, node_at(q.nodes, cn + 1).output_start):
        bits += piece_at(q.pieces, cell_at(q.output_piece, k).value).bits
    memory = memory_of(q, core, 0)
    streams_out = stream_of(q, node_at(q.nodes, cn).cost_row, core, 0).bits > 0
    return (
        bits == 0
        or streams_out
        or memory_state_at(s.memories, memory).stored_bits + bits <= memory_at(q.memories, memory).capacity_bits
    )


@kernel
def start_node(q, s, core):
    """Start the prepared CN unless a link that it streams over has too little width left; True if it started."""
    cn = core_at(s.cores, core).slot
    cycles = start_streams(q, s, core, cn)
    if cycles == 0:
        return False
    end = s.now + cycles
    node_state_at(s.nodes, cn).start_cycles = s.now
    node_state_at(s.nodes, cn).end_cycles = end
    core_at(s.cores, core).running = cn
    core_at(s.cores, core).busy_until = end
    core_at(s.cores, core).slot = NONE
    core_at(s.cores, core).slot_state = EMPTY
    for k in range(node_at(q.nodes, cn).output_start, node_at(q.nodes, cn + 1).output_start):
        copy = piece_state_at(s.pieces, cell_at(q.output_piece, k).value).home
        if copy >= 0:
            copy_at(s.copies, copy).state = ARRIVING
            store(q, s, copy_at(s.copies, copy).memory, bits_of(q, s, copy))
    add_event(s, end, core)
    for k in range(node_at(q.nodes, cn).successor_start, node_at(q.nodes, cn + 1).successor_start):
        successor = cell_at(q.successor, k).value
        node_state_at(s.nodes, successor).ready_cycles = max(node_state_at(s.nodes, successor).ready_cycles, end)
        node_state_at(s.nodes, successor).unstarted -= 1
        if node_state_at(s.nodes, successor).unstarted == 0:
            add_candidate(q, s, successor)
    return True


@kernel
def start_streams(q, s, core, cn):
    """Cycles that the CN takes if it starts now, 0 if it must wait for links; takes its shares of them.

    On each link the CN asks for the sum of the bandwidths of its streams and gets that or what is free.
    """
    row = node_at(q.nodes, cn).cost_row
    cycles = cost_of(q, row, core).runtime_cycles
    if not cost_of(q, row, core).has_streams:
        return cycles
    for link in range(q.link_count):
        link_state_at(s.links, link).demand = 0
        link_state_at(s.links, link).load = 0
    for operand in range(q.operand_count):
        stream = stream_of(q, row, core, operand)
        if stream.bits > 0:
            pair = stream_pair(q, core, operand)
            for hop in range(pair_at(q.pairs, pair).start, pair_at(q.pairs, pair + 1).start):
                state = link_state_at(s.links, cell_at(q.path_link, hop).value)
                state.demand += stream.bits_per_cycle
                state.load += stream.bits
    for link in range(q.link_count):
        state = link_state_at(s.links, link)
        if state.demand > 0:
            full = min(state.demand, link_at(q.links, link).bits_per_cycle)
            share = min(full, state.free_bits_per_cycle)
            if share * q.share_divisor < full:
                return 0
            state.demand = share
            cycles = max(cycles, words(state.load, share))
    for link in range(q.link_count):
        state = link_state_at(s.links, link)
        cell_at(s.stream_share, core * q.link_count + link).value = state.demand
        state.free_bits_per_cycle -= state.demand
        cell_at(s.link_bits, OFF_CHIP_STREAM * q.link_count + link).value += state.load
        if state.demand > 0 and q.record:
            log_stream(s, cn, link, s.now + cycles)
    count_stream_words(q, s, row, core)
    return cycles


@kernel
def count_stream_words(q, s, row, core):
    """Words at the off-chip end of the streams of a CN."""
    memory = q.off_chip_memory
    for operand in range(q.operand_count):
        bits = stream_of(q, row, core, operand).bits
        if operand == 0:
            cell_at(s.words_written, OFF_CHIP_STREAM * q.memory_count + memory).value += words(
                bits, memory_at(q.memories, memory).write_bits
            )
        else:
            cell_at(s.words_read, OFF_CHIP_STREAM * q.memory_count + memory).value += words(
                bits, memory_at(q.memories, memory).read_bits
            )


@kernel
def stream_pair(q, core, operand):
    """The pair of cores between which an operand streams."""
    cores = q.core_count
    if operand == 0:
        return core * cores + q.off_chip_core
    return q.off_chip_core * cores + core


@kernel
def log_stream(s, cn, link, end):
    """Add a row to the log; rows beyond its room are counted only."""
    row = s.streams_count
    s.streams_count = row + 1
    if row < s.stream_room:
        stream_log_at(s.streams, row).cn = cn
        stream_log_at(s.streams, row).link = link
        stream_log_at(s.streams, row).start_cycles = s.now
        stream_log_at(s.streams, row).end_cycles = end
        stream_log_at(s.streams, row).bits_per_cycle = link_state_at(s.links, link).demand
        stream_log_at(s.streams, row).bits = link_state_at(s.links, link).load


@kernel
def end_node(q, s, core):
    """The CN on a core ends: what it made is there, what it needed has one use less."""
    cn = core_at(s.cores, core).running
    core_at(s.cores, core).running = NONE
    s.finished += 1
    if cost_of(q, node_at(q.nodes, cn).cost_row, core).has_streams:
        for link in range(q.link_count):
            link_state_at(s.links, link).free_bits_per_cycle += cell_at(
                s.stream_share, core * q.link_count + link
            ).value
            cell_at(s.stream_share, core * q.link_count + link).value = 0
    for k in range(node_at(q.nodes, cn).output_start, node_at(q.nodes, cn + 1).output_start):
        produce(q, s, cell_at(q.output_piece, k).value)
    for need in range(node_at(q.nodes, cn).need_start, node_at(q.nodes, cn + 1).need_start):
        copy = cell_at(s.need_copy, need).value
        if copy >= 0:
            copy_at(s.copies, copy).uses -= 1
            unpin(q, s, copy)
