"""Where the outcome of a search could depend on the order in which the model multiplies (docs/exact.md, 8)."""

from fractions import Fraction

import numpy as np

from tilewright.cost.problem import Problem
from tilewright.profile import SWITCHES


def order_sensitive_dimensions(problem: Problem, search: np.record) -> set[int]:
    """Dimensions whose tile sizes can depend on the order of multiplication in the last bit.

    With a spatial factor that is no binary fraction, if there are two odd loops to multiply; none where tiles are
    whole.
    """
    if problem.switches[SWITCHES.index("whole_tiles")]:
        return set()
    odd = dict.fromkeys(range(problem.dimension_count), 0)
    for j in range(search.symbol_count):
        if search.loop_size[j] & (search.loop_size[j] - 1):
            odd[int(search.loop_dimension[j])] += int(search.multiplicity[j])
    sensitive = set()
    for o in range(problem.operand_count):
        for s in range(problem.spatial_start[o].max()):
            dimension = int(problem.spatial_dimension[o, s])
            if Fraction(float(problem.spatial_factor[0, o, s])).denominator > 2**20 and odd[dimension] > 1:
                sensitive.add(dimension)
    return sensitive


def tiles_are_rounded(problem: Problem, o: int) -> bool:
    """Whether the model multiplies tiles of an operand from numbers that are not exact in binary.

    Those are ratios of window positions, and spatial factors that are no binary fractions.
    """
    if not problem.spatial_differs:
        return False
    factors = [float(factor) for factor in problem.spatial_factor[0, o, : problem.spatial_start[o].max()]]
    return bool(problem.relation_used[o].any()) or any(Fraction(f).denominator > 2**20 for f in factors)


def outputs_outgrow_sums(problem: Problem) -> bool:
    """Whether a memory has less to keep while outputs are accumulated than when they are final (fault B44)."""
    return bool(problem.final_precision_bits > problem.precision_bits[0])


def truncates_by_order(problem: Problem, search: np.record) -> bool:
    """Whether the reference may truncate the size of a window differently in different orders (fault B12)."""
    if problem.switches[SWITCHES.index("exact_window_sizes")]:
        return False
    windows = {int(d) for d in problem.relation_dimension[: problem.relation_count].ravel()}
    return bool(windows & order_sensitive_dimensions(problem, search))
