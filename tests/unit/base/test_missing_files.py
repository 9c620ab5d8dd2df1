"""Missing files: all readers give the same message, with the nearest file."""

from collections.abc import Callable
from pathlib import Path

import pytest
import tilewright
from tilewright.base.artifacts.envelope import read_artifact
from tilewright.base.artifacts.files import existing_file
from tilewright.base.errors import InputError
from tilewright.base.yamlfile import load_yaml
from tilewright.designs.space_reader import read_space
from tilewright.main_stage.theirs import run_script
from tilewright.workload.onnx.loading import load_model

READERS: dict[Callable[[Path], object], str] = {
    existing_file: "file",
    load_yaml: "file",
    load_model: "file",
    read_artifact: "artifact",
    read_space: "file",
    run_script: "file",
    tilewright.load: "file or folder",
}


@pytest.mark.parametrize("reader", READERS)
def test_each_reader_gives_the_same_message(reader: Callable[[Path], object], tmp_path: Path) -> None:
    """The message of each reader suggests the nearest name in the folder or a file of this name in a subfolder."""
    (tmp_path / "network.yaml").write_text("a: 1")
    told = f"{tmp_path / 'netwrk.yaml'}: no such {READERS[reader]}"
    for place, nearest in (("netwrk.yaml", " (did you mean 'network.yaml'?)"), ("x/y.yaml", "")):
        path = tmp_path / place
        with pytest.raises(InputError) as error:
            reader(path)
        assert str(error.value) == told.replace("netwrk.yaml", place) + nearest
    (tmp_path / "below").mkdir()
    (tmp_path / "below/netwrk.yaml").write_text("a: 1")
    with pytest.raises(InputError, match=r"did you mean '.*below/netwrk\.yaml'"):
        reader(tmp_path / "netwrk.yaml")
