"""What is in which memory (compiled): claims of space, pins, eviction.

Space has two counts: `claimed` is what a memory holds plus what was promised, without what is on its way out; `stored`
is what it physically holds. Claims decide who may have space, stored bits decide when it can be used.
"""

from tilewright.compiled import kernel
from tilewright.scheduling.access_kernel import bits_of, copy_memory, memory_of
from tilewright.scheduling.state_record import (
    ABSENT,
    BEING_WRITTEN,
    EVICTION,
    LEAVING,
    NONE,
    NOT_OFF_CHIP,
    PRESENT,
    RESERVED,
    cell_at,
    change_at,
    copy_at,
    entry_at,
    memory_at,
    memory_state_at,
    node_at,
    piece_at,
    piece_state_at,
)


@kernel
def store(q, s, memory, bits):
    """Physically take (or, with negative bits, give back) space."""
    memory_state_at(s.memories, memory).stored_bits += bits
    if q.record:
        row = s.changes_count
        s.changes_count = row + 1
        if row < s.change_room:
            change_at(s.memory_changes, row).time_cycles = s.now
            change_at(s.memory_changes, row).memory = memory
            change_at(s.memory_changes, row).change_bits = bits


@kernel
def remaining_uses(q, s, copy):
    """Needs that this copy still serves: those in its memory, and for a home one for each copy still to be sent."""
    uses = copy_at(s.copies, copy).uses
    piece = copy_at(s.copies, copy).piece
    if piece_state_at(s.pieces, piece).home == copy:
        uses += piece_state_at(s.pieces, piece).pending
    return uses


@kernel
def settle_copy(q, s, copy):
    """A copy is present without a pin, or its uses have changed: drop it if it is of no use, else offer it."""
    uses = remaining_uses(q, s, copy)
    if uses == 0:
        drop(q, s, copy)
    else:
        push_evictable(q, s, copy, uses * bits_of(q, s, copy))


@kernel
def pin(q, s, copy):
    """Keep a copy where it is until it is unpinned."""
    if copy_at(s.copies, copy).state == PRESENT and copy_at(s.copies, copy).pins == 0:
        copy_memory(s, copy).evictable_bits -= piece_at(q.pieces, copy_at(s.copies, copy).piece).bits
    copy_at(s.copies, copy).pins += 1


@kernel
def unpin(q, s, copy):
    """Take one pin away."""
    copy_at(s.copies, copy).pins -= 1
    if copy_at(s.copies, copy).pins > 0:
        return
    memory = copy_at(s.copies, copy).memory
    bits = bits_of(q, s, copy)
    if copy_at(s.copies, copy).state == PRESENT:
        memory_state_at(s.memories, memory).evictable_bits += bits
        memory_state_at(s.memories, memory).changes += 1
        settle_copy(q, s, copy)
    elif copy_at(s.copies, copy).state == RESERVED:
        copy_at(s.copies, copy).state = ABSENT
        memory_state_at(s.memories, memory).claimed_bits -= bits
        memory_state_at(s.memories, memory).changes += 1


@kernel
def become_present(q, s, copy):
    """The data of a copy has all arrived."""
    copy_at(s.copies, copy).state = PRESENT
    piece = copy_at(s.copies, copy).piece
    if copy != piece_state_at(s.pieces, piece).home and copy_at(s.copies, copy).uses > 0 and is_sent_by_home(s, copy):
        piece_state_at(s.pieces, piece).pending -= 1
        touch_home(q, s, piece)
    memory = copy_at(s.copies, copy).memory
    memory_state_at(s.memories, memory).changes += 1
    if copy_at(s.copies, copy).pins == 0:
        memory_state_at(s.memories, memory).evictable_bits += piece_at(q.pieces, piece).bits
        settle_copy(q, s, copy)


@kernel
def touch_home(q, s, piece):
    """The uses of the home of a piece have changed."""
    home = piece_state_at(s.pieces, piece).home
    if home >= 0 and copy_at(s.copies, home).state == PRESENT and copy_at(s.copies, home).pins == 0:
        settle_copy(q, s, home)


@kernel
def is_sent_by_home(s, copy):
    """Whether the home of its piece, if there is one, waits for the copy to be there; it does not for detours."""
    return not copy_at(s.copies, copy).takes_detour


@kernel
def drop(q, s, copy):
    """Free the space of a present copy without a pin at once."""
    memory = copy_at(s.copies, copy).memory
    bits = bits_of(q, s, copy)
    copy_at(s.copies, copy).state = ABSENT
    memory_state_at(s.memories, memory).evictable_bits -= bits
    memory_state_at(s.memories, memory).claimed_bits -= bits
    memory_state_at(s.memories, memory).changes += 1
    store(q, s, memory, -bits)


