"""Finds and reads the core files that the file of an accelerator names."""

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tilewright.errors import InputError, Problem, nearest_name
from tilewright.hardware.core import Accelerator, Core
from tilewright.hardware.core_dialects import core_type
from tilewright.hardware.yaml_reader import accelerator_of
from tilewright.validation import items, table
from tilewright.yamlfile import YamlDocument, load_yaml

FOLDER_OF_HARDWARE, FOLDER_OF_INPUTS = "hardware", "inputs"
_MOST_FILES = 20_000
"""Files looked at when a bare name is searched in folders."""


@dataclass(frozen=True)
class CoreFile:
    """A core file as read."""

    path: Path
    core: Core
    says_operator_types: bool
    """Whether it says what the core can run; where it does not, the core's own default means nothing."""
    is_memory: bool = False
    """Whether it says that the core only stores."""


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


def read_core_file(path: Path, offchip: bool, notices: list[str]) -> CoreFile:
    """The core in a file. Raises InputError with every problem of the file.

    The array of an off-chip core never computes; files give it no units and any energy, or leave it out.
    """
    document = load_yaml(path, notices)
    is_memory = core_type(document) == "zigzag.memory"
    if "cores" in table(document.data):
        raise InputError([Problem("is an accelerator of several cores, the file of one core is needed", str(path))])
    remarks: list[str] = []
    accelerator: Accelerator = accelerator_of(_with_dummy_array(document) if offchip else document, remarks)
    # What is unusual about a core that only stores is usual there.
    notices.extend(remarks if not offchip else ())
    return CoreFile(path, accelerator.cores[0], "operator_types" in table(document.data), is_memory)


def missing_file_problem(name: str, folder: Path) -> Problem:
    """What is said of a core file that is nowhere."""
    beside = sorted(path.name for path in folder.glob("*.y*ml")) if folder.is_dir() else []
    beside += sorted(f"cores/{path.name}" for path in folder.glob("cores/*.y*ml"))
    near = nearest_name(name.removeprefix("./"), beside)
    return Problem("no such core file", value=repr(name), allowed=f"a file from {folder} on", nearest=near)


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


def _with_dummy_array(document: YamlDocument) -> YamlDocument:
    """The document with an array of one unit that costs nothing, on the dimensions that its memories serve."""
    data = table(document.data)
    array = table(data.get("operational_array", data.get("multipliers")))
    served = [
        name
        for memory in table(data.get("memories")).values()
        for name in items(table(memory).get("served_dimensions"))
    ]
    dimensions = array.get("dimensions") or list(dict.fromkeys(served)) or ["D1"]
    count = len(dimensions) if isinstance(dimensions, list) else 1
    array = {key: value for key, value in array.items() if key not in ("multiplier_energy", "multiplier_area")}
    dummy = {**array, "dimensions": dimensions, "sizes": [1] * count, "unit_energy": 0, "unit_area": 0}
    rest = {key: value for key, value in data.items() if key != "multipliers"}
    return replace(document, data={**rest, "operational_array": dummy}) if data else document
