"""Sampling at places that are computed at run time, on the vector unit."""

from tilewright.workload.access import IndexMap
from tilewright.workload.onnx.lowering import Lowering, access, lowers
from tilewright.workload.onnx.operators.elementwise_parts import Loops, element_loops

_TAPS_OF_AN_AXIS = {"nearest": 1, "linear": 2, "bilinear": 2, "cubic": 4, "bicubic": 4}


@lowers("GridSample")
@lowers("GridSample", domain="com.microsoft")
def lower_grid_sample(op: Lowering) -> None:
    """Samples at computed places, then one operation for each: 1 for `nearest`, 2 an axis for `linear`, 4 for cubic."""
    result, source = op.output_shape(), op.input_shape()
    mode = op.node.text("mode", "linear")
    if mode not in _TAPS_OF_AN_AXIS:
        raise op.node.error("attribute 'mode'", mode, ", ".join(_TAPS_OF_AN_AXIS))
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
    op.approximated("which elements GridSample reads is known at run time only: it may depend on all of the channel")


@lowers("AffineGrid")
def lower_affine_grid(op: Lowering) -> None:
    """One operation for every coefficient of every coordinate. Where a coordinate of the grid is 0 its coefficient does
    not matter, so the dependencies are a superset.
    """
    batch, rows, columns = op.input_shape()
    result = op.output_shape()
    spatial = [f"O{axis}" for axis in range(len(result) - 2)]
    loops = [("B", batch), *zip(spatial, result[1:-1], strict=True), ("K", rows), ("C", columns)]
    output = access(op.output(), "B", *spatial, "K")
    op.nest(loops, output, {"I": access(op.input(), "B", "K", "C")}, is_exact=False)
