"""Expansion of a graph: calls of model-local functions and branches are replaced by their operators, under unique
names.

The module also sorts the nodes of a graph into an order in which they can run, and finds the node that makes each
tensor.
"""

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import onnx

from tilewright.base.errors import InputError, Label, Problem
from tilewright.workload.onnx.node import STANDARD_DOMAINS

RANDOM_OPERATORS = frozenset(
    {"RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike", "Multinomial", "Bernoulli"}
)


def tensor_makers(graph: onnx.GraphProto) -> tuple[dict[str, int], list[Problem]]:
    """Pair: a table (tensor -> position of the node that makes the tensor), and problems of tensors that two nodes
    make.
    """
    makers: dict[str, int] = {}
    problems = []
    for index, proto in enumerate(graph.node):
        for name in proto.output:
            if name and name in makers:
                problems.append(Problem(f"tensor '{name}' is produced twice", path=proto.name or f"Op{index}"))
            elif name:
                makers[name] = index
    return makers, problems


def unique_names(protos: list[onnx.NodeProto]) -> list[str]:
    """Node names without repetitions. A node without a name gets `Op<index>`, and repetitions of a name get `__2`,
    `__3`, ..."""
    given = {proto.name for proto in protos if proto.name}
    taken: set[str] = set()
    names = []
    next_number: dict[str, int] = {}
    for index, proto in enumerate(protos):
        base = name = proto.name or f"Op{index}"
        while name in taken or (name in given and name != proto.name):
            number = next_number.get(base, 2)
            next_number[base] = number + 1
            name = f"{base}__{number}"
        taken.add(name)
        names.append(name)
    return names