@kernel
def evict(q, s, copy):
    """Give the space of a present copy away: at once if its data is elsewhere too, else once it is written."""
    piece = copy_at(s.copies, copy).piece
    home = piece_state_at(s.pieces, piece).home
    if piece_state_at(s.pieces, piece).off_chip != NOT_OFF_CHIP or (
        home != copy and home >= 0 and copy_at(s.copies, home).state == PRESENT
    ):
        drop(q, s, copy)
    else:
        memory = copy_at(s.copies, copy).memory
        bits = piece_at(q.pieces, piece).bits
        memory_state_at(s.memories, memory).evictable_bits -= bits
        memory_state_at(s.memories, memory).claimed_bits -= bits
        copy_at(s.copies, copy).state = LEAVING
        request_write(q, s, copy, EVICTION)
    if home != copy and is_sent_by_home(s, copy):
        piece_state_at(s.pieces, piece).pending += 1
        touch_home(q, s, piece)


@kernel
def request_write(q, s, copy, cause):
    """Queue a copy to be written off-chip; writes from one memory go one after the other."""
    memory = copy_at(s.copies, copy).memory
    piece_state_at(s.pieces, copy_at(s.copies, copy).piece).off_chip = BEING_WRITTEN
    copy_at(s.copies, copy).write_cause = cause
    copy_at(s.copies, copy).write_next = NONE
    if memory_state_at(s.memories, memory).write_first == NONE:
        memory_state_at(s.memories, memory).write_first = copy
        cell_at(s.request, s.requests_count).value = q.core_count + memory
        s.requests_count += 1
    else:
        copy_at(s.copies, memory_state_at(s.memories, memory).write_last).write_next = copy
    memory_state_at(s.memories, memory).write_last = copy


@kernel
def claim(q, s, core, cn):
    """Promise the CN all the space it lacks, in all its memories or in none; True if that was possible."""
    for operand in range(q.operand_count):
        if memory_of(q, core, operand) >= 0:
            memory = memory_state_at(s.memories, memory_of(q, core, operand))
            memory.changes_before = memory.changes
    possible = True
    for need in range(node_at(q.nodes, cn).need_start, node_at(q.nodes, cn + 1).need_start):
        copy = cell_at(s.need_copy, need).value
        if copy >= 0:
            possible = possible and copy_at(s.copies, copy).state != LEAVING
            reserve(q, s, copy)
    for k in range(node_at(q.nodes, cn).output_start, node_at(q.nodes, cn + 1).output_start):
        copy = piece_state_at(s.pieces, cell_at(q.output_piece, k).value).home
        if copy >= 0:
            reserve(q, s, copy)
    for operand in range(q.operand_count):
        memory = memory_of(q, core, operand)
        if memory >= 0 and memory != q.off_chip_memory:
            bits = memory_state_at(s.memories, memory).claimed_bits - memory_state_at(s.memories, memory).evictable_bits
            possible = possible and bits <= memory_at(q.memories, memory).capacity_bits
    if not possible:
        release_claim(q, s, cn)
        for operand in range(q.operand_count):  # a failed claim changes nothing
            if memory_of(q, core, operand) >= 0:
                memory = memory_state_at(s.memories, memory_of(q, core, operand))
                memory.changes = memory.changes_before
        return False
    for operand in range(q.operand_count):
        memory = memory_of(q, core, operand)
        while (
            memory >= 0
            and memory_state_at(s.memories, memory).claimed_bits > memory_at(q.memories, memory).capacity_bits
        ):
            evict(q, s, pop_evictable(s, memory))
    return True


@kernel
def reserve(q, s, copy):
    """Pin a copy, and promise it space where it has none."""
    pin(q, s, copy)
    if copy_at(s.copies, copy).state == ABSENT:
        copy_at(s.copies, copy).state = RESERVED
        copy_memory(s, copy).claimed_bits += piece_at(q.pieces, copy_at(s.copies, copy).piece).bits


@kernel
def release_claim(q, s, cn):
    """Take back what `claim` has promised and pinned; what has arrived or is under way stays."""
    for need in range(node_at(q.nodes, cn).need_start, node_at(q.nodes, cn + 1).need_start):
        if cell_at(s.need_copy, need).value >= 0:
            unpin(q, s, cell_at(s.need_copy, need).value)
    for k in range(node_at(q.nodes, cn).output_start, node_at(q.nodes, cn + 1).output_start):
        if piece_state_at(s.pieces, cell_at(q.output_piece, k).value).home >= 0:
            unpin(q, s, piece_state_at(s.pieces, cell_at(q.output_piece, k).value).home)


