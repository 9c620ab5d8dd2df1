"""Where the core files are that the file of an accelerator of several cores names, and what they are called.

Nothing heavier than YAML here: the Snakefile asks at every parse.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tilewright.yamlfile import load_yaml

FOLDER_OF_HARDWARE, FOLDER_OF_INPUTS = "hardware", "inputs"
_MOST_FILES = 20_000
"""Files looked at when a bare name is searched in folders."""


def find_core_file(name: str, folder: Path) -> Path | None:
    """The core file that `name` means in an accelerator file in `folder`, or None.

    Beside the accelerator file first; a path is then taken from the working folder and from the folders above the
    accelerator file; a bare name is searched in the folders called hardware that the accelerator file is in.
    """
    given = Path(name)
    near = [folder / given]
    if len(given.parts) > 1 and not name.startswith("./"):
        near += [given, *(parent / given for parent in folder.resolve().parents)]
    elif len(given.parts) == 1:
        near.append(folder / "cores" / given)
    found = next((path for path in near if path.is_file()), None)
    if found is None and len(given.parts) == 1:
        return _search(name, folder.resolve())
    return found


def core_file_names(paths: list[Path]) -> list[str]:
    """A name for each file: without folder and suffix, with as many folders as it takes to tell files apart."""
    resolved = [path.resolve() for path in paths]
    distinct = list(dict.fromkeys(resolved))
    longest = max((len(path.parts) for path in distinct), default=0)
    for depth in range(1, longest + 1):
        names = {path: "-".join((*path.parts[-depth:-1], path.stem)).strip("/") for path in distinct}
        if len(set(names.values())) == len(distinct):
            break
    else:
        # Files that differ in the suffix alone.
        names = {path: path.name for path in distinct}
    return [names[path] for path in resolved]


def core_files_of(data: Any) -> dict[int, tuple[tuple[str | int, ...], str]]:
    """Core id -> (where it stands, file as written) of all cores in the data of an accelerator file, unchecked."""
    cores = _table(data).get("cores")
    if isinstance(cores, list):
        return {index: (("cores", index), name) for index, name in enumerate(cores) if isinstance(name, str)}
    listed = {key: name for key, name in _table(cores).items() if type(key) is int and isinstance(name, str)}
    found: dict[int, tuple[tuple[str | int, ...], str]] = {key: (("cores", key), name) for key, name in listed.items()}
    offchip = _table(data).get("offchip_core")
    if isinstance(offchip, str):
        # An id of its own also where keys of `cores` are broken, so that its file is read and checked.
        known = [key for key in _table(cores) if type(key) is int]
        found[max(known, default=-1) + 1] = (("offchip_core",), offchip)
    return dict(sorted(found.items()))


def core_paths(file: Path) -> dict[str, Path]:
    """Core file name -> path, of the core files of an accelerator file that exist; {} for the file of one core.

    Raises InputError if the accelerator file cannot be read.
    """
    found = [find_core_file(name, file.parent) for _, name in core_files_of(load_yaml(file).data).values()]
    paths = [path for path in found if path is not None]
    return dict(zip(core_file_names(paths), paths, strict=True))


def _search(name: str, folder: Path) -> Path | None:
    roots = [path for path in (folder, *folder.parents) if FOLDER_OF_HARDWARE in path.name]
    roots += [path for path in (folder, *folder.parents) if path.name == FOLDER_OF_INPUTS]
    for root in roots:
        seen = 0
        for place, folders, files in os.walk(root):
            folders.sort()
            seen += len(files)
            if name in files and any(FOLDER_OF_HARDWARE in part for part in Path(place).parts):
                return Path(place) / name
            if seen > _MOST_FILES:
                break
    return None


def _table(value: Any) -> Mapping[Any, Any]:
    """`value` if it is a table, else an empty one; what is wrong is told elsewhere."""
    return value if isinstance(value, dict) else {}
