"""Views on the records of a run that tables, figures and checks share."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tilewright.hardware.core import DIRECTIONS

Record = Mapping[str, Any]
"""One line of `layers.jsonl`."""
Summary = Mapping[str, Any]
"""The content of `summary.json`."""
OVERALL = "overall"
"""What stands for a whole network where layers stand by their names."""

LATENCY_PARTS: tuple[tuple[str, str], ...] = (
    ("ideal", "ideal"),
    ("spatial_stall", "spatial stall"),
    ("temporal_stall", "temporal stall"),
    ("onloading", "on-loading"),
    ("offloading", "off-loading"),
    ("drain", "drain"),
)
"""(key in `latency_breakdown_cycles`, words for people), in the order in which they add up."""


@dataclass(frozen=True)
class PlacedLayer:
    """A layer of the network, in execution order, with the record of the problem it poses."""

    name: str
    record_index: int
    record: Record


def layers_in_order(records: Sequence[Record], summary: Summary | None = None) -> tuple[PlacedLayer, ...]:
    """Every layer of the network in execution order; equal layers share a record.

    Without a summary the order is that of the records, each followed by its equals.
    """
    if summary is not None and "layer_index" in summary:
        pairs = [(str(name), int(index)) for name, index in summary["layer_index"]]
    else:
        pairs = [(name, index) for index, record in enumerate(records) for name in layer_names(record)]
    return tuple(PlacedLayer(name, index, records[index]) for name, index in pairs)


def operation_count(record: Record) -> int:
    """Operations of a layer: multiply-accumulates or others, a layer has one kind."""
    layer = record["layer"]
    return int(layer["mac_count"] + layer["operation_count"])


def work_text(record: Record) -> str:
    """How much a layer has to do, and of what."""
    layer = record["layer"]
    return f"{layer['operation_count']:,} operations" if layer["operation_count"] else f"{layer['mac_count']:,} MACs"


def layer_names(record: Record) -> list[str]:
    """All layers of the network that have the problem of this record."""
    return list(record.get("layer_names") or [record["layer"]["name"]])


def memory_names(records: Sequence[Record]) -> tuple[str, ...]:
    """Names of all memories in definition order, those of the first record first."""
    return tuple(dict.fromkeys(name for record in records for name in record["memories"]))


def memory_energies_pj(record: Record) -> dict[str, dict[tuple[str, str], float]]:
    """Memory name -> {(operand, direction): energy in pJ}, operands in record order, directions tl, fl, th, fh."""
    energies: dict[str, dict[tuple[str, str], float]] = {name: {} for name in record["memories"]}
    for operand, level, name in memory_levels(record):
        by_direction = record["energy_breakdown_pj"][operand][level]
        for direction in DIRECTIONS:
            energies.setdefault(name, {})[operand, direction] = float(by_direction[direction])
    return energies


def memory_levels(record: Record) -> Iterator[tuple[str, int, str]]:
    """(operand, memory level, memory name), operands in record order, innermost level first."""
    for operand, names in record["memory_levels"].items():
        for level, name in enumerate(names):
            yield operand, level, name


def corrected_latency(record: Record) -> float | None:
    """Cycles of the same mapping under the corrected model; None where the mapping does not fit under it."""
    cycles: float | None = record["corrected"]["latency_cycles"]
    return cycles


def loop_products(loops: Sequence[Sequence[Any]]) -> dict[str, float]:
    """Product of the loop sizes of each dimension, in order of first appearance."""
    products: dict[str, float] = {}
    for dimension, size in loops:
        products[dimension] = products.get(dimension, 1) * size
    return products


def used_unrolling(record: Record) -> list[tuple[str, str, int, float]]:
    """(array dimension, layer dimension, factor asked for, factor counted) of the spatial mapping, in its order.

    A factor that does not divide its dimension is spread evenly over the passes, so that the model counts fewer
    lanes than asked for; the adjusted factor is the first of the largest ones of its dimension.
    """
    rows = [
        (array_dimension, dimension, int(factor))
        for array_dimension, factors in record["spatial_mapping"].items()
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


def _spatial_products(record: Record) -> dict[str, float]:
    levels: list[list[Any]] = next(iter(record["spatial_levels"].values()), [])
    return loop_products([loop for level in levels for loop in level])
