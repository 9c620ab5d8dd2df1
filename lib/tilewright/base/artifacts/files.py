"""Files at the paths that people give.

A missing file is reported with the nearest existing name. A file is written completely or not at all.
"""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path

from tilewright.base.errors import InputError, Problem, some_of
from tilewright.base.missing_files import missing_file

FilePath = str | PathLike[str]
YAML_SUFFIXES = (".yaml", ".yml")


def existing_file(source: FilePath, what: str = "") -> Path:
    """Path of `source`, checked to be an existing file; `what` names the kind of the file in messages. If there is no
    such file, raises InputError with the nearest name in the same folder. If the path is a folder, raises InputError
    with the names of its files."""
    path = Path(source)
    if path.is_file():
        return path
    if path.is_dir():
        inside = [str(item) for item in sorted(path.iterdir()) if item.is_file() and not item.name.startswith(".")]
        allowed = f"a file, such as {some_of(inside)}" if inside else "a file"
        raise InputError([Problem("is a folder", str(path), allowed=allowed)])
    raise InputError([missing_file(path, f"{what} file".strip(), _file_of_project(path, what))])


def _file_of_project(path: Path, what: str) -> str:
    """Path of the file that a bare name such as `resnet18` means: a file of this name in `config/<what>`, without its
    suffix. The result is '' if `path` has a folder or a suffix, or if there is no such file.
    """
    if path.suffix or path.parent != Path() or not what.isalpha():
        return ""
    found = (file for file in Path("config", what).rglob("*") if file.stem == path.name and file.is_file())
    return str(min(found, default=""))


def file_of(source: object) -> str:
    """Path of a source that is a file; '' for any other source."""
    return str(source) if isinstance(source, str | PathLike) else ""


@contextmanager
def writing(path: Path | str) -> Iterator[None]:
    """Context manager for code that writes the file `path`: an OSError, for example because the disk is full, becomes
    an InputError.
    """
    try:
        yield
    except OSError as error:
        raise InputError([Problem(f"cannot be written: {error.strerror or error}", str(path))]) from error


def make_folder(path: Path | str) -> None:
    """Make a folder for outputs, with its parents. Raises InputError if the folder cannot be made."""
    with writing(path):
        Path(path).mkdir(parents=True, exist_ok=True)


def write_atomically(path: Path | str, content: str | bytes, *, is_cache: bool = False) -> None:
    """Write a file under a temporary name in the same folder, then rename it. A reader sees either the old file or the
    new file.

    The file and its folder are on the disk when this function returns. If `is_cache` is true, the file is not flushed
    to the disk and can be lost in a power failure. Raises InputError if the file cannot be written.
    """
    data = content.encode() if isinstance(content, str) else content
    with writing(path):
        _write(Path(path), data, is_cache)


def _write(target: Path, data: bytes, is_cache: bool) -> None:
    import tempfile  # imported here, so that commands that write nothing start faster

    target.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".tmp", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
            stream.flush()
            if not is_cache:
                os.fsync(stream.fileno())
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    if not is_cache:
        _sync_folder(target.parent)


def _sync_folder(folder: Path) -> None:
    """Flush the list of names in a folder to the disk. Without this, a power failure can undo a rename."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # file systems without fsync of folders give these errors
            raise
    finally:
        os.close(handle)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
