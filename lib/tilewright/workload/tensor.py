"""A tensor of a network: what the operators hand to one another, without its values."""

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Tensor:
    """A tensor of a network."""

    name: str
    shape: tuple[int, ...]
    bits: int
    """Bits per element."""
    element_type: str = ""
    """The ONNX element type, such as FLOAT or INT8."""
    precision_source: str = ""
    """Where `bits` comes from: override, quantisation, element type or assumed."""
    is_constant: bool = False
    """Known before run time: a weight, or computed from constants only."""

    @property
    def element_count(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def size_bits(self) -> int:
        """Bits of the whole tensor."""
        return self.element_count * self.bits
