"""Compiled start of a simulation: it lists the copies of all pieces, and checks that the allocation can run."""

from tilewright.base.compiled import kernel
from tilewright.multicore.scheduling import access_kernel as at
from tilewright.multicore.scheduling.state_record import (
    ABSENT,
    CANNOT_RUN,
    DOES_NOT_FIT,
    EMPTY,
    NO_MEMORY,
    NO_PATH,
    NONE,
    NOT_OFF_CHIP,
    OFF_CHIP,
)


@kernel
def prepare(q, s):
    """Write the state at time 0. If the allocation cannot run, `s.status` gets the reason; otherwise, `s.status` stays
    DONE.
    """
    for core in range(q.core_count):
        state = at.core(s, core)
        state.slot = NONE
        state.slot_state = EMPTY
        state.running = NONE
        state.failed_at = NONE
        state.prefetching = NONE
        state.forwarding = NONE
        at.raise_flag(s.to_prefetch, core)
    for memory in range(q.memory_count):
        at.memory_state(s, memory).write_first = NONE
        at.memory_state(s, memory).piece = NONE
    for link in range(q.link_count):
        at.link_state(s, link).free_bits_per_cycle = at.link(q, link).bits_per_cycle
    if check_cores(q, s) and make_copies(q, s) and check_room(q, s):
        place_heaps(q, s)
        list_prefetches(q, s)
        place_forwards(q, s)
        store_constants(q, s)


@kernel
def fail(s, status, place, core, other):
    """Write to the state `s` why the allocation cannot run, and return False. `status` is the kind of reason. `place`
    is the CN, and `core` is its core. `other` is an operand for NO_MEMORY, a memory for DOES_NOT_FIT, and 0 for
    CANNOT_RUN.

    For NO_PATH, `place` is NONE, and the missing path leads from `core` to the core `other`.
    """
    s.status = status
    s.place = place
    s.place_core = core
    s.place_other = other
    return False


@kernel
def check_cores(q, s):
    """True if each CN is on a core that can run the CN, and all paths exist that the streams of the CN need."""
    for cn in range(q.node_count):
        core = at.core_of(q, cn)
        if core < 0 or core >= q.core_count or core == q.off_chip_core or at.cost(q, cn, core).runtime_cycles < 1:
            return fail(s, CANNOT_RUN, cn, core, 0)
        if at.cost(q, cn, core).has_streams and not check_streams(q, s, cn, core):
            return False
    return True


@kernel
def check_streams(q, s, cn, core):
    """True if the paths of all streams of a CN exist. The output operand needs a path from the core to the off-chip
    core; all other operands need a path in the opposite direction. If a path does not exist, the reason NO_PATH is
    written to the state `s`.
    """
    for operand in range(q.operand_count):
        if at.stream(q, cn, core, operand).bits > 0:
            if operand == 0 and not check_path(q, s, core, q.off_chip_core):
                return False
            if operand != 0 and not check_path(q, s, q.off_chip_core, core):
                return False
    return True


@kernel
def make_copies(q, s):
    """Write the table of copies: one entry for each piece and each memory in which the piece is produced or needed.
    Streams have no entries. The copy where the piece is produced (its home) comes first. Returns False if a memory or a
    path is missing.
    """
    count = 0
    for piece in range(q.piece_count):
        first = count
        producer = at.piece(q, piece).producer
        where = at.piece_state(s, piece)
        where.home = NONE
        where.first_copy = first
        where.off_chip = OFF_CHIP if producer < 0 else NOT_OFF_CHIP
        source = q.off_chip_core
        if producer >= 0:
            core = at.core_of(q, producer)
            if at.stream(q, producer, core, 0).bits == 0:
                source = core
                if at.memory_of(q, core, 0) < 0:
                    return fail(s, NO_MEMORY, producer, core, 0)
                where.home = count
                count = add_copy(s, count, piece, at.memory_of(q, core, 0), core)
            if not check_path(q, s, core, q.off_chip_core):
                return False
        for k in at.needs_for(q, piece):
            number = at.piece_need(q, k)
            need = at.need(q, number)
            core = at.core_of(q, need.cn)
            if not check_path(q, s, q.off_chip_core, core):
                return False
            if at.stream(q, need.cn, core, need.operand).bits > 0:
                at.cell(s.need_copy, number).value = NONE
                where.off_chip_uses += 1
                continue
            memory = at.memory_of(q, core, need.operand)
            if memory < 0:
                return fail(s, NO_MEMORY, need.cn, core, need.operand)
            room = at.memory_state(s, memory)
            if room.piece != piece:
                count = add_copy(s, count, piece, memory, core)
                where.pending += 1
            copy = room.piece_copy
            if copy != where.home and is_detour(q, piece, source, core):
                add_off_chip_use(s, piece, copy)
            at.cell(s.need_copy, number).value = copy
            at.copy(s, copy).uses += 1
        where.copies_stop = count
    s.copies_count = count
    return True


