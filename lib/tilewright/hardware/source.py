"""Hardware as it is given: the path of a file or of an artifact, a dict, or the parsed accelerator itself."""

from typing import Any

from tilewright.artifacts.envelope import is_artifact
from tilewright.artifacts.files import FilePath, existing_file
from tilewright.artifacts.objects import read_object
from tilewright.hardware.core import Accelerator

AcceleratorSource = FilePath | dict[str, Any] | Accelerator


def parse_accelerator(source: AcceleratorSource, notices: list[str] | None = None) -> Accelerator:
    """The accelerator of a hardware file, a dict or an artifact. Raises InputError with all problems."""
    if isinstance(source, Accelerator):
        return source
    # Imported here: an artifact needs neither pydantic nor the reader.
    if isinstance(source, dict):
        from tilewright.hardware.yaml_reader import read_accelerator

        return read_accelerator(source, notices)
    path = existing_file(source, "hardware")
    if is_artifact(path):
        return read_object(Accelerator, path, "tilewright/accelerator")
    from tilewright.hardware.yaml_reader import read_accelerator

    return read_accelerator(path, notices)
