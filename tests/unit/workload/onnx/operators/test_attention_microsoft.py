"""Attention of com.microsoft, compared with standard operators, because the reference evaluator lacks it."""

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx.helper import make_node
from tilewright.base.errors import InputError

from tests.unit.workload.onnx.dependency_checks import (
    LoweredModel,
    PredictedDependencies,
    build_model,
    lower_model,
    predicted_dependencies,
)
from tests.unit.workload.onnx.operators.matrix_cases import MatrixCase, array_layers
from tests.unit.workload.onnx.operators.vector_cases import check_layer

MICROSOFT = "com.microsoft"
INT32 = TensorProto.INT32
Shape = tuple[int, ...]


def _model(
    operator: str, shapes: list[Any], outputs: list[Shape], attributes: dict[str, Any], **others: Any
) -> onnx.ModelProto:
    """A model of one operator with the stored shapes of its outputs."""
    model = MatrixCase(operator, shapes, 0, attributes, outputs=len(outputs), domain=MICROSOFT, **others).model()
    del model.graph.output[:]
    for number, shape in enumerate(outputs):
        model.graph.output.append(helper.make_tensor_value_info(f"y{number}", TensorProto.FLOAT, shape))
    return model


def _macs(lowered: LoweredModel) -> int:
    for node in lowered.nodes:
        if node.layer is not None:
            check_layer(node.layer)
    return sum(layer.mac_count for layer in array_layers(lowered))


def _standard(
    nodes: list[onnx.NodeProto], inputs: dict[str, Shape], constants: dict[str, Any]
) -> PredictedDependencies:
    return predicted_dependencies(build_model(nodes, inputs, constants, opset=23))


def test_multi_head_attention_is_attention() -> None:
    """Dependencies and work equal those of the standard operator on the same tensors."""
    shapes = {"x0": (1, 3, 4), "x1": (1, 4, 4), "x2": (1, 4, 6)}
    own = predicted_dependencies(_model("MultiHeadAttention", list(shapes.values()), [(1, 3, 6)], {"num_heads": 2}))
    standard = _standard([make_node("Attention", list(shapes), ["y0"], q_num_heads=2, kv_num_heads=2)], shapes, {})
    assert own.is_exact
    assert _macs(own.lowered) == _macs(standard.lowered) == 2 * 3 * 4 * (2 + 3)
    for name in shapes:
        assert (own.tables["y0", name] == standard.tables["y0", name]).all()


def test_multi_head_attention_with_bias_and_cache() -> None:
    """Biases are added first; past keys come before the new ones, also in the outputs."""
    shapes = [(1, 1, 4), (1, 1, 4), (1, 1, 4), (12,), (1, 3), None, (1, 2, 2, 2), (1, 2, 2, 2)]
    outputs = [(1, 1, 4), (1, 2, 3, 2), (1, 2, 3, 2)]
    model = _model("MultiHeadAttention", shapes, outputs, {"num_heads": 2}, weights=(3,), kinds={4: INT32})
    predicted = predicted_dependencies(model)
    assert predicted.lowered.statuses == {"op": "modelled"}
    assert [node.name for node in predicted.lowered.nodes][:3] == ["op/bias_query", "op/bias_key", "op/bias_value"]
    assert _macs(predicted.lowered) == 2 * 1 * 3 * 4
    old = predicted.tables["y1", "x6"].reshape(2, 3, 2, 2, 2, 2)
    assert old[0, 0, 0, 0, 0, 0]
    assert not old[:, 2].any()
    assert predicted.tables["y0", "x4"].all()


def test_attention_with_its_projection() -> None:
    """One product makes queries, keys and values; then attention runs on its three parts."""
    model = _model("Attention", [(1, 3, 4), (4, 12), (12,)], [(1, 3, 4)], {"num_heads": 2}, weights=(1, 2))
    own = predicted_dependencies(model)
    nodes = [
        make_node("MatMul", ["x0", "w"], ["p"]),
        make_node("Split", ["p"], ["q", "k", "v"], axis=2, num_outputs=3),
        make_node("Attention", ["q", "k", "v"], ["y0"], q_num_heads=2, kv_num_heads=2),
    ]
    standard = _standard(nodes, {"x0": (1, 3, 4)}, {"w": np.ones((4, 12))})
    assert own.is_exact
    assert (own.tables["y0", "x0"] == standard.tables["y0", "x0"]).all()
    assert _macs(own.lowered) == _macs(standard.lowered) == 3 * 4 * 12 + 2 * 3 * 3 * 4


