"""The set `gpu-gemm`: matrix products on A100 and H100 in three serving frameworks."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tilewright.comparison.court.case import Case, Constant, CourtSet, Published, Values
from tilewright.comparison.court.gpu_reading import WEIGHT_BYTES, Product, gpus, product
from tilewright.comparison.court.rows import in_hundred, read_rows
from tilewright.errors import InputError, Problem

NAME = "gpu-gemm"
SALT, SHARE = f"court|{NAME}", 6
FRAMEWORKS = ("sglang_us", "vllm_us", "trtllm_us")
"""The typical time is the median of those that were measured."""
CAMPAIGNS = (*FRAMEWORKS, "sglang_repeat_us")
"""The shortest time is that of all."""
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
    ("launch_us", "us", "a kernel is launched and ends", 1.0, 8.0),
    ("tensor_efficiency", "", "of the peak, in a block of threads: clock under power, feeding", 0.3, 1.0),
    ("memory_efficiency", "", "of the bandwidth of DRAM and L2", 0.4, 1.0),
    ("step_us", "us", "a step of 64 in k takes, however little there is to do", 0.02, 2.0),
)
FITTED = {"a100": (3.66, 0.798, 0.63, 0.819), "h100": (2.65, 0.833, 0.78, 0.471)}
"""Values in the order of MEANINGS."""


def constants() -> dict[str, tuple[Constant, ...]]:
    """Those of each GPU."""
    return {
        device: tuple(
            Constant(name, unit, meaning, value, low, high)
            for (name, unit, meaning, low, high), value in zip(MEANINGS, values, strict=True)
        )
        for device, values in FITTED.items()
    }


def is_fitted(row: Mapping[str, Any]) -> bool:
    """Whether the rule chooses a row for the fit."""
    return in_hundred(_drawn_by(row), SALT) < SHARE


def _drawn_by(row: Mapping[str, Any]) -> str:
    return f"{row['n']} {row['k']}"


@dataclass(frozen=True)
class _Prepared:
    row: Mapping[str, Any]
    product: Product

    @property
    def device(self) -> str:
        """The GPU."""
        return str(self.row["device"])

    @property
    def is_fitted(self) -> bool:
        """Whether the rule chooses the row."""
        return is_fitted(self.row)

    @property
    def drawn_by(self) -> str:
        """The shape of the weights, of all devices and types together."""
        return _drawn_by(self.row)

    def case(self, constants: Mapping[str, Values]) -> Case:
        """What we say of it, in us."""
        row, one = self.row, self.product
        times = [row[name] for name in CAMPAIGNS if row.get(name) is not None]
        estimate, cause = one.seconds(constants[row["device"]])
        kept = max(0.0, one.data_bytes - one.gpu.l2_bytes)
        return Case(
            identity=f"{row['device']} {row['dtype']} {row['m']} x {row['n']} x {row['k']}",
            part=f"{row['device']} {row['dtype']}",
            group=self.drawn_by,
            measured=statistics.median(row[name] for name in FRAMEWORKS if row.get(name) is not None),
            fastest=min(times),
            bound=1e6 * max(one.flops / one.peak, kept / one.gpu.dram_bytes_per_s),
            estimate=1e6 * estimate,
            roofline=1e6 * max(one.flops / one.peak, one.data_bytes / one.gpu.dram_bytes_per_s),
            limited_by=cause,
            fitted=self.is_fitted,
        )


def prepare(files: Sequence[Path]) -> list[_Prepared]:
    """The rows. Raises InputError with everything that is wrong."""
    rows, known = read_rows(files, COLUMNS), gpus()
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
    rule=f"shapes of weights (n, k) that, hashed with the salt {SALT!r}, are below {SHARE} of 100",
    constants=constants(),
    peer="",
    second="",
    prepare=prepare,
    published=(LLMCOMPASS, GENZ),
    patterns=("*.csv", "*.csv.gz"),
)
