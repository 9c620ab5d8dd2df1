"""Sources of a mapping: path of a file, path of an artifact, a list of dicts, or a mapping that is parsed already."""

from collections.abc import Sequence
from dataclasses import replace
from os import PathLike
from typing import Any

from tilewright.base.artifacts.envelope import is_artifact, read_object
from tilewright.base.artifacts.files import FilePath, existing_file
from tilewright.base.errors import InputError, Problem
from tilewright.hardware.core import Core
from tilewright.mapping.constraints import Mapping
from tilewright.workload.graph import Workload

MappingSource = FilePath | Sequence[dict[str, Any]] | dict[str, Any] | Mapping


def parse_mapping(source: MappingSource, notices: list[str] | None = None, plans: bool = False) -> Mapping:
    """Mapping from a YAML file, a list of dicts or an artifact. Raises InputError with all problems.

    If `plans` is false, a network plan (`mapping.network_plans`) is a problem, too.
    """
    from tilewright.mapping.yaml_reader import read_mapping, refuse_plan

    if not isinstance(source, str | PathLike | Mapping):
        return read_mapping(source if isinstance(source, dict) else list(source), notices, plans)
    file = ""
    if isinstance(source, Mapping):
        mapping = source
    else:
        path = existing_file(source, "mapping")
        if not is_artifact(path):
            return read_mapping(path, notices, plans)
        mapping, file = read_object(Mapping, path, "tilewright/mapping"), str(path)
    if not plans:
        refuse_plan(mapping, file)
    return mapping


def given_mapping(source: MappingSource | None, notices: list[str], plans: bool = False) -> Mapping:
    """Mapping of a run. Raises InputError if there is no mapping, or if the mapping has problems. If `plans` is true,
    the mapping can have a network plan."""
    if source is None:
        raise InputError("no mapping is given")
    return parse_mapping(source, notices, plans)


def names_unknown_to(mapping: Mapping, core: Core, network: Workload, source: str) -> list[Problem]:
    """Problems of a mapping: names that the core or the network does not have.

    `source` is the file of the mapping, or '' if there is no file. For an artifact, problems have the name of the file
    but no line numbers.
    """
    from tilewright.mapping.file_checks import check_mapping_against_core, check_mapping_against_workload

    file = "" if is_artifact(source) else source
    problems = check_mapping_against_core(mapping, core, file) + check_mapping_against_workload(mapping, network, file)
    return [replace(problem, file=source) for problem in problems] if source and not file else problems
