"""`tilewright decide` on the command line: its files, printed commands and refusals."""

import json
import re
import shlex
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import tilewright
import yaml
from tilewright.cli.main import main
from tilewright.designs.advice_text import share
from tilewright.designs.decision_text import CERTAINTY, Statement
from tilewright.designs.explore import gathered
from tilewright.designs.known_gaps import with_known_gaps
from tilewright.designs.space_reader import read_space

TINY = Path(__file__).resolve().parents[2] / "workflow" / "tiny"
SPACE = """
accelerator: hardware/wide.yaml
mapping: mapping/free.yaml
networks: [workload/two_layers.yaml]
axes:
  lanes: {path: operational_array.sizes.0, values: [2, 4]}
  kib: {values: [16, 32, 64]}
laws: {memories.memory.size: kib * 8192, memories.memory.r_cost: 10 * sqrt(kib)}
options: {objective: EDP, lpf_limit: 3}
"""


def written(folder: Path, **changes: Any) -> Path:
    """Write the file of the space, with its inputs beside it."""
    for name in ("hardware/wide.yaml", "mapping/free.yaml", "workload/two_layers.yaml"):
        (folder / name).parent.mkdir(exist_ok=True)
        shutil.copy(TINY / name, folder / name)
    path = folder / "lanes.yaml"
    path.write_text(yaml.safe_dump(yaml.safe_load(SPACE) | changes, sort_keys=False))
    return path


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Explore six designs into a folder whose name needs quotes in a shell."""
    folder = tmp_path_factory.mktemp("decide")
    assert main(["explore", str(written(folder)), "-o", str(folder / "the results")]) == 0
    return folder / "the results"


def refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """Return the error about wrong input, after exit code 2."""
    capsys.readouterr()
    assert main(["decide", *arguments]) == 2
    said = capsys.readouterr().err
    assert "internal" not in said
    return said


def expected_in(statement: Statement, command: str) -> set[str]:
    """Return the texts of a statement that the output of its command must have."""
    wanted = set(re.findall(r"lanes-\d+", statement.text))
    if "--together" in command:
        gains = re.findall(r"(?:saves?|has) (?:less than )?([\d.]+%) (?:of|less|more)", statement.text)
        wanted = {*shlex.split(command)[-1].split(","), *gains}
    elif change := re.search(r": (\S+): \S+ -> \S+ saves (?:less than )?([\d.]+%)", statement.text):
        wanted = {change[1], change[2]}
    elif statement.text.startswith("Axis "):  # the summary of the exploration has one sentence for all measures
        begin, end = statement.text.split(", the least ")
        wanted = {begin, *end.rstrip(".").split(". ")}
    elif command.startswith("tilewright explore"):
        wanted |= set(re.findall(r"([\d.,]+) (?:µJ|cycles|J cycles|mm²)", statement.text))
    return wanted


@pytest.mark.parametrize(
    ("axes", "array_nw", "told"),
    [
        ({}, None, "No energy includes static power, because the hardware files of the named designs give none."),
        ({}, 0, "The energies of all named designs include no static power (given as 0 for array; not given for "),
        ({}, 3, "The energies of all named designs include static power (of array; not given for "),
        (
            {"nw": {"path": "operational_array.unit_leakage", "values": [0, "3 nW"]}},
            0,
            ": no static power (given as 0 for array; not given for memory",
        ),
        (
            {"mw": {"path": "memories.memory.leakage", "values": [0, "3 nW"]}},
            3,
            "Some parts have a static power in other designs only: memory (given as 0) in ",
        ),
    ],
)
def test_parts_without_static_power_are_named(
    tmp_path: Path, axes: dict[str, Any], array_nw: int | None, told: str
) -> None:
    """The decision says in which designs and parts static power is missing, unless it is a decision by latency."""
    path = written(tmp_path, axes={"kib": {"values": [16, 32]}, **axes})
    file = tmp_path / "hardware/wide.yaml"
    data = yaml.safe_load(file.read_text()) | {"clock_frequency": "1 GHz"}
    if array_nw is not None:
        data["operational_array"]["unit_leakage"] = f"{array_nw} nW"
    file.write_text(yaml.safe_dump(data))
    assert main(["explore", str(path), "-o", str(tmp_path / "out")]) == 0
    found = tilewright.decide(tmp_path / "out", advice=False)
    assert any(told in one.text for one in found.statements if one.topic == CERTAINTY)
    by_time = tilewright.decide(tmp_path / "out", objective="latency", advice=False, write=False)
    assert not any("static power" in one.text for one in by_time.statements)


@pytest.mark.slow
def test_each_printed_command_reproduces_its_statement(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each printed command runs and prints the numbers of its statement, and a second decision has the same bytes."""
    found = tilewright.decide(out)
    page = [path.read_bytes() for path in found.files]
    assert {one.topic for one in found.statements} >= {"The choice", "How sure", "The next change to try"}
    outputs: dict[str, str] = {}
    for command in dict.fromkeys(command for one in found.statements for command in one.commands):
        capsys.readouterr()
        assert main(shlex.split(command)[1:]) == 0, command
        outputs[command] = capsys.readouterr().out
    for statement in found.statements:
        for command in statement.commands:
            if "--bounds" in command:
                assert "After a search with bounds" in outputs[command]
            else:
                assert {one for one in expected_in(statement, command) if one not in outputs[command]} == set()
    assert any("--together" in command for command in outputs)
    again = tilewright.decide(out, jobs=2)
    assert [path.read_bytes() for path in again.files] == page


