"""`tilewright validate`: everything that is wrong with files, at once."""

from pathlib import Path

import click

from tilewright.cli.options import FILE, common_options, echo_json, echo_notices
from tilewright.errors import InputError, Problem

KINDS = ("hardware", "workload", "mapping", "config", "artifact")


@click.command()
@click.argument("files", type=FILE, nargs=-1, required=True)
@click.option("--kind", type=click.Choice(KINDS), help="What the files are; default: told from their content.")
@common_options
def command(files: tuple[Path, ...], kind: str | None, verbose: bool, as_json: bool) -> None:
    """Check hardware, workload, mapping and configuration FILES, and artifacts.

    Example: tilewright validate config/hardware/*.yaml config/mapping/*.yaml
    """
    problems: list[Problem] = []
    notices: list[str] = []
    rows = []
    for file in files:
        found: list[Problem] = []
        told = kind or ""
        try:
            told = kind or kind_of(file)
            _validate(file, told, notices)
        except InputError as error:
            found = list(error.problems)
        problems += found
        rows.append({"file": str(file), "kind": told, "problems": [str(problem) for problem in found]})
    if as_json:
        echo_json(rows)
    else:
        echo_notices(notices)
        for row in rows:
            if not row["problems"]:
                click.echo(f"{row['file']}: {row['kind']}, no problems")
    if problems:
        raise InputError(problems)


def kind_of(file: Path) -> str:
    """Which kind of file this is, told from its suffix and content. Raises InputError if it is none."""
    from tilewright import file_kinds
    from tilewright.artifacts.envelope import is_artifact
    from tilewright.sources import existing_file
    from tilewright.yamlfile import load_yaml

    path = existing_file(file, "given")
    if is_artifact(path):
        return "artifact"
    if path.suffix == ".onnx":
        return "workload"
    kind = file_kinds.kind_of(load_yaml(path).data)
    if kind in KINDS:
        return kind
    raise InputError([Problem("neither hardware, workload, mapping nor configuration; use --kind", str(path))])


def _validate(file: Path, kind: str, notices: list[str]) -> None:
    if kind == "hardware":
        from tilewright.hardware.yaml_reader import check_hardware_file
        from tilewright.yamlfile import load_yaml

        check_hardware_file(load_yaml(file, notices), notices)
    elif kind == "mapping":
        from tilewright.mapping.yaml_reader import read_mapping

        read_mapping(file, notices)
    elif kind == "workload":
        _validate_workload(file, notices)
    elif kind == "artifact":
        from tilewright.artifacts.envelope import read_artifact

        read_artifact(file)
    else:
        from tilewright.cli.config import read_config

        read_config(file)


def _validate_workload(file: Path, notices: list[str]) -> None:
    from tilewright.workload.source import LAYERS, kind_of_source, parse_workload, read_layers

    if kind_of_source(file) == LAYERS:
        read_layers(file, notices)
    else:
        parse_workload(file)
