"""Figures of memories and links over time: the content of each memory, its capacity and peak, and the use of each
link.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from tilewright.base.units import size_text
from tilewright.multicore.scheduling.problem import Floats, Integers
from tilewright.multicore.scheduling.schedule import link_use
from tilewright.results.canvas import GREY
from tilewright.results.figure_files import figure_style, save_figure
from tilewright.results.figure_layout import CYCLE_UNITS, OPERAND_COLOURS, lighter, unit_for
from tilewright.results.multi.bars import ScheduleView
from tilewright.results.multi.reported_schedule import ReportedSchedule
from tilewright.results.multi.summary import link_uses
from tilewright.results.noted_figure import PANEL_TEXT, NotedFigure, name_axes
from tilewright.results.number_axes import number_axis

if TYPE_CHECKING:
    import pandas

WIDTH_INCHES, LEFT_INCHES, RIGHT_INCHES = 12.0, 0.9, 0.35
TOP_INCHES, PANEL_INCHES, HEAD_INCHES, AXIS_INCHES = 0.55, 1.0, 0.32, 0.5
LEAST_PANEL_INCHES, MOST_INCHES = 0.3, 24.0
"""Limits for heights in inches. The panels of a figure are made lower if the figure would be higher than MOST_INCHES.
No panel is made lower than LEAST_PANEL_INCHES.
"""
MEMORY_COLOUR, LINK_COLOUR, LIMIT_COLOUR = OPERAND_COLOURS[0], OPERAND_COLOURS[2], OPERAND_COLOURS[4]
MEMORY_STRETCHES, LINK_STRETCHES = 1000, 400
"""Number of time intervals for the curve of a memory (MEMORY_STRETCHES) or of a link (LINK_STRETCHES). A curve with
more than twice as many steps is drawn with one value for each interval.
"""
LEAST_SHARE = 0.05
"""Smallest ratio (peak of the curve / limit) at which the limit is drawn."""


@dataclass(frozen=True, eq=False)
class Curve:
    """Quantity that changes in steps."""

    name: str
    times: Integers
    """Times of the steps in cycles, ascending."""
    values: Floats
    """Value from each time in `times` until the next time, in bits or as a share."""
    text: str
    """Text beside the curve: for a memory, the peak; for a link, the use."""
    limit: float
    """Largest possible value: the capacity in bits, or 1 for a share."""


def memory_curves(view: ScheduleView) -> list[Curve]:
    """Curves of the bits in each on-chip memory over time. Memories that are always empty are left out."""
    system, schedule = view.system, view.schedule
    curves = []
    for memory, capacity in enumerate(system.memory_capacity_bits.tolist()):
        times, stored = schedule.memory_use(memory)
        if memory == system.off_chip_memory or not stored.any():
            continue
        peak = int(schedule.peak_bits[memory])
        when = int(times[np.argmax(stored)])
        text = f"peak {size_text(peak)} of {size_text(capacity)} ({100 * peak / capacity:.1f} %) at cycle {when:,}"
        curves.append(Curve(view.names.memory_names[memory], times, stored.astype(np.float64), text, float(capacity)))
    return curves


def link_curves(view: ScheduleView) -> list[Curve]:
    """Curves of the use of each link over time, as a share of the width of the link. Links that carry no data are left
    out. The text beside a curve has the use of the link, with the same numbers as the summary of the run.
    """
    widths = view.system.link_bits_per_cycle
    curves = []
    rows = link_uses(view.artifact)
    for link, (times, used) in enumerate(link_use(view.schedule, view.system)):
        if not len(times):
            continue
        row = rows[link]
        text = f"{row.kind} without limit, busy {100 * row.busy:.1f} %"
        if row.utilisation is not None:
            text = (
                f"{row.kind} of {row.width_bits_per_cycle:,} bits per cycle, busy {100 * row.busy:.1f} %,"
                f" carries {100 * row.utilisation:.1f} % of its capacity"
            )
        curves.append(Curve(view.link_label(link), times, used / widths[link], text, 1.0))
    return curves


def memory_figure(view: ScheduleView) -> Figure:
    """Figure with a panel for each on-chip memory: bits over time, the capacity as a dashed line, and a text on the
    peak.
    """
    curves = memory_curves(view)
    words = "bits in each memory over time; dashed: its capacity" if curves else "nothing is kept in a memory"
    title = f"Memories: {view.names.network} on {view.names.accelerator}"
    return _curves_figure(curves, title, words, view, MEMORY_COLOUR, True)


def link_figure(view: ScheduleView) -> Figure:
    """Figure with a panel for each link in use: used share of its width over time."""
    curves = link_curves(view)
    words = "used share of the width of each link" if curves else "nothing moves over a link"
    idle = len(view.names.link_names) - len(curves)
    if curves and idle:
        words += f"; {idle} more {'links carry' if idle > 1 else 'link carries'} nothing"
    title = f"Links: {view.names.network} on {view.names.accelerator}"
    return _curves_figure(curves, title, words, view, LINK_COLOUR, False)


def write_memory_figure(view: ScheduleView, path_stem: Path) -> tuple[Path, ...]:
    """Write the figure of the memories as `path_stem`.svg and .png, or for a paper as the files of `figure_suffixes`.
    Returns the paths.
    """
    return save_figure(memory_figure(view), path_stem)


def reported_memories(run: ReportedSchedule) -> Figure:
    """Figure of the use of memories over time, for the report of a run."""
    return memory_figure(run.view)


def reported_links(run: ReportedSchedule) -> Figure:
    """Figure of the use of links, for the report of a run."""
    return link_figure(run.view)


def most_in_stretches(curve: Curve, last: int, stretches: int) -> tuple[Floats, Floats]:
    """Pair (times in cycles, values) for drawing a curve. A curve with more than 2 x `stretches` steps is divided into
    `stretches` intervals of equal length. Each interval then has one value: the largest value of the curve in the
    interval.
    """
    if len(curve.times) <= 2 * stretches:
        return curve.times.astype(np.float64), curve.values
    edges = np.linspace(0, last, stretches + 1)
    # The value at the beginning of an interval also counts.
    place = np.searchsorted(curve.times, edges[:-1], side="right") - 1
    most = np.where(place >= 0, curve.values[np.maximum(place, 0)], 0.0)
    stretch = np.clip(np.searchsorted(edges, curve.times, side="right") - 1, 0, stretches - 1)
    np.maximum.at(most, stretch, curve.values)
    return edges[:-1], most


def mean_in_stretches(curve: Curve, last: int, stretches: int) -> tuple[Floats, Floats]:
    """Pair (times in cycles, values) for drawing a curve. A curve with more than 2 x `stretches` steps is divided into
    `stretches` intervals of equal length. Each interval then has one value: the mean value of the curve in the
    interval.
    """
    if len(curve.times) <= 2 * stretches:
        return curve.times.astype(np.float64), curve.values
    edges = np.linspace(0, last, stretches + 1)
    times = np.concatenate(([0], curve.times, [max(last, int(curve.times[-1]))]))
    sums = np.concatenate(([0.0, 0.0], np.cumsum(curve.values * np.diff(times[1:]))))
    return edges[:-1], np.diff(np.interp(edges, times, sums)) / np.diff(edges)


def _numbers(curves: Sequence[Curve], column: str) -> "pandas.DataFrame":
    """Table of the steps of all curves; a value holds from its time until the next time."""
    import pandas

    parts = [pandas.DataFrame({"name": one.name, "time_cycles": one.times, column: one.values}) for one in curves]
    return pandas.concat(parts) if parts else pandas.DataFrame(columns=["name", "time_cycles", column])


def _curves_figure(
    curves: Sequence[Curve], title: str, words: str, view: ScheduleView, colour: str, is_size: bool
) -> Figure:
    panel_inches = max(LEAST_PANEL_INCHES, min(PANEL_INCHES, MOST_INCHES / max(len(curves), 1)))
    step = panel_inches + HEAD_INCHES
    height = TOP_INCHES + max(len(curves), 1) * step + AXIS_INCHES
    latency = max(view.schedule.latency_cycles, 1)
    unit = unit_for(latency, CYCLE_UNITS)
    with figure_style():
        figure = NotedFigure(figsize=(WIDTH_INCHES, height))
        FigureCanvasAgg(figure)
        figure.text(0.2 / WIDTH_INCHES, 1 - 0.2 / height, title, fontsize=10, weight="bold", va="center")
        figure.text(0.2 / WIDTH_INCHES, 1 - 0.4 / height, words, fontsize=8, color=GREY, va="center")
        figure.note(title, [words], lambda: _numbers(curves, "stored_bits" if is_size else "used_share"))
        for number, curve in enumerate(curves):
            bottom = height - TOP_INCHES - (number + 1) * step
            width = WIDTH_INCHES - LEFT_INCHES - RIGHT_INCHES
            box = (LEFT_INCHES / WIDTH_INCHES, bottom / height, width / WIDTH_INCHES, panel_inches / height)
            panel = figure.add_axes(box)
            _draw_curve(panel, curve, latency, colour, is_size)
            number_axis(panel.xaxis, scale=unit[0])
            if number + 1 < len(curves):
                panel.tick_params(axis="x", labelbottom=False)
            else:
                panel.set_xlabel(f"time [{unit[1]}]")
    return figure


def _draw_curve(panel: Axes, curve: Curve, latency: int, colour: str, is_size: bool) -> None:
    times, values = (
        most_in_stretches(curve, latency, MEMORY_STRETCHES)
        if is_size
        else mean_in_stretches(curve, latency, LINK_STRETCHES)
    )
    look: dict[str, Any] = {"facecolor": lighter(colour, 0.65), "edgecolor": colour, "linewidth": 0.6}
    panel.stairs(values, np.append(times, max(latency, float(times[-1]))), fill=True, **look)
    panel.set_xlim(0, latency)
    style: dict[str, Any] = {"fontsize": 8, "va": "bottom", "transform": panel.transAxes}
    name_axes(panel, "", "content" if is_size else "share")
    panel.text(0, 1.04, curve.name, weight="bold", gid=PANEL_TEXT, **style)
    panel.text(1, 1.04, curve.text, ha="right", color=GREY, gid=PANEL_TEXT, **style)
    top = float(values.max(initial=0))
    # A capacity far above the peak would flatten the curve; the text has it.
    if top >= LEAST_SHARE * curve.limit:
        panel.axhline(curve.limit, color=LIMIT_COLOUR, linewidth=0.9, linestyle="--")
        top = max(top, curve.limit)
    panel.set_ylim(0, top * 1.08 or 1)
    ticks = [0.0, top / 2, top] if top else [0.0, 1.0]
    labels = [size_text(round(bits)) if bits else "0" for bits in ticks]
    panel.set_yticks(ticks, labels=labels if is_size else [f"{100 * share:.3g} %" for share in ticks])
    panel.grid(linewidth=0.3, color="#dddddd")
