"""Results of a space of designs as one HTML file, with data, style, scripts and plotly.

The page works offline, and can be sent as one file, because it contains plotly.js (4.8 MB). The scripts explore_data.js
and explore_page.js make the plots in the browser. The numbers are in the page only once, whichever axes the reader
chooses for a plot.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas

from tilewright.base.artifacts.digests import canonical_text
from tilewright.base.artifacts.files import write_atomically
from tilewright.base.harmless import html, html_data
from tilewright.base.json_values import JsonObject
from tilewright.base.unused import unused_rows
from tilewright.designs.answer import Answer, Counts, values_text
from tilewright.designs.columns import DOMINATED_BY, ON_FRONT
from tilewright.designs.effects import Effect, best_designs, effects, known_measures
from tilewright.designs.front import Front, drawn_rows, order_of_sample
from tilewright.designs.results import (
    ENERGY,
    LATENCY,
    USE_MEASURES,
    energy_parts,
    latency_parts,
)
from tilewright.designs.tables import design_counts_line
from tilewright.results.text_tables import html_table

FOLDER = Path(__file__).resolve().parent
PAGE, SCRIPTS = "explore_page.html", ("explore_data.js", "explore_page.js")
MOST_ROWS = 20_000
"""Largest number of rows in the page, over all networks. A page with more rows opens slowly."""
DIGITS, PART_DIGITS = 9, 5
"""Significant digits of numbers in the page.

