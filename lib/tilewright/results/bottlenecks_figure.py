"""Figure of the bottlenecks of a run: cycles by cause and energy by memory and operand, with rooflines below them."""

import math
from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from tilewright.results.bottlenecks import Bottlenecks, Share, cause_words, share_table
from tilewright.results.bottlenecks_text import has_causes, memory_words
from tilewright.results.canvas import GREY
from tilewright.results.figure_files import figure_style, save_figure
from tilewright.results.figure_layout import OPERAND_COLOURS, operand_colour
from tilewright.results.noted_figure import NotedFigure, name_axes
from tilewright.results.number_axes import number_axis
from tilewright.results.point_names import place_names
from tilewright.results.port_limits import PortRoof, RooflinePoint
from tilewright.results.run_ledger import ENERGY, LATENCY
from tilewright.results.sheet import sheet_inches
from tilewright.results.text_tables import share_text
from tilewright.results.two_runs_text import UNITS, amount, title_of
from tilewright.results.words import short_names

MOST_BARS, MOST_ROOFS, MOST_LABELS = 14, 3, 12
NAME_CHARACTERS, LAYER_CHARACTERS = 34, 24
WIDTH_INCHES, NAME_INCHES, NUMBER_INCHES, BAR_INCHES = 11.0, 2.1, 1.0, 0.2
HEAD_INCHES, TITLE_INCHES, ROOF_INCHES = 0.35, 0.55, 2.7
CYCLE_COLOUR, ROOF_COLOUR, POINT_COLOUR = OPERAND_COLOURS[5], "#4d4d4d", OPERAND_COLOURS[4]
OF_ROOFS = "disc: a layer; the larger the disc, the more cycles; names where there is room"
OF_MACS = "a MAC counts as one operation (in TOP/s, as two); for layers without MACs, other operations count"
Bar = tuple[str, dict[str, float]]
"""Pair (name of a bar, size of each stacked part of the bar by name of the part)."""


def bottlenecks_figure(found: Bottlenecks) -> Figure:
    """Figure with the largest parts of cycles and energy. Below them are rooflines of the ports that would save most
    cycles if they were wider (at most MOST_ROOFS ports). Each roofline has one point for each layer that uses the port.
    """
    causes = found.added(LATENCY, cause_words) if has_causes(found) else {}
    panels = [(LATENCY, "cycles by cause", _merged([(name, {"": value}) for name, value in causes.items()]))]
    panels.append((ENERGY, "energy by memory and operand", _merged(_memory_bars(found))))
    panels = [panel for panel in panels if panel[2]]
    roofs = shown_roofs(found)
    tall = HEAD_INCHES + BAR_INCHES * max((len(bars) for _, _, bars in panels), default=1)
    height = TITLE_INCHES + tall + 0.3 + (HEAD_INCHES + ROOF_INCHES + 0.5 if roofs else 0)
    with figure_style():
        figure = NotedFigure(figsize=(WIDTH_INCHES, height))
        FigureCanvasAgg(figure)
        inches = figure.dpi_scale_trans
        title = f"Energy and cycles by cause: {title_of(found.run)}"
        figure.text(0.2, height - 0.2, title, fontsize=10, weight="bold", va="center", transform=inches)
        figure.text(0.2, height - 0.4, _subtitle(found), fontsize=7.5, color=GREY, va="center", transform=inches)
        told = [_subtitle(found), *([OF_ROOFS, OF_MACS] if roofs else [])]
        figure.note(title, told, lambda: share_table(found))
        each = WIDTH_INCHES / max(1, len(panels))
        for place, (quantity, heading, bars) in enumerate(panels):
            left, deep = place * each + NAME_INCHES, BAR_INCHES * len(bars)
            box = (left, height - TITLE_INCHES - HEAD_INCHES - deep, each - NAME_INCHES - NUMBER_INCHES, deep)
            _draw_bars(_axes(figure, box), found, quantity, heading, bars)
        places = [(n * WIDTH_INCHES / len(roofs) + 0.7, WIDTH_INCHES / len(roofs) - 0.9) for n in range(len(roofs))]
        plots = [_axes(figure, (left, 0.5, wide, ROOF_INCHES)) for left, wide in places]
        for panel, roof in zip(plots, roofs, strict=True):
            _draw_roof(panel, found, roof)
        figure.place_numbers = lambda: _name_points(found, plots, roofs)
        if sheet_inches() is None:
            figure.place_numbers()
    return figure


def write_bottlenecks_figure(found: Bottlenecks, path_stem: Path) -> tuple[Path, ...]:
    """Write the figure as `path_stem`.svg and .png; returns both paths."""
    return save_figure(bottlenecks_figure(found), path_stem)


def shown_roofs(found: Bottlenecks) -> list[PortRoof]:
    """Rooflines of the ports that would save most cycles if they were wider, at most MOST_ROOFS. [] if the roofline of
    the run or the limit of the network is not known.
    """
    if found.roofline is None or found.network_limit is None:
        return []
    order = [one.ports[0] for one in found.network_limit.ports]
    roofs = [roof for roof in found.roofline.ports if roof.points]
    return sorted(roofs, key=lambda roof: order.index(roof.port))[:MOST_ROOFS]


def _subtitle(found: Bottlenecks) -> str:
    totals = ", ".join(f"{amount(found.total(key), key)} {UNITS[key][1]}" for key in (ENERGY, LATENCY))
    return totals if found.network_limit is None else f"{totals}; limited by {found.limited_by()}"


