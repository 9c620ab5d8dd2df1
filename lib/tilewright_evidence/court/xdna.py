"""Set of measurements `amd_xdna_gemm`: matrix products on all cores of AMD XDNA and XDNA2.

The estimate is the result of the command `evaluate` for the hardware file of the chip and a mapping with the measured
tiles (`xdna_mapping`). No number is fitted. Other rows of the set are left out, because they give no sizes of a product
on all cores: kernels of one core, and the best rates of sweeps.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from pathlib import Path
from typing import Any

from tilewright.base.errors import InputError, Problem
from tilewright.base.units import parse_bits_per_second

from tilewright_evidence.court.case import Case, CourtSet, Judged, Values
from tilewright_evidence.court.mapped_layer import MappedLayer
from tilewright_evidence.court.rows import read_rows
from tilewright_evidence.court.xdna_mapping import (
    FORMATS,
    Tiles,
    clock_mhz,
    lanes_of,
    mapping_of,
    misfits,
    written_document,
    xdna_core,
)

NAME = "amd_xdna_gemm"
DEVICES = ("XDNA", "XDNA2")
WHOLE_ARRAY = "array_gemm_end_to_end"
SIZES = ("m", "k", "n")
TILES = ("m_ct", "k_ct", "n_ct", "k_mt")
COLUMNS: dict[str, type | tuple[type, ...]] = {
    "row_id": str,
    "scope": str,
    "device": str,
    "precision_in_out": str,
    **dict.fromkeys((*TILES, *SIZES), (int, float, type(None))),
    "measured_time_us_derived": (float, type(None)),
}
DDR5_BYTES_PER_US = 89.6e3
"""Largest number of bytes that two channels of DDR5-5600 move in a microsecond."""
NEAR = 0.95
"""Share of the estimated time. If reads from the DRAM take at least this share, they count as the limit of the row
(`Case.limited_by`)."""


@dataclass(frozen=True)
class _Product:
    """Row with the measured time of a matrix product."""

    row: Mapping[str, Any]
    device: str = ""
    is_fitted: bool = False
    drawn_by: str | None = None

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Sizes (m, k, n) of the product."""
        m, k, n = (int(self.row[name]) for name in SIZES)
        return m, k, n

    @property
    def tiles(self) -> Tiles:
        """Tiles of the measurement."""
        return Tiles(*(int(self.row[name]) for name in TILES))

    @cached_property
    def mapping(self) -> MappedLayer:
        """Mapping of the product."""
        return mapping_of(self.row["device"], self.sizes, self.tiles, self.row["precision_in_out"])

    @cached_property
    def parts(self) -> dict[str, float]:
        """Terms of the latency of the mapping in cycles, by name."""
        return self.mapping.parts(xdna_core(self.row["device"], self.row["precision_in_out"]))

    def case(self, constants: Mapping[str, Values]) -> Case:
        """Measurement of the row and our predictions for it; times are in microseconds."""
        row, (m, k, n), tiles = self.row, self.sizes, self.tiles
        document = written_document(row["device"])
        rows, columns = document["operational_array"]["sizes"][:2]
        input_bits, output_bits = FORMATS[row["precision_in_out"]]
        multipliers = prod(lanes_of(row["device"], row["precision_in_out"])) * rows * columns
        computing = m * k * n / multipliers / clock_mhz(row["device"])
        least = ((m * k + k * n) * input_bits + m * n * output_bits) / 8
        bytes_per_us = float(parse_bits_per_second(document["memories"]["dram"]["ports"][0]["bandwidth_max"])) / 8e6
        read = m * k * n * input_bits / 8 * (1 / (tiles.columns * columns) + 1 / (tiles.rows * rows))
        estimate = sum(self.parts.values()) / clock_mhz(row["device"])
        return Case(
            identity=row["row_id"],
            part=row["device"],
            group=row["row_id"],
            measured=row["measured_time_us_derived"],
            bound=max(computing, least / DDR5_BYTES_PER_US),
            estimate=estimate,
            roofline=max(computing, least / bytes_per_us),
            limited_by="DRAM" if read / bytes_per_us >= NEAR * estimate else "cores",
            fitted=False,
            alone=estimate,
            judged=Judged(row["device"], "product on all cores", self.parts, None, 1e3),
        )


def prepare(files: Sequence[Path]) -> list[_Product]:
    """Matrix products that were measured on all cores, one for each row of known sizes. Raises InputError for mistakes
    in the files.
    """
    rows = [row for row in read_rows(files, COLUMNS) if row["scope"] == WHOLE_ARRAY and row["m"] is not None]
    problems = []
    for row in rows:
        for key, allowed in (("device", DEVICES), ("precision_in_out", tuple(FORMATS))):
            if row[key] not in allowed:
                problems.append(Problem("is unknown", path=key, value=repr(row[key]), allowed=", ".join(allowed)))
    if not problems:
        problems = [
            Problem("the tiles do not fit", path=row["row_id"], value=told) for row in rows for told in _misfits(row)
        ]
    if problems:
        raise InputError(problems)
    return [_Product(row) for row in rows]


def _misfits(row: Mapping[str, Any]) -> list[str]:
    missing = [name for name in (*SIZES, *TILES, "measured_time_us_derived") if not row[name]]
    if missing:
        return [f"no {name}" for name in missing]
    one = _Product(row)
    return misfits(row["device"], one.sizes, one.tiles, row["precision_in_out"])


XDNA = CourtSet(
    name=NAME,
    title="AMD XDNA and XDNA2: matrix products on all cores",
    unit="us",
    source="E. Taka et al., Striking the Balance, arXiv 2512.13282v1 (2025), tables 2 and 3",
    rule="no rows",
    constants={},
    prepare=prepare,
    patterns=("rows.csv", "sample.csv"),
)
