"""Names of columns in tables of designs, which axes and laws cannot have as names.

This module uses only the standard library, because spaces are read when the Snakefile is parsed.
"""

import re

from tilewright.base.measures import EDP_PJ_S, LATENCY_S, MEASURES

RESULTS = MEASURES
"""Names of the results of a design on a network. Constraints and objectives use them."""
USES = ("peak_memory_bits", "fullest_memory_share", "fullest_link_share")
"""Columns of designs with several cores: on-chip memory in bits, and two used shares.

The first column is the sum of the peak contents of all on-chip memories, as if all peaks were simultaneous. The second
is the used share of the fullest memory. The third is the used share of the bandwidth of the most used link.
"""
POWER = "power_w"
RATES = (LATENCY_S, EDP_PJ_S, POWER)
"""Columns that tables have only if the clock is known."""
ODDS = ("energy_low_pj", "energy_high_pj", "area_low_mm2", "area_high_mm2", "front_probability")
"""Columns that tables have only if costs have ranges."""
INDEX, DESIGN, NETWORK = "index", "design", "network"
STATUS, REASON, UNMET = "status", "reason", "unmet"
ON_FRONT, DOMINATED_BY = "pareto", "dominated_by"
LARGEST_ENERGY, LARGEST_LATENCY = "largest_energy_term", "largest_latency_part"
COMPARED_BY, ASSUMES = "compared_by", "assumes"
MAPPING_GAP = "mapping_gap"
"""Column of some designs on the front: the share by which the objective of the search could fall with the best
mappings.
"""
OF_ALL = "_all_networks"
"""Suffix of columns on all networks together."""

_FIXED = {
    *(INDEX, DESIGN, NETWORK, STATUS, REASON, UNMET, *RESULTS, *USES, *RATES, *ODDS),
    *(ON_FRONT, DOMINATED_BY, LARGEST_ENERGY, LARGEST_LATENCY, COMPARED_BY, ASSUMES, MAPPING_GAP),
}
_MADE = re.compile(rf"energy_.+_pj|latency_.+_cycles|range of .+|.+{OF_ALL}", re.DOTALL)
"""Pattern of column names that contain another name: a term, a memory, a part of the latency, a cost law or a column.
"""


def is_column(name: str) -> bool:
    """True if tables of designs can have a column of this name besides the columns of axes and laws."""
    return name in _FIXED or _MADE.fullmatch(name) is not None
