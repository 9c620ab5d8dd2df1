"""The figures of energy and latency by layer."""

import itertools
from dataclasses import replace

import matplotlib
import pytest
from matplotlib.patches import Patch
from tilewright.base.report_files import FIGURES, ONE_CORE_FILES, of_part
from tilewright.cost.record import record_of_row
from tilewright.results.figure_layout import CYCLE_UNITS, split_rows, three_digits, unit_for
from tilewright.results.figures import (
    breakdown_figure,
    energy_figure,
    latency_figure,
    write_breakdown,
)
from tilewright.results.records import layers_in_order, memory_energies_pj, merged_layers
from tilewright.results.report_writing import write_report
from tilewright.results.reported_mapping import ReportedMapping
from tilewright.results.sheet import drawn_for
from tilewright.results.text_tables import share_text
from tilewright.results.words import short_layer_name


def test_files_have_the_same_bytes_every_time(make_network, tmp_path):
    """Dates, random ids and the user's matplotlib settings do not reach the files."""
    records, summary = make_network(3)
    run = ReportedMapping(records, summary)
    files = [file for file in of_part(ONE_CORE_FILES, FIGURES) if file.name in ("energy.svg", "latency.svg")]
    first = write_report(files, run, tmp_path / "new" / "first")
    with matplotlib.rc_context({"font.size": 20.0, "svg.hashsalt": None, "axes.facecolor": "black"}):
        second = write_report(files, run, tmp_path / "second")
    assert [path.name for path in first] == ["energy.svg", "energy.png", "latency.svg", "latency.png"]
    for one, other in zip(first, second, strict=True):
        assert one.read_bytes() == other.read_bytes()
    assert b"dc:date" not in first[0].read_bytes()


@pytest.mark.parametrize("count", [1, 21])
def test_small_bars_have_their_share_in_words(count, make_network):
    """Small bars have their share in words, by term and memory, also beside a DRAM that takes nearly all."""
    records, summary = make_network(count)
    layers = layers_in_order(records, summary)
    total = sum(layer.record.energy_pj for layer in layers)
    (legend,) = [
        one for one in energy_figure(records, summary).legends if one.get_title().get_text() == "share of the energy"
    ]
    told = {text.get_text().split("  ")[-1].rsplit(", ", 1)[0]: text.get_text() for text in legend.get_texts()}
    for name, index in ((name, index) for index, name in enumerate(layers[0].record.memory_levels["O"])):
        assert name in told, index
    sums = dict.fromkeys(told, 0.0)
    for layer in layers:
        for name, parts in memory_energies_pj(layer.record).items():
            sums[name] += sum(parts.values())
    for name, energy in sums.items():
        if energy:
            assert told[name].endswith(f", {share_text(energy, total)}")


@pytest.mark.parametrize("count", [1, 21, 60])
def test_bars_add_up_to_the_totals(count, make_network):
    """The heights of the bars in all panels add up to the totals of the network."""
    records, summary = make_network(count)
    for figure, unit, total in (
        (energy_figure(records, summary), 1e6, summary["energy_pj"]),
        (latency_figure(records, summary), 1e3, summary["latency_cycles"]),
    ):
        heights = sum(bar.get_height() for panel in figure.axes for bar in panel.patches)
        assert heights * unit == pytest.approx(total)


@pytest.mark.parametrize("count", [1, 8, 21, 60])
def test_no_text_overlaps_or_leaves_the_figure(count, make_network):
    """Layer names, totals and legends stay inside the figure, and totals do not overlap."""
    records, summary = make_network(count)
    for figure in (energy_figure(records, summary), latency_figure(records, summary)):
        renderer = figure.canvas.get_renderer()
        for panel in figure.axes:
            labels = [label.get_window_extent(renderer) for label in panel.get_xticklabels()]
            totals = [text.get_window_extent(renderer) for text in panel.texts if text.get_rotation() == 0]
            for box in (*labels, *totals, *(legend.get_window_extent(renderer) for legend in figure.legends)):
                assert box.x0 >= 0
                assert box.x1 <= figure.bbox.x1
                assert box.y0 >= 0
                assert box.y1 <= figure.bbox.y1
            assert all(left.x1 <= right.x0 for left, right in itertools.pairwise(totals))


def test_panels_of_a_long_network_do_not_overlap(make_network):
    """Rows of panels do not overlap the names under the row above."""
    records, summary = make_network(60)
    figure = energy_figure(records, summary)
    renderer = figure.canvas.get_renderer()
    assert len(figure.axes) > 1
    for upper, lower in zip(figure.axes, figure.axes[1:], strict=False):
        lowest = min(label.get_window_extent(renderer).y0 for label in upper.get_xticklabels())
        assert lowest > lower.get_window_extent(renderer).y1
        assert upper.get_ylim() == lower.get_ylim()


