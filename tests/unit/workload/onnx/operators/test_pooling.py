"""Pools: windows, operations and dependencies."""

from typing import Any

import pytest
from onnx import TensorProto, helper
from onnx.helper import make_node
from tilewright.base.errors import InputError
from tilewright.base.profile import CORRECTED
from tilewright.workload.onnx import read_onnx
from tilewright.workload.onnx.lowering import Lowering
from tilewright.workload.onnx.node import OnnxNode
from tilewright.workload.onnx.operators.pooling import pool_windows
from tilewright.workload.onnx.resolution.network import ResolvedGraph
from tilewright.workload.onnx.tensor_facts import TensorFacts

from tests.unit.workload.onnx.dependency_checks import lower_model
from tests.unit.workload.onnx.operators.vector_cases import Case, check_case, check_layers, layers_of

INT64 = TensorProto.INT64


def _pool(operator: str, shape: tuple[int, ...], operations: int, outputs: int = 1, **attributes: Any) -> Case:
    opset = attributes.pop("opset", 20)
    return Case(operator, [shape], [operations], attributes=attributes, outputs=outputs, opset=opset)


CASES: dict[str, Case] = {
    "two axes": _pool("MaxPool", (1, 2, 4, 6), 2 * 6 * 4, kernel_shape=[2, 2], strides=[2, 2]),
    "overlapping windows": _pool("MaxPool", (1, 1, 5, 5), 4 * 9, kernel_shape=[3, 3], strides=[2, 2]),
    "padding": _pool("MaxPool", (1, 1, 4, 4), 4 * 9, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]),
    "uneven padding": _pool("MaxPool", (1, 1, 4, 5), 2 * 4 * 4, kernel_shape=[2, 2], strides=[2, 1], pads=[1, 0, 0, 0]),
    "different axes": _pool("MaxPool", (1, 1, 5, 4), 2 * 4 * 3, kernel_shape=[3, 1], strides=[2, 1]),
    "dilation": _pool("MaxPool", (1, 1, 5, 5), 9 * 4, kernel_shape=[2, 2], dilations=[2, 2]),
    "one axis": _pool("MaxPool", (2, 2, 6), 4 * 3 * 2, kernel_shape=[2], strides=[2]),
    "three axes": _pool("MaxPool", (1, 1, 3, 2, 4), 2 * 1 * 2 * 8, kernel_shape=[2, 2, 2], strides=[1, 1, 2]),
    "windows beyond the end": _pool("MaxPool", (1, 1, 5, 5), 9 * 4, kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1),
    "same upper": _pool("MaxPool", (1, 1, 5, 4), 3 * 2 * 4, kernel_shape=[2, 2], strides=[2, 2], auto_pad="SAME_UPPER"),
    "same lower": _pool("MaxPool", (1, 1, 4, 2), 8 * 4, kernel_shape=[2, 2], auto_pad="SAME_LOWER"),
    "valid": _pool("MaxPool", (1, 1, 5), 2 * 2, kernel_shape=[2], strides=[2], auto_pad="VALID"),
    "indices": _pool("MaxPool", (1, 2, 4, 4), 2 * 4 * 4, 2, kernel_shape=[2, 2], strides=[2, 2]),
    "average": _pool("AveragePool", (1, 2, 4, 4), 2 * 4 * 4, kernel_shape=[2, 2], strides=[2, 2]),
    "average with padding": _pool("AveragePool", (1, 1, 3, 3), 16 * 4, kernel_shape=[2, 2], pads=[1, 1, 1, 1]),
    "average before opset 10": _pool("AveragePool", (1, 1, 4), 2 * 2, kernel_shape=[2], strides=[2], opset=7),
    "lp": _pool("LpPool", (1, 1, 4, 4), 4 * 4, kernel_shape=[2, 2], strides=[2, 2], p=2, opset=18),
    "global average": _pool("GlobalAveragePool", (2, 3, 2, 2), 24),
    "global maximum": _pool("GlobalMaxPool", (1, 3, 2, 2), 12),
    "global average of a volume": _pool("GlobalAveragePool", (1, 2, 2, 1, 3), 12),
}


@pytest.mark.parametrize("name", CASES)
def test_pools_compute_every_window(name: str) -> None:
    """Every window has one operation for each element; dependencies are on elements inside of the image."""
    check_case(CASES[name])


