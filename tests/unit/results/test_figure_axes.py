"""Every axis of every figure has at least two labels, whatever the range, and long names stay distinct.

Figures have ranges within a decade, constants, single points, and close, tiny and huge numbers. The tests count the
visible texts of the drawn figure, not the package's own list of labels.
"""

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import tilewright_evidence.court.figures as court
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from tilewright.designs.answer import answer_of
from tilewright.designs.effects import effects
from tilewright.designs.effects_figure import effect_figure
from tilewright.designs.figures import front_figure
from tilewright.results.bottlenecks import bottlenecks_of
from tilewright.results.bottlenecks_figure import bottlenecks_figure
from tilewright.results.figures import breakdown_figure, energy_figure, latency_figure
from tilewright.results.multi.allocation_figure import allocation_figure
from tilewright.results.multi.baselines_figure import baselines_figure
from tilewright.results.multi.cost_table_figure import cost_table_figure
from tilewright.results.multi.energy_figure import energy_breakdown_figure
from tilewright.results.multi.fusion_page import fusion_figure
from tilewright.results.multi.gantt import schedule_figure
from tilewright.results.multi.memory_figure import link_figure, memory_figure
from tilewright.results.number_axes import places
from tilewright.results.pareto import compare
from tilewright.results.pareto_figure import pareto_figure
from tilewright.results.port_limits import PortLimit, PortName, PortRoof, Roofline, RooflinePoint, Widened
from tilewright.results.records import layers_in_order
from tilewright.results.run_ledger import LATENCY, LedgerPlace, ledger_of_layers
from tilewright.results.two_runs import compare_two
from tilewright.results.two_runs_figure import comparison_figure
from tilewright.results.words import short_layer_name, short_names
from tilewright.tokens.figure import token_figure
from tilewright.tokens.table import TokenCosts
from tilewright_evidence.court.case import Case

from tests.unit.designs.conftest import exploration
from tests.unit.results.multi.schedule_cases import random_view
from tests.unit.results.multi.test_cost_table_figure import row as cost_row
from tests.unit.results.multi.test_fusion_page import document
from tests.unit.results.test_pareto import run as pareto_run
from tests.unit.results.test_two_runs import run_of

VALUES: dict[str, list[float]] = {
    "within a decade": [2.1e5, 3.3e5, 4.2e5, 4.9e5],
    "in one half of a decade": [6.1e5, 6.4e5, 6.9e5, 8.8e5],
    "constant": [4.2e5] * 4,
    "one point": [4.2e5],
    "close": [1000000.0, 1000001.0, 1000003.0],
    "tiny": [2.5e-9, 3.1e-9, 6e-9],
    "huge": [3.1e30, 4.4e30, 7.5e30],
    "far apart": [3.0, 7e4, 2e9, 4e15],
    "one": [1.0, 1.0, 1.0],
}
WHOLE = [name for name in VALUES if name not in ("tiny", "huge")]


def seen(axis: Axis) -> list[str]:
    """The visible labels of an axis."""
    low, high = sorted(axis.get_view_interval())
    room = 1e-6 * (high - low)
    found = []
    for ticks in (axis.get_major_ticks(), axis.get_minor_ticks()):
        for tick in ticks:
            for label in (tick.label1, tick.label2):
                if label.get_visible() and label.get_text() and low - room <= tick.get_loc() <= high + room:
                    found.append(label.get_text())
    return found


def has_axis(axis: Axis, figure: Figure) -> bool:
    """Whether the axis has numbers.

    An axis has none if its bars have numbers beside them, or if a panel below has the numbers.
    """
    side = "bottom" if axis.axis_name == "x" else "left"
    drawn = axis.axes.spines[side].get_visible() or axis.axes.spines["right"].get_visible()
    is_shared = bool(axis.axes.get_shared_x_axes().get_siblings(axis.axes)[1:]) and axis.axis_name == "x"
    return axis.get_visible() and axis.axes.axison and drawn and not is_shared