def _memory_bars(found: Bottlenecks) -> list[Bar]:
    bars: dict[str, dict[str, float]] = {name: {} for name in found.added(ENERGY, memory_words)}

    def key(one: Share) -> tuple[str, str]:
        return memory_words(one), one.operand

    for (name, operand), energy in found.added(ENERGY, key).items():
        bars[name][operand] = energy
    return list(bars.items())


def _merged(bars: Sequence[Bar]) -> list[Bar]:
    """Largest bars, and one bar with the sum of all others: MOST_BARS bars in total. If there are at most MOST_BARS
    bars, they are returned unchanged. `bars` must be sorted, the largest bar first.
    """
    if len(bars) <= MOST_BARS:
        return list(bars)
    rest = bars[MOST_BARS - 1 :]
    return [*bars[: MOST_BARS - 1], (f"{len(rest)} others", {"": sum(sum(parts.values()) for _, parts in rest)})]


def _axes(figure: Figure, inches: tuple[float, float, float, float]) -> Axes:
    width, height = figure.get_size_inches()
    left, bottom, wide, tall = inches
    return figure.add_axes((left / width, bottom / height, wide / width, tall / height))


def _draw_bars(panel: Axes, found: Bottlenecks, quantity: str, title: str, bars: Sequence[Bar]) -> None:
    _, unit, scale = UNITS[quantity]
    panel.set_title(f"{title} [{unit}]", fontsize=8, loc="left")
    name_axes(panel, f"{title} [{unit}]", "cause" if quantity == LATENCY else "memory")
    panel.set_xticks([])
    for side in ("bottom", "left"):
        panel.spines[side].set_visible(False)
    operands = tuple(dict.fromkeys(name for _, parts in bars for name in parts if name))
    total = found.total(quantity)
    for place, (_, parts) in enumerate(bars):
        left = 0.0
        for operand in ("", *operands):
            colour = operand_colour(operand, operands) if operand else CYCLE_COLOUR if quantity == LATENCY else GREY
            value = parts.get(operand, 0.0) / scale
            panel.barh(place, value, 0.62, left=left, color=colour, edgecolor="white", linewidth=0.3)
            left += value
        whole = sum(parts.values())
        # A column of a paper has no room for the amounts, which its horizontal axis shows, with their unit.
        text = f"{amount(whole, quantity)}  " if sheet_inches() is None else ""
        text += share_text(whole, total)
        panel.text(1.02, place, text, va="center", fontsize=7, transform=panel.get_yaxis_transform())
    panel.set_ylim(len(bars) - 0.5, -0.5)
    panel.set_yticks(range(len(bars)), labels=short_names([name for name, _ in bars], limit=NAME_CHARACTERS))
    panel.tick_params(axis="y", length=0)
    if operands:
        handles = [Patch(color=operand_colour(operand, operands), label=operand) for operand in operands]
        panel.legend(handles=handles, loc="lower right", frameon=False, fontsize=7.5)


def _draw_roof(panel: Axes, found: Bottlenecks, roof: PortRoof) -> None:
    assert found.roofline is not None
    peak, slope = found.roofline.operations_a_cycle, roof.bytes_a_cycle
    points = _drawn(roof)
    ends = [*(point.operations_a_byte for point in points), peak / slope]
    low, high = (10.0 ** whole(math.log10(end)) for whole, end in ((math.floor, min(ends)), (math.ceil, 2 * max(ends))))
    panel.plot([low, peak / slope, high], [low * slope, peak, peak], color=ROOF_COLOUR, linewidth=1.2)
    for point, area in zip(points, _areas(found, points), strict=True):
        panel.scatter(point.operations_a_byte, point.operations_a_cycle, area, color=POINT_COLOUR, alpha=0.6)
    panel.set_xscale("log")
    panel.set_yscale("log")
    panel.set_xlim(low, high)
    lowest = min([*(point.operations_a_cycle for point in points), peak])
    panel.set_ylim(10.0 ** math.floor(math.log10(lowest)), peak * 3)
    for axis in (panel.xaxis, panel.yaxis):
        number_axis(axis)
    panel.set_title(f"{roof.port}: {slope:g} B a cycle", fontsize=8, loc="left")
    told = f"peak of the array: {peak:g} MACs a cycle"
    panel.text(high, peak * 1.1, told, fontsize=6.5, color=ROOF_COLOUR, ha="right", va="bottom")
    panel.set_xlabel("MACs per byte moved over the port", fontsize=7.5)
    panel.set_ylabel("MACs a cycle", fontsize=7.5)


def _drawn(roof: PortRoof) -> list[RooflinePoint]:
    """Points of a roofline that a logarithmic axis can show."""
    return [point for point in roof.points if point.operations_a_cycle > 0]


def _areas(found: Bottlenecks, points: Sequence[RooflinePoint]) -> list[float]:
    """Areas of the discs of layers, in points squared. They grow linearly with the cycles of the layer."""
    cycles = {layer: limit.latency_cycles for layer, limit in found.limits.items()}
    longest = max(cycles.values(), default=1.0)
    return [8 + 70 * cycles.get(point.layer, 0.0) / longest for point in points]


def _name_points(found: Bottlenecks, panels: Sequence[Axes], roofs: Sequence[PortRoof]) -> None:
    """Write the names of layers beside their points, those of the largest points first."""
    for panel, roof in zip(panels, roofs, strict=True):
        points = _drawn(roof)
        areas = _areas(found, points)
        order = sorted(range(len(points)), key=lambda place: -areas[place])
        names = short_names([point.layer for point in points], limit=LAYER_CHARACTERS)
        places = [(points[one].operations_a_byte, points[one].operations_a_cycle) for one in order]
        own = [areas[one] for one in order], [names[one] for one in order]
        place_names(panel, places, *own, MOST_LABELS, GREY)
