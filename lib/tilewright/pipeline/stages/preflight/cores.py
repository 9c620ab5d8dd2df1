"""Preflight checks of the cores that a mapping file names, of layers that no core can run, and of loop dimensions in
dataflows.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tilewright.base.errors import InputError, KeyPath, Problem, Problems, nearest_name, some_of
from tilewright.base.yamlfile import YamlDocument, load_yaml, table
from tilewright.hardware.core import Core
from tilewright.hardware.core_paths import core_paths
from tilewright.hardware.system import MEMORY, OFFCHIP, MultiCoreAccelerator
from tilewright.hardware.yaml_checks import is_usual_loop
from tilewright.mapping.constraints import DEFAULT, Mapping, MappingConstraints
from tilewright.mapping.runnable import COMPUTES_NOTHING, CoreChoice, core_choice
from tilewright.mapping.unused_entries import note_unused, note_unused_sides
from tilewright.pipeline.stages.multi.items import SystemProblem, has_lines
from tilewright.workload.graph import Workload, WorkloadNode


@dataclass(frozen=True)
class CoreNames:
    """Ids of cores that a mapping file can name, and ids of the other cores, which compute nothing."""

    usable: tuple[int, ...]
    idle: dict[int, str]
    """Roles of the cores that compute nothing, by core id. A mapping file cannot name these cores."""

    @classmethod
    def of(cls, accelerator: MultiCoreAccelerator) -> "CoreNames":
        """Core ids of an accelerator, divided into cores that can run layers and cores that compute nothing."""
        idle = {
            core_id: "the off-chip core" if place.role == OFFCHIP else "a memory"
            for core_id, place in accelerator.place_of.items()
            if place.role in (OFFCHIP, MEMORY)
        }
        return cls(tuple(core_id for core_id in accelerator.core_ids if core_id not in idle), idle)


def layers_of_entries(workload: Workload, mapping: Mapping) -> list[list[WorkloadNode]]:
    """Nodes of the layers to which each entry of the mapping file applies: one list for each entry, in the order of the
    file.
    """
    found: list[list[WorkloadNode]] = [[] for _ in mapping.entries]
    places = {id(entry): place for place, entry in enumerate(mapping.entries)}
    for node in workload.nodes:
        if node.layer is not None:
            found[places[id(mapping.constraints_for(node.layer))]].append(node)
    return found


def check_cores(problems: Problems, problem: SystemProblem) -> None:
    """Report three kinds of errors: cores that do not exist, cores that the mapping file gives to a layer that they
    cannot run, and layers that no core can run.
    """
    check_ids(problems, problem.mapping, CoreNames.of(problem.accelerator))
    note_unused(problems, problem.mapping, problem.workload)
    layers = layers_of_entries(problem.workload, problem.mapping)
    for index, (entry, nodes) in enumerate(zip(problem.mapping.entries, layers, strict=True)):
        choices = [core_choice(node, entry, problem.accelerator) for node in nodes]
        known = [core_id for core_id in entry.core_allocation if core_id in problem.accelerator.place_of]
        if entry.core_allocation and not known:
            continue
        _check_named(problems, index, entry, nodes, choices)
        _check_choices(problems, index, entry, nodes, choices)


def check_ids(problems: Problems, mapping: Mapping, cores: CoreNames) -> None:
    """Report an error for each core id in the mapping file that belongs to no core, or to a core that computes
    nothing.
    """
    allowed = ", ".join(map(str, cores.usable))
    for index, entry in enumerate(mapping.entries):
        if entry.part_of_entry:
            continue  # its cores are those of an entry of the file
        for position, core_id in enumerate(entry.core_allocation):
            path = (index, "core_allocation", position)
            if core_id in cores.idle:
                message = f"core {core_id} is {cores.idle[core_id]}{COMPUTES_NOTHING}"
                problems.at(path, message, core_id, allowed)
            elif core_id not in cores.usable:
                _, nearest = min(((abs(known - core_id), str(known)) for known in cores.usable), default=(0, ""))
                problems.at(path, "no core has this id", core_id, allowed, nearest)


def check_array_names(problems: Problems, problem: SystemProblem) -> None:
    """Report an error for each array dimension and memory operand in the mapping file that no possible core has. The
    possible cores are those that can run the layers of the mapping entry.
    """
    layers = layers_of_entries(problem.workload, problem.mapping)
    for index, (entry, nodes) in enumerate(zip(problem.mapping.entries, layers, strict=True)):
        choices = [core_choice(node, entry, problem.accelerator) for node in nodes]
        ids = sorted({core_id for choice in choices for core_id in choice.core_ids}) or [
            core_id
            for core_id in entry.core_allocation or problem.accelerator.onchip_core_ids
            if core_id in problem.accelerator.place_of
        ]
        cores = [problem.accelerator.core_of[core_id] for core_id in ids]
        if not cores:
            continue
        dimensions = list(dict.fromkeys(name for core in cores for name, _ in core.operational_array.dimensions))
        held = sorted({operand for core in cores for memory in core.memories for operand in memory.operands})
        note_unused_sides(problems, index, entry, dimensions)
        for dimension, _ in entry.spatial_mapping:
            if dimension not in dimensions:
                path = (index, "spatial_mapping", dimension)
                problems.unknown_name(
                    path, "no core that can run these layers has this array dimension", dimension, dimensions
                )
        for operand, memory_operand in entry.memory_operand_links:
            if memory_operand not in held and any(node.layer and operand in node.layer.operands for node in nodes):
                message = "no core that can run these layers has a memory for this memory operand"
                problems.unknown_name((index, "memory_operand_links", operand), message, memory_operand, held)


def _check_named(
    problems: Problems,
    index: int,
    entry: MappingConstraints,
    nodes: Sequence[WorkloadNode],
    choices: Sequence[CoreChoice],
) -> None:
    """Report an error for each core that a mapping entry names but that can run none of the layers of this entry. If
    the entry fixes the cores of its layers, each named core must even be able to run all of these layers.

    For a general entry (the default entry, or an entry with wildcards in its name) that does not fix the cores, a
    notice replaces the error. Layers that no core can run are left out here; `_check_choices` reports them.
    """
    is_general = entry.name == DEFAULT or any(character in entry.name for character in "*?[")
    some = [(node, dict(choice.reasons)) for node, choice in zip(nodes, choices, strict=True) if choice.core_ids]
    for position, core_id in enumerate(entry.core_allocation):
        unable = [(node, reasons[core_id]) for node, reasons in some if core_id in reasons]
        path: KeyPath = (index, "core_allocation", *([] if entry.part_of_entry else [position]))
        whole = len(unable) == len(some)
        if not unable or not (whole or entry.core_allocation_is_fixed):
            continue
        reason = unable[0][1]
        if reason.endswith(COMPUTES_NOTHING):
            continue  # `check_ids` reports it
        message = f"core {core_id} cannot run {_named([node for node, _ in unable])}: it {reason}"
        if is_general and not entry.core_allocation_is_fixed:
            problems.notice(path, message)
        else:
            problems.at(path, message, core_id)


def _check_choices(
    problems: Problems,
    index: int,
    entry: MappingConstraints,
    nodes: Sequence[WorkloadNode],
    choices: Sequence[CoreChoice],
) -> None:
    """Report an error for layers that no core can run. Layers with the same operator type and the same reasons share
    one error, which has the reasons of all cores.
    """
    stranded: dict[tuple[str, tuple[tuple[int, str], ...]], list[WorkloadNode]] = {}
    for node, choice in zip(nodes, choices, strict=True):
        if not choice.core_ids:
            stranded.setdefault((node.operator_type, choice.reasons), []).append(node)
    path = (index, "core_allocation") if entry.core_allocation else (index,)
    for (_, reasons), found in stranded.items():
        cores: dict[str, list[int]] = {}
        for core_id, reason in reasons:
            cores.setdefault(reason, []).append(core_id)
        texts = [f"core {', '.join(map(str, ids))} {reason}" for reason, ids in cores.items()]
        problems.at(path, f"no core can run {_named(found)}: {'; '.join(texts)}")


def _named(nodes: Sequence[WorkloadNode]) -> str:
    """Text with operator types and names of layers, for example: Conv conv1, conv2 and 3 more."""
    types = "/".join(dict.fromkeys(node.operator_type for node in nodes))
    return f"{types} {some_of([node.name for node in nodes])}"


def dataflow_problems(problem: SystemProblem) -> list[Problem]:
    """Errors in dataflows: loop dimensions that are in no layer of the network and in no common operator. Without this
    check, such a loop would silently unroll nothing.

    A dimension of a common operator is not an error, even if no layer of this network has it.
    """
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
    """Content of a core file, for line numbers. It is empty if the accelerator was not read from a file of the user."""
    try:
        return load_yaml(path) if path is not None else YamlDocument(file, {})
    except InputError:
        return YamlDocument(str(path), {})


def _is_list(document: YamlDocument) -> bool:
    return isinstance(table(document.data).get("dataflows"), list)
