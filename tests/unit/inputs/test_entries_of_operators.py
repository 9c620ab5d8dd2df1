"""Mapping entries for an operator that is costed in parts: they hold for its parts, unless a part has its own entry."""

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from tilewright import map_workload
from tilewright.base.artifacts.codec import decode, encode
from tilewright.mapping.source import parse_mapping
from tilewright.workload.graph import Workload
from tilewright.workload.source import read_network

TYPES = ("Softmax", "LayerNormalization", "Attention", "LSTM")
CORE = "config/hardware/zigzag/tpu_like_vector.yaml"


def tensor(name: str, *shape: int) -> Any:
    """Return an input or output of a network."""
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def weight(name: str, *shape: int) -> Any:
    """Return a constant of zeros."""
    return numpy_helper.from_array(np.zeros(shape, np.float32), name)


def model_of(operator: str) -> Any:
    """Return a model of one operator with the name `whole`."""
    rows = [tensor("x", 1, 8, 64)]
    more: dict[str, Any] = {}
    constants: list[Any] = []
    outputs, names = [tensor("y", 1, 8, 64)], ["x"]
    if operator == "Attention":
        rows += [tensor("k", 1, 8, 64), tensor("v", 1, 8, 64)]
        names, more = ["x", "k", "v"], {"q_num_heads": 4, "kv_num_heads": 4}
    elif operator == "LayerNormalization":
        names, constants = ["x", "g"], [weight("g", 64)]
    elif operator == "LSTM":
        rows, names, more = [tensor("x", 2, 1, 16)], ["x", "W", "R"], {"hidden_size": 8}
        outputs, constants = [tensor("y", 2, 1, 1, 8)], [weight("W", 1, 32, 16), weight("R", 1, 32, 8)]
    node = helper.make_node(operator, names, ["y"], name="whole", **more)
    graph = helper.make_graph([node], operator, rows, outputs, constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=11)


def network_of(operator: str) -> Workload:
    """Return the workload that is read from the model of one operator."""
    return read_network(model_of(operator), "corrected")[0]


def chosen(network: Workload, *names: str) -> set[str]:
    """Return the names of the entries that the layers get, for a mapping with these entries and a default."""
    mapping = parse_mapping([*({"name": name} for name in names), {"name": "default"}])
    return {mapping.constraints_for(node.layer).name for node in network.nodes if node.layer is not None}


@pytest.mark.parametrize("operator", TYPES)
def test_parts_obey_the_entry_of_their_operator(operator: str) -> None:
    """Parts of an operator get the entry that selects its type, its name or a glob of the name. An artifact that is
    read back gives the same entries."""
    network = network_of(operator)
    assert len([node for node in network.nodes if node.layer is not None]) > 1
    for name in (operator, "whole", "who?e"):
        assert chosen(network, name) == {name}
        assert chosen(decode(Workload, encode(network)), name) == {name}


def test_own_entries_of_parts_come_first() -> None:
    """An entry for a part comes before one for its operator, and names come before types."""
    network = network_of("Softmax")
    assert chosen(network, "Softmax", "whole/exp") == {"Softmax", "whole/exp"}
    assert chosen(network, "Softmax", "Exp") == {"Softmax", "Exp"}
    assert chosen(network, "Softmax", "Exp", "whole/exp") == {"Softmax", "whole/exp"}
    assert chosen(network, "Softmax", "whole") == {"whole"}
    assert chosen(network, "@softmax", "Exp") == {"@softmax", "Exp"}
    assert chosen(network, "@softmax", "@reduction") == {"@softmax", "@reduction"}
    assert chosen(network_of("LayerNormalization"), "@normalization") == {"@normalization"}


def test_parts_are_no_other_layers_for_it() -> None:
    """The operator of a part is not encoded in its layer, so it changes no cost."""
    layers = [node.layer for node in network_of("Softmax").nodes if node.layer is not None]
    assert all("part_of" not in encode(layer) for layer in layers)
    assert decode(type(layers[0]), encode(layers[0])) == layers[0]


def test_spatial_mapping_of_an_operator_reaches_its_parts() -> None:
    """The spatial mapping in an operator's entry changes the latency of its parts, and the entry counts as used."""
    links = {"memory_operand_links": {"O": "O", "W": "I2", "I": "I1"}}
    entry = {"name": "Softmax", "spatial_mapping": {"D1": ["D, 2"], "D2": ["B, 1"]}, **links}
    options = {"preset": "zigzag", "model": "corrected", "lpf_limit": 3}
    model = model_of("Softmax")
    plain = map_workload(model, CORE, [{"name": "default", **links}], **options)
    fixed = map_workload(model, CORE, [entry, {"name": "default", **links}], **options)
    assert fixed.summary["latency_cycles"] > plain.summary["latency_cycles"]
    assert "unused" not in fixed.summary
