"""Spatial reuse: active instances of each memory, and how many distinct lower ones an upper one feeds.

Source: zigzag-dse 3.9.1, spatial mapping.
"""

import math

import numpy as np

from tilewright.errors import MappingError
from tilewright.mapping.spatial import ConvertedSpatialMapping, SpatialLoops
from tilewright.profile import ModelProfile
from tilewright.workload.layer import Layer
from tilewright.workload.relevancy import OperandRelevancy, data_dimension_size, distinct_positions


def spatial_analysis(
    layer: Layer,
    spatial: ConvertedSpatialMapping,
    relevancy: dict[str, OperandRelevancy],
    profile: ModelProfile,
    depth: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Active instances [o, a] (fractional representation) and boosts [v, o, a] of both representations.

    Raises MappingError if the operands do not agree on the number of active array elements.
    """
    units = np.ones((len(layer.operands), depth + 1), np.int64)
    boost = np.ones((2, len(layer.operands), depth + 1), np.int64)
    for variant, levels_of in enumerate((spatial.fractional, spatial.integer)):
        array_units = set()
        for o, (operand, levels) in enumerate(levels_of):
            relevant, everything = _level_products(layer, levels, relevancy[operand], profile)
            for a in range(len(levels)):
                active = round(round(math.prod(everything[a:]), 3))
                if variant == 0:
                    units[o, a] = active
                if a == 0:
                    array_units.add(active)
                if a + 1 < len(levels):
                    boost[variant, o, a] = round(math.prod(relevant[a:]) / math.prod(relevant[a + 1 :]))
        if len(array_units) > 1:
            raise MappingError(f"operands disagree on the number of active array elements: {sorted(array_units)}")
    return units, boost


def _level_products(
    layer: Layer, levels: tuple[SpatialLoops, ...], relevancy: OperandRelevancy, profile: ModelProfile
) -> tuple[list[float], list[float]]:
    """Per architecture level the product of relevant factors and of all factors, windows decoupled."""
    running = {relation: ([1.0, 1.0], [1.0, 1.0]) for relation in relevancy.relations}
    relevant, everything = [], []
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
        relevant.append(r_product)
        everything.append(product)
    return relevant, everything


def _whole(size: float, profile: ModelProfile) -> int:
    """A tile size in whole positions: truncated as in the reference, or rounded up (B12)."""
    return math.ceil(size - 1e-9) if profile.exact_window_sizes else int(size)
