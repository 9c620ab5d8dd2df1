"""Figures of a run: the energy and the cycles of each layer by cause.

If the layers do not fit side by side, they are divided into several rows of panels. All rows have the same scale.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any

from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from tilewright.cost.ledger import term_words
from tilewright.cost.record import LayerRecord
from tilewright.results.bottlenecks import energy_table, layer_shares
from tilewright.results.figure_files import figure_style, save_figure
from tilewright.results.figure_layout import (
    CHARACTER_INCHES,
    CYCLE_UNITS,
    ENERGY_UNIT,
    TOP_INCHES,
    Unit,
    add_legend,
    add_title,
    finish_panel,
    label_layers,
    label_room,
    lighter,
    operand_colour,
    panel_grid,
    panel_inches,
    split_rows,
    text_colour,
    three_digits,
    unit_for,
)
from tilewright.results.noted_figure import SMALL_TEXT, NotedFigure
from tilewright.results.records import (
    PlacedLayer,
    Summary,
    layers_in_order,
    memory_energies_pj,
    memory_names,
    merged_layers,
    other_energies_pj,
)
from tilewright.results.reported_mapping import ReportedMapping
from tilewright.results.sheet import sheet_inches
from tilewright.results.text_tables import share_text

if TYPE_CHECKING:
    import pandas

TERM_COLOURS = ("#4d4d4d", "#8c564b", "#17becf", "#bcbd22", "#9467bd", "#e377c2", "#7f7f7f", "#2ca02c")
"""Colours of the energy terms that are not memory accesses. If there are more terms than colours, the colours repeat.
"""
DIRECTION_STYLES = {
    "tl": ("read to lower level", 0.0, ""),
    "fl": ("written by lower level", 0.0, "//////"),
    "th": ("read to higher level", 0.55, ""),
    "fh": ("written by higher level", 0.55, "//////"),
}
"""Style of each direction of a memory access: (word, share of white mixed in, hatch). Writes are hatched. Accesses from
or to the level above have a lighter colour.
"""
DIRECTION_COLOUR = "#777777"
"""Colour of the directions in a legend: grey, because each operand has its own colour."""
STACK_HATCHES = ("", "//////", "", r"\\\\\\")
"""Hatches of the parts of a stacked bar, from the bottom; they repeat."""
STACK_SHARE = 0.66
"""Width of a stacked bar as a share of the distance between two layers."""
PART_STYLES = (
    ("#4d4d4d", ""),
    ("#56B4E9", ""),
    ("#D55E00", "//////"),
    ("#009E73", ""),
    ("#CC79A7", r"\\\\\\"),
    ("#F0E442", "xxxx"),
)
PAPER_LAYER_INCHES, MOST_LAYER_INCHES = 0.15, 0.9
"""Limits for the width of a layer, in inches: the smallest width in a figure for a paper, and the largest width of a
layer with one bar.
"""
MARKER: dict[str, Any] = {
    "linestyle": "none",
    "marker": "D",
    "markersize": 4,
    "color": "white",
    "markeredgecolor": "black",
    "markeredgewidth": 0.8,
}
NO_FIT_MARKER = MARKER | {"marker": "X", "markersize": 5}
SUM = "Σ "
"""Text before a number that is the sum of the bars below it."""
DIFFERENCE_SHOWN = 0.05
"""Threshold for a mark in the figure. The latency of a layer is marked if the corrected model changes it by more than
this share.
"""


def energy_figure(records: Sequence[LayerRecord], summary: Summary | None = None) -> Figure:
    """Figure of the energy per layer. In a report, a layer has a bar for each memory, stacked by operand and direction,
    and a bar for each other energy term, such as the MACs. In a figure for a paper, a layer has one bar, stacked by
    term and memory.
    """
    layers = _shown_layers(records, summary)
    bars = _EnergyBars.of(records, layers)
    level, label_inches = label_room(layers, bars.inches)
    with figure_style():
        rows = split_rows(layers, bars.inches)
        figure, panels = panel_grid([len(row) for row in rows], bars.inches, label_inches + bars.names_inches)
        for panel, row in zip(panels, rows, strict=True):
            bars.draw(panel, row)
            label_layers(panel, row, level, bars.names_inches)
        add_title(figure, "Energy per layer", _context(summary), bars.words_of_totals)
        bars.add_legends(figure, TOP_INCHES)
        every = layers_in_order(records, summary)
        told = [bars.order, *_merged_words(layers)]
        figure.note(f"Energy per layer: {_context(summary)}", told, lambda: _energy_numbers(every))
        figure.words_of_marks = bars.words_of_totals
    return figure


def latency_figure(records: Sequence[LayerRecord], summary: Summary | None = None) -> Figure:
    """Figure of the latency per layer: stacked ideal cycles, spatial and temporal stalls, on-loading, off-loading and
    drain.
    """
    layers = _shown_layers(records, summary)
    inches = _layer_inches(len(layers), 0.42 if sheet_inches() is None else PAPER_LAYER_INCHES)
    level, label_inches = label_room(layers, inches)
    top, unit = _latency_scale(layers)
    with figure_style():
        rows = split_rows(layers, inches)
        figure, panels = panel_grid([len(row) for row in rows], inches, label_inches)
        for panel, row in zip(panels, rows, strict=True):
            _draw_latency_row(panel, row, top, unit)
            label_layers(panel, row, level)
        totals = f"above the bars: latency of the layer in {unit[1]}"
        add_title(figure, "Latency per layer", _context(summary), totals)
        _add_latency_legend(figure, layers, TOP_INCHES)
        told = _merged_words(layers)
        figure.note(f"Latency per layer: {_context(summary)}", told, lambda: layer_numbers(records, summary))
        figure.words_of_marks = totals
    return figure


def breakdown_figure(records: Sequence[LayerRecord], summary: Summary | None = None) -> Figure:
    """Figure with two panels for each row of layers: the energy, and the latency below it."""
    layers = _shown_layers(records, summary)
    bars = _EnergyBars.of(records, layers)
    level, label_inches = label_room(layers, bars.inches)
    top, unit = _latency_scale(layers)
    with figure_style():
        rows = split_rows(layers, bars.inches)
        lengths = [len(row) for row in rows for _ in range(2)]
        below = [bars.names_inches, label_inches] * len(rows)
        figure, panels = panel_grid(lengths, bars.inches, below, least_height=5.6)
        for above, beneath, row in zip(panels[::2], panels[1::2], rows, strict=True):
            bars.draw(above, row)
            above.set_xlim(-0.5, max(len(row), 1) - 0.5)
            above.set_xticks([])
            _draw_latency_row(beneath, row, top, unit)
            label_layers(beneath, row, level)
        totals = f"{bars.words_of_totals}; latency of the layer in {unit[1]}"
        add_title(figure, "Energy and latency per layer", _context(summary), totals)
        _add_latency_legend(figure, layers, bars.add_legends(figure, TOP_INCHES) + 0.15, needs_title=True)
        context = _context(summary)
        told = [bars.order, *_merged_words(layers)]
        figure.note(f"Energy and latency per layer: {context}", told, lambda: layer_numbers(records, summary))
        figure.words_of_marks = totals
    return figure


def _layer_inches(count: int, least: float) -> float:
    """Width in inches of each of `count` layers that have one bar each; at least `least`."""
    return min(MOST_LAYER_INCHES, max(least, panel_inches() / max(1, count)))


def _shown_layers(records: Sequence[LayerRecord], summary: Summary | None) -> tuple[PlacedLayer, ...]:
    """Layers of a figure. A figure for a paper has equal layers only once, because it has room for few layers."""
    layers = layers_in_order(records, summary)
    return layers if sheet_inches() is None else merged_layers(layers)


def _merged_words(layers: Sequence[PlacedLayer]) -> list[str]:
    """Line of the caption on equal layers that are drawn only once; [] if there are none."""
    many = sheet_inches() is not None and any(layer.repeats > 1 for layer in layers)
    return ["“x 2” after a name: bars are sums over 2 equal layers, named by the first of them"] if many else []


def reported_energy(run: ReportedMapping) -> Figure:
    """Figure of the energy per layer, for the report of a run."""
    return energy_figure(run.records, run.summary)


def reported_latency(run: ReportedMapping) -> Figure:
    """Figure of the latency per layer, for the report of a run."""
    return latency_figure(run.records, run.summary)


def write_breakdown(records: Sequence[LayerRecord], summary: Summary | None, path_stem: Path) -> tuple[Path, ...]:
    """Write energy and latency as one figure: `path_stem`.svg and .png, or for a paper the files of `figure_suffixes`.
    Returns the paths.
    """
    return save_figure(breakdown_figure(records, summary), path_stem)


@dataclass(frozen=True)
class _EnergyBars:
    """Properties that the energy bars in all rows of a figure share."""

    operands: tuple[str, ...]
    terms: tuple[str, ...]
    """Names of the energy terms that are not memory accesses."""
    memories: tuple[str, ...]
    inches: float
    """Width of a layer in a figure, in inches: all bars of the layer, and the gap to the next layer."""
    names_inches: float
    """Height in inches of the room below the axis for the names of the bars; 0 if the bars are too narrow for names."""
    top_pj: float
    unit: Unit
    shares: tuple[float, ...]
    """Share of each part (an energy term or a memory) in the energy of all layers together. The legend lists these
    shares, because small bars are hardly visible.
    """
    is_stacked: bool
    """True if a layer has one bar with all parts, as in a figure for a paper. False if each part has its own bar."""

    @classmethod
    def of(cls, records: Sequence[LayerRecord], layers: Sequence[PlacedLayer]) -> "_EnergyBars":
        memories = memory_names(records)
        terms = tuple(dict.fromkeys(term for record in records for term in other_energies_pj(record)))
        shares = _shares(layers, terms, memories)
        if sheet_inches() is not None:
            inches = _layer_inches(len(layers), PAPER_LAYER_INCHES)
            top = max((layer.record.energy_pj for layer in layers), default=0)
            return cls(_operands(records), terms, memories, inches, 0.0, top, ENERGY_UNIT, shares, is_stacked=True)
        bars = len(memories) + len(terms)
        bar_inches = min(0.32, max(0.085, panel_inches() / max(1, len(layers)) / (bars + 1)))
        words = (*map(term_words, terms), *memories)
        names = max(map(len, words), default=0) * CHARACTER_INCHES + 0.1 if bar_inches >= 0.18 else 0.0
        top, inches = max((_highest(layer.record) for layer in layers), default=0), max(0.5, bar_inches * (bars + 1))
        return cls(_operands(records), terms, memories, inches, names, top, ENERGY_UNIT, shares, is_stacked=False)

    @property
    def order(self) -> str:
        """Sentence for a caption: the order of the parts of a layer, and the share of the energy of each part."""
        parts = "parts of a bar from bottom to top" if self.is_stacked else "bars of a layer from left to right"
        return f"{parts}, with their shares of the energy of all layers: {', '.join(self.told)}"

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the parts of a layer: the energy terms, then the memories."""
        return (*map(term_words, self.terms), *self.memories)

    @property
    def told(self) -> list[str]:
        """Name and share of each part, such as `dram 30.3%`."""
        return [f"{name} {share_text(share, 1.0)}" for name, share in zip(self.names, self.shares, strict=True)]

    @property
    def words_of_totals(self) -> str:
        """Text that explains the numbers above the bars."""
        if self.is_stacked:
            return f"above the bars: energy of the layer in {self.unit[1]}"
        return f"{SUM}above the bars: energy of the layer, the sum of its bars, in {self.unit[1]}"

    @property
    def styles(self) -> list[tuple[str, str, str]]:
        """Triples (colour, colour of the edge, hatch) of the parts of a stacked bar. Each part is darker than the
        part below it, and every second part is hatched, so that the parts also differ in a print without colours.
        """
        count = len(self.names)
        colours = [to_hex(colormaps["viridis"](0.95 - 0.85 * place / max(1, count - 1))) for place in range(count)]
        return [
            (colour, text_colour(colour), hatch) for colour, hatch in zip(colours, cycle(STACK_HATCHES), strict=False)
        ]

    def draw(self, panel: Axes, row: Sequence[PlacedLayer]) -> None:
        """Draw the bars of a row of layers, with their names if there is room."""
        for position, layer in enumerate(row):
            self._draw_layer(panel, position, layer.record)
        if self.names_inches > 0:
            _name_bars(panel, len(row), self.names)
        finish_panel(panel, self.top_pj, self.unit, "energy")

    def add_legends(self, figure: NotedFigure, down_inches: float) -> float:
        """Add the legends on the right side of the figure, the first one `down_inches` below the top. Returns the
        distance in inches from the top of the figure to the place for a further legend.
        """
        if self.is_stacked:
            parts = [
                Patch(facecolor=face, edgecolor=edge, hatch=hatch, linewidth=0.2, label=text)
                for (face, edge, hatch), text in zip(self.styles, self.told, strict=True)
            ]
            return add_legend(figure, parts, "share of the energy", down_inches)
        terms = [
            Patch(color=colour, label=term_words(term))
            for term, colour in zip(self.terms, cycle(TERM_COLOURS), strict=False)
        ]
        operands = [Patch(color=operand_colour(operand, self.operands), label=operand) for operand in self.operands]
        down = add_legend(figure, [*terms, *operands], "operand", down_inches)
        directions = [
            Patch(facecolor=lighter(DIRECTION_COLOUR, white), hatch=hatch, edgecolor="white", label=words)
            for words, white, hatch in DIRECTION_STYLES.values()
        ]
        down = add_legend(figure, directions, "direction", down)
        told = [f"{name}, {share_text(share, 1.0)}" for name, share in zip(self.names, self.shares, strict=True)]
        if self.names_inches > 0:
            return add_legend(figure, _lines(told), "share of the energy", down)
        return add_legend(
            figure,
            _lines(f"{i}  {text}" for i, text in enumerate(told, 1)),
            "share of the energy",
            down,
        )

    def _draw_layer(self, panel: Axes, position: int, record: LayerRecord) -> None:
        if self.is_stacked:
            self._stack_layer(panel, position, record)
            return
        count = len(self.terms) + len(self.memories)
        places = iter(position + offset for offset in _bar_offsets(count))
        width = 0.92 / (count + 1)
        others, energies = other_energies_pj(record), memory_energies_pj(record)
        for term, colour in zip(self.terms, cycle(TERM_COLOURS), strict=False):
            panel.bar(next(places), others.get(term, 0.0) / self.unit[0], width, color=colour)
        for name in self.memories:
            _stack_memory(panel, next(places), width, energies.get(name, {}), self.operands, self.unit)
        # A number alone would read as the height of the highest bar.
        _total(panel, position, _highest(record), record.energy_pj, self.unit, before=SUM)

    def _stack_layer(self, panel: Axes, position: int, record: LayerRecord) -> None:
        """Draw one bar for a layer, with a part for each energy term and each memory."""
        others, accesses = other_energies_pj(record), memory_energies_pj(record)
        energies = [others.get(term, 0.0) for term in self.terms]
        energies += [sum(accesses.get(name, {}).values()) for name in self.memories]
        bottom = 0.0
        for energy_pj, (face, edge, hatch) in zip(energies, self.styles, strict=True):
            height = energy_pj / self.unit[0]
            if height > 0:
                style: dict[str, Any] = {"facecolor": face, "edgecolor": edge, "hatch": hatch, "linewidth": 0.2}
                panel.bar(position, height, STACK_SHARE, bottom=bottom, **style)
                bottom += height
        _total(panel, position, record.energy_pj, record.energy_pj, self.unit)


