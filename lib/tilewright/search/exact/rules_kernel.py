"""Compiled rules for memories and boundaries, and a quick lower bound of the energy.

The rules and the bound hold for every mapping.

docs/proofs/exact-latency.md, 4 to 6, has the proofs. The rules find shared memories, and memories that always have room
for a second tile. The rules also find levels at which the choice of the reference's greedy allocator is known in
advance, and the points at which each boundary can lie.

The quick lower bound uses only a few points of the lattice and no tables. If tile sizes are integers, one more loop
below a boundary never increases the data that cross the boundary (docs/proofs/exact-search.md, 3).
"""

import math

from tilewright.base.compiled import kernel
from tilewright.cost.allocation_kernel import OUTPUT_INDEX
from tilewright.cost.problem import IRRELEVANT
from tilewright.cost.tile_kernel import tile_elements_of
from tilewright.cost.workspace import SLICE_ROW
from tilewright.hardware.core import FH, FL, TL
from tilewright.search.exact.lattice_record import LINK_TL
from tilewright.search.exact.tables_kernel import count_at, direction_of, fill_point, least_precision, most_precision

ROUNDING = 1e-12
"""Relative tolerance for the size of a memory. Tiles that exceed the memory only because of rounding errors fit."""


@kernel
def slice_bits(problem, x, o, m, precision, point):
    """Bits that the allocator counts for a tile of operand `o` at its level `m` with the loops of `point`.

    Each element has `precision` bits. If the memory is always double-buffered, a tile smaller than the tensor counts
    twice.
    """
    row = x.first_level[o] + m
    bits = x.elements[row, point] * precision
    full = x.lattice_size - 1
    doubled = problem.force_double_buffering[problem.level_memory[o, m]] and point != full
    return bits * 2 if doubled and bits < x.elements[row, full] * precision else bits


@kernel
def held_count(problem, k):
    """Number of operands that memory `k` holds."""
    count = 0
    for j in range(problem.operand_count):
        if problem.memory_operands[k, j] >= 0:
            count += 1
    return count


@kernel
def activities(problem, p):
    """Number of links that can move data over port `p`."""
    count = 0
    for s in range(problem.port_start[p], problem.port_start[p + 1]):
        o = problem.service_operand[s]
        d = problem.service_direction[s]
        top = problem.service_level[s] == problem.level_count[o] - 1
        if o == OUTPUT_INDEX:
            count += 1 if d == TL or d == FL or not top else 0
        else:
            count += 1 if d == TL or (d == FH and not top) else 0
    return count


@kernel
def mark_simple(problem, x, b):
    """Mark boundary `b` as simple if the memory below it holds only one operand, and no link of the boundary shares its
    port with another link.
    """
    o = x.boundary_operand[b]
    m = x.boundary_level[b]
    simple = held_count(problem, problem.level_memory[o, m]) == 1
    for q in range(4):
        if o != OUTPUT_INDEX and q != 1 and q != 2:
            continue
        p = problem.port_of[o, m + (1 if q >= LINK_TL else 0), direction_of(q)]
        if p >= 0 and activities(problem, p) != 1:
            simple = False
    x.simple[b] = simple


@kernel
def largest_share(problem, x, o, m, size):
    """Largest share of a memory of `size` bits that the tile of operand `o` at its level `m` can fill.

    Only tiles that fit into the memory count.
    """
    top = m == problem.level_count[o] - 1
    row = x.first_level[o] + m
    most = most_precision(problem, o, m)
    least = least_precision(problem, o, m)
    largest = 0.0
    for point in range(x.lattice_size):
        bits = x.elements[row, point] * most
        if not top:
            if x.elements[row, point] * least > size:
                continue
            b = x.first_boundary[o] + m
            bits = max(bits, float(x.held_elements[b, point] * x.held_precision[b, point]))
        largest = max(largest, bits)
    return largest / size


@kernel
def mark_memories(problem, x):
    """Mark boundaries and memories (`MARK_FIELDS`).

    * `simple`: the memory below the boundary holds one operand, and no link of the boundary shares its port;
    * `shares`: the memory below the boundary also holds tiles of other operands, and it is not a topmost memory that is
      much larger than all its data (`holds_everything`);
    * `always_buffered`: the memory has room for second tiles in every mapping.
    """
    for b in range(x.boundary_count):
        k = problem.level_memory[x.boundary_operand[b], x.boundary_level[b]]
        x.shares[b] = held_count(problem, k) > 1 and not problem.holds_everything[k]
        mark_simple(problem, x, b)
    for i in range(problem.held_memory_count):
        k = problem.memory_order[i]
        share = 0.0
        for j in range(problem.operand_count):
            o = problem.memory_operands[k, j]
            if o >= 0:
                share += largest_share(problem, x, o, problem.memory_levels[k, j], float(problem.memory_bits[k]))
        x.always_buffered[k] = share <= 0.5


