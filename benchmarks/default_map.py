"""CPU seconds, memory and printed gap of `tilewright map` without options, on 24 pairs of shipped cores and networks.

    .venv/bin/python benchmarks/default_map.py [--cores tpu_like ...] [--networks resnet18 ...] [--write]

Each row has the median CPU seconds of three calls of the whole command, without a store. Kernels and bytecode are
compiled before. The mapping files of the first four cores fix the loops along all sides of the array. The mapping files
of the other four cores leave loops along some sides to the search. Prints a table in Markdown and a summary of the
rows; `--write` puts both into benchmarks/README.md. A slow result is reported, but is no failure.
"""

from __future__ import annotations

import statistics
import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
PROJECT = HERE.parent
sys.path[:0] = [str(HERE), str(PROJECT / "lib")]

from child import run_child  # noqa: E402
from pair_tables import measure_pairs  # noqa: E402
from shipped import shipped  # noqa: E402
from tilewright.base.artifacts.envelope import read_artifact  # noqa: E402

CONFIG = PROJECT / "config"
GIVEN = ("tpu_like", "edge_tpu_like", "eyeriss_like", "cube_3d")
OPEN = ("aimc", "dimc", "tpu_like_vector", "meta_prototype_df")
NETWORKS = ("resnet18", "mobilenetv2", "bert_tiny")
CALLS = 3
"""Number of calls of the command for each pair. The CPU seconds of a row are the median of the calls."""
BEGIN, END = "<!-- made by default_map.py -->", "<!-- end of default_map.py -->"


@dataclass(frozen=True)
class Row:
    """Measured numbers of one pair."""

    core: str
    network: str
    cpu_s: float
    memory_mb: float
    run_gap: float
    """Gap of the objective of the network; 1 if there is no bound."""
    layer_gap: float
    """Largest gap of a layer. The gap is in the measure by which the mapping of the layer was chosen."""
    layers: int
    """Number of distinct layers with a gap."""
    small: int
    """Number of layers with a gap of at most 1 %."""

    @property
    def cells(self) -> str:
        """Row of the table."""
        gaps = f"{self.run_gap:.2%} | {self.layer_gap:.2%} | {self.small} of {self.layers}"
        return f"| {self.core} | {self.network} | {self.cpu_s:.1f} | {self.memory_mb:.0f} | {gaps} |"


def measured(core: str, network: str, folder: Path) -> Row:
    """Measured numbers of the command for one pair."""
    command = [sys.executable, "-m", "tilewright", "map", "--no-store", "-o", str(folder)]
    command += ["--hardware", str(shipped("hardware", core))]
    command += ["--mapping", str(shipped("mapping", core))]
    command += ["--workload", str(CONFIG / "workload" / f"{network}.onnx")]
    # PYTHONDONTWRITEBYTECODE is off, so that bytecode is kept for the next call.
    costs = [run_child(command, {"PYTHONDONTWRITEBYTECODE": ""}, PROJECT) for _ in range(CALLS)]
    cpu_s = statistics.median(cost.cpu_seconds for cost in costs)
    memory_mb = max(cost.peak_memory_mb for cost in costs)
    summary = read_artifact(folder / "summary.json", "tilewright/single-summary").payload
    layers = read_artifact(folder / "layers.jsonl", "tilewright/layers").payload
    searches = [layer["search"] for layer in layers if "gap" in layer["search"]]
    gaps = [search.get("for_network", search)["gap"] for search in searches]
    run_gap = summary["certificate"].get("run", {"gap": 1.0})["gap"]
    small = sum(gap <= 0.01 for gap in gaps)
    return Row(core, network, cpu_s, memory_mb, run_gap, max(gaps), len(gaps), small)


def summary_of(rows: list[Row]) -> list[str]:
    """Sentences that sum up the rows by their limits."""
    told = []
    for title, cores in (("Given sides", GIVEN), ("Open sides", OPEN)):
        own = [row for row in rows if row.core in cores]
        if own:
            times = [row.cpu_s for row in own]
            memory = max(row.memory_mb for row in own)
            told.append(
                f"{title}: median {statistics.median(times):.1f} CPU s, largest {max(times):.1f} CPU s, largest memory"
                f" {memory:.0f} MB."
            )
    within = sum(row.run_gap <= 0.02 for row in rows)
    small, layers = sum(row.small for row in rows), sum(row.layers for row in rows)
    told.append(
        f"The gap of the network is at most 2 % on {within} of {len(rows)} pairs, and at most"
        f" {max(row.run_gap for row in rows):.2%} on each; {small:,} of {layers:,} layers have a gap of at"
        " most 1 %."
    )
    return told


def text_of(rows: list[Row]) -> str:
    """Table in Markdown, with the sentences below it."""
    head = ["core", "network", "CPU s", "MB", "gap of the network", "largest gap of a layer", "layers within 1 %"]
    lines = ["| " + " | ".join(head) + " |", "|---|---|" + "---:|" * 5, *(row.cells for row in rows)]
    return "\n".join([*lines, "", *summary_of(rows)])


if __name__ == "__main__":
    measure_pairs(__doc__ or "", ((*GIVEN, *OPEN), NETWORKS), measured, text_of, (BEGIN, END))
