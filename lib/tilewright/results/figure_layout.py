"""Layout that the figures of a run share: panels, axis labels, legends, colours and titles."""

import math
from collections.abc import Sequence
from copy import copy
from typing import TYPE_CHECKING, Any

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from tilewright.base.units import PICOJOULES_A_MICROJOULE
from tilewright.results.noted_figure import NotedFigure, name_axes
from tilewright.results.sheet import sheet_inches
from tilewright.results.words import short_names

if TYPE_CHECKING:
    from tilewright.results.records import PlacedLayer


OPERAND_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9")
"""Palette of Okabe and Ito, which is safe for colour-blind readers."""
_LAYER_DIGITS = """
    0072b2 e69f00 009e73 cc79a7 d55e00 56b4e9 87005a 5af096 4b4b0f f0c3e1
    4b2da5 964bb4 875a5a 87b400 007800 a587ff a5c3a5 a50f00 877800 2d4b69
    d2d200 f096ff c33c78 78e1ff ff8778 7887b4 a59669 ffc387 1e7869 5a78f0
    00c3a5 b4b4ff 694b87 693c3c d2a5b4 f05a69 b46969 0fa5b4 3c9600 ff78c3
    c3e196 5a5ac3 a55a0f 004bb4 0096e1 963c78 b469d2 00e1d2 c33c2d 005a4b
    5a692d 5a6987 5ad269 966996 b4b45a a596d2 698769 005a00 96960f 781e87
    1eb45a 784b00 f07800 d28769 c38700 6996ff e1a578 a50f4b 3c8796 78a596
    ffc31e 96c3e1 8769d2 870f2d ff96b4 c35aa5 2d5a96 2d874b d287e1 c3d2ff
    a5e1d2 00d2ff 96785a a5d269 693cb4 78b478 4b3c78 a587a5 ffb4ff f07896
    5a78c3 69c3c3 d2c387 e169c3 e1a5e1 963c3c f0b4a5 69964b 872d00 69d2a5
"""
LAYER_COLOURS = tuple(f"#{digits}" for digits in _LAYER_DIGITS.split())
"""Colours of layers.

The first colours are OPERAND_COLOURS. Each further colour is the one farthest from all earlier colours in the Oklab
space. Very light, dark, grey or glaring colours are left out.
"""
NO_LAYER_COLOUR = "#999999"


def operand_colour(operand: str, operands: Sequence[str]) -> str:
    """Colour of a layer operand; `operands` are all layer operands of the figure."""
    # The three usual operands keep their colour whatever the order of an equation.
    usual = ("O", "W", "I")
    order = [*usual, *(name for name in operands if name not in usual)]
    return OPERAND_COLOURS[order.index(operand) % len(OPERAND_COLOURS)]


def lighter(colour: str, white: float) -> tuple[float, float, float]:
    """Colour with a share `white` of white mixed in."""
    red, green, blue = (channel + (1 - channel) * white for channel in to_rgb(colour))
    return red, green, blue


def memory_operand_colour(operand: str, operands: Sequence[str]) -> str:
    """Colour of a memory operand. The layer operand that is linked to the memory operand by default has the same
    colour. `operands` are all memory operands.
    """
    usual = {"O": "O", "I2": "W", "I1": "I"}
    return operand_colour(usual.get(operand, operand), [usual.get(name, name) for name in operands])


def layer_colour(layer: int) -> str:
    """Colour of a layer by its number; grey for -1. The colours of 100 layers differ; then the colours repeat."""
    return LAYER_COLOURS[layer % len(LAYER_COLOURS)] if layer >= 0 else NO_LAYER_COLOUR


def text_colour(background: str) -> str:
    """Black or white, whichever is easier to read on a background."""
    red, green, blue = to_rgb(background)
    return "black" if 0.299 * red + 0.587 * green + 0.114 * blue > 0.5 else "white"


