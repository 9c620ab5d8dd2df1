"""Tables of operators on the vector unit: how a case is built, and the checks of the layers of every case."""

from dataclasses import dataclass, field
from typing import Any

import onnx
from onnx import helper
from tilewright.base.operator_groups import VECTOR_UNIT
from tilewright.workload.layer import Layer
from tilewright.workload.onnx.lowering import LoweredNode

from tests.unit.workload.onnx.dependency_checks import assert_dependencies, build_model, lower_model

Shape = tuple[int, ...]
_MOST_LOOPS, _MOST_WINDOWS, _MOST_OPERANDS = 16, 4, 3


@dataclass(frozen=True)
class Case:
    """An operator with the shapes of its computed inputs, the values of the constant inputs after them, and its
    expected result.
    """

    operator: str
    shapes: list[Shape]
    operations: list[int]
    """Operations of every layer, in order."""
    constants: list[Any] = field(default_factory=list)
    attributes: dict[str, Any] = field(default_factory=dict)
    opset: int = 20
    outputs: int = 1
    kind: int = onnx.TensorProto.FLOAT
    """Element type of the computed inputs, except those in `kinds`."""
    kinds: dict[str, int] = field(default_factory=dict)
    ranges: dict[str, tuple[float, float]] = field(default_factory=dict)
    is_exact: bool = True
    order: list[str] = field(default_factory=list)
    """Names of the inputs (x0, x1, ...: computed; c0, c1, ...: constant; '': none), if constants do not come last."""
    domain: str = ""

    def model(self) -> onnx.ModelProto:
        """The model of this operator alone."""
        inputs = {f"x{number}": shape for number, shape in enumerate(self.shapes)}
        constants = {f"c{number}": value for number, value in enumerate(self.constants)}
        names = self.order or [*inputs, *constants]
        outputs = [f"y{number}" for number in range(self.outputs)]
        node = helper.make_node(self.operator, names, outputs, name="op", domain=self.domain, **self.attributes)
        kinds = dict.fromkeys(inputs, self.kind) | self.kinds
        return build_model([node], inputs, constants, kinds=kinds, opset=self.opset)


def check_case(case: Case) -> None:
    """Checks dependencies by experiment, operation counts, and that the cost model knows the form of every layer."""
    predicted = assert_dependencies(case.model(), case.ranges, must_be_exact=case.is_exact)
    assert predicted.is_exact == case.is_exact
    check_layers(case, predicted.lowered.nodes)


def check_layers(case: Case, nodes: list[LoweredNode]) -> None:
    """Checks operation counts, and that the cost model knows the form of every layer."""
    layers = [node.layer for node in nodes if node.layer is not None]
    assert {node.unit for node in nodes if node.layer is not None} <= {VECTOR_UNIT}
    assert [layer.mac_count for layer in layers] == case.operations
    for layer in layers:
        check_layer(layer)


def check_layer(layer: Layer) -> None:
    """Checks that the cost model can read a layer."""
    assert 1 <= len(layer.loop_sizes) <= _MOST_LOOPS
    assert len(layer.relations) <= _MOST_WINDOWS
    assert len(layer.operands) <= _MOST_OPERANDS
    assert layer.operands[0] == "O"
    assert set(layer.input_operands) <= {"I", "W"}
    assert "I" in layer.input_operands
    known = set(layer.size_of) | {relation.data_dimension for relation in layer.relations}
    for operand, dimensions in layer.operand_dimensions:
        assert set(dimensions) <= known, operand
        assert layer.bits_of[operand] > 0


def layers_of(case: Case) -> list[Layer]:
    """The layers of a case."""
    return [node.layer for node in lower_model(case.model()).nodes if node.layer is not None]
