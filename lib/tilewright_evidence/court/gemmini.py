"""Set `gemmini-rtl`: cycles of Gemmini's RTL for given mappings, predicted by the cost model and a machine model.

A call takes as long as the slowest of four parts: array, commands, loads and host. Only the first load does not overlap
with other work.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tilewright_evidence.court.case import Case, Constant, CourtSet, Published, Values, in_hundred
from tilewright_evidence.court.gemmini_reading import (
    DIMENSIONS,
    Call,
    GemminiWork,
    calls_of,
    peak_and_bus_cycles,
    tile_within,
    whole_layer_bounds,
    work_of,
)
from tilewright_evidence.court.rows import read_rows

NAME, DEVICE = "gemmini-rtl", "gemmini"
SALT, SHARE = f"court-8|{NAME}", 9
FITTED_ARRAY = 16
IN_FLIGHT = 8
"""Number of commands in flight. A command is a pair of preload and compute; the reservation station has 16 entries for
them.
"""
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
"""Loops over DRAM in the driver's default tiling, inner to outer. Each layer of D3 was also measured with this tiling.
"""
CONSTANTS = (
    Constant(
        "command_latency",
        "cycles / row",
        "time that a command waits per row of the array, in addition to its own cycles",
        4.14,
        1,
        12,
    ),
    Constant("llc_line", "cycles", "time for a line of 64 bytes that is not in the L2 but in the LLC", 7.1, 1, 40),
    Constant("dram_line", "cycles", "time for a line of 64 bytes from DRAM", 19.7, 4, 100),
    Constant("call", "cycles", "time in which the host prepares and issues a call", 352.0, 50, 1000),
)


def group_of(layer: Mapping[str, Any]) -> str:
    """Text that identifies the layer of a row."""
    keys = ("B", "K", "C", "OY", "OX", "FY", "FX", "stride_x", "stride_y")
    return " ".join(f"{key}{layer[key]}" for key in keys)


def is_fitted(row: Mapping[str, Any]) -> bool:
    """True if the rule chooses the row for the fit."""
    text = _drawn_by(row)
    return text is not None and in_hundred(text, SALT) < SHARE


def _drawn_by(row: Mapping[str, Any]) -> str | None:
    right = row["kind"] == "conv" and row["array"] == FITTED_ARRAY
    return group_of(row["layer"]) if right else None


def call_cycles(call: Call, array: int, constants: Values) -> dict[str, float]:
    """Cycles of a call in each part of the machine, by name of the part."""
    waiting = (call.commands * array * constants["command_latency"] + call.command_rows) / IN_FLIGHT
    lines = call.llc_lines * constants["llc_line"] + call.dram_lines * constants["dram_line"]
    memory = "DRAM" if call.dram_lines * constants["dram_line"] > lines / 2 else "LLC"
    return {
        "array": call.array_cycles,
        "commands": waiting,
        "bus": call.beats,
        memory: lines,
        "host": constants["call"],
    }


@dataclass(frozen=True)
class _Prepared:
    row: Mapping[str, Any]
    work: GemminiWork
    calls: tuple[Call, ...]
    is_default: bool = False
    """True if the layer was measured with the driver's default tiling. Constants are never fitted to such rows."""
    device: str = DEVICE

    @property
    def is_fitted(self) -> bool:
        """True if the rule chooses this row for the fit."""
        return not self.is_default and is_fitted(self.row)

    @property
    def drawn_by(self) -> str | None:
        """Text of the layer.

        None if the row is never fitted: it has the default tiling or another array, or is not a convolution.
        """
        return None if self.is_default else _drawn_by(self.row)

    def case(self, constants: Mapping[str, Values]) -> Case:
        """Case of the row, with times in cycles."""
        row, total, values = self.row, 0.0, constants[DEVICE]
        by_cause: dict[str, float] = {}
        for call in self.calls:
            needs = call_cycles(call, self.work.array, values)
            cause = max(needs, key=lambda name: needs[name])
            by_cause[cause] = by_cause.get(cause, 0.0) + call.count * needs[cause]
            total += call.count * needs[cause]
        first = call_cycles(self.calls[0], self.work.array, values)
        total += max(first["bus"], first.get("LLC", 0.0), first.get("DRAM", 0.0))
        array, bus = self.bounds
        compute, data = peak_and_bus_cycles(self.work)
        return Case(
            identity=row["id"] + (" default" if self.is_default else ""),
            part="D3 default tiling" if self.is_default else self.part,
            group=group_of(row["layer"]),
            measured=float(row["default_cycles" if self.is_default else "measured_cycles"]),
            bound=float(max(array, bus)),
            estimate=total,
            roofline=max(compute, data),
            limited_by=max(by_cause, key=lambda name: by_cause[name]),
            fitted=self.is_fitted,
            peer=None if self.is_default else row.get("timeloop_cycles"),
            second=float(array + bus),
        )

    @property
    def part(self) -> str:
        """Name of the part of the set that contains the row."""
        source, kind, array = (self.row[name] for name in ("source", "kind", "array"))
        return f"{source} {kind}" if source == "D3" else f"{source} {kind}, array {array}"

    @property
    def bounds(self) -> tuple[int, int]:
        """Pair (least cycles of the array, least cycles of the bus)."""
        if self.row["kind"] == "matmul":
            return whole_layer_bounds(self.work)
        array, bus = (sum(call.count * call.bound_cycles[place] for call in self.calls) for place in (0, 1))
        return array, bus


def prepare(files: Sequence[Path]) -> list[_Prepared]:
    """Rows with their calls, ready for predictions. Raises InputError with all mistakes."""
    rows = read_rows(files, COLUMNS)
    prepared = []
    for row in rows:
        work = work_of(row)
        prepared.append(_Prepared(row, work, tuple(calls_of(work))))
        if row["kind"] == "conv" and row.get("default_tile") and row.get("default_cycles"):
            own = replace(work, tile=tile_within(row["default_tile"], work.size), order=DEFAULT_ORDER)
            prepared.append(_Prepared(row, own, tuple(calls_of(own)), is_default=True))
    return prepared


GEMMINI = CourtSet(
    name=NAME,
    title="Gemmini, RTL simulation on FPGA: cycles of layers with given mappings",
    unit="cycles",
    source="Hong et al., DOSA, MICRO 2023; github.com/ucb-bar/dosa a7a3239, BSD 2-Clause",
    rule=f"convolutions on the 16 x 16 array whose layer, hashed with the salt {SALT!r}, is below {SHARE} of 100",
    constants={DEVICE: CONSTANTS},
    peer="Timeloop",
    second="sum of bounds",
    prepare=prepare,
    published=(
        Published("ONNXim", "0.23 % (mean)", "its own layers beside Gemmini's RTL, by simulating cycles", "its paper"),
    ),
    patterns=("*.jsonl", "*.jsonl.gz"),
)
