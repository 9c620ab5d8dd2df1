"""Compiled choice of the computation node (CN) that a core prepares next, and compiled queue of events."""

from tilewright.base.compiled import kernel
from tilewright.multicore.scheduling import access_kernel as at
from tilewright.multicore.scheduling.residency_kernel import add_request, changes_of, claim, release_claim
from tilewright.multicore.scheduling.state_record import AWAKE, CHOSEN, CLAIMED, EMPTY, NONE


@kernel
def add_event(s, cycles, what):
    """Add an event at the time `cycles`. Events at the same time keep the order in which they were added."""
    order = s.event_number
    s.event_number = order + 1
    place = s.events_count
    s.events_count = place + 1
    while place > 0:
        parent = (place - 1) // 2
        if at.event(s, parent).cycles <= cycles:  # the event that was added first stays in front
            break
        move_event(s, parent, place)
        place = parent
    event = at.event(s, place)
    event.cycles = cycles
    event.order = order
    event.what = what


@kernel
def move_event(s, source, target):
    """Copy an event in the heap from position `source` to position `target`."""
    event = at.event(s, target)
    event.cycles = at.event(s, source).cycles
    event.order = at.event(s, source).order
    event.what = at.event(s, source).what


@kernel
def is_earlier(s, first, second):
    """True if the event at position `first` of the heap comes before the event at position `second`."""
    a = at.event(s, first)
    b = at.event(s, second)
    return a.cycles < b.cycles or (a.cycles == b.cycles and a.order < b.order)


@kernel
def pop_event(s):
    """Remove the earliest event from the heap, and return its field `what`. For the end of a CN, `what` is the number
    of its core. For the end of a flight (a transfer in progress), `what` is the number of the flight plus the number of
    all cores.
    """
    what = at.event(s, 0).what
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
    """Add a CN to the candidates of its core. From these candidates, the core chooses the CN that it prepares next. All
    predecessors of the added CN must have started.
    """
    state = at.core(s, at.core_of(q, cn))
    push(q, s, s.future, state.heap_start, state.future_count, cn, False)
    state.future_count += 1
    state.new_candidate = 1
    at.raise_flag(s.to_prepare, at.core_of(q, cn))


@kernel
def comes_before(q, s, first, second, by_rank):
    """True if CN `first` has priority over CN `second`. With `by_rank`, the CN with the lower rank has priority.
    Without `by_rank`, the CN that is ready earlier has priority. If both CNs are ready at the same time, the CN with
    the smaller number has priority.
    """
    if by_rank:
        return at.node(q, first).rank < at.node(q, second).rank
    first_ready = at.node_state(s, first).ready_cycles
    second_ready = at.node_state(s, second).ready_cycles
    return first_ready < second_ready or (first_ready == second_ready and first < second)


@kernel
def push(q, s, heap, start, count, cn, by_rank):
    """Insert a CN into a heap. The heap has `count` entries, which begin at position `start` of the array `heap`. The
    entries are ordered by `comes_before` with `by_rank`. After the call, the caller must increase its count of entries
    by 1.
    """
    place = count
    while place > 0:
        parent = (place - 1) // 2
        if not comes_before(q, s, cn, at.cell(heap, start + parent).value, by_rank):
            break
        at.cell(heap, start + place).value = at.cell(heap, start + parent).value
        place = parent
    at.cell(heap, start + place).value = cn


@kernel
def pop(q, s, heap, start, count, by_rank):
    """Remove the first CN from a heap, and return this CN. The heap has `count` entries, which begin at position
    `start` of the array `heap`. The entries are ordered by `comes_before` with `by_rank`. After the call, the caller
    must decrease its count of entries by 1.
    """
    first = at.cell(heap, start).value
    last = count - 1
    cn = at.cell(heap, start + last).value
    place = 0
    while 2 * place + 1 < last:
        child = 2 * place + 1
        if child + 1 < last and comes_before(
            q, s, at.cell(heap, start + child + 1).value, at.cell(heap, start + child).value, by_rank
        ):
            child += 1
        if not comes_before(q, s, at.cell(heap, start + child).value, cn, by_rank):
            break
        at.cell(heap, start + place).value = at.cell(heap, start + child).value
        place = child
    at.cell(heap, start + place).value = cn
    return first


@kernel
def horizon(s, core):
    """Earliest time in cycles at which a core can start another CN: now, or the end of the CN that it runs."""
    return max(s.now, at.core(s, core).busy_until)


@kernel
def choose(q, s, core):
    """Remove the best candidate of a core from its heap, and return this CN.

    The choice is marked as tentative if the CN is not ready at the earliest time at which the core can start a CN
    (`horizon`).
    """
    state = at.core(s, core)
    start = state.heap_start
    limit = horizon(s, core)
    while state.future_count > 0 and at.node_state(s, at.cell(s.future, start).value).ready_cycles <= limit:
        cn = pop(q, s, s.future, start, state.future_count, False)
        state.future_count -= 1
        push(q, s, s.ready, start, state.ready_count, cn, q.by_rank)
        state.ready_count += 1
    if state.ready_count > 0:
        state.tentative = 0
        state.ready_count -= 1
        return pop(q, s, s.ready, start, state.ready_count + 1, q.by_rank)
    state.tentative = 1
    state.future_count -= 1
    return pop(q, s, s.future, start, state.future_count + 1, False)


@kernel
def prepare_next(q, s, core):
    """Choose the CN that the core prepares. Returns True if the core now prepares another CN than before.

    If the core already prepares a CN, a better candidate replaces this CN only if the choice of this CN was tentative.
    """
    state = at.core(s, core)
    if state.slot_state == EMPTY:
        if state.future_count + state.ready_count == 0:
            return False
        take(q, s, core, choose(q, s, core))
        add_request(s, core)
        return True
    if not state.tentative or not state.new_candidate:
        return False
    state.new_candidate = 0
    chosen = state.slot
    if at.node_state(s, chosen).ready_cycles <= horizon(s, core):
        state.tentative = 0
        return False
    push(q, s, s.future, state.heap_start, state.future_count, chosen, False)
    state.future_count += 1
    better = choose(q, s, core)
    if better == chosen:
        return False
    if state.slot_state == CLAIMED:
        release_claim(q, s, chosen)
    take(q, s, core, better)
    return True


@kernel
def take(q, s, core, cn):
    """Put a CN into the slot of a core. The core then prepares this CN."""
    state = at.core(s, core)
    state.slot = cn
    state.slot_state = CHOSEN
    state.failed_at = NONE
    state.new_candidate = 0
    at.raise_flag(s.to_claim, core)
    state.issued = at.needs_of(q, cn).start
    state.arrived = at.needs_of(q, cn).start


@kernel
def claim_next(q, s, core):
    """Claim memory space for the CN that a core prepares, if the CN has no claim yet. Returns True if the claim
    succeeds. A claim that failed is tried again only after an event in the core's memories that can let it succeed
    (`changes_of`).
    """
    state = at.core(s, core)
    if state.slot_state != CHOSEN or state.failed_at == changes_of(q, s, core):
        return False
    if claim(q, s, core, state.slot):
        state.slot_state = CLAIMED
        at.lower_flag(s.to_claim, core)
        at.wait(s, core).asleep = AWAKE
        return True
    state.failed_at = changes_of(q, s, core)
    return False
