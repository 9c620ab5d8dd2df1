"""Loops with a known number of iterations are written out; sequences of known tensors are followed."""

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from tilewright.base.errors import InputError
from tilewright.base.profile import CORRECTED
from tilewright.workload.onnx import read_onnx
from tilewright.workload.onnx.resolution import control_flow
from tilewright.workload.onnx.resolution.network import resolve_graph

from tests.unit.workload.onnx.dependency_checks import assert_dependencies, build_model

node = helper.make_node
COUNT = {"count": np.array(3, np.int64), "yes": np.array(True)}


def _value(name: str, kind: int = TensorProto.FLOAT, shape: list[int] | None = None) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape)


def _loop_body(*nodes: onnx.NodeProto, states: int = 1, scans: int = 1) -> onnx.GraphProto:
    """A loop body with inputs i, go, h0.. and outputs stay, n0.., s0..."""
    inputs = [_value("i", TensorProto.INT64, []), _value("go", TensorProto.BOOL, [])]
    inputs += [_value(f"h{number}") for number in range(states)]
    outputs = [_value("stay", TensorProto.BOOL, [])]
    outputs += [_value(f"n{number}") for number in range(states)] + [_value(f"s{number}") for number in range(scans)]
    weight = [numpy_helper.from_array(np.eye(4, dtype=np.float32) + 0.5, "w")]
    return helper.make_graph(list(nodes), "body", inputs, outputs, weight)


STEP = (
    node("MatMul", ["h0", "w"], ["m"], name="product"),
    node("Add", ["m", "x"], ["n0"], name="sum"),
    node("Identity", ["n0"], ["s0"]),
)
STAY = node("Identity", ["go"], ["stay"])


def _loop(body: onnx.GraphProto, inputs: tuple[str, ...] = ("count", "yes", "x"), **options: Any) -> onnx.ModelProto:
    loop = node("Loop", list(inputs), ["last", "all"], name="loop", body=body)
    return build_model([loop], {"x": (2, 4)}, COUNT, **options)


@pytest.mark.parametrize("opset", [11, 20])
def test_constant_count(opset: int) -> None:
    """The body runs as often as the constant count says, and dependencies equal the reference evaluator's."""
    found = assert_dependencies(_loop(_loop_body(STAY, *STEP), opset=opset))
    assert found.is_exact
    assert [item.name for item in found.lowered.nodes if item.layer] == [
        f"loop/{number}/{name}" for number in range(3) for name in ("product", "sum")
    ]
    macs = read_onnx(_loop(_loop_body(STAY, *STEP)), CORRECTED).coverage.total_mac_count
    assert macs == 3 * 2 * 4 * 4


def test_weights_of_the_body_exist_once() -> None:
    """Constants of a body exist once, for all iterations."""
    graph = resolve_graph(_loop(_loop_body(STAY, *STEP)))
    assert [name for name, facts in graph.tensors.items() if facts.shape == (4, 4)] == ["loop/w"]


def test_condition_from_the_counter() -> None:
    """A loop without a count ends when the condition that the body computes from the counter is false."""
    go_on = node("Less", ["i", "most"], ["stay"])
    body = _loop_body(go_on, *STEP)
    body.initializer.append(numpy_helper.from_array(np.array(1, np.int64), "most"))
    graph = resolve_graph(_loop(body, ("", "yes", "x")))
    assert sum(item.proto.op_type == "MatMul" for item in graph.nodes) == 2
    assert graph.tensors["all"].shape == (2, 2, 4)


def test_loop_that_never_runs() -> None:
    """The results of a loop that never runs are its initial values."""
    model = _loop(_loop_body(STAY, *STEP))
    model.graph.initializer[0].CopyFrom(numpy_helper.from_array(np.array(0, np.int64), "count"))
    model.graph.node[0].output.pop()
    model.graph.output.pop()
    graph = resolve_graph(model)
    assert [item.proto.op_type for item in graph.nodes] == ["Identity"]
    assert graph.tensors["last"].shape == (2, 4)


def _open_loop() -> onnx.ModelProto:
    """A loop whose condition depends on data."""
    total = node("ReduceSum", ["n0"], ["total"], keepdims=0)
    model = _loop(_loop_body(total, node("Less", ["total", "limit"], ["stay"]), *STEP))
    model.graph.initializer.append(numpy_helper.from_array(np.float32(9), "limit"))
    return model


def test_open_count_is_not_modelled() -> None:
    """A loop with an open count is named in the coverage, with unknown work; its shapes are those of the file."""
    model = _open_loop()
    del model.graph.output[:]
    model.graph.output.extend([_value("last", shape=[2, 4]), _value("all", shape=[3, 2, 4])])
    parsed = read_onnx(model, CORRECTED)
    (row,) = parsed.coverage.unsupported
    assert (row.operator_type, row.mac_count) == ("Loop", None)
    why = "the number of iterations of Loop is decided at run time"
    assert any(why in notice for notice in parsed.coverage.notices)
    (only,) = parsed.workload.nodes
    assert set(only.inputs) >= {"x", "limit"}


