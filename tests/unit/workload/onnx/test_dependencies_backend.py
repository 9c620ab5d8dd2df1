"""Index maps of onnx's own one-operator models: no dependency that an experiment shows is missing."""

from collections.abc import Iterator

import numpy as np
import onnx
import pytest
from onnx import TensorProto, numpy_helper
from tilewright.base.errors import InputError
from tilewright.workload.graph import UNSUPPORTED

from tests.unit.workload.onnx.dependency_checks import assert_dependencies, lower_model
from tests.unit.workload.onnx.node_cases import node_cases

_MOST_ELEMENTS = 64
_SETTINGS = (TensorProto.INT32, TensorProto.INT64, TensorProto.BOOL)
"""Element types of the inputs that can hold axes, sizes or amounts; such inputs become constants."""
_NUMBERS = (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.INT32, TensorProto.INT64, TensorProto.BOOL)
_LIMITED = {
    "Bernoulli",  # needs probabilities
    "ConstantOfShape",  # their only input is a shape
    "OneHot",  # with a depth of any type
    "Range",
    "Scatter",  # absent in the reference evaluator
}


def _models() -> Iterator[tuple[str, onnx.ModelProto]]:
    for case in node_cases():
        if case.model is None or len(case.model.graph.node) != 1 or case.model.graph.node[0].op_type in _LIMITED:
            continue
        model = onnx.ModelProto()
        model.CopyFrom(case.model)
        inputs = list(model.graph.input)
        if any(given.type.WhichOneof("value") != "tensor_type" for given in (*inputs, *model.graph.output)):
            continue
        kept = []
        for number, (given, values) in enumerate(zip(inputs, case.data_sets[0][0], strict=False)):
            if number > 0 and (given.type.tensor_type.elem_type in _SETTINGS or given.name == "scales"):
                model.graph.initializer.append(numpy_helper.from_array(np.asarray(values), given.name))
            else:
                kept.append(given)
        del model.graph.input[:]
        model.graph.input.extend(kept)
        shapes = [[dimension.dim_value for dimension in given.type.tensor_type.shape.dim] for given in kept]
        small = all(0 < np.prod(shape) <= _MOST_ELEMENTS for shape in shapes)
        if kept and small and all(given.type.tensor_type.elem_type in _NUMBERS for given in kept):
            yield case.name, model


@pytest.fixture(scope="module")
def models() -> list[tuple[str, onnx.ModelProto]]:
    """Names and models of onnx's test cases, only those with few elements."""
    return list(_models())


@pytest.mark.slow
def test_no_dependency_of_a_backend_model_is_missing(models: list[tuple[str, onnx.ModelProto]]) -> None:
    """The maps contain all dependencies of the experiment, for every operator that is not unsupported."""
    missing, checked = [], 0
    for name, model in models:
        try:
            lowered = lower_model(model)
        except InputError:
            continue  # control flow, sizes of the run time, empty tensors: told with an error
        if UNSUPPORTED in lowered.statuses.values():
            continue
        try:
            assert_dependencies(model, only_contains=True, rounds=2)
            checked += 1
        except AssertionError as error:
            missing.append(f"{name}: {error}")
        except (ValueError, IndexError, RuntimeError, TypeError, NotImplementedError):
            continue  # the experiment's random values are not what this operator takes
    assert not missing, "\n".join(missing)
    assert checked > 500
