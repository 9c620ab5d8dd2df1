"""Figures for a paper: width, labels, fonts, page, caption and numbers of every figure that has panels."""

import json
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.text import Text
from matplotlib.ticker import FixedLocator
from tilewright.base.errors import InputError
from tilewright.cost.record import record_of_row
from tilewright.designs.answer import answer_of
from tilewright.designs.effects import effects
from tilewright.designs.effects_figure import effect_figure
from tilewright.designs.figures import front_figure
from tilewright.hardware.core import Core, Memory, OperationalArray, Port
from tilewright.hardware.source import parse_accelerator
from tilewright.results.bottlenecks import bottlenecks_of
from tilewright.results.bottlenecks_figure import bottlenecks_figure
from tilewright.results.figure_files import figure_style, save_figure
from tilewright.results.figures import breakdown_figure, energy_figure, latency_figure
from tilewright.results.hierarchy_figure import hierarchy_figure
from tilewright.results.multi.allocation_figure import allocation_figure
from tilewright.results.multi.bars import ScheduleView
from tilewright.results.multi.baselines_figure import baselines_figure
from tilewright.results.multi.cost_table_figure import cost_table_figure
from tilewright.results.multi.energy_figure import energy_breakdown_figure
from tilewright.results.multi.gantt import schedule_figure
from tilewright.results.multi.memory_figure import link_figure, memory_figure
from tilewright.results.multi.system_figure import system_figure
from tilewright.results.nest_figure import nest_figure
from tilewright.results.noted_figure import NotedFigure
from tilewright.results.number_axes import number_axis
from tilewright.results.paper_figure import fit_to_sheet
from tilewright.results.pareto import compare
from tilewright.results.pareto_figure import pareto_figure
from tilewright.results.port_limits import PortLimit, PortName, PortRoof, Roofline, RooflinePoint, Widened
from tilewright.results.records import layers_in_order
from tilewright.results.run_ledger import LATENCY, LedgerPlace, ledger_of_layers
from tilewright.results.sheet import COLUMN_INCHES, LEAST_POINTS, PAGE_INCHES, PaperWidth, drawn_for, figure_suffixes
from tilewright.results.two_runs import compare_two
from tilewright.results.two_runs_figure import comparison_figure
from tilewright.tokens.figure import token_figure
from tilewright.tokens.table import TokenCosts

from tests.unit.designs.conftest import exploration
from tests.unit.results.multi.schedule_cases import random_view
from tests.unit.results.multi.test_cost_table_figure import row as cost_row
from tests.unit.results.test_figure_axes import seen
from tests.unit.results.test_pareto import run as pareto_run
from tests.unit.results.test_two_runs import run_of

Network = Callable[..., Any]
LEAST_GREY_STEP = 0.04
"""Least difference of two greys that a reader can tell apart, as a share of the step from black to white."""
HARDWARE = Path(__file__).resolve().parents[3] / "config" / "hardware"


def _of_layers(make_network: Network) -> Iterator[tuple[str, Figure]]:
    records, summary = make_network(14)
    yield "energy", energy_figure(records, summary)
    yield "latency", latency_figure(records, summary)
    yield "breakdown", breakdown_figure(records, summary)
    found = bottlenecks_of(ledger_of_layers("run", records, summary, {}), layers_in_order(records, summary))
    points = tuple(RooflinePoint(f"layer{n}", 1.7**n, min(1.7**n, 50.0)) for n in range(9))
    roof = PortRoof(PortName("m", "p"), 0.5, points)
    limit = PortLimit(10, (Widened((PortName("m", "p"),), 9),))
    yield "bottlenecks", bottlenecks_figure(replace(found, roofline=Roofline(50.0, (roof,)), network_limit=limit))


