"""Preflight: memories of cores that cannot hold a single element of what layers keep in them."""

from collections.abc import Sequence
from pathlib import Path

from tilewright.errors import Problems
from tilewright.hardware.core_paths import core_paths
from tilewright.hardware.system import OFFCHIP
from tilewright.mapping.core_choice import core_choice
from tilewright.mapping.element_fit import element_fit_problems, too_small_memories
from tilewright.stages.system_problem import SystemProblem, has_lines
from tilewright.workload.layer import Layer


def check_memories(problems: Problems, problem: SystemProblem) -> None:
    """Record problems where layers have no other core, notices where others can run them; each once, with the layers
    that it hits, on the line of the core file."""
    files = core_paths(Path(problem.hardware_file)) if has_lines(problem.hardware_file) else {}
    stranded, others = _layers_of_cores(problem)
    for name, core in problem.accelerator.distinct_cores.items():
        told = (core, problem.mapping, files.get(name))
        problems.found += element_fit_problems(stranded.get(name, ()), *told)
        problems.notices += map(str, element_fit_problems(others.get(name, ()), *told))


def _layers_of_cores(problem: SystemProblem) -> tuple[dict[str, list[Layer]], dict[str, list[Layer]]]:
    """Core file -> its layers that have no core with room for an element of all operands, and its other layers."""
    file_of = {place.core_id: place.file_name for place in problem.accelerator.places if place.role != OFFCHIP}
    stranded: dict[str, list[Layer]] = {}
    others: dict[str, list[Layer]] = {}
    cores = problem.accelerator.distinct_cores
    for node in problem.workload.nodes:
        if node.layer is None:
            continue
        entry = problem.mapping.constraints_for(node.layer)
        ids = core_choice(node, entry, problem.accelerator).core_ids
        names: Sequence[str] = list(dict.fromkeys(file_of[core_id] for core_id in ids))
        has_none = all(too_small_memories(node.layer, cores[name], problem.mapping) for name in names)
        for name in names:
            (stranded if has_none else others).setdefault(name, []).append(node.layer)
    return stranded, others
