"""The layers that operators become, under the reference profile and the corrected one."""

from collections.abc import Callable

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from tilewright.base.profile import CORRECTED, REFERENCE, ModelProfile
from tilewright.workload.graph import WorkloadNode
from tilewright.workload.layer import Layer
from tilewright.workload.onnx import read_onnx

Build = Callable[..., onnx.ModelProto]
node = helper.make_node


def _layer(model: onnx.ModelProto, profile: ModelProfile = REFERENCE) -> Layer:
    (only,) = read_onnx(model, profile).workload.layers_in_order
    assert only.layer is not None
    return only.layer


def _by_name(model: onnx.ModelProto, profile: ModelProfile) -> dict[str, WorkloadNode]:
    return {item.name: item for item in read_onnx(model, profile).workload.nodes}


def _oblong_conv(build: Build) -> onnx.ModelProto:
    conv = node(
        "Conv",
        ["x", "w"],
        ["y"],
        name="c",
        kernel_shape=[3, 5],
        strides=[1, 2],
        dilations=[2, 1],
        pads=[2, 1, 3, 4],
    )
    return build([conv], {"x": [2, 4, 20, 30]}, {"y": [2, 8, 21, 16]}, {"w": [8, 4, 3, 5]})


def test_reference_ties_height_to_x(build: Build) -> None:
    """Index 0 of kernel, strides, dilations and pads belongs to X under the reference profile; sizes are not
    exchanged.
    """
    layer = _layer(_oblong_conv(build))
    assert layer.loop_sizes == (
        ("B", 2),
        ("K", 8),
        ("G", 1),
        ("OX", 16),
        ("OY", 21),
        ("C", 4),
        ("FX", 3),
        ("FY", 5),
    )
    assert [relation.terms for relation in layer.relations] == [(("OX", 1), ("FX", 2)), (("OY", 2), ("FY", 1))]
    assert layer.padding == (("IX", (2, 3)), ("IY", (1, 4)))
    assert layer.data_dimension_sizes == (("IX", 30), ("IY", 20))
    assert layer.equation == "O[b][g][k][oy][ox] += W[g][k][c][fy][fx] * I[b][g][c][iy][ix]"


def test_corrected_ties_height_to_y(build: Build) -> None:
    """Kernel, strides, dilations and pads follow the axes of the feature map with `onnx_height_is_y`."""
    layer = _layer(_oblong_conv(build), CORRECTED)
    assert (layer.size_of["FX"], layer.size_of["FY"]) == (5, 3)
    assert [relation.terms for relation in layer.relations] == [(("OX", 2), ("FX", 1)), (("OY", 1), ("FY", 2))]
    assert layer.padding == (("IX", (1, 4)), ("IY", (2, 3)))


def test_exchanged_axes_are_told(build: Build) -> None:
    """A notice names the layers with exchanged axes under the reference profile; the corrected profile has none."""
    assert "fault B10" in (text := "\n".join(read_onnx(_oblong_conv(build), REFERENCE).coverage.notices))
    assert text.endswith(": c")
    assert read_onnx(_oblong_conv(build), CORRECTED).coverage.notices == ()


def test_group_convolution(build: Build) -> None:
    """A depthwise convolution has G = channels and K = C = 1; its kernel may come from the weights' shape."""
    model = build(
        [node("Conv", ["x", "w"], ["y"], group=6)], {"x": [1, 6, 8, 8]}, {"y": [1, 6, 6, 6]}, {"w": [6, 1, 3, 3]}
    )
    layer = _layer(model)
    assert (layer.size_of["G"], layer.size_of["K"], layer.size_of["C"]) == (6, 1, 1)
    assert layer.mac_count == 6 * 36 * 9
    assert layer.name == "Op0"


def test_one_axis_convolution_lies_along_x(build: Build) -> None:
    """A 1-D convolution is a layer of height 1 under both profiles."""
    model = build(
        [node("Conv", ["x", "w"], ["y"], strides=[2], pads=[1, 1])],
        {"x": [1, 3, 100]},
        {"y": [1, 16, 50]},
        {"w": [16, 3, 3]},
    )
    for profile in (REFERENCE, CORRECTED):
        layer = _layer(model, profile)
        assert {key: layer.size_of[key] for key in ("OX", "OY", "FX", "FY")} == {"OX": 50, "OY": 1, "FX": 3, "FY": 1}
        assert layer.relations[0].terms == (("OX", 2), ("FX", 1))
        assert layer.padding == (("IX", (1, 1)), ("IY", (0, 0)))


