"""Columns with access times of memories, for the table of designs."""

from collections.abc import Sequence

from tilewright.designs.columns import ACCESS_CYCLES, ACCESS_NS, SLOW_MEMORIES
from tilewright.hardware.access_times import AccessTime


def access_columns(times: Sequence[AccessTime]) -> dict[str, float]:
    """Values of the columns ACCESS_NS and ACCESS_CYCLES for a design with the memories `times`. The cycles are left out
    if the clock is unknown. {} if no access time is known.
    """
    if not times:
        return {}
    longest = max(times, key=lambda one: one.access_ns)
    found = {ACCESS_NS: longest.access_ns}
    if longest.period_ns is not None:
        found[ACCESS_CYCLES] = longest.access_ns / longest.period_ns
    return found


def access_texts(times: Sequence[AccessTime]) -> dict[str, str]:
    """Column SLOW_MEMORIES of a design, which has the names of the slow memories in `times`; {} if no access time is
    known."""
    return {SLOW_MEMORIES: ", ".join(one.memory for one in times if one.is_slow)} if times else {}
