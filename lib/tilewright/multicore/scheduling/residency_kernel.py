"""Compiled functions for the residency of data in memories: claims of space, pins, and eviction.

Each memory has two counts of bits. `claimed` counts the data in the memory and the data for which space is promised.
Data that are leaving do not count. `stored` counts the data that the memory physically holds. The claimed bits decide
which copies are promised space. The stored bits decide when a copy can use its space.
"""

from tilewright.base.compiled import kernel
from tilewright.multicore.scheduling import access_kernel as at
from tilewright.multicore.scheduling.state_record import (
    ABSENT,
    AWAKE,
    BEING_WRITTEN,
    EVICTION,
    LEAVING,
    NONE,
    NOT_OFF_CHIP,
    PRESENT,
    RESERVED,
)


@kernel
def wake_users(q, s, memory):
    """Allow new attempts at the waiting requests of all cores that use a memory."""
    for place in at.users_of(q, memory):
        at.wait(s, at.user(q, place)).asleep = AWAKE


@kernel
def wake_readers(q, s, piece):
    """Allow new attempts at the waiting requests of all cores that need a piece."""
    for place in at.needs_for(q, piece):
        core = at.core_of(q, at.need(q, at.piece_need(q, place)).cn)
        at.wait(s, core).asleep = AWAKE


@kernel
def store(q, s, memory, bits):
    """Take `bits` bits of physical space in a memory. A negative number frees space."""
    at.memory_state(s, memory).stored_bits += bits
    at.raise_flag(s.changed_memory, memory)
    if bits < 0:
        wake_users(q, s, memory)
    if q.record:
        row = s.changes_count
        s.changes_count = row + 1
        if row < s.change_room:
            change = at.change_row(s, row)
            change.time_cycles = s.now
            change.memory = memory
            change.change_bits = bits


@kernel
def remaining_uses(s, copy):
    """Number of remaining uses of a copy. A use is a need of a CN that the copy must still serve in its memory. The
    home of a piece (the copy where the piece was produced) has further uses: one for each copy that must still be made
    from it.
    """
    c = at.copy(s, copy)
    where = at.piece_state(s, c.piece)
    return c.uses + where.pending if where.home == copy else c.uses


@kernel
def settle_copy(q, s, copy):
    """Drop a present copy without pins, or make it evictable. The copy is dropped if it has no remaining uses. A pin is
    a reason why the copy must stay in its memory. The function must be called when a copy becomes present, when its
    last pin is removed, and when its number of uses changes.
    """
    uses = remaining_uses(s, copy)
    if uses == 0:
        drop(q, s, copy)
    else:
        push_evictable(s, copy, uses * at.bits_of(q, s, copy))


@kernel
def pin(q, s, copy):
    """Add a pin to a copy. A copy with pins stays in its memory."""
    c = at.copy(s, copy)
    if c.state == PRESENT and c.pins == 0:
        at.memory_state(s, c.memory).evictable_bits -= at.bits_of(q, s, copy)
    c.pins += 1


@kernel
def unpin(q, s, copy):
    """Remove one pin of a copy. If it was the last pin, a present copy is dropped or becomes evictable (`settle_copy`).
    A copy for which space is only promised loses the promise.
    """
    c = at.copy(s, copy)
    c.pins -= 1
    if c.pins > 0:
        return
    room = at.memory_state(s, c.memory)
    if c.state == PRESENT:
        room.evictable_bits += at.bits_of(q, s, copy)
        room.changes += 1
        settle_copy(q, s, copy)
    elif c.state == RESERVED:
        c.state = ABSENT
        room.claimed_bits -= at.bits_of(q, s, copy)
        room.changes += 1


@kernel
def become_present(q, s, copy):
    """Mark a copy as present after all its data have arrived."""
    c = at.copy(s, copy)
    c.state = PRESENT
    where = at.piece_state(s, c.piece)
    if copy != where.home and c.uses > 0 and is_sent_by_home(s, copy):
        where.pending -= 1
        touch_home(q, s, c.piece)
    wake_users(q, s, c.memory)
    if copy == where.home:
        wake_readers(q, s, c.piece)
    room = at.memory_state(s, c.memory)
    room.changes += 1
    if c.pins == 0:
        room.evictable_bits += at.bits_of(q, s, copy)
        settle_copy(q, s, copy)


@kernel
def touch_home(q, s, piece):
    """Drop the home of a piece, or make it evictable, after a change of its number of uses (`settle_copy`). The home is
    the copy where the piece was produced. Nothing happens if the home is not present or has a pin.
    """
    home = at.piece_state(s, piece).home
    if home >= 0 and at.copy(s, home).state == PRESENT and at.copy(s, home).pins == 0:
        settle_copy(q, s, home)


