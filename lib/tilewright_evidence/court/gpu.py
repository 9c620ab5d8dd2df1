"""Set of measurements `gpu-gemm`: matrix products on A100 and H100 in three serving frameworks.

The estimate models a product as waves of tiles.

A matrix product is out[m, n] = x[m, k] w[k, n]. A library cuts the output into tiles. Each thread block computes one
tile, and a multiprocessor runs one thread block at a time. If there are few tiles, the library also splits the sum over
k, and a second kernel adds the partial sums at the end. The tile sizes that the library chooses are not published. The
model therefore tries the tile sizes of NVIDIA's CUTLASS, and takes the shortest time.
"""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from tilewright.base.errors import InputError, Problem

from tilewright_evidence.court.case import DATA, Case, Constant, CourtSet, Published, Values, in_hundred
from tilewright_evidence.court.rows import read_rows

TILES = tuple((m, n) for m in (16, 32, 64, 128, 256) for n in (32, 64, 128, 256) if m * n <= 256 * 128)
STEP = 64
"""Number of elements of k that a thread block processes in one step."""
SPLITS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)
"""Numbers of parts into which the sum over k can be split; 1 means that the sum is not split."""
LEAST_STEPS = 4
"""Least number of steps in each part, if the sum over k is split into parts."""
SUM_BYTES = 4
BF16_BYTES = 2
WEIGHT_BYTES = {"bf16": 2, "fp8": 1}
LARGEST_PART = 0.5
OVERLAP = 3
"""Exponent p by which the times t of parts of the machine are combined: the time of all parts is (sum of t^p)^(1/p).
With an infinite exponent, the longest time would hide all others.
"""
QUANTISED_BYTES = 5
"""Bytes that move for each quantised input: a first pass reads two bytes to find the scale. A second pass reads two
bytes again, and writes one.
"""


@dataclass(frozen=True)
class Gpu:
    """Published data of a GPU."""

    multiprocessors: int
    flops_per_s: Mapping[str, float]
    dram_bytes_per_s: float
    l2_bytes: int
    l2_bytes_per_s: float
    blocks_that_share_loads: int


@cache
def gpus() -> dict[str, Gpu]:
    """Published data of the GPUs in the hardware file `gpus.yaml`, by name of the GPU."""
    document: dict[str, dict[str, Any]] = yaml.safe_load((DATA / "hardware" / "gpus.yaml").read_text())
    return {
        name: Gpu(
            multiprocessors=entry["multiprocessors"],
            flops_per_s={kind: float(rate) for kind, rate in entry["flops_per_s"].items()},
            dram_bytes_per_s=float(entry["dram_bytes_per_s"]),
            l2_bytes=entry["l2_bytes"],
            l2_bytes_per_s=entry["l2_bytes_per_clock"] * float(entry["clock_hz"]),
            blocks_that_share_loads=entry["blocks_that_share_loads"],
        )
        for name, entry in document.items()
    }


@dataclass(frozen=True)
class Product:
    """Matrix product with the numbers that determine its time.

    Its arrays have the shape (choices,). A choice is a combination of a tile size and a number of parts into which the
    sum over k is split.
    """

    gpu: Gpu
    flops: float
    peak: float
    """Peak performance of the GPU for the data type of the product, in FLOP/s."""
    data_bytes: float
    """Bytes of weights, inputs and outputs, each moved once."""
    quantised_bytes: float
    """Bytes that the quantisation of the inputs reads and writes; 0 if the inputs are not quantised."""
    tile_flops: np.ndarray
    """Number of floating-point operations in the thread blocks that one multiprocessor runs one after the other, as an
    array of shape (choices,).
    """
    steps: np.ndarray
    """Number of steps over k in the thread blocks that one multiprocessor runs one after the other, as an array of
    shape (choices,).
    """
    l2_bytes: np.ndarray
    """Bytes that all thread blocks together load from L2, as an array of shape (choices,). Loads that several thread
    blocks share count once.
    """
    sum_bytes: np.ndarray
    """Bytes of partial sums, written and read together, as an array of shape (choices,); 0 for a choice that does not
    split the sum over k. If a choice splits the sum, a further kernel is launched, which adds the partial sums.
    """

    @cached_property
    def roofline_terms(self) -> tuple[float, float, float]:
        """Triple (time to compute at the peak in us, time to move all bytes once in us, number of calls)."""
        return 1e6 * self.flops / self.peak, 1e6 * self.data_bytes / self.gpu.dram_bytes_per_s, 1.0

    @cached_property
    def bound(self) -> float:
        """Lower bound of the time, in us. Bytes that the L2 can hold from the last repetition do not count."""
        kept = max(0.0, self.data_bytes - self.gpu.l2_bytes)
        return max(self.roofline_terms[0], 1e6 * kept / self.gpu.dram_bytes_per_s)

    def seconds(self, constants: Values) -> tuple[float, str]:
        """Pair (time of the product in seconds, name of the part of the machine that limits it). The time is that of
        the fastest combination of tile size and number of parts.

        The name is `launch` if the launches of kernels and the quantisation of the inputs together take more than the
        share LARGEST_PART of the time. Otherwise, it is the part that takes longest: `tensor cores`, `steps`, `L2` or
        `DRAM`.
        """
        gpu, efficiency = self.gpu, constants["memory_efficiency"]
        tensor = self.tile_flops / (self.peak / gpu.multiprocessors * constants["tensor_efficiency"])
        waiting = self.steps * constants["step_us"] * 1e-6
        l2 = self.l2_bytes / (gpu.l2_bytes_per_s * efficiency)
        moved = self.data_bytes - self.quantised_bytes / QUANTISED_BYTES
        dram = np.full_like(l2, moved / (gpu.dram_bytes_per_s * efficiency))
        parts = {"tensor cores": tensor, "steps": waiting, "L2": l2, "DRAM": dram}
        launch = constants["launch_us"] * 1e-6
        summed = self.sum_bytes / (gpu.l2_bytes_per_s * efficiency) + np.where(self.sum_bytes > 0, launch, 0.0)
        times = added_up(list(parts.values())) + summed
        best = int(np.argmin(times))
        launches = launch * (2 if self.quantised_bytes else 1)
        quantising = self.quantised_bytes / (gpu.dram_bytes_per_s * efficiency)
        total = float(times[best]) + launches + quantising
        cause = max(parts, key=lambda name: float(parts[name][best]))
        return total, "launch" if launches + quantising > LARGEST_PART * total else cause


