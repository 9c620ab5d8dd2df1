"""Order, names and producers of an ONNX graph."""

import heapq
from collections.abc import Iterator

import onnx

from tilewright.errors import InputError, Problem

RANDOM_OPERATORS = frozenset(
    {"RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike", "Multinomial", "Bernoulli"}
)


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
