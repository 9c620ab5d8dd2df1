"""Element-by-element operators: operations, loops, operands and dependencies."""

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto
from onnx.helper import make_opsetid, make_tensor_value_info
from tilewright.base.operator_groups import is_listed

from tests.unit.workload.onnx.dependency_checks import assert_dependencies, lower_model
from tests.unit.workload.onnx.operators.vector_cases import Case, check_case, check_layers, layers_of

MASK = np.array([[True], [False]])
BOOL, INT32, UINT8 = TensorProto.BOOL, TensorProto.INT32, TensorProto.UINT8
INSIDE = {"x0": (-0.9, 0.9)}
ABOVE_ONE = {"x0": (1.1, 3.0)}
POSITIVE = {"x0": (0.5, 3.0), "x1": (0.5, 3.0)}

ANYWHERE = (
    *("Relu", "LeakyRelu", "Elu", "Selu", "Celu", "Sigmoid", "Tanh", "Erf", "Neg", "Abs", "Sign", "Ceil", "Floor"),
    *("Round", "Softplus", "Softsign", "ThresholdedRelu", "Shrink", "HardSwish", "HardSigmoid", "Mish", "Gelu", "Sin"),
    *("Cos", "Tan", "Exp", "Reciprocal", "Sinh", "Cosh", "Asinh", "Atan"),
)
UNARY: dict[str, dict[str, tuple[float, float]]] = {
    **{name: {} for name in ANYWHERE},
    **dict.fromkeys(["Asin", "Acos", "Atanh"], INSIDE),
    **dict.fromkeys(["Acosh", "Log", "Sqrt"], ABOVE_ONE),
}
BINARY = ["Add", "Sub", "Mul", "Div", "Pow"]
CASES: dict[str, Case] = {
    **{name: Case(name, [(2, 3)], [6], ranges=ranges) for name, ranges in UNARY.items()},
    **{name: Case(name, [(2, 3), (2, 3)], [6], ranges=POSITIVE) for name in BINARY},
    **{name: Case(name, [(2, 3), (3,)], [6]) for name in ["Max", "Min", "Sum", "Mean"]},
    **{name: Case(name, [(2, 3), (2, 3)], [6], kind=BOOL) for name in ["And", "Or", "Xor"]},
    **{name: Case(name, [(2, 2), (2, 2)], [4]) for name in ["Greater", "Less", "GreaterOrEqual", "LessOrEqual"]},
    "swish": Case("Swish", [(2, 3)], [6], opset=24),
    "not": Case("Not", [(2, 3)], [6], kind=BOOL),
    "equal": Case("Equal", [(2, 3), (2, 3)], [6], kind=INT32),
    "modulo": Case("Mod", [(4,), (4,)], [4], kind=INT32, ranges={"x0": (0, 9), "x1": (2, 5)}),
    "bitwise and": Case("BitwiseAnd", [(4,), (4,)], [4], kind=INT32, ranges={"x0": (1, 7), "x1": (1, 7)}),
    "bit shift": Case(
        "BitShift", [(4,), (4,)], [4], attributes={"direction": "LEFT"}, kind=UINT8, ranges={"x0": (1, 7), "x1": (1, 3)}
    ),
    "broadcast of both": Case("Add", [(3, 1), (1, 4)], [12]),
    "broadcast of missing axes": Case("Mul", [(4,), (2, 3, 4)], [24]),
    "broadcast of a channel": Case("Add", [(2, 3, 2, 2), (3, 1, 1)], [24]),
    "computed scalar": Case("Mul", [(2, 3), ()], [6]),
    "two scalars": Case("Mul", [(), ()], [1]),
    "one scalar": Case("Relu", [()], [1]),
    "six axes": Case("Relu", [(1, 2, 1, 2, 1, 2)], [8]),
    "constant scalar": Case("Pow", [(2, 3)], [6], [2.0]),
    "constant vector": Case("Add", [(2, 3)], [6], [np.ones(3)]),
    "constant first": Case("Sub", [(2, 3)], [6], [np.ones((2, 3))], order=["c0", "x0"]),
    "same tensor twice": Case("Mul", [(2, 3)], [6], order=["x0", "x0"]),
    "clip": Case("Clip", [(2, 3)], [6], [0.5, 2.5], ranges={"x0": (0.6, 2.4)}),
    "clip without lower bound": Case("Clip", [(2, 3)], [6], [1.0], order=["x0", "", "c0"]),
    "clip by attributes": Case("Clip", [(2, 3)], [6], attributes={"min": 0.0, "max": 6.0}, opset=10),
    "clip by a computed bound": Case("Clip", [(2, 3), ()], [6]),
    "prelu": Case("PRelu", [(2, 3, 2, 1)], [12], [np.full((3, 1, 1), 0.5)]),
    "sum of one": Case("Sum", [(2, 3)], []),
    "sum of four": Case("Sum", [(2, 3), (3,), (2, 1), (2, 3)], [6, 6, 6]),
    "sum of small ones first": Case("Sum", [(3,), (3,), (2, 3)], [3, 6]),
    "max with a constant": Case("Max", [(2, 3)], [6], [0.25]),
    "cast": Case("Cast", [(2, 3)], [6], attributes={"to": TensorProto.DOUBLE}),
    "cast like": Case("CastLike", [(2, 3)], [6], [np.ones(1, np.float64)]),
    "identity": Case("Identity", [(2, 3)], []),
    "dropout": Case("Dropout", [(2, 3)], [], outputs=2),
    "dropout before opset 12": Case("Dropout", [(2, 3)], [], attributes={"ratio": 0.5}, opset=10),
    "upper triangle": Case("Trilu", [(2, 3, 4)], []),
    "upper triangle, off the diagonal": Case("Trilu", [(3, 4)], [], [2]),
    "upper triangle, below the diagonal": Case("Trilu", [(4, 3)], [], [-2]),
    "upper triangle, nothing": Case("Trilu", [(3, 3)], [], [5]),
    "lower triangle": Case("Trilu", [(4, 3)], [], attributes={"upper": 0}),
    "lower triangle, off the diagonal": Case("Trilu", [(3, 4)], [], [-1], attributes={"upper": 0}),
    "lower triangle, everything": Case("Trilu", [(3, 4)], [], [7], attributes={"upper": 0}),
    "lower triangle, nothing": Case("Trilu", [(3, 4)], [], [-5], attributes={"upper": 0}),
    "running sum": Case("CumSum", [(2, 4)], [8], [1]),
    "running sum, reverse": Case("CumSum", [(2, 4)], [8], [-1], attributes={"reverse": 1}),
    "running sum, exclusive": Case("CumSum", [(3, 2)], [6], [0], attributes={"exclusive": 1}),
    "running sum, exclusive and reverse": Case("CumSum", [(3, 2)], [6], [0], attributes={"exclusive": 1, "reverse": 1}),
    "where": Case("Where", [(2, 3), (3,), (2, 1)], [6, 6], kinds={"x0": BOOL}),
    "where, one choice a scalar": Case("Where", [(2, 3), (2, 3)], [6], [-1.0], kinds={"x0": BOOL}),
    "where, constant condition": Case("Where", [(2, 3)], [6], [MASK, -1.0], order=["c0", "x0", "c1"], is_exact=False),
}


