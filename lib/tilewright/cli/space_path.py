"""Path of the file of a space, which is kept in the folder of the results of this space."""

import os
from pathlib import Path

from tilewright.base.artifacts.files import write_atomically

SPACE_PATH = "space.txt"
"""Name of the file that has the path of the file of the space, relative to the folder of the results."""


def write_space_path(space: Path, folder: Path) -> None:
    """Write the path of the file of a space into the folder of its results."""
    write_atomically(folder / SPACE_PATH, f"{os.path.relpath(space.resolve(), folder.resolve())}\n")


def space_path_in(folder: Path) -> Path | None:
    """Path of the file of the space of a folder; None if the folder does not have this path."""
    file = folder / SPACE_PATH
    if not file.is_file():
        return None
    path = folder / file.read_text("utf-8").strip()
    short = Path(os.path.normpath(path))
    return short if short.exists() and path.exists() and short.samefile(path) else path  # `folder` can be a link
