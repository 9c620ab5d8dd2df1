"""Random branching networks, cores and operand links from a seed, for comparing the reach of operands.

The reference and this project both read them, so the file uses only the standard library and onnx.
"""

from __future__ import annotations

import random
from typing import Any

from onnx import ModelProto, NodeProto, TensorProto, helper

HARDWARE = (
    "cube_8x4x3",
    "quad_4x4x2x2",
    "row_stationary_12x14",
    "scarce_6x5",
    "vector_24",
    "weight_stationary_16x16",
)
LINKS = ({"O": "O", "W": "I2", "I": "I1"}, {"O": "O", "W": "I1", "I": "I2"})
SIDE = 8
CHANNELS = (2, 4, 8, 16, 32, 64)


def random_hardware(data: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    """A hardware file as data, with random memory sizes; the top memory mostly stays large."""
    memories = {
        name: {
            **memory,
            "size": memory["size"] if index == 0 else _scaled(memory["size"], rng),
        }
        for index, (name, memory) in enumerate(reversed(data["memories"].items()))
    }
    return {**data, "memories": dict(reversed(memories.items()))}


def _scaled(size: int, rng: random.Random) -> int:
    return int(size * rng.choice((0.125, 0.25, 0.5, 0.75, 1, 1, 2, 4)))


def random_mapping(rng: random.Random) -> list[dict[str, Any]]:
    """A mapping file as data; links may differ between convolutions and matrix products."""
    usual, other = rng.choice(LINKS), rng.choice(LINKS)
    entries = [{"name": "default", "memory_operand_links": usual}]
    return entries + ([{"name": "MatMul", "memory_operand_links": other}] if rng.random() < 0.3 else [])


def random_network(rng: random.Random) -> ModelProto:
    """A network of convolutions, products of activations, element-wise operators, joins and pools."""
    builder = _Builder(rng)
    for _ in range(rng.randint(3, 12)):
        builder.add_operator()
    if rng.random() < 0.9:
        builder.join_loose_ends()
    return builder.model()


class _Builder:
    """Nodes and the shapes of their outputs, all 1 x channels x SIDE x SIDE."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.nodes: list[NodeProto] = []
        self.channels: dict[str, int] = {"input": rng.choice(CHANNELS)}
        self.weights: list[TensorProto] = []
        self.unread: list[str] = ["input"]
        self.inputs = ["input"]
        self.convolve("input")

    def add_operator(self) -> None:
        """Add an operator on the newest tensor or on an older one."""
        source = self.unread[-1] if self.unread and self.rng.random() < 0.9 else self._any_tensor()
        kinds = (
            self.convolve,
            self.elementwise,
            self.add,
            self.concatenate,
            self.multiply,
            self.second_input,
        )
        self.rng.choices(kinds, (55, 20, 8, 5, 12, 1))[0](source)

    def convolve(self, source: str) -> None:
        """Add a convolution that keeps height and width."""
        kernel, channels = self.rng.choice((1, 3)), self.rng.choice(CHANNELS)
        name = f"weights{len(self.weights)}"
        shape = (channels, self.channels[source], kernel, kernel)
        self.weights.append(TensorProto(name=name, data_type=TensorProto.FLOAT, dims=shape))
        attributes: dict[str, Any] = {
            "kernel_shape": [kernel, kernel],
            "pads": [kernel // 2] * 4,
        }
        if self.rng.random() < 0.5:
            attributes |= {
                "act_size": self.rng.choice((4, 8)),
                "weight_size": 4,
                "output_size": 20,
            }
        self._add("Conv", [source, name], channels, **attributes)

    def elementwise(self, source: str) -> None:
        """Add an operator that passes one tensor on."""
        self._add(self.rng.choice(("Relu", "Sigmoid")), [source], self.channels[source])

    def add(self, source: str) -> None:
        """Add a sum of two tensors; of a tensor with itself if no other has its size."""
        self._add("Add", [source, self._partner(source)], self.channels[source])

    def multiply(self, source: str) -> None:
        """Add a product of two activations: a layer without constant operands."""
        self._add("MatMul", [source, self._partner(source)], self.channels[source])

    def concatenate(self, source: str) -> None:
        """Add a concatenation of two or three tensors."""
        sources = [source, *(self._any_tensor() for _ in range(self.rng.randint(1, 2)))]
        self._add("Concat", sources, sum(self.channels[name] for name in sources), axis=1)

    def second_input(self, _: str) -> None:
        """Add another input of the network."""
        name = f"input{len(self.inputs)}"
        self.inputs.append(name)
        self.channels[name] = self.rng.choice(CHANNELS)
        self.convolve(name)

    def join_loose_ends(self) -> None:
        """Concatenate all unread tensors, and end in one convolution."""
        while len(self.unread) > 1:
            sources = self.unread[:2]
            self._add("Concat", sources, sum(self.channels[name] for name in sources), axis=1)
        self.convolve(self.unread[0])

    def model(self) -> ModelProto:
        """The network with all shapes stored."""
        values = {
            name: helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, channels, SIDE, SIDE])
            for name, channels in self.channels.items()
        }
        outputs = [values[name] for name in self.unread]
        inner = [value for name, value in values.items() if name not in (*self.inputs, *self.unread)]
        inputs = [values[name] for name in self.inputs]
        return helper.make_model(
            helper.make_graph(self.nodes, "network", inputs, outputs, self.weights, value_info=inner)
        )

    def _any_tensor(self) -> str:
        return self.rng.choice([name for name in self.channels if name not in self.inputs])

    def _partner(self, source: str) -> str:
        same = [name for name, channels in self.channels.items() if channels == self.channels[source]]
        others = [name for name in same if name != source and name not in self.inputs]
        return self.rng.choice(others) if others else source

    def _add(self, operator: str, sources: list[str], channels: int, **attributes: Any) -> None:
        output = f"t{len(self.nodes)}"
        name = f"{operator}{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, sources, [output], name, **attributes))
        self.channels[output] = channels
        self.unread = [tensor for tensor in self.unread if tensor not in sources] + [output]
