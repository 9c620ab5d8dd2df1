"""Where the energy of a schedule goes: in cores, and for data that moves, by cause; beside that of the baselines."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from tilewright.cost.ledger import ARRAYS, on_core_terms
from tilewright.report.figure_layout import GREY, OPERAND_COLOURS, figure_style, save_figure, three_digits
from tilewright.report.figures import ENERGY_UNIT
from tilewright.report.multi.bars import ScheduleView
from tilewright.scheduling.result import Schedule

Summary = Mapping[str, Any]
ON_CORE, TOTAL = "on core", "total"
OTHER_MEMORIES = "other core memories"
CAUSE_WORDS = {
    "off_chip_fetch": "fetched from off-chip",
    "core_to_core": "between cores",
    "eviction": "evictions",
    "sink_output": "outputs",
    "off_chip_stream": "streams",
}
LINK, MEMORY = "links", "memories"
PART_ORDER = (ON_CORE, *(f"{words}, {part}" for words in CAUSE_WORDS.values() for part in (LINK, MEMORY)))
PART_COLOURS = {ON_CORE: "#8a8a8a", TOTAL: "#bbbbbb"} | {
    words: OPERAND_COLOURS[number] for words, number in zip(CAUSE_WORDS.values(), (0, 2, 4, 3, 1), strict=True)
}
CORE_GREYS = ("#1f1f1f", "#4a4a4a", "#6f6f6f", "#919191", "#b0b0b0", "#cccccc", "#e2e2e2")
"""Of the parts of ON_CORE, in their order; there are no more parts."""
WIDTH_INCHES, NAME_INCHES, BAR_WIDTH_INCHES = 10.8, 1.2, 5.0
TOP_INCHES, BAR_INCHES, AXIS_INCHES, LINE_INCHES = 0.75, 0.42, 0.6, 0.19
THIS_RUN = "this run"


@dataclass(frozen=True)
class EnergyBar:
    """The energy of one schedule."""

    name: str
    parts_pj: Mapping[str, float]
    """Part → pJ: those of `on_core_parts`, or ON_CORE; then those of PART_ORDER. TOTAL alone where none is known."""

    @property
    def total_pj(self) -> float:
        """Sum of the parts."""
        return sum(self.parts_pj.values())


def schedule_parts(schedule: Schedule) -> dict[str, float]:
    """Part of PART_ORDER → pJ of a schedule; they add up to its energy."""
    causes = {name: {"link_pj": cause.link_pj, "memory_pj": cause.memory_pj} for name, cause in schedule.causes.items()}
    return _named_parts({"on_core": schedule.on_core_energy_pj, **causes})


def on_core_parts(summary: Summary | None) -> dict[str, float]:
    """Arrays, then memories of the cores and other terms by falling energy → pJ; those without a grey are one part.

    Memories of one name in several cores are one part. Nothing where the summary does not have them.
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
    """This run, then the baselines of its summary, with their parts where those are given (`energy_parts_pj`)."""
    parts = schedule_parts(view.schedule)
    if on_core := on_core_parts(summary):
        parts = on_core | {part: energy for part, energy in parts.items() if part != ON_CORE}
    bars = [EnergyBar(THIS_RUN, parts)]
    for row in (summary or {}).get("baselines") or ():
        name = readable(row["name"])
        if name == THIS_RUN:
            continue
        parts = row.get("energy_parts_pj")
        bars.append(EnergyBar(name, _named_parts(parts) if parts else {TOTAL: row["energy_pj"]}))
    return bars


def energy_breakdown_figure(view: ScheduleView, summary: Summary | None = None) -> Figure:
    """A bar for each schedule, stacked by part, and a list of the parts of this run."""
    bars = energy_bars(view, summary)
    title = f"Energy: {view.names.network} on {view.names.accelerator}"
    return _figure(bars, title)


def write_energy_breakdown(view: ScheduleView, path_stem: Path, summary: Summary | None = None) -> tuple[Path, Path]:
    """Write the figure as `path_stem`.svg and .png; returns both paths."""
    return save_figure(energy_breakdown_figure(view, summary), path_stem)