def test_bounds_are_those_of_the_runs(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The statement after a search with bounds has the objectives and bounds of its runs."""
    found = tilewright.decide(out, advice=False, bounds=True)
    decision = found.decision
    assert decision.runner_up is not None
    named = yaml.safe_load((out / "bounds" / decision.choice.name / "hardware.yaml").read_text())["name"]
    assert named == decision.choice.name
    runs = [out / "bounds" / one / "two_layers" for one in (decision.choice.name, decision.runner_up.design.name)]
    told = [json.loads((run / "summary.json").read_text())["payload"]["certificate"]["run"] for run in runs]
    (statement,) = (one for one in found.statements if "After a search" in one.text)
    if told[1]["value"] < told[0]["value"]:
        is_certain = told[0]["lower_bound"] > told[1]["value"]
        assert ("the order is reversed" if is_certain else "the order is open") in statement.text
    elif told[1]["lower_bound"] > told[0]["value"]:
        assert f"is {1 - told[0]['value'] / told[1]['lower_bound']:.1%} below the lower bound" in statement.text
    else:
        assert "could reverse it" in statement.text
    assert main(shlex.split(statement.commands[0])[1:]) == 0
    assert "certain" in capsys.readouterr().out or "certain" not in statement.text


def test_bounds_need_two_designs(tmp_path: Path) -> None:
    """A single design is not searched with bounds, and the text says why."""
    path = written(tmp_path, axes={"lanes": {"path": "operational_array.sizes.0", "values": [4]}}, laws={})
    assert main(["explore", str(path), "-o", str(tmp_path / "one")]) == 0
    found = tilewright.decide(tmp_path / "one", advice=False, bounds=True)
    (told,) = (one.text for one in found.statements if one.topic == CERTAINTY)
    assert told.startswith("No mappings were searched with bounds")
    assert "lanes-0 is the only compared design" in told
    assert not (tmp_path / "one" / "bounds").exists()


def test_lost_statements_are_told(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A note names an option that gave statements of the earlier page and that the new call lacks."""
    told = []
    for options in (["--bounds"], ["--no-advice"], ["--no-advice"], ["--objective", "latency", "--no-advice"]):
        capsys.readouterr()
        assert main(["decide", str(out), *options]) == 0
        told.append([line for line in capsys.readouterr().err.splitlines() if "earlier page" in line])
    page = out / "decision.md"
    assert told[1] == [
        f"note: {page}: the earlier page had statements from `{option}`, the new page has none; add `{option}` to keep"
        " them"
        for option in ("--advice", "--bounds")
    ]
    assert told[0] == told[2] == told[3] == []


def test_files_are_of_one_decision(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A call that only prints changes no file, and another decision removes outdated tables."""
    call = ["decide", str(out), "--no-advice"]
    assert main([*call, "--paper", "column"]) == 0
    files = {path.name: path.read_bytes() for path in out.glob("decision*")}
    assert {"decision.md", "decision.html", "decision-table.csv", "decision-table-column.tex"} <= {*files}
    assert main([*call, "--objective", "latency", "--no-write"]) == 0
    assert main(call) == 0
    assert {path.name: path.read_bytes() for path in out.glob("decision*")} == files
    capsys.readouterr()
    assert main([*call, "--objective", "latency"]) == 0
    assert {path.name for path in out.glob("decision*")} == {"decision.md", "decision.html"}
    said = capsys.readouterr().err
    assert "removed 3 files of an earlier command with other numbers" in said
    assert "decision-table-column.tex" in said


def test_advice_changes_no_energy(out: Path) -> None:
    """The next change to try is a size, a width or a side, never an energy."""
    statements = [one.text for one in tilewright.decide(out).statements if one.topic == "The next change to try"]
    assert statements
    assert not any(re.search(r"unit_energy|_cost: ", one) for one in statements)
    assert all("energies" in one for one in statements)


def test_objectives_and_json(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The choice has the least value in the table for each objective."""
    table = tilewright.explore(out.parent / "lanes.yaml", out)
    columns = {"energy": "energy_pj", "latency": "latency_cycles", "EDP": "edp_pj_cycles", "area": "area_mm2"}
    for objective, column in columns.items():
        if table[column].isna().any():
            assert "the area of" in refused([str(out), "--objective", objective, "--no-advice"], capsys)
            continue
        capsys.readouterr()
        assert main(["decide", str(out), "--objective", objective, "--no-advice", "--json"]) == 0
        told = json.loads(capsys.readouterr().out)
        assert told["choice"][column] == table[column].min()
        assert all(one["text"] for one in told["statements"])


def test_wrong_folders(out: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A folder without an exploration or without the file of its space is refused, and so is a wrong objective."""
    assert "is not there" in refused([str(tmp_path / "nothing")], capsys)
    assert "allowed: a folder that `tilewright explore SPACE -o FOLDER` wrote" in refused([str(tmp_path)], capsys)
    assert "is not a file" not in refused([str(out), "--objective", "speed"], capsys)
    run = out / "bounds-of-a-run"
    for name in ("summary.json", "layers.jsonl"):
        run.mkdir(exist_ok=True)
        (run / name).write_text("{}")
    assert "it is the folder of a run" in refused([str(run)], capsys)
    shutil.rmtree(run)
    moved = tmp_path / "moved"
    shutil.copytree(out, moved)
    assert "name the file" in refused([str(moved)], capsys)
    assert main(["decide", str(moved), "--space", str(out.parent / "lanes.yaml"), "--no-advice"]) == 0
    (moved / "space.txt").unlink()
    assert "does not name the file of its space" in refused([str(moved)], capsys)


def test_spaces_without_a_choice(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`decide` says if there is only one design. It is refused if no design is feasible or if the space has changed."""
    one = written(tmp_path, axes={"kib": {"values": [16]}})
    assert main(["explore", str(one), "-o", str(tmp_path / "one")]) == 0
    capsys.readouterr()
    assert main(["decide", str(tmp_path / "one")]) == 0
    assert "is the only compared design" in capsys.readouterr().out
    none = written(tmp_path, constraints=["energy_pj <= 1"])
    assert main(["explore", str(none), "-o", str(tmp_path / "none")]) == 0
    said = refused([str(tmp_path / "none")], capsys)
    assert "none of 6 evaluated designs has results and meets all constraints" in said
    assert "6 designs with results do not meet the constraint `energy_pj <= 1`" in said
    written(tmp_path, options={"objective": "energy", "lpf_limit": 2})
    assert "no results are up to date" in refused([str(tmp_path / "none")], capsys)


def test_the_margin_stands_beside_the_gap(out: Path, tmp_path: Path) -> None:
    """The text has the largest mapping gap beside the margin, unless the gaps belong to other results."""
    table = tilewright.explore(out.parent / "lanes.yaml", out)
    found = tilewright.decide(out, advice=False)
    (text,) = (one.text for one in found.statements if "It was not examined" in one.text)
    gap = table["mapping_gap"].max()
    assert 0 < table["mapping_gap"].notna().sum() <= 3
    values = table["edp_pj_cycles"].sort_values()
    least, second = values.iloc[0], values.iloc[1]
    assert f"has {second / least - 1:.1%} more EDP than" in text
    assert f"so {1 - least / second:.1%} less would reverse the order" in text
    own = table.set_index("design")["mapping_gap"]
    choice, runner_up = table.sort_values("edp_pj_cycles")["design"].tolist()[:2]
    if own[choice] == own[choice]:
        assert f"could give {choice} itself at most {share(own[choice])} less EDP" in text
    if own[runner_up] == own[runner_up]:
        gap = own[runner_up]
        assert f"could give {runner_up} at most {share(gap)} less EDP" in text
    else:
        assert f"found on one network is {share(gap)} (of" in text
    within = int((values.iloc[1:] * (1 - gap) < least).sum())
    is_open = gap >= 1 - least / second
    assert (f"with such a gap, {within or 'none'} of 5 other designs" in text) == is_open
    assert ("not proven" in text) == is_open
    latency = tilewright.decide(out, "latency", advice=False)
    assert "No gap to the best latency is known." in str(latency)
    moved = tmp_path / "moved"
    shutil.copytree(out, moved)
    (moved / "space.parquet").unlink()
    assert "No gap to the best EDP is known." in str(
        tilewright.decide(moved, advice=False, space=out.parent / "lanes.yaml")
    )
    exploration, _ = gathered(read_space(out.parent / "lanes.yaml"), out)
    assert "mapping_gap" in with_known_gaps(exploration, out).table
    other = replace(exploration, assumptions=("mapping with the least latency", *exploration.assumptions))
    assert "mapping_gap" not in with_known_gaps(other, out).table
    changed = exploration.table.assign(energy_pj=exploration.table["energy_pj"] * 2)
    assert "mapping_gap" not in with_known_gaps(replace(exploration, table=changed), out).table


def test_one_of_several_networks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`--network` decides for this network alone, and each printed command repeats the option."""
    space = written(tmp_path)
    text = (tmp_path / "workload" / "two_layers.yaml").read_text()
    (tmp_path / "workload" / "wide.yaml").write_text(text.replace("[1, 8, 16]", "[1, 64, 256]"))
    networks = ["workload/two_layers.yaml", "workload/wide.yaml"]
    space.write_text(yaml.safe_dump(yaml.safe_load(space.read_text()) | {"networks": networks}, sort_keys=False))
    both = tmp_path / "both"
    assert main(["explore", str(space), "-o", str(both)]) == 0
    whole = tilewright.decide(both, advice=False)
    told = [one for one in whole.statements if " alone would " in one.text]
    alone = [["--network", name, "--no-advice", "--no-write"] for name in ("two_layers", "wide")]
    assert [shlex.split(one.commands[0])[-4:] for one in told] == alone
    page = (both / "decision.md").read_bytes()
    for statement in told:
        assert main(shlex.split(statement.commands[0])[1:]) == 0
    assert (both / "decision.md").read_bytes() == page
    one = tilewright.decide(both, advice=False, network="wide")
    assert re.search(r"least EDP of \d compared designs on wide\n", str(one))
    space.write_text(yaml.safe_dump(yaml.safe_load(space.read_text()) | {"networks": networks[1:]}, sort_keys=False))
    single = tmp_path / "alone"
    assert main(["explore", str(space), "-o", str(single)]) == 0
    other = tilewright.decide(single, advice=False)
    assert one.decision.named == other.decision.named
    assert other.decision.choice.name == whole.decision.alone[1].design
    assert "Only wide is compared, of 2 networks of the space" in str(one)
    commands = [command for statement in one.statements for command in statement.commands]
    assert all("--network wide" in command for command in commands if " compare " in command or " decide " in command)
    capsys.readouterr()
    said = refused([str(single), "--network", "wild"], capsys)
    assert (
        "--network 'wild': the space has no such network" in said or "--network: the space has no such network" in said
    )
    assert "did you mean 'wide'?" in said
