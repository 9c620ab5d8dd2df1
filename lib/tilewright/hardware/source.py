"""Sources of hardware: path of a file, path of an artifact, a dict, or an accelerator that is parsed already."""

from pathlib import Path
from typing import Any

from tilewright.base.artifacts.codec import decode
from tilewright.base.artifacts.envelope import is_artifact, read_artifact, unreadable
from tilewright.base.artifacts.files import FilePath, existing_file
from tilewright.base.errors import ArtifactError, Problem
from tilewright.hardware.core import Accelerator, Core
from tilewright.hardware.system import MultiCoreAccelerator

AcceleratorSource = FilePath | dict[str, Any] | Accelerator
ACCELERATOR, MULTI_CORE, CORE = "tilewright/accelerator", "tilewright/multi-core-accelerator", "tilewright/core"
"""Schemas of artifacts. ACCELERATOR is for an accelerator with one core, MULTI_CORE for an accelerator with several
cores, and CORE for a single core of an accelerator.
"""


def parse_accelerator(source: AcceleratorSource, notices: list[str] | None = None) -> Accelerator:
    """Accelerator of a hardware file, a dict or an artifact. The result is a MultiCoreAccelerator if there are several
    cores.

    Raises InputError with all problems. If a dict names core files, the search for these files starts in the working
    folder.
    """
    if isinstance(source, Accelerator):
        return source
    # Imported here: an artifact needs neither pydantic nor the reader.
    if isinstance(source, dict):
        from tilewright.hardware.yaml_reader import read_accelerator

        return read_accelerator(source, notices)
    path = existing_file(source, "hardware")
    if is_artifact(path):
        return read_accelerator_artifact(path)
    from tilewright.hardware.yaml_reader import read_accelerator

    return read_accelerator(path, notices)


def schema_of(accelerator: Accelerator) -> str:
    """Name of the schema of the artifact that stores `accelerator`."""
    return MULTI_CORE if isinstance(accelerator, MultiCoreAccelerator) else ACCELERATOR


def read_accelerator_artifact(path: FilePath) -> Accelerator:
    """Accelerator in an artifact. An artifact of one core gives an accelerator of one core. Raises ArtifactError."""
    artifact = read_artifact(Path(path))
    try:
        if artifact.schema == CORE:
            core = decode(Core, artifact.payload)
            return Accelerator(core.name, (core,))
        if artifact.schema == MULTI_CORE:
            return decode(MultiCoreAccelerator, artifact.payload)
        if artifact.schema == ACCELERATOR:
            return decode(Accelerator, artifact.payload)
    except ValueError as error:
        raise unreadable(Path(path), artifact, error) from error
    allowed = ", ".join((ACCELERATOR, MULTI_CORE, CORE))
    raise ArtifactError([Problem("wrong kind of artifact", str(path), value=artifact.schema, allowed=allowed)])
