"""Figure of cycles and energy of every class of computation nodes on every core, on logarithmic axes."""

import math
from collections.abc import Callable, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, LogLocator

from tilewright.multicore.scheduling.core_costs import CoreCostRow
from tilewright.results.figure_files import figure_style
from tilewright.results.figure_layout import (
    CHARACTER_INCHES,
    ENERGY_UNIT,
    LABEL_DEGREES,
    TOP_INCHES,
    add_legend,
    add_title,
    layer_colour,
    lighter,
    most_in_row,
    panel_grid,
    panel_inches,
)
from tilewright.results.figures import PAPER_LAYER_INCHES
from tilewright.results.multi.cn_tables import CostTables, cost_table
from tilewright.results.multi.reported_schedule import ReportedSchedule
from tilewright.results.noted_figure import NotedFigure, name_axes
from tilewright.results.number_axes import number_axis
from tilewright.results.sheet import sheet_inches

BAR_INCHES = (0.07, 0.2)
"""Widths of the narrowest and the widest bar, in inches."""
LEAST_CLASS_INCHES = 0.3
LABEL_CHARACTERS = 38
MOST_CLASSES = 200
"""Largest number of classes of CNs in the figure. If there are more classes, only those with most cycles are drawn."""
PAPER_BAR_INCHES = 0.025
"""Smallest width of a bar in a figure for a paper, in inches."""
_CANNOT: dict[str, Any] = {"linestyle": "none", "marker": "x", "markersize": 3.5, "markeredgewidth": 0.8}
_STREAMS = "//////"
_LABEL_POINTS = 6.5
_CROSS_HEIGHT = 0.03
"""Height of the cross that marks a core that cannot run a class, as a share of the height of a panel."""
_SUPERSCRIPTS = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
ValueOf = Callable[[CoreCostRow], float]


def cost_table_figure(tables: CostTables, network: str = "") -> Figure:
    """Figure with two panels for each row of classes: cycles (including on-loading) and energy on the core, summed over
    all CNs of a class.

    Each class has a bar for each core. If the core cannot run the class, a cross in the colour of the core is drawn in
    place of the bar.
    """
    cores = list(tables)
    count = max((len(rows) for rows in tables.values()), default=0)
    numbers = _drawn(tables, count)
    inches = _class_inches(len(numbers), len(cores))
    rows = _split(numbers, most_in_row(inches))
    labels = {number: _label(next(iter(tables.values()))[number]) for number in numbers}
    longest = max(map(len, labels.values()), default=0) * CHARACTER_INCHES * _LABEL_POINTS / 8
    below = 0.1 + longest * math.sin(math.radians(LABEL_DEGREES))
    with figure_style():
        lengths = [len(row) for row in rows for _ in range(2)]
        figure, panels = panel_grid(lengths, inches, [0.0, below] * len(rows), least_height=5.6)
        for above, beneath, row in zip(panels[::2], panels[1::2], rows, strict=True):
            _draw_panel(above, tables, row, _cycles, "cycles", _limits(tables, _cycles))
            _draw_panel(beneath, tables, row, _energy, "energy [µJ]", _limits(tables, _energy))
            above.set_xticks([])
            name_axes(beneath, "class of computation nodes")
            beneath.set_xticks(
                range(len(row)),
                labels=[labels[number] for number in row],
                ha="right",
                va="top",
                rotation=LABEL_DEGREES,
                rotation_mode="anchor",
                fontsize=_LABEL_POINTS,
            )
        shown = (
            "all nodes of a class"
            if len(numbers) == count
            else f"the {len(numbers)} of {count:,} classes that take longest"
        )
        covers = f"{shown}: cycles, and energy on the core"
        add_title(figure, "Computation nodes on each core", network, covers)
        name = f"Computation nodes on each core: {network}"
        figure.note(name, [covers], lambda: cost_table(tables))
        _add_legends(figure, cores)
    return figure


def reported_costs(run: ReportedSchedule) -> Figure:
    """Figure of the costs of computation nodes on each core, for the report of a run."""
    return cost_table_figure(run.core_costs, run.title)


def _drawn(tables: CostTables, count: int) -> list[int]:
    """Indices of the classes of CNs to draw, in ascending order: the MOST_CLASSES classes with most cycles on their
    fastest core. `count` is the number of classes.
    """

    def cycles(number: int) -> float:
        return min((_cycles(rows[number]) for rows in tables.values() if rows[number].can_run), default=0.0)

    return sorted(sorted(range(count), key=lambda number: (-cycles(number), number))[:MOST_CLASSES])


