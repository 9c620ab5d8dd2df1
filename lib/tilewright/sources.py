"""Where descriptions come from: paths, dicts, lists, models in memory, artifacts, or the parsed objects themselves."""

from collections.abc import Mapping as Table
from typing import Any

from tilewright.artifacts.files import FilePath, existing_file
from tilewright.errors import InputError, Problem
from tilewright.hardware.core import Accelerator, single_core
from tilewright.hardware.source import AcceleratorSource, parse_accelerator
from tilewright.mapping.constraints import Mapping
from tilewright.mapping.source import MappingSource, names_unknown_to, parse_mapping
from tilewright.workload.graph import Workload
from tilewright.workload.source import WorkloadSource, parse_workload

__all__ = [
    "AcceleratorSource",
    "FilePath",
    "MappingSource",
    "WorkloadSource",
    "existing_file",
    "parse_accelerator",
    "parse_inputs",
    "parse_mapping",
    "parse_workload",
    "single_core",
]


def parse_inputs(
    hardware: AcceleratorSource,
    workload: WorkloadSource,
    mapping: MappingSource,
    model: str = "zigzag-3.9.1",
    dims: Table[str, int] | None = None,
) -> tuple[Accelerator, Workload, Mapping]:
    """All three descriptions of a single-core run, and what the mapping says checked against the core.

    Raises InputError with the problems of all of them.
    """
    parsed: list[Any] = []
    problems: list[Problem] = []
    for parse in (
        lambda: parse_accelerator(hardware),
        lambda: parse_workload(workload, model, dims),
        lambda: parse_mapping(mapping),
    ):
        try:
            parsed.append(parse())
        except InputError as error:
            problems += error.problems
            parsed.append(None)
    accelerator, network, constraints = parsed
    if accelerator is not None and network is not None and constraints is not None:
        problems += names_unknown_to(constraints, single_core(accelerator), network, mapping)
    if problems:
        raise InputError(problems)
    return accelerator, network, constraints
