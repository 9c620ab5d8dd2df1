"""Compiled functions for moving data: shares of links, fetches, broadcasts, writes off-chip, and prefetches."""

from tilewright.base.compiled import kernel
from tilewright.multicore.scheduling import access_kernel as at
from tilewright.multicore.scheduling.candidate_kernel import add_event
from tilewright.multicore.scheduling.path_kernel import can_listen, free_path, has_multicast, take_path
from tilewright.multicore.scheduling.residency_kernel import (
    become_present,
    pin,
    request_write,
    store,
    unpin,
    wake_readers,
    wake_users,
)
from tilewright.multicore.scheduling.share_kernel import share_of, share_or_wait
from tilewright.multicore.scheduling.state_record import (
    ABSENT,
    ARRIVING,
    AWAKE,
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
def start_flight(q, s, copy, source, cause, pair, shared, rate):
    """Start the transfer of a piece at `rate` bits per cycle over the path of `pair`.

    A fetch writes the copy `copy`. It reads the copy `source`, or the off-chip memory if `source` is NONE. A write to
    the off-chip memory reads the copy `copy`.

    If `shared` is a pair of cores, the transfer joins the latest group of transfers. The first transfer of this group
    moves the same data over the path of the pair `shared`. The source is then not read again, and links that both paths
    share do not carry the data again. A link with multicast carries the data once for all transfers of the group.
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
    take_path(q, s, flight, bits)
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
    """Number for a new flight: the number of an ended flight, or else the next unused number."""
    if s.free_flights > 0:
        s.free_flights -= 1
        return at.cell(s.flight_free, s.free_flights).value
    s.flights_count += 1
    return s.flights_count - 1


@kernel
def log_transfer(q, s, flight, source_memory, target_memory, end):
    """Add a row to the log of transfers. If the log is full, the row is only counted."""
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
    """Number of the pair (source core, `core`) over which `core` can fetch the data of a copy now; NONE if no core can
    send the data now.

    The source is the core of the home (the copy where the piece was produced) under three conditions: the home is
    present, `goes_off_chip` is 0 for the piece, and a path leads to `core`. Otherwise, the source is the off-chip core,
    if the piece is off-chip.
    """
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
    """True if a core that holds a piece sends this piece to other cores. The piece must be a constant, and the system
    must forward constants.
    """
    return q.forwards_constants != 0 and at.piece(q, piece).producer < 0


@kernel
def fastest_source(q, s, copy, core):
    """Number of the copy from which a core can get the constant of `copy` at the largest rate now; NONE if the off-chip
    memory is the fastest source.

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
    """Number of the pair (source core of `pair`, core) if the core can get a copy from this source core now;
    else NONE.
    """
    source = at.source_core(q, pair)
    if is_forwarded(q, at.copy(s, copy).piece):
        return at.pair_of(q, source, core) if at.has_path(q, source, core) else NONE
    own = source_pair(q, s, copy, core)
    return own if own != NONE and at.source_core(q, own) == source else NONE


@kernel
def has_room(q, s, copy):
    """True if the memory of a copy now has enough physically free space for the copy."""
    return at.fits(q, s, at.copy(s, copy).memory, at.bits_of(q, s, copy))


@kernel
def fetch(q, s, copy, core, action):
    """Start the transfer of a copy to a core. If the transfer goes over a bus or a link with multicast, other cores
    that can listen get the piece from this transfer, too. Returns False if the transfer cannot start now.

    `action` is the position of a record in `waits`. If the transfer must wait for a link, this record remembers the
    link.
    """
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
    if is_forwarded(q, c.piece):  # the next source can be another one
        rate = share_of(q, s, pair, source_memory, c.memory, at.bits_of(q, s, copy))
        at.wait(s, action).asleep = AWAKE
    else:
        rate = share_or_wait(q, s, action, copy, pair, source_memory, c.memory)
    if rate == 0:
        return False
    begin_arrival(q, s, copy, source)
    start_flight(q, s, copy, source, cause, pair, NONE, rate)
    spread(q, s, c.piece, source, cause, pair, rate)
    return True


@kernel
def spread(q, s, piece, source, cause, pair, rate):
    """Send a fetched piece to other cores, too, if the fetch goes over a bus or a link with multicast."""
    for hop in at.hops_of(q, pair):
        if at.link(q, at.link_of(q, hop)).is_broadcast:
            broadcast(q, s, piece, source, cause, pair, rate)
            if q.prefetches_results or has_multicast(q, pair):
                overhear(q, s, piece, source, cause, pair, rate)
            return


@kernel
def overhear(q, s, piece, source, cause, pair, rate):
    """Let other cores receive a piece that is being sent to one core. All cores that can listen to the transfer and
    still need the piece receive it, even if they must first fetch other pieces.

    There are two conditions for the memory of the core. It must support the rate of the transfer. It must also have
    space for the piece: space that is reserved for the piece, or space that is not reserved.
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
            else:  # a core has claimed space for the copy, and can now fetch its next piece
                wake_users(q, s, c.memory)
            begin_arrival(q, s, copy, source)
            start_flight(q, s, copy, source, cause, own, pair, rate)


@kernel
def can_take(q, s, copy):
    """True if a copy is still needed, is not arriving yet, and fits its memory now."""
    c = at.copy(s, copy)
    if c.state == RESERVED:
        return has_room(q, s, copy)
    return c.state == ABSENT and c.uses > 0 and has_unclaimed_room(q, s, copy)


@kernel
def has_unclaimed_room(q, s, copy):
    """True if the memory of a copy has enough space for the copy. Space that is occupied or claimed does not count."""
    c = at.copy(s, copy)
    room = at.memory_state(s, c.memory)
    bits = at.bits_of(q, s, copy)
    return room.claimed_bits + bits <= at.memory(q, c.memory).capacity_bits and has_room(q, s, copy)


@kernel
def begin_arrival(q, s, copy, source):
    """Take physical space for a copy that starts to arrive, and pin its source copy. A core that waits for the same
    copy can then fetch its next piece.
    """
    c = at.copy(s, copy)
    if c.state == RESERVED and c.pins > 1:
        wake_users(q, s, c.memory)
    c.state = ARRIVING
    store(q, s, c.memory, at.bits_of(q, s, copy))
    if source >= 0:
        pin(q, s, source)


@kernel
def broadcast(q, s, piece, source, cause, pair, rate):
    """Let further cores receive the piece of a transfer that starts now. A core receives the piece under three
    conditions:

    * The next piece that the core must fetch is this piece, and the core can get it from the source core of the
      transfer.
    * The core can listen to the transfer (`can_listen`).
    * The memory of the core has space for the piece, and supports the rate of the transfer.
    """
    where = at.piece_state(s, piece)
    is_awaited = False
    for copy in range(where.first_copy, where.copies_stop):
        is_awaited = is_awaited or at.copy(s, copy).state == RESERVED
    if not is_awaited:
        return
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
            at.wait(s, core).asleep = AWAKE
            begin_arrival(q, s, copy, source)
            start_flight(q, s, copy, source, cause, own, pair, rate)


@kernel
def skip_served(q, s, core):
    """Advance the field `issued` of a core to the next need of its prepared CN for which a fetch must still start. If
    no such need is left, `issued` becomes the end of the CN's needs.
    """
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
    rate = share_or_wait(q, s, q.core_count + memory, copy, pair, memory, q.off_chip_memory)
    if rate == 0:
        return False
    room.write_first = c.write_next
    start_flight(q, s, copy, copy, c.write_cause, pair, NONE, rate)
    return True


@kernel
def end_flight(q, s, number):
    """End a transfer: free its links, and mark its data as present in the target memory."""
    flight = at.flight(s, number)
    free_path(q, s, flight)
    at.cell(s.flight_free, s.free_flights).value = number
    s.free_flights += 1
    if flight.cause == EVICTION or flight.cause == SINK_OUTPUT:
        end_write(q, s, flight.copy)
        return
    core = at.target_core(q, flight.path)
    state = at.core(s, core)
    if state.prefetching == flight.copy:
        state.prefetching = NONE
        at.raise_flag(s.to_prefetch, core)
    if state.forwarding == flight.copy:
        state.forwarding = NONE
        at.raise_flag(s.to_forward, core)
    become_present(q, s, flight.copy)
    if flight.source >= 0:
        unpin(q, s, flight.source)


@kernel
def end_write(q, s, copy):
    """End the write of a copy to the off-chip memory. If the copy is leaving its memory, its space becomes free.
    Otherwise the pin that kept the copy during the write is removed.
    """
    c = at.copy(s, copy)
    bits = at.bits_of(q, s, copy)
    at.piece_state(s, c.piece).off_chip = OFF_CHIP
    wake_readers(q, s, c.piece)
    store(q, s, q.off_chip_memory, bits)
    if c.state == LEAVING:
        c.state = ABSENT
        at.memory_state(s, c.memory).changes += 1
        store(q, s, c.memory, -bits)
    else:
        unpin(q, s, copy)


@kernel
def produce(q, s, piece):
    """Make a piece present after the CN that produces it has ended. The piece is then in the memory where it was
    produced (its home), or, if it streamed out, in the off-chip memory.
    """
    where = at.piece_state(s, piece)
    copy = where.home
    wake_readers(q, s, piece)
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

    A core prefetches one constant at a time. No prefetch evicts other data.
    """
    state = at.core(s, core)
    action = q.core_count + q.memory_count + core
    if state.prefetching != NONE or waits_for_constant(s, action):
        return
    at.wait(s, action).copy = NONE
    at.lower_flag(s.to_prefetch, core)
    end = at.core(s, core + 1).prefetch_start
    while state.prefetch_next < end:
        waiting = at.copy(s, at.cell(s.prefetch_copy, state.prefetch_next).value)
        if waiting.state == ABSENT and waiting.uses > 0:
            break
        state.prefetch_next += 1
    if state.prefetch_next == end:
        return
    at.raise_flag(s.to_prefetch, core)
    copy = at.cell(s.prefetch_copy, state.prefetch_next).value
    if not has_unclaimed_room(q, s, copy):
        return
    memory = at.copy(s, copy).memory
    bits = at.bits_of(q, s, copy)
    if is_forwarded(q, at.copy(s, copy).piece):
        at.memory_state(s, memory).claimed_bits += bits
        if fetch(q, s, copy, core, action):
            state.prefetching = copy
            at.lower_flag(s.to_prefetch, core)
        else:
            at.memory_state(s, memory).claimed_bits -= bits
        return
    pair = at.pair_of(q, q.off_chip_core, core)
    rate = share_or_wait(q, s, action, copy, pair, q.off_chip_memory, memory)
    if rate > 0:
        at.memory_state(s, memory).claimed_bits += bits
        begin_arrival(q, s, copy, NONE)
        start_flight(q, s, copy, NONE, OFF_CHIP_FETCH, pair, NONE, rate)
        state.prefetching = copy
        at.lower_flag(s.to_prefetch, core)
        if q.prefetches_results or has_multicast(q, pair):
            spread(q, s, at.copy(s, copy).piece, NONE, OFF_CHIP_FETCH, pair, rate)


@kernel
def waits_for_constant(s, action):
    """True if the prefetch of a constant still waits until a link has enough free width. `action` is the position in
    `waits` of the record for this prefetch.
    """
    wait = at.wait(s, action)
    if wait.copy == NONE or at.copy(s, wait.copy).state != ABSENT or at.copy(s, wait.copy).uses == 0:
        return False
    return at.link_state(s, wait.link).free_bits_per_cycle < wait.needed_bits_per_cycle


@kernel
def offer(q, s, piece):
    """Add a produced piece to the prefetch lists of cores. The list of a core gets the piece if the core needs the
    piece in a memory other than the memory where the piece was produced.
    """
    where = at.piece_state(s, piece)
    for copy in range(where.first_copy, where.copies_stop):
        if copy != where.home:
            state = at.core(s, at.copy(s, copy).core)
            at.cell(s.forward_copy, state.forward_stop).value = copy
            state.forward_stop += 1
            at.raise_flag(s.to_forward, at.copy(s, copy).core)


@kernel
def forward(q, s, core):
    """Prefetch the next result for a core, if its memory has unclaimed space and the links have enough free width.

    A core prefetches one result at a time. No prefetch evicts other data.
    """
    state = at.core(s, core)
    if state.forwarding != NONE:
        return
    at.lower_flag(s.to_forward, core)
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
    at.raise_flag(s.to_forward, core)
    copy = at.cell(s.forward_copy, state.forward_next).value
    if not has_unclaimed_room(q, s, copy):
        return
    at.memory_state(s, at.copy(s, copy).memory).claimed_bits += at.bits_of(q, s, copy)
    if fetch(q, s, copy, core, 2 * q.core_count + q.memory_count + core):
        state.forwarding = copy
        at.lower_flag(s.to_forward, core)
    else:
        at.memory_state(s, at.copy(s, copy).memory).claimed_bits -= at.bits_of(q, s, copy)
