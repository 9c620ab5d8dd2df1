"""Which tiles can be fetched while the one before is in use: utilisation of memories and double buffers (compiled).

zigzag-dse 3.9.1 gives the room that is left to the operands in order; `best_double_buffers` to those for which the
array would wait longest. Which those are is for the latency model to say; here are the choices.
"""

from tilewright.compiled import kernel
from tilewright.cost.allocation_kernel import ROOM_FOR_FINAL, storage_precision
from tilewright.cost.workspace import MAX_BUFFER_SETS
from tilewright.profile import SWITCHES

BEST_BUFFERS = SWITCHES.index("best_double_buffers")


@kernel
def measure_utilization(problem, ws):
    """Share of each memory that each operand takes, alone and with its neighbours, whole and effective.

    Effective: without the part that outer relevant loops replace while the memory is in use.
    """
    for o in range(problem.operand_count):
        for m in range(problem.level_count[o]):
            size = problem.memory_bits[problem.level_memory[o, m]]
            elements = ws.tile_elements[0, o, m + 1]
            precision = ws.tile_precision[0, o, m + 1]
            if problem.switches[ROOM_FOR_FINAL]:
                precision = storage_precision(problem, ws, o, m, ws.bound[o, m - 1] if m > 0 else 0)
            ws.utilization[o, m] = elements * precision / size
            ws.effective_bits[o, m] = kept_bits(problem, elements, precision, ws.top_relevant[o, m + 1])
            ws.effective[o, m] = ws.effective_bits[o, m] / size
    for i in range(problem.held_memory_count):
        k = problem.memory_order[i]
        shared = 0.0
        effective = 0.0
        for j in range(problem.operand_count):
            o = problem.memory_operands[k, j]
            if o >= 0:
                shared += ws.utilization[o, problem.memory_levels[k, j]]
                effective += ws.effective[o, problem.memory_levels[k, j]]
        for j in range(problem.operand_count):
            o = problem.memory_operands[k, j]
            if o >= 0:
                ws.shared_utilization[o, problem.memory_levels[k, j]] = shared
                ws.shared_effective[o, problem.memory_levels[k, j]] = effective


@kernel
def decide_double_buffers(problem, ws):
    """Where the next tile can be written while the present one is in use; room once promised is taken."""
    for o in range(problem.operand_count):
        ws.double_buffered[o, 0] = False
        for m in range(problem.level_count[o]):
            room_taken = ws.shared_effective[o, m]
            if room_taken <= 0.5:
                ws.double_buffered[o, m + 1] = True
            elif ws.effective[o, m] <= 1 - room_taken:
                ws.double_buffered[o, m + 1] = True
                k = problem.level_memory[o, m]
                for j in range(problem.operand_count):
                    other = problem.memory_operands[k, j]
                    if other >= 0:
                        ws.shared_effective[other, problem.memory_levels[k, j]] += ws.effective[o, m]
            else:
                ws.double_buffered[o, m + 1] = False


@kernel
def kept_bits(problem, elements, precision, replaced):
    """Bits of a tile without what its outermost relevant loops, of product `replaced`, replace while it is in use.

    The reference rounds bits down, so that the unit of bits makes a difference; repaired, elements are rounded up
    (B43).
    """
    if problem.switches[BEST_BUFFERS]:
        return -(-elements // replaced) * precision
    return elements * precision // replaced


@kernel
def room_for_second_tiles(problem, ws, k):
    """Bits of memory `k` that are free beside what its operands effectively hold."""
    room = problem.memory_bits[k]
    for j in range(problem.operand_count):
        o = problem.memory_operands[k, j]
        if o >= 0:
            room -= ws.effective_bits[o, problem.memory_levels[k, j]]
    return room


@kernel
def list_buffer_sets(problem, ws, k):
    """List the largest sets of operands whose second tiles fit into memory `k` together, as bit masks in descending
    order.

    Sets that are part of a listed one are left out; the empty set is listed where no other is.
    """
    room = room_for_second_tiles(problem, ws, k)
    held = 0
    for j in range(problem.operand_count):
        if problem.memory_operands[k, j] >= 0:
            held |= 1 << problem.memory_operands[k, j]
    count = 0
    for mask in range((1 << problem.operand_count) - 1, -1, -1):
        if mask & held != mask or count == MAX_BUFFER_SETS:
            continue
        needed = 0
        for j in range(problem.operand_count):
            o = problem.memory_operands[k, j]
            if o >= 0 and (mask >> o) & 1:
                needed += ws.effective_bits[o, problem.memory_levels[k, j]]
        listed = mask == 0 and count > 0
        for i in range(count):
            listed = listed or ws.buffer_set[k, i] & mask == mask
        if not listed and (needed <= room or mask == 0):
            ws.buffer_set[k, count] = mask
            count += 1
    ws.buffer_set_count[k] = count


@kernel
def begin_buffer_choices(problem, ws):
    """Choose the first set of each memory; returns how many memories leave a choice."""
    choices = 0
    for o in range(problem.operand_count):
        ws.double_buffered[o, 0] = False
    for i in range(problem.held_memory_count):
        k = problem.memory_order[i]
        list_buffer_sets(problem, ws, k)
        ws.buffer_choice[k] = 0
        choices += ws.buffer_set_count[k] > 1
    return choices


@kernel
def next_buffer_choice(problem, ws):
    """Go on to the next choice of sets, the last memory varying fastest; False after the last one."""
    for i in range(problem.held_memory_count - 1, -1, -1):
        k = problem.memory_order[i]
        ws.buffer_choice[k] += 1
        if ws.buffer_choice[k] < ws.buffer_set_count[k]:
            return True
        ws.buffer_choice[k] = 0
    return False


@kernel
def keep_buffer_choice(problem, ws):
    """Remember the present choice as the best."""
    for i in range(problem.held_memory_count):
        k = problem.memory_order[i]
        ws.best_choice[k] = ws.buffer_choice[k]


@kernel
def recall_buffer_choice(problem, ws):
    """Return to the choice that was remembered."""
    for i in range(problem.held_memory_count):
        k = problem.memory_order[i]
        ws.buffer_choice[k] = ws.best_choice[k]


@kernel
def apply_buffer_choice(problem, ws):
    """Double-buffer the operands of the chosen sets."""
    for i in range(problem.held_memory_count):
        k = problem.memory_order[i]
        mask = ws.buffer_set[k, ws.buffer_choice[k]]
        for j in range(problem.operand_count):
            o = problem.memory_operands[k, j]
            if o >= 0:
                ws.double_buffered[o, problem.memory_levels[k, j] + 1] = (mask >> o) & 1


@kernel
def buffer_wherever_possible(problem, ws):
    """Double-buffer every operand that could be alone: no choice lets the array wait less."""
    for i in range(problem.held_memory_count):
        k = problem.memory_order[i]
        room = room_for_second_tiles(problem, ws, k)
        for j in range(problem.operand_count):
            o = problem.memory_operands[k, j]
            if o >= 0:
                m = problem.memory_levels[k, j]
                ws.double_buffered[o, m + 1] = ws.effective_bits[o, m] <= room
