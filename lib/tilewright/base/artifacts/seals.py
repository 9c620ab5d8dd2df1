"""Seals: a digest of all other bytes of a file, stored in the file where other readers of the format ignore it.

The place of the seal depends on the format:

* JSON object: its last key;
* JSON lines: the last key of the last line;
* Parquet: the bytes before the footer;
* arrays: the comment of the archive.

Reading a file with a seal detects a change of any bit.

Standard library only.
"""

from collections.abc import Callable
from pathlib import Path

from tilewright.base.artifacts.digests import DIGEST_BYTES, digest_of_bytes
from tilewright.base.errors import ArtifactError, Problem
from tilewright.base.missing_files import missing_file

REMEDY = "delete it, and repeat the run that wrote it"
FILES_BESIDE = "files"
"""Key in the provenance of an artifact. The value of the key is a table: name of a file that was written together with
the artifact -> digest of this file."""
_DIGITS = 2 * DIGEST_BYTES
_HOLE = b"?" * _DIGITS
_DOCUMENT_END = b',\n "file_digest": "' + _HOLE + b'"\n}\n'
_ROWS_END = b',"file_digest":"' + _HOLE + b'"}\n'
_PARQUET_TAG = b"tilewright/sealed"
_PARQUET_END = b"PAR1"
_ARCHIVE_END = b"PK\x05\x06"
_ARCHIVE_END_BYTES = 22
"""Size in bytes of the last record of a zip archive, without its comment."""
_MOST_CHANGED = 2
"""Largest number of wrong bytes in a damaged seal. If more bytes are wrong where a seal is expected, the file counts as
a file without a seal."""


def sealed_document(text: str) -> bytes:
    """Bytes of a JSON object in the form of `document_text`, with the seal as the last key."""
    return _with_end(text.encode().removesuffix(b"\n}\n"), _DOCUMENT_END)


def sealed_line(text: str) -> bytes:
    """Bytes of the lines of JSON in `text`, with the seal as the last key of the object on the last line."""
    return _with_end(text.encode().removesuffix(b"}\n"), _ROWS_END)


def sealed_parquet(content: bytes) -> bytes:
    """Bytes of a Parquet file with a seal between the data and the footer. Readers of Parquet ignore this place."""
    start = _footer_start(content)
    digest = digest_of_bytes(content).encode()
    return content[:start] + _PARQUET_TAG + digest + content[start:]


def sealed_archive(content: bytes) -> bytes:
    """Bytes of the zip archive `content`, with its seal added as the comment. `content` has no comment."""
    content = content[:-2] + _DIGITS.to_bytes(2, "little")
    return content + digest_of_bytes(content).encode()


def is_sealed_document(content: bytes) -> bool:
    """True if the seal of a JSON file matches its other bytes."""
    return _has_end(content, _DOCUMENT_END)


def is_sealed_line(content: bytes) -> bool:
    """True if the seal of a file of JSON lines matches its other bytes."""
    return _has_end(content, _ROWS_END)


def is_sealed_parquet(content: bytes) -> bool:
    """True if the seal of a Parquet file matches its other bytes."""
    start = _footer_start(content)
    place = start - _DIGITS - len(_PARQUET_TAG)
    if place < 0 or content[place : place + len(_PARQUET_TAG)] != _PARQUET_TAG:
        return False
    return content[start - _DIGITS : start] == digest_of_bytes(content[:place] + content[start:]).encode()


def is_sealed_archive(content: bytes) -> bool:
    """True if the seal of a zip archive matches its other bytes."""
    return content[-_DIGITS:] == digest_of_bytes(content[:-_DIGITS]).encode()


def may_have_been_sealed(path: Path | str, content: bytes) -> bool:
    """True if a file has a seal, or bytes that differ from a seal in at most `_MOST_CHANGED` places. JSON and tables of
    other programs have no seal."""
    match Path(path).suffix:
        case ".json":
            return _resembles(content, _DOCUMENT_END) or _resembles(content, _ROWS_END)
        case ".jsonl":
            return _resembles(content, _ROWS_END)
        case ".parquet":
            place = _footer_start(content) - _DIGITS - len(_PARQUET_TAG)
            is_near = place >= 0 and _changed(content[place:], _PARQUET_TAG) <= _MOST_CHANGED
            return is_near or _PARQUET_TAG in content
        case ".npz":
            start = len(content) - _DIGITS - _ARCHIVE_END_BYTES
            return _changed(content[max(start, 0) :], _ARCHIVE_END) <= _MOST_CHANGED
    return False


IS_SEALED: dict[str, Callable[[bytes], bool]] = {
    ".json": lambda content: is_sealed_document(content) or is_sealed_line(content),
    ".jsonl": is_sealed_line,
    ".npz": is_sealed_archive,
    ".parquet": is_sealed_parquet,
}
"""Suffix of a file name -> function that checks whether the seal of such a file matches its other bytes."""


def read_bytes(path: Path | str) -> bytes:
    """Bytes of a file. Raises ArtifactError if the file is missing or cannot be read."""
    try:
        return Path(path).read_bytes()
    except FileNotFoundError as error:
        raise ArtifactError([missing_file(path, "artifact")]) from error
    except OSError as error:
        raise ArtifactError([Problem(f"cannot be read: {error.strerror}", str(path))]) from error


def read_sealed(path: Path | str, *, is_required: bool = True) -> bytes:
    """Bytes of a file with a seal, including the seal.

    Raises ArtifactError if the file is missing or damaged. If `is_required` is false, a file that never had a seal is
    accepted too.
    """
    content = read_bytes(path)
    if is_required or may_have_been_sealed(path, content):
        check_seal(path, IS_SEALED[Path(path).suffix](content))
    return content


def check_seal(path: Path | str, is_sealed: bool) -> None:
    """Raise ArtifactError if `is_sealed` is false. The file has then changed, or an older version of tilewright wrote
    it."""
    if not is_sealed:
        message = "its digest does not match its content, or an older version of tilewright wrote it"
        raise ArtifactError([Problem(f"artifact is damaged: {message}; {REMEDY}", str(path))])


def _with_end(body: bytes, end: bytes) -> bytes:
    return body + end.replace(_HOLE, digest_of_bytes(body).encode())


def _has_end(content: bytes, end: bytes) -> bool:
    body = content[: -len(end)]
    return content[-len(end) :] == end.replace(_HOLE, digest_of_bytes(body).encode())


def _resembles(content: bytes, end: bytes) -> bool:
    """True if a file ends almost like a file with a seal: at most `_MOST_CHANGED` bytes differ. The digits of the
    digest are not compared.
    """
    found = content[-len(end) :]
    if len(found) < len(end):
        return False
    hole = end.index(_HOLE)
    outside = found[:hole] + found[hole + _DIGITS :]
    return _changed(outside, end.replace(_HOLE, b"")) <= _MOST_CHANGED


def _changed(found: bytes, expected: bytes) -> int:
    """Number of bytes in which the start of `found` differs from `expected`."""
    return sum(a != b for a, b in zip(found.ljust(len(expected), b"\0"), expected, strict=False))


def _footer_start(content: bytes) -> int:
    """Position of the footer of a Parquet file; -1 if it has none."""
    if content[-4:] != _PARQUET_END or content[:4] != _PARQUET_END:
        return -1
    start = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    return start if start >= 4 else -1
