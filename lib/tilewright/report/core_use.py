"""A table of the cores of a schedule: what each does, what it costs, how full its memories get."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas

Summary = Mapping[str, Any]
_COLUMNS = (
    "core",
    "name",
    "role",
    "cn_count",
    "busy_cycles",
    "utilisation",
    "array_utilisation",
    "energy_pj",
    "operational_energy_pj",
)


def core_use_rows(summary: Summary) -> list[dict[str, Any]]:
    """A row for each core of a summary: its numbers, and of its fullest memory name, peak and capacity.

    A memory that cores share is in the row of each of them.
    """
    rows = []
    for core in summary["cores"]:
        memories = [memory for memory in summary["memories"] if core["core"] in memory["cores"]]
        row = {column: core[column] for column in _COLUMNS}
        row["memory_energy_pj"] = sum(core["memory_energy_pj"].values())
        fullest: Mapping[str, Any] = max(memories, key=lambda memory: memory["peak_share"], default={})
        row["fullest_memory"] = fullest.get("name")
        row |= {key: fullest.get(key) for key in ("peak_bits", "capacity_bits", "peak_share")}
        rows.append(row)
    return rows


def core_use_table(summary: Summary) -> "pandas.DataFrame":
    """The rows as a table."""
    import pandas  # slow to load, and the rows alone need none

    return pandas.DataFrame(core_use_rows(summary))
