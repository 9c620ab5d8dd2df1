"""Files at the paths that a user gives."""

from pathlib import Path

import pytest
from tilewright.base.artifacts.files import existing_file
from tilewright.base.errors import InputError


def test_a_folder_in_place_of_a_file(tmp_path: Path) -> None:
    """The message about a folder in place of a file names its visible files, if it has any."""
    (tmp_path / "inner").mkdir()
    with pytest.raises(InputError) as raised:
        existing_file(tmp_path / "inner", "hardware")
    assert str(raised.value) == f"{tmp_path / 'inner'} is a folder (allowed: a file)"
    for name in ("b.yaml", "a.yaml", ".hidden"):
        (tmp_path / name).write_text("")
    with pytest.raises(InputError) as raised:
        existing_file(tmp_path, "hardware")
    files = f"{tmp_path / 'a.yaml'}, {tmp_path / 'b.yaml'}"
    assert str(raised.value) == f"{tmp_path} is a folder (allowed: a file, such as {files})"
