"""Figures of energy, baselines and the search, and the table of layers, for a run on several cores."""

import csv
import itertools
from pathlib import Path
from typing import Any

import matplotlib
import pytest
from matplotlib.figure import Figure
from tilewright.base.errors import ArtifactError
from tilewright.multicore.scheduling.energy_ledger import ON_CORE
from tilewright.results.figure_files import save_figure
from tilewright.results.multi.allocation_figure import (
    allocation_figure,
    read_front,
    read_generations,
)
from tilewright.results.multi.baselines_figure import baseline_rows, baselines_figure
from tilewright.results.multi.energy_figure import (
    ARRAYS,
    CORE_GREYS,
    ON_CORE_WORDS,
    OTHER_MEMORIES,
    THIS_RUN,
    TOTAL,
    energy_bars,
    energy_breakdown_figure,
    on_core_parts,
    schedule_parts,
)
from tilewright.results.multi.layer_places import layer_place_table, layer_places
from tilewright.results.multi.use_tables import core_use_rows, core_use_table

from tests.unit.results.multi.schedule_cases import every_category, pipeline, random_view

SUMMARY: dict[str, Any] = {
    "workload": "net",
    "hardware": "system",
    "latency_cycles": 1000,
    "energy_pj": 2.0e6,
    "gap_latency": 0.2,
    "lower_bound": {"latency_cycles": 800, "energy_pj": 1.5e6},
    "baselines": [
        {"name": "single_core", "latency_cycles": 4000, "energy_pj": 3.0e6, "gap": None},
        {
            "name": "layer_by_layer",
            "latency_cycles": 2000,
            "energy_pj": 2.5e6,
            "gap": 0.5,
            "energy_parts_pj": {"on_core": 2.0e6, "eviction": {"link_pj": 2.0e5, "memory_pj": 3.0e5}},
        },
        {"name": "this_run", "latency_cycles": 1000, "energy_pj": 2.0e6, "gap": 0.2},
    ],
}
GENERATIONS = [
    {"generation": number, "best_latency_cycles": 2000 - 100 * number, "best_energy_pj": 3e6 - number}
    for number in range(6)
]
FRONT = [
    {"latency_cycles": 1000 + 50 * number, "energy_pj": 3e6 - 1e5 * number, "is_chosen": number == 1}
    for number in range(4)
]


def texts_of(figure: Figure) -> list[str]:
    """All texts of a figure."""
    return [text.get_text() for text in (*figure.texts, *(text for panel in figure.axes for text in panel.texts))]


def assert_texts_are_clear(figure: Figure) -> None:
    """Checks that no text leaves the figure or touches another text."""
    figure.canvas.draw()
    renderer = figure.canvas.get_renderer()
    texts = [*figure.texts]
    for panel in figure.axes:
        texts += [*panel.texts, *panel.get_yticklabels(), panel.xaxis.label, panel.yaxis.label]
        # Labels of ticks beyond the axis are not drawn.
        least, most = panel.get_xlim()
        ticks = zip(panel.get_xticks(), panel.get_xticklabels(), strict=True)
        texts += [label for tick, label in ticks if least <= tick <= most]
    boxes = [text.get_window_extent(renderer) for text in texts if text.get_text() and text.get_visible()]
    for box in boxes:
        assert box.x0 >= 0
        assert box.x1 <= figure.bbox.x1
        assert box.y0 >= 0
        assert box.y1 <= figure.bbox.y1
    assert not any(one.overlaps(other) for one, other in itertools.combinations(boxes, 2))


@pytest.mark.parametrize("seed", range(15))
def test_parts_of_the_energy_add_up(seed: int) -> None:
    """The parts add up to the energy of the schedule, and each part equals the energy of its cause."""
    schedule = random_view(seed).schedule
    parts = schedule_parts(schedule)
    assert sum(parts.values()) == pytest.approx(schedule.energy_pj)
    assert parts[ON_CORE_WORDS] == schedule.energy_terms_pj[ON_CORE]
    assert parts["evictions, links"] == schedule.energy_terms_pj["eviction"].link_pj
    assert parts["streams, memories"] == schedule.energy_terms_pj["off_chip_stream"].memory_pj


def test_energy_bars_are_this_run_and_its_baselines() -> None:
    """The run and its baselines have bars, in parts if these are known; the drawn lengths are the energies."""
    view = every_category()
    bars = energy_bars(view, SUMMARY)
    assert [bar.name for bar in bars] == [THIS_RUN, "single core", "layer by layer"]
    assert bars[1].parts_pj == {TOTAL: 3.0e6}
    assert bars[2].parts_pj == {ON_CORE_WORDS: 2.0e6, "evictions, links": 2.0e5, "evictions, memories": 3.0e5}
    (panel,) = energy_breakdown_figure(view, SUMMARY).axes
    lengths = [0.0, 0.0, 0.0]
    for bar in panel.patches:
        lengths[round(bar.get_y() + bar.get_height() / 2)] += bar.get_width()
    assert [length * 1e6 for length in lengths] == pytest.approx([view.schedule.energy_pj, 3.0e6, 2.5e6])
    assert [bar.name for bar in energy_bars(view)] == [THIS_RUN]


