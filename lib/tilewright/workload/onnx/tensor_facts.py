"""Facts of one tensor of an ONNX graph: its sizes, its type, and what of it is known before run time."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class TensorFacts:
    """One tensor: all its sizes, and what of it is known before run time."""

    name: str
    shape: tuple[int, ...]
    element_type: int
    """Number of the element type in onnx.TensorProto.DataType."""
    is_constant: bool
    """Whether it is known before run time: a constant of the file, or computed from such."""
    values: np.ndarray | None = None
    """The values of a small constant whose bytes are in the file; None for weights."""
    quantised_bits: int | None = None
    """Bits of the integer that the tensor is or stands for, where a quantiser or the element type says so."""