def added_up(times: Sequence[np.ndarray]) -> np.ndarray:
    """Time of parts of the machine that work at the same time (see OVERLAP). It is at least the longest of `times`."""
    longest = np.maximum.reduce(list(times))
    scale = np.where(longest > 0, longest, 1.0)
    shares: np.ndarray = sum(((one / scale) ** OVERLAP for one in times), np.zeros_like(longest))
    return np.asarray(longest * shares ** (1 / OVERLAP))


def product(gpu: Gpu, kind: str, m: int, n: int, k: int) -> Product:
    """Product of an m x k matrix and a k x n matrix.

    `kind` is `fp8` or `bf16`. For `fp8`, the inputs are first quantised from bf16, and the sum over k is never split,
    because CUTLASS has no split kernel for scaled products. The rates of bf16 are also those of fp16.
    """
    tile_m, tile_n, split = (np.array(one, dtype=float) for one in zip(*_choices(k, kind), strict=True))
    element = WEIGHT_BYTES[kind]
    of_k = np.ceil(k / split / STEP) * STEP
    blocks = np.ceil(m / tile_m) * np.ceil(n / tile_n) * split
    waves = np.ceil(blocks / gpu.multiprocessors)
    quantised = 0.0 if kind == "bf16" else float(QUANTISED_BYTES) * m * k
    return Product(
        gpu=gpu,
        flops=2.0 * m * n * k,
        peak=gpu.flops_per_s[kind],
        data_bytes=float(n * k * element + (m * k + m * n) * BF16_BYTES),
        quantised_bytes=quantised,
        tile_flops=waves * 2 * tile_m * tile_n * of_k,
        steps=waves * of_k / STEP,
        l2_bytes=blocks * (tile_m + tile_n) * of_k * element / gpu.blocks_that_share_loads,
        sum_bytes=np.where(split > 1, 2.0 * m * n * SUM_BYTES * split, 0.0),
    )


def _choices(k: int, kind: str) -> list[tuple[int, int, int]]:
    splits = [split for split in SPLITS if split == 1 or (kind == "bf16" and k >= split * STEP * LEAST_STEPS)]
    return [(m, n, split) for m, n in TILES for split in splits]


NAME = "gpu-gemm"
SALT, SHARE = f"court|{NAME}", 6
FRAMEWORKS = ("sglang_us", "vllm_us", "trtllm_us")
"""Columns with the times of the product in three serving frameworks. The measurement of a row is the median of these
times.
"""
CAMPAIGNS = (*FRAMEWORKS, "sglang_repeat_us")
"""Columns with all measured times, including a second measurement with sglang. The shortest time of a row is compared
with the bound.
"""
_TIME = (float, type(None))
COLUMNS: dict[str, type | tuple[type, ...]] = {
    "device": str,
    "dtype": str,
    "m": int,
    "n": int,
    "k": int,
    "sglang_us": float,
    "vllm_us": _TIME,
    "trtllm_us": _TIME,
    "sglang_repeat_us": _TIME,
}
MEANINGS = (
    ("launch_us", "us", "time to launch and end a kernel", 1.0, 8.0),
    (
        "tensor_efficiency",
        "",
        "share of the peak that a thread block reaches (clock under load, supply of data)",
        0.3,
        1.0,
    ),
    ("memory_efficiency", "", "share of the bandwidth of DRAM and L2 that is reached", 0.4, 1.0),
    ("step_us", "us", "least time of a step of 64 elements along k", 0.02, 2.0),
)
FITTED = {"a100": (3.13, 0.889, 0.745, 0.225), "h100": (2.44, 0.832, 0.802, 0.0865)}
"""Fitted values of the constants of each GPU, in the order of MEANINGS."""


