"""The interactive schedule: the data in the file, and the answers of its script where Node is installed."""

import json
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tilewright.results.multi.bars import NODE_BAR, TRANSFER_BAR, ScheduleView, TileRanges, listeners, schedule_table
from tilewright.results.multi.page import (
    FOLDER,
    SCRIPTS,
    packed_column,
    schedule_page,
)
from tilewright.results.multi.start_causes import CAUSES, start_causes

from tests.unit.results.multi.page_data import page_data, unpacked_column
from tests.unit.results.multi.schedule_cases import (
    broadcast,
    every_category,
    large_pipeline,
    pipeline,
    random_view,
    within_a_core,
)

NODE = shutil.which("node")


def with_tiles(view: ScheduleView) -> ScheduleView:
    """The view with every layer but the first cut into tiles of two lines."""
    layers = len(view.names.layer_names)
    within = np.arange(view.node_count) - view.first_node[view.node_layer]
    tiles = TileRanges(((), *([("OY",)] * (layers - 1))), (within * 2,), (within * 2 + 2,))
    return replace(view, tiles=tiles)


@pytest.mark.parametrize("seed", range(12))
def test_the_data_of_the_page_are_those_of_the_schedule(seed: int) -> None:
    """The bars, CNs, transfers, pieces, streams and edges in the HTML are those of the schedule."""
    view = random_view(seed)
    table, schedule = schedule_table(view), view.schedule
    data = page_data(schedule_page(view))
    columns = data["columns"]
    assert data["latency_cycles"] == schedule.latency_cycles
    nodes = columns["bar_kind"] == NODE_BAR
    order = columns["bar_item"][nodes]
    assert sorted(order.tolist()) == list(range(view.node_count))
    assert np.array_equal(columns["bar_start"][nodes], schedule.start_cycles[order])
    assert np.array_equal((columns["bar_start"] + columns["bar_duration"])[nodes], schedule.end_cycles[order])
    for name in ("kind", "item", "layer", "category"):
        assert np.array_equal(columns[f"bar_{name}"], getattr(table, name))
    for name in ("piece", "cause", "source_core", "target_core", "source_memory", "target_memory"):
        assert np.array_equal(columns[f"transfer_{name}"], schedule.transfers[name])
    assert np.array_equal(columns["transfer_rate"], schedule.transfers["bits_per_cycle"])
    assert np.array_equal(columns["energy_values"][columns["node_energy"]], view.artifact.cn_energy_pj)
    assert np.array_equal(columns["piece_bits"], view.artifact.graph.piece_bits)
    for name, wanted in zip(("source", "target", "bits"), view.edges, strict=True):
        assert np.array_equal(columns[f"edge_{name}"], wanted)
    assert [(row["name"], row["lanes"]) for row in data["rows"]] == [(row.name, row.lanes) for row in table.rows]


@pytest.mark.parametrize("seed", range(12))
def test_lanes_are_the_bars_of_each_lane_in_order(seed: int) -> None:
    """Lanes follow each other without gaps; the bars of a lane are sorted by start."""
    view = random_view(seed)
    table = schedule_table(view)
    lanes = page_data(schedule_page(view))["lanes"]
    assert [lane["first"] for lane in lanes] == [0, *(lane["last"] for lane in lanes[:-1])]
    assert lanes[-1]["last"] == table.bar_count
    for lane in lanes:
        own = slice(lane["first"], lane["last"])
        assert set(table.row[own].tolist()) <= {lane["row"]}
        assert set(table.lane[own].tolist()) <= {lane["lane"]}
        assert np.all(np.diff(table.start_cycles[own]) > 0)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([], "i4"),
        ([5], "i4"),
        ([3, 1, -7, 2**31 - 1, -(2**31)], "i4"),
        ([0, 2**31, 2**40, 5], "f8"),
        ([-1, -(2**33)], "f8"),
        ([0.1, 1e300, -2.5], "f8"),
    ],
)
def test_columns_come_back_as_they_were(values: list[float], kind: str) -> None:
    """Packed columns are read back, also with differences or values beyond 32 bits."""
    column = packed_column(np.array(values, np.int64 if all(isinstance(value, int) for value in values) else float))
    assert column["type"] == kind
    assert unpacked_column(column).tolist() == values