@pytest.mark.parametrize("name", CASES)
def test_one_operation_for_every_element(name: str) -> None:
    """Operations, layers, and dependencies by experiment are right."""
    check_case(CASES[name])


@pytest.mark.parametrize(
    ("case", "equations"),
    [
        (Case("Relu", [(1, 2, 3, 4)], []), ["O[b][k][oy][ox] += I[b][k][oy][ox]"]),
        (Case("Add", [(1, 2, 3, 4), (2, 1, 1)], []), ["O[b][k][oy][ox] += I[b][k][oy][ox] * W[k]"]),
        (Case("Add", [(5,), (2, 3, 5)], []), ["O[b][d][k] += I[k] * W[b][d][k]"]),
        (Case("Mul", [(2, 5)], [], [np.ones(5)], order=["c0", "x0"]), ["O[b][k] += W[k] * I[b][k]"]),
        (Case("Mul", [(2, 5)], [], [2.0]), ["O[b][k] += I[b][k]"]),
        (Case("Mul", [(2, 5), ()], []), ["O[b][k] += I[b][k]"]),
        (Case("Clip", [(2, 5)], [], [0.0, 6.0]), ["O[b][k] += I[b][k]"]),
        (Case("Sum", [(2, 5)] * 3, []), ["O[b][k] += I[b][k] * W[b][k]"] * 2),
        (Case("Relu", [()], []), ["O += I"]),
        (Case("PRelu", [(2, 3, 4)], [], [np.ones(3)], opset=6), ["O[b][d][k] += I[b][d][k] * W[d]"]),
        (
            Case("Add", [(2, 3, 4)], [], [np.ones((2, 3))], {"broadcast": 1, "axis": 0}, opset=6),
            ["O[b][d][k] += I[b][d][k] * W[b][d]"],
        ),
    ],
)
def test_operands_have_the_loops_that_they_are_not_broadcast_along(case: Case, equations: list[str]) -> None:
    """Operands have the loops along which they are not broadcast; a computed tensor is I, and scalars are no
    operands.
    """
    assert [layer.equation for layer in layers_of(case)] == equations


