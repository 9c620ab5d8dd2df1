"""Scripts from the documentation of ZigZag and Stream: they run, agree with the verbs, and translate into commands."""

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
import tilewright
from tilewright.cli.main import main
from tilewright.main_stage import MainStage
from tilewright.main_stage.theirs import run_script, stages_of

from tests.unit.main_stage.conftest import PROJECT
from tests.workflow.multi_projects import create_multi

SCRIPTS = Path(__file__).parent / "scripts"
NETWORKS = ["bert_tiny", "resnet18"]


def arguments(network: str) -> list[str]:
    """Return the arguments of scripts for one core, with shipped files."""
    config = PROJECT / "config"
    hardware, mapping = (
        config / "hardware" / "zigzag" / "tpu_like.yaml",
        config / "mapping" / "zigzag" / "tpu_like.yaml",
    )
    model = config / "workload" / f"{network}.onnx"
    return ["--accelerator", str(hardware), "--model", str(model), "--mapping", str(mapping)]


def answers_of(script: str, words: list[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run a script and return the results of its `run()`."""
    found = []
    original = MainStage.run

    def noting(self: MainStage) -> Any:
        found.append(original(self))
        return found[-1]

    monkeypatch.setattr(MainStage, "run", noting)
    run_script(SCRIPTS / script, words)
    return found[0]


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("script", ["zigzag_main.py", "zigzag_later.py"])
def test_scripts_for_one_core(script: str, network: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Scripts for one core give the layers of `tilewright.map`, and save one list of evaluations."""
    words = arguments(network)
    answers = answers_of(script, words, monkeypatch)
    mapped = tilewright.map(words[3], words[1], words[5], preset="zigzag")
    found = {name: record for record in mapped.records for name in record.names}
    assert [cme.layer.name for cme, _ in answers] == [layer.name for _, (layer, _) in answers]
    assert len(answers) == len(found)
    for cme, _ in answers:
        assert (cme.energy_total, cme.latency_total2) == (
            found[cme.layer.name].energy_pj,
            found[cme.layer.name].latency_cycles,
        )
    (saved,) = Path("outputs").glob("*.json")
    assert sorted(one["energy"] for one in json.loads(saved.read_text())) == sorted(
        cme.energy_total for cme, _ in answers
    )


def test_the_script_for_several_cores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The script for several cores gives the schedule of `run_multi_core` with the same settings, and its files."""
    words = system(tmp_path)
    (scme,), _ = answers_of("stream_main.py", words, monkeypatch)
    result = tilewright.run_multi_core(
        words[1],
        words[0],
        words[2],
        split_layers=True,
        cn_define_mode=1,
        hint_loops=[["OY", "all"]],
        nb_ga_individuals=32,
        nb_ga_generations=100,
        scheduler_candidate_selection="memory",
    )
    assert (scme.latency, scme.energy) == (result.latency_cycles, result.energy_pj)
    assert f"latency {scme.latency}, energy {scme.energy}" in capsys.readouterr().out
    for name in ("schedule.svg", "schedule_memory.svg", "split.onnx", "cost_lut.pickle"):
        assert (Path("outputs") / name).exists(), name
    assert scme.plot_full_schedule(str(tmp_path / "own.png"))[0].is_file()


def system(folder: Path) -> list[str]:
    """Write a small network on two cores and return the files."""
    project = create_multi(folder / "project").root / "config"
    hardware = next((project / "hardware").glob("*.yaml"))
    mapping = next((project / "mapping").glob("*.yaml"))
    return [str(hardware), str(project / "workload" / "net.onnx"), str(mapping)]


@pytest.mark.parametrize("script", ["zigzag_main.py", "zigzag_later.py"])
def test_commands_of_a_translation_say_the_same(script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The printed command and the pipeline give the sums of the script."""
    words = arguments("bert_tiny")
    answers = answers_of(script, words, monkeypatch)
    told = tilewright.translate(SCRIPTS / script, words)
    (command,) = told.commands()
    assert main(shlex.split(command)[1:]) == 0
    summary = json.loads((Path(told.output) / "summary.json").read_text())["payload"]
    assert summary["latency_cycles"] == sum(cme.latency_total2 for cme, _ in answers)
    assert summary["energy_pj"] == pytest.approx(sum(cme.energy_total for cme, _ in answers), rel=1e-12)
    monkeypatch.undo()
    pipeline = stages_of(SCRIPTS / script, words).pipeline()
    mapped = tilewright.map(words[3], words[1], words[5], pipeline=pipeline, exports="exports")
    assert mapped.summary["energy_pj"] == summary["energy_pj"]


def test_commands_for_several_cores_say_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The printed commands for several cores give the latency and energy of the script."""
    words = system(tmp_path)
    scmes, _ = answers_of("stream_main.py", words, monkeypatch)
    told = tilewright.translate(SCRIPTS / "stream_main.py", words)
    for command in told.commands():
        assert main(shlex.split(command)[1:]) == 0, command
    summary = json.loads((Path(told.output) / "summary.json").read_text())["payload"]
    assert (summary["latency_cycles"], summary["energy_pj"]) == (scmes[0].latency, scmes[0].energy)
    assert "plot_file_name has a counterpart in tilewright: tilewright report" in told.text()
