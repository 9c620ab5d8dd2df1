"""Preflight of a network on several cores and of its mapping file: all errors are reported before the computation.

The module also checks whether each memory of a core can hold at least one element of each operand that it stores.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from tilewright.base.artifacts.envelope import is_artifact
from tilewright.base.artifacts.files import file_of
from tilewright.base.errors import InputError, Label, Problem, Problems
from tilewright.base.yamlfile import YamlDocument, document_of, load_yaml
from tilewright.hardware.core_paths import core_ids_of, core_paths
from tilewright.hardware.system import OFFCHIP, MultiCoreAccelerator
from tilewright.mapping.constraints import Mapping
from tilewright.mapping.file_checks import check_mapping_against_workload, document_behind
from tilewright.mapping.notices import array_width_notices, element_fit_problems, too_small_memories
from tilewright.mapping.plan_forms import applied_plan
from tilewright.mapping.runnable import core_choice
from tilewright.mapping.source import parse_mapping
from tilewright.mapping.yaml_reader import readable_mapping
from tilewright.multicore.nodes.generation import build_cn_graph
from tilewright.multicore.nodes.graph import CnGraph
from tilewright.multicore.nodes.reduction_cuts import cut_reductions
from tilewright.multicore.nodes.tiling import Tiling
from tilewright.multicore.nodes.tiling_options import TilingOptions
from tilewright.pipeline.stages.descriptions import Descriptions
from tilewright.pipeline.stages.multi.items import SystemProblem, has_lines, read_parts, system_problem
from tilewright.pipeline.stages.preflight.array_use import check_exclusive_dataflows
from tilewright.pipeline.stages.preflight.cores import (
    CoreNames,
    check_array_names,
    check_cores,
    check_ids,
    dataflow_problems,
)
from tilewright.pipeline.stages.preflight.cutting import check_cutting, check_exchange
from tilewright.pipeline.stages.preflight.needs import offchip_problems, prefetch_problems
from tilewright.workload.graph import Workload
from tilewright.workload.layer import Layer

BuildGraph = Callable[[Workload, Tiling], CnGraph]


def check_memories(problems: Problems, problem: SystemProblem) -> None:
    """Report each memory that cannot hold one element of an operand, with the affected layers and the line of the core
    file. This is an error if every allowed core of a layer has such a memory; otherwise, it is a notice.

    Add notices on in-memory arrays that are built for fewer bits than the inputs of a layer have.
    """
    files = core_paths(Path(problem.hardware_file)) if has_lines(problem.hardware_file) else {}
    stranded, others = _layers_of_cores(problem)
    for name, core in problem.accelerator.distinct_cores.items():
        told = (core, problem.mapping, files.get(name))
        problems.found += element_fit_problems(stranded.get(name, ()), *told)
        problems.notices += map(str, element_fit_problems(others.get(name, ()), *told))
        problems.notices += array_width_notices((*stranded.get(name, ()), *others.get(name, ())), *told)


def _layers_of_cores(problem: SystemProblem) -> tuple[dict[str, list[Layer]], dict[str, list[Layer]]]:
    """Pair of tables (stranded layers, other layers). A layer is stranded if every core that is allowed to run it has a
    memory that is too small for one element of an operand. The keys of both tables are core files. A layer is listed
    under each core file whose cores are allowed to run it.
    """
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


@dataclass(frozen=True)
class Preflight:
    """Errors and notices that the preflight found, and the tiling of the network."""

    problems: tuple[Problem, ...]
    """Errors found. Errors with a line of the mapping file come first, in the order of lines."""
    notices: tuple[str, ...]
    """Notices on unusual input."""
    tiling: Tiling | None
    """Tiling of the network; None if the options or the stacks have errors, or if the tiling cannot be computed."""


def preflight(
    problem: SystemProblem,
    options: TilingOptions | None,
    operands_to_prefetch: Sequence[str] = (),
    mapping_is_whole: bool = True,
) -> Preflight:
    """Errors in network, cores, mapping file and tiling that can be found before the computation, with notices and the
    tiling.

    * Cores: unknown cores; cores that the mapping file gives to layers that they cannot run; layers that no core can
      run; a missing off-chip core; memories that are too small for one element; loop dimensions of a dataflow that
      no layer has; pairs of layers that exchange data although their cores have no path between them.
    * Mapping file: unknown loop dimensions, array dimensions and memory operands; spatial mappings that no core
      supports; `memory_reach`, which is only for one core; lists of fixed cores that do not match the groups of a
      layer.
    * Tiling: numbers of tiles that are larger than the dimension in every layer; stacks of unknown layers.
    * Network: no layer that computes anything; operands to prefetch that no layer has.

    `options` is None if the options have errors; the checks that need options are then left out. If a part of the
    mapping could not be read (`mapping_is_whole` is False), data exchange between cores is not checked.
    """
    problems = Problems(document_behind(problem.mapping, problem.mapping_file))
    check_cores(problems, problem)
    check_array_names(problems, problem)
    check_exclusive_dataflows(problems, problem)
    _check_reach(problems, problem)
    tiling = check_cutting(problems, problem.workload, problem.mapping, problem.accelerator, options)
    if not any(node.layer for node in problem.workload.nodes):
        message = "the network has no layer that computes anything"
        problems.found.append(Problem(message, path=Label(problem.workload.name)))
    if mapping_is_whole:
        check_exchange(problems, problem)
    problems.found += check_mapping_against_workload(problem.mapping, problem.workload, problem.mapping_file)
    problems.found += [*offchip_problems(problem), *dataflow_problems(problem)]
    check_memories(problems, problem)
    problems.found += prefetch_problems(problem.workload, operands_to_prefetch)
    found = dict.fromkeys(problems.found)
    ordered = sorted(found, key=lambda one: (one.file != problem.mapping_file, one.line))
    return Preflight(tuple(ordered), tuple(dict.fromkeys(problems.notices)), tiling)


def _check_reach(problems: Problems, problem: SystemProblem) -> None:
    """Report an error for each `memory_reach` in the mapping file, because on several cores the schedule decides which
    memories keep data.
    """
    for index, entry in enumerate(problem.mapping.entries):
        if entry.memory_reach is not None:
            message = "is only for runs on one core; on several cores, the schedule decides where data are kept"
            problems.at((index, "memory_reach"), message)


def checked_cn_graph(
    problem: SystemProblem,
    options: TilingOptions,
    tell: Callable[[Sequence[str]], None] | None = None,
    build: BuildGraph = build_cn_graph,
) -> tuple[CnGraph, tuple[str, ...]]:
    """Pair (CN graph of a problem, notices).

    Raises InputError with all errors from `preflight` and from building the graph. If `preflight` finds errors, the
    function `tell` gets the notices before the error is raised, because notices can explain errors. `build` is
    `build_cn_graph`, or a function that reuses its earlier results.
    """
    graph, notices = check_cn_graph(problem, options, tell, build)
    assert graph is not None
    return graph, notices


def check_cn_graph(
    problem: SystemProblem,
    options: TilingOptions | None,
    tell: Callable[[Sequence[str]], None] | None = None,
    build: BuildGraph = build_cn_graph,
) -> tuple[CnGraph | None, tuple[str, ...]]:
    """Pair (CN graph, notices). Raises InputError with all errors.

    `options` is None if the options have errors. The rest of the input is still checked, but the graph is None.
    """
    found = preflight(problem, options)
    if found.problems and tell is not None:
        tell(found.notices)
    told = Problems()
    told.found += found.problems
    graph = None if found.tiling is None else told.attempt(build, problem.workload, found.tiling)
    told.finish()
    return graph, found.notices


def read_checked(
    descriptions: Descriptions, options: TilingOptions | None, operands_to_prefetch: Sequence[str] = ()
) -> SystemProblem:
    """Network with cores and mapping, read from descriptions. If a description has errors, the preflight still checks
    the parts without errors.

    Raises InputError with the errors of all descriptions and those of the preflight. `options` is None if the options
    have errors.
    """
    read = read_parts(descriptions)
    try:
        return system_problem(read)
    except InputError as error:
        told = [*error.problems, *_problems_of_the_rest(read, options, operands_to_prefetch, error.problems)]
    files = {one.file: place for place, one in reversed(list(enumerate(told)))}
    raise InputError(dict.fromkeys(sorted(told, key=lambda one: (files[one.file], one.line))))


def _problems_of_the_rest(
    read: Descriptions, options: TilingOptions | None, prefetch: Sequence[str], told: Sequence[Problem]
) -> list[Problem]:
    """Errors that the preflight finds in the parts of the input that could be read. `told` has the known errors of the
    other parts. New errors that are only consequences of known errors are left out.
    """
    mapping, is_whole = _mapping(read)
    system = read.accelerator if isinstance(read.accelerator, MultiCoreAccelerator) else None
    file = file_of(read.mapping)
    if mapping is not None and system is not None and read.network is not None:
        applied = Problems(document_behind(mapping, file))
        mapping = applied_plan(mapping, read.network, system, applied)
        cuts = Problems(document_behind(mapping, file))
        cuts.found += applied.found
        network, mapping = cut_reductions(read.network, mapping, system, cuts)
        problem = SystemProblem(network, system, mapping, file, hardware_file=file_of(read.hardware))
        found = [*cuts.found, *preflight(problem, options, prefetch, is_whole).problems]
    else:
        problems = Problems(YamlDocument("", None) if mapping is None else document_behind(mapping, file))
        names = CoreNames.of(system) if system is not None else _core_names(read)
        if mapping is not None and names is not None:
            check_ids(problems, mapping, names)
        if read.network is not None:
            check_cutting(problems, read.network, mapping, system, options)
            problems.found += prefetch_problems(read.network, prefetch)
            if mapping is not None:
                problems.found += check_mapping_against_workload(mapping, read.network, file)
        found = problems.found
    added = "" if mapping is None or is_whole else f"[{len(mapping.entries) - 1}]"
    return [
        one
        for one in found
        # The last entry was added and is not in the file, so errors in this entry are left out.
        if not _follows(one, told) and not (added and one.file == file and one.path == added)
    ]


def _mapping(read: Descriptions) -> tuple[Mapping | None, bool]:
    """Pair (mapping, True if the complete mapping could be read). If the mapping file has errors, the mapping has only
    the content without errors. It is None if no mapping is given, or if its file cannot be read.
    """
    if read.mapping is None:
        return None, False
    try:
        return parse_mapping(read.mapping, plans=True), True
    except InputError:
        document = _document(read.mapping)
        return (None if document is None else readable_mapping(document)), False


def _core_names(read: Descriptions) -> CoreNames | None:
    """Ids of the cores in the file of an accelerator. Other parts of the file may have errors. None if the ids are not
    known.
    """
    document = _document(read.hardware)
    if document is None:
        return None
    ids = core_ids_of(document)
    if not ids.onchip or not ids.is_certain:
        return None
    return CoreNames(ids.onchip, {} if ids.offchip is None else {ids.offchip: "the off-chip core"})


def _document(source: object) -> YamlDocument | None:
    """Content of an input of the user; None for an artifact, and for a file that cannot be read."""
    try:
        if isinstance(source, str | PathLike):
            return None if is_artifact(Path(source)) else load_yaml(Path(source))
        return document_of(source)
    except InputError:
        return None


def _follows(found: Problem, told: Sequence[Problem]) -> bool:
    """True if `told` has a problem in the file of `found`, at the path of `found` or at a path below it. False if
    `found` has no path.
    """
    return bool(found.path) and any(
        one.file == found.file and (one.path == found.path or one.path.startswith((f"{found.path}.", f"{found.path}[")))
        for one in told
    )
