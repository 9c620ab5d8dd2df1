"""`tilewright advise`: its text, its files and its refusals."""

import json
import shutil
from pathlib import Path

import pandas
import pytest
import tilewright
from tilewright.base.units import microjoules_text
from tilewright.cli.main import main

pytestmark = pytest.mark.usefixtures("unpainted")

TINY = Path(__file__).resolve().parents[2] / "workflow" / "tiny"
HARDWARE, WORKLOAD = TINY / "hardware/narrow.yaml", TINY / "workload/two_layers.yaml"
MAPPING = TINY / "mapping/free.yaml"
GIVEN = ["--hardware", str(HARDWARE), "--workload", str(WORKLOAD), "--mapping", str(MAPPING)]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run a network and return the folder of the run."""
    folder = tmp_path_factory.mktemp("runs") / "narrow"
    assert main(["map", "--preset", "zigzag", *GIVEN, "--lpf-limit", "3", "--no-store", "-o", str(folder)]) == 0
    return folder


@pytest.mark.slow
def test_the_first_advice_is_what_it_says(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Text, table, JSON and function agree on the first advice, and a run of the written file has its cost."""
    written, folder = tmp_path / "changed.yaml", tmp_path / "advice"
    arguments = ["advise", str(run), *GIVEN, "--write", "1", str(written), "-o", str(folder)]
    assert main(arguments) == 0
    told = capsys.readouterr().out
    data = json.loads((folder / "advice.json").read_text())
    table = pandas.read_csv(folder / "advice.csv", keep_default_na=False)
    assert [row["key"] for row in data["changes"]] == table["key"].tolist()
    sides = {row["key"] for row in data["changes"] if row["kind"] == "array side"}
    assert sides <= {"operational_array.sizes.0", "operational_array.sizes.1"}, "keys are the paths of a design space"
    assert sides
    first = data["changes"][0]
    assert data["helpful"][0] == 1
    assert first["new_search_gain"] > 0
    assert f"{first['before']} -> {first['after']}" in told
    new = [str(written) if one == str(HARDWARE) else one for one in GIVEN]
    assert main(["map", "--preset", "zigzag", *new, "--lpf-limit", "3", "--no-store", "-o", str(tmp_path / "new")]) == 0
    summary = json.loads((tmp_path / "new/summary.json").read_text())["payload"]
    assert summary["latency_cycles"] == first["new_search_latency_cycles"]
    assert summary["energy_pj"] == first["new_search_energy_pj"]
    found = tilewright.advise(run, hardware=HARDWARE, workload=WORKLOAD, mapping=MAPPING, jobs=2)
    assert repr(found).startswith(f"<{len(found.found)} changes, {len(found.helpful)} help ")
    assert len(found.table) == len(found.found)
    assert "<table" in found._repr_html_()
    assert found.found[0].change.key == first["key"]
    assert [found.gain(one.search) for one in found.found] == [row["new_search_gain"] for row in data["changes"]]