@kernel
def changes_of(q, s, core):
    """A number that differs when a claim of the core might succeed that has failed before."""
    total = 0
    for operand in range(q.operand_count):
        if memory_of(q, core, operand) >= 0:
            total += memory_state_at(s.memories, memory_of(q, core, operand)).changes
    return total


@kernel
def is_valid(s, copy, version):
    """Whether an entry among the candidates for eviction still says the truth."""
    return (
        copy_at(s.copies, copy).version == version
        and copy_at(s.copies, copy).state == PRESENT
        and copy_at(s.copies, copy).pins == 0
    )


@kernel
def push_evictable(q, s, copy, key):
    """Enter a copy, with its present key, among those that may be evicted; entries made before become void."""
    memory = copy_at(s.copies, copy).memory
    start = memory_state_at(s.memories, memory).evict_start
    if start + memory_state_at(s.memories, memory).evict_count == memory_state_at(s.memories, memory + 1).evict_start:
        compact(s, memory)
    copy_at(s.copies, copy).version += 1
    memory_state_at(s.memories, memory).evict_count += 1
    sift_up(s, start, memory_state_at(s.memories, memory).evict_count - 1, key, copy, copy_at(s.copies, copy).version)


@kernel
def pop_evictable(s, memory):
    """Take out the copy with the smallest key, ties by number; there must be one."""
    start = memory_state_at(s.memories, memory).evict_start
    while True:
        copy = entry_at(s.entries, start).copy
        version = entry_at(s.entries, start).version
        memory_state_at(s.memories, memory).evict_count -= 1
        last = start + memory_state_at(s.memories, memory).evict_count
        sift_down(
            s,
            start,
            memory_state_at(s.memories, memory).evict_count,
            entry_at(s.entries, last).key,
            entry_at(s.entries, last).copy,
            entry_at(s.entries, last).version,
        )
        if is_valid(s, copy, version):
            return copy


@kernel
def compact(s, memory):
    """Throw void entries away; there is at most one valid entry a copy, and room for twice as many."""
    start = memory_state_at(s.memories, memory).evict_start
    count = memory_state_at(s.memories, memory).evict_count
    kept = 0
    for i in range(start, start + count):
        if is_valid(s, entry_at(s.entries, i).copy, entry_at(s.entries, i).version):
            sift_up(
                s, start, kept, entry_at(s.entries, i).key, entry_at(s.entries, i).copy, entry_at(s.entries, i).version
            )
            kept += 1
    memory_state_at(s.memories, memory).evict_count = kept


@kernel
def sift_up(s, start, place, key, copy, version):
    """Put an entry into the heap whose free place is the last one."""
    while place > 0:
        parent = (place - 1) // 2
        other = entry_at(s.entries, start + parent).key
        if other < key or (other == key and entry_at(s.entries, start + parent).copy <= copy):
            break
        entry_at(s.entries, start + place).key = other
        entry_at(s.entries, start + place).copy = entry_at(s.entries, start + parent).copy
        entry_at(s.entries, start + place).version = entry_at(s.entries, start + parent).version
        place = parent
    entry_at(s.entries, start + place).key = key
    entry_at(s.entries, start + place).copy = copy
    entry_at(s.entries, start + place).version = version


@kernel
def sift_down(s, start, count, key, copy, version):
    """Put an entry into the heap whose free place is the first one."""
    place = 0
    while 2 * place + 1 < count:
        child = 2 * place + 1
        if child + 1 < count:
            left = entry_at(s.entries, start + child).key
            right = entry_at(s.entries, start + child + 1).key
            if right < left or (
                right == left and entry_at(s.entries, start + child + 1).copy < entry_at(s.entries, start + child).copy
            ):
                child += 1
        other = entry_at(s.entries, start + child).key
        if key < other or (key == other and copy <= entry_at(s.entries, start + child).copy):
            break
        entry_at(s.entries, start + place).key = other
        entry_at(s.entries, start + place).copy = entry_at(s.entries, start + child).copy
        entry_at(s.entries, start + place).version = entry_at(s.entries, start + child).version
        place = child
    entry_at(s.entries, start + place).key = key
    entry_at(s.entries, start + place).copy = copy
    entry_at(s.entries, start + place).version = version
