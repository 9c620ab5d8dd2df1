"""Figures of artificial spaces: their number, their texts, and equal bytes each time."""

import io
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text
from tilewright.designs import figures
from tilewright.designs.answer import answer_of
from tilewright.designs.decision import decision_of
from tilewright.designs.effects import effects
from tilewright.designs.effects_figure import effect_figure, most_effective
from tilewright.designs.exploration import Exploration
from tilewright.designs.figures import (
    MARK_POINTS_SQUARED,
    front_figure,
    marked_designs,
    write_all_figures,
    write_figures,
)
from tilewright.results.figure_files import save_figure
from tilewright.results.noted_figure import NUMBER_TEXT, NotedFigure
from tilewright.results.other_widths import noting_removed
from tilewright.results.paper_figure import fit_to_sheet
from tilewright.results.sheet import COLUMN_INCHES, PaperWidth, drawn_for

from tests.unit.designs.conftest import exploration, grid


def texts_of(figure: Figure) -> list[str]:
    """Return all texts of a figure."""
    return [text.get_text() for text in figure.findobj(Text) if isinstance(text, Text)]


def corners(networks: tuple[str, ...] = ("mobilenet", "bert")) -> Exploration:
    """Return the 12 corners of the grid, which include each status."""
    found = grid(networks, sides=(8, 128), sizes=(32, 2048))
    assert {*found.table["status"]} == {"ok", "invalid", "infeasible"} or len(networks) == 1
    assert any(found.table["unmet"])
    return found


def test_there_is_a_figure_of_each_network_and_of_all_together(tmp_path: Path) -> None:
    """Each network and all networks together have a front and effects, as .svg and .png with equal bytes each time."""
    first = write_figures(answer_of(corners()), tmp_path / "one")
    names = [f"{kind}-{name}" for name in ("mobilenet", "bert", "all_networks") for kind in ("front", "effect")]
    assert [path.name for path in first] == [f"{name}.{suffix}" for name in names for suffix in ("svg", "png")]
    second = write_figures(answer_of(corners()), tmp_path / "two")
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]


def test_figures_of_networks_that_are_gone_go(tmp_path: Path) -> None:
    """Figures of networks that the answer no longer has are removed; other files stay."""
    write_figures(answer_of(corners()), tmp_path)
    (tmp_path / "front-notes.txt").write_text("mine")
    left = write_figures(answer_of(corners(("bert",))), tmp_path)
    assert {*tmp_path.iterdir()} == {*left, tmp_path / "front-notes.txt"}