def _subgraphs(proto: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    for attribute in proto.attribute:
        if attribute.type == onnx.AttributeProto.GRAPH:
            yield attribute.g
        elif attribute.type == onnx.AttributeProto.GRAPHS:
            yield from attribute.graphs


def tensors_read(proto: onnx.NodeProto) -> list[str]:
    """Names of the inputs of a node, followed by the names that its subgraphs use but do not define."""
    names = list(proto.input)
    for graph in _subgraphs(proto):
        names += captured_names(graph)
    return names


def captured_names(graph: onnx.GraphProto) -> list[str]:
    """Names that a graph uses but does not define, without repetitions."""
    defined = {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
    defined.update(name for node in graph.node for name in node.output)
    used = [name for node in graph.node for name in tensors_read(node)] + [value.name for value in graph.output]
    return [name for name in dict.fromkeys(used) if name and name not in defined]


def run_order(reads: list[list[str]], makers: dict[str, int], names: list[str]) -> list[int]:
    """Positions of the nodes in an order in which they can run.

    The order of the file is kept if it is topological. Otherwise, the next node is always the first node in the file
    with all inputs ready. Raises InputError for a cycle.
    """
    needs = [{makers[name] for name in inputs if name in makers} for inputs in reads]
    if all(not need or max(need) < index for index, need in enumerate(needs)):
        return list(range(len(reads)))
    users: list[list[int]] = [[] for _ in reads]
    for index, need in enumerate(needs):
        for maker in need:
            users[maker].append(index)
    waiting = [len(need) for need in needs]
    ready = [index for index, count in enumerate(waiting) if count == 0]
    order = []
    while ready:
        index = heapq.heappop(ready)
        order.append(index)
        for user in users[index]:
            waiting[user] -= 1
            if waiting[user] == 0:
                heapq.heappush(ready, user)
    if len(order) < len(reads):
        raise InputError([_cycle_problem(needs, waiting, names)])
    return order


def _cycle_problem(needs: list[set[int]], waiting: list[int], names: list[str]) -> Problem:
    index = next(index for index, count in enumerate(waiting) if count > 0)
    path: list[int] = []
    while index not in path:
        path.append(index)
        index = min(maker for maker in needs[index] if waiting[maker] > 0)
    cycle = [*path[path.index(index) :], index]
    return Problem(f"the graph has a cycle: {' <- '.join(names[node] for node in cycle)}", path=Label(names[index]))


FunctionKey = tuple[str, str, str]
"""Domain ('' for the standard domain), name and overload of a function."""

LARGEST_EXPANSION = 100_000
"""Largest number of operators after expansion. Without a limit, a chain of functions in which each function calls the
next one twice could expand to billions of operators.
"""
_DEEPEST_CALLS = 64


@dataclass(frozen=True)
class FunctionTable:
    """Functions of a model, by function key (see `function_key`)."""

    functions: Mapping[FunctionKey, onnx.FunctionProto]

    def called_by(self, node: onnx.NodeProto) -> onnx.FunctionProto | None:
        """Function that `node` calls; None if `node` is an operator. A function takes precedence over an operator of
        the same name.
        """
        return self.functions.get(function_key(node)) if self.functions else None


def function_key(node: onnx.NodeProto) -> FunctionKey:
    """Key of the function that the node calls."""
    return (standard_domain(node.domain), node.op_type, node.overload)


def standard_domain(domain: str) -> str:
    """Unique name of a domain. The standard domain has two names, `ai.onnx` and ''; its unique name is ''."""
    return "" if domain in STANDARD_DOMAINS else domain


def read_functions(model: onnx.ModelProto) -> FunctionTable:
    """Functions of `model`.

    Raises InputError for functions that call themselves, directly or indirectly, and for calls that expand to more
    than `LARGEST_EXPANSION` operators.
    """
    functions = {(standard_domain(f.domain), f.name, f.overload): f for f in model.functions}
    table = FunctionTable(functions)
    sizes: dict[FunctionKey, int] = {}
    total = _expanded_size(list(model.graph.node), table, sizes, ())
    if total > LARGEST_EXPANSION:
        raise InputError(
            [
                Problem(
                    "the functions of this model call each other too often: after expansion, the network has too many "
                    "operators",
                    value=str(total),
                    allowed=f"at most {LARGEST_EXPANSION}",
                )
            ]
        )
    return table


def _expanded_size(
    nodes: Sequence[onnx.NodeProto], table: FunctionTable, sizes: dict[FunctionKey, int], chain: tuple[FunctionKey, ...]
) -> int:
    """Number of operators that these nodes have after all calls are expanded.

    `sizes` has the results for the functions that are already examined; each function is examined only one time.
    `chain` are the functions with bodies that contain these nodes, outermost first. Raises InputError for a function
    that calls itself, and for calls that are nested too deeply.
    """
    if not table.functions:
        return len(nodes)
    total = 0
    for node in _all_nodes(nodes):
        total += 1
        function = table.called_by(node)
        if function is None:
            continue
        key = function_key(node)
        if key in chain:
            names = " <- ".join(name for _, name, _ in (*chain[chain.index(key) :], key))
            raise InputError([Problem(f"function '{function.name}' calls itself: {names}", path=node.name)])
        if len(chain) >= _DEEPEST_CALLS:
            message = f"the function calls of this model are nested more than {_DEEPEST_CALLS} levels deep"
            raise InputError([Problem(message, path=function.name)])
        if key not in sizes:
            sizes[key] = _expanded_size(list(function.node), table, sizes, (*chain, key))
        total += sizes[key]
    return total


def _all_nodes(nodes: Sequence[onnx.NodeProto]) -> Iterator[onnx.NodeProto]:
    """Nodes in `nodes` and in the subgraphs of these nodes, at any depth."""
    for node in nodes:
        yield node
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from _all_nodes(list(attribute.g.node))
            for graph in attribute.graphs:
                yield from _all_nodes(list(graph.node))


Bindings = Mapping[str, onnx.AttributeProto]
"""Values for the attributes that a function body takes from its call, by name of the attribute in the function."""


def call_bindings(call: onnx.NodeProto, function: onnx.FunctionProto) -> dict[str, onnx.AttributeProto]:
    """Attributes to which the body of `function` can refer: the attributes of the call, and defaults for attributes
    that the call does not give.
    """
    bindings = {attribute.name: attribute for attribute in function.attribute_proto}
    bindings.update((attribute.name, attribute) for attribute in call.attribute)
    return bindings


def bound_copy(node: onnx.NodeProto, scope: Mapping[str, str], bindings: Bindings) -> onnx.NodeProto:
    """Copy of `node` with its tensors renamed by `scope`. References to attributes of the call are replaced by their
    values.

    A reference that has neither a value in the call nor a default is removed, as the standard requires.
    """
    copy = onnx.NodeProto(op_type=node.op_type, domain=node.domain, name=node.name, overload=node.overload)
    copy.input.extend(scope.get(name, name) if name else "" for name in node.input)
    copy.output.extend(scope.get(name, name) if name else "" for name in node.output)
    for attribute in node.attribute:
        if not attribute.ref_attr_name:
            copy.attribute.append(attribute)
        elif attribute.ref_attr_name in bindings:
            copy.attribute.append(bindings[attribute.ref_attr_name])
            copy.attribute[-1].name = attribute.name
    return copy


Initialisers = list[tuple[str, onnx.TensorProto]]


@dataclass(frozen=True)
class PendingNode:
    """Operator that is still to be resolved. Its tensors have the names of the network; the tensors of its subgraphs
    still have the names of the file.
    """

    proto: onnx.NodeProto
    name: str
    origin: str
    opsets: Mapping[str, int]
    scope: Mapping[str, str] = field(default_factory=dict)
    """Names of the tensors that a subgraph of this node uses: name in the subgraph -> name in the network. Tensors
    whose two names are equal are left out."""
    bindings: Bindings = field(default_factory=dict)
    definition_of: str = ""
    """Type of the operator whose definition contains this operator; '' if there is none. onnx defines some operators by
    functions of other operators. If such functions are nested, the outermost function counts."""


class Expander:
    """Expander that replaces function calls, branches and iterations of loops by their operators. It keeps the names
    that are in use, so that new names are unique.
    """

    def __init__(self, graph: onnx.GraphProto, opsets: Mapping[str, int], notices: list[str]) -> None:
        self.graph = graph
        self.opsets = opsets
        self.notices = notices
        self.node_names: set[str] = set()
        self.tensor_names = tensor_names(graph)

    def network(self) -> list[PendingNode]:
        """Operators of the file in an order in which they can run. A notice is added if this order differs from the
        order of the file.

        Raises InputError for tensors that are produced twice, and for cycles.
        """
        protos = list(self.graph.node)
        makers, problems = tensor_makers(self.graph)
        given = {value.name for value in self.graph.input} | {name for name, _ in graph_constants(self.graph)}
        names = unique_names(protos)
        problems += [
            Problem(
                f"tensor '{tensor}' is produced twice: it is also an input or constant of the network",
                path=Label(names[index]),
            )
            for tensor, index in makers.items()
            if tensor in given
        ]
        if problems:
            raise InputError(problems)
        order = run_order([tensors_read(proto) for proto in protos], makers, names)
        if order != list(range(len(protos))):
            self.notices.append("the operators of the file are not in an order in which they can run; they were sorted")
        self.node_names.update(names)
        return [PendingNode(protos[index], names[index], names[index], self.opsets) for index in order]

    def call(self, caller: PendingNode, function: onnx.FunctionProto, *, definition_of: str = "") -> list[PendingNode]:
        """Operators of the body of `function`, which replace the operator `caller`. If `function` is onnx's definition
        of an operator, `definition_of` is the type of this operator (`PendingNode.definition_of`); otherwise it is ''.

        Raises InputError if `caller` has more inputs or outputs than `function`, or if the body makes a tensor twice or
        has a cycle.
        """
        call = caller.proto
        if len(call.input) > len(function.input) or len(call.output) > len(function.output):
            message = f"function '{function.name}' is called with more inputs or outputs than it has"
            raise InputError([Problem(message, path=caller.name)])
        scope = dict.fromkeys(function.input, "") | dict(zip(function.input, call.input, strict=False))
        opsets = {standard_domain(opset.domain): opset.version for opset in function.opset_import}
        bindings = call_bindings(call, function)
        body = _Body(function.node, list(function.output), scope, bindings, {**caller.opsets, **opsets}, definition_of)
        return self._expanded(caller, body, caller.origin)

    def branch(self, caller: PendingNode, graph: onnx.GraphProto) -> tuple[list[PendingNode], Initialisers]:
        """Pair (operators of a branch, constants of the branch), both with unique names in the network. The operators
        replace the `If` of the branch. Raises InputError if the branch has fewer outputs than the `If`, makes a tensor
        twice, or has a cycle.
        """
        if len(graph.output) < len(caller.proto.output):
            raise InputError([Problem("a branch of this If has fewer outputs than the If", path=caller.name)])
        scope = dict(caller.scope)
        constants = []
        for name, tensor in graph_constants(graph):
            scope[name] = self._tensor_name(caller, name)
            constants.append((scope[name], tensor))
        outputs = [value.name for value in graph.output]
        body = _Body(graph.node, outputs, scope, caller.bindings, caller.opsets, caller.definition_of)
        return self._expanded(caller, body, None), constants

    def iteration(
        self, caller: PendingNode, body: onnx.GraphProto, scope: dict[str, str], results: list[str], label: str
    ) -> list[PendingNode]:
        """Operators of one iteration of a loop.

        `body` is the body of the loop. `scope` maps each input of the body to its name in the network. `results` lists,
        for each output of the body, its name in the network. Names of the operators begin with `label`. Raises
        InputError if two nodes of the body make the same tensor, or if the body has a cycle.
        """
        proto = onnx.NodeProto(op_type=caller.proto.op_type, output=results)
        stand_in = PendingNode(proto, label, caller.origin, caller.opsets, caller.scope, caller.bindings)
        outputs = [value.name for value in body.output]
        written = _Body(body.node, outputs, scope, caller.bindings, caller.opsets, caller.definition_of)
        return self._expanded(stand_in, written, None)

    def pending(self, caller: PendingNode, proto: onnx.NodeProto, name: str) -> PendingNode:
        """Pending node for `proto`, one of the operators that replace `caller`. If `name` is taken, a number is
        appended to it.
        """
        unique = _not_taken(name, self.node_names)
        return PendingNode(proto, unique, caller.origin, caller.opsets, definition_of=caller.definition_of)

    def tensor_name(self, caller: PendingNode, name: str) -> str:
        """Unique name for a tensor that is added while the operator `caller` is replaced."""
        return self._tensor_name(caller, name)

    def _expanded(self, caller: PendingNode, body: "_Body", origin: str | None) -> list[PendingNode]:
        wrapper = onnx.GraphProto()
        wrapper.node.extend(body.nodes)
        nodes = list(wrapper.node)
        makers, problems = tensor_makers(wrapper)
        if problems:
            raise InputError(Problem(problem.message, path=f"{caller.name}/{problem.path}") for problem in problems)
        names = unique_names(nodes)
        order = run_order([tensors_read(node) for node in nodes], makers, [f"{caller.name}/{name}" for name in names])
        aliases = self._name_results(caller, body, makers)
        expanded = []
        for index in order:
            origin_name = f"{caller.origin}/{names[index]}" if origin is None else origin
            proto = bound_copy(nodes[index], body.scope, body.bindings)
            expanded.append(self._pending(caller, body, proto, names[index], origin_name))
        for inner, outer in aliases:
            proto = onnx.helper.make_node("Identity", [body.scope.get(inner, inner)], [outer])
            origin_name = caller.origin if origin is None else origin
            expanded.append(self._pending(caller, body, proto, f"output {outer}", origin_name))
        return expanded

    def _name_results(self, caller: PendingNode, body: "_Body", makers: Mapping[str, int]) -> list[tuple[str, str]]:
        """Add names to `body.scope`: for each tensor that a node of `body` makes, the name of the tensor in the
        network.

        Returns a pair (name in the body, name in the network) for each output of `body` that needs an Identity node. An
        output needs an Identity node if no node of `body` makes the output, or if an earlier output is the same tensor.
        """
        aliases, outer_name = [], {}
        for inner, outer in zip(body.outputs, caller.proto.output, strict=False):
            if not outer:
                continue
            if inner in makers and inner not in outer_name:
                outer_name[inner] = outer
            else:
                aliases.append((inner, outer))
        for inner in makers:
            body.scope[inner] = outer_name.get(inner) or self._tensor_name(caller, inner)
        return aliases

    def _pending(
        self, caller: PendingNode, body: "_Body", proto: onnx.NodeProto, name: str, origin: str
    ) -> PendingNode:
        unique = _not_taken(f"{caller.name}/{name}", self.node_names)
        return PendingNode(proto, unique, origin, body.opsets, body.scope, body.bindings, body.definition_of)

    def _tensor_name(self, caller: PendingNode, name: str) -> str:
        return _not_taken(f"{caller.name}/{name}", self.tensor_names)


@dataclass
class _Body:
    """Body of a function, branch or loop; its operators replace a node. `scope` maps the name of a tensor in the body
    to its name in the network. `Expander` adds to `scope` the tensors that the body makes."""

    nodes: Iterable[onnx.NodeProto]
    outputs: Sequence[str]
    scope: dict[str, str]
    bindings: Bindings
    opsets: Mapping[str, int]
    definition_of: str = ""


def graph_constants(graph: onnx.GraphProto) -> Initialisers:
    """Pairs (name, tensor) of initialisers. A sparse initialiser becomes a tensor of its full size, without values."""
    constants = [(tensor.name, tensor) for tensor in graph.initializer]
    for sparse in graph.sparse_initializer:
        tensor = onnx.TensorProto(data_type=sparse.values.data_type, dims=sparse.dims)
        tensor.data_location = onnx.TensorProto.EXTERNAL
        constants.append((sparse.values.name, tensor))
    return constants


def tensor_names(graph: onnx.GraphProto) -> set[str]:
    """Names of all tensors of a graph, including the tensors that its subgraphs read from outside."""
    names = {value.name for values in (graph.input, graph.output, graph.value_info) for value in values}
    names.update(name for name, _ in graph_constants(graph))
    names.update(captured_names(graph))
    names.update(name for node in graph.node for name in node.output)
    return names


def _not_taken(name: str, taken: set[str]) -> str:
    """Unique name, which is also reserved: `name` if it is not in `taken`, otherwise `name__2`, `name__3`, ..."""
    unique, number = name, 2
    while unique in taken:
        unique, number = f"{name}__{number}", number + 1
    taken.add(unique)
    return unique
