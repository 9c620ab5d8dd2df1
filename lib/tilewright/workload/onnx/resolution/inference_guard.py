"""onnx's shape inference in a process of its own: a damaged file ends or hangs that process, never this one.

The library is C++, and some operators that contradict their definition make it abort, loop, or ask for memory without
end. One small process (see `inference_child`) answers for all files; it is started with the first operator, in some
hundredths of a second, and anew after every operator that it did not survive.
"""

import atexit
import contextlib
import functools
import marshal
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import onnx
import onnx.onnx_cpp2py_export

from tilewright.workload.onnx.resolution.inference_child import BODY, HEADER_BYTES, TYPES

LONGEST_SECONDS = 10
"""Time for one operator, which takes less than a millisecond: in time on a machine that is ten thousand times slower.
"""
MEMORY_BYTES = 2 * 2**30
"""Memory of the process: the library takes a tenth of a gigabyte, an operator with its constants a megabyte."""
LARGEST_REPLY_BYTES = 2**26
"""More than the types of the outputs of any operator take."""
_MARSHAL_VERSION = 2
"""Version in which equal values have equal bytes."""
_CHILD = Path(__file__).with_name("inference_child.py")


class InferenceError(Exception):
    """The inference gave no result: what it says of the operator, or what became of its process."""


class InferenceTimeoutError(InferenceError):
    """The inference was stopped because it did not end."""


class _RefusedError(InferenceError):
    """What the inference says of the operator."""


def inferred_outputs(
    schema: onnx.defs.OpSchema,
    node: onnx.NodeProto,
    types: Mapping[str, onnx.TypeProto],
    data: Mapping[str, onnx.TensorProto],
    opsets: Mapping[str, int],
) -> dict[str, onnx.TypeProto]:
    """Output name -> type of one operator, as `onnx.shape_inference.infer_node_outputs` tells it.

    `types` and `data` are those of its inputs. The types are shared and must not be changed. Raises InferenceError,
    within `LONGEST_SECONDS`.
    """
    renamed, name_of = _with_plain_names(node)
    try:
        answer = _answered_types(_request(schema, renamed, types, data, opsets, name_of))
    except _RefusedError:  # for a reason, which is to name the tensors of the file
        answer = _answered_types(_request(schema, node, types, data, opsets, {name: name for name in node.input}))
        name_of = {name: name for name in node.output}
    plain = {name_of[name]: name for name in node.output if name}
    return {plain[name]: value for name, value in answer.items() if name in plain}


def defining_function(
    schema: onnx.defs.OpSchema, node: onnx.NodeProto, types: Mapping[str, onnx.TypeProto], opset: int
) -> onnx.FunctionProto | None:
    """The function by which onnx defines an operator, None if it has none for this node.

    `types` are those of its inputs, `opset` the operator set of its domain in the model; the function imports the
    operator sets that it is written for. Raises InferenceError, within `LONGEST_SECONDS`.
    """
    given = [types[name].SerializeToString() if name in types else b"" for name in node.input]
    content = (BODY, schema.name, schema.domain, schema.since_version, node.SerializeToString(), given, opset)
    answer = _answer(marshal.dumps(content, _MARSHAL_VERSION))
    return onnx.FunctionProto.FromString(answer) if answer else None


def _with_plain_names(node: onnx.NodeProto) -> tuple[onnx.NodeProto, dict[str, str]]:
    """The operator without names of its own, so that equal ones are equal: layers of a network repeat.

    With it, tensor -> name there.
    """
    name_of = {"": ""}
    for name in (*node.input, *node.output):
        name_of.setdefault(name, str(len(name_of)))
    renamed = onnx.NodeProto(op_type=node.op_type, domain=node.domain)
    renamed.input.extend(name_of[name] for name in node.input)
    renamed.output.extend(name_of[name] for name in node.output)
    renamed.attribute.extend(node.attribute)
    return renamed, name_of