def check(figure: Figure, categories: tuple[str, ...] = (), upper_panels: bool = False) -> None:
    """Check that each axis has at least two labels, and no label twice.

    Axes in `categories` show names, so they may have one label. With `upper_panels`, x axes may have one or none.
    """
    FigureCanvasAgg(figure)
    figure.draw_without_rendering()  # the labels are placed, and no dots are painted
    for number, panel in enumerate(figure.axes):
        for axis in (panel.xaxis, panel.yaxis):
            if not has_axis(axis, figure):
                continue
            texts = seen(axis)
            assert len(texts) == len(set(texts)), (number, axis.axis_name, texts)
            if axis.axis_name not in categories and not (upper_panels and axis.axis_name == "x"):
                assert len(texts) >= 2, (number, axis.axis_name, texts, axis.get_view_interval())


@pytest.mark.parametrize("times", VALUES)
@pytest.mark.parametrize("energies", ["one point"])
def test_figures_of_tokens(times: str, energies: str) -> None:
    """Figures of tokens with contexts, times and energies of two batches."""
    values, others = VALUES[times], VALUES[energies]
    rows = [
        {
            "batch": batch,
            "context": int(others[place % len(others)]) + place,
            "time_per_token_cycles": value,
            "energy_per_token_pj": others[place % len(others)],
            "time_to_first_token_cycles": value * 1.5,
            "fits": batch == 1,
        }
        for batch in (1, 4)
        for place, value in enumerate(values)
    ]
    check(token_figure(TokenCosts("m", "c", 1, 1, 8, "dram", 8, 1, tuple(rows), ())))


@pytest.mark.parametrize("name", VALUES)
def test_figures_of_fronts_and_spaces(name: str) -> None:
    """Figures of compared runs, and of the designs of a space with the effect of each axis."""
    values = VALUES[name]
    runs = [pareto_run(f"core{place}", value * 3, value, value) for place, value in enumerate(values)]
    check(pareto_figure(compare(runs)))
    rows = [{"energy_pj": value * 3, "latency_cycles": value, "area_mm2": 2.0} for value in values]
    answer = answer_of(exploration(rows))
    check(front_figure(answer, answer.overall, answer.overall.rows))
    found = effects(answer.overall, answer.exploration.axis_names)
    if found:
        check(effect_figure(answer, answer.overall, found), categories=("x",))


@pytest.mark.parametrize("name", WHOLE)
def test_figures_of_searches_on_several_cores(name: str) -> None:
    """Figures of an allocation, of plans, of cost tables, and of a run beside its baselines."""
    values = [max(1, int(value)) for value in VALUES[name]]
    generations = [
        {"generation": place, "best_latency_cycles": value, "best_energy_pj": value * 2e6}
        for place, value in enumerate(values)
    ]
    front = [
        {"latency_cycles": value, "energy_pj": value * 1e6, "is_chosen": place == 0}
        for place, value in enumerate(values)
    ]
    check(allocation_figure(generations, front, "Search"))
    figures = [{"latency_cycles": value, "energy_pj": 2e6, "edp": 2e6 * value} for value in values]
    tried = [
        {"plan": place, "origin": "uniform", "stacks": 1, "is_best": place == 0, "reason": "", **one}
        for place, one in enumerate(figures)
    ]
    check(fusion_figure(document(**figures[0], layer_by_layer=figures[-1], lower_bound=figures[0]), tried))
    tables = {"array": tuple(cost_row(place, value, value * 1.0) for place, value in enumerate(values))}
    check(cost_table_figure(tables), categories=("x",), upper_panels=True)
    summary = {"workload": "n", "hardware": "h", "latency_cycles": values[0], "energy_pj": 1e6, "baselines": []}
    check(baselines_figure(summary), categories=("y",))


@pytest.mark.parametrize("seed", range(3))
def test_figures_of_schedules(seed: int) -> None:
    """Figures of cores, memories, links and energies over time."""
    view = random_view(seed)
    for make in (memory_figure, link_figure):
        check(make(view), upper_panels=True)
    check(schedule_figure(view), categories=("y",), upper_panels=True)
    check(energy_breakdown_figure(view), categories=("y",))


