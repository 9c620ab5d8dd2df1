"""A case in the ordinary commands: under the settings of the reference, their results agree with `validation`."""

import json
from pathlib import Path

import pytest
from tilewright.cli.main import main
from tilewright_evidence.chips.case import CaseFiles, read_case
from tilewright_evidence.chips.run import STREAM_2023_SWITCHES, CaseRunner

from tests.unit.evidence.chips.cases import core, layer, write_case

PUBLISHED = Path(__file__).resolve().parents[5] / "shared" / "validation"
OF_REFERENCE = ["--schedule-model", "stream-2023", "--cn-runtime", "total2", "--operands-to-prefetch", '["W"]']
UNLIMITED = """
from tilewright_evidence.chips.run import UnlimitedDataflow
"""
PIPELINE = """
- set: IntraCoreMapping
  parameters:
    pipeline:
      - {replace: SpatialMappingGenerator, stage: config.stages.dataflow.UnlimitedDataflow}
"""


@pytest.fixture
def unlimited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Write a pipeline whose dataflow no memory limits."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config" / "stages").mkdir(parents=True)
    (tmp_path / "config" / "stages" / "dataflow.py").write_text(UNLIMITED)
    (tmp_path / "pipeline.yaml").write_text(PIPELINE)
    return "pipeline.yaml"


def latency_of(case: Path, cores: list[str], hint_loops: str, selection: str, out: Path, *cost: str) -> int:
    """Return the cycles from cns, cost, allocate and schedule, after `check` has passed."""
    files = {"hardware": "accelerator", "workload": "workload", "mapping": "mapping"}
    given = [part for name, stem in files.items() for part in (f"--{name}", str(case / f"{stem}.yaml"))]
    done = ["--cns", str(out), "--costs", str(out / "cost")]
    settings = [*OF_REFERENCE, "--scheduler-candidate-selection", selection]
    assert main(["cns", *given, "--cn-define-mode", "1", "--hint-loops", hint_loops, "-o", str(out)]) == 0
    for name in cores:
        options = ["--model", STREAM_2023_SWITCHES.cost_model, "-o", str(out / "cost" / f"{name}.jsonl"), *cost]
        assert main(["cost", *given, "--core", name, "--cns", str(out), *options]) == 0
    assert main(["allocate", *given, *done, *settings, "--no-single-core", "-o", str(out)]) == 0
    allocation = ["--core-allocation", str(out / "allocation.json")]
    assert main(["schedule", *given, *done, *allocation, *settings, "-o", str(out)]) == 0
    assert main(["check", str(out), *given]) == 0
    summary = json.loads((out / "summary.json").read_text())["payload"]
    assert summary["schedule_model"] == "stream-2023"
    return int(summary["latency_cycles"])


def test_a_tiny_case(tmp_path: Path) -> None:
    """The tiny case takes 31 cycles, worked out in test_run.py."""
    case = write_case(tmp_path / "case")
    found = latency_of(case, ["core"], '[["OY", "all"]]', "latency", tmp_path / "out")
    assert found == 31


def test_a_dataflow_that_memories_do_not_limit_is_a_stage(tmp_path: Path, unlimited: str) -> None:
    """A stage can free the dataflow from limits of memories; otherwise registers for two sums halve the array."""
    case = write_case(tmp_path / "case", cores__core=core(32), workload=[layer(0, 0), layer(1, 0)])
    wanted = CaseRunner(read_case("tiny", CaseFiles(case))).run(STREAM_2023_SWITCHES).latency_cycles
    arguments = case, ["core"], '[["OY", "all"]]', "latency"
    assert latency_of(*arguments, tmp_path / "out", "--pipeline", unlimited) == wanted
    assert latency_of(*arguments, tmp_path / "limited") > wanted


@pytest.mark.skipif(
    not PUBLISHED.is_dir(), reason="the published cases ../shared/validation are not beside this checkout"
)
@pytest.mark.parametrize(
    ("name", "cores", "hint_loops", "selection", "latency_cycles"),
    [
        ("depfin", ["digital"], '[["OY", "all"]]', "memory", 6_370_024),
        ("aimc", [f"core_{number}" for number in range(5)], '[["OX", 28], ["OY", 56]]', "latency", 63_820),
    ],
)
def test_published_cases(
    tmp_path: Path,
    unlimited: str,
    name: str,
    cores: list[str],
    hint_loops: str,
    selection: str,
    latency_cycles: int,
) -> None:
    """The published cases have the latencies of the reference tool."""
    arguments = PUBLISHED / name, cores, hint_loops, selection, tmp_path / "out", "--pipeline", unlimited
    assert latency_of(*arguments) == latency_cycles
