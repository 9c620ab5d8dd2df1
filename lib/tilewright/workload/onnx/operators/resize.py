"""Resize, Upsample, and sampling at positions that are computed at run time, on the vector unit.

A tap is an input position that an output position reads. Along an axis, an output position has one tap for `nearest`,
two for `linear`, four for `cubic`, and more with antialiasing. The number of taps of an output element is the product
of its numbers of taps along the axes.

If the taps of every axis are affine in loops (integer factors, strides), the operator is one nest. Otherwise, the taps
are gathered axis by axis without costs, and a nest sums them. This nest counts one read per output element, because
neighbouring outputs share their taps.

Whether the taps are affine can depend on the factor, on the coordinate transformation and on the rounding rule.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tilewright.workload.access import AxisIndex, IndexMap, TensorAccess, affine, identity_map, loop
from tilewright.workload.onnx.index_maps import NOWHERE, TooManyPiecesError, axis_pieces
from tilewright.workload.onnx.lowering import Lowering, access, lowers, whole_map
from tilewright.workload.onnx.node import Shape
from tilewright.workload.onnx.operators.elementwise import Loops, element_loops
from tilewright.workload.onnx.operators.reduction import normalised_axes

Floats = npt.NDArray[np.float64]
Taps = npt.NDArray[np.int64]
"""Array [output position, tap] with the input position of each tap, or NOWHERE."""
NEAREST, LINEAR, CUBIC = "nearest", "linear", "cubic"
MODES = (NEAREST, LINEAR, CUBIC)
_SMALLEST_WEIGHT = 1e-12
"""Largest weight that counts as zero, because it can be a rounding error. Every larger weight counts, such as the
weights of 1e-7 that a scale of 0.6 in float32 gives some neighbours."""
_MOST_TAPS = 1 << 22
"""Largest number of elements of a table of taps. `axis_taps` raises ValueError if a table would have more elements."""


@dataclass(frozen=True)
class ResizeRules:
    """Rules for positions and weights of pixels: the attributes of Resize."""

    mode: str
    coordinates: str = "half_pixel"
    nearest_mode: str = "round_prefer_floor"
    cubic_coefficient: float = -0.75
    excludes_outside: bool = False
    is_antialiased: bool = False


@dataclass(frozen=True)
class ResizedAxis:
    """Axis of a tensor that is resized: its sizes, the scale that gives positions, and the region for
    tf_crop_and_resize (as fractions from 0 to 1).
    """

    in_size: int
    out_size: int
    scale: float
    region: tuple[float, float] = (0.0, 1.0)


def tap_count(rules: ResizeRules, axis: ResizedAxis) -> int:
    """Largest number of input positions that an output position reads."""
    if rules.mode == NEAREST:
        return 1
    reach = 1 if rules.mode == LINEAR else 2
    return 2 - 2 * _first_tap(reach, axis.scale if rules.is_antialiased else 1.0)


def axis_taps(rules: ResizeRules, axis: ResizedAxis) -> Taps:
    """Taps along an axis. Row p has the input positions that output position p reads with a weight other than zero.
    Column c is for the input position at distance c from the first input position of the row. The entry is NOWHERE if
    output position p does not read this input position.

    Raises ValueError for unknown rules, and if the table would have more than _MOST_TAPS elements.
    """
    if axis.out_size * tap_count(rules, axis) > _MOST_TAPS:
        raise ValueError("too many taps")
    places = _source_positions(rules.coordinates, axis)
    below = np.ceil(places).astype(np.int64) - 1
    ratios = places - below  # in (0, 1]: if a position lies on a pixel, this pixel is the upper neighbour
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
    """Table of the positions in `read` for which `is_read` is true, with one row for each output position. The column
    of a position is its distance from the first position of the row. All other elements of the table are NOWHERE."""
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
    """Position in the input, as a real number, of every output position along an axis. Source: ONNX operator Resize,
    coordinate_transformation_mode. Raises ValueError if `coordinates` is not known.
    """
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


_MOST_PIECES = 1024
"""Largest number of index maps for one resized axis. With more maps, each output position is assumed to depend on the
whole axis."""
_ASYMMETRIC_UNTIL = 10
"""Last operator set whose Resize has no attribute coordinate_transformation_mode."""
_KEEP_ASPECT_RATIO = {"not_larger": min, "not_smaller": max}


@dataclass(frozen=True)
class _AxisForm:
    """Affine form of the taps of one axis: the loops over output positions, the loop over taps, and the indices of both
    tensors.
    """

    output_loops: Loops
    tap_loops: Loops
    output: AxisIndex
    input: AxisIndex


@lowers("Resize", "Upsample")
def lower_resize(op: Lowering) -> None:
    """Resize (operator set 10 and later) and Upsample, in all their forms."""
    rules = _rules(op)
    source, result = op.input_shape(), op.output_shape()
    if len(source) != len(result):
        raise op.node.error(
            "wrong ranks of the input and output of a resize", f"{len(source)}, {len(result)}", "the same"
        )
    axes = _axes(op, rules)
    if axes is None:
        _superset(op, rules)
        return
    tables = [None if _is_unchanged(axis) else axis_taps(rules, axis) for axis in axes]
    forms = [_form(name, axis, taps) for (name, _), axis, taps in zip(element_loops(result), axes, tables, strict=True)]
    if all(table is None for table in tables):
        op.move(identity_map(op.output(), op.input(), result))
    elif all(form is not None for form in forms):
        _affine_nest(op, [form for form in forms if form is not None])
    else:
        _gathered(op, tables)


def _rules(op: Lowering) -> ResizeRules:
    node = op.node
    mode = node.text("mode", NEAREST).replace("bilinear", LINEAR).replace("trilinear", LINEAR)
    if mode not in MODES:
        raise node.error("wrong attribute 'mode'", mode, ", ".join(MODES))
    if node.proto.op_type == "Upsample" or op.opset <= _ASYMMETRIC_UNTIL:
        return ResizeRules(mode, "asymmetric", "floor")
    (coefficient,) = _floats(op, "cubic_coeff_a") or [-0.75]
    return ResizeRules(
        mode,
        node.text("coordinate_transformation_mode", "half_pixel"),
        node.text("nearest_mode", "round_prefer_floor"),
        coefficient,
        mode == CUBIC and bool(node.integer("exclude_outside", 0)),
        bool(node.integer("antialias", 0)),
    )


def _floats(op: Lowering, name: str) -> list[float]:
    """Values of the attribute `name`, which is a float or a list of floats; [] if the attribute is missing."""
    for attribute in op.node.proto.attribute:
        if attribute.name == name:
            return list(attribute.floats) or [attribute.f]
    return []


def _axes(op: Lowering, rules: ResizeRules) -> list[ResizedAxis] | None:
    """Axes of the tensor, each with its sizes, scale and region. Returns None if the scales or the region are known
    only at run time, or if a scale is not positive. Raises InputError for wrong axes or a wrong number of scales.
    """
    source, result = op.input_shape(), op.output_shape()
    rank = len(source)
    stated = op.node.integers("axes", ()) if op.opset > _ASYMMETRIC_UNTIL else ()
    normalised_axes(op, stated, rank)
    places = [axis % rank for axis in stated] or list(range(rank))
    regions = [(0.0, 1.0)] * rank
    if rules.coordinates == "tf_crop_and_resize":
        region = op.values(1)
        if region is None or region.size != 2 * len(places):
            return None
        for number, place in enumerate(places):
            regions[place] = (float(region.reshape(-1)[number]), float(region.reshape(-1)[len(places) + number]))
    scales = _scales(op, places, source, result)
    if scales is None or any(scale <= 0 for scale in scales):
        return None
    return [ResizedAxis(*facts) for facts in zip(source, result, scales, regions, strict=True)]


def _scales(op: Lowering, places: Sequence[int], source: Shape, result: Shape) -> list[float] | None:
    """Scale of every axis; None if the scales are known only at run time. Scales of the operator are for the axes
    `places`; the other axes have the scale 1. If the operator has no scales, the scales follow from the sizes. Raises
    InputError for a wrong number of scales.
    """
    by_size = [after / before for before, after in zip(source, result, strict=True)]
    stated: list[float] | None = _floats(op, "scales") or None
    # Before operator set 11, input 1 has the scales. Since then, input 1 is the region, input 2 has the scales and
    # input 3 the sizes.
    scales_input = 1 if op.node.proto.op_type == "Upsample" or op.opset <= _ASYMMETRIC_UNTIL else 2
    if stated is None and op.has_input(scales_input) and op.input_shape(scales_input) != (0,):
        values = op.values(scales_input)
        if values is None:
            return None
        stated = [float(value) for value in values.reshape(-1)]
    if stated:
        if len(stated) != len(places):
            raise op.node.error("wrong number of scales", str(len(stated)), str(len(places)))
        given = dict(zip(places, stated, strict=True))
        return [given.get(axis, 1.0) for axis in range(len(source))]
    if scales_input == 2 and op.has_input(3) and op.values(3) is None:
        return None
    choose = _KEEP_ASPECT_RATIO.get(op.node.text("keep_aspect_ratio_policy", "stretch"))
    values = op.values(3)
    if choose is None or values is None:
        return by_size
    common = choose(int(size) / source[place] for place, size in zip(places, values.reshape(-1), strict=True))
    return [common if axis in places else 1.0 for axis in range(len(source))]


def _is_unchanged(axis: ResizedAxis) -> bool:
    return axis.in_size == axis.out_size and abs(axis.scale - 1) < 1e-9 and axis.region == (0.0, 1.0)


def _tap_name(name: str) -> str:
    return "F" + (name[1:] if name[0] in "OD" and len(name) > 1 else name)


def _form(name: str, axis: ResizedAxis, taps: Taps | None) -> _AxisForm | None:
    """Affine form of the taps of an axis; None if the taps are not affine in loops. Three kinds of axes have an affine
    form: an unchanged axis (`taps` is None), an axis in which all elements are repeated equally often, and an axis that
    is read in windows with a constant integer step. `name` is the name of the loop over the axis.
    """
    out, count = axis.out_size, axis.in_size
    if taps is None:
        return _AxisForm(((name, out),), (), loop(name), loop(name))
    places, width = np.arange(out), taps.shape[1]
    if width == 1 and out % count == 0 and (taps[:, 0] == places // (out // count)).all():
        inner = f"R{name}"
        loops = ((name, count), (inner, out // count))
        return _AxisForm(loops, (), affine((name, out // count), (inner, 1)), loop(name))
    full = np.flatnonzero((taps != NOWHERE).all(axis=1))
    if not len(full):
        return None
    first = int(full[0])
    step = int(taps[first + 1, 0] - taps[first, 0]) if first + 1 < out and taps[first + 1, 0] != NOWHERE else 1
    expected = step * (places[:, None] - first) + taps[first, 0] + np.arange(width)
    expected = np.where((expected < 0) | (expected >= count), NOWHERE, expected)
    if not (np.sort(expected, axis=1) == np.sort(taps, axis=1)).all():
        return None
    window = _tap_name(name)
    offset = int(taps[first, 0]) - step * first
    return _AxisForm(((name, out),), ((window, width),), loop(name), affine((name, step), (window, 1), offset=offset))


def _affine_nest(op: Lowering, forms: Sequence[_AxisForm]) -> None:
    loops = [own for form in forms for own in form.output_loops] + [own for form in forms for own in form.tap_loops]
    output = TensorAccess(op.output(), tuple(form.output for form in forms))
    op.nest(loops, output, {"I": TensorAccess(op.input(), tuple(form.input for form in forms))})


def _gathered(op: Lowering, tables: Sequence[Taps | None], written: str = "", part: str = "") -> None:
    """Add the moves that gather the taps (input positions that an output position reads) along one axis after another.
    Then add the nest that sums the taps into the output, or into the tensor `written`.
    """
    result, source = op.output_shape(), op.input()
    loops = list(element_loops(result))
    taps = [(number, table) for number, table in enumerate(tables) if table is not None]
    for step, (axis, table) in enumerate(taps):
        shape = list(op.shape(source))
        place = axis + step  # an axis that is gathered becomes two: position, tap
        shape[place : place + 1] = table.shape
        gathered = op.temporary(f"taps{axis}", tuple(shape), op.input())
        op.move(*_tap_maps(op, gathered, source, place, table), part=f"taps{axis}")
        source = gathered
    read: list[AxisIndex | str] = []
    costed: list[AxisIndex | str] = []
    for axis, (name, _) in enumerate(tuple(loops)):
        read.append(name)
        costed.append(name)
        if (own := tables[axis]) is not None:
            loops.append((_tap_name(name), own.shape[1]))
            read.append(_tap_name(name))
            costed.append(AxisIndex())
    output = access(written or op.output(), *(name for name, _ in loops[: len(result)]))
    op.nest(loops, output, {"I": access(source, *read)}, costed={"I": access(source, *costed)}, part=part)


def _tap_maps(op: Lowering, gathered: str, source: str, place: int, table: Taps) -> list[IndexMap]:
    """Maps that gather the taps of the tensor `source` along axis `place` in the tensor `gathered`. In `gathered`, this
    axis becomes two axes: output position, tap. `table` has the input position of each tap.

    Usually, the maps are exact. If more than `_MOST_PIECES` maps are needed, or if `table` has only NOWHERE because the
    taps are not known, the result is one inexact map. In this map, every tap depends on the whole axis.
    """
    shape = op.shape(source)
    others = [(f"D{axis}", size) for axis, size in enumerate(shape) if axis != place]
    outer = [loop(name) for name, _ in others]

    def one_map(own: Loops, position: AxisIndex, tap: AxisIndex, read: AxisIndex, is_exact: bool) -> IndexMap:
        written = TensorAccess(gathered, (*outer[:place], position, tap, *outer[place:]))
        return IndexMap(
            (*others, *own), written, TensorAccess(source, (*outer[:place], read, *outer[place:])), is_exact=is_exact
        )

    try:
        pieces = [(tap, piece) for tap in range(table.shape[1]) for piece in axis_pieces(table[:, tap])]
    except TooManyPiecesError:
        pieces = None
    if pieces is None or len(pieces) > _MOST_PIECES:
        op.approximated("a resize by a factor that is not a simple fraction: outputs can depend on a whole axis")
    if not pieces or len(pieces) > _MOST_PIECES:
        whole = (("P", table.shape[0]), ("T", table.shape[1]), ("S", shape[place]))
        return [one_map(whole, loop("P"), loop("T"), loop("S"), False)]
    maps = []
    for tap, piece in pieces:
        names = [f"P{number}" for number in range(len(piece.loops))]
        own = tuple((name, size) for name, (size, _, _) in zip(names, piece.loops, strict=True))
        moved = list(zip(names, piece.loops, strict=True))
        position = affine(*((name, output) for name, (_, output, _) in moved), offset=piece.output_start)
        read = affine(*((name, step) for name, (_, _, step) in moved), offset=piece.input_start)
        maps.append(one_map(own, position, AxisIndex((), tap), read, True))
    return maps


def _superset(op: Lowering, rules: ResizeRules) -> None:
    """Add the nest for a resize whose scales or region are known only at run time. Each output element is assumed to
    depend on all input elements along every axis that can be resized."""
    source, result = op.input_shape(), op.output_shape()
    by_size = [ResizedAxis(before, after, after / before) for before, after in zip(source, result, strict=True)]
    is_region = rules.coordinates == "tf_crop_and_resize"
    unknown = [
        None
        if axis.in_size == axis.out_size and not is_region
        else np.full((axis.out_size, tap_count(rules, axis)), -1)
        for axis in by_size
    ]
    op.approximated("the scales or the region of a resize are known only at run time: outputs can depend on whole axes")
    resized = op.temporary("resized", result, op.output())
    _gathered(op, unknown, resized, "resized")
    computed = [op.input(index) for index in range(1, len(op.node.inputs)) if op.has_input(index)]
    rules_read = [name for name in computed if not op.is_constant(name)]
    op.move(
        identity_map(op.output(), resized, result),
        *(whole_map(op.output(), result, name, op.shape(name)) for name in rules_read),
    )


_TAPS_OF_AN_AXIS = {"nearest": 1, "linear": 2, "bilinear": 2, "cubic": 4, "bicubic": 4}


@lowers("GridSample")
@lowers("GridSample", domain="com.microsoft")
def lower_grid_sample(op: Lowering) -> None:
    """Sampling of an image at positions that are known only at run time. Each output element is computed from 1 sample
    for `nearest`, 2^d samples for `linear`, or 4^d samples for `cubic`, with d spatial axes. The nest counts one
    operation per sample.
    """
    result, source = op.output_shape(), op.input_shape()
    mode = op.node.text("mode", "linear")
    if mode not in _TAPS_OF_AN_AXIS:
        raise op.node.error("wrong attribute 'mode'", mode, ", ".join(_TAPS_OF_AN_AXIS))
    count = _TAPS_OF_AN_AXIS[mode] ** (len(result) - 2)
    samples = op.temporary("samples", (*result, count), op.input())
    loops: Loops = (*element_loops(result), ("F", count))
    names = [name for name, _ in loops]
    gathered = access(samples, *names)
    image = tuple((f"I{name}", size) for name, size in zip(names[2:], source[2:], strict=False))
    pixels = access(op.input(), *names[:2], *(name for name, _ in image))
    grid = access(op.input(1), names[0], *names[2:-1], "AXIS")
    op.move(
        IndexMap((*loops, *image), gathered, pixels, is_exact=False),
        IndexMap((*loops, ("AXIS", len(result) - 2)), gathered, grid, is_exact=False),
        part="samples",
    )
    op.nest(loops, access(op.output(), *names[:-1]), {"I": gathered})
    op.approximated(
        "the elements that GridSample reads are known only at run time: a result can depend on its whole channel"
    )


@lowers("AffineGrid")
def lower_affine_grid(op: Lowering) -> None:
    """Grid of sampling positions. Each coordinate of the grid is a sum of products: a coefficient times a coordinate of
    the output position. The nest counts one operation per product.

    A product with a coordinate 0 has no effect on the result. The dependences are therefore a superset of the true
    dependences.
    """
    batch, rows, columns = op.input_shape()
    result = op.output_shape()
    spatial = [f"O{axis}" for axis in range(len(result) - 2)]
    loops = [("B", batch), *zip(spatial, result[1:-1], strict=True), ("K", rows), ("C", columns)]
    output = access(op.output(), "B", *spatial, "K")
    op.nest(loops, output, {"I": access(op.input(), "B", "K", "C")}, is_exact=False)
