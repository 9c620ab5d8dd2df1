"""Details of a run on several cores for the page: limits, cores, links, memories, layers, baselines and schedule.

Energies are in µJ, latencies in cycles.
"""

from collections.abc import Mapping
from typing import Any

from tilewright.base.json_values import JsonObject
from tilewright.base.measures import ENERGY_PJ, LATENCY_CYCLES
from tilewright.base.proof import covered_by
from tilewright.results.bottlenecks import Bottlenecks
from tilewright.results.multi.bars import ScheduleView
from tilewright.results.multi.core_cycles import BUSY_CAUSES, CAUSES_OF_CYCLES, WAITS
from tilewright.results.multi.cores_report import CoresReport, limit_lines, wait_words
from tilewright.results.multi.layer_places import layer_places
from tilewright.results.multi.page import schedule_data_text
from tilewright.results.multi.summary import reload_lines
from tilewright.results.multi.use import ScheduledLayer
from tilewright.results.multi.use_tables import core_use_rows
from tilewright.results.page.columns import rounded
from tilewright.results.page.one_core import MICRO, network_parts
from tilewright.results.run_text import bits_lines, coverage_lines, power_lines, range_lines
from tilewright.results.text_tables import share_text
from tilewright.results.verdict import Verdict

MOST_WAITS = 25
"""Largest number of causes of waiting that are listed. All other causes are summed in one row."""
MOST_SCHEDULE_BYTES = 1_500_000
"""Largest size, in bytes, of a schedule that the page contains. A larger schedule is only written to a separate file.
"""
_BASELINES = {
    "this_run": "this run",
    "layer_by_layer": "layer by layer",
    "single_core": "everything on one core",
}


def several_cores_detail(found: Bottlenecks, view: ScheduleView, summary: Mapping[str, Any], title: str) -> JsonObject:
    """Data on a run on several cores, which the page shows below the row of the run. `found` has the parts of the
    energy and of the latency, and the report on the cores. `title` is the title of the schedule.
    """
    waits = _waits_of_layers(found.cores)
    data = schedule_data_text(view, summary)
    fits = len(data) <= MOST_SCHEDULE_BYTES
    return {
        "notes": [
            *bits_lines(summary),
            *power_lines(summary),
            *range_lines(summary),
            *coverage_lines(summary),
            *reload_lines(summary["reloads"], len(summary["reloads"])),
        ],
        **network_parts(found),
        **_limits(found.cores),
        "bound": _bound(summary),
        "baselines": [_baseline(row) for row in summary["baselines"]],
        "cores": [_core(row) for row in core_use_rows(summary)],
        "memories": [
            [row["name"], rounded(row["capacity_bits"] / 8192), rounded(100 * row["peak_share"])]
            for row in summary["memories"]
        ],
        "links": [_link(row) for row in summary["links"] if row["bits"]],
        "layers": [_layer(row, waits) for row in layer_places(view)],
        "schedule": {"title": title, "data": data} if fits else None,
    }


def limited_by(report: CoresReport | None) -> str:
    """Short text with the part of the system whose doubling saves most cycles, and the saved cycles. If only several
    parts together save enough, the text names these parts. '' if the limit is not known.
    """
    if report is None or report.limits.unknown:
        return ""
    limits = report.limits
    if limits.together:
        return f"together: {' and '.join(part.short for part in limits.together)}"
    if not limits.helpful:
        return "no single part"
    best = limits.helpful[0]
    ties = sum(limits.gain_cycles(one) == limits.gain_cycles(best) for one in limits.helpful) - 1
    more = f" (or {ties} other{'s' * (ties > 1)})" if ties else ""
    return f"{best.short}{more} -{share_text(limits.gain_cycles(best), limits.latency_cycles)}"