def _of_many_runs(ending: str = "") -> Iterator[tuple[str, Figure]]:
    values = [2.1e5, 3.3e5, 4.2e5, 9.9e5]
    runs = [pareto_run(f"core{place}{ending}", value * (7 - place), value, value) for place, value in enumerate(values)]
    yield "pareto", pareto_figure(compare(runs))
    rows = [
        {
            "design": f"design-{place}{ending}",
            "energy_pj": value * (7 - place),
            "latency_cycles": value,
            "area_mm2": 2.0,
        }
        for place, value in enumerate(values)
    ]
    answer = answer_of(exploration(rows))
    yield "front", front_figure(answer, answer.overall, answer.overall.rows)
    yield "effect", effect_figure(answer, answer.overall, effects(answer.overall, answer.exploration.axis_names))
    places = {LedgerPlace(LATENCY, f"a_long_name_of_a_layer_{n}{ending}", "ideal"): 10 * n + 5 for n in range(8)}
    other = {place: value * (3 if value < 50 else 1) for place, value in places.items()}
    yield "compare", comparison_figure(compare_two(run_of(places), run_of(other, "b")))
    tokens = [
        {
            "batch": batch,
            "context": 1024 * 4**n,
            "time_per_token_cycles": 1e6 * (n + batch),
            "energy_per_token_pj": 3e8 * 1.4**n,
            "time_to_first_token_cycles": 1.5e7 * 4**n,
            "fits": n < 3,
        }
        for batch in (1, 4)
        for n in range(5)
    ]
    yield "tokens", token_figure(TokenCosts("m", "c", 1, 1, 8, "dram", 8, 1, tuple(tokens), ()))


def _of_several_cores(ending: str = "") -> Iterator[tuple[str, Figure]]:
    view = _renamed(random_view(1), ending)
    for make in (memory_figure, link_figure, schedule_figure, energy_breakdown_figure):
        yield make.__name__, make(view)
    yield "sections", schedule_figure(view, plot_full_schedule=False)
    values = [210_000, 330_000, 420_000]
    baselines = [{"name": f"a_baseline_{n}{ending}", "latency_cycles": n, "energy_pj": 2e6} for n in values]
    summary = {"workload": "n", "hardware": "h", "latency_cycles": 200_000, "energy_pj": 1e6, "baselines": baselines}
    yield "baselines", baselines_figure(summary)
    generations = [
        {"generation": n, "best_latency_cycles": 900_000 - 1000 * n, "best_energy_pj": 2e9 - n} for n in range(20)
    ]
    front = [{"latency_cycles": n, "energy_pj": 1e15 / n, "is_chosen": n == values[0]} for n in values]
    yield "allocation", allocation_figure(generations, front, "Search")
    tables = {
        f"core{core}{ending}": tuple(cost_row(n, 100 * (n + 1) ** core, 30.0 * (n + 1)) for n in range(12))
        for core in (1, 2)
    }
    yield "costs", cost_table_figure(tables)


LONG = "_of_the_second_feature_pyramid_branch"
"""Ending that makes names of layers, memories, cores, runs and designs long."""


def _renamed(view: ScheduleView, ending: str) -> ScheduleView:
    """A schedule whose layers, memories, links and cores have names with an ending."""
    names = view.artifact.names
    longer = {
        key: tuple(name + ending for name in getattr(names, key))
        for key in ("layer_names", "memory_names", "link_names", "core_names")
    }
    return ScheduleView(replace(view.artifact, names=replace(names, **longer)))


def _long_named(make_rows: Network) -> Network:
    """A function that makes networks with long names of layers and memories, on a core with a long name."""

    def make(count: int) -> tuple[list[Any], dict[str, Any]]:
        text = json.dumps(make_rows(count)).replace("/Conv", f"/Conv{LONG}")
        for name in ("sram_2MB", "rf_128B", "rf_2B", "dram", "tpu_like", "small_network"):
            text = text.replace(f'"{name}"', f'"{name}{LONG}"')
        rows, summary = json.loads(text)
        return [record_of_row(row) for row in rows], summary

    return make


