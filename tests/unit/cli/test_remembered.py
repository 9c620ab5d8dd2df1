"""Descriptions in the folder of a run: verbs need only this folder, wherever it is."""

import json
import os
import shutil
from pathlib import Path

import pytest
import tilewright
from tilewright.base.artifacts.envelope import read_artifact
from tilewright.cli.main import main
from tilewright.hardware.whole_text import FILE_TEXT, whole_text

from tests.unit.cli.multi_core import GA, HARDWARE, TINY, cut_and_cost, given, inputs, write_network

pytestmark = pytest.mark.usefixtures("unpainted")

ONE_CORE = TINY.parent / "tiny"
NARROW, WIDE = ONE_CORE / "hardware/narrow.yaml", ONE_CORE / "hardware/wide.yaml"
OF_ONE_CORE = ["--hardware", str(NARROW), "--workload", str(ONE_CORE / "workload/two_layers.yaml")]
FREE = ["--mapping", str(ONE_CORE / "mapping/free.yaml")]
RUNS = ("map", "fuse", "schedule", "apart")
OLDER = ("accelerator.json", "workload.json", "mapping.json")
"""Files that older runs lack."""
SHIPPED = [*sorted((TINY.parents[2] / "config/hardware").rglob("*.y*ml")), NARROW, Path(HARDWARE)]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a run with each verb; `apart` uses parts from the folder of another run."""
    place = tmp_path_factory.mktemp("a") / "b"
    place.mkdir()
    network = write_network(place)
    assert (
        main(
            [
                "map",
                "--preset",
                "zigzag",
                *OF_ONE_CORE,
                *FREE,
                "--lpf-limit",
                "3",
                "--no-store",
                "-o",
                str(place / "map"),
            ]
        )
        == 0
    )
    assert main(["fuse", *given(network)[:4], "--nb-plans", "3", "--lpf-limit", "2", "-o", str(place / "fuse")]) == 0
    cut_and_cost(network, place / "schedule")
    found = inputs(network, place / "schedule")
    assert main(["allocate", *found, *GA, "-o", str(place / "schedule")]) == 0
    found += ["--core-allocation", str(place / "schedule/allocation.json")]
    for name in ("schedule", "apart"):
        assert main(["schedule", *found, "-o", str(place / name)]) == 0
    return place


@pytest.fixture
def away(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Change to a folder with copies of the runs alone."""
    place = tmp_path / "x/y"
    for name in RUNS:
        shutil.copytree(made / name, place / name)
    monkeypatch.chdir(place)
    return place


def test_the_copies_give_the_same_run(away: Path) -> None:
    """A run from the copied descriptions has the same bytes."""
    copies = [f"--{kind}=map/{file}" for kind, file in zip(("hardware", "workload", "mapping"), OLDER, strict=True)]
    assert main(["map", "--preset", "zigzag", *copies, "--lpf-limit", "3", "--no-store", "-o", "again"]) == 0
    for name in ("layers.jsonl", "summary.json"):
        assert (away / "again" / name).read_bytes() == (away / "map" / name).read_bytes()