def _energy_numbers(layers: Sequence[PlacedLayer]) -> "pandas.DataFrame":
    """Table of the parts of the energy, in pJ."""
    return energy_table([share for layer in layers for share in layer_shares(layer.name, layer.record)])


def layer_numbers(records: Sequence[LayerRecord], summary: Summary | None) -> "pandas.DataFrame":
    """Table of the layers, with energies in pJ and parts of the latency in cycles."""
    from tilewright.results.tables import layer_table

    return layer_table(records, summary)


def _shares(layers: Sequence[PlacedLayer], terms: Sequence[str], memories: Sequence[str]) -> tuple[float, ...]:
    """Share of each energy term, then of each memory, in the energy of all layers."""
    total = sum(layer.record.energy_pj for layer in layers) or 1.0
    others = [other_energies_pj(layer.record) for layer in layers]
    accesses = [memory_energies_pj(layer.record) for layer in layers]
    of_terms = (sum(energies.get(term, 0.0) for energies in others) for term in terms)
    of_memories = (sum(sum(energies.get(name, {}).values()) for energies in accesses) for name in memories)
    return tuple(energy / total for energy in (*of_terms, *of_memories))


def _lines(texts: Iterable[str]) -> list[Line2D]:
    """Legend entries without a symbol."""
    return [Line2D([], [], linestyle="none", label=text) for text in texts]