def test_a_constant_operand_is_a_weight() -> None:
    """The bias is constant, so that a core may keep it."""
    (layer,) = layers_of(Case("Add", [(2, 3)], [], [np.ones(3)]))
    assert layer.constant_operands == ("W",)


def test_a_computed_scalar_is_a_dependency_without_memory() -> None:
    """A computed scalar is read, but it is no operand."""
    (node,) = lower_model(Case("Mul", [(2, 5), ()], []).model()).nodes
    assert node.inputs == ("x0", "x1")
    assert [index_map.operand for index_map in node.index_maps] == ["I", ""]


def test_silu_is_one_layer_of_one_operation_for_each_element() -> None:
    """Silu is not in ONNX, but exporters write it for x * sigmoid(x): one layer with one operation an element."""
    lowered = lower_model(Case("Silu", [(2, 3)], [6]).model())
    check_layers(Case("Silu", [(2, 3)], [6]), lowered.nodes)
    assert set(lowered.statuses.values()) == {"modelled"}
    assert is_listed("Silu", ("elementwise",))
    assert is_listed("com.example::Silu", ("Silu",))


def test_a_mask_of_dropout_depends_on_nothing() -> None:
    """The mask of a dropout depends on nothing at inference."""
    (node,) = lower_model(Case("Dropout", [(2, 3)], [], outputs=2).model()).nodes
    assert node.outputs == ("y0", "y1")
    assert {index_map.output.tensor for index_map in node.index_maps} == {"y0"}


def test_dropout_in_training_mode_computes_and_says_so() -> None:
    """The mask of a dropout is random in training mode, so its dependencies are a superset."""
    lowered = lower_model(Case("Dropout", [(2, 3)], [], [0.5, np.array(True)], outputs=2).model())
    assert set(lowered.statuses.values()) == {"approximated"}
    assert [node.layer.mac_count for node in lowered.nodes if node.layer] == [6]


def test_a_running_sum_along_an_axis_of_the_run_time_is_a_superset() -> None:
    """Dependencies are a superset if the axis is known at run time only; the first part costs one operation
    an element.
    """
    case = Case("CumSum", [(2, 3), ()], [6], kinds={"x1": INT32}, is_exact=False)
    lowered = lower_model(case.model())
    check_layers(case, lowered.nodes)
    assert set(lowered.statuses.values()) == {"approximated"}


@pytest.mark.parametrize(
    ("operator", "setting"), [("CumSum", ()), ("Trilu", ())], ids=["axis of a running sum", "diagonal of a triangle"]
)
def test_settings_of_the_run_time_are_dependencies(operator: str, setting: tuple[int, ...]) -> None:
    """Every element depends on settings that are known at run time only."""
    case = Case(operator, [(2, 3), setting], [], kinds={"x1": TensorProto.INT64}, ranges={"x1": (0, 1)}, is_exact=False)
    assert assert_dependencies(case.model(), case.ranges).tables["y0", "x1"].all()


def _custom(operator: str, shapes: list[tuple[int, ...]], operations: list[int], *constants: Any, **more: Any) -> Case:
    return Case(operator, shapes, operations, list(constants), domain="com.microsoft", is_exact=True, **more)


RUNTIME: dict[str, Case] = {
    "gelu": _custom("Gelu", [(2, 3)], [6]),
    "fast gelu": _custom("FastGelu", [(2, 3)], [6], np.ones(3)),
    "gelu of a sum": _custom("BiasGelu", [(2, 3)], [6], np.ones(3)),
    "addition": _custom(
        "QLinearAdd",
        [(2, 3), (2, 3)],
        [6],
        *(0.1, np.uint8(1), 0.2, np.uint8(2), 0.3, np.uint8(3)),
        order=["x0", "c0", "c1", "x1", "c2", "c3", "c4", "c5"],
        kind=UINT8,
    ),
    "sigmoid": _custom("QLinearSigmoid", [(2, 3)], [6], 0.1, np.uint8(1), 0.2, np.uint8(2), kind=UINT8),
    "global average": _custom(
        "QLinearGlobalAveragePool", [(1, 2, 2, 2)], [8], 0.1, np.uint8(1), 0.2, np.uint8(2), kind=UINT8
    ),
    "concatenation": _custom(
        "QLinearConcat",
        [(1, 2), (1, 3)],
        [2, 3],
        *(0.1, np.uint8(1), 0.2, np.uint8(2), 0.3, np.uint8(3)),
        order=["c0", "c1", "x0", "c2", "c3", "x1", "c4", "c5"],
        kind=UINT8,
        attributes={"axis": 1},
    ),
    "sum and layer normalisation": _custom(
        "SkipLayerNormalization",
        [(2, 4), (2, 4)],
        [8, 8, 8, 8, 8, 2, 8, 8],
        *(np.ones(4), np.ones(4), np.ones(4)),
    ),
    "sum and root mean square": _custom(
        "SkipSimplifiedLayerNormalization", [(2, 4), (2, 4)], [8, 8, 2, 8, 8], np.ones(4)
    ),
}
RUNTIME_SHAPES = {"global average": (1, 2, 1, 1), "concatenation": (1, 5)}


