"""Facts about one tensor of an ONNX graph: its sizes, its type, and its values if they are known before run time."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class TensorFacts:
    """Facts about one tensor: its shape, its type, and its values if they are known before run time."""

    name: str
    shape: tuple[int, ...]
    element_type: int
    """Number of the element type in onnx.TensorProto.DataType."""
    is_constant: bool
    """True if the tensor is known before run time: it is a constant of the file, or computed from constants."""
    values: np.ndarray | None = None
    """Values of a small constant, if the file holds them; None for weights."""
    quantised_bits: int | None = None
    """Bits of an element as a quantised number; None if no bits are known. A dequantised tensor has the bits of the
    tensor from which it is computed. The bits are given by a quantiser or by the element type.
    """
    given_bits: int | None = None
    """Bits that the user gives for the tensor (`--bits`)."""
