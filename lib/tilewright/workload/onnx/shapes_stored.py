"""Shapes that a file stores of inner tensors and outputs, some of their sizes being symbols."""

from collections.abc import Mapping
from dataclasses import dataclass

import onnx

from tilewright.workload.onnx.inputs import ANONYMOUS_SYMBOLS


@dataclass(frozen=True)
class StoredShape:
    """The shape of one tensor as the file has it."""

    element_type: int
    sizes: tuple[int | None, ...]
    """None where the file has no size, and where nobody says what a symbol stands for."""
    symbols: tuple[str, ...]
    """By axis, '' where there is none."""


def read_stored_shapes(graph: onnx.GraphProto, symbols: Mapping[str, int]) -> dict[str, StoredShape]:
    """Tensor -> what the file stores once `symbols` are put in."""
    stored = {}
    for value in (*graph.value_info, *graph.output):
        tensor = value.type.tensor_type
        if not value.type.HasField("tensor_type") or not tensor.HasField("shape") or not tensor.elem_type:
            continue
        sizes = [
            size.dim_value if size.HasField("dim_value") else symbols.get(size.dim_param) for size in tensor.shape.dim
        ]
        named = [
            "" if size.HasField("dim_value") or size.dim_param in ANONYMOUS_SYMBOLS else size.dim_param
            for size in tensor.shape.dim
        ]
        known = tuple(None if size is None or size < 0 else size for size in sizes)
        stored[value.name] = StoredShape(tensor.elem_type, known, tuple(named))
    return stored
