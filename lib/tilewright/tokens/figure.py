"""Plot of the costs of a language model over the context: time per token, energy per token, and time to the first
token.
"""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from tilewright.base.json_values import JsonObject
from tilewright.results.figure_files import figure_style, save_figure
from tilewright.results.figure_layout import CYCLE_UNITS, Unit, unit_for
from tilewright.results.noted_figure import NotedFigure
from tilewright.results.number_axes import number_axis
from tilewright.results.paper_tables import UNITS, readable_unit, unit_end
from tilewright.tokens.table import UNITS_IN_PAPER, TokenCosts


def write_token_figure(found: TokenCosts, path_stem: Path) -> tuple[Path, ...]:
    """Write the figure as `path_stem`.svg and `path_stem`.png. Returns both paths."""
    return save_figure(token_figure(found), path_stem)


def token_figure(found: TokenCosts) -> Figure:
    """Figure with one panel per quantity and one curve per batch, on logarithmic scales.

    A point is hollow if its weights, caches and activations do not fit into the memory.
    """
    has_time = "time_per_token_s" in found.rows[0]
    suffix = "_s" if has_time else "_cycles"
    panels = [(f"time_per_token{suffix}", "time per token"), ("energy_per_token_pj", "energy per token")]
    if f"time_to_first_token{suffix}" in found.rows[0]:
        panels.append((f"time_to_first_token{suffix}", "time to first token, one request"))
    with figure_style():
        figure = NotedFigure(figsize=(4.2 * len(panels), 3.6), layout="constrained")
        axes = figure.subplots(1, len(panels), squeeze=False)[0]
        for axis, (column, label) in zip(axes, panels, strict=True):
            is_prompt = column.startswith("time_to_first_token")  # of one request, whatever the batch
            _draw(axis, found.rows if not is_prompt else _of_smallest_batch(found.rows), column)
            values = [row[column] for row in found.rows if row[column]]
            scale, unit = _unit(column, values)
            axis.set(xlabel="tokens of context", ylabel=f"{label} [{unit}]", xscale="log", yscale="log")
            number_axis(axis.xaxis)
            number_axis(axis.yaxis, scale=scale)
            axis.grid(visible=True, which="major", alpha=0.3)
        axes[0].legend(title="batch", fontsize="small")
        title = f"Tokens of {found.model} on {found.core}; hollow points do not fit into {found.memory}"
        figure.suptitle(title)
        figure.note(title, (), lambda: found.table)
    return figure


def _unit(column: str, values: Sequence[float]) -> Unit:
    """Unit in which a column is drawn. The unit of a number of cycles suits the geometric mean of the smallest and the
    largest value. Any other column has the unit of the text for the terminal (`UNITS_IN_PAPER`) if its values are
    readable in this unit.
    """
    if column.endswith("_cycles"):
        return unit_for(math.sqrt(min(values) * max(values)), CYCLE_UNITS)
    end = unit_end(column)
    return readable_unit(UNITS[end], values, UNITS_IN_PAPER[end])


def _of_smallest_batch(rows: Sequence[dict[str, Any]]) -> list[JsonObject]:
    least = min(row["batch"] for row in rows)
    return [row for row in rows if row["batch"] == least]


def _draw(axis: Any, rows: Sequence[JsonObject], column: str) -> None:
    for place, batch in enumerate(dict.fromkeys(row["batch"] for row in rows)):
        own = [row for row in rows if row["batch"] == batch]
        colour = f"C{place % 10}"
        axis.plot([row["context"] for row in own], [row[column] for row in own], color=colour, label=f"{batch:,}")
        for fits in (True, False):
            points = [(row["context"], row[column]) for row in own if row["fits"] is fits]
            face = colour if fits else "white"
            if points:
                axis.scatter(*zip(*points, strict=True), s=12, edgecolors=colour, facecolors=face, zorder=3)
