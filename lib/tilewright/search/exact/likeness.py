"""Keys of mapping problems: spatial mappings with equal keys have the same costs for the same loop orders.

The exact search searches only one of several spatial mappings with equal keys (docs/proofs.md#exact-search, 7).
"""

import hashlib
import math
from itertools import pairwise

import numpy as np

from tilewright.cost.problem import Problem
from tilewright.cost.tile_kernel import WHOLE_TILES
from tilewright.search.evaluate import PreparedProblem

EXACT_BELOW = 2**53
"""Integer up to which floating-point numbers represent every integer exactly."""


def likeness(prepared: PreparedProblem) -> tuple[object, bytes]:
    """Key of a mapping problem. Two spatial mappings have the same key if their temporal sizes and the numbers in their
    problems are the same.

    The order of the spatial loops of one level is left out of the key if it cannot change a result. In this case, two
    spatial mappings have the same key if they differ only by an exchange of the loops of two equal sides of the array.
    """
    record = prepared.arrays
    any_order = _loops_by_dimension(record) if _multiplies_exactly(prepared) else {}
    digest = hashlib.blake2b(digest_size=16)
    for name in record.dtype.names or ():  # without the padding between fields, which is arbitrary
        digest.update((any_order[name] if name in any_order else record[name]).tobytes())
    return prepared.spatial.temporal_sizes, digest.digest()


def _multiplies_exactly(prepared: PreparedProblem) -> bool:
    """True if the model certainly computes the same numbers, to the last bit, for every order of the spatial loops of a
    level.

    If the model uses whole tiles, and if the output has no sliding windows, the model only multiplies the spatial loops
    with each other and with temporal loops. All denominators are powers of two. Therefore, the products are exact if
    the product of all numerators is at most EXACT_BELOW. In all other cases, the result is False.
    """
    problem = prepared.arrays
    if not problem.switches[WHOLE_TILES] or problem.has_output_windows:
        return False
    passes = math.prod(size for _, size in prepared.spatial.temporal_sizes)
    for o in range(problem.operand_count):
        count = int(problem.spatial_start[o].max())
        for factors in problem.spatial_factor[:, o, :count].tolist():
            if passes * math.prod(factor.as_integer_ratio()[0] for factor in factors) > EXACT_BELOW:
                return False
    return True


def _loops_by_dimension(problem: Problem) -> dict[str, np.ndarray]:
    """Fields of a problem that list spatial loops, with the loops of each level sorted by dimension."""
    dimension, factor = problem.spatial_dimension.copy(), problem.spatial_factor.copy()
    for o in range(problem.operand_count):
        for begin, end in pairwise(problem.spatial_start[o].tolist()):
            if end - begin > 1:  # a dimension occurs at most once in a level
                order = begin + np.argsort(dimension[o, begin:end], kind="stable")
                dimension[o, begin:end], factor[:, o, begin:end] = dimension[o, order], factor[:, o, order]
    return {"spatial_dimension": dimension, "spatial_factor": factor}
