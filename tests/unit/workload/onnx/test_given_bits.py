"""Bits of operands given by the user: by operand, operator type and operator, under both profiles."""

import random
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from tilewright.base.errors import InputError
from tilewright.base.profile import CORRECTED, REFERENCE
from tilewright.workload.graph import Workload
from tilewright.workload.network_options import NetworkOptions
from tilewright.workload.onnx import read_onnx
from tilewright.workload.source import parse_workload

PROFILES = {"corrected": CORRECTED, "zigzag": REFERENCE}


def network(quantised: bool = False) -> onnx.ModelProto:
    """Two convolutions with a Relu between them, then the sum of both."""
    weights = [
        numpy_helper.from_array(np.zeros((4, 4, 3, 3), np.float32), "w1"),
        numpy_helper.from_array(np.zeros((4, 4, 1, 1), np.float32), "w2"),
        numpy_helper.from_array(np.array(0.5, np.float32), "scale"),
    ]
    nodes = [
        helper.make_node("Conv", ["x", "w1"], ["a"], name="first", kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["a"], ["b"], name="relu"),
        helper.make_node("Conv", ["b", "w2"], ["c"], name="second", kernel_shape=[1, 1]),
        helper.make_node("Add", ["c", "b"], ["y"], name="sum"),
    ]
    if quantised:
        nodes[1] = helper.make_node("QuantizeLinear", ["a", "scale"], ["q"], name="quantise")
        nodes.insert(2, helper.make_node("DequantizeLinear", ["q", "scale"], ["b"], name="dequantise"))
    shape = [1, 4, 8, 8]
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
        weights,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


def read(bits: dict[str, int], profile: str = "corrected", quantised: bool = False) -> Workload:
    """The network with these bits."""
    options = NetworkOptions(bits=tuple(bits.items()))
    return read_onnx(network(quantised), PROFILES[profile], options=options).workload


def bits_of(workload: Workload) -> dict[str, tuple[int, ...]]:
    """Layer -> bits of W, I, O_final and O; for a layer without weights, the bits of its operands."""
    return {
        node.name: tuple(bits for _, bits in node.layer.precision_bits)
        for node in workload.nodes
        if node.layer is not None
    }


@pytest.mark.parametrize("profile", PROFILES)
def test_each_operand_has_its_bits(profile: str) -> None:
    """Weights are constants, activations are inputs and results, and partial sums have their own bits."""
    found = read({"weights": 4, "activations": 12, "partial": 30}, profile)
    assert {name: bits for name, bits in bits_of(found).items() if name in ("first", "second")} == {
        "first": (4, 12, 12, 30),
        "second": (4, 12, 12, 30),
    }


@pytest.mark.parametrize("profile", PROFILES)
def test_nothing_given_changes_nothing(profile: str) -> None:
    """Nothing changes if no bits are given; partial sums follow the activations unless they are given."""
    assert read({}, profile) == read_onnx(network(), PROFILES[profile]).workload
    assert bits_of(read({"activations": 16}, profile))["first"][3] == 32


def test_the_most_special_entry_counts() -> None:
    """Entries of operators overrule those of operator types, which overrule general ones, in any order."""
    pairs = [("weights", 8), ("Conv.weights", 4), ("second.weights", 2)]
    for seed in range(6):
        random.Random(seed).shuffle(pairs)
        found = bits_of(read(dict(pairs)))
        assert (found["first"][0], found["second"][0]) == (4, 2)


def test_a_tensor_has_the_larger_bits_of_who_makes_and_who_reads_it() -> None:
    """A tensor has the larger bits of its producer and its reader, in both layers and in the table of tensors."""
    found = read({"Relu.activations": 4, "Conv.activations": 6})
    bits = {tensor.name: (tensor.bits, tensor.precision_source) for tensor in found.tensors}
    assert bits["b"] == (6, "given")
    assert bits["a"] == (6, "given")
    assert bits["y"] == (8, "assumed")
    layers = bits_of(found)
    assert layers["first"][1:3] == (6, 6)
    assert layers["second"][1] == 6


def test_operations_without_sums_have_no_partial_sums() -> None:
    """A Relu and an Add have no partial sums, only results."""
    layers = {
        node.name: node.layer.bits_of
        for node in read({"partial": 30, "activations": 6}).nodes
        if node.layer is not None
    }
    assert layers["relu"]["O"] == layers["relu"]["O_final"] == 6
    assert layers["sum"]["O"] == 6


def problem(bits: dict[str, Any], profile: str = "corrected", quantised: bool = False) -> str:
    """The error message for these bits."""
    with pytest.raises(InputError) as caught:
        read(bits, profile, quantised)
    return str(caught.value)


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize(
    ("bits", "words"),
    [
        ({"weights": 0}, "wrong number of bits"),
        ({"weights": 1025}, "from 1 to 1024"),
        ({"weight": 4}, "did you mean 'weights'?"),
        ({"Conf.weights": 4}, "did you mean 'Conv'?"),
        ({"frist.weights": 4}, "did you mean 'first'?"),
        ({"relu.weights": 4}, "operators 'relu' have no constant operands"),
        ({"relu.partial": 20}, "operators 'relu' have no partial sums"),
        ({"activations": 20, "relu.partial": 20}, "operators 'relu' have no partial sums"),
        ({"partial": 20, "Conv.partial": 24}, "no partial sums, or other entries set the bits of all of them"),
    ],
)
def test_wrong_bits_are_refused(profile: str, bits: dict[str, int], words: str) -> None:
    """Wrong bits are refused, with the nearest valid name."""
    assert words in problem(bits, profile)


@pytest.mark.parametrize("profile", PROFILES)
def test_bits_against_quantisation_are_refused(profile: str) -> None:
    """Bits for a quantised operator are refused; other operators of the file may have bits."""
    assert "the network file already gives the bits, because it is quantised" in problem(
        {"activations": 4}, profile, quantised=True
    )
    assert bits_of(read({"first.weights": 2}, profile, quantised=True))["first"][0] == 2


def test_several_problems_are_told_together() -> None:
    """One error reports several problems of the options, or several of the network."""
    text = problem({"weights": 0, "output": 3})
    assert "wrong number of bits" in text
    assert "unknown operand" in text
    text = problem({"Conf.weights": 4, "Rellu.activations": 4})
    assert "'Conv'" in text
    assert "'Relu'" in text


def test_other_networks_have_bits_of_their_own() -> None:
    """Bits for a network of layers are refused, because its file gives them."""
    layers = [
        {
            "id": 0,
            "operator_type": "Gemm",
            "equation": "O[k]+=W[k][c]*I[c]",
            "loop_dims": ["K", "C"],
            "loop_sizes": [4, 4],
        }
    ]
    with pytest.raises(InputError, match="is not an ONNX file"):
        parse_workload(layers, options=NetworkOptions(bits=(("weights", 4),)))
