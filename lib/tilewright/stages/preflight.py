"""What is structurally wrong with a network on an accelerator of several cores, under a mapping file and the options
that cut it: all of it at once, before anything is computed."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tilewright.errors import InputError, Problem, nearest_name
from tilewright.fusion.generation import build_cn_graph
from tilewright.fusion.graph import CnGraph
from tilewright.fusion.outer_loops import Tiling
from tilewright.fusion.stacks import LAYER_BY_LAYER
from tilewright.fusion.tiling_options import TilingOptions, network_tiling
from tilewright.mapping.yaml_checks import check_mapping_against_workload, document_behind
from tilewright.stages.preflight_cores import check_array_names, check_cores
from tilewright.stages.preflight_exchange import check_exchange
from tilewright.stages.preflight_tiles import check_hint_loops, check_tiles
from tilewright.stages.system_problem import SystemProblem
from tilewright.validation import Findings
from tilewright.workload.graph import Workload
from tilewright.workload.layer import OUTPUT


@dataclass(frozen=True)
class Preflight:
    """What was found."""

    problems: tuple[Problem, ...]
    """In the order of the lines of the mapping file, then those that have no line."""
    notices: tuple[str, ...]
    """What is legal but unusual."""
    tiling: Tiling | None
    """How the network is cut; None if it cannot be."""


def preflight(problem: SystemProblem, options: TilingOptions, operands_to_prefetch: Sequence[str] = ()) -> Preflight:
    """Everything that is wrong with a problem and with how it is to be cut.

    Wrong are unknown cores, cores that cannot run what they are named for, layers that no core can run, tiles larger
    than every layer they are for, unknown loop dimensions, stacks of unknown layers, fixed lists of cores that do not
    match the groups of their layers, cores between which data cannot move, and operands to prefetch that no layer has.
    """
    findings = Findings(document_behind(problem.mapping, problem.mapping_file))
    check_cores(findings, problem)
    check_array_names(findings, problem)
    if options.cn_define_mode is None:
        check_tiles(findings, problem)
    else:
        check_hint_loops(findings, problem.workload, options)
        _note_tilings_of_no_effect(findings, problem)
    if not any(node.layer for node in problem.workload.nodes):
        message = "the network has no layer that computes anything"
        findings.problems.append(Problem(message, path=problem.workload.name))
    before = len(findings.problems)
    tiling = _tiling(findings, problem, options)
    if tiling is not None and options.cn_define_mode is not None:
        _check_fixed_lists(findings, problem, options, tiling)
    is_cut = len(findings.problems) == before
    check_exchange(findings, problem)
    findings.problems += check_mapping_against_workload(problem.mapping, problem.workload, problem.mapping_file)
    findings.problems += prefetch_problems(problem.workload, operands_to_prefetch)
    found = dict.fromkeys(findings.problems)
    ordered = sorted(found, key=lambda one: (one.file != problem.mapping_file, one.line))
    return Preflight(tuple(ordered), tuple(dict.fromkeys(findings.notices)), tiling if is_cut else None)


def checked_cn_graph(problem: SystemProblem, options: TilingOptions) -> tuple[CnGraph, tuple[str, ...]]:
    """The CN graph of a problem, and notices. Raises InputError with everything that `preflight` finds, and with what
    keeps the graph from being built."""
    found = preflight(problem, options)
    problems = list(found.problems)
    if found.tiling is None:
        raise InputError(problems)
    try:
        graph = build_cn_graph(problem.workload, found.tiling)
    except InputError as error:
        raise InputError(dict.fromkeys([*problems, *error.problems])) from None
    if problems:
        raise InputError(problems)
    return graph, found.notices


def prefetch_problems(workload: Workload, names: Sequence[str]) -> list[Problem]:
    """What is wrong with `operands_to_prefetch`: names that are no input operand of any layer."""
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


def _note_tilings_of_no_effect(findings: Findings, problem: SystemProblem) -> None:
    keys = ("intra_core_tiling", "inter_core_tiling")
    named = [key for key in keys if any(getattr(entry, key) for entry in problem.mapping.entries)]
    if named:
        findings.notices.append(f"cn_define_mode is given: {', '.join(named)} of the mapping file play no part")


def _tiling(findings: Findings, problem: SystemProblem, options: TilingOptions) -> Tiling | None:
    """The tiling, of which all problems are recorded; where only its stacks are wrong, with other stacks; else None."""
    parts = (problem.workload, problem.mapping, problem.accelerator)
    try:
        return network_tiling(*parts, options)
    except InputError as error:
        _record(findings, problem, error)
    if options.layer_stacks is not None or options.stack_cutoffs:
        try:
            return network_tiling(*parts, replace(options, layer_stacks=None, stack_cutoffs=()))
        except InputError as error:
            _record(findings, problem, error)
    return None


def _record(findings: Findings, problem: SystemProblem, error: InputError) -> None:
    """Record the problems of an error; those of an entry of the mapping file get its place."""
    index_of = {entry.name: index for index, entry in enumerate(problem.mapping.entries)}
    for one in error.problems:
        if one.path in index_of:
            path = (index_of[one.path], "core_allocation")
            findings.problem(path, one.message, one.value or None, one.allowed, one.nearest)
        else:
            findings.problems.append(one)


def _check_fixed_lists(findings: Findings, problem: SystemProblem, options: TilingOptions, tiling: Tiling) -> None:
    """A list of fixed cores has one for each group of its layers.

    Of a network cut layer by layer, whatever the mapping file says, the list is a choice: there is only one group.
    """
    for node in problem.workload.nodes:
        if node.layer is None:
            continue
        entry = problem.mapping.constraints_for(node.layer)
        groups, listed = tiling.of_node[node.node_id].group_count, list(entry.core_allocation)
        if not entry.core_allocation_is_fixed or groups == len(listed):
            continue
        path = (problem.mapping.entries.index(entry), "core_allocation")
        if options.mode == LAYER_BY_LAYER and groups == 1:
            findings.notice(path, "the fixed cores are a choice for layers of one group")
        else:
            message = f"fixes {len(listed)} cores for the {groups} groups of {node.name}"
            findings.problem(path, message, str(listed), "one core for each group")
