"""Runs as points in energy, latency and area, with the properties by which comparable runs are found."""

from dataclasses import dataclass

from tilewright.results.part_costs import HardwareCosts
from tilewright.results.static_parts import NO_PARTS, StaticParts
from tilewright.search.cost_ranges import CostPart

SCHEDULED = "as scheduled"
"""Text for a run on several cores, whose schedule decides where data between layers are kept."""


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
    """Area in mm², possibly without some parts (`area_note`); None if it is not known."""
    area_note: str = ""
    """Text on the parts of the area that are missing, or on a missing unit; '' if nothing is missing."""
    is_of_several_cores: bool = False
    between_layers: str = SCHEDULED
    """Text on where the data lie that one layer passes to another: in the outermost memory, or in lower memories."""
    assumes: str = ""
    """Assumptions behind the energy, latency and area of the run."""
    assumes_file: str = ""
    """File whose column `assumes` has the assumptions for many results, such as all designs of a space; '' if there is
    no such file.
    """
    cost_parts: tuple[CostPart, ...] = ()
    """Parts of the run's energy and area whose costs have a range."""
    could_keep: bool = False
    """True if the run sends data through the top memory between layers, although lower memories have room for a part of
    the data.
    """
    clock_frequency_mhz: float | None = None
    """Clock frequency in MHz; None if the hardware file gives none."""
    static_power_w: float | None = None
    """Static power in watts. If it is 0 or None, the hardware file gives none, and the energy excludes static energy.
    """
    static_parts: StaticParts = NO_PARTS
    """Parts with and without a static power; empty if they are not known, as for a row in the tables of a space."""
    objective_bound: float | None = None
    """Lower bound of the objective; None if the run's search gives no bound. A latency in the objective is in cycles.
    """

    bits: str = ""
    """Precision of the operands in bits, as text; '' if unknown."""
    free_work: str = ""
    """Amount of work of the operators that have no costs in this run, as text, such as `5 MACs and 7 other operations`;
    '' if all operators have costs.
    """
    knows_free_work: bool = True
    """False if it is not known which operators have costs, as for a row in the tables of a space."""
    structure_digest: str = ""
    """Digest of the network without the bits and the zeros of its operands; '' if the digest was not needed, or if the
    network was not found.
    """
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
