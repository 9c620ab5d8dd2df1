"""Temporal ordering constraints: a complete order, or a pattern that orders must match (zigzag-dse 3.9.1, mapping).

Entries before the first `*` gap bind the innermost positions, entries after the last gap the outermost ones, entries
between two gaps a run anywhere between. Without a gap everything outside the listed loops is free. (The reference
drops gaps, and stops on sizes of 1 and on repeated sizes: faults B7, B8 and B9.)
"""

import math
from dataclasses import dataclass

import numpy as np

from tilewright.mapping.constraints import WILDCARD, TemporalOrderingEntry
from tilewright.workload.layer import Layer

ANY = -1
GAP = -2


def applicable_ordering(ordering: tuple[TemporalOrderingEntry, ...], layer: Layer) -> tuple[TemporalOrderingEntry, ...]:
    """The entries that speak of the layer's dimensions, and the gaps."""
    return tuple(entry for entry in ordering if entry.dimension == WILDCARD or entry.dimension in layer.size_of)


def complete_order(
    ordering: tuple[TemporalOrderingEntry, ...], temporal_sizes: tuple[tuple[str, int], ...]
) -> tuple[tuple[str, int], ...] | None:
    """The loop order that `ordering` spells out in full (loops of 1 dropped), or None if it leaves a choice."""
    if any(entry.dimension == WILDCARD or entry.size is None for entry in ordering):
        return None
    loops = tuple((entry.dimension, entry.size or 1) for entry in ordering)
    products = {d: math.prod(size for name, size in loops if name == d) for d, _ in loops}
    if {d: size for d, size in products.items() if size != 1} != dict(temporal_sizes):
        return None
    return tuple(loop for loop in loops if loop[1] != 1)


def counted_boundaries(
    boundaries: tuple[tuple[str, tuple[int, ...]], ...], ordering: tuple[TemporalOrderingEntry, ...], layer: Layer
) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """Boundaries over the entries of `ordering` as boundaries over the loops that the layer has of them.

    Entries of other dimensions and loops of 1 are no loops of the layer. A boundary above all entries stays above.
    """
    counts = [0]
    for entry in ordering:
        counts.append(counts[-1] + (entry.dimension in layer.size_of and entry.size != 1))

    def counted(bound: int) -> int:
        return counts[bound] if bound < len(counts) else counts[-1] + bound - len(ordering)

    return tuple((operand, tuple(counted(bound) for bound in bounds)) for operand, bounds in boundaries)


@dataclass(frozen=True)
class OrderPattern:
    """A pattern as arrays for the kernel: dimension index (or GAP) and size (or ANY), innermost first."""

    dimension: np.ndarray
    size: np.ndarray


def order_pattern(ordering: tuple[TemporalOrderingEntry, ...], dimensions: tuple[str, ...]) -> OrderPattern:
    """The pattern of `ordering`; loops of size 1 are nothing and are dropped."""
    entries = [entry for entry in ordering if entry.dimension == WILDCARD or entry.size != 1]
    if entries and all(entry.dimension != WILDCARD for entry in entries):
        entries.append(TemporalOrderingEntry(WILDCARD))
    index = [GAP if entry.dimension == WILDCARD else dimensions.index(entry.dimension) for entry in entries]
    size = [ANY if entry.size is None else entry.size for entry in entries]
    return OrderPattern(np.array(index, np.int64), np.array(size, np.int64))