@pytest.mark.parametrize("is_packed", [False, True])
@pytest.mark.parametrize("rotary", [0, 1])
def test_group_query_attention(is_packed: bool, rotary: int) -> None:
    """Query heads share key heads, and the work of products is equal for packed or separate, rotated or plain
    inputs.
    """
    heads, shared, width = 4, 2, 4
    apart: list[Any] = [(1, 3, heads * width), (1, 3, shared * width), (1, 3, shared * width)]
    shapes = [(1, 3, (heads + 2 * shared) * width), None, None] if is_packed else apart
    shapes = [*shapes, None, None, (1,), (), (8, 2), (8, 2)]
    attributes = {"num_heads": heads, "kv_num_heads": shared, "do_rotary": rotary}
    model = _model(
        "GroupQueryAttention", shapes, [(1, 3, heads * width)], attributes, weights=(7, 8), kinds={5: INT32, 6: INT32}
    )
    predicted = predicted_dependencies(model)
    assert predicted.lowered.statuses == {"op": "approximated"}
    assert _macs(predicted.lowered) == heads * 3 * 3 * 2 * width
    turning = [node for node in predicted.lowered.nodes if node.name.endswith(("cosine", "sine", "sum")) and node.layer]
    turned = sum(node.layer.mac_count for node in turning if node.layer and "softmax" not in node.name)
    assert turned == rotary * 3 * (heads + shared) * 3 * width
    query = predicted.tables["y0", "x0"]
    assert query.any()
    assert not predicted.is_exact


def test_cache_of_fixed_length() -> None:
    """A cache of fixed length costs the work of its whole length, with a remark."""
    shapes = [(1, 1, 8), (1, 1, 4), (1, 1, 4), (1, 2, 6, 2), (1, 2, 6, 2), (1, 1), ()]
    outputs = [(1, 1, 8), (1, 2, 6, 2), (1, 2, 6, 2)]
    model = _model(
        "GroupQueryAttention", shapes, outputs, {"num_heads": 4, "kv_num_heads": 2}, kinds={5: INT32, 6: INT32}
    )
    predicted = predicted_dependencies(model)
    assert predicted.lowered.statuses == {"op": "approximated"}
    assert any("fixed length" in remark for remark in predicted.lowered.remarks)
    assert _macs(predicted.lowered) == 4 * 1 * 6 * 4
    assert predicted.tables["y0", "x3"].any()


def test_packed_inputs_are_unsupported() -> None:
    """Packed inputs are reported as unsupported."""
    model = _model("MultiHeadAttention", [(1, 3, 2, 3, 2)], [(1, 3, 4)], {"num_heads": 2})
    assert lower_model(model).statuses == {"op": "unsupported"}


def test_bias_of_another_length_is_refused() -> None:
    """A bias without one value for each channel of queries, keys and values raises InputError."""
    model = _model("MultiHeadAttention", [(1, 3, 4), (1, 3, 4), (1, 3, 4), (8,)], [(1, 3, 4)], {"num_heads": 2})
    with pytest.raises(InputError, match="bias"):
        lower_model(model)


@pytest.mark.parametrize("interleaved", [0, 1])
def test_rotary_embedding(interleaved: int) -> None:
    """Positions are the second input here; dependencies and work equal the standard operator's."""
    constants = {"c": np.ones((5, 2)), "s": np.ones((5, 2)), "p": [[0, 4, 2]]}
    attributes = {"interleaved": interleaved, "num_heads": 2}
    tables = []
    for domain, names in ((MICROSOFT, ["x0", "p", "c", "s"]), ("", ["x0", "c", "s", "p"])):
        node = make_node("RotaryEmbedding", names, ["y0"], domain=domain, **attributes)
        tables.append(_standard([node], {"x0": (1, 3, 8)}, constants))
    assert tables[0].is_exact
    assert (tables[0].tables["y0", "x0"] == tables[1].tables["y0", "x0"]).all()
    assert sum(node.layer.mac_count for node in tables[0].lowered.nodes if node.layer) == 3 * 24
