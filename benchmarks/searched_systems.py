"""Time and quality of a design space of systems, in which the workflow searches the fusion of each system.

    .venv/bin/python benchmarks/searched_systems.py [--size whole|part|few] [--schedules 3000] [--drawn 20]
        [--seconds 120] [--folder FOLDER]

The whole space has 300 systems, `part` has 48 of them, and `few` has 8. The systems are buses, rings and meshes of 2 to
8 cores, with two kinds of cores and several sizes of memories and widths of links. All links are as wide as the port of
the off-chip memory. Each system runs resnet18 and mobilenetv2. A clone of the project explores the space with `make
run` on `--jobs` cores. Each shard is a job of the workflow. Prints the time, the CPU seconds, and the numbers of
searched and dropped designs.

Then `--drawn` of the searched designs are drawn. Each drawn design is searched again on each network, without a start
plan, with `--seconds` CPU seconds in one process. Prints the ratio of the two latencies, explored to searched again,
for each drawn design and network. A ratio above 1.05 misses the target. With `--folder`, the clone is kept there, and a
second call with the same folder repeats only the searches of the drawn designs. Adds each row to
`benchmarks/results/searched_systems.jsonl`. A slow result is reported, but is no failure.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(PROJECT), str(PROJECT / "lib")]

import pandas  # noqa: E402
import yaml  # noqa: E402

from benchmarks.clones import Clone  # noqa: E402

CORES = PROJECT / "config" / "hardware" / "multi" / "cores"
WORKLOADS = PROJECT / "config" / "workload"
NETWORKS = ("resnet18", "mobilenetv2")
CONFIG = "config/config.yaml"
SPACE = "searched_systems"
TARGET_RATIO = 1.05
"""Largest ratio that meets the target. The ratio is the latency in the space, divided by the latency of a separate
search of the design.
"""
BUSES, RINGS = (2, 4, 6, 8), (4, 6)
MESHES = ((2, 2), (2, 3), (2, 4), (3, 2))
"""Rows and columns of the meshes."""
LAYOUTS = {"part": ("bus_2", "bus_4", "bus_8", "ring_4", "mesh_2x2", "mesh_2x4"), "few": ("ring_4",)}
"""Layouts of each size of the space other than the whole space."""
ROLES = {"pooling_core_id": 1, "simd_core_id": 2, "offchip_core_id": 3}
PORT = [f"core_files.offchip.memories.dram.ports.0.bandwidth_{end}" for end in ("min", "max")]
Row = dict[str, Any]


def layouts(size: str) -> dict[str, dict[str, Any]]:
    """Choices of the axis `layout`: number of cores and links between them, by name of the layout."""
    found = {f"bus_{count}": {"core_counts.0": count, "graph.type": "bus"} for count in BUSES}
    found |= {f"ring_{count}": {"core_counts.0": count, "graph.type": "ring"} for count in RINGS}
    for rows, columns in MESHES:
        sizes = {"graph.nb_rows": rows, "graph.nb_cols": columns}
        found[f"mesh_{rows}x{columns}"] = {"core_counts.0": rows * columns, "graph.type": "2d_mesh", **sizes}
    return {name: found[name] for name in LAYOUTS.get(size, tuple(found))}


def space_of(size: str, schedules: int) -> dict[str, Any]:
    """Content of the space file."""
    core_of = {name: str(CORES / f"{name}.yaml") for name in ("k16_c16", "pooling", "simd", "offchip")}
    sizes = [
        f"core_files.{name}.memories.sram_{held}.size"
        for name in ("k16_c16", "ox16_k16")
        for held in ("weight", "activation")
    ]
    return {
        "accelerator": {
            "name": SPACE,
            "cores": list(core_of.values()),
            "core_counts": {0: 2},
            "graph": {"type": "bus", "bandwidth": 64, "unit_energy_cost": 5.12, **ROLES},
        },
        "core_files": {"ox16_k16": str(CORES / "ox16_k16.yaml")},
        "networks": {name: str(WORKLOADS / f"{name}.onnx") for name in NETWORKS},
        "axes": {
            "layout": {"choices": layouts(size)},
            "core": {"path": "cores.0", "values": ["k16_c16", "ox16_k16"]},
            "sram_kib": {"values": [64, 256, 1024] if size == "whole" else [64, 256]},
            "link_bits": {"path": PORT, "values": [32, 64, 96, 128, 256] if size == "whole" else [64, 128]},
        },
        "laws": {
            "graph.bandwidth": "link_bits",
            "graph.unit_energy_cost": "0.08 * link_bits",
            **dict.fromkeys(sizes, "sram_kib * 8192"),
        },
        "objectives": ["latency_cycles", "energy_pj"],
        "options": {"fusion": "search", "objective": "latency", "nb_schedules": schedules},
    }


def cpu_seconds() -> float:
    """CPU seconds of all processes that this process started and that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def explored(clone: Clone, jobs: int) -> pandas.DataFrame:
    """Table of the space after a run of the workflow. Prints the time of the run. Raises RuntimeError if it fails."""
    before, start = cpu_seconds(), time.monotonic()
    command = ["bash", "workflow/run.sh", CONFIG, "--cores", str(jobs)]
    done = subprocess.run(command, cwd=clone.root, env=clone.environment(), capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stdout[-3000:] + done.stderr[-3000:])
    wall_s, cpu_s = time.monotonic() - start, cpu_seconds() - before
    table = pandas.read_parquet(clone.file(f"results/space/{SPACE}/space.parquet"))
    table = table[table["network"].isin(NETWORKS)]
    counts = table.groupby("status")["design"].nunique()
    designs = table["design"].nunique()
    print(f"{designs} designs on {len(NETWORKS)} networks, {jobs} cores: {wall_s:,.0f} s, {cpu_s:,.0f} CPU s")
    print(f"CPU s of a design and network: {cpu_s / designs / len(NETWORKS):.1f}")
    print("; ".join(f"{name}: {count}" for name, count in counts.items()))
    gaps = table.loc[table["status"] == "ok", "gap_latency"]
    print(
        f"gap of latency to the bound of every plan: median {gaps.median():.1%}, largest {gaps.max():.1%}", flush=True
    )
    return table


