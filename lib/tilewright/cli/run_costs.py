"""Runs as points (energy, latency, area), for comparisons.

Each point of a run on one core also has the costs of the parts of this core.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilewright.base.artifacts.envelope import read_artifact
from tilewright.base.errors import TilewrightError
from tilewright.base.steps import MULTI, SUMMARY
from tilewright.cli.described_run import DescribedRun
from tilewright.cli.runs import read_any_summary

if TYPE_CHECKING:
    from tilewright.results.part_costs import HardwareCosts
    from tilewright.results.run_point import RunPoint


def costs_of_run(folder: Path, made_by: Mapping[str, Any], summary: Mapping[str, Any] | None) -> "HardwareCosts | None":
    """Costs of the parts of the core on which a single-core run ran. None if the hardware of the run is not found or
    cannot be read.

    The hardware is found by its digest, so the costs are certainly those of the run. `made_by` is the provenance of the
    run.
    """
    from tilewright.hardware.source import parse_accelerator
    from tilewright.results.part_costs import hardware_costs

    try:
        place = DescribedRun.of(folder, made_by, summary).hardware()
        return None if place is None else hardware_costs(parse_accelerator(place).cores[0])
    except TilewrightError:
        return None


def point_of_run(folder: Path) -> "RunPoint":
    """Point (energy, latency, area) of the run in a folder, on one core or on several cores. Raises ArtifactError if
    the run is missing or damaged.
    """
    from tilewright.results.pareto import candidate, multi_candidate

    flow, summary = read_any_summary(folder)
    made_by = read_artifact(folder / SUMMARY).provenance
    if flow == MULTI:
        return multi_candidate(folder.name, summary, made_by)
    return candidate(folder.name, summary, made_by, costs_of_run(folder, made_by, summary))
