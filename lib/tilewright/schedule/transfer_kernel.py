"""Data on the move (compiled): shares of links, fetches, broadcasts, writes to the off-chip memory, prefetches."""

from tilewright.compiled import kernel
from tilewright.schedule.candidate_kernel import add_event
from tilewright.schedule.residency_kernel import become_present, pin, request_write, store, unpin
from tilewright.schedule.state import (
    ABSENT,
    ARRIVING,
    CLAIMED,
    CORE_TO_CORE,
    EVICTION,
    FLIGHTS,
    FREE_FLIGHTS,
    LEAVING,
    NONE,
    NOW,
    OFF_CHIP,
    OFF_CHIP_CORE,
    OFF_CHIP_FETCH,
    OFF_CHIP_MEMORY,
    PRESENT,
    RECORD,
    RESERVED,
    SHARE_DIVISOR,
    SINK_OUTPUT,
    TRANSFERS,
)


@kernel
def share_of(q, s, pair, source_memory, target_memory, bits):
    """Bits per cycle that a transfer over the links of a pair of cores gets if it starts now; 0: it waits."""
    full = min(bits, q.read_bits[source_memory], q.write_bits[target_memory])
    for hop in range(q.path_start[pair], q.path_start[pair + 1]):
        full = min(full, q.link_bits_per_cycle[q.path_link[hop]])
    share = full
    for hop in range(q.path_start[pair], q.path_start[pair + 1]):
        share = min(share, s.free_bits_per_cycle[q.path_link[hop]])
    return share if share * q.settings[SHARE_DIVISOR] >= full else 0


@kernel
def on_path(q, pair, link):
    """Whether a link is on the path of a pair of cores."""
    if pair >= 0:
        for hop in range(q.path_start[pair], q.path_start[pair + 1]):
            if q.path_link[hop] == link:
                return True
    return False


@kernel
def start_flight(q, s, copy, source, cause, pair, shared, rate):
    """Start moving a piece: the copy arrives (or, for a write, is read), `source` is read (NONE: off-chip).

    Links that the flight `shared` uses too carry the data already; what is read was read for that flight.
    """
    piece = s.copy_piece[copy]
    bits = q.piece_bits[piece]
    cores = len(q.core_memory)
    if s.scalars[FREE_FLIGHTS] > 0:
        s.scalars[FREE_FLIGHTS] -= 1
        flight = s.flight_free[s.scalars[FREE_FLIGHTS]]
    else:
        flight = s.scalars[FLIGHTS]
        s.scalars[FLIGHTS] += 1
    s.flight_copy[flight] = copy
    s.flight_source[flight] = source
    s.flight_cause[flight] = cause
    s.flight_rate[flight] = rate
    s.flight_path[flight] = pair
    s.flight_shared[flight] = shared
    for hop in range(q.path_start[pair], q.path_start[pair + 1]):
        link = q.path_link[hop]
        if not on_path(q, shared, link):
            s.free_bits_per_cycle[link] -= rate
            s.link_bits[cause, link] += bits
    source_memory = q.settings[OFF_CHIP_MEMORY]
    target_memory = s.copy_memory[copy]
    if cause == EVICTION or cause == SINK_OUTPUT:
        source_memory = s.copy_memory[copy]
        target_memory = q.settings[OFF_CHIP_MEMORY]
    elif source >= 0:
        source_memory = s.copy_memory[source]
    if shared == NONE:
        s.words_read[cause, source_memory] += words(bits, q.read_bits[source_memory])
    s.words_written[cause, target_memory] += words(bits, q.write_bits[target_memory])
    end = s.scalars[NOW] + words(bits, rate)
    add_event(s, end, cores + flight)
    if q.settings[RECORD]:
        log_transfer(q, s, piece, cause, source_memory, target_memory, pair, end, rate, shared)


