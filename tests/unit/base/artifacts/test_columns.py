"""Files of arrays: their bytes, and damage that is never read as other numbers."""

from pathlib import Path

import numpy as np
import pytest
from tilewright.base.artifacts.columns import packed, read_columns, unpacked
from tilewright.base.errors import ArtifactError

COLUMNS = {"cycles": np.arange(40), "pj": np.linspace(0, 1, 7), "name": np.frombuffer(b"text", np.uint8)}


def test_what_is_packed_is_read_again(tmp_path: Path) -> None:
    """Packed arrays are read with equal names, types and values, and give the same bytes each time."""
    path = tmp_path / "arrays.npz"
    path.write_bytes(packed(COLUMNS))
    found = read_columns(path)
    assert list(found) == list(COLUMNS)
    for name, column in COLUMNS.items():
        assert found[name].dtype == column.dtype
        assert np.array_equal(found[name], column)
    assert packed(found) == path.read_bytes()


def test_no_damaged_bit_is_read_as_other_numbers() -> None:
    """A file with one changed bit is refused, or its arrays are still equal."""
    content = packed(COLUMNS)
    refused = 0
    for place in range(len(content)):
        for bit in (0, 5):
            damaged = bytearray(content)
            damaged[place] ^= 1 << bit
            try:
                found = unpacked(bytes(damaged), "arrays.npz")
            except ArtifactError:
                refused += 1
                continue
            for name in set(found) & set(COLUMNS):
                assert np.array_equal(found[name], COLUMNS[name]), (place, bit)
    assert refused > len(content)


def test_a_file_that_is_cut_off_is_refused(tmp_path: Path) -> None:
    """A truncated file and a missing file are refused with a message."""
    path = tmp_path / "arrays.npz"
    path.write_bytes(packed(COLUMNS)[:-30])
    with pytest.raises(ArtifactError, match="artifact is damaged"):
        read_columns(path)
    with pytest.raises(ArtifactError, match="no such artifact"):
        read_columns(tmp_path / "missing.npz")
