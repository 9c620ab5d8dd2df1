"""Damaged and impossible ONNX files end with exit code 2 and a clear message, in little time and memory."""

import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from tilewright.cli.main import main

node = helper.make_node
ROOT = Path(__file__).parents[4]


def _model(
    nodes: list[onnx.NodeProto],
    inputs: dict[str, Any] | None = None,
    outputs: tuple[str, ...] = ("y",),
    constants: dict[str, Any] | None = None,
    weights: dict[str, list[int]] | None = None,
    **options: Any,
) -> onnx.ModelProto:
    """A model with an image `x` as its input by default; `weights` have shapes and no bytes."""
    graph = helper.make_graph(
        nodes,
        "damaged",
        [
            helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
            for name, shape in ({"x": [1, 4, 8, 8]} if inputs is None else inputs).items()
        ],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
        [numpy_helper.from_array(np.array(value), name) for name, value in (constants or {}).items()],
    )
    for name, shape in (weights or {}).items():
        graph.initializer.add(name=name, data_type=TensorProto.FLOAT, dims=shape)
    options.setdefault("opset_imports", [helper.make_opsetid("", 18)])
    return helper.make_model(graph, ir_version=9, **options)


def _bytes(*arguments: Any, **options: Any) -> bytes:
    return bytes(_model(*arguments, **options).SerializeToString())


def _conv(weights: list[int] | None = None, inputs: dict[str, Any] | None = None, **attributes: Any) -> bytes:
    nodes = [node("Conv", ["x", "w"], ["y"], name="bad", **attributes)]
    return _bytes(nodes, inputs, weights={"w": weights or [6, 4, 3, 3]})


def _unary(operator: str, inputs: dict[str, Any] | None = None, **attributes: Any) -> bytes:
    return _bytes([node(operator, ["x"], ["y"], name="bad", **attributes)], inputs)


def _with_values(operator: str, *values: Any, shape: tuple[int, ...] = (2, 3), **attributes: Any) -> bytes:
    """A model of `operator` on x and constants."""
    constants = {f"c{index}": value for index, value in enumerate(values)}
    return _bytes([node(operator, ["x", *constants], ["y"], name="bad", **attributes)], {"x": shape}, ("y",), constants)


def _truncated() -> bytes:
    content = _conv()
    return content[: len(content) * 2 // 3]


def _bad_text() -> bytes:
    return _conv().replace(b"bad", b"\xff\xfe\xfd")


def _raw_nesting(depth: int) -> bytes:
    """A model whose first operator holds a graph that holds an operator, and so on."""

    def field(number: int, content: bytes) -> bytes:
        return _varint(number << 3 | 2) + _varint(len(content)) + content

    def _varint(value: int) -> bytes:
        out = bytearray()
        while value > 127:
            out.append(value & 127 | 128)
            value >>= 7
        return bytes([*out, value])

    graph = field(1, field(4, b"Relu"))
    for _ in range(depth):
        graph = field(1, field(4, b"If") + field(5, field(1, b"then_branch") + field(6, graph)))
    return b"\x08\x09" + field(7, graph) + field(8, b"\x10\x12")


def _functions(bodies: dict[str, list[str]]) -> bytes:
    """A model with functions that call each other in a chain."""
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("own", 1)]
    functions = []
    for name, called in bodies.items():
        steps = [
            node(callee, [f"t{index}"], [f"t{index + 1}"], domain="" if callee == "Relu" else "own")
            for index, callee in enumerate(called)
        ]
        functions.append(helper.make_function("own", name, ["t0"], [f"t{len(called)}"], steps, opsets))
    call = node(next(iter(bodies)), ["x"], ["y"], name="bad", domain="own")
    return _bytes([call], functions=functions, opset_imports=opsets)


def _loop() -> bytes:
    flag = helper.make_tensor_value_info("go", TensorProto.BOOL, [])
    count = helper.make_tensor_value_info("i", TensorProto.INT64, [])
    state = helper.make_tensor_value_info("s", TensorProto.FLOAT, None)
    after = helper.make_tensor_value_info("t", TensorProto.FLOAT, None)
    on = helper.make_tensor_value_info("on", TensorProto.BOOL, [])
    steps = [node("Identity", ["go"], ["on"]), node("Relu", ["s"], ["t"])]
    body = helper.make_graph(steps, "body", [count, flag, state], [on, after])
    total = [node("ReduceSum", ["x"], ["sum"], keepdims=0), node("Cast", ["sum"], ["n"], to=TensorProto.INT64)]
    return _bytes([*total, node("Loop", ["n", "", "x"], ["y"], name="bad", body=body)])


def _if(condition: str) -> bytes:
    result = [helper.make_tensor_value_info("r", TensorProto.FLOAT, None)]
    branch = helper.make_graph([node("Relu", ["x"], ["r"])], "branch", [], result)
    choice = node("If", [condition], ["y"], name="bad", then_branch=branch, else_branch=branch)
    model = _model([choice])
    model.graph.input.append(helper.make_tensor_value_info("flag", TensorProto.BOOL, []))
    return bytes(model.SerializeToString())


