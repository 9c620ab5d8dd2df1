"""Set of measurements `tpu-v6e`: matrix products and attention of Llama-3.1-8B on one TPU v6e.

The estimate of a product is the result of the command `evaluate` for its mapping (`tpu_mapping`) and the hardware file
of the chip. Some rows have the name of one operator, but measure other operators or several operators
(docs/accuracy/measurements.md). The estimate of attention is the larger of two times: the time to compute and
the time to move the data. This estimate does not use the cost model, because two of the four steps of attention are not
matrix products.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from math import prod
from pathlib import Path
from typing import Any

from tilewright.base.errors import InputError, Problem
from tilewright.base.units import parse_bits_per_second, parse_size_bits
from tilewright.cost.waiting import COMMAND as COMMAND_TERM

from tilewright_evidence.court.case import Case, Constant, CourtSet, Judged, Published, Values, in_hundred
from tilewright_evidence.court.gpu import LLMCOMPASS
from tilewright_evidence.court.mapped_layer import MappedLayer
from tilewright_evidence.court.rows import read_rows
from tilewright_evidence.court.tpu_mapping import (
    COMMAND_LATENCY,
    REQUEST_LATENCY,
    clock_mhz,
    mapping_of,
    tpu_core,
    written_document,
    written_values,
)

NAME = "tpu-v6e"
DEVICE = "tpu_v6e"
SALT, SHARE = f"court|{NAME}", 6
BLOCK = 64
"""Number of consecutive token counts (m) in a block. Rows of one operator form a group if their token counts lie in the
same block. The rule for the fit (`CourtSet.rule`) chooses all rows of a group that can be fitted, or none.
"""
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
CERTAIN = ("products", "weights on chip")
"""Parts of the set in which the name of a row determines the measured products."""
HEADS, KEY_VALUE_HEADS = 32, 8
SCORE_BYTES = 12
"""Number of bytes that are moved for one attention score. The score is written and read in 32 bits. The probability
computed from it is written and read in 16 bits.
"""
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
_WRITTEN = written_values()
CONSTANTS = (
    Constant(
        COMMAND_LATENCY, "cycles", "cycles between two commands of eight tokens", _WRITTEN[COMMAND_LATENCY], 0.1, 8
    ),
    Constant(
        REQUEST_LATENCY,
        "cycles",
        "latency of a request to HBM, if 1,024 requests of 512 bytes are in flight",
        _WRITTEN[REQUEST_LATENCY],
        1121,
        2242,
    ),
)
"""Constants that are fitted: numbers of the hardware file, with the values that this file has."""


@dataclass(frozen=True)
class Tpu:
    """Published data of the chip."""

    flops_per_s: float
    hbm_bytes_per_s: float
    burst_bytes_in_flight: int
    """Bytes of all requests to HBM that are in flight."""
    tokens_of_command: int

    def matrix_share(self, constants: Values) -> float:
        """Share of the peak performance that the matrix units reach. It is below 1, because the units wait after each
        command. A command takes one cycle for each of its `tokens_of_command` tokens; the wait takes COMMAND_LATENCY
        cycles.
        """
        return self.tokens_of_command / (self.tokens_of_command + constants[COMMAND_LATENCY])

    def memory_share(self, constants: Values) -> float:
        """Share of the HBM bandwidth that the requests in flight reach."""
        reached = self.burst_bytes_in_flight / constants[REQUEST_LATENCY] * clock_mhz() * 1e6
        return min(1.0, reached / self.hbm_bytes_per_s)


@cache
def tpu() -> Tpu:
    """Published data of the chip, read from the hardware file."""
    document = written_document()
    array, hbm = document["operational_array"], document["memories"]["hbm"]
    (port,) = hbm["ports"]
    return Tpu(
        2e6 * prod(array["sizes"]) * clock_mhz(),
        float(parse_bits_per_second(port["bandwidth_max"])) / 8,
        parse_size_bits(hbm["burst"]) // 8 * hbm["requests_in_flight"],
        array["command_iterations"],
    )


def is_fitted(row: Mapping[str, Any]) -> bool:
    """True if the rule of the set of measurements (`CourtSet.rule`) chooses the row for the fit."""
    text = _drawn_by(row)
    return text is not None and in_hundred(text, SALT) < SHARE


def _drawn_by(row: Mapping[str, Any]) -> str | None:
    return _group(row) if PARTS.get(row.get("contents", "")) == "products" else None


def _group(row: Mapping[str, Any]) -> str:
    return f"{row['op']} {row['m'] // BLOCK}"


@dataclass(frozen=True)
class TpuProduct:
    """Row with the measured time of a matrix product, or of two fused products."""

    row: Mapping[str, Any]
    device: str = DEVICE

    @cached_property
    def is_fitted(self) -> bool:
        """True if constants are fitted to this row. The rule of the set of measurements (`CourtSet.rule`) decides
        this.
        """
        return is_fitted(self.row)

    @cached_property
    def drawn_by(self) -> str | None:
        """Group of the row, as text: the operator, and the index of the block of token counts (see BLOCK). None if
        constants are never fitted to this row.
        """
        return _drawn_by(self.row)

    @cached_property
    def mappings(self) -> tuple[MappedLayer, ...]:
        """Mappings of the products that the row contains: one or two."""
        m, n, k, contents = (self.row[name] for name in ("m", "n", "k", "contents"))
        first = mapping_of(m, n, k, weights_on_chip=contents == ON_CHIP)
        # The two products of gate+up have the same sizes. Outputs and inputs of up are those of down, swapped.
        second = {GATE_UP: (m, n, k), UP_DOWN: (m, k, n)}.get(contents)
        return (first,) if second is None else (first, mapping_of(*second))

    @cached_property
    def alone(self) -> float:
        """Time in ns that the cost model predicts if the hardware file has no keys of commands and requests."""
        return _in_ns(sum(mapping.alone for mapping in self.mappings))

    def parts(self, constants: Values) -> dict[str, float]:
        """Terms of the latency in cycles, by name, summed over the mappings. In the hardware file, `constants` replace
        the fitted numbers.
        """
        on_chip = self.row["contents"] == ON_CHIP
        core = tpu_core(tuple(sorted(constants.items())), weights_on_chip=on_chip)
        return _added(mapping.parts(core) for mapping in self.mappings)

    def case(self, constants: Mapping[str, Values]) -> Case:
        """Measurement of the row and our predictions for it; times are in ns."""
        row, chip, parts = self.row, tpu(), self.parts(constants[DEVICE])
        m, n, k, contents = row["m"], row["n"], row["k"], row["contents"]
        count = len(self.mappings)
        weights, others = n * k * BF16_BYTES, (m * k + m * n) * BF16_BYTES
        computing = count * 2e9 * m * n * k / chip.flops_per_s
        all_moving = 1e9 * count * (weights + others) / chip.hbm_bytes_per_s
        # Inputs and outputs may be on the chip already; weights of a row that is not marked have to come from HBM.
        least = 0.0 if contents == ON_CHIP else 1e9 * count * weights / chip.hbm_bytes_per_s
        return Case(
            identity=f"{row['op']} {row['m']}",
            part=PARTS.get(contents, contents),
            group=_group(row),
            measured=row["time_ns"],
            bound=max(computing, least),
            estimate=_in_ns(sum(parts.values())),
            roofline=max(computing, all_moving),
            roofline_terms=(computing, all_moving, 1.0),
            limited_by=_cause(parts),
            fitted=self.is_fitted,
            explained="the time is too short to read the weights" if contents == IMPLAUSIBLE else "",
            alone=self.alone,
            judged=self._judged(parts),
        )

    def _judged(self, parts: Mapping[str, float]) -> Judged | None:
        """Prediction of the cost model; None if the name of the row does not determine the measured products."""
        program = PARTS.get(self.row["contents"], "")
        if program not in CERTAIN:
            return None
        return Judged(DEVICE, program, parts, _added(mapping.alone_parts for mapping in self.mappings), 1.0)


def _added(parts: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """Sums of the terms with the same name."""
    found: dict[str, float] = {}
    for one in parts:
        for name, cycles in one.items():
            found[name] = found.get(name, 0.0) + cycles
    return found


def _in_ns(cycles: float) -> float:
    """Time of `cycles` clock cycles of the chip, in ns."""
    return 1e3 * cycles / clock_mhz()


def _cause(parts: Mapping[str, float]) -> str:
    """Part of the machine that limits a product: `matrix units` if computing and waiting for commands together take at
    least half of the latency, otherwise `HBM`.
    """
    busy = parts["ideal"] + parts["spatial_stall"] + parts[COMMAND_TERM]
    return "matrix units" if busy >= sum(parts.values()) / 2 else "HBM"


@dataclass(frozen=True)
class AttentionWork:
    """Work of an attention operator on the TPU.

    The measured software does not fuse operators: it expands keys and values to all heads, and writes scores to memory.
    """

    heads: int
    key_value_heads: int
    flops: float
    """Operations of both matrix products, for the pairs of tokens that the causal mask leaves."""
    kv_bytes: float
    """Bytes of keys and values, each moved once."""
    scores: float
    """Number of attention scores, including scores that the mask removes."""

    @property
    def least(self) -> tuple[float, float]:
        """Pair (time to compute at the peak, time to move keys and values once), in ns."""
        return 1e9 * self.flops / tpu().flops_per_s, 1e9 * self.kv_bytes / tpu().hbm_bytes_per_s

    def busy(self, constants: Values) -> tuple[float, float]:
        """Pair (time of the matrix units, time of HBM) in ns; the longer one is the estimate."""
        chip = tpu()
        data = self.heads / self.key_value_heads * self.kv_bytes + SCORE_BYTES * self.scores
        moving = 1e9 * data / chip.hbm_bytes_per_s / chip.memory_share(constants)
        return self.least[0] / chip.matrix_share(constants), moving


@dataclass(frozen=True)
class _Attention:
    """Row with the measured time of an attention operator."""

    row: Mapping[str, Any]
    is_fitted: bool = False
    drawn_by: None = None
    device: str = DEVICE

    def case(self, constants: Mapping[str, Values]) -> Case:
        """Measurement of the row and our predictions for it; times are in ns."""
        row = self.row
        scores = HEADS * row["batch"] * row["new_tokens"] * (row["new_tokens"] + row["cached_tokens"])
        work = AttentionWork(HEADS, KEY_VALUE_HEADS, row["flops"], row["kv_bytes"], scores)
        busy = work.busy(constants[DEVICE])
        return Case(
            identity=f"{row['phase']} {row['batch']} x {row['new_tokens']} + {row['cached_tokens']}",
            part=f"attention, {row['phase']}",
            group=f"{row['phase']} {row['batch']}",
            measured=row["p50_ns"],
            bound=max(work.least),
            estimate=max(busy),
            roofline=max(work.least),
            roofline_terms=(*work.least, 1.0),
            limited_by="matrix units" if busy[0] > busy[1] else "HBM",
            fitted=False,
        )


def prepare(files: Sequence[Path]) -> list[TpuProduct | _Attention]:
    """Rows of products and attention, ready for predictions. Raises InputError if there are mistakes in the files."""
    attention = [file for file in files if file.name.startswith("attention")]
    products = read_rows([file for file in files if file not in attention], MATMUL_COLUMNS)
    unknown = sorted({row["contents"] for row in products} - {*PARTS, IMPLAUSIBLE})
    if unknown:
        known = ", ".join((*PARTS, IMPLAUSIBLE))
        raise InputError([Problem("is unknown", path="contents", value=repr(one), allowed=known) for one in unknown])
    found = read_rows(attention, ATTENTION_COLUMNS)
    return [*map(TpuProduct, products), *map(_Attention, found)]


TPU = CourtSet(
    name=NAME,
    title="TPU v6e: operators of Llama-3.1-8B",
    unit="ns",
    source="KAIST CASYS, LLMServingSim 2.0, arXiv 2602.23036; github.com/casys-kaist/LLMServingSim 5daddb2, MIT",
    rule=f"products whose operator and block of {BLOCK} tokens have a hash (0 to 99, salt {SALT!r}) below {SHARE}; "
    "6 is the smallest limit with which some fitted blocks have few tokens",
    constants={DEVICE: CONSTANTS},
    prepare=prepare,
    published=(
        LLMCOMPASS,
        Published(
            "SCALE-Sim 3",
            "less than 3 % (median)",
            "operators of a TPU v4 that do not use the systolic array; for products, it reports only a strong"
            " linear correlation",
            "arXiv 2603.22535",
        ),
        Published(
            "LLMServingSim 2.0",
            "0.95 to 0.97 % on average",
            "end-to-end latency of serving a model, estimated from tables of measured operators such as these",
            "arXiv 2602.23036",
        ),
    ),
    patterns=("matmul_*.csv", "matmul_*.csv.gz", "attention_*.csv", "attention_*.csv.gz"),
)
