"""The hardware file of an accelerator as one YAML text, with its core files in it and without comments."""

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
"""Key of the text in the provenance of the artifact of an accelerator."""
CORES = "core_files"


def whole_text(source: object, accelerator: Accelerator) -> str:
    """YAML text that reads back to an accelerator, made of the file or dict that it was read from; that in its artifact
    where this was its source; '' where there is none."""
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
    """The text in the artifact of an accelerator; '' where it has none. Raises ArtifactError."""
    return str(read_artifact(artifact).provenance.get(FILE_TEXT, ""))


def hardware_document(path: Path) -> YamlDocument:
    """A hardware file, or the one in the artifact of an accelerator, which has no lines. Raises InputError."""
    if not is_artifact(path):
        return load_yaml(path)
    return YamlDocument(str(path), parse_yaml(text_in(path), str(path)).data)


def hardware_text(path: Path) -> str:
    """The text of a hardware file, or that in the artifact of an accelerator."""
    return text_in(path) if is_artifact(path) else path.read_bytes().decode("utf-8-sig")


def _whole(document: YamlDocument, accelerator: Accelerator) -> dict[Any, Any] | None:
    """The data of a file with its names and its cores in it; None where a core file is not there."""
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
