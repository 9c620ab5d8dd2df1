"""`--strict` of the steps for several cores: an option without effect is reported, or refused before any work."""

import json
from pathlib import Path

import pytest
from tilewright.base.artifacts.envelope import read_artifact
from tilewright.cli.main import main

from tests.unit.cli.multi_core import GA, cut_and_cost, given, inputs, write_network

SALSA = ["--temporal-mapping-search-engine", "salsa", "--lpf-limit", "4"]
LIST_SCHEDULER = ["--schedule-model", "stream-2023", "--share-divisor", "2"]
WITHOUT_EFFECT = {
    "cost": (SALSA, "lpf_limit"),
    "allocate": (LIST_SCHEDULER, "share_divisor"),
    "schedule": (LIST_SCHEDULER, "share_divisor"),
}
"""Maps a step to options, one of which has no effect, and the name of this option."""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Cut, cost and allocate a network in one folder."""
    folder = tmp_path_factory.mktemp("run")
    network = write_network(folder)
    cut_and_cost(network, folder)
    assert main(["allocate", *inputs(network, folder), *GA, "-o", str(folder)]) == 0
    return folder


def words_of(step: str, run: Path) -> list[str]:
    """Return the call of a step, in which each option has an effect."""
    network = run / "net.onnx"
    if step == "cost":
        return [step, *given(network), "--cns", str(run), "--core", "left", "--no-store"]
    more = GA if step == "allocate" else ["--core-allocation", str(run / "allocation.json")]
    return [step, *inputs(network, run), *more]


@pytest.mark.parametrize("step", WITHOUT_EFFECT)
def test_an_option_without_effect(step: str, run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An option without effect is reported and recorded; --strict refuses it by name and writes nothing."""
    options, name = WITHOUT_EFFECT[step]
    place, words = tmp_path / ("left.jsonl" if step == "cost" else "out"), words_of(step, run)
    assert main([*words, *options, "--strict", "-o", str(place)]) == 2
    said = capsys.readouterr().err
    assert f"--{name.replace('_', '-')}" in said
    assert "which the option --strict forbids" in said
    assert not place.exists()
    assert main([*words, *options, "-o", str(place)]) == 0
    assert f"--{name.replace('_', '-')}" in capsys.readouterr().err
    assert [row["key"] for row in kept(step, place)["unused"]] == [name]


def kept(step: str, place: Path) -> dict[str, object]:
    """Return the part of the result that records unused options."""
    if step == "schedule":
        summary: dict[str, object] = json.loads((place / "summary.json").read_text())["payload"]
        return summary
    return dict(read_artifact(place if step == "cost" else place / "allocation.json").provenance)


@pytest.mark.parametrize("step", ["cost", "allocate", "schedule"])
def test_strict_lets_everything_else_pass(step: str, run: Path, tmp_path: Path) -> None:
    """`--strict` passes if each option has an effect."""
    assert main([*words_of(step, run), "--strict", "-o", str(tmp_path / "out")]) == 0
