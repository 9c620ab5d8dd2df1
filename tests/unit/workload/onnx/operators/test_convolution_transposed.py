"""Transposed convolutions: all multiply-accumulates, for any padding of the output, and exact dependencies."""

import math
from typing import Any

import numpy as np
import pytest
from onnx import helper
from tilewright.base.errors import InputError

from tests.unit.workload.onnx.dependency_checks import build_model, lower_model, predicted_dependencies
from tests.unit.workload.onnx.operators.matrix_cases import MatrixCase, array_layers, check_matrix_case

Shape = tuple[int, ...]


def _case(
    data: Shape, weights: Shape, attributes: dict[str, Any], layers: int, *, bias: bool = False, **others: Any
) -> MatrixCase:
    group = attributes.get("group", 1)
    shapes: list[Shape | None] = [data, weights] + ([(weights[1] * group,)] if bias else [])
    macs = math.prod(data) * math.prod(weights[1:])
    return MatrixCase("ConvTranspose", shapes, macs, attributes, weights=(1,), layers=layers, **others)


# Number of layers: of runs of residues with equally many taps, along every axis.
CASES = {
    "kernel as long as the stride": _case((1, 2, 2, 3), (2, 3, 2, 2), {"strides": [2, 2]}, 1),
    "with bias": _case((1, 2, 2, 3), (2, 3, 2, 2), {"strides": [2, 2]}, 1, bias=True),
    "kernel shorter than the stride": _case((1, 1, 2, 3), (1, 2, 2, 1), {"strides": [3, 2]}, 1, bias=True),
    "cut at both ends": _case((1, 1, 3), (1, 2, 2), {"strides": [2], "pads": [1, 1]}, 1),
    "stride 1, same size": _case((1, 2, 4, 4), (2, 2, 3, 3), {"pads": [1, 1, 1, 1]}, 1, bias=True),
    "twice the size, kernel 3": _case(
        (1, 2, 3, 2), (2, 2, 3, 3), {"strides": [2, 2], "pads": [1, 1, 1, 1], "output_padding": [1, 1]}, 4, bias=True
    ),
    "twice the size, kernel 4": _case((1, 1, 3, 2), (1, 2, 4, 4), {"strides": [2, 2], "pads": [1, 1, 1, 1]}, 4),
    "eight times the length": _case((1, 1, 3), (1, 2, 16), {"strides": [8], "pads": [4, 4]}, 2, bias=True),
    "three runs": _case((1, 1, 3), (1, 1, 7), {"strides": [3], "pads": [2, 2]}, 3),
    "first layer of a generator": _case((1, 3, 1, 1), (3, 2, 4, 4), {}, 1),
    "stride 1, growing": _case((1, 1, 3, 4), (1, 2, 3, 2), {}, 1, bias=True),
    "no padding": _case((1, 2, 3), (2, 2, 3), {"strides": [2]}, 2),
    "odd size": _case((1, 2, 3), (2, 2, 3), {"strides": [2], "pads": [1, 1]}, 2),
    "dilated": _case((1, 1, 4), (1, 2, 3), {"strides": [2], "dilations": [3], "pads": [2, 1]}, 2),
    "dilation and stride share a factor": _case((1, 1, 4), (1, 2, 3), {"strides": [4], "dilations": [2]}, 2),
    "dilated, same size": _case((1, 1, 5), (1, 2, 3), {"dilations": [2], "pads": [2, 2]}, 1),
    "depthwise": _case((1, 2, 3), (2, 1, 3), {"strides": [2], "group": 2, "pads": [1, 0]}, 2),
    "stated output shape": _case((1, 1, 3, 3), (1, 2, 3, 3), {"strides": [3, 2], "output_shape": [10, 8]}, 2),
    "same upper": _case((1, 1, 3), (1, 2, 3), {"strides": [2], "auto_pad": "SAME_UPPER"}, 2),
    "same lower": _case((1, 1, 3), (1, 2, 4), {"strides": [3], "auto_pad": "SAME_LOWER"}, 2),
    "three axes": _case((1, 1, 2, 2, 2), (1, 2, 2, 1, 3), {"strides": [2, 1, 1]}, 1),
}


@pytest.mark.parametrize("name", CASES)
def test_transposed_convolution(name: str) -> None:
    """Work is input elements times filter elements, and dependencies are exact."""
    check_matrix_case(CASES[name])


def test_layer_without_overlap() -> None:
    """A loop runs over the residues if the kernel is as long as the stride, and sums are over channels only."""
    (layer,) = array_layers(lower_model(CASES["kernel as long as the stride"].model()))
    assert layer.size_of["OX"] == 3
    assert layer.size_of["RX"] == 2
    assert layer.size_of["FX"] == 1
    assert layer.relations == ()