def _context(summary: Summary | None) -> str:
    if summary is None:
        return ""
    return f"{summary['workload']} on {summary['hardware']}, best {summary['objective']}, model {summary['model']}"


def _highest(record: LayerRecord) -> float:
    """Energy of the highest bar of a layer, in pJ."""
    memories = (sum(parts.values()) for parts in memory_energies_pj(record).values())
    return max([*other_energies_pj(record).values(), *memories], default=0.0)


def _operands(records: Sequence[LayerRecord]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(operand for record in records for operand in record.memory_levels))


def _bar_offsets(count: int) -> list[float]:
    """Centres of the bars of a layer, relative to the centre of the layer. The unit is the distance between two layers.
    The gap between two layers has the width of one bar.
    """
    return [(index - (count - 1) / 2) / (count + 1) for index in range(count)]


def _stack_memory(
    panel: Axes, x: float, width: float, parts: dict[tuple[str, str], float], operands: Sequence[str], unit: Unit
) -> None:
    bottom = 0.0
    for (operand, direction), energy_pj in parts.items():
        if energy_pj <= 0:
            continue
        _, white, hatch = DIRECTION_STYLES[direction]
        colour = lighter(operand_colour(operand, operands), white)
        height = energy_pj / unit[0]
        panel.bar(x, height, width, bottom=bottom, color=colour, hatch=hatch, edgecolor="white", linewidth=0.2)
        bottom += height


