"""The start of a simulation (compiled): which copies there will be, and whether the allocation is possible."""

from tilewright.compiled import kernel
from tilewright.scheduling.access_kernel import copy_memory, cost_of, has_path, memory_of, stream_of
from tilewright.scheduling.state_record import (
    ABSENT,
    CANNOT_RUN,
    DOES_NOT_FIT,
    EMPTY,
    NO_MEMORY,
    NO_PATH,
    NONE,
    NOT_OFF_CHIP,
    OFF_CHIP,
    cell_at,
    change_at,
    copy_at,
    core_at,
    link_at,
    link_state_at,
    memory_at,
    memory_state_at,
    need_at,
    node_at,
    piece_at,
    piece_state_at,
)


@kernel
def prepare(q, s):
    """Write the state at time 0; `s.status` is not 0 where the allocation cannot be run."""
    cores = q.core_count
    for core in range(cores):
        core_at(s.cores, core).slot = NONE
        core_at(s.cores, core).slot_state = EMPTY
        core_at(s.cores, core).running = NONE
        core_at(s.cores, core).failed_at = NONE
        core_at(s.cores, core).prefetching = NONE
    for memory in range(q.memory_count):
        memory_state_at(s.memories, memory).write_first = NONE
    for link in range(q.link_count):
        link_state_at(s.links, link).free_bits_per_cycle = link_at(q.links, link).bits_per_cycle
    if check_cores(q, s) and make_copies(q, s) and check_room(q, s):
        place_heaps(q, s)
        list_prefetches(q, s)
        store_constants(q, s)


@kernel
def fail(s, status, place, core, other):
    """Note why the allocation cannot be run; False."""
    s.status = status
    s.place = place
    s.place_core = core
    s.place_other = other
    return False


@kernel
def check_cores(q, s):
    """Whether each CN is on a core that can run it, and that can stream what it streams."""
    cores = q.core_count
    for cn in range(q.node_count):
        core = cell_at(q.allocation, cn).value
        if (
            core < 0
            or core >= cores
            or core == q.off_chip_core
            or cost_of(q, node_at(q.nodes, cn).cost_row, core).runtime_cycles < 1
        ):
            return fail(s, CANNOT_RUN, cn, core, 0)
        if cost_of(q, node_at(q.nodes, cn).cost_row, core).has_streams and not check_streams(q, s, cn, core):
            return False
    return True


@kernel
def check_streams(q, s, cn, core):
    """Whether each operand of a CN that streams has a path to stream over."""
    for operand in range(q.operand_count):
        if stream_of(q, node_at(q.nodes, cn).cost_row, core, operand).bits > 0:
            if operand == 0 and not check_path(q, s, core, q.off_chip_core):
                return False
            if operand != 0 and not check_path(q, s, q.off_chip_core, core):
                return False
    return True


@kernel
def make_copies(q, s):
    """A copy for each memory that a piece is produced in or needed in; the home comes first."""
    count = 0
    for piece in range(q.piece_count):
        first = count
        producer = piece_at(q.pieces, piece).producer
        piece_state_at(s.pieces, piece).home = NONE
        piece_state_at(s.pieces, piece).off_chip = OFF_CHIP if producer < 0 else NOT_OFF_CHIP
        source = q.off_chip_core
        if producer >= 0:
            core = cell_at(q.allocation, producer).value
            if stream_of(q, node_at(q.nodes, producer).cost_row, core, 0).bits == 0:
                source = core
                if memory_of(q, core, 0) < 0:
                    return fail(s, NO_MEMORY, producer, core, 0)
                piece_state_at(s.pieces, piece).home = count
                count = add_copy(s, count, piece, memory_of(q, core, 0), core)
            if not check_path(q, s, core, q.off_chip_core):
                return False
        for k in range(piece_at(q.pieces, piece).need_start, piece_at(q.pieces, piece + 1).need_start):
            need = cell_at(q.piece_need, k).value
            cn = need_at(q.needs, need).cn
            core = cell_at(q.allocation, cn).value
            operand = need_at(q.needs, need).operand
            if not check_path(q, s, q.off_chip_core, core):
                return False
            if stream_of(q, node_at(q.nodes, cn).cost_row, core, operand).bits > 0:
                cell_at(s.need_copy, need).value = NONE
                piece_state_at(s.pieces, piece).off_chip_uses += 1
                continue
            memory = memory_of(q, core, operand)
            if memory < 0:
                return fail(s, NO_MEMORY, cn, core, operand)
            copy = first
            while copy < count and copy_at(s.copies, copy).memory != memory:
                copy += 1
            if copy == count:
                count = add_copy(s, count, piece, memory, core)
                piece_state_at(s.pieces, piece).pending += 1
            if copy != piece_state_at(s.pieces, piece).home and is_detour(q, source, core):
                add_off_chip_use(s, piece, copy)
            cell_at(s.need_copy, need).value = copy
            copy_at(s.copies, copy).uses += 1
    s.copies_count = count
    return True


@kernel
def is_detour(q, source, core):
    """Whether a core cannot get a piece from where it is made, or could not write it off-chip to evict it."""
    return source != q.off_chip_core and not (has_path(q, source, core) and has_path(q, core, q.off_chip_core))


@kernel
def add_off_chip_use(s, piece, copy):
    """A CN needs the copy by a detour: its piece must be off-chip too, and the home need not wait for the copy."""
    piece_state_at(s.pieces, piece).off_chip_uses += 1
    if not copy_at(s.copies, copy).takes_detour:
        copy_at(s.copies, copy).takes_detour = True
        piece_state_at(s.pieces, piece).pending -= 1