def test_layer_over_outputs_has_a_window() -> None:
    """Twice the size with kernel 3: even outputs see one tap, odd outputs two neighbouring inputs."""
    model = _case((1, 2, 5), (2, 2, 3), {"strides": [2], "pads": [1, 1], "output_padding": [1]}, 2).model()
    first, second = array_layers(lower_model(model))
    assert (first.size_of["FX"], first.size_of["OX"]) == (2, 5)
    assert [relation.terms for relation in first.relations] == [(("OX", 1), ("FX", 1))]
    assert first.padding == (("IX", (0, 1)),)
    assert (second.size_of["FX"], second.size_of["OX"]) == (1, 5)


def test_counting_by_inputs_is_told() -> None:
    """The operator counts as approximated, not as modelled, if its output is not stride times the input."""
    assert lower_model(CASES["no padding"].model()).statuses == {"op": "approximated"}
    assert lower_model(CASES["eight times the length"].model()).statuses == {"op": "modelled"}


def test_first_layer_of_a_generator_writes_each_tap() -> None:
    """The loops over the taps of a layer index the output if the layer makes four positions from one position."""
    (layer,) = array_layers(lower_model(CASES["first layer of a generator"].model()))
    assert set(dict(layer.operand_dimensions)["O"]) >= {"K", "FY", "FX"}


def test_another_kernel_shape_is_refused() -> None:
    """An attribute kernel_shape that contradicts the weights raises InputError, which names it."""
    model = _case((1, 2, 3), (2, 3, 3), {"group": 1}, 1).model()
    model.graph.node[0].attribute.append(helper.make_attribute("kernel_shape", [4]))
    with pytest.raises(InputError, match="kernel_shape"):
        lower_model(model)


def test_weights_that_are_computed() -> None:
    """No operand is constant if weights are computed, and outputs depend on the weights, too."""
    case = MatrixCase("ConvTranspose", [(1, 2, 2), (2, 1, 3), (1,)], 2 * 2 * 3, {"strides": [2]})
    lowered = check_matrix_case(case)
    assert all(layer.constant_operands == () for layer in array_layers(lowered))


def test_groups_are_convolutions_side_by_side() -> None:
    """A transposed convolution of two groups has the dependencies of two convolutions with half the channels each.

    The reference evaluator has no groups.
    """
    attributes = {"strides": [2], "pads": [1, 0]}
    data, weights = {"x0": (1, 4, 3)}, np.ones((4, 3, 3), np.float32)
    grouped = helper.make_node("ConvTranspose", ["x0", "w"], ["y"], group=2, **attributes)
    apart = [
        helper.make_node("Split", ["x0", "parts"], ["a", "b"], axis=1),
        helper.make_node("ConvTranspose", ["a", "v"], ["c"], **attributes),
        helper.make_node("ConvTranspose", ["b", "v"], ["d"], **attributes),
        helper.make_node("Concat", ["c", "d"], ["y"], axis=1),
    ]
    one = predicted_dependencies(build_model([grouped], data, {"w": weights}))
    several = predicted_dependencies(build_model(apart, data, {"v": weights[:2], "parts": [2, 2]}))
    assert (one.tables["y", "x0"] == several.tables["y", "x0"]).all()
    assert one.tables["y", "x0"].any()
    assert sum(layer.mac_count for layer in array_layers(one.lowered)) == 4 * 3 * 3 * 3


@pytest.mark.parametrize("seed", range(60))
def test_any_geometry_of_one_axis(seed: int) -> None:
    """Input i and tap f write output stride * i + dilation * f - padding, exactly these pairs, with all the work."""
    generator = np.random.default_rng(seed)
    length, kernel, stride, dilation = (int(value) for value in generator.integers(1, (6, 8, 6, 4)))
    extra = int(generator.integers(0, max(stride, dilation)))
    full = stride * (length - 1) + (kernel - 1) * dilation + 1 + extra
    pads = [int(value) for value in generator.integers(0, max(full // 3, 1), 2)]
    attributes = {"strides": [stride], "dilations": [dilation], "pads": pads, "output_padding": [extra]}
    predicted = predicted_dependencies(_case((1, 1, length), (1, 1, kernel), attributes, 0).model())
    expected = np.zeros((full - sum(pads), length), dtype=bool)
    for position in range(length):
        for tap in range(kernel):
            place = stride * position + dilation * tap - pads[0]
            if 0 <= place < len(expected):
                expected[place, position] = True
    assert predicted.is_exact
    assert (predicted.tables["y0", "x0"] == expected).all()
    assert sum(layer.mac_count for layer in array_layers(predicted.lowered)) == length * kernel
