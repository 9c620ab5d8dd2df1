"""The trace for Perfetto."""

import itertools
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tilewright.base.errors import MappingError
from tilewright.results.multi import perfetto
from tilewright.results.multi.bars import ScheduleView, schedule_table
from tilewright.results.multi.perfetto import CORES, LINKS, MEMORIES, trace_text

from tests.unit.results.multi.schedule_cases import broadcast, every_category, random_view, view_of

SEEDS = range(12)
Event = dict[str, Any]
FIELDS = {
    "M": {"name", "ph", "pid", "tid", "args"},
    "X": {"name", "cat", "ph", "ts", "dur", "pid", "tid", "args"},
    "C": {"name", "ph", "ts", "pid", "tid", "args"},
    "s": {"name", "cat", "ph", "id", "ts", "pid", "tid"},
    "f": {"name", "cat", "ph", "id", "ts", "pid", "tid", "bp"},
}
"""Fields of each phase, as the Trace Event Format requires them."""


def events(view: ScheduleView) -> dict[str, list[Event]]:
    """The events of a trace by phase."""
    found: dict[str, list[Event]] = defaultdict(list)
    for event in json.loads(trace_text(view))["traceEvents"]:
        found[event["ph"]].append(event)
    return found


@pytest.mark.parametrize("seed", SEEDS)
def test_events_are_valid(seed: int) -> None:
    """Each event has the fields of its phase, whole numbers for times and ids, and a named thread."""
    found = events(random_view(seed))
    assert set(found) <= set(FIELDS)
    named = {(e["pid"], e["tid"]) for e in found["M"] if e["name"] == "thread_name"}
    for phase, of_phase in found.items():
        for event in of_phase:
            assert set(event) == FIELDS[phase]
            for field in ("ts", "dur", "pid", "tid", "id"):
                assert type(event.get(field, 0)) is int
            assert event.get("ts", 0) >= 0
            assert phase in "MC" or (event["pid"], event["tid"]) in named


@pytest.mark.parametrize("seed", SEEDS)
def test_slices_of_a_thread_do_not_overlap(seed: int) -> None:
    """Bars that overlap on a link are in different threads, as slices of one thread would have to be nested."""
    threads: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
    for event in events(random_view(seed))["X"]:
        threads[event["pid"], event["tid"]].append((event["ts"], event["dur"]))
    for slices in threads.values():
        assert slices == sorted(slices)
        assert all(start + length <= after for (start, length), (after, _) in itertools.pairwise(slices))


@pytest.mark.parametrize("seed", SEEDS)
def test_every_bar_is_a_slice(seed: int) -> None:
    """Every bar is a slice; CNs have their times and energy on the thread of their core."""
    view = random_view(seed)
    found = events(view)
    assert len(found["X"]) == schedule_table(view).bar_count
    name = {(e["pid"], e["tid"]): e["args"]["name"] for e in found["M"] if e["name"] == "thread_name"}
    nodes = sorted((e for e in found["X"] if e["cat"] == "cn"), key=lambda event: event["args"]["cn"])
    schedule = view.schedule
    assert [e["ts"] for e in nodes] == schedule.start_cycles.tolist()
    assert [e["ts"] + e["dur"] for e in nodes] == schedule.end_cycles.tolist()
    assert [e["args"]["energy_pj"] for e in nodes] == view.artifact.cn_energy_pj.tolist()
    layers = [f"layer{layer}/conv" for layer in view.node_layer]
    assert [e["name"] for e in nodes] == [f"{view.node_name(cn)} {layers[cn]}" for cn in range(view.node_count)]
    assert [name[e["pid"], e["tid"]] for e in nodes] == [f"{core}: core" for core in schedule.allocation]
    moved = {e["args"]["transfer"]: e["args"] for e in found["X"] if e["cat"] == "transfer"}
    for transfer, args in moved.items():
        move = schedule.transfers[transfer]
        assert args["bits"] == view.artifact.graph.piece_bits[move["piece"]]
        assert args["bits_per_cycle"] == move["bits_per_cycle"]