@kernel
def is_sent_by_home(s, copy):
    """True if the home of the piece (the copy where it was produced) must stay until the copy is present. A copy that
    takes a detour through the off-chip memory needs no home."""
    return not at.copy(s, copy).takes_detour


@kernel
def drop(q, s, copy):
    """Remove a present copy without pins, and free its space immediately."""
    c = at.copy(s, copy)
    room = at.memory_state(s, c.memory)
    bits = at.bits_of(q, s, copy)
    c.state = ABSENT
    room.evictable_bits -= bits
    room.claimed_bits -= bits
    room.changes += 1
    store(q, s, c.memory, -bits)
    if at.piece_state(s, c.piece).home == copy:
        wake_readers(q, s, c.piece)  # they can fetch the piece from the off-chip memory


@kernel
def evict(q, s, copy):
    """Evict a present copy. Its space is free immediately in three cases:

    * The data are off-chip.
    * The data are being written off-chip.
    * The copy is not the home of the piece (the copy where the piece was produced), and the home is present.

    In all other cases, the copy is first written off-chip.
    """
    c = at.copy(s, copy)
    where = at.piece_state(s, c.piece)
    home = where.home
    if where.off_chip != NOT_OFF_CHIP or (home != copy and home >= 0 and at.copy(s, home).state == PRESENT):
        drop(q, s, copy)
    else:
        room = at.memory_state(s, c.memory)
        bits = at.bits_of(q, s, copy)
        room.evictable_bits -= bits
        room.claimed_bits -= bits
        c.state = LEAVING
        request_write(q, s, copy, EVICTION)
    if home != copy and is_sent_by_home(s, copy):
        where.pending += 1
        touch_home(q, s, c.piece)


@kernel
def request_write(q, s, copy, cause):
    """Add a copy to its memory's queue of writes to the off-chip memory. A memory writes one copy after another."""
    c = at.copy(s, copy)
    room = at.memory_state(s, c.memory)
    at.piece_state(s, c.piece).off_chip = BEING_WRITTEN
    c.write_cause = cause
    c.write_next = NONE
    if room.write_first == NONE:
        room.write_first = copy
        add_request(s, q.core_count + c.memory)
    else:
        at.copy(s, room.write_last).write_next = copy
    room.write_last = copy


@kernel
def add_request(s, who):
    """Add a request to the queue of requests. `who` is the number of a core, or, for a memory, its number plus the
    number of cores.
    """
    at.request(s, s.requests_count).value = who
    at.wait(s, who).asleep = AWAKE
    s.requests_count += 1


@kernel
def claim(q, s, core, cn):
    """Pin all copies that a CN needs or produces. Reserve space in the memories of its core for copies that are not
    there yet. If space is needed, other copies are evicted. In two cases, the function reserves nothing and returns
    False: a memory has too little space, or a copy that the CN needs is leaving its memory at this moment.
    """
    for operand in range(q.operand_count):
        if at.memory_of(q, core, operand) >= 0:
            room = at.memory_state(s, at.memory_of(q, core, operand))
            room.changes_before = room.changes
    possible = True
    for need in at.needs_of(q, cn):
        copy = at.need_copy(s, need)
        if copy >= 0:
            possible = possible and at.copy(s, copy).state != LEAVING
            reserve(q, s, copy)
    for output in at.outputs_of(q, cn):
        copy = at.home_of_output(q, s, output)
        if copy >= 0:
            reserve(q, s, copy)
    for operand in range(q.operand_count):
        memory = at.memory_of(q, core, operand)
        if memory >= 0 and memory != q.off_chip_memory:
            room = at.memory_state(s, memory)
            possible = possible and room.claimed_bits - room.evictable_bits <= at.memory(q, memory).capacity_bits
    if not possible:
        release_claim(q, s, cn)
        for operand in range(q.operand_count):  # a failed claim changes nothing
            if at.memory_of(q, core, operand) >= 0:
                room = at.memory_state(s, at.memory_of(q, core, operand))
                room.changes = room.changes_before
        return False
    for operand in range(q.operand_count):
        memory = at.memory_of(q, core, operand)
        while memory >= 0 and at.memory_state(s, memory).claimed_bits > at.memory(q, memory).capacity_bits:
            evict(q, s, pop_evictable(s, memory))
    return True


