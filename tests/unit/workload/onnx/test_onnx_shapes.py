"""Dynamic dimensions and missing shapes."""

from collections.abc import Callable

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from tilewright.base.errors import InputError
from tilewright.base.profile import REFERENCE
from tilewright.workload.onnx import read_onnx

Build = Callable[..., onnx.ModelProto]
node = helper.make_node


def _sequence_model(build: Build) -> onnx.ModelProto:
    return build(
        [node("MatMul", ["x", "w"], ["y"])], {"x": ["N", "sequence", 8]}, {"y": ["N", "sequence", 4]}, {"w": [8, 4]}
    )


def test_dynamic_batch_defaults_to_one(build: Build) -> None:
    """A symbolic first dimension is the batch, 1 by default, with a notice that names it."""
    notices: list[str] = []
    parsed = read_onnx(_sequence_model(build), REFERENCE, notices=notices, dims={"sequence": 10})
    (product,) = parsed.workload.layers_in_order
    assert product.layer is not None
    assert (product.layer.size_of["B"], product.layer.size_of["D"]) == (1, 10)
    assert any("'N'" in notice for notice in notices)


def test_dimensions_by_symbol_or_place(build: Build) -> None:
    """`dims` takes a symbol or input[axis]; both give the same network."""
    by_symbol = read_onnx(_sequence_model(build), REFERENCE, dims={"N": 3, "sequence": 10})
    by_place = read_onnx(_sequence_model(build), REFERENCE, dims={"x[0]": 3, "x[1]": 10})
    assert by_symbol == by_place
    assert by_symbol.coverage.total_mac_count == 3 * 10 * 8 * 4


def test_unresolved_symbol_is_named(build: Build) -> None:
    """A dynamic dimension other than the batch is an error that names the symbol and how to give its size."""
    with pytest.raises(InputError, match=r"dynamic dimension 'sequence' is not known.*dims: sequence: SIZE"):
        read_onnx(_sequence_model(build), REFERENCE)


def test_all_wrong_dims_at_once(build: Build) -> None:
    """A misspelt symbol and a negative size are both reported, the first with a suggestion."""
    with pytest.raises(InputError) as caught:
        read_onnx(_sequence_model(build), REFERENCE, dims={"sequense": 10, "N": -1})
    assert len(caught.value.problems) == 3
    assert "did you mean 'sequence'" in str(caught.value)


def test_missing_shapes_are_inferred(build: Build) -> None:
    """Shapes that are not stored are inferred, with a notice; a complete file has no notice."""
    nodes = [node("Relu", ["x"], ["r"]), node("Conv", ["r", "w"], ["y"], kernel_shape=[3, 3])]
    sizes = ({"x": [1, 2, 8, 8]}, {"y": [1, 4, 6, 6]}, {"w": [4, 2, 3, 3]})
    inferred = read_onnx(build(nodes, *sizes), REFERENCE)
    stored = read_onnx(build(nodes, *sizes, {"r": [1, 2, 8, 8]}), REFERENCE)
    assert inferred.workload == stored.workload
    assert any("inferred" in notice for notice in inferred.coverage.notices)
    assert stored.coverage.notices == ()


def test_reshape_by_a_computed_shape(build: Build) -> None:
    """A reshape whose target is computed from the shape of a tensor is followed."""
    numbers = {"start": [0], "end": [1]}
    nodes = [
        node("Constant", [], ["rest"], value_ints=[-1]),
        node("Shape", ["x"], ["s"]),
        node("Cast", ["s"], ["i"], to=onnx.TensorProto.INT32),
        node("Slice", ["i", "start", "end"], ["first"]),
        node("Cast", ["first"], ["j"], to=onnx.TensorProto.INT64),
        node("Concat", ["j", "rest"], ["target"], axis=0),
        node("Reshape", ["x", "target"], ["flat"]),
        node("Gemm", ["flat", "w"], ["y"]),
    ]
    model = build(nodes, {"x": ["N", 2, 4]}, {"y": None}, {"w": [8, 5]})
    model.graph.initializer.extend(numpy_helper.from_array(np.array(value), name) for name, value in numbers.items())
    parsed = read_onnx(model, REFERENCE, dims={"N": 3})
    assert parsed.coverage.total_mac_count == 3 * 8 * 5
    assert not model.graph.value_info, "the caller's model must not change"
