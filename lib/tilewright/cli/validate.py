"""`tilewright validate`: check of files that reports all errors at once."""

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Annotated

from tilewright.base.artifacts.files import FilePath
from tilewright.base.errors import InputError, Problem, Problems
from tilewright.base.parameters import OneOf
from tilewright.base.unused import refuse_unused, to_tell, with_unused
from tilewright.cli.options import echo_json, echo_notices, repeated_options
from tilewright.cli.terminal import echo
from tilewright.cli.verb import Argument, Help, verb

KINDS = ("hardware", "workload", "mapping", "config", "space", "artifact")


_Checked = list[tuple[Path, str, list[Problem], list[str]]]
"""(file, kind, problems, notices) for each of several files."""


def _checked(files: Sequence[Path], kind: str | None, strict: bool) -> _Checked:
    return [(file, *validate_file(file, kind, strict)) for file in files]


def _show(checked: _Checked, strict: bool, as_json: bool) -> None:
    if as_json:
        echo_json(
            [
                with_unused({"file": str(file), "kind": told, "problems": list(map(str, found))}, notices)
                for file, told, found, notices in checked
            ]
        )
    else:
        echo_notices(to_tell([notice for *_, notices in checked for notice in notices], strict))
        echo_notices(_idle_units({told: file for file, told, found, _ in checked if not found}, checked))
        for file, told, found, _ in checked:
            if not found:
                echo(f"{file}: {told}, no problems")
    refused = Problems()
    refused.found += [problem for _, _, found, _ in checked for problem in found]
    refused.attempt(refuse_unused, repeated_options(), strict)
    refused.finish()


@verb(
    """Check hardware, workload, mapping and configuration FILES, design spaces, and artifacts.

    If FILES has one hardware file and one mapping file, the command also reports the units of the array that the
    mapping never uses.

    Example: tilewright validate config/hardware/*.yaml config/mapping/*.yaml
    """,
    run=_checked,
    show=_show,
)
def validate(
    files: Annotated[FilePath | Sequence[FilePath], Argument(is_required=True)],
    kind: Annotated[str | None, OneOf(KINDS), Help("Kind of the files; default: detected from their content.")] = None,
    *,
    strict: Annotated[bool, Help("Report input without effect as a problem.")] = False,
) -> tuple[Problem, ...]:
    """Problems of one or several files; () if the files have no problems.

    A file is hardware, a workload (YAML or ONNX), a mapping, a configuration, a design space or an artifact. `kind` is
    one of KINDS, or None to detect the kind from the content. With `strict`, input without effect is a problem too.
    """
    given = [files] if isinstance(files, str | PathLike) else files
    return tuple(problem for file in given for problem in validate_file(Path(file), kind, strict)[1])


def validate_file(file: Path, kind: str | None = None, strict: bool = False) -> tuple[str, list[Problem], list[str]]:
    """(kind of a file, its problems, notices on unusual content). The kind is '' if it cannot be detected.

    With `strict`, input without effect is a problem.
    """
    notices: list[str] = []
    told = kind or ""
    try:
        told = kind or kind_of(file)
        _validate(file, told, notices)
        refuse_unused(notices, strict)
    except InputError as error:
        return told, list(error.problems), notices
    return told, [], notices


def _idle_units(file_of: dict[str, Path], checked: Sequence[tuple[Path, str, list[Problem], list[str]]]) -> list[str]:
    """Notices on units of the array that the mapping file never uses. [] unless there is exactly one hardware file and
    one mapping file, both without problems, and the hardware has one core.
    """
    kinds = [told for _, told, *_ in checked]
    if not all(kinds.count(kind) == 1 and kind in file_of for kind in ("hardware", "mapping")):
        return []
    from tilewright.base.errors import Problems
    from tilewright.hardware.system import MultiCoreAccelerator
    from tilewright.mapping.file_checks import document_behind
    from tilewright.mapping.notices import note_idle_units
    from tilewright.pipeline.sources import parse_accelerator, parse_mapping, single_core

    accelerator, mapping = parse_accelerator(file_of["hardware"]), parse_mapping(file_of["mapping"])
    if isinstance(accelerator, MultiCoreAccelerator):
        return []
    problems = Problems(document_behind(mapping, str(file_of["mapping"])))
    note_idle_units(problems, mapping, single_core(accelerator))
    return problems.notices


def kind_of(file: Path) -> str:
    """Kind of a file, detected from its suffix and its content. Raises InputError if it cannot be detected."""
    from tilewright.base import file_kinds
    from tilewright.base.artifacts.envelope import is_artifact
    from tilewright.base.yamlfile import load_yaml
    from tilewright.pipeline.sources import existing_file

    path = existing_file(file, "given")
    if is_artifact(path):
        return "artifact"
    if path.suffix == ".onnx":
        return "workload"
    kind = file_kinds.kind_of(load_yaml(path).data)
    if kind in KINDS:
        return kind
    raise InputError(
        [Problem("is neither hardware, workload, mapping, configuration nor design space; use --kind", str(path))]
    )


def _validate(file: Path, kind: str, notices: list[str]) -> None:
    if kind == "hardware":
        from tilewright.base.yamlfile import load_yaml
        from tilewright.hardware.yaml_reader import check_hardware_file

        check_hardware_file(load_yaml(file, notices), notices)
    elif kind == "mapping":
        from tilewright.mapping.yaml_reader import read_mapping

        read_mapping(file, notices)
    elif kind == "workload":
        _validate_workload(file, notices)
    elif kind == "space":
        from tilewright.designs.space_reader import read_space

        notices.append(f"{file}: {read_space(file, notices).size_text()}")
    elif kind == "artifact":
        from tilewright.base.artifacts.envelope import read_artifact

        read_artifact(file)
    else:
        from tilewright.cli.config import read_config

        notices += read_config(file).unused


def _validate_workload(file: Path, notices: list[str]) -> None:
    from tilewright.workload.source import LAYERS, kind_of_source, parse_workload, read_layers

    if kind_of_source(file) == LAYERS:
        read_layers(file, notices)
    else:
        parse_workload(file, notices=notices)
