"""Set `gemmini-rtl`: cycles of Gemmini's RTL for given mappings, predicted by the cost model.

The estimate is the result of the command `evaluate` for the mapping of a row and the hardware file of Gemmini.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from tilewright.cost.waiting import CALL as CALL_TERM
from tilewright.cost.waiting import COMMAND as COMMAND_TERM
from tilewright.cost.waiting import REQUEST as REQUEST_TERM

from tilewright_evidence.court.case import Case, Constant, CourtSet, Judged, Published, Values, in_hundred
from tilewright_evidence.court.gemmini_mapping import (
    CALL,
    CANDIDATE,
    COMMAND_LATENCY,
    DIMENSIONS,
    DRAM,
    LLC,
    PRODUCT_CALL,
    STORE,
    Call,
    GemminiWork,
    calls_of,
    gemmini_core,
    in_default_tiling,
    mapping_of,
    peak_and_bus_cycles,
    whole_layer_bounds,
    work_of,
    written_values,
)
from tilewright_evidence.court.mapped_layer import MappedLayer
from tilewright_evidence.court.rows import read_rows

NAME, DEVICE = "gemmini-rtl", "gemmini"
SALT, SHARE = f"court-8|{NAME}", 9
FITTED_ARRAY = 16
COLUMNS: dict[str, type | tuple[type, ...]] = {
    "id": str,
    "source": str,
    "kind": str,
    "layer": dict,
    "array": int,
    "mapping": list,
    "tile": dict,
    "measured_cycles": int,
    "executed_output": list,
    **{f"layer.{name}": int for name in (*DIMENSIONS, "stride_x", "stride_y", "pad", "IX", "IY")},
    **{f"tile.{name}": int for name in DIMENSIONS},
    "timeloop_cycles": (int, float, type(None)),
    "default_tile": (dict, type(None)),
    "default_cycles": (int, type(None)),
}
DEFAULT_ORDER = ("C", "FX", "FY", "K", "OX", "OY", "B")
"""Dimensions of the loops over the tiles in the driver's default tiling, inner to outer.

