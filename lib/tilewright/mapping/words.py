"""Words that both mapping files and options use.

The module imports no large library, because it is imported when command-line options are checked.
"""

from typing import Literal, get_args

ALL_TILES = "all"
"""Word in a mapping file that means one tile per iteration of a dimension."""
ReductionShape = Literal["one_core", "tree", "ring"]
"""Order in which the partial sums of several cores are added.

* one_core: One core adds all partial sums, one after the other.
* tree: Pairs of partial sums are added, then pairs of these sums, and so on.
* ring: The outputs are divided into shares. The running sum of each share moves from core to core, and each core adds
  its own partial sum of this share.
"""
ONE_CORE, TREE, RING = get_args(ReductionShape)
TemporalMappingType = Literal["uneven", "even"]
"""Type of the boundaries between memory levels.

uneven: each operand has its own boundaries. even: all operands in a memory have the same boundary.
"""