MAX_PANEL_INCHES, MIN_PANEL_INCHES, PLOT_INCHES = 13.0, 2.6, 2.3
LEFT_INCHES, LEGEND_INCHES, TOP_INCHES, GAP_INCHES = 0.95, 2.1, 0.72, 0.3
CHARACTER_INCHES = 0.068
"""Width of a character of the axis font, rounded up."""
LABEL_DEGREES = 40
Unit = tuple[float, str]
"""Unit of an axis: (size, name)."""
ENERGY_UNIT: Unit = (PICOJOULES_A_MICROJOULE, "µJ")
EDP_UNIT: Unit = (1e12, "J cycles")
"""Unit of EDP. Small and large values have the same unit, so that numbers in figures can be compared with those in
tables and texts.
"""
CYCLE_UNITS: tuple[Unit, ...] = ((1e9, "10⁹ cycles"), (1e6, "10⁶ cycles"), (1e3, "10³ cycles"), (1.0, "cycles"))
_AXIS_INCHES = 0.75
"""Room for the vertical axis of a panel in a figure for a paper, in inches."""


def panel_inches() -> float:
    """Largest width of a panel, in inches. In a figure for a paper, the width of the figure limits the width of a
    panel; in a report, the limit is a constant.
    """
    sheet = sheet_inches()
    return MAX_PANEL_INCHES if sheet is None else sheet - _AXIS_INCHES


def most_in_row(inches_each: float) -> int:
    """Number of layers that fit side by side into a panel if each is `inches_each` wide; at least 1."""
    # A layer can be exactly its share of the panel: rounding must not move it to the next row.
    return max(1, int(panel_inches() / inches_each + 1e-6))


def split_rows(layers: "Sequence[PlacedLayer]", inches_per_layer: float) -> "list[Sequence[PlacedLayer]]":
    """Layers divided into rows of nearly equal length. A row is at most `panel_inches()` wide, but has at least one
    layer.
    """
    per_row = most_in_row(inches_per_layer)
    rows = max(1, math.ceil(len(layers) / per_row))
    length = max(1, math.ceil(len(layers) / rows))
    return [layers[start : start + length] for start in range(0, len(layers), length)] or [layers]


def panel_grid(
    row_lengths: Sequence[int],
    inches_per_layer: float,
    label_inches: float | Sequence[float],
    least_height: float = 3.4,
) -> tuple[NotedFigure, list[Axes]]:
    """Figure with one panel per row and room for legends on the right. A layer has the same width in all panels.

    `label_inches` is the room below each panel: one value for all panels, or one for each.
    """
    longest = max(*row_lengths, 1)
    panel = max(MIN_PANEL_INCHES, longest * inches_per_layer)
    below = [label_inches] * len(row_lengths) if isinstance(label_inches, int | float) else label_inches
    rows = [PLOT_INCHES + inches + GAP_INCHES for inches in below]
    width = LEFT_INCHES + panel + LEGEND_INCHES
    height = max(TOP_INCHES + sum(rows), least_height)
    figure = NotedFigure(figsize=(width, height))
    FigureCanvasAgg(figure)
    axes = []
    for index, length in enumerate(row_lengths):
        top = height - TOP_INCHES - sum(rows[:index])
        # A short last row keeps the width of a layer instead of being stretched.
        used = max(MIN_PANEL_INCHES, length * inches_per_layer)
        box = (LEFT_INCHES / width, (top - PLOT_INCHES) / height, used / width, PLOT_INCHES / height)
        axes.append(figure.add_axes(box))
    return figure, axes


def finish_panel(panel: Axes, top: float, unit: Unit, quantity: str) -> None:
    """Set the scale, grid and axis title of a panel; `top` is the highest value shown, in base units."""
    panel.set_ylim(0, top / unit[0] * 1.12 if top > 0 else 1)
    panel.set_ylabel(f"{quantity} [{unit[1]}]")
    panel.grid(axis="y", linewidth=0.4, color="#cccccc")
    panel.tick_params(axis="x", length=0)


