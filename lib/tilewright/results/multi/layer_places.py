"""Table of the layers of a schedule: the cores on which each layer runs, and when it runs."""

import itertools
from typing import TYPE_CHECKING

import numpy as np

from tilewright.results.columns import Table, attribute, frame_of
from tilewright.results.multi.bars import ScheduleView
from tilewright.results.multi.reported_schedule import ReportedSchedule
from tilewright.results.multi.use import ScheduledLayer

if TYPE_CHECKING:  # slow to load, and rows alone need none
    import pandas

LAYERS: Table[ScheduledLayer] = (
    attribute("layer", "Number of the layer in the CN graph."),
    attribute("name", "Name of the layer."),
    attribute("operator_type", "Operator of the layer, as named in the network file."),
    attribute("stack", "Number of the stack that contains the layer; empty for a layer without CNs."),
    attribute("cn_count", "Number of computation nodes (CNs)."),
    attribute("groups", "Number of groups of CNs; one core runs all CNs of a group."),
    attribute("cores", "Ids of the cores that run the layer, separated by blanks."),
    attribute("first_start_cycles", "Start of the first CN of the layer."),
    attribute("last_end_cycles", "End of the last CN of the layer."),
    attribute("busy_cycles", "Sum of the runtimes of the CNs of the layer."),
    attribute("on_core_energy_pj", "Energy of the CNs of the layer on their cores."),
)
"""Columns of the table that has a row for each layer of a schedule."""


def layer_places(view: ScheduleView) -> list[ScheduledLayer]:
    """Cores and times of each layer, in the order of the network."""
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
            ScheduledLayer(
                layer=layer,
                name=names.layer_names[layer],
                operator_type=names.layer_operator_types[layer],
                stack=int(graph.stack[first]) if filled else None,
                cn_count=last - first,
                groups=len(np.unique(graph.group[own])),
                cores=" ".join(str(names.core_ids[core]) for core in cores),
                first_start_cycles=int(schedule.start_cycles[own].min()) if filled else None,
                last_end_cycles=int(schedule.end_cycles[own].max()) if filled else None,
                busy_cycles=int(busy[layer]),
                on_core_energy_pj=float(energy[layer]),
            )
        )
    return rows


def layer_place_table(view: ScheduleView) -> "pandas.DataFrame":
    """Table with the cores and times of each layer."""
    return frame_of(LAYERS, layer_places(view))


def reported_layers(run: ReportedSchedule) -> "pandas.DataFrame":
    """Table with the cores and times of each layer, for the report of a run."""
    return layer_place_table(run.view)
