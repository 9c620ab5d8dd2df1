"""Words that mapping files and options share.

The module imports nothing heavy, because options are checked with it.
"""

from typing import Literal

ALL_TILES = "all"
"""Word for one tile per iteration of the dimension."""
TemporalMappingType = Literal["uneven", "even"]
"""Relation between the operands' boundaries of memory levels.

uneven: each operand has boundaries of its own; even: operands share them.
"""