@pytest.mark.parametrize("seed", SEEDS)
def test_flows_join_slices_and_counters_follow_memories(seed: int) -> None:
    """A flow starts within its producer and ends at its consumer; counters have the bits of memories over time."""
    view = random_view(seed)
    found = events(view)
    source, target, _ = view.edges
    starts, ends = ({e["id"]: e for e in found[phase]} for phase in "sf")
    assert set(starts) == set(ends) == set(range(len(source)))
    for edge, (producer, consumer) in enumerate(zip(source.tolist(), target.tolist(), strict=True)):
        assert starts[edge]["ts"] == view.schedule.end_cycles[producer] - 1
        assert ends[edge]["ts"] == view.schedule.start_cycles[consumer]
    assert {e["pid"] for e in found["C"]} <= {MEMORIES}
    for memory, name in enumerate(view.names.memory_names):
        counted = [(e["ts"], e["args"]["bits"]) for e in found["C"] if e["name"] == name]
        times, stored = view.schedule.memory_use(memory)
        wanted = zip(times.tolist(), stored.tolist(), strict=True) if memory != view.system.off_chip_memory else ()
        assert counted == list(wanted)


def test_a_broadcast_names_all_who_get_the_data() -> None:
    """A broadcast is one slice on the bus and names both receivers."""
    (move,) = (event for event in events(broadcast())["X"] if event["cat"] == "transfer")
    assert move["pid"] == LINKS
    assert move["args"]["to"] == ["0: core", "1: core"]


def test_the_trace_has_the_same_bytes_every_time(tmp_path: Path) -> None:
    """The trace has the same bytes each time, and each line is an event."""
    one, two = (trace_text(every_category()) for _ in range(2))
    assert one == two
    document = json.loads(one)
    assert len(one.splitlines()) == len(document["traceEvents"]) + 2
    assert document["otherData"]["latency_cycles"] == every_category().schedule.latency_cycles
    assert {event["pid"] for event in document["traceEvents"]} == {CORES, LINKS, MEMORIES}


@pytest.mark.parametrize("seed", SEEDS)
def test_ids_name_the_same_things_in_every_schedule_of_a_network(seed: int) -> None:
    """Flow ids, CNs and threads of cores are the same with other cores and times; each flow id belongs to one edge."""
    one = random_view(seed)
    problem = one.artifact.problem
    allowed = problem.costs.runtime_cycles[problem.graph.cost_row] > 0
    other_cores = np.array([np.flatnonzero(row)[-1] for row in allowed])
    try:
        other = view_of(problem, other_cores.tolist())
    except MappingError:
        pytest.skip("no schedule on those cores")
    ids = []
    for view in (one, other):
        found = events(view)
        flows = defaultdict(list)
        slices = {(e["pid"], e["tid"], e["ts"] + e["dur"] - 1): e["args"]["cn"] for e in found["X"] if e["cat"] == "cn"}
        starts = {(e["pid"], e["tid"], e["ts"]): e["args"]["cn"] for e in found["X"] if e["cat"] == "cn"}
        for phase, ends in (("s", slices), ("f", starts)):
            for event in found[phase]:
                flows[event["id"]].append(ends[event["pid"], event["tid"], event["ts"]])
        threads = [
            (e["tid"], e["args"]["name"]) for e in found["M"] if e["pid"] == CORES and e["name"] == "thread_name"
        ]
        ids.append((dict(flows), threads))
    assert ids[0] == ids[1]
    assert len({tuple(pair) for pair in ids[0][0].values()}) == len(ids[0][0])


def test_large_schedules_have_plain_slices_and_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """The trace of a large schedule has all slices, but only names and times, and says that details are left out."""
    view = every_category()
    detailed = events(view)["X"]
    monkeypatch.setattr(perfetto, "MOST_DETAILED", len(detailed) - 1)
    document = json.loads(trace_text(view))
    slices = [event for event in document["traceEvents"] if event["ph"] != "M"]
    assert slices == [{key: event[key] for key in ("name", "ph", "ts", "dur", "pid", "tid")} for event in detailed]
    assert "left out" in document["otherData"]["details"]


def test_many_dependencies_are_left_out_and_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """The trace has no flows beyond a number of edges, and says so."""
    view = every_category()
    monkeypatch.setattr(perfetto, "MOST_FLOWS", len(view.edges[0]) - 1)
    document = json.loads(trace_text(view))
    assert not [event for event in document["traceEvents"] if event["ph"] in "sf"]
    assert "left out" in document["otherData"]["dependencies"]
