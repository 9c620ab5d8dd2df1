"""Tables of a schedule: cores, memories and links."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from tilewright.base.artifacts.codec import decode
from tilewright.base.measures import ENERGY_PJ
from tilewright.cost.ledger import energy_columns
from tilewright.results.columns import Column, Columns, Table, attribute, frame_of, row_of
from tilewright.results.multi.reported_schedule import ReportedSchedule
from tilewright.results.multi.use import CoreUse, LinkUse, MemoryUse

if TYPE_CHECKING:  # slow to load, and rows alone need none
    import pandas


Summary = Mapping[str, Any]


class _CoreRow(NamedTuple):
    """Core with its fullest memory. The fullest memory has the largest peak share: the peak of its content, divided by
    its capacity. `fullest` is None if the core has no memory.
    """

    core: CoreUse
    fullest: MemoryUse | None


def _of_core(key: str, sentence: str) -> Column[_CoreRow]:
    return Column(key, sentence, lambda row: getattr(row.core, key))


def _of_fullest(key: str, sentence: str, name: str) -> Column[_CoreRow]:
    return Column(key, sentence, lambda row: getattr(row.fullest, name, None))


CORES: Table[_CoreRow] = (
    _of_core("core", "Id in the accelerator file."),
    _of_core("name", "Name of the core file."),
    _of_core("role", "Role of the core: `compute`, `pooling` or `simd`."),
    _of_core("cn_count", "Number of CNs that the core runs."),
    _of_core("busy_cycles", "Cycles in which the core runs a CN."),
    _of_core("utilisation", "Share of the latency in which the core runs a CN."),
    _of_core(
        "array_utilisation",
        "Share of the latency that its CNs would take if all units of its array worked in every cycle.",
    ),
    _of_core(ENERGY_PJ, "Energy on the core."),
    _of_core("operational_energy_pj", "Energy of the array of the core."),
    Column(
        "memory_energy_pj", "Energy of the memories of the core.", lambda row: sum(row.core.memory_energy_pj.values())
    ),
    Columns(
        "<term>_energy_pj",
        "Further terms of the energy on the core.",
        lambda row: energy_columns(dict(row.core.term_energy_pj)),
    ),
    _of_fullest(
        "fullest_memory",
        "Memory of the core with the largest `peak_share`; cores can share this memory.",
        "name",
    ),
    _of_fullest("peak_bits", "Largest number of bits in `fullest_memory`.", "peak_bits"),
    _of_fullest("capacity_bits", "Size of `fullest_memory`.", "capacity_bits"),
    _of_fullest("peak_share", "`peak_bits` divided by `capacity_bits`.", "peak_share"),
)
"""Columns of the table that has a row for each core of a schedule."""
MEMORIES: Table[MemoryUse] = (
    attribute("name", "Ids of the cores that use the memory, followed by its name."),
    Column(
        "cores", "Ids of the cores that use the memory, separated by blanks.", lambda use: " ".join(map(str, use.cores))
    ),
    attribute("capacity_bits", "Size of the memory."),
    attribute("peak_bits", "Largest number of bits in the memory."),
    attribute("peak_share", "`peak_bits` divided by `capacity_bits`."),
)
"""Columns of the table that has a row for each memory of a schedule."""
LINKS: Table[LinkUse] = (
    attribute("name", "Name of the link."),
    attribute("kind", "Kind of link."),
    attribute("width_bits_per_cycle", "Width of the link; empty for a link without a limit."),
    attribute("bits", "Bits that moved over the link."),
    attribute("busy", "Share of the latency in which data move over the link."),
    attribute("utilisation", "Moved bits divided by width times latency; empty for a link without a limit."),
)
"""Columns of the table that has a row for each link of a schedule."""


def core_use_rows(summary: Summary) -> list[dict[str, Any]]:
    """Rows of the table of cores: each core with its fullest memory."""
    return [row_of(CORES, row) for row in _core_rows(summary)]


def core_use_table(summary: Summary) -> "pandas.DataFrame":
    """Table of cores. A memory that several cores share can be in the rows of all these cores."""
    return frame_of(CORES, _core_rows(summary))


def memory_use_table(summary: Summary) -> "pandas.DataFrame":
    """Table with a row for each memory of a schedule: its cores, its capacity and its largest content."""
    return frame_of(MEMORIES, decode(tuple[MemoryUse, ...], summary["memories"]))


def link_use_table(summary: Summary) -> "pandas.DataFrame":
    """Table of links."""
    return frame_of(LINKS, decode(tuple[LinkUse, ...], summary["links"]))


def _core_rows(summary: Summary) -> list[_CoreRow]:
    memories = decode(tuple[MemoryUse, ...], summary["memories"])
    rows = []
    for core in decode(tuple[CoreUse, ...], summary["cores"]):
        own = [memory for memory in memories if core.core in memory.cores]
        rows.append(_CoreRow(core, max(own, key=lambda memory: memory.peak_share, default=None)))
    return rows


def reported_cores(run: ReportedSchedule) -> "pandas.DataFrame":
    """Table of cores, for the report of a run."""
    return core_use_table(run.summary)


def reported_memories(run: ReportedSchedule) -> "pandas.DataFrame":
    """Table of memories, for the report of a run."""
    return memory_use_table(run.summary)


def reported_links(run: ReportedSchedule) -> "pandas.DataFrame":
    """Table of links, for the report of a run."""
    return link_use_table(run.summary)