def test_energy_on_cores_is_divided_into_arrays_and_memories() -> None:
    """The energy on cores is divided into arrays and memories, the largest first; of many memories, the smallest are
    one part.
    """
    view = every_category()
    total = view.schedule.energy_terms_pj[ON_CORE]
    memories = {"rf": 0.1 * total, "sram": 0.6 * total}
    energy = {"on_core_operational_pj": 0.3 * total, "on_core_memory_pj": memories}
    summary = {**SUMMARY, "energy": energy}
    assert list(on_core_parts(summary)) == [ARRAYS, "sram, in cores", "rf, in cores"]
    run = energy_bars(view, summary)[0]
    assert ON_CORE_WORDS not in run.parts_pj
    assert run.total_pj == pytest.approx(view.schedule.energy_pj)
    assert_texts_are_clear(energy_breakdown_figure(view, summary))
    for count in (len(CORE_GREYS) - 1, len(CORE_GREYS), 20):
        many = {
            "on_core_operational_pj": 1.0,
            "on_core_memory_pj": {f"m{place}": 1.0 + place for place in range(count)},
        }
        parts = on_core_parts({"energy": many})
        assert len(parts) == len(CORE_GREYS)
        assert (OTHER_MEMORIES in parts) == (count >= len(CORE_GREYS))
        assert sum(parts.values()) == pytest.approx(1 + sum(many["on_core_memory_pj"].values()))
    assert on_core_parts(None) == on_core_parts({}) == {}


def test_the_table_of_cores_has_the_fullest_memory_of_each() -> None:
    """Each core has its fullest memory from the summary, also a shared one; a core without memories has none."""
    core = {"cn_count": 3, "busy_cycles": 5, "utilisation": 0.5, "array_utilisation": 0.2, "role": "compute"}
    core |= {"energy_pj": 9.0, "operational_energy_pj": 2.0, "memory_energy_pj": {"rf": 3.0, "sram": 4.0}}
    memory = {"capacity_bits": 100, "peak_bits": 10, "peak_share": 0.1}
    fuller = memory | {"peak_bits": 90, "peak_share": 0.9}
    summary = {
        "cores": [core | {"core": number, "name": f"c{number}"} for number in range(3)],
        "memories": [{"name": "0: a", "cores": [0]} | memory, {"name": "0,1: b", "cores": [0, 1]} | fuller],
    }
    table = core_use_table(summary)
    assert [row["fullest_memory"] for row in core_use_rows(summary)] == ["0,1: b", "0,1: b", None]
    assert table["memory_energy_pj"].tolist() == [7.0] * 3
    assert table["peak_bits"].tolist()[:2] == [90, 90]


def test_baselines_have_numbers_ratios_and_bounds() -> None:
    """The first row is the run itself. The other rows give their latency and energy as multiples of those of
    the run.
    """
    rows = baseline_rows(SUMMARY)
    assert [(row.name, row.latency_cycles, row.edp) for row in rows] == [
        (THIS_RUN, 1000, 2.0e9),
        ("single core", 4000, 1.2e10),
        ("layer by layer", 2000, 5.0e9),
    ]
    figure = baselines_figure(SUMMARY)
    texts = [*texts_of(figure), *(panel.get_title("left") for panel in figure.axes)]
    assert {"4  ×4.00", "2  ×2.00", "3  ×1.50", "2.5  ×1.25", "0.012  ×6.00", "0.005  ×2.50", "EDP [J cycles]"} <= set(
        texts
    )
    bounds = [line.get_xdata()[0] for panel in figure.axes for line in panel.lines]
    assert bounds == [0.8, 1.5]
    assert any("20.0 %" in text for text in texts)


def test_baselines_without_any_and_without_a_bound() -> None:
    """Runs without baselines and bound have one row, no dashed line and no gap."""
    summary = {**SUMMARY, "baselines": [], "lower_bound": None, "gap_latency": None}
    figure = baselines_figure(summary)
    assert not [line for panel in figure.axes for line in panel.lines]
    assert not any("gap" in text for text in texts_of(figure))


def test_a_run_that_loses_to_its_baselines_is_told_in_words() -> None:
    """A text says how much worse than a baseline this run is in latency or energy; a run that is not worse has no text.

    Only latencies and energies that are worse are named.
    """
    one, layer_by_layer = SUMMARY["baselines"][0], SUMMARY["baselines"][1]
    worse = [{**one, "latency_cycles": 4}, {**layer_by_layer, "latency_cycles": 310, "energy_pj": 1.6e6}]
    figure = baselines_figure({**SUMMARY, "baselines": worse})
    told = [text for text in texts_of(figure) if text.startswith("this run ")]
    assert told == [
        "this run takes 250.00 times as long as single core, takes 3.23 times as long as layer by layer,"
        " needs 1.25 times the energy of layer by layer"
    ]
    assert_texts_are_clear(figure)
    assert not [text for text in texts_of(baselines_figure(SUMMARY)) if text.startswith("this run ")]


