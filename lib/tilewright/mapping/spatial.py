"""Conversion of a spatial mapping to spatial loops per operand and architecture level (zigzag-dse 3.9.1).

There are two representations. *Fractional* factors are used for loop sizes, capacity and energy. Fractional factors
spread the work evenly if an unrolling does not divide its dimension. *Integer* factors are used for latency.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from tilewright.base.errors import MappingError
from tilewright.base.hashes import hash_once
from tilewright.base.profile import ModelProfile
from tilewright.hardware.core import Core
from tilewright.hardware.hierarchy import memory_hierarchy
from tilewright.hardware.set_order import array_dimensions_in_set_order
from tilewright.mapping.constraints import Unrolling
from tilewright.workload.layer import Layer

SpatialLoops = tuple[tuple[str, float], ...]
OperandLevels = tuple[tuple[str, tuple[SpatialLoops, ...]], ...]
"""Pairs (layer operand, spatial loops at each architecture level). An operand with M memories has the levels 0 to M.
Level 0 is between the array and the innermost memory.
"""
_Factor = Fraction | float
_ArrayFactors = list[tuple[str, list[tuple[str, _Factor]]]]


@hash_once
@dataclass(frozen=True)
class ConvertedSpatialMapping:
    """Spatial mapping in all representations that the model uses."""

    unrolling: Unrolling
    """Unrolling as given in the mapping: array dimension -> loop dimension -> factor."""
    fractional: OperandLevels
    integer: OperandLevels
    temporal_sizes: tuple[tuple[str, int], ...]
    """Iterations that remain for temporal loops: pairs (loop dimension, number), in layer order. Sizes of 1 are left
    out."""


def convert_spatial_mapping(
    unrolling: Unrolling,
    layer: Layer,
    core: Core,
    links: tuple[tuple[str, str], ...],
    profile: ModelProfile,
) -> ConvertedSpatialMapping:
    """Convert `unrolling` to spatial loops.

    Raises MappingError if a factor exceeds the size of its layer dimension.
    """
    return _converted(unrolling, layer, core.frame, links, profile)


@lru_cache(maxsize=512)
def _converted(
    unrolling: Unrolling, layer: Layer, core: Core, links: tuple[tuple[str, str], ...], profile: ModelProfile
) -> ConvertedSpatialMapping:
    """Converted spatial mapping, cached. All cores with the same `Core.frame` share the result."""
    together = profile.whole_tiles
    fractional = _spread_factors(unrolling, layer, core, lambda quotient: quotient, together=together)
    rounding = math.ceil if profile.round_up_spatial_factors else int
    integer = _spread_factors(unrolling, layer, core, lambda quotient: rounding(quotient), together=together)
    if profile.exact_temporal_sizes:
        exact = _spread_factors(unrolling, layer, core, lambda quotient: quotient, exact=True, together=together)
        temporal_sizes = _exact_temporal_sizes(layer, exact)
    else:
        first_input = layer.input_operands[0]
        levels = dict(_distribute(fractional, layer, core, links))[first_input]
        temporal_sizes = _temporal_sizes(layer, [loop for level in levels for loop in level])
    return ConvertedSpatialMapping(
        unrolling,
        _distribute(fractional, layer, core, links),
        _distribute(integer, layer, core, links),
        temporal_sizes,
    )


def spread_lanes(unrolling: Unrolling, layer: Layer, core: Core, together: bool) -> dict[str, dict[str, float]]:
    """Average number of busy lanes: array dimension -> loop dimension -> number of lanes. If a factor does not divide
    the size of its loop dimension, the work is spread evenly over the iterations.

    `together` matters if several array dimensions unroll one loop dimension. If `together` is true, the factors on all
    these array dimensions count. If `together` is false, only the largest factor and the factors before the largest
    factor count, as in the reference tool. Raises MappingError if a factor exceeds the size of its loop dimension.
    """
    spread = _spread_factors(unrolling, layer, core, lambda quotient: quotient, exact=True, together=together)
    return {name: {dimension: float(lanes) for dimension, lanes in factors} for name, factors in spread}


def _spread_factors(
    unrolling: Unrolling,
    layer: Layer,
    core: Core,
    finish: Callable[[_Factor], _Factor],
    exact: bool = False,
    together: bool = False,
) -> _ArrayFactors:
    """Converted factors of each array dimension, in the order of the mapping.

    The largest factor f of a loop dimension is replaced by size / (iterations * others), so that the work is spread
    evenly over the iterations. Here, `iterations` is ceil(size / (f * others)), and `others` is a product of other
    factors of the loop dimension. If `together` is true, `others` is the product of all other factors; lanes times
    iterations then give exactly the size of the loop dimension. Otherwise, `others` is the product of the factors
    before f in the mapping, as in the reference tool.

    `finish` rounds the new factor if an integer is required. If `exact` is true, factors are computed as fractions.
    Raises MappingError if a factor exceeds the size of its loop dimension, or if `finish` rounds the new factor to 0
    because the other factors exceed this size.
    """
    sizes = layer.size_of
    array_sizes = core.operational_array.size_of
    largest: dict[str, int] = {}
    for _, factors in unrolling:
        for dimension, given in factors:
            largest[dimension] = max(largest.get(dimension, 0), given)

    def others_of(own: str, dimension: str) -> int:
        used = (min(f, array_sizes[side]) for side, fs in unrolling if side != own for d, f in fs if d == dimension)
        return math.prod(used)

    adjusted: set[str] = set()
    early: dict[str, Fraction | float] = {}
    result: _ArrayFactors = []
    for array_dimension, factors in unrolling:
        converted: list[tuple[str, Fraction | float]] = []
        for dimension, given in factors:
            if dimension not in sizes:
                continue
            factor: _Factor = min(given, array_sizes[array_dimension])
            size = sizes[dimension]
            if factor > size:
                raise MappingError(f"spatial factor {factor} of {dimension} exceeds the layer's size {size}")
            if given == largest[dimension] and dimension not in adjusted:
                adjusted.add(dimension)
                before = others_of(array_dimension, dimension) if together else early.get(dimension, 1)
                whole: _Factor = Fraction(size) if exact else size
                iterations = math.ceil(whole / (factor * before))
                factor = finish(whole / iterations / before)
                if not factor:  # rounded down, as in the reference, which then divides by 0
                    raise MappingError(
                        f"the spatial factors of {dimension} on several array dimensions exceed the layer's size {size}"
                    )
            early[dimension] = early.get(dimension, 1) * factor
            converted.append((dimension, factor))
        result.append((array_dimension, converted))
    return result


def _distribute(factors: _ArrayFactors, layer: Layer, core: Core, links: tuple[tuple[str, str], ...]) -> OperandLevels:
    """Spatial loops of each operand at each architecture level.

    For each operand, the loops on an array dimension belong to the innermost of the operand's memories that serve this
    dimension. If no memory of the operand serves the dimension, the loops belong to the level above the top memory.
    """
    hierarchy = memory_hierarchy(core)
    link = dict(links)
    by_array_dimension = dict(factors)
    result = []
    for operand in layer.operands:
        unassigned = [name for name, _ in factors]
        levels: list[SpatialLoops] = []
        for memory_index in hierarchy.memories_of(link[operand]):
            served = array_dimensions_in_set_order(core.memories[memory_index].served_dimensions)
            here = [name for name in served if name in unassigned]
            unassigned = [name for name in unassigned if name not in here]
            levels.append(_merged(here, by_array_dimension))
        levels.append(_merged(unassigned, by_array_dimension))
        result.append((operand, tuple(levels)))
    return tuple(result)


def _merged(array_dimensions: list[str], factors: dict[str, list[tuple[str, Fraction | float]]]) -> SpatialLoops:
    merged: dict[str, float] = {}
    for name in array_dimensions:
        for dimension, factor in factors[name]:
            merged[dimension] = merged[dimension] * float(factor) if dimension in merged else float(factor)
    return tuple(merged.items())


def _temporal_sizes(layer: Layer, spatial_loops: list[tuple[str, float]]) -> tuple[tuple[str, int], ...]:
    """Iterations of each dimension that remain for temporal loops after spatial unrolling. The division is rounded
    twice, as in the reference tool (fault B6, docs/model.md)."""
    sizes = dict(layer.loop_sizes)
    for dimension, factor in spatial_loops:
        if dimension in sizes:
            quotient = math.ceil(sizes[dimension] / factor)
            if quotient == 1:
                del sizes[dimension]
            else:
                sizes[dimension] = quotient
    return tuple((dimension, size) for dimension, size in sizes.items() if size != 1)


def _exact_temporal_sizes(layer: Layer, factors: _ArrayFactors) -> tuple[tuple[str, int], ...]:
    """Iterations of each dimension that remain for temporal loops after spatial unrolling: ceil(size / product of the
    factors of the dimension), in exact arithmetic."""
    unrolled: dict[str, Fraction] = {}
    for _, pairs in factors:
        for dimension, factor in pairs:
            unrolled[dimension] = unrolled.get(dimension, Fraction(1)) * Fraction(factor)
    sizes = ((d, math.ceil(Fraction(size) / unrolled.get(d, Fraction(1)))) for d, size in layer.loop_sizes)
    return tuple((dimension, size) for dimension, size in sizes if size != 1)
