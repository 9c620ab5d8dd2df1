"""Keys of mapping problems: spatial mappings with equal keys have the same costs for the same loop orders.

The exact search searches only one of several spatial mappings with equal keys (docs/proofs/exact-rounds.md, 7).
"""

import hashlib
import math
from collections.abc import Mapping
from functools import lru_cache
from itertools import pairwise

import numpy as np

from tilewright.cost.problem import Problem
from tilewright.cost.tile_kernel import WHOLE_TILES
from tilewright.mapping.constraints import TemporalOrderingEntry
from tilewright.search.evaluate import PreparedProblem
from tilewright.search.exact.mirrors import merges_alike, mirror_of, mirrored_sizes

Ordering = tuple[TemporalOrderingEntry, ...]
EXACT_BELOW = 2**53
"""Number up to which floating-point numbers represent every integer exactly."""


def likeness(
    prepared: PreparedProblem, ordering: Ordering | None = None, *, free: bool = False
) -> tuple[object, bytes]:
    """Key of a mapping problem. Two spatial mappings have the same key if their temporal sizes are equal, and the
    numbers in their problems are equal.

    The key leaves out the order of the spatial loops of one level, if this order cannot change a result. The key is
    then also equal for spatial mappings that differ only by an exchange of the loops of two equal sides of the array.

    A spatial mapping and its mirror image (`mirror_of`) have the same key if the search space also has the mirrored
    loop orders. This is the case if `free` is true (the search also chooses the level boundaries), or if the factors of
    both spatial mappings are merged alike. Mirror images have different keys in three cases: `ordering` is not (), the
    core has keys of waiting, or the core has control rules. In each of these cases, a part of the problem refers to
    loop dimensions by name, and a name does not change in the mirror image.
    """
    record, sizes = prepared.arrays, prepared.spatial.temporal_sizes
    if not _multiplies_exactly(prepared):
        return sizes, _digest(record, {})
    is_free_of_names = ordering == () and not record.has_waiting and not record.has_control
    mirror, dimensions = mirror_of(prepared.layer) if is_free_of_names else (), prepared.dimensions
    exchange = dict(mirror)
    mirrored = mirrored_sizes(sizes, exchange, dimensions)
    has_mirror = bool(mirror) and (free or merges_alike(sizes, mirror, dimensions))
    keys = []
    if not has_mirror or sizes <= mirrored:
        keys.append((sizes, _digest(record, _loops_by_dimension(record, None))))
    if has_mirror and mirrored <= sizes:
        places = np.array([dimensions.index(exchange.get(d, d)) for d in dimensions])
        keys.append((mirrored, _digest(record, _loops_by_dimension(record, places))))
    return min(keys)


def _digest(record: Problem, replaced: Mapping[str, np.ndarray]) -> bytes:
    """Digest of the fields of a record. For the fields in `replaced`, the values in `replaced` are used."""
    digest, data = hashlib.blake2b(digest_size=16), memoryview(record.tobytes())
    for begin, end in _runs(record.dtype, frozenset(replaced)):
        digest.update(data[begin:end])
    for name in sorted(replaced):
        digest.update(replaced[name].tobytes())
    return digest.digest()


@lru_cache
def _runs(fields: np.dtype[np.void], left_out: frozenset[str]) -> tuple[tuple[int, int], ...]:
    """Byte ranges of a record that hold its fields, as pairs (first byte, byte after the last). The fields in
    `left_out` and the padding between fields are in no range, because the bytes of the padding are arbitrary."""
    found: list[tuple[int, int]] = []
    for name, (kind, begin, *_) in sorted((fields.fields or {}).items(), key=lambda item: item[1][1]):
        if name not in left_out:
            first = found.pop()[0] if found and found[-1][1] == begin else begin
            found.append((first, begin + kind.itemsize))
    return tuple(found)


def _multiplies_exactly(prepared: PreparedProblem) -> bool:
    """True if the model certainly computes the same numbers, to the last bit, for every order of the spatial loops of a
    level.

    If the model uses whole tiles, and if the output has no sliding windows, the model uses the spatial loops only in
    products with each other and with temporal loops. All denominators are powers of two. Therefore, the products are
    exact if the product of all numerators is at most EXACT_BELOW. In all other cases, the result is False.
    """
    problem = prepared.arrays
    if not problem.switches[WHOLE_TILES] or problem.has_output_windows:
        return False
    passes = math.prod(size for _, size in prepared.spatial.temporal_sizes)
    counts, all_factors = problem.spatial_start.max(axis=1).tolist(), problem.spatial_factor
    for o in range(problem.operand_count):
        for factors in all_factors[:, o, : counts[o]].tolist():
            if passes * math.prod(factor.as_integer_ratio()[0] for factor in factors) > EXACT_BELOW:
                return False
    return True


def _loops_by_dimension(problem: Problem, places: np.ndarray | None) -> dict[str, np.ndarray]:
    """Fields of a problem that list dimensions of spatial loops, with the loops of each level sorted by dimension.

    If `places` is given, the fields are those of the mirrored problem: `places` has, for each dimension, the dimension
    that replaces it.
    """
    given, operands, starts_of = problem.spatial_dimension, int(problem.operand_count), problem.spatial_start.tolist()
    dimension, factor = given.copy(), problem.spatial_factor.copy()
    ragged = problem.ragged_dimension.copy()
    if places is not None:
        dimension, many = places[dimension], int(problem.ragged_count)
        ragged[:many] = np.sort(places[ragged[:many]])
    for o, starts in enumerate(starts_of[:operands]):
        count = max(starts)
        dimension[o, count:] = given[o, count:]  # no loops
        for begin, end in pairwise(starts):
            if end - begin > 1:  # a dimension occurs at most once in a level
                order = begin + np.argsort(dimension[o, begin:end], kind="stable")
                dimension[o, begin:end], factor[:, o, begin:end] = dimension[o, order], factor[:, o, order]
    dimension[operands:] = given[operands:]
    return {"spatial_dimension": dimension, "spatial_factor": factor, "ragged_dimension": ragged}
