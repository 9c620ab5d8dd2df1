"""Set `tpu-v6e`: matrix products and attention of Llama-3.1-8B on one TPU v6e.

The time of a product is the larger of two times: the time to compute it, and the time to move its data once. For the
former, the number of tokens is rounded up to a multiple of eight. Some rows are named after another operator than the
one that was measured (docs/accuracy.md#measurements-by-others).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from tilewright.base.errors import InputError, Problem

from tilewright_evidence.court.case import DATA, Case, Constant, CourtSet, Published, Values, in_hundred
from tilewright_evidence.court.gpu import LLMCOMPASS
from tilewright_evidence.court.rows import read_rows

NAME = "tpu-v6e"
DEVICE = "tpu_v6e"
SALT, SHARE = f"court|{NAME}", 6
BLOCK = 64
"""Number of consecutive numbers of tokens m in a group. The rows of a group are either all fitted or all not fitted."""
BF16_BYTES = 2
OWN, UP_DOWN, GATE_UP, Q, ON_CHIP, IMPLAUSIBLE = (
    "own",
    "up+down",
    "gate+up",
    "q or q+k+v",
    "weights on chip",
    "implausible",
)
PARTS = {OWN: "products", UP_DOWN: "products", GATE_UP: "products", Q: "q or q+k+v", ON_CHIP: "weights on chip"}
HEADS, KEY_VALUE_HEADS = 32, 8
SCORE_BYTES = 12
"""Bytes moved for one attention score. It is written and read in 32 bits, and once more as a probability in 16 bits."""
MATMUL_COLUMNS: dict[str, type | tuple[type, ...]] = {
    "op": str,
    "m": int,
    "n": int,
    "k": int,
    "contents": str,
    "time_ns": float,
}
ATTENTION_COLUMNS: dict[str, type | tuple[type, ...]] = {
    "phase": str,
    "batch": int,
    "new_tokens": int,
    "cached_tokens": int,
    "p50_ns": float,
    "flops": float,
    "kv_bytes": float,
}
CONSTANTS = (
    Constant("matrix_efficiency", "", "share of the peak that the matrix units reach", 0.853, 0.4, 1.0),
    Constant("memory_efficiency", "", "share of the bandwidth of HBM that is reached", 0.97, 0.5, 1.0),
)


@dataclass(frozen=True)
class Tpu:
    """Published data of the chip."""

    flops_per_s: float
    hbm_bytes_per_s: float
    sublanes: int


@cache
def tpu() -> Tpu:
    """Published data of the chip, read from the hardware file."""
    entry: dict[str, Any] = yaml.safe_load((DATA / "hardware" / "tpu_v6e.yaml").read_text())
    return Tpu(float(entry["flops_per_s"]), float(entry["hbm_bytes_per_s"]), entry["sublanes"])


def is_fitted(row: Mapping[str, Any]) -> bool:
    """True if the rule chooses the row for the fit."""
    text = _drawn_by(row)
    return text is not None and in_hundred(text, SALT) < SHARE


def _drawn_by(row: Mapping[str, Any]) -> str | None:
    return _group(row) if PARTS.get(row.get("contents", "")) == "products" else None


def _group(row: Mapping[str, Any]) -> str:
    return f"{row['op']} {row['m'] // BLOCK}"


@dataclass(frozen=True)
class _Product:
    """Row of the set with a matrix product."""

    row: Mapping[str, Any]
    device: str = DEVICE

    @property
    def is_fitted(self) -> bool:
        """True if the rule chooses this row for the fit."""
        return is_fitted(self.row)

    @property
    def drawn_by(self) -> str | None:
        """Operator and group of tokens as text; None if the row is never fitted."""
        return _drawn_by(self.row)

    def case(self, constants: Mapping[str, Values]) -> Case:
        """Case of the row, with times in ns."""
        row, chip, values = self.row, tpu(), constants[DEVICE]
        m, n, k, contents = row["m"], row["n"], row["k"], row["contents"]
        count = 2 if contents in (UP_DOWN, GATE_UP) else 1
        weights, others = n * k * BF16_BYTES, (m * k + m * n) * BF16_BYTES
        moved = count * ((0 if contents == ON_CHIP else weights) + others)
        computing = count * 2e9 * m * n * k / chip.flops_per_s
        moving, all_moving = (1e9 * amount / chip.hbm_bytes_per_s for amount in (moved, count * (weights + others)))
        padded = -(-m // chip.sublanes) * chip.sublanes / m
        busy = computing * padded / values["matrix_efficiency"], moving / values["memory_efficiency"]
        # Inputs and outputs may be on the chip already; weights of a row that is not marked have to come from HBM.
        least = 0.0 if contents == ON_CHIP else 1e9 * count * weights / chip.hbm_bytes_per_s
        return Case(
            identity=f"{row['op']} {m}",
            part=PARTS.get(contents, contents),
            group=_group(row),
            measured=row["time_ns"],
            bound=max(computing, least),
            estimate=max(busy),
            roofline=max(computing, all_moving),
            limited_by="matrix units" if busy[0] > busy[1] else "HBM",
            fitted=self.is_fitted,
            explained="the time is shorter than reading the weights takes" if contents == IMPLAUSIBLE else "",
        )


@dataclass(frozen=True)
class _Attention:
    """Row of the set with attention.

    The measured software does not fuse operators: it expands keys and values to all heads, and writes scores to memory.
    """

    row: Mapping[str, Any]
    is_fitted: bool = False
    drawn_by: None = None
    device: str = DEVICE

    def case(self, constants: Mapping[str, Values]) -> Case:
        """Case of the row, with times in ns."""
        row, chip, values = self.row, tpu(), constants[DEVICE]
        computing = 1e9 * row["flops"] / chip.flops_per_s
        moving = 1e9 * row["kv_bytes"] / chip.hbm_bytes_per_s
        scores = HEADS * row["batch"] * row["new_tokens"] * (row["new_tokens"] + row["cached_tokens"])
        data = HEADS / KEY_VALUE_HEADS * row["kv_bytes"] + SCORE_BYTES * scores
        busy = computing / values["matrix_efficiency"], 1e9 * data / chip.hbm_bytes_per_s / values["memory_efficiency"]
        return Case(
            identity=f"{row['phase']} {row['batch']} x {row['new_tokens']} + {row['cached_tokens']}",
            part=f"attention, {row['phase']}",
            group=f"{row['phase']} {row['batch']}",
            measured=row["p50_ns"],
            bound=max(computing, moving),
            estimate=max(busy),
            roofline=max(computing, moving),
            limited_by="matrix units" if busy[0] > busy[1] else "HBM",
            fitted=False,
        )


def prepare(files: Sequence[Path]) -> list[_Product | _Attention]:
    """Rows of products and attention, ready for predictions. Raises InputError with all mistakes."""
    attention = [file for file in files if file.name.startswith("attention")]
    products = read_rows([file for file in files if file not in attention], MATMUL_COLUMNS)
    unknown = sorted({row["contents"] for row in products} - {*PARTS, IMPLAUSIBLE})
    if unknown:
        known = ", ".join((*PARTS, IMPLAUSIBLE))
        raise InputError([Problem("is unknown", path="contents", value=repr(one), allowed=known) for one in unknown])
    found = read_rows(attention, ATTENTION_COLUMNS)
    return [*map(_Product, products), *map(_Attention, found)]


TPU = CourtSet(
    name=NAME,
    title="TPU v6e: operators of Llama-3.1-8B",
    unit="ns",
    source="KAIST CASYS, LLMServingSim 2.0, arXiv 2602.23036; github.com/casys-kaist/LLMServingSim 5daddb2, MIT",
    rule=f"products whose operator and block of {BLOCK} tokens, hashed with the salt {SALT!r}, are below {SHARE} of "
    "100; 6 is the smallest number with which there are blocks of few tokens too",
    constants={DEVICE: CONSTANTS},
    peer="",
    second="",
    prepare=prepare,
    published=(
        LLMCOMPASS,
        Published(
            "SCALE-Sim 3",
            "less than 3 % (median)",
            "operators of a TPU v4 that are not systolic; of its products it reports a strong linear correlation",
            "arXiv 2603.22535",
        ),
        Published(
            "LLMServingSim 2.0",
            "0.95 to 0.97 % on average",
            "serving, end to end, from tables of measured operators such as these",
            "arXiv 2602.23036",
        ),
    ),
    patterns=("matmul_*.csv", "matmul_*.csv.gz", "attention_*.csv", "attention_*.csv.gz"),
)
