"""Models made by code, and ways to damage a model."""

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
from google.protobuf.message import Message
from onnx import TensorProto, helper, numpy_helper

_INTEGERS = [0, 1, -1, 2, 3, 7, 8, 64, 4096, 2**20, 2**31 - 1, -(2**31), 2**31, 2**40, 2**62, 2**63 - 1, -(2**63)]
_TEXTS = ["", "x", "y", "w", "Conv", "If", "Loop", "Reshape", "NoSuchOperator", "\x00", "é" * 40, "a" * 5000]
_FLOATS = [0.0, -1.0, 1e38, -1e38, float("nan"), float("inf"), 1e-30, 2.0]
_OPERATORS = sorted({schema.name for schema in onnx.defs.get_all_schemas()})

node = helper.make_node


def mutated_bytes(content: bytes, draw: random.Random) -> bytes:
    """The bytes with some changed, removed, inserted or repeated, or cut off."""
    data = bytearray(content)
    for _ in range(draw.choice([1, 1, 2, 4, 16])):
        place = draw.randrange(len(data)) if data else 0
        kind = draw.randrange(5)
        if kind == 0 and data:
            data[place] = draw.randrange(256)
        elif kind == 1:
            del data[place : place + draw.choice([1, 2, 8, 100])]
        elif kind == 2:
            data[place:place] = bytes(draw.randrange(256) for _ in range(draw.choice([1, 2, 8])))
        elif kind == 3:
            data[place:place] = data[place : place + draw.choice([2, 16, 200])]
        elif draw.random() < 0.3:
            del data[place:]
    return bytes(data)


def mutated_message(message: Message, draw: random.Random) -> None:
    """Change one place inside the message: a value, or an element that is doubled, dropped or moved."""
    places = list(_places(message))
    if not places:
        return
    owner, field = draw.choice(places)
    if field.is_repeated:
        _mutate_list(getattr(owner, field.name), field, draw)
    elif field.message_type is not None:
        if draw.random() < 0.5:
            owner.ClearField(field.name)
        else:
            mutated_message(getattr(owner, field.name), draw)
    elif draw.random() < 0.1:
        owner.ClearField(field.name)
    else:
        setattr(owner, field.name, _value(field, getattr(owner, field.name), draw))


def _places(message: Message) -> Iterator[tuple[Message, Any]]:
    for field, value in message.ListFields():
        if field.name in ("doc_string", "producer_name", "producer_version"):
            continue
        yield message, field
        if field.message_type is not None:
            for inner in value if field.is_repeated else [value]:
                yield from _places(inner)


def _mutate_list(values: Any, field: Any, draw: random.Random) -> None:
    if not len(values):
        return
    index, kind = draw.randrange(len(values)), draw.randrange(4)
    if kind == 0:
        del values[index]
    elif field.message_type is not None:
        other = values[draw.randrange(len(values))]
        if kind == 1:
            values.add().CopyFrom(other)
        elif kind == 2:
            values[index].CopyFrom(other)
        else:
            mutated_message(values[index], draw)
    elif kind == 1:
        values.append(_value(field, values[index], draw))
    else:
        values[index] = _value(field, values[index], draw)


def _value(field: Any, old: Any, draw: random.Random) -> Any:
    if field.enum_type is not None:
        return draw.choice([number.number for number in field.enum_type.values])
    if isinstance(old, str):
        return draw.choice(_OPERATORS) if field.name == "op_type" and draw.random() < 0.8 else draw.choice(_TEXTS)
    if isinstance(old, bytes):
        return draw.choice([b"", old[:-1], old * 2, b"\xff" * 8, b"SAME_UPPER", b"VALID"])
    if isinstance(old, float):
        return draw.choice(_FLOATS)
    low, high = (-(2**31), 2**31 - 1) if field.type == field.TYPE_INT32 else (-(2**63), 2**63 - 1)
    near = draw.choice([*_INTEGERS, old + 1, old - 1, old * 2, -old, old * 1000])
    return min(max(int(near), low), high)


def generated_models() -> list[onnx.ModelProto]:
    """Small models of the kinds of operators that have intricate shapes, with control flow and functions."""
    return [
        _convolutions(),
        _shapes(),
        _transformer(),
        _branches(),
        _function(),
        _resizes(),
        _recurrent(),
        _quantised(),
        _defined_by_onnx(),
        _narrow(),
    ]


def _model(
    nodes: list[onnx.NodeProto],
    inputs: dict[str, list[int | str]],
    output: str,
    constants: dict[str, Any] | None = None,
    weights: dict[str, list[int]] | None = None,
    **options: Any,
) -> onnx.ModelProto:
    """A model; `weights` have shapes and no bytes."""
    graph = helper.make_graph(
        nodes,
        "generated",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs.items()],
        [helper.make_tensor_value_info(output, TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in (constants or {}).items()],
    )
    for name, shape in (weights or {}).items():
        graph.initializer.add(name=name, data_type=TensorProto.FLOAT, dims=shape)
    options.setdefault("opset_imports", [helper.make_opsetid("", 18)])
    return helper.make_model(graph, ir_version=9, **options)


