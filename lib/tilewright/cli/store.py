"""`tilewright store`: maintenance of stored results and artifacts."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from tilewright.base.artifacts.files import FilePath, writing
from tilewright.base.artifacts.folder_lock import take, take_away
from tilewright.base.artifacts.seals import REMEDY
from tilewright.base.artifacts.verification import verify_folder
from tilewright.base.errors import ArtifactError, InputError, Problem
from tilewright.base.json_values import JsonObject
from tilewright.base.noted_files import damaged_caches
from tilewright.cli.options import CACHES, DEFAULT_STORE, FILE, common_options, echo_json
from tilewright.cli.terminal import echo

DEFAULT_RESULTS = Path("results")


@click.group()
def command() -> None:
    """Maintain stored results of earlier searches, and check artifacts.

    Example: tilewright store verify results --remove-damaged
    """


@command.command()
@click.argument("folder", type=FILE, default=DEFAULT_STORE)
@common_options
def gc(folder: Path, verbose: bool, as_json: bool) -> None:
    """Delete the stored results in FOLDER. Later runs give the same results, but the next run takes longer.

    Example: tilewright store gc results/.store
    """
    found = _collect(folder)
    if as_json:
        echo_json(found)
    else:
        echo(f"{folder}: deleted {found['files']} results, {found['bytes'] / 2**20:.1f} MiB")


def _collect(folder: Path) -> dict[str, Any]:
    """Delete a store. Returns the number of its files and their size in bytes. Raises InputError for a folder that is
    not a store.
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
    return {"files": len(files), "bytes": size}


def _store_files(folder: Path) -> list[Path]:
    """Paths of the entries of a store and of temporary files of interrupted writes. Raises InputError if the folder has
    other files.
    """
    from tilewright.search.store import Store

    _check_folder(folder)
    entries = Store(folder).entries()
    known = {path for path in entries if not path.is_symlink() and path.stem.startswith(path.parent.name)}
    known |= {path for path in folder.glob("??/.*.tmp") if path.is_file() and not path.is_symlink()}
    others = [path for path in folder.rglob("*") if path not in known and not _is_shelf(path, folder)]
    if others:
        some = ", ".join(str(path) for path in sorted(others)[:3])
        raise InputError([Problem(f"is not a store of results; it has other files: {some}", str(folder))])
    return sorted(known)


def _is_shelf(path: Path, folder: Path) -> bool:
    return path.parent == folder and len(path.name) == 2 and path.is_dir() and not path.is_symlink()


def _check_folder(folder: Path) -> None:
    if not folder.is_dir():
        raise InputError([Problem("is not a folder" if folder.exists() else "no such folder", str(folder))])


@command.command()
@click.argument("folder", type=FILE, default=DEFAULT_RESULTS)
@click.option("--remove-damaged", is_flag=True, help="Delete damaged artifacts; the next run makes them again.")
@common_options
def verify(folder: Path, remove_damaged: bool, verbose: bool, as_json: bool) -> None:
    """Verify every file in FOLDER that has a digest: artifacts, tables and stored results. Caches of a checkout of
    tilewright are verified too.

    Figures, pages and CSV files have no digest, because no verb reads them.

    Example: tilewright store verify results
    """
    found, problems = _verified(folder)
    for path in _removed(found["damaged"]) if remove_damaged else ():
        echo(f"removed {path}: it is damaged or of another version, and will be rebuilt", err=True)
    if as_json:
        echo_json(found)
    elif verbose:
        echo(f"{found['artifacts']} artifacts, {len(found['damaged'])} damaged")
    if problems and not remove_damaged:
        raise ArtifactError(problems)


def _verified(folder: Path) -> tuple[dict[str, Any], list[Problem]]:
    """Pair (table with the number of `artifacts` and the list of `damaged` files, problems of the damaged files)."""
    _check_folder(folder)
    verified = verify_folder(folder)
    caches = damaged_caches(CACHES)
    damaged = [*map(str, verified.problems), *map(str, caches)]
    problems = [*verified.problems.values(), *(Problem(f"cache is damaged; {REMEDY}", str(path)) for path in caches)]
    return {"artifacts": len(verified.files), "damaged": damaged}, problems


@command.command()
@click.argument("folder", type=FILE, default=DEFAULT_RESULTS)
@click.option(
    "--process", type=int, help="Id of the process that holds the lock; default: the process that started this command."
)
@common_options
def lock(folder: Path, process: int | None, verbose: bool, as_json: bool) -> None:
    """Lock FOLDER for a process of this machine, as `make run` does, and print the token of the lock.

    Processes with the token in the environment variable TILEWRIGHT_LOCK are allowed to write there. The lock ends when
    the process ends.

    Example: tilewright store lock results --process $$
    """
    token = take(folder, os.getppid() if process is None else process, "make run")
    if as_json:
        echo_json({"token": token})
    else:
        echo(token)


@command.command()
@click.argument("folder", type=FILE, default=DEFAULT_RESULTS)
@common_options
def unlock(folder: Path, verbose: bool, as_json: bool) -> None:
    """Remove the lock of FOLDER. Use this command if a run on another machine holds the lock although it has ended:
    this machine cannot detect the end of such a run.

    Example: tilewright store unlock results
    """
    holder = take_away(folder)
    if as_json:
        echo_json({"holder": None if holder is None else str(holder)})
    else:
        echo(f"{folder}: was not locked" if holder is None else f"{folder}: removed the lock of {holder}")


def _removed(files: Sequence[str]) -> Iterator[str]:
    """Delete the files. Yields the path of each file after its deletion."""
    for file in files:
        with writing(Path(file)):
            Path(file).unlink()
        yield file


def store(
    action: str, folder: FilePath | None = None, *, remove_damaged: bool = False, process: int | None = None
) -> JsonObject:
    """Maintain stored results and artifacts in a folder, as the verb does. The verb has the same default folders.

    There are four actions:

    * "gc" deletes a store. The result has the counts of deleted `files` and `bytes`.
    * "verify" reads every artifact. The result has the number of `artifacts` and the list of `damaged` files.
    * "lock" locks the folder for a `process` (default: this process). The result has the `token` of the lock.
    * "unlock" removes the lock of a run that has ended. The result has the former `holder`.

    Raises InputError for another action or a wrong folder, and ArtifactError for damaged artifacts, except if
    `remove_damaged` deletes them.
    """
    if action not in command.commands:
        allowed = ", ".join(command.commands)
        raise InputError([Problem("no such action", path="action", value=repr(action), allowed=allowed)])
    if action == "gc":
        return _collect(DEFAULT_STORE if folder is None else Path(folder))
    results = DEFAULT_RESULTS if folder is None else Path(folder)
    if action == "lock":
        return {"token": take(results, os.getpid() if process is None else process, "a process")}
    if action == "unlock":
        holder = take_away(results)
        return {"holder": None if holder is None else str(holder)}
    found, problems = _verified(results)
    if problems and not remove_damaged:
        raise ArtifactError(problems)
    list(_removed(found["damaged"]))
    return found
