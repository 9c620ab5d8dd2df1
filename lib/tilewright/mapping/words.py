"""Words of mapping files that options have, too.

Nothing heavy stands here: options are checked with it.
"""

from typing import Literal

ALL_TILES = "all"
"""Word for as many tiles as the dimension is long."""
TemporalMappingType = Literal["uneven", "even"]
"""How the boundaries between memory levels of the operands of a layer relate. uneven: each operand has its own
boundaries; even: operands share them."""
