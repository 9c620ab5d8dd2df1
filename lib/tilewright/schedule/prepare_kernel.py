"""The start of a simulation (compiled): which copies of pieces there will be, and whether the allocation is possible."""

from tilewright.compiled import kernel
from tilewright.schedule.state import (
    ABSENT,
    CANNOT_RUN,
    CHANGES,
    COPIES,
    DOES_NOT_FIT,
    EMPTY,
    NO_MEMORY,
    NO_PATH,
    NONE,
    NOT_OFF_CHIP,
    OFF_CHIP,
    OFF_CHIP_CORE,
    OFF_CHIP_MEMORY,
    PLACE,
    PLACE_CORE,
    PLACE_OTHER,
    RECORD,
    STATUS,
)


@kernel
def prepare(q, s):
    """Write the state at time 0; scalars[STATUS] is not 0 where the allocation cannot be run."""
    cores = len(q.core_memory)
    for core in range(cores):
        s.slot[core] = NONE
        s.slot_state[core] = EMPTY
        s.running[core] = NONE
        s.failed_at[core] = NONE
        s.prefetching[core] = NONE
    for memory in range(len(q.capacity_bits)):
        s.write_first[memory] = NONE
    for link in range(len(q.link_bits_per_cycle)):
        s.free_bits_per_cycle[link] = q.link_bits_per_cycle[link]
    if check_cores(q, s) and make_copies(q, s) and check_room(q, s):
        place_heaps(q, s)
        list_prefetches(q, s)
        store_constants(q, s)


@kernel
def fail(s, status, place, core, other):
    """Note why the allocation cannot be run; False."""
    s.scalars[STATUS] = status
    s.scalars[PLACE] = place
    s.scalars[PLACE_CORE] = core
    s.scalars[PLACE_OTHER] = other
    return False


@kernel
def check_cores(q, s):
    """Whether each CN is on a core that can run it."""
    cores = len(q.core_memory)
    for cn in range(len(q.cost_row)):
        core = q.allocation[cn]
        if core < 0 or core >= cores or core == q.settings[OFF_CHIP_CORE] or q.runtime_cycles[q.cost_row[cn], core] < 1:
            return fail(s, CANNOT_RUN, cn, core, 0)
    return True


@kernel
def make_copies(q, s):
    """A copy for each memory that a piece is produced in or needed in; the home comes first."""
    count = 0
    for piece in range(len(q.piece_bits)):
        first = count
        producer = q.piece_producer[piece]
        s.home[piece] = NONE
        s.off_chip[piece] = OFF_CHIP if producer < 0 else NOT_OFF_CHIP
        source = q.settings[OFF_CHIP_CORE]
        if producer >= 0:
            core = q.allocation[producer]
            if q.stream_bits[q.cost_row[producer], core, 0] == 0:
                source = core
                if q.core_memory[core, 0] < 0:
                    return fail(s, NO_MEMORY, producer, core, 0)
                s.home[piece] = count
                count = add_copy(s, count, piece, q.core_memory[core, 0], core)
            if not check_path(q, s, core, q.settings[OFF_CHIP_CORE]):
                return False
        for k in range(q.piece_need_start[piece], q.piece_need_start[piece + 1]):
            need = q.piece_need[k]
            cn = q.need_cn[need]
            core = q.allocation[cn]
            operand = q.need_operand[need]
            if not check_path(q, s, q.settings[OFF_CHIP_CORE], core):
                return False
            if q.stream_bits[q.cost_row[cn], core, operand] > 0:
                s.need_copy[need] = NONE
                s.stream_uses[piece] += 1
                continue
            memory = q.core_memory[core, operand]
            if memory < 0:
                return fail(s, NO_MEMORY, cn, core, operand)
            copy = first
            while copy < count and s.copy_memory[copy] != memory:
                copy += 1
            if copy == count:
                count = add_copy(s, count, piece, memory, core)
                s.pending[piece] += 1
            if copy != s.home[piece] and not check_path(q, s, source, core):
                return False
            s.need_copy[need] = copy
            s.copy_uses[copy] += 1
    s.scalars[COPIES] = count
    return True


@kernel
def add_copy(s, copy, piece, memory, core):
    """A copy that is not there yet; returns the number of copies."""
    s.copy_piece[copy] = piece
    s.copy_memory[copy] = memory
    s.copy_core[copy] = core
    s.copy_state[copy] = ABSENT
    s.copy_pins[copy] = 0
    s.copy_uses[copy] = 0
    s.copy_version[copy] = 0
    s.copy_mark[copy] = NONE
    return copy + 1


