"""Small constants of a graph: their values, and the operators that compute such values from other constants.

Exporters write operators that compute the target of a reshape, the axes of a slice or the scales of a resize. This
module computes such values, because all sizes of the network are known. Values of weights are not kept, because weights
are too large.
"""

import math
import warnings
from collections.abc import Mapping, Sequence

import numpy as np
import onnx
from onnx import numpy_helper

from tilewright.workload.onnx.node import Shape

Values = np.ndarray

LARGEST_VALUES = 4096
"""Largest number of elements of a constant whose values are kept. This is enough for shapes, axes, scales, repeats,
sizes and pads."""
LARGEST_INDICES = 65536
"""Largest number of elements of a constant whose values are kept, if its type is one of `_INTEGERS`. This limit exceeds
LARGEST_VALUES, because integers can be the indices of a gather."""

_INTEGERS = frozenset({onnx.TensorProto.INT32, onnx.TensorProto.INT64, onnx.TensorProto.BOOL})
_EVALUATED_TEXT = """
    Abs Add And ArgMax ArgMin Cast CastLike Ceil Clip Compress Concat ConstantOfShape Cos CumSum DequantizeLinear Div
    Equal Exp Expand EyeLike Flatten Floor Gather GatherElements GatherND Greater GreaterOrEqual Identity IsInf IsNaN
    Less LessOrEqual Log Max Min Mod Mul Neg NonZero Not OneHot Or Pad Pow QuantizeLinear Range Reciprocal ReduceMax
    ReduceMean ReduceMin ReduceProd ReduceSum Reshape Round ScatterElements ScatterND Sign Sin Slice Split Sqrt Squeeze
    Sub Sum Tile TopK Transpose Trilu Unique Unsqueeze Where Xor
"""
EVALUATED = frozenset(_EVALUATED_TEXT.split())
"""Operators that `evaluate` computes for small constants, because networks compute shapes with these operators. A
result that could be large is not computed."""
_BOUNDED_BY_INPUT = frozenset({"NonZero", "Compress", "Unique", "TopK"})
"""Operators whose result has at most N x R elements: N is the number of elements of the input, R is its rank."""


def keeps_values(shape: Shape, element_type: int) -> bool:
    """True if a constant of this shape and element type is small enough to keep its values."""
    return math.prod(shape) <= (LARGEST_INDICES if element_type in _INTEGERS else LARGEST_VALUES)


def tensor_values(tensor: onnx.TensorProto) -> Values | None:
    """Values of a small tensor; None for a large tensor, for text, and for bytes that are missing, damaged or in other
    files.

    Missing bytes are no error, because files without weights are normal. Bytes that do not fit the sizes are no error
    either.
    """
    if tensor.data_location == onnx.TensorProto.EXTERNAL or not keeps_values(tuple(tensor.dims), tensor.data_type):
        return None
    if tensor.data_type in (onnx.TensorProto.STRING, onnx.TensorProto.UNDEFINED) or any(d < 0 for d in tensor.dims):
        return None
    try:
        values = np.asarray(numpy_helper.to_array(tensor))
    except Exception:  # the type of the exception depends on the damage
        return None
    return values if values.shape == tuple(tensor.dims) else None


def constant_tensor(node: onnx.NodeProto) -> onnx.TensorProto | None:
    """Tensor that a Constant holds; None if the Constant does not hold a tensor of numbers.

    The shape and the element type of the result are always valid; its bytes can be missing.
    """
    for attribute in node.attribute:
        if attribute.name == "value" and attribute.type == onnx.AttributeProto.TENSOR:
            tensor: onnx.TensorProto = attribute.t
            return tensor
        if attribute.name == "sparse_value" and attribute.type == onnx.AttributeProto.SPARSE_TENSOR:
            sparse = attribute.sparse_tensor
            return onnx.TensorProto(data_type=sparse.values.data_type, dims=sparse.dims)
        if attribute.name in _PLAIN:
            dtype, field = _PLAIN[attribute.name]
            return numpy_helper.from_array(np.asarray(getattr(attribute, field), dtype=dtype))
        if attribute.name in ("value_string", "value_strings"):
            count = [] if attribute.name == "value_string" else [len(attribute.strings)]
            return onnx.TensorProto(data_type=onnx.TensorProto.STRING, dims=count)
    return None