@kernel
def never_costlier(problem, x, o, m, precision):
    """True if one more loop in a slice never raises the cost of the slice and never reduces its number of elements.
    Only slices that fit the memory with the further loop are compared.

    A slice is the tile of operand `o` at its level `m`, with `precision` bits per element. Its cost, which the
    allocator compares, is its size in bits times the product of the loops outside the slice.
    """
    n = x.lattice_size
    row = x.first_level[o] + m
    total = float(x.cycles[n - 1])
    limit = float(problem.memory_bits[problem.level_memory[o, m]])
    for point in range(n):
        cost = total / float(x.cycles[point]) * slice_bits(problem, x, o, m, precision, point)
        for j in range(x.symbol_count):
            if count_at(x, point, j) == x.multiplicity[j]:
                continue
            bigger = point + x.stride[j]
            if x.elements[row, bigger] < x.elements[row, point]:
                return False
            bits = slice_bits(problem, x, o, m, precision, bigger)
            if bits <= limit and total / float(x.cycles[bigger]) * bits > cost:
                return False
    return True


@kernel
def is_steady(problem, x, o, m):
    """True if level `m` of operand `o` is the topmost level of the operand, or if `x.steady` is set for the boundary
    above the level."""
    return m == problem.level_count[o] - 1 or x.steady[x.first_boundary[o] + m]


@kernel
def all_steady(problem, x, k):
    """True if `is_steady` holds for all operands of memory `k`."""
    for j in range(problem.operand_count):
        o = problem.memory_operands[k, j]
        if o >= 0 and not is_steady(problem, x, o, problem.memory_levels[k, j]):
            return False
    return True


@kernel
def is_pinned(problem, x, k):
    """True if the allocator always keeps the whole tensors of all operands in memory `k`.

    The allocator does so under three conditions. The whole tensors fit together. The hardware file does not force
    double buffering of the memory. One more loop in the tile of an operand never raises the cost that the allocator
    compares (see `never_costlier`).
    """
    whole = 0.0
    for j in range(problem.operand_count):
        o = problem.memory_operands[k, j]
        if o >= 0:
            m = problem.memory_levels[k, j]
            whole += x.elements[x.first_level[o] + m, x.lattice_size - 1] * most_precision(problem, o, m)
    fits = whole <= problem.memory_bits[k] and not problem.force_double_buffering[k]
    return fits and all_steady(problem, x, k)


@kernel
def has_tile_rule(problem, k):
    """True if the control of memory `k` forbids some loop of an operand of the memory (`control_kernel`)."""
    for j in range(problem.operand_count):
        o = problem.memory_operands[k, j]
        if o >= 0:
            for d in range(problem.dimension_count):
                if problem.no_tile[o, problem.memory_levels[k, j], d]:
                    return True
    return False


@kernel
def mark_greedy(problem, x):
    """Mark how the greedy allocator places each boundary. There are three cases:

    * `pinned`: above all loops;
    * `filled`: above the loops that the level below the boundary can take. The level takes loops until the next loop
      does not fit, or until the control of the memory forbids the next loop;
    * `contested`: the position depends on the complete order.

    The function is called only for the greedy allocator.
    """
    for b in range(x.boundary_count):
        o = x.boundary_operand[b]
        m = x.boundary_level[b]
        most = most_precision(problem, o, m)
        least = least_precision(problem, o, m)
        x.steady[b] = (
            x.same_in_any_order
            and never_costlier(problem, x, o, m, most)
            and (least == most or never_costlier(problem, x, o, m, least))
        )
    for b in range(x.boundary_count):
        k = problem.level_memory[x.boundary_operand[b], x.boundary_level[b]]
        if is_pinned(problem, x, k) and not has_tile_rule(problem, k):
            x.pinned[b] = True
        elif held_count(problem, k) == 1 and x.steady[b]:
            x.filled[b] = True
        else:
            x.contested[b] = True
    for b in range(x.boundary_count):
        if x.boundary_level[b] > 0 and x.contested[b - 1]:
            x.contested[b] = True
            x.filled[b] = False
        if x.contested[b]:
            x.any_contested = True
            x.keep_paths = True
    for o in range(problem.operand_count):
        below = problem.level_count[o] - 2
        x.never_costlier[o] = below < 0 or (
            all_steady(problem, x, problem.level_memory[o, below])
            and not has_tile_rule(problem, problem.level_memory[o, below])
        )


