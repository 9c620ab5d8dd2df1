"""The set `timeloop-points`: mappings on Gemmini-like architectures as Timeloop and Accelergy cost them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tilewright.comparison.court.case import Case, CourtSet, Values
from tilewright.comparison.court.rows import read_rows
from tilewright.comparison.court.timeloop_reading import (
    DIMENSIONS,
    WEIGHTS,
    Architecture,
    Counts,
    counts_of,
    cycles,
    energies_pj,
    rates,
)
from tilewright.errors import InputError, Problem

NAME = "timeloop-points"
ARCHITECTURES = "architectures.csv"
COLUMNS: dict[str, type | tuple[type, ...]] = {
    "id": str,
    "arch": str,
    "layer": dict,
    "mapping": list,
    "cycles": int,
    "energy_pj": float,
    **{f"layer.{name}": int for name in (*DIMENSIONS, "stride_x", "stride_y")},
}
ARCHITECTURE_COLUMNS: dict[str, type | tuple[type, ...]] = {
    "arch": str,
    "array_columns": int,
    "accumulator_words_per_instance": int,
    "accumulator_word_bits": int,
    "scratchpad_words": int,
    "scratchpad_word_bits": int,
    "accumulator_bandwidth_words_per_cycle_per_instance": float,
    "scratchpad_bandwidth_words_per_cycle": float,
    "dram_bandwidth_words_per_cycle": float,
    "dram_block_words": int,
    "mac_pj": float,
    "dram_pj_per_word": float,
}


@dataclass(frozen=True)
class _Prepared:
    """One figure of a row: its cycles or its energy."""

    row: Mapping[str, Any]
    counts: Counts
    architecture: Architecture
    is_energy: bool
    is_fitted: bool = False
    drawn_by: None = None
    device: str = ""

    def case(self, constants: Mapping[str, Values]) -> Case:
        """What we say of it."""
        return self._energy() if self.is_energy else self._cycles()

    def _cycles(self) -> Case:
        one, chip = self.counts, self.architecture
        used = {"array": 1.0} | {name: rate / limit for name, rate, limit in rates(one, chip)}
        data = self._least_words() / chip.dram_words_per_cycle
        found = cycles(one, chip)
        return Case(
            identity=self.row["id"],
            part="cycles",
            group=self.row["arch"],
            measured=float(self.row["cycles"]),
            bound=max(one.macs / (one.columns * one.rows), data),
            estimate=float(found),
            roofline=max(one.macs / chip.side**2, data),
            limited_by=max(used, key=lambda name: used[name]),
            fitted=False,
            equal=found == self.row["cycles"],
        )

    def _energy(self) -> Case:
        parts, told = energies_pj(self.counts, self.architecture), self.row["energy_pj"]
        found = sum(parts.values())
        chip = self.architecture
        least = self.counts.macs * chip.mac_pj + self._least_words() * chip.dram_pj_per_word
        return Case(
            identity=self.row["id"],
            part="energy",
            group=self.row["arch"],
            measured=told,
            bound=least,
            estimate=found,
            roofline=least,
            limited_by=max(parts, key=lambda name: parts[name]),
            fitted=False,
            equal=abs(found - told) <= last_digit(told) / 2,
        )

    def _least_words(self) -> int:
        """Words of DRAM that no mapping saves: weights and outputs once, and one input for each."""
        layer = self.row["layer"]
        weights = 1
        for name in WEIGHTS:
            weights *= layer[name]
        return weights + self.counts.outputs


def last_digit(value: float) -> float:
    """What the last digit of a figure in pJ stands for that was printed in uJ with six digits: 1 pJ or more."""
    digits, unit = round(value), 1.0
    while digits and digits % 10 == 0:
        digits, unit = digits // 10, unit * 10
    return unit * (1 + 1e-6)


def prepare(files: Sequence[Path]) -> list[_Prepared]:
    """The rows, two figures of each. Raises InputError with everything that is wrong."""
    architectures = {}
    for folder in sorted({file.parent for file in files}):
        for row in read_rows([folder / ARCHITECTURES], ARCHITECTURE_COLUMNS):
            architectures[row["arch"]] = _architecture(row)
    rows = read_rows(files, COLUMNS)
    unknown = sorted({row["arch"] for row in rows} - set(architectures))
    if unknown:
        raise InputError([Problem("no such architecture", ARCHITECTURES, path="arch", value=name) for name in unknown])
    prepared = []
    for row in rows:
        counts, chip = counts_of(row["layer"], row["mapping"]), architectures[row["arch"]]
        prepared += [_Prepared(row, counts, chip, is_energy) for is_energy in (False, True)]
    return prepared


def _architecture(row: Mapping[str, Any]) -> Architecture:
    return Architecture(
        side=row["array_columns"],
        accumulator_bytes=row["accumulator_words_per_instance"] * row["accumulator_word_bits"] // 8,
        scratchpad_bytes=row["scratchpad_words"] * row["scratchpad_word_bits"] // 8,
        accumulator_words_per_cycle=row["accumulator_bandwidth_words_per_cycle_per_instance"],
        scratchpad_words_per_cycle=row["scratchpad_bandwidth_words_per_cycle"],
        dram_words_per_cycle=row["dram_bandwidth_words_per_cycle"],
        dram_block_words=row["dram_block_words"],
        mac_pj=row["mac_pj"],
        dram_pj_per_word=row["dram_pj_per_word"],
    )


TIMELOOP = CourtSet(
    name=NAME,
    title="Timeloop and Accelergy: mappings on Gemmini-like architectures",
    unit="cycles, pJ",
    source="Hong et al., DOSA, MICRO 2023; github.com/ucb-bar/dosa a7a3239, BSD 2-Clause",
    rule="nothing is fitted",
    constants={},
    peer="",
    second="",
    prepare=prepare,
    patterns=("*.jsonl", "*.jsonl.gz"),
)
