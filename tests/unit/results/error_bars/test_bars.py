"""Error bars of runs: output and stored values of `map`, `compare` and `audit`, and refused runs."""

import json
from pathlib import Path
from typing import Any

import pytest
import tilewright
import yaml
from tilewright.base.errors import InputError
from tilewright.cli.main import main
from tilewright.cli.run_ledgers import ledger_at
from tilewright.results.error_bars.bars_text import cycles_text
from tilewright.results.error_bars.draws import ends, predicted_of_ledger, predicted_run, time_samples
from tilewright.results.error_bars.faster import classes_of, faster_text
from tilewright.results.error_bars.table import ANY, error_table
from tilewright.search.options import MACHINE_CLASSES

EXAMPLES = Path(__file__).parents[4] / "docs/examples"
NAMES = {"hardware": "accelerator", "workload": "workload", "mapping": "mapping"}
FILES = {name: str(EXAMPLES / f"{file}.yaml") for name, file in NAMES.items()}


def hardware(folder: Path, name: str, **keys: Any) -> str:
    """A hardware file of the examples with further keys."""
    document = yaml.safe_load(Path(FILES["hardware"]).read_text()) | keys
    path = folder / f"{name}.yaml"
    path.write_text(yaml.safe_dump(document, sort_keys=False))
    return str(path)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Folders of two runs: `plain` on the example's hardware, and `calls` with keys for calls added to the hardware."""
    folder = tmp_path_factory.mktemp("runs")
    for name, keys in (("plain", {}), ("calls", {"call_cycles": 500, "calls_in_flight": 2})):
        words = ["--error-bars", "host-driven-array"] if name == "calls" else ["--error-bars", "row-stationary"]
        files = FILES | {"hardware": hardware(folder, name, **keys)}
        options = [f"--{kind}={path}" for kind, path in files.items()]
        assert main(["map", *options, "-o", str(folder / name), *words]) == 0
    return {name: folder / name for name in ("plain", "calls")}


def stored(folder: Path) -> dict[str, Any]:
    """The summary of a run."""
    found: dict[str, Any] = json.loads((folder / "summary.json").read_text("utf-8"))["payload"]
    return found


def test_the_bar_is_that_of_the_layers(runs: dict[str, Path]) -> None:
    """`map` stores the bar that `compare` computes from the ledger; the shares of the limits add up to one."""
    for folder, name in zip(runs.values(), ("row-stationary", "host-driven-array"), strict=True):
        summary, bars = stored(folder), stored(folder)["error_bars"]
        run = predicted_of_ledger(ledger_at(str(folder)), name)
        assert (bars["low_cycles"], bars["high_cycles"]) == pytest.approx(ends(time_samples(run)))
        assert bars["low_cycles"] < bars["high_cycles"]
        assert bars["predicted_cycles"] == pytest.approx(summary["latency_cycles"])
        assert sum(one["latency_share"] for one in bars["limits"]) == pytest.approx(1.0)
        assert sum(one["layers"] for one in bars["limits"]) == summary["layers"]


