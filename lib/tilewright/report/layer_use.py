"""A table of a schedule: where and when each layer runs, and what it costs there."""

import itertools
from typing import Any

import numpy as np
import pandas

from tilewright.report.schedule_view import ScheduleView


def layer_use_rows(view: ScheduleView) -> list[dict[str, Any]]:
    """A row for each layer in the order of the network; cores are ids, `busy_cycles` adds up its CNs."""
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


def layer_use_table(view: ScheduleView) -> pandas.DataFrame:
    """The rows as a table."""
    return pandas.DataFrame(layer_use_rows(view))
