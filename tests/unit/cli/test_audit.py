"""`tilewright audit` on results of verbs: equal as they are, different after a changed number with a new seal."""

import json
import shutil
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import tilewright
import yaml
from tilewright.base.artifacts.columns import packed, read_columns
from tilewright.base.artifacts.envelope import read_artifact, write_document, write_rows
from tilewright.cli.audit import Audit
from tilewright.cli.auditing.items import DESIGN, LAYER, AuditDifference, AuditItem, LeftOut, Made, NotAudited
from tilewright.cli.main import main
from tilewright.designs.parts import COSTS_SCHEMA, SHARD_SCHEMA
from tilewright.designs.stamped_tables import read_stamped, write_stamped
from tilewright.search.store import Store

from tests.unit.cli.multi_core import GA, HARDWARE, MAPPING, TINY, inputs, write_network

ONE_CORE = TINY.parent / "tiny"
SPACE = {
    "accelerator": "wide.yaml",
    "mapping": "free.yaml",
    "networks": ["two_layers.yaml"],
    "axes": {"read_pj": {"path": "memories.memory.r_cost", "values": [30, 50, 70]}},
    "options": {"lpf_limit": 2},
}
EXACT = ["--temporal-mapping-search-engine", "exact"]


def map_one_core(place: Path, output: str, *options: str) -> None:
    """Run the small network on one core."""
    files = {"hardware": "wide.yaml", "workload": "two_layers.yaml", "mapping": "free.yaml"}
    described = [word for kind, name in files.items() for word in (f"--{kind}", str(place / name))]
    assert main(["map", *described, "--preset", "zigzag", *options, "--no-store", "-o", str(place / output)]) == 0


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make runs on one core and on two, a space and its front, beside their inputs."""
    place = tmp_path_factory.mktemp("audited")
    for file in ("hardware/wide.yaml", "workload/two_layers.yaml", "mapping/free.yaml"):
        shutil.copy(ONE_CORE / file, place)
    shutil.copy(HARDWARE, place)
    shutil.copytree(Path(HARDWARE).parent / "cores", place / "cores")
    shutil.copy(MAPPING, place / "duo_mapping.yaml")
    map_one_core(place, "one", "--lpf-limit", "3")
    network, run = write_network(place), place / "two"
    described = ["--hardware", str(place / "duo.yaml"), "--workload", str(network)]
    described += ["--mapping", str(place / "duo_mapping.yaml")]
    assert main(["cns", *described, "-o", str(run)]) == 0
    for core in ("left", "right"):
        cost = ["--core", core, "--cns", str(run), "--lpf-limit", "3", "--no-store"]
        assert main(["cost", *described, *cost, "-o", str(run / "cost" / f"{core}.jsonl")]) == 0
    tables = [*described, "--cns", str(run), "--costs", str(run / "cost"), "-o", str(run)]
    assert main(["allocate", *tables, *GA, "--jobs", "1"]) == 0
    assert main(["schedule", *tables, "--core-allocation", str(run / "allocation.json")]) == 0
    (place / "space.yaml").write_text(yaml.safe_dump(SPACE))
    assert main(["explore", str(place / "space.yaml"), "--no-store", "-o", str(place / "designs")]) == 0
    assert main(["front", str(place / "space.yaml"), "-o", str(place / "front")]) == 0
    return place


@pytest.fixture
def place(built: Path, tmp_path: Path) -> Path:
    """Return a copy of the results that a test can change."""
    return Path(shutil.copytree(built, tmp_path / "audited"))


def forget_descriptions(run: Path) -> None:
    """Remove the descriptions of a run, as older versions wrote it."""
    for name in ("accelerator.json", "workload.json", "mapping.json"):
        (run / name).unlink()


def test_a_true_folder_is_equal(built: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An audit of unchanged results prints one sentence with counts, writes nothing, and has exit code 0."""
    before = {path: path.stat().st_mtime_ns for path in built.rglob("*")}
    capsys.readouterr()
    assert main(["audit", str(built), "--share", "100%", "--seed", "7"]) == 0
    said = capsys.readouterr().out
    kinds = "layers, summaries, CN graphs, classes of computation nodes, allocations, schedules and designs"
    assert said == f"16 of 16 {kinds} (100 %, seed 7) of {built} were made again: all equal, bit by bit.\n"
    assert {path: path.stat().st_mtime_ns for path in built.rglob("*")} == before


