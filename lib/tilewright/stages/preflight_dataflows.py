"""Preflight: loop dimensions in the dataflows of cores."""

from pathlib import Path

from tilewright.errors import InputError, KeyPath, Problem, nearest_name
from tilewright.hardware.core import Core
from tilewright.hardware.core_paths import core_paths
from tilewright.hardware.dataflow_checks import is_usual_loop
from tilewright.stages.system_problem import SystemProblem, has_lines
from tilewright.workload.graph import Workload
from tilewright.yamlfile import YamlDocument, load_yaml, table


def dataflow_problems(problem: SystemProblem) -> list[Problem]:
    """Loop dimensions that neither a layer of the network nor any usual kind of layer has: nothing would be unrolled
    there, without a word. A usual one that this network lacks is no problem."""
    files = core_paths(Path(problem.hardware_file)) if has_lines(problem.hardware_file) else {}
    found = []
    for name, core in problem.accelerator.distinct_cores.items():
        document = _document(files.get(name), problem.hardware_file or name)
        found += _problems_of_core(core, document, problem.workload)
    return found


def _problems_of_core(core: Core, document: YamlDocument, workload: Workload) -> list[Problem]:
    known = list(dict.fromkeys(name for node in workload.nodes if node.layer for name in node.layer.size_of))
    message, is_list = f"no layer of {workload.name} has this loop dimension", _is_list(document)
    found = []
    for place, dataflow in enumerate(core.dataflows):
        for dimension, loops in dataflow:
            for position, (name, _) in enumerate(loops):
                if name in known or is_usual_loop(name):
                    continue
                path: KeyPath = ("dataflows", *((place,) if is_list else ()), dimension, position)
                where = (document.file, document.line_of(path), document.dotted(path))
                found.append(Problem(message, *where, repr(name), ", ".join(known), nearest_name(name, known)))
    return found


def _document(path: Path | None, file: str) -> YamlDocument:
    """The core file, for lines; without lines where the accelerator is no file that a person wrote."""
    try:
        return load_yaml(path) if path is not None else YamlDocument(file, {})
    except InputError:
        return YamlDocument(str(path), {})


def _is_list(document: YamlDocument) -> bool:
    return isinstance(table(document.data).get("dataflows"), list)
