"""Sets of measurements `vidur_layers`, `llmservingsim_layers` and `llmcompass`: matrix products of language models.

On GPUs, the estimate is that of the set `gpu-gemm`, with the same hardware file. On the TPU, the estimate is that of
the set `tpu-v6e`: the result of the command `evaluate`. The constants of A100, H100 and the TPU are those of the two
sets, and are not fitted here. The constants of the other GPUs are fitted by the rule of the set.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from tilewright.base.errors import Problem

from tilewright_evidence.court.case import Case, CourtSet, Values, in_hundred
from tilewright_evidence.court.gpu import FITTED as GPU_FITTED
from tilewright_evidence.court.gpu import LARGEST_PART, LLMCOMPASS, Product, constants, gpus, product
from tilewright_evidence.court.language_devices import STAND_INS, device_of, known_time, row_problems, values_of
from tilewright_evidence.court.rows import read_rows
from tilewright_evidence.court.tpu import DEVICE as TPU_DEVICE
from tilewright_evidence.court.tpu import ON_CHIP, OWN, UP_DOWN, TpuProduct

VIDUR_NAME, SERVING_NAME, COMPASS_NAME = "vidur_layers", "llmservingsim_layers", "llmcompass"
SHARE = 6
"""Percentage of the rows of a device that are used to fit its constants, if it has fitted constants. The set `gpu-gemm`
has the same percentage.
"""
NUMBER = (float, type(None))
VIDUR_COLUMNS: dict[str, type | tuple[type, ...]] = {
    **{"row_id": str, "device": str, "op": str, "tokens": int, "k": NUMBER, "n": NUMBER},
    **{"dtype": str, "latency_median_us": float, "roofline_flag": (str, type(None))},
}
SERVING_COLUMNS: dict[str, type | tuple[type, ...]] = {
    **{"row_id": str, "device": str, "layer": str, "tokens": int, "gemm_k": NUMBER, "gemm_n": NUMBER},
    **{"dtype": str, "latency_us": float, "roofline_flag": (str, type(None))},
}
COMPASS_COLUMNS: dict[str, type | tuple[type, ...]] = {
    **{"row_id": str, "op": str, "device": str, "dtype": str, "latency_us": float},
    **dict.fromkeys("mnk", NUMBER),
}
COMPASS_OPERATOR, COMPASS_LEFT_OUT = "matmul", ("MI210",)
"""Operator whose rows of LLMCompass are taken, and devices whose rows are left out. There is no hardware file for these
devices.
"""
COMPASS_CALL_US = 21.0
"""Time in us to launch a matrix product on A100, as LLMCompass measures it. The number is from the model of LLMCompass
itself. The other sets do not measure this time.
"""
TPU_OPERATORS = ("o_proj", "down_proj")
TPU_LEAST_TOKENS = 256
"""Least number of tokens in a row of the TPU. Rows with fewer tokens are left out, and so are rows of operators that
are not in TPU_OPERATORS: it is not known which products these rows contain.
"""
TPU_MOST_FUSED_TOKENS = 312
"""Largest number of tokens for which a row `down_proj` of the TPU also contains the product `up_proj`, because the
compiler fuses the two products. The set `tpu-v6e` has the rows that show this.
"""
VIDUR_FITTED = {"a40": (1.75, 0.802, 0.79, 1.07)}
SERVING_FITTED = {
    "rtx_a6000": (2.26, 0.801, 0.959, 0.699),
    "rtx_4090": (1.55, 1.0, 0.878, 0.28),
    "rtx_pro_6000": (1.86, 0.88, 0.804, 0.917),
}
"""Fitted values of the constants of each device, in the order of `gpu.MEANINGS`. The RTX 3090 has no rows with sizes.
It takes the constants of the RTX 4090.
"""
BOOSTED, MOST_BOOST = ("rtx_3090", "rtx_4090"), 1.05
"""BOOSTED: cards whose clock rises above the published boost clock. MOST_BOOST: largest ratio of the two clocks."""


@dataclass(frozen=True)
class MeasuredProduct:
    """Measured matrix product in a layer of a language model."""

    identity: str
    device: str
    operator: str
    tokens: int
    outputs: int
    inputs: int
    measured_us: float
    flag: str
    """Reason why the source doubts the measurement; '' if it does not."""

    @property
    def sizes(self) -> str:
        """Text of the sizes: outputs, inputs and tokens."""
        return f"{self.outputs} {self.inputs} {self.tokens}"


@dataclass(frozen=True)
class _GpuLayer:
    """Row with the measured time of a matrix product on a GPU."""

    layer: MeasuredProduct
    salt: str
    fitted: Mapping[str, Sequence[float]]
    call_us: float = 0.0
    """Time of a call that the source measures in addition to the kernel."""

    @property
    def device(self) -> str:
        """Name of the GPU."""
        return self.layer.device

    @property
    def drawn_by(self) -> str | None:
        """Sizes of the product, as text. This text decides whether constants are fitted to the row. None if no
        constants are fitted to rows of the device.
        """
        return self.layer.sizes if self.device in self.fitted else None

    @property
    def is_fitted(self) -> bool:
        """True if constants are fitted to this row. The rule of the set (`CourtSet.rule`) decides this."""
        return is_fitted(self.layer, self.salt, self.fitted)

    @cached_property
    def product(self) -> Product:
        """Product with the numbers that determine its time."""
        layer = self.layer
        return product(gpus()[self.device], "bf16", layer.tokens, layer.outputs, layer.inputs)

    def case(self, constants: Mapping[str, Values]) -> Case:
        """Measurement of the row and our predictions for it; times are in microseconds."""
        layer, one = self.layer, self.product
        seconds, cause = one.seconds(values_of(self.device, constants))
        return Case(
            identity=layer.identity,
            part=self.device,
            group=f"{self.device} {layer.sizes}",
            measured=layer.measured_us,
            bound=one.bound,
            estimate=1e6 * seconds + self.call_us,
            roofline=max(one.roofline_terms[:2]),
            roofline_terms=one.roofline_terms,
            fitted_roofline=known_time(self.device, one.roofline_terms),
            limited_by=cause if self.call_us <= LARGEST_PART * (1e6 * seconds + self.call_us) else "call",
            fitted=self.is_fitted,
            explained=_explained(layer, one),
        )


def is_fitted(layer: MeasuredProduct, salt: str, fitted: Mapping[str, Sequence[float]]) -> bool:
    """True if constants are fitted to this layer. `fitted` has the devices with fitted constants."""
    return layer.device in fitted and in_hundred(layer.sizes, salt) < SHARE


def _explained(layer: MeasuredProduct, one: Product | None = None) -> str:
    """Reason why a measurement can be below its bound; '' if none is known. `one` is the product of a GPU."""
    if layer.device in BOOSTED and one is not None and layer.measured_us > one.roofline_terms[0] / MOST_BOOST:
        return "the clock of the card rises above the published boost clock"
    return f"the source marks the row: {layer.flag}" if layer.flag else ""


@dataclass(frozen=True)
class _TpuLayer:
    """Row with the measured time of a matrix product on the TPU."""

    layer: MeasuredProduct
    is_fitted: bool = False
    drawn_by: None = None
    device: str = TPU_DEVICE

    @property
    def product(self) -> TpuProduct:
        """This row in the form of the set `tpu-v6e`, with times in ns."""
        layer = self.layer
        fused = UP_DOWN if layer.tokens <= TPU_MOST_FUSED_TOKENS else OWN
        names = ("op", "m", "n", "k", "contents", "time_ns")
        contents = ON_CHIP if layer.operator == "o_proj" else fused
        sizes = layer.tokens, layer.outputs, layer.inputs
        return TpuProduct(dict(zip(names, (layer.operator, *sizes, contents, 1e3 * layer.measured_us), strict=True)))

    def case(self, constants: Mapping[str, Values]) -> Case:
        """Measurement of the row and our predictions for it; times are in microseconds."""
        found = self.product.case({TPU_DEVICE: values_of(TPU_DEVICE, constants)})
        terms = tuple(time / 1e3 for time in found.roofline_terms[:2])
        return replace(
            found,
            identity=self.layer.identity,
            part=self.device,
            group=f"{self.device} {self.layer.sizes}",
            measured=self.layer.measured_us,
            bound=found.bound / 1e3,
            estimate=found.estimate / 1e3,
            alone=None if found.alone is None else found.alone / 1e3,
            roofline=found.roofline / 1e3,
            roofline_terms=(*terms, 1.0),
            fitted_roofline=known_time(self.device, (*terms, 1.0)),
            explained=_explained(self.layer),
            judged=None,
        )


SIZES = ("k", "n", "gemm_k", "gemm_n")
"""Columns of the sizes of a product, empty if the row is not a matrix product. Such rows are not checked."""


def _checked(row: Mapping[str, Any], names: Sequence[str], devices: Collection[str]) -> Iterator[Problem]:
    """Mistakes in a row of a matrix product. `names` has the columns of its sizes, then the column of its time."""
    if all(row[name] is not None for name in names if name in SIZES):
        least = {name: 1 for name in names if name in ("tokens", *SIZES)}
        yield from row_problems(row, devices, least, names[-1])


def layers_of(
    files: Sequence[Path], columns: Mapping[str, Any], names: Sequence[str], devices: Collection[str]
) -> list[MeasuredProduct]:
    """Matrix products in the files. `names` are the columns with operator, inputs, outputs and time. Two kinds of rows
    are left out: rows without sizes, because they are not matrix products, and rows of the TPU with unknown contents.
    Raises InputError if there are mistakes in the files.
    """
    operator, inputs, outputs, time = names
    found = [
        MeasuredProduct(
            identity=row["row_id"],
            device=device_of(row["device"]) or "",
            operator=row[operator],
            tokens=row["tokens"],
            outputs=int(row[outputs]),
            inputs=int(row[inputs]),
            measured_us=row[time],
            flag=row["roofline_flag"] or "",
        )
        for row in read_rows(
            files, columns, partial(_checked, names=("tokens", inputs, outputs, time), devices=devices)
        )
        if row[inputs] is not None and row[outputs] is not None
    ]
    return [layer for layer in found if layer.device != TPU_DEVICE or _is_certain(layer)]


def _is_certain(layer: MeasuredProduct) -> bool:
    return layer.operator in TPU_OPERATORS and layer.tokens >= TPU_LEAST_TOKENS


VIDUR_NAMES = ("op", "k", "n", "latency_median_us")
SERVING_NAMES = ("layer", "gemm_k", "gemm_n", "latency_us")
"""Columns with operator, inputs, outputs and time (see `layers_of`)."""


def salt_of(name: str) -> str:
    """Salt of the rule of a set."""
    return f"court|{name}"


def _preparer(
    name: str,
    columns: Mapping[str, Any],
    names: Sequence[str],
    fitted: Mapping[str, Sequence[float]],
    others: Sequence[str],
) -> Callable[[Sequence[Path]], list[_GpuLayer | _TpuLayer]]:
    """Function that reads the rows of a set (`CourtSet.prepare`). `others` are the devices whose constants are not
    fitted in this set.
    """

    def prepare(files: Sequence[Path]) -> list[_GpuLayer | _TpuLayer]:
        return [
            _TpuLayer(layer) if layer.device == TPU_DEVICE else _GpuLayer(layer, salt_of(name), fitted)
            for layer in layers_of(files, columns, names, (*fitted, *others))
        ]

    return prepare


def _rule(name: str, fitted: Mapping[str, Sequence[float]]) -> str:
    return (
        f"products on {', '.join(fitted)} whose outputs, inputs and tokens have a hash"
        f" (0 to 99, salt {salt_of(name)!r}) below {SHARE}; no row of A100, H100 or TPU"
    )


def _compass_problems(row: Mapping[str, Any]) -> Iterator[Problem]:
    device = "A100" if row["device"] in COMPASS_LEFT_OUT else row["device"]
    dtype = row["dtype"].rstrip("?").replace("fp32", "fp16")
    sizes = dict.fromkeys("mnk", 1)
    yield from row_problems({**row, "device": device, "dtype": dtype}, ("a100",), sizes, "latency_us")
    if row["op"] == COMPASS_OPERATOR:
        yield from (Problem("is missing", path=size) for size in sizes if row[size] is None)


def _prepare_compass(files: Sequence[Path]) -> list[_GpuLayer]:
    rows = read_rows(files, COMPASS_COLUMNS, _compass_problems)
    return [
        _GpuLayer(
            MeasuredProduct(
                identity=row["row_id"],
                device=device_of(row["device"]) or "",
                operator=row["op"],
                tokens=int(row["m"]),
                outputs=int(row["n"]),
                inputs=int(row["k"]),
                measured_us=row["latency_us"],
                flag="",
            ),
            salt_of(COMPASS_NAME),
            fitted={},
            call_us=COMPASS_CALL_US,
        )
        for row in rows
        if row["op"] == COMPASS_OPERATOR and row["device"] not in COMPASS_LEFT_OUT
    ]


COMPASS = CourtSet(
    name=COMPASS_NAME,
    title="Matrix products on A100, with the time of a call",
    unit="us",
    source="Princeton University, LLMCompass, ISCA 2024;"
    " github.com/PrincetonUniversity/LLMCompass 2e015fd, BSD-3-Clause",
    rule="no rows",
    constants={},
    prepare=_prepare_compass,
    published=(LLMCOMPASS,),
    patterns=("*.csv", "*.csv.gz"),
)
VIDUR = CourtSet(
    name=VIDUR_NAME,
    title="Matrix products in layers of language models on A100, H100 and A40",
    unit="us",
    source="Microsoft, Vidur, MLSys 2024; github.com/microsoft/vidur 7d47513, MIT",
    rule=_rule(VIDUR_NAME, VIDUR_FITTED),
    constants=constants(VIDUR_FITTED),
    prepare=_preparer(VIDUR_NAME, VIDUR_COLUMNS, VIDUR_NAMES, VIDUR_FITTED, tuple(GPU_FITTED)),
    published=(LLMCOMPASS,),
    patterns=("*.csv", "*.csv.gz"),
)
SERVING = CourtSet(
    name=SERVING_NAME,
    title="Matrix products in layers of language models on H100, TPU v6e and four other GPUs",
    unit="us",
    source="KAIST CASYS, LLMServingSim 2.0, arXiv 2602.23036; github.com/casys-kaist/LLMServingSim 5daddb2, MIT",
    rule=_rule(SERVING_NAME, SERVING_FITTED),
    constants=constants(SERVING_FITTED),
    prepare=_preparer(
        SERVING_NAME, SERVING_COLUMNS, SERVING_NAMES, SERVING_FITTED, (*GPU_FITTED, *STAND_INS, TPU_DEVICE)
    ),
    published=(LLMCOMPASS,),
    patterns=("*.csv", "*.csv.gz"),
)
