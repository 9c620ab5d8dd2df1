"""Spatial reuse: active instances of each memory, and how many distinct lower instances each upper one feeds.

Source: zigzag-dse 3.9.1, spatial mapping.
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
    """Instances and reuse that the spatial loops of a layer give each operand at each architecture level."""

    units: np.ndarray
    """Active instances [o, a] in fractional representation; whole numbers unless tiles are whole."""
    boost: np.ndarray
    """Distinct lower instances that one upper instance feeds [v, o, a], in both representations."""


@dataclass(frozen=True)
class _Products:
    """Products over an operand's spatial loops at each architecture level, with windows decoupled."""

    relevant: list[float]
    everything: list[float]


def spatial_analysis(
    layer: Layer,
    spatial: ConvertedSpatialMapping,
    relevancy: dict[str, OperandRelevancy],
    profile: ModelProfile,
    depth: int,
) -> Lanes:
    """Active instances and spatial reuse.

    Raises MappingError if the operands disagree on the number of active array elements.
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
            raise MappingError(f"operands disagree on the number of active array elements: {sorted(array_units)}")
    if profile.whole_tiles:
        boost[0] = boost[1]  # whole lanes; the average amount moved follows from their factors
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
        # Exact also if a dimension is part of two windows, each of which would count it.
        result.everything.append(math.prod(factor for _, factor in loops) if profile.whole_tiles else product)
    return result


def _whole(size: float, profile: ModelProfile) -> int:
    """Tile size in whole positions: truncated as in the reference, or rounded up (B12, B41)."""
    return math.ceil(size - 1e-9) if profile.exact_window_sizes or profile.whole_tiles else int(size)
