"""Data on the move (compiled): shares of links, fetches, broadcasts, writes to the off-chip memory, prefetches."""

from tilewright.compiled import kernel
from tilewright.scheduling.access_kernel import bits_of, has_path, words
from tilewright.scheduling.candidate_kernel import add_event
from tilewright.scheduling.residency_kernel import become_present, pin, request_write, store, unpin
from tilewright.scheduling.state_record import (
    ABSENT,
    ARRIVING,
    CLAIMED,
    CORE_TO_CORE,
    EVICTION,
    LEAVING,
    NONE,
    OFF_CHIP,
    OFF_CHIP_FETCH,
    PRESENT,
    RESERVED,
    SINK_OUTPUT,
    cell_at,
    copy_at,
    core_at,
    flight_at,
    link_at,
    link_state_at,
    memory_at,
    memory_state_at,
    need_at,
    node_at,
    pair_at,
    piece_at,
    piece_state_at,
    transfer_at,
)


@kernel
def share_of(q, s, pair, source_memory, target_memory, bits):
    """Bits per cycle that a transfer over the links of a pair of cores gets if it starts now; 0: it waits."""
    full = min(bits, memory_at(q.memories, source_memory).read_bits, memory_at(q.memories, target_memory).write_bits)
    for hop in range(pair_at(q.pairs, pair).start, pair_at(q.pairs, pair + 1).start):
        full = min(full, link_at(q.links, cell_at(q.path_link, hop).value).bits_per_cycle)
    share = full
    for hop in range(pair_at(q.pairs, pair).start, pair_at(q.pairs, pair + 1).start):
        share = min(share, link_state_at(s.links, cell_at(q.path_link, hop).value).free_bits_per_cycle)
    return share if share * q.share_divisor >= full else 0


@kernel
def on_path(q, pair, link):
    """Whether a link is on the path of a pair of cores."""
    if pair >= 0:
        for hop in range(pair_at(q.pairs, pair).start, pair_at(q.pairs, pair + 1).start):
            if cell_at(q.path_link, hop).value == link:
                return True
    return False


@kernel
def start_flight(q, s, copy, source, cause, pair, shared, rate):
    """Start moving a piece: the copy arrives (or, for a write, is read), `source` is read (NONE: off-chip).

    Links that the flight `shared` uses too carry the data already; what is read was read for that flight.
    """
    piece = copy_at(s.copies, copy).piece
    bits = piece_at(q.pieces, piece).bits
    cores = q.core_count
    if s.free_flights > 0:
        s.free_flights -= 1
        flight = cell_at(s.flight_free, s.free_flights).value
    else:
        flight = s.flights_count
        s.flights_count += 1
    flight_at(s.flights, flight).copy = copy
    flight_at(s.flights, flight).source = source
    flight_at(s.flights, flight).cause = cause
    flight_at(s.flights, flight).rate = rate
    flight_at(s.flights, flight).path = pair
    flight_at(s.flights, flight).shared = shared
    for hop in range(pair_at(q.pairs, pair).start, pair_at(q.pairs, pair + 1).start):
        link = cell_at(q.path_link, hop).value
        if not on_path(q, shared, link):
            link_state_at(s.links, link).free_bits_per_cycle -= rate
            cell_at(s.link_bits, cause * q.link_count + link).value += bits
    source_memory = q.off_chip_memory
    target_memory = copy_at(s.copies, copy).memory
    if cause == EVICTION or cause == SINK_OUTPUT:
        source_memory = copy_at(s.copies, copy).memory
        target_memory = q.off_chip_memory
    elif source >= 0:
        source_memory = copy_at(s.copies, source).memory
    if shared == NONE:
        cell_at(s.words_read, cause * q.memory_count + source_memory).value += words(
            bits, memory_at(q.memories, source_memory).read_bits
        )
    cell_at(s.words_written, cause * q.memory_count + target_memory).value += words(
        bits, memory_at(q.memories, target_memory).write_bits
    )
    end = s.now + words(bits, rate)
    add_event(s, end, cores + flight)
    if q.record:
        log_transfer(q, s, piece, cause, source_memory, target_memory, pair, end, rate, shared)


@kernel
def log_transfer(q, s, piece, cause, source_memory, target_memory, pair, end, rate, shared):
    """Add a row to the log; rows beyond its room are counted only."""
    row = s.transfers_count
    s.transfers_count = row + 1
    cores = q.core_count
    if row < s.transfer_room:
        transfer_at(s.transfers, row).piece = piece
        transfer_at(s.transfers, row).cause = cause
        transfer_at(s.transfers, row).source_memory = source_memory
        transfer_at(s.transfers, row).target_memory = target_memory
        transfer_at(s.transfers, row).source_core = pair // cores
        transfer_at(s.transfers, row).target_core = pair % cores
        transfer_at(s.transfers, row).start_cycles = s.now
        transfer_at(s.transfers, row).end_cycles = end
        transfer_at(s.transfers, row).bits_per_cycle = rate
        transfer_at(s.transfers, row).broadcast_of = shared


