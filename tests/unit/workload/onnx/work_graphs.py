"""Random graphs of operators that multiply and accumulate, also in functions, branches and loops, from a seed."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

OPSET = 27
PREVIEW = "ai.onnx.preview"


@dataclass
class WorkGraph:
    """A growing graph."""

    draw: random.Random
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    inputs: dict[str, tuple[list[int], int]] = field(default_factory=dict)
    weights: list[onnx.TensorProto] = field(default_factory=list)
    functions: list[onnx.FunctionProto] = field(default_factory=list)

    def size(self, most: int = 4) -> int:
        """A random size of at least 1."""
        return self.draw.randint(1, most)

    def tensor(self, *shape: int, kind: int = TensorProto.FLOAT, may_be_constant: bool = False) -> str:
        """An input or a constant. Work on constants alone is no work at run time."""
        name = f"x{len(self.inputs) + len(self.weights)}"
        if may_be_constant and self.draw.random() < 0.5:
            self.weights.append(
                helper.make_tensor(name, kind, shape, np.zeros(shape, helper.tensor_dtype_to_np_dtype(kind)))
            )
        else:
            self.inputs[name] = (list(shape), kind)
        return name

    def weight(self, *shape: int, kind: int = TensorProto.FLOAT) -> str:
        """A constant, or an input."""
        return self.tensor(*shape, kind=kind, may_be_constant=True)

    def value(self, value: Any) -> str:
        """A constant with this value."""
        name = f"c{len(self.weights)}"
        self.weights.append(onnx.numpy_helper.from_array(np.asarray(value), name))
        return name

    def add(self, operator: str, inputs: list[str], outputs: int = 1, **attributes: Any) -> list[str]:
        """Adds a node and returns its outputs."""
        number = len(self.nodes)
        names = [f"t{number}_{place}" for place in range(outputs)]
        domain = {"domain": PREVIEW} if operator == "FlexAttention" else {}
        self.nodes.append(helper.make_node(operator, inputs, names, name=f"n{number}", **domain, **attributes))
        return names

    def model(self) -> onnx.ModelProto:
        """The model; every tensor that nobody reads is an output."""
        bodies = [item.g for node in self.nodes for item in node.attribute if item.HasField("g")]
        inner = [node for body in bodies for node in body.node]
        read = {name for node in (*self.nodes, *inner) for name in node.input}
        used = [name for name in self.inputs if name in read]
        made = [name for node in self.nodes for name in node.output if name not in read]
        graph = helper.make_graph(
            self.nodes,
            "work",
            [helper.make_tensor_value_info(name, self.inputs[name][1], self.inputs[name][0]) for name in used],
            [onnx.ValueInfoProto(name=name) for name in made],
            self.weights,
        )
        sets = [helper.make_opsetid("", OPSET), helper.make_opsetid(PREVIEW, 1), helper.make_opsetid("own", 1)]
        model = helper.make_model(graph, opset_imports=sets, ir_version=13, functions=self.functions)
        inferred = onnx.shape_inference.infer_shapes(model, strict_mode=True, data_prop=True)
        del model.graph.output[:]
        model.graph.output.extend(inferred.graph.output)
        return model


def _conv(graph: WorkGraph) -> None:
    axes, groups = graph.size(3), graph.size(3)
    channels, kernel = groups * graph.size(2), [graph.size(2) for _ in range(axes)]
    data = graph.tensor(graph.size(2), channels, *(edge + graph.size(3) for edge in kernel))
    operator = graph.draw.choice(["Conv", "ConvTranspose"])
    own = graph.size(2)
    shape = (groups * own, channels // groups) if operator == "Conv" else (channels, own)
    weight = graph.weight(*shape, *kernel)
    strides = [graph.size(2) for _ in range(axes)]
    graph.add(operator, [data, weight], group=groups, strides=strides)


def _product(graph: WorkGraph) -> None:
    batch = [graph.size(3) for _ in range(graph.draw.randint(0, 3))]
    rows, depth, columns = (graph.size(5) for _ in range(3))
    shared = [graph.draw.choice([1, size]) for size in batch]
    graph.add("MatMul", [graph.tensor(*batch, rows, depth), graph.weight(*shared, depth, columns)])


def _gemm(graph: WorkGraph) -> None:
    rows, depth, columns = (graph.size(5) for _ in range(3))
    first, second = graph.draw.randint(0, 1), graph.draw.randint(0, 1)
    left = graph.tensor(*((depth, rows) if first else (rows, depth)))
    right = graph.weight(*((columns, depth) if second else (depth, columns)))
    graph.add("Gemm", [left, right], transA=first, transB=second)


def _integers(graph: WorkGraph) -> None:
    rows, depth, columns = (graph.size(5) for _ in range(3))
    kind = TensorProto.UINT8
    graph.add("MatMulInteger", [graph.tensor(rows, depth, kind=kind), graph.weight(depth, columns, kind=kind)])


def _einsum(graph: WorkGraph) -> None:
    sizes = {label: graph.size(4) for label in "abcdef"}
    terms = ["".join(graph.draw.sample(sorted(sizes), graph.draw.randint(1, 3))) for _ in range(graph.size(4))]
    used = sorted(set("".join(terms)))
    result = "".join(graph.draw.sample(used, graph.draw.randint(0, min(3, len(used)))))
    names = [graph.tensor(*(sizes[label] for label in term)) for term in terms]
    graph.add("Einsum", names, equation=f"{','.join(terms)}->{result}")


def _attention(graph: WorkGraph) -> None:
    shared, width, value = graph.size(2), graph.size(4), graph.size(4)
    heads, batch = shared * graph.size(3), graph.size(2)
    queries, keys, past = graph.size(4), graph.size(4), graph.size(5)
    is_flat, has_cache = graph.draw.random() < 0.5, graph.draw.random() < 0.6
    if is_flat:
        shapes = [(batch, queries, heads * width), (batch, keys, shared * width), (batch, keys, shared * value)]
        attributes = {"q_num_heads": heads, "kv_num_heads": shared}
    else:
        shapes = [(batch, heads, queries, width), (batch, shared, keys, width), (batch, shared, keys, value)]
        attributes = {}
    names = [graph.tensor(*shape) for shape in shapes]
    if has_cache:
        names += ["", graph.tensor(batch, shared, past, width), graph.tensor(batch, shared, past, value)]
    graph.add("Attention", names, 3 if has_cache else 1, **attributes)


def _flexible_attention(graph: WorkGraph) -> None:
    shared, width, value, keys = graph.size(2), graph.size(4), graph.size(4), graph.size(4)
    heads, batch = shared * graph.size(3), graph.size(2)
    shapes = [(batch, heads, graph.size(4), width), (batch, shared, keys, width), (batch, shared, keys, value)]
    graph.add("FlexAttention", [graph.tensor(*shape) for shape in shapes])


def _recurrent(graph: WorkGraph) -> None:
    operator, directions = graph.draw.choice(["LSTM", "GRU", "RNN"]), graph.size(2)
    gates, hidden, width = {"LSTM": 4, "GRU": 3, "RNN": 1}[operator], graph.size(3), graph.size(4)
    names = [
        graph.tensor(graph.size(4), graph.size(2), width),
        graph.weight(directions, gates * hidden, width),
        graph.weight(directions, gates * hidden, hidden),
    ]
    direction = "bidirectional" if directions == 2 else graph.draw.choice(["forward", "reverse"])
    graph.add(operator, names, hidden_size=hidden, direction=direction)


def _linear_attention(graph: WorkGraph) -> None:
    shared, key, value = graph.size(2), graph.size(4), graph.size(4)
    heads, batch, tokens = shared * graph.size(2), graph.size(2), graph.size(4)
    rule = graph.draw.choice(["linear", "gated", "delta", "gated_delta"])
    names = [graph.tensor(batch, tokens, heads * key), graph.tensor(batch, tokens, shared * key)]
    names += [graph.tensor(batch, tokens, shared * value), graph.tensor(batch, shared, key, value)]
    names += [graph.tensor(batch, tokens, shared) if "gated" in rule else ""]
    names += [graph.tensor(batch, tokens, shared)] if "delta" in rule else []
    graph.add("LinearAttention", names, 2, q_num_heads=heads, kv_num_heads=shared, update_rule=rule)


def _causal_convolution(graph: WorkGraph) -> None:
    batch, channels, length, kernel = graph.size(2), graph.size(4), graph.size(5), graph.draw.randint(2, 4)
    names = [graph.tensor(batch, channels, length), graph.weight(channels, 1, kernel), ""]
    names += [graph.tensor(batch, channels, kernel - 1)]
    graph.add("CausalConvWithState", names, 2, activation=graph.draw.choice(["none", "silu"]))


def _other(graph: WorkGraph) -> None:
    """Adds work without multiply-accumulates, and moves of data."""
    data = graph.tensor(graph.size(), graph.size())
    graph.add(graph.draw.choice(["Relu", "Softmax", "Transpose", "Exp", "Neg"]), [data])


def _function(graph: WorkGraph) -> None:
    rows, depth, columns = (graph.size(4) for _ in range(3))
    name = f"Twice{len(graph.functions)}"
    body = [helper.make_node("MatMul", ["a", "b"], ["p"]), helper.make_node("Relu", ["p"], ["q"])]
    sets = [helper.make_opsetid("", OPSET)]
    graph.functions.append(helper.make_function("own", name, ["a", "b"], ["q"], body, sets))
    names = [graph.tensor(rows, depth), graph.weight(depth, columns)]
    number = len(graph.nodes)
    graph.nodes.append(helper.make_node(name, names, [f"t{number}_0"], name=f"n{number}", domain="own"))


def _branch(graph: WorkGraph) -> None:
    size = graph.size()
    data, weight = graph.tensor(size, size), graph.weight(size, size)
    out = helper.make_tensor_value_info("o", TensorProto.FLOAT, [size, size])
    then = helper.make_graph([helper.make_node("MatMul", [data, weight], ["o"])], "then", [], [out])
    no = helper.make_graph([helper.make_node("Relu", [data], ["o"])], "else", [], [out])
    graph.add("If", [graph.value(bool(graph.draw.randint(0, 1)))], then_branch=then, else_branch=no)


def _loop(graph: WorkGraph) -> None:
    size = graph.size()
    data, weight = graph.tensor(size, size), graph.weight(size, size)
    ends = [
        helper.make_tensor_value_info("i", TensorProto.INT64, []),
        helper.make_tensor_value_info("go", TensorProto.BOOL, []),
        helper.make_tensor_value_info("s", TensorProto.FLOAT, [size, size]),
    ]
    body = helper.make_graph(
        [helper.make_node("Identity", ["go"], ["on"]), helper.make_node("MatMul", ["s", weight], ["r"])],
        "body",
        ends,
        [
            helper.make_tensor_value_info("on", TensorProto.BOOL, []),
            helper.make_tensor_value_info("r", TensorProto.FLOAT, [size, size]),
        ],
    )
    graph.add("Loop", [graph.value(np.int64(graph.size(5))), graph.value(True), data], body=body)


PIECES: tuple[Callable[[WorkGraph], None], ...] = (
    _conv, _product, _gemm, _integers, _einsum, _attention, _flexible_attention, _recurrent, _linear_attention,
    _causal_convolution, _other, _function, _branch, _loop,
)  # fmt: skip


def work_graph(seed: int) -> onnx.ModelProto:
    """The model of a seed, with one to four pieces."""
    graph = WorkGraph(random.Random(f"work/{seed}"))
    for _ in range(graph.draw.randint(1, 4)):
        graph.draw.choice(PIECES)(graph)
    return graph.model()
