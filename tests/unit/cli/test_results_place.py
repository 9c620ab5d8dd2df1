"""Where the results of a configuration lie."""

from pathlib import Path
from typing import Any

import pytest
from tilewright.cli.config import plan_of
from tilewright.cli.main import main
from tilewright.cli.results import unfinished_spaces
from tilewright.cli.runs import read_unfinished
from tilewright.configuration.run import Plan
from tilewright.errors import InputError
from tilewright.yamlfile import load_yaml

TEXT = "runs: {a: {workload: net, hardware: core, mapping: free}}\n"


@pytest.fixture(autouse=True)
def _project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for kind, name in (("hardware", "core"), ("workload", "net"), ("mapping", "free")):
        Path("config", kind).mkdir(parents=True)
        Path("config", kind, f"{name}.yaml").write_text("memories: {}\n")


def place(*files: str, text: str = TEXT) -> str:
    """The folder of results of configuration files; writes them."""
    for file in files:
        Path(file).parent.mkdir(parents=True, exist_ok=True)
        Path(file).write_text(text)
    documents = [load_yaml(file) for file in files]
    return str(plan_of(documents[-1].data, documents).results)


def test_each_file_has_a_folder_of_its_own() -> None:
    """results/ for the default one, however it is written; others under their names, several under all of them."""
    assert place("config/config.yaml") == place(str(Path("config/config.yaml").resolve())) == "results"
    assert place("mine.yaml") == "results/configurations/mine"
    assert place("config/pareto.yaml") == "results/configurations/pareto"
    assert place("a b{c}.yaml") == "results/configurations/a_b_c_"
    assert place("config/config.yaml", "over.yaml") == "results/configurations/config+over"
    assert place("mine.yaml", text=f"results_dir: out/x\n{TEXT}") == "out/x"


@pytest.mark.parametrize(
    ("said", "part"),
    [
        ("results", "is the folder of config/config.yaml"),
        ("results/front/x", "lies in the results of config/config.yaml"),
        ("results/single/x", "lies in the results of config/config.yaml"),
        ("'{run}'", "not a folder for results"),
        ("../out", "not a folder for results"),
        ("3", "not a folder for results"),
        ("''", "not a folder for results"),
    ],
)
def test_wrong_folders(said: str, part: str) -> None:
    """Told at the key, with its line."""
    with pytest.raises(InputError) as caught:
        place("mine.yaml", text=f"results_dir: {said}\n{TEXT}")
    assert part in str(caught.value)
    assert str(caught.value).startswith("mine.yaml:1 results_dir: ")


def test_a_folder_belongs_to_one_file(capsys: pytest.CaptureFixture[str]) -> None:
    """Another file of that name is refused while the first one is there; a file that moved takes its results along."""
    place("a/mine.yaml")
    assert main(["results", "a/mine.yaml", "--claim"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "results/configurations/mine",
        "results/configurations/mine/logs",
    ]
    with pytest.raises(InputError, match="results of another configuration are there"):
        place("b/mine.yaml")
    assert place("a/mine.yaml") == "results/configurations/mine"
    Path("a/mine.yaml").unlink()
    assert place("b/mine.yaml") == "results/configurations/mine"


def plan_text(changes: dict[str, tuple[str, str]]) -> str:
    """What `snakemake --summary` says: file -> date and plan, up to date unless said otherwise."""
    files = dict.fromkeys(
        ("results/single/a/summary.json", "results/single/a/checks.json", "results/summary.csv"), ("today", "no update")
    )
    lines = [f"{file}\t{date}\trule\tlog\tok\t{plan}" for file, (date, plan) in (files | changes).items()]
    return "\n".join(["output_file\tdate\trule\tlog-file(s)\tstatus\tplan", *lines]) + "\n"


@pytest.mark.parametrize(
    ("changes", "state"),
    [
        ({}, None),
        ({"results/summary.csv": ("-", "update pending")}, None),
        ({"results/single/a/summary.json": ("-", "update pending")}, "failed"),
        ({"results/single/a/summary.json": ("today", "update pending")}, "stale"),
        ({"results/single/a/checks.json": ("-", "update pending")}, "failed"),
    ],
)
def test_unfinished_runs(changes: Any, state: str | None, capsys: pytest.CaptureFixture[str]) -> None:
    """A run is done if all of its files are there and up to date; without a result it failed; with one of before a
    change it is stale."""
    place("config/config.yaml")
    Path("plan.txt").write_text(plan_text(changes))
    assert main(["results", "config/config.yaml", "--plan", "plan.txt", "-o", "out.json"]) == 0
    row = {"run": "a", "flow": "single", "state": state, "workload": "net", "core": "core"}
    found = read_unfinished(Path("out.json"))
    assert found == ([row] if state else [])


def test_unfinished_spaces() -> None:
    """Explorations and complete fronts of one file each have a folder and a state of their own."""
    spaces = {"lanes": "lanes.yaml"}
    plan = Plan((), {}, {}, Path("results"), Path("logs"), spaces, spaces)
    folders = "results/space/lanes", "results/front/lanes"
    for unfinished in ((), folders[:1], folders[1:], folders):
        text = plan_text(
            {f"{name}/a.csv": ("today", "update pending" if name in unfinished else "no update") for name in folders}
        )
        assert [row["folder"] for row in unfinished_spaces(plan, text)] == list(unfinished)


def test_a_wrong_list_of_unfinished_runs_is_told() -> None:
    """No traceback."""
    Path("wrong.json").write_text("[1]")
    assert main(["summarize", "--unfinished", "wrong.json"]) == 2
    assert main(["pareto", "--unfinished", "none.json"]) == 2
