"""LSTM, GRU and RNN: work, chains of steps, and dependencies, compared with the reference evaluator."""

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper
from tilewright.base.errors import InputError

from tests.unit.workload.onnx.dependency_checks import assert_dependencies, lower_model, predicted_dependencies
from tests.unit.workload.onnx.operators.matrix_cases import MatrixCase, array_layers, check_matrix_case

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
INT32 = TensorProto.INT32


def _case(
    operator: str,
    steps: int = 3,
    batch: int = 2,
    features: int = 2,
    hidden: int = 2,
    *,
    directions: int = 1,
    inputs: int = 3,
    left_out: tuple[int, ...] = (4,),
    **others: Any,
) -> MatrixCase:
    gates, attributes = GATES[operator], {"hidden_size": hidden, **others.pop("attributes", {})}
    batch_first = attributes.get("layout", 0)
    state = (batch, directions, hidden) if batch_first else (directions, batch, hidden)
    shapes: list[Any] = [
        (batch, steps, features) if batch_first else (steps, batch, features),
        (directions, gates * hidden, features),
        (directions, gates * hidden, hidden),
        (directions, 2 * gates * hidden),
        (batch,),
        state,
        state,
        (directions, 3 * hidden),
    ]
    given = [None if index in left_out else shape for index, shape in enumerate(shapes[:inputs])]
    macs = steps * batch * directions * gates * hidden * (features + hidden)
    constants = tuple(index for index in (1, 2, 3, 7) if index < inputs)
    return MatrixCase(operator, given, macs, attributes, weights=constants, opset=14, **others)


BOTH = {"direction": "bidirectional"}
BACK = {"direction": "reverse"}

CASES = {
    "LSTM": _case("LSTM", outputs=3),
    "LSTM, bias, initial states": _case("LSTM", inputs=7, outputs=3),
    "LSTM, peepholes": _case("LSTM", inputs=8, outputs=3),
    "LSTM, backwards": _case("LSTM", inputs=6, outputs=3, attributes=BACK),
    "LSTM, both ways": _case("LSTM", inputs=7, outputs=3, directions=2, attributes=BOTH),
    "LSTM, one output": _case("LSTM", steps=2, outputs=1),
    "GRU": _case("GRU", inputs=6, outputs=2),
    "GRU, linear before reset": _case("GRU", inputs=4, outputs=2, attributes={"linear_before_reset": 1}),
    "GRU, both ways": _case("GRU", steps=2, inputs=6, outputs=2, directions=2, attributes=BOTH),
    "RNN": _case("RNN", inputs=6, outputs=2),
    "RNN, backwards": _case("RNN", steps=4, inputs=4, outputs=2, attributes=BACK),
    "RNN, both ways": _case("RNN", inputs=6, outputs=2, directions=2, attributes=BOTH),
}


@pytest.mark.parametrize("name", CASES)
def test_recurrent(name: str) -> None:
    """Work, form of the layers, and dependencies over time are right."""
    case = CASES[name]
    check_matrix_case(MatrixCase(**{**case.__dict__, "ranges": {"x0": (-1.0, 1.0)}}))


@pytest.mark.parametrize("operator", GATES)
def test_batch_in_front(operator: str) -> None:
    """The batch is the first axis of all tensors with `layout` 1, and nothing else changes."""
    plain = predicted_dependencies(_case(operator, inputs=6, outputs=2).model())
    swapped = predicted_dependencies(_case(operator, inputs=6, outputs=2, attributes={"layout": 1}).model())
    steps, batch, hidden, features = 3, 2, 2, 2
    table = plain.tables["y0", "x0"].reshape(steps, 1, batch, hidden, steps, batch, features)
    other = swapped.tables["y0", "x0"].reshape(batch, steps, 1, hidden, batch, steps, features)
    assert (table == other.transpose(1, 2, 0, 3, 5, 4, 6)).all()
    last = plain.tables["y1", "x5"].reshape(1, batch, hidden, 1, batch, hidden)
    assert (
        last == swapped.tables["y1", "x5"].reshape(batch, 1, hidden, batch, 1, hidden).transpose(1, 0, 2, 4, 3, 5)
    ).all()


def test_a_step_depends_on_the_steps_before() -> None:
    """Y[t] depends on X[0..t] and on nothing later."""
    table = predicted_dependencies(CASES["LSTM"].model()).tables["y0", "x0"].reshape(3, 1, 2, 2, 3, 2, 2)
    assert table[1, 0, 0, :, 1, 0].all()
    assert not table[1, 0, :, :, 2].any()
    assert not table[2, 0, 0, :, :, 1].any()


def test_layers_of_a_step() -> None:
    """One product reads all inputs, then each step has a product of the state."""
    layers = array_layers(lower_model(CASES["LSTM"].model()))
    assert [layer.size_of for layer in layers] == [{"C": 2, "D": 3, "K": 8, "B": 2}, *[{"C": 2, "K": 8, "B": 2}] * 3]
    assert all(layer.constant_operands == ("W",) for layer in layers)