def test_operands_of_any_name_and_number(record):
    """A layer with one input of another name is drawn completely."""
    for table in ("memory_levels", "energy_breakdown_pj"):
        record[table] = {"O": record[table]["O"], "A": record[table]["I"]}
    accesses = [pj for levels in record["energy_breakdown_pj"].values() for level in levels for pj in level.values()]
    (panel,) = energy_figure([record_of_row(record)]).axes
    assert sum(bar.get_height() for bar in panel.patches) * 1e6 == pytest.approx(
        record["mac_energy_pj"] + sum(accesses)
    )


def test_layers_of_zero_cost_are_drawn(record):
    """A layer of zero cost gives an empty bar and no error."""
    record["energy_breakdown_pj"] = {
        operand: [dict.fromkeys(level, 0.0) for level in levels]
        for operand, levels in record["energy_breakdown_pj"].items()
    }
    record |= {"energy_pj": 0.0, "mac_energy_pj": 0.0, "latency_cycles": 0}
    record["latency_breakdown_cycles"] = dict.fromkeys(record["latency_breakdown_cycles"], 0)
    for figure in (energy_figure([record_of_row(record)]), latency_figure([record_of_row(record)])):
        bars = [bar for panel in figure.axes for bar in panel.patches]
        assert sum(bar.get_height() for bar in bars) == 0, "nothing costs anything"


@pytest.mark.parametrize("count", [1, 21, 60])
def test_breakdown_has_both_figures_in_one(count, make_network):
    """Each row of layers has energy above latency, with all bars, nothing outside, and no overlapping panels."""
    records, summary = make_network(count)
    figure = breakdown_figure(records, summary)
    renderer = figure.canvas.get_renderer()
    energy = sum(bar.get_height() for panel in figure.axes[::2] for bar in panel.patches)
    latency = sum(bar.get_height() for panel in figure.axes[1::2] for bar in panel.patches)
    assert energy * 1e6 == pytest.approx(summary["energy_pj"])
    assert latency * 1e3 == pytest.approx(summary["latency_cycles"])
    for legend in figure.legends:
        assert legend.get_window_extent(renderer).y0 >= 0
    for upper, lower in itertools.combinations(figure.legends, 2):
        assert not upper.get_window_extent(renderer).overlaps(lower.get_window_extent(renderer))
    for upper, lower in itertools.pairwise(figure.axes):
        lowest = [upper, *upper.get_xticklabels(), *upper.texts]
        assert min(item.get_window_extent(renderer).y0 for item in lowest) > lower.get_window_extent(renderer).y1


def test_breakdown_files_have_the_same_bytes_every_time(record, tmp_path):
    """SVG and PNG have the same bytes each time, also for a layer without a summary."""
    first, second = (write_breakdown([record_of_row(record)], None, tmp_path / name) for name in ("a", "b"))
    assert [path.name for path in first] == ["a.svg", "a.png"]
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]


def test_rows_hold_every_layer_once_in_order(make_network):
    """Splitting into rows keeps every layer once and in order."""
    layers = layers_in_order(*make_network(53))
    rows = split_rows(layers, 0.5)
    assert [layer for row in rows for layer in row] == list(layers)
    assert max(map(len, rows)) * 0.5 <= 13.0


def test_short_names():
    """Short names lack slashes, repeated parents and the operator type; long ones lack their middle."""
    assert short_layer_name("/layer1/layer1.0/conv1/Conv", "Conv") == "layer1.0/conv1"
    assert short_layer_name("Conv_7", "Conv") == "Conv_7"
    assert short_layer_name("", "Conv") == ""
    long = short_layer_name("a_very_long_name_of_a_layer_number_17", "Conv")
    assert len(long) == 24
    assert long.endswith("layer_number_17")


def test_numbers_and_units():
    """Numbers have three significant digits, and the unit is the largest in which the value is at least one."""
    assert [three_digits(value) for value in (1234.4, 67.0, 0.01234)] == ["1,234", "67", "0.0123"]
    assert unit_for(5000, CYCLE_UNITS)[0] == 1e3
    assert unit_for(0, CYCLE_UNITS)[0] == 1.0


def test_layers_that_the_corrected_model_refuses_and_networks_without_layers(record):
    """Unknown corrected figures are marked, and a network without layers gives an empty figure."""
    record["corrected"] = {"energy_pj": None, "latency_cycles": None}
    assert len(latency_figure([record_of_row(record)]).axes[0].lines) == 1
    for figure in (latency_figure([]), energy_figure([])):
        assert len(figure.axes) == 1


def _labels(figure):
    """The labels below all panels."""
    return [label.get_text() for axes in figure.axes for label in axes.get_xticklabels()]