@kernel
def may_lie(problem, x, b, point):
    """False if boundary `b` certainly cannot lie at lattice point (multiset of loops) `point`; otherwise True.

    The boundary cannot lie there in three cases: a link of the boundary moves data but has no port; the tile with the
    loops of the point does not fit; or the search uses the greedy allocator, which never chooses this point for the
    boundary (see `mark_greedy`).
    """
    o = x.boundary_operand[b]
    m = x.boundary_level[b]
    k = problem.level_memory[o, m]
    if x.link_energy[b, point] == math.inf:
        return False
    if x.pinned[b]:
        return point == x.lattice_size - 1
    if problem.holds_everything[k]:
        return True
    limit = float(problem.memory_bits[k])
    if slice_bits(problem, x, o, m, least_precision(problem, o, m), point) > limit * (1 + ROUNDING):
        return False
    if not x.filled[b] or point == x.lattice_size - 1:
        return True
    for j in range(x.symbol_count):
        if count_at(x, point, j) < x.multiplicity[j]:
            if problem.no_tile[o, m, x.loop_dimension[j]]:
                return True
            bigger = point + x.stride[j]
            if slice_bits(problem, x, o, m, most_precision(problem, o, m), bigger) > limit:
                return True
    return False


@kernel
def mark_possible(problem, x):
    """Mark the points at which each boundary can lie."""
    for b in range(x.boundary_count):
        for point in range(x.lattice_size):
            x.possible[b, point] = may_lie(problem, x, b, point)


MOST_POINTS = 64
"""Largest number of points that are tried for the innermost boundary of an operand. If there are more points, only the
point with all loops is used."""


@kernel
def tile_fits(problem, ws, x, o, point):
    """Return False if the innermost tile of operand `o` certainly does not fit with the loops of `point`; otherwise
    True."""
    k = problem.level_memory[o, 0]
    if problem.holds_everything[k]:
        return True
    for d in range(problem.dimension_count):
        ws.dimension_size[SLICE_ROW, d] = 1.0
    for s in range(problem.spatial_start[o, 0], problem.spatial_start[o, 1]):
        ws.dimension_size[SLICE_ROW, problem.spatial_dimension[o, s]] *= problem.spatial_factor[0, o, s]
    for j in range(x.symbol_count):
        for _ in range(count_at(x, point, j)):
            ws.dimension_size[SLICE_ROW, x.loop_dimension[j]] *= x.loop_size[j]
    bits = tile_elements_of(problem, ws, o, SLICE_ROW) * least_precision(problem, o, 0)
    return bits <= problem.memory_bits[k] * (1 + ROUNDING)


@kernel
def keeps_all_irrelevant(problem, x, o, point):
    """True if the multiset of `point` contains all loops that are irrelevant to operand `o`."""
    for j in range(x.symbol_count):
        irrelevant = problem.kind[o, x.loop_dimension[j]] == IRRELEVANT
        if irrelevant and count_at(x, point, j) < x.multiplicity[j]:
            return False
    return True


@kernel
def irrelevant_point(problem, x, o):
    """Lattice point whose multiset is all loops that are irrelevant to operand `o`."""
    point = 0
    for j in range(x.symbol_count):
        if problem.kind[o, x.loop_dimension[j]] == IRRELEVANT:
            point += x.multiplicity[j] * x.stride[j]
    return point


@kernel
def least_innermost(problem, ws, x, o):
    """Lower bound in pJ of the energy of the innermost boundary of operand `o`; infinite if no tile fits."""
    b = x.first_boundary[o]
    full = x.lattice_size - 1
    if tile_fits(problem, ws, x, o, full):
        return x.link_energy[b, full]
    least = math.inf
    looked_at = 0
    for point in range(full):
        if keeps_all_irrelevant(problem, x, o, point) and tile_fits(problem, ws, x, o, point):
            looked_at += 1
            if looked_at > MOST_POINTS:
                return x.link_energy[b, full]
            fill_point(problem, ws, x, point)
            least = min(least, x.link_energy[b, point])
    return least


@kernel
def find_floor(problem, ws, x, count):
    """Compute `x.floor_energy`, a lower bound in pJ of the energy of all mappings. The computation needs no tables."""
    full = x.lattice_size - 1
    fill_point(problem, ws, x, full)
    energy = problem.fixed_energy_pj + x.array_energy[OUTPUT_INDEX, full]
    for o in range(problem.operand_count):
        for m in range(1, problem.level_count[o] - 1):
            energy += x.link_energy[x.first_boundary[o] + m, full]
    for o in range(problem.operand_count):
        if problem.level_count[o] > 1:
            energy += least_innermost(problem, ws, x, o)
        if o != OUTPUT_INDEX:
            point = irrelevant_point(problem, x, o)
            fill_point(problem, ws, x, point)
            energy += x.array_energy[o, point]
    x.floor_energy = energy
