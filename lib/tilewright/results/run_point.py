"""Runs as points in energy, latency and area, with the properties that decide which runs can be compared."""

from dataclasses import dataclass

from tilewright.results.part_costs import HardwareCosts
from tilewright.search.cost_ranges import CostPart

SCHEDULED = "as scheduled"
"""Text for the place of data between layers in a run on several cores, where the schedule decides this place."""


@dataclass(frozen=True)
class RunPoint:
    """Run as a point in energy, latency and area. `options` are, as text, the options that must be equal in compared
    runs.
    """

    run: str
    workload: str
    workload_digest: str
    core: str
    objective: str
    model: str
    options: tuple[tuple[str, str], ...]
    energy_pj: float
    latency_cycles: float
    area_mm2: float | None
    """Area in mm²; None if the hardware file does not give the areas of all parts."""
    area_note: str = ""
    """Parts whose area is missing, or a note that the area has no unit."""
    is_of_several_cores: bool = False
    between_layers: str = SCHEDULED
    """Place of the data between layers (outermost memory or lower memories), in words."""
    assumes: str = ""
    """Assumptions on which the figures of the run rest."""
    cost_parts: tuple[CostPart, ...] = ()
    """Parts of the costs of the run that have a range."""
    could_keep: bool = False
    """True if data go through the top memory between layers although lower memories have room for some of the data."""
    clock_frequency_mhz: float | None = None
    """Clock frequency in MHz; None if the hardware file gives none."""
    static_power_w: float | None = None
    """Static power in watts; 0 or None if the hardware file gives none. The energy then excludes leakage."""
    objective_bound: float | None = None
    """Lower bound of the objective, with the latency in cycles; None if the search of the run gives no bound."""

    bits: str = ""
    """Precision of the operands in bits, as text; '' if unknown."""
    free_work: str = ""
    """Operators of the network without a cost model, as text; '' if all operators have costs."""
    costs: HardwareCosts | None = None
    """Costs of the parts of the core; None if they are unknown, as for runs on several cores."""

    @property
    def latency_s(self) -> float | None:
        """Latency in seconds; None if the clock is not known."""
        clock_mhz = self.clock_frequency_mhz
        return None if clock_mhz is None else self.latency_cycles / (clock_mhz * 1e6)


def run_label(point: RunPoint) -> str:
    """Name of a run, without the name of its network."""
    return point.run.removeprefix(f"{point.workload}-")
