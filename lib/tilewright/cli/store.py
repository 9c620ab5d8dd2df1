"""`tilewright store`: looking after stored results and artifacts."""

import shutil
from pathlib import Path

import click

from tilewright.artifacts.envelope import read_artifact
from tilewright.cli.options import DEFAULT_STORE, FILE, common_options, echo_json
from tilewright.errors import ArtifactError, Problem

ARTIFACT_PATTERNS = (
    "hardware/*/accelerator.json",
    "workload/*/*/*.json",
    "mapping/*/mapping.json",
    "single/*/layers.jsonl",
    "single/*/summary.json",
    "single/*/checks.json",
)
"""Where the pipeline puts artifacts; other files in the folder are none of our business."""


@click.group()
def command() -> None:
    """Look after the store of earlier results and after artifacts.

    Example: tilewright store verify results --remove-damaged
    """


@command.command()
@click.argument("folder", type=FILE, default=DEFAULT_STORE)
@common_options
def gc(folder: Path, verbose: bool, as_json: bool) -> None:
    """Delete the store in FOLDER. Results do not change, the next run only takes longer.

    Example: tilewright store gc results/.store
    """
    files = [path for path in folder.rglob("*") if path.is_file()] if folder.is_dir() else []
    size = sum(path.stat().st_size for path in files)
    if folder.is_dir():
        shutil.rmtree(folder)
    if as_json:
        echo_json({"files": len(files), "bytes": size})
    else:
        click.echo(f"{folder}: deleted {len(files)} results, {size / 2**20:.1f} MiB")


@command.command()
@click.argument("folder", type=FILE, default=Path("results"))
@click.option("--remove-damaged", is_flag=True, help="Delete damaged artifacts, so that the next run rebuilds them.")
@common_options
def verify(folder: Path, remove_damaged: bool, verbose: bool, as_json: bool) -> None:
    """Verify every artifact that the pipeline keeps in FOLDER.

    Example: tilewright store verify results
    """
    damaged: list[Path] = []
    problems: list[Problem] = []
    paths = sorted(path for pattern in ARTIFACT_PATTERNS for path in folder.glob(pattern))
    for path in paths:
        try:
            read_artifact(path)
        except ArtifactError as error:
            damaged.append(path)
            problems += error.problems
    if remove_damaged:
        for path in damaged:
            path.unlink()
            click.echo(f"removed {path}: it is damaged or of another version, and will be rebuilt", err=True)
    if as_json:
        echo_json({"artifacts": len(paths), "damaged": [str(path) for path in damaged]})
    elif verbose:
        click.echo(f"{len(paths)} artifacts, {len(damaged)} damaged")
    if problems and not remove_damaged:
        raise ArtifactError(problems)