def test_the_page_is_one_file_without_the_network_and_names_end_no_element() -> None:
    """The page is one file without web addresses, and a layer called </script> stays text."""
    view = every_category()
    names = replace(view.names, layer_names=("</script><b>", *view.names.layer_names[1:]), network="<i>&@DATA@")
    view = ScheduleView(replace(view.artifact, names=names))
    text = schedule_page(view, {"gap_latency": 0.5})
    assert not re.search(r"https?:|src=|@import|url\(", text)
    assert text.count("</script>") == 2
    assert "<title>Schedule of &lt;i&gt;&amp;@DATA@ on system</title>" in text
    data = page_data(text)
    assert data["layers"][0]["name"] == "</script><b>"
    assert "gap" in data["totals"]


def test_the_page_has_the_same_bytes_every_time(tmp_path: Path) -> None:
    """Equal schedules give equal bytes."""
    assert schedule_page(random_view(3)) == schedule_page(random_view(3))


def test_a_large_schedule_is_a_small_file(tmp_path: Path) -> None:
    """The page has less than 20 bytes for each bar of 10^5 CNs."""
    view = large_pipeline()
    assert len(schedule_page(view).encode()) < 20 * schedule_table(view).bar_count


def test_tiles_of_every_layer_are_in_the_page() -> None:
    """The page has the first and last values of the dimensions in which a layer is cut."""
    view = with_tiles(pipeline(2, 3))
    data = page_data(schedule_page(view))
    assert [layer["tile_dimensions"] for layer in data["layers"]] == [[], ["OY"]]
    assert data["columns"]["tile_start_0"].tolist() == [0, 2, 4, 0, 2, 4]
    assert data["columns"]["tile_end_0"].tolist() == [2, 4, 6, 2, 4, 6]


DRIVER = """
const fs = require("fs"), vm = require("vm");
const context = vm.createContext({ module: { exports: {} }, Blob, Response, DecompressionStream, atob });
context.globalThis = context;
for (const script of %(scripts)s) vm.runInContext(fs.readFileSync(script, "utf8"), context);
const payload = fs.readFileSync(process.argv[2], "utf8").split('id="schedule">')[1].split("</script>")[0];
vm.runInContext("decode", context)(JSON.parse(payload)).then((schedule) => {
  const drawLane = vm.runInContext("drawLane", context), answers = {};
  %(code)s
  fs.writeSync(1, JSON.stringify(answers));
});
"""


