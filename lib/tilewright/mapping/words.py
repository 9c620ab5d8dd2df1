"""Words that both mapping files and options use.

The module imports no large library, because it is imported when command-line options are checked.
"""

from typing import Literal

ALL_TILES = "all"
"""Word in a mapping file for one tile per iteration of a dimension."""
TemporalMappingType = Literal["uneven", "even"]
"""Type of the boundaries between memory levels.

uneven: each operand has boundaries of its own. even: operands that share a memory share the boundary of this memory.
"""
