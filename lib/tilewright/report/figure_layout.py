"""The frame that the figures of a run share: rows of panels, axis labels, legends and files with stable bytes."""

import math
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from tilewright.report.printable import make_printable
from tilewright.report.records import PlacedLayer
from tilewright.report.short_names import short_layer_name

STYLE: dict[str, Any] = {
    "svg.hashsalt": "tilewright",
    "svg.fonttype": "path",
    "font.family": ["DejaVu Sans"],
    "font.size": 8.0,
    # Names of layers and memories are text, also with dollar signs.
    "text.parse_math": False,
    "hatch.linewidth": 0.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
}
MAX_PANEL_INCHES, MIN_PANEL_INCHES, PLOT_INCHES = 13.0, 2.6, 2.3
LEFT_INCHES, LEGEND_INCHES, TOP_INCHES, GAP_INCHES = 0.95, 2.1, 0.72, 0.3
CHARACTER_INCHES = 0.068
"""Width of a character of the axis font, on the safe side."""
LABEL_DEGREES = 40
PNG_DOTS_PER_INCH = 110
Unit = tuple[float, str]


def figure_style() -> AbstractContextManager[None]:
    """Settings that do not depend on the user's own matplotlib settings."""
    # The backend is chosen by the canvas; touching it here would reset a user's session.
    settings: Any = {key: value for key, value in matplotlib.rcParamsDefault.items() if "backend" not in key}
    return matplotlib.rc_context(settings | STYLE)


def split_rows(layers: Sequence[PlacedLayer], inches_per_layer: float) -> list[Sequence[PlacedLayer]]:
    """The layers in rows of nearly equal length, none wider than a panel may be."""
    per_row = max(1, int(MAX_PANEL_INCHES / inches_per_layer))
    rows = max(1, math.ceil(len(layers) / per_row))
    length = max(1, math.ceil(len(layers) / rows))
    return [layers[start : start + length] for start in range(0, len(layers), length)] or [layers]


def panel_grid(
    row_lengths: Sequence[int],
    inches_per_layer: float,
    label_inches: float | Sequence[float],
    least_height: float = 3.4,
) -> tuple[Figure, list[Axes]]:
    """A figure with one panel per row, one inch scale for all, and room for legends on the right.

    `label_inches` is the room below each panel, one for all or one for each.
    """
    longest = max(*row_lengths, 1)
    panel = max(MIN_PANEL_INCHES, longest * inches_per_layer)
    below = [label_inches] * len(row_lengths) if isinstance(label_inches, int | float) else label_inches
    rows = [PLOT_INCHES + inches + GAP_INCHES for inches in below]
    width = LEFT_INCHES + panel + LEGEND_INCHES
    height = max(TOP_INCHES + sum(rows), least_height)
    figure = Figure(figsize=(width, height))
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
    """Scale, grid and axis title of a panel; `top` is the highest value shown, in base units."""
    panel.set_ylim(0, top / unit[0] * 1.12 if top > 0 else 1)
    panel.set_ylabel(f"{quantity} [{unit[1]}]")
    panel.grid(axis="y", linewidth=0.4, color="#cccccc")
    panel.tick_params(axis="x", length=0)


def label_layers(panel: Axes, layers: Sequence[PlacedLayer], level: bool, below_inches: float = 0.0) -> None:
    """Layer names under the panel at x = 0, 1, …, level or slanted, `below_inches` under the axis."""
    names = [short_layer_name(layer.name, layer.record.layer.operator_type) for layer in layers]
    alignment: dict[str, Any] = (
        {"ha": "center"} if level else {"ha": "right", "rotation": LABEL_DEGREES, "rotation_mode": "anchor"}
    )
    panel.set_xticks(range(len(names)), labels=names, va="top", fontsize=7.5, **alignment)
    panel.tick_params(axis="x", pad=3 + below_inches * 72)
    panel.set_xlim(-0.5, max(len(names), 1) - 0.5)


def label_room(layers: Sequence[PlacedLayer], inches_per_layer: float) -> tuple[bool, float]:
    """Whether layer names fit side by side, and how many inches they take below the axis."""
    names = [short_layer_name(layer.name, layer.record.layer.operator_type) for layer in layers]
    longest = max((len(name) for name in names), default=0) * CHARACTER_INCHES
    if longest <= inches_per_layer:
        return True, 0.25
    return False, 0.1 + 0.88 * longest * math.sin(math.radians(LABEL_DEGREES))


def add_legend(figure: Figure, handles: Sequence[Artist], title: str, down_inches: float) -> float:
    """A legend on the right, its top `down_inches` below the top of the figure; returns where the next may start."""
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


def add_title(figure: Figure, title: str, *lines: str) -> None:
    """A title and, smaller below it, a line or two on what is shown."""
    width, height = figure.get_size_inches()
    x = LEFT_INCHES / width
    figure.text(x, (height - 0.16) / height, title, fontsize=10, weight="bold", va="center")
    for index, line in enumerate(line for line in lines if line):
        figure.text(x, (height - 0.34 - 0.15 * index) / height, line, fontsize=7.5, color="#444444", va="center")


def unit_for(value: float, units: Sequence[Unit]) -> Unit:
    """The largest unit in which `value` is at least 1; the units are given largest first."""
    return next((unit for unit in units if value >= unit[0]), units[-1])


def three_digits(value: float) -> str:
    """A number with three significant digits, without an exponent where that is short."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def size_text(bits: int) -> str:
    """A capacity in the largest binary unit in which it is at least 1, three digits."""
    if bits % 8 or bits < 8:
        return f"{bits} b" if bits < 8 * 1024 else f"{bits / 8192:.3g} KiB"
    for unit, size in (("GiB", 2**33), ("MiB", 2**23), ("KiB", 2**13)):
        if bits >= size:
            return f"{bits / size:.3g} {unit}"
    return f"{bits // 8} B"


def save_figure(figure: Figure, path_stem: Path, png_dots_per_inch: int = PNG_DOTS_PER_INCH) -> tuple[Path, Path]:
    """Write `path_stem`.svg and .png, without dates and version numbers; returns both paths."""
    path_stem.parent.mkdir(parents=True, exist_ok=True)
    svg, png = (path_stem.with_name(path_stem.name + suffix) for suffix in (".svg", ".png"))
    make_printable(figure)
    with figure_style():
        figure.savefig(svg, format="svg", metadata={"Date": None, "Creator": "tilewright"})
        figure.savefig(png, format="png", dpi=png_dots_per_inch, metadata={"Software": None})
    return svg, png
