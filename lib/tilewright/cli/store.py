"""`tilewright store`: looking after stored results and artifacts."""

import re
import zipfile
import zlib
from pathlib import Path

import click

from tilewright.artifacts.canonical import writing
from tilewright.artifacts.digests import bytes_digest
from tilewright.artifacts.envelope import REMEDY, read_artifact
from tilewright.cli.options import DEFAULT_STORE, FILE, common_options, echo_json
from tilewright.errors import ArtifactError, InputError, Problem
from tilewright.steps import REPORT, STEPS

ARTIFACT_PATTERNS = tuple(
    dict.fromkeys(
        re.sub(r"{\w+}", "*", path)
        for step in STEPS.values()
        for path in step.paths
        if path.endswith((".json", ".jsonl", ".npz")) and f"/{REPORT}/" not in path
    )
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
    files = _store_files(folder)
    size = sum(path.stat().st_size for path in files)
    try:
        for path in files:
            path.unlink()
        for place in (*folder.glob("*"), folder):
            place.rmdir()
    except OSError as error:
        raise InputError([Problem(f"cannot be deleted: {error.strerror}", str(error.filename))]) from error
    if as_json:
        echo_json({"files": len(files), "bytes": size})
    else:
        click.echo(f"{folder}: deleted {len(files)} results, {size / 2**20:.1f} MiB")


def _store_files(folder: Path) -> list[Path]:
    """Entries of a store and leftovers of interrupted writes. Raises InputError if anything else is there."""
    from tilewright.search.store import Store

    _check_folder(folder)
    entries = Store(folder).entries()
    known = {path for path in entries if not path.is_symlink() and path.stem.startswith(path.parent.name)}
    known |= {path for path in folder.glob("??/.*.tmp") if path.is_file() and not path.is_symlink()}
    others = [path for path in folder.rglob("*") if path not in known and not _is_shelf(path, folder)]
    if others:
        some = ", ".join(str(path) for path in sorted(others)[:3])
        raise InputError([Problem(f"is not a store of results, it holds other files: {some}", str(folder))])
    return sorted(known)


def _is_shelf(path: Path, folder: Path) -> bool:
    return path.parent == folder and len(path.name) == 2 and path.is_dir() and not path.is_symlink()


def _check_folder(folder: Path) -> None:
    if not folder.is_dir():
        raise InputError([Problem("is not a folder" if folder.exists() else "no such folder", str(folder))])


def _read(path: Path) -> None:
    """Read an artifact of any kind. Raises ArtifactError if it is damaged."""
    if path.suffix != ".npz":
        read_artifact(path)
        return
    try:
        with zipfile.ZipFile(path) as archive:
            is_damaged = archive.testzip() is not None
    except (zipfile.BadZipFile, zlib.error, OSError, EOFError, NotImplementedError, RuntimeError):
        is_damaged = True
    if is_damaged or _digest_beside(path) not in ("", bytes_digest(path)):
        raise ArtifactError([Problem(f"artifact is damaged; {REMEDY}", str(path))])


def _digest_beside(path: Path) -> str:
    """The digest that a file of the same name with a description has of these arrays; '' if there is none."""
    try:
        payload = read_artifact(path.with_suffix(".json")).payload
    except ArtifactError:
        return ""
    return str(payload.get("columns", "")) if isinstance(payload, dict) else ""


@command.command()
@click.argument("folder", type=FILE, default=Path("results"))
@click.option("--remove-damaged", is_flag=True, help="Delete damaged artifacts, so that the next run rebuilds them.")
@common_options
def verify(folder: Path, remove_damaged: bool, verbose: bool, as_json: bool) -> None:
    """Verify every artifact that the pipeline keeps in FOLDER.

    Example: tilewright store verify results
    """
    _check_folder(folder)
    damaged: list[Path] = []
    problems: list[Problem] = []
    paths = sorted(path for pattern in ARTIFACT_PATTERNS for path in folder.glob(pattern))
    for path in paths:
        try:
            _read(path)
        except ArtifactError as error:
            damaged.append(path)
            problems += error.problems
    if remove_damaged:
        for path in damaged:
            with writing(path):
                path.unlink()
            click.echo(f"removed {path}: it is damaged or of another version, and will be rebuilt", err=True)
    if as_json:
        echo_json({"artifacts": len(paths), "damaged": [str(path) for path in damaged]})
    elif verbose:
        click.echo(f"{len(paths)} artifacts, {len(damaged)} damaged")
    if problems and not remove_damaged:
        raise ArtifactError(problems)
