"""`tilewright allocate --allocation-engine exact`, and `check` of its proof."""

from pathlib import Path
from typing import Any

import pytest
from tilewright.base.artifacts.envelope import read_artifact, write_document
from tilewright.cli.main import main

from tests.unit.cli.multi_core import cut_and_cost, inputs, write_network

EXACT = [
    "--allocation-engine",
    "exact",
    "--nb-ga-individuals",
    "2",
    "--nb-ga-generations",
    "0",
    "--exhaustive-nodes",
    "0",
]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a run with a proven allocation."""
    folder = tmp_path_factory.mktemp("exact")
    network = write_network(folder)
    cut_and_cost(network, folder)
    assert main(["allocate", *inputs(network, folder), *EXACT, "-o", str(folder)]) == 0
    chosen = ["--core-allocation", str(folder / "allocation.json")]
    assert main(["schedule", *inputs(network, folder), *chosen, "-o", str(folder)]) == 0
    return folder


def checked(run: Path, document: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """Return (exit code, output) of a check with another allocation.json."""
    kept = (run / "allocation.json").read_bytes()
    try:
        write_document(run / "allocation.json", "tilewright/allocation", document, {})
        capsys.readouterr()
        code = main(["check", str(run)])
    finally:
        (run / "allocation.json").write_bytes(kept)
    said = capsys.readouterr()
    return code, said.out + said.err


def test_a_proof_is_written_and_checked(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The proof is written and checked; a larger bound or a better allocation in a block fails the check."""
    document = read_artifact(run / "allocation.json").payload
    proof = document["search"]["proof"]
    assert proof["is_proven"]
    assert proof["lower_bound"] == proof["value"] == document["latency_cycles"]
    assert checked(run, document, capsys)[0] == 0
    document["certificate"]["bounds"]["core_work"]["cycles"] *= 2
    code, said = checked(run, document, capsys)
    assert code == 1
    assert "core_work" in said
    document = read_artifact(run / "allocation.json").payload
    document["certificate"]["blocks"] = [{"cores": [None, None, 7], "best": proof["value"] - 1}]
    code, said = checked(run, document, capsys)
    assert code == 1
    assert "block 0 of the certificate has cores that are not allowed" in said
    assert "better than the claimed best value" in said


def test_what_is_proven_is_told(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The proof is printed on its own line, and the exact engine refuses the schedule model of the reference."""
    network = run / "net.onnx"
    capsys.readouterr()
    assert main(["allocate", *inputs(network, run), *EXACT, "--objective", "energy"]) == 0
    assert "proven to be the best of the allowed allocations of these tiles: " in capsys.readouterr().out
    wrong = ["--schedule-model", "stream-2023"]
    assert main(["allocate", *inputs(network, run), *EXACT, *wrong]) == 2
    assert (
        "--allocation-engine: the exact engine does not support the schedule model stream-2023"
        in capsys.readouterr().err
    )
