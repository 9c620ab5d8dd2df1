"""A matrix product on a GPU: tiles in waves over the multiprocessors, with the best tile and split of the sum.

out[m, n] = x[m, k] w[k, n]. A library cuts the output into tiles, one thread block each, one at a time on a
multiprocessor; where there are few tiles it cuts the sum over k too, and adds the parts up at the end. Which it chooses
is not published: the best of the tiles that NVIDIA's CUTLASS has is taken.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import yaml

from tilewright.comparison.court.case import Values
from tilewright.comparison.court.rows import DATA

TILES = tuple((m, n) for m in (16, 32, 64, 128, 256) for n in (32, 64, 128, 256) if m * n <= 256 * 128)
STEP = 64
"""Elements of k in a step of a thread block."""
SPLITS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)
"""Parts of the sum over k."""
LEAST_STEPS = 4
"""Of a part of a sum that is cut."""
SUM_BYTES = 4
BF16_BYTES = 2
WEIGHT_BYTES = {"bf16": 2, "fp8": 1}
LARGEST_PART = 0.5


@dataclass(frozen=True)
class Gpu:
    """What is published of a GPU."""

    multiprocessors: int
    flops_per_s: Mapping[str, float]
    dram_bytes_per_s: float
    l2_bytes: int
    l2_bytes_per_s: float
    blocks_that_share_loads: int


@cache
def gpus() -> dict[str, Gpu]:
    """The GPUs of the hardware file by name."""
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
    """A matrix product and the numbers that decide its time, those of tiles and splits as arrays of all choices."""

    gpu: Gpu
    flops: float
    peak: float
    """FLOP/s."""
    data_bytes: float
    """Weights, inputs and outputs once."""
    quantised_bytes: float
    """Read and written by the kernel that quantises the inputs; 0 where there is none."""
    tile_flops: np.ndarray
    """Of the thread blocks that run one after the other on a multiprocessor."""
    steps: np.ndarray
    """Of those blocks."""
    l2_bytes: np.ndarray
    """Loads of all blocks."""
    sum_bytes: np.ndarray
    """Parts of sums, written and read again."""

    def seconds(self, constants: Values) -> tuple[float, str]:
        """Time of the best choice, and what takes most of it."""
        gpu, efficiency = self.gpu, constants["memory_efficiency"]
        tensor = self.tile_flops / (self.peak / gpu.multiprocessors * constants["tensor_efficiency"])
        waiting = self.steps * constants["step_us"] * 1e-6
        l2 = self.l2_bytes / (gpu.l2_bytes_per_s * efficiency)
        dram = np.full_like(l2, (self.data_bytes - self.quantised_bytes / 3) / (gpu.dram_bytes_per_s * efficiency))
        parts = {"tensor cores": tensor, "steps": waiting, "L2": l2, "DRAM": dram}
        summed = self.sum_bytes / (gpu.l2_bytes_per_s * efficiency)
        times = np.maximum.reduce(list(parts.values())) + summed
        best = int(np.argmin(times))
        launches = constants["launch_us"] * 1e-6 * (2 if self.quantised_bytes else 1)
        quantising = self.quantised_bytes / (gpu.dram_bytes_per_s * efficiency)
        total = float(times[best]) + launches + quantising
        cause = max(parts, key=lambda name: float(parts[name][best]))
        return total, "launch" if launches + quantising > LARGEST_PART * total else cause


def product(gpu: Gpu, kind: str, m: int, n: int, k: int) -> Product:
    """A product of m x k times k x n; `kind` is `bf16`, or `fp8`, whose inputs are quantised from bf16 first."""
    tile_m, tile_n, split = (np.array(one, dtype=float) for one in zip(*_choices(k), strict=True))
    element = WEIGHT_BYTES[kind]
    of_k = np.ceil(k / split / STEP) * STEP
    blocks = np.ceil(m / tile_m) * np.ceil(n / tile_n) * split
    waves = np.ceil(blocks / gpu.multiprocessors)
    quantised = 0.0 if kind == "bf16" else 3.0 * m * k
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


def _choices(k: int) -> list[tuple[int, int, int]]:
    splits = [split for split in SPLITS if split == 1 or k >= split * STEP * LEAST_STEPS]
    return [(m, n, split) for m, n in TILES for split in splits]
