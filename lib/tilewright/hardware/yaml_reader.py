"""Reader of hardware files.

A file describes an accelerator of one core or of several cores.
"""

from pathlib import Path
from typing import Any

from tilewright.base.errors import Problems
from tilewright.base.file_kinds import HARDWARE, refuse_other_kind
from tilewright.base.yamlfile import YamlDocument, document_of, load_yaml, table
from tilewright.hardware.core import Accelerator
from tilewright.hardware.core_reader import areas_without_unit, core_entry, core_of, only_stores
from tilewright.hardware.yaml_checks import STORE


def read_accelerator(source: str | Path | dict[str, Any], notices: list[str] | None = None) -> Accelerator:
    """Accelerator of a hardware file, or of the same data as a dict. An accelerator of one core has the name of its
    core.

    Raises InputError with all problems of the file. Notices of unusual but legal values are appended to `notices`.
    """
    document = document_of(source) if isinstance(source, dict) else load_yaml(source, notices)
    return accelerator_of(document, notices)


def accelerator_of(document: YamlDocument, notices: list[str] | None = None) -> Accelerator:
    """Accelerator in a loaded document. Raises InputError with all problems of the document."""
    if "cores" in table(document.data):
        from tilewright.hardware.system_reader import multi_core_of  # not needed for a single core

        refuse_other_kind(document, HARDWARE)
        return multi_core_of(document, notices)
    entry = core_entry(document, notices)
    if entry.dataflows and notices is not None:
        problems = Problems(document)
        why = "has no effect on a single core: the mapping file, or a search, gives the spatial mapping"
        problems.unused(("dataflows",), why)
        problems.finish(notices)
    return Accelerator(entry.name, (core_of(entry),))


def check_hardware_file(document: YamlDocument, notices: list[str]) -> None:
    """Raise InputError with all problems of a hardware file. The file can describe an accelerator of several cores, a
    single core, or a core that only stores data.

    Notices are added to `notices`.
    """
    if only_stores(document):
        notices.append(f"{document.file} type: a core that only stores data, for an accelerator of several cores")
        core_entry(document, notices, STORE)
    elif "cores" in table(document.data):
        accelerator_of(document, notices)
    else:
        notices += areas_without_unit(document, core_entry(document, notices))