@pytest.mark.parametrize("name", RUNS)
def test_the_folder_is_enough(name: str, away: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each verb works on the folder of a run alone, and all checks are done."""
    for verb in ("explain", "advise", "check", "report"):
        capsys.readouterr()
        assert main([verb, name, *(["--no-search"] if verb == "advise" else [])]) == 0, verb
        said = capsys.readouterr()
        assert "name it" not in said.out + said.err
        if verb == "check":
            assert ("accesses" if name == "map" else "problem") in said.out
            assert not said.err
    assert main(["compare", name, name]) == 0


@pytest.mark.parametrize("name", ["map", "schedule"])
def test_advice_is_that_of_the_files(name: str, away: Path, made: Path, tmp_path: Path) -> None:
    """Advice from the folder equals advice from the files, and a change is written into a hardware file."""
    files = {"hardware": NARROW} if name == "map" else {"hardware": HARDWARE}
    options: dict[str, bool] = {"search": False, "mapping_changes": False}
    asked, found = tilewright.advise(name, **files, **options), tilewright.advise(name, **options)
    assert asked.found
    gains = [sorted((str(one.change.after), *one.same[:2]) for one in each.found) for each in (asked, found)]
    assert gains[0] == gains[1]
    tilewright.advise(name, **options, write=(1, tmp_path / "changed.yaml"))
    changed, change = tilewright.parse_accelerator(tmp_path / "changed.yaml"), found.found[0].change
    assert changed != tilewright.parse_accelerator(away / name / "accelerator.json")
    assert str(change.after) in (tmp_path / "changed.yaml").read_text()


@pytest.mark.parametrize("name", ["map", "schedule"])
def test_an_older_run_is_read(name: str, away: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An older run is read as far as possible, and missing files are named with their options."""
    for file in OLDER:
        (away / name / file).unlink()
    assert main(["explain", name]) == 0
    assert main(["check", name]) == 0
    said = capsys.readouterr()
    missing = Path(name) / "accelerator.json"
    assert f"{missing} is not there: name it" in said.err
    assert "not checked" in said.err
    assert main(["advise", name]) == 2
    problems = capsys.readouterr().err.splitlines()
    assert [line.split(":")[1].strip() for line in problems] == ["--hardware", "--workload", "--mapping"]
    assert all(f"{name}/{file} is not there" in line for file, line in zip(OLDER, problems, strict=True))


def test_a_damaged_file_is_told(away: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A damaged description, or one of another run, is refused."""
    file = away / "map/accelerator.json"
    file.write_bytes(file.read_bytes()[:-40])
    assert main(["advise", "map"]) == 2
    assert "map/accelerator.json is damaged: name it" in capsys.readouterr().err
    shutil.copy(away / "schedule/accelerator.json", file)
    assert main(["advise", "map"]) == 2
    assert "map/accelerator.json is of another run: name it" in capsys.readouterr().err


def test_another_description_is_told_in_one_line(away: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Other hardware than that of the run gets a note from `check` and is refused by `explain` and `advise`."""
    main(["check", "map", "--hardware", str(WIDE)])
    said = capsys.readouterr()
    assert said.err.splitlines()[0].startswith(f"note: {WIDE} is not the hardware of the run in map: it is another")
    for verb in ("explain", "advise"):
        assert main([verb, "map", "--hardware", str(WIDE)]) == 2
        assert capsys.readouterr().err.splitlines() == [
            f"error: {WIDE} is not the hardware of the run in map: it is another file, or it was changed after the run"
        ]
    assert main(["check", "map", "--hardware", str(NARROW)]) == 0
    assert not capsys.readouterr().err


def test_what_lies_beside_a_run_is_not_kept_twice(made: Path, tmp_path: Path) -> None:
    """Descriptions beside a run in the results of the pipeline are not kept twice."""
    hardware = tmp_path / "results/hardware/narrow/accelerator.json"
    assert main(["parse", "hardware", str(NARROW), "-o", str(hardware)]) == 0
    described = ["--hardware", str(hardware), *OF_ONE_CORE[2:], *FREE]
    run = tmp_path / "results/single/narrow"
    assert main(["map", "--preset", "zigzag", *described, "--lpf-limit", "3", "--no-store", "-o", str(run)]) == 0
    assert sorted(os.listdir(run)) == ["layers.jsonl", "mapping.json", "summary.json", "workload.json"]
    assert main(["advise", str(run), "--no-search"]) == 0


def test_what_is_kept_has_no_paths(made: Path) -> None:
    """Kept descriptions contain no paths and have equal bytes for other comments and folders."""
    for name in RUNS:
        for file in OLDER:
            text = (made / name / file).read_text() if (made / name / file).is_file() else ""
            assert str(made) not in text
            assert str(TINY.parent) not in text
            assert "#" not in json.loads(text)["provenance"].get(FILE_TEXT, "") if text else True
    copies = [(made / name / "accelerator.json").read_bytes() for name in RUNS[2:]]
    assert copies[0] == copies[1]


def test_shipped_hardware_has_a_text() -> None:
    """The text of each shipped hardware file, with its core files, reads back to the same accelerator."""
    found = 0
    for path in SHIPPED:
        try:
            accelerator = tilewright.parse_accelerator(path)
        except tilewright.InputError:  # files of variants, and cores that only store
            continue
        assert whole_text(path, accelerator), path
        found += 1
    assert found > 20


def test_parts_of_a_schedule_are_copied(made: Path) -> None:
    """The parts of a schedule are copied with their bytes."""
    for name in ("cn_graph.json", "cn_graph.npz", "cost/left.jsonl", "cost/right.jsonl", "allocation.json"):
        assert (made / "apart" / name).read_bytes() == (made / "schedule" / name).read_bytes()
    assert read_artifact(made / "apart/mapping.json").digest == read_artifact(made / "schedule/mapping.json").digest


def test_rows_of_evaluate_are_no_run(away: Path, made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Rows of `evaluate` are no run, and the message names `map` for the same mappings."""
    Path("points").mkdir()
    found = ["--mapping", "found.yaml"]
    assert main(["export", "map", "--hardware", str(NARROW), "-o", "found.yaml"]) == 0
    assert main(["evaluate", *OF_ONE_CORE, *found, "-o", "points/all.jsonl"]) == 0
    for verb in ("explain", "advise", "check", "report"):
        capsys.readouterr()
        assert main([verb, "points"]) == 2
        said = capsys.readouterr().err
        assert "has rows of `tilewright evaluate`" in said
        assert "`tilewright map` with the same --mapping makes the run" in said
    assert main(["map", *OF_ONE_CORE, *found, "--no-store", "-o", "again"]) == 0
    assert main(["explain", "again"]) == 0


@pytest.mark.parametrize("model", ["corrected", "zigzag-3.9.1"])
def test_the_whole_network_is_kept(model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The whole network is kept with a run, so a repeated run has the same coverage."""
    config = TINY.parents[2] / "config"
    words = ["--hardware", str(config / "hardware/zigzag/edge_tpu_like.yaml"), "--preset", "zigzag", "--model", model]
    words += ["--lpf-limit", "2"]
    words += ["--workload", str(config / "workload/bert_tiny.onnx"), "--no-store", "-o", str(tmp_path / "run")]
    assert main(["map", *words, "--mapping", str(config / "mapping/zigzag/edge_tpu_like.yaml")]) == 0
    assert main(["audit", "--share", "1", str(tmp_path / "run")]) == 0
    assert "all equal, bit by bit" in capsys.readouterr().out
