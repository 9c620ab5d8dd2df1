"""HTML page of a fusion plan, made only from `fusion.json` and `fusion.csv`.

The page shows the plan, the reasons for it, and the search that found it. Tables show latency and energy of the plan
with their lower bounds, and the cycles and energy that each cut between stacks saves. Further tables show the tried
plans, the changes that improved the plan, the fixed choices, the reloaded data, and the layers. A figure shows the
search.
"""

import io
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from tilewright.base.harmless import html
from tilewright.base.measures import ENERGY_PJ, LATENCY_CYCLES
from tilewright.base.objectives import OBJECTIVES, energy_delay_product
from tilewright.base.proof import ALLOWED_ALLOCATIONS, covered_by
from tilewright.base.units import energy_text
from tilewright.results.canvas import GREY
from tilewright.results.figure_files import figure_style, make_printable
from tilewright.results.figure_layout import CYCLE_UNITS, EDP_UNIT, ENERGY_UNIT, OPERAND_COLOURS, unit_for
from tilewright.results.multi.search_end import search_end
from tilewright.results.multi.summary import reload_lines
from tilewright.results.run_tables import edp_text
from tilewright.results.text_tables import html_table

Row = Mapping[str, Any]
WIDTH_INCHES, HEIGHT_INCHES = 9.0, 3.4
MOST_TIMES_BEST = 3.0
"""Limit for the vertical axis of the figure, as a multiple of the value of the best plan. Worse plans are drawn at
the upper edge, so that the better plans remain distinguishable.
"""


def objective_value(objective: str, figures: Row) -> float:
    """Value of the objective for the latency and the energy of `figures`."""
    return float(OBJECTIVES[objective].value(figures[ENERGY_PJ], float(figures[LATENCY_CYCLES])))


def fusion_figure(document: Row, tried: Sequence[Row]) -> Figure:
    """Figure of the search for a plan. It has a point for each plan with a schedule, and a line for the best plan so
    far. Horizontal lines show the layer-by-layer schedule and the lower bound.
    """
    objective = document["objective"]
    points = [(row["plan"], objective_value(objective, row)) for row in tried if row[LATENCY_CYCLES] != ""]
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
    """Figure as an SVG element for an HTML page, without dates and version numbers."""
    make_printable(figure)
    buffer = io.StringIO()
    with figure_style():
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": "tilewright"})
    text = buffer.getvalue()
    return text[text.index("<svg") :]


PAGE = Path(__file__).resolve().with_name("fusion_page.html")
FIGURES = ("latency [cycles]", "energy", "EDP [J cycles]")


def fusion_page(document: Mapping[str, Any], tried: Sequence[Row]) -> str:
    """Text of the HTML page of a fusion plan. `document` is the result of `tilewright fuse` (`fusion.json`), and
    `tried` has one row for each plan that the search evaluated.
    """
    title = f"{document['workload']} on {document['hardware']}: fusion plan, and reasons for it"
    parts = {"TITLE": html(title), "BODY": "\n".join(_body(document, tried))}
    return re.sub("@([A-Z]+)@", lambda mark: parts[mark[1]], PAGE.read_text("utf-8"))


def _body(document: Mapping[str, Any], tried: Sequence[Row]) -> Iterator[str]:
    search = document["search"]
    yield _words(
        f"The search for the least {document['objective']} examined {search['plans']:,} plans and "
        f"{search['segments']:,} parts of the network with {search['schedules']:,} schedules. "
        f"{_sentence(search_end(search))} Seed: {search['seed']}."
    )
    yield html_table(("", *FIGURES), [*_figure_rows(document)], texts=1)
    yield _head("The search", "Each plan by its number; plans without a schedule are left out.")
    yield svg_text(fusion_figure(document, tried))
    yield _head(
        "Savings of each cut",
        "Savings compared with the same plan without the cut, in which one stack replaces the two stacks."
        " If a saving is negative, the cut costs more than it saves.",
    )
    yield _cuts(document)
    yield _head("What was tried", "Kinds of plans, and how often a plan of the kind was the best so far.")
    yield html_table(("kind", "plans", "schedules", "without one", "best so far", *FIGURES), _origins(search), texts=1)
    yield _head(
        "Improvements of the best plan",
        "Each plan that was the best so far, and its objective relative to the previous best plan.",
    )
    yield html_table(("kind", "plan", "stacks", *FIGURES[:2], "of the previous best"), _steps(document, tried), texts=1)
    yield from _failures(tried)
    yield _head(
        "What was fixed", "Decisions that the run or the mapping file fixed; all other decisions were searched."
    )
    yield html_table(("decision", "fixed"), [*_fixed(document["fixed"])], texts=2)
    yield _head(
        "Data that are loaded again", "" if document["reloads"] else "No data are read from off-chip 1.5 times or more."
    )
    yield "\n".join(_words(line) for line in reload_lines(document["reloads"], len(document["reloads"])))
    yield _head("Stacks", "")
    yield html_table(("first layer", "last layer", "stack", "layers"), _stacks(document), texts=2)
    yield _head(
        "Layers", "How each layer is cut into parts, how a part is cut into tiles, and which core runs each part."
    )
    yield html_table(("layer", "parts", "tiles", "cores"), _layers(document), texts=4)
    yield _head("Reproduce this plan", "Commands that use the mapping file in the folder of this page:")
    lines = [f"tilewright {verb} ... {options}".rstrip() for verb, options in document["reproduce"].items()]
    yield f"<pre>{html(chr(10).join(lines))}</pre>"


