"""Figures of a run: where the energy and the cycles of each layer go.

Networks of more layers than fit side by side go on in further rows, which share one scale.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from tilewright.report.figure_layout import (
    CHARACTER_INCHES,
    MAX_PANEL_INCHES,
    TOP_INCHES,
    Unit,
    add_legend,
    add_title,
    figure_style,
    finish_panel,
    label_layers,
    label_room,
    panel_grid,
    save_figure,
    split_rows,
    three_digits,
    unit_for,
)
from tilewright.report.records import (
    LATENCY_PARTS,
    PlacedLayer,
    Record,
    Summary,
    corrected_latency,
    layers_in_order,
    memory_energies_pj,
    memory_names,
)

OPERAND_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9")
"""Colour-blind-safe palette of Okabe and Ito."""
MAC_COLOUR = "#4d4d4d"
DIRECTION_STYLES = {
    "tl": ("read to lower level", 0.0, ""),
    "fl": ("written by lower level", 0.0, "//////"),
    "th": ("read to higher level", 0.55, ""),
    "fh": ("written by higher level", 0.55, "//////"),
}
"""Direction -> (words, share of white mixed in, hatch): writes are hatched, links to the level above are lighter."""
PART_STYLES = (
    ("#4d4d4d", ""),
    ("#56B4E9", ""),
    ("#D55E00", "//////"),
    ("#009E73", ""),
    ("#CC79A7", r"\\\\\\"),
    ("#F0E442", "xxxx"),
)
ENERGY_UNITS: tuple[Unit, ...] = ((1e12, "J"), (1e9, "mJ"), (1e6, "µJ"), (1e3, "nJ"), (1.0, "pJ"))
CYCLE_UNITS: tuple[Unit, ...] = ((1e9, "10⁹ cycles"), (1e6, "10⁶ cycles"), (1e3, "10³ cycles"), (1.0, "cycles"))
MARKER: dict[str, Any] = {
    "linestyle": "none",
    "marker": "D",
    "markersize": 4,
    "color": "white",
    "markeredgecolor": "black",
    "markeredgewidth": 0.8,
}
NO_FIT_MARKER = MARKER | {"marker": "X", "markersize": 5}
DIFFERENCE_SHOWN = 0.05
"""Relative difference from which the corrected latency is marked."""


def energy_figure(records: Sequence[Record], summary: Summary | None = None) -> Figure:
    """Energy per layer: a bar for the MACs and one per memory, stacked by operand and direction."""
    layers = layers_in_order(records, summary)
    memories = memory_names(records)
    operands = _operands(records)
    bars = len(memories) + 1
    bar_inches = min(0.32, max(0.085, MAX_PANEL_INCHES / max(1, len(layers)) / (bars + 1)))
    inches = max(0.5, bar_inches * (bars + 1))
    bar_names_inches = max(map(len, ("MAC", *memories))) * CHARACTER_INCHES + 0.1 if bar_inches >= 0.18 else 0.0
    level, label_inches = label_room(layers, inches)
    tops = [max([layer.record["mac_energy_pj"], *_memory_totals(layer.record).values()]) for layer in layers]
    unit = unit_for(max(tops, default=0), ENERGY_UNITS)
    with figure_style():
        rows = split_rows(layers, inches)
        figure, panels = panel_grid([len(row) for row in rows], inches, label_inches + bar_names_inches)
        for panel, row in zip(panels, rows, strict=True):
            _draw_energy_row(panel, row, operands, memories, unit)
            if bar_names_inches > 0:
                _name_bars(panel, len(row), memories)
            finish_panel(panel, max(tops, default=0), unit, "energy")
            label_layers(panel, row, level, bar_names_inches)
        add_title(figure, "Energy per layer", _context(summary), f"above the bars: total of the layer in {unit[1]}")
        _add_energy_legends(figure, operands, memories, named=bar_names_inches > 0)
    return figure


def latency_figure(records: Sequence[Record], summary: Summary | None = None) -> Figure:
    """Latency per layer: ideal cycles, spatial and temporal stalls, on- and off-loading, drain, stacked."""
    layers = layers_in_order(records, summary)
    inches = min(0.9, max(0.42, MAX_PANEL_INCHES / max(1, len(layers))))
    level, label_inches = label_room(layers, inches)
    tops = [max(layer.record["latency_cycles"], corrected_latency(layer.record) or 0) for layer in layers]
    unit = unit_for(max(tops, default=0), CYCLE_UNITS)
    with figure_style():
        rows = split_rows(layers, inches)
        figure, panels = panel_grid([len(row) for row in rows], inches, label_inches)
        for panel, row in zip(panels, rows, strict=True):
            for position, layer in enumerate(row):
                _draw_latency_bar(panel, position, layer.record, unit)
            finish_panel(panel, max(tops, default=0), unit, "latency")
            label_layers(panel, row, level)
        add_title(figure, "Latency per layer", _context(summary), f"above the bars: total of the layer in {unit[1]}")
        _add_latency_legend(figure)
    return figure


def write_figures(records: Sequence[Record], summary: Summary | None, directory: Path) -> tuple[Path, ...]:
    """Write energy.svg, energy.png, latency.svg and latency.png into `directory`; returns their paths."""
    energy = save_figure(energy_figure(records, summary), directory / "energy")
    return energy + save_figure(latency_figure(records, summary), directory / "latency")


def _context(summary: Summary | None) -> str:
    if summary is None:
        return ""
    return f"{summary['workload']} on {summary['core']}, best {summary['objective']}, model {summary['model']}"


def _memory_totals(record: Record) -> dict[str, float]:
    return {name: sum(parts.values()) for name, parts in memory_energies_pj(record).items()}


def _operands(records: Sequence[Record]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(operand for record in records for operand in record["memory_levels"]))


def _operand_colour(operand: str, operands: Sequence[str]) -> str:
    # The three usual operands keep their colour whatever the order of an equation.
    usual = ("O", "W", "I")
    order = [*usual, *(name for name in operands if name not in usual)]
    return OPERAND_COLOURS[order.index(operand) % len(OPERAND_COLOURS)]


def _lighter(colour: str, white: float) -> tuple[float, float, float]:
    red, green, blue = (channel + (1 - channel) * white for channel in to_rgb(colour))
    return red, green, blue


def _draw_energy_row(
    panel: Axes, layers: Sequence[PlacedLayer], operands: Sequence[str], memories: Sequence[str], unit: Unit
) -> None:
    for position, layer in enumerate(layers):
        record = layer.record
        offsets = _bar_offsets(len(memories) + 1)
        width = 0.92 / (len(memories) + 2)
        panel.bar(position + offsets[0], record["mac_energy_pj"] / unit[0], width, color=MAC_COLOUR)
        energies = memory_energies_pj(record)
        for name, offset in zip(memories, offsets[1:], strict=True):
            _stack_memory(panel, position + offset, width, energies.get(name, {}), operands, unit)
        highest = max([record["mac_energy_pj"], *_memory_totals(record).values()])
        _total(panel, position, highest, record["energy_pj"], unit)


def _bar_offsets(count: int) -> list[float]:
    """Centres of the bars of a layer around its position, with one bar width free between layers."""
    return [(index - (count - 1) / 2) / (count + 1) for index in range(count)]


def _stack_memory(
    panel: Axes, x: float, width: float, parts: dict[tuple[str, str], float], operands: Sequence[str], unit: Unit
) -> None:
    bottom = 0.0
    for (operand, direction), energy_pj in parts.items():
        if energy_pj <= 0:
            continue
        _, white, hatch = DIRECTION_STYLES[direction]
        colour = _lighter(_operand_colour(operand, operands), white)
        height = energy_pj / unit[0]
        panel.bar(x, height, width, bottom=bottom, color=colour, hatch=hatch, edgecolor="white", linewidth=0.2)
        bottom += height


def _name_bars(panel: Axes, layer_count: int, memories: Sequence[str]) -> None:
    names = ("MAC", *memories)
    for position in range(layer_count):
        for name, offset in zip(names, _bar_offsets(len(names)), strict=True):
            _bar_name(panel, position + offset, name)


def _bar_name(panel: Axes, x: float, name: str) -> None:
    panel.annotate(
        name,
        (x, 0),
        xytext=(0, -3),
        xycoords=("data", "axes fraction"),
        textcoords="offset points",
        rotation=90,
        ha="center",
        va="top",
        fontsize=6.5,
        color="#444444",
    )


def _total(panel: Axes, x: float, height: float, total: float, unit: Unit, points_above: int = 2) -> None:
    panel.annotate(
        three_digits(total / unit[0]),
        (x, height / unit[0]),
        xytext=(0, points_above),
        textcoords="offset points",
        ha="center",
        va="bottom",
        fontsize=6.5,
    )


def _draw_latency_bar(panel: Axes, x: int, record: Record, unit: Unit) -> None:
    bottom = 0.0
    for (part, _), (colour, hatch) in zip(LATENCY_PARTS, PART_STYLES, strict=True):
        height = record["latency_breakdown_cycles"][part] / unit[0]
        if height > 0:
            panel.bar(x, height, 0.66, bottom=bottom, color=colour, hatch=hatch, edgecolor="white", linewidth=0.2)
            bottom += height
    latency, corrected = record["latency_cycles"], corrected_latency(record)
    if corrected is None:
        panel.plot([x], [latency / unit[0]], **NO_FIT_MARKER)
        _total(panel, x, latency, latency, unit, 5)
    elif abs(corrected - latency) > DIFFERENCE_SHOWN * latency:
        panel.plot([x], [corrected / unit[0]], **MARKER)
        _total(panel, x, max(latency, corrected), latency, unit, 5)
    else:
        _total(panel, x, latency, latency, unit)


def _add_energy_legends(figure: Figure, operands: Sequence[str], memories: Sequence[str], named: bool) -> None:
    colours = [Patch(color=_operand_colour(operand, operands), label=operand) for operand in operands]
    down = add_legend(figure, [Patch(color=MAC_COLOUR, label="MAC"), *colours], "operand", TOP_INCHES)
    directions = [
        Patch(facecolor=_lighter(OPERAND_COLOURS[0], white), hatch=hatch, edgecolor="white", label=words)
        for words, white, hatch in DIRECTION_STYLES.values()
    ]
    down = add_legend(figure, directions, "direction", down)
    if named:
        return
    order = [Line2D([], [], linestyle="none", label=f"{i}  {name}") for i, name in enumerate(("MAC", *memories), 1)]
    add_legend(figure, order, "bars of a layer, left to right", down)


def _add_latency_legend(figure: Figure) -> None:
    patches = [
        Patch(facecolor=colour, hatch=hatch, edgecolor="white", label=words)
        for (_, words), (colour, hatch) in zip(LATENCY_PARTS, PART_STYLES, strict=True)
    ]
    down = add_legend(figure, patches[::-1], "cycles", TOP_INCHES)
    markers = [
        Line2D([], [], label=f"where over {DIFFERENCE_SHOWN:.0%} off", **MARKER),
        Line2D([], [], label="mapping does not fit it", **NO_FIT_MARKER),
    ]
    add_legend(figure, markers, "corrected model", down)