def _name_bars(panel: Axes, layer_count: int, names: Sequence[str]) -> None:
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
        gid=SMALL_TEXT,
    )


def _total(
    panel: Axes, x: float, height: float, total: float, unit: Unit, points_above: int = 2, before: str = ""
) -> None:
    panel.annotate(
        before + three_digits(total / unit[0]),
        (x, height / unit[0]),
        xytext=(0, points_above),
        textcoords="offset points",
        ha="center",
        va="bottom",
        fontsize=6.5,
        gid=SMALL_TEXT,
    )


def _latency_scale(layers: Sequence[PlacedLayer]) -> tuple[float, Unit]:
    """Pair (highest value that is drawn, in cycles; unit of the axis)."""
    tops = [max(layer.record.latency_cycles, layer.record.corrected.latency_cycles or 0) for layer in layers]
    top = max(tops, default=0)
    return top, unit_for(top, CYCLE_UNITS)


def _draw_latency_row(panel: Axes, row: Sequence[PlacedLayer], top: float, unit: Unit) -> None:
    for position, layer in enumerate(row):
        _draw_latency_bar(panel, position, layer.record, unit)
    finish_panel(panel, top, unit, "latency")


def _draw_latency_bar(panel: Axes, x: int, record: LayerRecord, unit: Unit) -> None:
    bottom = 0.0
    for cycles, (colour, hatch) in zip(record.latency_breakdown_cycles.values(), cycle(PART_STYLES), strict=False):
        height = cycles / unit[0]
        if height > 0:
            panel.bar(
                x, height, STACK_SHARE, bottom=bottom, color=colour, hatch=hatch, edgecolor="white", linewidth=0.2
            )
            bottom += height
    latency, corrected = record.latency_cycles, record.corrected.latency_cycles
    if corrected is None:
        panel.plot([x], [latency / unit[0]], **NO_FIT_MARKER)
        _total(panel, x, latency, latency, unit, 5)
    elif _is_different(latency, corrected):
        panel.plot([x], [corrected / unit[0]], **MARKER)
        _total(panel, x, max(latency, corrected), latency, unit, 5)
    else:
        _total(panel, x, latency, latency, unit)