PART_DIGITS is for the parts of energy and latency, and DIGITS for all other numbers. The tables have all digits.
"""
ON_FRONT_CODE, DOMINATED_CODE, UNMET_CODE = 0, 1, 2


def explore_page(answer: Answer) -> str:
    """Text of the HTML file."""
    data = html_data(canonical_text(page_data(answer)))
    parts = {
        "TITLE": html(answer.exploration.name),
        "SUBTITLE": html(design_counts_line(answer)),
        "WORDS": "\n".join(_words(answer)),
        "BEST": _best(answer),
        "PLOTLY": _plotly_script(),
        "SCRIPT": "\n".join((FOLDER / name).read_text("utf-8") for name in SCRIPTS),
        "DATA": data,
    }
    return re.sub("@([A-Z]+)@", lambda mark: parts[mark[1]], (FOLDER / PAGE).read_text("utf-8"))


def write_page(answer: Answer, path: Path) -> Path:
    """Write the HTML file. Returns its path."""
    write_atomically(path, explore_page(answer))
    return path


def page_data(answer: Answer) -> JsonObject:
    """Data for the scripts: the columns with their names for readers, and the designs to draw.

    The designs are listed for each network and for all networks together.
    """
    exploration = answer.exploration
    columns = [*_columns(answer)]
    most = MOST_ROWS // len(answer.fronts)
    order = order_of_sample(exploration.table)
    return {
        "columns": columns,
        "views": [_view(front, exploration.axis_names, columns, most, order) for front in answer.fronts],
    }


def _columns(answer: Answer) -> Iterator[JsonObject]:
    """Descriptions of the columns, in the order of the page: axes and laws, measures, use of memories and links, gaps
    of plans, parts of the energy, and parts of the latency.

    A column of texts also has the list of its distinct values (`levels`).
    """
    table = answer.exploration.table
    for name in answer.exploration.value_names:
        column: dict[str, Any] = {"key": name, "words": name, "unit": "", "kind": "value"}
        if not pandas.api.types.is_numeric_dtype(table[name]):
            column["levels"] = table[name].unique().tolist()
        yield column
    for key, measure in answer.exploration.measures.items():
        yield {"key": key, "words": measure.words, "unit": measure.unit, "kind": "measure"}
    for key in (key for key in USE_MEASURES if key in table.columns):
        yield {"key": key, "words": USE_MEASURES[key].words, "unit": USE_MEASURES[key].unit, "kind": "use"}
    for kind, unit, parts in (
        ("energy", ENERGY.unit, energy_parts(table.columns)),
        ("latency", LATENCY.unit, latency_parts(table.columns)),
    ):
        for key, words in parts.items():
            yield {"key": key, "words": words, "unit": unit, "kind": kind}


def _scale(column: Mapping[str, Any], front: Front) -> float:
    kind = column["kind"]
    if kind == "measure":
        return front.measures[column["key"]].scale
    if kind == "use":
        return USE_MEASURES[column["key"]].scale
    return {"energy": ENERGY.scale, "latency": LATENCY.scale}.get(kind, 1.0)


def _view(
    front: Front, axis_names: tuple[str, ...], columns: Sequence[JsonObject], most: int, order: pandas.Series
) -> dict[str, Any]:
    rows = drawn_rows(front, most, order)
    names = rows["design"].tolist()
    place = {name: number for number, name in enumerate(names)}
    met = np.where(rows[ON_FRONT], ON_FRONT_CODE, DOMINATED_CODE)
    return {
        "network": front.network,
        "objectives": list(front.objectives),
        "measures": list(known_measures(front)),
        "note": front.note,
        "with_results": front.compared_count + int((front.rows["unmet"] != "").sum()),
        "compared": front.compared_count,
        "front": len(front.members),
        "names": names,
        "state": np.where(rows["unmet"] == "", met, UNMET_CODE).tolist(),
        "dominated_by": [place.get(name, -1) for name in rows[DOMINATED_BY].tolist()],
        "unmet": {str(number): text for number, text in enumerate(rows["unmet"].tolist()) if text},
        "columns": {column["key"]: _numbers(rows[column["key"]], column, front) for column in columns},
        "effects": [_effect(effect, front) for effect in effects(front, axis_names)],
    }


def _numbers(values: pandas.Series, column: dict[str, Any], front: Front) -> list[float | int | None]:
    if "levels" in column:
        codes = {level: number for number, level in enumerate(column["levels"])}
        return [codes[value] for value in values.tolist()]
    digits = PART_DIGITS if column["kind"] in ("energy", "latency") else DIGITS
    return _rounded(values.to_numpy(dtype=np.float64) / _scale(column, front), digits)


def _rounded(values: Any, digits: int = DIGITS) -> list[float | int | None]:
    """Numbers rounded to `digits` significant digits, for JSON.

    Whole numbers are written without a decimal point. NaN and infinity become None.
    """
    found: list[float | int | None] = []
    for value in np.asarray(values, dtype=np.float64).tolist():
        if not np.isfinite(value):
            found.append(None)
            continue
        rounded = float(f"{value:.{digits}g}")
        found.append(int(rounded) if rounded.is_integer() and abs(rounded) < 2**53 else rounded)
    return found


def _effect(effect: Effect, front: Front) -> dict[str, Any]:
    table = effect.table
    is_number = pandas.api.types.is_numeric_dtype(table["value"])
    return {
        "axis": effect.axis,
        "values": _rounded(table["value"]) if is_number else table["value"].tolist(),
        "designs": table["designs"].tolist(),
        **{
            kind: {key: _rounded(table[f"{kind}_{key}"] / front.measures[key].scale) for key in known_measures(front)}
            for kind in ("best", "median")
        },
    }


def _words(answer: Answer) -> Iterator[str]:
    """HTML texts of the page. They are notes on access times, axes and mappings, the assumptions of the comparison, the
    numbers of designs, the reasons why designs are not compared, and the unused parts of the input.
    """
    exploration = answer.exploration
    if notes := answer.notes:
        yield "<ul>" + "".join(f"<li>{html(sentence)}</li>" for sentence in notes) + "</ul>"
    sentences = [f"Networks: {', '.join(exploration.networks)}.", *answer.assumptions]
    sentences += list(dict.fromkeys(f"{front.network}: {front.note}" for front in answer.fronts if front.note))
    yield "<ul>" + "".join(f"<li>{html(sentence)}</li>" for sentence in sentences) + "</ul>"
    has_dropped = any(counts.dropped for counts in answer.counts)
    heads: tuple[str, ...] = (
        "network",
        "in rows" if has_dropped else "evaluated",
        "compared",
        "on the front",
        "constraint not met",
    )
    heads = (*heads, "infeasible", "invalid", *(("dropped by bounds",) if has_dropped else ()))
    yield html_table(
        heads,
        [
            (c.network, *(f"{n:,}" for n in _numbers_of(c, len(front.members), has_dropped)))
            for c, front in zip(answer.counts, answer.fronts, strict=False)
        ],
        texts=1,
    )
    if answer.causes:
        yield "<h3>Designs that are not compared, by cause</h3>"
        rows = [(c.status, c.text, ", ".join(c.networks) or "-", f"{c.designs:,}") for c in answer.causes]
        yield html_table(("what", "cause", "networks", "designs"), rows, texts=3)
    unused = unused_rows(exploration.notices)
    if unused:
        yield "<h3>Unused parts of the input</h3>"
        rows = [(row["file"], str(row["line"] or "-"), row["key"], row["why"]) for row in unused]
        yield html_table(("file", "line", "key", "why"), rows, texts=4)


def _numbers_of(counts: Counts, members: int, has_dropped: bool) -> tuple[int, ...]:
    """Numbers of designs: evaluated, compared, on the front (`members`), with a violated constraint, infeasible,
    invalid and, if `has_dropped` is true, dropped.
    """
    found = (counts.designs, counts.ok, members, counts.unmet, counts.infeasible, counts.invalid)
    return (*found, counts.dropped) if has_dropped else found


def _best(answer: Answer) -> str:
    """Text with the best design by each measure, for each network and for all networks together."""
    rows = [
        (
            front.network,
            front.measures[key].words,
            row["design"],
            values_text(row, answer.exploration.value_names),
            *(measure.text(row[name]) for name, measure in front.measures.items()),
        )
        for front in (answer.overall, *answer.fronts[:-1])
        for key, row in best_designs(front)
    ]
    if not rows:
        return "<p>No design has results and meets all constraints: the reasons are below.</p>"
    heads = (
        "network",
        "least",
        "design",
        "values",
        *(measure.title for measure in answer.exploration.measures.values()),
    )
    note = f"<p>{html(answer.table_note)}</p>" if answer.table_note else ""
    return html_table(heads, rows, texts=4) + note


@cache
def _plotly_script() -> str:
    # Importing plotly takes a while; only the page needs it.
    from plotly.offline import get_plotlyjs

    return str(get_plotlyjs())
