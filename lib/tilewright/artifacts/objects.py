"""Dataclasses as artifacts."""

from pathlib import Path
from typing import TypeVar

from tilewright.artifacts.codec import decode
from tilewright.artifacts.envelope import read_artifact
from tilewright.errors import ArtifactError, Problem

Parsed = TypeVar("Parsed")


def read_object(kind: type[Parsed], path: Path, schema: str) -> Parsed:
    """The dataclass in an artifact. Raises ArtifactError."""
    try:
        return decode(kind, read_artifact(path, schema).payload)
    except ValueError as error:
        raise ArtifactError([Problem(f"artifact does not fit this version: {error}", str(path))]) from error