def layer_labels(layers: "Sequence[PlacedLayer]") -> list[str]:
    """Short and distinct names of layers. If a layer represents several equal layers, its label has their number."""
    names = short_names([layer.name for layer in layers], [layer.record.layer.operator_type for layer in layers])
    return [
        f"{name} x {layer.repeats}" if layer.repeats > 1 else name for name, layer in zip(names, layers, strict=True)
    ]


def label_layers(panel: Axes, layers: "Sequence[PlacedLayer]", level: bool, below_inches: float = 0.0) -> None:
    """Write layer names under the panel at x = 0, 1, …. The names are horizontal if `level` is true, otherwise slanted.
    Their upper end is `below_inches` under the axis.
    """
    names = layer_labels(layers)
    alignment: dict[str, Any] = (
        {"ha": "center"} if level else {"ha": "right", "rotation": LABEL_DEGREES, "rotation_mode": "anchor"}
    )
    panel.set_xticks(range(len(names)), labels=names, va="top", fontsize=7.5, **alignment)
    panel.tick_params(axis="x", pad=3 + below_inches * 72)
    panel.set_xlim(-0.5, max(len(names), 1) - 0.5)
    name_axes(panel, "layer")


def label_room(layers: "Sequence[PlacedLayer]", inches_per_layer: float) -> tuple[bool, float]:
    """Pair (true if layer names fit side by side, height in inches that the names need below the axis)."""
    names = layer_labels(layers)
    longest = max((len(name) for name in names), default=0) * CHARACTER_INCHES
    if longest <= inches_per_layer:
        return True, 0.25
    return False, 0.1 + 0.88 * longest * math.sin(math.radians(LABEL_DEGREES))


def add_legend(
    figure: NotedFigure, handles: Sequence[Artist], title: str, down_inches: float, *, needs_title: bool = False
) -> float:
    """Add a legend on the right, with its upper end `down_inches` below the top of the figure. Return the distance of
    the next legend from the top, in inches.

    A figure for a paper merges all legends into one, without their titles. If `needs_title` is true, readers cannot
    understand the entries without the title; each entry of the merged legend then begins with the title.
    """
    for handle in (one for one in handles if not (isinstance(one, Line2D) and one.get_marker() in ("None", None, ""))):
        figure.handles += (_entry(handle, title) if needs_title else handle,)
    width, height = figure.get_size_inches()
    figure.add_artist(
        figure.legend(
            handles=list(handles),
            title=title,
            loc="upper left",
            bbox_to_anchor=((width - LEGEND_INCHES + 0.1) / width, (height - down_inches) / height),
            frameon=False,
            fontsize=7.5,
            title_fontsize=8,
            alignment="left",
            borderaxespad=0.0,
        )
    )
    return down_inches + 0.25 + 0.165 * len(handles)


def _entry(handle: Artist, title: str) -> Artist:
    """Legend entry with the title of the legend before its label."""
    entry = copy(handle)
    entry.set_label(f"{title}: {handle.get_label()}")
    return entry


def add_title(figure: Figure, title: str, *lines: str) -> None:
    """Add a title. Smaller lines below it describe the figure."""
    width, height = figure.get_size_inches()
    x = LEFT_INCHES / width
    figure.text(x, (height - 0.16) / height, title, fontsize=10, weight="bold", va="center")
    for index, line in enumerate(line for line in lines if line):
        figure.text(x, (height - 0.34 - 0.15 * index) / height, line, fontsize=7.5, color="#444444", va="center")


def unit_for(value: float, units: Sequence[Unit]) -> Unit:
    """Largest unit in which `value` is at least 1; the smallest unit if there is none. `units` lists the units, the
    largest first.
    """
    return next((unit for unit in units if value >= unit[0]), units[-1])


def three_digits(value: float) -> str:
    """Text of a number with three significant digits. It has an exponent only if the text without one would be too
    long.
    """
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