Meaning = tuple[str, str, str, float, float]
"""Constant without its value: name, unit, meaning, lowest and highest value."""


def constants(
    fitted: Mapping[str, Sequence[float]], meanings: Sequence[Meaning] = MEANINGS
) -> dict[str, tuple[Constant, ...]]:
    """Constants to fit, by name of the device. `fitted` has their values in the order of `meanings`."""
    return {
        device: tuple(
            Constant(name, unit, meaning, value, low, high)
            for (name, unit, meaning, low, high), value in zip(meanings, values, strict=True)
        )
        for device, values in fitted.items()
    }


def is_fitted(row: Mapping[str, Any]) -> bool:
    """True if constants are fitted to this row. The rule of the set of measurements decides this."""
    return in_hundred(_drawn_by(row), SALT) < SHARE


def _drawn_by(row: Mapping[str, Any]) -> str:
    return f"{row['n']} {row['k']}"


@dataclass(frozen=True)
class _Prepared:
    row: Mapping[str, Any]
    product: Product

    @property
    def device(self) -> str:
        """Name of the GPU."""
        return str(self.row["device"])

    @cached_property
    def is_fitted(self) -> bool:
        """True if constants are fitted to this row. The rule of the set of measurements (`CourtSet.rule`) decides
        this.
        """
        return is_fitted(self.row)

    @cached_property
    def drawn_by(self) -> str:
        """Shape (n, k) of the weights as text. This text alone decides whether constants are fitted to the row
        (`is_fitted`). The decision is therefore the same for all devices and data types.
        """
        return _drawn_by(self.row)

    @cached_property
    def times(self) -> tuple[float, float]:
        """Pair (median of the frameworks, shortest measured time), in microseconds."""
        row = self.row
        median = statistics.median(row[name] for name in FRAMEWORKS if row.get(name) is not None)
        return median, min(row[name] for name in CAMPAIGNS if row.get(name) is not None)

    def case(self, constants: Mapping[str, Values]) -> Case:
        """Measurement of the row and our predictions for it; times are in microseconds."""
        row, one = self.row, self.product
        estimate, cause = one.seconds(constants[row["device"]])
        return Case(
            identity=f"{row['device']} {row['dtype']} {row['m']} x {row['n']} x {row['k']}",
            part=f"{row['device']} {row['dtype']}",
            group=self.drawn_by,
            measured=self.times[0],
            fastest=self.times[1],
            bound=one.bound,
            estimate=1e6 * estimate,
            roofline=max(one.roofline_terms[:2]),
            roofline_terms=one.roofline_terms,
            limited_by=cause,
            fitted=self.is_fitted,
        )


def prepare(files: Sequence[Path]) -> list[_Prepared]:
    """Rows of the files, ready for predictions. Raises InputError if there are mistakes in the files."""
    rows = read_rows(files, COLUMNS)
    known = {name: gpus()[name] for name in FITTED}
    problems = [
        Problem("no such device", path="device", value=repr(name), allowed=", ".join(known))
        for name in sorted({row["device"] for row in rows} - set(known))
    ]
    problems += [
        Problem("no such type", path="dtype", value=repr(name), allowed=", ".join(WEIGHT_BYTES))
        for name in sorted({row["dtype"] for row in rows} - set(WEIGHT_BYTES))
    ]
    if problems:
        raise InputError(problems)
    return [_Prepared(row, product(known[row["device"]], row["dtype"], row["m"], row["n"], row["k"])) for row in rows]


LLMCOMPASS = Published(
    "LLMCompass",
    "10.9 % per operator, 4.1 % end to end",
    "products, softmax, normalisation, GELU and layers of transformers on A100, MI210 and TPU, some 100 points",
    "ISCA 2024, its repository",
)
GENZ = Published("GenZ", "5.82 % (geometric mean)", "inference of language models, end to end", "arXiv 2406.01698")
GPU = CourtSet(
    name=NAME,
    title="Matrix products on A100 and H100, times of three serving frameworks",
    unit="us",
    source="NVIDIA, AIConfigurator, arXiv 2601.06288; github.com/ai-dynamo/aiconfigurator 095f58a, Apache-2.0",
    rule=f"shapes of weights (n, k) that have a hash (0 to 99, salt {SALT!r}) below {SHARE}",
    constants=constants(FITTED),
    prepare=prepare,
    published=(LLMCOMPASS, GENZ),
    patterns=("*.csv", "*.csv.gz"),
)
