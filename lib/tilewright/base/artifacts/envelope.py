"""File artifacts: a single object in an envelope, or a table of rows between a header and a footer.

Both forms hold a schema with its version, the provenance (versions and digests, never times or paths), a digest of the
content, and a seal over the whole file. A truncated or edited file is therefore noticed when it is read.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from tilewright import __version__
from tilewright.base.artifacts.codec import decode
from tilewright.base.artifacts.digests import canonical_text, content_digest, digest_of_bytes, document_text
from tilewright.base.artifacts.files import write_atomically
from tilewright.base.artifacts.seals import (
    FILES_BESIDE,
    REMEDY,
    check_seal,
    is_sealed_document,
    is_sealed_line,
    read_bytes,
    sealed_document,
    sealed_line,
)
from tilewright.base.errors import ArtifactError, Problem
from tilewright.base.json_values import JsonObject

SCHEMA_VERSIONS: dict[str, int] = {
    "tilewright/accelerator": 3,
    "tilewright/multi-core-accelerator": 2,
    "tilewright/core": 2,
    "tilewright/workload": 3,
    "tilewright/coverage": 1,
    "tilewright/tokens": 1,
    "tilewright/mapping": 4,
    "tilewright/cn-graph": 1,
    "tilewright/schedule": 1,
    "tilewright/allocation": 1,
    "tilewright/fusion": 1,
    "tilewright/fusion-island": 1,
    "tilewright/multi-summary": 3,
    "tilewright/core-costs": 1,
    "tilewright/layers": 2,
    "tilewright/single-summary": 4,
    "tilewright/front": 1,
    "tilewright/checks": 1,
}
"""Artifact schema -> version of this schema that this code writes."""
RENAMED: dict[tuple[str, int], dict[str, str]] = {
    ("tilewright/single-summary", 3): {"core": "hardware"},
    ("tilewright/multi-summary", 2): {"model": "schedule_model", "cost_model": "model"},
}
"""Renamed keys of artifacts: (schema, last version of it with the old keys) -> {old key: new key}. This code reads
only the new key."""

PLUG_INS = "plug_ins"
"""Key of provenance with the plug-ins that could affect the artifact: name and version of a package -> digest."""


class Artifact(NamedTuple):
    """Verified artifact, as read from a file."""

    schema: str
    provenance: dict[str, Any]
    digest: str
    payload: Any
    """Single object of the artifact, or tuple with the rows of a table."""


def write_document(path: Path | str, schema: str, payload: Any, provenance: JsonObject) -> str:
    """Write one object atomically. Return the digest of the payload."""
    digest = content_digest(payload)
    head = {"schema": schema, "version": SCHEMA_VERSIONS[schema], "provenance": provenance, "digest": digest}
    write_atomically(path, sealed_document(document_text({**head, "payload": payload})))
    return digest


def write_rows(path: Path | str, schema: str, rows: Iterable[Any], provenance: JsonObject) -> str:
    """Write a table atomically, one JSON object on each line. Return the digest of the rows."""
    lines = [canonical_text(row) for row in rows]
    header = {"schema": schema, "version": SCHEMA_VERSIONS[schema], "provenance": provenance}
    digest = content_digest(lines)
    footer = {"rows": len(lines), "digest": digest}
    text = "".join(f"{line}\n" for line in (canonical_text(header), *lines, canonical_text(footer)))
    write_atomically(path, sealed_line(text))
    return digest


def rows_digest(rows: Iterable[Any]) -> str:
    """Digest of a table with these rows."""
    return content_digest([canonical_text(row) for row in rows])


def read_artifact(path: Path | str, schema: str = "") -> Artifact:
    """Read and verify an artifact: a table of rows if the suffix is .jsonl, otherwise a single object.

    Raises ArtifactError if the file is missing or damaged, if it has another schema than `schema`, or if this version
    of tilewright cannot read its schema version. The value '' of `schema` accepts any schema.
    """
    content = read_bytes(path)
    try:
        text = content.decode()
        artifact, version = _parse_rows(text) if _is_table(path) else _parse_document(text)
        if not isinstance(artifact.schema, str):
            raise TypeError("schema")
    except (ValueError, KeyError, TypeError, IndexError, RecursionError) as error:
        raise _damaged(path, "it is truncated, or it is not JSON of the expected form") from error
    if schema and artifact.schema != schema:
        raise ArtifactError([Problem("wrong kind of artifact", str(path), value=artifact.schema, allowed=schema)])
    expected = SCHEMA_VERSIONS.get(artifact.schema)
    renamed = RENAMED.get((artifact.schema, version))
    if renamed is not None:
        artifact = artifact._replace(payload={renamed.get(key, key): value for key, value in artifact.payload.items()})
    elif version != expected:
        message = (
            f"{artifact.schema} version {version} was written by another version of tilewright; this tilewright reads"
            f" {f'version {expected} of this format' if expected else 'no file of this format'}"
        )
        raise ArtifactError([Problem(f"{message}; {REMEDY}", str(path))])
    check_seal(path, is_sealed_line(content) if _is_table(path) else is_sealed_document(content))
    return artifact


def read_beside(path: Path, artifact: Path) -> bytes:
    """Bytes of the file `path`, which was written together with an artifact. The bytes are compared with the digest in
    the artifact. Without the artifact, the bytes are not checked. Raises ArtifactError if the file is missing or its
    bytes have changed.
    """
    content = read_bytes(path)
    if artifact.is_file():
        expected = read_artifact(artifact).provenance.get(FILES_BESIDE, {}).get(path.name)
        check_seal(path, expected in (None, digest_of_bytes(content)))
    return content


def is_artifact(path: Path | str) -> bool:
    """True if a file begins like an artifact. The rest of the file can still be damaged."""
    try:
        with Path(path).open("rb") as stream:
            start = stream.read(64)
    except OSError:
        return False
    return b'"schema"' in start and b'"tilewright/' in start


def _is_table(path: Path | str) -> bool:
    return Path(path).suffix == ".jsonl"


def _parse_document(text: str) -> tuple[Artifact, int]:
    document = json.loads(text)
    artifact = Artifact(document["schema"], document["provenance"], document["digest"], document["payload"])
    return artifact, document["version"]


def _parse_rows(text: str) -> tuple[Artifact, int]:
    # Only a newline ends a row, because JSON text can contain other line separators of Unicode.
    lines = text.removesuffix("\n").split("\n")
    header, footer = json.loads(lines[0]), json.loads(lines[-1])
    rows = tuple(json.loads(line) for line in lines[1:-1])
    if footer["rows"] != len(rows) or not text.endswith("\n"):
        raise ValueError("rows are missing")
    return Artifact(header["schema"], header["provenance"], footer["digest"], rows), header["version"]


def _damaged(path: Path | str, reason: str) -> ArtifactError:
    return ArtifactError([Problem(f"artifact is damaged: {reason}; {REMEDY}", str(path))])


Parsed = TypeVar("Parsed")


def read_object(kind: type[Parsed], path: Path, schema: str) -> Parsed:
    """Object of the dataclass `kind`, read from an artifact. Raises ArtifactError if the artifact is missing, damaged,
    of another schema, or does not fit the dataclass.
    """
    artifact = read_artifact(path, schema)
    try:
        return decode(kind, artifact.payload)
    except ValueError as error:
        raise unreadable(path, artifact, error) from error


def unreadable(path: Path | str, artifact: Artifact, error: ValueError) -> ArtifactError:
    """Error that reports that the payload of an artifact does not fit its type. The message names plug-ins that made
    the artifact and that are not installed now.
    """
    from tilewright.base.registry import installed, package_of  # imported here, because few commands need it

    message = f"tilewright cannot read the artifact with the installed version and plug-ins: {error}"
    present = {package_of(point) for point in installed()}
    if lacking := [package for package in artifact.provenance.get(PLUG_INS, ()) if package not in present]:
        message += f"; it was made with {', '.join(lacking)}, which is not installed"
    return ArtifactError([Problem(f"{message}; {REMEDY}", str(path))])


def provenance(step: str, inputs: dict[str, str], options: JsonObject | None = None) -> JsonObject:
    """Provenance for an artifact of a pipeline step: versions and digests, never times, paths or names of machines.
    If plug-ins can affect the step, the key PLUG_INS has their packages and digests.
    """
    # Imported here, so that commands that make no artifact start faster.
    from tilewright.base.artifacts.step_code import code_digest, plug_ins_of

    plug_ins = plug_ins_of(step)
    made_by: JsonObject = {"tilewright": __version__, "code": code_digest(step), "inputs": inputs}
    return made_by | {"options": options or {}} | ({PLUG_INS: plug_ins} if plug_ins else {})
