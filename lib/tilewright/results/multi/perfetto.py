"""Schedule as a trace in the Trace Event Format (JSON), which Perfetto and chrome://tracing can open.

The trace has three processes: cores, links and memories. Each core and each lane of a link is a thread. A bar is a
complete event (`X`), and a memory is a counter (`C`). Data from one CN to another are flow events (`s`, `f`). A cycle
is shown as a microsecond.

The trace of a large schedule has fewer details, so that the two programs can still open it. `otherData` lists the
details that are left out.
"""

from collections.abc import Iterator
from typing import Any

from tilewright.base.artifacts.digests import canonical_text
from tilewright.base.harmless import perfetto
from tilewright.base.json_values import JsonObject
from tilewright.base.measures import ENERGY_PJ, LATENCY_CYCLES
from tilewright.multicore.scheduling.energy_ledger import CAUSES
from tilewright.results.multi.bars import (
    CATEGORIES,
    CORE,
    NODE_BAR,
    TRANSFER_BAR,
    ScheduleTable,
    ScheduleView,
    listeners,
    schedule_table,
)
from tilewright.results.multi.reported_schedule import ReportedSchedule
from tilewright.results.words import short_layer_name

CORES, LINKS, MEMORIES = 1, 2, 3
"""Process ids of the three processes of a trace: cores, links and memories."""
MOST_FLOWS = 20_000
"""Largest number of dependences in a trace, with two events each. If a schedule has more dependences, the trace has
none.
"""
MOST_DETAILED = 300_000
"""Largest number of bars in a detailed trace. If a schedule has more bars, the trace shows each bar with only its name
and its times, and has no memories and no flows.
"""
Event = JsonObject


def trace_events(view: ScheduleView, table: ScheduleTable | None = None) -> Iterator[Event]:
    """Events of the trace: names of processes and threads, then bars sorted by thread and start, then contents of
    memories, then dependences between CNs. A trace with more than MOST_DETAILED bars has no memories and no
    dependences.
    """
    table = table or schedule_table(view)
    threads = _threads(table)
    yield from _names(view, table, threads)
    if table.bar_count > MOST_DETAILED:
        yield from _plain_bars(view, table, threads)
        return
    yield from _bars(view, table, threads)
    yield from _memories(view)
    if _has_flows(view):
        yield from _flows(view, table, threads)


def trace_text(view: ScheduleView, table: ScheduleTable | None = None) -> str:
    """Text of a JSON file with the trace of a schedule, one event per line. `table` has the bars of the schedule. If
    `table` is None, the bars are computed.
    """
    table = table or schedule_table(view)
    events = ",\n".join(_text(event) for event in trace_events(view, table))
    is_detailed = table.bar_count <= MOST_DETAILED
    has_flows = is_detailed and _has_flows(view)
    many = f"left out, like the memories, because there are more than {MOST_DETAILED} slices"
    about: JsonObject = {
        "network": view.names.network,
        "accelerator": view.names.accelerator,
        LATENCY_CYCLES: view.schedule.latency_cycles,
        ENERGY_PJ: view.schedule.energy_pj,
        "unit": "a microsecond is a cycle",
        "details": "all" if is_detailed else many,
        "dependencies": "flow events" if has_flows else "left out: too many",
    }
    return f'{{"traceEvents":[\n{events}\n],"displayTimeUnit":"ms","otherData":{_text(about)}}}\n'


def _text(value: JsonObject) -> str:
    text = canonical_text(value)
    # Nearly all events have nothing to show as an escape, and a trace has very many events.
    return text if text.isprintable() and "\\" not in text else canonical_text(perfetto(value))


def reported_trace(run: ReportedSchedule) -> str:
    """Text of the trace, for the report of a run."""
    return trace_text(run.view, run.table)


def slice_name(view: ScheduleView, node: int) -> str:
    """Name of the slice of a CN. It contains the name of the layer, because Perfetto derives the colour of a slice from
    its name without digits.
    """
    layer, names = int(view.node_layer[node]), view.names
    return f"{view.node_name(node)} {short_layer_name(names.layer_names[layer], names.layer_operator_types[layer])}"


def _has_flows(view: ScheduleView) -> bool:
    return len(view.edges[0]) <= MOST_FLOWS


def _threads(table: ScheduleTable) -> list[list[tuple[int, int]]]:
    """Pair (process, thread) of each lane, in a list for each row. The threads of a process are counted from 1."""
    next_thread = {CORES: 1, LINKS: 1}
    found = []
    for row in table.rows:
        process = CORES if row.kind == CORE else LINKS
        first = next_thread[process]
        next_thread[process] += row.lanes
        found.append([(process, first + lane) for lane in range(row.lanes)])
    return found


def _names(view: ScheduleView, table: ScheduleTable, threads: list[list[tuple[int, int]]]) -> Iterator[Event]:
    for process, name in ((CORES, "cores"), (LINKS, "links"), (MEMORIES, "memories")):
        yield _metadata("process_name", process, 0, name=name)
        yield _metadata("process_sort_index", process, 0, sort_index=process)
    for row, lanes in zip(table.rows, threads, strict=True):
        for lane, (process, thread) in enumerate(lanes):
            yield _metadata("thread_name", process, thread, name=row.name if lane == 0 else f"{row.name} ({lane + 1})")
            yield _metadata("thread_sort_index", process, thread, sort_index=thread)


