"""Compiled functions for moving data: shares of links, fetches, broadcasts, writes off-chip, and prefetches."""

from tilewright.base.compiled import kernel
from tilewright.multicore.scheduling import access_kernel as at
from tilewright.multicore.scheduling.candidate_kernel import add_event
from tilewright.multicore.scheduling.residency_kernel import become_present, pin, request_write, store, unpin
from tilewright.multicore.scheduling.state_record import (
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
)


@kernel
def share_of(q, s, pair, source_memory, target_memory, bits):
    """Bandwidth in bits per cycle that a transfer between a pair of cores gets if it starts now; 0 if it must wait."""
    full = min(bits, at.memory(q, source_memory).read_bits, at.memory(q, target_memory).write_bits)
    for hop in at.hops_of(q, pair):
        full = min(full, at.link(q, at.link_of(q, hop)).bits_per_cycle)
    share = full
    for hop in at.hops_of(q, pair):
        share = min(share, at.link_state(s, at.link_of(q, hop)).free_bits_per_cycle)
    return share if share * q.share_divisor >= full else 0


@kernel
def on_path(q, pair, link):
    """True if a link is on the path of a pair of cores."""
    if pair >= 0:
        for hop in at.hops_of(q, pair):
            if at.link_of(q, hop) == link:
                return True
    return False


@kernel
def is_carried(q, s, link):
    """True if a link with multicast already carries the data of the latest group of transfers."""
    return at.link(q, link).is_multicast != 0 and at.link_state(s, link).group == s.groups_count


@kernel
def start_flight(q, s, copy, source, cause, pair, shared, rate):
    """Start the transfer of a piece at `rate` bits per cycle over the path of `pair`.

    A fetch writes the copy and reads the copy `source`, or the off-chip memory if `source` is NONE. A write to the
    off-chip memory reads the copy. If `shared` is a pair of cores, another transfer already moves the same data over
    the path of this pair. The source is then not read again, and common links do not carry the data again. A link with
    multicast carries the data once for the other transfer and all its listeners.
    """
    c = at.copy(s, copy)
    bits = at.piece(q, c.piece).bits
    number = new_flight(s)
    flight = at.flight(s, number)
    flight.copy = copy
    flight.source = source
    flight.cause = cause
    flight.rate = rate
    flight.path = pair
    flight.shared = shared
    if shared == NONE:
        s.groups_count += 1
    flight.group = s.groups_count
    for hop in at.hops_of(q, pair):
        link = at.link_of(q, hop)
        if not on_path(q, shared, link) and not is_carried(q, s, link):
            at.link_state(s, link).free_bits_per_cycle -= rate
            at.link_bits(q, s, cause, link).value += bits
        at.link_state(s, link).group = flight.group
    source_memory = q.off_chip_memory
    target_memory = q.off_chip_memory
    if cause == EVICTION or cause == SINK_OUTPUT:
        source_memory = c.memory
    else:
        target_memory = c.memory
        if source >= 0:
            source_memory = at.copy(s, source).memory
    if shared == NONE:
        at.words_read(q, s, cause, source_memory).value += at.words(bits, at.memory(q, source_memory).read_bits)
    at.words_written(q, s, cause, target_memory).value += at.words(bits, at.memory(q, target_memory).write_bits)
    end = s.now + at.words(bits, rate)
    add_event(s, end, q.core_count + number)
    if q.record:
        log_transfer(q, s, flight, source_memory, target_memory, end)


@kernel
def new_flight(s):
    """Number for a new flight. It is the number of an ended flight, else the next unused number."""
    if s.free_flights > 0:
        s.free_flights -= 1
        return at.cell(s.flight_free, s.free_flights).value
    s.flights_count += 1
    return s.flights_count - 1