@pytest.mark.parametrize(("mode", "expected"), [("SAME_UPPER", (0, 1)), ("SAME_LOWER", (1, 0)), ("VALID", (0, 0))])
def test_automatic_padding(build: Build, mode: str, expected: tuple[int, int]) -> None:
    """auto_pad gives the padding of the operator's definition."""
    out = 3 if mode == "VALID" else 4
    model = build(
        [node("Conv", ["x", "w"], ["y"], strides=[2, 2], auto_pad=mode, kernel_shape=[3, 3])],
        {"x": [1, 1, 8, 8]},
        {"y": [1, 1, out, out]},
        {"w": [1, 1, 3, 3]},
    )
    assert dict(_layer(model).padding)["IX"] == expected


def test_quantised_convolution_predecessors(build: Build) -> None:
    """Scales and zero points of QLinearConv are no predecessors; W is its fourth input."""
    inputs = ["q", "xs", "xz", "w", "ws", "wz", "ys", "yz"]
    model = build(
        [node("Relu", ["x"], ["q"], name="r"), node("QLinearConv", inputs, ["y"], name="c")],
        {"x": [1, 2, 4, 4]},
        {"y": [1, 3, 4, 4]},
        {"w": [3, 2, 1, 1], **{name: [] for name in ("xs", "xz", "ws", "wz", "ys", "yz")}},
        {"q": [1, 2, 4, 4]},
    )
    for profile in (REFERENCE, CORRECTED):
        conv = _by_name(model, profile)["c"]
        assert conv.layer is not None
        assert conv.layer.constant_operands == ("W",)
        assert conv.sources == (("I", 0),)


def test_precision_attributes(build: Build) -> None:
    """weight_size, act_size and output_size set the bits; partial sums default to twice the activations."""
    model = build(
        [node("Gemm", ["x", "w"], ["y"], weight_size=4, act_size=6)], {"x": [2, 8]}, {"y": [2, 5]}, {"w": [8, 5]}
    )
    assert _layer(model).bits_of == {"W": 4, "I": 6, "O_final": 6, "O": 12}
    model.graph.node[0].attribute.append(helper.make_attribute("output_size", 20))
    assert _layer(model).bits_of["O"] == 20


def test_gemm_dimensions(build: Build) -> None:
    """Loops have the order C, D, K and operands O, I, W; transA and transB are respected, and the bias costs
    nothing.
    """
    model = build(
        [node("Gemm", ["x", "w", "b"], ["y"], transA=1, transB=1)],
        {"x": [8, 2]},
        {"y": [2, 5]},
        {"w": [5, 8], "b": [5]},
    )
    layer = _layer(model)
    assert layer.loop_sizes == (("C", 8), ("D", 2), ("K", 5))
    assert layer.equation == "O[d][k] += I[d][c] * W[c][k]"
    assert layer.constant_operands == ("W", "I")


def _attention(build: Build) -> onnx.ModelProto:
    return build(
        [
            node("Relu", ["x"], ["q"], name="q"),
            node("Tanh", ["z"], ["k"], name="k"),
            node("MatMul", ["q", "k"], ["y"], name="m", weight_size=4),
        ],
        {"x": [3, 2, 10, 64], "z": [3, 2, 64, 12]},
        {"y": [3, 2, 10, 12]},
        inner={"q": [3, 2, 10, 64], "k": [3, 2, 64, 12]},
    )


@pytest.mark.parametrize("profile", [REFERENCE, CORRECTED])
def test_product_of_two_activations(build: Build, profile: ModelProfile) -> None:
    """W has batch dimensions and the bits of activations in a product of two activations.

    Both operands have an edge.
    """
    product = _by_name(_attention(build), profile)["m"]
    assert product.layer is not None
    assert product.layer.loop_sizes == (("C", 64), ("D", 10), ("K", 12), ("B", 3), ("H", 2))
    assert product.layer.equation == "O[b][h][d][k] += I[b][h][d][c] * W[b][h][c][k]"
    assert product.layer.constant_operands == ()
    assert product.layer.bits_of["W"] == 8
    assert product.sources == (("W", 1), ("I", 0))


def test_activation_times_weight_matrix(build: Build) -> None:
    """A 2-D weight is shared by the batches of a 3-D activation."""
    model = build([node("MatMul", ["x", "w"], ["y"])], {"x": [4, 7, 8]}, {"y": [4, 7, 5]}, {"w": [8, 5]})
    layer = _layer(model)
    assert layer.equation == "O[b][d][k] += I[b][d][c] * W[c][k]"
    assert layer.mac_count == 4 * 7 * 8 * 5


@pytest.mark.parametrize(
    ("left", "right", "out", "macs"),
    [
        ([8], [8, 5], [5], 40),
        ([7, 8], [8], [7], 56),
        ([8], [8], [], 8),
        ([7, 8], [3, 8, 5], [3, 7, 5], 840),
        ([2, 3, 4, 7, 8], [8, 5], [2, 3, 4, 7, 5], 6720),
        ([1, 7, 8], [3, 8, 5], [3, 7, 5], 840),
    ],
)
def test_products_of_other_ranks(build: Build, left: list[int], right: list[int], out: list[int], macs: int) -> None:
    """Vectors, broadcast batches and more than two batch dimensions keep the number of multiply-accumulates."""
    model = build([node("MatMul", ["x", "z"], ["y"])], {"x": left, "z": right}, {"y": out})
    for profile in (REFERENCE, CORRECTED):
        assert _layer(model, profile).mac_count == macs


