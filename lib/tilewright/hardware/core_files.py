"""Finds and reads the core files that the file of an accelerator names."""

from dataclasses import dataclass
from pathlib import Path

from tilewright.errors import Problem, TilewrightError, nearest_name
from tilewright.hardware.core import Core
from tilewright.hardware.core_dialects import only_stores
from tilewright.hardware.core_reader import core_entry, core_of
from tilewright.hardware.yaml_checks import OFF_CHIP, PART, STORE
from tilewright.yamlfile import load_yaml, table


class NotOneCoreError(TilewrightError):
    """A core file is the file of an accelerator of several cores."""


@dataclass(frozen=True)
class CoreFile:
    """A core file as read."""

    path: Path
    core: Core
    says_operator_types: bool
    """Whether it says what the core can run; where it does not, the core's own default means nothing."""
    is_memory: bool = False
    """Whether it says that the core only stores."""


def read_core_file(path: Path, offchip: bool, notices: list[str]) -> CoreFile:
    """The core in a file. Raises InputError with every problem of it, NotOneCoreError for another kind of file."""
    document = load_yaml(path, notices)
    if "cores" in table(document.data):
        raise NotOneCoreError("is an accelerator of several cores, the file of one core is needed")
    is_memory = only_stores(document)
    entry = core_entry(document, notices, OFF_CHIP if offchip else STORE if is_memory else PART)
    return CoreFile(path, core_of(entry), "operator_types" in entry.model_fields_set, is_memory)


def missing_file_problem(name: str, folder: Path) -> Problem:
    """What is said of a core file that is nowhere."""
    beside = sorted(path.name for path in folder.glob("*.y*ml")) if folder.is_dir() else []
    beside += sorted(f"cores/{path.name}" for path in folder.glob("cores/*.y*ml"))
    near = nearest_name(name.removeprefix("./"), beside)
    return Problem("no such core file", value=repr(name), allowed=f"a file from {folder} on", nearest=near)
