"""Devices that ran operators of language models, with their constants from other sets.

Several sets have rows of the same device, each with another spelling of its name. The constants of A100, H100 and TPU
are those of the sets `gpu-gemm` and `tpu-v6e`. No row of another set is used to fit these constants.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from math import isfinite
from typing import Any

from tilewright.base.errors import Problem, nearest_name

from tilewright_evidence.court.case import DATA, CourtSet, Values, set_files
from tilewright_evidence.court.fit import FittedRoofline, fitted_roofline
from tilewright_evidence.court.gpu import GPU
from tilewright_evidence.court.tpu import DEVICE as TPU_DEVICE
from tilewright_evidence.court.tpu import TPU

GPU_NAMES: Mapping[str, str] = {
    "a100": "a100",
    "a100sxm": "a100",
    "h100": "h100",
    "h100sxm": "h100",
    "a40": "a40",
    "a6000": "rtx_a6000",
    "rtxa6000": "rtx_a6000",
    "rtx3090": "rtx_3090",
    "rtx4090": "rtx_4090",
    "rtxpro6000": "rtx_pro_6000",
}
"""Names in the hardware file `gpus.yaml`, by spelling in the rows (in lower case, letters and digits only)."""
TPU_SPELLING = "tpuv6e"
"""Beginning of each spelling of the TPU in the rows. The rest of a spelling can give the number of chips."""
STAND_INS: Mapping[str, str] = {"rtx_3090": "rtx_4090"}
"""Device without rows for a fit -> device whose constants are used in place of fitted constants. Both devices add sums
of 32 bits at half the rate of other cards, so their tensor cores are limited less by power and by the supply of data.
"""
DTYPES = ("fp16", "bf16", "bf16?", "bfloat16")
"""Data types in the rows; a question mark means that the source does not state the type. All have 16 bits."""


def device_of(spelling: str) -> str | None:
    """Name of the device whose name in the rows is `spelling`; None if the device is unknown."""
    plain = "".join(letter for letter in spelling.lower() if letter.isalnum())
    return TPU_DEVICE if plain.startswith(TPU_SPELLING) else GPU_NAMES.get(plain)


def values_of(device: str, fitted: Mapping[str, Values]) -> Values:
    """Values of the constants of a device: those in `fitted`, or those of the sets `gpu-gemm` and `tpu-v6e`."""
    known = {**GPU.values(), **TPU.values(), **fitted}
    return known[device] if device in known else known[STAND_INS[device]]


@cache
def known_roofline(device: str) -> FittedRoofline | None:
    """Roofline of a device with constants that are fitted to the rows of `gpu-gemm` or `tpu-v6e`, in us; None for other
    devices. The samples of the two sets contain all rows to which the constants are fitted.
    """
    for court_set in (GPU, TPU):
        if device in court_set.constants:
            return _roofline_of(court_set, device)
    return None


def _roofline_of(court_set: CourtSet, device: str) -> FittedRoofline | None:
    rows = court_set.prepare(set_files(DATA / court_set.name, court_set.patterns))
    cases = [row.case(court_set.values()) for row in rows if row.device == device and row.is_fitted]
    return fitted_roofline(cases, len(court_set.constants[device]))


def known_time(device: str, terms_us: Sequence[float]) -> float | None:
    """Time in us that the roofline of `known_roofline` predicts; None if there is no roofline for the device.
    `terms_us` are the terms of the roofline in us.
    """
    roofline = known_roofline(device)
    # Shares have no unit. The costs are 0 for the TPU, whose set counts in ns.
    return None if roofline is None else roofline.time(terms_us)


def row_problems(
    row: Mapping[str, Any], devices: Collection[str], least: Mapping[str, int], time: str
) -> Iterator[Problem]:
    """Mistakes in a row: an unknown device, an unknown type, numbers that are too small, and a time that is not above
    0. `devices` are the devices that the set can predict. `least` has the least number by column; missing numbers are
    no mistakes. `time` is the column of the measured time.
    """
    if device_of(row["device"]) not in devices:
        known = [spelling for spelling in (*GPU_NAMES, TPU_SPELLING) if device_of(spelling) in devices]
        yield unknown("device", row["device"], known)
    if row["dtype"] not in DTYPES:
        yield unknown("dtype", row["dtype"], DTYPES)
    for column, lowest in least.items():
        if row[column] is not None and not (isfinite(row[column]) and row[column] >= lowest):
            yield Problem("wrong number", path=column, value=repr(row[column]), allowed=f"at least {lowest}")
    if not (isfinite(row[time]) and row[time] > 0):
        yield Problem("wrong number", path=time, value=repr(row[time]), allowed="more than 0")


def unknown(column: str, value: str, names: Sequence[str]) -> Problem:
    """Problem of a name that is unknown. `names` are the known names."""
    near = nearest_name(value, names) or ""
    return Problem("no such name", path=column, value=repr(value), allowed=", ".join(names), nearest=near)
