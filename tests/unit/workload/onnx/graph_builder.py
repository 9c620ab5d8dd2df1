"""A small ONNX graph that grows by random choices of Hypothesis."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from hypothesis import strategies as st
from onnx.helper import make_node

from tests.unit.workload.onnx.dependency_checks import build_model

Shape = tuple[int, ...]
MOST_ELEMENTS = 120
_OPSET = 20


@dataclass
class GraphBuilder:
    """A growing graph: nodes, constants, and the float tensors that a further node may read."""

    draw: st.DrawFn
    inputs: dict[str, Shape] = field(default_factory=dict)
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: dict[str, npt.NDArray[Any]] = field(default_factory=dict)
    tensors: dict[str, Shape] = field(default_factory=dict)
    ranges: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Smallest and largest value of each integer input."""
    hides_dependencies: bool = False
    """Whether dependencies may cancel or vanish, as in a mean after a normalisation or a product with 0."""

    def number(self, low: int, high: int) -> int:
        """An integer from `low` to `high`."""
        return self.draw(st.integers(low, high))

    def choice(self, *options: Any) -> Any:
        """One of the options."""
        return self.draw(st.sampled_from(options))

    def input(self, shape: Shape) -> str:
        """Adds a network input."""
        name = f"x{len(self.inputs)}"
        self.inputs[name] = self.tensors[name] = shape
        return name

    def weight(self, *shape: int) -> str:
        """A constant tensor without zeros; sometimes a further network input instead."""
        if self.number(0, 7) == 7:
            name = f"w{len(self.inputs)}"
            self.inputs[name] = shape
            # Padding and gaps of an operator before leave elements 0, whose products depend on no other factor.
            self.hides_dependencies |= bool(self.nodes)
            return name
        generator = np.random.default_rng(self.number(0, 99))
        values = generator.uniform(0.5, 1.5, shape) * generator.choice([-1, 1], shape)
        return self.constant(values.astype(np.float32))

    def constant(self, values: Any) -> str:
        """Adds a constant tensor; Python integers become INT64."""
        name = f"c{len(self.constants)}"
        self.constants[name] = np.asarray(values)
        return name

    def add(self, operator: str, inputs: list[str], *shapes: Shape, **attributes: Any) -> str:
        """Adds a node and returns the name of its first output."""
        outputs = [f"t{len(self.nodes)}_{number}" for number in range(len(shapes))]
        self.nodes.append(make_node(operator, inputs, outputs, **attributes))
        self.tensors.update(zip(outputs, shapes, strict=True))
        return outputs[0]

    def model(self) -> onnx.ModelProto:
        """The model of the graph so far."""
        kinds = dict.fromkeys(self.ranges, int(onnx.TensorProto.INT64))
        return build_model(self.nodes, self.inputs, self.constants, kinds=kinds, opset=_OPSET)

    def __repr__(self) -> str:
        lines = [f"{name}{list(shape)}" for name, shape in self.inputs.items()]
        for node in self.nodes:
            given = [
                f"{name}={self.constants[name].tolist()}"
                if name in self.constants and self.constants[name].dtype.kind == "i"
                else f"{name}{list(self.constants[name].shape)}"
                if name in self.constants
                else name
                for name in node.input
            ]
            attributes = {item.name: onnx.helper.get_attribute_value(item) for item in node.attribute}
            outputs = [f"{name}{list(self.tensors[name])}" for name in node.output]
            lines.append(f"{', '.join(outputs)} = {node.op_type}({', '.join(given)}) {attributes or ''}")
        return "\n".join(["", *lines])
