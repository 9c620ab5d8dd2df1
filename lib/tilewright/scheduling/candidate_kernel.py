"""Which CN a core prepares next (compiled), and the queue of events."""

from tilewright.compiled import kernel
from tilewright.scheduling.residency_kernel import changes_of, claim, release_claim
from tilewright.scheduling.state_record import (
    CHOSEN,
    CLAIMED,
    EMPTY,
    NONE,
    cell_at,
    core_at,
    event_at,
    node_at,
    node_state_at,
)


@kernel
def add_event(s, cycles, what):
    """Something ends at a time; what started first comes first among ends at the same time."""
    order = s.event_number
    s.event_number = order + 1
    place = s.events_count
    s.events_count = place + 1
    while place > 0:
        parent = (place - 1) // 2
        if event_at(s.events, parent).cycles <= cycles:  # numbers of later events are larger
            break
        move_event(s, parent, place)
        place = parent
    event_at(s.events, place).cycles = cycles
    event_at(s.events, place).order = order
    event_at(s.events, place).what = what


@kernel
def move_event(s, source, target):
    """Copy an entry of the heap of events."""
    event_at(s.events, target).cycles = event_at(s.events, source).cycles
    event_at(s.events, target).order = event_at(s.events, source).order
    event_at(s.events, target).what = event_at(s.events, source).what


@kernel
def is_earlier(s, first, second):
    """Order of two entries of the heap of events."""
    if event_at(s.events, first).cycles != event_at(s.events, second).cycles:
        return event_at(s.events, first).cycles < event_at(s.events, second).cycles
    return event_at(s.events, first).order < event_at(s.events, second).order


@kernel
def pop_event(s):
    """Take out the earliest event; returns what it is."""
    what = event_at(s.events, 0).what
    last = s.events_count - 1
    s.events_count = last
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
    core = cell_at(q.allocation, cn).value
    push(q, s, s.future, core_at(s.cores, core).heap_start, core_at(s.cores, core).future_count, cn, False)
    core_at(s.cores, core).future_count += 1
    core_at(s.cores, core).new_candidate = 1


@kernel
def comes_before(q, s, first, second, by_rank):
    """Order of CNs, by rank or by when they are ready, ties by number."""
    if by_rank:
        return node_at(q.nodes, first).rank < node_at(q.nodes, second).rank
    first_ready = node_state_at(s.nodes, first).ready_cycles
    second_ready = node_state_at(s.nodes, second).ready_cycles
    return first_ready < second_ready or (first_ready == second_ready and first < second)


@kernel
def push(q, s, heap, start, count, cn, by_rank):
    """Put a CN into a heap that has `count` entries from `start` on."""
    place = count
    while place > 0:
        parent = (place - 1) // 2
        if not comes_before(q, s, cn, cell_at(heap, start + parent).value, by_rank):
            break
        cell_at(heap, start + place).value = cell_at(heap, start + parent).value
        place = parent
    cell_at(heap, start + place).value = cn


@kernel
def pop(q, s, heap, start, count, by_rank):
    """Take the first CN out of a heap that has `count` entries from `start` on."""
    first = cell_at(heap, start).value
    last = count - 1
    cn = cell_at(heap, start + last).value
    place = 0
    while 2 * place + 1 < last:
        child = 2 * place + 1
        if child + 1 < last and comes_before(
            q, s, cell_at(heap, start + child + 1).value, cell_at(heap, start + child).value, by_rank
        ):
            child += 1
        if not comes_before(q, s, cell_at(heap, start + child).value, cn, by_rank):
            break
        cell_at(heap, start + place).value = cell_at(heap, start + child).value
        place = child
    cell_at(heap, start + place).value = cn
    return first


@kernel
def horizon(s, core):
    """When the core can start another CN at the earliest."""
    return max(s.now, core_at(s.cores, core).busy_until)


@kernel
def choose(q, s, core):
    """Take the best candidate out; sets whether the choice is tentative, since the CN is not ready by the horizon."""
    start = core_at(s.cores, core).heap_start
    limit = horizon(s, core)
    while (
        core_at(s.cores, core).future_count > 0
        and node_state_at(s.nodes, cell_at(s.future, start).value).ready_cycles <= limit
    ):
        cn = pop(q, s, s.future, start, core_at(s.cores, core).future_count, False)
        core_at(s.cores, core).future_count -= 1
        push(q, s, s.ready, start, core_at(s.cores, core).ready_count, cn, q.by_rank)
        core_at(s.cores, core).ready_count += 1
    if core_at(s.cores, core).ready_count > 0:
        core_at(s.cores, core).tentative = 0
        core_at(s.cores, core).ready_count -= 1
        return pop(q, s, s.ready, start, core_at(s.cores, core).ready_count + 1, q.by_rank)
    core_at(s.cores, core).tentative = 1
    core_at(s.cores, core).future_count -= 1
    return pop(q, s, s.future, start, core_at(s.cores, core).future_count + 1, False)


@kernel
def prepare_next(q, s, core):
    """Choose the CN that the core prepares, or another one where the choice was tentative; True if that changed."""
    if core_at(s.cores, core).slot_state == EMPTY:
        if core_at(s.cores, core).future_count + core_at(s.cores, core).ready_count == 0:
            return False
        take(q, s, core, choose(q, s, core))
        cell_at(s.request, s.requests_count).value = core
        s.requests_count += 1
        return True
    if not core_at(s.cores, core).tentative or not core_at(s.cores, core).new_candidate:
        return False
    core_at(s.cores, core).new_candidate = 0
    chosen = core_at(s.cores, core).slot
    if node_state_at(s.nodes, chosen).ready_cycles <= horizon(s, core):
        core_at(s.cores, core).tentative = 0
        return False
    push(q, s, s.future, core_at(s.cores, core).heap_start, core_at(s.cores, core).future_count, chosen, False)
    core_at(s.cores, core).future_count += 1
    better = choose(q, s, core)
    if better == chosen:
        return False
    if core_at(s.cores, core).slot_state == CLAIMED:
        release_claim(q, s, chosen)
    take(q, s, core, better)
    return True


@kernel
def take(q, s, core, cn):
    """The core prepares this CN."""
    core_at(s.cores, core).slot = cn
    core_at(s.cores, core).slot_state = CHOSEN
    core_at(s.cores, core).failed_at = NONE
    core_at(s.cores, core).new_candidate = 0
    core_at(s.cores, core).issued = node_at(q.nodes, cn).need_start
    core_at(s.cores, core).arrived = node_at(q.nodes, cn).need_start


@kernel
def claim_next(q, s, core):
    """Claim space for the chosen CN where it has none; True if that succeeded."""
    if core_at(s.cores, core).slot_state != CHOSEN or core_at(s.cores, core).failed_at == changes_of(q, s, core):
        return False
    if claim(q, s, core, core_at(s.cores, core).slot):
        core_at(s.cores, core).slot_state = CLAIMED
        return True
    core_at(s.cores, core).failed_at = changes_of(q, s, core)
    return False