The convolutions of D3, a part of the set, were also measured with this tiling.
"""
_WRITTEN = written_values()
CONSTANTS = (
    Constant(
        COMMAND_LATENCY,
        "cycles",
        "latency of a command on the array of 16 x 16; it grows with the rows of the array",
        _WRITTEN[COMMAND_LATENCY],
        16,
        192,
    ),
    Constant(LLC, "cycles", "latency of a request that the LLC serves", _WRITTEN[LLC], 16, 100),
    Constant(DRAM, "cycles", "latency of a request that DRAM serves", _WRITTEN[DRAM], 100, 1600),
    Constant(CALL, "cycles", "time in which the host prepares and issues a call", _WRITTEN[CALL], 100, 500),
    Constant(
        PRODUCT_CALL,
        "cycles",
        "time in which the host prepares and issues a call of a matrix product",
        _WRITTEN[PRODUCT_CALL],
        50,
        400,
    ),
    Constant(STORE, "cycles", "latency of a request that stores outputs", _WRITTEN[STORE], 8, 200),
    Constant(
        CANDIDATE,
        "cycles",
        "time in which the host tries a tile, if the driver searches for the tile",
        _WRITTEN[CANDIDATE],
        50,
        1000,
    ),
)
"""Constants that are fitted, with the values that the hardware file or `gemmini_mapping` has."""


def group_of(layer: Mapping[str, Any]) -> str:
    """Text that identifies the layer of a row."""
    keys = ("B", "K", "C", "OY", "OX", "FY", "FX", "stride_x", "stride_y")
    return " ".join(f"{key}{layer[key]}" for key in keys)


def is_fitted(row: Mapping[str, Any]) -> bool:
    """True if the rule of the set of measurements (`CourtSet.rule`) chooses the row for the fit."""
    text = _drawn_by(row)
    return text is not None and in_hundred(text, SALT) < SHARE


def _drawn_by(row: Mapping[str, Any]) -> str | None:
    return group_of(row["layer"]) if row["array"] == FITTED_ARRAY else None


CAUSES = {CALL_TERM: "calls", COMMAND_TERM: "commands", REQUEST_TERM: "requests"}
"""Part of the machine for which the layer waits, by name of the latency term."""


@dataclass(frozen=True)
class _Prepared:
    row: Mapping[str, Any]
    work: GemminiWork
    calls: tuple[Call, ...]
    is_default: bool = False
    """True if the layer was measured with the driver's default tiling."""
    device: str = DEVICE

    @cached_property
    def is_fitted(self) -> bool:
        """True if constants are fitted to this row. The rule of its set of measurements decides this."""
        return is_fitted(self.row)

    @cached_property
    def drawn_by(self) -> str | None:
        """Text of the layer. From this text, the rule of the set (`CourtSet.rule`) decides whether constants are fitted
        to the row. None if the array is not 16 x 16: constants are fitted only to rows of 16 x 16 arrays.
        """
        return _drawn_by(self.row)

    @cached_property
    def mapping(self) -> MappedLayer:
        """Layer and mapping of the row."""
        return mapping_of(self.work)

    def parts(self, constants: Values) -> dict[str, float]:
        """Terms of the latency in cycles, by name. In the hardware file, `constants` replace the fitted numbers."""
        return self.mapping.parts(gemmini_core(self.work.array, tuple(sorted(constants.items())), self.work.program))

    @cached_property
    def alone(self) -> float:
        """Cycles that the cost model predicts if the hardware file has no keys of calls, commands and requests
        (`without_keys`).
        """
        return self.mapping.alone

    @cached_property
    def least(self) -> tuple[int, int, float, float]:
        """Four times in cycles: (lower bound from the array, lower bound from the bus, roofline time of the array,
        roofline time of the bus).
        """
        (array, bus), (compute, data) = self.bounds, peak_and_bus_cycles(self.work)
        return array, bus, compute, data

    def case(self, constants: Mapping[str, Values]) -> Case:
        """Case of the row, with times in cycles."""
        row, parts = self.row, self.parts(constants[DEVICE])
        array, bus, compute, data = self.least
        return Case(
            identity=row["id"] + (" default" if self.is_default else ""),
            part="D3 default tiling" if self.is_default else self.part,
            group=group_of(row["layer"]),
            measured=float(row["default_cycles" if self.is_default else "measured_cycles"]),
            bound=float(max(array, bus)),
            estimate=float(sum(parts.values())),
            roofline=max(compute, data),
            roofline_terms=(compute, data, float(sum(call.count for call in self.calls))),
            limited_by=_cause(parts),
            fitted=self.is_fitted,
            peer=None if self.is_default else row.get("timeloop_cycles"),
            second=float(array + bus),
            alone=self.alone,
            judged=Judged(
                machine=f"gemmini {row['array']}",
                program=self.program,
                terms=parts,
                alone_terms=self.mapping.alone_parts,
                nanoseconds=1.0,  # a clock of 1 GHz
            ),
        )

    @property
    def program(self) -> str:
        """Program that ran the row: the driver and the kind of its tiles."""
        return "default tiling" if self.is_default else f"{self.row['source']} {self.row['kind']}"

    @property
    def part(self) -> str:
        """Name of the part of the set to which the row belongs."""
        source, kind, array = (self.row[name] for name in ("source", "kind", "array"))
        return f"{source} {kind}" if source == "D3" else f"{source} {kind}, array {array}"

    @property
    def bounds(self) -> tuple[int, int]:
        """Pair of lower bounds for the whole layer, in cycles: (cycles of the array, cycles of the bus)."""
        if self.row["kind"] == "matmul":
            return whole_layer_bounds(self.work)
        array = sum(call.count * call.array_cycles for call in self.calls)
        return array, sum(call.count * call.bus_cycles for call in self.calls)


def _cause(parts: Mapping[str, float]) -> str:
    """Part of the machine that limits a layer. If the layer waits, this is the part for which it waits longest.
    Otherwise, it is `array` if computing takes at least half of the latency, and `bus` if not.
    """
    waiting = {cause: parts[term] for term, cause in CAUSES.items() if parts[term] > 0}
    if waiting:
        return max(waiting, key=lambda cause: waiting[cause])
    busy = parts["ideal"] + parts["spatial_stall"]
    return "array" if busy >= sum(parts.values()) / 2 else "bus"


def prepare(files: Sequence[Path]) -> list[_Prepared]:
    """Rows of `files`, each with its calls, ready for predictions. A convolution that was also measured with the
    driver's default tiling gives a second row. Raises InputError with all mistakes.
    """
    rows = read_rows(files, COLUMNS)
    prepared = []
    for row in rows:
        work = work_of(row)
        prepared.append(_Prepared(row, work, tuple(calls_of(work))))
        if row["kind"] == "conv" and row.get("default_tile") and row.get("default_cycles"):
            own = in_default_tiling(work, row["default_tile"], DEFAULT_ORDER)
            prepared.append(_Prepared(row, own, tuple(calls_of(own)), is_default=True))
    return prepared


GEMMINI = CourtSet(
    name=NAME,
    title="Gemmini, RTL simulation on FPGA: cycles of layers with given mappings",
    unit="cycles",
    source="Hong et al., DOSA, MICRO 2023; github.com/ucb-bar/dosa a7a3239, BSD 2-Clause",
    rule=f"rows of the 16 x 16 array whose layer has a hash (0 to 99, salt {SALT!r}) below {SHARE}",
    constants={DEVICE: CONSTANTS},
    peer="Timeloop",
    second="sum of bounds",
    prepare=prepare,
    published=(
        Published(
            "ONNXim", "0.23 % (mean)", "cycle simulation of its own layers, compared with Gemmini's RTL", "its paper"
        ),
    ),
    patterns=("*.jsonl", "*.jsonl.gz"),
)
