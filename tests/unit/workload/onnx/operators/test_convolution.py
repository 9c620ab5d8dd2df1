"""Convolutions: work, layers, and dependencies, compared with the reference evaluator."""

import numpy as np
import pytest
from onnx import TensorProto, helper
from tilewright.base.errors import InputError

from tests.unit.workload.onnx.dependency_checks import build_model, lower_model
from tests.unit.workload.onnx.operators.matrix_cases import MatrixCase, array_layers, check_matrix_case, only_layer

U8 = TensorProto.UINT8
ZERO = np.uint8(0)

CASES = {
    "plain": MatrixCase("Conv", [(1, 2, 4, 5), (3, 2, 2, 3)], 3 * 3 * 3 * 2 * 6, weights=(1,)),
    "bias": MatrixCase("Conv", [(2, 2, 4, 4), (3, 2, 1, 1), (3,)], 2 * 3 * 16 * 2, weights=(1,)),
    "computed weights and bias": MatrixCase("Conv", [(1, 2, 3, 3), (2, 2, 2, 2), (2,)], 2 * 4 * 2 * 4),
    "computed weights on padding": MatrixCase(
        "Conv", [(1, 1, 3, 3), (1, 1, 3, 3)], 9 * 9, {"pads": [1, 1, 1, 1]}, is_exact=False
    ),
    "strides, dilations, uneven padding": MatrixCase(
        "Conv",
        [(1, 1, 7, 6), (2, 1, 2, 3)],
        2 * 4 * 5 * 6,
        {"strides": [2, 1], "dilations": [3, 2], "pads": [1, 2, 2, 1]},
        weights=(1,),
    ),
    "groups": MatrixCase("Conv", [(1, 4, 3, 3), (6, 2, 2, 2)], 6 * 4 * 2 * 4, {"group": 2}, weights=(1,)),
    "depthwise": MatrixCase(
        "Conv", [(1, 3, 4, 4), (3, 1, 3, 3)], 3 * 16 * 9, {"group": 3, "pads": [1, 1, 1, 1]}, weights=(1,)
    ),
    "same upper": MatrixCase(
        "Conv", [(1, 1, 5, 6), (1, 1, 2, 3)], 3 * 3 * 6, {"auto_pad": "SAME_UPPER", "strides": [2, 2]}, weights=(1,)
    ),
    "same lower": MatrixCase(
        "Conv", [(1, 1, 5, 6), (1, 1, 2, 3)], 3 * 3 * 6, {"auto_pad": "SAME_LOWER", "strides": [2, 2]}, weights=(1,)
    ),
    "valid": MatrixCase("Conv", [(1, 1, 4, 4), (1, 1, 2, 2)], 9 * 4, {"auto_pad": "VALID"}, weights=(1,)),
    "one axis": MatrixCase(
        "Conv", [(2, 2, 9), (3, 2, 3), (3,)], 2 * 3 * 4 * 2 * 3, {"strides": [2], "pads": [1, 0]}, weights=(1, 2)
    ),
    "three axes": MatrixCase(
        "Conv",
        [(1, 2, 4, 3, 5), (4, 1, 2, 1, 3), (4,)],
        4 * (2 * 3 * 5) * 6,
        {"group": 2, "strides": [2, 1, 1], "pads": [0, 0, 1, 0, 0, 1]},
        weights=(1,),
    ),
    "integers": MatrixCase(
        "ConvInteger",
        [(1, 2, 3, 3), (2, 2, 2, 2), ()],
        2 * 4 * 8,
        weights=(1,),
        kinds={0: U8, 1: U8, 2: U8},
        ranges={"x0": (0, 200), "x2": (0, 200)},
        opset=10,
    ),
    "quantised": MatrixCase(
        "QLinearConv",
        [(1, 2, 3, 3), (), (), (2, 2, 2, 2), (2,), (), (), (), (2,)],
        2 * 4 * 8,
        weights=(3,),
        values={1: 0.5, 2: ZERO, 4: [0.5, 0.25], 5: ZERO, 6: 8.0, 7: ZERO, 8: np.zeros(2, np.int32)},
        kinds={0: U8, 3: U8},
        ranges={"x0": (0, 200)},
    ),
    "deformable": MatrixCase(
        "DeformConv",
        [(1, 2, 3, 3), (1, 2, 2, 2), (1, 8, 2, 2), (1,), (1, 4, 2, 2)],
        4 * 8,
        {"kernel_shape": [2, 2]},
        weights=(1,),
        opset=19,
        is_exact=False,
        ranges={"x2": (-1.0, 1.0)},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_convolution(name: str) -> None:
    """Work, form of the layers, and dependencies are right."""
    check_matrix_case(CASES[name])


def test_layer_of_two_axes() -> None:
    """Loops have the order of zigzag-dse, with height on Y; only the weights are constant."""
    layer = only_layer(CASES["strides, dilations, uneven padding"])
    assert layer.loop_sizes == (
        ("B", 1),
        ("K", 2),
        ("G", 1),
        ("OX", 5),
        ("OY", 4),
        ("C", 1),
        ("FX", 3),
        ("FY", 2),
    )
    assert [relation.terms for relation in layer.relations] == [(("OX", 1), ("FX", 2)), (("OY", 2), ("FY", 3))]
    assert layer.padding == (("IX", (2, 1)), ("IY", (1, 2)))
    assert layer.constant_operands == ("W",)
    assert layer.bits_of == {"W": 8, "I": 8, "O_final": 8, "O": 16}


def test_layer_of_three_axes() -> None:
    """Each of three axes has its own window, and groups are a dimension of all operands."""
    layer = only_layer(CASES["three axes"])
    assert layer.equation == "O[b][g][k][oz][oy][ox] += W[g][k][c][fz][fy][fx] * I[b][g][c][oz][fz][oy][fy][ix]"
    assert layer.size_of == {
        "B": 1,
        "K": 2,
        "G": 2,
        "OX": 5,
        "OY": 3,
        "OZ": 2,
        "C": 1,
        "FX": 3,
        "FY": 1,
        "FZ": 2,
    }
    assert dict(layer.padding) == {"IX": (1, 1)}


def test_integer_accumulator() -> None:
    """The result of ConvInteger has the 32 bits of its type."""
    bits = only_layer(CASES["integers"]).bits_of
    assert (bits["W"], bits["I"], bits["O_final"]) == (8, 8, 32)


def test_more_than_three_axes_are_unsupported() -> None:
    """A convolution over four axes is reported as unsupported and raises no error."""
    case = MatrixCase("Conv", [(1, 1, 2, 2, 2, 2), (1, 1, 1, 1, 1, 1)], 0, weights=(1,))
    lowered = lower_model(case.model())
    assert lowered.statuses == {"op": "unsupported"}


@pytest.mark.parametrize(("bits", "kind"), [(8, TensorProto.INT8), (4, TensorProto.INT4)])
def test_weights_behind_a_quantiser_have_their_bits(bits: int, kind: int) -> None:
    """Weights behind a dequantiser have the bits of their integers; floating-point activations count as 8 bits."""
    raw = helper.make_tensor("q", kind, (2, 1, 2, 2), [1] * 8)
    dequantise = helper.make_node("DequantizeLinear", ["q", "scale"], ["w"])
    model = build_model(
        [dequantise, helper.make_node("Conv", ["x", "w"], ["y"])], {"x": (1, 1, 3, 3)}, {"scale": 0.5}, opset=21
    )
    model.graph.initializer.append(raw)
    (layer,) = array_layers(lower_model(model))
    assert (layer.bits_of["W"], layer.bits_of["I"], layer.constant_operands) == (bits, 8, ("W",))


def test_stated_precision_wins() -> None:
    """Attributes weight_size, act_size and output_size of the node overrule types."""
    model = CASES["integers"].model()
    for name, bits in (("weight_size", 3), ("act_size", 5), ("output_size", 20)):
        model.graph.node[0].attribute.append(helper.make_attribute(name, bits))
    (layer,) = array_layers(lower_model(model))
    assert layer.bits_of == {"W": 3, "I": 5, "O_final": 5, "O": 20}


@pytest.mark.parametrize("attributes", [{}, {"activation": "Relu"}])
def test_fused_convolution(attributes: dict[str, str]) -> None:
    """FusedConv of com.microsoft has its activation as a part on the vector unit."""
    shapes = [(1, 2, 4, 4), (3, 2, 3, 3), (3,)]
    case = MatrixCase(
        "FusedConv", list(shapes), 3 * 4 * 18, attributes, weights=(1, 2), domain="com.microsoft", has_reference=False
    )
    lowered = check_matrix_case(case)
    operations = [node.layer.mac_count for node in lowered.nodes if node.layer]
    assert operations == [3 * 4 * 18, *([3 * 4] if attributes else [])]


def test_deformable_convolution_is_approximated() -> None:
    """The cost of a deformable convolution leaves out the interpolation, so it is marked approximated."""
    lowered = lower_model(CASES["deformable"].model())
    assert lowered.statuses == {"op": "approximated"}


@pytest.mark.parametrize(
    ("case", "text"),
    [
        (MatrixCase("Conv", [(1, 3, 4, 4), (2, 3, 2, 2), (3,)], 0, weights=(1, 2)), "bias"),
        (
            MatrixCase(
                "ConvInteger", [(1, 2, 3, 3), (2, 2, 2, 2), (5,)], 0, weights=(1, 2), kinds={0: U8, 1: U8, 2: U8}
            ),
            "shape of input 2",
        ),
    ],
)
def test_shapes_that_do_not_fit_are_refused(case: MatrixCase, text: str) -> None:
    """A bias or scale that has neither one element nor one for each channel is refused."""
    with pytest.raises(InputError, match=text):
        lower_model(case.model())
