"""What is in which memory (compiled): claims of space, pins, eviction.

Space has two counts: `claimed` is what a memory holds plus what was promised, without what is on its way out; `stored`
is what it physically holds. Claims decide who may have space, stored bits decide when it can be used.
"""

from tilewright.compiled import kernel
from tilewright.schedule.state import (
    ABSENT,
    BEING_WRITTEN,
    CHANGES,
    EVICTION,
    LEAVING,
    NONE,
    NOT_OFF_CHIP,
    NOW,
    OFF_CHIP_MEMORY,
    PRESENT,
    RECORD,
    REQUESTS,
    RESERVED,
)


@kernel
def store(q, s, memory, bits):
    """Physically take (or, with negative bits, give back) space."""
    s.stored_bits[memory] += bits
    if s.stored_bits[memory] > s.peak_bits[memory]:
        s.peak_bits[memory] = s.stored_bits[memory]
    if q.settings[RECORD]:
        row = s.scalars[CHANGES]
        s.scalars[CHANGES] = row + 1
        if row < len(s.memory_changes):
            s.memory_changes[row, 0] = s.scalars[NOW]
            s.memory_changes[row, 1] = memory
            s.memory_changes[row, 2] = bits


@kernel
def remaining_uses(q, s, copy):
    """Needs that this copy still serves: those in its memory, and for a home one for each copy still to be made."""
    uses = s.copy_uses[copy]
    piece = s.copy_piece[copy]
    if s.home[piece] == copy:
        uses += s.pending[piece]
    return uses


@kernel
def settle_copy(q, s, copy):
    """A copy is present and not pinned, or its uses have changed: drop it if it is of no use, else it may be evicted."""
    uses = remaining_uses(q, s, copy)
    if uses == 0:
        drop(q, s, copy)
    else:
        push_evictable(q, s, copy, uses * q.piece_bits[s.copy_piece[copy]])


@kernel
def pin(q, s, copy):
    """Keep a copy where it is until it is unpinned."""
    if s.copy_state[copy] == PRESENT and s.copy_pins[copy] == 0:
        s.evictable_bits[s.copy_memory[copy]] -= q.piece_bits[s.copy_piece[copy]]
    s.copy_pins[copy] += 1


@kernel
def unpin(q, s, copy):
    """Take one pin away."""
    s.copy_pins[copy] -= 1
    if s.copy_pins[copy] > 0:
        return
    memory = s.copy_memory[copy]
    bits = q.piece_bits[s.copy_piece[copy]]
    if s.copy_state[copy] == PRESENT:
        s.evictable_bits[memory] += bits
        s.changes[memory] += 1
        settle_copy(q, s, copy)
    elif s.copy_state[copy] == RESERVED:
        s.copy_state[copy] = ABSENT
        s.claimed_bits[memory] -= bits
        s.changes[memory] += 1


@kernel
def become_present(q, s, copy):
    """The data of a copy has all arrived."""
    s.copy_state[copy] = PRESENT
    piece = s.copy_piece[copy]
    if copy != s.home[piece] and s.copy_uses[copy] > 0:
        s.pending[piece] -= 1
        touch_home(q, s, piece)
    memory = s.copy_memory[copy]
    s.changes[memory] += 1
    if s.copy_pins[copy] == 0:
        s.evictable_bits[memory] += q.piece_bits[piece]
        settle_copy(q, s, copy)


@kernel
def touch_home(q, s, piece):
    """The uses of the home of a piece have changed."""
    home = s.home[piece]
    if home >= 0 and s.copy_state[home] == PRESENT and s.copy_pins[home] == 0:
        settle_copy(q, s, home)


@kernel
def drop(q, s, copy):
    """Free the space of a present copy without a pin at once."""
    memory = s.copy_memory[copy]
    bits = q.piece_bits[s.copy_piece[copy]]
    s.copy_state[copy] = ABSENT
    s.evictable_bits[memory] -= bits
    s.claimed_bits[memory] -= bits
    s.changes[memory] += 1
    store(q, s, memory, -bits)


@kernel
def evict(q, s, copy):
    """Give the space of a present copy away: at once if its data is elsewhere too, else after it is written off-chip."""
    piece = s.copy_piece[copy]
    home = s.home[piece]
    if s.off_chip[piece] != NOT_OFF_CHIP or (home != copy and home >= 0 and s.copy_state[home] == PRESENT):
        drop(q, s, copy)
    else:
        memory = s.copy_memory[copy]
        bits = q.piece_bits[piece]
        s.evictable_bits[memory] -= bits
        s.claimed_bits[memory] -= bits
        s.copy_state[copy] = LEAVING
        request_write(q, s, copy, EVICTION)
    if home != copy:
        s.pending[piece] += 1
        touch_home(q, s, piece)


@kernel
def request_write(q, s, copy, cause):
    """Queue a copy to be written off-chip; writes from one memory go one after the other."""
    memory = s.copy_memory[copy]
    s.off_chip[s.copy_piece[copy]] = BEING_WRITTEN
    s.write_cause[copy] = cause
    s.write_next[copy] = NONE
    if s.write_first[memory] == NONE:
        s.write_first[memory] = copy
        s.request[s.scalars[REQUESTS]] = len(q.core_memory) + memory
        s.scalars[REQUESTS] += 1
    else:
        s.write_next[s.write_last[memory]] = copy
    s.write_last[memory] = copy