def test_open_count_without_shapes() -> None:
    """The error names a needed result without a shape in the file, for a loop with an open count."""
    with pytest.raises(InputError, match="'last', a result of Loop, is decided at run time"):
        read_onnx(_open_loop(), CORRECTED)


@pytest.mark.parametrize("inputs", [("", "yes", "x"), ("count", "yes", "x")])
def test_loop_without_end(inputs: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """A condition that stays true, and a count that is too large, are refused before they fill the memory."""
    monkeypatch.setattr(control_flow, "LARGEST_UNROLLED", 100)
    model = _loop(_loop_body(STAY, *STEP), inputs)
    model.graph.initializer[0].CopyFrom(numpy_helper.from_array(np.array(2**62, np.int64), "count"))
    with pytest.raises(InputError, match=r"loop: Loop has too many iterations.*at most 100"):
        resolve_graph(model)


@pytest.mark.parametrize("backward", [0, 1])
def test_scan(backward: int) -> None:
    """Scan reads its input along the given input axis, in the given direction, and writes along the output axis."""
    inputs = [_value("h", shape=[4]), _value("e", shape=[4])]
    body = helper.make_graph(
        [node("Add", ["h", "e"], ["n"], name="sum"), node("Relu", ["n"], ["r"])],
        "body",
        inputs,
        [_value("n", shape=[4]), _value("r", shape=[4])],
    )
    attributes = {"scan_input_axes": [1], "scan_input_directions": [backward], "scan_output_axes": [1]}
    scan = node("Scan", ["start", "x"], ["last", "all"], name="scan", body=body, num_scan_inputs=1, **attributes)
    graph = resolve_graph(build_model([scan], {"start": (4,), "x": (4, 3)}))
    gathers = [graph.tensors[item.inputs[1]].values.item() for item in graph.nodes if item.proto.op_type == "Gather"]
    assert gathers == ([2, 1, 0] if backward else [0, 1, 2])
    assert graph.tensors["all"].shape == (4, 3)
    if not backward:
        plain = node("Scan", ["start", "x"], ["last", "all"], name="scan", body=body, num_scan_inputs=1)
        assert assert_dependencies(build_model([plain], {"start": (4,), "x": (3, 4)})).is_exact


def test_scans_of_different_lengths() -> None:
    """Inputs of different lengths that are scanned together raise InputError."""
    body = helper.make_graph(
        [node("Add", ["a", "b"], ["r"])], "body", [_value("a"), _value("b")], [_value("r", shape=[4])]
    )
    scan = node("Scan", ["x", "y"], ["all"], name="scan", body=body, num_scan_inputs=2)
    graph = helper.make_graph([scan], "g", [_value("x", shape=[3, 4]), _value("y", shape=[2, 4])], [_value("all")])
    with pytest.raises(InputError, match="different lengths, got 2, 3"):
        resolve_graph(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8))


@pytest.mark.parametrize(("new_axis", "shape"), [(0, (2, 8)), (1, (2, 2, 4))])
def test_joined_sequence(new_axis: int, shape: tuple[int, ...]) -> None:
    """ConcatFromSequence of known tensors is a Concat."""
    nodes = [
        node("SequenceConstruct", ["x", "y"], ["s"]),
        node("ConcatFromSequence", ["s"], ["j"], axis=1, new_axis=new_axis),
        node("Relu", ["j"], ["r"]),
    ]
    found = assert_dependencies(build_model(nodes, {"x": (2, 4), "y": (2, 4)}))
    assert found.is_exact
    assert found.lowered.shape_of["r"] == shape


def test_sequence_that_grows_in_a_loop() -> None:
    """A sequence that a loop fills, element by element, is known after the loop."""
    body = _loop_body(
        STAY, node("Relu", ["x"], ["e"], name="relu"), node("SequenceInsert", ["h0", "e"], ["n0"]), scans=0
    )
    nodes = [
        node("SequenceEmpty", [], ["empty"]),
        node("Loop", ["count", "yes", "empty"], ["filled"], name="loop", body=body),
        node("SequenceLength", ["filled"], ["length"]),
        node("SequenceAt", ["filled", "place"], ["third"]),
        node("ConcatFromSequence", ["filled"], ["y"], axis=0),
    ]
    given = [_value("x", shape=[2, 4])]
    constants = [numpy_helper.from_array(value, name) for name, value in COUNT.items()]
    constants.append(numpy_helper.from_array(np.array(-1, np.int64), "place"))
    results = [_value("y"), _value("third"), _value("length", TensorProto.INT64)]
    model = helper.make_model(
        helper.make_graph(nodes, "g", given, results, constants), opset_imports=[helper.make_opsetid("", 18)]
    )
    graph = resolve_graph(model)
    assert graph.tensors["y"].shape == (6, 4)
    assert graph.tensors["length"].values == 3
    assert graph.tensors["third"].shape == (2, 4)