def _untyped_input(*, element_type: int = TensorProto.FLOAT) -> bytes:
    model = _model([node("Relu", ["x"], ["y"], name="bad")], {"x": [1, 4]})
    if element_type == TensorProto.FLOAT:
        model.graph.input[0].type.tensor_type.ClearField("shape")
    else:
        model.graph.input[0].type.tensor_type.elem_type = element_type
    return bytes(model.SerializeToString())


def _attribute_type() -> bytes:
    return _conv(strides="two")


def _second(value: Any) -> Callable[[], bytes]:
    return lambda: _with_values("Reshape", value)


BIG = 2**40
RELU = node("Relu", ["x"], ["y"], name="one")
CASES: dict[str, tuple[Callable[[], bytes], str]] = {
    "empty file": (lambda: b"", "the file is empty"),
    "text": (lambda: b"conv1:\n  kernel: 3\n", "not an ONNX model"),
    "JSON": (lambda: b'{"model": [1, 2, 3]}', "not an ONNX model"),
    "random bytes": (lambda: np.random.default_rng(3).bytes(4096), "not an ONNX model"),
    "zeros": (lambda: bytes(4096), "not an ONNX model"),
    "truncated": (_truncated, "truncated"),
    "no operators": (lambda: _bytes([], outputs=("x",)), "no operators"),
    "names that are no text": (_bad_text, "names that are not text"),
    "deep nesting": (lambda: _raw_nesting(2000), "not an ONNX model"),
    "nested If without condition": (lambda: _raw_nesting(20), "an If needs one input"),
    "produced input": (lambda: _bytes([node("Relu", ["x"], ["x"])], outputs=("x",)), "'x' is produced twice"),
    "missing input": (
        lambda: _bytes([node("Relu", ["q"], ["y"], name="bad")]),
        "bad: input 'q' is produced by no operator",
    ),
    "missing output": (lambda: _bytes([node("Relu", ["x"], ["z"])]), "output 'y' of the network"),
    "unshaped input": (_untyped_input, "shape of network input 'x' is not in the file"),
    "element type": (lambda: _untyped_input(element_type=99), "no known element type, got 99"),
    "rank of input": (lambda: _conv(inputs={"x": [4, 8]}), "Conv does not fit its inputs"),
    "input of two gigabytes to the power of two": (
        lambda: _unary("Relu", {"x": [2**31, 2**31]}),
        "too large",
    ),
    "rank of ten thousand": (lambda: _unary("Relu", {"x": [1] * 10_000}), "too many dimensions, got 10000"),
    "overflowing dimension": (lambda: _unary("Relu", {"x": [2**62]}), "too large"),
    "weights that overflow": (lambda: _conv([2**40, 2**40, 3, 3]), "tensor 'w' is too large"),
    "negative weights": (lambda: _conv([6, -4, 3, 3]), "tensor 'w' has a negative size"),
    "claimed shape": (lambda: _with_values("Expand", [BIG, BIG, 2, 3]), "out of range"),
    "claimed constant": (
        lambda: _bytes([node("ConstantOfShape", ["c"], ["y"], name="bad")], {}, constants={"c": [BIG, BIG]}),
        "out of range",
    ),
    "claimed range": (
        lambda: _bytes([node("Range", ["a", "b", "c"], ["y"])], {}, constants={"a": 0, "b": 2**62, "c": 1}),
        "out of range",
    ),
    "claimed tiles": (lambda: _with_values("Tile", [2**35, 2**35]), "too large"),
    "claimed padding": (lambda: _with_values("Pad", [0, 0, 2**62, 2**62]), "out of range"),
    "range without steps": (
        lambda: _bytes([node("Range", ["a", "b", "c"], ["y"])], {}, constants={"a": 0, "b": 3, "c": 0}),
        "step of zero",
    ),
    "negative dilations": (lambda: _conv(dilations=[-1, 1]), "'dilations' of Conv"),
    "huge strides": (lambda: _conv(strides=[2**62, 1]), "'strides' of Conv"),
    "negative padding": (lambda: _conv(pads=[-9, 0, 0, 0]), "must not contain negative values"),
    "channels differ": (lambda: _conv([6, 3, 3, 3]), "the channels of input and weights"),
    "kernel of other weights": (lambda: _conv(kernel_shape=[5, 5]), "'kernel_shape' and the shape of the weights"),
    "attribute of another type": (_attribute_type, "attribute 'strides' of Conv"),
    "attribute missing": (lambda: _unary("MaxPool"), "needs attribute 'kernel_shape'"),
    "attribute of another version": (lambda: _unary("Squeeze", axes=[0]), "Squeeze has no attribute 'axes'"),
    "too many inputs": (lambda: _bytes([node("Relu", ["x", "x"], ["y"])]), "Relu has 2 inputs but takes at most 1"),
    "no outputs": (lambda: _bytes([node("Relu", ["x"], [])], outputs=("x",)), "Relu has no output"),
    "reshape that does not fit": (_second([4, 5]), "numbers of elements differ"),
    "reshape by two unknowns": (_second([-1, -1]), "multiple -1"),
    "reshape by a negative size": (_second([-7, 6]), "Invalid dimension value: -7"),
    "transpose of another rank": (lambda: _unary("Transpose", perm=[0, 1]), "Transpose"),
    "axis out of range": (lambda: _unary("Softmax", axis=9), "axis"),
    "axis far out of range": (
        lambda: _bytes([node("LayerNormalization", ["x", "w"], ["y"], axis=2**63 - 1)], weights={"w": [8]}),
        "attribute 'axis' of LayerNormalization",
    ),
    "negative batch": (
        lambda: _bytes([node("GatherND", ["x", "c"], ["y"], batch_dims=-7)], constants={"c": [[0]]}),
        "attribute 'batch_dims' of GatherND",
    ),
    "groups of zero": (
        lambda: _bytes([node("GroupNormalization", ["x", "w", "w"], ["y"], num_groups=0)], weights={"w": [4]}),
        "'num_groups' of GroupNormalization is out of range, got 0",
    ),
    "index out of range": (lambda: _with_values("Gather", [7]), "indices lie outside an axis of size 2"),
    "split that does not add up": (lambda: _with_values("Split", [1, 2], shape=(4, 3)), "Split does not fit"),
    "matrices that do not fit": (
        lambda: _bytes([node("MatMul", ["x", "w"], ["y"])], {"x": [2, 3]}, weights={"w": [4, 5]}),
        "Incompatible dimensions for matrix multiplication",
    ),
    "broadcast that does not fit": (
        lambda: _with_values("Add", np.zeros((2, 4), np.float32)),
        "Incompatible dimensions",
    ),
    "run-time size": (
        lambda: _unary("NonZero"),
        'y[1], a result of NonZero, is decided at run time (allowed: --dim "y[1]',
    ),
    "run-time branch": (lambda: _if("flag"), '--branch "bad=then|else"'),
    "loop": (_loop, "bad: the shape of tensor 'y', a result of Loop, is decided at run time"),
    "function that calls itself": (lambda: _functions({"F": ["F"]}), "calls itself: F <- F"),
    "functions in a circle": (lambda: _functions({"F": ["G"], "G": ["F"]}), "calls itself"),
    "functions without end": (
        lambda: _functions({f"F{i}": [f"F{i + 1}"] * 2 for i in range(40)} | {"F40": ["Relu"]}),
        "call each other too often",
    ),
    "functions very deep": (
        lambda: _functions({f"F{i}": [f"F{i + 1}"] for i in range(500)} | {"F500": ["Relu"]}),
        "function calls of this model are nested more than",
    ),
    "operator set": (lambda: _bytes([RELU], opset_imports=[helper.make_opsetid("", 2**60)]), "operator set"),
}