@pytest.mark.slow
@pytest.mark.parametrize(("paper", "inches"), [("column", COLUMN_INCHES), ("page", PAGE_INCHES)])
def test_long_names_need_no_smaller_text(paper: PaperWidth, inches: float, make_rows: Network) -> None:
    """Names of over 40 characters leave no text below 6 points or outside of the figure, and panels keep their room."""
    with drawn_for(paper), figure_style():
        make = _long_named(make_rows)
        for name, figure in [*_of_layers(make), *_of_many_runs(LONG), *_of_several_cores(LONG)]:
            assert isinstance(figure, NotedFigure), name
            fit_to_sheet(figure, inches)
            _check_page(figure, inches, name)
            _check_axes(figure, name)
            width, height = figure.get_size_inches()
            places = [axes.get_position() for axes in figure.axes]
            assert min(place.width * width for place in places) >= 0.7, name
            assert min(place.height * height for place in places) >= 0.29, name
            for axes in figure.axes:
                boxes = [label.get_window_extent() for label in axes.get_yticklabels() if label.get_text()]
                assert not any(one.overlaps(other) for one, other in pairwise(boxes)), name


def test_every_figure_in_a_column(make_network: Network, tmp_path: Path) -> None:
    """Checks every property of every figure in a column; each figure is drawn once, because drawing takes most of the
    time.
    """
    with drawn_for("column"):
        for name, figure in [*_of_layers(make_network), *_of_many_runs(), *_of_several_cores()]:
            assert isinstance(figure, NotedFigure), name
            paths = save_figure(figure, tmp_path / name)
            assert [path.name for path in paths] == [name + suffix for suffix in figure_suffixes()]
            _check_page(figure, COLUMN_INCHES, name)
            _check_axes(figure, name)
            _check_files(paths, figure.caption_title, name)
            _check_greys(figure, name)
    if shutil.which("pdflatex"):
        _check_captions(tmp_path)


def _check_captions(folder: Path) -> None:
    """Checks that LaTeX prints the captions of all figures in a folder."""
    names = [path.stem for path in sorted(folder.glob("*-column-caption.tex"))]
    figures = "".join(f"\\begin{{figure}}\\input{{{name}}}\\end{{figure}}\\clearpage\n" for name in names)
    text = f"\\documentclass{{article}}\\usepackage{{textcomp}}\\begin{{document}}\n{figures}\\end{{document}}\n"
    (folder / "paper.tex").write_text(text)
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "paper.tex"]
    done = subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:]


def _check_greys(figure: NotedFigure, name: str) -> None:
    """Checks that any two boxes of a panel's legend differ in hatch or grey in a print without colours."""
    boxes = [handle for handle in figure.handles if isinstance(handle, Patch)]
    for panel in {_panel_of_label(box) for box in boxes}:
        looks = [
            (box.get_hatch(), float(np.dot(to_rgb(box.get_facecolor()), (0.299, 0.587, 0.114))))
            for box in boxes
            if _panel_of_label(box) == panel
        ]
        for (hatch, grey), (other_hatch, other_grey) in combinations(looks, 2):
            assert hatch != other_hatch or abs(grey - other_grey) >= LEAST_GREY_STEP, f"{name}: {looks}"


def _panel_of_label(box: Patch) -> str:
    """Title of the panel, which stands before the label in a legend; '' if the figure has one kind of panel."""
    return str(box.get_label()).rpartition(": ")[0]


@pytest.mark.slow
def test_every_figure_over_a_page(make_network: Network) -> None:
    """Every figure over a page has its width, labels and page; the file checks are those of a column."""
    with drawn_for("page"), figure_style():
        for name, figure in [*_of_layers(make_network), *_of_many_runs(), *_of_several_cores()]:
            assert isinstance(figure, NotedFigure), name
            fit_to_sheet(figure, PAGE_INCHES)
            _check_page(figure, PAGE_INCHES, name)
            _check_axes(figure, name)


