"""Set of measurements `tenstorrent_gemm`: matrix products on all cores of Tenstorrent Wormhole n150 and Blackhole p150.

The estimate is the result of the command `evaluate` for the mapping of a product (`tenstorrent_mapping`) and the
hardware file of the chip. The mapping follows from the program that made the measurements, or from the rules of the
library that this program calls.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from pathlib import Path
from typing import Any

from tilewright.base.errors import InputError, Problem
from tilewright.base.units import parse_bits_per_second
from tilewright.cost.waiting import CALL as CALL_TERM
from tilewright.cost.waiting import COMMAND as COMMAND_TERM
from tilewright.cost.waiting import REQUEST as REQUEST_TERM

from tilewright_evidence.court.case import Case, Constant, CourtSet, Judged, Values, in_hundred
from tilewright_evidence.court.mapped_layer import MappedLayer
from tilewright_evidence.court.rows import read_rows
from tilewright_evidence.court.tenstorrent_mapping import (
    CALL,
    COMMAND,
    FORMATS,
    PASSES,
    REQUEST,
    TILE,
    UNPACK,
    GridPlan,
    Place,
    clock_mhz,
    default_plan,
    manual_plan,
    mapping_of,
    tenstorrent_core,
    written_document,
    written_values,
)

NAME = "tenstorrent_gemm"
DEVICES = ("n150", "p150")
SALT, SHARE = f"court|{NAME}", 13
MANUAL, DEFAULT = "manual", "out_of_box"
L1, DRAM = "L1", "DRAM"
COLUMNS: dict[str, type | tuple[type, ...]] = {
    "row_id": str,
    "report": str,
    "config": str,
    "device": str,
    "grid_x": int,
    "grid_y": int,
    "m": int,
    "k": int,
    "n": int,
    "trace": str,
    "in0_memory": str,
    "out_memory": str,
    "dtype": str,
    "fidelity": str,
    "host_time_ns": float,
    "flags": (str, type(None)),
}
ALLOWED = {
    "config": (MANUAL, DEFAULT),
    "device": DEVICES,
    "trace": ("True", "False"),
    "in0_memory": (L1, DRAM),
    "out_memory": (L1, DRAM),
    "dtype": tuple(FORMATS),
    "fidelity": tuple(PASSES),
}
"""Allowed values of the columns that contain names."""


def _constants(device: str) -> tuple[Constant, ...]:
    """Constants of a device that are fitted: numbers of its hardware file, with the values that this file has."""
    written = written_values(device)
    # Latencies with which the requests in flight reach the full bandwidth of the DRAM, and a tenth of it.
    full = {"n150": 228, "p150": 173}[device]
    step = "cycles that a step along the reduction takes in addition to transfers and arithmetic"
    # The order is that of the fit. With the requests first, the fitted rows have the least loss of all orders.
    return (
        Constant(
            REQUEST,
            "cycles",
            "latency of a request to the DRAM, if 128 requests of at most 512 bytes are in flight",
            written[REQUEST],
            full,
            10 * full,
        ),
        Constant(CALL, "cycles", step, written[CALL], 50, 5000),
        Constant(COMMAND, "cycles", "cycles between two passes over a tile", written[COMMAND], 0.1, 16),
        Constant(UNPACK, "bits/cycle", "width of the port from L1 to the registers", written[UNPACK], 256, 1024),
    )


def is_fitted(row: Mapping[str, Any]) -> bool:
    """True if the rule of the set of measurements (`CourtSet.rule`) chooses the row for the fit."""
    text = _drawn_by(row)
    return text is not None and in_hundred(text, SALT) < SHARE


def _drawn_by(row: Mapping[str, Any]) -> str | None:
    counts = row["trace"] == "True" and not row["flags"] and not _planned(row)[1].one_row
    return _group(row) if counts else None


def _group(row: Mapping[str, Any]) -> str:
    """Origin of a row: sizes of the product per core, format, fidelity, and source of the tiles (by hand or by the
    library). Rows of different chips, grids and reports can have the same origin.
    """
    base = row["m"] // row["grid_y"], row["k"] // row["grid_x"], row["n"] // row["grid_x"]
    return f"{row['config']} {base[0]}x{base[1]}x{base[2]} {row['dtype']} {row['fidelity']}"


def _planned(row: Mapping[str, Any]) -> tuple[GridPlan, Place]:
    """Plan of the product of a row, and the memories in which its inputs and outputs lie."""
    sizes, grid = (row["m"], row["k"], row["n"]), (row["grid_x"], row["grid_y"])
    if row["config"] == DEFAULT:
        return default_plan(row["device"], sizes, grid, row["dtype"])
    place = Place(row["dtype"], row["in0_memory"] == L1, row["out_memory"] == L1)
    return manual_plan(sizes, grid, row["dtype"], outputs_in_l1=place.outputs_in_l1), place


@dataclass(frozen=True)
class _Product:
    """Row with the measured time of a matrix product."""

    row: Mapping[str, Any]

    @property
    def device(self) -> str:
        """Name of the chip."""
        return str(self.row["device"])

    @cached_property
    def is_fitted(self) -> bool:
        """True if constants are fitted to this row. The rule of the set of measurements (`CourtSet.rule`) decides
        this.
        """
        return is_fitted(self.row)

    @cached_property
    def drawn_by(self) -> str | None:
        """Origin of the row, as text. None if constants are never fitted to this row."""
        return _drawn_by(self.row)

    @cached_property
    def planned(self) -> tuple[GridPlan, Place]:
        """Plan of the product, and the memories in which its inputs and outputs lie."""
        return _planned(self.row)

    def mapping(self, width: float) -> MappedLayer:
        """Mapping of the product. `width` is the width of the port from L1 to the registers, in bits a cycle."""
        plan, place = self.planned
        return mapping_of(self.device, plan, place, self.row["fidelity"], width)

    def parts(self, constants: Values) -> dict[str, float]:
        """Terms of the latency in cycles, by name. In the hardware file, `constants` replace the fitted numbers."""
        core = tenstorrent_core(self.device, self.planned[1], tuple(sorted(constants.items())))
        return self.mapping(constants[UNPACK]).parts(core)

    @cached_property
    def part(self) -> str:
        """Name of the part of the set to which the row belongs."""
        if self.row["trace"] != "True":
            return f"{self.device}, not traced"
        if self.planned[1].one_row:
            return f"{self.device}, default tiles, one row"
        return f"{self.device}, {'tiles by hand' if self.row['config'] == MANUAL else 'default tiles'}"

    @cached_property
    def least_times(self) -> tuple[float, float]:
        """Pair (computing time, DRAM time), in ns. The computing time assumes the peak performance of the cores that
        the program uses. The DRAM time is the time to move each operand in the DRAM once, at the full bandwidth.
        """
        row, document = self.row, written_document(self.device)
        m, k, n = row["m"], row["k"], row["n"]
        multipliers = prod(document["operational_array"]["sizes"][2:]) * row["grid_x"] * row["grid_y"]
        computing = 1e3 * m * k * n * PASSES[row["fidelity"]] / multipliers / clock_mhz(self.device)
        elements = k * n + (row["in0_memory"] == DRAM) * m * k + (row["out_memory"] == DRAM) * m * n
        (port,) = document["memories"]["dram"]["ports"]
        per_second = float(parse_bits_per_second(port["bandwidth_max"]))
        return computing, 1e9 * elements * FORMATS[row["dtype"]][1] / per_second

    def case(self, constants: Mapping[str, Values]) -> Case:
        """Measurement of the row and our predictions for it; times are in ns."""
        parts = self.parts(constants[self.device])
        least = max(self.least_times)
        return Case(
            identity=self.row["row_id"],
            part=self.part,
            group=_group(self.row),
            measured=self.row["host_time_ns"],
            bound=least,
            estimate=self._in_ns(sum(parts.values())),
            roofline=least,
            roofline_terms=(*self.least_times, 1.0),
            limited_by=_cause(parts),
            fitted=self.is_fitted,
            alone=self._in_ns(self.mapping(constants[self.device][UNPACK]).alone),
            judged=self._judged(parts, constants[self.device][UNPACK]),
        )

    def _judged(self, parts: Mapping[str, float], width: float) -> Judged | None:
        """Prediction of the cost model; None for a row that is not traced, because its time includes the start of the
        program by the host. `width` is the width of the port from L1 to the registers, in bits per cycle.
        """
        if self.row["trace"] != "True":
            return None
        program = self.part.removeprefix(f"{self.device}, ")
        return Judged(self.device, program, parts, self.mapping(width).alone_parts, 1.0)

    def _in_ns(self, cycles: float) -> float:
        return 1e3 * cycles / clock_mhz(self.device)


def _cause(parts: Mapping[str, float]) -> str:
    """Part of the machine that limits a product."""
    names = {CALL_TERM: "steps", COMMAND_TERM: "matrix units", REQUEST_TERM: "DRAM"}
    found = next((name for term, name in names.items() if parts.get(term)), None)
    if found:
        return found
    return "L1 and NoC" if parts["temporal_stall"] > sum(parts.values()) / 4 else "matrix units"


def prepare(files: Sequence[Path]) -> list[_Product]:
    """Rows with an empty column `flags`, ready for predictions. Raises InputError if there are mistakes in the
    files.
    """
    rows = read_rows(files, COLUMNS)
    problems = [
        Problem("is unknown", path=key, value=repr(value), allowed=", ".join(allowed))
        for key, allowed in ALLOWED.items()
        for value in sorted({row[key] for row in rows} - set(allowed))
    ]
    problems += [
        Problem(f"must be a multiple of {TILE} on each core", path=key, value=f"{row[key]} on {row[side]} cores")
        for row in rows
        for key, side in (("m", "grid_y"), ("k", "grid_x"), ("n", "grid_x"))
        if row[key] <= 0 or row[side] <= 0 or row[key] % (row[side] * TILE)
    ]
    if problems:
        raise InputError(problems)
    return [_Product(row) for row in rows if not row["flags"]]


TENSTORRENT = CourtSet(
    name=NAME,
    title="Tenstorrent n150 and p150: matrix products on all cores",
    unit="ns",
    source="Tenstorrent, tt-metal, tech_reports/GEMM_FLOPS; github.com/tenstorrent/tt-metal 06bd373 and 14eb2fb,"
    " Apache-2.0",
    rule="traced products whose origin (who chose the tiles, product on one core, format, fidelity) has a hash (0 to"
    f" 99, salt {SALT!r}) below {SHARE}; no product of the part 'default tiles, one row'",
    constants={device: _constants(device) for device in DEVICES},
    prepare=prepare,
    patterns=("rows.csv", "sample.csv"),
)
