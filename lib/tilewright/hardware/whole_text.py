"""Hardware file of an accelerator as one YAML text that contains the core files and has no comments."""

from os import PathLike
from pathlib import Path
from typing import Any

from tilewright.base.artifacts.codec import encode
from tilewright.base.artifacts.envelope import is_artifact, read_artifact
from tilewright.base.errors import InputError
from tilewright.base.yamlfile import YamlDocument, document_of, load_yaml, parse_yaml, table, yaml_text
from tilewright.hardware.core import Accelerator
from tilewright.hardware.core_paths import contained_cores, core_file_names, core_files_of, find_core_file
from tilewright.hardware.system import MultiCoreAccelerator
from tilewright.hardware.text_edits import with_values
from tilewright.hardware.yaml_reader import accelerator_of

FILE_TEXT = "file"
"""Key under which the provenance of an accelerator's artifact holds the YAML text of the accelerator."""
CORES = "core_files"


def whole_text(source: object, accelerator: Accelerator) -> str:
    """YAML text of an accelerator, made from the file or dict from which the accelerator was read.

    Reading the text gives the same accelerator. If the source is an artifact, the text comes from the artifact. The
    result is '' if there is no such text.
    """
    if isinstance(source, str | PathLike):
        path = Path(source)
        if is_artifact(path):
            return text_in(path)
        document = load_yaml(path)
    elif isinstance(source, dict):
        document = document_of(source)
    else:
        return ""
    data = _whole(document, accelerator)
    text = "" if data is None else yaml_text(data, default_flow_style=None, width=118, allow_unicode=True)
    return text if text and _reads_back(text, accelerator) else ""


def text_in(artifact: Path) -> str:
    """YAML text in the artifact of an accelerator; '' if the artifact has no such text. Raises ArtifactError."""
    return str(read_artifact(artifact).provenance.get(FILE_TEXT, ""))


def hardware_document(path: Path) -> YamlDocument:
    """Document of a hardware file, or of the YAML text in the artifact of an accelerator. The document of an artifact
    has no line numbers. Raises InputError."""
    if not is_artifact(path):
        return load_yaml(path)
    return YamlDocument(str(path), parse_yaml(text_in(path), str(path)).data)


def hardware_text(path: Path) -> str:
    """Text of the hardware file `path`. For the artifact of an accelerator, the result is the YAML text in the
    artifact.
    """
    return text_in(path) if is_artifact(path) else path.read_bytes().decode("utf-8-sig")


def _whole(document: YamlDocument, accelerator: Accelerator) -> dict[Any, Any] | None:
    """Data of an accelerator file with the name of the accelerator and the data of its core files; None if a core file
    is missing."""
    data: dict[Any, Any] = table(document.data)
    if isinstance(accelerator, MultiCoreAccelerator):
        cores = contained_cores(data)
        if cores is None:
            places = core_files_of(data).values()
            paths = [find_core_file(name, Path(document.file).parent) for _, name in places]
            there = [path for path in paths if path is not None]
            if len(there) < len(paths):
                return None
            names = core_file_names(there)
            data = with_values(data, [(place, name) for (place, _), name in zip(places, names, strict=True)])
            cores = {name: load_yaml(path).data for name, path in dict(zip(names, there, strict=True)).items()}
        own = accelerator.distinct_cores
        named = {name: {"name": own[name].name, **table(core)} if name in own else core for name, core in cores.items()}
        data = {**data, CORES: named}
    return {"name": accelerator.name, **data}


def _reads_back(text: str, accelerator: Accelerator) -> bool:
    try:
        return bool(encode(accelerator_of(parse_yaml(text))) == encode(accelerator))
    except InputError:
        return False
