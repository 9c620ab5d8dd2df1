"""Column and sentences on designs with a memory whose costs are extrapolated beyond the table of the library."""

from collections.abc import Iterator, Sequence
from typing import Any

import pandas

from tilewright.base.errors import count_of
from tilewright.designs.columns import EXTRAPOLATED
from tilewright.designs.effects import memories_and_best
from tilewright.designs.front import Front


def extrapolated_texts(memories: Sequence[str]) -> dict[str, str]:
    """Column EXTRAPOLATED with the names of `memories`, for a design in which the costs of these memories are
    extrapolated. {} if there are no such memories.
    """
    return {EXTRAPOLATED: ", ".join(memories)} if memories else {}


def extrapolated_note(row: "pandas.Series[Any]") -> str:
    """Names of the memories of a design whose costs are extrapolated; '' if there are none. `row` is the row of the
    design.
    """
    names = row.get(EXTRAPOLATED)
    return names if isinstance(names, str) else ""


def extrapolated_sentences(front: Front) -> Iterator[str]:
    """Sentence on the compared designs with extrapolated costs. It has the number of these designs, their memories, and
    the best designs among them. There is no sentence if no compared design has extrapolated costs.
    """
    rows = front.compared
    found = rows[rows[EXTRAPOLATED].fillna("") != ""] if EXTRAPOLATED in rows else rows.iloc[:0]
    if found.empty:
        return
    memories, among = memories_and_best(front, found, EXTRAPOLATED)
    of = count_of(len(rows), "compared design" if front.is_whole else "design of a front")
    yield (
        f"In {len(found):,} of {of}, costs of a memory are extrapolated, because its size or the width of its words is"
        f" beyond the table of the library ({memories}).{among} The column {EXTRAPOLATED} names the memories of each"
        " design; `validate` on the hardware file of a design gives the sizes and widths."
    )
