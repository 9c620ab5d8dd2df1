"""What the page says of a run on several cores: its cores, memories and layers, what it is compared with, its schedule.

Energies are in µJ, latencies in cycles.
"""

from collections.abc import Mapping
from typing import Any

from tilewright.report.bottlenecks import Bottlenecks
from tilewright.report.multi.bars import ScheduleView
from tilewright.report.multi.page import schedule_data_text
from tilewright.report.multi.reloads import reload_lines
from tilewright.report.multi.use_tables import core_use_rows, layer_use_rows
from tilewright.report.page.columns import rounded
from tilewright.report.page.one_core import MICRO, network_parts
from tilewright.report.run_text import coverage_lines, power_lines

MOST_SCHEDULE_BYTES = 1_500_000
"""Of a schedule in the page; a longer one is only in a file of its own."""
_BASELINES = {
    "this_run": "this run",
    "layer_by_layer": "layer by layer",
    "single_core": "everything on one core",
}


def several_cores_detail(
    found: Bottlenecks, view: ScheduleView, summary: Mapping[str, Any], title: str
) -> dict[str, Any]:
    """All that the page has of a run beside its row."""
    data = schedule_data_text(view, summary)
    fits = len(data) <= MOST_SCHEDULE_BYTES
    return {
        "notes": [
            *power_lines(summary),
            *coverage_lines(summary),
            *reload_lines(summary["reloads"], len(summary["reloads"])),
        ],
        **network_parts(found),
        "bound": _bound(summary),
        "baselines": [_baseline(row) for row in summary["baselines"]],
        "cores": [_core(row) for row in core_use_rows(summary)],
        "memories": [
            [row["name"], rounded(row["capacity_bits"] / 8192), rounded(100 * row["peak_share"])]
            for row in summary["memories"]
        ],
        "layers": [_layer(row) for row in layer_use_rows(view)],
        "schedule": {"title": title, "data": data} if fits else None,
    }


def _bound(summary: Mapping[str, Any]) -> dict[str, Any] | None:
    bound = summary["lower_bound"]
    if bound is None:
        return None
    return {
        "latency": bound["latency_cycles"],
        "energy": rounded(bound["energy_pj"] / MICRO),
        "terms": [[name.replace("_", " "), cycles] for name, cycles in bound["latency_terms"].items()],
    }


def _baseline(row: Mapping[str, Any]) -> list[Any]:
    core = f" ({row['core']}: {row['core_name']})" if row["core"] is not None else ""
    return [
        _BASELINES.get(row["name"], row["name"].replace("_", " ")) + core,
        row["latency_cycles"],
        rounded(row["energy_pj"] / MICRO),
        None if row["gap"] is None else rounded(100 * row["gap"]),
    ]


def _core(row: Mapping[str, Any]) -> list[Any]:
    """Name, role, nodes, busy and array use in %, energy, fullest memory, its peak in %."""
    return [
        f"{row['core']}: {row['name']}",
        row["role"],
        row["cn_count"],
        rounded(100 * row["utilisation"]),
        rounded(100 * row["array_utilisation"]),
        rounded(row["energy_pj"] / MICRO),
        row["fullest_memory"] or "",
        None if row["peak_share"] is None else rounded(100 * row["peak_share"]),
    ]


def _layer(row: Mapping[str, Any]) -> list[Any]:
    """Name, operator, nodes, cores, first start, last end, busy cycles, energy on the cores."""
    return [
        *(row["name"], row["operator_type"], row["cn_count"], row["cores"]),
        *(row["first_start_cycles"], row["last_end_cycles"], row["busy_cycles"]),
        rounded(row["on_core_energy_pj"] / MICRO),
    ]