def own_search(space: Any, design: int, network: str, seconds: float) -> tuple[int, int, float]:
    """Triple (latency in cycles, number of schedules, CPU seconds) of a separate search of one design on a network."""
    from tilewright.designs.fused_systems import NETWORK_MODEL, FusedEvaluator
    from tilewright.pipeline.sources import parse_accelerator, parse_workload

    evaluator = FusedEvaluator(
        parse_workload(WORKLOADS / f"{network}.onnx", NETWORK_MODEL), space.mapping, space.options
    )
    start = time.process_time()
    call = evaluator.call(parse_accelerator(space.design(design).hardware)).fusion  # type: ignore[attr-defined]
    limits = {"nb_schedules": None, "nb_plans": 10**6, "fusion_cpu_budget_s": seconds, "fusion_time_budget_s": None}
    found = replace(call, options=type(call.options)(**{**call.options.as_dict(), **limits})).best_plan()
    return found.latency_cycles, found.found.evaluations, time.process_time() - start


def compared(table: pandas.DataFrame, file: Path, drawn: int, seconds: float, seed: int) -> Iterator[Row]:
    """Rows that compare the latencies in the space with the latencies of separate searches."""
    from tilewright.designs.space_reader import read_space

    space = read_space(file)
    fine = table[table["status"] == "ok"]
    designs = sorted(fine["index"].unique().tolist())
    for design in random.Random(seed).sample(designs, min(drawn, len(designs))):
        for row in fine[fine["index"] == design].itertuples():
            cycles, schedules, cpu_s = own_search(space, design, row.network, seconds)
            yield {
                "design": row.design,
                "layout": row.layout,
                "core": row.core,
                "sram_kib": row.sram_kib,
                "link_bits": row.link_bits,
                "network": row.network,
                "start": row.start_design,
                "explored_cycles": int(row.latency_cycles),
                "explored_schedules": int(row.searched_schedules),
                "gap": float(row.gap_latency),
                "own_cycles": cycles,
                "own_schedules": schedules,
                "own_cpu_s": round(cpu_s, 1),
                "ratio": row.latency_cycles / cycles,
            }


def parse_arguments() -> argparse.Namespace:
    """Arguments of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", choices=("whole", *LAYOUTS), default="whole", help="300, 48 or 8 designs")
    parser.add_argument("--schedules", type=int, default=3000, help="number of schedules of each search in the space")
    parser.add_argument("--jobs", type=int, default=2, help="cores of the workflow")
    parser.add_argument("--drawn", type=int, default=20, help="number of designs that are searched again")
    parser.add_argument("--seconds", type=float, default=120.0, help="CPU seconds of each search of a drawn design")
    parser.add_argument("--seed", type=int, default=0, help="seed of the draw")
    parser.add_argument("--folder", type=Path, help="folder of the clone; it is kept")
    parser.add_argument("--output", type=Path, default=PROJECT / "benchmarks" / "results" / "searched_systems.jsonl")
    return parser.parse_args()


def main() -> None:
    """Explore the space. Then search each drawn design again."""
    arguments = parse_arguments()
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
        folder = arguments.folder or Path(stack.enter_context(tempfile.TemporaryDirectory())) / "clone"
        clone = Clone(folder) if folder.exists() else Clone.create(folder)
        file = clone.file(f"config/space/{SPACE}.yaml")
        file.parent.mkdir(exist_ok=True)
        file.write_text(yaml.safe_dump(space_of(arguments.size, arguments.schedules), sort_keys=False))
        clone.file(CONFIG).write_text(yaml.safe_dump({"spaces": [SPACE]}))
        table = explored(clone, arguments.jobs)
        ratios = []
        for row in compared(table, file, arguments.drawn, arguments.seconds, arguments.seed):
            ratios.append(row["ratio"])
            with arguments.output.open("a") as output:
                output.write(json.dumps(row) + "\n")
            print(
                f"| {row['design']} | {row['layout']}, {row['core']}, {row['sram_kib']} KiB, {row['link_bits']} bits |"
                f" {row['network']} | {row['explored_cycles']:,} | {row['explored_schedules']:,} |"
                f" {row['own_cycles']:,} | {row['own_schedules']:,} | {row['own_cpu_s']:.0f} | {row['ratio']:.3f} |",
                flush=True,
            )
        if ratios:
            missed = sum(ratio > TARGET_RATIO for ratio in ratios)
            median, largest = statistics.median(ratios), max(ratios)
            print(f"ratios: median {median:.3f}, largest {largest:.3f}; {missed} of {len(ratios)} above {TARGET_RATIO}")


if __name__ == "__main__":
    main()
