"""Names of the columns of tables of designs, which no axis and no law may have.

Standard library only: spaces are read when the Snakefile is parsed.
"""

import re

from tilewright.base.measures import MEASURES

RESULTS = MEASURES
"""What is known of a design and a network after evaluation: constraints and objectives name them."""
USES = ("peak_memory_bits", "fullest_memory_share", "fullest_link_share")
"""What is told besides of designs of several cores: bits in memories on the chip at most, all together, were it at
once; how full the fullest is; how much of what it could carry the link carries that is used most."""
RATES = ("latency_s", "power_w")
"""What is told besides where the clock is known."""
ODDS = ("energy_low_pj", "energy_high_pj", "area_low_mm2", "area_high_mm2", "front_probability")
"""Further columns where costs have ranges."""
INDEX, DESIGN, NETWORK = "index", "design", "network"
STATUS, REASON, UNMET = "status", "reason", "unmet"
ON_FRONT, DOMINATED_BY = "pareto", "dominated_by"
LARGEST_ENERGY, LARGEST_LATENCY = "largest_energy_term", "largest_latency_part"
COMPARED_BY, ASSUMES = "compared_by", "assumes"
OF_ALL = "_all_networks"
"""Ends the columns on all networks together."""

_FIXED = {
    *(INDEX, DESIGN, NETWORK, STATUS, REASON, UNMET, *RESULTS, *USES, *RATES, *ODDS),
    *(ON_FRONT, DOMINATED_BY, LARGEST_ENERGY, LARGEST_LATENCY, COMPARED_BY, ASSUMES),
}
_MADE = re.compile(rf"energy_.+_pj|latency_.+_cycles|range of .+|.+{OF_ALL}", re.DOTALL)
"""Names that are made of terms, memories, parts of a latency, laws of costs and other columns."""


def is_column(name: str) -> bool:
    """Whether tables of designs have, or may have, a column of this name beside those of a space."""
    return name in _FIXED or _MADE.fullmatch(name) is not None
