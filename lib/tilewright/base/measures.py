"""Measures of a result: their names, with units, as summaries, tables and certificates use them.

The names of attributes, which are additional numbers in hardware files, are in `hardware/attributes.py`.
"""

from collections.abc import Mapping
from typing import Final, Literal, get_args

MeasureName = Literal["energy_pj", "latency_cycles", "edp_pj_cycles", "area_mm2"]
"""Name of a measure, as used in constraints and objectives of a design space."""
MEASURES: tuple[MeasureName, ...] = get_args(MeasureName)
"""Names of all measures, in the order in which tables have them."""
ENERGY_PJ: Final = "energy_pj"
LATENCY_CYCLES: Final = "latency_cycles"
EDP_PJ_CYCLES: Final = "edp_pj_cycles"
AREA_MM2: Final = "area_mm2"
LATENCY_S: Final = "latency_s"
EDP_PJ_S: Final = "edp_pj_s"
IN_TIME: Final[Mapping[str, str]] = {LATENCY_CYCLES: LATENCY_S, EDP_PJ_CYCLES: EDP_PJ_S}
"""Measure in cycles -> measure in seconds. If cores have different clocks, the measure in seconds is used."""
