"""Sequences whose tensors are known one by one: what makes and reads them is replaced by operators on the tensors."""

from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from tilewright.workload.onnx.node import OnnxNode
from tilewright.workload.onnx.resolution.control_flow import AXES_ARE_AN_INPUT_SINCE
from tilewright.workload.onnx.resolution.functions import Expander, PendingNode
from tilewright.workload.onnx.resolution.tensors import KnownTensors

_Elements = tuple[str, ...]


class Sequences:
    """The sequences of which every tensor is known, and what stands in the place of the operators on them."""

    def __init__(self, expander: Expander, known: KnownTensors) -> None:
        self.expander, self.known = expander, known
        self.elements: dict[str, _Elements] = {}

    def rewritten(self, item: PendingNode) -> list[PendingNode] | None:
        """What stands in the place of an operator on sequences; None for any other, which is left as it is."""
        node = item.proto
        made = self._made(item)
        if made is not None and len(node.output) == 1 and node.output[0]:
            name = node.output[0]
            self.elements[name] = made
            self.known.add_unknown(name, [], _sequence_type(self._element_type(made)), is_constant=False)
            return []
        elements = self.elements.get(node.input[0]) if node.input else None
        if elements is None or len(node.output) != 1 or not node.output[0]:
            return None
        if node.op_type == "SequenceLength":
            self.known.add_constant(node.output[0], numpy_helper.from_array(np.asarray(len(elements), np.int64)))
            return []
        if node.op_type == "SequenceAt":
            place = self._place(node, 1, len(elements))
            return None if place is None else [self._node(item, "Identity", [elements[place]], node.output[0])]
        return self._joined(item, elements) if node.op_type == "ConcatFromSequence" and elements else None

    def _made(self, item: PendingNode) -> _Elements | None:
        """The tensors of the sequence that an operator makes; None if it makes none, or one that is not known."""
        node = item.proto
        if node.op_type == "SequenceEmpty":
            return ()
        if node.op_type == "SequenceConstruct":
            return tuple(node.input) if all(name in self.known.facts for name in node.input) else None
        elements = self.elements.get(node.input[0]) if node.input else None
        if elements is None or node.op_type not in ("Identity", "SequenceInsert", "SequenceErase"):
            return None
        if node.op_type == "Identity":
            return elements
        is_insert = node.op_type == "SequenceInsert"
        if is_insert and (len(node.input) < 2 or node.input[1] not in self.known.facts):
            return None
        index = 2 if is_insert else 1
        place: int | None = len(elements) if is_insert else len(elements) - 1
        if len(node.input) > index and node.input[index]:
            place = self._place(node, index, len(elements) + is_insert)
        if place is None or place < 0:
            return None
        return (*elements[:place], *((node.input[1],) if is_insert else ()), *elements[place + (not is_insert) :])

    def _place(self, node: onnx.NodeProto, index: int, count: int) -> int | None:
        facts = self.known.facts.get(node.input[index]) if len(node.input) > index else None
        if facts is None or facts.values is None or facts.values.size != 1 or facts.values.dtype.kind not in "iu":
            return None
        place = int(facts.values.reshape(()))
        return place % count if -count <= place < count else None

    def _joined(self, item: PendingNode, elements: _Elements) -> list[PendingNode] | None:
        node = OnnxNode(0, item.name, item.proto)
        if not node.has("axis"):
            return None
        axis = node.integer("axis", 0)
        nodes, parts = [], list(elements)
        if node.integer("new_axis", 0):
            as_input = item.opsets.get("", AXES_ARE_AN_INPUT_SINCE) >= AXES_ARE_AN_INPUT_SINCE
            extra = []
            if as_input:
                extra = [self.expander.tensor_name(item, "axes")]
                self.known.add_constant(extra[0], numpy_helper.from_array(np.asarray([axis], np.int64)))
            attributes: dict[str, Any] = {} if as_input else {"axes": [axis]}
            parts = [self.expander.tensor_name(item, f"part {number}") for number in range(len(elements))]
            nodes = [
                self._node(item, "Unsqueeze", [source, *extra], part, **attributes)
                for source, part in zip(elements, parts, strict=True)
            ]
        return [*nodes, self._node(item, "Concat", parts, item.proto.output[0], axis=axis)]

    def _node(self, item: PendingNode, operator: str, inputs: list[str], output: str, **attributes: Any) -> PendingNode:
        proto = onnx.helper.make_node(operator, inputs, [output], **attributes)
        return self.expander.pending(item, proto, f"{item.name}/{output}")

    def _element_type(self, elements: _Elements) -> int:
        first = self.known.facts.get(elements[0]) if elements else None
        return first.element_type if first is not None else onnx.TensorProto.FLOAT


def _sequence_type(element_type: int) -> onnx.TypeProto:
    return onnx.helper.make_sequence_type_proto(onnx.helper.make_tensor_type_proto(element_type, None))