def test_keys_of_calls_select_other_errors(runs: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    """A run with keys for waiting gets the errors of runs with such keys; the other run is said not to wait."""
    assert stored(runs["calls"])["error_bars"]["has_waiting_keys"]
    assert not stored(runs["plain"])["error_bars"]["has_waiting_keys"]
    assert main(["compare", *map(str, runs.values()), "--error-bars", "many-core,host-driven-array"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "A: no layer waits for calls, commands or requests" in text
    assert "B: no layer waits" not in text


def test_energy_is_told_to_have_no_bars(runs: dict[str, Path]) -> None:
    """Energy has no bars; a line gives the range of the measured power if a machine of the class has one."""
    power = error_table().power("row-stationary")
    assert power is not None
    told = stored(runs["plain"])["error_bars"]["energy"]
    assert f"({0.8:.0%} of {power.rows} rows of eyeriss_v1)" in told
    assert "no energy or power of class host-driven-array is measured" in stored(runs["calls"])["error_bars"]["energy"]


def test_bars_are_the_same_from_python_and_leave_results_alone(runs: dict[str, Path]) -> None:
    """Python gives the same bars, and the other numbers of the summary equal those of a run without bars."""
    found = tilewright.map(**FILES, error_bars="row-stationary").summary
    bare = tilewright.map(**FILES).summary
    assert {key: value for key, value in found.items() if key != "error_bars"} == bare
    assert found["error_bars"]["limits"] == stored(runs["plain"])["error_bars"]["limits"]


def test_an_audit_computes_the_bars_again(runs: dict[str, Path], tmp_path: Path) -> None:
    """`audit` computes the bars again: a stored run passes, and a changed bar fails."""
    assert main(["audit", str(runs["plain"])]) == 0
    from tilewright.base.artifacts.envelope import read_artifact, write_document

    artifact = read_artifact(runs["plain"] / "summary.json")
    changed = {**artifact.payload, "error_bars": {**artifact.payload["error_bars"], "low_cycles": 1.0}}
    for file in runs["plain"].iterdir():
        if file.is_file():
            (tmp_path / file.name).write_bytes(file.read_bytes())
    write_document(tmp_path / "summary.json", "tilewright/single-summary", changed, artifact.provenance)
    assert main(["audit", str(tmp_path)]) == 1


def test_compare_has_one_probability_for_both_orders(runs: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    """The probabilities of both orders add up to one, and a run compared with itself has one half."""

    def probability(a: str, b: str) -> float:
        words = ["compare", str(runs[a]), str(runs[b]), "--error-bars", ANY, "--json"]
        assert main(words) == 0
        return float(json.loads(capsys.readouterr().out)["error_bars"]["probability_a_faster"])

    assert probability("plain", "plain") == 0.5
    assert probability("plain", "calls") == pytest.approx(1 - probability("calls", "plain"), abs=1e-12)


def test_runs_without_measured_errors_are_refused(
    tmp_path: Path, runs: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """Another model, an unknown class and three classes are refused, each with the allowed values."""
    options = [f"--{kind}={path}" for kind, path in FILES.items()]
    assert main(["map", *options, "--error-bars", ANY, "--preset", "zigzag"]) == 2
    assert "--error-bars: needs the model corrected" in capsys.readouterr().err
    assert main(["map", *options, "--error-bars", "many-cores"]) == 2
    assert "many-core" in capsys.readouterr().err
    other = tmp_path / "other"
    assert main(["map", *options, "--preset", "zigzag", "-o", str(other)]) == 0
    capsys.readouterr()
    assert main(["compare", str(other), str(other), "--error-bars", ANY]) == 2
    text = capsys.readouterr().err
    assert "error bars are known only for the model corrected" in text
    assert "zigzag-3.9.1" in text
    for wrong, message in (("gpu", "no such class"), ("any,any,any", "one class, or one for each run")):
        with pytest.raises(InputError, match=message):
            classes_of(wrong)
    assert classes_of("any") == (ANY, ANY)
    assert classes_of("many-core, any") == ("many-core", ANY)


def test_in_memory_arrays_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """In-memory arrays are refused, because no errors of them are measured."""
    root = Path(__file__).parents[4] / "config"
    hardware = root / "hardware" / "zigzag" / "dimc.yaml"
    workload = root / "workload" / "resnet18.onnx"
    mapping = root / "mapping" / "zigzag" / "tpu_like.yaml"
    words = [f"--hardware={hardware}", f"--workload={workload}", f"--mapping={mapping}", "--error-bars", ANY]
    assert main(["map", *words]) == 2
    assert "no errors of in-memory arrays are measured" in capsys.readouterr().err


def test_probabilities_are_not_more_certain_than_the_table() -> None:
    """The more probable order is named first, and more than 99 % is not given as a number."""
    assert faster_text(0.934, "A", "B") == "A is faster than B with 93% probability"
    assert faster_text(0.2, "A", "B") == "B is faster than A with 80% probability"
    assert faster_text(0.0001, "A", "B") == "B is faster than A with more than 99% probability"
    assert cycles_text(1_234_567.0) == "1,230,000"
    assert cycles_text(12.345) == "12.3"


def test_every_class_has_a_bar() -> None:
    """Every machine class has a bar, with and without keys for waiting, even for limits that no row has."""
    for name in MACHINE_CLASSES:
        for terms in ({"ideal": 9.0}, {"temporal_stall": 9.0}, {"ideal": 1.0, "call_waiting": 9.0}):
            low, high = ends(time_samples(predicted_run("a", name, [terms])))
            assert 0 < low < high
