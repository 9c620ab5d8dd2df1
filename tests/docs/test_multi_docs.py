"""The pages on runs of several cores list the fields of their artifacts."""

import re
from pathlib import Path

import pytest
from tilewright.base.artifacts.envelope import read_artifact
from tilewright.cli.main import main

from tests.unit.cli.multi_core import GA, HARDWARE, cut_and_cost, inputs, write_network

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a small run."""
    folder = tmp_path_factory.mktemp("run")
    network = write_network(folder)
    cut_and_cost(network, folder)
    assert main(["allocate", *inputs(network, folder), *GA, "-o", str(folder)]) == 0
    arguments = ["--core-allocation", str(folder / "allocation.json"), "-o", str(folder)]
    assert main(["schedule", *inputs(network, folder), *arguments]) == 0
    short = ["--nb-plans", "3", "--jobs", "1", "--lpf-limit", "4"]
    assert main(["fuse", "--hardware", HARDWARE, "--workload", str(network), *short, "-o", str(folder / "fused")]) == 0
    return folder


@pytest.mark.parametrize(
    ("page", "heading", "artifact"),
    [
        ("artifacts/several-cores.md", "allocation.json", "allocation.json"),
        ("artifacts/several-cores.md", "summary.json of several cores", "summary.json"),
        ("artifacts/several-cores.md", "fusion.json", "fused/fusion.json"),
    ],
)
def test_every_field_is_documented(run: Path, page: str, heading: str, artifact: str) -> None:
    """The page lists all fields of the artifact and no others."""
    section = (DOCS / page).read_text().split(f"\n## {heading}\n")[1].split("\n## ")[0]
    cells = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    documented = [name for cell in cells for name in re.findall(r"`([^`]+)`", cell)]
    assert sorted(documented) == sorted(read_artifact(run / artifact).payload)


@pytest.mark.parametrize("name", ["generations.csv", "pareto.csv"])
def test_columns_are_documented(run: Path, name: str) -> None:
    """The page lists the columns of the file in their order."""
    columns = (run / name).read_text().splitlines()[0].split(",")
    entry = (DOCS / "multi-core-model" / "allocation.md").read_text().split(f"* `{name}`")[1].split("\n* ")[0]
    assert re.findall(r"`(\w+)`", entry) == columns