@kernel
def is_detour(q, piece, source, core):
    """True if a piece that core `source` produces reaches `core` by a detour through the off-chip memory.

    A detour is needed in three cases:

    * All cores except the producing core may get the piece only through the off-chip memory.
    * No path leads from `source` to `core`.
    * No path leads from `core` to the off-chip core.

    If `source` is the off-chip core, the result is False: constants and pieces that stream out never take a detour.
    """
    if source == q.off_chip_core:
        return False
    is_direct = at.has_path(q, source, core) and at.has_path(q, core, q.off_chip_core)
    return at.piece(q, piece).goes_off_chip != 0 or not is_direct


@kernel
def add_off_chip_use(s, piece, copy):
    """Count one need of a CN as an off-chip use of a piece. The copy `copy` for this CN takes a detour through the
    off-chip memory. Therefore the piece must also be written off-chip, and the copy where the piece was produced (its
    home) need not stay until this CN has its copy.
    """
    where = at.piece_state(s, piece)
    where.off_chip_uses += 1
    if not at.copy(s, copy).takes_detour:
        at.copy(s, copy).takes_detour = True
        where.pending -= 1


@kernel
def add_copy(s, copy, piece, memory, core):
    """Fill entry `copy` of the table of copies, for a piece in a memory. The copy is at first absent (ABSENT). Returns
    the index of the next entry.
    """
    c = at.copy(s, copy)
    c.piece = piece
    c.memory = memory
    c.core = core
    c.state = ABSENT
    c.pins = 0
    c.uses = 0
    c.version = 0
    c.mark = NONE
    c.takes_detour = False
    at.memory_state(s, memory).piece = piece
    at.memory_state(s, memory).piece_copy = copy
    return copy + 1


@kernel
def check_path(q, s, source, target):
    """True if a path leads from the source core to the target core. If there is no path, the reason NO_PATH and both
    cores are written to the state `s`.
    """
    if at.has_path(q, source, target):
        return True
    return fail(s, NO_PATH, NONE, source, target)


@kernel
def check_room(q, s):
    """True if, for every CN, all pieces that the CN needs and produces fit together in the empty memories of its core.
    Pieces that stream are left out. If the pieces of a CN do not fit, the reason DOES_NOT_FIT is written to the state
    `s`.
    """
    for cn in range(q.node_count):
        core = at.core_of(q, cn)
        for operand in range(q.operand_count):
            if at.memory_of(q, core, operand) >= 0:
                at.memory_state(s, at.memory_of(q, core, operand)).required_bits = 0
        for need in at.needs_of(q, cn):
            copy = at.need_copy(s, need)
            if copy >= 0 and at.copy(s, copy).mark != cn:
                at.copy(s, copy).mark = cn
                at.memory_state(s, at.copy(s, copy).memory).required_bits += at.bits_of(q, s, copy)
        for output in at.outputs_of(q, cn):
            copy = at.home_of_output(q, s, output)
            if copy >= 0:
                at.memory_state(s, at.copy(s, copy).memory).required_bits += at.bits_of(q, s, copy)
        for operand in range(q.operand_count):
            memory = at.memory_of(q, core, operand)
            if memory >= 0 and at.memory_state(s, memory).required_bits > at.memory(q, memory).capacity_bits:
                return fail(s, DOES_NOT_FIT, cn, core, memory)
    for memory in range(q.memory_count):
        at.memory_state(s, memory).required_bits = 0
    return True


