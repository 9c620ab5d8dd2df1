"""The Gantt chart as a figure."""

import itertools
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from tilewright.base.units import energy_text
from tilewright.results.figure_layout import LAYER_COLOURS, layer_colour, lighter, text_colour
from tilewright.results.multi.bars import CATEGORIES, ScheduleTable, schedule_table
from tilewright.results.multi.gantt import (
    CATEGORY_HATCHES,
    LIGHTER,
    MOST_SHAPES,
    SECTIONS,
    schedule_figure,
    strips,
    write_schedule_figure,
)

from tests.unit.results.multi.schedule_cases import (
    every_category,
    large_pipeline,
    pipeline,
    random_view,
    within_a_core,
)


def shapes(figure: Figure) -> list[tuple[float, float]]:
    """(start, end) of the bars that are drawn as shapes, sorted."""
    collections = [item for panel in figure.axes for item in panel.collections if isinstance(item, PolyCollection)]
    corners = [path.vertices[:, 0] for collection in collections for path in collection.get_paths()]
    return sorted((float(x.min()), float(x.max())) for x in corners)


def spans(table: ScheduleTable) -> list[tuple[float, float]]:
    """(start, end) of all bars, sorted."""
    return sorted(zip(table.start_cycles.astype(float).tolist(), table.end_cycles.astype(float).tolist(), strict=True))


@pytest.mark.parametrize("seed", range(6))
def test_every_bar_is_drawn_from_its_start_to_its_end(seed: int) -> None:
    """The drawn shapes are the bars of the table."""
    view = random_view(seed)
    assert shapes(schedule_figure(view)) == spans(schedule_table(view))


def test_without_data_transfer_only_cores_are_drawn() -> None:
    """The rows of links and their entries in the legend are left out if data transfers are not asked for."""
    figure = schedule_figure(every_category(), plot_data_transfer=False)
    assert len(shapes(figure)) == 4
    texts = {text.get_text() for text in figure.texts}
    assert not texts & set(CATEGORIES)
    assert set(CATEGORIES) <= {text.get_text() for text in schedule_figure(every_category()).texts}


def test_sections_show_beginning_middle_and_end() -> None:
    """Three panels show the first, middle and last 5 %, each with the bars that reach into it."""
    view = pipeline()
    table, latency = schedule_table(view), view.schedule.latency_cycles
    figure = schedule_figure(view, plot_full_schedule=False)
    assert len(figure.axes) == 3
    for panel, (first, last) in zip(figure.axes, SECTIONS, strict=True):
        assert panel.get_xlim() == pytest.approx((first * latency, last * latency))
        inside = (table.end_cycles > first * latency) & (table.start_cycles < last * latency)
        drawn = sum(len(item.get_paths()) for item in panel.collections if isinstance(item, PolyCollection))
        assert drawn == inside.sum()


def test_title_has_latency_energy_edp_and_gap() -> None:
    """The title has the latency, energy and EDP of the schedule, and the gap of the summary."""
    view = every_category()
    schedule = view.schedule
    line = next(
        text.get_text() for text in schedule_figure(view, {"gap_latency": 0.1234}).texts if "EDP" in text.get_text()
    )
    assert f"latency {schedule.latency_cycles} cycles" in line
    assert f"energy {energy_text(schedule.energy_pj)}" in line
    assert f"EDP {schedule.latency_cycles * schedule.energy_pj / 1e12:.4g} J cycles" in line
    assert "12.3 %" in line
    assert "gap" not in "".join(text.get_text() for text in schedule_figure(view, {"gap_latency": None}).texts)


