"""Schedule as one HTML file that contains data, style and script.

The page needs no other files and no internet. The script (schedule_data.js, schedule_why.js, schedule_lanes.js,
schedule_viewer.js) draws the visible part on a canvas.

Columns of numbers are packed as little-endian 32-bit integers or doubles. Columns of integers are stored as differences
between neighbours. The bytes of a column are reordered: the first bytes of all values, then the second bytes, and so
on. The reordered bytes are deflated and encoded as base64.
"""

import base64
import re
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tilewright.base.artifacts.digests import canonical_text
from tilewright.base.harmless import html, html_data
from tilewright.base.json_values import JsonObject
from tilewright.base.measures import LATENCY_CYCLES
from tilewright.multicore.scheduling.energy_ledger import CAUSES
from tilewright.results.figure_layout import layer_colour, text_colour
from tilewright.results.multi.bars import CATEGORIES, ScheduleTable, ScheduleView, listeners, schedule_table
from tilewright.results.multi.gantt import CATEGORY_HATCHES, Summary, schedule_title, totals_line
from tilewright.results.multi.memory_figure import memory_curves, most_in_stretches
from tilewright.results.multi.reported_schedule import ReportedSchedule
from tilewright.results.multi.start_causes import CAUSES as START_CAUSES
from tilewright.results.multi.start_causes import start_causes
from tilewright.results.words import short_layer_name

FOLDER = Path(__file__).resolve().parent
PAGE, SCRIPTS = (
    "schedule_page.html",
    (*("schedule_data.js", "schedule_why.js", "schedule_lanes.js", "schedule_viewer.js"),),
)
Column = npt.NDArray[Any]
MOST_CAUSES = 500_000
"""Largest total number of CNs and transfers for which the page gives the causes of their starts. Even at this number,
finding the causes takes seconds.
"""
MEMORY_STRETCHES = 5000
"""Number of time intervals for the curve of a memory. If the content of the memory changes more than 2 x
MEMORY_STRETCHES times, the page has only the largest content in each interval.
"""
_TRANSFER_COLUMNS = ("piece", "cause", "source_core", "target_core", "source_memory", "target_memory")


def schedule_page(view: ScheduleView, summary: Summary | None = None, table: ScheduleTable | None = None) -> str:
    """Text of the HTML page that shows a schedule."""
    parts = {"TITLE": html(schedule_title(view)), "DATA": schedule_data_text(view, summary, table)}
    return re.sub("@(TITLE|DATA)@", lambda mark: parts[mark[1]], schedule_frame())


def schedule_frame() -> str:
    """Text of the HTML file with the placeholders @TITLE@ and @DATA@ for the title and the data of a schedule."""
    scripts = "\n".join((FOLDER / name).read_text("utf-8") for name in SCRIPTS)
    return (FOLDER / PAGE).read_text("utf-8").replace("@SCRIPT@", scripts)


def schedule_data_text(view: ScheduleView, summary: Summary | None = None, table: ScheduleTable | None = None) -> str:
    """Data for the script of the page, as text that is valid in an HTML element."""
    data = schedule_data(view, summary, table or schedule_table(view))
    return html_data(canonical_text(data))


def reported_page(run: ReportedSchedule) -> str:
    """Text of the HTML page that shows the schedule, for the report of a run."""
    return schedule_page(run.view, run.summary, run.table)


def schedule_data(view: ScheduleView, summary: Summary | None, table: ScheduleTable) -> JsonObject:
    """Data for the script of the page: names, rows, lanes and packed columns."""
    schedule, names = view.schedule, view.names
    memories, curves = _memories(view)
    causes = start_causes(view) if view.node_count + len(schedule.transfers) <= MOST_CAUSES else None
    whys = {} if causes is None else {"cause_kind": causes.kind, "cause_item": causes.item}
    return {
        "title": schedule_title(view),
        "totals": totals_line(schedule.latency_cycles, schedule.energy_pj, summary),
        LATENCY_CYCLES: schedule.latency_cycles,
        "rows": [
            {"name": row.name, "kind": row.kind, "lanes": row.lanes, "busy_cycles": row.busy_cycles}
            for row in table.rows
        ],
        "lanes": _lanes(table),
        "memory_rows": memories,
        "start_causes": list(START_CAUSES),
        "layers": _layers(view),
        "categories": [
            {"name": name, "hatch": hatch[:1]} for name, hatch in zip(CATEGORIES, CATEGORY_HATCHES, strict=True)
        ],
        "causes": list(CAUSES),
        "cores": list(names.core_names),
        "memories": list(names.memory_names),
        "tensors": list(names.tensor_names),
        "columns": {name: packed_column(column) for name, column in (_columns(view, table) | curves | whys).items()},
    }


