"""The event loop of the scheduler (compiled): docs/scheduling.md has its rules."""

from tilewright.compiled import kernel
from tilewright.schedule.candidate_kernel import add_candidate, add_event, claim_next, pop_event, prepare_next
from tilewright.schedule.prepare_kernel import prepare
from tilewright.schedule.residency_kernel import store, unpin
from tilewright.schedule.state import (
    ARRIVING,
    CLAIMED,
    DONE,
    EMPTY,
    EVENTS,
    FINISHED,
    NONE,
    NOW,
    OFF_CHIP,
    OFF_CHIP_CORE,
    OFF_CHIP_MEMORY,
    OFF_CHIP_STREAM,
    PRESENT,
    RECORD,
    REQUESTS,
    SHARE_DIVISOR,
    STATUS,
    STREAMS,
    STUCK,
)
from tilewright.schedule.transfer_kernel import end_flight, fetch, prefetch, produce, skip_served, words, write_first


@kernel
def run(q, s):
    """Simulate from time 0 until nothing is left to happen; scalars[STATUS] says how it went."""
    prepare(q, s)
    if s.scalars[STATUS] != DONE:
        return
    for cn in range(len(q.cost_row)):
        if s.unstarted[cn] == 0:
            add_candidate(q, s, cn)
    act(q, s)
    while s.scalars[EVENTS] > 0:
        s.scalars[NOW] = s.event_cycles[0]
        while s.scalars[EVENTS] > 0 and s.event_cycles[0] == s.scalars[NOW]:
            what = pop_event(s)
            if what < len(q.core_memory):
                end_node(q, s, what)
            else:
                end_flight(q, s, what - len(q.core_memory))
        act(q, s)
    if s.scalars[FINISHED] < len(q.cost_row):
        s.scalars[STATUS] = STUCK


@kernel
def act(q, s):
    """Do all that can be done at this time: choices and claims, then requests from the oldest on, then prefetches."""
    cores = len(q.core_memory)
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


@kernel
def serve_requests(q, s):
    """Go once through the requests, oldest first; one that got something goes to the end. True if any did."""
    count = s.scalars[REQUESTS]
    kept = 0
    moved = 0
    for i in range(count):
        who = s.request[i]
        served = serve(q, s, who)
        if not served:
            s.request[kept] = who
            kept += 1
        elif is_waiting(q, s, who):
            s.request[count + moved] = who
            moved += 1
    for i in range(moved):
        s.request[kept + i] = s.request[count + i]
    s.scalars[REQUESTS] = kept + moved
    return kept < count


@kernel
def serve(q, s, who):
    """Start one thing for a core or, beyond the cores, for the writes of a memory; True if that was possible."""
    cores = len(q.core_memory)
    if who >= cores:
        return write_first(q, s, who - cores)
    if s.slot_state[who] != CLAIMED:
        return False
    skip_served(q, s, who)
    need = s.issued[who]
    if need < q.need_start[s.slot[who] + 1]:
        return fetch(q, s, s.need_copy[need], who)
    return can_start(q, s, who) and start_node(q, s, who)


@kernel
def is_waiting(q, s, who):
    """Whether there is more to be started for a core or a memory."""
    cores = len(q.core_memory)
    if who >= cores:
        return s.write_first[who - cores] != NONE
    return s.slot_state[who] != EMPTY


@kernel
def can_start(q, s, core):
    """Whether the prepared CN has an idle core, its predecessors' ends, all inputs and space for what it makes."""
    cn = s.slot[core]
    if s.running[core] != NONE or s.ready_cycles[cn] > s.scalars[NOW]:
        return False
    while s.arrived[core] < q.need_start[cn + 1]:
        need = s.arrived[core]
        copy = s.need_copy[need]
        if copy >= 0 and s.copy_state[copy] != PRESENT:
            return False
        if copy < 0 and s.off_chip[q.need_piece[need]] != OFF_CHIP:
            return False
        s.arrived[core] += 1
    bits = 0
    for k in range(q.output_start[cn], q.output_start[cn + 1]):
        bits += q.piece_bits[q.output_piece[k]]
    memory = q.core_memory[core, 0]
    streams_out = q.stream_bits[q.cost_row[cn], core, 0] > 0
    return bits == 0 or streams_out or s.stored_bits[memory] + bits <= q.capacity_bits[memory]


