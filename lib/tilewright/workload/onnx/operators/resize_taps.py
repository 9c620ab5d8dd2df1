"""Which input positions a resized axis reads, by the formulas of ONNX Resize.

Resizing is separable: along each axis an output position reads a few neighbouring input positions, the taps.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tilewright.workload.onnx.affine_pieces import NOWHERE

Floats = npt.NDArray[np.float64]
Taps = npt.NDArray[np.int64]
"""[output position, tap]: input position, or NOWHERE."""
NEAREST, LINEAR, CUBIC = "nearest", "linear", "cubic"
MODES = (NEAREST, LINEAR, CUBIC)
_SMALLEST_WEIGHT = 1e-12
"""Weights below are rounding errors of zero. A scale of 0.6 in float32 really gives its neighbours weights of 1e-8."""
_MOST_TAPS = 1 << 22
"""Elements of a table of taps; larger ones are not made."""


@dataclass(frozen=True)
class ResizeRules:
    """How positions are computed and pixels are weighted: the attributes of Resize."""

    mode: str
    coordinates: str = "half_pixel"
    nearest_mode: str = "round_prefer_floor"
    cubic_coefficient: float = -0.75
    excludes_outside: bool = False
    is_antialiased: bool = False


@dataclass(frozen=True)
class ResizedAxis:
    """One axis: sizes, the scale that positions are computed with, and the region (0 to 1) for tf_crop_and_resize."""

    in_size: int
    out_size: int
    scale: float
    region: tuple[float, float] = (0.0, 1.0)


def tap_count(rules: ResizeRules, axis: ResizedAxis) -> int:
    """Most input positions that an output position reads."""
    if rules.mode == NEAREST:
        return 1
    reach = 1 if rules.mode == LINEAR else 2
    return 2 - 2 * _first_tap(reach, axis.scale if rules.is_antialiased else 1.0)


def axis_taps(rules: ResizeRules, axis: ResizedAxis) -> Taps:
    """The taps of an axis, in rising order from the first that counts. Raises ValueError for unknown rules and tables
    too large to make.
    """
    if axis.out_size * tap_count(rules, axis) > _MOST_TAPS:
        raise ValueError("too many taps")
    places = _source_positions(rules.coordinates, axis)
    below = np.ceil(places).astype(np.int64) - 1
    ratios = places - below  # in (0, 1]: of a position on a pixel, that pixel is the upper neighbour
    if rules.mode == NEAREST:
        is_upper = _takes_upper(rules.nearest_mode, ratios)
        read, weights = (below + is_upper)[:, None], np.ones((axis.out_size, 1))
    else:
        reach, kernel = (1, _triangle) if rules.mode == LINEAR else (2, _cubic(rules.cubic_coefficient))
        scale = min(axis.scale, 1.0) if rules.is_antialiased else 1.0
        offsets = np.arange(tap_count(rules, axis)) + _first_tap(reach, scale)
        read = below[:, None] + offsets
        weights = kernel(np.abs(offsets - ratios[:, None]) * scale)
    is_read = np.abs(weights) > _SMALLEST_WEIGHT
    if rules.excludes_outside:
        is_read &= (read >= 0) & (read < axis.in_size)
    if rules.coordinates == "tf_crop_and_resize":
        is_read &= ((places >= 0) & (places <= axis.in_size - 1))[:, None]
    return _compact(np.clip(read, 0, axis.in_size - 1), is_read)


def _compact(read: Taps, is_read: npt.NDArray[np.bool_]) -> Taps:
    """Positions from the first that is read on, each once."""
    count = read.shape[1]
    first = np.where(is_read, read, np.iinfo(np.int64).max).min(axis=1)
    taps = np.full(read.shape, NOWHERE, dtype=np.int64)
    rows, columns = np.nonzero(is_read)
    positions = read[rows, columns]
    taps[rows, positions - first[rows]] = positions
    used = max((column + 1 for column in range(count) if (taps[:, column] != NOWHERE).any()), default=1)
    return taps[:, :used]


def _first_tap(reach: int, scale: float) -> int:
    return math.floor(-reach / min(scale, 1.0)) + 1


def _source_positions(coordinates: str, axis: ResizedAxis) -> Floats:
    """Positions in the input, as real numbers. Source: ONNX operator Resize, coordinate_transformation_mode."""
    out = np.arange(axis.out_size, dtype=np.float64)
    exact_size = axis.scale * axis.in_size
    half = (out + 0.5) / axis.scale - 0.5
    last = axis.in_size - 1
    if coordinates == "align_corners":
        return out * 0 if exact_size == 1 else out * last / (exact_size - 1)
    if coordinates == "tf_crop_and_resize":
        start, end = axis.region
        if exact_size == 1:
            return out * 0 + (end - start) * last / 2 + start * last
        return out * (end - start) * last / (exact_size - 1) + start * last
    if coordinates == "half_pixel_symmetric":
        return half + axis.in_size / 2 * (1 - axis.out_size / exact_size)
    if coordinates == "pytorch_half_pixel" and exact_size == 1:
        return out * 0 - 0.5
    simple = {
        "half_pixel": half,
        "pytorch_half_pixel": half,
        "asymmetric": out / axis.scale,
        "tf_half_pixel_for_nn": half + 0.5,
    }
    if coordinates not in simple:
        raise ValueError(f"coordinate_transformation_mode {coordinates!r}")
    return simple[coordinates]


def _takes_upper(nearest_mode: str, ratios: Floats) -> npt.NDArray[np.bool_]:
    rules: dict[str, npt.NDArray[np.bool_]] = {
        "round_prefer_floor": ratios > 0.5,
        "round_prefer_ceil": ratios >= 0.5,
        "floor": ratios == 1,
        "ceil": ratios > 0,
    }
    if nearest_mode not in rules:
        raise ValueError(f"nearest_mode {nearest_mode!r}")
    return rules[nearest_mode]


def _triangle(distance: Floats) -> Floats:
    return np.clip(1 - distance, 0, 1)


def _cubic(coefficient: float) -> Callable[[Floats], Floats]:
    def kernel(distance: Floats) -> Floats:
        near = ((coefficient + 2) * distance - (coefficient + 3)) * distance**2 + 1
        far = coefficient * (((distance - 5) * distance + 8) * distance - 4)
        return np.where(distance <= 1, near, np.where(distance < 2, far, 0.0))

    return kernel