@kernel
def source_pair(q, s, copy, core):
    """The pair (source core, core) by which a copy can be fetched now; NONE: its data is nowhere yet."""
    piece = copy_at(s.copies, copy).piece
    home = piece_state_at(s.pieces, piece).home
    cores = q.core_count
    if home >= 0 and home != copy and copy_at(s.copies, home).state == PRESENT:
        source = copy_at(s.copies, home).core
        if has_path(q, source, core):
            return source * cores + core
    if piece_state_at(s.pieces, piece).off_chip == OFF_CHIP:
        return q.off_chip_core * cores + core
    return NONE


@kernel
def has_room(q, s, copy):
    """Whether the memory can take the copy now."""
    memory = copy_at(s.copies, copy).memory
    return (
        memory_state_at(s.memories, memory).stored_bits + bits_of(q, s, copy)
        <= memory_at(q.memories, memory).capacity_bits
    )


@kernel
def fetch(q, s, copy, core):
    """Start the transfer of a reserved copy to a core, with all who can listen; True if it could start."""
    pair = source_pair(q, s, copy, core)
    if pair == NONE or not has_room(q, s, copy):
        return False
    piece = copy_at(s.copies, copy).piece
    cause = OFF_CHIP_FETCH
    source = NONE
    source_memory = q.off_chip_memory
    if pair // q.core_count != q.off_chip_core:
        cause = CORE_TO_CORE
        source = piece_state_at(s.pieces, piece).home
        source_memory = copy_at(s.copies, source).memory
    rate = share_of(q, s, pair, source_memory, copy_at(s.copies, copy).memory, piece_at(q.pieces, piece).bits)
    if rate == 0:
        return False
    begin_arrival(q, s, copy, source)
    start_flight(q, s, copy, source, cause, pair, NONE, rate)
    for hop in range(pair_at(q.pairs, pair).start, pair_at(q.pairs, pair + 1).start):
        if link_at(q.links, cell_at(q.path_link, hop).value).is_broadcast:
            broadcast(q, s, piece, source, cause, pair, rate)
            break
    return True


@kernel
def begin_arrival(q, s, copy, source):
    """Take the space of a copy, and keep what it is read from."""
    copy_at(s.copies, copy).state = ARRIVING
    store(q, s, copy_at(s.copies, copy).memory, bits_of(q, s, copy))
    if source >= 0:
        pin(q, s, source)


@kernel
def broadcast(q, s, piece, source, cause, pair, rate):
    """Let every core whose next fetch is this piece, from the same source over a common bus, have it at once."""
    cores = q.core_count
    for core in range(cores):
        if core_at(s.cores, core).slot_state != CLAIMED:
            continue
        skip_served(q, s, core)
        need = core_at(s.cores, core).issued
        if (
            need == node_at(q.nodes, core_at(s.cores, core).slot + 1).need_start
            or need_at(q.needs, need).piece != piece
        ):
            continue
        copy = cell_at(s.need_copy, need).value
        own = source_pair(q, s, copy, core)
        if own == NONE or own // cores != pair // cores or not has_room(q, s, copy):
            continue
        if (
            can_listen(q, s, own, pair, rate)
            and memory_at(q.memories, copy_at(s.copies, copy).memory).write_bits >= rate
        ):
            begin_arrival(q, s, copy, source)
            start_flight(q, s, copy, source, cause, own, pair, rate)


@kernel
def can_listen(q, s, own, pair, rate):
    """Whether two paths have a bus in common and the rest of the first has the width."""
    common_bus = False
    for hop in range(pair_at(q.pairs, own).start, pair_at(q.pairs, own + 1).start):
        link = cell_at(q.path_link, hop).value
        if on_path(q, pair, link):
            common_bus = common_bus or link_at(q.links, link).is_broadcast
        elif link_state_at(s.links, link).free_bits_per_cycle < rate:
            return False
    return common_bus


@kernel
def skip_served(q, s, core):
    """Move on to the next need of the prepared CN that must still be fetched."""
    end = node_at(q.nodes, core_at(s.cores, core).slot + 1).need_start
    while core_at(s.cores, core).issued < end:
        copy = cell_at(s.need_copy, core_at(s.cores, core).issued).value
        if copy >= 0 and copy_at(s.copies, copy).state == RESERVED:
            break
        core_at(s.cores, core).issued += 1


