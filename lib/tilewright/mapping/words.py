"""Words that mapping files and options share.

The module imports nothing heavy, because options are checked with it.
"""

from typing import Literal

ALL_TILES = "all"
"""Word for a tiling with one tile per iteration of the dimension."""
TemporalMappingType = Literal["uneven", "even"]
"""Type of the boundaries of memory levels.

uneven: each operand has boundaries of its own; even: operands share their boundaries.
"""
