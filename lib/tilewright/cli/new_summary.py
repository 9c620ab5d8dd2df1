"""Line that `tilewright new` prints on a new accelerator: peak, area, static power, and cells of the SRAM."""

from tilewright.base.units import parse_size_bits
from tilewright.cli.new_files import NewAccelerator
from tilewright.hardware.core import Core
from tilewright.hardware.silicon.memory_cost import NoCostError, SramCost, sram_cost
from tilewright.hardware.static_power import clock_period_ns, memory_power_mw, static_power_mw
from tilewright.hardware.system import core_area

LEAKY, TIGHT = "hp", "lstp"
"""Types of SRAM cells: LEAKY cells are fast and leak; TIGHT cells leak little and are slow."""


def summary_line(new: NewAccelerator, core: Core) -> str:
    """Line with the peak in TOP/s, the area in mm2, and the static power of the memories in W. The static power is also
    given as a share of the power at the peak: the static power of the core, and the power of its multipliers. For
    LEAKY cells, the line compares the SRAM with one of TIGHT cells.
    """
    period_ns, array = clock_period_ns(core), core.operational_array
    assert period_ns is not None
    peak_tops = 2 * array.unit_count / period_ns / 1e3
    memories_w = sum(memory_power_mw(core, index) for index in range(len(core.memories))) / 1e3
    multipliers_w = array.unit_count * array.unit_energy_pj / period_ns / 1e3
    share = memories_w / ((static_power_mw(core) / 1e3 + multipliers_w) or 1.0)
    area = core_area(core).mm2
    told = [f"peak {peak_tops:.4g} TOP/s", *([] if area is None else [f"area {area:.3g} mm2"])]
    told.append(
        f"static power of the memories {memories_w:.3g} W, {share:.0%} of the power at the peak"
        " (static power of the core and power of the multipliers)"
    )
    return "; ".join([", ".join(told), *_of_cells(new, period_ns)])


def _of_cells(new: NewAccelerator, period_ns: float) -> list[str]:
    """Words that compare the SRAM of LEAKY cells with one of TIGHT cells; [] for other cells, or if the library does
    not know the costs.
    """
    if new.cells != LEAKY:
        return []
    try:
        leaky, tight = (_cost(new, cells) for cells in (LEAKY, TIGHT))
    except NoCostError:
        return []
    if leaky.leakage_mw is None or tight.leakage_mw is None:
        return []
    return [
        f"cells: {LEAKY} of the SRAM leak {leaky.leakage_mw / 1e3:.3g} W, and an access takes"
        f" {leaky.access_time_ns:.3g} ns; --cells {TIGHT} would leak {tight.leakage_mw / 1e3:.3g} W, with"
        f" {tight.access_time_ns:.3g} ns for an access (a cycle takes {period_ns:.4g} ns)"
    ]


def _cost(new: NewAccelerator, cells: str) -> SramCost:
    return sram_cost(parse_size_bits(new.sram), new.sram_width, new.node_nm, cells)
