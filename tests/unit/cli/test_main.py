"""The command line: help, exit codes, messages, output."""

import json
import re
from pathlib import Path

import click
import pytest
import tilewright
from tilewright.base.objectives import BUILT_IN
from tilewright.cli import main as dispatch
from tilewright.cli.main import GROUPS, VERBS, cli, main
from tilewright.cli.old_names import OLD_VERBS

PROJECT = Path(__file__).resolve().parents[3]
HARDWARE = str(PROJECT / "config" / "hardware" / "zigzag" / "tpu_like.yaml")
MAPPING = str(PROJECT / "config" / "mapping" / "zigzag" / "tpu_like.yaml")
TINY = PROJECT / "tests" / "workflow" / "tiny"
TINY_NETWORK = str(TINY / "workload" / "two_layers.yaml")
TINY_CORE = str(TINY / "hardware" / "narrow.yaml")
TINY_MAPPING = str(TINY / "mapping" / "free.yaml")
DESCRIBED = ["--hardware", TINY_CORE, "--workload", TINY_NETWORK]


@pytest.mark.parametrize("kind", ["hardware", "workload", "mapping"])
def test_a_file_says_what_it_is(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    """`parse FILE` equals `parse KIND FILE` if the keys of the file tell its kind."""
    path = {"hardware": TINY_CORE, "workload": TINY_NETWORK, "mapping": TINY_MAPPING}[kind]
    assert main(["parse", path]) == 0
    said = capsys.readouterr().out
    assert main(["parse", kind, path]) == 0
    assert capsys.readouterr().out == said != ""
    assert main(["parse", "config/none.yaml"]) == 2


def commands(group: click.Group, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Return all commands with the verbs that lead to them."""
    found = []
    for name in group.list_commands(click.Context(group)):
        command = group.get_command(click.Context(group), name)
        found += commands(command, (*path, name)) if isinstance(command, click.Group) else [(*path, name)]
    return found


@pytest.mark.parametrize("verbs", commands(cli))
def test_every_command_explains_itself(verbs: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    """Each command has help with an example, -v and --json, and the files in the help exist."""
    assert main([*verbs, "--help"]) == 0
    text = capsys.readouterr().out
    assert f"Example: tilewright {verbs[0]}" in text
    assert "--verbose" in text
    assert "--json" in text
    unwrapped = re.sub(r"([-/])\n\s+", r"\1", text)
    files = re.findall(r"(?<![\w/.])(?:config|docs|tests|workflow)/[\w./-]*\w", unwrapped)
    assert [file for file in files if not (PROJECT / file).exists()] == []


def test_all_verbs_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    """The list of verbs is complete."""
    assert main(["--help"]) == 0
    text = capsys.readouterr().out
    assert [verb for verb in VERBS if f"\n  {verb} " not in text] == []
    assert [verb for verbs in GROUPS.values() for verb in verbs] == list(VERBS)
    assert [heading for heading in GROUPS if f"\n{heading}:\n" not in text] == []


@pytest.mark.parametrize(("old", "new"), OLD_VERBS.items())
def test_an_old_verb_works_and_says_its_name(old: str, new: str, capsys: pytest.CaptureFixture[str]) -> None:
    """An old verb has the same help and one line on stderr, and is not in the list of verbs."""
    assert main([new, "--help"]) == 0
    expected = capsys.readouterr()
    assert main([old, "--help"]) == 0
    said = capsys.readouterr()
    assert said.out == expected.out
    assert expected.err == ""
    assert said.err == f"`{old}` is now called `{new}`; the old name works until 0.2.0\n"
    assert main(["--help"]) == 0
    assert f"\n  {old} " not in capsys.readouterr().out
    assert old not in VERBS


@pytest.mark.parametrize(("old", "new"), OLD_VERBS.items())
def test_an_old_function_is_the_new_one(old: str, new: str) -> None:
    """The old name of a function names the new function."""
    assert getattr(tilewright, old) is getattr(tilewright, new.replace("-", "_"))


def test_an_old_verb_takes_arguments(capsys: pytest.CaptureFixture[str]) -> None:
    """An old verb writes the same on stdout as the new one."""
    assert main(["cost-library", "hbm2", "--json"]) == 0
    expected = capsys.readouterr().out
    assert main(["costs", "hbm2", "--json"]) == 0
    assert capsys.readouterr().out == expected != ""


def test_unknown_verb(capsys: pytest.CaptureFixture[str]) -> None:
    """A misspelt verb is a user error with the nearest one."""
    assert main(["prase"]) == 2
    assert "Did you mean 'parse'?" in capsys.readouterr().err


def test_user_errors_come_all_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Problems of several files are reported together, one a line, with exit code 2."""
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text(Path(TINY_CORE).read_text().replace("r_cost", "r_cots"))
    assert main(["validate", str(wrong), str(tmp_path / "none.yaml"), MAPPING]) == 2
    said = capsys.readouterr()
    assert said.err.count("did you mean 'r_cost'?") == 2
    assert "none.yaml: no such file" in said.err
    assert "Traceback" not in said.err
    assert "tpu_like.yaml: mapping, no problems" in said.out


def test_our_bugs_are_told_apart(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """An unexpected exception has exit code 1, asks for a report, and shows its traceback only with -v."""

    def fail(*_: object) -> None:
        raise ZeroDivisionError("oops")

    monkeypatch.setattr("tilewright.hardware.yaml_reader.read_accelerator", fail)
    assert main(["parse", "hardware", HARDWARE]) == 1
    said = capsys.readouterr().err
    assert "Please report" in said
    assert "Traceback" not in said
    assert main(["parse", "hardware", HARDWARE, "-v"]) == 1
    assert "Traceback" in capsys.readouterr().err


def test_interrupt_says_what_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ctrl-C during a search gives exit code 130 and one line about the kept results."""

    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("tilewright.pipeline.stages.run.map_problem", interrupt)
    assert main(["map", *DESCRIBED, "--mapping", TINY_MAPPING, "--store", str(tmp_path)]) == dispatch.INTERRUPTED
    (said,) = [line for line in capsys.readouterr().err.splitlines() if not line.startswith("note: ")]
    assert said.startswith("interrupted: results are kept in")
    assert "(0 finished layers)" in said


def test_broken_options_are_user_errors(capsys: pytest.CaptureFixture[str]) -> None:
    """A wrong value of an option gives exit code 2 and the allowed values."""
    assert main(["map", *DESCRIBED, "--mapping", TINY_MAPPING, "--lpf-limit", "0"]) == 2
    assert main(["map", *DESCRIBED, "--mapping", TINY_MAPPING, "--objective", "speed"]) == 2
    assert main(["map", *DESCRIBED, "--mapping", TINY_MAPPING, "--model", "zigzag-3.9.0"]) == 2
    said = capsys.readouterr().err
    assert "--lpf-limit: not a count, got 0 (allowed: integers from 1)" in said
    assert f"objective: unknown value, got 'speed' (allowed: {', '.join(BUILT_IN)})" in said
    assert "did you mean 'zigzag-3.9.1'?" in said


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a small run and return its folder."""
    folder = tmp_path_factory.mktemp("run")
    assert main(["map", *DESCRIBED, "--mapping", TINY_MAPPING, "-o", str(folder), "--no-store"]) == 0
    return folder


def test_export_reads_back_to_the_same_numbers(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exported mappings give exactly the energy and latency of the run, evaluated or mapped again."""
    found = str(tmp_path / "found.yaml")
    assert main(["export", str(run), "--hardware", TINY_CORE, "-o", found]) == 0
    capsys.readouterr()
    assert main(["evaluate", *DESCRIBED, "--mapping", found, "--json"]) == 0
    evaluated = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert main(["map", *DESCRIBED, "--mapping", found, "--no-store", "--json"]) == 0
    mapped = json.loads(capsys.readouterr().out)["records"]
    rows = [json.loads(line) for line in (run / "layers.jsonl").read_text().splitlines()[1:-1]]
    for key in ("energy_pj", "latency_cycles", "energy_breakdown_pj", "latency_breakdown_cycles"):
        assert [row[key] for row in evaluated] == [row[key] for row in rows] == [row[key] for row in mapped]


def test_evaluate_refuses_open_orders(capsys: pytest.CaptureFixture[str]) -> None:
    """`evaluate` refuses a mapping with open loops and says what to do."""
    assert main(["evaluate", *DESCRIBED, "--mapping", TINY_MAPPING]) == 2
    said = capsys.readouterr().err
    assert "temporal_ordering does not fix every loop; give every loop with its size, or use `tilewright map`" in said
    assert "Traceback" not in said


def test_check_and_summary_of_a_run(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`check`, `summarize` and `validate` work on a folder, and `summarize` refuses one without a run."""
    assert main(["check", str(run), "--hardware", TINY_CORE, "-o", str(tmp_path / "checks.json")]) == 0
    assert main(["summarize", str(run), "--csv", str(tmp_path / "s.csv")]) == 0
    assert main(["validate", str(run / "layers.jsonl"), str(tmp_path / "checks.json")]) == 0
    assert main(["summarize", str(tmp_path)]) == 2
    assert "no finished run" in capsys.readouterr().err
