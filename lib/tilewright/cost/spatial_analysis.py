"""Analysis of spatial reuse: active instances of each memory, and number of lower instances that each upper instance
feeds.

The analysis follows the spatial mapping of zigzag-dse 3.9.1.
"""

import math
from dataclasses import dataclass

import numpy as np

from tilewright.base.errors import MappingError
from tilewright.base.profile import ModelProfile
from tilewright.mapping.spatial import ConvertedSpatialMapping, SpatialLoops
from tilewright.workload.layer import Layer
from tilewright.workload.relevancy import OperandRelevancy, data_dimension_size, distinct_positions


@dataclass(frozen=True)
class Lanes:
    """Active instances and spatial reuse of each operand at each architecture level, computed from the spatial
    loops."""

    units: np.ndarray
    """Number of active units of the array (level 0) or active memory instances (other levels): array [operand,
    architecture level]. The numbers are computed from fractional spatial factors. Without the switch `whole_tiles`, the
    numbers are rounded to integers.
    """
    boost: np.ndarray
    """Number of lower instances with different data that one upper instance feeds: array [variant, operand,
    architecture level of the lower instances]. Variant 0 has fractional spatial factors, and variant 1 has integer
    ones. With the switch `whole_tiles`, variant 0 has the numbers of variant 1.
    """


@dataclass(frozen=True)
class _Products:
    """Products of the spatial loops of an operand, one for each architecture level.

    Loops of sliding windows are split into a relevant part and an irrelevant part.
    """

    relevant: list[float]
    """Product of the relevant loops and the relevant parts of window loops, for each architecture level."""
    everything: list[float]
    """Product of all loops, for each architecture level."""


def spatial_analysis(
    layer: Layer,
    spatial: ConvertedSpatialMapping,
    relevancy: dict[str, OperandRelevancy],
    profile: ModelProfile,
    depth: int,
) -> Lanes:
    """Active instances and spatial reuse of each operand at the array and at up to `depth` memory levels.

    Raises MappingError if the operands give different numbers of active units.
    """
    units = np.ones((len(layer.operands), depth + 1), np.float64)
    boost = np.ones((2, len(layer.operands), depth + 1), np.int64)
    for variant, levels_of in enumerate((spatial.fractional, spatial.integer)):
        array_units = set()
        for o, (operand, levels) in enumerate(levels_of):
            products = _level_products(layer, levels, relevancy[operand], profile)
            relevant = products.relevant
            for a in range(len(levels)):
                active = math.prod(products.everything[a:])
                if variant == 0:
                    units[o, a] = active if profile.whole_tiles else round(round(active, 3))
                if a == 0:
                    array_units.add(round(round(active, 3)))
                if a + 1 < len(levels):
                    boost[variant, o, a] = round(math.prod(relevant[a:]) / math.prod(relevant[a + 1 :]))
        if len(array_units) > 1:
            raise MappingError(f"the operands give different numbers of active array elements: {sorted(array_units)}")
    if profile.whole_tiles:
        boost[0] = boost[1]  # lanes are counted as integers; the average transfer follows from the factors
    return Lanes(units, boost)


def _level_products(
    layer: Layer, levels: tuple[SpatialLoops, ...], relevancy: OperandRelevancy, profile: ModelProfile
) -> _Products:
    running = {relation: ([1.0, 1.0], [1.0, 1.0]) for relation in relevancy.relations}
    result = _Products([], [])
    for loops in levels:
        r_product, product = 1.0, 1.0
        for dimension, factor in loops:
            windows = [r for r in relevancy.relations if dimension in dict(r.terms)]
            if dimension in relevancy.relevant or dimension in relevancy.irrelevant or not windows:
                product *= factor
                if dimension in relevancy.relevant:
                    r_product *= factor
                continue
            for relation in windows:
                sizes, previous = running[relation]
                names = [name for name, _ in relation.terms]
                sizes[names.index(dimension)] *= factor
                c1, c2 = (c for _, c in relation.terms)
                whole = [_whole(size, profile) for size in sizes]
                distinct = min(
                    data_dimension_size(layer, relation, profile),
                    distinct_positions((c1, c2), whole[0], whole[1], profile.exact_window_sizes),
                )
                reuse = sizes[0] * sizes[1] / distinct
                r_loop, ir_loop = distinct / previous[0], reuse / previous[1]
                previous[0], previous[1] = distinct, reuse
                r_product *= r_loop
                product *= r_loop
                product *= ir_loop
        result.relevant.append(r_product)
        # The product of the factors is exact even if a dimension is part of two windows, which would count it twice.
        result.everything.append(math.prod(factor for _, factor in loops) if profile.whole_tiles else product)
    return result


def _whole(size: float, profile: ModelProfile) -> int:
    """Tile size as an integer. The size is truncated as in the reference, or rounded up if the profile repairs fault
    B12 or B41."""
    return math.ceil(size - 1e-9) if profile.exact_window_sizes or profile.whole_tiles else int(size)
