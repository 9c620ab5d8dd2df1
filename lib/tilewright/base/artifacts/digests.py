"""Digests of content, and JSON in one text form to take them of: keys in the order that the code gives, shortest
exact floats.

Standard library only: the Snakefile imports this at every parse.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilewright.base.errors import InputError, Unused

if TYPE_CHECKING:
    from tilewright.base.yamlfile import YamlDocument

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
    return digest_of_bytes(canonical_text(value).encode())


def input_digest(path: Path | str) -> str:
    """Digest of what a file that a person wrote says: for YAML the parsed content, else the bytes.

    Comments, blanks and quoting do not count; keys that are given twice do, with their lines, since that is told. Of
    the workload file of a language model the configuration that it names counts. A file that cannot be read or parsed
    gets a digest too, since saying what is wrong with it is the task of the step that reads it.
    """
    return digests_of_file(path)[1]


def digests_of_file(path: Path | str) -> tuple[str, str]:
    """Digests of the bytes of a file that a person wrote, and of what it says (`input_digest`).

    Where it names another file the first is '': its own bytes do not say what that says.
    """
    source = Path(path)
    try:
        as_bytes = bytes_digest(source)
    except OSError:
        return "missing", "missing"
    # After the bytes: where the file changes between the two, they are those of before, and that is noticed.
    notices: list[str] = []
    document = _parsed_yaml(source, notices)
    if document is None:
        return as_bytes, as_bytes
    said, named = document.data, model_file(document.data, source)
    if twice := [[one.problem.path, one.problem.message] for one in notices if isinstance(one, Unused)]:
        said = [said, twice]
    if named is not None:
        return "", said_digest([said, input_digest(named)])
    return as_bytes, said_digest(said)


def says(path: Path | str, as_bytes: str, as_said: str) -> bool:
    """Whether a file says what it did when `digests_of_file` gave these digests."""
    try:
        return bytes_digest(path) == as_bytes or input_digest(path) == as_said
    except OSError:
        return as_said == "missing"


def named_file(path: Path | str) -> Path | None:
    """The file that a workload file names: the configuration of its language model; None for any other file."""
    document = _parsed_yaml(Path(path))
    return None if document is None else model_file(document.data, Path(path))


def model_file(data: Any, file: Path) -> Path | None:
    """The file of a configuration that the data of a workload file name; None where they name none."""
    named = data.get(LANGUAGE_MODEL) if isinstance(data, dict) else None
    return file.parent / named if isinstance(named, str) else None


def bytes_digest(path: Path | str) -> str:
    """Digest of the bytes of a file."""
    return digest_of_bytes(Path(path).read_bytes())


def said_digest(value: Any) -> str:
    """Digest of data of a YAML file, or of a part of them. Types and the order of keys count."""
    return content_digest(_plain(value))


def _parsed_yaml(source: Path, notices: list[str] | None = None) -> "YamlDocument | None":
    from tilewright.base.yamlfile import load_yaml

    if source.suffix not in (".yaml", ".yml"):
        return None
    try:
        return load_yaml(source, notices)
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


def digest_of_bytes(data: bytes) -> str:
    """Digest of bytes, in hexadecimal."""
    import hashlib  # here, because commands that digest nothing start faster without

    return hashlib.blake2b(data, digest_size=DIGEST_BYTES).hexdigest()