@pytest.mark.parametrize(
    ("case", "equation"),
    [
        (
            _pool("MaxPool", (1, 2, 8, 8), 0, kernel_shape=[3, 3], strides=[2, 2]),
            "O[b][k][oy][ox] += I[b][k][iy][ix]",
        ),
        (_pool("MaxPool", (1, 2, 8), 0, kernel_shape=[2], strides=[2]), "O[b][k][ox] += I[b][k][ox][fx]"),
        (_pool("GlobalAveragePool", (1, 2, 8, 8), 0), "O[b][k] += I[b][k][fy][fx]"),
    ],
)
def test_overlapping_windows_slide_and_separate_ones_do_not(case: Case, equation: str) -> None:
    """Overlapping windows slide; without overlap, every element is read once and window loops are plain loops."""
    assert [layer.equation for layer in layers_of(case)] == [equation]


def test_a_window_knows_its_stride_padding_and_input() -> None:
    """IY = 2 OY + FY - 1 for an image of 8 rows, and IX = 2 OX + FX for one of 6 columns."""
    (layer,) = layers_of(_pool("MaxPool", (1, 1, 8, 6), 0, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 0, 1, 0]))
    assert dict(layer.loop_sizes) == {"B": 1, "K": 1, "OY": 4, "OX": 2, "FY": 3, "FX": 3}
    assert layer.relations[0].terms == (("OY", 2), ("FY", 1))
    assert dict(layer.padding) == {"IY": (1, 0), "IX": (0, -1)}
    assert dict(layer.data_dimension_sizes) == {"IY": 8, "IX": 6}


@pytest.mark.parametrize(
    ("attributes", "words"),
    [
        ({"kernel_shape": [2]}, "kernel_shape"),
        ({"kernel_shape": [2, 0]}, "kernel_shape"),
        ({"kernel_shape": [2, 2], "strides": [0, 1]}, "strides"),
        ({"kernel_shape": [2, 2], "pads": [1, 1]}, "pads"),
    ],
)
def test_wrong_attributes_are_named(attributes: dict[str, Any], words: str) -> None:
    """A wrong attribute raises one error, which names the attribute and the operator."""
    facts = {name: TensorFacts(name, (1, 1, 4, 4), TensorProto.FLOAT, is_constant=False) for name in ("x", "y")}
    proto = make_node("MaxPool", ["x"], ["y"], name="op", **attributes)
    graph = ResolvedGraph((), facts, ("x",), ("y",), {}, frozenset(), {"": 20}, {}, ())
    with pytest.raises(InputError, match=f"op: wrong attribute '{words}'"):
        pool_windows(Lowering(OnnxNode(0, "op", proto), graph, CORRECTED))


def test_unpooling_depends_on_every_element_and_says_so() -> None:
    """Unpooling depends on every element, because the positions are known at run time only."""
    case = Case(
        "MaxUnpool",
        [(1, 1, 2, 2), (1, 1, 2, 2)],
        [4],
        attributes={"kernel_shape": [2, 2], "strides": [2, 2]},
        kinds={"x1": INT64},
        is_exact=False,
    )
    lowered = lower_model(case.model())
    check_layers(case, lowered.nodes)
    assert set(lowered.statuses.values()) == {"approximated"}


def test_regions_are_sampled_and_say_that_this_is_an_estimate() -> None:
    """RoiAlign counts four pixels for 2 x 2 places in 3 x 3 bins, 2 channels and 5 regions, as an estimate."""
    case = Case(
        "RoiAlign",
        [(1, 2, 8, 8), (5, 4), (5,)],
        [5 * 2 * 9 * 16],
        attributes={"output_height": 3, "output_width": 3, "sampling_ratio": 2},
        kinds={"x2": INT64},
        is_exact=False,
        ranges={"x1": (0.0, 7.0), "x2": (0, 0)},
    )
    check_case(case)
    assert set(lower_model(case.model()).statuses.values()) == {"approximated"}


@pytest.mark.parametrize(("operator", "bits"), [("MaxPool", 8), ("AveragePool", 16)])
def test_a_maximum_is_no_wider_than_its_inputs(operator: str, bits: int) -> None:
    """The partial results of a maximum are as wide as its inputs; those of an average are sums and need more bits."""
    pool = make_node(operator, ["x"], ["y"], kernel_shape=[2, 2], strides=[2, 2])
    graph = helper.make_graph(
        [pool],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 2, 4, 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 2, 2, 2])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    (node,) = read_onnx(model, CORRECTED).workload.layers_in_order
    assert node.layer is not None
    assert node.layer.bits_of["O"] == bits