def packed_column(values: Column) -> JsonObject:
    """Column packed for the script of the page. Integers are stored as differences between neighbours, with the type
    `i4` if all integers fit into 32 bits, otherwise with the type `f8`. Floating-point numbers have the type `f8`.
    """
    if values.dtype.kind == "f":
        return _packed(values.astype("<f8"), is_delta=False)
    small = not len(values) or (int(values.min()) >= -(2**31) and int(values.max()) < 2**31)
    # Differences wrap around in 32 bits, as the sums in the script do; as doubles they are exact below 2^53.
    differences = np.diff(values.astype(np.int64), prepend=0)
    return _packed(differences.astype("<i4" if small else "<f8"), is_delta=True)


def _packed(values: Column, is_delta: bool) -> JsonObject:
    planes = values.view(np.uint8).reshape(len(values), values.itemsize).T
    text = base64.b64encode(zlib.compress(planes.tobytes(), 6)).decode("ascii")
    return {"type": values.dtype.str[1:], "length": len(values), "delta": is_delta, "data": text}


def _lanes(table: ScheduleTable) -> list[dict[str, int]]:
    found = []
    first_of_row = np.searchsorted(table.row, np.arange(len(table.rows) + 1))
    for number, row in enumerate(table.rows):
        first, last = first_of_row[number : number + 2].tolist()
        bounds = first + np.searchsorted(table.lane[first:last], np.arange(row.lanes + 1))
        for lane, (start, end) in enumerate(zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)):
            found.append({"row": number, "lane": lane, "first": start, "last": end})
    return found


def _memories(view: ScheduleView) -> tuple[list[dict[str, Any]], dict[str, Column]]:
    """Pair (rows, columns) for the memories. There is one row for each on-chip memory; memories that are always empty
    are left out. All memories share two columns: times, and the bits in a memory from each time on. The fields `first`
    and `last` of a row say which entries of the columns belong to the memory: those from `first` to before `last`.
    """
    rows, times, values = [], [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for curve in memory_curves(view):
        when, bits = most_in_stretches(curve, max(view.schedule.latency_cycles, 1), MEMORY_STRETCHES)
        first = sum(map(len, times))
        peak = int(curve.values.max(initial=0))
        row = {"name": curve.name, "capacity_bits": int(curve.limit), "peak_bits": peak, "text": curve.text}
        rows.append({**row, "first": first, "last": first + len(when)})
        times.append(when.astype(np.int64))
        values.append(bits.astype(np.int64))
    return rows, {"memory_time": np.concatenate(times), "memory_bits": np.concatenate(values)}


def _layers(view: ScheduleView) -> list[JsonObject]:
    names, types = view.names.layer_names, view.names.layer_operator_types
    cut = view.tiles.dimensions if view.tiles is not None else ((),) * len(names)
    return [
        {
            "name": name,
            "short": short_layer_name(name, operator_type),
            "operator_type": operator_type,
            "colour": layer_colour(layer),
            "text": text_colour(layer_colour(layer)),
            "tile_dimensions": list(dimensions),
        }
        for layer, (name, operator_type, dimensions) in enumerate(zip(names, types, cut, strict=True))
    ]


def _columns(view: ScheduleView, table: ScheduleTable) -> dict[str, Column]:
    artifact, schedule = view.artifact, view.schedule
    moves, streams = schedule.transfers, schedule.streams
    energies, node_energy = np.unique(artifact.cn_energy_pj, return_inverse=True)
    source, target, bits = view.edges
    heard = listeners(view)
    counts = [len(heard.get(transfer, ())) for transfer in range(len(moves))]
    columns: dict[str, Column] = {
        "bar_start": table.start_cycles,
        "bar_duration": table.end_cycles - table.start_cycles,
        "bar_kind": table.kind,
        "bar_item": table.item,
        "bar_layer": table.layer,
        "bar_category": table.category,
        "first_node": view.first_node,
        "node_group": artifact.graph.group,
        "node_energy": node_energy.reshape(-1),
        "energy_values": energies,
        "edge_source": source,
        "edge_target": target,
        "edge_bits": bits,
        "piece_bits": artifact.graph.piece_bits,
        "piece_producer": artifact.graph.piece_producer,
        "piece_tensor": artifact.piece_tensor,
        "stream_node": streams["cn"],
        "stream_bits": streams["bits"],
        "stream_rate": streams["bits_per_cycle"],
        "transfer_rate": moves["bits_per_cycle"],
        "transfer_category": view.transfer_category,
        "listener_first": np.cumsum([0, *counts]),
        "listener": np.array([one for transfer in sorted(heard) for one in heard[transfer]], np.int64),
    }
    columns |= {f"transfer_{name}": moves[name] for name in _TRANSFER_COLUMNS}
    for place, (start, end) in enumerate(zip(view.tiles.starts, view.tiles.ends, strict=True) if view.tiles else ()):
        columns |= {f"tile_start_{place}": start, f"tile_end_{place}": end}
    return columns
