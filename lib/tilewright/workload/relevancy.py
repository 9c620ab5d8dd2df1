"""Which loops matter to which operand, and how large a tile of it is (zigzag-dse 3.9.1: relevancy, sliding windows)."""

import math
from dataclasses import dataclass
from functools import lru_cache

from tilewright.profile import ModelProfile
from tilewright.workload.layer import DimensionRelation, Layer


@dataclass(frozen=True)
class OperandRelevancy:
    """Relevant and irrelevant loop dimensions of one operand, and the sliding windows it goes through.

    A dimension of size 1 may be in neither list. A dimension in neither list that occurs in one of `relations` is
    partially relevant.
    """

    relevant: tuple[str, ...]
    irrelevant: tuple[str, ...]
    relations: tuple[DimensionRelation, ...]


@lru_cache(maxsize=2048)
def operand_relevancy(layer: Layer, operand: str, profile: ModelProfile) -> OperandRelevancy:
    """The relevancy of one operand.

    The reference gives an operand that has one sliding window all windows of the layer; the switch
    `exact_window_sizes` gives it its own only.
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


def distinct_positions(coefficients: tuple[int, int], first: int, second: int, exact: bool) -> int:
    """Number of distinct values of c1*i + c2*j for i < first, j < second.

    With `exact` False the second factor is not clipped at 0, as in the reference (B12): for a dilation larger than
    the tile it over-counts.
    """
    divisor = math.gcd(*coefficients)
    outer = second - coefficients[0] // divisor
    inner = first - coefficients[1] // divisor
    return first * second - max(0, outer) * (max(0, inner) if exact else inner)


def data_dimension_size(layer: Layer, relation: DimensionRelation, profile: ModelProfile) -> int:
    """Full size of a sliding window's data dimension: explicit if the layer has it, else from loops and padding.

    At least 1: where the exact count of positions is smaller than the padding, one real position is left.
    """
    explicit = dict(layer.data_dimension_sizes)
    if relation.data_dimension in explicit:
        return explicit[relation.data_dimension]
    (first, c1), (second, c2) = relation.terms
    sizes = layer.size_of
    count = distinct_positions((c1, c2), sizes.get(first, 1), sizes.get(second, 1), profile.exact_window_sizes)
    return max(1, count - sum(dict(layer.padding).get(relation.data_dimension, (0, 0))))


@lru_cache(maxsize=2048)
def operand_elements(layer: Layer, operand: str, profile: ModelProfile) -> int:
    """Number of elements of the whole operand."""
    relevancy = operand_relevancy(layer, operand, profile)
    sizes = layer.size_of
    elements = math.prod(sizes.get(dimension, 1) for dimension in relevancy.relevant)
    for relation in relevancy.relations:
        (first, c1), (second, c2) = relation.terms
        count = distinct_positions((c1, c2), sizes.get(first, 1), sizes.get(second, 1), profile.exact_window_sizes)
        elements *= min(data_dimension_size(layer, relation, profile), count)
    return elements


def operand_bits(layer: Layer, operand: str, profile: ModelProfile) -> int:
    """Bits of the whole operand; the output at partial-sum precision."""
    return operand_elements(layer, operand, profile) * layer.bits_of[operand]
