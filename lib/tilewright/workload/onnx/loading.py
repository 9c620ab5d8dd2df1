"""Opening an ONNX model: from a file or a model in memory, never with its weights."""

from collections.abc import Iterator
from pathlib import Path

import onnx
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

from tilewright.errors import InputError, Problem

IN_MEMORY = "<model>"
"""What stands for the file name in messages about a model that was given as an object."""
_FIRST_IR_WITH_OPSETS = 3


def load_model(source: str | Path | onnx.ModelProto) -> tuple[onnx.ModelProto, str, str]:
    """(model, file name for messages, default network name) of an ONNX file or of a model in memory.

    External weight files are never opened and need not exist. Raises InputError when the file cannot be read, is
    not an ONNX model, or has no operators.
    """
    if isinstance(source, onnx.ModelProto):
        model, file, name = source, IN_MEMORY, source.graph.name or "network"
    else:
        file, name = str(source), Path(source).stem
        model = _decode(_read_bytes(Path(source), file), file)
    if not model.graph.node:
        raise InputError([Problem("the graph of this ONNX model is empty: it has no operators", file=file)])
    if not all(isinstance(text, str) for text in _texts(model.graph)):
        raise InputError([Problem("a damaged ONNX model: it contains names that are not text", file=file)])
    return model, file, name


def _read_bytes(path: Path, file: str) -> bytes:
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise InputError([Problem("no such file", file=file)]) from None
    except OSError as error:
        raise InputError([Problem(f"cannot be read: {error.strerror or error}", file=file)]) from None
    if not content:
        raise InputError([Problem("the file is empty", file=file)])
    return content


def _decode(content: bytes, file: str) -> onnx.ModelProto:
    model = onnx.ModelProto()
    try:
        model.ParseFromString(content)
    except (DecodeError, ValueError):
        raise InputError([Problem("not an ONNX model, or a truncated one", file=file)]) from None
    # Text and random bytes sometimes decode to a message of unknown fields only; a model always has a version.
    if not model.HasField("graph") or not (model.ir_version or model.opset_import):
        raise InputError([Problem("not an ONNX model", file=file)])
    if model.ir_version >= _FIRST_IR_WITH_OPSETS and not model.opset_import:
        raise InputError([Problem("a truncated ONNX model: it names no operator set", file=file)])
    return model


def _texts(graph: onnx.GraphProto) -> Iterator[object]:
    """The texts that later steps rely on; protobuf hands out bytes where a text is not valid."""
    for node in graph.node:
        yield from (node.name, node.op_type, node.domain, *node.input, *node.output)
    for value in (*graph.input, *graph.output):
        yield value.name
        yield from (dimension.dim_param for dimension in value.type.tensor_type.shape.dim)
    yield from (tensor.name for tensor in graph.initializer)
