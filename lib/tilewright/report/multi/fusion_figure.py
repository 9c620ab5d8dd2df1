"""How a search of plans went: what each plan costs, and the best so far, by the number of the plan."""

import io
from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from tilewright.objectives import OBJECTIVES
from tilewright.report.figure_layout import GREY, OPERAND_COLOURS, figure_style, make_printable, unit_for
from tilewright.report.figures import CYCLE_UNITS, EDP_UNIT, ENERGY_UNIT

Row = Mapping[str, Any]
WIDTH_INCHES, HEIGHT_INCHES = 9.0, 3.4
MOST_TIMES_BEST = 3.0
"""Plans that cost more than this many times the best stand at the upper edge, so that the others can be told apart."""


def objective_value(objective: str, figures: Row) -> float:
    """What is minimised, of a latency and an energy."""
    return float(OBJECTIVES[objective].value(figures["energy_pj"], float(figures["latency_cycles"])))


def fusion_figure(document: Row, tried: Sequence[Row]) -> Figure:
    """A point for each plan with a schedule, a line for the best so far, and layer by layer and the bound as levels."""
    objective = document["objective"]
    points = [(row["plan"], objective_value(objective, row)) for row in tried if row["latency_cycles"] != ""]
    best = objective_value(objective, document)
    units = {"latency": CYCLE_UNITS, "energy": (ENERGY_UNIT,)}.get(objective, (EDP_UNIT,))
    scale, unit = unit_for(best, units)
    top = min(max([best, *(value for _, value in points)]), best * MOST_TIMES_BEST)
    levels = [("bound of these tiles", document["lower_bound"], "dotted")]
    if document["layer_by_layer"] is not None:
        levels.append(("layer by layer", document["layer_by_layer"], "dashed"))
    with figure_style():
        figure = Figure(figsize=(WIDTH_INCHES, HEIGHT_INCHES), layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.subplots()
        shown = [min(value, top) / scale for _, value in points]
        axes.scatter([plan for plan, _ in points], shown, s=6, color="#bbbbbb", label="a plan")
        steps = [(row["plan"], objective_value(objective, row)) for row in tried if row["is_best"]]
        last = max([plan for plan, _ in points], default=0)
        ends = [*(plan for plan, _ in steps), last]
        values = [value / scale for _, value in (*steps, steps[-1])] if steps else []
        axes.step(ends if steps else [], values, where="post", color=OPERAND_COLOURS[0], label="the best so far")
        for name, figures, style in levels:
            value = objective_value(objective, figures)
            if value <= top:
                axes.axhline(value / scale, color=GREY, linewidth=0.8, linestyle=style, label=name)
        axes.set_xlabel("plan")
        axes.set_ylabel(f"{objective} [{unit}]")
        axes.set_ylim(0, top / scale * 1.05)
        axes.legend(loc="lower right", frameon=False, ncols=2)
    return figure


def svg_text(figure: Figure) -> str:
    """The figure as an element of an HTML page, without dates and version numbers."""
    make_printable(figure)
    buffer = io.StringIO()
    with figure_style():
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": "tilewright"})
    text = buffer.getvalue()
    return text[text.index("<svg") :]
