"""Order, names, producers and constants of an ONNX graph."""

import heapq
from collections.abc import Iterator
from dataclasses import dataclass

import onnx

from tilewright.errors import InputError, Problem
from tilewright.workload.onnx.node import OnnxNode

RANDOM_OPERATORS = frozenset(
    {"RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike", "Multinomial", "Bernoulli"}
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


def tensor_makers(graph: onnx.GraphProto) -> tuple[dict[str, int], list[Problem]]:
    """Tensor -> place of the node that makes it, and a problem for each tensor that is made twice."""
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
    """Node names: `Op<index>` where there is none; a name that was taken before gets `__2`, `__3`, ..."""
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
    """The inputs of a node, then the names that its subgraphs use and do not define."""
    names = list(proto.input)
    for graph in _subgraphs(proto):
        names += captured_names(graph)
    return names


def captured_names(graph: onnx.GraphProto) -> list[str]:
    """The names that a graph uses and does not define, each once."""
    defined = {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
    defined.update(name for node in graph.node for name in node.output)
    used = [name for node in graph.node for name in tensors_read(node)] + [value.name for value in graph.output]
    return [name for name in dict.fromkeys(used) if name and name not in defined]


def run_order(reads: list[list[str]], makers: dict[str, int], names: list[str]) -> list[int]:
    """File order if it is topological, else the topological order that takes the earliest ready node first."""
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
    return Problem(f"the graph has a cycle: {' <- '.join(names[node] for node in cycle)}", path=names[index])


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
