"""What a core is, whatever runs on it: its area and its clock period, as records and summaries tell them."""

from typing import Any

from tilewright.hardware.array_model import array_model
from tilewright.hardware.core import Core
from tilewright.hardware.system import area_breakdown_mm2, core_area
from tilewright.profile import ModelProfile


def core_figures(core: Core, profile: ModelProfile) -> dict[str, Any]:
    """Fields of a record: the area in mm2, None if parts have none; parts and delays where the array tells them."""
    array = core.operational_array
    model = array_model(array)
    return {
        "area_mm2": core_area(core, profile).mm2,
        "area_breakdown_mm2": area_breakdown_mm2(core, profile),
        "clock_period_ns": model.clock_period_ns(array),
        "clock_breakdown_ns": dict(model.clock_breakdown_ns(array)),
    }


def summary_figures(core: Core, profile: ModelProfile) -> dict[str, Any]:
    """The same as fields of a summary; what says nothing is left out."""
    area = core_area(core, profile)
    figures = core_figures(core, profile)
    told = {name: figures[name] for name in ("area_breakdown_mm2", "clock_period_ns", "clock_breakdown_ns")}
    return {"area_mm2": area.mm2, "area_note": area.note, **{name: value for name, value in told.items() if value}}
