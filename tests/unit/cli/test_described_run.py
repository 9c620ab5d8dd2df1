"""The hardware file of a run is found under every spelling of its name, and other files stay unread."""

from pathlib import Path

import pytest
from tilewright.cli import described_run
from tilewright.cli.described_run import HARDWARE, MAPPING, WORKLOAD, DescribedRun, hardware_digest
from tilewright.pipeline.sources import parse_accelerator

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
OF_WORDS = "it's my new-core 2"
SPELLINGS_OF_WORDS = {
    "plain.yaml": f"name: {OF_WORDS}\n",
    "folded.yaml": "name: it's\n  my\n  new-core 2\n",
    "double.yaml": f'name: "{OF_WORDS}"\n',
    "single.yaml": "name: 'it''s my\n  new-core 2'\n",
    "escaped.yaml": 'name: "it\\x27s my n\\x65w-core 2"\n',
    "block.yaml": "name: >-\n  it's my\n  new-core 2\n",
}


def run_of(folder: Path, digest: str, core: str = "my_core") -> DescribedRun:
    """Return a run below `folder`, on hardware with a digest and a name."""
    (folder / "run").mkdir()
    return DescribedRun(folder / "run", {HARDWARE: digest}, core, "", "")


@pytest.mark.parametrize("name", SPELLINGS)
def test_every_spelling_of_the_name_is_found(tmp_path: Path, name: str) -> None:
    """The file of a run is found for any spelling of its name in YAML."""
    assert BODY != CORE
    file = tmp_path / name
    file.write_text(SPELLINGS[name] + BODY)
    assert run_of(tmp_path, hardware_digest(file)).hardware_file() == file


@pytest.mark.parametrize("name", SPELLINGS_OF_WORDS)
def test_every_spelling_of_a_name_of_several_words_is_found(tmp_path: Path, name: str) -> None:
    """A name of several words is found for any spelling in YAML, with doubled quotes or folded spaces."""
    file = tmp_path / name
    file.write_text(SPELLINGS_OF_WORDS[name] + BODY)
    assert parse_accelerator(file).name == OF_WORDS
    assert run_of(tmp_path, hardware_digest(file), OF_WORDS).hardware_file() == file


@pytest.mark.parametrize("name", ["my_core", "my-core", OF_WORDS, "<b>my_core</b>"])
def test_files_with_other_names_are_not_parsed(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files that cannot have the name of the run are not read as hardware."""
    for other in ("first", "second", "third"):
        (tmp_path / f"{other}.yaml").write_text(f"name: {other}\n{BODY}")
    file = tmp_path / "fourth.yaml"
    file.write_text(f"name: {name}\n" + BODY)
    run, parsed = run_of(tmp_path, hardware_digest(file), name), []

    def counted(path: Path) -> str:
        if path.exists():
            parsed.append(path)
        return hardware_digest(path)

    monkeypatch.setattr(described_run, "hardware_digest", counted)
    assert run.hardware_file() == file
    assert parsed == [file]


def test_another_network_can_be_the_same_file_read_otherwise() -> None:
    """The message about another network mentions options of reading; those about hardware and mapping do not."""
    run = DescribedRun(Path("run"), dict.fromkeys((HARDWARE, MAPPING, WORKLOAD), "1"), "core", "net", "corrected")
    assert run.contradiction(WORKLOAD, "2").endswith(
        "changed after the run, or it was read with other options, such as the option bits"
    )
    for kind in (HARDWARE, MAPPING):
        assert run.contradiction(kind, "2").endswith("or it was changed after the run")
        assert run.contradiction(kind, "1") == ""
