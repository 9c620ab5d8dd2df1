"""Process in which onnx's shape inference runs; `inference_guard` starts this file as a script.

Only onnx's library is loaded here, without onnx's Python code and without tilewright, so that a start takes some
hundredths of a second. Requests and replies on the standard streams consist of a length and `marshal` bytes:

* The request (TYPES, operator, domain, version, node, types, data, operator sets) gives (True, types) or (False,
  reason).
* The request (BODY, operator, domain, version, node, types of the inputs in order, operator set) gives (True,
  function) or (False, reason).
"""

import contextlib
import importlib.machinery
import importlib.util
import marshal
import os
import resource
import signal
import sys
import types
from typing import Any

HEADER_BYTES = 8
TYPES, BODY = "types", "body"
"""Kinds of requests. TYPES requests the types of the outputs; BODY requests the function that defines the operator."""


def main(library: str, memory_bytes: int, longest_seconds: int) -> None:
    """Answer requests until the parent process closes the stream. SIGALRM ends this process if a request takes too
    long."""
    requests, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):  # output of the library must not get between the replies
        os.dup2(nowhere, stream)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGALRM})
    for limit, most in ((resource.RLIMIT_AS, memory_bytes), (resource.RLIMIT_CORE, 0)):
        with contextlib.suppress(ValueError, OSError):  # a system without this limit, or with a lower one
            resource.setrlimit(limit, (most, most))
    get_schema = _library(library).defs.get_schema
    while header := requests.read(HEADER_BYTES):
        signal.alarm(longest_seconds)
        kind, operator, domain, version, *arguments = marshal.loads(requests.read(int.from_bytes(header, "little")))
        try:
            schema = get_schema(operator, version, domain)
            reply = (True, _types(schema, *arguments) if kind == TYPES else _body(schema, *arguments))
        except BaseException as error:  # the reply reports any error
            reply = (False, str(error) or type(error).__name__)
        content = marshal.dumps(reply)
        replies.write(len(content).to_bytes(HEADER_BYTES, "little") + content)
        replies.flush()
        signal.alarm(0)


def _types(schema: Any, node: bytes, types: dict[str, bytes], data: dict[str, bytes], opsets: dict[str, int]) -> Any:
    return schema._infer_node_outputs(node, types, data, {}, opsets)


def _body(schema: Any, node: bytes, types: list[bytes], opset: int) -> bytes:
    """Function that defines the operator in operator set `opset`. If this set has no such function, the function comes
    from the newest earlier set that has one. The result is empty if no function defines this node.
    """
    written_for = {*schema.function_opset_versions, *schema.context_dependent_function_opset_versions}
    for version in (opset, *sorted((version for version in written_for if version < opset), reverse=True)):
        body = schema.get_function_with_opset_version(version) if schema.has_function else b""
        if not body and schema.has_context_dependent_function:
            body = schema.get_context_dependent_function_with_opset_version(version, node, types)
        if body:
            return bytes(body)
    return b""


def _library(path: str) -> types.ModuleType:
    """Extension module of onnx, loaded as onnx itself loads it."""
    loader = importlib.machinery.ExtensionFileLoader("onnx.onnx_cpp2py_export", path)
    specification = importlib.util.spec_from_file_location(loader.name, path, loader=loader)
    assert specification is not None
    module = importlib.util.module_from_spec(specification)
    loader.exec_module(module)
    return module


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
