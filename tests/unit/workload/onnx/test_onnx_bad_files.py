"""Bad files are reported with all their problems, without a traceback."""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import onnx
import pytest
from onnx import helper
from tilewright.base.errors import InputError
from tilewright.base.profile import CORRECTED, REFERENCE
from tilewright.workload.onnx import read_onnx

Build = Callable[..., onnx.ModelProto]
node = helper.make_node


def _good(build: Build) -> bytes:
    conv = node("Conv", ["x", "w"], ["y"], kernel_shape=[1, 1])
    return build([conv], {"x": [1, 2, 4, 4]}, {"y": [1, 4, 4, 4]}, {"w": [4, 2, 1, 1]}).SerializeToString()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"conv1:\n  kernel: 3\n  # a YAML file under the wrong name\n",
        bytes(range(256)) * 4,
        b"\x89PNG\r\n\x1a\n" + b"\x00" * 64,
        onnx.ModelProto(ir_version=9).SerializeToString(),
        helper.make_model(helper.make_graph([], "empty", [], [])).SerializeToString(),
    ],
    ids=["empty", "text", "bytes", "picture", "no graph", "empty graph"],
)
def test_not_a_model(tmp_path: Path, content: bytes) -> None:
    """A file that is no ONNX model is an input error that names the file."""
    path = tmp_path / "bad.onnx"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"bad\.onnx"):
        read_onnx(path, REFERENCE)


def test_every_truncation(tmp_path: Path, build: Build) -> None:
    """A model cut off at any byte is an input error."""
    content = _good(build)
    path = tmp_path / "cut.onnx"
    for length in range(len(content)):
        path.write_bytes(content[:length])
        with pytest.raises(InputError, match=r"cut\.onnx"):
            read_onnx(path, REFERENCE)
    path.write_bytes(content)
    assert read_onnx(path, REFERENCE).workload.name == "cut"


def test_every_damaged_byte(build: Build, tmp_path: Path) -> None:
    """A model with one damaged byte is read, or raises InputError."""
    content = _good(build)
    path = tmp_path / "damaged.onnx"
    for position in range(len(content)):
        for value in (0x00, 0xFF, content[position] ^ 0x10):
            path.write_bytes(content[:position] + bytes([value]) + content[position + 1 :])
            with contextlib.suppress(InputError):
                read_onnx(path, CORRECTED)


@pytest.mark.parametrize("name", ["absent.onnx", "."])
def test_unreadable_path(tmp_path: Path, name: str) -> None:
    """A missing file and a folder are input errors."""
    with pytest.raises(InputError):
        read_onnx(tmp_path / name, REFERENCE)


def _conv(**attributes: object) -> list[onnx.NodeProto]:
    return [node("Conv", ["x", "w"], ["y"], name="bad", **attributes)]


