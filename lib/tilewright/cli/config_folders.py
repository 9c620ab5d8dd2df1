"""Folders for the results and the logs of a configuration.

A file in the results folder names the configuration."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilewright.base.artifacts.files import write_atomically
from tilewright.cli.config_files import Note

if TYPE_CHECKING:
    pass


DEFAULT_CONFIG = Path("config/config.yaml")
"""Configuration whose results are directly in RESULTS, not in a subfolder."""


RESULTS, LOGS = Path("results"), Path("logs")


OTHERS = "configurations"
"""Folder in RESULTS for all configurations except the default one. Each configuration has a subfolder with its name."""


PARTS = ("hardware", "workload", "mapping", "single", "multi", "pareto", "space", "front")
"""Subfolders that the pipeline makes in the folder of results."""


KEY = "results_dir"


MARK = ".configuration"
"""Name of a file in the folder of results. Each line of the file names a configuration file to which the folder
belongs.
"""


_FOLDER = re.compile(r"[A-Za-z0-9_+-][A-Za-z0-9_.+-]*")
"""Pattern of folder names that have no special meaning for Snakemake or for a shell."""


def results_folder(files: Sequence[str], said: Any, note: Note) -> Path:
    """Folder for the results of a configuration, relative to the project.

    `said` is the value of the key `results_dir`; None if the configuration does not have this key. Problems are
    reported by calls of `note`.
    """
    folder = _default_folder(files) if said is None else _said_folder(files, said, note)
    others = _owners(folder)
    if others and files and others != [_name(file) for file in files] and all(Path(file).is_file() for file in others):
        words = "this folder has results of another configuration: rename this configuration, or give results_dir"
        note(words, (KEY,), value=repr(str(folder)), allowed=f"the folder belongs to {', '.join(others)}")
    return folder


def logs_folder(results: Path) -> Path:
    """Folder for the logs of the jobs whose results are in the folder `results`."""
    return LOGS if results == RESULTS else results / "logs"


def claim(results: Path, files: Sequence[str]) -> None:
    """Make the folder of results, and write the names of its configuration files into it."""
    results.mkdir(parents=True, exist_ok=True)
    write_atomically(results / MARK, "".join(f"{_name(file)}\n" for file in files))


def _default_folder(files: Sequence[str]) -> Path:
    if not files or [_name(file) for file in files] == [str(DEFAULT_CONFIG)]:
        return RESULTS
    # A file name can have characters that are special to Snakemake or to a shell; the folder name is made without them.
    name = "+".join(re.sub(r"[^A-Za-z0-9_.+-]", "_", Path(file).stem) for file in files)
    return RESULTS / OTHERS / name.lstrip(".")


def _said_folder(files: Sequence[str], said: Any, note: Note) -> Path:
    folder = Path(said) if isinstance(said, str) and said else None
    names = [part for part in folder.parts if part != "/"] if folder else []
    if folder is None or not names or not all(_FOLDER.fullmatch(name) for name in names):
        allowed = "the path of a folder that has only letters, digits, _ . + - and /"
        note("not a folder for results", (KEY,), value=repr(said)[:60], allowed=allowed)
        return RESULTS
    is_default = [_name(file) for file in files] == [str(DEFAULT_CONFIG)]
    if folder == RESULTS and files and not is_default:
        note(
            "config/config.yaml already writes its results to this folder",
            (KEY,),
            value=repr(said),
            allowed="another folder",
        )
    elif folder.parts[0] == str(RESULTS) and len(folder.parts) > 1 and folder.parts[1] in PARTS:
        note(
            "this folder is inside the results of config/config.yaml",
            (KEY,),
            value=repr(said),
            allowed="another folder",
        )
    return folder


def _owners(folder: Path) -> list[str]:
    try:
        return (folder / MARK).read_text().splitlines()
    except (OSError, ValueError):
        return []


def _name(file: str) -> str:
    """Path of a file: relative to the working folder if the file is in this folder, otherwise absolute."""
    path, here = Path(file).resolve(), Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)
