"""Set `eyeriss_v1`: latency, power, buffer traffic and DRAM traffic of Eyeriss v1, measured layer by layer.

Each row of the set gives a case for each quantity. The estimate is the result of the command `evaluate` for the mapping
of the layer and the hardware file of the chip (`eyeriss_mapping`). No number is fitted.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

from tilewright.base.errors import InputError, Problem
from tilewright.cost.record import LayerRecord

from tilewright_evidence.court.case import LATENCY, POWER, Case, CourtSet, Judged, Values
from tilewright_evidence.court.eyeriss_mapping import (
    BITS,
    EyerissWork,
    eyeriss_core,
    layers,
    traffic_bytes,
)
from tilewright_evidence.court.rows import read_rows

NAME = "eyeriss_v1"
COLUMNS: dict[str, type | tuple[type, ...]] = {
    "row_id": str,
    "network": str,
    "batch": int,
    "layer": str,
    "power_mw": float,
    "total_latency_ms": float,
    "processing_latency_ms": float,
    "zeros_in_ifmaps_pct": float,
    "global_buffer_accesses_mb": float,
    "dram_accesses_mb": float,
}
PROCESSING, BUFFER, DRAM = "processing", "buffer", "DRAM"
QUANTITIES = {
    LATENCY: "total_latency_ms",
    PROCESSING: "processing_latency_ms",
    BUFFER: "global_buffer_accesses_mb",
    DRAM: "dram_accesses_mb",
    POWER: "power_mw",
}
"""Column of the set with the measurement of each quantity: latencies in ms, traffic in MB, and power in mW. Processing
is the latency without the times in which the array waits for the DRAM.
"""
_FOLLOWERS = (
    ("alexnet", ("CONV3", "CONV4", "CONV5")),
    ("vgg16", ("CONV1-1", "CONV1-2")),
    ("vgg16", ("CONV2-1", "CONV2-2")),
    ("vgg16", ("CONV3-1", "CONV3-2", "CONV3-3")),
    ("vgg16", ("CONV4-1", "CONV4-2", "CONV4-3")),
    ("vgg16", ("CONV5-1", "CONV5-2", "CONV5-3")),
)
DIRECT = {(network, one): other for network, names in _FOLLOWERS for one, other in pairwise(names)}
"""Name of the layer that reads the outputs of another layer directly, without pooling in between. The key is (network,
name of the other layer).
"""
FIRST = {("alexnet", "CONV1"): "CONV3", ("vgg16", "CONV1-1"): "CONV1-2"}
"""(network, first layer of the network) -> later layer. The outputs of the first layer are assumed to have the same
share of zeros as the inputs of the later layer, because no measured layer reads these outputs directly. The inputs of a
first layer are not compressed.
"""
SAMPLE = ("CONV1", "CONV3", "CONV4", "CONV5", "CONV1-1", "CONV1-2", "CONV4-2", "CONV4-3")
"""Layers of the sample in the package."""
DRAM_BYTES_PER_MS = 8 * 60e3
"""Bytes that the bus of 64 bits and 60 MHz moves in a millisecond."""
CYCLES_PER_MS = 200e3
UNITS = 168
SMALLEST_SIZE = 1 / 24
"""Size of the compressed data if all elements are zero, as a share of the plain data."""


def zeros_of(rows: Sequence[Mapping[str, Any]]) -> dict[tuple[str, str], tuple[tuple[str, float], ...]]:
    """Shares of zeros in the inputs and final outputs of each layer, by (network, layer). The first layer of a network
    has no share of the inputs.

    The measured set has the shares of the inputs. The share of the outputs is the input share of a layer that depends
    on the case:

    * another layer reads the outputs directly (`DIRECT`): this other layer
    * first layer of a network: a later layer (`FIRST`)
    * pooling follows, or the set lacks the next layer: the layer itself
    """
    share = {(row["network"], row["layer"]): row["zeros_in_ifmaps_pct"] / 100 for row in rows}
    found = {}
    for key, own in share.items():
        others = (DIRECT.get(key), FIRST.get(key))
        after = next((share[key[0], name] for name in others if name and (key[0], name) in share), own)
        inputs = () if key in FIRST else (("I", own),)
        found[key] = (*inputs, ("O_final", after))
    return found


@dataclass(frozen=True)
class _Layer:
    """Layer of the set with our predictions for each quantity."""

    row: Mapping[str, Any]
    work: EyerissWork
    is_first: bool

    @cached_property
    def estimates(self) -> dict[str, tuple[float, str]]:
        """Pair (estimate, name of the largest part of the estimate) of each quantity."""
        return self._predicted(with_keys=True)

    @cached_property
    def alone(self) -> dict[str, tuple[float, str]]:
        """Pairs as in `estimates`, for a hardware file without the keys for zeros (gating and compression)."""
        return self._predicted(with_keys=False)

    @cached_property
    def record(self) -> LayerRecord:
        """Record of the layer, as `evaluate` makes it."""
        return self.work.record(is_first=self.is_first)

    def _predicted(self, *, with_keys: bool) -> dict[str, tuple[float, str]]:
        record = self.record if with_keys else self.work.record(with_keys=False, is_first=self.is_first)
        moved = traffic_bytes(record, eyeriss_core())
        time_ms = record.latency_cycles / CYCLES_PER_MS
        terms = record.latency_breakdown_cycles
        waits = {"array": terms["ideal"] + terms["spatial_stall"], "waiting for ports": terms["temporal_stall"]}
        buffer = {name: count / 1e6 for name, count in moved.items() if name.startswith("buffer")}
        dram = {name: count / 1e6 for name, count in moved.items() if name.startswith("dram")}
        parts = {
            "spads and buffers": chip_energy_pj(record) - record.energy_terms_pj["mac"],
            "array": record.energy_terms_pj["mac"],
        }
        return {
            LATENCY: (time_ms, _largest(waits)),
            PROCESSING: (time_ms, _largest(waits)),
            BUFFER: (sum(buffer.values()), _largest(buffer)),
            DRAM: (sum(dram.values()), _largest(dram)),
            POWER: (chip_energy_pj(record) / time_ms * 1e-6, _largest(parts)),
        }

    @cached_property
    def rooflines(self) -> dict[str, float]:
        """Roofline of each quantity, if no tensor is compressed and all units are always busy.

        Each tensor moves once to or from the DRAM. In the buffer, each input counts once, and each output counts twice:
        when it enters the buffer, and when it leaves. The power covers only the operations, with the energy of an
        operation from the hardware file.
        """
        shape, images = self.work.shape, self.work.images
        size = {name: count * BITS / 8 for name, count in shape.elements(images).items()}
        macs = shape.macs_of_image * images
        time_ms = max(macs / UNITS / CYCLES_PER_MS, sum(size.values()) / DRAM_BYTES_PER_MS)
        energy_pj = macs * eyeriss_core().operational_array.unit_energy_pj
        return {
            LATENCY: time_ms,
            PROCESSING: time_ms,
            BUFFER: (size["I"] + 2 * size["O"]) / 1e6,
            DRAM: sum(size.values()) / 1e6,
            POWER: energy_pj / time_ms * 1e-6,
        }

    @cached_property
    def bounds(self) -> dict[str, float]:
        """Lower bound of each quantity.

        Latencies: all units are always busy. Buffer: each input leaves the buffer at least once, and each output enters
        the buffer at least once. DRAM: each weight moves once, and inputs and outputs move once with the smallest size
        that the compression allows. Power: only operations without a zero take energy, and they take the energy of the
        hardware file.
        """
        shape, images = self.work.shape, self.work.images
        size = {name: count * BITS / 8 for name, count in shape.elements(images).items()}
        macs = shape.macs_of_image * images
        active = macs * (1 - dict(self.work.zeros).get("I", 0.0))
        energy_pj = active * eyeriss_core().operational_array.unit_energy_pj
        return {
            LATENCY: macs / UNITS / CYCLES_PER_MS,
            PROCESSING: macs / UNITS / CYCLES_PER_MS,
            BUFFER: (size["I"] + size["O"]) / 1e6,
            DRAM: (size["W"] + (size["I"] + size["O"]) * SMALLEST_SIZE) / 1e6,
            POWER: energy_pj / self.row["total_latency_ms"] * 1e-6,
        }

    def measured(self, quantity: str) -> float:
        """Measurement of a quantity, in ms, MB or mW."""
        return float(self.row[QUANTITIES[quantity]])


@dataclass(frozen=True)
class _Prepared:
    layer: _Layer
    quantity: str
    others: tuple[_Layer, ...] = ()
    """Other layers of the same network in the set. The factor of the fitted roofline is fitted to them."""
    device: str = ""
    is_fitted: bool = False
    drawn_by: str | None = field(default=None)

    def case(self, constants: Mapping[str, Values]) -> Case:
        """Case of one quantity of a layer."""
        row, quantity = self.layer.row, self.quantity
        estimate, cause = self.layer.estimates[quantity]
        roofline = self.layer.rooflines[quantity]
        factors = [one.measured(quantity) / one.rooflines[quantity] for one in self.others]
        return Case(
            identity=f"{row['row_id']} {quantity}",
            part=f"{row['network']}, {quantity}",
            group=f"{row['network']} {row['layer']}",
            measured=self.layer.measured(quantity),
            bound=self.layer.bounds[quantity],
            estimate=estimate,
            roofline=roofline,
            fitted_roofline=roofline * median(factors) if factors else None,
            limited_by=cause,
            fitted=False,
            alone=self.layer.alone[quantity][0],
            judged=self._judged(),
        )

    def _judged(self) -> Judged | None:
        """Prediction of the cost model for the latency or the power of the chip; None for all other quantities."""
        if self.quantity not in (LATENCY, POWER):
            return None
        terms = self.layer.record.latency_breakdown_cycles
        return Judged("eyeriss v1", self.layer.row["network"], terms, None, 1e6, self.quantity)


def chip_energy_pj(record: LayerRecord) -> float:
    """Energy of a layer in pJ, without the energy of the DRAM. The power was measured for the chip without the DRAM."""
    return record.energy_pj - sum(
        sum(directions.values())
        for operand, levels in record.energy_breakdown_pj.items()
        for name, directions in zip(record.memory_levels[operand], levels, strict=True)
        if name == "dram"
    )


def _largest(parts: Mapping[str, float]) -> str:
    return max(parts, key=lambda name: parts[name])


def prepare(files: Sequence[Path]) -> list[_Prepared]:
    """Layers of `files`, prepared for predictions, with one entry for each quantity. Raises InputError with all
    mistakes.
    """
    rows = read_rows(files, COLUMNS)
    unknown = [row for row in rows if (row["network"], row["layer"]) not in layers()]
    if unknown:
        message, known = "no mapping is known for this layer", ", ".join(" ".join(key) for key in layers())
        raise InputError([Problem(message, value=f"{row['network']} {row['layer']}", allowed=known) for row in unknown])
    zeros = zeros_of(rows)
    found = []
    for row in rows:
        key = row["network"], row["layer"]
        shape, mapping = layers()[key]
        found.append(_Layer(row, EyerissWork(shape, mapping, row["batch"], zeros[key]), key in FIRST))
    return [
        _Prepared(one, quantity, tuple(other for other in _of_network(found, one) if other is not one))
        for one in found
        for quantity in QUANTITIES
    ]


def _of_network(found: Sequence[_Layer], one: _Layer) -> list[_Layer]:
    return [other for other in found if other.row["network"] == one.row["network"]]


EYERISS = CourtSet(
    name=NAME,
    title="Eyeriss v1, silicon: latency, traffic and power of layers",
    unit="ms, MB, mW",
    source="Chen et al., Eyeriss, IEEE JSSC 2017, tables V and VI; github.com/cucapra/fodlam 03db3a1, MIT",
    rule="no rows. The factor of the fitted roofline is the median of measured / roofline over the other"
    " layers of the network",
    constants={},
    prepare=prepare,
    patterns=("rows.csv", "sample.csv"),
)
