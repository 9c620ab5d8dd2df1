"""Model-local functions: their calls are replaced by their bodies, with names that stay unique."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import onnx

from tilewright.errors import InputError, Problem
from tilewright.workload.onnx.node import STANDARD_DOMAINS

FunctionKey = tuple[str, str, str]
"""Domain ('' for the standard one), name, overload."""

LARGEST_EXPANSION = 100_000
"""More operators than this are refused: a few functions that call each other twice make billions."""
_DEEPEST_CALLS = 64


@dataclass(frozen=True)
class FunctionTable:
    """The functions of a model by what calls them."""

    functions: Mapping[FunctionKey, onnx.FunctionProto]

    def called_by(self, node: onnx.NodeProto) -> onnx.FunctionProto | None:
        """The function that `node` calls, None if it is an operator. A function hides an operator of its name."""
        return self.functions.get(function_key(node)) if self.functions else None


def function_key(node: onnx.NodeProto) -> FunctionKey:
    """What the node calls."""
    return (standard_domain(node.domain), node.op_type, node.overload)


def standard_domain(domain: str) -> str:
    """The domain under one name: `ai.onnx` is the standard domain too."""
    return "" if domain in STANDARD_DOMAINS else domain


def read_functions(model: onnx.ModelProto) -> FunctionTable:
    """The functions of `model`.

    Raises InputError for functions that call themselves, directly or not, and for calls that expand to more than
    `LARGEST_EXPANSION` operators.
    """
    functions = {(standard_domain(f.domain), f.name, f.overload): f for f in model.functions}
    table = FunctionTable(functions)
    sizes: dict[FunctionKey, int] = {}
    total = _expanded_size(list(model.graph.node), table, sizes, ())
    if total > LARGEST_EXPANSION:
        raise InputError(
            [
                Problem(
                    "the functions of this model call each other too often: written out, the network has too many "
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
    """Operators of these nodes with all calls written out; every function is looked into once."""
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
            message = f"the functions of this model call each other more than {_DEEPEST_CALLS} deep"
            raise InputError([Problem(message, path=function.name)])
        if key not in sizes:
            sizes[key] = _expanded_size(list(function.node), table, sizes, (*chain, key))
        total += sizes[key]
    return total


def _all_nodes(nodes: Sequence[onnx.NodeProto]) -> Iterator[onnx.NodeProto]:
    """The nodes and those of their subgraphs."""
    for node in nodes:
        yield node
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from _all_nodes(list(attribute.g.node))
            for graph in attribute.graphs:
                yield from _all_nodes(list(graph.node))


Bindings = Mapping[str, onnx.AttributeProto]
"""Attributes of the call that a body refers to, by the name in the function."""


def call_bindings(call: onnx.NodeProto, function: onnx.FunctionProto) -> dict[str, onnx.AttributeProto]:
    """The attributes that the body of `function` may refer to: those of the call, else their defaults."""
    bindings = {attribute.name: attribute for attribute in function.attribute_proto}
    bindings.update((attribute.name, attribute) for attribute in call.attribute)
    return bindings


def bound_copy(node: onnx.NodeProto, scope: Mapping[str, str], bindings: Bindings) -> onnx.NodeProto:
    """`node` with the tensors renamed by `scope` and references to attributes of the call filled in.

    A reference that neither the call nor a default fills is left out, as the standard says.
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
