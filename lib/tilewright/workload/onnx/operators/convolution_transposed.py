"""ConvTranspose: every input element is multiplied by the whole filter, and results at the same position are summed.

Along an axis, input position i and tap f (a kernel index) write the output position `stride * i + dilation * f -
padding`. Results of two taps are summed only if their output positions have the same residue modulo the stride. The
operator therefore consists of several convolutions, one for each residue. The taps of one residue are f = r + period *
F. Here, r is the first tap of the residue (r < period), F is a loop over the taps, and period is stride / gcd(stride,
dilation). Consecutive residues with the same number of taps can share a loop nest.

The loop along an axis goes over output positions on three conditions: the output is stride times as long as the input,
a residue has several taps, and there are not too many residues or nests. The input is then a sliding window. Otherwise,
the loop goes over input positions. The number of multiply-accumulates is the same in both cases: input elements times
taps. Results that the padding removes are counted too.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from tilewright.workload.access import AxisIndex, IndexMap, affine
from tilewright.workload.onnx.lowering import MAC_ARRAY, Lowering, access, lowers
from tilewright.workload.onnx.node import Shape
from tilewright.workload.onnx.operators.convolution import bias_access, spatial_names
from tilewright.workload.onnx.operators.matrix import declare_padding, split_axis
from tilewright.workload.onnx.products import ConvSizes

_MOST_NESTS = 16
_MOST_RESIDUES = 4096
"""Limit of the number of residues (output positions modulo the stride) of an axis. At or above this limit, residues are
not examined one by one, and the nests of the axis loop over input positions."""
_MOST_AXES = 3


@dataclass(frozen=True)
class _Axis:
    """Axis of a transposed convolution, restricted to the residues that one nest computes. The nest has three loops for
    the axis: O* (of size `length`), R* (of size `residues`) and F* (of size `taps`). The star is the letter of the
    axis.
    """

    letter: str
    length: int
    residues: int
    taps: int
    source: AxisIndex
    """Index of the input along this axis."""
    tap: AxisIndex
    """Index of the kernel along this axis."""
    partial: AxisIndex
    """Index of the partial result along this axis. The partial result is the tensor that the nest writes. For each
    residue that the nest computes, the partial result has `partial_length` output positions. It has no positions of
    other residues."""
    partial_length: int
    output: AxisIndex
    """Index of the output along this axis, over the loops P* (positions) and R* (residues)."""
    is_counted_by_input: bool = False
    """True if the loop O* goes over input positions and several taps write the same output position."""

    @property
    def loops(self) -> dict[str, int]:
        """Size of each loop."""
        return {f"O{self.letter}": self.length, f"R{self.letter}": self.residues, f"F{self.letter}": self.taps}

    @property
    def costed_partial(self) -> AxisIndex:
        """Index of the partial result along this axis in the cost model. The cost model has no outputs with a sliding
        window, so the index cannot depend on both O* and F*. The index depends on R* and on the longer of the loops O*
        and F*.
        """
        longer = "O" if self.length >= self.taps else "F"
        return affine((f"{longer}{self.letter}", self.residues), (f"R{self.letter}", 1))

    @property
    def costed_source(self) -> AxisIndex:
        """Index of the input along this axis in the cost model. `costed_partial` is the matching index of the partial
        result. The index of the input is O* - F*. If the loop F* is longer than the loop O*, the index of the input is
        O*.
        """
        if self.length < self.taps:
            return affine((f"O{self.letter}", 1))
        return affine((f"O{self.letter}", 1), (f"F{self.letter}", -1))


@lowers("ConvTranspose")
def lower_conv_transpose(op: Lowering) -> None:
    """Transposed convolution O[b][g,k][..] += I[b][g,c][..] * W[g,c][k][..], split by residues.

    The number of multiply-accumulates is input elements x output channels of a group x kernel elements. The bias costs
    nothing. Raises InputError if shapes do not fit together.
    """
    geometry = _geometry(op)
    axes = len(geometry.kernel)
    if axes > _MOST_AXES:
        op.unsupported(f"a transposed convolution over more than {_MOST_AXES} axes is not modelled")
        return
    parts = [_axis_parts(geometry, axis, exact=True) for axis in range(axes)]
    if math.prod(len(own) for own in parts) > _MOST_NESTS:
        parts = [_axis_parts(geometry, axis, exact=False) for axis in range(axes)]
    nests = list(product(*parts))
    whole = len(nests) == 1 and _is_whole(op, geometry, nests[0])
    maps = []
    for number, nest in enumerate(nests):
        shape = _partial_shape(geometry, nest)
        target = op.output() if whole else op.temporary(f"residues{number}", shape, op.output())
        _add_nest(op, geometry, nest, target, "" if whole else f"part{number}")
        maps += [] if whole else [_placing(op, geometry, nest, target)]
    if not whole:
        op.move(*maps, *_bias_map(op, geometry), part="interleave", operator_type="DepthToSpace")
    if any(part.is_counted_by_input for nest in nests for part in nest):
        op.approximated(
            "transposed convolution: results are counted per input position; further results at borders are left out"
        )


def _add_nest(op: Lowering, geometry: ConvSizes, parts: Sequence[_Axis], target: str, part: str) -> None:
    per_group = geometry.out_channels // geometry.groups
    channels = split_axis("G", per_group, "K")
    sources = split_axis("G", geometry.in_channels // geometry.groups, "C")
    loops = {"B": geometry.batch, "K": per_group, "G": geometry.groups}
    for axis in reversed(parts):
        loops |= {name: size for name, size in axis.loops.items() if name[0] != "F"}
    loops["C"] = geometry.in_channels // geometry.groups
    for axis in reversed(parts):
        loops |= {name: size for name, size in axis.loops.items() if name[0] == "F"}
    whole = target == op.output()
    costed = {}
    if any(axis.is_counted_by_input for axis in parts):
        by_input = [axis.is_counted_by_input for axis in parts]
        written = [axis.costed_partial if each else axis.partial for axis, each in zip(parts, by_input, strict=True)]
        read = [axis.costed_source if each else axis.source for axis, each in zip(parts, by_input, strict=True)]
        is_exchanged = op.is_constant(op.input()) and not op.is_constant(op.input(1))
        costed = {
            "O": access(target, "B", channels, *written),
            "W" if is_exchanged else "I": access(op.input(), "B", sources, *read),
        }
    op.nest(
        tuple(loops.items()),
        access(target, "B", channels, *(axis.partial for axis in parts)),
        {
            "W": access(op.input(1), sources, "K", *(axis.tap for axis in parts)),
            "I": access(op.input(), "B", sources, *(axis.source for axis in parts)),
        },
        others=[bias_access(op, 2, channels, geometry.out_channels)] if whole and op.has_input(2) else (),
        unit=MAC_ARRAY,
        part=part,
        costed=costed or None,
    )
    declare_padding(op, op.input(), op.input(1))


def _axis_parts(geometry: ConvSizes, axis: int, *, exact: bool) -> list[_Axis]:
    """Parts of one axis. Each nest computes one part of every axis.

    A residue is a set of output positions that are equal modulo the stride. A part is a range of consecutive residues
    with the same number of taps (kernel elements). If the loop of the nest goes over output positions, a part meets a
    further condition. The first output position of a residue reads an input position through the first tap of the
    residue. This input position is the same for all residues of the part. If `exact` is false, all loops go over input
    positions.
    """
    stride, dilation, kernel = geometry.strides[axis], geometry.dilations[axis], geometry.kernel[axis]
    period = stride // math.gcd(stride, dilation)
    letter = spatial_names(len(geometry.kernel))[axis]
    by_output = exact and period < min(kernel, _MOST_RESIDUES)
    by_output &= geometry.out_size[axis] == stride * geometry.in_size[axis]
    many, residue = divmod(kernel, period)
    runs = [(0, residue, many + 1, 0), (residue, min(period, kernel) - residue, many, 0)]
    if by_output:
        runs = [
            (first + start, residues, taps, shift)
            for first, count, taps, _ in runs
            for start, residues, shift in _runs_of_shift(geometry, axis, range(first, first + count))
        ]
    return [_axis_part(geometry, axis, letter, run, by_output) for run in runs if run[1] and run[2]]


def _runs_of_shift(geometry: ConvSizes, axis: int, taps: range) -> list[tuple[int, int, int]]:
    """Groups of consecutive residues that share an input position: the first output position of each residue reads this
    input position through the first tap of the residue.

    A residue is a set of output positions that are equal modulo the stride. Its first output position is the lowest
    one, which is below the stride. `taps` has the first tap (index of the kernel) of each residue. A group is a tuple
    (index in `taps` of its first residue, number of residues, input position).
    """
    stride, dilation, before = geometry.strides[axis], geometry.dilations[axis], geometry.pads_before[axis]
    runs: list[tuple[int, int, int]] = []
    for place, first in enumerate(taps):
        shift = -((dilation * first - before) // stride)
        if runs and runs[-1][2] == shift:
            runs[-1] = (runs[-1][0], runs[-1][1] + 1, shift)
        else:
            runs.append((place, 1, shift))
    return runs


def _axis_part(geometry: ConvSizes, axis: int, letter: str, run: tuple[int, int, int, int], by_output: bool) -> _Axis:
    """Part of one axis that one nest computes. `run` is a tuple (first, residues, taps, shift).

    A residue is a set of output positions that are equal modulo the stride. The number of a residue is r, the index of
    its first tap in the kernel. Its taps are r + period * F, with period = stride / gcd(stride, dilation).

    The part has the residues from `first` to `first + residues - 1`, and each residue has `taps` taps. If `by_output`
    is true, the loop O* goes over output positions. The first output position of each residue then reads input position
    `shift` through its first tap. If `by_output` is false, the loop O* goes over input positions, and `shift` is not
    used.
    """
    first, residues, taps, shift = run
    stride, dilation, length = geometry.strides[axis], geometry.dilations[axis], geometry.in_size[axis]
    period = stride // math.gcd(stride, dilation)
    step = dilation * period // stride
    position, residue, tap = f"O{letter}", f"R{letter}", f"F{letter}"
    offset = dilation * first - geometry.pads_before[axis]
    taps_index = affine((residue, 1), (tap, period), offset=first)
    if by_output:
        return _Axis(
            letter=letter,
            length=length,
            residues=residues,
            taps=taps,
            source=affine((position, 1), (tap, -step), offset=shift),
            tap=taps_index,
            partial=affine((position, residues), (residue, 1)),
            partial_length=length,
            output=affine((f"P{letter}", stride), (residue, dilation), offset=offset + stride * shift),
        )
    return _Axis(
        letter=letter,
        length=length,
        residues=residues,
        taps=taps,
        source=affine((position, 1)),
        tap=taps_index,
        partial=affine((position, residues), (tap, residues * step), (residue, 1)),
        partial_length=length + step * (taps - 1),
        output=affine((f"P{letter}", stride), (residue, dilation), offset=offset),
        is_counted_by_input=taps > 1,
    )


def _partial_shape(geometry: ConvSizes, parts: Sequence[_Axis]) -> Shape:
    return (geometry.batch, geometry.out_channels, *(axis.partial_length * axis.residues for axis in parts))


def _is_whole(op: Lowering, geometry: ConvSizes, parts: Sequence[_Axis]) -> bool:
    """True if the results of the nest are the output itself, with each element at its position, so that no move is
    needed. The caller checks that the operator has only this nest.
    """
    same_shape = _partial_shape(geometry, parts) == op.output_shape()
    return same_shape and all(
        axis.output.offset == 0
        and (axis.residues == 1 or geometry.dilations[place] == 1)
        and geometry.strides[place] == axis.residues
        for place, axis in enumerate(parts)
    )


def _placing(op: Lowering, geometry: ConvSizes, parts: Sequence[_Axis], partial: str) -> IndexMap:
    """Map of the results of one nest to their positions in the output. Results outside the output are cropped."""
    loops = [("B", geometry.batch), ("K", geometry.out_channels)]
    for axis in parts:
        loops += [(f"P{axis.letter}", axis.partial_length), (f"R{axis.letter}", axis.residues)]
    read = (affine((f"P{axis.letter}", axis.residues), (f"R{axis.letter}", 1)) for axis in parts)
    output = access(op.output(), "B", "K", *(axis.output for axis in parts))
    return IndexMap(tuple(loops), output, access(partial, "B", "K", *read))


def _bias_map(op: Lowering, geometry: ConvSizes) -> list[IndexMap]:
    if not op.has_input(2):
        return []
    names = [f"O{letter}" for letter in spatial_names(len(geometry.kernel))]
    loops = (("B", geometry.batch), ("K", geometry.out_channels), *zip(names, geometry.out_size, strict=True))
    bias = bias_access(op, 2, affine(("K", 1)), geometry.out_channels)
    return [IndexMap(loops, access(op.output(), "B", "K", *names), bias)]


def _geometry(op: Lowering) -> ConvSizes:
    data, weights, out = op.input_shape(), op.input_shape(1), op.output_shape()
    axes = len(data) - 2
    if axes < 1 or len(weights) != len(data) or len(out) != len(data):
        raise op.node.error(
            "wrong ranks of input, weights and output", f"{len(data)}, {len(weights)}, {len(out)}", "equal"
        )
    groups = op.node.integer("group", 1)
    strides, dilations, kernel = (
        op.node.positive_integers(name, default, axes)
        for name, default in (("strides", (1,) * axes), ("dilations", (1,) * axes), ("kernel_shape", weights[2:]))
    )
    if kernel != weights[2:]:
        raise op.node.error("wrong attribute 'kernel_shape'", str(list(kernel)), str(list(weights[2:])))
    if groups < 1 or data[1] % groups or weights[0] != data[1] or out[1] != weights[1] * groups:
        channels = f"group {groups}, input {data[1]}, weights {list(weights[:2])}, output {out[1]}"
        raise op.node.error("channels do not fit", channels)
    if out[0] != data[0] or min(*data, *weights, *out) < 1:
        raise op.node.error(
            "a tensor of this convolution is empty, or input and output have different batches",
            f"{list(data)}, {list(out)}",
        )
    pads = _pads_before(op, data[2:], out[2:], kernel, strides, dilations)
    return ConvSizes(data[0], groups, data[1], out[1], data[2:], out[2:], kernel, strides, dilations, pads)


def _pads_before(
    op: Lowering, in_size: Shape, out_size: Shape, kernel: Shape, strides: Shape, dilations: Shape
) -> Shape:
    """Padding at the start of each spatial axis, in elements. The padding comes from the attribute `pads`. With an
    automatic padding mode or a given output shape, the padding follows from the number of elements by which the
    unpadded result exceeds `out_size`.

    Raises InputError if an attribute has the wrong length.
    """
    axes = len(in_size)
    mode = op.node.text("auto_pad", "NOTSET")
    given = op.node.integers("pads", ())
    if mode == "VALID":
        return (0,) * axes
    if mode == "NOTSET" and not op.node.has("output_shape"):
        if given and len(given) != 2 * axes:
            raise op.node.error("wrong attribute 'pads'", str(list(given)), f"{2 * axes} integers")
        return given[:axes] or (0,) * axes
    extra = op.node.integers("output_padding", (0,) * axes)
    if len(extra) != axes:
        raise op.node.error("wrong attribute 'output_padding'", str(list(extra)), f"{axes} integers")
    before = []
    for size, out, taps, stride, dilation, added in zip(
        in_size, out_size, kernel, strides, dilations, extra, strict=True
    ):
        total = max(stride * (size - 1) + added + (taps - 1) * dilation + 1 - out, 0)
        before.append(total // 2 if mode == "SAME_UPPER" else total - total // 2)
    return tuple(before)
