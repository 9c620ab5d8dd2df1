"""Page with all runs, as one HTML file that contains data, style and scripts.

The page needs no other files and no internet. Its scripts (SCRIPTS) draw the selected view from one copy of the data. A
frame shows each schedule on several cores as the interactive page of `results/multi/page.py`. The file contains the
scripts of this interactive page only once.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tilewright.base.artifacts.digests import canonical_text
from tilewright.base.harmless import html, html_data
from tilewright.base.json_values import JsonObject
from tilewright.results.multi.page import schedule_frame
from tilewright.results.page.columns import LIMITED_BY, area_words, cause_text, cell, edp_in_seconds, shown_columns
from tilewright.results.pareto import ComparableRuns, compare
from tilewright.results.records import Summary
from tilewright.results.run_columns import run_row
from tilewright.results.run_point import RunPoint
from tilewright.results.unlike_runs import cause_lines

FOLDER = Path(__file__).resolve().parent
PAGE, STYLE = "page.html", "page.css"
SCRIPTS = ("base.js", "charts.js", "fronts.js", "overview.js", "run_view.js", "views.js")
MOST_DETAIL_BYTES = 16_000_000
"""Largest total size of the details of runs, in bytes. Runs are added in order until this size is reached. For each
further run, the page has only its row, and says that details are left out.
"""


@dataclass(frozen=True, eq=False)
class PageRun:
    """Run on the page."""

    name: str
    flow: str
    """Flow of the run: SINGLE (one core) or MULTI (several cores)."""
    summary: Summary
    point: RunPoint
    """Energy, latency and area of the run, by which it is compared with other runs."""
    detail: Mapping[str, Any]
    """Result of `one_core_detail` or `several_cores_detail`."""
    verdict: Mapping[str, Any] | None = None
    """Entry of `bottlenecks.json` that names the limiting port of the network. None for a run on several cores, or if
    the limit is not known.
    """
    limited_by: str = ""
    """Short text that names the part of the system that limits a run on several cores (`several_cores.limited_by`). ''
    for a run on one core, or if the limit is not known.
    """


Groups = Sequence[ComparableRuns]


def results_page(
    runs: Sequence[PageRun], unfinished: Sequence[Mapping[str, str]] = (), groups: Groups | None = None
) -> str:
    """Text of the HTML file. `unfinished` are rows of runs without a result, which the page lists.

    `groups` are the groups of comparable runs, with sentences on the changes that would reverse their order. If
    `groups` is None, the function makes the groups, without these sentences.
    """
    data = html_data(canonical_text(page_data(runs, unfinished, groups)))
    parts = {
        "TITLE": html(_title(runs)),
        "STYLE": (FOLDER / STYLE).read_text("utf-8"),
        "SCRIPT": "\n".join((FOLDER / name).read_text("utf-8") for name in SCRIPTS),
        "DATA": data,
    }
    return re.sub("@([A-Z]+)@", lambda mark: parts[mark[1]], (FOLDER / PAGE).read_text("utf-8"))


def page_data(
    runs: Sequence[PageRun], unfinished: Sequence[Mapping[str, str]] = (), groups: Groups | None = None
) -> JsonObject:
    """Data for the scripts of the page: columns, a row for each run, the details of each run, the groups of comparable
    runs, and warnings. A warning gives a reason why a ranking of the runs of one network can mislead, such as different
    energies of the same memory.
    """
    rows = [_row(run) for run in runs] + [dict(row) for row in unfinished]
    columns = shown_columns(rows)
    details: dict[str, Any] = {}
    size = 0
    for run in runs:
        size += len(canonical_text(run.detail))
        if size <= MOST_DETAIL_BYTES:
            details[run.name] = {"flow": run.flow, **run.detail}
    left_out = [run.name for run in runs if run.name not in details and run.detail.get("front")]
    compared = compare([run.point for run in runs], unfinished) if groups is None else groups
    has_schedule = any(detail.get("schedule") for detail in details.values())
    return {
        "columns": [
            {"key": one.key, "words": one.words, "unit": one.unit, "number": one.is_number, "cost": one.is_cost}
            for one in columns
        ],
        "rows": [[cell(row, one) for one in columns] for row in rows],
        "notes": {row["run"]: words for row in rows if (words := area_words(row))},
        "details": details,
        **({"fronts_left_out": left_out} if left_out else {}),
        "groups": [
            {
                "name": group.name,
                "runs": [point.run for point in group.candidates],
                "lines": list(group.lines),
                "turns": list(group.order_lines),
            }
            for group in compared
        ],
        "unlike": list(cause_lines([run.point for run in runs])),
        "frame": schedule_frame() if has_schedule else "",
    }


def _row(run: PageRun) -> dict[str, Any]:
    row = run_row(run.name, run.summary)
    return row | edp_in_seconds(row) | {LIMITED_BY.key: run.limited_by or cause_text(run.verdict)}


def _title(runs: Sequence[PageRun]) -> str:
    return f"{runs[0].name}: results" if len(runs) == 1 else f"Results of {len(runs)} runs"