@pytest.mark.parametrize(
    ("folder", "total"), [("one", "3 of 3 layers and summaries"), ("designs", "3 of 3 designs"), ("front", "3 of 3")]
)
def test_one_folder_of_a_verb(built: Path, folder: str, total: str) -> None:
    """Each kind of results can be audited alone, and every share draws at least one result."""
    found = tilewright.audit(built / folder, share=1.0)
    assert found["sentence"].startswith(total)
    assert not found["differences"]
    assert len(tilewright.audit(built / folder, "1%")["made_again"]) == 1
    drawn = {tuple(tilewright.audit(built / folder, "1%", seed)["made_again"]) for seed in range(8)}
    assert len(drawn) > 1


def test_earlier_results_are_not_read(built: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The audit does not read the store."""
    asked: list[str] = []
    monkeypatch.setattr(Store, "get", lambda self, key: asked.append(key))
    assert not tilewright.audit(built, "100%")["differences"]
    assert not asked


LAYERS = [AuditItem(Path("results") / "one", LAYER, f"conv{number}") for number in range(1200)]
DESIGNS = [AuditItem(Path("results") / "space", DESIGN, f"space-{number}") for number in range(4)]
OTHER = (AuditDifference("energy_pj", 2.0, 1.0),)


@pytest.mark.parametrize(
    ("made", "left_out", "refused", "notes", "end"),
    [
        ([Made(item) for item in LAYERS[:12]], [], 0, 0, "12 of 1,204 {} were made again: all equal, bit by bit."),
        ([Made(LAYERS[0])], [], 0, 0, "1 of 1,204 {} was made again: equal, bit by bit."),
        ([], [], 0, 0, "0 of 1,204 {} were made again: nothing to compare."),
        (
            [Made(LAYERS[0]), Made(LAYERS[1], OTHER)],
            [],
            0,
            0,
            "2 of 1,204 {} were made again: 1 different (results/one: layer conv1), 1 equal, bit by bit.",
        ),
        (
            [Made(LAYERS[0])],
            [LeftOut(item, "") for item in LAYERS[:3]],
            2,
            3,
            "1 of 1,204 {} was made again: equal, bit by bit; 3 layers are left out, because a time budget"
            " ended their search; 2 folders or files cannot be made again; 3 files were made by another version of the"
            " code.",
        ),
        (
            [Made(LAYERS[0])],
            [LeftOut(DESIGNS[0], "", is_sure=False)],
            1,
            1,
            "1 of 1,204 {} was made again: equal, bit by bit; 1 design is left out, because a time budget"
            " ended, or may have ended, its search; 1 folder or file cannot be made again; 1 file was made by"
            " another version of the code.",
        ),
    ],
)
def test_the_sentence(made: list[Made], left_out: list[LeftOut], refused: int, notes: int, end: str) -> None:
    """The sentence has counts, share, seed and all omissions, so it can be quoted alone."""
    not_audited = [NotAudited("results/tokens", "")] * refused
    items = [*LAYERS, *DESIGNS]
    found = Audit(Path("results"), Fraction(1, 100), 7, items, made, left_out, not_audited, ["note"] * notes)
    assert found.sentence == end.format("layers and designs (1 %, seed 7) of results")


def test_long_lists_are_cut_and_said_to_be() -> None:
    """Long lists are shortened to ten lines with a count, unless -v is given."""
    many = tuple(AuditDifference(f"column{number}", 0, 1) for number in range(25))
    left_out = [LeftOut(item, "a time budget ended its search") for item in LAYERS[:30]]
    found = Audit(Path("results"), Fraction(1), 0, LAYERS, [Made(LAYERS[0], many)], left_out, [], [])
    assert len(found.lines(None)) == 55
    short = found.lines(10)
    assert len(short) == 22
    assert short[10].endswith("layer conv0: and 15 more values (-v lists all)")
    assert short[-1] == "left out  ... and 20 more (-v lists all)"
    assert len(found.as_dict()["differences"]) == 25


# changed and sealed again ---------------------------------------------------------------------------------------------


def change_rows(file: Path, change: Callable[[list[Any]], None]) -> None:
    """Change a table of an artifact and seal it again."""
    artifact = read_artifact(file)
    rows = list(artifact.payload)
    change(rows)
    write_rows(file, artifact.schema, rows, artifact.provenance)


def change_document(file: Path, change: Callable[[Any], None]) -> None:
    """Change an artifact and seal it again."""
    artifact = read_artifact(file)
    change(artifact.payload)
    write_document(file, artifact.schema, artifact.payload, artifact.provenance)


def change_designs(file: Path, schema: str, column: str) -> None:
    """Change a number of the second design in a table and seal it again."""
    table, said = read_stamped(file, schema)
    table.loc[1, column] *= 1 + 2**-40
    write_stamped(file, table, said)


def change_schedule(file: Path) -> None:
    """Change the start of computation nodes and seal the schedule again."""
    columns = read_columns(file)
    columns["schedule.start_cycles"] = columns["schedule.start_cycles"] + 1
    file.write_bytes(packed(columns))


def a_layer(place: Path) -> None:
    """Change the last bits of the energy of a layer."""
    change_rows(place / "one" / "layers.jsonl", lambda rows: rows[1].update(energy_pj=rows[1]["energy_pj"] + 2**-30))


def a_total(place: Path) -> None:
    """Change the latency of a network."""
    change_document(place / "one" / "summary.json", lambda summary: summary.update(latency_cycles=1.0))


def a_cost(place: Path) -> None:
    """Change the cycles of a class of computation nodes."""
    change_rows(place / "two" / "cost" / "left.jsonl", lambda rows: rows[0].update(total1_cycles=7))


def an_allocation(place: Path) -> None:
    """Change the energy of an allocation."""
    change_document(place / "two" / "allocation.json", lambda found: found.update(energy_pj=1.5))


CHANGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "layer": (a_layer, "one: layer second: energy_pj: stored 2299."),
    "total": (a_total, "one: summary: latency_cycles: stored 1.0, made again "),
    "cost": (a_cost, "two: class of computation nodes 0 on left: total1_cycles: stored 7, made again "),
    "allocation": (an_allocation, "two: allocation: energy_pj: stored 1.5, made again "),
    "schedule": (
        lambda place: change_schedule(place / "two" / "schedule.npz"),
        "two: schedule: schedule.start_cycles[0]: stored ",
    ),
    "design": (
        lambda place: change_designs(place / "designs" / "shards" / "00000.parquet", SHARD_SCHEMA, "energy_pj"),
        "designs: design space-1: two_layers.energy_pj: stored ",
    ),
    "front": (
        lambda place: change_designs(place / "front" / "costs" / "00000.parquet", COSTS_SCHEMA, "energy_0_pj"),
        "front: design space-1: two_layers.energy_pj: stored ",
    ),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_changed_number_is_found(what: str, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A changed number with a correct seal is found, with the stored and the new value and exit code 1."""
    change, told = CHANGES[what]
    change(place)
    folder = place / told.partition(":")[0]
    capsys.readouterr()
    assert main(["audit", str(folder), "--share", "100%"]) == 1
    said = capsys.readouterr().out
    assert f"DIFFERENT  {place / told}" in said
    assert " made again " in said
    assert f" different ({place}" in said.splitlines()[-1]


def without_second_design(file: Path) -> None:
    """Remove the rows of a design from a table and seal it again."""
    table, said = read_stamped(file, SHARD_SCHEMA)
    write_stamped(file, table.drop(index=1).reset_index(drop=True), said)


@pytest.mark.parametrize(
    ("folder", "change", "told"),
    [
        (
            "one",
            lambda run: change_rows(run / "layers.jsonl", lambda rows: rows.pop()),
            ["layer second: record: stored nothing, made again 'there'", "summary: summary: stored 'there'"],
        ),
        (
            "two",
            lambda run: change_rows(run / "cost" / "right.jsonl", lambda rows: rows.pop()),
            ["class of computation nodes 1 on right: row: stored nothing"],
        ),
        (
            "designs",
            lambda run: without_second_design(run / "shards" / "00000.parquet"),
            ["design space-1: two_layers: stored nothing"],
        ),
    ],
)
def test_a_result_that_was_taken_out_is_found(
    folder: str, change: Callable[[Path], object], told: list[str], place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A result that was removed is made again and reported as missing."""
    change(place / folder)
    capsys.readouterr()
    assert main(["audit", str(place / folder), "--share", "100%"]) == 1
    said = capsys.readouterr().out
    for text in told:
        assert f"DIFFERENT  {place / folder}: {text}" in said


def test_differences_as_data(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """JSON and Python have each difference with its result, column and both values."""
    a_total(place)
    found = tilewright.audit(place / "one", "100%")
    assert {row["column"]: row["stored"] for row in found["differences"]} == {"latency_cycles": "1.0"}
    capsys.readouterr()
    assert main(["audit", str(place / "one"), "--share", "100%", "--json"]) == 1
    assert json.loads(capsys.readouterr().out) == found
    assert found["equal"] == 2


def test_what_follows_from_a_changed_file_is_not_compared(place: Path) -> None:
    """A schedule that was made from other cost tables than the stored ones is not audited; the reason is given."""
    a_cost(place)
    reasons = {Path(row["place"]).name: row["reason"] for row in tilewright.audit(place / "two")["not_audited"]}
    assert set(reasons) == {"allocation.json", "schedule.npz"}
    assert all("was made from other costs of left" in reason for reason in reasons.values())


# what cannot be compared ----------------------------------------------------------------------------------------------


def test_damaged_files_are_named_and_nothing_is_made(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Damaged files are named with exit code 2, and nothing is made again."""
    for file in ("one/layers.jsonl", "designs/shards/00000.parquet"):
        content = (place / file).read_bytes()
        (place / file).write_bytes(content[:200] + bytes([content[200] ^ 1]) + content[201:])
    capsys.readouterr()
    assert main(["audit", str(place)]) == 2
    said = capsys.readouterr()
    assert not said.out
    assert f"{place / 'one' / 'layers.jsonl'} " in said.err
    assert f"{place / 'designs' / 'shards' / '00000.parquet'} " in said.err


@pytest.mark.parametrize(
    ("file", "old", "new", "folder", "told"),
    [
        ("wide.yaml", "r_cost: 50", "r_cost: 51", "one", "the hardware of this run was not found in "),
        ("two_layers.yaml", "1, 8, 16", "1, 8, 32", "one", "the workload of this run was not found in "),
        ("two_layers.yaml", "1, 8, 16", "1, 8, 32", "designs", "network two_layers of the space has changed since"),
        ("space.yaml", "70", "80", "designs", "the file of the space was not found: no unchanged file"),
        ("space.yaml", "70", "80", "front", "the file of the space was not found: no unchanged file"),
        ("duo.yaml", "name: duo", "name: two", "two", "the hardware of this run was not found in "),
    ],
)
def test_changed_inputs_are_told_and_not_compared(
    place: Path, file: str, old: str, new: str, folder: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Results of changed inputs are not compared, with exit code 2 if nothing else is left."""
    text = (place / file).read_text()
    assert old in text
    (place / file).write_text(text.replace(old, new, 1))
    capsys.readouterr()
    if "of this run was not found" in told:  # of a run, which has its descriptions in its folder
        assert main(["audit", str(place / folder), "--share", "100%"]) == 0
        forget_descriptions(place / folder)
    assert main(["audit", str(place / folder), "--share", "100%"]) == 2
    assert told in capsys.readouterr().err


def test_named_inputs_are_used_if_they_are_those(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Named inputs are used if they are those of the run, and refused otherwise."""
    elsewhere = place.parent / "elsewhere"
    elsewhere.mkdir()
    for name in ("wide.yaml", "two_layers.yaml", "free.yaml", "space.yaml"):
        shutil.move(place / name, elsewhere / name)
    forget_descriptions(place / "one")
    names = {"hardware": "wide.yaml", "workload": "two_layers.yaml", "mapping": "free.yaml"}
    files = {kind: elsewhere / name for kind, name in names.items()}
    with pytest.raises(
        tilewright.InputError, match="name them with the option hardware and the option workload and the option mapping"
    ):
        tilewright.audit(place / "one")
    assert not tilewright.audit(place / "one", "100%", **files)["differences"]
    with pytest.raises(
        tilewright.InputError, match="its hardware has changed since the result was made, or is another file"
    ):
        tilewright.audit(place / "one", **{**files, "hardware": ONE_CORE / "hardware" / "narrow.yaml"})
    with pytest.raises(tilewright.InputError, match="name it with the option space"):
        tilewright.audit(place / "designs")
    assert not tilewright.audit(place / "designs", "100%", space=elsewhere / "space.yaml")["differences"]


def test_results_that_a_time_budget_ended_are_left_out(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Layers whose search was ended by a time budget are left out with the reason; proven layers are made again."""
    map_one_core(place, "late", *EXACT, "--time-budget-s", "0.000001")
    map_one_core(place, "proven", *EXACT)
    capsys.readouterr()
    assert main(["audit", str(place / "late"), "--share", "100%"]) == 0
    said = capsys.readouterr().out
    assert f"left out  {place / 'late'}: layer first: a time budget ended its search\n" in said
    assert "1 of 1 summaries (100 %, seed 0)" in said
    assert said.endswith("; 2 layers are left out, because a time budget ended their search.\n")
    found = tilewright.audit(place / "proven", "100%")
    assert found["sentence"].startswith("3 of 3 layers and summaries")
    assert not found["left_out"]


@pytest.mark.parametrize(("budget_s", "left_out", "made_again"), [("0.000000001", 2, 3), ("60", 0, 5)])
def test_classes_that_a_time_budget_ended(
    place: Path, budget_s: str, left_out: int, made_again: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Classes whose search was ended by the time budget are left out, as the cost table of the core says.

    If another version of the code made the cost table, none of its classes is made again.
    """
    run, network = place / "two", place / "net.onnx"
    described = ["--hardware", str(place / "duo.yaml"), "--workload", str(network)]
    described += ["--mapping", str(place / "duo_mapping.yaml"), "--cns", str(run)]
    cost = ["--core", "left", *EXACT, "--time-budget-s", budget_s, "--no-store"]
    assert main(["cost", *described, *cost, "-o", str(run / "cost" / "left.jsonl")]) == 0
    for name in ("allocation.json", "schedule.npz"):
        (run / name).unlink()
    files = {"hardware": place / "duo.yaml", "workload": network, "mapping": place / "duo_mapping.yaml"}
    found = tilewright.audit(run, "100%", **files)
    assert (len(found["left_out"]), len(found["made_again"])) == (left_out, made_again)
    assert not found["differences"]
    monkeypatch.setattr("tilewright.cli.auditing.inputs.code_digest", lambda step: "another")
    found = tilewright.audit(run, "100%", **files)
    assert (len(found["left_out"]), len(found["made_again"])) == (2, 3)
    assert "are left out, because a time budget ended, or may have ended, their search" in found["sentence"]


def test_an_allocation_that_a_time_budget_ended(place: Path) -> None:
    """An allocation whose search was ended by a time budget is left out; its schedule is made again."""
    network = place / "net.onnx"
    run = place / "two"
    budget = ["--ga-time-budget-s", "0.000000001", "--jobs", "1", "-o", str(run)]
    assert main(["allocate", *inputs(network, run, place / "duo_mapping.yaml"), *GA, *budget]) == 0
    allocation = ["--core-allocation", str(run / "allocation.json"), "-o", str(run)]
    assert main(["schedule", *inputs(network, run, place / "duo_mapping.yaml"), *allocation]) == 0
    found = tilewright.audit(run, "100%")
    assert [row["result"] for row in found["left_out"]] == [f"{run}: allocation"]
    assert f"{run}: schedule" in found["made_again"]
    assert not found["differences"]


def test_other_code_is_told(built: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Results of another version of the code are compared, and the sentence says so."""
    monkeypatch.setattr("tilewright.cli.auditing.inputs.code_digest", lambda step: "another")
    found = tilewright.audit(built / "one", "100%")
    assert found["sentence"].endswith("all equal, bit by bit; 1 file was made by another version of the code.")
    assert "layers.jsonl was made by another version of the code" in found["notes"][0]


def test_what_no_verb_makes_again_is_named(place: Path) -> None:
    """Results that cannot be made again are named with the reason; reports belong to their run."""
    for name in ("depth_first.json", "attention.json", "tokens.json", "advice.json"):
        (place / name.partition(".")[0]).mkdir()
        (place / name.partition(".")[0] / name).write_text("{}")
    assert main(["report", str(place / "one"), "--only", "tables", "-o", str(place / "one" / "report")]) == 0
    told = {Path(row["place"]).name: row["reason"] for row in tilewright.audit(place)["not_audited"]}
    assert set(told) == {"depth_first.json", "attention.json", "tokens.json", "advice"}
    assert "does not record its inputs" in told["tokens.json"]
    with pytest.raises(tilewright.InputError, match="cannot be made again: the file does not record"):
        tilewright.audit(place / "tokens")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["nowhere"], "is not there"),
        (["wide.yaml"], "is a file"),
        (["cores"], "has no results that can be made again"),
        (["one", "--share", "many"], "not a valid share of the results"),
    ],
)
def test_what_is_refused(built: Path, arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Wrong folders and shares are refused with one message and exit code 2."""
    capsys.readouterr()
    assert main(["audit", str(built / arguments[0]), *arguments[1:]]) == 2
    assert told in capsys.readouterr().err
