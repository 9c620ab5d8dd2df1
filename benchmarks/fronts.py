"""CPU seconds and certificates of Pareto fronts, compared with one exact search, on pairs of shipped cores and
networks.

    .venv/bin/python benchmarks/fronts.py [--cores tpu_like ...] [--networks resnet18 ...] [--write]

Each row has three calls of the whole command `tilewright map`, with kernels compiled before and without a store. The
first has `--temporal-mapping-search-engine exact` (at most 60 s for each layer), the second has no options, and the
third has `--front`. The core meta_prototype_df is left out by default, because its exact search takes more than ten
minutes for a network. Prints a table in Markdown; `--write` puts it into benchmarks/README.md. A slow result is
reported, but is no failure.
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
from default_map import CONFIG, GIVEN, NETWORKS, OPEN  # noqa: E402
from pair_tables import measure_pairs  # noqa: E402
from shipped import shipped  # noqa: E402
from tilewright.base.artifacts.envelope import read_artifact  # noqa: E402

CORES = (*GIVEN, *(core for core in OPEN if core != "meta_prototype_df"))
BEGIN, END = "<!-- made by fronts.py -->", "<!-- end of fronts.py -->"
WAYS = {"exact": ("--temporal-mapping-search-engine", "exact"), "default": (), "front": ("--front",)}


@dataclass(frozen=True)
class Row:
    """Measured numbers of one pair."""

    core: str
    network: str
    cpu_s: dict[str, float]
    """CPU seconds of the whole command, by name of the way to map."""
    points: int
    """Number of points on the front of the network."""
    miss: float
    """Largest miss of the front of the network."""
    layer_misses: tuple[float, ...]

    @property
    def times_exact(self) -> float:
        """CPU time of the run with a front, divided by that of the exact search."""
        return self.cpu_s["front"] / self.cpu_s["exact"]

    @property
    def cells(self) -> str:
        """Row of the table."""
        times = " | ".join(f"{self.cpu_s[way]:.1f}" for way in WAYS)
        complete, within = (sum(miss <= most for miss in self.layer_misses) for most in (2e-9, 0.01 + 1e-9))
        counts = f"{complete} | {within} of {len(self.layer_misses)} | {max(self.layer_misses):.2%}"
        return (
            f"| {self.core} | {self.network} | {times} | {self.times_exact:.1f} | {self.points} | {self.miss:.2%} |"
            f" {counts} |"
        )


def measured(core: str, network: str, folder: Path) -> Row:
    """Measured numbers of the three commands for one pair."""
    command = [sys.executable, "-m", "tilewright", "map", "--no-store", "-o", str(folder)]
    command += ["--hardware", str(shipped("hardware", core))]
    command += ["--mapping", str(shipped("mapping", core))]
    command += ["--workload", str(CONFIG / "workload" / f"{network}.onnx")]
    cpu_s = {way: run_child([*command, *options], cwd=PROJECT).cpu_seconds for way, options in WAYS.items()}
    front = read_artifact(folder / "summary.json", "tilewright/single-summary").payload["front"]
    layers = read_artifact(folder / "layers.jsonl", "tilewright/layers").payload
    fronts = [layer["search"]["front"] for layer in layers if "front" in layer["search"]]
    misses = tuple(1.0 if one["largest_miss"] is None else one["largest_miss"] for one in fronts)
    miss = 1.0 if front["largest_miss"] is None else front["largest_miss"]
    return Row(core, network, cpu_s, len(front["points"]), miss, misses)


def text_of(rows: list[Row]) -> str:
    """Table in Markdown, with the sentences below it."""
    head = ["core", "network", "exact CPU s", "default CPU s", "front CPU s", "front / exact", "points"]
    head += ["largest miss", "complete layers", "layers within 1 %", "largest miss of a layer"]
    ratios = sorted(row.times_exact for row in rows)
    within = sum(miss <= 0.01 + 1e-9 for row in rows for miss in row.layer_misses)
    told = (
        f"A run with a front takes {statistics.median(ratios):.1f} times the CPU time of one exact search (median), at"
        f" most {ratios[-1]:.1f} times, and at most 3 times on {sum(one <= 3 for one in ratios)} of {len(rows)} pairs."
        f" The miss is at most 1 % for {within} of {sum(len(row.layer_misses) for row in rows)} layers."
    )
    lines = ["| " + " | ".join(head) + " |", "|---|---|" + "---:|" * 9, *(row.cells for row in rows)]
    return "\n".join([*lines, "", told])


if __name__ == "__main__":
    measure_pairs(__doc__ or "", (CORES, NETWORKS), measured, text_of, (BEGIN, END))
