"""Quality of the plans that `tilewright fuse` finds for pairs of a network and a system: gaps to the lower bounds, and
the cost of layer-by-layer schedules.

    .venv/bin/python benchmarks/fusion.py [--seconds 240] [--objective latency energy EDP] [--only resnet18-quad_core]
        [--islands 4]

The search has no mapping file, no cutoffs, and default options except the time. `--seconds` are CPU seconds of the
search of each pair, in one process, so that a busy machine gives the same search. Gaps are given to two kinds of
bounds: those of all allocations of the found tiles, and those of every plan. Networks that are not in `config/workload`
are searched in the folder `--networks`, by the name of their file. Pairs without a file are left out, with a message.
Prints a table in Markdown, and adds each row to `benchmarks/results/fusion.jsonl` when it is complete. A slow result is
reported, but is no failure.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(PROJECT / "lib"))

from tilewright.mapping.source import parse_mapping  # noqa: E402
from tilewright.pipeline.configuration.fusion_options import FusionOptions  # noqa: E402
from tilewright.pipeline.sources import parse_accelerator, parse_workload  # noqa: E402
from tilewright.pipeline.stages.multi.items import SystemProblem  # noqa: E402
from tilewright.plans.answer import Fusion  # noqa: E402
from tilewright.plans.call import fused  # noqa: E402

SYSTEMS = PROJECT / "config" / "hardware" / "multi"
NETWORKS = PROJECT / "config" / "workload"
PAIRS = (
    ("resnet18", "quad_core"),
    ("mobilenetv2", "heterogeneous"),
    ("bert_tiny", "quad_mesh"),
    ("resnet18", "heterogeneous"),
    ("mobilenetv2", "quad_core"),
    ("resnet18", "quad_mesh"),
    ("bert_tiny", "quad_core"),
    ("squeezenet1_1_dynamo", "quad_core"),
    ("mobilenet_v3_small_dynamo", "heterogeneous"),
    ("hf_vit_2layer_dynamo", "quad_core"),
    ("alexnet_dynamo", "quad_core"),
    ("resnet50_dynamo", "quad_mesh"),
    ("vgg16_dynamo", "quad_core"),
    ("resnet18", "one_core"),
    ("mobilenetv2", "one_core"),
    ("densenet121_dynamo", "quad_mesh"),
    ("PP-OCRv6_det_small_static", "quad_core"),
)
"""Pairs (network, system). Networks of the project always exist."""
Row = dict[str, Any]


def network_file(name: str, folder: Path | None) -> Path | None:
    """Path of the file of a network; None if there is no such file."""
    places = [NETWORKS / f"{name}.onnx", *([] if folder is None else sorted(folder.rglob(f"{name}.onnx")))]
    return next((place for place in places if place.is_file()), None)


def measured(network: Path, system: str, objective: str, seconds: float, seed: int, islands: int = 1) -> Row:
    """Row with the result of one search and its quality."""
    problem = SystemProblem(
        parse_workload(network, "corrected"),
        parse_accelerator(SYSTEMS / f"{system}.yaml"),
        parse_mapping([{"name": "default"}]),
    )
    options = FusionOptions(
        objective=objective, fusion_cpu_budget_s=seconds, nb_plans=10**6, jobs=1, seed=seed, islands=islands
    )
    start = time.process_time()
    found = fused(problem, options)
    return row_of(found, network.stem, system, time.process_time() - start)


def row_of(found: Fusion, network: str, system: str, cpu_seconds: float) -> Row:
    """Row of the table for a result."""
    document = found.document
    lbl = document["layer_by_layer"]
    return {
        "network": network,
        "system": system,
        "objective": document["objective"],
        "seed": document["search"]["seed"],
        "islands": document["search"]["islands"],
        "cpu_seconds": cpu_seconds,
        "plans": document["search"]["plans"],
        "segments": document["search"]["segments"],
        "schedules": document["search"]["schedules"],
        "latency_cycles": document["latency_cycles"],
        "energy_pj": document["energy_pj"],
        "edp": document["edp"],
        "gap_latency": document["gap_latency"],
        "gap_energy": document["gap_energy"],
        "gap_edp": document["gap_edp"],
        "any_plan": document["any_plan"],
        "layer_by_layer": lbl,
    }


def table(rows: list[Row]) -> str:
    """Rows as a table in Markdown."""
    columns = ("network", "system", "objective", "cycles", "µJ", "J cycles", "gaps: latency, energy, EDP")
    further = ("gaps over every plan", "layer by layer", "CPU s")
    lines = [f"| {' | '.join((*columns, *further))} |", "|---|---|---|---:|---:|---:|---|---|---:|---:|"]
    names = {"latency": "latency_cycles", "energy": "energy_pj", "EDP": "edp"}
    for row in rows:
        gaps = ", ".join(f"{row[f'gap_{name}']:.1%}" for name in ("latency", "energy", "edp"))
        every = ", ".join(f"{row['any_plan'][f'gap_{name}']:.1%}" for name in ("latency", "energy", "edp"))
        goal = names[row["objective"]]
        lines.append(
            f"| {row['network']} | {row['system']} | {row['objective']} | {row['latency_cycles']:,} |"
            f" {row['energy_pj'] / 1e6:,.1f} | {row['edp'] / 1e12:,.0f} | {gaps} | {every} |"
            f" {row['layer_by_layer'][goal] / row[goal]:.2f} × | {row['cpu_seconds']:.0f} |"
        )
    return "\n".join(lines)


def parse_arguments(given: list[str] | None = None) -> argparse.Namespace:
    """Arguments of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=240.0, help="CPU seconds of the search of each pair")
    parser.add_argument("--objective", nargs="+", choices=("latency", "energy", "EDP"), default=["latency", "EDP"])
    parser.add_argument("--only", nargs="+", default=[], metavar="NETWORK-SYSTEM")
    parser.add_argument("--networks", type=Path, help="folder with further ONNX files")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--islands", type=int, default=1, help="islands that share the CPU seconds")
    parser.add_argument("--output", type=Path, default=PROJECT / "benchmarks" / "results" / "fusion.jsonl")
    return parser.parse_args(given)


def main() -> None:
    """Measure the pairs, one after the other."""
    arguments = parse_arguments()
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    rows = []
    for name, system in PAIRS:
        network = network_file(name, arguments.networks)
        if arguments.only and f"{name}-{system}" not in arguments.only:
            continue
        if network is None:
            print(f"{name}: no such file; --networks names a folder", file=sys.stderr)
            continue
        for objective in arguments.objective:
            rows.append(measured(network, system, objective, arguments.seconds, arguments.seed, arguments.islands))
            with arguments.output.open("a") as file:
                file.write(json.dumps(rows[-1]) + "\n")
            print(table(rows[-1:]).splitlines()[-1], flush=True)
    print(table(rows))


if __name__ == "__main__":
    main()