def test_diagrams_over_a_page(make_network: Network, tmp_path: Path) -> None:
    """Diagrams of a core, of several cores and of a loop nest are as wide as the page, without text below 6 points or
    outside.
    """
    with drawn_for("page"):
        records, _ = make_network(1)
        diagrams = [
            hierarchy_figure(parse_accelerator(HARDWARE / "zigzag" / "tpu_like.yaml").cores[0]),
            *(system_figure(parse_accelerator(HARDWARE / f"multi/{name}.yaml")) for name in ("quad_mesh", "diana")),
            nest_figure(records[0]),
        ]
        for number, figure in enumerate(diagrams):
            assert isinstance(figure, NotedFigure)
            save_figure(figure, tmp_path / str(number))
            assert figure.get_size_inches()[0] == PAGE_INCHES
            boxes = [text.get_window_extent() for text in _visible(figure)]
            assert min(min(box.x0, box.y0) for box in boxes) >= 0, figure.caption_title
            assert max(box.x1 for box in boxes) <= figure.bbox.x1, figure.caption_title
            assert max(box.y1 for box in boxes) <= figure.bbox.y1, figure.caption_title
            assert min(float(text.get_fontsize()) for text in _visible(figure)) >= LEAST_POINTS
            assert figure.caption_title not in (tmp_path / f"{number}-page.svg").read_text()


def test_a_diagram_that_needs_more_width_is_refused(tmp_path: Path) -> None:
    """A diagram that is too wide is refused, with the needed width and the option that is wide enough."""
    memory = Memory("m", 64, 1.0, 1.0, ("A", "B", "C", "D"), (Port("p", "read_write", 8, 8, ()),), ())
    core = Core("of four operands", OperationalArray((("D1", 2),), 1.0), (memory,))
    with drawn_for("column"), pytest.raises(InputError, match=r"needs 3\.9 inches.*allowed: page"):
        save_figure(hierarchy_figure(core), tmp_path / "h")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["tpu_like", "eyeriss_like"])
def test_a_core_of_three_operands_fits_a_column(name: str, tmp_path: Path) -> None:
    """Figures of a core have text of at least 6 points inside the boxes of memories, and fit a page in height."""
    core = parse_accelerator(HARDWARE / "zigzag" / f"{name}.yaml").cores[0]
    with drawn_for("column"):
        figure = hierarchy_figure(core)
        assert isinstance(figure, NotedFigure)
        save_figure(figure, tmp_path / "h")
    assert figure.get_size_inches()[0] == COLUMN_INCHES
    assert figure.get_size_inches()[1] <= 7.6
    shown = _visible(figure)
    assert min(float(text.get_fontsize()) for text in shown) >= LEAST_POINTS
    boxes = [text.get_window_extent() for text in shown]
    assert all(box.x0 >= 0 and box.x1 <= figure.bbox.x1 and box.y1 <= figure.bbox.y1 for box in boxes)
    assert not [1 for number, one in enumerate(boxes) for other in boxes[:number] if one.overlaps(other)]
    names = {memory.name for memory in core.memories}
    told = "".join(text.get_text() for text in shown)
    assert all(name in told for name in names)


@pytest.mark.parametrize(("rows", "columns"), [(3, 3), (4, 2)])
def test_many_panels_fit_a_page_with_their_caption(rows: int, columns: int) -> None:
    """Figures of many panels fit a page of 7.6 inches (LaTeX class article) with a caption of two lines (0.5
    inches).
    """
    figure = NotedFigure(figsize=(3 * columns, 2.2 * rows))
    for place in range(rows * columns):
        axes = figure.add_subplot(rows, columns, place + 1)
        axes.plot([0, 1, 2], [3 * place, 1, 2])
        axes.set_xlabel("word [bits]")
        axes.set_ylabel("energy [µJ]")
    figure.note("title", ())
    fit_to_sheet(figure, COLUMN_INCHES)
    assert figure.get_size_inches()[1] <= 7.6 - 0.5
    _check_page(figure, COLUMN_INCHES, "panels")


