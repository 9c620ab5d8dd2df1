"""Sizes given by the user: patterns, places of inner tensors, sizes of 0, and a report of all missing sizes."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from tilewright.base.errors import InputError
from tilewright.base.profile import CORRECTED, REFERENCE
from tilewright.workload.onnx import read_onnx
from tilewright.workload.onnx.resolution.network import resolve_graph

node = helper.make_node
DOMAINS = [helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1), helper.make_opsetid("own", 1)]
Sizes = Sequence[int | str | None]


def _model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Mapping[str, Sizes],
    outputs: Mapping[str, Sizes | None],
    constants: Mapping[str, Any] | None = None,
    kinds: Mapping[str, int] | None = None,
) -> onnx.ModelProto:
    def value(name: str, shape: Sizes | None) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(name, (kinds or {}).get(name, TensorProto.FLOAT), shape)

    graph = helper.make_graph(
        list(nodes),
        "g",
        [value(name, shape) for name, shape in inputs.items()],
        [value(name, shape) for name, shape in outputs.items()],
        [numpy_helper.from_array(np.asarray(array), name) for name, array in (constants or {}).items()],
    )
    return helper.make_model(graph, opset_imports=DOMAINS, ir_version=8)


def _problems(model: onnx.ModelProto, **options: Any) -> str:
    with pytest.raises(InputError) as caught:
        resolve_graph(model, **options)
    return str(caught.value)


def _shapes(model: onnx.ModelProto, dims: Mapping[str, int]) -> dict[str, tuple[int, ...]]:
    return {name: facts.shape for name, facts in resolve_graph(model, dims).tensors.items()}


def _detector(count: int) -> onnx.ModelProto:
    """A model of `count` chains on an image of open size; the NonZero of each chain gives one more open size."""
    nodes = [node("Relu", ["x"], ["r"])]
    for number in range(count):
        nodes.append(node("NonZero", ["r"], [f"found{number}"], name=f"find{number}"))
        nodes.append(node("Transpose", [f"found{number}"], [f"t{number}"], perm=[1, 0]))
    inputs = {"x": [1, 3, "img.height", "img.width"]}
    return _model(nodes, inputs, {f"t{number}": None for number in range(count)}, kinds={"t0": TensorProto.INT64})


def test_missing_sizes_are_told_at_once() -> None:
    """All missing sizes are reported together, of inputs and of inner tensors, with the options that give them."""
    said = _problems(_detector(3))
    assert len(said.splitlines()) == 5
    for name in ("dims: img.height: SIZE", "img.width", *(f"dims: found{number}[1]: SIZE" for number in range(3))):
        assert name in said


def test_many_missing_sizes_are_one_message() -> None:
    """Many missing sizes are one message, which has a pattern that gives them at once."""
    said = _problems(_detector(90))
    assert len(said.splitlines()) == 1
    assert "the sizes of 92 dimensions" in said
    assert all(f"found{number}[1]" in said for number in range(90))
    assert "a pattern such as *[0]" in said
    shapes = _shapes(_detector(90), {"*.height": 8, "img.width": 9, "found*[1]": 7})
    assert shapes["r"] == (1, 3, 8, 9)
    assert {shapes[f"t{number}"] for number in range(90)} == {(7, 4)}


def test_patterns_by_how_much_they_say() -> None:
    """A name overrules a pattern, and a pattern with more letters overrules one with fewer, in any order."""
    given = {"*": 5, "found1[1]": 2, "found*[1]": 3}
    for dims in (given, dict(reversed(given.items()))):
        shapes = _shapes(_detector(2), dims)
        assert (shapes["r"], shapes["found0"], shapes["found1"]) == ((1, 3, 5, 5), (4, 3), (4, 2))


@pytest.mark.parametrize(
    ("dims", "words"),
    [
        (
            {"*.depth": 4},
            "dims.*.depth: no dimension of unknown size has a name that matches this pattern"
            " (allowed: found0[1], img.height",
        ),
        ({"r[2]": 4}, "the network already determines the size of r[2], got 4 (allowed: 8)"),
        ({"found7[1]": 4}, "no tensor 'found7'"),
        ({"x[1]": 3}, "no such dynamic dimension"),
        ({"img.hight": 3}, "did you mean 'img.height'"),
    ],
)
def test_nothing_is_ignored(dims: dict[str, int], words: str) -> None:
    """A given size that settles nothing raises an error with the reason."""
    full = {"img.height": 8, "img.width": 8, "found0[1]": 3}
    assert words in _problems(_detector(1), dims={**full, **dims})


def test_symbol_whose_places_all_have_sizes() -> None:
    """A symbol is not needed if all its dimensions have sizes by place; a size for one place changes no other."""
    nodes = [node("Relu", ["a"], ["c"]), node("Relu", ["b"], ["d"])]
    model = _model(nodes, {"a": [2, "s"], "b": [2, "s"]}, {"c": None, "d": None})
    shapes = _shapes(model, {"s": 5, "a[1]": 3})
    assert (shapes["c"], shapes["d"]) == ((2, 3), (2, 5))
    assert "not needed" in _problems(model, dims={"s": 5, "a[1]": 3, "b[1]": 4})


def test_symbol_of_an_inner_tensor() -> None:
    """The user may give a value, by the file's symbol, for a size that is decided at run time."""
    model = _detector(1)
    model.graph.value_info.append(helper.make_tensor_value_info("found0", TensorProto.INT64, [4, "hits"]))
    dims = {"img.height": 8, "img.width": 8}
    assert "dims: hits: SIZE" in _problems(model, dims=dims)
    assert _shapes(model, {**dims, "hits": 6})["t0"] == (6, 4)