def _add_latency_legend(
    figure: NotedFigure, layers: Sequence[PlacedLayer], down_inches: float, *, needs_title: bool = False
) -> None:
    """Add the legend of the parts of the latency. `needs_title` is true if another legend of the figure has entries of
    other quantities.
    """
    terms = dict.fromkeys(term for layer in layers for term in layer.record.latency_breakdown_cycles)
    patches = [
        Patch(facecolor=colour, hatch=hatch, edgecolor="white", label=term_words(term))
        for term, (colour, hatch) in zip(terms, cycle(PART_STYLES), strict=False)
    ]
    down = add_legend(figure, patches[::-1], "cycles", down_inches, needs_title=needs_title)
    pairs = [(layer.record.latency_cycles, layer.record.corrected.latency_cycles) for layer in layers]
    markers = []
    if any(corrected is not None and _is_different(latency, corrected) for latency, corrected in pairs):
        markers.append(Line2D([], [], label=f"differs by over {DIFFERENCE_SHOWN:.0%}", **MARKER))
    if any(corrected is None for _, corrected in pairs):
        markers.append(Line2D([], [], label="mapping does not fit", **NO_FIT_MARKER))
    if markers:
        add_legend(figure, markers, "corrected model", down, needs_title=True)


def _is_different(latency: float, corrected: float) -> bool:
    """True if the latency under the corrected model differs enough from the latency of the run to be marked in the
    figure.
    """
    return abs(corrected - latency) > DIFFERENCE_SHOWN * latency
