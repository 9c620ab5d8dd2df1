"""Lookup of the hardware file of a run: every spelling of its name is found, and files with other names stay unread."""

from pathlib import Path

import pytest
from tilewright.cli import described_run
from tilewright.cli.described_run import HARDWARE, DescribedRun, hardware_digest

CORE = Path("config/hardware/zigzag/tpu_like.yaml").read_text()
BODY = CORE.replace("name: tpu_like\n", "", 1)
SPELLINGS = {
    "plain.yaml": "name: my_core\n",
    "double.yaml": 'name: "my_core"\n',
    "single.yaml": "name: 'my_core'\n",
    "escaped.yaml": 'name: "my\\x5fcore"\n',
    "block.yaml": "name: >-\n  my_core\n",
    "tagged.yaml": "name: !!str my_core\n",
}


def run_of(folder: Path, digest: str) -> DescribedRun:
    """A run in a folder below `folder`, on hardware with a digest and the name `my_core`."""
    (folder / "run").mkdir()
    return DescribedRun(folder / "run", {HARDWARE: digest}, "my_core", "", "")


@pytest.mark.parametrize("name", SPELLINGS)
def test_every_spelling_of_the_name_is_found(tmp_path: Path, name: str) -> None:
    """The file of a run is found however YAML spells its name."""
    assert BODY != CORE
    file = tmp_path / name
    file.write_text(SPELLINGS[name] + BODY)
    assert run_of(tmp_path, hardware_digest(file)).hardware_file() == file


def test_files_with_other_names_are_not_parsed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only files that can have the name of the run are read as hardware."""
    for name in ("first", "second", "third"):
        (tmp_path / f"{name}.yaml").write_text(f"name: {name}\n{BODY}")
    file = tmp_path / "fourth.yaml"
    file.write_text("name: my_core\n" + BODY)
    run, parsed = run_of(tmp_path, hardware_digest(file)), []

    def counted(path: Path) -> str:
        if path.exists():
            parsed.append(path)
        return hardware_digest(path)

    monkeypatch.setattr(described_run, "hardware_digest", counted)
    assert run.hardware_file() == file
    assert parsed == [file]
