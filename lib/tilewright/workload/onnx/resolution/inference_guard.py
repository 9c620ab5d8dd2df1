"""Shape inference of onnx in a separate process: a damaged file can crash or hang that process, but not this one.

onnx's library is C++. An operator that contradicts its definition can make the library abort, loop, or allocate without
end. One small process (see `inference_child`) answers the requests of all files. The process starts at the first
operator, within some hundredths of a second. After a crash, the process is started again.
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
"""Time limit for the shape inference of one operator, in seconds. A normal operator takes less than a millisecond."""
MEMORY_BYTES = 2 * 2**30
"""Memory limit of the inference process, in bytes. The library of onnx needs a tenth of a gigabyte; an operator with
its constants needs a megabyte."""
LARGEST_REPLY_BYTES = 2**26
"""Largest length of a reply that is accepted, in bytes. The output types of an operator need fewer bytes."""
_MARSHAL_VERSION = 2
"""Version of the `marshal` format. In this version, equal values have equal bytes."""
_CHILD = Path(__file__).with_name("inference_child.py")


class InferenceError(Exception):
    """Error for an inference without a result. The text is the reason for the refusal, or says how the process of the
    inference ended."""


class InferenceTimeoutError(InferenceError):
    """Error for an inference that was stopped because it took too long."""


class _RefusedError(InferenceError):
    """Error for an operator that the inference refused. The text is the reason."""


def inferred_outputs(
    schema: onnx.defs.OpSchema,
    node: onnx.NodeProto,
    types: Mapping[str, onnx.TypeProto],
    data: Mapping[str, onnx.TensorProto],
    opsets: Mapping[str, int],
) -> dict[str, onnx.TypeProto]:
    """Output types of one operator by name, as `onnx.shape_inference.infer_node_outputs` gives them.

    `types` and `data` are the types and values of the operator's inputs. The caller must not change the returned types,
    because later calls return the same objects. Raises InferenceError if onnx refuses the operator, crashes, or does
    not answer within `LONGEST_SECONDS`.
    """
    renamed, name_of = _with_plain_names(node)
    try:
        answer = _answered_types(_request(schema, renamed, types, data, opsets, name_of))
    except _RefusedError:  # asked again, so that the reason names the tensors of the file
        answer = _answered_types(_request(schema, node, types, data, opsets, {name: name for name in node.input}))
        name_of = {name: name for name in node.output}
    plain = {name_of[name]: name for name in node.output if name}
    return {plain[name]: value for name, value in answer.items() if name in plain}


def defining_function(
    schema: onnx.defs.OpSchema, node: onnx.NodeProto, types: Mapping[str, onnx.TypeProto], opset: int
) -> onnx.FunctionProto | None:
    """Function by which onnx defines the operator of this node; None if there is no such function.

    `types` are the types of the operator's inputs. `opset` is the version of the operator set that the model imports
    for the operator's domain. The returned function imports the operator sets that it needs. Raises InferenceError if
    onnx refuses the node, crashes, or does not answer within `LONGEST_SECONDS`.
    """
    given = [types[name].SerializeToString() if name in types else b"" for name in node.input]
    content = (BODY, schema.name, schema.domain, schema.since_version, node.SerializeToString(), given, opset)
    answer = _answer(marshal.dumps(content, _MARSHAL_VERSION))
    return onnx.FunctionProto.FromString(answer) if answer else None


def _with_plain_names(node: onnx.NodeProto) -> tuple[onnx.NodeProto, dict[str, str]]:
    """Pair (copy of the operator whose tensors are named by numbers, new name of each tensor by old name). With these
    names, equal operators have equal requests, and share a cached reply."""
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
    """Start the process of the inference early, so that it is ready when it is needed."""
    _guard.start()


class _Guard:
    """Process of the inference, which answers one request at a time."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the process if it is not running."""
        with self.lock:
            if self.process is None:
                self.process = _started()

    def ask(self, request: bytes) -> tuple[bool, Any]:
        """Reply of the process: (True, result of the request) or (False, reason for the refusal). Raises InferenceError
        if the process gives no reply.
        """
        with self.lock:
            if self.process is None:
                self.process = _started()
            try:
                return _reply(self.process, request)
            except (EOFError, BrokenPipeError, ConnectionError):
                raise self._end_of_process() from None
            except BaseException:  # an interruption: the next request would get this reply
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
        """End the process if it is running."""
        process, self.process = self.process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            with contextlib.suppress(OSError):
                stream.close()  # type: ignore[union-attr]

    def forget(self) -> None:
        """Forget the process after a fork, because the process belongs to the parent process."""
        self.lock = threading.Lock()
        process, self.process = self.process, None
        if process is not None:
            process.returncode = 0
            for stream in (process.stdin, process.stdout):
                os.close(stream.fileno())  # type: ignore[union-attr]


def _started() -> "subprocess.Popen[bytes]":
    library = str(onnx.onnx_cpp2py_export.__file__)
    command = [sys.executable, "-I", "-S", str(_CHILD), library, str(MEMORY_BYTES), str(LONGEST_SECONDS)]
    # The process has a session of its own, so that Ctrl-C does not reach it directly.
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
