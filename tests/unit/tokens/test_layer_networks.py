"""A layer as a network of its own: its tensors at any context, and products that are cut along their inputs."""

from math import prod
from typing import Any

import pytest
from tilewright.tokens.layer_networks import layer_network, row_parallel
from tilewright.workload.access import index_range
from tilewright.workload.graph import Workload, WorkloadNode
from tilewright.workload.source import parse_workload

from tests.unit.workload.language_models.models import TINY_LLAMA


def step(context: int, **more: Any) -> Workload:
    """A step of one more token, with keys in blocks of 8."""
    model = {"language_model": TINY_LLAMA | more, "phase": "decode", "context": context - 1, "key_block": 8}
    return parse_workload(model, "corrected")


def layers(workload: Workload) -> dict[str, WorkloadNode]:
    """The nodes that have a layer, by name."""
    return {node.name: node for node in workload.nodes if node.layer is not None}


def test_layers_of_all_contexts_are_the_same() -> None:
    """The networks of single layers do not depend on the context: full blocks of keys, and the rest after them."""
    near, far = step(21), step(85)
    for name, node in layers(far).items():
        assert layer_network(far, node) == layer_network(near, layers(near)[name]), name


def test_a_network_has_what_its_layer_touches() -> None:
    """Each tensor is as large as the box of the elements that the layer reads or writes."""
    workload = step(21)
    node = layers(workload)["layers/attention/scores.rest"]
    network = layer_network(workload, node)
    (key,) = (one for one in network.nodes[0].index_maps if one.operand == "W")
    # 2 key heads, the 5 keys behind two blocks of 8, 8 channels; all from index 0 on
    assert network.tensor_of[key.input.tensor].shape == (1, 2, 5, 8)
    assert [index_range(axis, key.size_of)[0] for axis in key.input.axes] == [0, 0, 0, 0]
    assert set(network.inputs) == set(network.nodes[0].inputs)
    assert network.outputs == network.nodes[0].outputs


def test_a_product_cut_along_its_inputs_is_the_same_sum() -> None:
    """The parts of a product read each input and each weight once, and additions make one tensor of their results."""
    workload = step(21)
    network = layer_network(workload, layers(workload)["layers/feedforward/down_proj"])
    cut = row_parallel(network, 3)
    assert cut is not None
    products, sums = cut.nodes[:3], cut.nodes[3:]
    assert [node.layer.size_of["C"] for node in products if node.layer] == [22, 22, 20]
    assert sum(node.layer.mac_count for node in products if node.layer) == network.nodes[0].layer.mac_count  # type: ignore[union-attr]
    for operand in ("I", "W"):
        ranges = []
        for node in products:
            (one,) = (one for one in node.index_maps if one.operand == operand)
            axis = next(axis for axis in one.input.axes if any(name == "C" for name, _ in axis.terms))
            ranges.append(index_range(axis, one.size_of))
        assert ranges == [(0, 21), (22, 43), (44, 63)]
    assert len(sums) == 2
    assert all(prod(size for _, size in node.layer.loop_sizes) == 32 for node in sums if node.layer)
    assert cut.outputs == network.outputs
    wide = network.nodes[0].layer.bits_of["O"]  # type: ignore[union-attr]
    assert {cut.tensor_of[node.outputs[0]].bits for node in cut.nodes[:-1]} == {wide}
    assert cut.tensor_of[cut.outputs[0]].bits == 8


@pytest.mark.parametrize(
    "name", ["layers/attention/scores.rest", "layers/input_norm.scale", "layers/input_norm.variance"]
)
def test_only_products_with_weights_are_cut_along_their_inputs(name: str) -> None:
    """Attention, which is cut by heads, and layers that no multiplier array runs are not cut along their inputs."""
    workload = step(21)
    assert row_parallel(layer_network(workload, layers(workload)[name]), 2) is None