@kernel
def log_transfer(q, s, piece, cause, source_memory, target_memory, pair, end, rate, shared):
    """Add a row to the log; rows beyond its room are counted only."""
    row = s.scalars[TRANSFERS]
    s.scalars[TRANSFERS] = row + 1
    cores = len(q.core_memory)
    if row < len(s.transfers):
        s.transfers[row, 0] = piece
        s.transfers[row, 1] = cause
        s.transfers[row, 2] = source_memory
        s.transfers[row, 3] = target_memory
        s.transfers[row, 4] = pair // cores
        s.transfers[row, 5] = pair % cores
        s.transfers[row, 6] = s.scalars[NOW]
        s.transfers[row, 7] = end
        s.transfers[row, 8] = rate
        s.transfers[row, 9] = shared


@kernel
def words(bits, width):
    """Words of a width that hold the bits; also cycles at a rate."""
    return (bits + width - 1) // width


@kernel
def source_pair(q, s, copy, core):
    """The pair (source core, core) by which a copy can be fetched now; NONE: its data is nowhere yet."""
    piece = s.copy_piece[copy]
    home = s.home[piece]
    cores = len(q.core_memory)
    if home >= 0 and home != copy and s.copy_state[home] == PRESENT:
        return s.copy_core[home] * cores + core
    if s.off_chip[piece] == OFF_CHIP:
        return q.settings[OFF_CHIP_CORE] * cores + core
    return NONE


@kernel
def has_room(q, s, copy):
    """Whether the memory can take the copy now."""
    memory = s.copy_memory[copy]
    return s.stored_bits[memory] + q.piece_bits[s.copy_piece[copy]] <= q.capacity_bits[memory]


@kernel
def fetch(q, s, copy, core):
    """Start the transfer of a reserved copy to a core, with all who can listen; True if it could start."""
    pair = source_pair(q, s, copy, core)
    if pair == NONE or not has_room(q, s, copy):
        return False
    piece = s.copy_piece[copy]
    cause = OFF_CHIP_FETCH
    source = NONE
    source_memory = q.settings[OFF_CHIP_MEMORY]
    if pair // len(q.core_memory) != q.settings[OFF_CHIP_CORE]:
        cause = CORE_TO_CORE
        source = s.home[piece]
        source_memory = s.copy_memory[source]
    rate = share_of(q, s, pair, source_memory, s.copy_memory[copy], q.piece_bits[piece])
    if rate == 0:
        return False
    begin_arrival(q, s, copy, source)
    start_flight(q, s, copy, source, cause, pair, NONE, rate)
    for hop in range(q.path_start[pair], q.path_start[pair + 1]):
        if q.link_is_broadcast[q.path_link[hop]]:
            broadcast(q, s, piece, source, cause, pair, rate)
            break
    return True


@kernel
def begin_arrival(q, s, copy, source):
    """Take the space of a copy, and keep what it is read from."""
    s.copy_state[copy] = ARRIVING
    store(q, s, s.copy_memory[copy], q.piece_bits[s.copy_piece[copy]])
    if source >= 0:
        pin(q, s, source)


@kernel
def broadcast(q, s, piece, source, cause, pair, rate):
    """Let every core whose next fetch is this piece, from the same source over a common bus, have it at once."""
    cores = len(q.core_memory)
    for core in range(cores):
        if s.slot_state[core] != CLAIMED:
            continue
        skip_served(q, s, core)
        need = s.issued[core]
        if need == q.need_start[s.slot[core] + 1] or q.need_piece[need] != piece:
            continue
        copy = s.need_copy[need]
        own = source_pair(q, s, copy, core)
        if own == NONE or own // cores != pair // cores or not has_room(q, s, copy):
            continue
        if can_listen(q, s, own, pair, rate) and q.write_bits[s.copy_memory[copy]] >= rate:
            begin_arrival(q, s, copy, source)
            start_flight(q, s, copy, source, cause, own, pair, rate)


@kernel
def can_listen(q, s, own, pair, rate):
    """Whether two paths have a bus in common and the rest of the first has the width."""
    common_bus = False
    for hop in range(q.path_start[own], q.path_start[own + 1]):
        link = q.path_link[hop]
        if on_path(q, pair, link):
            common_bus = common_bus or q.link_is_broadcast[link]
        elif s.free_bits_per_cycle[link] < rate:
            return False
    return common_bus


@kernel
def skip_served(q, s, core):
    """Move on to the next need of the prepared CN that must still be fetched."""
    end = q.need_start[s.slot[core] + 1]
    while s.issued[core] < end:
        copy = s.need_copy[s.issued[core]]
        if copy >= 0 and s.copy_state[copy] == RESERVED:
            break
        s.issued[core] += 1


