"""Relevancy of loops to operands, and numbers of elements of operands (zigzag-dse 3.9.1: relevancy,
sliding windows).
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from tilewright.base.profile import ModelProfile
from tilewright.workload.layer import DimensionRelation, Layer


@dataclass(frozen=True)
class OperandRelevancy:
    """Relevant and irrelevant loop dimensions of one operand, and the sliding windows of this operand.

    A dimension of size 1 can be missing in both lists. Any other dimension that is missing in both lists occurs in one
    of `relations`, and is partially relevant.
    """

    relevant: tuple[str, ...]
    irrelevant: tuple[str, ...]
    relations: tuple[DimensionRelation, ...]


@lru_cache(maxsize=2048)
def operand_relevancy(layer: Layer, operand: str, profile: ModelProfile) -> OperandRelevancy:
    """Relevancy of the loops to one operand.

    If an operand has a sliding window, the reference tool assigns all windows of the layer to this operand. With the
    switch `exact_window_sizes`, the operand has only the windows of its own dimensions.
    """
    own = dict(layer.operand_dimensions)[operand]
    others = tuple(dimension for dimension, _ in layer.loop_sizes if dimension not in own)
    sizes = layer.size_of
    windows = tuple(relation for relation in layer.relations if relation.data_dimension in own)
    if not windows:
        return OperandRelevancy(
            tuple(d for d in own if sizes.get(d, 1) != 1), tuple(d for d in others if sizes[d] != 1), ()
        )
    relations = windows if profile.exact_window_sizes else layer.relations
    coupled = {name for relation in relations for name in (relation.data_dimension, *dict(relation.terms))}
    return OperandRelevancy(
        tuple(d for d in own if d not in coupled),
        tuple(d for d in others if d not in coupled and sizes[d] != 1),
        relations,
    )


NO_STEP = 2**40
"""Step that is larger than any loop, so that no two iterations access the same positions."""


@dataclass(frozen=True)
class WindowGroup:
    """Sliding windows of an operand that share loops, either directly or through other windows of the group."""

    relations: tuple[DimensionRelation, ...]
    step: tuple[tuple[str, int], ...]
    """Pairs (loop dimension, step). Two iterations access the same positions if their indices differ by the steps in
    all loops at once.
    """
    is_joint: bool
    """True if the group has several windows, or has a loop that is also a dimension of the operand."""


@lru_cache(maxsize=2048)
def window_groups(layer: Layer, operand: str, relations: tuple[DimensionRelation, ...]) -> tuple[WindowGroup, ...]:
    """Sliding windows `relations` of an operand, divided into groups. Different groups have no loop in common."""
    own = dict(layer.operand_dimensions)[operand]
    left, groups = list(relations), []
    while left:
        members = [left.pop(0)]
        names = set(dict(members[0].terms))
        while near := [relation for relation in left if names & set(dict(relation.terms))]:
            members += near
            names.update(name for relation in near for name in dict(relation.terms))
            left = [relation for relation in left if relation not in near]
        is_joint = len(members) > 1 or any(name in own for name in names)
        groups.append(WindowGroup(tuple(members), _step(members, own, layer), is_joint))
    return tuple(groups)


def _step(relations: list[DimensionRelation], own: tuple[str, ...], layer: Layer) -> tuple[tuple[str, int], ...]:
    """Steps of the loops of a group of sliding windows, as pairs (loop dimension, step).

    Two iterations access the same positions if their indices differ by the steps in all loops at once. The steps are
    the smallest integers for which this is true. If there are no such integers, every step is NO_STEP. `relations` are
    the windows of the group, and `own` are the dimensions of the operand.
    """
    names = list(dict.fromkeys(name for relation in relations for name, _ in relation.terms))
    change = {names[0]: Fraction(1)}
    consistent = all(name in layer.size_of and name not in own for name in names)
    while len(change) < len(names):
        for relation in relations:
            for (first, c1), (second, c2) in (relation.terms, relation.terms[::-1]):
                if first in change and second not in change and c2:
                    change[second] = -change[first] * c1 / c2
    for relation in relations:
        consistent = consistent and sum(change[name] * c for name, c in relation.terms) == 0
    if not consistent:
        return tuple((name, NO_STEP) for name in names)
    scale = math.lcm(*(value.denominator for value in change.values()))
    whole = {name: int(value * scale) for name, value in change.items()}
    divisor = math.gcd(*whole.values())
    return tuple((name, value // divisor) for name, value in whole.items())


def distinct_positions(coefficients: tuple[int, int], first: int, second: int, exact: bool) -> int:
    """Number of distinct values of c1*i + c2*j for i = 0 ... first - 1 and j = 0 ... second - 1. `coefficients` is (c1,
    c2).

    The result is first * second minus the number of pairs (i, j) that repeat a value of another pair. If `exact` is
    False, the number of these pairs becomes negative for a dilation that exceeds the tile. The result is then too
    large, as in the reference tool (fault B12, docs/model.md).
    """
    divisor = math.gcd(*coefficients)
    outer = second - coefficients[0] // divisor
    inner = first - coefficients[1] // divisor
    return first * second - max(0, outer) * (max(0, inner) if exact else inner)


def data_dimension_size(layer: Layer, relation: DimensionRelation, profile: ModelProfile) -> int:
    """Size of the data dimension of a sliding window (such as ix), for the whole layer. A size that the layer gives is
    used. Otherwise, the size is the number of positions that the loops access, minus the padding.

    The result is at least 1, even if all positions are padding.
    """
    explicit = dict(layer.data_dimension_sizes)
    if relation.data_dimension in explicit:
        return explicit[relation.data_dimension]
    (first, c1), (second, c2) = relation.terms
    sizes = layer.size_of
    count = distinct_positions((c1, c2), sizes.get(first, 1), sizes.get(second, 1), profile.exact_window_sizes)
    return max(1, count - sum(dict(layer.padding).get(relation.data_dimension, (0, 0))))


def outputs_have_windows(layer: Layer) -> bool:
    """True if the output has a sliding window."""
    own = dict(layer.operand_dimensions)[layer.operands[0]]
    return any(relation.data_dimension in own for relation in layer.relations)


def joins_windows(profile: ModelProfile) -> bool:
    """True if the profile counts sliding windows with common loops as one group: each distinct combination of their
    positions counts once. Otherwise, the profile multiplies the position counts of the single windows."""
    return profile.exact_window_sizes and profile.whole_tiles


def group_positions(layer: Layer, operand: str, group: WindowGroup, profile: ModelProfile) -> int:
    """Number of distinct positions that a group of windows has in the whole layer."""
    own = dict(layer.operand_dimensions)[operand]
    sizes = [layer.size_of.get(name, 1) for name, _ in group.step]
    again = math.prod(max(0, size - abs(step)) for size, (_, step) in zip(sizes, group.step, strict=True))
    most = math.prod(data_dimension_size(layer, relation, profile) for relation in group.relations)
    most *= math.prod(layer.size_of.get(name, 1) for name, _ in group.step if name in own)
    return min(most, math.prod(sizes) - again)


@lru_cache(maxsize=2048)
def operand_elements(layer: Layer, operand: str, profile: ModelProfile) -> int:
    """Number of elements of the whole operand."""
    relevancy = operand_relevancy(layer, operand, profile)
    sizes = layer.size_of
    elements = math.prod(sizes.get(dimension, 1) for dimension in relevancy.relevant)
    groups = window_groups(layer, operand, relevancy.relations)
    if joins_windows(profile) and any(group.is_joint for group in groups):
        return elements * math.prod(group_positions(layer, operand, group, profile) for group in groups)
    for relation in relevancy.relations:
        (first, c1), (second, c2) = relation.terms
        count = distinct_positions((c1, c2), sizes.get(first, 1), sizes.get(second, 1), profile.exact_window_sizes)
        elements *= min(data_dimension_size(layer, relation, profile), count)
    return elements


def operand_bits(layer: Layer, operand: str, profile: ModelProfile) -> int:
    """Bits of the whole operand. For the output, the bits of partial sums are counted."""
    return operand_elements(layer, operand, profile) * layer.bits_of[operand]
