"""Tables in Parquet files that say in their metadata what they are and what they were made of."""

import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas
import pyarrow
import pyarrow.parquet

from tilewright.artifacts.canonical import canonical_text
from tilewright.artifacts.files import write_atomically
from tilewright.errors import InputError

_METADATA = b"tilewright"


def write_stamped(path: Path, table: pandas.DataFrame, said: Mapping[str, Any]) -> None:
    """Write a table with what is said of it, `schema` and `digest` among it; equal content gives equal bytes."""
    arrow = pyarrow.Table.from_pandas(table, preserve_index=False)
    metadata = {**(arrow.schema.metadata or {}), _METADATA: canonical_text(said).encode()}
    buffer = io.BytesIO()
    pyarrow.parquet.write_table(arrow.replace_schema_metadata(metadata), buffer, compression="zstd")
    write_atomically(path, buffer.getvalue())


def read_stamped(path: Path, schema: str) -> tuple[pandas.DataFrame, dict[str, Any]]:
    """A table and what is said of it. Raises InputError for a file that is damaged or something else."""
    try:
        table = pyarrow.parquet.read_table(path)
        said = _said(table.schema, schema)
    except (OSError, ValueError, KeyError, TypeError, pyarrow.ArrowException) as error:
        raise InputError(f"{path}: not a file of {schema}, or damaged: {error}") from None
    return table.to_pandas(), said


def digest_in(path: Path, schema: str) -> str:
    """The digest that a file says; '' where it is not there, damaged or something else."""
    try:
        return str(_said(pyarrow.parquet.read_schema(path), schema)["digest"])
    except (OSError, ValueError, KeyError, TypeError, pyarrow.ArrowException):
        return ""


def _said(schema: pyarrow.Schema, name: str) -> dict[str, Any]:
    said: dict[str, Any] = json.loads((schema.metadata or {})[_METADATA])
    if said["schema"] != name:
        raise ValueError("another kind of file")
    return said
