"""Identity of networks: equal bits have one digest, however they are given, and differences are named by layer."""

from dataclasses import replace

import pytest
from tilewright.workload.graph import Workload
from tilewright.workload.network_identity import difference_of, identity_of_network, structure_of_network
from tilewright.workload.network_options import NetworkOptions
from tilewright.workload.onnx.reader import read_onnx

from tests.unit.workload.onnx.test_given_bits import PROFILES, network, read


@pytest.mark.parametrize("profile", PROFILES)
def test_bits_have_one_digest_however_they_are_given(profile: str) -> None:
    """Assumed bits and equal given bits have one digest, in short and long form; other bits have another digest."""
    assumed, given = read({}, profile), read({"weights": 8, "activations": 8, "partial": 16}, profile)
    short, full = read({"activations": 16}, profile), read({"activations": 16, "weights": 8, "partial": 32}, profile)
    assert identity_of_network(assumed) == identity_of_network(given) != identity_of_network(short)
    assert identity_of_network(short) == identity_of_network(full)


@pytest.mark.parametrize("profile", PROFILES)
def test_bits_and_zeros_leave_the_structure(profile: str) -> None:
    """Networks that differ in bits or zeros have the same structure, and the layers that differ are named."""
    plain, wide, one = read({}, profile), read({"activations": 16}, profile), read({"second.weights": 4}, profile)
    assert len({structure_of_network(each) for each in (plain, wide, one)}) == 1
    count = sum(node.layer is not None for node in plain.nodes)
    assert difference_of(plain, wide).bits == f"{count} of {count} layers"
    assert difference_of(plain, wide, {"first"}).bits == "1 of 1 layer", "layers that no core runs are not counted"
    assert difference_of(plain, wide, ()).bits == ""
    assert difference_of(plain, one).bits == f"1 of {count} layers (second)"
    options = NetworkOptions(zeros=(("first.activations", 0.5),))
    sparse = read_onnx(network(), PROFILES[profile], options=options).workload
    assert difference_of(plain, sparse) == replace(difference_of(plain, plain), zeros=f"1 of {count} layers (first)")
    for found in (difference_of(plain, plain), difference_of(plain, wide), difference_of(plain, sparse)):
        assert found.structure == ""


def changed(workload: Workload, name: str, **changes: object) -> Workload:
    """The network with changed fields in the layer `name`."""
    nodes = tuple(
        replace(node, layer=replace(node.layer, **changes)) if node.layer and node.name == name else node
        for node in workload.nodes
    )
    return replace(workload, nodes=nodes)


def test_another_structure_is_named_by_layer() -> None:
    """Different sizes, types, padding, layers and edges are differences of structure, and bits are then not named."""
    plain = read({})
    layers = {node.name: node.layer for node in plain.nodes if node.layer is not None}
    sizes = tuple((name, 2 * size if name == "K" else size) for name, size in layers["first"].loop_sizes)
    wide = changed(read({"weights": 4}), "first", loop_sizes=sizes)
    assert difference_of(plain, wide).structure == "1 layer differs: first (K 4 in A, 8 in B)"
    assert difference_of(plain, wide).bits == ""
    other = changed(plain, "first", operator_type="Gemm")
    assert difference_of(plain, other).structure == "1 layer differs: first (Conv in A, Gemm in B)"
    padded = changed(plain, "first", padding=())
    assert difference_of(plain, padded).structure == "1 layer differs: first (padding, strides or operands)"
    short = replace(plain, nodes=plain.nodes[:-1])
    assert difference_of(plain, short).structure == "only A has 1 layer sum"
    assert difference_of(short, plain).structure == "only B has 1 layer sum"
    last = replace(plain.nodes[-1], sources=plain.nodes[-1].sources[:1])
    cut = replace(plain, nodes=(*plain.nodes[:-1], last))
    assert difference_of(plain, cut).structure == "the edges between layers, or operators without layers, differ"
