"""Preflight checks of two requirements of every schedule: an off-chip core exists, and each operand to prefetch
exists.
"""

from collections.abc import Sequence

from tilewright.base.errors import Problem, nearest_name
from tilewright.pipeline.stages.multi.items import SystemProblem, has_lines
from tilewright.workload.graph import Workload
from tilewright.workload.layer import OUTPUT


def offchip_problems(problem: SystemProblem) -> list[Problem]:
    """List with one problem if the accelerator has no off-chip core; otherwise []. The off-chip memory is needed
    because it keeps weights, inputs and results of the network.
    """
    if problem.accelerator.offchip_core_id is not None:
        return []
    file, message = problem.hardware_file, "the accelerator has no off-chip core to keep weights, inputs and results"
    allowed = "offchip_core: FILE, or offchip_core_id"
    line = 1 if has_lines(file) else 0
    return [Problem(message, file or problem.accelerator.name, line, "offchip_core", allowed=allowed)]


def prefetch_problems(workload: Workload, names: Sequence[str]) -> list[Problem]:
    """Errors in `operands_to_prefetch`, one for each name that is not an input operand of any layer."""
    layers = [node.layer for node in workload.nodes if node.layer is not None]
    known = sorted({operand for layer in layers for operand in layer.input_operands} - {OUTPUT})
    message = "no layer reads an operand of this name"
    return [
        Problem(
            message,
            path=f"operands_to_prefetch[{place}]",
            value=str(name),
            allowed=", ".join(known),
            nearest=nearest_name(str(name), known),
        )
        for place, name in enumerate(names)
        if name not in known
    ]
