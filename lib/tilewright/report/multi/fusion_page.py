"""Why a plan is as it is: one HTML page of what `fusion.json` and `fusion.csv` say. It needs nothing else.

Tables of the figures with their bounds, of what each cut saves, of what was tried and what made the plan better, of
what was fixed, of what is loaded again, and of the layers; a figure of the search.
"""

import html
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tilewright.report.html_tables import html_table
from tilewright.report.multi.fusion_figure import Row, fusion_figure, objective_value, svg_text
from tilewright.report.multi.reloads import reload_lines
from tilewright.report.run_tables import edp_text
from tilewright.units import energy_text

PAGE = Path(__file__).resolve().with_name("fusion_page.html")
FIGURES = ("latency [cycles]", "energy", "EDP [J cycles]")


def fusion_page(document: Mapping[str, Any], tried: Sequence[Row]) -> str:
    """The text of the page, of the answer of `tilewright fuse` and the rows of the plans that it looked at."""
    title = f"{document['workload']} on {document['hardware']}: how it is fused, and why"
    parts = {"TITLE": html.escape(title), "BODY": "\n".join(_body(document, tried))}
    return re.sub("@([A-Z]+)@", lambda mark: parts[mark[1]], PAGE.read_text("utf-8"))


def _body(document: Mapping[str, Any], tried: Sequence[Row]) -> Iterator[str]:
    search = document["search"]
    yield _words(
        f"{search['plans']:,} plans and {search['segments']:,} parts of the network were looked at for the least "
        f"{document['objective']}, in {search['schedules']:,} schedules; stopped by "
        f"{search['stopped_by'].replace('_', ' ')}, seed {search['seed']}."
    )
    yield html_table(("", *FIGURES), [*_figure_rows(document)], texts=1)
    yield _head("The search", "Each plan by its number; plans without a schedule are left out.")
    yield svg_text(fusion_figure(document, tried))
    yield _head("What each cut saves", "Against the two stacks made one, all else as it is. Negative: what it costs.")
    yield _cuts(document)
    yield _head("What was tried", "Kinds of plans, and how often one of them was the best so far.")
    yield html_table(("kind", "plans", "schedules", "without one", "best so far", *FIGURES), _origins(search), texts=1)
    yield _head("What made it better", "Each plan that was the best so far, and what it is of the one before.")
    yield html_table(("kind", "plan", "stacks", *FIGURES[:2], "of the one before"), _steps(document, tried), texts=1)
    yield from _failures(tried)
    yield _head("What was fixed", "By the run or the mapping file; all else was searched.")
    yield html_table(("decision", "fixed"), [*_fixed(document["fixed"])], texts=2)
    yield _head(
        "What is loaded again", "" if document["reloads"] else "Nothing is read from off-chip 1.5 times or more."
    )
    yield "\n".join(_words(line) for line in reload_lines(document["reloads"], len(document["reloads"])))
    yield _head("Stacks", "")
    yield html_table(("first layer", "last layer", "stack", "layers"), _stacks(document), texts=2)
    yield _head("Layers", "Parts between cores, tiles within a core, and the cores of the parts.")
    yield html_table(("layer", "parts", "tiles", "cores"), _layers(document), texts=4)
    yield _head("The same again", "With the mapping file beside this page:")
    lines = [f"tilewright {verb} ... {options}".rstrip() for verb, options in document["reproduce"].items()]
    yield f"<pre>{html.escape(chr(10).join(lines))}</pre>"


def _words(text: str) -> str:
    return f"<p>{html.escape(text)}</p>"


def _head(title: str, text: str) -> str:
    return f"<h2>{html.escape(title)}</h2>" + (f"\n{_words(text)}" if text else "")


def _figures(figures: Row) -> tuple[str, str, str]:
    edp = figures["latency_cycles"] * figures["energy_pj"]
    return f"{figures['latency_cycles']:,}", energy_text(figures["energy_pj"]), edp_text(edp)


def _figure_rows(document: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    yield ("this plan", *_figures(document))
    yield ("lower bound of all allocations of its tiles", *_figures(document["lower_bound"]))
    yield ("gap to it", *(f"{document[f'gap_{name}']:.1%}" for name in ("latency", "energy", "edp")))
    alone = document["layer_by_layer"]
    if alone is not None:
        yield ("layer by layer", *_figures(alone))
        ratios = (alone[name] / document[name] if document[name] else 1.0 for name in _NAMES)
        yield ("layer by layer, times this plan", *(f"{ratio:.2f}" for ratio in ratios))


_NAMES = ("latency_cycles", "energy_pj", "edp")


def _cuts(document: Mapping[str, Any]) -> str:
    """The cuts, those that save most of the objective first."""
    if not document["cuts"]:
        return _words("None: the network is one stack, the run fixes the stacks, or the search was interrupted.")

    def saved(cut: Row) -> float:
        whole = document["objective"]
        return float("inf") if cut["without"] is None else objective_value(whole, cut["without"])

    rows = []
    for cut in sorted(document["cuts"], key=saved, reverse=True):
        without, place = cut["without"], (cut["after"], cut["before"])
        if without is None:
            rows.append((*place, "no schedule without it", "", "", ""))
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
    """Why plans have no schedule, what is most frequent first."""
    reasons = Counter(str(row["reason"]) for row in tried if row["reason"])
    if reasons:
        yield _head("What has no schedule", "")
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