@kernel
def place_heaps(q, s):
    """Reserve space for two types of heaps: candidates of each core, and evictable copies of each memory."""
    for core in range(q.core_count + 1):
        at.core(s, core).heap_start = 0
    for cn in range(q.node_count):
        at.core(s, at.core_of(q, cn) + 1).heap_start += 1
    for core in range(q.core_count):
        at.core(s, core + 1).heap_start += at.core(s, core).heap_start
    for memory in range(q.memory_count + 1):
        at.memory_state(s, memory).evict_start = 0
    for copy in range(s.copies_count):
        at.memory_state(s, at.copy(s, copy).memory + 1).evict_start += 2
    for memory in range(q.memory_count):
        at.memory_state(s, memory + 1).evict_start += at.memory_state(s, memory).evict_start + 16


@kernel
def list_prefetches(q, s):
    """List the copies of constants that each core prefetches. Each copy is listed once. The order is the order of the
    CNs in `prefetch_order`.
    """
    for core in range(q.core_count + 1):
        at.core(s, core).prefetch_start = 0
    wanted = False
    for operand in range(q.operand_count):
        wanted = wanted or at.is_prefetched(q, operand)
    for fill in range(2 if wanted else 0):
        for copy in range(s.copies_count):
            at.copy(s, copy).mark = NONE
        for place in range(q.node_count):
            cn = at.cell(q.prefetch_order, place).value
            core = at.core_of(q, cn)
            for need in at.needs_of(q, cn):
                if not is_to_prefetch(q, s, need):
                    continue
                copy = at.need_copy(s, need)
                at.copy(s, copy).mark = cn
                if fill == 0:
                    at.core(s, core + 1).prefetch_start += 1
                else:
                    at.cell(s.prefetch_copy, at.core(s, core).prefetch_next).value = copy
                    at.core(s, core).prefetch_next += 1
        if fill == 0:
            for core in range(q.core_count):
                at.core(s, core + 1).prefetch_start += at.core(s, core).prefetch_start
        for core in range(q.core_count):
            at.core(s, core).prefetch_next = at.core(s, core).prefetch_start


@kernel
def place_forwards(q, s):
    """Reserve space in `forward_copy` for the results that each core can prefetch. The space is later filled in the
    order in which the results are produced.
    """
    for core in range(q.core_count + 1):
        at.core(s, core).forward_start = 0
    if q.prefetches_results == 0:
        return
    for copy in range(s.copies_count):
        c = at.copy(s, copy)
        if at.piece(q, c.piece).producer >= 0 and at.piece_state(s, c.piece).home != copy:
            at.core(s, c.core + 1).forward_start += 1
    for core in range(q.core_count):
        at.core(s, core + 1).forward_start += at.core(s, core).forward_start
        at.core(s, core).forward_next = at.core(s, core).forward_start
        at.core(s, core).forward_stop = at.core(s, core).forward_start


@kernel
def is_to_prefetch(q, s, need):
    """True if a need is for a constant that is to be prefetched, and the copy of this need is not marked for
    prefetching yet."""
    copy = at.need_copy(s, need)
    if copy < 0 or at.copy(s, copy).mark >= 0 or at.piece(q, at.need(q, need).piece).producer >= 0:
        return False
    return at.is_prefetched(q, at.need(q, need).operand)


@kernel
def store_constants(q, s):
    """Store all constants in the off-chip memory at time 0."""
    room = at.memory_state(s, q.off_chip_memory)
    for piece in range(q.piece_count):
        if at.piece(q, piece).producer < 0:
            room.stored_bits += at.piece(q, piece).bits
    room.peak_bits = room.stored_bits
    if q.record and room.stored_bits > 0:
        change = at.change_row(s, 0)
        change.time_cycles = 0
        change.memory = q.off_chip_memory
        change.change_bits = room.stored_bits
        s.changes_count = 1
