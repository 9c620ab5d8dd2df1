"""Area and clock period of a core, and rates such as power and TOP/s, which are computed from energy, latency and a
clock.

In TOP/s, one multiply-accumulate counts as two operations, as usual in the literature.
"""

from typing import Any

from tilewright.base.measures import AREA_MM2
from tilewright.base.profile import ModelProfile
from tilewright.hardware.array_model import array_model
from tilewright.hardware.core import Core
from tilewright.hardware.system import area_breakdown_mm2, core_area

OPERATIONS_A_MAC = 2
RATES = ("latency_s", "power_w", "static_power_w", "tops", "tops_per_w", "tops_per_mm2")
"""Names of the rates in summaries and tables. All rates are absent if the clock is unknown."""
_SECONDS_A_NS, _JOULES_A_PJ, _WATTS_A_MW, _TERA = 1e-9, 1e-12, 1e-3, 1e12


def rates(
    clock_period_ns: float | None,
    latency_cycles: float,
    energy_pj: float,
    mac_count: int,
    static_power_mw: float,
    area_mm2: float | None,
) -> dict[str, Any]:
    """Rates (RATES), and the clock frequency in MHz with which they are computed; {} if the clock is unknown.

    `power_w` is the average power over the latency, including static power. `tops_per_w` is None if the energy is 0;
    `tops_per_mm2` is None if the area is unknown.
    """
    if clock_period_ns is None:
        return {}
    latency_s, energy_j = latency_cycles * clock_period_ns * _SECONDS_A_NS, energy_pj * _JOULES_A_PJ
    tera = OPERATIONS_A_MAC * mac_count / _TERA
    tops = tera / latency_s if latency_s else 0.0
    return {
        "clock_frequency_mhz": float(f"{1e3 / clock_period_ns:.15g}"),  # 15 digits: 60 in the file is printed as 60
        "latency_s": latency_s,
        "power_w": energy_j / latency_s if latency_s else 0.0,
        "static_power_w": static_power_mw * _WATTS_A_MW,
        "tops": tops,
        "tops_per_w": tera / energy_j if energy_j else None,
        "tops_per_mm2": tops / area_mm2 if area_mm2 else None,
    }


def time_and_power(clock_period_ns: float | None, latency_cycles: float, energy_pj: float) -> dict[str, float]:
    """Latency in s and average power in W, by their names in RATES. {} if the clock is unknown."""
    found = rates(clock_period_ns, latency_cycles, energy_pj, 0, 0.0, None)
    return {name: found[name] for name in RATES[:2] if name in found}


def core_figures(core: Core, profile: ModelProfile) -> dict[str, Any]:
    """Area in mm2 and clock period in ns of a core, in total and by component, as fields of a record.

    The area is None if the area of a part is unknown. The breakdowns are empty if the array model does not give them.
    """
    array = core.operational_array
    model = array_model(array)
    return {
        AREA_MM2: core_area(core, profile).mm2,
        "area_breakdown_mm2": area_breakdown_mm2(core, profile),
        "clock_period_ns": model.clock_period_ns(array),
        "clock_breakdown_ns": dict(model.clock_breakdown_ns(array)),
    }


def summary_figures(core: Core, profile: ModelProfile) -> dict[str, Any]:
    """Fields of a summary for a core: area in mm2 and clock period in ns, each with its breakdown by component, and a
    note on the area. Empty breakdowns and an unknown clock period are left out."""
    area = core_area(core, profile)
    figures = core_figures(core, profile)
    told = {name: figures[name] for name in ("area_breakdown_mm2", "clock_period_ns", "clock_breakdown_ns")}
    return {AREA_MM2: area.mm2, "area_note": area.note, **{name: value for name, value in told.items() if value}}
