"""Sides of `tilewright compare`: designs of a space are compared as their full runs."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from tilewright.cli.main import main

from tests.unit.designs.system_cases import BERT, HARDWARE, QUICK, SIZE

TINY = Path(__file__).resolve().parents[2] / "workflow" / "tiny"
WORKLOAD, MAPPING = TINY / "workload/two_layers.yaml", TINY / "mapping/free.yaml"
AXES = {
    "lanes": {"path": "operational_array.sizes.0", "values": [4, 8]},
    "clock": {"path": "clock_frequency", "values": ["200 MHz", "500 MHz"]},
}
OPTIONS = {"objective": "latency", "lpf_limit": 3}


def _sourced_hardware() -> dict[str, Any]:
    """Hardware with a clock, and with a memory whose costs come from the library."""
    hardware: dict[str, Any] = yaml.safe_load((TINY / "hardware/wide.yaml").read_text())
    memory = hardware["memories"]["memory"]
    for key in ("r_cost", "w_cost", "area"):
        del memory[key]
    memory["cost"] = {"from": "sram", "node_nm": 45}
    return {**hardware, "clock_frequency": "200 MHz"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Folder with a space of four designs and its results, and with a run on another core without a clock."""
    (tmp_path / "base.yaml").write_text(yaml.safe_dump(_sourced_hardware()))
    space = {"accelerator": str(tmp_path / "base.yaml"), "mapping": str(MAPPING), "networks": [str(WORKLOAD)]}
    _write_space(tmp_path, {**space, "axes": AXES, "options": OPTIONS})
    assert main(["explore", str(tmp_path / "cut.yaml"), "-o", str(tmp_path / "cut")]) == 0
    _map(TINY / "hardware/narrow.yaml", tmp_path / "run")
    return tmp_path


def _write_space(folder: Path, space: dict[str, Any]) -> None:
    (folder / "cut.yaml").write_text(yaml.safe_dump(space, sort_keys=False))


def _map(hardware: Path, run: Path) -> None:
    given = ["--hardware", str(hardware), "--workload", str(WORKLOAD), "--mapping", str(MAPPING)]
    options = ["--lpf-limit", "3", "--objective", "latency", "--temporal-mapping-search-engine", "loma", "--no-store"]
    assert main(["map", *given, *options, "-o", str(run)]) == 0


def _compared(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[dict[str, Any], str]:
    """Pair (comparison as a JSON object, text on standard error)."""
    capsys.readouterr()
    assert main(["compare", *map(str, arguments), "--json"]) == 0
    said = capsys.readouterr()
    return json.loads(said.out), said.err


def test_a_design_is_compared_as_its_run(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A comparison with a design says the same as with the run of `map` on the hardware file of the design.

    The comparison is the same in both orders, between two designs, and if `explore --show` has written the runs.
    """
    names = ["cut-0", "cut-3"]
    designs = [f"{folder / 'cut'}:{name}" for name in names]
    pairs = [(designs[0], folder / "run"), (folder / "run", designs[0]), tuple(designs)]
    first = [_compared(capsys, *pair) for pair in pairs]
    assert all("is run again" in told for _, told in first)
    assert not (folder / "cut/designs").exists()
    for name in names:
        assert main(["explore", str(folder / "cut.yaml"), "-o", str(folder / "cut"), "--show", name]) == 0
        _map(folder / "cut/designs" / name / "hardware.yaml", folder / name)
    again = [_compared(capsys, *pair) for pair in pairs]
    assert not any("is run again" in told for _, told in again)
    runs = [folder / name for name in names]
    expected = [_compared(capsys, *pair)[0] for pair in ((runs[0], pairs[0][1]), (pairs[1][0], runs[0]), tuple(runs))]
    assert [one for one, _ in first] == expected
    assert [one for one, _ in again] == expected


def test_a_comparison_with_a_design_knows_its_hardware(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A comparison names clocks, sources of energies and layers of a design, and tries all energies and bandwidths."""
    said, _ = _compared(capsys, f"{folder / 'cut'}:cut-0", f"{folder / 'cut'}:cut-3")
    told = " ".join(said["notes"])
    assert "clocks differ: compare by time" in told
    assert "not known" not in told
    assert said["differs"] == ["hardware"]
    assert {row["layer"] for row in said["differences"]} == {"first", "second"}
    mixed = " ".join(_compared(capsys, folder / "run", f"{folder / 'cut'}:cut-0")[0]["notes"])
    assert "energies of memories have different sources: " in mixed
    assert "no clock given: narrow" in mixed


def test_mappings_of_designs_are_searched_again(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The options that search again also take designs, with the network file of the space."""
    pair = f"{folder / 'cut'}:cut-0", f"{folder / 'cut'}:cut-3"
    said, _ = _compared(capsys, *pair, "--batches", "2", "--sizes")
    assert said["batch_turns"]
    assert "size_turns" in said


def test_a_changed_space_gives_no_runs(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A design is compared by its sums in the tables if the space file has changed, or is not there.

    New searches then are refused with the reason.
    """
    pair = f"{folder / 'cut'}:cut-0", f"{folder / 'cut'}:cut-3"
    path = folder / "cut.yaml"
    space = yaml.safe_load(path.read_text())
    clocks = {**AXES["clock"], "values": ["200 MHz", "600 MHz"]}
    _write_space(folder, {**space, "axes": {**AXES, "clock": clocks}})
    reasons = ["cut.yaml does not give the results in these tables any more: run `tilewright explore "]
    said, _ = _compared(capsys, *pair)
    assert not any("cut-0: only its sums" in one for one in said["notes"])
    assert any(one.startswith("cut-3: only its sums") and reasons[0] in one for one in said["notes"])
    path.unlink()
    said, _ = _compared(capsys, *pair)
    assert sum("the file of the space is not at " in one for one in said["notes"]) == 2
    assert main(["compare", *pair, "--sizes"]) == 2
    refused = "cannot be searched again, which the option --sizes needs: the file of the space is not at "
    assert refused in capsys.readouterr().err


def test_designs_of_several_cores_are_compared_as_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Designs of several cores, too, are compared by layer; they cannot be searched again."""
    size = {"path": SIZE, "values": ["64 KiB", "256 KiB"]}
    space = {"accelerator": str(HARDWARE / "quad_core.yaml"), "networks": {"bert": str(BERT)}, "options": QUICK}
    _write_space(tmp_path, {**space, "axes": {"size": size}})
    assert main(["explore", str(tmp_path / "cut.yaml"), "-o", str(tmp_path / "cut")]) == 0
    pair = f"{tmp_path / 'cut'}:cut-0", f"{tmp_path / 'cut'}:cut-1"
    said, _ = _compared(capsys, *pair)
    assert said["a"]["several_cores"]
    assert len({row["layer"] for row in said["differences"]}) > 2
    assert main(["compare", *pair, "--search-again"]) == 2
    refused = capsys.readouterr().err
    assert f"{pair[0]} cannot be searched again, which the option --search-again needs: it is not" in refused