@kernel
def write_first(q, s, memory):
    """Start the next write from a memory to the off-chip memory; True if it could start."""
    copy = memory_state_at(s.memories, memory).write_first
    piece = copy_at(s.copies, copy).piece
    pair = copy_at(s.copies, copy).core * q.core_count + q.off_chip_core
    rate = share_of(q, s, pair, memory, q.off_chip_memory, piece_at(q.pieces, piece).bits)
    if rate == 0:
        return False
    memory_state_at(s.memories, memory).write_first = copy_at(s.copies, copy).write_next
    start_flight(q, s, copy, copy, copy_at(s.copies, copy).write_cause, pair, NONE, rate)
    return True


@kernel
def end_flight(q, s, flight):
    """A transfer ends: its links are free, its data is there."""
    copy = flight_at(s.flights, flight).copy
    pair = flight_at(s.flights, flight).path
    for hop in range(pair_at(q.pairs, pair).start, pair_at(q.pairs, pair + 1).start):
        if not on_path(q, flight_at(s.flights, flight).shared, cell_at(q.path_link, hop).value):
            link_state_at(s.links, cell_at(q.path_link, hop).value).free_bits_per_cycle += flight_at(
                s.flights, flight
            ).rate
    cell_at(s.flight_free, s.free_flights).value = flight
    s.free_flights += 1
    cause = flight_at(s.flights, flight).cause
    if cause == EVICTION or cause == SINK_OUTPUT:
        end_write(q, s, copy)
        return
    core = pair % q.core_count
    if core_at(s.cores, core).prefetching == copy:
        core_at(s.cores, core).prefetching = NONE
    become_present(q, s, copy)
    if flight_at(s.flights, flight).source >= 0:
        unpin(q, s, flight_at(s.flights, flight).source)


@kernel
def end_write(q, s, copy):
    """A copy has been written off-chip; where it was leaving, its space is free."""
    piece = copy_at(s.copies, copy).piece
    piece_state_at(s.pieces, piece).off_chip = OFF_CHIP
    store(q, s, q.off_chip_memory, piece_at(q.pieces, piece).bits)
    if copy_at(s.copies, copy).state == LEAVING:
        memory = copy_at(s.copies, copy).memory
        copy_at(s.copies, copy).state = ABSENT
        memory_state_at(s.memories, memory).changes += 1
        store(q, s, memory, -piece_at(q.pieces, piece).bits)
    else:
        unpin(q, s, copy)


@kernel
def produce(q, s, piece):
    """The CN that makes a piece has ended."""
    copy = piece_state_at(s.pieces, piece).home
    if copy == NONE:
        piece_state_at(s.pieces, piece).off_chip = OFF_CHIP
        store(q, s, q.off_chip_memory, piece_at(q.pieces, piece).bits)
        return
    copy_at(s.copies, copy).state = PRESENT
    if piece_at(q.pieces, piece).is_output:
        request_write(q, s, copy, SINK_OUTPUT)  # stays pinned until it is written
    elif piece_state_at(s.pieces, piece).off_chip_uses > 0:
        request_write(q, s, copy, EVICTION)
    else:
        unpin(q, s, copy)


@kernel
def prefetch(q, s, core):
    """Fetch the next constant ahead if nothing stands in the way; one at a time, never evicting."""
    if core_at(s.cores, core).prefetching != NONE:
        return
    end = core_at(s.cores, core + 1).prefetch_start
    while core_at(s.cores, core).prefetch_next < end:
        copy = cell_at(s.prefetch_copy, core_at(s.cores, core).prefetch_next).value
        if copy_at(s.copies, copy).state == ABSENT and copy_at(s.copies, copy).uses > 0:
            break
        core_at(s.cores, core).prefetch_next += 1
    if core_at(s.cores, core).prefetch_next == end:
        return
    copy = cell_at(s.prefetch_copy, core_at(s.cores, core).prefetch_next).value
    memory = copy_at(s.copies, copy).memory
    bits = bits_of(q, s, copy)
    pair = q.off_chip_core * q.core_count + core
    if memory_state_at(s.memories, memory).claimed_bits + bits > memory_at(
        q.memories, memory
    ).capacity_bits or not has_room(q, s, copy):
        return
    rate = share_of(q, s, pair, q.off_chip_memory, memory, bits)
    if rate > 0:
        memory_state_at(s.memories, memory).claimed_bits += bits
        begin_arrival(q, s, copy, NONE)
        start_flight(q, s, copy, NONE, OFF_CHIP_FETCH, pair, NONE, rate)
        core_at(s.cores, core).prefetching = copy
