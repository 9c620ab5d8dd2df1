"""A model of the same function, from operators that onnx's reference evaluator computes rightly."""

from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper


def evaluable(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model without groups in ConvTranspose and without padding in MaxPool; its tensors keep their names."""
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    nodes = []
    for number, node in enumerate(changed.graph.node):
        attributes = {item.name: helper.get_attribute_value(item) for item in node.attribute}
        if node.op_type == "ConvTranspose" and attributes.get("group", 1) > 1 and len(node.input) == 2:
            nodes += _one_per_group(node, number, attributes)
        elif node.op_type == "MaxPool" and any(attributes.get("pads", ())) and not attributes.get("ceil_mode", 0):
            nodes += _padded_before(node, number, attributes, changed.graph)
        else:
            nodes.append(node)
    del changed.graph.node[:]
    changed.graph.node.extend(nodes)
    return changed


def _one_per_group(node: onnx.NodeProto, number: int, attributes: dict[str, Any]) -> list[onnx.NodeProto]:
    groups = attributes.pop("group")
    data, weights, results = ([f"{part}{number}_{group}" for group in range(groups)] for part in "dwr")
    split = [
        helper.make_node("Split", [node.input[0]], data, axis=1, num_outputs=groups),
        helper.make_node("Split", [node.input[1]], weights, axis=0, num_outputs=groups),
    ]
    own = [
        helper.make_node("ConvTranspose", list(operands), [result], **attributes)
        for *operands, result in zip(data, weights, results, strict=True)
    ]
    return [*split, *own, helper.make_node("Concat", results, [node.output[0]], axis=1)]


def _padded_before(
    node: onnx.NodeProto, number: int, attributes: dict[str, Any], graph: onnx.GraphProto
) -> list[onnx.NodeProto]:
    pads = attributes.pop("pads")
    half = len(pads) // 2
    amounts = np.array([0, 0, *pads[:half], 0, 0, *pads[half:]], dtype=np.int64)
    names = [f"{part}{number}" for part in ("amounts", "lowest", "padded")]
    graph.initializer.append(numpy_helper.from_array(amounts, names[0]))
    graph.initializer.append(numpy_helper.from_array(np.array(-np.inf, dtype=np.float32), names[1]))
    pad = helper.make_node("Pad", [node.input[0], *names[:2]], [names[2]])
    return [pad, helper.make_node("MaxPool", [names[2]], list(node.output), **attributes)]
