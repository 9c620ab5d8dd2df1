"""Operators that crash or hang onnx's shape inference do not crash or hang the process that reads the file."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper
from tilewright.base.errors import InputError
from tilewright.base.profile import CORRECTED
from tilewright.cli.main import main
from tilewright.workload.onnx import read_onnx
from tilewright.workload.onnx.resolution import attribute_checks as resolution_checks
from tilewright.workload.onnx.resolution import inference_guard

FLOATS = helper.make_tensor_type_proto(TensorProto.FLOAT, [6])
SCALAR = helper.make_tensor_type_proto(TensorProto.FLOAT, [])
ABORTS = helper.make_node("Split", ["x"], ["a", "b", "c", "surplus"], num_outputs=3)
HANGS = helper.make_node("Einsum", ["x"], ["y"], equation="i")
HANGS.attribute[0].s = b"\xff\xfe"


def _infer(node: onnx.NodeProto) -> dict[str, onnx.TypeProto]:
    schema = onnx.defs.get_schema(node.op_type, 18, "")
    return inference_guard.inferred_outputs(schema, node, {"x": _type(node)}, {}, {"": 18})


def _type(node: onnx.NodeProto) -> onnx.TypeProto:
    return SCALAR if node is HANGS else FLOATS


def _model(node: onnx.NodeProto) -> onnx.ModelProto:
    given = helper.make_value_info("x", _type(node))
    results = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in node.output]
    graph = helper.make_graph([node], "g", [given], results)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


@pytest.fixture
def short_limit(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A limit of a second, for an inference process that the test starts."""
    inference_guard._guard.stop()
    monkeypatch.setattr(inference_guard, "LONGEST_SECONDS", 1)
    yield
    inference_guard._guard.stop()


@pytest.fixture
def unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Turns off the checks that find known damage before the inference."""
    monkeypatch.setattr(resolution_checks, "_is_text", lambda _: True)
    monkeypatch.setattr(resolution_checks, "_split_problems", lambda *_: [])


def test_same_types_as_onnx() -> None:
    """The guarded inference gives onnx's types, and raises its errors as text."""
    node = helper.make_node("Split", ["x"], ["a", "b"], num_outputs=2)
    schema = onnx.defs.get_schema("Split", 18, "")
    imports = [helper.make_opsetid("", 18)]
    expected = onnx.shape_inference.infer_node_outputs(schema, node, {"x": FLOATS}, opset_imports=imports)
    assert _infer(node) == expected
    with pytest.raises(inference_guard.InferenceError, match="axis"):
        _infer(helper.make_node("Concat", ["x"], ["y"], axis=7))


def test_crash_and_recovery() -> None:
    """A crash of the inference is reported, and the next operator is inferred again."""
    with pytest.raises(inference_guard.InferenceError, match=r"crashed .signal SIGABRT"):
        _infer(ABORTS)
    assert set(_infer(helper.make_node("Relu", ["x"], ["y"]))) == {"y"}


@pytest.mark.usefixtures("short_limit")
def test_no_wait_without_end() -> None:
    """An inference that never ends is stopped by the limit."""
    started = time.monotonic()
    with pytest.raises(inference_guard.InferenceTimeoutError, match="did not end within 1 seconds"):
        _infer(HANGS)
    assert time.monotonic() - started < 30
    assert set(_infer(helper.make_node("Relu", ["x"], ["y"]))) == {"y"}


def test_equal_operators_are_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The shapes of an operator that differs from an earlier one only in names are known without the process."""
    node = helper.make_node("Concat", ["x", "x"], ["y"], axis=0, name="first")
    first = _infer(node)
    monkeypatch.setattr(inference_guard._guard, "ask", None)
    node.name, node.output[0] = "second", "z"
    assert _infer(node) == {"z": first["y"]}


def test_limited_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """The process crashes if its memory limit is too low to start, and the crash is reported."""
    inference_guard._guard.stop()
    monkeypatch.setattr(inference_guard, "MEMORY_BYTES", 2**20)
    with pytest.raises(inference_guard.InferenceError, match="crashed"):
        _infer(helper.make_node("Elu", ["x"], ["y"]))


@pytest.mark.usefixtures("short_limit", "unchecked")
@pytest.mark.parametrize(("node", "words"), [(ABORTS, "crashed"), (HANGS, "did not end")], ids=["abort", "hang"])
def test_file_that_the_checks_do_not_know(
    node: onnx.NodeProto, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command line names the file and the operator in one line and exits with 2."""
    path = tmp_path / "damaged.onnx"
    path.write_bytes(_model(node).SerializeToString())
    assert main(["parse", str(path)]) == 2
    told = capsys.readouterr().err
    assert len(told.splitlines()) == 1
    assert "damaged.onnx Op0: " in told
    assert words in told


@pytest.mark.parametrize(
    ("node", "words"), [(ABORTS, "'num_outputs' of Split is 3, but Split has 4"), (HANGS, "'equation' .* is not text")]
)
def test_known_damage(node: onnx.NodeProto, words: str) -> None:
    """Known damage has messages of its own and is found without waiting."""
    with pytest.raises(InputError, match=words):
        read_onnx(_model(node), CORRECTED)


def test_copy_of_the_process() -> None:
    """A forked copy of the process has its own inference and leaves that of the original alone."""
    relu = helper.make_node("Relu", ["x"], ["y"])
    _infer(relu)
    copy = os.fork()
    if copy == 0:
        code = 3
        try:
            code = 0 if set(_infer(relu)) == {"y"} else 1
            inference_guard._guard.stop()
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(copy, 0)[1]) == 0
    assert set(_infer(relu)) == {"y"}
