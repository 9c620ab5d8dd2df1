"""`tilewright compare-chips`: the table, JSON, exit codes, and the published cases if they are available."""

import csv
import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from tilewright.base.errors import MappingError
from tilewright.cli.main import main
from tilewright.peers.stream.whole_tiles import MODEL
from tilewright_evidence.chips.case import CaseFiles, read_case
from tilewright_evidence.chips.comparison import CaseComparison, compare_case
from tilewright_evidence.chips.run import STREAM_2023_SWITCHES, CaseRunner

from tests.unit.evidence.chips.cases import RUN, write_case

PUBLISHED = Path(__file__).resolve().parents[4] / "shared" / "validation"
needs_published = pytest.mark.skipif(
    not PUBLISHED.is_dir(), reason="the published cases ../shared/validation are not beside this checkout"
)


def test_the_table_has_a_row_for_each_case(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The table has measured and reference cycles, both models and deviations; unknown values are dashes."""
    write_case(tmp_path / "known")
    write_case(tmp_path / "unknown", expected=None)
    assert main(["compare-chips", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    known, unknown = (
        next(line.split() for line in lines if line.startswith(f"{name} ")) for name in ("known", "unknown")
    )
    assert known == ["known", "100", "90", "-10.0", "%", "31", "-65.6", "%", "-69.0", "%", "33", "-67.0", "%"]
    assert unknown == ["unknown", "-", "-", "-", "31", "-", "-", "33", "-"]


def test_json_has_everything(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """JSON has the chosen cases with their steps and layers."""
    for name in ("a", "b"):
        write_case(tmp_path / name)
    assert main(["compare-chips", str(tmp_path), "--case", "b", "--steps", "--json"]) == 0
    (case,) = json.loads(capsys.readouterr().out)
    assert (case["case"], case["measured_cycles"], case["stream_2023"]["latency_cycles"]) == ("b", 100, 31)
    assert (case["nodes"], case["edges"]) == (6, 2 + 2 + 7)
    assert [step["latency_cycles"] for step in case["steps"]][:: len(case["steps"]) - 1] == [31, 33]
    assert [layer["causal_cycles"] for layer in case["layers"]] == [[1, 1, 2, 4], [3, 3, 4, 6]]


@pytest.mark.parametrize("steps", [[], ["--steps", "-v"]])
def test_text_with_steps_and_layers(tmp_path: Path, capsys: pytest.CaptureFixture[str], steps: list[str]) -> None:
    """Layers that differ from the reference tool are printed, and steps are printed on request."""
    expected = {
        "layers": {0: {"cycles": [1, 1, 1, 2]}, 1: {"cycles": [3, 3, 3, 5]}},
        "graph": {"nb_cns": 6, "nb_edges": 9},
    }
    write_case(tmp_path / "tiny", expected=expected)
    assert main(["compare-chips", str(tmp_path), *steps]) == 0
    text = capsys.readouterr().out
    assert "6 computation nodes, 11 edges; reference 6, 9" in text
    assert "3, 3, 3, 5" in text
    assert ("halos are shared" in text) == bool(steps)


def test_wrong_input_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A missing folder, a wrong value and an unknown loop end with exit code 2, without a traceback."""
    assert main(["compare-chips", str(tmp_path / "nowhere")]) == 2
    write_case(tmp_path / "a", run={**RUN, "cn_define_mode": 7})
    assert main(["compare-chips", str(tmp_path)]) == 2
    write_case(tmp_path / "a", run={**RUN, "hint_loops": [["OZ", "all"]]})
    assert main(["compare-chips", str(tmp_path)]) == 2
    text = capsys.readouterr().err
    assert "no such folder" in text
    assert "cn_define_mode" in text
    assert "OZ" in text
    assert "Traceback" not in text


def test_what_is_wrong_with_a_case_does_not_keep_the_others_from_being_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A correct case is printed beside the problems of two wrong ones, with exit code 2, as text and as JSON."""
    write_case(tmp_path / "sound")
    write_case(tmp_path / "cut", run={**RUN, "hint_loops": [["OZ", "all"]]})
    write_case(tmp_path / "short", mapping=None)
    for options in ([], ["--json"]):
        assert main(["compare-chips", str(tmp_path), *options]) == 2
        out, err = capsys.readouterr()
        assert "sound" in out
        assert "cut" not in out
        for part in ("OZ", "mapping.yaml is missing"):
            assert part in err
        assert "Traceback" not in err
    assert [case["case"] for case in json.loads(out)] == ["sound"]


def test_a_model_without_a_schedule_leaves_the_other_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model without a schedule has a dash and its reason, with exit code 2; the working steps are printed."""

    def none(*_: object) -> None:
        raise MappingError("there is no path from core 2 to core 1")

    monkeypatch.setattr("tilewright.peers.stream.whole_tiles.MODEL", MODEL._replace(simulate=none))
    write_case(tmp_path / "tiny")
    assert main(["compare-chips", str(tmp_path), "--steps"]) == 2
    out, err = capsys.readouterr()
    (row,) = (line.split() for line in out.splitlines() if line.startswith("tiny  "))
    assert row == ["tiny", "100", "90", "-10.0", "%", "-", "-", "-", "33", "-67.0", "%"]
    assert "tiny (stream-2023)" in err
    assert "there is no path from core 2 to core 1" in err
    assert out.count("transfers share links") == 1


def test_steps_say_where_the_time_goes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The steps say when the core of the last layer begins, computes and waits, for both models (test_run.py)."""
    write_case(tmp_path / "tiny")
    assert main(["compare-chips", str(tmp_path), "--steps"]) == 0
    text = capsys.readouterr().out
    assert "stream-2023: 15 cycles until core 1: core begins, 12 computing, 0 waiting in between, 4 until" in text
    assert "causal: 17 cycles until core 1: core begins, 12 computing, 0 waiting in between, 4 until" in text


def compared(name: str) -> CaseComparison:
    """Compare a published case."""
    return compare_case(read_case(name, CaseFiles(PUBLISHED / name)))


@needs_published
@pytest.mark.parametrize(("name", "energy_deviation"), [("depfin", 3e-4), ("aimc", 1e-12)])
def test_published_cases_are_reproduced(name: str, energy_deviation: float) -> None:
    """Published cases have the latency, nodes, edges and layer cycles of the reference, and nearly its energy."""
    found = compared(name)
    assert found.stream_2023.latency_cycles == found.reference_cycles
    assert found.stream_2023.energy_pj == pytest.approx(found.reference_energy_pj, rel=energy_deviation)
    assert (found.nodes, found.edges) == (found.reference_nodes, found.reference_edges)
    assert all(layer.stream_2023_cycles == layer.reference_cycles for layer in found.layers)
    assert found.causal_lower_bound_cycles <= found.causal.latency_cycles


@needs_published
@pytest.mark.parametrize("name", ["depfin", "aimc"])
def test_every_node_of_published_cases_runs_when_it_did(name: str) -> None:
    """Each computation node of a published case starts and ends as in the reference tool."""
    run = CaseRunner(read_case(name, CaseFiles(PUBLISHED / name))).run(STREAM_2023_SWITCHES)
    first = np.array([layer.first_cn for layer in run.graph.layers])
    with gzip.open(PUBLISHED / name / "cn_schedule.csv.gz", "rt") as file:
        rows = [[int(row[key]) for key in ("layer", "cn", "start", "end")] for row in csv.DictReader(file)]
    table = np.array(rows)
    cn = first[table[:, 0]] + table[:, 1]
    assert np.array_equal(np.sort(cn), np.arange(run.graph.cn_count))
    assert np.array_equal(run.schedule.start_cycles[cn], table[:, 2])
    assert np.array_equal(run.schedule.end_cycles[cn], table[:, 3])
