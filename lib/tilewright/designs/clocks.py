"""Clocks of designs, which decide whether latencies are compared in cycles or in seconds."""

from enum import Enum
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas

from tilewright.base.measures import LATENCY_CYCLES, LATENCY_S
from tilewright.designs.results import OK

_LARGEST_DIFFERENCE = 1e-9
"""Largest relative difference at which two clock periods count as equal. Differences by rounding are smaller."""
_SECONDS_A_NS = 1e-9


class Clocks(Enum):
    """Relation between the clocks of all compared designs."""

    ALIKE = "alike"
    """All designs have the same clock, or no design has a clock."""
    DIFFER = "differ"
    """All designs have a clock, and the clocks differ. Latency and EDP are compared in time units."""
    PARTLY_UNKNOWN = "partly unknown"
    """Some designs have no clock. Latency and EDP are compared in cycles."""

    @property
    def note(self) -> str:
        """Sentence on the unit of compared latencies; '' if the clocks are alike."""
        return {
            Clocks.DIFFER: "Clocks of designs differ: latency and EDP are compared in time, not in cycles.",
            Clocks.PARTLY_UNKNOWN: "Some designs have no clock: latencies are compared in cycles, not in seconds.",
        }.get(self, "")


def clocks_of(period_ns: npt.NDArray[np.float64]) -> Clocks:
    """Relation between clock periods. NaN stands for an unknown period."""
    known = period_ns[~np.isnan(period_ns)]
    if not len(known):
        return Clocks.ALIKE
    if len(known) < len(period_ns):
        return Clocks.PARTLY_UNKNOWN
    return Clocks.DIFFER if known.max() > known.min() * (1 + _LARGEST_DIFFERENCE) else Clocks.ALIKE


def clocks_in(table: pandas.DataFrame) -> Clocks:
    """Relation between the clocks of the compared designs in a table of results. A design is compared if it has results
    and meets all constraints on at least one network.
    """
    if LATENCY_S not in table:
        return Clocks.ALIKE
    rows = table[(table["status"] == OK) & (table["unmet"] == "") & (table[LATENCY_CYCLES] > 0)]
    periods = rows[LATENCY_S] / rows[LATENCY_CYCLES] / _SECONDS_A_NS
    return clocks_of(periods.to_numpy(dtype=np.float64))


def latency_s(latency_cycles: Any, period_ns: Any) -> Any:
    """Latency in seconds, as a number or an array. It is rounded as in the results of a design."""
    return latency_cycles * period_ns * _SECONDS_A_NS