def test_figures_of_the_other_width_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures for one width of paper do not remove those for another, or those of the report.

    No figure is drawn: each file holds the size of its figure.
    """

    def savefig(figure: Figure, file: io.BytesIO, **options: object) -> None:
        file.write(f"{options['format']} {figure.get_size_inches()}".encode())

    monkeypatch.setattr(Figure, "savefig", savefig)
    answer = answer_of(corners())
    with drawn_for("column"):
        column = {path: path.read_bytes() for path in write_all_figures(answer, tmp_path)}
    with drawn_for("page"), noting_removed() as removed:
        write_all_figures(answer, tmp_path)
    write_all_figures(answer, tmp_path)
    assert removed == []
    assert {path: path.read_bytes() for path in column} == column
    with noting_removed() as removed:
        write_all_figures(answer_of(corners(("bert",))), tmp_path)
    assert {path.name for path in removed} >= {
        f"{kind}-{name}-{width}.pdf"
        for kind in ("front", "effect")
        for name in ("mobilenet", "all_networks")
        for width in ("column", "page")
    }


def test_the_figure_of_a_front_lists_it() -> None:
    """The figure of a front lists its designs with values and measures, and the assumptions."""
    answer = answer_of(grid())
    front = answer.overall
    texts = texts_of(front_figure(answer, front, front.rows))
    assert set(front.members["design"]) <= set(texts)
    assert {"rows 8, sram 2048, dram HBM", "21,665,918"} <= set(texts)
    assert any(
        "by energy, latency, area: 17 of 50 designs" in text and "cross: constraint not met" in text for text in texts
    )
    assert any(text.startswith("assumed: model corrected. data between two layers stay") for text in texts)


def test_the_figure_of_many_designs_says_what_it_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """The figure of many designs says how many are drawn and how many are numbered."""
    monkeypatch.setattr(figures, "MOST_LISTED", 5)
    answer = answer_of(grid())
    front = answer.overall
    texts = texts_of(front_figure(answer, front, front.rows.iloc[:40]))
    assert "drawn: 40 of 53 designs: the front and a random sample of the other designs" in texts
    assert "numbered: 5 of the 17 designs on the front, the best designs, and others at equal steps along it" in texts


def test_the_figure_of_effects_has_a_panel_for_each_axis_and_objective() -> None:
    """The figure of effects has a panel for each axis and objective, with best and median."""
    answer = answer_of(grid())
    figure = effect_figure(answer, answer.overall, effects(answer.overall, answer.exploration.axis_names))
    assert len(figure.axes) == 9
    assert [text.get_text() for text in figure.axes[2].get_xticklabels()] == ["LPDDR4", "HBM", "a<b>"]
    best = min(line.get_ydata().min() for line in figure.axes[0].lines)
    assert best == pytest.approx(answer.overall.compared["energy_pj"].min() / 1e6)


def test_the_figure_of_effects_shows_edp_if_it_is_the_objective_of_the_searches() -> None:
    """EDP has panels if the mappings are searched for the least EDP, and none if another objective counts."""
    for goal, shown in (("EDP", ["energy", "latency", "EDP", "area"]), ("latency", ["energy", "latency", "area"])):
        answer = answer_of(replace(grid(), searched_for=goal))
        figure = effect_figure(answer, answer.overall, effects(answer.overall, answer.exploration.axis_names))
        labels = dict.fromkeys(axes.get_ylabel().partition(" [")[0] for axes in figure.axes)
        assert [*labels] == shown


def test_figures_of_little(tmp_path: Path) -> None:
    """A space without compared designs has no figures; a single design has no effects."""
    assert write_figures(answer_of(exploration([])), tmp_path) == ()
    assert write_figures(answer_of(exploration([{"status": "infeasible"}] * 3)), tmp_path) == ()
    one = write_figures(answer_of(exploration([{"energy_pj": 1.0, "latency_cycles": 1.0}])), tmp_path)
    assert [path.name for path in one] == ["front-net.svg", "front-net.png"]


@pytest.mark.parametrize("objectives", [("energy_pj",), ("area_mm2",), ("area_mm2", "edp_pj_cycles")])
@pytest.mark.parametrize("area", [2.0, np.nan])
def test_figures_of_any_objectives(objectives: tuple[str, ...], area: float, tmp_path: Path) -> None:
    """A single objective is drawn with another measure, and a missing area is no objective."""
    rows = [{"rows": n, "energy_pj": 1.0 + n, "latency_cycles": 5.0 - n, "area_mm2": area} for n in range(3)]
    found = write_figures(answer_of(exploration(rows, objectives=objectives)), tmp_path)
    assert [path.name for path in found if path.suffix == ".svg"] == ["front-net.svg", "effect-net.svg"]


def test_long_names_are_cut_and_not_left_out() -> None:
    """A long name of an axis is cut at its beginning, since its end says what varies."""
    path = "memories.dram.ports.rw_port_1.bandwidth_max"
    rows = [{"rows": n, "energy_pj": 1.0 + n, "latency_cycles": 5.0 - n, "area_mm2": 1.0} for n in range(3)]
    space = exploration(rows)
    long = exploration([], table=space.table.rename(columns={"rows": path}), axis_names=(path,))
    answer = answer_of(long)
    figure = effect_figure(answer, answer.overall, effects(answer.overall, (path,)))
    assert figure.axes[0].get_xlabel().endswith("port_1.bandwidth_max")


def of_axes(count: int, objectives: tuple[str, ...], searched_for: str = "") -> Exploration:
    """Return a space with `count` axes of two values each, whose mappings are searched for an objective.

    Axis n changes the energy by n + 1 %, except for axis 1, which changes the energy by only 0.1 %.
    """
    names = tuple(f"axis_{number}" for number in range(count))
    factors = [1.001 if number == 1 else 1.01 + number / 100 for number in range(count)]
    rows = []
    for design in range(2**count):
        values = [design >> number & 1 for number in range(count)]
        energy = 4e9 * np.prod([factor**value for factor, value in zip(factors, values, strict=True)])
        own = dict(zip(names, values, strict=True))
        rows.append({**own, "rows": 1, "energy_pj": energy, "latency_cycles": 1e6, "area_mm2": 1.0})
    return replace(exploration(rows, objectives=objectives), axis_names=names, searched_for=searched_for)


@pytest.mark.parametrize(("width", "axis_count"), [("column", 2), ("column", 6), ("column", 7), ("page", 7)])
@pytest.mark.parametrize("objective_count", [1, 3, 4])
def test_effects_fit_a_page(width: PaperWidth, axis_count: int, objective_count: int, tmp_path: Path) -> None:
    """Figures of effects are at most about 7 inches high, with the panels of a measure in rows.
    Axes with the least effects have no panels, and the caption names them. The fourth measure is EDP.
    """
    objectives = ("energy_pj", "latency_cycles", "area_mm2")[:objective_count]
    answer = answer_of(of_axes(axis_count, objectives, "EDP" if objective_count == 4 else ""))
    with drawn_for(width):
        figure = effect_figure(answer, answer.overall, effects(answer.overall, answer.exploration.axis_names))
        paths = save_figure(figure, tmp_path / "effect")
    assert float(figure.get_size_inches()[1]) <= 7.2
    is_left = width == "column" and axis_count == 7 and objective_count >= 3
    assert len(figure.axes) == (axis_count - is_left) * objective_count
    caption, *further = paths[2].read_text().split("\n\n")
    assert ("Left out: axis_1, with less effect" in caption) == is_left
    assert further[0].startswith("Assumed: ")
    assert not any(line[0].islower() for line in caption.splitlines())
    assert len(caption.split()) <= 80
    bottom = {label for axes in figure.axes if (label := axes.get_xlabel())}
    assert bottom == {*answer.exploration.axis_names} - ({"axis_1"} if is_left else set())
    for axes in figure.axes:
        beside = [other for other in figure.axes if other.get_position().y0 == axes.get_position().y0]
        assert len({other.get_ylim() for other in beside}) == 1
        assert bool(axes.get_ylabel()) == (axes is beside[0])
    assert set(pandas.read_csv(paths[4])["axis"]) == set(answer.exploration.axis_names)


def test_axes_of_equal_effect_stay_in_the_order_of_the_space() -> None:
    """Axes of equal effect stay in the order of the space."""
    answer = answer_of(of_axes(4, ("energy_pj",)))
    found = effects(answer.overall, answer.exploration.axis_names)
    assert [one.axis for one in most_effective(found, ["energy_pj"], 3)] == ["axis_0", "axis_2", "axis_3"]
    assert [one.axis for one in most_effective(found, ["latency_cycles"], 3)] == ["axis_0", "axis_1", "axis_2"]


@pytest.mark.parametrize("width", ["column", "page"])
def test_the_figure_of_a_front_for_a_paper_marks_the_choice(width: PaperWidth, tmp_path: Path) -> None:
    """The figure of a front for a paper marks the choice, the runner-up and the least of each objective.
    Each mark has its number, and the line of the front is above the discs.
    """
    answer = answer_of(grid())
    front = answer.overall
    decision = decision_of(answer, "EDP")
    marked = marked_designs(front)
    assert decision.runner_up is not None
    assert "least EDP" in marked[decision.choice.name].split(" and ")
    assert "second-least EDP" in marked[decision.runner_up.design.name].split(" and ")
    for key in front.objectives:
        best = front.compared.loc[front.compared[key] == front.compared[key].min(), "design"]
        role = f"least {front.measures[key].words}"
        assert next(name for name, roles in marked.items() if role in roles.split(" and ")) in set(best)
    with drawn_for(width):
        figure = front_figure(answer, front, front.rows)
        caption = save_figure(figure, tmp_path / "front")[2].read_text()
    axes = figure.axes[0]
    numbers = [text for text in axes.texts if text.get_gid() == NUMBER_TEXT and text.get_visible()]
    shown = sorted(int(number) for text in numbers for number in text.get_text().split(", "))
    assert shown == [*range(1, len(marked) + 1)]
    caption, further = caption.split("\n\n")
    assert all(f"{number}: {name}" in caption for number, name in enumerate(marked, 1))
    assert len(caption.split()) <= 80
    assert further.startswith("Assumed: ")
    assert not any(line[0].islower() for line in caption.splitlines())
    discs = axes.collections[:-1]
    assert axes.lines[0].get_zorder() > max(disc.get_zorder() for disc in discs)
    assert "[µJ]" in axes.get_ylabel()
    low, high = axes.get_ylim()
    assert low < float(front.compared["energy_pj"].min()) / 1e6 < high


@pytest.mark.parametrize("width", [None, "column"])
def test_designs_that_meet_no_constraint_do_not_set_the_axes(width: PaperWidth | None) -> None:
    """The axes fit the designs that meet all constraints; a line counts the designs outside of the axes."""
    rows = [
        {"energy_pj": 1e9 + place * 1e7, "latency_cycles": 4e6 - place * 1e5, "area_mm2": 1.0} for place in range(9)
    ]
    far = [{"energy_pj": 9e12, "latency_cycles": 5e9, "area_mm2": 80.0, "unmet": "area_mm2 <= 4"}] * 2
    near = [{**rows[4], "unmet": "area_mm2 <= 4"}]
    answer = answer_of(exploration([*rows, *far, *near]))
    with drawn_for(width):
        figure = front_figure(answer, answer.overall, answer.overall.rows)
    axes = figure.axes[0]
    assert axes.get_ylim()[1] < 1.2e9 / 1e6
    assert axes.get_xlim()[1] < 2 * axes.get_xlim()[0]
    assert "[µJ]" in axes.get_ylabel()
    line = "utside of the axes: 2 designs with a constraint that is not met"
    assert isinstance(figure, NotedFigure)
    assert any(line in text for text in (texts_of(figure) if width is None else figure.caption_lines))


@pytest.mark.parametrize("energy_pj", [2.3e9, 2.6e9, 2.8e9])
def test_numbers_of_close_diamonds_lie_on_no_diamond(energy_pj: float) -> None:
    """Numbers of close diamonds overlap neither a diamond nor another number."""
    rows = [
        {"energy_pj": energy, "latency_cycles": latency, "area_mm2": area}
        for energy, latency, area in (
            *((2.197e9, 3.914e6, 2.3), (energy_pj, 4.3e6, 1.4), (3.955e9, 3.913e6, 2.1), (3.822e9, 2.97e7, 0.13)),
            *((2.0e10, 6.0e7, 1.0), (3.0e10, 4.0e7, 2.0)),
        )
    ]
    answer = answer_of(exploration(rows))
    with drawn_for("column"):
        figure = front_figure(answer, answer.overall, answer.overall.rows)
        assert isinstance(figure, NotedFigure)
        fit_to_sheet(figure, COLUMN_INCHES)
    panel, scale = figure.axes[0], 72 / figure.dpi
    texts = [text for text in panel.texts if text.get_gid() == NUMBER_TEXT and text.get_visible()]
    named = answer.overall.rows.set_index("design").loc[[*marked_designs(answer.overall)]]
    assert [text.get_text() for text in texts] == [str(number) for number in range(1, len(named) + 1)]
    diamonds = next(one for one in panel.collections if len(one.get_offsets()) == len(named) and one.get_zorder() == 4)
    centres = panel.transData.transform(np.asarray(diamonds.get_offsets())) * scale
    half = (MARK_POINTS_SQUARED / 2) ** 0.5
    boxes = [np.array(text.get_window_extent().extents) * scale for text in texts]
    for left, bottom, right, top in boxes:
        for x, y in centres:
            assert max(left - x, 0, x - right) + max(bottom - y, 0, y - top) >= half
    for place, (left, bottom, right, top) in enumerate(boxes):
        others = boxes[:place]
        assert not any(left < one[2] and one[0] < right and bottom < one[3] and one[1] < top for one in others)