def test_weights_through_constant_nodes(build: Build) -> None:
    """Weights from a Constant node are an activation in the reference, with a notice, but weights when corrected."""
    constant = node("Constant", [], ["w"], name="w", value=numpy_helper.from_array(np.zeros((4, 2, 1, 1), np.float32)))
    model = build(
        [node("Relu", ["x"], ["r"], name="r"), constant, node("Conv", ["r", "w"], ["y"], name="c")],
        {"x": [1, 2, 4, 4]},
        {"y": [1, 4, 4, 4]},
        inner={"r": [1, 2, 4, 4]},
    )
    reference = _by_name(model, REFERENCE)["c"]
    assert reference.layer is not None
    assert (reference.layer.constant_operands, reference.sources) == ((), (("W", 1), ("I", 0)))
    assert any(notice.endswith(": c") for notice in read_onnx(model, REFERENCE).coverage.notices)
    corrected = _by_name(model, CORRECTED)["c"]
    assert corrected.layer is not None
    assert (corrected.layer.constant_operands, corrected.sources) == (("W",), (("I", 0),))


def test_three_predecessors(build: Build) -> None:
    """The reference refuses three predecessors; here the convolution is traced to its constants, with a notice."""
    constants = [
        node("Constant", [], [name], value=numpy_helper.from_array(np.zeros(shape, np.float32)))
        for name, shape in (("w", (4, 2, 1, 1)), ("b", (4,)))
    ]
    model = build(
        [node("Relu", ["x"], ["r"]), *constants, node("Conv", ["r", "w", "b"], ["y"], name="c")],
        {"x": [1, 2, 4, 4]},
        {"y": [1, 4, 4, 4]},
        inner={"r": [1, 2, 4, 4]},
    )
    conv = _by_name(model, REFERENCE)["c"]
    assert conv.layer is not None
    assert (conv.layer.constant_operands, conv.sources) == (("W",), (("I", 0),))
    assert any("more than two predecessors" in notice for notice in read_onnx(model, REFERENCE).coverage.notices)


def test_constant_left_operand(build: Build) -> None:
    """The corrected profile takes a constant first operand as W, and the work is equal under both profiles."""
    model = build(
        [node("Relu", ["x"], ["r"]), node("MatMul", ["w", "r"], ["y"], name="m")],
        {"x": [2, 8, 5]},
        {"y": [2, 7, 5]},
        {"w": [7, 8]},
        {"r": [2, 8, 5]},
    )
    product = _by_name(model, CORRECTED)["m"]
    assert product.layer is not None
    assert product.layer.equation == "O[b][d][k] += I[b][c][k] * W[d][c]"
    assert product.sources == (("I", 0),)
    reference = _by_name(model, REFERENCE)["m"]
    assert reference.layer is not None
    assert reference.layer.mac_count == product.layer.mac_count == 2 * 7 * 8 * 5


def test_edges_of_other_operators(build: Build) -> None:
    """The reference keeps two predecessors of an operator without costs; the corrected profile adds all of them."""
    model = build(
        [*(node("Relu", ["x"], [name]) for name in "abc"), node("Sum", ["a", "b", "c"], ["y"], name="s")],
        {"x": [2]},
        {"y": [2]},
    )
    total = _by_name(model, REFERENCE)["s"]
    assert (total.layer, total.operator_type) == (None, "sum")
    assert total.sources == (("I", 0), ("W", 1))
    added = [item for item in _by_name(model, CORRECTED).values() if item.origin == "s"]
    assert {source for item in added for _, source in item.sources} >= {0, 1, 2}


def test_names_are_unique_and_stable(build: Build) -> None:
    """Nameless nodes are Op<index>; duplicate names are numbered and do not clash with given ones."""
    names = ["a", "a", "", "Op2", "a__2", "a"]
    model = build([node("Relu", ["x"], [f"y{i}"], name=name) for i, name in enumerate(names)], {"x": [1]}, {"y0": [1]})
    found = [item.name for item in read_onnx(model, REFERENCE).workload.nodes]
    assert found == ["a", "a__3", "Op2__2", "Op2", "a__2", "a__4"]


def test_unsorted_operators_are_sorted(build: Build) -> None:
    """Operators in an impossible order are sorted, with a notice."""
    model = build(
        [node("Relu", ["a"], ["y"], name="second"), node("Relu", ["x"], ["a"], name="first")], {"x": [1]}, {"y": [1]}
    )
    parsed = read_onnx(model, REFERENCE)
    assert [item.name for item in parsed.workload.nodes] == ["first", "second"]
    assert any("sorted" in notice for notice in parsed.coverage.notices)
