"""A lower bound of the energy of all mappings from a few points of the lattice, without tables (compiled).

Where tiles are whole numbers, one more loop below a boundary never adds to what crosses it (docs/exact.md, 3).
"""

import math

from tilewright.compiled import kernel
from tilewright.cost.allocation_kernel import OUTPUT_INDEX
from tilewright.cost.problem import IRRELEVANT
from tilewright.cost.tile_kernel import tile_elements_of
from tilewright.cost.workspace import SLICE_ROW
from tilewright.search.exact.rules_kernel import ROUNDING
from tilewright.search.exact.tables_kernel import count_at, fill_point, least_precision

MOST_POINTS = 64
"""Points at which the innermost boundary of an operand is looked at; of more the point of all loops is bound enough."""


@kernel
def tile_fits(problem, ws, x, o, point):
    """False if the innermost tile of operand `o` up to the loops of a point surely does not fit."""
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
    """Whether all loops irrelevant to operand `o` are in a point."""
    for j in range(x.symbol_count):
        irrelevant = problem.kind[o, x.loop_dimension[j]] == IRRELEVANT
        if irrelevant and count_at(x, point, j) < x.multiplicity[j]:
            return False
    return True


@kernel
def irrelevant_point(problem, x, o):
    """The point of all loops that are irrelevant to operand `o`."""
    point = 0
    for j in range(x.symbol_count):
        if problem.kind[o, x.loop_dimension[j]] == IRRELEVANT:
            point += x.multiplicity[j] * x.stride[j]
    return point


@kernel
def least_innermost(problem, ws, x, o):
    """The least energy of the innermost boundary of operand `o`; infinite where no tile fits."""
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
    """Write `x.floor_energy`."""
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