@kernel
def log_transfer(q, s, flight, source_memory, target_memory, end):
    """Add a row to the log of transfers. If the log is full, only the number of rows rises."""
    row = s.transfers_count
    s.transfers_count = row + 1
    if row < s.transfer_room:
        transfer = at.transfer_row(s, row)
        transfer.piece = at.copy(s, flight.copy).piece
        transfer.cause = flight.cause
        transfer.source_memory = source_memory
        transfer.target_memory = target_memory
        transfer.source_core = at.source_core(q, flight.path)
        transfer.target_core = at.target_core(q, flight.path)
        transfer.start_cycles = s.now
        transfer.end_cycles = end
        transfer.bits_per_cycle = flight.rate
        transfer.broadcast_of = flight.shared


@kernel
def source_pair(q, s, copy, core):
    """Number of the pair (source core, core) for fetching a copy now; NONE if no source has the data yet."""
    piece = at.copy(s, copy).piece
    where = at.piece_state(s, piece)
    home = where.home
    if home >= 0 and home != copy and at.copy(s, home).state == PRESENT and not at.piece(q, piece).goes_off_chip:
        source = at.copy(s, home).core
        if at.has_path(q, source, core):
            return at.pair_of(q, source, core)
    if where.off_chip == OFF_CHIP:
        return at.pair_of(q, q.off_chip_core, core)
    return NONE


@kernel
def is_forwarded(q, piece):
    """True if cores send a piece that they hold to other cores. Such a piece is a constant."""
    return q.forwards_constants != 0 and at.piece(q, piece).producer < 0


@kernel
def fastest_source(q, s, copy, core):
    """Copy from which a constant can be sent to a core at the largest rate now; NONE for the off-chip memory.

    Ties go to the path with the fewest links, then to the smaller number of the sending core.
    """
    c = at.copy(s, copy)
    where = at.piece_state(s, c.piece)
    bits = at.bits_of(q, s, copy)
    pair = at.pair_of(q, q.off_chip_core, core)
    best = NONE
    best_core = q.off_chip_core
    best_rate = share_of(q, s, pair, q.off_chip_memory, c.memory, bits)
    best_hops = len(at.hops_of(q, pair))
    for number in range(where.first_copy, where.copies_stop):
        other = at.copy(s, number)
        if number == copy or other.state != PRESENT or not at.has_path(q, other.core, core):
            continue
        pair = at.pair_of(q, other.core, core)
        rate = share_of(q, s, pair, other.memory, c.memory, bits)
        hops = len(at.hops_of(q, pair))
        is_nearer = hops < best_hops or (hops == best_hops and other.core < best_core)
        if rate > best_rate or (rate > 0 and rate == best_rate and is_nearer):
            best = number
            best_core = other.core
            best_rate = rate
            best_hops = hops
    return best


@kernel
def listening_pair(q, s, copy, core, pair):
    """Number of the pair (source core of `pair`, core) if a copy can come from this source core now; else NONE."""
    source = at.source_core(q, pair)
    if is_forwarded(q, at.copy(s, copy).piece):
        return at.pair_of(q, source, core) if at.has_path(q, source, core) else NONE
    own = source_pair(q, s, copy, core)
    return own if own != NONE and at.source_core(q, own) == source else NONE


@kernel
def has_room(q, s, copy):
    """True if the memory of a copy has enough physically free space for the copy now."""
    return at.fits(q, s, at.copy(s, copy).memory, at.bits_of(q, s, copy))


@kernel
def fetch(q, s, copy, core):
    """Start the transfer of a copy to a core and to all cores that can listen. Returns True if it starts."""
    pair = source_pair(q, s, copy, core)
    if pair == NONE or not has_room(q, s, copy):
        return False
    c = at.copy(s, copy)
    cause = OFF_CHIP_FETCH
    source = NONE
    source_memory = q.off_chip_memory
    if is_forwarded(q, c.piece):
        source = fastest_source(q, s, copy, core)
    elif at.source_core(q, pair) != q.off_chip_core:
        source = at.piece_state(s, c.piece).home
    if source >= 0:
        cause = CORE_TO_CORE
        source_memory = at.copy(s, source).memory
        pair = at.pair_of(q, at.copy(s, source).core, core)
    rate = share_of(q, s, pair, source_memory, c.memory, at.bits_of(q, s, copy))
    if rate == 0:
        return False
    begin_arrival(q, s, copy, source)
    start_flight(q, s, copy, source, cause, pair, NONE, rate)
    spread(q, s, c.piece, source, cause, pair, rate)
    return True