def _words(text: str) -> str:
    return f"<p>{html(text)}</p>"


def _head(title: str, text: str) -> str:
    return f"<h2>{html(title)}</h2>" + (f"\n{_words(text)}" if text else "")


def _figures(figures: Row) -> tuple[str, str, str]:
    edp = energy_delay_product(figures[ENERGY_PJ], figures[LATENCY_CYCLES])
    return f"{figures[LATENCY_CYCLES]:,}", energy_text(figures[ENERGY_PJ]), edp_text(edp)


def _figure_rows(document: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    yield ("this plan", *_figures(document))
    covers = covered_by(document["lower_bound"])
    yield (f"lower bound over {covers}", *_figures(document["lower_bound"]))
    yield (
        f"gap to the lower bound over {ALLOWED_ALLOCATIONS}"
        f"{'' if 'any_plan' in document else ' (other tilings may be faster)'}",
        *(f"{document[f'gap_{name}']:.1%}" for name in ("latency", "energy", "edp")),
    )
    if "gap_latency_if_copied" in document:
        yield (
            f"gap to the lower bound over {ALLOWED_ALLOCATIONS}, for schedules that copy data into a core before"
            " use if the data fit",
            f"{document['gap_latency_if_copied']:.1%}",
            "",
            "",
        )
    if "any_plan" in document:
        bound = document["any_plan"]
        yield (f"lower bound over {bound['covers']}", *_figures(bound))
        gaps = (f"{bound[f'gap_{name}']:.1%}" for name in ("latency", "energy", "edp"))
        yield ("gap to the lower bound over every plan", *gaps)
    alone = document["layer_by_layer"]
    if alone is not None:
        yield ("layer by layer", *_figures(alone))
        ratios = (alone[name] / document[name] if document[name] else 1.0 for name in _NAMES)
        yield ("layer by layer / this plan", *(f"{ratio:.2f}" for ratio in ratios))


_NAMES = (LATENCY_CYCLES, ENERGY_PJ, "edp")


def _cuts(document: Mapping[str, Any]) -> str:
    """HTML table of the cuts between stacks. Each cut is compared with the same plan without the cut. Cuts for which
    the plan without the cut has no schedule are at the top of the table. All other cuts are sorted by the objective of
    the plan without the cut, the worst objective first.
    """
    if not document["cuts"]:
        return _words(
            "No cut is listed: the network is one stack, the run fixes the stacks, or the search was interrupted."
        )

    def saved(cut: Row) -> float:
        whole = document["objective"]
        return float("inf") if cut["without"] is None else objective_value(whole, cut["without"])

    rows = []
    for cut in sorted(document["cuts"], key=saved, reverse=True):
        without, place = cut["without"], (cut["after"], cut["before"])
        if without is None:
            rows.append((*place, "no schedule without this cut", "", "", ""))
            continue
        energy = cut["saves_energy_pj"]
        saves = (f"{cut['saves_latency_cycles']:,}", f"{'-' if energy < 0 else ''}{energy_text(abs(energy))}")
        rows.append((*place, *saves, *_figures(without)[:2]))
    heads = ("after", "before", "saves [cycles]", "saves energy", "latency without [cycles]", "energy without")
    return html_table(heads, rows, texts=2)


def _origins(search: Mapping[str, Any]) -> list[tuple[str, ...]]:
    return [
        (
            row["origin"],
            *(f"{row[name]:,}" for name in ("plans", "schedules", "infeasible", "best_so_far")),
            *(("", "", "") if row["best"] is None else _figures(row["best"])),
        )
        for row in search["origins"]
    ]


def _steps(document: Mapping[str, Any], tried: Sequence[Row]) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    before = None
    for row in tried:
        if row["is_best"]:
            value = objective_value(document["objective"], row)
            share = "" if not before else f"{value / before:.1%}"
            rows.append((row["origin"], f"{row['plan']:,}", f"{row['stacks']:,}", *_figures(row)[:2], share))
            before = value
    return rows


def _failures(tried: Sequence[Row]) -> Iterator[str]:
    """HTML table of the reasons why plans have no schedule. The most frequent reason comes first."""
    reasons = Counter(str(row["reason"]) for row in tried if row["reason"])
    if reasons:
        yield _head("Plans without a schedule", "")
        rows = [
            (reason, f"{count:,}") for reason, count in sorted(reasons.items(), key=lambda item: (-item[1], item[0]))
        ]
        yield html_table(("reason", "plans"), rows, texts=1)


def _fixed(fixed: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, what in fixed.items():
        if isinstance(what, bool):
            yield name, "yes" if what else "no, searched"
        else:
            yield name, f"of {', '.join(what)}" if what else "no, searched"


def _stacks(document: Mapping[str, Any]) -> list[tuple[str, ...]]:
    return [(row["first"], row["last"], f"{row['stack']:,}", f"{row['layers']:,}") for row in document["stacks"]]


def _layers(document: Mapping[str, Any]) -> list[tuple[str, ...]]:
    return [
        (
            row["name"],
            "; ".join(row["inter_core_tiling"]) or "whole",
            "; ".join(row["intra_core_tiling"]) or "whole",
            ", ".join(map(str, row["cores"])),
        )
        for row in document["layers"]
    ]


def _sentence(text: str) -> str:
    """Text as a sentence: the first letter becomes a capital letter, and a period is added at the end."""
    return f"{text[:1].upper()}{text[1:]}."