@kernel
def start_node(q, s, core):
    """Start the prepared CN unless a link that it streams over has too little width left; True if it started."""
    cn = s.slot[core]
    cycles = start_streams(q, s, core, cn)
    if cycles == 0:
        return False
    end = s.scalars[NOW] + cycles
    s.start_cycles[cn] = s.scalars[NOW]
    s.end_cycles[cn] = end
    s.running[core] = cn
    s.busy_until[core] = end
    s.slot[core] = NONE
    s.slot_state[core] = EMPTY
    for k in range(q.output_start[cn], q.output_start[cn + 1]):
        copy = s.home[q.output_piece[k]]
        if copy >= 0:
            s.copy_state[copy] = ARRIVING
            store(q, s, s.copy_memory[copy], q.piece_bits[s.copy_piece[copy]])
    add_event(s, end, core)
    for k in range(q.successor_start[cn], q.successor_start[cn + 1]):
        successor = q.successor[k]
        s.ready_cycles[successor] = max(s.ready_cycles[successor], end)
        s.unstarted[successor] -= 1
        if s.unstarted[successor] == 0:
            add_candidate(q, s, successor)
    return True


@kernel
def start_streams(q, s, core, cn):
    """Cycles that the CN takes if it starts now, 0 if it must wait for links; takes its shares of them.

    On each link the CN asks for the sum of the bandwidths of its streams and gets that or what is free.
    """
    row = q.cost_row[cn]
    cycles = q.runtime_cycles[row, core]
    if not has_streams(q, row, core):
        return cycles
    links = len(q.link_bits_per_cycle)
    for link in range(links):
        s.demand[link] = 0
        s.load[link] = 0
    for operand in range(q.stream_bits.shape[2]):
        bits = q.stream_bits[row, core, operand]
        if bits > 0:
            pair = stream_pair(q, core, operand)
            for hop in range(q.path_start[pair], q.path_start[pair + 1]):
                s.demand[q.path_link[hop]] += q.stream_bits_per_cycle[row, core, operand]
                s.load[q.path_link[hop]] += bits
    for link in range(links):
        if s.demand[link] > 0:
            full = min(s.demand[link], q.link_bits_per_cycle[link])
            share = min(full, s.free_bits_per_cycle[link])
            if share * q.settings[SHARE_DIVISOR] < full:
                return 0
            s.demand[link] = share
            cycles = max(cycles, words(s.load[link], share))
    for link in range(links):
        s.stream_share[core, link] = s.demand[link]
        s.free_bits_per_cycle[link] -= s.demand[link]
        s.link_bits[OFF_CHIP_STREAM, link] += s.load[link]
        if s.demand[link] > 0 and q.settings[RECORD]:
            log_stream(s, cn, link, s.scalars[NOW] + cycles)
    memory = q.settings[OFF_CHIP_MEMORY]
    for operand in range(q.stream_bits.shape[2]):
        bits = q.stream_bits[row, core, operand]
        if operand == 0:
            s.words_written[OFF_CHIP_STREAM, memory] += words(bits, q.write_bits[memory])
        else:
            s.words_read[OFF_CHIP_STREAM, memory] += words(bits, q.read_bits[memory])
    return cycles


@kernel
def has_streams(q, row, core):
    """Whether an operand of the CN streams from or to the off-chip memory."""
    for operand in range(q.stream_bits.shape[2]):
        if q.stream_bits[row, core, operand] > 0:
            return True
    return False


@kernel
def stream_pair(q, core, operand):
    """The pair of cores between which an operand streams."""
    cores = len(q.core_memory)
    if operand == 0:
        return core * cores + q.settings[OFF_CHIP_CORE]
    return q.settings[OFF_CHIP_CORE] * cores + core


@kernel
def log_stream(s, cn, link, end):
    """Add a row to the log; rows beyond its room are counted only."""
    row = s.scalars[STREAMS]
    s.scalars[STREAMS] = row + 1
    if row < len(s.streams):
        s.streams[row, 0] = cn
        s.streams[row, 1] = link
        s.streams[row, 2] = s.scalars[NOW]
        s.streams[row, 3] = end
        s.streams[row, 4] = s.demand[link]
        s.streams[row, 5] = s.load[link]


@kernel
def end_node(q, s, core):
    """The CN on a core ends: what it made is there, what it needed has one use less."""
    cn = s.running[core]
    s.running[core] = NONE
    s.scalars[FINISHED] += 1
    if has_streams(q, q.cost_row[cn], core):
        for link in range(len(q.link_bits_per_cycle)):
            s.free_bits_per_cycle[link] += s.stream_share[core, link]
            s.stream_share[core, link] = 0
    for k in range(q.output_start[cn], q.output_start[cn + 1]):
        produce(q, s, q.output_piece[k])
    for need in range(q.need_start[cn], q.need_start[cn + 1]):
        copy = s.need_copy[need]
        if copy >= 0:
            s.copy_uses[copy] -= 1
            unpin(q, s, copy)
