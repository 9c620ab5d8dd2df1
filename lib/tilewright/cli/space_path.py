"""Path of a space file, stored in a text file in the folder of the results of the space."""

import os
from pathlib import Path

from tilewright.base.artifacts.files import write_atomically

SPACE_PATH = "space.txt"
"""Name of a text file in the folder of the results of a space. The file contains the path of the space file, relative
to this folder.
"""


def write_space_path(space: Path, folder: Path) -> None:
    """Write the path of the space file into the folder of the results of the space."""
    write_atomically(folder / SPACE_PATH, f"{os.path.relpath(space.resolve(), folder.resolve())}\n")


def space_path_in(folder: Path) -> Path | None:
    """Path of the space file that a folder of results names. None if the folder names no path."""
    file = folder / SPACE_PATH
    if not file.is_file():
        return None
    path = folder / file.read_text("utf-8").strip()
    short = Path(os.path.normpath(path))
    return short if short.exists() and path.exists() and short.samefile(path) else path  # `folder` can be a link


def missing_space_text(path: Path | None) -> str:
    """Reason why the file of a space cannot be read; '' if it can be read. `path` is the result of `space_path_in`, or
    the path that the user gives.
    """
    if path is None:
        return "the folder does not name the file of its space"
    return "" if path.is_file() else f"the file of the space is not at {path}"
