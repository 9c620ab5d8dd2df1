"""Digests of content. Standard library only: the Snakefile imports this at every parse."""

from pathlib import Path
from typing import Any

from tilewright.artifacts.canonical import JsonValue, canonical_text
from tilewright.errors import InputError

DIGEST_BYTES = 16


def content_digest(value: JsonValue) -> str:
    """Digest of a JSON value, in hexadecimal. The order of keys counts: in hardware files it has a meaning."""
    return _hexadecimal(canonical_text(value).encode())


def input_digest(path: Path | str) -> str:
    """Digest of what a file that a person wrote says: for YAML the parsed content, else the bytes.

    Comments, blanks and quoting do not count. A file that cannot be read or parsed gets a digest too, since saying
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
            return said_digest(parsed)
    return _hexadecimal(data)


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
