"""Digests of content, and the fixed text form of JSON from which digests are computed.

Keys stay in the order of the data. Floats are exact and as short as possible. Only the standard library is used,
because the Snakefile imports this module at every parse.
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
    """Text of `value` on one line without blanks. Digests are computed from this text, and the rows of tables are
    written in this form.

    Raises ValueError for NaN and infinities, which JSON does not have.
    """
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def document_text(value: JsonValue) -> str:
    """Text of `value`, indented for people, with a newline at the end. Artifacts with a single object have this
    form."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, indent=1) + "\n"


DIGEST_BYTES = 16
LANGUAGE_MODEL = "language_model"
"""Key with which a workload file describes a language model. The value is the path of the model's configuration, or a
table with the fields of this configuration."""


def content_digest(value: JsonValue) -> str:
    """Digest of a JSON value, in hexadecimal. The digest depends on the order of keys, because this order has a meaning
    in hardware files."""
    return digest_of_bytes(canonical_text(value).encode())


def input_digest(path: Path | str) -> str:
    """Digest of the content of a file that a person wrote. For a YAML file, the digest is computed from the parsed
    data. For any other file, the digest is computed from the bytes.

    Comments, blanks and quoting in a YAML file do not change the digest. Repeated keys and their lines change the
    digest, because a notice names these lines. If a workload file names the configuration of a language model, the
    content of this configuration is part of the digest. A file that cannot be read or parsed gets a digest too, because
    the step that reads the file reports what is wrong.
    """
    return digests_of_file(path)[1]


def digests_of_file(path: Path | str) -> tuple[str, str]:
    """Digest of the bytes of a file that a person wrote, and digest of its content (`input_digest`).

    The first digest is '' for a workload file that names the configuration of a language model, because the bytes of
    such a file alone do not determine its content. If the file cannot be read, both digests are 'missing'.
    """
    source = Path(path)
    try:
        as_bytes = bytes_digest(source)
    except OSError:
        return "missing", "missing"
    # The content is read after the bytes. If the file changes in between, the digest of the bytes is outdated, and the
    # next comparison notices this.
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
    """True if a file still has the content that it had when `digests_of_file` returned the two digests `as_bytes` and
    `as_said`."""
    try:
        return bytes_digest(path) == as_bytes or input_digest(path) == as_said
    except OSError:
        return as_said == "missing"


def named_file(path: Path | str) -> Path | None:
    """Path of the language-model configuration that is named in the workload file at `path`. None if the file is not a
    workload file, or if it names no configuration.
    """
    document = _parsed_yaml(Path(path))
    return None if document is None else model_file(document.data, Path(path))


def model_file(data: Any, file: Path) -> Path | None:
    """Path of the language-model configuration that is named in `data`, the content of the workload file `file`. None
    if no configuration is named there.
    """
    named = data.get(LANGUAGE_MODEL) if isinstance(data, dict) else None
    return file.parent / named if isinstance(named, str) else None


def bytes_digest(path: Path | str) -> str:
    """Digest of the bytes of a file."""
    return digest_of_bytes(Path(path).read_bytes())


def said_digest(value: Any) -> str:
    """Digest of the data of a YAML file, or of a part of the data. The digest depends on the types of values and on the
    order of keys."""
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
    """YAML values as JSON values. A table becomes a list of pairs, in which keys keep their type. Values that JSON
    lacks become text."""
    if isinstance(value, dict):
        return ["map", [[_plain(key), _plain(item)] for key, item in value.items()]]
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if value is None or isinstance(value, bool | int | str):
        return value
    return ["text", repr(value)]


def digest_of_bytes(data: bytes) -> str:
    """Digest of bytes, in hexadecimal."""
    import hashlib  # imported here, so that commands that digest nothing start faster

    return hashlib.blake2b(data, digest_size=DIGEST_BYTES).hexdigest()