def _defined_by_onnx() -> onnx.ModelProto:
    """A model of operators of the newest sets, which are written out by their definitions."""
    nodes = [
        node("CausalConvWithState", ["x", "w", "", "state"], ["c", "next"], activation="silu"),
        node("Transpose", ["c"], ["v"], perm=[0, 2, 1]),
        node(
            "LinearAttention", ["v", "v", "v", "past"], ["l", "p"], q_num_heads=2, kv_num_heads=2, update_rule="linear"
        ),
        node("Unsqueeze", ["l", "axis"], ["h"]),
        node("FlexAttention", ["h", "h", "h"], ["f"], domain="ai.onnx.preview"),
        node("SwiGLU", ["f", "f"], ["y"]),
    ]
    inputs: dict[str, list[int | str]] = {"x": [1, 8, 3], "state": [1, 8, 2], "past": [1, 2, 4, 4]}
    sets = [helper.make_opsetid("", 28), helper.make_opsetid("ai.onnx.preview", 1)]
    return _model(nodes, inputs, "y", {"axis": [1]}, {"w": [8, 1, 3]}, opset_imports=sets)


def _narrow() -> onnx.ModelProto:
    """A model with weights of narrow formats behind the operators that exporters write around them."""
    nodes = [
        node("BitwiseAnd", ["packed", "mask"], ["low"]),
        node("BitShift", ["packed", "four"], ["high"], direction="RIGHT"),
        node("Concat", ["low", "high"], ["both"], axis=0),
        node("Cast", ["both"], ["c"], to=TensorProto.FLOAT4E2M1),
        node("DequantizeLinear", ["c", "scale"], ["f"], axis=0, block_size=2),
        node("MatMul", ["x", "f"], ["y"]),
    ]
    packed = np.arange(8, dtype=np.uint8).reshape(2, 4)
    constants = {"packed": packed, "mask": np.uint8(15), "four": np.uint8(4), "scale": np.ones((2, 4), np.float32)}
    return _model(nodes, {"x": [2, 4]}, "y", constants, opset_imports=[helper.make_opsetid("", 25)])


def _convolutions() -> onnx.ModelProto:
    nodes = [
        node("Conv", ["x", "w"], ["a"], pads=[1, 1, 1, 1], strides=[2, 2], kernel_shape=[3, 3]),
        node("ConvTranspose", ["a", "t"], ["b"], strides=[2, 2], output_padding=[1, 1]),
        node("MaxPool", ["b"], ["c", "i"], kernel_shape=[2, 2], dilations=[1, 1], ceil_mode=1, strides=[2, 2]),
        node("AveragePool", ["c"], ["d"], kernel_shape=[2, 2], auto_pad="SAME_UPPER"),
        node("SpaceToDepth", ["d"], ["e"], blocksize=2),
        node("GlobalAveragePool", ["e"], ["f"]),
        node("Flatten", ["f"], ["y"]),
    ]
    return _model(nodes, {"x": ["N", 3, 16, 16]}, "y", weights={"w": [8, 3, 3, 3], "t": [8, 4, 3, 3]})


def _shapes() -> onnx.ModelProto:
    constants = {
        "zero": np.array(0),
        "start": np.array([0]),
        "end": np.array([1]),
        "rest": np.array([-1]),
        "repeats": np.array([1, 2]),
        "splits": np.array([3, 5]),
        "pads": np.array([0, 1, 0, 1]),
        "one": np.array(1),
        "many": np.array([5, 4, 10]),
    }
    nodes = [
        node("Shape", ["x"], ["s"]),
        node("Slice", ["s", "start", "end"], ["first"]),
        node("Concat", ["first", "rest"], ["target"], axis=0),
        node("Reshape", ["x", "target"], ["flat"]),
        node("Split", ["flat", "splits"], ["left", "right"], axis=1),
        node("Tile", ["right", "repeats"], ["tiled"]),
        node("Pad", ["tiled", "pads"], ["padded"]),
        node("Gather", ["s", "zero"], ["batch"]),
        node("Range", ["zero", "batch", "one"], ["range"]),
        node("Gather", ["padded", "range"], ["taken"]),
        node("Unsqueeze", ["taken", "start"], ["wide"]),
        node("Transpose", ["wide"], ["turned"], perm=[0, 2, 1]),
        node("ConstantOfShape", ["s"], ["filled"]),
        node("Expand", ["start", "many"], ["expanded"]),
        node("Squeeze", ["turned", "start"], ["y"]),
    ]
    return _model(nodes, {"x": [4, 2, 4]}, "y", constants)


