"""Plots of the comparison with measurements by others: predictions against measurements, and errors by the part of the
machine that limits the estimate.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from tilewright.results.canvas import GREY
from tilewright.results.figure_files import figure_style, save_figure
from tilewright.results.figure_layout import LAYER_COLOURS
from tilewright.results.number_axes import number_axis

from tilewright_evidence.court.case import Case, CourtSet
from tilewright_evidence.court.verdict import seen_groups

PART_INCHES, WIDTH_INCHES = 3.1, 9.0
SHOWN_ERROR = 1.0
"""Largest relative error, as an absolute value, that plots show at its true position. Larger errors are drawn at the
edge of the plot.
"""


def write_figure(court_set: CourtSet, cases: Sequence[Case], folder: Path) -> list[Path]:
    """Write `<set>.svg` and `<set>.png`, and return their paths. The figure has a row of two panels for each group of
    parts of the set. Parts are in the same group if the text before the first comma of their names is the same.
    """
    seen = seen_groups(cases)
    parts = sorted({_family(case) for case in cases})
    causes = sorted({case.limited_by for case in cases})
    colours = dict(zip(causes, LAYER_COLOURS, strict=False))
    with figure_style():
        figure = Figure(figsize=(WIDTH_INCHES, PART_INCHES * len(parts) + 0.5), layout="constrained")
        FigureCanvasAgg(figure)
        figure.suptitle(court_set.title, fontsize=10, weight="bold")
        grid = figure.subplots(len(parts), 2, squeeze=False, width_ratios=(1, 1))
        for part, (left, right) in zip(parts, grid, strict=True):
            own = [case for case in cases if _family(case) == part]
            _predicted(left, own, colours, court_set.unit)
            left.set_title(part, fontsize=8, loc="left")
            _by_cause(right, [case for case in own if case.group not in seen], colours)
    return list(save_figure(figure, folder / court_set.name))


def _family(case: Case) -> str:
    return case.part.partition(",")[0]


def _predicted(axes: Axes, cases: Sequence[Case], colours: dict[str, str], unit: str) -> None:
    measured = np.array([case.measured for case in cases])
    bounds = np.array([case.bound for case in cases])
    axes.scatter(measured, bounds, s=4, color="#cccccc", linewidths=0, label="bound")
    for cause in sorted({case.limited_by for case in cases}):
        own = [case for case in cases if case.limited_by == cause]
        axes.scatter(
            [case.measured for case in own],
            [case.estimate for case in own],
            s=9,
            facecolors=["none" if case.fitted else colours[cause] for case in own],
            edgecolors=colours[cause],
            linewidths=0.6,
            label=cause,
        )
    ends = (measured.min(), measured.max())
    axes.plot(ends, ends, color=GREY, linewidth=0.7)
    axes.set_xscale("log")
    axes.set_yscale("log")
    for axis in (axes.xaxis, axes.yaxis):
        number_axis(axis)
    axes.set_xlabel(f"measured [{unit}]")
    axes.set_ylabel(f"predicted [{unit}]")
    axes.legend(fontsize=6, frameon=False, title="estimate, limited by", title_fontsize=6)


def _by_cause(axes: Axes, unseen: Sequence[Case], colours: dict[str, str]) -> None:
    causes = sorted({case.limited_by for case in unseen}, reverse=True)
    for place, cause in enumerate(causes):
        errors = np.sort([case.error for case in unseen if case.limited_by == cause])
        heights = place + np.linspace(-0.3, 0.3, len(errors)) if len(errors) > 1 else np.array([float(place)])
        axes.scatter(np.clip(errors, -SHOWN_ERROR, SHOWN_ERROR), heights, s=5, color=colours[cause], linewidths=0)
        axes.plot([np.median(errors)] * 2, [place - 0.4, place + 0.4], color="black", linewidth=1)
    axes.axvline(0, color=GREY, linewidth=0.7)
    axes.set_xlim(-1.05 * SHOWN_ERROR, 1.05 * SHOWN_ERROR)
    axes.set_yticks(range(len(causes)), causes)
    axes.set_xlabel("error of the estimate for rows that were not fitted; bar: median")