_PLAIN = {
    "value_int": (np.int64, "i"),
    "value_ints": (np.int64, "ints"),
    "value_float": (np.float32, "f"),
    "value_floats": (np.float32, "floats"),
}


def shape_values(node: onnx.NodeProto, shape: Shape) -> Values:
    """Result of the operator Shape or Size for a tensor of `shape`."""
    if node.op_type == "Size":
        return np.asarray(math.prod(shape), dtype=np.int64)
    ends = {attribute.name: attribute.i for attribute in node.attribute}
    return np.asarray(shape[ends.get("start", 0) : ends.get("end", len(shape))], dtype=np.int64)


def evaluate(
    node: onnx.NodeProto,
    inputs: Mapping[str, Values],
    shapes: Sequence[Shape | None],
    opsets: Mapping[str, int],
) -> tuple[Values, ...] | None:
    """Outputs of a standard operator on small constants; None if the outputs are large or cannot be computed.

    `shapes` are the inferred shapes of the outputs, with None for unknown shapes. A result that could be large is not
    computed.
    """
    if node.op_type not in EVALUATED or any(name and name not in inputs for name in node.input):
        return None
    if not _is_small(node, inputs, shapes):
        return None
    results = _evaluated_directly(node, inputs)
    return results if results is not None else _evaluated_by_reference(node, inputs, opsets)


def _is_small(node: onnx.NodeProto, inputs: Mapping[str, Values], shapes: Sequence[Shape | None]) -> bool:
    if node.op_type in _BOUNDED_BY_INPUT:
        return True
    if node.op_type == "Range":
        start, limit, delta = (np.asarray(inputs[name]).ravel() for name in node.input)
        if not all(values.size == 1 and np.isfinite(values[0]) for values in (start, limit, delta)) or not delta[0]:
            return False
        return bool((float(limit[0]) - float(start[0])) / float(delta[0]) <= LARGEST_INDICES)
    return all(shape is not None and math.prod(shape) <= LARGEST_INDICES for shape in shapes)


def _evaluated_directly(node: onnx.NodeProto, inputs: Mapping[str, Values]) -> tuple[Values, ...] | None:
    """Outputs of an operator that is frequent in computations of shapes. The evaluator of onnx could compute these
    outputs, too, but takes milliseconds for each operator. None for any other operator, and for inputs that numpy
    refuses.
    """
    attributes = {attribute.name: attribute for attribute in node.attribute}
    given = [inputs[name] for name in node.input if name]
    try:
        if node.op_type == "Gather" and len(given) == 2:
            axis = attributes["axis"].i if "axis" in attributes else 0
            return (np.asarray(np.take(given[0], given[1], axis=axis)),)
        if node.op_type == "Concat":
            return (np.concatenate(given, axis=attributes["axis"].i),)
        if node.op_type == "Identity":
            return (given[0],)
        if node.op_type in ("Squeeze", "Unsqueeze"):
            # Axes are an attribute before operator set 13; the evaluator of onnx fails on some of these.
            stated = attributes["axes"].ints if "axes" in attributes else given[1].tolist() if len(given) > 1 else None
            axes = None if stated is None else tuple(stated)
            if node.op_type == "Squeeze":
                return (np.squeeze(given[0], axes),)
            return None if axes is None else (np.expand_dims(given[0], axes),)
    except (IndexError, KeyError, TypeError, ValueError):
        return None
    return None


def _evaluated_by_reference(
    node: onnx.NodeProto, inputs: Mapping[str, Values], opsets: Mapping[str, int]
) -> tuple[Values, ...] | None:
    # Imported here because few networks need it.
    from onnx.reference import ReferenceEvaluator

    given = {name: inputs[name] for name in node.input if name}
    known: dict[str, int] = {"": min(opsets.get("", 1), onnx.defs.onnx_opset_version())}
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            outputs = ReferenceEvaluator(node, opsets=known).run(None, given)
    except Exception:  # the type of the exception depends on the operator and its inputs
        return None
    results = tuple(np.asarray(output) for output in outputs)
    fits = all(value.size <= LARGEST_INDICES and value.dtype != object for value in results)
    return results if fits and len(results) == len(node.output) else None
