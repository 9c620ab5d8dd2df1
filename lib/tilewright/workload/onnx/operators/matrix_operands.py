"""What convolutions and matrix products share: operands beside the product, and the precision of a given layer."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from tilewright.workload.access import AxisIndex, TensorAccess, affine, fixed, index_range, loop
from tilewright.workload.layer import FINAL_OUTPUT, OUTPUT, Layer
from tilewright.workload.onnx.lowering import Lowering
from tilewright.workload.onnx.precision import overridden_bits, partial_sum_bits

Axis = AxisIndex | str
"""An index along an axis; text is the loop of that name."""


def broadcast(op: Lowering, tensor: str, axes: Sequence[Axis], sizes: Mapping[str, int]) -> TensorAccess:
    """The access of a tensor that is broadcast to a result indexed by `axes`: aligned at the last, size 1 repeated.

    `sizes`: loop -> size. Raises InputError for a tensor that does not broadcast to the result.
    """
    shape, indices = op.shape(tensor), [as_index(axis) for axis in axes]
    lengths = [index_range(index, sizes)[1] + 1 for index in indices]
    start = len(axes) - len(shape)
    fits = start >= 0 and all(size in (1, full) for size, full in zip(shape, lengths[start:], strict=True))
    if not fits:
        raise op.node.error(f"shape of tensor '{tensor}'", str(list(shape)), f"one that is broadcast to {lengths}")
    aligned = zip(shape, indices[start:], strict=True)
    return TensorAccess(tensor, tuple(fixed() if size == 1 else index for size, index in aligned))


def as_index(axis: Axis) -> AxisIndex:
    """The index of an axis that may be given as the name of a loop."""
    return loop(axis) if isinstance(axis, str) else axis


def split_axis(outer: str, size: int, inner: str) -> AxisIndex:
    """The index `outer * size + inner`: channels of groups, features of heads."""
    return affine((outer, size), (inner, 1))


def scale_accesses(op: Lowering, inputs: Iterable[int], channel: Axis, channels: int) -> list[TensorAccess]:
    """Scales and zero points: one-element constants need no memory and are left out; one value a channel, or one.

    Raises InputError for another shape.
    """
    accesses = []
    for index in inputs:
        if not op.has_input(index):
            continue
        tensor, shape = op.input(index), op.input_shape(index)
        elements = [size for size in shape if size != 1]
        if elements not in ([], [channels]):
            raise op.node.error(f"shape of input {index}", str(list(shape)), f"one element, or {channels}")
        if elements or not op.is_constant(tensor):
            axes = tuple(fixed() if size == 1 else as_index(channel) for size in shape)
            accesses.append(TensorAccess(tensor, axes))
    return accesses


def constant_operands(op: Lowering, tensors: Mapping[str, str]) -> tuple[str, ...]:
    """The operands (of operand -> tensor) that are known before run time, W first."""
    return tuple(operand for operand in ("W", "I") if op.is_constant(tensors[operand]))


def with_tensor_precision(op: Lowering, layer: Layer, tensors: Mapping[str, str]) -> Layer:
    """The layer with the bits that its tensors (O, I, W -> tensor) have, or that attributes of the node state."""
    bits = {}
    for operand, name in tensors.items():
        tensor = op.tensor(name)
        stated = overridden_bits(op.node, is_weight=tensor.is_constant and operand != OUTPUT)
        bits[operand] = tensor.bits if stated is None else stated
    sums = partial_sum_bits(op.node, max(bits["W"], bits["I"]), bits[OUTPUT], True, op.policy)
    precision = (("W", bits["W"]), ("I", bits["I"]), (FINAL_OUTPUT, bits[OUTPUT]), (OUTPUT, sums))
    return replace(layer, precision_bits=precision)


def declare_superset(op: Lowering, *tensors: str) -> None:
    """Declare the last nest's dependencies on these tensors a superset, where they are computed at run time."""
    node = op.lowered[-1]
    changed = tuple(
        replace(index_map, is_exact=index_map.is_exact and index_map.input.tensor not in tensors)
        if not op.is_constant(index_map.input.tensor)
        else index_map
        for index_map in node.index_maps
    )
    op.lowered[-1] = replace(node, index_maps=changed)


def declare_padding(op: Lowering, data: str, weights: str) -> None:
    """Declare a superset of dependencies on weights that the last nest multiplies with padding: they have no effect."""
    shape = op.shape(data)
    for index_map in op.lowered[-1].index_maps:
        if index_map.input.tensor == data:
            ranges = (index_range(axis, index_map.size_of) for axis in index_map.input.axes)
            if any(low < 0 or high >= size for (low, high), size in zip(ranges, shape, strict=True)):
                declare_superset(op, weights)
                return