@pytest.mark.parametrize("name", RUNTIME)
def test_operators_of_onnxruntime_compute_every_element(name: str) -> None:
    """Operations and layers are right for operators of onnxruntime, which the reference evaluator lacks."""
    case = RUNTIME[name]
    model = case.model()
    output = model.graph.output[0]
    output.CopyFrom(make_tensor_value_info(output.name, case.kind, RUNTIME_SHAPES.get(name, case.shapes[0])))
    lowered = lower_model(model)
    check_layers(case, lowered.nodes)
    assert set(lowered.statuses.values()) == {"modelled"}
    assert all(index_map.is_exact for index_map in lowered.index_maps)


QUANTISED: dict[str, Case] = {
    "quantise": Case("QuantizeLinear", [(2, 3)], [6], [0.1, np.uint8(3)], ranges={"x0": (-0.2, 20.0)}),
    "quantise a channel": Case(
        "QuantizeLinear", [(2, 3, 2)], [12], [np.full(3, 0.1), np.zeros(3, np.uint8)], ranges={"x0": (0.0, 20.0)}
    ),
    "dequantise": Case("DequantizeLinear", [(2, 3)], [6], [0.1], kind=UINT8, ranges={"x0": (0, 200)}),
    "dequantise along axis 0": Case(
        "DequantizeLinear", [(2, 3)], [6], [np.ones(2)], attributes={"axis": 0}, kind=UINT8, ranges={"x0": (0, 200)}
    ),
    "dequantise blocks": Case(
        "DequantizeLinear",
        [(2, 6)],
        [12],
        [np.ones((2, 2))],
        attributes={"axis": 1, "block_size": 3},
        kind=UINT8,
        ranges={"x0": (0, 200)},
        opset=21,
    ),
}


@pytest.mark.parametrize("name", QUANTISED)
def test_quantisers_do_one_operation_for_every_element(name: str) -> None:
    """Quantisers do one operation an element, for one scale, one for each index of an axis, and one for each block."""
    check_case(QUANTISED[name])


@pytest.mark.parametrize(
    ("shape", "scale", "attributes", "equation"),
    [
        ((2, 3, 4), np.ones(3), {"axis": 1}, "O[b][d][k] += I[b][d][k] * W[d]"),
        ((2, 6), np.ones((2, 3)), {"axis": 1, "block_size": 2}, "O[b][k][kin] += I[b][k][kin] * W[b][k]"),
        ((2, 6), 1.0, {}, "O[b][k] += I[b][k]"),
    ],
)
def test_scales_of_channels_and_blocks_are_weights(
    shape: tuple[int, ...], scale: Any, attributes: dict[str, Any], equation: str
) -> None:
    """A scale has no loop over the elements of its block."""
    case = Case("DequantizeLinear", [shape], [], [scale], attributes=attributes, kind=UINT8, opset=21)
    assert [layer.equation for layer in layers_of(case)] == [equation]


@pytest.mark.parametrize(
    ("operator", "constants"),
    [
        ("Quant", [np.full((3, 1), 0.5), np.zeros(()), np.float32(4)]),
        ("BipolarQuant", [np.full((3, 1), 0.5)]),
        ("Trunc", [np.full((3, 1), 0.5), np.zeros(()), np.float32(8), np.float32(4)]),
    ],
)
def test_quantisers_of_qonnx_read_a_scale_for_every_channel(operator: str, constants: list[Any]) -> None:
    """Quantisers of qonnx read one scale for each channel; bit widths and zero points are part of the instruction."""
    case = Case(operator, [(2, 3, 4)], [24], constants, domain="com.microsoft")
    model = case.model()
    model.graph.node[0].domain = "qonnx.custom_op.general"
    model.opset_import.append(make_opsetid("qonnx.custom_op.general", 1))
    model.graph.output[0].CopyFrom(make_tensor_value_info("y0", TensorProto.FLOAT, (2, 3, 4)))
    lowered = lower_model(model)
    check_layers(case, lowered.nodes)
    (layer,) = [node.layer for node in lowered.nodes if node.layer]
    assert layer.equation == "O[b][d][k] += I[b][d][k] * W[d]"
