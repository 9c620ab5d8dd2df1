"""Arrays in one .npz file whose bytes depend only on the arrays."""

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
# zipfile raises RuntimeError for damaged flags, which look like encryption or an unknown method or version.
_UNREADABLE = (ValueError, OSError, EOFError, KeyError, RuntimeError, zipfile.BadZipFile, zlib.error)


def packed(columns: Mapping[str, npt.NDArray[Any]]) -> bytes:
    """Bytes of an .npz file with the named arrays. The file has no time stamps, is little-endian and lightly
    compressed."""
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
    """Arrays of a file, by name. Raises ArtifactError if the file is missing or damaged."""
    return unpacked(read_bytes(path), path)


def unpacked(content: bytes, path: Path | str) -> dict[str, npt.NDArray[Any]]:
    """Arrays in the bytes that `packed` returned. `path` is used in messages only. Raises ArtifactError if the bytes
    are damaged."""
    check_seal(path, is_sealed_archive(content))
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except _UNREADABLE as error:
        message = f"artifact is damaged: it is no file of arrays (.npz); {REMEDY}"
        raise ArtifactError([Problem(message, str(path))]) from error