@kernel
def claim(q, s, core, cn):
    """Promise the CN all the space it lacks, in all its memories or in none; True if that was possible."""
    for operand in range(q.core_memory.shape[1]):
        if q.core_memory[core, operand] >= 0:
            s.required_bits[q.core_memory[core, operand]] = s.changes[q.core_memory[core, operand]]
    possible = True
    for need in range(q.need_start[cn], q.need_start[cn + 1]):
        copy = s.need_copy[need]
        if copy >= 0:
            possible = possible and s.copy_state[copy] != LEAVING
            reserve(q, s, copy)
    for k in range(q.output_start[cn], q.output_start[cn + 1]):
        copy = s.home[q.output_piece[k]]
        if copy >= 0:
            reserve(q, s, copy)
    for operand in range(q.core_memory.shape[1]):
        memory = q.core_memory[core, operand]
        if memory >= 0 and memory != q.settings[OFF_CHIP_MEMORY]:
            bits = s.claimed_bits[memory] - s.evictable_bits[memory]
            possible = possible and bits <= q.capacity_bits[memory]
    if not possible:
        release_claim(q, s, cn)
        for operand in range(q.core_memory.shape[1]):  # a failed claim changes nothing
            if q.core_memory[core, operand] >= 0:
                s.changes[q.core_memory[core, operand]] = s.required_bits[q.core_memory[core, operand]]
        return False
    for operand in range(q.core_memory.shape[1]):
        memory = q.core_memory[core, operand]
        while memory >= 0 and s.claimed_bits[memory] > q.capacity_bits[memory]:
            evict(q, s, pop_evictable(s, memory))
    return True


@kernel
def reserve(q, s, copy):
    """Pin a copy, and promise it space where it has none."""
    pin(q, s, copy)
    if s.copy_state[copy] == ABSENT:
        s.copy_state[copy] = RESERVED
        s.claimed_bits[s.copy_memory[copy]] += q.piece_bits[s.copy_piece[copy]]


@kernel
def release_claim(q, s, cn):
    """Take back what `claim` has promised and pinned; what has arrived or is under way stays."""
    for need in range(q.need_start[cn], q.need_start[cn + 1]):
        if s.need_copy[need] >= 0:
            unpin(q, s, s.need_copy[need])
    for k in range(q.output_start[cn], q.output_start[cn + 1]):
        if s.home[q.output_piece[k]] >= 0:
            unpin(q, s, s.home[q.output_piece[k]])


@kernel
def changes_of(q, s, core):
    """A number that differs when a claim of the core might succeed that has failed before."""
    total = 0
    for operand in range(q.core_memory.shape[1]):
        if q.core_memory[core, operand] >= 0:
            total += s.changes[q.core_memory[core, operand]]
    return total


@kernel
def is_valid(s, copy, version):
    """Whether an entry among the candidates for eviction still says the truth."""
    return s.copy_version[copy] == version and s.copy_state[copy] == PRESENT and s.copy_pins[copy] == 0


@kernel
def push_evictable(q, s, copy, key):
    """Enter a copy, with its present key, among those that may be evicted; entries made before become void."""
    memory = s.copy_memory[copy]
    start = s.evict_start[memory]
    if start + s.evict_count[memory] == s.evict_start[memory + 1]:
        compact(s, memory)
    s.copy_version[copy] += 1
    s.evict_count[memory] += 1
    sift_up(s, start, s.evict_count[memory] - 1, key, copy, s.copy_version[copy])


@kernel
def pop_evictable(s, memory):
    """Take out the copy with the smallest key, ties by number; there must be one."""
    start = s.evict_start[memory]
    while True:
        copy = s.evict_copy[start]
        version = s.evict_version[start]
        s.evict_count[memory] -= 1
        last = start + s.evict_count[memory]
        sift_down(s, start, s.evict_count[memory], s.evict_key[last], s.evict_copy[last], s.evict_version[last])
        if is_valid(s, copy, version):
            return copy


@kernel
def compact(s, memory):
    """Throw void entries away; there is at most one valid entry a copy, and room for twice as many."""
    start = s.evict_start[memory]
    count = s.evict_count[memory]
    kept = 0
    for i in range(start, start + count):
        if is_valid(s, s.evict_copy[i], s.evict_version[i]):
            sift_up(s, start, kept, s.evict_key[i], s.evict_copy[i], s.evict_version[i])
            kept += 1
    s.evict_count[memory] = kept


@kernel
def sift_up(s, start, place, key, copy, version):
    """Put an entry into the heap whose free place is the last one."""
    while place > 0:
        parent = (place - 1) // 2
        other = s.evict_key[start + parent]
        if other < key or (other == key and s.evict_copy[start + parent] <= copy):
            break
        s.evict_key[start + place] = other
        s.evict_copy[start + place] = s.evict_copy[start + parent]
        s.evict_version[start + place] = s.evict_version[start + parent]
        place = parent
    s.evict_key[start + place] = key
    s.evict_copy[start + place] = copy
    s.evict_version[start + place] = version


@kernel
def sift_down(s, start, count, key, copy, version):
    """Put an entry into the heap whose free place is the first one."""
    place = 0
    while 2 * place + 1 < count:
        child = 2 * place + 1
        if child + 1 < count:
            left = s.evict_key[start + child]
            right = s.evict_key[start + child + 1]
            if right < left or (right == left and s.evict_copy[start + child + 1] < s.evict_copy[start + child]):
                child += 1
        other = s.evict_key[start + child]
        if key < other or (key == other and copy <= s.evict_copy[start + child]):
            break
        s.evict_key[start + place] = other
        s.evict_copy[start + place] = s.evict_copy[start + child]
        s.evict_version[start + place] = s.evict_version[start + child]
        place = child
    s.evict_key[start + place] = key
    s.evict_copy[start + place] = copy
    s.evict_version[start + place] = version
