"""Figure of the Pareto front of a network: energy over latency, with the knee, both ends, the point of the run, and the
bounds.
"""

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from tilewright.base.measures import ENERGY_PJ, LATENCY_CYCLES
from tilewright.results.canvas import GREY
from tilewright.results.figure_files import figure_style
from tilewright.results.figure_layout import CYCLE_UNITS, ENERGY_UNIT, OPERAND_COLOURS, unit_for
from tilewright.results.front_text import front_lines, front_table
from tilewright.results.noted_figure import NotedFigure
from tilewright.results.records import Summary
from tilewright.results.reported_mapping import ReportedMapping
from tilewright.search.front import columns, front_of

WIDTH_INCHES, HEIGHT_INCHES = 7.0, 4.2
POINT_COLOUR, RUN_COLOUR, BOUND_COLOUR = OPERAND_COLOURS[0], OPERAND_COLOURS[4], GREY


def reported_front(run: ReportedMapping) -> Figure | None:
    """Figure of the front, for the report of a run; None if the run has no front."""
    return front_figure(run.summary) if front_table(run.summary) is not None else None


def front_figure(summary: Summary) -> Figure:
    """Figure of the Pareto front of a run, made from its summary. Dashed lines are the lower bounds of energy and
    latency.
    """
    front = front_of(summary["front"])
    energy, latency = columns(front.points)
    cycles_unit, (pj_a_unit, energy_unit) = unit_for(float(latency[-1]), CYCLE_UNITS), ENERGY_UNIT
    energy, latency = energy / pj_a_unit, latency / cycles_unit[0]
    title = f"Pareto front of {summary['workload']} on {summary['hardware']}"
    lines = list(front_lines(summary))
    with figure_style():
        figure = NotedFigure(figsize=(WIDTH_INCHES, HEIGHT_INCHES))
        FigureCanvasAgg(figure)
        figure.text(0.02, 0.96, title, fontsize=10, weight="bold", va="center")
        figure.text(0.02, 0.91, lines[-1], fontsize=7, color=GREY, va="center")
        figure.note(title, lines, lambda: front_table(summary))
        panel = figure.add_axes((0.13, 0.14, 0.83, 0.71))
        panel.step(latency, energy, where="post", color=POINT_COLOUR, linewidth=0.8)
        panel.plot(latency, energy, "o", color=POINT_COLOUR, markersize=3.5, label="points of the front")
        knee = front.knee
        panel.plot(latency[knee], energy[knee], "D", color=POINT_COLOUR, markersize=7, fillstyle="none", label="knee")
        own = summary[LATENCY_CYCLES] / cycles_unit[0], summary[ENERGY_PJ] / pj_a_unit
        panel.plot(*own, "*", color=RUN_COLOUR, markersize=9, label="this run")
        least = front.least_latency_cycles / cycles_unit[0]
        panel.axvline(least, color=BOUND_COLOUR, linestyle="--", linewidth=0.8, label="lower bounds")
        panel.axhline(front.lines[0].level_pj / pj_a_unit, color=BOUND_COLOUR, linestyle="--", linewidth=0.8)
        panel.set_xlabel(f"latency ({cycles_unit[1]})", fontsize=8)
        panel.set_ylabel(f"energy ({energy_unit})", fontsize=8)
        panel.tick_params(labelsize=7)
        panel.legend(fontsize=7, frameon=False, loc="upper right")
    return figure
