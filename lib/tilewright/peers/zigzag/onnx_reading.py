"""Reader of ONNX models by the rules of zigzag-dse 3.9.1: Conv, QLinearConv, Gemm and MatMul are layers, all other
operators have no costs.

In zigzag-dse 3.9.1, the *number* of predecessor nodes of a layer decides which of its operands are constant:

* no predecessor: both operands are constant;
* one predecessor: W is constant, and the predecessor produces I;
* two predecessors: the first produces I, and the second produces W;
* three or more predecessors: an error.

A `Constant` node counts as a predecessor (fault B13, docs/model.md). Weights that come through Constant, Cast,
Transpose or DequantizeLinear therefore look like activations. A bias that a node computes also looks like an
activation.

The reference profile of tilewright keeps this rule, and reports every layer for which the graph gives other constant
operands. For layers with three or more predecessors, the graph decides. With the switch `trace_onnx_constants`, the
graph decides for all layers. In the graph, a tensor that is computed only from constants is a constant. I is the first
operand, and W is the second. There is one exception: a constant first operand of a matrix product is W.
"""

import math
from dataclasses import dataclass, replace

import onnx

from tilewright.base.errors import InputError, Label, Problem
from tilewright.base.operator_groups import MAC_TYPES
from tilewright.base.profile import ModelProfile
from tilewright.workload.graph import MODELLED, PASS_THROUGH, UNSUPPORTED, Workload, WorkloadNode
from tilewright.workload.layer import Layer
from tilewright.workload.network_options import NetworkOptions
from tilewright.workload.onnx import matrix_products, products
from tilewright.workload.onnx.counting import NOTHING, WorkCounter, works_alone
from tilewright.workload.onnx.coverage import (
    Coverage,
    OperatorCoverage,
    build_coverage,
)
from tilewright.workload.onnx.given_bits import BitsOfNetwork
from tilewright.workload.onnx.macs import is_counted
from tilewright.workload.onnx.node import STANDARD_DOMAINS, OnnxNode, OperandRoles, Shape, Shapes
from tilewright.workload.onnx.operators import register_operators
from tilewright.workload.onnx.resolution.functions import (
    RANDOM_OPERATORS,
    graph_constants,
    read_functions,
    run_order,
    tensor_makers,
    tensors_read,
    unique_names,
)
from tilewright.workload.onnx.resolution.inputs import (
    GivenSizes,
    ResolvedInputs,
    missing_size_problems,
    resolve_inputs,
    stored_shapes,
)
from tilewright.workload.onnx.resolution.network import resolve_graph
from tilewright.workload.onnx.resolution.outputs import InnerTensors


@dataclass(frozen=True)
class NetworkTopology:
    """Operators of a network in a topological order, and the producer of each tensor."""

    nodes: tuple[OnnxNode, ...]
    producer_of: dict[str, int]
    """Id of the node that produces each tensor, by tensor name. Network inputs and initialisers are left out."""
    constant_nodes: frozenset[int]
    """Ids of the nodes whose outputs are known before run time: nodes of the operator `Constant`, and nodes that read
    only constants. Nodes that draw random numbers are left out.
    """
    captured: dict[int, tuple[str, ...]]
    """Tensors of the outer graph that a node reads in its subgraphs (of If, Loop, Scan), by node id."""

    def predecessors(self, node: OnnxNode) -> list[int]:
        """Ids of the nodes that produce the inputs of `node`, in input order. A node that produces two inputs occurs
        twice.
        """
        return [self.producer_of[name] for name in node.inputs if name in self.producer_of]

    def all_predecessors(self, node: OnnxNode) -> list[int]:
        """Ids of the nodes that produce the inputs of `node` and the tensors that its subgraphs read. Each id occurs
        once.
        """
        names = node.inputs + self.captured.get(node.node_id, ())
        return list(dict.fromkeys(self.producer_of[name] for name in names if name in self.producer_of))