@kernel
def spread(q, s, piece, source, cause, pair, rate):
    """Send a fetched piece to other cores, too, if the path of the fetch has a bus or a link with multicast."""
    for hop in at.hops_of(q, pair):
        if at.link(q, at.link_of(q, hop)).is_broadcast:
            broadcast(q, s, piece, source, cause, pair, rate)
            if q.prefetches_results or has_multicast(q, pair):
                overhear(q, s, piece, source, cause, pair, rate)
            return


@kernel
def has_multicast(q, pair):
    """True if the path of a pair of cores has a link with multicast."""
    found = False
    for hop in at.hops_of(q, pair):
        found = found or at.link(q, at.link_of(q, hop)).is_multicast != 0
    return found


@kernel
def overhear(q, s, piece, source, cause, pair, rate):
    """Deliver a piece to every core that will need the piece, even if the core fetches other pieces first.

    The core must have claimed space for the piece, or its memory must have space that is neither used nor claimed.
    """
    where = at.piece_state(s, piece)
    for copy in range(where.first_copy, where.copies_stop):
        c = at.copy(s, copy)
        if copy == where.home or not can_take(q, s, copy):
            continue
        own = listening_pair(q, s, copy, c.core, pair)
        if own == NONE:
            continue
        if can_listen(q, s, own, pair, rate) and at.memory(q, c.memory).write_bits >= rate:
            if c.state == ABSENT:
                at.memory_state(s, c.memory).claimed_bits += at.bits_of(q, s, copy)
            begin_arrival(q, s, copy, source)
            start_flight(q, s, copy, source, cause, own, pair, rate)


@kernel
def can_take(q, s, copy):
    """True if a copy is still needed, is not yet arriving, and fits its memory now."""
    c = at.copy(s, copy)
    if c.state == RESERVED:
        return has_room(q, s, copy)
    return c.state == ABSENT and c.uses > 0 and has_unclaimed_room(q, s, copy)


@kernel
def has_unclaimed_room(q, s, copy):
    """True if the memory of a copy has enough space for it that is neither occupied nor claimed."""
    c = at.copy(s, copy)
    room = at.memory_state(s, c.memory)
    bits = at.bits_of(q, s, copy)
    return room.claimed_bits + bits <= at.memory(q, c.memory).capacity_bits and has_room(q, s, copy)


@kernel
def begin_arrival(q, s, copy, source):
    """Take physical space for a copy that starts to arrive, and pin its source copy."""
    c = at.copy(s, copy)
    c.state = ARRIVING
    store(q, s, c.memory, at.bits_of(q, s, copy))
    if source >= 0:
        pin(q, s, source)


@kernel
def broadcast(q, s, piece, source, cause, pair, rate):
    """Deliver a piece also to each core that can listen and whose next fetch is this piece from the same source."""
    for core in range(q.core_count):
        state = at.core(s, core)
        if state.slot_state != CLAIMED:
            continue
        skip_served(q, s, core)
        if state.issued == at.needs_of(q, state.slot).stop or at.need(q, state.issued).piece != piece:
            continue
        copy = at.need_copy(s, state.issued)
        own = listening_pair(q, s, copy, core, pair)
        if own == NONE or not has_room(q, s, copy):
            continue
        if can_listen(q, s, own, pair, rate) and at.memory(q, at.copy(s, copy).memory).write_bits >= rate:
            begin_arrival(q, s, copy, source)
            start_flight(q, s, copy, source, cause, own, pair, rate)


