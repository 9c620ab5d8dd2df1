"""Which inputs of an operator are constants, and which nodes feed the others.

zigzag-dse 3.9.1 goes by the *number* of predecessor nodes of a layer: none: both operands constant; one: W constant and
I fed by it; two: I fed by the first and W by the second; three or more: refused. A `Constant` node counts as a
predecessor (fault B13), so weights that come through Constant, Cast, Transpose or DequantizeLinear look like
activations, and so does a bias computed by a node.

Here the reference profile keeps that rule, and the reader notes every layer in which it gives another answer than the
graph does. With three or more predecessors, and always under `trace_onnx_constants`, the answer
comes from the graph: whatever is computed from constants only is a constant, I is the first operand and W the second,
except that a constant first operand of a matrix product is W.
"""

from dataclasses import dataclass

from tilewright.profile import ModelProfile
from tilewright.workload.onnx.node import OnnxNode
from tilewright.workload.onnx.resolution.topology import Topology


@dataclass(frozen=True)
class OperandRoles:
    """Operands of one layer: which node inputs they are, which are constant, and the nodes that feed the others."""

    activation_input: int
    """Index of the node input that is operand I."""
    weight_input: int
    """Index of the node input that is operand W."""
    constant_operands: tuple[str, ...]
    sources: tuple[tuple[str, int], ...]
    """(operand, producing node), W before I as in zigzag-dse 3.9.1."""

    @property
    def weight_is_constant(self) -> bool:
        """Whether W is known before run time."""
        return "W" in self.constant_operands


def reference_roles(predecessors: list[int], weight_input: int) -> OperandRoles:
    """The roles by number of predecessors, of which there are at most two."""
    if not predecessors:
        return OperandRoles(0, weight_input, ("W", "I"), ())
    if len(predecessors) == 1:
        return OperandRoles(0, weight_input, ("W",), (("I", predecessors[0]),))
    return OperandRoles(0, weight_input, (), (("W", predecessors[1]), ("I", predecessors[0])))


def graph_roles(node: OnnxNode, topology: Topology, weight_input: int, *, may_exchange: bool) -> OperandRoles:
    """The roles by where the data come from; a bias computed by a node is a third source, `bias`.

    With `may_exchange` a constant first operand is W and the second one I.
    """
    first, second = _computed_by(node, topology, 0), _computed_by(node, topology, weight_input)
    exchanged = may_exchange and first is None and second is not None
    activation, weight = (second, first) if exchanged else (first, second)
    sources = [(operand, source) for operand, source in (("W", weight), ("I", activation)) if source is not None]
    constants = tuple(operand for operand, source in (("W", weight), ("I", activation)) if source is None)
    used = {activation, weight}
    for source in topology.all_predecessors(node):
        if source not in topology.constant_nodes and source not in used:
            sources.append(("bias", source))
    inputs = (weight_input, 0) if exchanged else (0, weight_input)
    return OperandRoles(*inputs, constants, tuple(sources))


def _computed_by(node: OnnxNode, topology: Topology, index: int) -> int | None:
    producer = topology.producer_of.get(node.inputs[index]) if index < len(node.inputs) else None
    return None if producer in topology.constant_nodes else producer


def operand_roles(
    node: OnnxNode, topology: Topology, profile: ModelProfile, weight_input: int, *, may_exchange: bool
) -> tuple[OperandRoles, str]:
    """The roles under `profile`, and a remark ('' if none) when the reference takes a layer for what it is not."""
    actual = graph_roles(node, topology, weight_input, may_exchange=may_exchange)
    if profile.trace_onnx_constants:
        return actual, ""
    predecessors = topology.predecessors(node)
    if len(predecessors) > 2:
        return (
            actual,
            "more than two predecessors, which zigzag-dse 3.9.1 refuses; operands were traced to their constants",
        )
    roles = reference_roles(predecessors, weight_input)
    same = roles.constant_operands == actual.constant_operands and roles.activation_input == actual.activation_input
    if same and all(source in actual.sources for source in roles.sources):
        return roles, ""
    return roles, (
        "the reference rule (operands by number of predecessors) takes a constant for an activation or the other way "
        "round; `model: corrected` traces operands to their constants"
    )
