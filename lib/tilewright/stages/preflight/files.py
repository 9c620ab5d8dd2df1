"""Preflight of files: where some of the descriptions of a run cannot be used, what is wrong with the others is told all
the same."""

from collections.abc import Sequence
from os import PathLike
from pathlib import Path

from tilewright.artifacts.envelope import is_artifact
from tilewright.artifacts.files import file_of
from tilewright.errors import InputError, Problem, Problems
from tilewright.fusion.tiling_options import TilingOptions
from tilewright.hardware.core_paths import core_ids_of
from tilewright.hardware.system import MultiCoreAccelerator
from tilewright.mapping.constraints import Mapping
from tilewright.mapping.source import parse_mapping
from tilewright.mapping.yaml_checks import check_mapping_against_workload, document_behind
from tilewright.mapping.yaml_reader import readable_mapping
from tilewright.stages.descriptions import Descriptions
from tilewright.stages.multi.problem import SystemProblem, read_parts, system_problem
from tilewright.stages.preflight.cores import CoreNames, check_ids
from tilewright.stages.preflight.cutting import check_cutting
from tilewright.stages.preflight.needs import prefetch_problems
from tilewright.stages.preflight.network import preflight
from tilewright.yamlfile import YamlDocument, document_of, load_yaml


def read_checked(
    descriptions: Descriptions, options: TilingOptions | None, operands_to_prefetch: Sequence[str] = ()
) -> SystemProblem:
    """The problem that descriptions make, of which the preflight has still to be done.

    Raises InputError with everything that is wrong with any of them, if one of them cannot be used: also with what the
    preflight finds in the others. `options` are None where they are wrong themselves.
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
    """What is wrong besides what is told already, as far as it does not follow from that."""
    mapping, is_whole = _mapping(read)
    system = read.accelerator if isinstance(read.accelerator, MultiCoreAccelerator) else None
    file = file_of(read.mapping)
    if mapping is not None and system is not None and read.network is not None:
        problem = SystemProblem(read.network, system, mapping, file, hardware_file=file_of(read.hardware))
        found = list(preflight(problem, options, prefetch, is_whole).problems)
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
        # An entry that was added is not in the file; nothing is said in it that could be wrong.
        if not _follows(one, told) and not (added and one.file == file and one.path == added)
    ]


def _mapping(read: Descriptions) -> tuple[Mapping | None, bool]:
    """The mapping, or what can be read of it; None if that is nothing."""
    if read.mapping is None:
        return None, False
    try:
        return parse_mapping(read.mapping), True
    except InputError:
        document = _document(read.mapping)
        return (None if document is None else readable_mapping(document)), False


def _core_names(read: Descriptions) -> CoreNames | None:
    """The ids that the file of an accelerator gives, also where the rest of it is wrong; None if it gives none."""
    document = _document(read.hardware)
    if document is None:
        return None
    ids = core_ids_of(document)
    if not ids.onchip or not ids.is_certain:
        return None
    return CoreNames(ids.onchip, {} if ids.offchip is None else {ids.offchip: "the off-chip core"})


def _document(source: object) -> YamlDocument | None:
    """What a person wrote as a description; None for artifacts, and for files that cannot be read."""
    try:
        if isinstance(source, str | PathLike):
            return None if is_artifact(Path(source)) else load_yaml(Path(source))
        return document_of(source)
    except InputError:
        return None


def _follows(found: Problem, told: Sequence[Problem]) -> bool:
    """Whether a problem is of the same place as one that is told, or of what that is a part of."""
    return bool(found.path) and any(
        one.file == found.file and (one.path == found.path or one.path.startswith((f"{found.path}.", f"{found.path}[")))
        for one in told
    )