def _transformer() -> onnx.ModelProto:
    nodes = [
        node("LayerNormalization", ["x", "scale"], ["n"], axis=-1),
        node("MatMul", ["n", "wq"], ["q"]),
        node("MatMul", ["n", "wk"], ["k"]),
        node("Transpose", ["k"], ["kt"], perm=[0, 2, 1]),
        node("MatMul", ["q", "kt"], ["scores"]),
        node("Softmax", ["scores"], ["p"], axis=-1),
        node("Einsum", ["p", "n"], ["o"], equation="bij,bjd->bid"),
        node("Add", ["o", "x"], ["r"]),
        node("ReduceMean", ["r"], ["y"], keepdims=0),
    ]
    return _model(nodes, {"x": [1, 8, 16]}, "y", weights={"scale": [16], "wq": [16, 16], "wk": [16, 16]})


def _branches() -> onnx.ModelProto:
    result = [helper.make_tensor_value_info("r", TensorProto.FLOAT, None)]
    then = helper.make_graph([node("Relu", ["x"], ["r"], name="inner")], "then", [], result)
    deeper = node("If", ["yes"], ["r"], name="deeper", then_branch=then, else_branch=then)
    other = helper.make_graph([deeper], "else", [], result)
    nodes = [
        node("Not", ["yes"], ["no"]),
        node("If", ["no"], ["m"], name="choice", then_branch=then, else_branch=other),
        node("Sigmoid", ["m"], ["y"]),
    ]
    return _model(nodes, {"x": [2, 3]}, "y", {"yes": np.array(True)})


def _function() -> onnx.ModelProto:
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("own", 1)]
    soft = onnx.AttributeProto(name="axis", ref_attr_name="axis", type=onnx.AttributeProto.INT)
    body = [node("Sigmoid", ["a"], ["s"]), node("Softmax", ["s"], ["t"]), node("Mul", ["a", "t"], ["b"])]
    body[1].attribute.append(soft)
    function = helper.make_function("own", "Gate", ["a"], ["b"], body, opsets, ["axis"])
    outer = helper.make_function(
        "own",
        "Twice",
        ["a"],
        ["b"],
        [node("Gate", ["a"], ["c"], domain="own", axis=1), node("Gate", ["c"], ["b"], domain="own", axis=0)],
        opsets,
    )
    nodes = [node("Twice", ["x"], ["m"], domain="own"), node("Twice", ["m"], ["y"], domain="own")]
    return _model(nodes, {"x": [2, 3]}, "y", opset_imports=opsets, functions=[function, outer])


def _resizes() -> onnx.ModelProto:
    nodes = [
        node("Resize", ["x", "", "scales"], ["a"], mode="nearest"),
        node("Resize", ["a", "", "", "sizes"], ["b"], mode="linear"),
        node("DepthToSpace", ["b"], ["c"], blocksize=2, mode="CRD"),
        node("TopK", ["c", "k"], ["d", "i"], axis=-1),
        node("GatherND", ["d", "indices"], ["e"]),
        node("OneHot", ["i", "depth", "pair"], ["hot"]),
        node("NonMaxSuppression", ["boxes", "found"], ["selected"]),
        node("ReduceMax", ["e", "axes"], ["y"], keepdims=1),
    ]
    constants = {
        "scales": np.array([1, 1, 2, 2], dtype=np.float32),
        "sizes": np.array([1, 4, 10, 12]),
        "k": np.array([3]),
        "indices": np.array([[0, 0], [0, 0]]),
        "axes": np.array([1]),
        "depth": np.array(5),
        "pair": np.array([0, 1], dtype=np.float32),
        "boxes": np.zeros((1, 4, 4), dtype=np.float32),
        "found": np.zeros((1, 1, 4), dtype=np.float32),
    }
    return _model(nodes, {"x": [1, 4, 5, 6]}, "y", constants)


def _recurrent() -> onnx.ModelProto:
    nodes = [
        node("LSTM", ["x", "w", "r"], ["a", "h", "c"], hidden_size=4),
        node("GRU", ["x", "v", "u"], ["b"], hidden_size=4, direction="bidirectional"),
        node("Squeeze", ["a", "one"], ["s"]),
        node("CumSum", ["s", "zero"], ["y"]),
    ]
    weights = {"w": [1, 16, 3], "r": [1, 16, 4], "v": [2, 12, 3], "u": [2, 12, 4]}
    return _model(nodes, {"x": [5, 2, 3]}, "y", {"one": np.array([1]), "zero": np.array(0)}, weights)


def _quantised() -> onnx.ModelProto:
    nodes = [
        node("QuantizeLinear", ["x", "scale", "point"], ["q"]),
        node("DequantizeLinear", ["q", "scale", "point"], ["d"]),
        node("DequantizeLinear", ["w", "scale", "point"], ["e"]),
        node("Gemm", ["d", "e"], ["g"], transB=1),
        node("Quant", ["g", "scale", "none", "bits"], ["y"], domain="qonnx.custom_op.general", signed=1),
    ]
    constants = {
        "scale": np.array(0.5, dtype=np.float32),
        "point": np.array(0, dtype=np.uint8),
        "w": np.ones((4, 8), dtype=np.uint8),
        "none": np.array(0, dtype=np.float32),
        "bits": np.array(4, dtype=np.float32),
    }
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("qonnx.custom_op.general", 1)]
    return _model(nodes, {"x": [2, 8]}, "y", constants, opset_imports=opsets)
