"""The loops that change the data of an operand, and the number of elements that loops touch."""

import itertools
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from tilewright.workload.layer import DimensionRelation, Layer

from tests.plain.switches import Switches

Number = int | float | Fraction
Loop = tuple[str, Number]
Loops = tuple[Loop, ...]
Kind = tuple[str, Number]
"""'r', 'ir' or '', with the size of the loop."""


def positions(c2: int, a: int, c3: int, b: int, clipped: bool) -> int:
    """Distinct positions that `a` windows of `b` elements touch. The reference clips only one factor (B12)."""
    g = math.gcd(c2, c3)
    apart = a - c3 // g
    return a * b - max(0, b - c2 // g) * (max(0, apart) if clipped else apart)


def counted_positions(c2: int, a: int, c3: int, b: int) -> int:
    """Distinct positions that windows touch, counted one by one."""
    return len({c2 * i + c3 * j for i in range(a) for j in range(b)})


def product(loops: Iterable[Loop]) -> Number:
    """Product of loop sizes, left to right."""
    return math.prod(size for _, size in loops)


def sizes_by_dimension(loops: Iterable[Loop]) -> dict[str, Number]:
    """Loop dimension -> product of the sizes of its loops."""
    sizes: dict[str, Number] = {}
    for dimension, size in loops:
        sizes[dimension] = sizes.get(dimension, 1) * size
    return sizes


def rounded_up(value: Number) -> int:
    """The next whole number; floating-point noise above a whole number is ignored."""
    if isinstance(value, float):
        return math.ceil(value * (1 - 1e-12))
    return math.ceil(value)


@dataclass(frozen=True)
class Tile:
    """Elements of a tile; if lanes do not divide a dimension, they differ between periods."""

    shares: tuple[tuple[int, Fraction], ...]
    """(elements, share of the periods with that many elements)."""
    whole: int
    """Largest number of elements at a time."""

    @property
    def mean(self) -> Fraction:
        """Average number of elements."""
        return sum((elements * share for elements, share in self.shares), start=Fraction(0))


@dataclass(frozen=True, eq=False)
class Relevancy:
    """Relevant and irrelevant loop dimensions and the sliding windows of one operand."""

    layer: Layer
    relevant: tuple[str, ...]
    irrelevant: tuple[str, ...]
    relations: tuple[DimensionRelation, ...]
    exact: bool
    """Whether the sizes of windows are exact."""

    def largest(self, relation: DimensionRelation) -> int:
        """Size of the data dimension of a window over the whole layer."""
        explicit = dict(self.layer.data_dimension_sizes)
        if explicit:
            return explicit[relation.data_dimension]
        (d2, c2), (d3, c3) = relation.terms
        full = self.layer.size_of
        padding = dict(self.layer.padding).get(relation.data_dimension, (0, 0))
        return positions(c2, full.get(d2, 1), c3, full.get(d3, 1), self.exact) - sum(padding)

    def window(self, relation: DimensionRelation, sizes: Mapping[str, Number], up: bool) -> int:
        """Positions of the data dimension that partial loop sizes touch; fractions are rounded up or truncated."""
        (d2, c2), (d3, c3) = relation.terms
        whole = rounded_up if up else int
        a, b = whole(sizes.get(d2, 1)), whole(sizes.get(d3, 1))
        return min(self.largest(relation), positions(c2, a, c3, b, self.exact))

    def elements(self, loops: Iterable[Loop]) -> Number:
        """Number of elements that loops touch; fractional if the number of lanes is fractional."""
        sizes = sizes_by_dimension(loops)
        elements: Number = 1
        for dimension in self.relevant:
            elements *= sizes.get(dimension, 1)
        for relation in self.relations:
            elements *= self.window(relation, sizes, up=self.exact)
        return elements

    def windows(self, sizes: Mapping[str, Number]) -> int:
        """Product of the positions of all data dimensions that partial loop sizes touch, rounded up."""
        return math.prod(self.window(relation, sizes, up=True) for relation in self.relations)

    def tile(self, sizes: Mapping[str, Number]) -> Tile:
        """A tile of fractional sizes: each size is the whole number below or above, and on average the given size."""
        kinds: list[list[tuple[int, Fraction]]] = []
        names = [d for d in self.layer.size_of if sizes.get(d, 1) != 1 and d not in self.irrelevant]
        for d in names:
            size = Fraction(sizes[d])
            low = math.floor(size)
            kinds.append([(low, 1 - (size - low)), (low + 1, size - low)])
        found: dict[int, Fraction] = {}
        for choice in itertools.product(*kinds):
            whole = {d: kind for d, (kind, _) in zip(names, choice, strict=True)}
            share = math.prod((share for _, share in choice), start=Fraction(1))
            if share:
                elements = math.prod(whole.get(d, 1) for d in self.relevant) * self.windows(whole)
                found[elements] = found.get(elements, Fraction(0)) + share
        up = {d: math.ceil(Fraction(size)) for d, size in sizes.items()}
        return Tile(tuple(found.items()), math.prod(up.get(d, 1) for d in self.relevant) * self.windows(up))

    def decouple(self, levels: Iterable[Iterable[Loop]], exactly: bool = False) -> list[list[Kind]]:
        """Levels with each loop marked as r or ir; loops of windows are split into a part of each kind.

        `exactly` computes in fractions instead of the reference's floating point.
        """
        running: dict[str, dict[str, Number]] = {r.data_dimension: {} for r in self.relations}
        before: dict[str, tuple[Number, Number]] = {r.data_dimension: (1, 1) for r in self.relations}
        one: Number = Fraction(1) if exactly else 1.0
        result = []
        for loops in levels:
            kinds: list[Kind] = []
            for dimension, size in loops:
                windows = [r for r in self.relations if dimension in dict(r.terms)]
                if dimension in self.relevant:
                    kinds.append(("r", size))
                elif dimension in self.irrelevant:
                    kinds.append(("ir", size))
                elif not windows:
                    kinds.append(("", size))
                else:
                    for relation in windows:
                        sizes = running[relation.data_dimension]
                        sizes[dimension] = sizes.get(dimension, 1) * size
                        (d2, _), (d3, _) = relation.terms
                        distinct = self.window(relation, sizes, up=self.exact or exactly)
                        reuse = one * sizes.get(d2, 1) * sizes.get(d3, 1) / distinct
                        distinct_before, reuse_before = before[relation.data_dimension]
                        kinds += [("r", one * distinct / distinct_before), ("ir", reuse / reuse_before)]
                        before[relation.data_dimension] = (distinct, reuse)
            result.append(kinds)
        return result


def relevancy_of(layer: Layer, operand: str, switches: Switches) -> Relevancy:
    """Relevancy of one operand. Dimensions of size 1 are neutral."""
    own = dict(layer.operand_dimensions)[operand]
    size = layer.size_of
    others = [d for d in size if d not in own]
    exact = "exact_window_sizes" in switches
    used = [r for r in layer.relations if r.data_dimension in own]
    if used:
        relations = tuple(used) if exact else layer.relations
        coupled = {d for r in relations for d in (r.data_dimension, r.terms[0][0], r.terms[1][0])}
        relevant = tuple(d for d in own if d not in coupled)
        irrelevant = tuple(d for d in others if d not in coupled and size[d] != 1)
        return Relevancy(layer, relevant, irrelevant, relations, exact)
    return Relevancy(layer, tuple(d for d in own if size[d] != 1), tuple(d for d in others if size[d] != 1), (), exact)