def test_the_search_is_drawn_as_it_was_recorded() -> None:
    """The search is drawn with the best latency and energy over time, all points of the front, and the chosen one."""
    figure = allocation_figure(GENERATIONS, FRONT, "Search")
    progress, energy, front = figure.axes
    assert list(progress.lines[0].get_ydata()) == pytest.approx(
        [row["best_latency_cycles"] / 1e3 for row in GENERATIONS]
    )
    assert list(energy.lines[0].get_ydata()) == pytest.approx([row["best_energy_pj"] / 1e6 for row in GENERATIONS])
    assert len(front.collections[0].get_offsets()) == len(FRONT)
    assert [text.get_text() for text in front.get_legend().get_texts()] == ["chosen: 1,050 cycles, 2.9 µJ"]


@pytest.mark.parametrize("rows", [(GENERATIONS, FRONT), (GENERATIONS[:1], FRONT[:1]), ([], [])])
def test_figures_of_short_searches_are_drawn(rows: tuple[list[Any], list[Any]]) -> None:
    """Searches with one generation, one point or none are drawn."""
    assert len(allocation_figure(*rows, "Search").axes) == 3


def test_the_search_stands_beside_its_bound() -> None:
    """The bound is a line of text below the search, because it may be far from all points.

    Without a bound, the line is missing.
    """
    bound = {"latency_cycles": 1234, "energy_pj": 2.5e6}
    (_, words) = allocation_figure(GENERATIONS, FRONT, "Search", bound).texts
    assert (
        words.get_text() == "lower bounds over the allowed allocations of these tiles (other tiles are not covered):"
        " 1,234 cycles, 2.5 µJ"
    )
    assert allocation_figure(GENERATIONS, FRONT, "Search").texts[1].get_text() == ""


def test_tables_of_the_search_are_read_back(tmp_path: Path) -> None:
    """The columns for the figure are read back, whatever other columns there are."""
    for name, rows, read in (("g.csv", GENERATIONS, read_generations), ("p.csv", FRONT, read_front)):
        with (tmp_path / name).open("w", newline="") as stream:
            writer = csv.DictWriter(stream, [*rows[0], "cores"])
            writer.writeheader()
            writer.writerows({**row, "cores": "0 1 2"} for row in rows)
        assert read(tmp_path / name) == rows


@pytest.mark.parametrize("text", ["", "generation,best_latency_cycles\n0,5\n", "a\n", None])
def test_damaged_tables_of_the_search_are_told(text: str | None, tmp_path: Path) -> None:
    """A missing file, a missing column and a value that is no number raise ArtifactError; an empty file is an empty
    table.
    """
    path = tmp_path / "generations.csv"
    if text is not None:
        path.write_text(text)
    if text == "":
        assert read_generations(path) == []
        return
    with pytest.raises(ArtifactError, match=r"table of evaluated allocations|no such artifact"):
        read_generations(path)


def test_texts_do_not_overlap() -> None:
    """No text overlaps in the figures, with baselines and without."""
    view = every_category()
    for summary in (SUMMARY, {**SUMMARY, "baselines": []}):
        assert_texts_are_clear(energy_breakdown_figure(view, summary))
        assert_texts_are_clear(baselines_figure(summary))


def test_files_have_the_same_bytes_every_time(tmp_path: Path) -> None:
    """The files have the same bytes for any settings of matplotlib."""

    def write(folder: str) -> list[Path]:
        return [
            *save_figure(energy_breakdown_figure(every_category(), SUMMARY), tmp_path / folder / "energy"),
            *save_figure(baselines_figure(SUMMARY), tmp_path / folder / "baselines"),
            *save_figure(allocation_figure(GENERATIONS, FRONT, "Search"), tmp_path / folder / "allocation"),
        ]

    first = write("first")
    with matplotlib.rc_context({"font.size": 20.0, "svg.hashsalt": None}):
        second = write("second")
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]


@pytest.mark.parametrize("seed", range(10))
def test_layers_run_where_and_when_their_nodes_do(seed: int) -> None:
    """Cores and times of each layer equal those of its CNs."""
    view = random_view(seed)
    schedule = view.schedule
    rows = layer_places(view)
    assert sum(row.cn_count for row in rows) == view.node_count
    assert sum(row.on_core_energy_pj for row in rows) == pytest.approx(schedule.energy_terms_pj[ON_CORE])
    for row in rows:
        own = [cn for cn in range(view.node_count) if view.node_layer[cn] == row.layer]
        assert row.cn_count == len(own)
        assert row.first_start_cycles == min(schedule.start_cycles[own])
        assert row.last_end_cycles == max(schedule.end_cycles[own])
        assert row.cores == " ".join(str(core) for core in sorted(set(schedule.allocation[own].tolist())))
        assert row.busy_cycles == sum(schedule.end_cycles[own] - schedule.start_cycles[own])


def test_the_table_of_layers_has_units_in_its_names() -> None:
    """The table has a column for each key of the rows, with units in the names."""
    table = layer_place_table(pipeline(3, 4))
    assert list(table["cn_count"]) == [4, 4, 4]
    assert {"first_start_cycles", "busy_cycles", "on_core_energy_pj"} <= set(table.columns)