@kernel
def can_listen(q, s, own, pair, rate):
    """True if a core can listen to a transfer of `rate` bits per cycle over the path of `pair`.

    The path of `own`, from the source to the listening core, must share a bus or a link with multicast with the path of
    `pair`, or the source must send into the first links of both paths at once. Each link that does not carry the data
    yet must have `rate` bits per cycle free.
    """
    is_reached = forks_at_source(q, own, pair)
    for hop in at.hops_of(q, own):
        link = at.link_of(q, hop)
        if on_path(q, pair, link):
            is_reached = is_reached or at.link(q, link).is_broadcast != 0
        elif not is_carried(q, s, link) and at.link_state(s, link).free_bits_per_cycle < rate:
            return False
    return is_reached


@kernel
def forks_at_source(q, own, pair):
    """True if the first links of two paths from one core have multicast, so that the core sends into both at once."""
    first = at.hops_of(q, own)
    other = at.hops_of(q, pair)
    if first.start == first.stop or other.start == other.stop:
        return False
    one = at.link(q, at.link_of(q, first.start)).is_multicast
    return one != 0 and at.link(q, at.link_of(q, other.start)).is_multicast != 0


@kernel
def skip_served(q, s, core):
    """Advance `issued` of a core to the next need of the prepared CN whose piece must still be fetched."""
    state = at.core(s, core)
    end = at.needs_of(q, state.slot).stop
    while state.issued < end:
        copy = at.need_copy(s, state.issued)
        if copy >= 0 and at.copy(s, copy).state == RESERVED:
            break
        state.issued += 1


@kernel
def write_first(q, s, memory):
    """Start the next write from a memory to the off-chip memory. Returns True if the write starts."""
    room = at.memory_state(s, memory)
    copy = room.write_first
    c = at.copy(s, copy)
    pair = at.pair_of(q, c.core, q.off_chip_core)
    rate = share_of(q, s, pair, memory, q.off_chip_memory, at.bits_of(q, s, copy))
    if rate == 0:
        return False
    room.write_first = c.write_next
    start_flight(q, s, copy, copy, c.write_cause, pair, NONE, rate)
    return True


@kernel
def end_flight(q, s, number):
    """End a transfer: free its links, and mark its data as present in the target memory."""
    flight = at.flight(s, number)
    for hop in at.hops_of(q, flight.path):
        link = at.link_of(q, hop)
        state = at.link_state(s, link)
        # The transfers of a group end one directly after the other, so the first of them frees a common link.
        is_freed = at.link(q, link).is_multicast != 0 and state.released == flight.group
        if not is_freed and not on_path(q, flight.shared, link):
            state.free_bits_per_cycle += flight.rate
        state.released = flight.group
    at.cell(s.flight_free, s.free_flights).value = number
    s.free_flights += 1
    if flight.cause == EVICTION or flight.cause == SINK_OUTPUT:
        end_write(q, s, flight.copy)
        return
    core = at.core(s, at.target_core(q, flight.path))
    if core.prefetching == flight.copy:
        core.prefetching = NONE
    if core.forwarding == flight.copy:
        core.forwarding = NONE
    become_present(q, s, flight.copy)
    if flight.source >= 0:
        unpin(q, s, flight.source)


@kernel
def end_write(q, s, copy):
    """End the write of a copy to the off-chip memory. If the copy is leaving, its space becomes free; otherwise its pin
    is removed.
    """
    c = at.copy(s, copy)
    bits = at.bits_of(q, s, copy)
    at.piece_state(s, c.piece).off_chip = OFF_CHIP
    store(q, s, q.off_chip_memory, bits)
    if c.state == LEAVING:
        c.state = ABSENT
        at.memory_state(s, c.memory).changes += 1
        store(q, s, c.memory, -bits)
    else:
        unpin(q, s, copy)


