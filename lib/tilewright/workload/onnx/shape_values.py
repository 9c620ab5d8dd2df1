"""Small integer tensors that a graph computes from shapes, for models that reshape by their own input's shape.

The shape inference of onnx follows such values through some operators only. Where it stops, the values are computed
here, operator by operator, from shapes that are already known.
"""

import math

import numpy as np
import onnx
from onnx import numpy_helper

from tilewright.workload.onnx.node import STANDARD_DOMAINS, Shape

_LARGEST = 1024
"""Tensors of more elements are data, not shapes."""
_FOLLOWED_TEXT = """
    Abs Add And Cast Ceil Concat Constant ConstantOfShape Div Equal Expand Floor Gather Greater Identity Less Max Min
    Mod Mul Neg Not Range ReduceMax ReduceMin ReduceProd ReduceSum Reshape Shape Size Slice Split Squeeze Sub Tile
    Transpose Unsqueeze Where
"""
_FOLLOWED = frozenset(_FOLLOWED_TEXT.split())


def fold_shape_values(model: onnx.ModelProto, shapes: dict[str, Shape]) -> int:
    """Replace the operators of `model` whose small results follow from `shapes` by constants; returns how many."""
    values = {tensor.name: value for tensor in model.graph.initializer if (value := _small_value(tensor)) is not None}
    opsets = {opset.domain: opset.version for opset in model.opset_import}
    kept, folded = [], 0
    for node in model.graph.node:
        results = _results(node, values, shapes, opsets)
        if results is None:
            kept.append(node)
            continue
        values.update(results)
        model.graph.initializer.extend(numpy_helper.from_array(value, name) for name, value in results.items())
        folded += node.op_type != "Constant"
    nodes = [onnx.NodeProto.FromString(node.SerializeToString()) for node in kept]
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    return folded


def _small_value(tensor: onnx.TensorProto) -> np.ndarray | None:
    if tensor.data_location == onnx.TensorProto.EXTERNAL or math.prod(tensor.dims) > _LARGEST:
        return None
    try:
        return np.asarray(numpy_helper.to_array(tensor))
    except (ValueError, TypeError):
        return None


def _results(
    node: onnx.NodeProto, values: dict[str, np.ndarray], shapes: dict[str, Shape], opsets: dict[str, int]
) -> dict[str, np.ndarray] | None:
    """The outputs of one operator, or None if they do not follow from what is known."""
    if node.domain not in STANDARD_DOMAINS or node.op_type not in _FOLLOWED:
        return None
    tensors = [attribute.t for attribute in node.attribute if attribute.name == "value"]
    if node.op_type == "Constant" and tensors and _small_value(tensors[0]) is None:
        return None
    if node.op_type in ("Shape", "Size") and node.input and node.input[0] in shapes:
        given = {node.input[0]: np.broadcast_to(np.float32(0), shapes[node.input[0]])}
    else:
        given = {name: values[name] for name in node.input if name in values}
    if any(name and name not in given for name in node.input):
        return None
    if any(math.prod(shapes[name]) > _LARGEST for name in node.output if name in shapes):
        return None
    # Imported here because it takes longer than reading a network, and few networks need it.
    from onnx.reference import ReferenceEvaluator

    try:
        outputs = ReferenceEvaluator(node, opsets=opsets).run(None, given)
    except Exception:
        return None
    results = dict(zip(node.output, (np.asarray(output) for output in outputs), strict=False))
    return results if all(value.size <= _LARGEST for value in results.values()) else None