@kernel
def check_path(q, s, source, target):
    """Whether data can get from one core to another."""
    if source == target or q.path_exists[source * len(q.core_memory) + target]:
        return True
    return fail(s, NO_PATH, NONE, source, target)


@kernel
def check_room(q, s):
    """Whether what a CN keeps while it runs fits the memories of its core, when nothing else is there."""
    memories = len(q.capacity_bits)
    for cn in range(len(q.cost_row)):
        core = q.allocation[cn]
        for operand in range(q.core_memory.shape[1]):
            if q.core_memory[core, operand] >= 0:
                s.required_bits[q.core_memory[core, operand]] = 0
        for need in range(q.need_start[cn], q.need_start[cn + 1]):
            copy = s.need_copy[need]
            if copy >= 0 and s.copy_mark[copy] != cn:
                s.copy_mark[copy] = cn
                s.required_bits[s.copy_memory[copy]] += q.piece_bits[s.copy_piece[copy]]
        for k in range(q.output_start[cn], q.output_start[cn + 1]):
            copy = s.home[q.output_piece[k]]
            if copy >= 0:
                s.required_bits[s.copy_memory[copy]] += q.piece_bits[s.copy_piece[copy]]
        for operand in range(q.core_memory.shape[1]):
            memory = q.core_memory[core, operand]
            if memory >= 0 and s.required_bits[memory] > q.capacity_bits[memory]:
                return fail(s, DOES_NOT_FIT, cn, core, memory)
    for memory in range(memories):
        s.required_bits[memory] = 0
    return True


@kernel
def place_heaps(q, s):
    """Room for the candidates of each core and for what may be evicted from each memory."""
    cores = len(q.core_memory)
    for core in range(cores + 1):
        s.core_start[core] = 0
    for cn in range(len(q.cost_row)):
        s.core_start[q.allocation[cn] + 1] += 1
    for core in range(cores):
        s.core_start[core + 1] += s.core_start[core]
    memories = len(q.capacity_bits)
    for memory in range(memories + 1):
        s.evict_start[memory] = 0
    for copy in range(s.scalars[COPIES]):
        s.evict_start[s.copy_memory[copy] + 1] += 2
    for memory in range(memories):
        s.evict_start[memory + 1] += s.evict_start[memory] + 16


@kernel
def list_prefetches(q, s):
    """Copies of constants to fetch ahead, each once, by CN."""
    cores = len(q.core_memory)
    for core in range(cores + 1):
        s.prefetch_start[core] = 0
    wanted = False
    for operand in range(len(q.prefetches)):
        wanted = wanted or q.prefetches[operand]
    for fill in range(2 if wanted else 0):
        for copy in range(s.scalars[COPIES]):
            s.copy_mark[copy] = NONE
        for cn in range(len(q.cost_row)):
            core = q.allocation[cn]
            for need in range(q.need_start[cn], q.need_start[cn + 1]):
                copy = s.need_copy[need]
                if copy < 0 or s.copy_mark[copy] >= 0 or q.piece_producer[q.need_piece[need]] >= 0:
                    continue
                if not q.prefetches[q.need_operand[need]]:
                    continue
                s.copy_mark[copy] = cn
                if fill == 0:
                    s.prefetch_start[core + 1] += 1
                else:
                    s.prefetch_copy[s.prefetch_next[core]] = copy
                    s.prefetch_next[core] += 1
        if fill == 0:
            for core in range(cores):
                s.prefetch_start[core + 1] += s.prefetch_start[core]
        for core in range(cores):
            s.prefetch_next[core] = s.prefetch_start[core]


@kernel
def store_constants(q, s):
    """All constants are off-chip from the start."""
    memory = q.settings[OFF_CHIP_MEMORY]
    for piece in range(len(q.piece_bits)):
        if q.piece_producer[piece] < 0:
            s.stored_bits[memory] += q.piece_bits[piece]
    s.peak_bits[memory] = s.stored_bits[memory]
    if q.settings[RECORD] and s.stored_bits[memory] > 0:
        s.memory_changes[0, 0] = 0
        s.memory_changes[0, 1] = memory
        s.memory_changes[0, 2] = s.stored_bits[memory]
        s.scalars[CHANGES] = 1