def _refused(path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """The message of the command for the file, which ends with exit code 2."""
    assert main(["parse", "workload", str(path)]) == 2
    said = capsys.readouterr().err
    assert "Traceback" not in said
    assert path.name in said
    return " ".join(said.split())


@pytest.mark.parametrize("case", list(CASES))
def test_damaged_file_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str], case: str) -> None:
    """The message names the file and the damage within 5 seconds.

    The profile of the reference looks at less of a file, so it may find no error, but it gives no traceback.
    """
    build, words = CASES[case]
    path = tmp_path / "damaged.onnx"
    path.write_bytes(build())
    started = time.process_time()
    output = _refused(path, capsys)
    assert time.process_time() - started < 5
    assert words in output
    assert main(["parse", "workload", str(path), "--model", "zigzag-3.9.1"]) in (0, 2)
    assert "Traceback" not in capsys.readouterr().err


def test_all_problems_are_told_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two operators with errors are both named; errors that only follow from the first are not."""
    nodes = [
        node("Transpose", ["x"], ["a"], name="first", perm=[0]),
        node("Relu", ["a"], ["b"], name="follows"),
        node("Softmax", ["x"], ["c"], name="second", axis=9),
    ]
    path = tmp_path / "damaged.onnx"
    path.write_bytes(_bytes(nodes, outputs=("b", "c")))
    output = _refused(path, capsys)
    assert "first" in output
    assert "second" in output
    assert "follows" not in output


def test_file_of_more_than_two_gigabytes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file of more than two gigabytes is refused unread, and the message mentions external data."""
    path = tmp_path / "large.onnx"
    with path.open("wb") as file:
        file.truncate(2**31 + 10)
    assert "external data" in _refused(path, capsys)


@pytest.mark.parametrize("case", ["deep nesting", "claimed constant", "functions without end", "random bytes"])
def test_damage_costs_little_memory(tmp_path: Path, case: str) -> None:
    """A separate process with limited memory ends with the same message."""
    path = tmp_path / "damaged.onnx"
    path.write_bytes(CASES[case][0]())
    limit = 5 * 2**29

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

    started = time.monotonic()
    ended = subprocess.run(
        [sys.executable, "-m", "tilewright", "parse", "workload", str(path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        preexec_fn=limited,
        check=False,
    )
    assert ended.returncode == 2, ended.stderr
    assert "Traceback" not in ended.stderr
    assert CASES[case][1] in " ".join(ended.stderr.split())
    assert time.monotonic() - started < 30
