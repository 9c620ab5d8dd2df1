"""A spatial mapping as loops between the levels of each operand."""

import math
from collections.abc import Callable
from fractions import Fraction

from tilewright.hardware.core import Core, Memory
from tilewright.mapping.constraints import Unrolling
from tilewright.workload.layer import Layer

from tests.plain.relevancy import Loop, Loops, Number
from tests.plain.switches import Switches

ARRAY_DIMENSION_HASHES = {
    "D1": 2048910558639910025,
    "D2": 386846459442819546,
    "D3": 286093410687053097,
    "D4": 1190809941726157689,
}
"""Hashes of array dimensions in the reference, which give the iteration order of a set of them."""
Factors = list[tuple[str, list[Loop]]]
Finish = Callable[[int, int, Number], Number]


class DoesNotFitError(Exception):
    """The mapping is refused."""


def spread_as_float(size: int, passes: int, early: Number) -> Number:
    """Average lanes of one pass, with the reference's division."""
    return size / passes / early


def spread_exactly(size: int, passes: int, early: Number) -> Number:
    """Average lanes of one pass, without rounding."""
    return Fraction(size, passes) / Fraction(early)


def spread_and_truncate(size: int, passes: int, early: Number) -> Number:
    """Whole lanes of one pass in the reference's latency analysis (B5)."""
    return int(size / passes / early)


def spread_and_round_up(size: int, passes: int, early: Number) -> Number:
    """Whole lanes of one pass, rounded up."""
    return math.ceil(spread_exactly(size, passes, early))


def adjusted_factors(unrolling: Unrolling, layer: Layer, core: Core, spread: Finish, together: bool = False) -> Factors:
    """Factors limited to the array; the largest factor of each loop dimension is spread evenly over the passes.

    With `together`, the passes of the largest factor are counted after all other factors of its dimension. Without
    `together`, they are counted after the earlier factors only (B41).
    """
    array = dict(core.operational_array.dimensions)
    best: dict[str, int] = {}
    for _, factors in unrolling:
        for dimension, factor in factors:
            best[dimension] = max(best.get(dimension, 0), factor)
    done: set[str] = set()
    early: dict[str, Number] = {}
    result: Factors = []
    for name, factors in unrolling:
        converted: list[Loop] = []
        for dimension, given in factors:
            factor: Number = min(given, array[name])
            size = layer.size_of[dimension]
            if factor > size:
                raise DoesNotFitError
            if given == best[dimension] and dimension not in done:
                done.add(dimension)
                before = early.get(dimension, 1)
                if together:
                    sides = {side: dict(fs) for side, fs in unrolling if side != name and dimension in dict(fs)}
                    before = math.prod(min(fs[dimension], array[side]) for side, fs in sides.items())
                factor = spread(size, math.ceil(size / (factor * before)), before)
            early[dimension] = early.get(dimension, 1) * factor
            converted.append((dimension, factor))
        result.append((name, converted))
    return result


def merged_per_dimension(groups: list[list[Loop]]) -> Loops:
    """One loop for each dimension, in the order of first appearance."""
    merged: dict[str, Number] = {}
    for loops in groups:
        for dimension, factor in loops:
            merged[dimension] = merged[dimension] * factor if dimension in merged else factor
    return tuple(merged.items())


def spatial_levels(factors: Factors, memories: list[Memory]) -> tuple[Loops, ...]:
    """S[0..M]: the spatial loops of each architecture level, those of the innermost serving memory first."""
    left = dict(factors)
    levels = []
    for memory in memories:
        names = {ARRAY_DIMENSION_HASHES[name]: name for name in memory.served_dimensions}
        table: set[int] = set()
        for value in names:
            table.add(value)
        levels.append(merged_per_dimension([left.pop(names[value]) for value in table if names[value] in left]))
    levels.append(merged_per_dimension(list(left.values())))
    return tuple(levels)


def reference_temporal_sizes(layer: Layer, flat_spatial: list[Loop]) -> dict[str, int]:
    """Sizes left to iterate over, by the reference's twice rounded division (B6)."""
    sizes = dict(layer.loop_sizes)
    for dimension, factor in flat_spatial:
        if dimension in sizes:
            quotient = math.ceil(sizes[dimension] / factor)
            if quotient == 1:
                del sizes[dimension]
            else:
                sizes[dimension] = quotient
    return {dimension: size for dimension, size in sizes.items() if size != 1}


def exact_temporal_sizes(layer: Layer, factors: Factors) -> dict[str, int]:
    """Sizes left to iterate over, in exact arithmetic; `factors` must be exact."""
    lanes: dict[str, Fraction] = {}
    for _, loops in factors:
        for dimension, factor in loops:
            lanes[dimension] = lanes.get(dimension, Fraction(1)) * Fraction(factor)
    sizes = {d: max(1, math.ceil(size / lanes.get(d, Fraction(1)))) for d, size in layer.loop_sizes}
    return {dimension: size for dimension, size in sizes.items() if size != 1}


class SpatialMapping:
    """A spatial mapping in all forms that the formulas need, by operand."""

    def __init__(
        self, layer: Layer, core: Core, chains: dict[str, list[Memory]], unrolling: Unrolling, switches: Switches
    ) -> None:
        whole_lanes = spread_and_round_up if "round_up_spatial_factors" in switches else spread_and_truncate
        together = "whole_tiles" in switches
        as_float = adjusted_factors(unrolling, layer, core, spread_as_float, together)
        as_whole = adjusted_factors(unrolling, layer, core, whole_lanes, together)
        exact = adjusted_factors(unrolling, layer, core, spread_exactly, together)

        def levels(factors: Factors) -> dict[str, tuple[Loops, ...]]:
            return {o: spatial_levels(factors, chains[o]) for o in layer.operands}

        self.fractional, self.integer, self.exact = (levels(as_float), levels(as_whole), levels(exact))
        if "exact_temporal_sizes" in switches:
            self.temporal_sizes = exact_temporal_sizes(layer, exact)
        else:
            flat = [loop for level in self.fractional[layer.operands[1]] for loop in level]
            self.temporal_sizes = reference_temporal_sizes(layer, flat)
