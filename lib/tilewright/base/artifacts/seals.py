"""Seals: a digest in a file of all its other bytes, in a place that other readers of its format pass over.

JSON has it as its last key, rows in their last line, Parquet before its footer, and a file of arrays in the comment of
the archive. A sealed file with any bit changed is noticed when it is read, whatever the bit means.

Standard library only.
"""

from collections.abc import Callable
from pathlib import Path

from tilewright.base.artifacts.digests import DIGEST_BYTES, digest_of_bytes
from tilewright.base.errors import ArtifactError, Problem

REMEDY = "delete it and run again: it will be rebuilt"
FILES_BESIDE = "files"
"""Key in the provenance of an artifact: digests of other files that were written with it, by their names."""
_DIGITS = 2 * DIGEST_BYTES
_HOLE = b"?" * _DIGITS
_DOCUMENT_END = b',\n "file_digest": "' + _HOLE + b'"\n}\n'
_ROWS_END = b',"file_digest":"' + _HOLE + b'"}\n'
_PARQUET_TAG = b"tilewright/sealed"
_PARQUET_END = b"PAR1"
_ARCHIVE_END = b"PK\x05\x06"
_ARCHIVE_END_BYTES = 22
"""The last record of an archive, without the comment that follows it."""
_MOST_CHANGED = 2
"""Bytes in which the place of a seal may differ and still be taken for a damaged one."""


def sealed_document(text: str) -> bytes:
    """A JSON object, as `document_text` writes it, with its seal as last key."""
    return _with_end(text.encode().removesuffix(b"\n}\n"), _DOCUMENT_END)


def sealed_line(text: str) -> bytes:
    """Lines of JSON of which the last is an object, with the seal as last key of that."""
    return _with_end(text.encode().removesuffix(b"}\n"), _ROWS_END)


def sealed_parquet(content: bytes) -> bytes:
    """A Parquet file with its seal between the data and the footer, where readers find nothing."""
    start = _footer_start(content)
    digest = digest_of_bytes(content).encode()
    return content[:start] + _PARQUET_TAG + digest + content[start:]


def sealed_archive(content: bytes) -> bytes:
    """A zip archive without a comment, with its seal as comment."""
    content = content[:-2] + _DIGITS.to_bytes(2, "little")
    return content + digest_of_bytes(content).encode()


def is_sealed_document(content: bytes) -> bool:
    """Whether all of a JSON file is as it was written."""
    return _has_end(content, _DOCUMENT_END)


def is_sealed_line(content: bytes) -> bool:
    """Whether all of a file of lines of JSON is as it was written."""
    return _has_end(content, _ROWS_END)


def is_sealed_parquet(content: bytes) -> bool:
    """Whether all of a Parquet file is as it was written."""
    start = _footer_start(content)
    place = start - _DIGITS - len(_PARQUET_TAG)
    if place < 0 or content[place : place + len(_PARQUET_TAG)] != _PARQUET_TAG:
        return False
    return content[start - _DIGITS : start] == digest_of_bytes(content[:place] + content[start:]).encode()


def is_sealed_archive(content: bytes) -> bool:
    """Whether all of an archive is as it was written."""
    return content[-_DIGITS:] == digest_of_bytes(content[:-_DIGITS]).encode()


def may_have_been_sealed(path: Path | str, content: bytes) -> bool:
    """True where a seal is, or was before a few bytes were changed: other JSON and other tables have none."""
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
"""End of a name -> whether what such a file holds is as it was written."""


def read_bytes(path: Path | str) -> bytes:
    """The bytes of a file. Raises ArtifactError if there is none."""
    try:
        return Path(path).read_bytes()
    except FileNotFoundError as error:
        raise ArtifactError([Problem("no such artifact", str(path))]) from error
    except OSError as error:
        raise ArtifactError([Problem(f"cannot be read: {error.strerror}", str(path))]) from error


def read_sealed(path: Path | str, *, is_required: bool = True) -> bytes:
    """The bytes of a sealed file, with their seal.

    Raises ArtifactError if it is missing or damaged; without `is_required` a file that never had a seal is read, too.
    """
    content = read_bytes(path)
    if is_required or may_have_been_sealed(path, content):
        check_seal(path, IS_SEALED[Path(path).suffix](content))
    return content


def check_seal(path: Path | str, is_sealed: bool) -> None:
    """Raises ArtifactError where the content of a file is not what was written."""
    if not is_sealed:
        message = "its digest does not match its content, or it was written by an older version"
        raise ArtifactError([Problem(f"artifact is damaged: {message}; {REMEDY}", str(path))])


def _with_end(body: bytes, end: bytes) -> bytes:
    return body + end.replace(_HOLE, digest_of_bytes(body).encode())


def _has_end(content: bytes, end: bytes) -> bool:
    body = content[: -len(end)]
    return content[-len(end) :] == end.replace(_HOLE, digest_of_bytes(body).encode())


def _resembles(content: bytes, end: bytes) -> bool:
    """Whether a file ends nearly as a sealed one, whatever the digest is."""
    found = content[-len(end) :]
    if len(found) < len(end):
        return False
    hole = end.index(_HOLE)
    outside = found[:hole] + found[hole + _DIGITS :]
    return _changed(outside, end.replace(_HOLE, b"")) <= _MOST_CHANGED


def _changed(found: bytes, expected: bytes) -> int:
    """Number of bytes in which the start of what was found differs."""
    return sum(a != b for a, b in zip(found.ljust(len(expected), b"\0"), expected, strict=False))


def _footer_start(content: bytes) -> int:
    """Where the footer of a Parquet file begins; -1 where it has none."""
    if content[-4:] != _PARQUET_END or content[:4] != _PARQUET_END:
        return -1
    start = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    return start if start >= 4 else -1