@kernel
def add_copy(s, copy, piece, memory, core):
    """A copy that is not there yet; returns the number of copies."""
    copy_at(s.copies, copy).piece = piece
    copy_at(s.copies, copy).memory = memory
    copy_at(s.copies, copy).core = core
    copy_at(s.copies, copy).state = ABSENT
    copy_at(s.copies, copy).pins = 0
    copy_at(s.copies, copy).uses = 0
    copy_at(s.copies, copy).version = 0
    copy_at(s.copies, copy).mark = NONE
    copy_at(s.copies, copy).takes_detour = False
    return copy + 1


@kernel
def check_path(q, s, source, target):
    """Whether there is a path from one core to another; notes it where there is none."""
    if has_path(q, source, target):
        return True
    return fail(s, NO_PATH, NONE, source, target)


@kernel
def check_room(q, s):
    """Whether what a CN keeps while it runs fits the memories of its core, when nothing else is there."""
    memories = q.memory_count
    for cn in range(q.node_count):
        core = cell_at(q.allocation, cn).value
        for operand in range(q.operand_count):
            if memory_of(q, core, operand) >= 0:
                memory_state_at(s.memories, memory_of(q, core, operand)).required_bits = 0
        for need in range(node_at(q.nodes, cn).need_start, node_at(q.nodes, cn + 1).need_start):
            copy = cell_at(s.need_copy, need).value
            if copy >= 0 and copy_at(s.copies, copy).mark != cn:
                copy_at(s.copies, copy).mark = cn
                copy_memory(s, copy).required_bits += piece_at(q.pieces, copy_at(s.copies, copy).piece).bits
        for k in range(node_at(q.nodes, cn).output_start, node_at(q.nodes, cn + 1).output_start):
            copy = piece_state_at(s.pieces, cell_at(q.output_piece, k).value).home
            if copy >= 0:
                copy_memory(s, copy).required_bits += piece_at(q.pieces, copy_at(s.copies, copy).piece).bits
        for operand in range(q.operand_count):
            memory = memory_of(q, core, operand)
            if (
                memory >= 0
                and memory_state_at(s.memories, memory).required_bits > memory_at(q.memories, memory).capacity_bits
            ):
                return fail(s, DOES_NOT_FIT, cn, core, memory)
    for memory in range(memories):
        memory_state_at(s.memories, memory).required_bits = 0
    return True


@kernel
def place_heaps(q, s):
    """Room for the candidates of each core and for what may be evicted from each memory."""
    cores = q.core_count
    for core in range(cores + 1):
        core_at(s.cores, core).heap_start = 0
    for cn in range(q.node_count):
        core_at(s.cores, cell_at(q.allocation, cn).value + 1).heap_start += 1
    for core in range(cores):
        core_at(s.cores, core + 1).heap_start += core_at(s.cores, core).heap_start
    memories = q.memory_count
    for memory in range(memories + 1):
        memory_state_at(s.memories, memory).evict_start = 0
    for copy in range(s.copies_count):
        memory_state_at(s.memories, copy_at(s.copies, copy).memory + 1).evict_start += 2
    for memory in range(memories):
        memory_state_at(s.memories, memory + 1).evict_start += memory_state_at(s.memories, memory).evict_start + 16


@kernel
def list_prefetches(q, s):
    """Copies of constants to fetch ahead, each once, by CN."""
    cores = q.core_count
    for core in range(cores + 1):
        core_at(s.cores, core).prefetch_start = 0
    wanted = False
    for operand in range(q.operand_count):
        wanted = wanted or cell_at(q.prefetches, operand).value
    for fill in range(2 if wanted else 0):
        for copy in range(s.copies_count):
            copy_at(s.copies, copy).mark = NONE
        for cn in range(q.node_count):
            core = cell_at(q.allocation, cn).value
            for need in range(node_at(q.nodes, cn).need_start, node_at(q.nodes, cn + 1).need_start):
                copy = cell_at(s.need_copy, need).value
                if (
                    copy < 0
                    or copy_at(s.copies, copy).mark >= 0
                    or piece_at(q.pieces, need_at(q.needs, need).piece).producer >= 0
                ):
                    continue
                if not cell_at(q.prefetches, need_at(q.needs, need).operand).value:
                    continue
                copy_at(s.copies, copy).mark = cn
                if fill == 0:
                    core_at(s.cores, core + 1).prefetch_start += 1
                else:
                    cell_at(s.prefetch_copy, core_at(s.cores, core).prefetch_next).value = copy
                    core_at(s.cores, core).prefetch_next += 1
        if fill == 0:
            for core in range(cores):
                core_at(s.cores, core + 1).prefetch_start += core_at(s.cores, core).prefetch_start
        for core in range(cores):
            core_at(s.cores, core).prefetch_next = core_at(s.cores, core).prefetch_start


@kernel
def store_constants(q, s):
    """All constants are off-chip from the start."""
    memory = q.off_chip_memory
    for piece in range(q.piece_count):
        if piece_at(q.pieces, piece).producer < 0:
            memory_state_at(s.memories, memory).stored_bits += piece_at(q.pieces, piece).bits
    memory_state_at(s.memories, memory).peak_bits = memory_state_at(s.memories, memory).stored_bits
    if q.record and memory_state_at(s.memories, memory).stored_bits > 0:
        change_at(s.memory_changes, 0).time_cycles = 0
        change_at(s.memory_changes, 0).memory = memory
        change_at(s.memory_changes, 0).change_bits = memory_state_at(s.memories, memory).stored_bits
        s.changes_count = 1
