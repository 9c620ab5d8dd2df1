"""Resolving a network: shapes, constants, functions, branches, quantised bits."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from tilewright.base.errors import InputError
from tilewright.workload.onnx.resolution.network import ResolvedGraph, resolve_graph

node = helper.make_node
OWN = [helper.make_opsetid("", 18), helper.make_opsetid("own", 1)]
FIRST, LAST = 7, 23


def model_of(
    nodes: Sequence[onnx.NodeProto],
    inputs: Mapping[str, Sequence[int | str | None] | None],
    outputs: Mapping[str, Sequence[int] | None],
    constants: Mapping[str, Any] | None = None,
    **options: Any,
) -> onnx.ModelProto:
    """A model of these nodes; `constants` have values."""
    graph = helper.make_graph(
        list(nodes),
        "test",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs.items()],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in outputs.items()],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in (constants or {}).items()],
    )
    options.setdefault("opset_imports", [helper.make_opsetid("", 18)])
    return helper.make_model(graph, ir_version=9, **options)


def shape_of(graph: ResolvedGraph, tensor: str) -> tuple[int, ...]:
    """The resolved shape of a tensor."""
    return graph.tensors[tensor].shape


def problems_of(model: onnx.ModelProto, **options: Any) -> str:
    """The error message for a model."""
    with pytest.raises(InputError) as caught:
        resolve_graph(model, **options)
    return str(caught.value)


RELU = [node("Relu", ["x"], ["y"], name="relu")]


def test_stored_shapes_are_not_believed() -> None:
    """Sizes of an output follow from the inputs, not from stored shapes, and the model is not changed."""
    model = model_of(RELU, {"x": ["N", 3]}, {"y": [7, 9]})
    before = model.SerializeToString()
    assert shape_of(resolve_graph(model, {"N": 5}), "y") == (5, 3)
    assert model.SerializeToString() == before


@pytest.mark.parametrize(
    ("options", "shape"),
    [
        ({}, (1, 3)),
        ({"dims": {"N": 4}}, (4, 3)),
        ({"dims": {"x[0]": 4}}, (4, 3)),
        ({"input_shapes": {"x": (6, 3)}}, (6, 3)),
        ({"dims": {"N": 6}, "input_shapes": {"x": (6, 3)}}, (6, 3)),
    ],
)
def test_dynamic_sizes(options: dict[str, Any], shape: tuple[int, ...]) -> None:
    """A size comes from its symbol, its place or the whole shape; a batch that is not given is 1, with a notice."""
    graph = resolve_graph(model_of(RELU, {"x": ["N", 3]}, {"y": None}), **options)
    assert shape_of(graph, "y") == shape
    assert bool(graph.notices) == (not options)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"input_shapes": {"x": (1, 3, 4)}}, "rank of a network input, got [1, 3, 4] (allowed: 2 sizes)"),
        ({"input_shapes": {"x": (1, 4)}}, "x[1] is fixed in the file, got 4 (allowed: 3)"),
        ({"input_shapes": {"xx": (1, 3)}}, "no such network input (allowed: x) (did you mean 'x'?)"),
        ({"input_shapes": {"x": (-1, 3)}}, "integers >= 0"),
        ({"input_shapes": {"x": (2, 3)}, "dims": {"N": 4}}, "has another size elsewhere, got 2 (allowed: 4)"),
        ({"dims": {"M": 4}}, "no such dynamic dimension"),
        ({"dims": {"y[1]": 9}}, "the network already determines the size of y[1], got 9"),
        ({"branches": {"relu": "then"}}, "no such If in the network"),
    ],
)
def test_contradicting_sizes(options: dict[str, Any], words: str) -> None:
    """A given size that contradicts the model is an error."""
    assert words in problems_of(model_of(RELU, {"x": ["N", 3]}, {"y": None}), **options)


def test_all_unresolved_symbols_at_once() -> None:
    """Every symbol without a size is named."""
    said = problems_of(
        model_of([node("MatMul", ["a", "b"], ["y"])], {"a": ["N", "rows"], "b": ["rows", "columns"]}, {})
    )
    assert "'rows'" in said
    assert "'columns'" in said


def test_question_marks_are_no_common_symbol() -> None:
    """Paddle writes '?' for each unknown size, so two of them need not be equal."""
    graph = resolve_graph(model_of(RELU, {"x": ["?", 3, "?", "?"]}, {"y": None}), input_shapes={"x": (1, 3, 48, 192)})
    assert shape_of(graph, "y") == (1, 3, 48, 192)


def test_input_without_a_shape() -> None:
    """An input without a shape needs `input_shapes`."""
    model = model_of(RELU, {"x": None}, {"y": None})
    assert "network input 'x' is not in the file" in problems_of(model)
    assert shape_of(resolve_graph(model, input_shapes={"x": (2, 5)}), "y") == (2, 5)


def test_run_time_sizes_can_be_given() -> None:
    """A size that depends on data is an error that names its place, and `dims` can give the size of this place."""
    nodes = [node("NonZero", ["x"], ["found"]), node("Transpose", ["found"], ["y"], perm=[1, 0])]
    model = model_of(nodes, {"x": [4, 5]}, {"y": None})
    assert "dims: found[1]: SIZE" in problems_of(model)
    graph = resolve_graph(model, {"found[1]": 7})
    assert shape_of(graph, "y") == (7, 2)
    assert shape_of(resolve_graph(model, input_shapes={"found": (2, 7)}), "y") == (7, 2)
    assert "did you mean 'found'" in problems_of(model, dims={"fount[1]": 7})
    assert "allowed: integers >= 0" in problems_of(model, dims={"found[1]": -7})


def test_given_sizes_come_before_stored_ones() -> None:
    """A size given by the user replaces the stored one if data decide the size at run time."""
    nodes = [node("Expand", ["x", "target"], ["m"]), node("Relu", ["m"], ["y"])]
    model = model_of(nodes, {"x": [1, 1, 1]}, {"y": None})
    model.graph.input.append(helper.make_tensor_value_info("target", TensorProto.INT64, [3]))
    model.graph.value_info.append(helper.make_tensor_value_info("m", TensorProto.FLOAT, [4, 5, 6]))
    assert shape_of(resolve_graph(model), "y") == (4, 5, 6)
    assert "m[1], a result of Expand, is decided at run time" in problems_of(model, dims={"m[0]": 9})
    assert shape_of(resolve_graph(model, {"m[0]": 9, "m[1]": 5, "m[2]": 6}), "y") == (9, 5, 6)


def test_unread_results_may_have_unknown_sizes() -> None:
    """A result that nobody reads may have an unknown size."""
    nodes = [node("NonZero", ["x"], ["found"]), *RELU]
    assert "found" not in resolve_graph(model_of(nodes, {"x": [4, 5]}, {"y": None})).tensors


def test_unknown_operators() -> None:
    """The result of an unknown operator has the given shape, or the shape in the file, with a notice.

    Without both, the error names the tensor and the operator.
    """
    nodes = [node("Magic", ["x"], ["m"], name="trick", domain="own"), node("Relu", ["m"], ["y"])]
    model = model_of(nodes, {"x": [2, 3]}, {"y": None}, opset_imports=OWN)
    assert "shape of tensor 'm', made by own::Magic 'trick'" in problems_of(model)
    assert shape_of(resolve_graph(model, input_shapes={"m": (4, 4)}), "y") == (4, 4)
    model.graph.value_info.append(helper.make_tensor_value_info("m", TensorProto.FLOAT, [2, 6]))
    graph = resolve_graph(model)
    assert shape_of(graph, "y") == (2, 6)
    assert "taken from the file" in graph.notices[0]


def test_sequences_are_followed() -> None:
    """A tensor from a sequence has the shape of the tensors in the sequence."""
    nodes = [
        node("SequenceConstruct", ["x", "x"], ["s"]),
        node("SequenceAt", ["s", "zero"], ["t"]),
        node("Relu", ["t"], ["y"]),
    ]
    graph = resolve_graph(model_of(nodes, {"x": [2, 3]}, {"y": None}, {"zero": 0}))
    assert "s" not in graph.tensors
    assert shape_of(graph, "y") == (2, 3)


SHAPE_OF_X = [
    node("Shape", ["x"], ["s"]),
    node("Gather", ["s", "zero"], ["batch"]),
    node("Unsqueeze", ["batch", "start"], ["first"]),
    node("Concat", ["first", "rest"], ["target"], axis=0),
    node("Reshape", ["x", "target"], ["flat"]),
    node("Range", ["zero", "batch", "one"], ["range"]),
    node("ConstantOfShape", ["s"], ["zeros"]),
    node("Add", ["flat", "flat"], ["y"]),
]


def test_values_of_small_constants_are_computed() -> None:
    """Tensors that are computed from shapes are constants, their values are known, and their nodes are constant."""
    constants = {"zero": 0, "one": 1, "start": [0], "rest": [-1]}
    graph = resolve_graph(model_of(SHAPE_OF_X, {"x": [3, 2, 4]}, {"y": None}, constants))
    assert shape_of(graph, "y") == (3, 8)
    assert graph.tensors["target"].values.tolist() == [3, -1]
    assert graph.tensors["range"].values.tolist() == [0, 1, 2]
    constant_types = [graph.nodes[node_id].operator_type for node_id in sorted(graph.constant_nodes)]
    assert constant_types == ["Shape", "Gather", "Unsqueeze", "Concat", "Range", "ConstantOfShape"]
    assert not graph.tensors["flat"].is_constant
    assert graph.producer_of["flat"] == 4


def test_weights_have_no_values() -> None:
    """Large weights, and weights without bytes, have no values; tensors computed from them are still constant."""
    nodes = [node("Transpose", ["w"], ["wt"], perm=[1, 0]), node("MatMul", ["x", "wt"], ["y"])]
    model = model_of(nodes, {"x": [2, 300]}, {"y": None})
    model.graph.initializer.add(name="w", data_type=TensorProto.FLOAT, dims=[400, 300])
    graph = resolve_graph(model)
    assert graph.tensors["wt"].is_constant
    assert graph.tensors["wt"].values is None
    assert graph.constant_nodes == {0}
    assert shape_of(graph, "y") == (2, 400)


def test_random_operators_are_no_constants() -> None:
    """Random operators are no constants, although they have no inputs."""
    nodes = [node("RandomNormal", [], ["r"], shape=[2, 3]), node("Add", ["x", "r"], ["y"])]
    assert resolve_graph(model_of(nodes, {"x": [2, 3]}, {"y": None})).constant_nodes == frozenset()


def test_initialisers_of_old_files() -> None:
    """Initialisers are constants and no network inputs, whether the file lists them as inputs or not."""
    for listed in (True, False):
        model = model_of([node("Add", ["x", "c"], ["y"])], {"x": [2, 3]}, {"y": None}, {"c": np.ones(3, np.float32)})
        model.ir_version = 3
        if listed:
            model.graph.input.append(helper.make_tensor_value_info("c", TensorProto.FLOAT, [3]))
        graph = resolve_graph(model)
        assert graph.inputs == ("x",)
        assert graph.tensors["c"].is_constant


def _gate(axis: int | None = None) -> onnx.NodeProto:
    attributes = {} if axis is None else {"axis": axis}
    return node("Gate", ["x"], ["y"], name="gate", domain="own", **attributes)


def _functions() -> list[onnx.FunctionProto]:
    """Functions: Gate(a, optional b; axis=-1) calls Inner and uses an attribute of the call in its body."""
    softmax = node("Softmax", ["s"], ["t"], name="soft")
    softmax.attribute.append(onnx.AttributeProto(name="axis", ref_attr_name="axis", type=onnx.AttributeProto.INT))
    body = [node("Inner", ["a"], ["s"], name="call", domain="own"), softmax, node("Mul", ["a", "t"], ["c"])]
    default = [helper.make_attribute("axis", -1)]
    gate = helper.make_function("own", "Gate", ["a", "b"], ["c"], body, OWN, attribute_protos=default)
    inner = helper.make_function("own", "Inner", ["a"], ["b"], [node("Sigmoid", ["a"], ["b"])], OWN)
    return [gate, inner]


@pytest.mark.parametrize(("axis", "expected"), [(None, -1), (0, 0)])
def test_functions_are_written_out(axis: int | None, expected: int) -> None:
    """Operators of functions get unique names that lead back to the call, and attributes of the call."""
    nodes = [_gate(axis), node("Gate", ["y"], ["z"], name="gate", domain="own")]
    model = model_of(nodes, {"x": [2, 3]}, {"z": None}, opset_imports=OWN, functions=_functions())
    graph = resolve_graph(model)
    assert [item.operator_type for item in graph.nodes] == ["Sigmoid", "Softmax", "Mul"] * 2
    assert [item.name for item in graph.nodes[:3]] == ["gate/call/Op0", "gate/soft", "gate/Op2"]
    assert len({item.name for item in graph.nodes}) == 6
    assert list(graph.origins.values()) == ["gate"] * 3 + ["gate__2"] * 3
    assert graph.nodes[1].integer("axis", 9) == expected
    assert shape_of(graph, "z") == (2, 3)


def test_functions_that_redefine_operators_are_refused() -> None:
    """A function body of another operator set, in which an operator has another meaning, is refused."""
    old = [helper.make_opsetid("", 12)]
    function = helper.make_function("own", "Gate", ["a"], ["b"], [node("Softmax", ["a"], ["b"])], old)
    model = model_of([_gate()], {"x": [2, 3]}, {"y": None}, opset_imports=OWN, functions=[function])
    assert "the standard forbids this difference" in problems_of(model)


def _branch(operator: str, tensor: str = "x") -> onnx.GraphProto:
    result = [helper.make_tensor_value_info("r", TensorProto.FLOAT, None)]
    bias = [numpy_helper.from_array(np.ones(3, np.float32), "bias")]
    body = [node("Add", [tensor, "bias"], ["biased"]), node(operator, ["biased"], ["r"], name="last")]
    return helper.make_graph(body, "branch", [], result, bias)


def _choice(condition: str) -> list[onnx.NodeProto]:
    choice = node("If", [condition], ["m"], name="choice", then_branch=_branch("Relu"), else_branch=_branch("Tanh"))
    return [choice, node("Exp", ["m"], ["y"])]


@pytest.mark.parametrize(("value", "expected"), [(True, "Relu"), (False, "Tanh")])
def test_if_with_a_constant_condition(*, value: bool, expected: str) -> None:
    """The branch that a constant condition chooses replaces the If, with its own constants and names."""
    graph = resolve_graph(model_of(_choice("c"), {"x": [2, 3]}, {"y": None}, {"c": np.array(value)}))
    assert [item.operator_type for item in graph.nodes] == ["Add", expected, "Exp"]
    assert graph.origins[1] == "choice/last"
    assert graph.tensors["choice/bias"].is_constant
    assert graph.producer_of["m"] == 1


def test_if_with_an_open_condition() -> None:
    """An If with an open condition needs a branch, given by its name or for all Ifs."""
    model = model_of(_choice("c"), {"x": [2, 3]}, {"y": None})
    model.graph.input.append(helper.make_tensor_value_info("c", TensorProto.BOOL, []))
    assert "choice: the condition of this If is only known at run time" in problems_of(model)
    for branches, expected in (({"choice": "then"}, "Relu"), ({"*": "else"}, "Tanh")):
        assert resolve_graph(model, branches=branches).nodes[1].operator_type == expected
    assert "did you mean 'choice'" in problems_of(model, branches={"choise": "then", "*": "then"})


def test_nested_branches_see_outer_tensors() -> None:
    """An inner branch reads a tensor of the outer branch under the resolved name."""
    result = [helper.make_tensor_value_info("q", TensorProto.FLOAT, None)]
    inner = node("If", ["c"], ["q"], name="inner", then_branch=_branch("Relu", "w"), else_branch=_branch("Tanh", "w"))
    outer = helper.make_graph([node("Neg", ["x"], ["w"], name="minus"), inner], "outer", [], result)
    choice = node("If", ["c"], ["y"], name="outer", then_branch=outer, else_branch=outer)
    graph = resolve_graph(model_of([choice], {"x": [2, 3]}, {"y": None}, {"c": np.array(True)}))
    assert [item.name for item in graph.nodes] == ["outer/minus", "outer/inner/Op0", "outer/inner/last"]
    assert graph.nodes[1].inputs[0] == graph.nodes[0].outputs[0]


def test_branch_that_hands_on_an_outer_tensor() -> None:
    """A branch that hands on an outer tensor becomes an Identity from this tensor to the result."""
    same = helper.make_graph([], "same", [], [helper.make_tensor_value_info("x", TensorProto.FLOAT, None)])
    choice = node("If", ["c"], ["y"], name="choice", then_branch=same, else_branch=same)
    graph = resolve_graph(model_of([choice], {"x": [2, 3]}, {"y": None}, {"c": np.array(True)}))
    assert [(item.operator_type, item.inputs) for item in graph.nodes] == [("Identity", ("x",))]


def test_any_order_of_operators() -> None:
    """Operators that stand before their inputs are sorted, with a notice."""
    nodes = [node("Exp", ["a"], ["y"], name="second"), node("Relu", ["x"], ["a"], name="first")]
    graph = resolve_graph(model_of(nodes, {"x": [2]}, {"y": None}))
    assert [item.name for item in graph.nodes] == ["first", "second"]
    assert "sorted" in graph.notices[0]


QUANTISED = {
    "int8 activation": (
        [node("QuantizeLinear", ["x", "s", "z"], ["q"]), node("DequantizeLinear", ["q", "s", "z"], ["y"])],
        8,
    ),
    "moved": (
        [
            node("QuantizeLinear", ["x", "s", "z"], ["q"]),
            node("DequantizeLinear", ["q", "s", "z"], ["d"]),
            node("Transpose", ["d"], ["y"], perm=[1, 0]),
        ],
        8,
    ),
    "int8 weight": ([node("DequantizeLinear", ["w8", "s", "z"], ["y"])], 8),
    "int4 weight": ([node("DequantizeLinear", ["w4", "s"], ["y"])], 4),
    "scaled weight": ([node("Cast", ["w8"], ["f"], to=TensorProto.FLOAT), node("Mul", ["f", "s"], ["y"])], 8),
    "Quant": ([node("Quant", ["x", "s", "s", "three"], ["y"], domain="qonnx.custom_op.general")], 3),
    "BipolarQuant": ([node("BipolarQuant", ["x", "s"], ["y"], domain="onnx.brevitas")], 1),
    "float": ([node("Relu", ["x"], ["y"])], None),
    "computed": ([node("DequantizeLinear", ["w8", "s", "z"], ["d"]), node("Add", ["x", "d"], ["y"])], None),
}


@pytest.mark.parametrize("case", list(QUANTISED))
def test_quantised_bits(case: str) -> None:
    """A quantiser, a dequantiser or an integer type gives a tensor its bits, and moving the tensor keeps them."""
    nodes, bits = QUANTISED[case]
    domains = ("qonnx.custom_op.general", "onnx.brevitas")
    opsets = [helper.make_opsetid("", 21), *(helper.make_opsetid(domain, 1) for domain in domains)]
    constants = {"s": np.float32(0.5), "z": np.uint8(0), "w8": np.ones((2, 3), np.uint8), "three": np.float32(3)}
    model = model_of(nodes, {"x": [2, 3]}, {"y": None}, constants, opset_imports=opsets)
    model.graph.initializer.append(helper.make_tensor("w4", TensorProto.INT4, [2, 3], [1] * 6))
    assert resolve_graph(model).tensors["y"].quantised_bits == bits


def _operators_of(opset: int) -> list[onnx.NodeProto]:
    """A network in the form that an operator set requires: attributes that became inputs, renamed operators."""
    as_input = opset >= 13
    squeeze = (
        node("Squeeze", ["pooled", "axes"], ["flat"])
        if as_input
        else node("Squeeze", ["pooled"], ["flat"], axes=[2, 3])
    )
    split = (
        node("Split", ["flat", "halves"], ["a", "b"], axis=1)
        if as_input
        else node("Split", ["flat"], ["a", "b"], axis=1)
    )
    total = node("ReduceSum", ["b", "one"], ["t"]) if as_input else node("ReduceSum", ["b"], ["t"], axes=[1])
    clip = node("Clip", ["t", "low"], ["y"]) if opset >= 11 else node("Clip", ["t"], ["y"], min=0.0)
    return [
        node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1], strides=[2, 2]),
        node("BatchNormalization", ["c", "n", "n", "n", "n"], ["norm"]),
        node("Dropout", ["norm"], ["d"]),
        node("GlobalAveragePool", ["d"], ["pooled"]),
        squeeze,
        split,
        total,
        clip,
    ]


@pytest.mark.parametrize("opset", range(FIRST, LAST + 1))
def test_operator_sets(opset: int) -> None:
    """The network has the same shapes in every operator set."""
    constants = {
        "w": np.zeros((8, 3, 3, 3), np.float32),
        "n": np.ones(8, np.float32),
        "axes": [2, 3],
        "halves": [4, 4],
        "one": [1],
        "low": np.float32(0),
    }
    opsets = [helper.make_opsetid("", opset)]
    graph = resolve_graph(
        model_of(_operators_of(opset), {"x": [2, 3, 8, 8]}, {"y": None}, constants, opset_imports=opsets)
    )
    assert shape_of(graph, "c") == (2, 8, 4, 4)
    assert shape_of(graph, "a") == (2, 4)
    assert shape_of(graph, "y") == (2, 1)
    assert graph.opsets == {"": opset}


@pytest.mark.parametrize("operator", ["Upsample", "Scatter", "GroupNormalization"])
def test_withdrawn_operators(operator: str) -> None:
    """Operators that newer operator sets withdrew are read by their last definition."""
    nodes = {
        "Upsample": node("Upsample", ["x", "scales"], ["y"]),
        "Scatter": node("Scatter", ["x", "at", "new"], ["y"]),
        "GroupNormalization": node("GroupNormalization", ["x", "n", "n"], ["y"], num_groups=2),
    }
    constants = {
        "scales": np.array([1, 1, 2, 2], np.float32),
        "at": np.zeros((1, 1, 1, 1), np.int64),
        "new": np.zeros((1, 1, 1, 1), np.float32),
        "n": np.ones(2, np.float32),
    }
    graph = resolve_graph(model_of([nodes[operator]], {"x": [1, 4, 5, 5]}, {"y": None}, constants))
    assert shape_of(graph, "y") == ((1, 4, 10, 10) if operator == "Upsample" else (1, 4, 5, 5))


def test_attributes_of_other_tools_are_ignored() -> None:
    """An attribute that no version of the operator has is ignored."""
    relu = node("Relu", ["x"], ["y"], weight_size=4)
    assert shape_of(resolve_graph(model_of([relu], {"x": [2]}, {"y": None})), "y") == (2,)


def test_element_types_of_other_tools() -> None:
    """Convolutions of int8, which the standard does not define, have shapes and keep their element type."""
    model = model_of([node("Conv", ["x", "w"], ["y"])], {"x": [1, 3, 8, 8]}, {"y": None})
    model.graph.input[0].type.tensor_type.elem_type = TensorProto.INT8
    model.graph.initializer.add(name="w", data_type=TensorProto.INT8, dims=[4, 3, 3, 3])
    graph = resolve_graph(model)
    assert (shape_of(graph, "y"), graph.tensors["y"].element_type) == ((1, 4, 6, 6), TensorProto.INT8)
    assert "does not allow" in graph.notices[0]


CONTRIB = {
    "Gelu": ([(2, 3, 4)], {}, (2, 3, 4)),
    "FusedMatMul": ([(2, 3, 4), (2, 5, 4)], {"transB": 1}, (2, 3, 5)),
    "MatMulNBits": ([(2, 3, 64), (8, 2, 16), (16,)], {"K": 64, "N": 8, "bits": 4, "block_size": 32}, (2, 3, 8)),
    "SkipLayerNormalization": ([(2, 3, 4), (2, 3, 4), (4,)], {}, (2, 3, 4)),
    "Attention": ([(2, 3, 4), (4, 24), (24,)], {"num_heads": 2}, (2, 3, 8)),
    "MultiHeadAttention": ([(2, 3, 4), (2, 5, 4), (2, 5, 6)], {"num_heads": 2}, (2, 3, 6)),
    "FusedConv": ([(1, 3, 8, 8), (4, 3, 3, 3)], {"activation": "Relu"}, (1, 4, 6, 6)),
}


@pytest.mark.parametrize("operator", list(CONTRIB))
def test_contrib_operators(operator: str) -> None:
    """Common operators of ONNX Runtime's domain have shapes."""
    shapes, attributes, expected = CONTRIB[operator]
    inputs = {f"x{index}": list(shape) for index, shape in enumerate(shapes)}
    item = node(operator, list(inputs), ["y"], domain="com.microsoft", **attributes)
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1)]
    assert shape_of(resolve_graph(model_of([item], inputs, {"y": None}, opset_imports=opsets)), "y") == expected


@pytest.mark.parametrize(("onesided", "bins"), [(None, 9), (1, 9), (0, 16)])
def test_bins_of_a_short_time_fourier_transform(onesided: int | None, bins: int) -> None:
    """The transform has half of the bins unless all are asked for; onnx infers all if the window gives the length."""
    attributes = {} if onesided is None else {"onesided": onesided}
    transform = helper.make_node("STFT", ["x", "step", "window"], ["y"], **attributes)
    window = numpy_helper.from_array(np.ones(16, np.float32), "window")
    graph = helper.make_graph(
        [transform],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 100, 1])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.array(4), "step"), window],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    assert resolve_graph(model).tensors["y"].shape == (1, 22, bins, 2)
