"""Comparison of the search `best` with loma, salsa and proofs, on every pair of a shipped core and network.

    .venv/bin/python benchmarks/best_search.py [--cores tpu_like ...] [--networks resnet18 ...] [--proof-s 600]

For each pair and engine, the whole command `tilewright map` is run (model corrected, data locality, EDP). The table has
CPU seconds and memory of the command, the printed gap of the network, the largest gap of a layer, and the share of
layers with a gap of at most 1 %. It also has the sum of the EDPs of the layers, divided by the sum for the engine
`exact`, which proves optima. A proof has `--proof-s` seconds for each layer. Prints the table. A slow result is
reported, but is no failure.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

HERE = Path(__file__).resolve().parent
PROJECT = HERE.parent
sys.path[:0] = [str(HERE), str(PROJECT / "lib")]

from child import ChildRun, run_child  # noqa: E402
from shipped import shipped  # noqa: E402
from tilewright.base.artifacts.envelope import read_artifact  # noqa: E402

CONFIG = PROJECT / "config"
CORES = (
    *("tpu_like", "edge_tpu_like", "eyeriss_like", "cube_3d"),
    *("aimc", "dimc", "tpu_like_vector", "meta_prototype_df"),
)
NETWORKS = ("resnet18", "mobilenetv2", "bert_tiny")
SMALL_GAP = 0.01
Run = dict[str, Any]


def mapped(core: str, network: str, engine: str, options: list[str], folder: Path) -> tuple[ChildRun, Run, list[Run]]:
    """Triple (cost of the command, summary of its run, layers of its run)."""
    command = [sys.executable, "-m", "tilewright", "map", "--no-store", "-o", str(folder), "--model", "corrected"]
    command += ["--hardware", str(shipped("hardware", core))]
    command += ["--mapping", str(shipped("mapping", core))]
    command += ["--workload", str(CONFIG / "workload" / f"{network}.onnx"), "--exploit-data-locality"]
    command += ["--objective", "EDP", "--temporal-mapping-search-engine", engine, *options]
    cost = run_child(command, cwd=PROJECT)
    summary = read_artifact(folder / "summary.json", "tilewright/single-summary").payload
    layers = read_artifact(folder / "layers.jsonl", "tilewright/layers").payload
    return cost, summary, layers


def edp_of_layers(layers: list[Run]) -> float:
    """Sum of the EDPs of distinct layers, which each search minimises."""
    return sum(layer["edp_pj_cycles"] for layer in layers)


def row_of(core: str, network: str, proof_s: float, folder: Path) -> Run:
    """Row of the table for one pair."""
    row: Run = {"core": core, "network": network}
    proof, _, proven = mapped(core, network, "exact", ["--time-budget-s", str(proof_s)], folder / "exact")
    least = edp_of_layers(proven)
    row["proven"] = sum(layer["search"].get("proven", False) for layer in proven) / len(proven)
    row["exact_cpu_s"] = proof.cpu_seconds
    for engine in ("loma", "salsa", "best"):
        cost, summary, layers = mapped(core, network, engine, [], folder / engine)
        row[f"{engine}_cpu_s"], row[f"{engine}_over"] = cost.cpu_seconds, edp_of_layers(layers) / least - 1
    gaps = [layer["search"]["gap"] for layer in layers if "gap" in layer["search"]]
    row["memory_mb"] = cost.peak_memory_mb
    row["run_gap"] = summary["certificate"].get("run", {}).get("gap")
    row["largest_gap"], row["small_gaps"] = max(gaps), sum(gap <= SMALL_GAP for gap in gaps) / len(gaps)
    return row


def table_of(rows: list[Run]) -> Table:
    """Table for readers."""
    titles = [
        "core",
        "network",
        "best CPU s",
        "MB",
        "loma CPU s",
        "salsa CPU s",
        "exact CPU s",
        "layers proven by exact",
    ]
    titles += ["gap of the run", "largest gap of a layer", "layers within 1 %"]
    titles += ["loma over exact", "salsa over exact", "best over exact"]
    table = Table(*titles)
    for row in rows:
        times = [f"{row[f'{engine}_cpu_s']:.1f}" for engine in ("loma", "salsa", "exact")]
        gap = "" if row["run_gap"] is None else f"{row['run_gap']:.2%}"
        over = [f"{row[f'{engine}_over']:.2%}" for engine in ("loma", "salsa", "best")]
        table.add_row(
            *(row["core"], row["network"], f"{row['best_cpu_s']:.1f}", f"{row['memory_mb']:.0f}", *times),
            *(f"{row['proven']:.0%}", gap, f"{row['largest_gap']:.2%}", f"{row['small_gaps']:.0%}", *over),
        )
    return table


def main() -> None:
    """Measure all pairs and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cores", nargs="*", default=CORES)
    parser.add_argument("--networks", nargs="*", default=NETWORKS)
    parser.add_argument("--proof-s", type=float, default=600.0)
    asked = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for core in asked.cores:
            for network in asked.networks:
                rows.append(row_of(core, network, asked.proof_s, Path(folder) / f"{core}-{network}"))
                print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
    Console(width=220).print(table_of(rows))
    if rows:
        middle = statistics.median(row["best_cpu_s"] for row in rows)
        print(f"best: median {middle:.1f} CPU s, largest {max(row['best_cpu_s'] for row in rows):.1f}")


if __name__ == "__main__":
    main()
