"""How the boundaries between memory levels of the operands of a layer relate. Light: options are checked with it."""

from typing import Literal

TemporalMappingType = Literal["uneven", "even"]
"""uneven: each operand has its own boundaries; even: operands share them."""
