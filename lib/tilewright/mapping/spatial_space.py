"""All spatial mappings that an exact search covers: as a sequence in descending order of lanes, or as a table.

An array dimension that the mapping file leaves open unrolls at most one loop dimension or, if loops can be mixed,
several. The factor of a loop dimension is a divisor of the size of the dimension, or a divisor of the largest factor
that fits. Mappings are generated one at a time, mappings with more lanes first. Therefore a search that stops early has
a lower bound on the passes of all remaining mappings.
"""

import heapq
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np
import numpy.typing as npt

from tilewright.base.profile import ModelProfile
from tilewright.hardware.core import Core
from tilewright.mapping.constraints import MappingConstraints, Unrolling
from tilewright.mapping.spatial_generation import (
    MaximumUnrolling,
    check_given,
    divisors,
    given_draft,
    hinted_dimensions,
    inner_operands,
    limit_to_capacity,
    maximum_unrolling,
    size_limits,
)
from tilewright.workload.layer import FINAL_OUTPUT, OUTPUT, Layer
from tilewright.workload.relevancy import operand_relevancy

_Factors = tuple[tuple[str, int], ...]
Lanes = npt.NDArray[np.int64]
MOST_IN_TABLE = 200_000
"""Largest number of spatial mappings in a table. A larger space has no table; its mappings are generated one at a time.
"""


@dataclass(frozen=True)
class SpatialChoice:
    """Spatial mapping of a layer, with lower bounds on the number of passes. A pass is one iteration of all temporal
    loops."""

    unrolling: Unrolling
    passes: int
    """Lower bound on the number of passes of this mapping, for any loop order."""
    rest_passes: float
    """Lower bound on the number of passes, valid for this mapping and each mapping that follows it."""


@dataclass(frozen=True)
class SpatialTable:
    """Table of the distinct spatial mappings of a space. A mapping whose data certainly do not fit the innermost
    memories is replaced: its factors are reduced until the data fit.
    """

    sides: tuple[str, ...]
    """Names of the array dimensions (sides), in the order of the second axis of `lanes`."""
    dimensions: tuple[str, ...]
    """Names of the loop dimensions, in the order of the third axis of `lanes`."""
    lanes: Lanes
    """Factor by which each spatial mapping unrolls each loop dimension on each array dimension (a side): array [spatial
    mapping, side, loop dimension]."""

    def unrolling(self, place: int) -> dict[str, _Factors]:
        """Unrolling of the spatial mapping number `place`: array dimension -> loops that are unrolled on it."""
        found: dict[str, _Factors] = dict.fromkeys(self.sides, ())
        for side, dimension in np.argwhere(self.lanes[place] > 1).tolist():
            factor = int(self.lanes[place, side, dimension])
            found[self.sides[side]] += ((self.dimensions[dimension], factor),)
        return found