def test_a_width_that_does_not_exist() -> None:
    """An unknown width raises InputError, also from Python."""
    with pytest.raises(InputError, match="column, page"), drawn_for("colum"):  # type: ignore[arg-type]
        pass


def test_the_same_bytes(tmp_path: Path) -> None:
    """Files have the same bytes each time, without dates and object numbers."""
    found = []
    for folder in ("a", "b"):
        with drawn_for("column"):
            figure = next(_of_many_runs())[1]
            found.append([path.read_bytes() for path in save_figure(figure, tmp_path / folder / "p")])
    assert found[0] == found[1]


def test_figures_of_reports_stay(tmp_path: Path) -> None:
    """A figure without the option has its title, and only SVG and PNG are written."""
    figure = next(_of_many_runs())[1]
    assert [path.suffix for path in save_figure(figure, tmp_path / "c")] == [".svg", ".png"]
    assert isinstance(figure, NotedFigure)
    assert any(text.get_text() in figure.caption_title for text in figure.texts)


def _visible(figure: Figure) -> list[Text]:
    texts = [text for text in figure.findobj(Text) if isinstance(text, Text)]
    return [text for text in texts if text.get_text().strip() and text.get_visible()]


def _check_page(figure: Figure, width: float, name: str) -> None:
    """Checks the width, that no text is below 6 points, and that none is outside of the page."""
    FigureCanvasAgg(figure)
    figure.draw_without_rendering()
    assert figure.get_size_inches()[0] == width, name
    page = figure.bbox
    for axes in figure.axes:
        box = axes.get_tightbbox()
        assert box is not None
        assert min(box.x0, box.y0) >= -0.5, (name, box)
        assert max(box.x1 - page.x1, box.y1 - page.y1) <= 0.5, (name, box, page)
    for legend in figure.legends:
        box = legend.get_window_extent()
        assert min(box.x0, box.y0, page.x1 - box.x1) >= -0.5, (name, box)
        assert not any(box.overlaps(axes.get_tightbbox()) for axes in figure.axes), name
    assert min(float(text.get_fontsize()) for text in _visible(figure)) >= LEAST_POINTS, name


def _check_axes(figure: Figure, name: str) -> None:
    """Checks that each axis has a label and at least two numbers, or names.

    Of panels one above the other, only the lowest needs a label for the horizontal axis.
    """
    for axes in figure.axes:
        shares = [one for one in figure.axes if one is not axes and one.get_position().x0 == axes.get_position().x0]
        is_lowest = all(one.get_position().y0 >= axes.get_position().y0 for one in shares)
        for axis in (axes.xaxis, axes.yaxis):
            is_twin = any(np.allclose(one.get_position().bounds, axes.get_position().bounds) for one in shares)
            if axis is axes.xaxis and (not is_lowest or is_twin) and not axis.get_label_text():
                continue
            assert axis.get_label_text(), (name, axis.axis_name)
            least = 1 if isinstance(axis.get_major_locator(), FixedLocator) else 2
            assert len(seen(axis)) >= least, (name, axis.axis_name, seen(axis))
            assert not any(re.fullmatch(r"[-+\d.]*e[-+]\d+", text) for text in seen(axis)), (name, seen(axis))


def _check_files(paths: Sequence[Path], title: str, name: str) -> None:
    """Checks for fonts of type 42, text in the SVG, the title only in the caption, and readable numbers."""
    pdf, svg = paths[0].read_bytes(), paths[1].read_text()
    assert b"/CIDFontType2" in pdf or b"/TrueType" in pdf, name
    assert b"/Type3" not in pdf, name
    assert b"CreationDate" not in pdf, name
    assert "<text" in svg, name
    assert "<dc:date>" not in svg, name
    assert title, name
    assert title not in re.sub(r"<[^>]*>", "", svg), (name, title)
    caption = paths[2].read_text()
    assert caption.startswith(title.rstrip(".")), name
    first_letters = [line[0] for line in caption.partition("\n\n")[0].splitlines()]
    assert not any(letter.islower() for letter in first_letters), (name, caption)
    assert len(pandas.read_csv(paths[-1])) >= 1, name


