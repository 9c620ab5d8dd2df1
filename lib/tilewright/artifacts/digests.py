"""Digests of content, and JSON in one text form to take them of: keys in the order that the code gives, shortest
exact floats.

Standard library only: the Snakefile imports this at every parse.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tilewright.errors import InputError

JsonValue = Mapping[str, Any] | Sequence[Any] | str | int | float | bool | None


def canonical_text(value: JsonValue) -> str:
    """`value` on one line without blanks: the text that is digested and the form of a row.

    Raises ValueError for NaN and infinities, which JSON does not have.
    """
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def document_text(value: JsonValue) -> str:
    """`value` indented for people, with a newline at the end: the form of a single-object artifact."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, indent=1) + "\n"


DIGEST_BYTES = 16
LANGUAGE_MODEL = "language_model"
"""The key of a workload file that says which model it is a step of: the path of its configuration, or its fields."""


def content_digest(value: JsonValue) -> str:
    """Digest of a JSON value, in hexadecimal. The order of keys counts: in hardware files it has a meaning."""
    return _hexadecimal(canonical_text(value).encode())


def input_digest(path: Path | str) -> str:
    """Digest of what a file that a person wrote says: for YAML the parsed content, else the bytes.

    Comments, blanks and quoting do not count; of the workload file of a language model the configuration that it names
    counts. A file that cannot be read or parsed gets a digest too, since saying
    what is wrong with it is the task of the step that reads it.
    """
    source = Path(path)
    try:
        data = source.read_bytes()
    except OSError:
        return "missing"
    if source.suffix in (".yaml", ".yml"):
        parsed = _parsed_yaml(source)
        if parsed is not None:
            named = model_file(parsed, source)
            return said_digest(parsed) if named is None else said_digest([parsed, input_digest(named)])
    return _hexadecimal(data)


def named_file(path: Path | str) -> Path | None:
    """The file that a workload file names: the configuration of its language model; None for any other file."""
    source = Path(path)
    return model_file(_parsed_yaml(source), source) if source.suffix in (".yaml", ".yml") else None


def model_file(data: Any, file: Path) -> Path | None:
    """The file of a configuration that the data of a workload file name; None where they name none."""
    named = data.get(LANGUAGE_MODEL) if isinstance(data, dict) else None
    return file.parent / named if isinstance(named, str) else None


def bytes_digest(path: Path | str) -> str:
    """Digest of the bytes of a file."""
    return _hexadecimal(Path(path).read_bytes())


def said_digest(value: Any) -> str:
    """Digest of data of a YAML file, or of a part of them. Types and the order of keys count."""
    return content_digest(_plain(value))


def _parsed_yaml(source: Path) -> Any:
    from tilewright.yamlfile import load_yaml

    try:
        return load_yaml(source).data
    except InputError:
        return None


def _plain(value: Any) -> JsonValue:
    """YAML values as JSON values: keys as pairs with their type, everything that JSON lacks as text."""
    if isinstance(value, dict):
        return ["map", [[_plain(key), _plain(item)] for key, item in value.items()]]
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if value is None or isinstance(value, bool | int | str):
        return value
    return ["text", repr(value)]


def _hexadecimal(data: bytes) -> str:
    import hashlib  # here, because commands that digest nothing start faster without

    return hashlib.blake2b(data, digest_size=DIGEST_BYTES).hexdigest()