def in_node(view: ScheduleView, tmp_path: Path, code: str) -> Any:
    """The answers of the page's script: `code` fills `answers` from `schedule`."""
    if NODE is None:
        pytest.skip("needs Node")
    page = tmp_path / "schedule.html"
    page.write_text(schedule_page(view), "utf-8")
    driver = tmp_path / "driver.js"
    driver.write_text(DRIVER % {"scripts": json.dumps([str(FOLDER / name) for name in SCRIPTS]), "code": code})
    done = subprocess.run([NODE, str(driver), str(page)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("seed", range(4))
def test_the_script_decodes_what_was_written(seed: int, tmp_path: Path) -> None:
    """Starts, ends, names and edges decoded by the script are those of the schedule."""
    view = random_view(seed)
    found = in_node(
        view,
        tmp_path,
        """
        const nodes = Array.from(schedule.nodeBar);
        answers.start = nodes.map((bar) => schedule.bar_start[bar]);
        answers.end = nodes.map((bar) => schedule.bar_end[bar]);
        answers.names = nodes.map((_, node) => schedule.nodeName(node));
        answers.into = nodes.map((_, node) => schedule.incoming(node).map((edge) => schedule.edge_source[edge]));
        answers.from = nodes.map((_, node) => schedule.outgoing(node).map((edge) => schedule.edge_target[edge]));
        answers.joined = nodes.map((bar) => schedule.joined(bar).map((other) => schedule.bar_item[other]));
        answers.found = nodes.map((_, node) => schedule.find(schedule.nodeName(node)));
        """,
    )
    assert found["start"] == view.schedule.start_cycles.tolist()
    assert found["end"] == view.schedule.end_cycles.tolist()
    nodes = range(view.node_count)
    assert found["names"] == [view.node_name(node) for node in nodes]
    assert found["found"] == list(nodes)
    source, target, _ = view.edges
    assert found["into"] == [source[target == node].tolist() for node in nodes]
    # A CN is joined with the makers of its inputs, then with its readers.
    wanted = [[*source[target == node].tolist(), *sorted(target[source == node].tolist())] for node in nodes]
    assert found["joined"] == wanted
    assert found["from"] == [sorted(target[source == node].tolist()) for node in nodes]


def test_the_script_tells_what_a_bar_is(tmp_path: Path) -> None:
    """The script describes CNs, transfers and streams.

    A CN has tile, energy and inputs; a transfer has tensor, bits, ends, cause and rate.
    """
    view = with_tiles(every_category())
    found = in_node(
        view,
        tmp_path,
        """
        const all = Array.from(schedule.bar_start, (_, bar) => Object.fromEntries(schedule.describe(bar)));
        answers.nodes = Array.from(schedule.nodeBar, (bar) => all[bar]);
        answers.rest = all.filter((_, bar) => schedule.bar_kind[bar] !== 0);
        answers.titles = all.map((_, bar) => schedule.describe(bar)[0][0]);
        """,
    )
    assert [node["layer"] for node in found["nodes"]] == list(view.names.layer_names)
    last = found["nodes"][3]
    assert last["tile"] == "OY 0 to 1"
    assert last["energy"] == "0.000005 µJ on the core"
    assert last["inputs from"] == "0.0 (15 bits), 2.0 (10 bits)"
    assert last["start"] == str(view.schedule.start_cycles[3])
    assert last["runtime"] == "5 cycles"
    evicted = next(item for item in found["rest"] if item.get("cause") == "eviction")
    assert evicted["made by"] == "CN 0.0"
    assert (evicted["bits"], evicted["rate"]) == ("15", "10 bits per cycle")
    assert (evicted["from"], evicted["to"]) == ("0: core (memory 0)", "2: core (memory 2)")
    assert {"CN 0.0", "evictions", "outputs", "stream of CN 2.0"} <= set(found["titles"])


def test_the_script_names_the_listeners_of_a_broadcast(tmp_path: Path) -> None:
    """The script names both cores that receive a broadcast."""
    view = broadcast()
    assert listeners(view)
    found = in_node(view, tmp_path, "answers.to = new Map(schedule.describe(schedule.bar_kind.indexOf(1))).get('to');")
    assert found["to"] == "0: core (memory 0); 1: core (memory 1)"


def test_the_script_draws_every_bar_once_when_all_are_wide(tmp_path: Path) -> None:
    """Each bar is drawn as one whole shape in its place at ten pixels a cycle."""
    view = every_category()
    found = in_node(
        view,
        tmp_path,
        """
        answers.drawn = schedule.lanes.map((_, lane) => {
          const seen = [];
          drawLane(schedule, lane, 0, 10, schedule.latency_cycles * 10, (bar, x, width, share, whole) =>
            seen.push([bar, x, width, share, whole]));
          return seen;
        });
        """,
    )
    table = schedule_table(view)
    drawn = sorted(shape for lane in found["drawn"] for shape in lane)
    spans = zip(table.start_cycles.tolist(), table.end_cycles.tolist(), strict=True)
    assert drawn == [[bar, start * 10, (end - start) * 10, 1, True] for bar, (start, end) in enumerate(spans)]


def test_the_script_draws_no_more_than_the_pixels(tmp_path: Path) -> None:
    """The script draws at most two shapes for each pixel and lane of 10^5 CNs, and as much colour as there is work."""
    view = large_pipeline()
    found = in_node(
        view,
        tmp_path,
        """
        const width = 1000, scale = width / schedule.latency_cycles;
        answers.lanes = schedule.lanes.map((_, lane) => {
          let shapes = 0, filled = 0;
          drawLane(schedule, lane, 0, scale, width, (bar, x, across, share) => { shapes++; filled += across * share; });
          return [shapes, filled / scale];
        });
        schedule.show(new Set([...Array(40).keys()].slice(1)), new Set());
        answers.shown = schedule.shown.map((lane) => lane.bars.length);
        """,
    )
    table = schedule_table(view)
    assert max(shapes for shapes, _ in found["lanes"]) <= 2000
    busy = [row.busy_cycles for row in table.rows if row.kind == "core"]
    assert [filled for _, filled in found["lanes"][: len(busy)]] == pytest.approx(busy, rel=0.02)
    # Layer 0 alone: its CNs on core 0, its data on the links.
    of_layer = table.layer == 0
    lanes = np.bincount(table.row[of_layer & (table.kind == NODE_BAR)], minlength=8)
    assert found["shown"][:8] == lanes[:8].tolist()
    assert sum(found["shown"]) == of_layer.sum()
    assert (table.kind[of_layer] == TRANSFER_BAR).any()


def test_empty_rows_and_pages_of_odd_schedules(tmp_path: Path) -> None:
    """A core that idles, data without a link, and a problem of one CN have pages, too."""
    for number, view in enumerate((within_a_core(), random_view(5))):
        found = in_node(view, tmp_path, f"answers.bars = schedule.bar_start.length + {number};")
        assert found["bars"] == schedule_table(view).bar_count + number


@pytest.mark.parametrize("seed", range(6))
def test_rows_of_memories_are_what_memories_hold(seed: int) -> None:
    """Rows of memories have every step, with capacity and peak, for each on-chip memory that holds data."""
    view = random_view(seed)
    data = page_data(schedule_page(view))
    columns, system = data["columns"], view.system
    wanted = {}
    for memory, name in enumerate(view.names.memory_names):
        times, bits = view.schedule.memory_use(memory)
        if memory != system.off_chip_memory and bits.any():
            peak = int(view.schedule.peak_bits[memory])
            wanted[name] = (int(system.memory_capacity_bits[memory]), peak, times.tolist(), bits.tolist())
    found = {}
    for row in data["memory_rows"]:
        steps = slice(row["first"], row["last"])
        own = (columns["memory_time"][steps].tolist(), columns["memory_bits"][steps].tolist())
        found[row["name"]] = (row["capacity_bits"], row["peak_bits"], *own)
    assert found == wanted


def test_the_script_draws_what_a_memory_holds(tmp_path: Path) -> None:
    """Each step is drawn exactly at ten pixels a cycle. At fewer pixels, the peak stays and no column lies outside."""
    view = random_view(1)
    found = in_node(
        view,
        tmp_path,
        """
        const drawMemory = vm.runInContext("drawMemory", context), latency = schedule.latency_cycles;
        answers.rows = schedule.memory_rows.map((row) => {
          const drawn = [10, 7 / latency].map((scale) => {
            const shapes = [];
            drawMemory(schedule, row, 0, scale, latency * scale, (x, width, bits) => shapes.push([x, width, bits]));
            return shapes;
          });
          const held = Array.from({ length: latency }, (_, time) => {
            const step = schedule.stepAt(row, time);
            return step < row.first ? 0 : schedule.memory_bits[step];
          });
          return { drawn, held, peak: row.peak_bits, said: schedule.describeMemory(row, 3) };
        });
        """,
    )
    assert found["rows"]
    for row in found["rows"]:
        wide, narrow = row["drawn"]
        for x, width, bits in wide:
            inside = row["held"][round(x / 10) : round((x + width) / 10)]
            assert set(inside) <= {bits}
        assert max(bits for *_, bits in narrow) == row["peak"] == max(row["held"])
        assert all(x >= 0 and x + width <= 7 + 1e-9 for x, width, _ in narrow)
        assert row["said"][2][1].startswith(f"{row['held'][3]:,} of ")


def test_the_script_says_what_a_search_found(tmp_path: Path) -> None:
    """The script says whether a search found a node, a layer, the first of several layers, or nothing."""
    texts = ["1.0", "layer1", "conv", "9.9", "pool", "1.99"]
    code = f"answers.found = {json.dumps(texts)}.map((text) => schedule.search(text));"
    found = in_node(every_category(), tmp_path, code)["found"]
    assert [node for node, _ in found] == [1, 1, 0, -1, -1, -1]
    assert found[0][1] == found[1][1] == "CN 1.0 of /layer1/conv/Conv"
    assert found[2][1] == "CN 0.0 of /layer0/conv/Conv, the first of 4 layers"
    assert found[4][1].startswith("nothing found: no layer has “pool” in its name")


@pytest.mark.parametrize("seed", range(4))
def test_the_script_follows_causes_back(seed: int, tmp_path: Path) -> None:
    """The chain of each node equals the schedule's, its parts add up to its start, and every cause has words."""
    view = random_view(seed)
    found = in_node(
        view,
        tmp_path,
        """
        const Causes = vm.runInContext("Causes", context), causes = new Causes(schedule);
        const nodes = Array.from(schedule.nodeBar, (_, node) => node);
        answers.chains = nodes.map((node) => causes.chain(node));
        const sum = (parts) => parts.reduce((all, [, cycles]) => all + cycles, 0);
        answers.sums = nodes.map((node) => sum(causes.parts(causes.chain(node))));
        answers.words = nodes.map((node) => causes.chain(node).map((item) => causes.words(item)));
        answers.last = schedule.bar_end[causes.last()];
        answers.told = nodes.map((node) => new Map(schedule.describe(schedule.nodeBar[node])).get("began"));
        """,
    )
    causes = start_causes(view)
    assert causes is not None
    assert found["chains"] == [causes.chain(node) for node in range(view.node_count)]
    assert found["sums"] == view.schedule.start_cycles.tolist()
    kinds = tuple(f"{kind}: " for kind in CAUSES)
    assert all(words[-1] == "at the beginning" for words in found["words"])
    assert all(one.startswith(kinds) for words in found["words"] for one in words[:-1])
    assert found["told"] == [words[0] for words in found["words"]]
    assert found["last"] == view.schedule.latency_cycles


def test_the_script_says_why_a_node_began(tmp_path: Path) -> None:
    """The script's reasons for the starts of nodes, and its parts of the last node's chain, equal those worked out by
    hand for `every_category`.
    """
    found = in_node(
        every_category(),
        tmp_path,
        """
        const Causes = vm.runInContext("Causes", context), causes = new Causes(schedule);
        answers.words = [0, 1, 2, 3].map((node) => causes.words(node));
        answers.parts = causes.parts(causes.chain(3));
        """,
    )
    assert found["words"] == [
        "data: input (activations from off-chip) had arrived",
        "data: activation (activations between cores) had arrived",
        "link: activation (evictions) ended and left width",
        "data: CN 2.0 had made its data",
    ]
    assert dict(found["parts"]) == {
        "computing on 0: core": 18,
        "weights from off-chip": 12,
        "activations from off-chip": 3,
        "activations between cores": 2,
        "evictions": 2,
    }


def test_a_page_without_causes_says_nothing_of_them(tmp_path: Path) -> None:
    """The page has no chain and no reasons for a schedule model that is not causal."""
    view = every_category()
    view = ScheduleView(replace(view.artifact, schedule_model="stream-2023"))
    code = """
        const Causes = vm.runInContext("Causes", context), causes = new Causes(schedule);
        answers.chain = causes.chain(3);
        answers.said = schedule.describe(schedule.nodeBar[3]).map(([name]) => name);
    """
    found = in_node(view, tmp_path, code)
    assert found["chain"] == []
    assert "began" not in found["said"]
