"""Finds and reads the core files that the file of an accelerator names."""

from dataclasses import dataclass
from pathlib import Path

from tilewright.errors import Problem, Problems, TilewrightError, nearest_name
from tilewright.hardware.core import Accelerator, Core
from tilewright.hardware.core_dialects import only_stores, with_dummy_array
from tilewright.hardware.core_paths import core_file_names, core_files_of, core_paths, find_core_file
from tilewright.hardware.yaml_checks import PART, STORE, note_unmodelled_keys
from tilewright.hardware.yaml_reader import accelerator_of
from tilewright.validation import table
from tilewright.yamlfile import load_yaml

__all__ = [
    "CoreFile",
    "core_file_names",
    "core_files_of",
    "core_paths",
    "find_core_file",
    "missing_file_problem",
    "read_core_file",
]


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
    """The core in a file. Raises InputError with every problem of the file, NotOneCoreError for another kind of file.

    The array of a core that only stores never computes; files give it no units and any energy, or leave it out.
    """
    document = load_yaml(path, notices)
    is_memory = only_stores(document)
    if "cores" in table(document.data):
        raise NotOneCoreError("is an accelerator of several cores, the file of one core is needed")
    remarks: list[str] = []
    unmodelled = Problems(document)
    note_unmodelled_keys(document, unmodelled)
    stores = offchip or is_memory
    use = STORE if stores else PART
    accelerator: Accelerator = accelerator_of(with_dummy_array(document) if stores else document, remarks, use)
    # What is unusual about a core is usual off chip.
    notices.extend(unmodelled.notices if offchip else remarks)
    return CoreFile(path, accelerator.cores[0], "operator_types" in table(document.data), is_memory)


def missing_file_problem(name: str, folder: Path) -> Problem:
    """What is said of a core file that is nowhere."""
    beside = sorted(path.name for path in folder.glob("*.y*ml")) if folder.is_dir() else []
    beside += sorted(f"cores/{path.name}" for path in folder.glob("cores/*.y*ml"))
    near = nearest_name(name.removeprefix("./"), beside)
    return Problem("no such core file", value=repr(name), allowed=f"a file from {folder} on", nearest=near)
