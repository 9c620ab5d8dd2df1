"""What zigzag-dse 3.9.1 writes of in-memory arrays besides: parts of the energy and of the time, clock and area.

The area is that of the records, under `corrected` with all instances of the memories (B15).
"""

from collections.abc import Mapping
from typing import Any

from tilewright.hardware.core import OperationalArray

JsonObject = dict[str, Any]
COMPONENTS = (
    "local_bl_precharging",
    "dacs",
    "adcs",
    "mults",
    "analog_bl_addition",
    "adders_regular",
    "adders_pv",
    "accumulators",
)
"""Parts of the energy of operations in the order of the reference. The first is an error there, and with us a part of
what reading the cells costs."""


def with_in_memory_outputs(
    outputs: JsonObject,
    terms: Mapping[str, float],
    parts: Mapping[str, float],
    core_figures: Mapping[str, Any],
) -> JsonObject:
    """Outputs of a layer or a network with these groups.

    `terms` of the energy in pJ, `parts` of the latency in cycles; of the core clock (ns) and areas (mm2) by component,
    as records and summaries have them.
    """
    energy, latency = dict(outputs["energy"]), dict(outputs["latency"])
    energy["operational_energy_breakdown"] = {name: terms.get(name, 0.0) for name in COMPONENTS}
    latency["computation_breakdown"] = {
        "mac_computation": parts.get("ideal", 0) + parts.get("spatial_stall", 0),
        "memory_stalling": parts.get("temporal_stall", 0),
    }
    clock = {
        "tclk (ns)": core_figures["clock_period_ns"],
        "tclk_breakdown (ns)": dict(core_figures["clock_breakdown_ns"]),
    }
    area = core_figures["area_breakdown_mm2"]
    found = {
        "total_area": core_figures["area_mm2"],
        # The colon is a part of the key there.
        "total_area_breakdown:": {
            "imc_area": sum(area["array"].values()),
            "mem_area": sum(area["memories"].values()),
        },
        "total_area_breakdown_further": {
            "imc_area_breakdown": dict(area["array"]),
            "mem_area_breakdown": dict(area["memories"]),
        },
    }
    return {**outputs, "energy": energy, "latency": latency, "clock": clock, "area (mm^2)": found}


def in_memory_array(array: OperationalArray) -> JsonObject:
    """An array in memory: its numbers by name in place of the costs of a unit, which it has none of."""
    unit = {"imc_type": array.kind.split()[0], **dict(array.parameters)}
    return {"operational_unit": unit, "dimensions": dict(array.dimensions)}
