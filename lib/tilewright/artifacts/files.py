"""Files that people name."""

from os import PathLike
from pathlib import Path

from tilewright.errors import InputError, Problem, nearest_name

FilePath = str | PathLike[str]
YAML_SUFFIXES = (".yaml", ".yml")


def existing_file(source: FilePath, what: str) -> Path:
    """`source` as a path. Raises InputError, with the nearest name beside it, if there is no such file."""
    path = Path(source)
    if path.is_file():
        return path
    if path.is_dir():
        raise InputError([Problem(f"the {what} file is a folder", str(path))])
    siblings = sorted(item.name for item in path.parent.iterdir()) if path.parent.is_dir() else []
    raise InputError([Problem(f"no such {what} file", str(path), nearest=nearest_name(path.name, siblings))])


def file_of(source: object) -> str:
    """The path of a source that is a file, else ''."""
    return str(source) if isinstance(source, str | PathLike) else ""
