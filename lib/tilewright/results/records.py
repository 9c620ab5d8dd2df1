"""Types and functions for the records of a run, shared by tables, figures and checks."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from tilewright.cost.ledger import ACCESSES
from tilewright.cost.record import LayerRecord, Loop, times
from tilewright.hardware.core import DIRECTIONS

Summary = Mapping[str, Any]
"""Content of `summary.json`."""
OVERALL = "overall"
"""Name of the row for the whole network in tables by layer."""


class PlacedLayer(NamedTuple):
    """Layer of the network, with its record. Functions list placed layers in execution order.

    A placed layer can represent several equal layers. The work, energy and cycles in `record` are then sums over these
    layers, and `single` is the record of one of them.
    """

    name: str
    record_index: int
    record: LayerRecord
    repeats: int = 1
    """Number of layers of the network that this layer represents."""
    single: LayerRecord | None = None
    """Record of one of the represented layers, if there are several."""

    @property
    def of_one(self) -> LayerRecord:
        """Record of a single layer: `single` if this placed layer represents several layers, otherwise `record`."""
        return self.single or self.record


def layers_in_order(records: Sequence[LayerRecord], summary: Summary | None = None) -> tuple[PlacedLayer, ...]:
    """Layers of the network in execution order. Equal layers share a record. Without a summary, the order is that of
    the records, and equal layers follow each other.
    """
    if summary is not None and "layer_index" in summary:
        return tuple(_placed(records, str(row[0]), *map(int, row[1:])) for row in summary["layer_index"])
    return tuple(_placed(records, name, index) for index, record in enumerate(records) for name in record.names)


def merged_layers(layers: Sequence[PlacedLayer]) -> tuple[PlacedLayer, ...]:
    """Layers of the network, with equal layers merged into one placed layer. A merged layer has the place and the name
    of the first layer that it represents.
    """
    found: dict[tuple[int, int], list[PlacedLayer]] = {}
    for layer in layers:
        found.setdefault((layer.record_index, layer.repeats), []).append(layer)
    return tuple(
        first
        if count == 1
        else PlacedLayer(first.name, index, times(first.of_one, count * repeats), count * repeats, first.of_one)
        for (index, repeats), alike in found.items()
        for first, count in [(alike[0], len(alike))]
    )


def _placed(records: Sequence[LayerRecord], name: str, index: int, repeats: int = 1) -> PlacedLayer:
    record = records[index]
    return PlacedLayer(name, index, times(record, repeats), repeats, record if repeats > 1 else None)


def work_text(record: LayerRecord) -> str:
    """Text on the work of a layer: the number of its operations or MACs."""
    layer = record.layer
    return f"{layer.operation_count:,} operations" if layer.operation_count else f"{layer.mac_count:,} MACs"


def memory_names(records: Sequence[LayerRecord]) -> tuple[str, ...]:
    """Names of all memories in the order of their definition. The memories of the first record come first."""
    return tuple(dict.fromkeys(name for record in records for name in record.memories))


def other_energies_pj(record: LayerRecord) -> dict[str, float]:
    """Energy terms other than memory accesses (pJ), in the order of summation."""
    return {term: energy for term, energy in record.energy_terms_pj.items() if term != ACCESSES}


def memory_energies_pj(record: LayerRecord) -> dict[str, dict[tuple[str, str], float]]:
    """Energy in pJ by memory name and (operand, direction). Operands have the order of the record. The directions are
    tl (to the level below), fl (from below), th (to the level above) and fh (from above).
    """
    energies: dict[str, dict[tuple[str, str], float]] = {name: {} for name in record.memories}
    for operand, level, name in memory_levels(record):
        by_direction = record.energy_breakdown_pj[operand][level]
        for direction in DIRECTIONS:
            energies.setdefault(name, {})[operand, direction] = by_direction[direction]
    return energies


def memory_levels(record: LayerRecord) -> Iterator[tuple[str, int, str]]:
    """Triples (operand, memory level, memory name). Operands are in the order of the record, and the innermost level
    comes first.
    """
    for operand, names in record.memory_levels.items():
        for level, name in enumerate(names):
            yield operand, level, name


def loop_products(loops: Iterable[Loop]) -> dict[str, float]:
    """Product of the sizes of the loops of each dimension. Dimensions are in the order of their first loops."""
    products: dict[str, float] = {}
    for dimension, size in loops:
        products[dimension] = products.get(dimension, 1) * size
    return products


def used_unrolling(record: LayerRecord) -> list[tuple[str, str, int, float]]:
    """Tuples (array dimension, layer dimension, requested factor, counted factor), in the order of the spatial mapping.

    If the factors of a layer dimension do not divide its size, the model spreads the iterations evenly over the passes,
    and counts fewer lanes than requested. The largest factor of the dimension is then reduced, so that the product of
    the counted factors is the counted number of lanes. If several factors are equally large, the first of them is
    reduced.
    """
    rows = [
        (array_dimension, dimension, int(factor))
        for array_dimension, factors in record.spatial_mapping.items()
        for dimension, factor in factors.items()
    ]
    in_use = _spatial_products(record)
    result, adjusted = [], set()
    for array_dimension, dimension, factor in rows:
        factors = [row[2] for row in rows if row[1] == dimension]
        used: float = factor
        if dimension in in_use and dimension not in adjusted and factor == max(factors):
            adjusted.add(dimension)
            used = in_use[dimension] / (math.prod(factors) / factor)
        result.append((array_dimension, dimension, factor, used))
    return result


def _spatial_products(record: LayerRecord) -> dict[str, float]:
    levels = next(iter(record.spatial_levels.values()), ())
    return loop_products(loop for level in levels for loop in level)
