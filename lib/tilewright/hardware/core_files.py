"""Finds and reads the core files that the file of an accelerator names."""

from dataclasses import dataclass, replace
from pathlib import Path

from tilewright.errors import InputError, KeyPath, Problem, TilewrightError, nearest_name
from tilewright.hardware.core import Core
from tilewright.hardware.core_dialects import only_stores
from tilewright.hardware.core_reader import core_entry, core_of
from tilewright.hardware.yaml_checks import OFF_CHIP, PART, STORE
from tilewright.yamlfile import YamlDocument, load_yaml, table


class NotOneCoreError(TilewrightError):
    """A core file is the file of an accelerator of several cores."""


@dataclass(frozen=True)
class CoreFile:
    """A core file as read."""

    path: Path | None
    """None for a core that the accelerator file has in itself."""
    name: str
    """As its place is called: without folder and suffix, unique where all files of an accelerator are known."""
    core: Core
    says_operator_types: bool
    """Whether it says what the core can run; where it does not, the core's own default means nothing."""
    is_memory: bool = False
    """Whether it says that the core only stores."""


def read_core_file(path: Path, offchip: bool, notices: list[str]) -> CoreFile:
    """The core in a file. Raises InputError with every problem of it, NotOneCoreError for another kind of file."""
    return core_file_of(load_yaml(path, notices), path, path.stem, offchip, notices)


def contained_core_file(document: YamlDocument, name: str, offchip: bool, notices: list[str]) -> CoreFile:
    """The core that the file of an accelerator has under `core_files`. Raises as `read_core_file` does."""
    place: KeyPath = ("core_files", name)
    lines = {path[2:]: line for path, line in document.lines.items() if path[:2] == place}
    part = YamlDocument(document.file, document.written(place), lines)
    try:
        return core_file_of(part, None, name, offchip, notices)
    except InputError as error:
        before = ".".join(map(str, place))
        paths = [f"{before}.{one.path}" if one.path else before for one in error.problems]
        raise InputError(replace(one, path=path) for one, path in zip(error.problems, paths, strict=True)) from None


def core_file_of(document: YamlDocument, path: Path | None, name: str, offchip: bool, notices: list[str]) -> CoreFile:
    """The core of a loaded document. Raises as `read_core_file` does."""
    if "cores" in table(document.data):
        raise NotOneCoreError("is an accelerator of several cores, the file of one core is needed")
    is_memory = only_stores(document)
    entry = core_entry(document, notices, OFF_CHIP if offchip else STORE if is_memory else PART)
    return CoreFile(path, name, core_of(entry), "operator_types" in entry.model_fields_set, is_memory)


def missing_file_problem(name: str, folder: Path) -> Problem:
    """What is said of a core file that is nowhere."""
    beside = sorted(path.name for path in folder.glob("*.y*ml")) if folder.is_dir() else []
    beside += sorted(f"cores/{path.name}" for path in folder.glob("cores/*.y*ml"))
    near = nearest_name(name.removeprefix("./"), beside)
    return Problem("no such core file", value=repr(name), allowed=f"a file from {folder} on", nearest=near)
