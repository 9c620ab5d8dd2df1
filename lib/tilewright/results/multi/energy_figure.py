"""Figure of the energy of a schedule and of its baselines by cause: energy on cores and energy of moved data."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import cycle
from typing import TYPE_CHECKING, Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from tilewright.base.measures import ENERGY_PJ
from tilewright.cost.ledger import ARRAYS, on_core_terms
from tilewright.multicore.scheduling.energy_ledger import (
    ON_CORE,
    READING_ORDER,
    EnergyTerms,
    in_reading_order,
    term_parts,
    terms_of_parts,
    words_of,
)
from tilewright.multicore.scheduling.schedule import Schedule
from tilewright.results.canvas import GREY
from tilewright.results.figure_files import figure_style
from tilewright.results.figure_layout import ENERGY_UNIT, OPERAND_COLOURS, three_digits
from tilewright.results.multi.bars import ScheduleView
from tilewright.results.multi.reported_schedule import ReportedSchedule
from tilewright.results.noted_figure import NotedFigure, name_axes
from tilewright.results.text_tables import share_text

if TYPE_CHECKING:
    import pandas

Summary = Mapping[str, Any]
ON_CORE_WORDS, TOTAL = words_of(ON_CORE), "total"
OTHER_MEMORIES = "other core memories"
LINKS = "links"
_PART_WORDS = {"link": LINKS, "memory": "memories"}
_GREYS = {ON_CORE_WORDS: "#8a8a8a", TOTAL: "#bbbbbb"}
_COLOURS = tuple(OPERAND_COLOURS[number] for number in (0, 2, 4, 3, 1, 5))
"""Colours of the energy terms except on-core energy, in the order in which the figure shows the terms. If there are
more terms than colours, the colours repeat.
"""
CORE_GREYS = ("#1f1f1f", "#4a4a4a", "#6f6f6f", "#919191", "#b0b0b0", "#cccccc", "#e2e2e2")
"""Greys for the parts of the on-core energy, in the order in which the parts are drawn. If there are more parts than
greys, the smallest parts are merged.
"""
WIDTH_INCHES, NAME_INCHES, BAR_WIDTH_INCHES = 10.8, 1.2, 5.0
TOP_INCHES, BAR_INCHES, AXIS_INCHES, LINE_INCHES = 0.75, 0.42, 0.6, 0.19
THIS_RUN = "this run"


@dataclass(frozen=True)
class EnergyBar:
    """Energy of one schedule."""

    name: str
    terms_pj: Mapping[str, float]
    """Energy in pJ by name of the part, in the order of the energy terms. On-core energy is not listed here if
    `in_cores_pj` divides it into parts. If no part is known, the only key is TOTAL, for the whole energy.
    """
    in_cores_pj: Mapping[str, float] = field(default_factory=dict)
    """Energy in pJ of each part of the on-core energy, by name of the part (`on_core_parts`)."""

    @property
    def parts_pj(self) -> dict[str, float]:
        """Energy in pJ of all parts, by name of the part. The parts of the on-core energy come first."""
        return {**self.in_cores_pj, **self.terms_pj}

    @property
    def total_pj(self) -> float:
        """Sum of the parts, in pJ."""
        return sum(self.parts_pj.values())


def schedule_parts(schedule: Schedule) -> dict[str, float]:
    """Energy in pJ by name of the part. The parts add up to the energy of the schedule."""
    return _named_parts(schedule.energy_terms_pj)


def on_core_parts(summary: Summary | None) -> dict[str, float]:
    """Energy in pJ of each part of the on-core energy, by name of the part. The arrays come first. Memories of the
    cores and other terms follow in descending order of energy.

    If there are more parts than shades of grey (CORE_GREYS), the smallest parts are merged into one part, which comes
    last. Memories of the same name in several cores are one part. The result is {} if the summary does not divide the
    on-core energy.
    """
    energy = (summary or {}).get("energy") or {}
    if "on_core_memory_pj" not in energy:
        return {}
    terms = on_core_terms(energy)
    parts = {ARRAYS: terms.pop(ARRAYS)}
    others = sorted(terms.items(), key=lambda item: (-item[1], item[0]))
    kept = len(others) if len(others) < len(CORE_GREYS) else len(CORE_GREYS) - 2
    parts |= dict(others[:kept])
    return parts | ({OTHER_MEMORIES: sum(pj for _, pj in others[kept:])} if kept < len(others) else {})


def energy_bars(view: ScheduleView, summary: Summary | None = None) -> list[EnergyBar]:
    """Bar of the schedule of `view`, then the bars of the baselines in `summary`. A baseline is divided into parts only
    if the summary has its parts (`energy_parts_pj`).
    """
    parts, in_cores = schedule_parts(view.schedule), on_core_parts(summary)
    if in_cores:
        del parts[ON_CORE_WORDS]
    bars = [EnergyBar(THIS_RUN, parts, in_cores)]
    for row in (summary or {}).get("baselines") or ():
        name = readable(row["name"])
        if name == THIS_RUN:
            continue
        given = row.get("energy_parts_pj")
        bars.append(EnergyBar(name, _named_parts(terms_of_parts(given)) if given else {TOTAL: row[ENERGY_PJ]}))
    return bars


def energy_breakdown_figure(view: ScheduleView, summary: Summary | None = None) -> Figure:
    """Figure with one bar for the schedule of `view` and one for each baseline in `summary`. A bar stacks the parts of
    the energy. A list beside the bars gives the parts of the energy for the schedule of `view`.
    """
    bars = energy_bars(view, summary)
    title = f"Energy: {view.names.network} on {view.names.accelerator}"
    return _figure(bars, title)


def reported_energy(run: ReportedSchedule) -> Figure:
    """Figure of the energy by cause, for the report of a run."""
    return energy_breakdown_figure(run.view, run.summary)


def readable(name: str) -> str:
    """Name of a baseline in readable words."""
    return name.replace("_", " ")


def _named_parts(terms: EnergyTerms) -> dict[str, float]:
    return {
        f"{words_of(term)}, {_PART_WORDS[part]}" if part else words_of(term): energy
        for term, part, energy in term_parts(in_reading_order(terms))
    }


def _looks(bars: Sequence[EnergyBar]) -> dict[str, dict[str, Any]]:
    """Style of each part, in the order of drawing: greys for on-core energy, colours for other terms, hatches for
    links.
    """
    plain: dict[str, Any] = {"edgecolor": "white", "linewidth": 0.4}
    # Parts that are 0 in all schedules are left out.
    spent = [part for bar in bars for part, energy in bar.parts_pj.items() if energy > 0]
    divided = dict.fromkeys(part for bar in bars for part in bar.in_cores_pj if part in spent)
    looks = {part: {**plain, "facecolor": grey, "hatch": ""} for part, grey in zip(divided, CORE_GREYS, strict=False)}
    of_terms = (part.split(", ")[0] for bar in bars for part in bar.terms_pj)
    named = [words for words in dict.fromkeys((*map(words_of, READING_ORDER), *of_terms)) if words not in _GREYS]
    colours = _GREYS | dict(zip(named, cycle(_COLOURS)))
    for words in (ON_CORE_WORDS, *named, TOTAL):
        for part in (words, *(f"{words}, {part}" for part in _PART_WORDS.values())):
            if part in spent:
                hatch = "//////" if part.endswith(f", {LINKS}") else ""
                looks[part] = {**plain, "facecolor": colours[words], "hatch": hatch}
    return looks


def _has_further_terms(bars: Sequence[EnergyBar]) -> bool:
    usual = {*map(words_of, READING_ORDER), TOTAL}
    return any(part.split(", ")[0] not in usual for bar in bars for part in bar.terms_pj)


def _figure(bars: Sequence[EnergyBar], title: str) -> Figure:
    looks = _looks(bars)
    parts = list(looks)
    listed = max(LINE_INCHES * (len(parts) + 2), BAR_INCHES * len(bars) + AXIS_INCHES)
    height = TOP_INCHES + listed + 0.1
    most = max(bar.total_pj for bar in bars)
    unit = ENERGY_UNIT
    with figure_style():
        figure = NotedFigure(figsize=(WIDTH_INCHES, height))
        FigureCanvasAgg(figure)
        words = "grey: in cores; colours: moved data (hatched: in links; not hatched: in memories that send or receive)"
        words += "; and further terms" if _has_further_terms(bars) else ""
        figure.text(0.2 / WIDTH_INCHES, 1 - 0.2 / height, title, fontsize=10, weight="bold", va="center")
        figure.text(0.2 / WIDTH_INCHES, 1 - 0.4 / height, words, fontsize=8, color=GREY, va="center")
        entries = [Patch(label=_part_name(part), **look) for part, look in looks.items()]
        figure.note(title, [words], lambda: _numbers(bars), entries)
        bottom = height - TOP_INCHES - BAR_INCHES * len(bars)
        box = (NAME_INCHES / WIDTH_INCHES, bottom / height)
        panel = figure.add_axes((*box, BAR_WIDTH_INCHES / WIDTH_INCHES, BAR_INCHES * len(bars) / height))
        for place, bar in enumerate(bars):
            left = 0.0
            for part in (part for part in parts if bar.parts_pj.get(part)):
                panel.barh(place, bar.parts_pj[part] / unit[0], 0.7, left=left, **looks[part])
                left += bar.parts_pj[part] / unit[0]
            panel.text(left, place, f" {three_digits(left)}", va="center", fontsize=7.5)
        panel.set_ylim(len(bars) - 0.5, -0.5)
        panel.set_xlim(0, most / unit[0] * 1.12 or 1)
        panel.set_yticks(range(len(bars)), labels=[bar.name for bar in bars])
        panel.tick_params(axis="y", length=0)
        panel.set_xlabel(f"energy [{unit[1]}]")
        name_axes(panel, "", "schedule")
        panel.grid(axis="x", linewidth=0.4, color="#cccccc")
        _list_parts(figure, bars[0], looks, unit, height - TOP_INCHES + 0.15)
    return figure


def _numbers(bars: Sequence[EnergyBar]) -> "pandas.DataFrame":
    """Table of the energy of each part of each schedule."""
    import pandas

    rows = [(bar.name, _part_name(part), energy) for bar in bars for part, energy in bar.parts_pj.items()]
    return pandas.DataFrame(rows, columns=["schedule", "part", ENERGY_PJ])


def _part_name(part: str) -> str:
    """Name of a part of the energy, as the figure and its table show it."""
    return {TOTAL: "parts not known", ON_CORE_WORDS: "in the cores"}.get(part, part)


def _list_parts(
    figure: Figure, bar: EnergyBar, looks: Mapping[str, Mapping[str, Any]], unit: tuple[float, str], top: float
) -> None:
    """Add a list with the parts of a schedule, their values and their shares.

    The list is also the legend of the figure. It therefore has the parts of all schedules; parts that this schedule
    does not have are listed without values.
    """
    left = NAME_INCHES + BAR_WIDTH_INCHES + 0.35
    style: dict[str, Any] = {"va": "center", "fontsize": 7.5, "transform": figure.dpi_scale_trans}
    head: dict[str, Any] = {**style, "weight": "bold"}
    figure.text(left, top, bar.name, **head)
    figure.text(left + 3.1, top, unit[1], ha="right", **head)
    figure.text(left + 3.7, top, "share", ha="right", **head)
    for number, (part, look) in enumerate(looks.items(), 1):
        y = top - LINE_INCHES * number
        figure.add_artist(Rectangle((left, y - 0.05), 0.2, 0.1, transform=figure.dpi_scale_trans, **look))
        figure.text(left + 0.28, y, _part_name(part), **style)
        if part not in bar.parts_pj:
            figure.text(left + 3.1, y, "others only", ha="right", color=GREY, **style)
            continue
        energy = bar.parts_pj[part]
        figure.text(left + 3.1, y, _amount(energy / unit[0]), ha="right", **style)
        figure.text(left + 3.7, y, share_text(energy, bar.total_pj), ha="right", **style)


def _amount(value: float) -> str:
    """Number with three digits, or `< 0.001` for very small values."""
    return "< 0.001" if 0 < value < 0.001 else three_digits(value)