@pytest.mark.parametrize("make", [energy_figure, latency_figure])
def test_a_paper_has_equal_layers_once(make, make_network):
    """A figure for a paper has one bar for equal layers, with their sum; the CSV file and a report have each layer."""
    records, summary = make_network(3)
    index = [["a", 0], ["b", 1], ["c", 0], ["d", 2], ["e", 0]]
    summary = summary | {"layer_index": index}
    with drawn_for("column"):
        figure = make(records, summary)
    assert _labels(figure) == ["a x 3", "b", "d"]
    assert len(_labels(make(records, summary))) == 5
    assert set(figure.numbers()["layer"]) == {"a", "b", "c", "d", "e"}
    merged = merged_layers(layers_in_order(records, summary))
    assert [layer.repeats for layer in merged] == [3, 1, 1]
    for key in ("energy_pj", "latency_cycles"):
        total = sum(getattr(layer.record, key) for layer in layers_in_order(records, summary))
        assert sum(getattr(layer.record, key) for layer in merged) == pytest.approx(total)


def test_a_number_above_several_bars_is_said_to_be_their_sum(make_network):
    """A number above several bars is marked as a sum; a number above one stacked bar is not."""
    records, summary = make_network(2)
    totals = [text.get_text() for text in energy_figure(records, summary).axes[0].texts if text.get_ha() == "center"]
    assert sum(text.startswith("Σ ") for text in totals) == 2
    assert not any("Σ" in text.get_text() for text in latency_figure(records, summary).axes[0].texts)


@pytest.mark.parametrize("make", [energy_figure, breakdown_figure])
@pytest.mark.parametrize("width", ["column", "page"])
def test_a_paper_has_one_bar_a_layer_with_named_parts(make, width, make_network):
    """The legend for a paper names each part with its share; the parts add up to the layer and differ in colour."""
    records, summary = make_network(8)
    with drawn_for(width):
        figure = make(records, summary)
    shown = merged_layers(layers_in_order(records, summary))
    panels = figure.axes if make is energy_figure else figure.axes[::2]
    bars = [bar for panel in panels for bar in panel.patches]
    heights = {}
    for panel in panels:
        for bar in panel.patches:
            key = id(panel), round(bar.get_x(), 6)
            heights[key] = heights.get(key, 0.0) + bar.get_height() * 1e6
    assert sorted(heights.values()) == pytest.approx(sorted(layer.record.energy_pj for layer in shown))
    entries = [handle for handle in figure.handles if isinstance(handle, Patch)]
    told = [handle.get_label() for handle in entries]
    assert len(set(told)) == len(told)
    colours = {one.get_facecolor(): one.get_label() for one in entries if not one.get_label().startswith("cycles: ")}
    drawn = {bar.get_facecolor() for bar in bars}
    assert drawn <= set(colours)
    names = [*records[0].memory_levels["O"], "MAC"]
    assert len({colour for colour, label in colours.items() if label.rsplit(" ", 1)[0] in names}) == len(names)
    total = sum(layer.record.energy_pj for layer in shown)
    for colour in drawn:
        energy = sum(bar.get_height() * 1e6 for bar in bars if bar.get_facecolor() == colour)
        assert colours[colour].endswith(f" {share_text(energy, total)}")
    assert all(label in " ".join(figure.caption_lines) for colour, label in colours.items() if colour in drawn)


def test_a_direction_has_the_colour_of_no_operand(record):
    """The legend of a report has a box for each operand, and boxes for directions in colours that no operand has."""
    figure = energy_figure([record_of_row(record)])
    boxes = {
        legend.get_title().get_text(): [one.get_facecolor() for one in legend.get_patches()]
        for legend in figure.legends
    }
    assert boxes["operand"]
    assert len(boxes["direction"]) == 4
    assert not set(boxes["operand"]) & set(boxes["direction"])


@pytest.mark.parametrize("width", ["column", "page"])
@pytest.mark.parametrize("make", [energy_figure, latency_figure])
def test_layers_that_fit_one_row_have_one_row(make, width, make_network):
    """Layers that just fit in one row have one row."""
    for count in range(1, 16):
        records, summary = make_network(count)
        with drawn_for(width):
            assert len(make(records, summary).axes) == 1, count


@pytest.mark.parametrize("cycles", ["same", "other", "none"])
def test_the_legend_has_only_marks_that_are_drawn(cycles, make_network):
    """The legend marks the corrected latency only if it differs, or if the mapping does not fit the corrected model."""
    records, summary = make_network(2)
    factor = {"same": 1, "other": 2, "none": None}[cycles]
    latencies = [factor and factor * one.latency_cycles for one in records]
    pairs = zip(records, latencies, strict=True)
    changed = [replace(one, corrected=one.corrected._replace(latency_cycles=latency)) for one, latency in pairs]
    figure = latency_figure(changed, summary)
    told = {text.get_text() for legend in figure.legends for text in legend.get_texts()}
    assert ("differs by over 5%" in told) == (cycles == "other")
    assert ("mapping does not fit" in told) == (cycles == "none")
    assert any(line.get_marker() in ("D", "X") for line in figure.axes[0].lines) == (cycles != "same")
