"""Parquet tables of a space of designs, with a digest of their inputs."""

import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas
import pyarrow
import pyarrow.parquet

from tilewright.base.artifacts.digests import canonical_text
from tilewright.base.artifacts.files import write_atomically
from tilewright.base.artifacts.seals import read_sealed, sealed_parquet
from tilewright.base.errors import ArtifactError, InputError, Problem
from tilewright.base.json_values import JsonObject

_METADATA = b"tilewright"


def read_parquet(path: Path, columns: Sequence[str] | None = None) -> pandas.DataFrame:
    """Table of results. Raises ArtifactError if the file is damaged."""
    try:
        return pandas.read_parquet(io.BytesIO(read_sealed(path)), columns=None if columns is None else list(columns))
    except (OSError, ValueError, pyarrow.ArrowException) as error:
        raise ArtifactError([Problem(f"cannot be read as a table of results: {error}", str(path))]) from None


def write_stamped(path: Path, table: pandas.DataFrame, said: Mapping[str, Any]) -> None:
    """Write a table with the metadata `said`, which contain `schema` and `digest`. Equal content gives equal bytes."""
    arrow = pyarrow.Table.from_pandas(table, preserve_index=False)
    metadata = {**(arrow.schema.metadata or {}), _METADATA: canonical_text(said).encode()}
    buffer = io.BytesIO()
    pyarrow.parquet.write_table(arrow.replace_schema_metadata(metadata), buffer, compression="zstd")
    write_atomically(path, sealed_parquet(buffer.getvalue()))


def read_stamped(path: Path, schema: str) -> tuple[pandas.DataFrame, dict[str, Any]]:
    """Pair (table, its metadata). Raises InputError if the file is damaged, or has another schema than `schema`."""
    try:
        table = pyarrow.parquet.read_table(io.BytesIO(read_sealed(path)))
        said = _said(table.schema, schema)
    except ArtifactError as error:
        raise InputError(error.problems) from None
    except (OSError, ValueError, KeyError, TypeError, pyarrow.ArrowException) as error:
        raise InputError(f"{path}: is damaged or does not have the schema {schema}: {error}") from None
    return table.to_pandas(), said


def digest_in(path: Path, schema: str) -> str:
    """Digest that a file contains. '' if the file is missing or damaged, or has another schema than `schema`."""
    try:
        content = io.BytesIO(read_sealed(path))
        return str(_said(pyarrow.parquet.read_schema(content), schema)["digest"])
    except (ArtifactError, OSError, ValueError, KeyError, TypeError, pyarrow.ArrowException):
        return ""


def _said(schema: pyarrow.Schema, name: str) -> JsonObject:
    said: dict[str, Any] = json.loads((schema.metadata or {})[_METADATA])
    if said["schema"] != name:
        raise ValueError("the file has another schema")
    return said