@kernel
def produce(q, s, piece):
    """Make a piece present after its producing CN has ended: at its home, or off-chip if it streams out."""
    where = at.piece_state(s, piece)
    copy = where.home
    if copy == NONE:
        where.off_chip = OFF_CHIP
        store(q, s, q.off_chip_memory, at.piece(q, piece).bits)
        return
    at.copy(s, copy).state = PRESENT
    if q.prefetches_results:
        offer(q, s, piece)
    if at.piece(q, piece).is_output:
        request_write(q, s, copy, SINK_OUTPUT)  # the copy stays pinned until it is written
    elif where.off_chip_uses > 0:
        request_write(q, s, copy, EVICTION)
    else:
        unpin(q, s, copy)


@kernel
def prefetch(q, s, core):
    """Prefetch the next constant for a core, if its memory has unclaimed space and the links have enough free width.

    A core prefetches one constant at a time. A prefetch never evicts other data.
    """
    state = at.core(s, core)
    if state.prefetching != NONE:
        return
    end = at.core(s, core + 1).prefetch_start
    while state.prefetch_next < end:
        waiting = at.copy(s, at.cell(s.prefetch_copy, state.prefetch_next).value)
        if waiting.state == ABSENT and waiting.uses > 0:
            break
        state.prefetch_next += 1
    if state.prefetch_next == end:
        return
    copy = at.cell(s.prefetch_copy, state.prefetch_next).value
    if not has_unclaimed_room(q, s, copy):
        return
    memory = at.copy(s, copy).memory
    bits = at.bits_of(q, s, copy)
    if is_forwarded(q, at.copy(s, copy).piece):
        at.memory_state(s, memory).claimed_bits += bits
        if fetch(q, s, copy, core):
            state.prefetching = copy
        else:
            at.memory_state(s, memory).claimed_bits -= bits
        return
    pair = at.pair_of(q, q.off_chip_core, core)
    rate = share_of(q, s, pair, q.off_chip_memory, memory, bits)
    if rate > 0:
        at.memory_state(s, memory).claimed_bits += bits
        begin_arrival(q, s, copy, NONE)
        start_flight(q, s, copy, NONE, OFF_CHIP_FETCH, pair, NONE, rate)
        state.prefetching = copy
        if q.prefetches_results or has_multicast(q, pair):
            spread(q, s, at.copy(s, copy).piece, NONE, OFF_CHIP_FETCH, pair, rate)


@kernel
def offer(q, s, piece):
    """Add a produced piece to the prefetch list of each core that needs it in another memory than its home."""
    where = at.piece_state(s, piece)
    for copy in range(where.first_copy, where.copies_stop):
        if copy != where.home:
            state = at.core(s, at.copy(s, copy).core)
            at.cell(s.forward_copy, state.forward_stop).value = copy
            state.forward_stop += 1


@kernel
def forward(q, s, core):
    """Prefetch the next result for a core, if its memory has unclaimed space and the links have enough free width.

    A core prefetches one result at a time. A prefetch never evicts other data.
    """
    state = at.core(s, core)
    if state.forwarding != NONE:
        return
    pair = NONE
    while state.forward_next < state.forward_stop:
        copy = at.cell(s.forward_copy, state.forward_next).value
        if at.copy(s, copy).state == ABSENT and at.copy(s, copy).uses > 0:
            pair = source_pair(q, s, copy, core)
            if pair != NONE:
                break
        state.forward_next += 1
    if pair == NONE:
        return
    copy = at.cell(s.forward_copy, state.forward_next).value
    if not has_unclaimed_room(q, s, copy):
        return
    at.memory_state(s, at.copy(s, copy).memory).claimed_bits += at.bits_of(q, s, copy)
    if fetch(q, s, copy, core):
        state.forwarding = copy
    else:
        at.memory_state(s, at.copy(s, copy).memory).claimed_bits -= at.bits_of(q, s, copy)
