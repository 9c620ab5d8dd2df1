"""Operators of onnxruntime, compared with equal standard operators or with counts by hand."""

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.helper import make_node
from tilewright.base.operator_groups import MAC_ARRAY
from tilewright.base.profile import CORRECTED
from tilewright.workload.graph import APPROXIMATED, MODELLED
from tilewright.workload.onnx import ParsedNetwork, read_onnx

from tests.unit.workload.onnx.dependency_checks import build_model, predicted_dependencies
from tests.unit.workload.onnx.operators.vector_cases import check_layer

MICROSOFT = "com.microsoft"
INT32 = TensorProto.INT32


def _read(
    operator: str,
    inputs: dict[str, Any],
    constants: dict[str, Any],
    names: list[str] | None = None,
    outputs: int = 1,
    kinds: dict[str, int] | None = None,
    **attributes: Any,
) -> ParsedNetwork:
    """A model of the operator alone, parsed; by default, computed inputs come before constants."""
    results = [f"y{number}" for number in range(outputs)]
    node = make_node(operator, names or [*inputs, *constants], results, name="op", domain=MICROSOFT, **attributes)
    parsed = read_onnx(build_model([node], inputs, constants, kinds=kinds), CORRECTED)
    for item in parsed.workload.nodes:
        if item.layer is not None:
            check_layer(item.layer)
    return parsed


def _work(parsed: ParsedNetwork) -> dict[str, int]:
    return {
        item.name.removeprefix("op/"): item.layer.mac_count for item in parsed.workload.nodes if item.layer is not None
    }


def _rand(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).uniform(0.5, 1.5, shape).astype(np.float32)


