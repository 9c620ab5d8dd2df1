"""Cores that the file of a multi-core accelerator names: their ids and their files.

The module imports only the YAML reader of the package, because the Snakefile imports this module at every parse.
"""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from tilewright.base.yamlfile import YamlDocument, load_yaml, table

FOLDER_OF_HARDWARE, FOLDER_OF_INPUTS = "hardware", "inputs"
_MOST_LISTED = 12
_MOST_FILES = 20_000
"""Largest number of files that the search for a file name visits in one folder. After this number, the search continues
in the next folder."""
MOST_COPIES = 1024
"""Largest number of copies of one core that `core_counts` can ask for."""
T = TypeVar("T")


def find_core_file(name: str, folder: Path) -> Path | None:
    """Path of the core file that `name` means in an accelerator file in `folder`; None if there is no such file. The
    search begins in `folder`.

    If `name` has folders and does not begin with `./`, the file is then looked up from the working folder, and from
    each folder above `folder`.

    If `name` has no folders, the file is then looked up in the folder `cores` in `folder`. If the file is not there,
    the search goes through two kinds of folders with all their subfolders: first each folder with `hardware` in its
    name, then each folder called `inputs`. Only `folder` and the folders above `folder` can be such folders. A file
    from this search counts only if a folder in its path has `hardware` in its name.
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
    """Names of core files, in the order of `paths`. A name is the file name without suffix. If two of the files would
    have the same name, folder names, joined by `-`, are put in front of all names until the names differ. If some files
    differ only in their suffixes, all names have their suffix.

    Some files, such as b-x.yaml and b/x.yaml, have equal names even with all their folders. In this case, all names
    have all their folders; in folder names and file names, each `-` is written as `_-`, and each `_` as `__`.
    """
    resolved = [path.resolve() for path in paths]
    distinct = list(dict.fromkeys(resolved))
    longest = max((len(path.parts) for path in distinct), default=0)
    only_suffix = len({path.with_suffix("") for path in distinct}) < len(distinct)
    parts = {path: (*path.parts[1:-1], path.name if only_suffix else path.stem) for path in distinct}
    names: dict[Path, str] = {}
    for depth in range(1, longest):
        names = {path: "-".join(own[-depth:]) for path, own in parts.items()}
        if len(set(names.values())) == len(distinct):
            return [names[path] for path in resolved]
    marked = {path: [one.replace("_", "__").replace("-", "_-") for one in own] for path, own in parts.items()}
    return ["-".join(marked[path]) for path in resolved]


@dataclass(frozen=True)
class CoreIds:
    """Core ids that an accelerator file defines."""

    known: tuple[int, ...]
    offchip: int | None
    """Id of the off-chip core if the file gives one. The id is kept even if no core has this id."""
    is_certain: bool = True
    """True if the set of ids is certain. The set is uncertain if two cores have the same id. Another check reports such
    cores."""
    copy_of: Mapping[int, int] = field(default_factory=dict, compare=False)
    """Id of a copy that `core_counts` makes -> id of its original core."""

    @property
    def onchip(self) -> tuple[int, ...]:
        """Ids of all cores but the off-chip core."""
        return tuple(core_id for core_id in self.known if core_id != self.offchip)

    def with_copies(self, core_ids: Iterable[int]) -> tuple[int, ...]:
        """Ids in the order of `core_ids`, each followed by the ids of its copies."""
        return tuple(one for core_id in core_ids for one in (core_id, *self.copies_of(core_id)))

    def copies_of(self, core_id: int) -> tuple[int, ...]:
        """Ids of the copies that `core_counts` makes of the core `core_id`, without `core_id` itself."""
        return tuple(copy for copy, original in self.copy_of.items() if original == core_id)

    def said_of(self, said: Mapping[int, T], core_id: int) -> T | None:
        """Entry of a core in the table `said`, whose keys are core ids. A copy without an entry has the entry of its
        original core. None if there is no entry."""
        return said.get(core_id, said.get(self.copy_of.get(core_id, core_id)))

    @property
    def allowed(self) -> str:
        """Text that lists the ids, for messages about an unknown id."""
        if len(self.known) > _MOST_LISTED:
            return f"{self.known[0]} to {self.known[-1]}"
        return ", ".join(map(str, self.known)) or "none"


def core_ids_of(document: YamlDocument) -> CoreIds:
    """Core ids in the file of an accelerator. This function does not check the ids."""
    data = table(document.data)
    cores, files = data.get("cores"), core_files_of(data)
    listed = range(len(cores)) if isinstance(cores, list) else [key for key in table(cores) if type(key) is int]
    offchip: Any = table(data.get("graph")).get("offchip_core_id", data.get("offchip_core_id"))
    offchip = next((core_id for core_id, (path, _) in files.items() if path == ("offchip_core",)), offchip)
    is_certain = not any(len(path) == 2 and path[0] == "cores" for path in document.repeated)
    known = tuple(sorted({*listed, *files}))
    return CoreIds(known, offchip if type(offchip) is int else None, is_certain, core_copies(data))


def core_files_of(data: Any) -> dict[int, tuple[tuple[str | int, ...], str]]:
    """Core files by core id, as pairs (position in `data` of the file name, file name as written). This function does
    not check the names."""
    cores = table(data).get("cores")
    numbered = enumerate(cores) if isinstance(cores, list) else table(cores).items()
    found: dict[int, tuple[tuple[str | int, ...], str]] = {
        key: (("cores", key), name) for key, name in numbered if type(key) is int and isinstance(name, str)
    }
    copies = core_copies(data)
    found |= {copy: found[original] for copy, original in copies.items() if original in found}
    offchip = None if isinstance(cores, list) else table(data).get("offchip_core")
    if isinstance(offchip, str):
        # The core gets an id even if keys of `cores` are broken, so that its file is read and checked.
        known = [key for key in (*table(cores), *copies) if type(key) is int]
        found[max(known, default=-1) + 1] = (("offchip_core",), offchip)
    return dict(sorted(found.items()))


def core_copies(data: Any) -> dict[int, int]:
    """Id of a copy that `core_counts` asks for -> id of its original core. This function does not check the values of
    `core_counts`.

    The ids of copies follow the largest id in `cores`, in the order of `core_counts`.
    """
    cores = table(data).get("cores")
    listed = list(range(len(cores))) if isinstance(cores, list) else [key for key in table(cores) if type(key) is int]
    first, found = max(listed, default=-1) + 1, dict[int, int]()
    for core_id, count in table(table(data).get("core_counts")).items():
        if core_id in listed and type(count) is int and count <= MOST_COPIES:
            found |= {first + len(found) + number: core_id for number in range(count - 1)}
    return found


def contained_cores(data: Any) -> dict[Any, Any] | None:
    """Core descriptions by name, if the accelerator file contains them; None if the accelerator file names core
    files."""
    return table(table(data)["core_files"]) if "core_files" in table(data) else None


def core_paths(file: Path) -> dict[str, Path]:
    """Paths of the existing core files of an accelerator file, by core file name. The result is {} for the file of a
    single core, and for an accelerator file that contains the descriptions of its cores.

    Raises InputError if the accelerator file cannot be read.
    """
    data = load_yaml(file).data
    if contained_cores(data) is not None:
        return {}
    found = [find_core_file(name, file.parent) for _, name in core_files_of(data).values()]
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