@pytest.mark.parametrize("scale", ["log", "linear"])
@pytest.mark.parametrize("unit", [1.0, 1e3, 1e6])
def test_large_numbers_keep_the_unit_of_their_axis(scale: str, unit: float) -> None:
    """The number, times the power of ten and the unit in the label, is the value at the number's place."""
    digits = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")
    with drawn_for("column"):
        figure = NotedFigure(figsize=(4, 3))
        axes = figure.subplots()
        axes.plot([1, 2], [3e9, 8e13])
        axes.set(xlabel="x", ylabel="energy [unit]", yscale=scale)
        number_axis(axes.yaxis, scale=unit)
        figure.note("title")
        fit_to_sheet(figure, 3.4)
    power = re.search(r"10([⁰¹²³⁴⁵⁶⁷⁸⁹]+) unit", " ".join(axes.get_ylabel().split()))
    factor = 10.0 ** int(power[1].translate(digits)) if power else 1.0
    formatter, locations = axes.yaxis.get_major_formatter(), axes.yaxis.get_majorticklocs()
    told = formatter.format_ticks(locations)
    assert len(told) >= 2
    for place, text in zip(locations, told, strict=True):
        number, _, exponent = text.rpartition("10") if text[-1] in "⁰¹²³⁴⁵⁶⁷⁸⁹" else (text, "", "")
        value = float(number.rstrip("·") or 1) * 10.0 ** int(exponent.translate(digits) or 0)
        assert value * factor * unit == pytest.approx(place)
        assert "e" not in text


def test_names_begin_no_line_of_a_caption() -> None:
    """Newlines and control characters in names become visible escapes in the caption."""
    figure = NotedFigure()
    figure.note("Run a\nforged", ["core b\x1b\r\nforged", ""])
    assert figure.caption_title == "Run a\\nforged"
    assert figure.caption_lines == ("Core b\\x1b\\r\\nforged",)


@pytest.mark.parametrize("width", [1.6, 2.4, 3.4])
def test_units_of_axes_are_not_torn(width: float) -> None:
    """The unit of a label stays on one line, however narrow the panel is."""
    figure = NotedFigure(figsize=(6.0, 3.0))
    FigureCanvasAgg(figure)
    panel = figure.add_axes((0.2, 0.2, 0.7, 0.7))
    panel.plot([0, 5_600_000], [1, 2])
    panel.set_xlabel("cycles by cause and by memory [10⁶ cycles]")
    figure.note("title")
    fit_to_sheet(figure, width)
    assert any("[10⁶ cycles]" in line for line in panel.get_xlabel().split("\n"))


def test_a_column_names_causes_whole(make_network: Network) -> None:
    """No cause is cut in a column, and the peak of the array has its unit.

    The caption explains the discs, and says that a MAC counts once, unlike in TOP/s.
    """
    with drawn_for("column"):
        figure = dict(_of_layers(make_network))["bottlenecks"]
        assert isinstance(figure, NotedFigure)
        caption = fit_to_sheet(figure, COLUMN_INCHES)
    names = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert names
    assert not any("…" in name for name in names)
    texts = [text.get_text() for axes in figure.axes for text in axes.texts]
    assert "peak of the array: 50 MACs a cycle" in texts
    assert "Disc: a layer; the larger the disc, the more cycles" in caption
    assert "A MAC counts as one operation (in TOP/s, as two)" in caption
    assert not any("operations" in axes.get_xlabel() + axes.get_ylabel() for axes in figure.axes)