def _class_inches(classes: int, cores: int) -> float:
    """Width in inches of the room for a class of CNs: one bar for each core, and the gap beside the bars."""
    narrow, wide = BAR_INCHES
    narrow = narrow if sheet_inches() is None else PAPER_BAR_INCHES
    bar = min(wide, max(narrow, panel_inches() / max(1, classes) / (cores + 1)))
    least = LEAST_CLASS_INCHES if sheet_inches() is None else PAPER_LAYER_INCHES
    return max(least, bar * (cores + 1))


def _split(numbers: list[int], most: int) -> list[list[int]]:
    """Numbers in rows of nearly equal length, at most `most` numbers in each row."""
    count = max(1, math.ceil(len(numbers) / most))
    length = max(1, math.ceil(len(numbers) / count))
    return [numbers[start : start + length] for start in range(0, len(numbers), length)] or [[]]


def _cycles(row: CoreCostRow) -> float:
    return float(row.total1_cycles * row.cn_count)


def _energy(row: CoreCostRow) -> float:
    return row.on_core_energy_pj * row.cn_count / ENERGY_UNIT[0]


def _limits(tables: CostTables, value_of: ValueOf) -> tuple[float, float]:
    """Ends of the axis: a power of ten below all values, and 1.5 times the largest value."""
    values = [value for rows in tables.values() for row in rows if row.can_run and (value := value_of(row)) > 0]
    if not values:
        return 1.0, 10.0
    return 10.0 ** math.floor(math.log10(min(values) * 0.7)), max(values) * 1.5


def _draw_panel(
    panel: Axes,
    tables: CostTables,
    numbers: Sequence[int],
    value_of: ValueOf,
    quantity: str,
    limits: tuple[float, float],
) -> None:
    width = 1 / (len(tables) + 1)
    for place, rows in enumerate(tables.values()):
        colour = layer_colour(place)
        offset = (place - (len(tables) - 1) / 2) * width
        for x, number in enumerate(numbers):
            row = rows[number]
            if row.can_run:
                # A cost of 0 has no position on a logarithmic axis; its bar ends at the lower end of the axis.
                look: dict[str, Any] = (
                    {"hatch": _STREAMS, "edgecolor": "white", "linewidth": 0.2} if row.streams else {}
                )
                panel.bar(x + offset, max(value_of(row), limits[0]), width * 0.92, color=colour, **look)
            else:
                cross = _CANNOT | {"color": lighter(colour, 0.3), "transform": panel.get_xaxis_transform()}
                panel.plot([x + offset], [_CROSS_HEIGHT], **cross)
    panel.set_yscale("log")
    panel.set_ylim(*limits)
    number_axis(panel.yaxis)
    if math.log10(limits[1] / limits[0]) >= 2:  # else powers of ten alone would be too few labels
        panel.yaxis.set_major_locator(LogLocator())
        panel.yaxis.set_major_formatter(FuncFormatter(_power_of_ten))
    panel.set_xlim(-0.5, max(len(numbers), 1) - 0.5)
    panel.set_ylabel(quantity)
    panel.grid(axis="y", linewidth=0.4, color="#cccccc")
    panel.tick_params(axis="x", length=0)


def _power_of_ten(value: float, _: int) -> str:
    return f"10{str(round(math.log10(value))).translate(_SUPERSCRIPTS)}"


def _label(row: CoreCostRow) -> str:
    operator, _, loops = row.what.partition(" ")
    text = f"{row.cost_class} {operator} {loops.replace(' ', '').replace(',', ' ')}".strip()
    return text if len(text) <= LABEL_CHARACTERS else text[: LABEL_CHARACTERS - 1] + "…"


def _add_legends(figure: NotedFigure, cores: Sequence[str]) -> None:
    patches = [Patch(color=layer_colour(place), label=core) for place, core in enumerate(cores)]
    down = add_legend(figure, patches, "core", TOP_INCHES)
    marks = [
        Patch(facecolor="#777777", hatch=_STREAMS, edgecolor="white", label="streams operands"),
        Line2D([], [], color="#777777", label="cannot run it", **_CANNOT),
    ]
    add_legend(figure, marks, "mark", down)
