"""Tables of operators on the MAC array: how a case is built, and the checks of every case."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import helper
from tilewright.base.operator_groups import MAC_ARRAY
from tilewright.workload.layer import Layer

from tests.unit.workload.onnx.dependency_checks import (
    LoweredModel,
    assert_dependencies,
    build_model,
    lower_model,
    predicted_dependencies,
)
from tests.unit.workload.onnx.operators.vector_cases import check_layer

Shape = tuple[int, ...]


@dataclass(frozen=True)
class MatrixCase:
    """An operator, the shapes of its inputs in order (None: left out), and its multiply-accumulates."""

    operator: str
    shapes: list[Shape | None]
    macs: int
    attributes: dict[str, Any] = field(default_factory=dict)
    weights: tuple[int, ...] = ()
    """Positions of inputs that are constants with random values."""
    values: dict[int, Any] = field(default_factory=dict)
    """Inputs that are constants with these values."""
    kinds: dict[int, int] = field(default_factory=dict)
    """Element types of computed inputs that are not FLOAT."""
    ranges: dict[str, tuple[float, float]] = field(default_factory=dict)
    outputs: int = 1
    unnamed: tuple[int, ...] = ()
    """Outputs that the model leaves out."""
    opset: int = 20
    is_exact: bool = True
    domain: str = ""
    has_reference: bool = True
    """Whether onnx's reference evaluator knows the operator."""
    layers: int | None = None
    """Number of layers on the MAC array; None if a case is not about it."""

    def model(self) -> onnx.ModelProto:
        """The model of this operator alone; its inputs are x0, x1, ..., its outputs y0, y1, ..."""
        generator = np.random.default_rng(0)
        names = [("" if shape is None else f"x{index}") for index, shape in enumerate(self.shapes)]
        constants: dict[str, Any] = {f"x{index}": value for index, value in self.values.items()}
        inputs: dict[str, Shape] = {}
        for index, shape in enumerate(self.shapes):
            if index in self.weights:
                kind = helper.tensor_dtype_to_np_dtype(self.kinds.get(index, onnx.TensorProto.FLOAT))
                values = generator.uniform(0.2, 0.6, shape) if kind == np.float32 else generator.integers(1, 4, shape)
                constants[f"x{index}"] = values.astype(kind)
            elif shape is not None and index not in self.values:
                inputs[f"x{index}"] = shape
        outputs = ["" if number in self.unnamed else f"y{number}" for number in range(self.outputs)]
        node = helper.make_node(self.operator, names, outputs, name="op", domain=self.domain, **self.attributes)
        kinds = {f"x{index}": kind for index, kind in self.kinds.items()}
        return build_model([node], inputs, constants, kinds=kinds, opset=self.opset)


def check_matrix_case(case: MatrixCase) -> LoweredModel:
    """Checks dependencies by experiment, multiply-accumulates, and that the cost model knows the form of every
    layer.
    """
    model = case.model()
    if case.has_reference:
        predicted = assert_dependencies(model, case.ranges, must_be_exact=case.is_exact)
    else:
        predicted = predicted_dependencies(model)
    assert predicted.is_exact == case.is_exact
    layers = array_layers(predicted.lowered)
    assert sum(layer.mac_count for layer in layers) == case.macs
    assert case.layers is None or len(layers) == case.layers
    for node in predicted.lowered.nodes:
        if node.layer is not None:
            check_layer(node.layer)
            assert all(dict(index_map.loops) == node.layer.size_of for index_map in node.index_maps)
    return predicted.lowered


def array_layers(lowered: LoweredModel) -> list[Layer]:
    """The layers on the MAC array."""
    return [node.layer for node in lowered.nodes if node.layer is not None and node.unit == MAC_ARRAY]


def only_layer(case: MatrixCase) -> Layer:
    """The only layer of a case."""
    (layer,) = array_layers(lower_model(case.model()))
    return layer
