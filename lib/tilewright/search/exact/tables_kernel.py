"""Compiled tables of the cost model for each boundary between memory levels and each multiset of loops below it.

The data that move over a boundary depend only on the multiset of the loops below the boundary. The cost model is
therefore run once for each point of the lattice, with the boundaries of all operands at this point. The numbers of each
run are stored (docs/proofs/exact-search.md, 2).
"""

import math

from tilewright.base.compiled import kernel
from tilewright.base.profile import SWITCHES
from tilewright.cost.allocation_kernel import OUTPUT_INDEX
from tilewright.cost.kernel import word_accesses
from tilewright.cost.problem import IRRELEVANT
from tilewright.cost.reuse_kernel import count_cycles, record_data_movement, size_tiles
from tilewright.cost.tile_kernel import tile_elements_of
from tilewright.cost.workspace import SLICE_ROW
from tilewright.hardware.core import FH, FL, TH, TL
from tilewright.search.exact.lattice_record import LINK_FH, LINK_TH, LINK_TL, PATH_BITS, PATH_SYMBOLS

NEARLY = 1e-9
LEVEL_FLOOR = SWITCHES.index("per_level_loading_floor")


@kernel
def count_at(x, point, j):
    """Number of times that the multiset of a lattice point contains symbol `j`, a pair (loop dimension, size)."""
    return (point // x.stride[j]) % (x.multiplicity[j] + 1)


@kernel
def symbol_at(x, i):
    """Symbol (loop dimension, size) of loop `i` of the child, counted from the innermost loop. The child is the partial
    loop order that is being made.
    """
    return (x.child_path[i // PATH_SYMBOLS] >> (PATH_BITS * (i % PATH_SYMBOLS))) & ((1 << PATH_BITS) - 1)


@kernel
def direction_of(q):
    """Direction of link `q` of a boundary. The direction at the memory below the boundary is TH (to the higher memory)
    or FH (from the higher memory). The direction at the memory above the boundary is TL (to the lower memory) or FL
    (from the lower memory).
    """
    if q == LINK_TH:
        return TH
    if q == LINK_FH:
        return FH
    return TL if q == LINK_TL else FL


@kernel
def count_symbols(x, point):
    """Write to `x.counts` how often the multiset of `point` contains each symbol, a pair (loop dimension, size). Return
    the number of loops in the multiset.
    """
    loops = 0
    for j in range(x.symbol_count):
        x.counts[j] = count_at(x, point, j)
        loops += x.counts[j]
    return loops


@kernel
def place_order(problem, ws, x, below):
    """Write to `ws` a loop order that begins, from the innermost loop, with the loops counted in `x.counts`. `below` is
    the number of these loops. The boundaries of all operands lie directly above these loops.
    """
    inner = 0
    outer = below
    for j in range(x.symbol_count):
        inside = x.counts[j]
        for c in range(x.multiplicity[j]):
            i = inner if c < inside else outer
            ws.loop_dimension[i] = x.loop_dimension[j]
            ws.loop_size[i] = x.loop_size[j]
            if c < inside:
                inner += 1
            else:
                outer += 1
    ws.loop_count = x.loop_count
    for o in range(problem.operand_count):
        for m in range(problem.level_count[o]):
            ws.bound[o, m] = below
            ws.merged[o, m] = below
        ws.merged[o, problem.level_count[o] - 1] = x.loop_count
        ws.bound[o, problem.level_count[o] - 1] = x.loop_count


@kernel
def count_elements(problem, ws, x, point):
    """Compute the number of elements, as the allocator counts them, of the tile of each operand at each memory level.
    All tiles have the loops of lattice point (multiset of loops) `point`. `x.counts` must hold these loops.
    """
    for o in range(problem.operand_count):
        for d in range(problem.dimension_count):
            ws.dimension_size[SLICE_ROW, d] = 1.0
        for m in range(problem.level_count[o]):
            for s in range(problem.spatial_start[o, m], problem.spatial_start[o, m + 1]):
                ws.dimension_size[SLICE_ROW, problem.spatial_dimension[o, s]] *= problem.spatial_factor[0, o, s]
            for d in range(problem.dimension_count):
                ws.dimension_size[o, d] = ws.dimension_size[SLICE_ROW, d]
            for j in range(x.symbol_count):
                for _ in range(x.counts[j]):
                    ws.dimension_size[SLICE_ROW, x.loop_dimension[j]] *= x.loop_size[j]
            x.elements[x.first_level[o] + m, point] = tile_elements_of(problem, ws, o, SLICE_ROW)
            for d in range(problem.dimension_count):
                ws.dimension_size[SLICE_ROW, d] = ws.dimension_size[o, d]


@kernel
def keep_link(problem, ws, x, point, v, b, q):
    """Store the numbers of link `q` of boundary `b` at lattice point (multiset of loops) `point`: bits and cycles of a
    transfer, number of periods, and bandwidth. Return the energy of the link in pJ; it is infinite if the link moves
    data but has no port.
    """
    o = x.boundary_operand[b]
    m = x.boundary_level[b] + (1 if q >= LINK_TL else 0)
    d = direction_of(q)
    bits = ws.amount[v, o, m, d] * ws.precision[v, o, m, d]
    wide = problem.bandwidth_max_bits[o, m, d]
    x.link_bits[b, q, point] = bits
    x.link_cycles[b, q, point] = math.ceil(bits / wide) if wide > 0 else 0
    x.link_count[b, q, point] = ws.count[v, o, m, d]
    exact = problem.switches[LEVEL_FLOOR]
    x.link_bandwidth[b, q, point] = ws.exact_bandwidth[v, o, m, d] if exact else ws.bandwidth[v, o, m, d]
    return link_energy(problem, ws, o, m, d)


@kernel
def link_energy(problem, ws, o, m, d):
    """Energy in pJ of all accesses over one link; infinite if the link moves data but has no port."""
    if ws.amount[0, o, m, d] * ws.precision[0, o, m, d] == 0:
        return 0.0
    if problem.port_of[o, m, d] < 0:
        return math.inf
    k = problem.level_memory[o, m]
    cost = problem.read_energy_pj[k] if d == TL or d == TH else problem.write_energy_pj[k]
    return word_accesses(problem, ws, o, m, d) * cost


@kernel
def stay_within(problem, ws, o, below):
    """Compute the cycles for which the array keeps the data of operand `o`, from the `below` innermost loops only.

    The function is for operands with a single memory level. This level holds all loops of the order, so the cost model
    would also count loops that are not in the multiset of the point.
    """
    ws.stationary_cycles[o] = problem.cycles_per_operation
    for i in range(below):
        if problem.kind[o, ws.loop_dimension[i]] != IRRELEVANT:
            break
        ws.stationary_cycles[o] *= ws.loop_size[i]


@kernel
def round_halves_down(problem, ws, x, point):
    """Round down each tile size at lattice point (multiset of loops) `point` that lies halfway between two integers. If
    there is such a tile size, set `x.uncertain`.

    Rounding errors, which depend on the loop order, would otherwise decide whether the cost model rounds this size up
    or down. The function changes only operands whose sizes contain rounding errors (`x.inexact`).
    """
    for o in range(problem.operand_count):
        if not x.inexact[o]:
            continue
        for m in range(problem.level_count[o] - 1):
            elements = x.elements[x.first_level[o] + m, point]
            if abs(elements - math.floor(elements) - 0.5) < NEARLY * max(1.0, elements):
                ws.tile_elements[0, o, m + 1] = math.floor(elements)
                x.uncertain = 1


@kernel
def fill_point(problem, ws, x, point):
    """Run the cost model at one point of the lattice (one multiset of loops), with the boundaries of all operands at
    this point. Store the numbers of the cost model in the tables (`NUMBER_FIELDS`).
    """
    below = count_symbols(x, point)
    place_order(problem, ws, x, below)
    count_elements(problem, ws, x, point)
    count_cycles(problem, ws)
    for o in range(problem.operand_count):
        if problem.level_count[o] == 1:
            stay_within(problem, ws, o, below)
    size_tiles(problem, ws, 0)
    v = 0
    if problem.spatial_differs:
        round_halves_down(problem, ws, x, point)
    record_data_movement(problem, ws, 0)
    if problem.spatial_differs:
        v = 1
        size_tiles(problem, ws, 1)
        record_data_movement(problem, ws, 1)
    x.cycles[point] = ws.iterations[below]
    for b in range(x.boundary_count):
        o = x.boundary_operand[b]
        a = x.boundary_level[b] + 1
        x.tile_bits[b, point] = ws.tile_elements[v, o, a] * ws.tile_precision[v, o, a]
        x.held_elements[b, point] = ws.tile_elements[0, o, a]
        x.held_precision[b, point] = ws.tile_precision[0, o, a]
        energy = 0.0
        for q in range(4):
            energy += keep_link(problem, ws, x, point, v, b, q)
        x.link_energy[b, point] = energy
    x.sums_open[point] = 0
    for o in range(problem.operand_count):
        x.stays[o, point] = 1
        for j in range(x.symbol_count):
            irrelevant = problem.kind[o, x.loop_dimension[j]] == IRRELEVANT
            if x.counts[j] > 0 and not irrelevant:
                x.stays[o, point] = 0
            if o == OUTPUT_INDEX and irrelevant and x.counts[j] < x.multiplicity[j]:
                x.sums_open[point] = 1
        keep_array_links(problem, ws, x, point, v, o)


@kernel
def keep_array_links(problem, ws, x, point, v, o):
    """Store the energy, the transfers and the bandwidth of the links between the array and the innermost memory of
    operand `o` at lattice point (multiset of loops) `point`.
    """
    energy = 0.0
    for d in range(4):
        if d == TL or d == FL:
            energy += link_energy(problem, ws, o, 0, d)
            wide = problem.bandwidth_max_bits[o, 0, d]
            bits = ws.amount[v, o, 0, d] * ws.precision[v, o, 0, d]
            x.array_cycles[o, d] = math.ceil(bits / wide) if wide > 0 else 0
            if o == OUTPUT_INDEX:
                x.output_count[d] = ws.count[v, o, 0, d]
    x.array_energy[o, point] = energy
    if problem.level_count[o] == 1:
        x.least_tile_bits[o] = ws.tile_elements[v, o, 1] * ws.tile_precision[v, o, 1]
    d = FL if o == OUTPUT_INDEX else TL
    x.array_count[o, point] = ws.count[v, o, 0, d]
    exact = problem.switches[LEVEL_FLOOR]
    x.array_bandwidth[o, point] = ws.exact_bandwidth[v, o, 0, d] if exact else ws.bandwidth[v, o, 0, d]


@kernel
def storage_bits(problem, o, m, sums):
    """Bits per element of operand `o` at its level `m`; `sums` is True if the level keeps partial output sums."""
    if o != OUTPUT_INDEX:
        return problem.precision_bits[o]
    return problem.precision_bits[o] if sums or problem.partial_above[o, m + 1] else problem.final_precision_bits


@kernel
def most_precision(problem, o, m):
    """Largest number of bits per element of operand `o` at its level `m`."""
    return max(storage_bits(problem, o, m, True), storage_bits(problem, o, m, False))


@kernel
def least_precision(problem, o, m):
    """Smallest number of bits per element of operand `o` at its level `m`."""
    return min(storage_bits(problem, o, m, True), storage_bits(problem, o, m, False))


@kernel
def tile_bits_of(problem, x, o, m, point, sums):
    """Bits that the allocator counts for the tile of operand `o` at its level `m` with the loops of `point`.

    `sums` is True if the level keeps partial sums of the output.
    """
    row = x.first_level[o] + m
    precision = storage_bits(problem, o, m, sums)
    bits = x.elements[row, point] * precision
    full = x.lattice_size - 1
    doubled = problem.force_double_buffering[problem.level_memory[o, m]] and point != full
    return bits * 2 if doubled and bits < x.elements[row, full] * precision else bits


@kernel
def least_bits_of(problem, x, o, m, point):
    """Lower bound of the size in bits of a tile of operand `o` at its level `m`, if the tile contains at least the
    loops of `point`.
    """
    return x.least_elements[x.first_level[o] + m, point] * least_precision(problem, o, m)
