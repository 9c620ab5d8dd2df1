"""Tables of a schedule: place and time of each layer, use of each core, peak of its memories, and costs."""

import itertools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.base.json_values import JsonObject
from tilewright.base.measures import ENERGY_PJ
from tilewright.cost.ledger import energy_columns
from tilewright.results.multi.bars import ScheduleView

if TYPE_CHECKING:
    import pandas


def layer_use_rows(view: ScheduleView) -> list[JsonObject]:
    """Rows, one per layer in the order of the network; cores are ids, `busy_cycles` is the sum over its CNs."""
    graph, schedule, names = view.artifact.graph, view.schedule, view.names
    count = len(names.layer_names)
    busy = np.zeros(count, np.int64)
    np.add.at(busy, graph.layer, schedule.end_cycles - schedule.start_cycles)
    energy = np.bincount(graph.layer, view.artifact.cn_energy_pj, count)
    rows = []
    for layer, (first, last) in enumerate(itertools.pairwise(view.first_node.tolist())):
        own = slice(first, last)
        cores = np.unique(schedule.allocation[own]).tolist()
        filled = last > first
        rows.append(
            {
                "layer": layer,
                "name": names.layer_names[layer],
                "operator_type": names.layer_operator_types[layer],
                "stack": int(graph.stack[first]) if filled else None,
                "cn_count": last - first,
                "groups": len(np.unique(graph.group[own])),
                "cores": " ".join(str(names.core_ids[core]) for core in cores),
                "first_start_cycles": int(schedule.start_cycles[own].min()) if filled else None,
                "last_end_cycles": int(schedule.end_cycles[own].max()) if filled else None,
                "busy_cycles": int(busy[layer]),
                "on_core_energy_pj": float(energy[layer]),
            }
        )
    return rows


def layer_use_table(view: ScheduleView) -> "pandas.DataFrame":
    """Table of the rows of `layer_use_rows`."""
    import pandas  # slow to load, and the rows alone need none

    return pandas.DataFrame(layer_use_rows(view))


Summary = Mapping[str, Any]
_COLUMNS = (
    "core",
    "name",
    "role",
    "cn_count",
    "busy_cycles",
    "utilisation",
    "array_utilisation",
    ENERGY_PJ,
    "operational_energy_pj",
)


def core_use_rows(summary: Summary) -> list[dict[str, Any]]:
    """Rows, one per core of a summary: its numbers, and name, peak and capacity of its fullest memory.

    A memory that cores share is in the row of each of these cores.
    """
    rows = []
    for core in summary["cores"]:
        memories = [memory for memory in summary["memories"] if core["core"] in memory["cores"]]
        row = {column: core[column] for column in _COLUMNS}
        row["memory_energy_pj"] = sum(core["memory_energy_pj"].values())
        row |= energy_columns(core.get("term_energy_pj", {}))
        fullest: Mapping[str, Any] = max(memories, key=lambda memory: memory["peak_share"], default={})
        row["fullest_memory"] = fullest.get("name")
        row |= {key: fullest.get(key) for key in ("peak_bits", "capacity_bits", "peak_share")}
        rows.append(row)
    return rows


def core_use_table(summary: Summary) -> "pandas.DataFrame":
    """Table of the rows of `core_use_rows`."""
    import pandas  # slow to load, and the rows alone need none

    return pandas.DataFrame(core_use_rows(summary))