@dataclass(frozen=True)
class SpatialSpace:
    """Spatial mappings of a layer on a core, with the most lanes first. Lanes are counted before factors are reduced so
    that data fit the memories. Ties are ordered by the unrolling of the first array dimension that the mapping file
    leaves open, then of the second, and so on. Unrollings of one array dimension are in the order of `_options`.
    """

    layer: Layer
    core: Core
    constraints: MappingConstraints
    profile: ModelProfile
    mixed: bool = False

    def __iter__(self) -> Iterator[SpatialChoice]:
        """Iterate over all spatial mappings without repetition. Raises MappingError if the spatial mapping in the
        mapping file is impossible on the core.
        """
        limits = maximum_unrolling(self.layer, self.core, self.constraints, self.profile)
        given_limits = size_limits(self.layer, self.core) if self.profile.keep_given_unrolling else limits
        draft = given_draft(self.layer, self.core, self.constraints, given_limits, self.profile)
        check_given(draft, given_limits)
        given = {name: tuple(factors.items()) for name, factors in draft.items()}
        sides = [name for name, _ in self.core.operational_array.dimensions if name not in given]
        options = [self._options(name, limits, given_limits) for name in sides]
        seen: set[Unrolling] = set()
        for lanes, chosen in _most_lanes_first(options):
            mapping = given | dict(zip(sides, chosen, strict=True))
            rest = self._iterations / (lanes * _lanes(factor for factors in given.values() for factor in factors))
            for unrolling in self._variants(mapping, frozenset(given)):
                if unrolling not in seen:
                    seen.add(unrolling)
                    yield SpatialChoice(unrolling, passes_of(self.layer, unrolling), rest)

    def table(self) -> SpatialTable | None:
        """Table of the distinct mappings of the space, in a deterministic order. Factors that the mapping file gives do
        not change. If data certainly do not fit the innermost memories, the other factors are reduced until they fit.

        The result is None if the space has more than MOST_IN_TABLE mappings, or if `keep_given_unrolling` of the
        profile is false. Raises the errors of `__iter__`.
        """
        if not self.profile.keep_given_unrolling:
            return None
        limits = maximum_unrolling(self.layer, self.core, self.constraints, self.profile)
        given_limits = size_limits(self.layer, self.core)
        draft = given_draft(self.layer, self.core, self.constraints, given_limits, self.profile)
        check_given(draft, given_limits)
        sides = tuple(name for name, _ in self.core.operational_array.dimensions)
        dimensions = tuple(name for name, _ in self.layer.loop_sizes)
        given = _lanes_of([{side: draft.get(side, {}) for side in sides}], sides, dimensions)
        parts = []
        for group in self._groups([name for name in sides if name not in draft]):
            options = [self._options(name, limits, given_limits) for name in group]
            if math.prod(len(choices) for choices in options) > MOST_IN_TABLE:
                return None
            parts.append(_lanes_of(list(self._fitting(group, options, draft)), sides, dimensions))
        if math.prod(len(part) for part in parts) > MOST_IN_TABLE:
            return None
        sizes, lanes = np.array([self.layer.size_of[name] for name in dimensions]), given
        for part in parts:
            lanes = (lanes[:, None] * part[None]).reshape(-1, *given.shape[1:])
            # Only given unrollings can be larger than the loop: they are spread over it.
            added = lanes.prod(axis=1) > given.prod(axis=1)
            lanes = lanes[~(added & (lanes.prod(axis=1) > sizes)).any(axis=1)]
        return SpatialTable(sides, dimensions, lanes)

    def of_table(self, table: SpatialTable, place: int) -> list[Unrolling]:
        """Unrolling for spatial mapping number `place` of the table. If the order of the array dimensions can affect
        the cost, there are two unrollings, which differ only in this order.
        """
        mapping = table.unrolling(place)
        given = given_draft(self.layer, self.core, self.constraints, size_limits(self.layer, self.core), self.profile)
        mapping |= {name: tuple(factors.items()) for name, factors in given.items()}
        total: dict[str, int] = {}
        for factors in mapping.values():
            for dimension, factor in factors:
                total[dimension] = total.get(dimension, 1) * factor
        return [tuple((name, mapping[name]) for name in names) for names in self._orders(mapping, total)]

    def _groups(self, sides: Sequence[str]) -> list[tuple[str, ...]]:
        """Groups of the array dimensions in `sides`, which the mapping file leaves open. Array dimensions that share an
        innermost memory are in one group. Each innermost memory therefore limits the lanes of only one group."""
        groups: list[set[str]] = [{name} for name in sides]
        for _, _, served in inner_operands(self.layer, self.core, self.constraints):
            joined = [group for group in groups if group & set(served)]
            groups = [group for group in groups if group not in joined]
            groups += [set[str]().union(*joined)] if joined else []
        return sorted(tuple(name for name in sides if name in group) for group in groups)

    def _fitting(
        self, group: tuple[str, ...], options: Sequence[Sequence[_Factors]], given: dict[str, dict[str, int]]
    ) -> Iterator[dict[str, dict[str, int]]]:
        """Unrollings of the array dimensions of a group, one or two for each combination of `options`. In the first
        unrolling, factors are reduced until the data fit the innermost memories; factors in `given` do not change. The
        second unrolling keeps the factors of the combination. The second unrolling is left out if no factor was
        reduced, or if the data certainly do not fit without the reduction.
        """
        for chosen in product(*options):
            draft = {name: dict(factors) for name, factors in given.items()}
            draft |= {name: dict(factors) for name, factors in zip(group, chosen, strict=True)}
            whole = {name: dict(draft[name]) for name in group}
            cut = limit_to_capacity(draft, self.layer, self.core, self.constraints, self.profile, frozenset(given))
            reduced = {name: cut[name] for name in group}
            yield reduced
            if reduced != whole and self._may_fit(draft | whole, frozenset(given)):
                yield whole

    def _may_fit(self, draft: dict[str, dict[str, int]], given: frozenset[str]) -> bool:
        """False if some innermost memory certainly has no room for the data of its lanes.

        The cost model can need less room than the reduction of factors (`limit_to_capacity`) assumes, for three
        reasons. Outputs that no temporal loop accumulates have final bits, not the bits of partial sums. If the number
        of lanes does not divide the loop, less than half of the lanes can be idle, on average over the passes. The
        windows of neighbouring lanes overlap.
        """
        for operand, memory_index, served in inner_operands(self.layer, self.core, self.constraints):
            entry = operand_relevancy(self.layer, operand, self.profile)
            lanes = dict.fromkeys(self.layer.size_of, 1)
            for name in served:
                for dimension, factor in draft.get(name, {}).items():
                    lanes[dimension] *= factor
            is_alone = set(served) >= {name for name, _ in self.core.operational_array.dimensions}
            for dimension, count in lanes.items():
                # Together with the lanes of array dimensions that other memories serve, the lanes may not divide it.
                if not is_alone or self.layer.size_of[dimension] % count:
                    lanes[dimension] = -(-count // 2)
            lanes |= {
                dimension: 1 for name in given for dimension in draft[name]
            }  # can have more lanes than iterations
            elements = math.prod(lanes[dimension] for dimension in entry.relevant if dimension in lanes)
            if elements * self._least_bits(operand) > self.core.memories[memory_index].size_bits:
                return False
        return True

    def _least_bits(self, operand: str) -> int:
        """Smallest number of bits of an element in an innermost memory. For an output, the result is the number of
        final bits if the array has enough units to unroll all loops that accumulate the output. Otherwise, the result
        is the number of bits of a partial sum.
        """
        bits = self.layer.bits_of[operand]
        if operand != OUTPUT:
            return bits
        sums = operand_relevancy(self.layer, OUTPUT, self.profile).irrelevant
        iterations = math.prod(self.layer.size_of[name] for name in sums if name in self.layer.size_of)
        can_end = iterations <= self.core.operational_array.unit_count
        return min(bits, self.layer.bits_of[FINAL_OUTPUT]) if can_end else bits

    @property
    def _iterations(self) -> int:
        return math.prod(size for _, size in self.layer.loop_sizes)

    def _options(self, name: str, limits: MaximumUnrolling, given_limits: MaximumUnrolling) -> list[_Factors]:
        """Unrollings to try on the array dimension `name`, which the mapping file leaves open, in descending order of
        the number of lanes. The last unrolling is empty and leaves the array dimension idle.
        """
        hinted = hinted_dimensions(name, self.layer, self.constraints)
        size_of, room = self.layer.size_of, self.core.operational_array.size_of[name]
        factors = {
            d: sorted(
                {*divisors(limits[name][d])[1:], *(f for f in divisors(size_of[d])[1:] if f <= given_limits[name][d])},
                reverse=True,
            )
            for d in hinted
        }
        found: list[_Factors] = [((d, factor),) for d in hinted for factor in factors[d]]
        for length in range(2, len(hinted) + 1) if self.mixed else ():
            for group in combinations(hinted, length):
                choices = product(*(factors[d] for d in group))
                found += [tuple(zip(group, choice, strict=True)) for choice in choices if math.prod(choice) <= room]
        return sorted([*dict.fromkeys(found), ()], key=lambda option: -_lanes(option))

    def _variants(self, mapping: dict[str, _Factors], fixed: frozenset[str]) -> Iterator[Unrolling]:
        """Variants of a mapping, in each order of array dimensions that `_orders` gives. One variant has factors that
        are reduced to the capacity of the innermost memories. If the profile keeps the factors of the mapping file,
        this variant keeps the factors on the array dimensions in `fixed`, and there is a second variant without any
        reduction.

        A mapping that unrolls a loop beyond its size has variants only if this loop is unrolled only over array
        dimensions in `fixed`.
        """
        total: dict[str, int] = {}
        for factors in mapping.values():
            for dimension, factor in factors:
                total[dimension] = total.get(dimension, 1) * factor
        added = {d for name, factors in mapping.items() if name not in fixed for d, factor in factors if factor > 1}
        if any(total[dimension] > self.layer.size_of[dimension] for dimension in added):
            return  # only given unrollings can be larger than the loop: they are spread over it
        keep = self.profile.keep_given_unrolling
        for names in self._orders(mapping, total):
            if keep:
                yield tuple((name, mapping[name]) for name in names)
            draft = {name: dict(mapping[name]) for name in names}
            limits = fixed if keep else frozenset[str]()
            cut = limit_to_capacity(draft, self.layer, self.core, self.constraints, self.profile, limits)
            yield tuple((name, tuple(factors.items())) for name, factors in cut.items())

    def _orders(self, mapping: dict[str, _Factors], total: dict[str, int]) -> list[tuple[str, ...]]:
        """One or two orders of the array dimensions. In the first order, the array dimensions of the mapping file come
        first, and the others follow in the order of the array. The second order is the order of the array.

        The second order is left out if its result in the model cannot differ from that of the first order. The results
        can differ if several array dimensions unroll one loop dimension and the product of their factors (`total`) does
        not divide the size of this loop dimension.
        """
        array = tuple(name for name, _ in self.core.operational_array.dimensions)
        given_first = tuple(dict.fromkeys((*(name for name, _ in self.constraints.spatial_mapping), *array)))
        used = [dimension for factors in mapping.values() for dimension, _ in factors]
        ragged = any(used.count(d) > 1 and self.layer.size_of[d] % lanes for d, lanes in total.items())
        return list(dict.fromkeys((given_first, array) if ragged else (given_first,)))


def _lanes_of(drafts: Sequence[dict[str, dict[str, int]]], sides: Sequence[str], dimensions: Sequence[str]) -> Lanes:
    """Factors of the distinct drafts, in the order of their first occurrence: array [draft, side, loop dimension]. A
    draft maps each array dimension (side) to the factors of the loop dimensions that it unrolls. Loop dimensions that
    it does not unroll have factor 1.
    """
    lanes = np.ones((len(drafts), len(sides), len(dimensions)), np.int64)
    side_of, place_of = {name: i for i, name in enumerate(sides)}, {name: i for i, name in enumerate(dimensions)}
    for n, draft in enumerate(drafts):
        for side, factors in draft.items():
            for dimension, factor in factors.items():
                lanes[n, side_of[side], place_of[dimension]] = factor
    _, first = np.unique(lanes.reshape(len(drafts), -1), axis=0, return_index=True)
    found: Lanes = lanes[np.sort(first)]
    return found


def passes_of(layer: Layer, unrolling: Unrolling) -> int:
    """Lower bound on the number of passes of a layer: the product of ceil(size / lanes) over all loop dimensions."""
    lanes: dict[str, int] = {}
    for _, factors in unrolling:
        for dimension, factor in factors:
            lanes[dimension] = lanes.get(dimension, 1) * factor
    return math.prod(-(-size // lanes.get(dimension, 1)) for dimension, size in layer.loop_sizes)


def _lanes(factors: "Iterator[tuple[str, int]] | _Factors") -> int:
    return math.prod(factor for _, factor in factors)


def _most_lanes_first(options: Sequence[Sequence[_Factors]]) -> Iterator[tuple[int, tuple[_Factors, ...]]]:
    """Pairs (number of lanes, combination), in descending order of the number of lanes. A combination is a tuple with
    one option for each array dimension. In `options`, the options of each array dimension must be in descending order
    of lanes.

    The search begins with the combination of all first options. Every other combination has exactly one predecessor.
    The predecessor differs on only one array dimension: the last array dimension that does not have its first option.
    There, the predecessor has the previous option. The search therefore yields each combination once, after all
    combinations with more lanes.
    """
    lanes = [[_lanes(option) for option in choices] for choices in options]

    def entry(places: tuple[int, ...], side: int) -> tuple[int, tuple[int, ...], int]:
        return -math.prod(lanes[a][place] for a, place in enumerate(places)), places, side

    waiting = [entry((0,) * len(options), 0)]
    while waiting:
        negative, places, first = heapq.heappop(waiting)
        yield -negative, tuple(choices[place] for choices, place in zip(options, places, strict=True))
        for side in range(first, len(options)):
            if places[side] + 1 < len(options[side]):
                following = (*places[:side], places[side] + 1, *places[side + 1 :])
                heapq.heappush(waiting, entry(following, side))