def _metadata(kind: str, process: int, thread: int, **args: Any) -> Event:
    return {"name": kind, "ph": "M", "pid": process, "tid": thread, "args": args}


def _bars(view: ScheduleView, table: ScheduleTable, threads: list[list[tuple[int, int]]]) -> Iterator[Event]:
    heard = listeners(view)
    columns = (table.row, table.lane, table.start_cycles, table.end_cycles, table.kind, table.item, table.category)
    for row, lane, start, end, kind, item, category in zip(*(column.tolist() for column in columns), strict=True):
        process, thread = threads[row][lane]
        if kind == NODE_BAR:
            name, group, args = slice_name(view, item), "cn", _node_args(view, item)
        elif kind == TRANSFER_BAR:
            name, group, args = CATEGORIES[category], "transfer", _transfer_args(view, item, heard.get(item, []))
        else:
            name, group, args = CATEGORIES[category], "stream", _stream_args(view, item)
        yield {
            "name": name,
            "cat": group,
            "ph": "X",
            "ts": start,
            "dur": end - start,
            "pid": process,
            "tid": thread,
            "args": args,
        }


def _plain_bars(view: ScheduleView, table: ScheduleTable, threads: list[list[tuple[int, int]]]) -> Iterator[Event]:
    """Slices (bars) of a trace with few details: name, times and thread. The name is that of the CN and its layer, or
    the category of the data that move.
    """
    columns = (table.row, table.lane, table.start_cycles, table.end_cycles, table.kind, table.item, table.category)
    for row, lane, start, end, kind, item, category in zip(*(column.tolist() for column in columns), strict=True):
        process, thread = threads[row][lane]
        name = slice_name(view, item) if kind == NODE_BAR else CATEGORIES[category]
        yield {"name": name, "ph": "X", "ts": start, "dur": end - start, "pid": process, "tid": thread}


def _node_args(view: ScheduleView, node: int) -> JsonObject:
    layer = int(view.node_layer[node])
    args: JsonObject = {
        "cn": node,
        "layer": view.names.layer_names[layer],
        "operator_type": view.names.layer_operator_types[layer],
        "group": int(view.artifact.graph.group[node]),
        ENERGY_PJ: float(view.artifact.cn_energy_pj[node]),
    }
    if view.tiles is not None:
        for place, dimension in enumerate(view.tiles.dimensions[layer]):
            args[dimension] = f"{view.tiles.starts[place][node]} to {view.tiles.ends[place][node] - 1}"
    return args


def _transfer_args(view: ScheduleView, transfer: int, others: list[int]) -> JsonObject:
    move, names, artifact = view.schedule.transfers[transfer], view.names, view.artifact
    piece, producer = int(move["piece"]), int(artifact.graph.piece_producer[move["piece"]])
    args: JsonObject = {
        "transfer": transfer,
        "tensor": names.tensor_names[int(artifact.piece_tensor[piece])],
        "piece": piece,
        "bits": int(artifact.graph.piece_bits[piece]),
        "from": names.core_names[int(move["source_core"])],
        "to": [names.core_names[int(view.schedule.transfers[one]["target_core"])] for one in (transfer, *others)],
        "cause": CAUSES[int(move["cause"])],
        "bits_per_cycle": int(move["bits_per_cycle"]),
    }
    return args | ({"made_by": f"CN {view.node_name(producer)}"} if producer >= 0 else {})


def _stream_args(view: ScheduleView, place: int) -> JsonObject:
    stream = view.schedule.streams[place]
    return {
        "stream": place,
        "of": f"CN {view.node_name(int(stream['cn']))}",
        "bits": int(stream["bits"]),
        "bits_per_cycle": int(stream["bits_per_cycle"]),
    }


def _memories(view: ScheduleView) -> Iterator[Event]:
    """Counter events for the bits in each on-chip memory over time, one counter for each memory. Memories that are
    always empty are left out.
    """
    for memory, name in enumerate(view.names.memory_names):
        if memory == view.system.off_chip_memory:
            continue
        times, stored = view.schedule.memory_use(memory)
        for time, bits in zip(times.tolist(), stored.tolist(), strict=True):
            yield {"name": name, "ph": "C", "ts": time, "pid": MEMORIES, "tid": 0, "args": {"bits": bits}}


def _flows(view: ScheduleView, table: ScheduleTable, threads: list[list[tuple[int, int]]]) -> Iterator[Event]:
    """Flow events for the edges of the CN graph. An edge goes from a CN that makes data to a CN that reads the data.
    The flow of the edge starts in the last cycle of the first CN and ends in the first cycle of the second CN. The id
    of a flow is the index of its edge. `threads` has the pair (process, thread) of each lane, in a list for each row.
    """
    place = {
        item: threads[row][0]
        for row, kind, item in zip(table.row.tolist(), table.kind.tolist(), table.item.tolist(), strict=True)
        if kind == NODE_BAR
    }
    start, end = view.schedule.start_cycles, view.schedule.end_cycles
    for number, (source, target) in enumerate(zip(view.edges[0].tolist(), view.edges[1].tolist(), strict=True)):
        for phase, node, time in (("s", source, int(end[source]) - 1), ("f", target, int(start[target]))):
            process, thread = place[node]
            event: Event = {"name": "data", "cat": "data", "ph": phase, "id": number, "ts": time}
            yield event | {"pid": process, "tid": thread} | ({"bp": "e"} if phase == "f" else {})