def test_figures_of_layers(make_network: Callable[..., Any]) -> None:
    """Figures of energy and latency by layer, for one layer and for several."""
    for count in (1, 3):
        records, summary = make_network(count)
        for make in (energy_figure, latency_figure, breakdown_figure):
            check(make(records, summary), categories=("x",), upper_panels=True)


@pytest.mark.parametrize("reach", [1.0, 5.0, 9.9, 1e-7, 3.3e12])
def test_rooflines(reach: float, make_network: Callable[..., Any]) -> None:
    """A roofline with a single layer at the roof of the array, or far below it."""
    records, summary = make_network(2)
    found = bottlenecks_of(ledger_of_layers("run", records, summary, {}), layers_in_order(records, summary))
    roof = PortRoof(PortName("m", "p"), 0.5, (RooflinePoint("a", reach, min(reach, 5.0)),))
    limit = PortLimit(10, (Widened((PortName("m", "p"),), 9),))
    check(bottlenecks_figure(replace(found, roofline=Roofline(5.0, (roof,)), network_limit=limit)), categories=("y",))


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("name", WHOLE)
def test_figures_of_two_runs(name: str, sign: int) -> None:
    """Figures of differences of either sign, with names that have long common parts."""
    values = [int(value) for value in VALUES[name]]
    prefix = "model/decoder/layers/attention/self_attention_of_a_long_name/query_projection_"
    places_of = {
        LedgerPlace(LATENCY, f"{prefix}{place}_and_a_common_end", "ideal"): value for place, value in enumerate(values)
    }
    other = {place: value * 3 for place, value in places_of.items()}
    pair = (run_of(places_of), run_of(other, "b"))
    check(comparison_figure(compare_two(*pair[::sign])), categories=("y",))


@pytest.mark.parametrize("name", VALUES)
def test_figures_of_the_court(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Figures of predicted over measured values."""
    drawn: list[Figure] = []
    monkeypatch.setattr(court, "save_figure", lambda figure, stem, *rest: drawn.append(figure) or (stem, stem))
    for axes in _court_axes(VALUES[name]):
        check(axes)


def _court_axes(values: list[float]) -> Iterator[Figure]:
    figure = Figure()
    FigureCanvasAgg(figure)
    cases = [_case(value) for value in values]
    court._predicted(figure.subplots(), cases, {"bus": "red"}, "cycles")
    yield figure


def _case(value: float) -> Case:
    given: dict[str, Any] = dict.fromkeys(Case.__dataclass_fields__, "")
    numbers = {"measured": value, "bound": value / 1.3, "estimate": value * 1.1, "roofline": value}
    return Case(**{**given, **numbers, "limited_by": "bus", "fitted": False})


@pytest.mark.parametrize("seed", range(60))
def test_any_range_has_two_places_that_are_told_apart(seed: int) -> None:
    """Linear and logarithmic ranges, from nearly a point to many decades, get at least two distinct labels."""
    rng = random.Random(seed)
    low = 10 ** rng.uniform(-30, 30)
    high = low * (1 + 10 ** rng.uniform(-9, 12))
    for is_log in (True, False):
        found = places(low, high, is_log=is_log)
        assert len(set(found)) >= 2
        assert all(low <= one <= high for one in found)
        assert len(found) <= 12
    assert len(set(places(-high, -low, is_log=False))) >= 2
    assert len(set(places(-high, high, is_log=False))) >= 2


def test_long_names_are_told_apart() -> None:
    """Shortened names with common beginnings or ends stay distinct; short names stay as they are."""
    rng = random.Random(3)
    for _ in range(100):
        limit = rng.randrange(6, 40)
        start, end = "x" * rng.randrange(60), "y" * rng.randrange(60)
        kept = {f"{start}{rng.randrange(10**6)}{end}" for _ in range(rng.randrange(1, 30))} | {"a", "conv1"}
        names = sorted(kept)
        found = short_names([*names, names[0]], limit=limit)
        assert len(set(found)) == len(names)
        assert found[-1] == found[0]
        assert max(map(len, found)) <= limit
        assert found[names.index("a")] == "a"
    assert short_names(["conv1", "conv2"]) == [short_layer_name("conv1"), short_layer_name("conv2")]
