"""Which CN a core prepares next (compiled), and the queue of events."""

from tilewright.compiled import kernel
from tilewright.schedule.state import (
    BY_RANK,
    CHOSEN,
    CLAIMED,
    EMPTY,
    EVENT_NUMBER,
    EVENTS,
    NONE,
    NOW,
    REQUESTS,
)
from tilewright.schedule.residency_kernel import changes_of, claim, release_claim


@kernel
def add_event(s, cycles, what):
    """Something ends at a time; what started first comes first among ends at the same time."""
    order = s.scalars[EVENT_NUMBER]
    s.scalars[EVENT_NUMBER] = order + 1
    place = s.scalars[EVENTS]
    s.scalars[EVENTS] = place + 1
    while place > 0:
        parent = (place - 1) // 2
        if s.event_cycles[parent] <= cycles:  # numbers of later events are larger
            break
        move_event(s, parent, place)
        place = parent
    s.event_cycles[place] = cycles
    s.event_order[place] = order
    s.event_what[place] = what


@kernel
def move_event(s, source, target):
    """Copy an entry of the heap of events."""
    s.event_cycles[target] = s.event_cycles[source]
    s.event_order[target] = s.event_order[source]
    s.event_what[target] = s.event_what[source]


@kernel
def is_earlier(s, first, second):
    """Order of two entries of the heap of events."""
    if s.event_cycles[first] != s.event_cycles[second]:
        return s.event_cycles[first] < s.event_cycles[second]
    return s.event_order[first] < s.event_order[second]


@kernel
def pop_event(s):
    """Take out the earliest event; returns what it is."""
    what = s.event_what[0]
    last = s.scalars[EVENTS] - 1
    s.scalars[EVENTS] = last
    place = 0
    while 2 * place + 1 < last:
        child = 2 * place + 1
        if child + 1 < last and is_earlier(s, child + 1, child):
            child += 1
        if is_earlier(s, last, child):
            break
        move_event(s, child, place)
        place = child
    move_event(s, last, place)
    return what


@kernel
def add_candidate(q, s, cn):
    """All predecessors of the CN have started."""
    core = q.allocation[cn]
    push(s, s.future, s.core_start[core], s.future_count[core], cn, s.ready_cycles, s.ready_cycles)
    s.future_count[core] += 1
    s.new_candidate[core] = 1


@kernel
def comes_before(first, second, key, ties):
    """Order of CNs by key, then by a second key, then by number."""
    if key[first] != key[second]:
        return key[first] < key[second]
    if ties[first] != ties[second]:
        return ties[first] < ties[second]
    return first < second


@kernel
def push(s, heap, start, count, cn, key, ties):
    """Put a CN into a heap that has `count` entries from `start` on."""
    place = count
    while place > 0:
        parent = (place - 1) // 2
        if not comes_before(cn, heap[start + parent], key, ties):
            break
        heap[start + place] = heap[start + parent]
        place = parent
    heap[start + place] = cn


@kernel
def pop(s, heap, start, count, key, ties):
    """Take the first CN out of a heap that has `count` entries from `start` on."""
    first = heap[start]
    last = count - 1
    cn = heap[start + last]
    place = 0
    while 2 * place + 1 < last:
        child = 2 * place + 1
        if child + 1 < last and comes_before(heap[start + child + 1], heap[start + child], key, ties):
            child += 1
        if not comes_before(heap[start + child], cn, key, ties):
            break
        heap[start + place] = heap[start + child]
        place = child
    heap[start + place] = cn
    return first


@kernel
def horizon(s, core):
    """When the core can start another CN at the earliest."""
    return max(s.scalars[NOW], s.busy_until[core])


@kernel
def choose(q, s, core):
    """Take the best candidate out; sets whether the choice is tentative, since the CN is not ready by the horizon."""
    start = s.core_start[core]
    limit = horizon(s, core)
    key = q.rank if q.settings[BY_RANK] else s.ready_cycles
    while s.future_count[core] > 0 and s.ready_cycles[s.future[start]] <= limit:
        cn = pop(s, s.future, start, s.future_count[core], s.ready_cycles, s.ready_cycles)
        s.future_count[core] -= 1
        push(s, s.ready, start, s.ready_count[core], cn, key, key)
        s.ready_count[core] += 1
    if s.ready_count[core] > 0:
        s.tentative[core] = 0
        s.ready_count[core] -= 1
        return pop(s, s.ready, start, s.ready_count[core] + 1, key, key)
    s.tentative[core] = 1
    s.future_count[core] -= 1
    return pop(s, s.future, start, s.future_count[core] + 1, s.ready_cycles, s.ready_cycles)


@kernel
def prepare_next(q, s, core):
    """Choose the CN that the core prepares, or another one where the choice was tentative; True if that changed."""
    if s.slot_state[core] == EMPTY:
        if s.future_count[core] + s.ready_count[core] == 0:
            return False
        take(q, s, core, choose(q, s, core))
        s.request[s.scalars[REQUESTS]] = core
        s.scalars[REQUESTS] += 1
        return True
    if not s.tentative[core] or not s.new_candidate[core]:
        return False
    s.new_candidate[core] = 0
    chosen = s.slot[core]
    if s.ready_cycles[chosen] <= horizon(s, core):
        s.tentative[core] = 0
        return False
    push(s, s.future, s.core_start[core], s.future_count[core], chosen, s.ready_cycles, s.ready_cycles)
    s.future_count[core] += 1
    better = choose(q, s, core)
    if better == chosen:
        return False
    if s.slot_state[core] == CLAIMED:
        release_claim(q, s, chosen)
    take(q, s, core, better)
    return True


@kernel
def take(q, s, core, cn):
    """The core prepares this CN."""
    s.slot[core] = cn
    s.slot_state[core] = CHOSEN
    s.failed_at[core] = NONE
    s.new_candidate[core] = 0
    s.issued[core] = q.need_start[cn]
    s.arrived[core] = q.need_start[cn]


@kernel
def claim_next(q, s, core):
    """Claim space for the chosen CN where it has none; True if that succeeded."""
    if s.slot_state[core] != CHOSEN or s.failed_at[core] == changes_of(q, s, core):
        return False
    if claim(q, s, core, s.slot[core]):
        s.slot_state[core] = CLAIMED
        return True
    s.failed_at[core] = changes_of(q, s, core)
    return False