def test_place_of_a_tensor_whose_shape_is_stored_in_part() -> None:
    """A tensor whose shape cannot be inferred has the file's rank and sizes; open ones can be given."""
    model = _model([node("Magic", ["x"], ["present.0.key"], domain="own")], {"x": [1, 4]}, {})
    model.graph.output.append(helper.make_tensor_value_info("present.0.key", TensorProto.FLOAT, [1, 2, "total", 8]))
    assert _shapes(model, {"present.0.key[2]": 16})["present.0.key"] == (1, 2, 16, 8)
    model.graph.output[0].type.tensor_type.ClearField("shape")
    said = _problems(model, dims={"present.0.key[2]": 16})
    assert "rank of tensor 'present.0.key' is not known, got 16 (allowed: input_shapes: present.0.key" in said


def test_inner_places_under_the_reference_profile() -> None:
    """Given sizes of inner tensors hold under the reference profile, too."""
    nodes = [node("NonZero", ["x"], ["found"]), node("Cast", ["found"], ["f"], to=1), node("MatMul", ["w", "f"], ["y"])]
    model = _model(nodes, {"x": [4, 5]}, {"y": None}, {"w": np.zeros((3, 2), np.float32)})
    parsed = read_onnx(model, REFERENCE, dims={"found[1]": 7})
    assert parsed.coverage.total_mac_count == 3 * 2 * 7
    with pytest.raises(InputError, match="no tensor 'fond'"):
        read_onnx(model, REFERENCE, dims={"fond[1]": 7})


def _decoder(attention: bool = True) -> onnx.ModelProto:
    """A decoder whose cache has an open length; Concat or an attention operator appends the new elements to it."""
    if attention:
        inputs = ["q", "k", "v", "past_k", "past_v", "lengths", "total"]
        nodes = [
            node("Shape", ["mask"], ["shape"]),
            node("Gather", ["shape", "one"], ["wide"]),
            node("Cast", ["wide"], ["total"], to=TensorProto.INT32),
            node(
                "GroupQueryAttention",
                inputs,
                ["y", "present_k", "present_v"],
                domain="com.microsoft",
                num_heads=4,
                kv_num_heads=2,
            ),
        ]
        shapes: dict[str, Sizes] = {
            **{"q": [1, "s", 32], "k": [1, "s", 16], "v": [1, "s", 16], "lengths": [1], "mask": [1, "all"]},
            **{"past_k": [1, 2, "p", 8], "past_v": [1, 2, "p", 8]},
        }
        kinds = {"lengths": TensorProto.INT32, "mask": TensorProto.INT64}
        return _model(nodes, shapes, {"y": None, "present_k": None, "present_v": None}, {"one": np.array(1)}, kinds)
    nodes = [node("Concat", ["past", "new"], ["all"], axis=1, name="join"), node("MatMul", ["q", "all"], ["y"])]
    nodes.append(node("Relu", ["past"], ["nothing"], name="idle"))
    return _model(nodes, {"past": [4, "p"], "new": [4, "s"], "q": [3, 4]}, {"y": None, "nothing": None})


