"""The cores that the file of an accelerator of several cores names: their ids, their files, where these are.

Nothing heavier than YAML here: the Snakefile asks at every parse.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tilewright.yamlfile import YamlDocument, load_yaml, table

FOLDER_OF_HARDWARE, FOLDER_OF_INPUTS = "hardware", "inputs"
_MOST_LISTED = 12
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


@dataclass(frozen=True)
class CoreIds:
    """The core ids that a file defines."""

    known: tuple[int, ...]
    offchip: int | None
    """Also an id that no core has, if the file says so."""
    is_certain: bool = True
    """False where two cores have one id, which is told: then nobody knows which ids there should be."""

    @property
    def onchip(self) -> tuple[int, ...]:
        """All but the off-chip core."""
        return tuple(core_id for core_id in self.known if core_id != self.offchip)

    @property
    def allowed(self) -> str:
        """The ids in words."""
        if len(self.known) > _MOST_LISTED:
            return f"{self.known[0]} to {self.known[-1]}"
        return ", ".join(map(str, self.known)) or "none"


def core_ids_of(document: YamlDocument) -> CoreIds:
    """The core ids in the file of an accelerator, unchecked."""
    data = table(document.data)
    cores, files = data.get("cores"), core_files_of(data)
    listed = range(len(cores)) if isinstance(cores, list) else [key for key in table(cores) if type(key) is int]
    offchip: Any = table(data.get("graph")).get("offchip_core_id", data.get("offchip_core_id"))
    offchip = next((core_id for core_id, (path, _) in files.items() if path == ("offchip_core",)), offchip)
    is_certain = not any(len(path) == 2 and path[0] == "cores" for path in document.repeated)
    return CoreIds(tuple(sorted({*listed, *files})), offchip if type(offchip) is int else None, is_certain)


def core_files_of(data: Any) -> dict[int, tuple[tuple[str | int, ...], str]]:
    """Core id -> (where it stands, file as written) of all cores in the data of an accelerator file, unchecked."""
    cores = table(data).get("cores")
    if isinstance(cores, list):
        return {index: (("cores", index), name) for index, name in enumerate(cores) if isinstance(name, str)}
    listed = {key: name for key, name in table(cores).items() if type(key) is int and isinstance(name, str)}
    found: dict[int, tuple[tuple[str | int, ...], str]] = {key: (("cores", key), name) for key, name in listed.items()}
    offchip = table(data).get("offchip_core")
    if isinstance(offchip, str):
        # An id of its own also where keys of `cores` are broken, so that its file is read and checked.
        known = [key for key in table(cores) if type(key) is int]
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