@kernel
def reserve(q, s, copy):
    """Pin a copy. If no space is promised for the copy yet, promise space for it."""
    pin(q, s, copy)
    c = at.copy(s, copy)
    if c.state == ABSENT:
        c.state = RESERVED
        at.memory_state(s, c.memory).claimed_bits += at.bits_of(q, s, copy)


@kernel
def release_claim(q, s, cn):
    """Undo `claim` for a CN: remove its pin from each of its copies. Copies that are present or arriving stay. A copy
    loses its space if it has no pin left and its space is only promised.
    """
    for need in at.needs_of(q, cn):
        copy = at.need_copy(s, need)
        if copy >= 0:
            unpin(q, s, copy)
    for output in at.outputs_of(q, cn):
        copy = at.home_of_output(q, s, output)
        if copy >= 0:
            unpin(q, s, copy)


@kernel
def changes_of(q, s, core):
    """Sum of the change counters of a core's memories. A failed claim of space can succeed only after this sum has
    changed.
    """
    total = 0
    for operand in range(q.operand_count):
        memory = at.memory_of(q, core, operand)
        if memory >= 0:
            total += at.memory_state(s, memory).changes
    return total


@kernel
def is_valid(s, copy, version):
    """True if an entry in the heap of evictable copies is valid: it is the newest entry of the copy, and the copy is
    present and has no pins.
    """
    c = at.copy(s, copy)
    return c.version == version and c.state == PRESENT and c.pins == 0


@kernel
def push_evictable(s, copy, key):
    """Add a copy with its current key to the heap of evictable copies. Its older entries become invalid."""
    c = at.copy(s, copy)
    room = at.memory_state(s, c.memory)
    if room.evict_start + room.evict_count == at.memory_state(s, c.memory + 1).evict_start:
        compact(s, c.memory)
    c.version += 1
    room.evict_count += 1
    sift_up(s, room.evict_start, room.evict_count - 1, key, copy, c.version)


@kernel
def pop_evictable(s, memory):
    """Remove the copy with the smallest key from the heap of evictable copies of a memory, and return the number of
    this copy. If several copies have this key, the copy with the smallest number is taken. The heap must have a valid
    entry.
    """
    room = at.memory_state(s, memory)
    start = room.evict_start
    while True:
        copy = at.entry(s, start).copy
        version = at.entry(s, start).version
        room.evict_count -= 1
        last = at.entry(s, start + room.evict_count)
        sift_down(s, start, room.evict_count, last.key, last.copy, last.version)
        if is_valid(s, copy, version):
            return copy


@kernel
def compact(s, memory):
    """Remove the invalid entries from the heap of evictable copies of a memory, because this heap is full. Some
    positions are then free, because the heap has at least two positions per copy, and each copy has at most one valid
    entry.
    """
    room = at.memory_state(s, memory)
    start = room.evict_start
    kept = 0
    for i in range(start, start + room.evict_count):
        entry = at.entry(s, i)
        if is_valid(s, entry.copy, entry.version):
            sift_up(s, start, kept, entry.key, entry.copy, entry.version)
            kept += 1
    room.evict_count = kept


@kernel
def sift_up(s, start, place, key, copy, version):
    """Insert the entry (key, copy, version) into the heap of evictable copies that begins at position `start` of the
    entries. `place` is the last position of the heap, counted from `start`, and must be free.
    """
    while place > 0:
        parent = (place - 1) // 2
        above = at.entry(s, start + parent)
        if above.key < key or (above.key == key and above.copy <= copy):
            break
        set_entry(s, start + place, above.key, above.copy, above.version)
        place = parent
    set_entry(s, start + place, key, copy, version)


@kernel
def sift_down(s, start, count, key, copy, version):
    """Insert the entry (key, copy, version) into a heap of evictable copies. The heap begins at position `start`, which
    must be free. With the new entry, the heap has `count` entries.
    """
    place = 0
    while 2 * place + 1 < count:
        child = 2 * place + 1
        if child + 1 < count:
            left = at.entry(s, start + child)
            right = at.entry(s, start + child + 1)
            if right.key < left.key or (right.key == left.key and right.copy < left.copy):
                child += 1
        below = at.entry(s, start + child)
        if key < below.key or (key == below.key and copy <= below.copy):
            break
        set_entry(s, start + place, below.key, below.copy, below.version)
        place = child
    set_entry(s, start + place, key, copy, version)


@kernel
def set_entry(s, place, key, copy, version):
    """Write the entry (key, copy, version) to position `place` of the array of all heaps of evictable copies."""
    entry = at.entry(s, place)
    entry.key = key
    entry.copy = copy
    entry.version = version
