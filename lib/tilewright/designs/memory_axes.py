"""Axes of a space that set memory sizes, and sentences on designs that have larger memories but need more cycles."""

from collections.abc import Iterator
from typing import Any

import pandas

from tilewright.base.errors import KeyPath, count_of
from tilewright.base.measures import LATENCY_CYCLES
from tilewright.base.units import FieldError, parse_size_bits
from tilewright.designs.results import OK
from tilewright.designs.space import Space


def memory_axes(space: Space) -> tuple[str, ...]:
    """Names of the axes that set the size of at least one memory, directly or through a law. They are in the order of
    the space.
    """
    found = {
        axis.name for axis in space.axes if any(_is_size(path) for settings in axis.settings for path, _ in settings)
    }
    for law in space.laws:
        if law.path is not None and _is_size(law.path):
            found.update(space.axes[place].name for place in law.formula.axes)
    return tuple(axis.name for axis in space.axes if axis.name in found)


def _is_size(path: KeyPath) -> bool:
    return len(path) >= 3 and path[-3] == "memories" and path[-1] == "size"


def slower_with_more_memory(space: Space, table: pandas.DataFrame) -> Iterator[str]:
    """Sentences on memory axes, one for each axis along which the latency rises.

    Two designs are compared if they differ only in this axis and have neighbouring values. The latency rises if the
    design with the larger value takes more cycles. `table` has the columns of `Exploration.table`. The rules that can
    cause a rise are in docs/multi-core-model/large-operands.md and, for one core, in
    docs/model/guarantees.md#what-can-be-relied-on.
    """
    for axis in memory_axes(space):
        ratios = _latency_ratios(space, table, axis)
        worse = ratios[ratios > 1]
        if len(worse):
            yield (
                f"Axis {axis} sets sizes of memories. Designs with neighbouring values of {axis} and equal values of"
                f" all other axes were compared in pairs. In {len(worse):,} of {count_of(len(ratios), 'pair')}, the"
                f" design with the larger value takes more cycles, by up to {worse.max() - 1:.2%}.{_with_unmet(table)}"
                " This increase does"
                f" not show that the larger memory is worse: {_reason(space)}."
            )


def _with_unmet(table: pandas.DataFrame) -> str:
    """Sentence on the pairs with a design that violates a constraint on results; '' if there are no such pairs."""
    count = int(table.loc[(table["status"] == OK) & (table["unmet"] != ""), "index"].nunique())
    if not count:
        return ""
    designs = count_of(count, "design")
    return f" The pairs include the {designs} with results that {'do' if count > 1 else 'does'} not meet a constraint."


def _reason(space: Space) -> str:
    goal = f"the search minimises {space.options.objective}"
    if space.is_of_systems:
        return (
            f"{goal}, and the scheduler prefetches all data that fit into a core, so a larger memory changes its"
            " decisions"
        )
    return goal if _is_free(space) else f"{goal}, and greedy allocation can assign the wrong loops to a larger memory"


def _is_free(space: Space) -> bool:
    return space.options.allocation == "free"


def _latency_ratios(space: Space, table: pandas.DataFrame, axis: str) -> pandas.Series:
    """Ratios of latencies along an axis: latency of a design / latency of the design with the next smaller value of the
    axis. Both designs have the same network and the same values of all other axes.

    The result has a ratio for each row of `table` that has a next smaller design. Rows without results are ignored.
    """
    rows = table[table["status"] == OK]
    rows = rows.assign(size_of_axis=rows[axis].map(_size).astype(float)).dropna(subset=["size_of_axis"])
    others = ["network", *(other.name for other in space.axes if other.name != axis)]
    ordered = rows.sort_values(["size_of_axis", "index"])
    before = ordered.groupby(others, sort=False, observed=True)[LATENCY_CYCLES].shift()
    return (ordered[LATENCY_CYCLES].astype(float) / before.astype(float)).dropna()


def _size(value: Any) -> float:
    """Number by which the values of a memory axis are sorted: a size in bits, or a plain number.

    NaN for other texts.
    """
    if not isinstance(value, str):
        return float(value)
    try:
        return float(parse_size_bits(value))
    except FieldError:
        return float("nan")