@pytest.mark.parametrize("group", [1, 2])
@pytest.mark.parametrize("operator", ["NhwcConv", "NhwcFusedConv"])
def test_convolution_with_channels_last(operator: str, group: int) -> None:
    """The layer and the dependencies equal those of a Conv between a Transpose of the input and one of the output."""
    attributes = {"pads": [1, 0, 1, 2], "strides": [2, 1], "group": group, "kernel_shape": [3, 2]}
    weights = {"w": _rand(6, 4 // group, 3, 2), "b": _rand(6)}
    conv = make_node("Conv", ["t", "w", "b"], ["c"], name="op", **attributes)
    plain = [
        make_node("Transpose", ["x"], ["t"], perm=[0, 3, 1, 2]),
        conv,
        make_node("Transpose", ["c"], ["y"], perm=[0, 2, 3, 1]),
    ]
    own = [make_node(operator, ["x", "w", "b"], ["y"], name="op", domain=MICROSOFT, **attributes)]
    standard, found = (
        predicted_dependencies(build_model(nodes, {"x": (2, 5, 4, 4)}, weights)) for nodes in (plain, own)
    )
    assert found.lowered.shape_of["y"] == standard.lowered.shape_of["y"]
    assert (found.tables["y", "x"] == standard.tables["y", "x"]).all()
    layers = [next(item.layer for item in each.lowered.nodes if item.layer is not None) for each in (standard, found)]
    assert layers[0].loop_sizes == layers[1].loop_sizes
    assert layers[0].relations == layers[1].relations


@pytest.mark.parametrize(
    ("operator", "standard", "shape", "attributes"),
    [
        ("NhwcMaxPool", "MaxPool", (1, 6, 5, 3), {"kernel_shape": [3, 2], "strides": [2, 1]}),
        ("QLinearAveragePool", "AveragePool", (1, 6, 5, 3), {"kernel_shape": [2, 2], "channels_last": 1}),
        ("QLinearGlobalAveragePool", "GlobalAveragePool", (1, 6, 5, 3), {"channels_last": 1}),
    ],
)
def test_pools_with_channels_last(operator: str, standard: str, shape: tuple[int, ...], attributes: dict) -> None:
    """Work and dependencies equal those of the standard pool between a Transpose of the input and one of the output."""
    plain_attributes = {key: value for key, value in attributes.items() if key != "channels_last"}
    plain = [
        make_node("Transpose", ["x"], ["t"], perm=[0, 3, 1, 2]),
        make_node(standard, ["t"], ["p"], name="op", **plain_attributes),
        make_node("Transpose", ["p"], ["y"], perm=[0, 2, 3, 1]),
    ]
    beside = [] if operator.startswith("Nhwc") else ["one", "zero", "one", "zero"]
    constants = {} if not beside else {"one": np.float32(1), "zero": np.uint8(0)}
    own = [make_node(operator, ["x", *beside], ["y"], name="op", domain=MICROSOFT, **attributes)]
    model = build_model(own, {"x": shape}, constants)
    expected = predicted_dependencies(build_model(plain, {"x": shape}))
    sizes = expected.lowered.shape_of["y"]
    model.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", TensorProto.FLOAT, sizes))
    found = predicted_dependencies(model)
    assert (found.tables["y", "x"] == expected.tables["y", "x"]).all()


def test_quantised_convolution_with_channels_last() -> None:
    """QLinearConv of onnxruntime equals the standard operator, with channels last if an attribute says so."""
    beside = {"one": np.float32(1), "zero": np.uint8(0), "w": np.ones((6, 3, 2, 2), np.uint8)}
    names = ["x", "one", "zero", "w", "one", "zero", "one", "zero"]
    kinds = {"x": TensorProto.UINT8}
    parsed = _read("QLinearConv", {"x": (1, 5, 4, 3)}, beside, names, kinds=kinds, channels_last=1)
    assert parsed.workload.tensor_of["y0"].shape == (1, 4, 3, 6)
    assert _work(parsed) == {"op": 4 * 3 * 6 * 3 * 4}


@pytest.mark.parametrize(("last", "activation"), [(1, 0), (1, 1), (0, 1)])
def test_group_norm(last: int, activation: int) -> None:
    """Parts and dependencies equal GroupNormalization; an activation adds one operation for every element."""
    shape = (2, 3, 2, 4) if last else (2, 4, 3, 2)
    scale = {"g": _rand(4), "b": _rand(4)}
    parsed = _read("GroupNorm", {"x": shape}, scale, groups=2, activation=activation, channels_last=last)
    parts = [48, 48, 48, 4, 48, 48] + [48] * activation
    assert list(_work(parsed).values()) == parts
    nodes = [make_node("GroupNorm", ["x", "g", "b"], ["y"], domain=MICROSOFT, groups=2, channels_last=last)]
    table = predicted_dependencies(build_model(nodes, {"x": shape}, scale)).tables["y", "x"]
    axis = 3 if last else 1
    group = np.indices(shape)[axis].ravel() // 2 + 2 * np.indices(shape)[0].ravel()
    assert (table == (group[:, None] == group[None, :])).all()


def test_skip_group_norm() -> None:
    """The sum with skip and bias comes first, and is an output."""
    constants = {"g": _rand(4), "b": _rand(4), "c": _rand(4)}
    names = ["x", "g", "b", "skip", "c"]
    inputs = {"x": (1, 3, 2, 4), "skip": (1, 3, 2, 4)}
    parsed = _read("SkipGroupNorm", inputs, constants, names, outputs=2, groups=2, activation=0)
    assert list(_work(parsed).values()) == [24, 24, 24, 24, 24, 2, 24, 24]
    assert parsed.workload.tensor_of["y1"].shape == (1, 3, 2, 4)


@pytest.mark.parametrize(("depth", "bits"), [(40, 4), (33, 4), (17, 8), (90, 2)])
def test_packed_weights_with_an_incomplete_block(depth: int, bits: int) -> None:
    """The padding of the last block of packed weights is no work, and a weight has its stated bits."""
    block, columns = 16, 5
    packed = np.zeros((columns, -(-depth // block), block * bits // 8), np.uint8)
    constants = {"w": packed, "s": _rand(columns * packed.shape[1])}
    parsed = _read("MatMulNBits", {"x": (2, 3, depth)}, constants, K=depth, N=columns, bits=bits, block_size=block)
    (only,) = [item.layer for item in parsed.workload.nodes]
    assert only.mac_count == 2 * 3 * depth * columns
    assert only.bits_of["W"] == bits
    assert only.constant_operands == ("W",)
    assert parsed.coverage.is_complete
    nodes = [
        make_node(
            "MatMulNBits", ["x", "w", "s"], ["y"], domain=MICROSOFT, K=depth, N=columns, bits=bits, block_size=block
        )
    ]
    table = predicted_dependencies(build_model(nodes, {"x": (2, 3, depth)}, constants)).tables["y", "x"]
    row_of_output, row_of_input = np.arange(6 * columns) // columns, np.arange(6 * depth) // depth
    assert (table == (row_of_output[:, None] == row_of_input[None, :])).all()


def test_embedding_with_normalisation() -> None:
    """The parts are two sums of three rows, LayerNormalization, and the sum of the mask."""
    tables = {"word": _rand(50, 8), "place": _rand(16, 8), "segment": _rand(2, 8), "g": _rand(8), "b": _rand(8)}
    inputs = dict.fromkeys(("ids", "kinds", "mask"), (2, 3))
    names = ["ids", "kinds", "word", "place", "segment", "g", "b", "mask"]
    parsed = _read("EmbedLayerNormalization", inputs, tables, names, outputs=3, kinds=dict.fromkeys(inputs, INT32))
    assert list(_work(parsed).values()) == [48, 48, 48, 48, 48, 6, 48, 48, 6]
    assert parsed.workload.tensor_of["y0"].shape == (2, 3, 8)
    (row,) = parsed.coverage.operators
    assert row.status == APPROXIMATED


def test_embedding_without_segments_and_mask() -> None:
    """One sum is given if there are no segments, and the mask index is zeros if there is no mask."""
    tables = {"word": _rand(50, 8), "place": _rand(16, 8), "g": _rand(8), "b": _rand(8)}
    names = ["ids", "", "word", "place", "", "g", "b"]
    parsed = _read("EmbedLayerNormalization", {"ids": (2, 3)}, tables, names, outputs=2, kinds={"ids": INT32})
    assert list(_work(parsed).values()) == [48, 48, 48, 48, 6, 48, 48]


@pytest.mark.parametrize(("bits", "width"), [(4, 32), (8, 64)])
def test_gather_of_a_quantised_table(bits: int, width: int) -> None:
    """Gathering from a quantised table has one operation, the dequantisation, for every element that is read."""
    tables = {"t": np.zeros((50, width), np.uint8), "s": _rand(50, 2)}
    names = ["t", "ids", "s"]
    parsed = _read(
        "GatherBlockQuantized", {"ids": (2, 3)}, tables, names, kinds={"ids": INT32}, bits=bits, block_size=32
    )
    assert parsed.workload.tensor_of["y0"].shape == (2, 3, 64)
    assert _work(parsed) == {"dequantised": 2 * 3 * 64}
    gathered = parsed.workload.tensor_of["op/gathered"]
    assert gathered.bits == bits


MOE = {
    "relu": (1, 0, "relu", 1),
    "gated": (1, 0, "silu", 2),
    "swiglu, interleaved": (2, 1, "swiglu", 2),
    "swiglu, concatenated": (2, 2, "swiglu", 2),
}


@pytest.mark.parametrize("case", MOE)
def test_mixture_of_experts(case: str) -> None:
    """Every token meets k experts: products, activation, weighted sum; the router chooses by comparisons."""
    fusion, mode, kind, first = MOE[case]
    tokens, hidden, inner, experts, chosen = 6, 4, 5, 8, 2
    weights = {"w1": _rand(experts, fusion * inner, hidden), "w2": _rand(experts, hidden, inner)}
    names = ["x", "r", "w1", "", "w2"]
    if case == "gated":
        weights["w3"] = _rand(experts, inner, hidden)
        names += ["", "w3"]
    inputs = {"x": (2, 3, hidden), "r": (tokens, experts)}
    parsed = _read("MoE", inputs, weights, names, k=chosen, activation_type=kind, swiglu_fusion=mode)
    products = tokens * chosen * hidden * inner * (first + 1)
    assert parsed.coverage.total_mac_count == products
    work = _work(parsed)
    assert work["best"] == tokens * chosen * experts
    assert work["activated"] == tokens * chosen * inner
    assert work["sum"] == tokens * chosen * hidden
    assert parsed.workload.tensor_of["y0"].shape == (2, 3, hidden)
    layers = {item.name: item for item in parsed.workload.nodes if item.unit == MAC_ARRAY}
    assert all(item.layer.constant_operands == ("W",) for item in layers.values() if item.layer)
    assert {row.status for row in parsed.coverage.operators} == {APPROXIMATED}


def test_experts_that_fit_no_token() -> None:
    """The work stays exact if the numbers of experts and tokens do not divide one another."""
    weights = {"w1": _rand(8, 3, 4), "w2": _rand(8, 4, 3)}
    inputs = {"x": (5, 4), "r": (5, 8)}
    parsed = _read("MoE", inputs, weights, ["x", "r", "w1", "", "w2"], k=3)
    assert parsed.coverage.total_mac_count == 5 * 3 * (4 * 3 * 2)


@pytest.mark.parametrize("operator", ["SimplifiedLayerNormalization", "LayerNormalization"])
def test_normalisation_in_the_standard_domain(operator: str) -> None:
    """Normalisations that onnxruntime writes into the standard domain are modelled.

    The standard has no SimplifiedLayerNormalization, and has LayerNormalization only from opset 17 on.
    """
    node = make_node(operator, ["x", "w"], ["y"], name="op", axis=-1)
    graph = helper.make_graph(
        [node, make_node("MatMul", ["y", "m"], ["z"])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4, 8])],
        [helper.make_tensor_value_info("z", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(_rand(8), "w"), numpy_helper.from_array(_rand(8, 6), "m")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8)
    parsed = read_onnx(model, CORRECTED)
    assert parsed.workload.tensor_of["z"].shape == (1, 4, 6)
    assert {row.status for row in parsed.coverage.operators} == {MODELLED}
    assert parsed.coverage.modelled_operation_share == 1
