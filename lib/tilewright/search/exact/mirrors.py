"""Mirror of a layer: an exchange of loop dimensions after which the layer is the same.

For example, a square convolution does not change if its rows and columns are exchanged. If the exchange turns one
spatial mapping into another, then each loop order of the first has the same cost as the exchanged loop order of the
second (docs/proofs/exact-rounds.md, 7).
"""

from collections import Counter
from functools import lru_cache

from tilewright.base.registry import Registry
from tilewright.cost.energy_terms import ENERGY_TERMS
from tilewright.cost.latency_terms import ENTERED as LATENCY_TERMS
from tilewright.mapping.constraints import TemporalOrderingEntry
from tilewright.mapping.temporal import LoopMultiset, loop_multisets
from tilewright.workload.layer import Layer

Exchange = dict[str, str]
"""Loop or data dimension -> dimension that replaces it. Dimensions that stay the same are left out."""
PLUGIN_TERMS: tuple[Registry[object], ...] = (ENERGY_TERMS, LATENCY_TERMS)  # type: ignore[assignment]


@lru_cache(maxsize=64)
def mirror_of(layer: Layer) -> tuple[tuple[str, str], ...]:
    """Items of an `Exchange` that exchanges the loops of the two sliding windows of a layer. The result is () if the
    layer does not have exactly two windows, or if the exchanged layer differs from the layer.

    If a plug-in has terms of energy or latency, the result is (), because such a term can treat dimensions differently.
    """
    if len(layer.relations) != 2 or any(registry.names for registry in PLUGIN_TERMS):
        return ()
    one, other = layer.relations
    pairs = [(one.data_dimension, other.data_dimension)]
    pairs += [(a, b) for (a, _), (b, _) in zip(one.terms, other.terms, strict=True)]
    names = [name for pair in pairs for name in pair]
    if len(set(names)) < len(names):  # windows that share a dimension
        return ()
    exchange = dict(pairs) | {b: a for a, b in pairs}
    return tuple(exchange.items()) if _described(layer, {}) == _described(layer, exchange) else ()


def _described(layer: Layer, exchange: Exchange) -> tuple[object, ...]:
    """Properties that determine the costs of a layer, after its dimensions are renamed by `exchange`. The sequence of
    the dimensions is left out.
    """

    def named(dimension: str) -> str:
        return exchange.get(dimension, dimension)

    relations = [
        (named(relation.data_dimension), tuple((named(d), factor) for d, factor in relation.terms))
        for relation in layer.relations
    ]
    return (
        [(operand, Counter(map(named, dimensions))) for operand, dimensions in layer.operand_dimensions],
        {named(d): size for d, size in layer.loop_sizes},
        sorted(relations),
        {named(d): padding for d, padding in layer.padding},
        {named(d): size for d, size in layer.data_dimension_sizes},
    )


def mirrored_sizes(
    sizes: tuple[tuple[str, int], ...], exchange: Exchange, dimensions: tuple[str, ...]
) -> tuple[tuple[str, int], ...]:
    """Numbers of iterations after an exchange, in the order of `dimensions`. `sizes` has all dimensions with more than
    one iteration."""
    size_of = {exchange.get(d, d): size for d, size in sizes}
    return tuple((d, size_of[d]) for d in dimensions if d in size_of)


@lru_cache(maxsize=4096)
def merged_multisets(
    sizes: tuple[tuple[str, int], ...], entries: tuple[TemporalOrderingEntry, ...] = ()
) -> tuple[LoopMultiset, ...]:
    """Multisets of merged loops for each `lpf_limit` below the number of prime factors, the smallest multiset first."""
    return tuple(loop_multisets(sizes, entries))[:0:-1]


@lru_cache(maxsize=4096)
def merges_alike(
    sizes: tuple[tuple[str, int], ...], mirror: tuple[tuple[str, str], ...], dimensions: tuple[str, ...]
) -> bool:
    """True if merging factors and exchanging dimensions give the same loops in either order, for every `lpf_limit`.

    The two orders do not always give the same loops. If two dimensions have equally many factors, the factors of the
    first dimension are merged. An exchange can swap the sizes of the two dimensions, so that other factors are merged.
    For some numbers of iterations, the greedy spaces of two mirrored spatial mappings therefore differ.
    """
    exchange = dict(mirror)
    own, other = merged_multisets(sizes), merged_multisets(mirrored_sizes(sizes, exchange, dimensions))
    return tuple(_exchanged(multiset, exchange) for multiset in own) == other


def _exchanged(multiset: LoopMultiset, exchange: Exchange) -> LoopMultiset:
    loops = [((exchange.get(d, d), factor), count) for (d, factor), count in multiset.loops]
    return LoopMultiset(tuple(sorted(loops)))
