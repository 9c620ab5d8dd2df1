"""Costs that `tilewright map` gives for one design, in the form of a space."""

from typing import Any

from tilewright.base.errors import InputError, MappingError
from tilewright.cost.ledger import energy_terms
from tilewright.designs.design_cost import DesignCost, reason_of_misfit
from tilewright.designs.results import INFEASIBLE, INVALID, OK
from tilewright.pipeline.stages import run
from tilewright.pipeline.stages.descriptions import Descriptions
from tilewright.search.options import SearchOptions
from tilewright.workload.graph import Workload


def mapped(design: dict[str, Any], network: Workload, mapping: Any, options: SearchOptions) -> DesignCost:
    """Run a hardware file completely, without energies by memory and without the reason of a failure."""
    stages = run.default_pipeline(options)
    try:
        problem = next(stages.parsers().run(Descriptions(design, network, mapping)))
        problem.check_layers()
        summary = run.map_problem(problem, stages).summary
    except InputError:
        return DesignCost(INVALID)
    except MappingError as error:
        return DesignCost(INFEASIBLE, reason_of_misfit(error))
    area = summary["area_mm2"]
    figures = summary["energy_pj"], summary["latency_cycles"], float("nan") if area is None else area
    cycles = {part: float(value) for part, value in summary["latency_breakdown_cycles"].items()}
    return DesignCost(OK, "", *figures, energy_terms(summary), {}, cycles)