@kernel
def write_first(q, s, memory):
    """Start the next write from a memory to the off-chip memory; True if it could start."""
    copy = s.write_first[memory]
    piece = s.copy_piece[copy]
    pair = s.copy_core[copy] * len(q.core_memory) + q.settings[OFF_CHIP_CORE]
    rate = share_of(q, s, pair, memory, q.settings[OFF_CHIP_MEMORY], q.piece_bits[piece])
    if rate == 0:
        return False
    s.write_first[memory] = s.write_next[copy]
    start_flight(q, s, copy, copy, s.write_cause[copy], pair, NONE, rate)
    return True


@kernel
def end_flight(q, s, flight):
    """A transfer ends: its links are free, its data is there."""
    copy = s.flight_copy[flight]
    pair = s.flight_path[flight]
    for hop in range(q.path_start[pair], q.path_start[pair + 1]):
        if not on_path(q, s.flight_shared[flight], q.path_link[hop]):
            s.free_bits_per_cycle[q.path_link[hop]] += s.flight_rate[flight]
    s.flight_free[s.scalars[FREE_FLIGHTS]] = flight
    s.scalars[FREE_FLIGHTS] += 1
    cause = s.flight_cause[flight]
    if cause == EVICTION or cause == SINK_OUTPUT:
        end_write(q, s, copy)
        return
    core = pair % len(q.core_memory)
    if s.prefetching[core] == copy:
        s.prefetching[core] = NONE
    become_present(q, s, copy)
    if s.flight_source[flight] >= 0:
        unpin(q, s, s.flight_source[flight])


@kernel
def end_write(q, s, copy):
    """A copy has been written off-chip; where it was leaving, its space is free."""
    piece = s.copy_piece[copy]
    s.off_chip[piece] = OFF_CHIP
    store(q, s, q.settings[OFF_CHIP_MEMORY], q.piece_bits[piece])
    if s.copy_state[copy] == LEAVING:
        memory = s.copy_memory[copy]
        s.copy_state[copy] = ABSENT
        s.changes[memory] += 1
        store(q, s, memory, -q.piece_bits[piece])
    else:
        unpin(q, s, copy)


@kernel
def produce(q, s, piece):
    """The CN that makes a piece has ended."""
    copy = s.home[piece]
    if copy == NONE:
        s.off_chip[piece] = OFF_CHIP
        store(q, s, q.settings[OFF_CHIP_MEMORY], q.piece_bits[piece])
        return
    s.copy_state[copy] = PRESENT
    if q.piece_is_output[piece]:
        request_write(q, s, copy, SINK_OUTPUT)  # stays pinned until it is written
    elif s.stream_uses[piece] > 0:
        request_write(q, s, copy, EVICTION)
    else:
        unpin(q, s, copy)


@kernel
def prefetch(q, s, core):
    """Fetch the next constant ahead if nothing stands in the way; one at a time, never evicting."""
    if s.prefetching[core] != NONE:
        return
    end = s.prefetch_start[core + 1]
    while s.prefetch_next[core] < end:
        copy = s.prefetch_copy[s.prefetch_next[core]]
        if s.copy_state[copy] == ABSENT and s.copy_uses[copy] > 0:
            break
        s.prefetch_next[core] += 1
    if s.prefetch_next[core] == end:
        return
    copy = s.prefetch_copy[s.prefetch_next[core]]
    memory = s.copy_memory[copy]
    bits = q.piece_bits[s.copy_piece[copy]]
    pair = q.settings[OFF_CHIP_CORE] * len(q.core_memory) + core
    if s.claimed_bits[memory] + bits > q.capacity_bits[memory] or not has_room(q, s, copy):
        return
    rate = share_of(q, s, pair, q.settings[OFF_CHIP_MEMORY], memory, bits)
    if rate > 0:
        s.claimed_bits[memory] += bits
        begin_arrival(q, s, copy, NONE)
        start_flight(q, s, copy, NONE, OFF_CHIP_FETCH, pair, NONE, rate)
        s.prefetching[core] = copy
