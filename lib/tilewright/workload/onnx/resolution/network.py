"""Resolution of an ONNX network: its shapes and constants are computed, and its functions and branches are expanded.

The resolution is one pass in the order of execution. For each operator, the shapes of the outputs are computed from the
shapes of the inputs, and from the values of small constants. The pass also computes these values. Weights are never
read. The shapes of inner tensors and outputs in the file can be wrong after a user has chosen a size. These stored
shapes are used only if a shape has no other source, and a notice says so.

If every tensor of a sequence is known, an operator on the sequence is replaced by operators on its tensors.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from tilewright.base.errors import InputError, Problem
from tilewright.workload.onnx.node import STANDARD_DOMAINS, OnnxNode, Shape
from tilewright.workload.onnx.resolution.control_flow import (
    AXES_ARE_AN_INPUT_SINCE,
    LOOPS,
    UNROLLED,
    LoopStep,
    LoopUnroller,
    TooLongDefinitionError,
    branch_graph,
    check_branches,
    choose_branch,
    loop_problem,
    with_captured_inputs,
)
from tilewright.workload.onnx.resolution.functions import (
    LARGEST_EXPANSION,
    RANDOM_OPERATORS,
    Expander,
    PendingNode,
    graph_constants,
    read_functions,
    standard_domain,
)
from tilewright.workload.onnx.resolution.inference import EndlessInferenceError, Inference
from tilewright.workload.onnx.resolution.inputs import (
    GivenSizes,
    missing_size_problems,
    network_inputs,
    read_stored_shapes,
    resolve_inputs,
)
from tilewright.workload.onnx.resolution.outputs import InnerTensors, OutputResolver, unused_places
from tilewright.workload.onnx.resolution.tensors import CAST_LIKE, KnownTensors, ResolvedGraph

_Elements = tuple[str, ...]


class Sequences:
    """Table of the sequences whose tensors are all known. Operators on these sequences are replaced by operators on the
    tensors.
    """

    def __init__(self, expander: Expander, known: KnownTensors) -> None:
        self.expander, self.known = expander, known
        self.elements: dict[str, _Elements] = {}

    def rewritten(self, item: PendingNode) -> list[PendingNode] | None:
        """Operators that replace an operator that makes or reads a sequence. The result is [] if no operator is needed,
        because the tables of sequences and tensors are enough.

        None if the operator is kept, because it neither makes nor reads a sequence, or because it cannot be replaced.
        An operator cannot be replaced if, for example, its sequence is not in the table of sequences.
        """
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
        """Tensors of the sequence that an operator makes. None if the result is not a sequence, or if tensors of the
        sequence are not known."""
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


_BY_SHAPE_ALONE = frozenset({"Shape", "Size", "EyeLike"})
"""Operators whose result depends only on the sizes of the input."""
_MOST_PROBLEMS = 100
_OLDEST_OPSET = 7
_MOST_OPSETS = 100_000
"""Largest version number of an operator set. A larger number means that the file is damaged."""


def resolve_graph(
    model: onnx.ModelProto,
    dims: Mapping[str, int] | None = None,
    input_shapes: Mapping[str, Shape] | None = None,
    branches: Mapping[str, str] | None = None,
    is_taken: Callable[[onnx.NodeProto], bool] | None = None,
) -> ResolvedGraph:
    """Network of `model`, with functions and branches expanded, and with every shape that an operator needs. `model` is
    not changed.

    * `dims` gives sizes of dynamic dimensions by symbol (`sequence`) or by axis (`input_ids[1]`). `dims` can also give
      sizes of inner tensors that are decided at run time (`boxes[0]`).
    * `input_shapes` gives whole shapes of network inputs, or of inner tensors whose shape cannot be inferred.
    * `branches` gives the branch (`then`, `else`) of each If whose condition is not constant, by node name or `*`.
    * `is_taken(operator)` is true for operators that are kept. Any other operator that onnx defines by a function is
      replaced by this function. Without `is_taken`, all operators are kept.

    Raises InputError with all problems: names, sizes and ranks that contradict each other, symbols without a size,
    cycles of the graph, unsupported loop operators, needed sizes that are known only at run time, and nodes that do not
    fit the definition of their operator.
    """
    too_long: set[str] = set()
    while True:
        resolver = _Resolver(model, dims or {}, input_shapes or {}, branches or {}, is_taken, too_long)
        try:
            return resolver.resolve()
        except TooLongDefinitionError as error:
            too_long.add(error.operator)


@dataclass
class _Collected:
    """Operators that have been resolved so far."""

    nodes: list[OnnxNode] = field(default_factory=list)
    origins: dict[int, str] = field(default_factory=dict)
    producer_of: dict[str, int] = field(default_factory=dict)
    constant_nodes: set[int] = field(default_factory=set)

    def add(self, item: PendingNode, *, is_constant: bool) -> None:
        node_id = len(self.nodes)
        self.nodes.append(OnnxNode(node_id, item.name, item.proto, item.opsets if item.definition_of else {}))
        self.origins[node_id] = item.origin
        self.producer_of.update((name, node_id) for name in item.proto.output if name)
        if is_constant:
            self.constant_nodes.add(node_id)


class _Resolver:
    """Pass over a network that resolves one operator after another. Names of tensors are the names after functions and
    branches are expanded."""

    def __init__(
        self,
        model: onnx.ModelProto,
        dims: Mapping[str, int],
        input_shapes: Mapping[str, Shape],
        branches: Mapping[str, str],
        is_taken: Callable[[onnx.NodeProto], bool] | None,
        too_long: Collection[str],
    ) -> None:
        self.model, self.graph = model, model.graph
        self.is_taken, self.too_long = is_taken, too_long
        self.expanded = 0
        self.given, self.input_shapes, self.branches = GivenSizes(dims), input_shapes, branches
        self.notices: list[str] = []
        self.problems: list[Problem] = []
        self.if_names: list[str] = []
        self.notices += [
            f"{kind} is not modelled: onnx defines it by a function with a loop that has too many iterations"
            for kind in sorted(too_long)
        ]
        self.opsets = _read_opsets(model, self.notices)
        self.functions = read_functions(model)
        self.expander = Expander(self.graph, self.opsets, self.notices)
        self.known = KnownTensors()
        self.inference = Inference(self.opsets)
        self.sequences = Sequences(self.expander, self.known)
        self.unroller = LoopUnroller(self.expander, self.known)
        self.found = _Collected()
        self.symbols: Collection[str] = ()

    def resolve(self) -> ResolvedGraph:
        """Network with all operators resolved. Raises InputError with the problems of the network. The search for
        problems ends after about _MOST_PROBLEMS problems.
        """
        inputs = network_inputs(self.graph)
        inner = InnerTensors(self.expander.tensor_names, {value.name for value in inputs})
        pending, outputs = self._start(inputs, inner)
        while pending and len(self.problems) < _MOST_PROBLEMS:
            item = pending.pop()
            try:
                pending += reversed(self._resolve(item, outputs))
            except EndlessInferenceError as error:
                raise InputError(dict.fromkeys((*self.problems, *error.problems))) from None
            except InputError as error:
                # A problem of an operator behind an assumed size can be caused by the assumed size, so it is not
                # reported.
                self.problems += () if self.known.missing_sizes else error.problems
                self.known.fail(list(item.proto.output))
        if not pending:
            self._check_end(inner)
        missing = (*self.known.missing_shapes, *missing_size_problems(self.known.missing_sizes))
        if self.problems or missing:
            raise InputError(dict.fromkeys((*self.problems, *missing)))
        return ResolvedGraph(
            tuple(self.found.nodes),
            self.known.facts,
            tuple(value.name for value in inputs),
            tuple(value.name for value in self.graph.output),
            self.found.producer_of,
            frozenset(self.found.constant_nodes),
            self.opsets,
            self.found.origins,
            tuple(dict.fromkeys((*self.notices, *self.inference.notices()))),
        )

    def _start(
        self, inputs: list[onnx.ValueInfoProto], inner: InnerTensors
    ) -> tuple[list[PendingNode], OutputResolver]:
        """Pair (operators, resolver of the operators' outputs). The operators are in reverse order: the next operator
        is the last in the list. Raises InputError if the network inputs, the given sizes, the initialisers or the order
        of the operators have problems.
        """
        resolved = resolve_inputs(self.graph, self.given, self.input_shapes, inner)
        stored = read_stored_shapes(self.graph, resolved.symbols)
        self.symbols = resolved.names | {symbol for shape in stored.values() for symbol in shape.symbols if symbol}
        self.notices += resolved.notices
        self.problems += resolved.problems
        self.problems += self.given.unknown_problems(self.symbols, resolved.names)
        self.known.missing_sizes.update(resolved.missing)
        pending: list[PendingNode] = []
        try:
            pending = self.expander.network()
        except InputError as error:
            self.problems += error.problems
        for value in inputs:
            self._guarded(self._add_input, value, resolved.shapes)
        names: set[str] = set()
        for name, tensor in graph_constants(self.graph):
            if name in names or not name:
                text = f"initialiser '{name}' occurs twice" if name else "an initialiser has no name"
                self.problems.append(Problem(text))
            names.add(name)
            self._guarded(self.known.add_constant, name, tensor)
        if self.problems:
            missing = missing_size_problems(self.known.missing_sizes)
            raise InputError(dict.fromkeys((*self.problems, *missing)))
        resolver = OutputResolver(self.known, self.inference, self.given, self.input_shapes, stored)
        return pending[::-1], resolver

    def _guarded(self, add: Callable[..., None], *arguments: Any) -> None:
        try:
            add(*arguments)
        except InputError as error:
            self.problems += error.problems

    def _add_input(self, value: onnx.ValueInfoProto, shapes: Mapping[str, Shape]) -> None:
        name = value.name
        if not name or name in self.known.defined:
            raise InputError(f"network input '{name}' occurs twice" if name else "a network input has no name")
        if value.type.WhichOneof("value") not in ("tensor_type", None):
            problem = Problem(f"network input '{name}' is not a tensor")
            self.known.add_unknown(name, [problem], value.type, is_constant=False)
        elif name in shapes:
            self.known.add(name, shapes[name], value.type.tensor_type.elem_type, is_constant=False)
        else:
            self.known.defined.add(name)
            message = f"the shape of network input '{name}' is not in the file"
            raise InputError([Problem(message, allowed=f"input_shapes: {name}: [SIZE, ...]")])

    def _check_end(self, inner: InnerTensors) -> None:
        for value in self.graph.output:
            if value.name not in self.known.defined or not value.name:
                self.problems.append(Problem(f"output '{value.name}' of the network is produced by no operator"))
            elif value.name in self.known.undecided:
                self.known.require(value.name)
        self.problems += check_branches(self.branches, self.if_names)
        self.problems += unused_places(self.given.dims, self.input_shapes, self.known, inner)
        if not self.known.missing_sizes and not self.problems:
            self.problems += self.given.unused_problems(self.symbols)

    def _resolve(self, item: PendingNode, outputs: OutputResolver) -> list[PendingNode]:
        """Resolve one operator. If other operators replace the operator, the result lists these operators. Otherwise,
        the operator and its outputs are added, and the result is []. Raises InputError if the operator has a problem.
        """
        node, known = item.proto, self.known
        if isinstance(item, LoopStep):
            return self._continue_loop(item, outputs)
        missing = [name for name in dict.fromkeys(node.input) if name not in known.defined]
        if missing:
            raise InputError(Problem(f"input '{name}' is produced by no operator", path=item.name) for name in missing)
        if any(name in known.failed for name in node.input):
            known.fail(list(node.output))
            return []
        function = self.functions.called_by(node)
        if function is not None:
            return self.expander.call(item, function)
        is_standard = node.domain in STANDARD_DOMAINS
        if is_standard and node.op_type == "If":
            return self._resolve_branch(item)
        if is_standard and node.op_type in UNROLLED:
            return self._resolve_loop(item, outputs)
        rewritten = self.sequences.rewritten(item) if is_standard else None
        if rewritten is not None:
            return rewritten
        defined = self._definition(item)
        if defined is not None:
            return defined
        if is_standard and node.op_type in LOOPS:
            raise InputError([loop_problem(node, item.name)])
        is_constant = self._is_constant(node)
        outputs.add_outputs(item, is_constant=is_constant)
        self.found.add(item, is_constant=is_constant)
        return []

    def _definition(self, item: PendingNode) -> list[PendingNode] | None:
        """Operators that replace an operator: the operators of the function by which onnx defines the replaced
        operator.

        None if the operator is kept. Without `is_taken`, every operator is kept. With `is_taken`, an operator is kept
        in three cases: `is_taken` accepts it, onnx does not define it by a function, or its function has a loop with
        too many iterations.
        """
        kind = OnnxNode(0, item.name, item.proto).operator_type
        if self.is_taken is None or self.is_taken(item.proto) or kind in self.too_long:
            return None
        known = [self.known.require(name) for name in item.proto.input]  # all, so that each is reported
        if not all(known):
            raise InputError([])
        function = self.inference.definition(item, self.known)
        if function is None:
            return None
        self.expanded += len(function.node)
        if self.expanded > LARGEST_EXPANSION:
            message = "the network has too many operators after expansion of operators that onnx defines by functions"
            allowed = f"at most {LARGEST_EXPANSION}"
            raise InputError([Problem(message, path=item.name, value=str(self.expanded), allowed=allowed)])
        self.inference.note(f"{kind} is replaced by its definition as a function in onnx {onnx.__version__}", item.name)
        return self.expander.call(item, function, definition_of=item.definition_of or kind)

    def _resolve_loop(self, item: PendingNode, outputs: OutputResolver) -> list[PendingNode]:
        for name in item.proto.input:
            if not self.known.require(name):
                raise InputError([])
        step = self.unroller.first_step(item)
        if step is not None:
            return self._continue_loop(step, outputs)
        outputs.add_not_inferred(item, list(item.proto.output))
        self.found.add(with_captured_inputs(item), is_constant=False)
        return []

    def _continue_loop(self, step: LoopStep, outputs: OutputResolver) -> list[PendingNode]:
        nodes, without_parts = self.unroller.next_nodes(step)
        outputs.add_not_inferred(step, without_parts)
        return nodes

    def _resolve_branch(self, item: PendingNode) -> list[PendingNode]:
        self.if_names.append(item.name)
        if len(item.proto.input) != 1 or not item.proto.input[0]:
            raise InputError([Problem("an If needs one input, its condition", path=item.name)])
        condition = self.known.facts.get(item.proto.input[0])
        chosen = choose_branch(item.name, condition.values if condition else None, self.branches)
        if isinstance(chosen, Problem):
            raise InputError([chosen])
        graph = branch_graph(item.proto, chosen)
        if graph is None:
            raise InputError([Problem(f"this If has no {chosen} branch", path=item.name)])
        nodes, constants = self.expander.branch(item, graph)
        for name, tensor in constants:
            self.known.add_constant(name, tensor)
        return nodes

    def _is_constant(self, node: onnx.NodeProto) -> bool:
        if node.op_type in RANDOM_OPERATORS:
            return False
        if node.domain not in STANDARD_DOMAINS and not any(node.input):
            return False  # it could be a source of data
        if node.domain in STANDARD_DOMAINS and node.op_type in _BY_SHAPE_ALONE:
            return all(name in self.known.facts for name in node.input)
        if node.domain in STANDARD_DOMAINS and node.op_type == CAST_LIKE:
            return node.input[0] in self.known.constants  # the second input gives only the element type
        return all(name in self.known.constants for name in node.input if name)


def _read_opsets(model: onnx.ModelProto, notices: list[str]) -> dict[str, int]:
    """Version of each operator set that the file imports, by domain. A file can use the standard domain without
    importing it. A version is then assumed, and `notices` gets a notice. The assumed version is 1 if the file imports
    no operator set at all (as old files do), otherwise the newest version that onnx knows. Raises InputError for an
    impossible version.
    """
    opsets: dict[str, int] = {}
    for opset in model.opset_import:
        domain = standard_domain(opset.domain)
        if not 0 <= opset.version <= _MOST_OPSETS:
            text, allowed = str(opset.version), f"1 to {_MOST_OPSETS}"
            raise InputError([Problem(f"wrong version of the operator set '{domain}'", value=text, allowed=allowed)])
        opsets[domain] = max(opset.version, opsets.get(domain, 0))
    if "" not in opsets and any(node.domain in STANDARD_DOMAINS for node in model.graph.node):
        opsets[""] = 1 if not model.opset_import else onnx.defs.onnx_opset_version()
        notices.append(f"the file names no operator set of the standard domain; version {opsets['']} is assumed")
    version, newest = opsets.get("", _OLDEST_OPSET), onnx.defs.onnx_opset_version()
    if version < _OLDEST_OPSET:
        notices.append(f"operator set {version} is older than {_OLDEST_OPSET}; some of its operators may not be known")
    elif version > newest:
        notices.append(f"operator set {version} is newer than {newest}; the operators are read as in version {newest}")
    return opsets


__all__ = ["ResolvedGraph", "resolve_graph"]