@pytest.mark.parametrize(("operator", "steps"), [("LSTM", 200), ("GRU", 97), ("RNN", 1000)])
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_many_steps_become_few_nodes(operator: str, steps: int, direction: str) -> None:
    """Long sequences become blocks of steps, with a bounded number of nodes and equal work, and are marked
    approximated.
    """
    directions = 2 if direction == "bidirectional" else 1
    case = _case(operator, steps, 1, 1, 1, directions=directions, outputs=2, attributes={"direction": direction})
    lowered = lower_model(case.model())
    assert len(lowered.nodes) <= 520
    assert lowered.statuses == {"op": "approximated"}
    assert sum(layer.mac_count for layer in array_layers(lowered)) == case.macs


@pytest.mark.parametrize("direction", ["forward", "reverse"])
@pytest.mark.parametrize("operator", GATES)
def test_folded_dependencies_contain_the_true_ones(
    operator: str, direction: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A block of steps depends on a superset, but never on steps that run after the block."""
    monkeypatch.setattr("tilewright.workload.onnx.operators.recurrent._MOST_NODES", 25)
    case = _case(operator, 40, 1, 1, 1, outputs=2, inputs=6, attributes={"direction": direction})
    predicted = assert_dependencies(case.model(), {"x0": (-1.0, 1.0)}, rounds=2)
    assert not predicted.is_exact
    table = predicted.tables["y0", "x0"].reshape(40, 40)
    assert not (table[0, 39] if direction == "forward" else table[39, 0])


def test_sequence_lengths_are_told() -> None:
    """Work stays the same if sequence lengths are an input, and last states may be those of any step."""
    case = _case("RNN", inputs=6, left_out=(), outputs=2, kinds={4: INT32}, ranges={"x4": (1, 3)})
    predicted = predicted_dependencies(case.model())
    assert predicted.lowered.statuses == {"op": "approximated"}
    assert not predicted.is_exact
    assert predicted.tables["y1", "x4"].all()


def test_full_sequence_lengths_change_nothing() -> None:
    """Sequence lengths equal to the tensor's leave everything exact."""
    case = _case("RNN", inputs=6, left_out=(), outputs=2, values={4: np.array([3, 3], np.int32)})
    assert predicted_dependencies(case.model()).is_exact


def test_wrong_shapes_are_refused() -> None:
    """Weights with a wrong number of gates raise InputError, which says what is expected."""
    case = _case("LSTM", outputs=1)
    shapes = [case.shapes[0], (1, 6, 2), *case.shapes[2:]]
    with pytest.raises(InputError, match="LSTM"):
        lower_model(MatrixCase(**{**case.__dict__, "shapes": shapes}).model())


def test_parts_of_a_step() -> None:
    """The parts of a step are named by their work: the product of the state, gates, and the arithmetic of the cell."""
    nodes = lower_model(CASES["LSTM"].model()).nodes
    step = [(node.name, node.operator_type) for node in nodes if node.name.startswith("op/1.")]
    assert step == [
        ("op/1.recurrent", "MatMul"),
        ("op/1.gates", "Sigmoid"),
        ("op/1.forget", "Mul"),
        ("op/1.add", "Mul"),
        ("op/1.cell", "Add"),
        ("op/1.hidden", "Mul"),
    ]


def test_quantised_lstm_of_microsoft() -> None:
    """The quantised LSTM of com.microsoft has its weights with channels last, and else equals LSTM."""
    shapes: list[Any] = [(3, 2, 2), (1, 2, 12), (1, 3, 12), (1, 24), None, (1, 2, 3), (1, 2, 3), None, (1,), (1,)]
    kinds = {1: TensorProto.INT8, 2: TensorProto.INT8}
    case = MatrixCase(
        "DynamicQuantizeLSTM", shapes, 0, {"hidden_size": 3}, (1, 2, 3, 8, 9), kinds=kinds, domain="com.microsoft"
    )
    model = case.model()
    del model.graph.output[:]
    model.graph.output.append(helper.make_tensor_value_info("y0", TensorProto.FLOAT, (3, 1, 2, 3)))
    own, plain = predicted_dependencies(model), predicted_dependencies(_case("LSTM", hidden=3, inputs=7).model())
    assert own.lowered.statuses == {"op": "approximated"}
    for name in ("x0", "x5", "x6"):
        assert (own.tables["y0", name] == plain.tables["y0", name]).all()
    layers = array_layers(own.lowered)
    assert sum(layer.mac_count for layer in layers) == sum(layer.mac_count for layer in array_layers(plain.lowered))
    assert dict(layers[1].operand_dimensions)["W"] == ("C", "K")
