"""Names of columns in tables of designs.

Axes and laws cannot have these names.

This module needs only the standard library, because spaces are read when the Snakefile is parsed.
"""

import re

from tilewright.base.measures import EDP_PJ_S, LATENCY_S, MEASURES

RESULTS = MEASURES
"""Names of the results of a design on a network. Constraints and objectives use them."""
USES = ("peak_memory_bits", "fullest_memory_share", "fullest_link_share")
"""Columns for designs with several cores.

The first is the on-chip memory in bits: the sum of the peak contents of all on-chip memories, as if all peaks were
simultaneous. The second is the largest used share of an on-chip memory at its peak. The third is the largest used share
of the bandwidth of a link, over the whole latency.
"""
ACCESS_NS, ACCESS_CYCLES, SLOW_MEMORIES = ACCESS = ("access_ns", "access_cycles", "slow_memories")
"""Columns on the access times of memories. Tables have them only if some access times are known.

The first is the longest known access time of a memory in ns. The second is this time in clock cycles, if the clock is
known. The third names the memories whose access takes longer than a cycle.
"""
EXTRAPOLATED = "extrapolated_memories"
"""Column with the names of the memories whose costs are extrapolated beyond the table of the library. Tables have it
only if at least one design has such a memory.
"""
POWER = "power_w"
RATES = (LATENCY_S, EDP_PJ_S, POWER)
"""Columns that tables have only if the clock is known."""
LIMITED = (*RESULTS, ACCESS_NS, ACCESS_CYCLES, *RATES)
"""Names of the results that constraints can use. The results are known only after the evaluation of a design."""
ODDS = ("energy_low_pj", "energy_high_pj", "area_low_mm2", "area_high_mm2", "front_probability")
"""Columns that tables have only if some costs have ranges."""
INDEX, DESIGN, NETWORK = "index", "design", "network"
STATUS, REASON, UNMET = "status", "reason", "unmet"
UNMET_END = "; "
"""Text between the constraints in the column UNMET. No constraint contains it."""
ON_FRONT, DOMINATED_BY = "pareto", "dominated_by"
LARGEST_ENERGY, LARGEST_LATENCY = "largest_energy_term", "largest_latency_part"
COMPARED_BY, ASSUMES = "compared_by", "assumes"
MAPPING_GAP = "mapping_gap"
"""Column with the largest share by which better mappings could lower the objective of the search, according to the
lower bound of the objective. Only some designs on the front have a value in this column.
"""
EXPECTED = ("expected_low_cycles", "expected_high_cycles")
"""Columns with the ends of the error bar on the latency (`designs.error_bars`)."""
PLAN_BOUNDS = ("bound_energy_pj", "bound_latency_cycles", "bound_edp_pj_cycles")
"""Columns with lower bounds over every plan, for designs whose fusion is searched."""
PLAN_GAPS = ("gap_energy", "gap_latency", "gap_edp")
"""Columns with gaps, one for each column of PLAN_BOUNDS. A gap is the largest share by which any plan can be below the
plan that was found, in energy, latency or EDP.
"""
SCHEDULES = "searched_schedules"
"""Column with the number of schedules that the search for a plan made."""
START_DESIGN, DROPPED_BY = "start_design", "dropped_by"
"""Names of columns with names of designs.

START_DESIGN: the design whose plan was the start of the search. DROPPED_BY: the design whose results dominate the lower
bounds of the row's design, so that the row's design is not searched. The value is '' if there is no such design.
"""
OF_ALL = "_all_networks"
"""Suffix of the columns that describe all networks together."""

_FIXED = {
    *(INDEX, DESIGN, NETWORK, STATUS, REASON, UNMET, *RESULTS, *USES, *ACCESS, EXTRAPOLATED, *RATES, *ODDS),
    *(ON_FRONT, DOMINATED_BY, LARGEST_ENERGY, LARGEST_LATENCY, COMPARED_BY, ASSUMES, MAPPING_GAP, *EXPECTED),
    *(*PLAN_BOUNDS, *PLAN_GAPS, SCHEDULES, START_DESIGN, DROPPED_BY),
}
_MADE = re.compile(rf"energy_.+_pj|latency_.+_cycles|range of .+|.+{OF_ALL}", re.DOTALL)
"""Pattern of column names that contain another name: the name of a term, a memory, a part of the latency, a cost law or
a column.
"""


def energy_column(term: str) -> str:
    """Name of the column with the energy of a term, in pJ."""
    return f"energy_{term}_pj"


def is_column(name: str) -> bool:
    """True if the name is reserved: tables of designs can use it for a column that belongs to no axis and no law."""
    return name in _FIXED or _MADE.fullmatch(name) is not None
