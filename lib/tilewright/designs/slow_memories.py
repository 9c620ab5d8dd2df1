"""Sentences on designs with a memory whose access takes longer than a clock cycle."""

from collections.abc import Iterator
from typing import Any

import pandas

from tilewright.base.errors import count_of
from tilewright.designs.columns import ACCESS, ACCESS_CYCLES, ACCESS_NS, SLOW_MEMORIES
from tilewright.designs.effects import memories_and_best
from tilewright.designs.front import Front
from tilewright.hardware.access_times import access_note

EXCLUDING = f"{ACCESS_CYCLES} <= 1"
"""Constraint of a space that excludes designs with a memory whose access takes longer than a clock cycle."""
PIPELINED = (
    "Latencies are valid only if these memories are pipelined: a new access begins in every cycle. The further cycles"
    " of an access are not counted"
)


def are_slow(rows: pandas.DataFrame) -> pandas.Series:
    """Truth value for each row of designs: True if the design has a memory whose access takes longer than a cycle."""
    if SLOW_MEMORIES not in rows:
        return pandas.Series(False, rows.index)
    return rows[SLOW_MEMORIES].fillna("") != ""


def slow_note(row: "pandas.Series[Any]") -> str:
    """Text that names the slow memories of a design, with the longest access time; '' if there are none. An access to a
    slow memory takes longer than a cycle. `row` is the row of the design.
    """
    names = str(row.get(SLOW_MEMORIES) or "")
    if not names or row[SLOW_MEMORIES] != row[SLOW_MEMORIES]:
        return ""
    access_ns = float(row[ACCESS_NS])
    return f"{names}: {access_note(access_ns, access_ns / float(row[ACCESS_CYCLES]))}"


def slow_sentences(front: Front) -> Iterator[str]:
    """Sentence on the compared designs with a memory whose access takes longer than a cycle. It has the number of these
    designs, their memories, the longest access, and the best designs among them. There is no sentence if no compared
    design has such a memory.
    """
    rows = front.compared
    is_slow = are_slow(rows)
    if not is_slow.any():
        return
    slow = rows[is_slow]
    memories, among = memories_and_best(front, slow, SLOW_MEMORIES)
    longest = slow.loc[slow[ACCESS_CYCLES].idxmax()]
    of = count_of(len(rows), "compared design" if front.is_whole else "design of a front")
    yield (
        f"In {len(slow):,} of {of}, an access of a memory takes longer than a clock cycle ({memories}). The longest is"
        f" in {longest['design']}: {slow_note(longest)}. {PIPELINED}.{among} The constraint `{EXCLUDING}` excludes"
        f" these designs; the columns {', '.join(ACCESS)} have the numbers of each design."
    )
