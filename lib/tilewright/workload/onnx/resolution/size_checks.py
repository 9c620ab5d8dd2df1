"""Checks of tensor sizes and rank before onnx's shape inference, whose 64-bit integers could overflow."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
import onnx

from tilewright.base.errors import InputError, Problem
from tilewright.workload.onnx.node import Shape
from tilewright.workload.onnx.resolution.evaluation import Values

LARGEST_SIZE = 2**31 - 1
"""Largest size of one dimension. onnx computes some sizes in 32 bits."""


LARGEST_TENSOR = 2**40
"""Largest number of elements of one tensor."""


LARGEST_RANK = 32
"""Largest rank of a tensor. numpy supports no larger rank."""


_LARGEST_VALUE = 2**36
"""Largest absolute value of an element in an input that gives sizes, such as the target shape of a Reshape. This limit
exceeds LARGEST_SIZE, because such a value need not be the size of a dimension. For example, the limit of a Range can
exceed the number of its elements."""


_SHAPE_INPUTS_TEXT = (
    "CenterCropPad Col2Im ConstantOfShape Expand OneHot Pad Range Reshape Resize Split Tile TopK Upsample"
)


_SHAPE_INPUTS = frozenset(_SHAPE_INPUTS_TEXT.split())


def check_values(
    name: str, node: onnx.NodeProto, types: Mapping[str, onnx.TypeProto], values: Mapping[str, Values]
) -> None:
    """Check the values of inputs that give sizes, such as a target shape. Raises InputError for a value that is too
    large or makes the result too large, for a Range with step 0, and for a scale that is not above 0."""
    if node.op_type not in _SHAPE_INPUTS:
        return
    for index, key in enumerate(node.input):
        if key not in values or (index == 0 and node.op_type not in ("ConstantOfShape", "Range")):
            continue
        value = values[key]
        if value.dtype.kind in "iuf" and value.size and not _is_bounded(value):
            message = f"input {index} of {node.op_type} is out of range"
            raise InputError([Problem(message, path=name, value=_shown(value), allowed=f"up to {_LARGEST_VALUE}")])
    if node.op_type == "Tile" and len(node.input) == 2 and node.input[1] in values:
        _check_products(name, node, types, values[node.input[1]])
    if node.op_type == "Range" and len(node.input) == 3 and node.input[2] in values and not values[node.input[2]].all():
        raise InputError([Problem("Range has a step of zero", path=name)])
    if node.op_type in ("Resize", "Upsample"):
        for key in _scale_inputs(node):
            if key in values and values[key].dtype.kind == "f":
                if not (values[key] > 0).all():
                    raise InputError([Problem("scales must be positive", path=name, value=_shown(values[key]))])
                _check_products(name, node, types, values[key])


def _scale_inputs(node: onnx.NodeProto) -> Sequence[str]:
    """List with the name of the input that has the scales; [] if there is no such input.

    The scales are the second input. In a node with more than two inputs (operator set 11 or later), the second input is
    the region, and the third input has the scales.
    """
    return list(node.input[2:3] if len(node.input) > 2 else node.input[1:2])


def _is_bounded(value: Values) -> bool:
    return bool(np.all(np.isfinite(value)) and np.all(value <= _LARGEST_VALUE) and np.all(value >= -_LARGEST_VALUE))


def _shown(value: Values) -> str:
    text = str(value.ravel()[:8].tolist())
    return text if value.size <= 8 else f"{text[:-1]}, ...]"


def _check_products(name: str, node: onnx.NodeProto, types: Mapping[str, onnx.TypeProto], factors: Values) -> None:
    shape = types[node.input[0]].tensor_type.shape.dim
    for size, factor in zip(shape, factors.ravel().tolist(), strict=False):
        if abs(size.dim_value * factor) > LARGEST_SIZE:
            message = f"the result of {node.op_type} is too large"
            raise InputError([Problem(message, path=name, value=_shown(factors), allowed=f"up to {LARGEST_SIZE}")])


def size_problem(tensor: str, shape: Shape) -> Problem | None:
    """Problem of the shape of a tensor: too many dimensions, a negative size, a size above LARGEST_SIZE, or more
    elements than LARGEST_TENSOR. None if there is no problem.
    """
    if len(shape) > LARGEST_RANK:
        rank, limit = str(len(shape)), f"at most {LARGEST_RANK}"
        return Problem(f"tensor '{tensor}' has too many dimensions", value=rank, allowed=limit)
    if any(size < 0 for size in shape):
        return Problem(f"tensor '{tensor}' has a negative size", value=str(list(shape)))
    if max(shape, default=0) > LARGEST_SIZE:
        limit = f"at most {LARGEST_SIZE} along one dimension"
        return Problem(f"a dimension of tensor '{tensor}' is too large", value=str(list(shape)), allowed=limit)
    count = math.prod(size or 1 for size in shape)
    if count > LARGEST_TENSOR:
        value, limit = f"{list(shape)}, {count} elements", f"at most {LARGEST_TENSOR} elements"
        return Problem(f"tensor '{tensor}' is too large", value=value, allowed=limit)
    return None