CASES = {
    "every category": every_category,
    "one core": within_a_core,
    "many layers": lambda: pipeline(60, 4),
    "many bars": lambda: pipeline(12, 400),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("full", [True, False])
def test_no_text_leaves_the_figure_or_overlaps(case: str, full: bool) -> None:
    """No text leaves the figure, and row names, legend, titles and shares do not overlap."""
    figure = schedule_figure(CASES[case](), {"gap_latency": 0.25}, plot_full_schedule=full)
    figure.canvas.draw()
    renderer = figure.canvas.get_renderer()
    rows = [label for label in figure.axes[0].get_yticklabels() if label.get_text()]
    boxes = [text.get_window_extent(renderer) for text in (*figure.texts, *rows)]
    for box in boxes:
        assert box.x0 >= 0
        assert box.x1 <= figure.bbox.x1
        assert box.y0 >= 0
        assert box.y1 <= figure.bbox.y1
    assert not any(one.overlaps(other) for one, other in itertools.combinations(boxes, 2))


def test_files_have_the_same_bytes_every_time(tmp_path: Path) -> None:
    """Dates, random ids and the user's settings do not reach the files, for shapes and for an image."""
    for name, view in (("shapes", every_category()), ("image", pipeline(8, 400))):
        first = write_schedule_figure(view, tmp_path / name / "first")
        with matplotlib.rc_context({"font.size": 20.0, "svg.hashsalt": None, "hatch.linewidth": 4}):
            second = write_schedule_figure(view, tmp_path / name / "second")
        assert [path.suffix for path in first] == [".svg", ".png"]
        for one, other in zip(first, second, strict=True):
            assert one.read_bytes() == other.read_bytes()


def test_hundred_thousand_bars_are_an_image_of_bounded_size(tmp_path: Path) -> None:
    """No bar of 10^5 CNs is a shape of its own, and the files are below 2 MB."""
    view = large_pipeline()
    table = schedule_table(view)
    assert table.bar_count > 100_000
    paths = write_schedule_figure(view, tmp_path / "schedule", table=table)
    assert "<image" in paths[0].read_text("utf-8")
    assert max(path.stat().st_size for path in paths) < 2_000_000


def test_few_bars_are_shapes_many_are_an_image() -> None:
    """The number of bars in a panel decides whether it has shapes or an image."""
    few, many = pipeline(2, 20), pipeline(10, MOST_SHAPES // 10)
    assert not schedule_figure(few).axes[0].images
    assert schedule_figure(many).axes[0].images
    assert not shapes(schedule_figure(many))


def test_the_image_has_the_mean_colour_of_each_pixel() -> None:
    """Each pixel of a row is the mean over time of the colours of the running CNs; every second CN is lighter."""
    view = pipeline(3, 7, 2)
    table = schedule_table(view).rows_of("core")
    latency, width = view.schedule.latency_cycles, 37
    image = strips(table, (0.0, float(latency)), width, [6, 8], 2)
    assert image.shape == (14, width, 3)
    # Ten samples of each cycle, which pixels cut in tenths that hardly matter.
    samples = np.ones((2, latency * 10, 3))
    spans = zip(table.row, table.start_cycles, table.end_cycles, table.layer, strict=True)
    for bar, (row, start, end, layer) in enumerate(spans):
        colour = layer_colour(int(layer))
        samples[row, start * 10 : end * 10] = lighter(colour, LIGHTER) if bar % 2 else to_rgb(colour)
    edges = np.linspace(0, latency * 10, width + 1).round().astype(int)
    for row, lines in ((0, slice(1, 5)), (1, slice(7, 13))):
        wanted = np.array([samples[row, a:b].mean(axis=0) for a, b in itertools.pairwise(edges)])
        assert np.allclose(image[lines] / 255, wanted[None], atol=0.02)
    assert (image[[0, 5, 6, 13]] == 255).all()


def test_the_image_of_a_window_is_that_part_of_the_schedule() -> None:
    """Bars that end before the window or start after it leave no trace in the image."""
    view = pipeline(2, 3, 2)
    table = schedule_table(view).rows_of("core")
    start, end = int(table.start_cycles.min()), int(table.end_cycles.max())
    assert (strips(table, (end + 1.0, end + 100.0), 50, [10, 10], 2) == 255).all()
    assert (strips(table, (0.0, float(start)), 50, [10, 10], 2) == 255).all()
    first = table.start_cycles == start
    inside = strips(table, (start + 1.0, start + 2.0), 5, [10, 10], 0)[int(table.row[first][0]) * 10]
    assert len(np.unique(inside, axis=0)) == 1
    assert (inside < 255).any()


def test_hatches_darken_the_image_of_data() -> None:
    """Weights are hatched in the image, as in the legend; other data from off-chip are not."""
    view = every_category()
    table = schedule_table(view).rows_of("link")
    moves = view.schedule.transfers
    for piece, category in ((0, 0), (1, 1)):
        bar = next(bar for bar in range(table.bar_count) if table.category[bar] == category)
        assert moves["piece"][table.item[bar]] == piece
        window = float(table.start_cycles[bar]), float(table.end_cycles[bar])
        colours = {tuple(colour) for colour in strips(table, window, 40, [40], 0).reshape(-1, 3).tolist()}
        colours.discard((255, 255, 255))  # another lane of the row
        assert len(colours) == (2 if CATEGORY_HATCHES[category] else 1)


def test_a_hundred_layers_have_different_colours_that_neighbours_tell_apart() -> None:
    """The colours of any two layers are more than 0.06 apart in Oklab space; neighbours are more than 0.075 apart.

    A distance of 0.02 is just visible.
    """
    colours = oklab(np.array([to_rgb(layer_colour(layer)) for layer in range(100)]))
    apart = np.linalg.norm(colours[:, None] - colours[None], axis=2) + np.eye(100)
    assert apart.min() > 0.06
    assert min(apart[layer, layer + 1] for layer in range(99)) > 0.075
    assert layer_colour(100) == LAYER_COLOURS[0]
    assert layer_colour(-1) not in LAYER_COLOURS
    assert (text_colour("#ffffff"), text_colour("#000080")) == ("black", "white")


def oklab(rgb: np.ndarray) -> np.ndarray:
    """Converts colours to the Oklab space of Björn Ottosson."""
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    to_lms = [
        [0.41222147, 0.53633254, 0.05144599],
        [0.21190350, 0.68069955, 0.10739696],
        [0.08830246, 0.28171884, 0.62997870],
    ]
    to_lab = [
        [0.21045426, 0.79361779, -0.00407205],
        [1.97799850, -2.42859221, 0.45059371],
        [0.02590404, 0.78277177, -0.80867577],
    ]
    return np.cbrt(linear @ np.array(to_lms).T) @ np.array(to_lab).T