def test_changes_that_are_made_together_cost_what_is_told(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run of the written file with both changes costs as much as the new search says."""
    changes = json.loads(_output(["advise", str(run), *GIVEN, "--no-search", "--no-mapping-changes", "--json"], capsys))
    keys = [one["key"] for one in changes["changes"] if one["gives"] == "more" and one["kind"] != "energy"][:2]
    written = tmp_path / "both.yaml"
    named = ["advise", str(run), *GIVEN, "--together", ",".join(keys)]
    (told,) = json.loads(_output([*named, "--json"], capsys))["changes"]
    text = _output([*named, "--write", "1", str(written)], capsys)
    assert all(key in text for key in keys)
    assert f"{told['new_search_latency_cycles']:,.0f}" in text
    assert microjoules_text(told["new_search_energy_pj"]) in text.split(), "`map` prints this text"
    assert "[pJ]" not in text
    new = [str(written) if one == str(HARDWARE) else one for one in GIVEN]
    assert main(["map", "--preset", "zigzag", *new, "--lpf-limit", "3", "--no-store", "-o", str(tmp_path / "new")]) == 0
    summary = json.loads((tmp_path / "new/summary.json").read_text())["payload"]
    assert summary["latency_cycles"] == told["new_search_latency_cycles"]
    assert summary["energy_pj"] == told["new_search_energy_pj"]


def test_missing_lines_have_a_reason(
    run: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A missing file of a run has one line that names the option for it."""
    monkeypatch.chdir(tmp_path)
    quick = ["advise", str(run), "--no-search", "--no-mapping-changes"]
    told = _output(quick, capsys)
    assert told.count("has no line numbers of the hardware file: runs do not record paths") == 1
    assert "--hardware FILE names it." in told
    told = _output([*quick, "--hardware", str(HARDWARE)], capsys)
    assert "has no line numbers" not in told
    assert f"Line numbers are those of {HARDWARE}" in told


@pytest.mark.parametrize("engine", ["best", "loma"])
def test_gaps_are_those_of_map(engine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The stated gaps of the run and of a changed file equal those of `map`, and certainty follows from them."""
    options = ["--temporal-mapping-search-engine", engine, "--no-store"]
    assert main(["map", *GIVEN, *options, "-o", str(tmp_path / "run")]) == 0
    named = ["advise", str(tmp_path / "run"), *GIVEN, "--together"]
    written = tmp_path / "changed.yaml"
    capsys.readouterr()
    text = _output([*named, "operational_array.sizes.0", "--write", "1", str(written)], capsys)
    new = [str(written) if one == str(HARDWARE) else one for one in GIVEN]
    assert main(["map", *new, *options, "-o", str(tmp_path / "new")]) == 0
    own, changed = (tilewright.load(tmp_path / name / "summary.json")["certificate"]["run"] for name in ("run", "new"))
    line = next(" ".join(line.split()) for line in text.splitlines() if "with the best mappings" in line)
    assert f"the EDP of the run could be at most {own['gap']:.2%} smaller" in line
    assert f"with the change, the EDP that a new search finds could be at most {changed['gap']:.2%} smaller" in line
    assert ("below the lower bound of the run" in line) == (changed["value"] < own["lower_bound"])
    assert f"that {engine} tries" in line


def test_a_run_without_bounds_says_so(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A run without bounds, as with the preset `zigzag`, gets a note that its gap is unknown."""
    note = "note: the gap between the mappings of the run and the best mappings is not known"
    assert note in _output(["advise", str(run), *GIVEN], capsys)


def test_pairs_are_tried_on_demand(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Pairs of changes are tried only with `--pairs`, and text and JSON have their number."""
    options = ["advise", str(run), *GIVEN, "--no-search", "--no-mapping-changes"]
    assert json.loads(_output([*options, "--json"], capsys))["pairs"] is None
    pairs = json.loads(_output([*options, "--pairs", "--json"], capsys))["pairs"]
    assert pairs["tried"] == pairs["changes"] * (pairs["changes"] - 1) // 2 > 0
    assert f"{pairs['tried']} pairs of {pairs['changes']} changes" in _output([*options, "--pairs"], capsys)


def _output(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """Return the text that a command prints."""
    capsys.readouterr()
    assert main(arguments) == 0
    return capsys.readouterr().out


@pytest.mark.slow
def test_a_changed_mapping_file_gives_what_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A run of each written mapping file has the energy and latency of its advice."""
    config = TINY.parents[2] / "config"
    mapping = config / "mapping/zigzag/eyeriss_like.yaml"
    given = ["--hardware", str(config / "hardware/zigzag/eyeriss_like.yaml"), "--workload", str(WORKLOAD)]
    options = ["--preset", "zigzag", "--lpf-limit", "2", "--no-store"]
    folder, out, changed = tmp_path / "run", tmp_path / "advice", tmp_path / "changed.yaml"
    assert main(["map", *given, "--mapping", str(mapping), *options, "-o", str(folder)]) == 0
    advise = ["advise", str(folder), *given, "--mapping", str(mapping), "--no-search"]
    assert main([*advise, "-o", str(out)]) == 0
    assert "mapping: default.spatial_mapping" in capsys.readouterr().out
    data = json.loads((out / "advice.json").read_text())
    rows = [row for row in data["changes"] if row["kind"] == "spatial mapping"]
    assert {row["key"].split(".")[0] for row in rows} == {"mapping: default", "mapping: Gemm"}, (
        "keys name entries with layers"
    )
    helpful = [row for row in rows if row["number"] in data["helpful"]]
    assert helpful
    for row in [*helpful, *rows[-3:]]:
        assert row["same_mapping_gain"] is None
        assert main([*advise, "--write", str(row["number"]), str(changed)]) == 0
        assert row["file"] == str(mapping)
        assert mapping.read_text().splitlines()[row["line"] - 1].strip().startswith(("spatial_mapping", "D"))
        assert main(["map", *given, "--mapping", str(changed), *options, "-o", str(tmp_path / "new")]) == 0
        summary = json.loads((tmp_path / "new/summary.json").read_text())["payload"]
        told = row["new_search_latency_cycles"], row["new_search_energy_pj"]
        assert (summary["latency_cycles"], summary["energy_pj"]) == told
    assert main([*advise, "--no-mapping-changes", "-o", str(out)]) == 0
    assert not any(row["kind"] == "spatial mapping" for row in json.loads((out / "advice.json").read_text())["changes"])


def test_numbers_follow_the_order_in_which_changes_are_told(run: Path) -> None:
    """Advice is numbered in printed order: helpful changes first, then spare resources without a loss."""
    found = tilewright.advise(run, hardware=HARDWARE, workload=WORKLOAD, mapping=MAPPING)
    told = [number for number, _ in (*found.helpful, *found.spare)]
    assert told == list(range(1, len(told) + 1))
    assert found.spare
    for _, one in found.spare:
        assert one.outcome.energy_pj <= found.now.energy_pj
        assert one.outcome.latency_cycles <= found.now.latency_cycles


def test_what_is_taken_away_loses_nothing(run: Path) -> None:
    """Reducing a spare resource without a new search costs no latency, and gains are in falling order."""
    found = tilewright.advise(run, hardware=HARDWARE, workload=WORKLOAD, mapping=MAPPING, search=False, factor="3/2")
    assert not found.searched
    for _, one in found.spare:
        assert one.same.latency_cycles is not None
        assert found.now.latency_cycles is not None
        assert one.same.latency_cycles <= found.now.latency_cycles
    gains = [found.gain(one.outcome) for _, one in found.helpful]
    assert gains == sorted(gains, key=lambda gain: -(gain or 0))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--hardware", str(TINY / "hardware/wide.yaml"), *GIVEN[2:]], "is not the hardware of the run"),
        ([*GIVEN, "--factor", "1"], "factor: not a factor, got 1 (allowed: a number above 1"),
        ([*GIVEN, "--factor", "1e9999999999"], "not a factor"),
        (
            [*GIVEN, "--together", "operational_array.sizes.9"],
            "together: no such change, got operational_array.sizes.9",
        ),
        ([*GIVEN, "--together", "a,a"], "together: no such change, got a"),
        ([*GIVEN, "--together", "a", "--pairs"], "--pairs: has no effect, because --together names the changes to try"),
        ([*GIVEN, "--write", "0", "no.yaml"], "write: there is no change with this number, got 0 (allowed: 1 to "),
    ],
)
def test_what_is_wrong_is_told(run: Path, options: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Wrong options are refused with a message and exit code 2 before any search."""
    assert main(["advise", str(run), *options]) == 2
    assert message in capsys.readouterr().err


def test_descriptions_of_an_older_run_are_asked_for(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A missing description of an older run is named with its file and option."""
    older = tmp_path / "a/b/older"
    shutil.copytree(run, older)
    (older / "accelerator.json").unlink()
    assert main(["advise", str(older), *GIVEN[2:]]) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: --hardware: the hardware of this run was not found in config, in ")
    assert f"and {older / 'accelerator.json'} is not there: name it" in said


def test_another_in_memory_array_has_another_clock(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A note says that a changed in-memory array has another clock period."""
    config = TINY.parents[2] / "config"
    inputs = [
        "--hardware",
        str(config / "hardware/zigzag/aimc.yaml"),
        "--mapping",
        str(config / "mapping/zigzag/aimc.yaml"),
    ]
    inputs += ["--workload", str(WORKLOAD)]
    folder = str(tmp_path / "run")
    assert (
        main(
            [
                "map",
                "--preset",
                "zigzag",
                *inputs,
                "--model",
                "corrected",
                "--lpf-limit",
                "2",
                "--no-store",
                "-o",
                folder,
            ]
        )
        == 0
    )
    assert main(["advise", folder, *inputs, "--no-search"]) == 0
    assert (
        "note: latencies are in cycles, but a changed array can also have another clock period"
        in capsys.readouterr().out
    )


def test_files_of_new_are_found_in_the_folder_of_the_core(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The files of `new` are found in the folder with the name of the core."""
    monkeypatch.chdir(tmp_path)
    hardware, mapping = tilewright.new("mine", array="4x4")
    files = ["--hardware", str(hardware), "--mapping", str(mapping), "--workload", str(WORKLOAD)]
    search = ["--temporal-mapping-search-engine", "loma", "--lpf-limit", "3", "--no-store"]
    assert main(["map", *files, *search, "-o", "run"]) == 0
    told = _output(["advise", "run", "--no-search", "--no-mapping-changes"], capsys)
    assert "Line numbers are those of mine/hardware.yaml" in told
    assert "No lines" not in told
