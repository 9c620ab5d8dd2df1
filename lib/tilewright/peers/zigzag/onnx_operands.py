"""Order and constants of a graph; which inputs of an operator are constants, and which nodes feed the others.

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

import onnx

from tilewright.errors import InputError, Problem
from tilewright.profile import ModelProfile
from tilewright.workload.onnx.node import OnnxNode, OperandRoles
from tilewright.workload.onnx.resolution.topology import (
    RANDOM_OPERATORS,
    run_order,
    tensor_makers,
    tensors_read,
    unique_names,
)


@dataclass(frozen=True)
class Topology:
    """The operators in an order in which they can run, and who makes each tensor."""

    nodes: tuple[OnnxNode, ...]
    producer_of: dict[str, int]
    """Tensor -> id of the node that makes it. Network inputs and initialisers are not in it."""
    constant_nodes: frozenset[int]
    """Nodes whose outputs are known before run time: Constant, and whatever is computed from constants only."""
    captured: dict[int, tuple[str, ...]]
    """Node id -> outer tensors that its subgraphs (If, Loop, Scan) read."""

    def predecessors(self, node: OnnxNode) -> list[int]:
        """Producers of the inputs of `node`, in input order, a producer twice if two inputs come from it."""
        return [self.producer_of[name] for name in node.inputs if name in self.producer_of]

    def all_predecessors(self, node: OnnxNode) -> list[int]:
        """Each producer once, those of tensors read inside subgraphs included."""
        names = node.inputs + self.captured.get(node.node_id, ())
        return list(dict.fromkeys(self.producer_of[name] for name in names if name in self.producer_of))


def read_topology(graph: onnx.GraphProto, notices: list[str]) -> Topology:
    """The nodes of `graph` in file order, or in a topological order close to it (with a notice) if that is not one.

    Raises InputError for inputs that nothing produces, tensors produced twice, and cycles.
    """
    protos = list(graph.node)
    makers, problems = tensor_makers(graph)
    known = {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
    known.update(tensor.values.name for tensor in graph.sparse_initializer)
    names = unique_names(protos)
    reads = [tensors_read(proto) for proto in protos]
    for index, proto in enumerate(protos):
        missing = [name for name in proto.input if name and name not in makers and name not in known]
        problems += [Problem(f"input '{name}' is produced by nothing", path=names[index]) for name in missing]
    if problems:
        raise InputError(problems)
    order = run_order(reads, makers, names)
    if order != list(range(len(protos))):
        notices.append("the operators of the file are not in an order in which they can run; they were sorted")
    nodes = tuple(OnnxNode(place, names[index], protos[index]) for place, index in enumerate(order))
    producer_of = {name: node.node_id for node in nodes for name in node.outputs if name}
    captured = {
        place: tuple(reads[index][len(protos[index].input) :])
        for place, index in enumerate(order)
        if len(reads[index]) > len(protos[index].input)
    }
    inputs = {value.name for value in graph.input} - {tensor.name for tensor in graph.initializer}
    return Topology(nodes, producer_of, _constant_nodes(nodes, producer_of, inputs, captured), captured)


def _constant_nodes(
    nodes: tuple[OnnxNode, ...], producer_of: dict[str, int], inputs: set[str], captured: dict[int, tuple[str, ...]]
) -> frozenset[int]:
    constant: set[int] = set()
    for node in nodes:
        names = [name for name in node.inputs + captured.get(node.node_id, ()) if name]
        is_constant = node.proto.op_type not in RANDOM_OPERATORS and not any(
            name in inputs or (name in producer_of and producer_of[name] not in constant) for name in names
        )
        if is_constant:
            constant.add(node.node_id)
    return frozenset(constant)


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