def readable(name: str) -> str:
    """A name of a baseline for people."""
    return name.replace("_", " ")


def _named_parts(parts: Mapping[str, Any]) -> dict[str, float]:
    named = {ON_CORE: float(parts["on_core"])}
    for cause, words in CAUSE_WORDS.items():
        energy = parts.get(cause)
        if energy is not None:
            named |= {f"{words}, {LINK}": energy["link_pj"], f"{words}, {MEMORY}": energy["memory_pj"]}
    return named


def _looks(bars: Sequence[EnergyBar]) -> dict[str, dict[str, Any]]:
    """Part → how it is drawn, in the order of drawing: greys in the cores, colours by cause, links hatched."""
    known = (*PART_ORDER, TOTAL)
    # What is nowhere spent is left out.
    spent = [part for bar in bars for part, energy in bar.parts_pj.items() if energy > 0]
    divided = dict.fromkeys(part for part in spent if part not in known)
    colours = dict(zip(divided, CORE_GREYS, strict=False))
    colours |= {part: PART_COLOURS[part.split(", ")[0]] for part in known if part in spent}
    plain: dict[str, Any] = {"edgecolor": "white", "linewidth": 0.4}
    return {
        part: {"facecolor": colour, "hatch": "//////" if part in known and part.endswith(LINK) else "", **plain}
        for part, colour in colours.items()
    }


def _figure(bars: Sequence[EnergyBar], title: str) -> Figure:
    looks = _looks(bars)
    parts = list(looks)
    listed = max(LINE_INCHES * (len(parts) + 2), BAR_INCHES * len(bars) + AXIS_INCHES)
    height = TOP_INCHES + listed + 0.1
    most = max(bar.total_pj for bar in bars)
    unit = ENERGY_UNIT
    with figure_style():
        figure = Figure(figsize=(WIDTH_INCHES, height))
        FigureCanvasAgg(figure)
        words = "grey: in the cores; colours: data that moves, hatched in links, plain in the memories at both ends"
        figure.text(0.2 / WIDTH_INCHES, 1 - 0.2 / height, title, fontsize=10, weight="bold", va="center")
        figure.text(0.2 / WIDTH_INCHES, 1 - 0.4 / height, words, fontsize=8, color=GREY, va="center")
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
        panel.grid(axis="x", linewidth=0.4, color="#cccccc")
        _list_parts(figure, bars[0], looks, unit, height - TOP_INCHES + 0.15)
    return figure


def _list_parts(
    figure: Figure, bar: EnergyBar, looks: Mapping[str, Mapping[str, Any]], unit: tuple[float, str], top: float
) -> None:
    """The parts of a schedule with their values and shares, and those of others without: legend and table at once."""
    left = NAME_INCHES + BAR_WIDTH_INCHES + 0.35
    style: dict[str, Any] = {"va": "center", "fontsize": 7.5, "transform": figure.dpi_scale_trans}
    head: dict[str, Any] = {**style, "weight": "bold"}
    figure.text(left, top, bar.name, **head)
    figure.text(left + 3.1, top, unit[1], ha="right", **head)
    figure.text(left + 3.7, top, "share", ha="right", **head)
    for number, (part, look) in enumerate(looks.items(), 1):
        y = top - LINE_INCHES * number
        figure.add_artist(Rectangle((left, y - 0.05), 0.2, 0.1, transform=figure.dpi_scale_trans, **look))
        figure.text(left + 0.28, y, {TOTAL: "parts not known", ON_CORE: "in the cores"}.get(part, part), **style)
        if part not in bar.parts_pj:
            figure.text(left + 3.1, y, "others only", ha="right", color=GREY, **style)
            continue
        energy = bar.parts_pj[part]
        figure.text(left + 3.1, y, _amount(energy / unit[0]), ha="right", **style)
        figure.text(left + 3.7, y, f"{100 * energy / (bar.total_pj or 1):.1f} %", ha="right", **style)


def _amount(value: float) -> str:
    """Three digits, and no exponent for what hardly counts."""
    return "< 0.001" if 0 < value < 0.001 else three_digits(value)