def _request(
    schema: onnx.defs.OpSchema,
    node: onnx.NodeProto,
    types: Mapping[str, onnx.TypeProto],
    data: Mapping[str, onnx.TensorProto],
    opsets: Mapping[str, int],
    name_of: Mapping[str, str],
) -> bytes:
    content = (
        *(TYPES, schema.name, schema.domain, schema.since_version),
        node.SerializeToString(),
        {name_of[name]: types[name].SerializeToString() for name in types},
        {name_of[name]: data[name].SerializeToString() for name in data},
        dict(opsets),
    )
    return marshal.dumps(content, _MARSHAL_VERSION)


@functools.lru_cache(maxsize=2048)
def _answered_types(request: bytes) -> dict[str, onnx.TypeProto]:
    return {name: onnx.TypeProto.FromString(value) for name, value in _answer(request).items()}


def _answer(request: bytes) -> Any:
    succeeded, result = _guard.ask(request)
    if not succeeded:
        raise _RefusedError(result)
    return result


def start_inference() -> None:
    """Starts the process before it is needed, so that it is ready by then."""
    _guard.start()


class _Guard:
    """The inference's process, which answers one request at a time."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Starts the process if there is none."""
        with self.lock:
            if self.process is None:
                self.process = _started()

    def ask(self, request: bytes) -> tuple[bool, Any]:
        """(True, types) or (False, reason). Raises InferenceError when the process gives no reply."""
        with self.lock:
            if self.process is None:
                self.process = _started()
            try:
                return _reply(self.process, request)
            except (EOFError, BrokenPipeError, ConnectionError):
                raise self._end_of_process() from None
            except BaseException:  # an interruption: the reply would come to the next request
                self.stop()
                raise

    def _end_of_process(self) -> InferenceError:
        process = self.process
        assert process is not None
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(1)
        code = process.poll()
        self.stop()
        if code == -signal.SIGALRM:
            return InferenceTimeoutError(f"onnx's shape inference did not end within {LONGEST_SECONDS} seconds")
        how = f"signal {signal.Signals(-code).name}" if code is not None and code < 0 else f"exit code {code}"
        return InferenceError(f"onnx's shape inference {'gave no result' if code is None else f'crashed ({how})'}")

    def stop(self) -> None:
        """Ends the process if there is one."""
        process, self.process = self.process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            with contextlib.suppress(OSError):
                stream.close()  # type: ignore[union-attr]

    def forget(self) -> None:
        """Forget the process in a forked copy of this one: the inference's process is the other one's."""
        self.lock = threading.Lock()
        process, self.process = self.process, None
        if process is not None:
            process.returncode = 0
            for stream in (process.stdin, process.stdout):
                os.close(stream.fileno())  # type: ignore[union-attr]


def _started() -> "subprocess.Popen[bytes]":
    library = str(onnx.onnx_cpp2py_export.__file__)
    command = [sys.executable, "-I", "-S", str(_CHILD), library, str(MEMORY_BYTES), str(LONGEST_SECONDS)]
    # A session of its own, so that Ctrl-C reaches it only through this process.
    return subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def _reply(process: "subprocess.Popen[bytes]", request: bytes) -> tuple[bool, Any]:
    requests, replies = process.stdin, process.stdout
    assert requests is not None
    assert replies is not None
    requests.write(len(request).to_bytes(HEADER_BYTES, "little") + request)
    requests.flush()
    header = replies.read(HEADER_BYTES)
    length = int.from_bytes(header, "little")
    content = replies.read(length) if length <= LARGEST_REPLY_BYTES else b""
    if not header or len(content) != length:
        raise EOFError
    try:
        succeeded, result = marshal.loads(content)
    except (ValueError, TypeError):
        raise EOFError from None
    return succeeded, result


_guard = _Guard()
atexit.register(lambda: _guard.stop())
os.register_at_fork(after_in_child=lambda: _guard.forget())