def read_topology(graph: onnx.GraphProto, notices: list[str]) -> NetworkTopology:
    """Topology with the nodes of `graph` in file order. If the file order is not a topological order, the nodes are
    sorted, and a notice reports this.

    Raises InputError for inputs without a producer, tensors with two producers, and cycles.
    """
    protos = list(graph.node)
    makers, problems = tensor_makers(graph)
    known = {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
    known.update(tensor.values.name for tensor in graph.sparse_initializer)
    names = unique_names(protos)
    reads = [tensors_read(proto) for proto in protos]
    for index, proto in enumerate(protos):
        missing = [name for name in proto.input if name and name not in makers and name not in known]
        problems += [Problem(f"input '{name}' has no producer", path=Label(names[index])) for name in missing]
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
    return NetworkTopology(nodes, producer_of, _constant_nodes(nodes, producer_of, inputs, captured), captured)


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
    """Roles of the operands, decided as in zigzag-dse by the number of predecessors, which is at most two."""
    if not predecessors:
        return OperandRoles(0, weight_input, ("W", "I"), ())
    if len(predecessors) == 1:
        return OperandRoles(0, weight_input, ("W",), (("I", predecessors[0]),))
    return OperandRoles(0, weight_input, (), (("W", predecessors[1]), ("I", predecessors[0])))


def graph_roles(node: OnnxNode, topology: NetworkTopology, weight_input: int, *, may_exchange: bool) -> OperandRoles:
    """Roles of the operands, decided by the origin of their data. Further predecessors that are not constant, such as
    the producer of a bias, are sources of an operand called `bias`.

    With `may_exchange`, a constant first operand becomes W, and the second operand becomes I. If both operands are
    constant, nothing is exchanged.
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


def _computed_by(node: OnnxNode, topology: NetworkTopology, index: int) -> int | None:
    producer = topology.producer_of.get(node.inputs[index]) if index < len(node.inputs) else None
    return None if producer in topology.constant_nodes else producer


def operand_roles(
    node: OnnxNode, topology: NetworkTopology, profile: ModelProfile, weight_input: int, *, may_exchange: bool
) -> tuple[OperandRoles, str]:
    """Pair (roles of the operands under `profile`, remark). The rule of zigzag-dse decides by the number of
    predecessors of a layer. The remark says why this rule fails for the layer. The remark is '' if the rule gives the
    right roles, or if `profile` does not use the rule.
    """
    actual = graph_roles(node, topology, weight_input, may_exchange=may_exchange)
    if profile.trace_onnx_constants:
        return actual, ""
    predecessors = topology.predecessors(node)
    if len(predecessors) > 2:
        return (
            actual,
            "the operator has more than two predecessors, which zigzag-dse 3.9.1 refuses; operands were traced to their"
            " constants",
        )
    roles = reference_roles(predecessors, weight_input)
    same = roles.constant_operands == actual.constant_operands and roles.activation_input == actual.activation_input
    if same and all(source in actual.sources for source in roles.sources):
        return roles, ""
    return roles, (
        "the reference rule (operands by number of predecessors) confuses constants with activations; "
        "`model: corrected` traces operands to their constants"
    )


_MATRIX_PRODUCTS = frozenset({"Gemm", "MatMul"})


def read_reference(model: onnx.ModelProto, profile: ModelProfile, options: NetworkOptions) -> tuple[Workload, Coverage]:
    """Pair (workload without a name, coverage of the operators) of a model, read by the rules of zigzag-dse 3.9.1.

    With the switch `onnx_height_is_y`, the height of kernels, strides, dilations and padding is Y, not X (fault B10 in
    docs/model.md). With the switch `trace_onnx_constants`, operands are traced to their constants (fault B13, see
    `operand_roles`). An operator without a layer then keeps the edges from all its predecessors, not only from the
    first two.

    Raises InputError with all problems.
    """
    reader = _Reader(model, profile, options)
    workload = Workload("", reader.read())
    if unused := list(BitsOfNetwork(options.bits).unused(workload)):
        raise InputError(unused)
    return workload, build_coverage(reader.entries, reader.all_notices())


class _Reader:
    """Reader of one model, which collects nodes, errors, coverage entries, and the names of layers for each remark."""

    def __init__(self, model: onnx.ModelProto, profile: ModelProfile, options: NetworkOptions) -> None:
        self.model = model
        self.profile = profile
        self.notices: list[str] = []
        self.problems: list[Problem] = []
        self.entries: list[OperatorCoverage] = []
        self.remarks: dict[str, list[str]] = {}
        self.topology, self.shapes = self._structure(options)
        given_bits = BitsOfNetwork(options.bits)
        self.topology = replace(self.topology, nodes=given_bits.nodes(self.topology.nodes))
        self.problems += given_bits.faults(self.topology.nodes, {})
        self.counter = WorkCounter(model, self.shapes, dict(options.branches))
        self.network_outputs = {value.name for value in model.graph.output}

    def _structure(self, options: NetworkOptions) -> tuple[NetworkTopology, Shapes]:
        given = GivenSizes(dict(options.dims))
        inner = InnerTensors.of(self.model.graph)
        resolved = resolve_inputs(self.model.graph, given, dict(options.input_shapes), inner)
        self.notices += resolved.notices
        wrong = [*resolved.problems, *missing_size_problems(resolved.missing)]
        try:
            topology = read_topology(self.model.graph, self.notices)
        except InputError as error:
            raise InputError([*wrong, *error.problems]) from None
        # Sizes that the inputs do not use can belong to inner tensors; finding out requires inferring all shapes.
        rest = given.dims.keys() - given.used or any(name in inner for name, _ in options.input_shapes)
        if wrong and not rest:
            raise InputError(wrong)
        return topology, _tensor_shapes(self.model, resolved, topology, options, self.notices, must_infer=bool(rest))

    def read(self) -> tuple[WorkloadNode, ...]:
        nodes = []
        for node in self.topology.nodes:
            try:
                nodes.append(self._node(node))
            except InputError as error:
                self.problems += error.problems
        if self.problems:
            raise InputError(self.problems)
        return tuple(nodes)

    def all_notices(self) -> list[str]:
        return self.notices + [f"{text}: {', '.join(names)}" for text, names in self.remarks.items()]

    def _node(self, node: OnnxNode) -> WorkloadNode:
        if node.proto.domain in STANDARD_DOMAINS:
            if node.proto.op_type in products.WEIGHT_INPUT:
                return self._conv(node)
            if node.proto.op_type in _MATRIX_PRODUCTS and not self._is_empty(node):
                return self._matrix_product(node)
        return self._without_layer(node)

    def _is_empty(self, node: OnnxNode) -> bool:
        """True if a tensor of a matrix product has no elements. An example is a cache before the first token."""
        return any(0 in self.shapes.get(name, ()) for name in (*node.inputs[:2], *node.outputs[:1]))

    def _conv(self, node: OnnxNode) -> WorkloadNode:
        geometry = products.conv_geometry(node, self.shapes)
        if len(geometry.kernel) > 2:
            return self._without_layer(node)
        if geometry.axes_differ and not self.profile.onnx_height_is_y:
            self._remark(
                "kernel, strides, dilations or padding differ between height and width; the reference model "
                "exchanges height and width (fault B10), `model: corrected` does not",
                node,
            )
        roles = self._roles(node, products.WEIGHT_INPUT[node.proto.op_type], may_exchange=False)
        return self._with_layer(node, products.conv_layer(node, geometry, roles, self.profile), roles)

    def _matrix_product(self, node: OnnxNode) -> WorkloadNode:
        product = matrix_products.matrix_product(node, self.shapes)
        roles = self._roles(node, 1, may_exchange=True)
        return self._with_layer(node, matrix_products.gemm_layer(node, product, roles, self.profile), roles)

    def _roles(self, node: OnnxNode, weight_input: int, *, may_exchange: bool) -> OperandRoles:
        roles, remark = operand_roles(node, self.topology, self.profile, weight_input, may_exchange=may_exchange)
        if remark:
            self._remark(remark, node)
        return roles

    def _with_layer(self, node: OnnxNode, layer: Layer, roles: OperandRoles) -> WorkloadNode:
        self.entries.append(OperatorCoverage(node.operator_type, MODELLED, 1, layer.mac_count, 0, None))
        is_output = self._is_network_output(node)
        return WorkloadNode(
            node.node_id,
            node.name,
            node.proto.op_type,
            layer,
            roles.sources,
            is_network_output=is_output,
            origin=node.name,
            origin_type=node.operator_type,
            status=MODELLED,
        )

    def _without_layer(self, node: OnnxNode) -> WorkloadNode:
        is_empty = node.proto.op_type in _MATRIX_PRODUCTS and self._is_empty(node)
        if is_empty:
            self._remark("a tensor without elements: no layer", node)
        is_source = node.proto.domain not in STANDARD_DOMAINS and not any(node.inputs)
        is_constant = node.node_id in self.topology.constant_nodes and not is_source
        work = NOTHING if is_empty or is_constant else self.counter.work_of(node)
        macs, status = work.mac_count, PASS_THROUGH if work.is_free else UNSUPPORTED
        # This reader counts no other operations of these operators.
        self.entries.append(OperatorCoverage(node.operator_type, status, 1, macs, None, None))
        if status == UNSUPPORTED:
            told = "work unknown" if not work.is_known else "multiply-accumulates are counted but have no cost"
            self._remark(f"{node.operator_type} has no cost model; its data pass through without cost ({told})", node)
        return WorkloadNode(
            node.node_id,
            node.name,
            node.proto.op_type.lower(),
            None,
            self._edges(node),
            self._output_elements(node),
            self._is_network_output(node),
            origin=node.name,
            origin_type=node.operator_type,
            status=status,
            uncosted_mac_count=macs if status == UNSUPPORTED else None,
        )

    def _output_elements(self, node: OnnxNode) -> int | None:
        shapes = [self.shapes.get(name) for name in node.outputs if name]
        return None if None in shapes else sum(math.prod(shape) for shape in shapes if shape is not None)

    def _is_network_output(self, node: OnnxNode) -> bool:
        return any(name in self.network_outputs for name in node.outputs)

    def _edges(self, node: OnnxNode) -> tuple[tuple[str, int], ...]:
        if not self.profile.trace_onnx_constants:
            return tuple(zip(("I", "W"), self.topology.predecessors(node), strict=False))
        sources = self.topology.all_predecessors(node)
        names = ["I", "W", *(f"I{number}" for number in range(3, len(sources) + 1))]
        return tuple(zip(names, sources, strict=False))

    def _remark(self, text: str, node: OnnxNode) -> None:
        self.remarks.setdefault(text, []).append(node.name)


def _required_tensors(node: OnnxNode) -> list[str]:
    """Tensors whose shapes are needed to compute the costs of a node, or to count the operations of the node."""
    if node.proto.domain not in STANDARD_DOMAINS or not (is_counted(node) or node.proto.op_type in MAC_TYPES):
        return []
    needed = list(node.outputs[:1])
    operator_type = node.proto.op_type
    if (operator_type in products.WEIGHT_INPUT and node.has("kernel_shape")) or operator_type in _MATRIX_PRODUCTS:
        needed += node.inputs[:1]
    else:
        needed += node.inputs
    return [tensor for tensor in needed if tensor]


def _tensor_shapes(
    model: onnx.ModelProto,
    resolved: ResolvedInputs,
    topology: NetworkTopology,
    options: NetworkOptions,
    notices: list[str],
    *,
    must_infer: bool = False,
) -> dict[str, Shape]:
    """Shapes of tensors by name. Shapes are inferred only if a needed shape is not stored in the model, or with
    `must_infer`.

    Raises InputError if the shape inference finds the model inconsistent. There is one exception: the inferred shapes
    are needed only to count the operations of operators that are read separately (`works_alone`). The stored shapes are
    then returned, and the count is unknown.
    """
    shapes = stored_shapes(model.graph, resolved.symbols) | resolved.shapes
    required = [tensor for node in topology.nodes for tensor in _required_tensors(node)]
    must_infer = must_infer or any(tensor not in shapes for tensor in required)
    if not must_infer and not _lacks_shapes(model, topology, shapes):
        return shapes
    try:
        graph = resolve_graph(model, dict(options.dims), dict(options.input_shapes), dict(options.branches))
    except InputError:
        if must_infer:
            raise
        return shapes
    notices.append("the file does not store all shapes; they were inferred")
    return {name: facts.shape for name, facts in graph.tensors.items()} | shapes


def _lacks_shapes(model: onnx.ModelProto, topology: NetworkTopology, shapes: Shapes) -> bool:
    """True if the work of an operator cannot be counted because of an unknown shape: the operator is counted as a
    separate model (`works_alone`), and reads a tensor without a known shape.
    """
    register_operators()
    functions = read_functions(model).functions
    known = shapes.keys() | {name for name, _ in graph_constants(model.graph)}
    for node in topology.nodes:
        names = (*node.inputs, *topology.captured.get(node.node_id, ()))
        if any(name and name not in known for name in names) and works_alone(node, functions):
            return True
    return False