MATMUL = [node("MatMul", ["x", "w"], ["y"], name="bad")]
IMAGE = {"x": [1, 4, 8, 8]}
FILTERS = {"w": [6, 4, 3, 3]}
BAD_GRAPHS: dict[str, tuple[Sequence[onnx.NodeProto], Mapping, Mapping, Mapping, str]] = {
    "cycle": (
        [node("Add", ["x", "b"], ["a"], name="first"), node("Relu", ["a"], ["b"], name="second")],
        {"x": [1]},
        {"b": [1]},
        {},
        "cycle: first <- second <- first",
    ),
    "self cycle": ([node("Add", ["x", "y"], ["y"], name="bad")], {"x": [1]}, {"y": [1]}, {}, "cycle: bad <- bad"),
    "undefined input": ([node("Relu", ["q"], ["y"], name="bad")], {"x": [1]}, {"y": [1]}, {}, "bad: input 'q'"),
    "produced twice": ([node("Relu", ["x"], ["y"])] * 2, {"x": [1]}, {"y": [1]}, {}, "'y' is produced twice"),
    "no inputs": ([node("Conv", [], ["y"], name="bad")], {}, {"y": [1, 4, 4, 4]}, {}, "bad: Conv needs input 0"),
    "no weights": ([node("Conv", ["x"], ["y"], name="bad")], IMAGE, {"y": [1, 6, 6, 6]}, {}, "bad: wrong .* 'kernel"),
    "no second operand": ([node("MatMul", ["x"], ["y"], name="bad")], {"x": [2, 3]}, {"y": [2, 4]}, {}, "two inputs"),
    "no output": ([node("Conv", ["x", "w"], [], name="bad")], IMAGE, {}, FILTERS, "bad: Conv has no output"),
    "negative dimension": (_conv(), {"x": [1, 4, -8, 8]}, {"y": [1, 6, 6, 6]}, FILTERS, "negative dimension, got -8"),
    "empty dimension": (_conv(), {"x": [1, 4, 0, 8]}, {"y": [1, 6, 6, 6]}, FILTERS, "empty or negative dimension"),
    "matrix as image": (_conv(), {"x": [4, 8]}, {"y": [4, 8]}, FILTERS, "rank"),
    "rank of output": (_conv(), IMAGE, {"y": [1, 6, 36]}, FILTERS, "same rank"),
    "kernel of three axes": (_conv(kernel_shape=[3, 3, 3]), IMAGE, {"y": [1, 6, 6, 6]}, FILTERS, "2 positive integers"),
    "strides of zero": (_conv(strides=[0, 1]), IMAGE, {"y": [1, 6, 6, 6]}, FILTERS, r"'strides', got \[0, 1\]"),
    "type of attribute": (_conv(strides="two"), IMAGE, {"y": [1, 6, 6, 6]}, FILTERS, "must be a list of integers"),
    "type of group": (_conv(group=[1]), IMAGE, {"y": [1, 6, 6, 6]}, FILTERS, "'group' must be an integer"),
    "padding of one axis": (_conv(pads=[1, 1]), IMAGE, {"y": [1, 6, 6, 6]}, FILTERS, "'pads'"),
    "group does not divide": (_conv(group=3), IMAGE, {"y": [1, 6, 6, 6]}, FILTERS, "must divide"),
    "group of zero": (_conv(group=0), IMAGE, {"y": [1, 6, 6, 6]}, FILTERS, "must divide"),
    "weights of another layer": (_conv(), IMAGE, {"y": [1, 5, 6, 6]}, FILTERS, "shape of the weights"),
    "batches differ": (_conv(), IMAGE, {"y": [2, 6, 6, 6]}, FILTERS, "batch differ, got 1 and 2"),
    "zero bits": (_conv(act_size=0), IMAGE, {"y": [1, 6, 6, 6]}, FILTERS, "'act_size'"),
    "depths differ": (MATMUL, {"x": [2, 3]}, {"y": [2, 5]}, {"w": [4, 5]}, "shape of the second operand"),
    "rows differ": (MATMUL, {"x": [2, 3]}, {"y": [7, 5]}, {"w": [3, 5]}, "different numbers of rows"),
    "scalar operand": (MATMUL, {"x": []}, {"y": [2, 5]}, {"w": [3, 5]}, "scalar"),
    "rank of Gemm": ([node("Gemm", ["x", "w"], ["y"])], {"x": [1, 2, 3]}, {"y": [1, 2, 5]}, {"w": [3, 5]}, "rank 2"),
    "unknown shape": (
        [node("Magic", ["x"], ["m"], domain="com.example"), node("MatMul", ["m", "w"], ["y"])],
        {"x": [2, 3]},
        {"y": [2, 5]},
        {"w": [3, 5]},
        "shape of tensor 'm'",
    ),
}


STALE = {"rank of output", "weights of another layer", "batches differ", "rows differ"}
"""Cases in which only the stored shape of the output is wrong; the corrected profile infers its own."""
OTHER_WORDS = {
    "no weights": "bad: Conv needs input 1",
    "no second operand": "bad: MatMul needs input 1",
    "empty dimension": "negative size",
    "matrix as image": "at least 3 dimensions",
    "kernel of three axes": "kernel_shape has incorrect size",
    "type of attribute": "got STRING .*INTS",
    "type of group": "got INTS .*INT",
    "strides of zero": r"'strides' of Conv is out of range, got \[0, 1\]",
    "padding of one axis": "pads has incorrect size",
    "group of zero": "'group' of Conv is out of range, got 0",
    "depths differ": "Incompatible dimensions",
}
"""Messages of the corrected profile if shape inference finds the mistake first."""


@pytest.mark.parametrize("case", list(BAD_GRAPHS))
def test_bad_graph(build: Build, tmp_path: Path, case: str) -> None:
    """A graph that cannot be a network is an input error that names the file, the operator and the reason."""
    nodes, inputs, outputs, weights, message = BAD_GRAPHS[case]
    path = tmp_path / "bad.onnx"
    path.write_bytes(build(nodes, inputs, outputs, weights).SerializeToString())
    for profile, words in ((REFERENCE, message), (CORRECTED, OTHER_WORDS.get(case, message))):
        if profile is CORRECTED and case in STALE:
            assert read_onnx(path, profile).coverage.is_complete
            continue
        with pytest.raises(InputError, match=words) as caught:
            read_onnx(path, profile)
        assert all(problem.file == str(path) for problem in caught.value.problems)


def test_all_problems_at_once(build: Build) -> None:
    """One error reports two bad layers."""
    nodes = [
        node("Conv", ["x", "w"], ["y"], name="one", strides=[0, 1]),
        node("Conv", ["x", "w"], ["z"], name="two", group=3),
    ]
    model = build(nodes, IMAGE, {"y": [1, 6, 6, 6], "z": [1, 6, 6, 6]}, FILTERS)
    with pytest.raises(InputError) as caught:
        read_onnx(model, REFERENCE)
    assert [problem.path for problem in caught.value.problems] == ["one", "two"]
    assert "<model>" in str(caught.value)