def _limits(report: CoresReport | None) -> JsonObject:
    """Limits of a run on several cores, as a JSON object.

    * `limits`: cycles that doubling saves, for each part of the system; also for a set of parts if no single part saves
      cycles
    * `work`: cycles of each core by cause
    * `waits`: causes of waiting with their cycles, the longest wait first

    Without a report, `limits` and `work` are None, and `waits` is [].
    """
    if report is None:
        return {"limits": None, "work": None, "waits": []}
    by_core = report.added(lambda row: (row.core, row.cause))
    causes = [cause for cause in CAUSES_OF_CYCLES if any(key[1] == cause for key in by_core)]
    limits = report.limits
    return {
        "limits": {
            "lines": limit_lines(limits),
            "parts": [[part.words, limits.gain_cycles(part)] for part in limits.helpful]
            or ([[limits.together_words, limits.gain_cycles(limits.together[0])]] if limits.together else []),
        },
        "work": {
            "causes": causes,
            "busy": [cause in BUSY_CAUSES for cause in causes],
            "cores": [[core, [by_core.get((core, cause), 0) for cause in causes]] for core in report.cores],
        },
        "waits": _waits(report),
    }


def _waits(report: CoresReport) -> list[list[Any]]:
    """Pairs (cause of waiting, waiting cycles of all cores together). The longest wait comes first."""
    waits = [[words, cycles] for words, cycles in report.added(wait_words, WAITS).items()]
    rest = sum(cycles for _, cycles in waits[MOST_WAITS:])
    return waits[:MOST_WAITS] + ([["others", rest]] if rest else [])


def _waits_of_layers(report: CoresReport | None) -> dict[str, tuple[int, str]]:
    """Waiting before each layer, as pairs (cycles, text) by layer. The cycles are those in which cores wait before they
    run CNs of the layer. The text has the main cause of this waiting, and its share.
    """
    causes: dict[str, dict[str, int]] = {}
    for (layer, words), cycles in (
        report.added(lambda row: (row.layer, wait_words(row)), WAITS).items() if report else ()
    ):
        causes.setdefault(layer, {})[words] = cycles
    verdicts = {
        layer: Verdict.of("cycles that cores wait", "cycles", sum(own.values()), own) for layer, own in causes.items()
    }
    return {layer: (int(one.whole), one.text) for layer, one in verdicts.items()}


def _link(row: Mapping[str, Any]) -> list[Any]:
    """Link as a list.

    The items are: name, width in bits per cycle, moved data in KiB, share of the latency in which data move (in %), and
    used share of the width (in %).
    """
    return [
        *(row["name"], row["width_bits_per_cycle"], rounded(row["bits"] / 8192), rounded(100 * row["busy"])),
        None if row["utilisation"] is None else rounded(100 * row["utilisation"]),
    ]


def _bound(summary: Mapping[str, Any]) -> JsonObject | None:
    bound = summary["lower_bound"]
    if bound is None:
        return None
    return {
        "covers": covered_by(bound),
        "latency": bound[LATENCY_CYCLES],
        "energy": rounded(bound[ENERGY_PJ] / MICRO),
        "terms": [[name.replace("_", " "), cycles] for name, cycles in bound["latency_terms"].items()],
    }


def _baseline(row: Mapping[str, Any]) -> list[Any]:
    core = f" ({row['core']}: {row['core_name']})" if row["core"] is not None else ""
    return [
        _BASELINES.get(row["name"], row["name"].replace("_", " ")) + core,
        row[LATENCY_CYCLES],
        rounded(row[ENERGY_PJ] / MICRO),
        None if row["gap"] is None else rounded(100 * row["gap"]),
    ]


def _core(row: Mapping[str, Any]) -> list[Any]:
    """Core as a list.

    The items are: name, role, number of CNs, busy share in %, array use in %, energy, fullest memory, and peak of this
    memory in %.
    """
    return [
        f"{row['core']}: {row['name']}",
        row["role"],
        row["cn_count"],
        rounded(100 * row["utilisation"]),
        rounded(100 * row["array_utilisation"]),
        rounded(row[ENERGY_PJ] / MICRO),
        row["fullest_memory"] or "",
        None if row["peak_share"] is None else rounded(100 * row["peak_share"]),
    ]


def _layer(row: ScheduledLayer, waits: Mapping[str, tuple[int, str]]) -> list[Any]:
    """Layer as a list.

    The items are: name, operator, number of CNs, cores, first start, last end, busy cycles, energy on the cores, cycles
    in which cores wait before CNs of the layer, and the main cause of waiting.
    """
    return [
        *(row.name, row.operator_type, row.cn_count, row.cores),
        *(row.first_start_cycles, row.last_end_cycles, row.busy_cycles),
        rounded(row.on_core_energy_pj / MICRO),
        *waits.get(row.name, (None, "")),
    ]
