"""Arrays in one .npz file whose bytes depend on nothing but the arrays."""

import io
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tilewright.base.artifacts.seals import REMEDY, check_seal, is_sealed_archive, read_bytes, sealed_archive
from tilewright.base.errors import ArtifactError, Problem

_TIME_STAMP = (1980, 1, 1, 0, 0, 0)
# RuntimeError is what zipfile says of damaged flags: a method or version that it does not know, or encryption.
_UNREADABLE = (ValueError, OSError, EOFError, KeyError, RuntimeError, zipfile.BadZipFile, zlib.error)


def packed(columns: Mapping[str, npt.NDArray[Any]]) -> bytes:
    """A .npz of arrays by name, without times, little-endian; lightly compressed, as columns repeat themselves."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, column in columns.items():
            member = zipfile.ZipInfo(f"{name}.npy", _TIME_STAMP)
            member.compress_type = zipfile.ZIP_DEFLATED
            with archive.open(member, "w", force_zip64=True) as stream:
                little_endian = np.ascontiguousarray(column, dtype=column.dtype.newbyteorder("<"))
                np.lib.format.write_array(stream, little_endian, version=(1, 0), allow_pickle=False)
    return sealed_archive(buffer.getvalue())


def read_columns(path: Path | str) -> dict[str, npt.NDArray[Any]]:
    """The arrays of a file. Raises ArtifactError if it is missing or damaged."""
    return unpacked(read_bytes(path), path)


def unpacked(content: bytes, path: Path | str) -> dict[str, npt.NDArray[Any]]:
    """The arrays of what `packed` made; `path` is for the message. Raises ArtifactError if it is damaged."""
    check_seal(path, is_sealed_archive(content))
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except _UNREADABLE as error:
        raise ArtifactError([Problem(f"artifact is damaged: it is no file of arrays; {REMEDY}", str(path))]) from error