@pytest.mark.parametrize("profile", [CORRECTED, REFERENCE], ids=lambda profile: profile.name)
def test_prefill_without_a_past(profile: Any) -> None:
    """The joined cache is the new part if there is no past; operators on the empty cache have no layer, and a notice
    says so.
    """
    parsed = read_onnx(_decoder(attention=False), profile, dims={"p": 0, "s": 5})
    assert parsed.coverage.total_mac_count == 3 * 4 * 5
    assert [item.name for item in parsed.workload.nodes if item.layer is not None] == ["Op1"]
    if profile is CORRECTED:
        assert any("no layer" in notice and "idle" in notice for notice in parsed.coverage.notices)
    else:
        assert parsed.coverage.is_complete


@pytest.mark.parametrize(("past", "keys"), [(0, 6), (10, 16)])
def test_cache_inside_of_attention(past: int, keys: int) -> None:
    """Attention works with an empty cache as with a filled one, and the cache grows by the new tokens."""
    model = _decoder()
    parsed = read_onnx(model, CORRECTED, dims={"p": past, "s": 6, "all": past + 6})
    assert parsed.coverage.total_mac_count == 2 * 4 * 6 * keys * 8
    assert parsed.workload.tensor_of["present_k"].shape == (1, 2, keys, 8)


def test_empty_matrix_product_under_the_reference_profile() -> None:
    """A product without elements is no layer under the reference profile."""
    model = _model([node("MatMul", ["a", "b"], ["y"])], {"a": ["n", 4], "b": [4, 3]}, {"y": None})
    parsed = read_onnx(model, REFERENCE, dims={"n": 0})
    assert parsed.workload.layers_in_order == ()
    assert any("without elements: no layer" in notice for notice in parsed.coverage.notices)


LIMITS = {
    "rank": ([1] * 33, {}, "tensor 'x' has too many dimensions, got 33 (allowed: at most 32)"),
    "size": (["n", "s"], {"s": 2**31}, "a dimension of tensor 'x' is too large"),
    "elements": (["n", "s"], {"s": 2**30, "n": 2**20}, f"{2**50} elements (allowed: at most {2**40} elements)"),
}


@pytest.mark.parametrize("case", LIMITS)
def test_limits_are_told(case: str) -> None:
    """Each impossible size is refused, with the limit that it exceeds."""
    shape, dims, words = LIMITS[case]
    assert words in _problems(_model([node("Relu", ["x"], ["y"])], {"x": shape}, {"y": None}), dims=dims)


def test_long_sequences_need_no_memory() -> None:
    """A superset of the dependencies is stated for a sequence that is too long to follow by elements."""
    reverse = node("ReverseSequence", ["x", "lengths"], ["y"])
    model = _model([reverse], {"x": [2**30, 2]}, {"y": None}, {"lengths": np.array([3, 4])})
    assert "too many or too long" in " ".join(read_onnx(model, CORRECTED).coverage.notices)


@pytest.mark.parametrize("profile", [CORRECTED, REFERENCE], ids=lambda profile: profile.name)
@pytest.mark.parametrize("height", [2, 1])
def test_convolution_larger_than_its_input(profile: Any, height: int) -> None:
    """A convolution that is larger than its input has no output, and the message says so."""
    conv = node("Conv", ["x", "w"], ["y"], name="conv")
    model = _model([conv], {"x": [1, 3, height, 5]}, {"y": None}, {"w": np.zeros((4, 3, 3, 3), np.float32)})
    words = "larger than the padded input"
    if height == 2 and profile is CORRECTED:
        assert any(words in notice for notice in read_onnx(model, profile).coverage.notices)
        return
    with pytest.raises(InputError, match=f"conv: .*{words}"):
        read_onnx(model, profile)


@pytest.mark.parametrize("policy", ["assumed", "file"])
@pytest.mark.parametrize("operator", ["MatMulInteger", "ConvInteger"])
def test_partial_sums_are_as_wide_as_the_result(operator: str, policy: str) -> None:
    """Products of bytes are stored as INT32, so their partial sums have 32 bits."""
    from tilewright.workload.network_options import NetworkOptions

    shapes: dict[str, Sizes] = {"x": [2, 4]} if operator == "MatMulInteger" else {"x": [1, 4, 5, 5]}
    weight = np.ones((4, 3) if operator == "MatMulInteger" else (3, 4, 2, 2), np.int8)
    model = _model([node(operator, ["x", "w"], ["y"])], shapes, {"y": None}, {"w": weight}, {"x": TensorProto.INT8})
    model.graph.output[0].type.tensor_type.elem_type = TensorProto.INT32
    (only,) = read_onnx(model, CORRECTED, options=NetworkOptions(precision=policy)).workload.layers_in_order
    assert only.layer is not None
    assert only.layer.bits_of == {"W": 8, "I": 8, "O_final": 32, "O": 32}
