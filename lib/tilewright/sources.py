"""Where descriptions come from: paths, dicts, lists, models in memory, artifacts, or the parsed objects themselves."""

from collections.abc import Mapping as Table
from collections.abc import Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union

from tilewright.artifacts.envelope import is_artifact
from tilewright.artifacts.objects import read_object
from tilewright.errors import InputError, Problem, nearest_name
from tilewright.hardware.core import Accelerator, Core
from tilewright.mapping.constraints import Mapping
from tilewright.profile import profile_by_name
from tilewright.workload.graph import Workload

if TYPE_CHECKING:
    import onnx

FilePath = str | PathLike[str]
AcceleratorSource = FilePath | dict[str, Any] | Accelerator
WorkloadSource = Union[FilePath, Sequence[dict[str, Any]], "onnx.ModelProto", Workload]
MappingSource = FilePath | Sequence[dict[str, Any]] | Mapping
YAML_SUFFIXES = (".yaml", ".yml")


def parse_accelerator(source: AcceleratorSource) -> Accelerator:
    """The accelerator of a hardware file, a dict or an artifact. Raises InputError with all problems."""
    if isinstance(source, Accelerator):
        return source
    if isinstance(source, dict):
        from tilewright.hardware.yaml_reader import read_accelerator

        return read_accelerator(source)
    path = existing_file(source, "hardware")
    if is_artifact(path):
        return read_object(Accelerator, path, "tilewright/accelerator")
    from tilewright.hardware.yaml_reader import read_accelerator

    return read_accelerator(path)


def parse_workload(
    source: WorkloadSource, model: str = "zigzag-3.9.1", dims: Table[str, int] | None = None
) -> Workload:
    """The workload of a YAML or ONNX file, a list of dicts, an ONNX model or an artifact.

    `model` is the profile (it decides how ONNX axes are read); `dims` are sizes of dynamic ONNX dimensions.
    Raises InputError with all problems.
    """
    if isinstance(source, Workload):
        return source
    if isinstance(source, str | PathLike):
        path = existing_file(source, "workload")
        if is_artifact(path):
            return read_object(Workload, path, "tilewright/workload")
        if path.suffix in YAML_SUFFIXES:
            return _workload_of_layers(path)
        return _workload_of_network(path, model, dims)
    if isinstance(source, list | tuple):
        return _workload_of_layers(list(source))
    return _workload_of_network(source, model, dims)


def parse_mapping(source: MappingSource) -> Mapping:
    """The mapping of a YAML file, a list of dicts or an artifact. Raises InputError with all problems."""
    if isinstance(source, Mapping):
        return source
    from tilewright.mapping.yaml_reader import read_mapping

    if not isinstance(source, str | PathLike):
        return read_mapping(list(source))
    path = existing_file(source, "mapping")
    return read_object(Mapping, path, "tilewright/mapping") if is_artifact(path) else read_mapping(path)


def single_core(accelerator: Accelerator) -> Core:
    """The only core of an accelerator. Raises InputError if there are several."""
    if len(accelerator.cores) != 1:
        raise InputError(f"{accelerator.name} has {len(accelerator.cores)} cores, this needs exactly one")
    return accelerator.cores[0]


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
        problems += _cross_check(constraints, single_core(accelerator), network, mapping)
    if problems:
        raise InputError(problems)
    return accelerator, network, constraints


def _cross_check(mapping: Mapping, core: Core, network: Workload, source: MappingSource) -> list[Problem]:
    """Names in a mapping that the core or the network does not have. An artifact has no lines, only a name."""
    from tilewright.mapping.yaml_checks import check_mapping_against_core, check_mapping_against_workload

    named = isinstance(source, str | PathLike)
    file = Path(source) if isinstance(source, str | PathLike) and not is_artifact(Path(source)) else ""
    problems = check_mapping_against_core(mapping, core, file) + check_mapping_against_workload(mapping, network, file)
    return [replace(problem, file=str(source)) for problem in problems] if named and not file else problems


def existing_file(source: FilePath, what: str) -> Path:
    """`source` as a path. Raises InputError, with the nearest name beside it, if there is no such file."""
    path = Path(source)
    if path.is_file():
        return path
    if path.is_dir():
        raise InputError([Problem(f"the {what} file is a folder", str(path))])
    siblings = sorted(item.name for item in path.parent.iterdir()) if path.parent.is_dir() else []
    raise InputError([Problem(f"no such {what} file", str(path), nearest=nearest_name(path.name, siblings))])


def _workload_of_layers(source: Path | list[dict[str, Any]]) -> Workload:
    from tilewright.workload.yaml_reader import read_workload_yaml

    return read_workload_yaml(source)


def _workload_of_network(source: Any, model: str, dims: Table[str, int] | None) -> Workload:
    from tilewright.workload.onnx import read_onnx

    return read_onnx(source, profile_by_name(model), dims=dims).workload
