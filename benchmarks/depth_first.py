"""Comparison of depth-first schedules with DeFiNES: case study 1 of its paper, and the optimum of the whole space.

    .venv/bin/python benchmarks/depth_first.py [--points FOLDER] [--no-optimum]

FSRCNN on the core of the case study is costed in 108 schedules (three modes, six widths, six heights), by the rules of
DeFiNES and by our rules. For each objective, the best schedule over all tile sizes, modes and cuts is also searched.
Times are CPU seconds of this process, with kernels compiled before. The numbers of DeFiNES come from the sample in the
tests, and from all `*.jsonl` files in `--points`. Prints Markdown and writes `results/depth_first.json`.

DeFiNES has no package. Its times are therefore taken from its README, for one thread: 18 h for the 108 schedules at
lpf_limit 8, and 45 min at lpf_limit 6. Our times are at lpf_limit 6.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
PROJECT = HERE.parent
sys.path[:0] = [str(PROJECT), str(PROJECT / "lib")]

from tilewright.base.objectives import OBJECTIVES  # noqa: E402
from tilewright.pipeline.sources import parse_accelerator, parse_mapping, parse_workload, single_core  # noqa: E402
from tilewright.tiles.depth_first.certificate import DepthFirstSpace  # noqa: E402
from tilewright.tiles.depth_first.locations import MODES  # noqa: E402
from tilewright.tiles.depth_first.optimum import find_optimum  # noqa: E402
from tilewright.tiles.depth_first.options import READINGS, TileOptions  # noqa: E402
from tilewright.tiles.depth_first.schedule import stack_model  # noqa: E402
from tilewright.tiles.depth_first.stack_cost import StackModel  # noqa: E402

CONFIG = PROJECT / "config"
SAMPLE = PROJECT / "tests" / "unit" / "depth_first" / "data" / "points.jsonl"
WIDTHS, HEIGHTS = (1, 4, 16, 60, 240, 960), (1, 4, 18, 72, 270, 540)
WHOLE = 7
"""Index of the last layer."""
PEER_SECONDS = {"18 h (lpf_limit 8)": 18 * 3600, "45 min (lpf_limit 6)": 45 * 60}


def fresh_model(**options: Any) -> StackModel:
    """Cost model of stacks that has no stored costs yet."""
    core = single_core(parse_accelerator(CONFIG / "hardware" / "zigzag" / "meta_prototype_df.yaml"))
    workload = parse_workload(CONFIG / "workload" / "fsrcnn.yaml")
    mapping = parse_mapping(CONFIG / "mapping" / "zigzag" / "meta_prototype_df.yaml")
    return stack_model((workload, core, mapping), TileOptions(**options))


def measure_points(reading: str) -> tuple[float, StackModel]:
    """Pair (CPU seconds of the 108 schedules, cost model with these costs)."""
    fresh_model(reading=reading).cost(0, WHOLE, (960, 540), "fully-cached")  # compiled kernels are loaded
    start = time.process_time()
    model = fresh_model(reading=reading)
    for mode in MODES:
        for width in WIDTHS:
            for height in HEIGHTS:
                model.cost(0, WHOLE, (width, height), mode)
    return time.process_time() - start, model


def errors(model: StackModel, files: list[Path]) -> list[dict[str, Any]]:
    """Relative difference of each point from the same point of DeFiNES."""
    points = {}
    for file in files:
        for row in map(json.loads, file.read_text().splitlines()):
            points[row["mode"], row["tile_x"], row["tile_y"]] = row
    found = []
    for (mode, width, height), row in points.items():
        total = model.cost(0, WHOLE, (width, height), mode)
        cycles = total.latency_cycles(READINGS["defines"].counts_offloading)
        energy, latency = total.energy_pj / row["energy_pj"] - 1, cycles / row["latency_cycles"] - 1
        found.append({"mode": mode, "tile": f"{width} x {height}", "energy": energy, "latency": latency})
    return found


def measure_optimum(objective: str) -> dict[str, Any]:
    """Best schedule over all tile sizes, modes and cuts for one objective, with its certificate."""
    options = TileOptions(objective=objective)
    start = time.process_time()
    found = find_optimum(fresh_model(objective=objective), DepthFirstSpace(), options, seconds=600)
    (first, *others) = found.schedule.stacks
    return {
        "objective": objective,
        "cpu_seconds": time.process_time() - start,
        "schedule": f"{first.mode}, {first.tile_x} x {first.tile_y}, {1 + len(others)} stack(s)",
        "energy_pj": found.schedule.energy_pj,
        "latency_cycles": found.schedule.latency_cycles,
        "gap": found.gap,
        "proven": found.is_proven,
        "stacks_costed": len(found.costed),
    }


def main() -> int:
    """Measure, print the tables, and write the file."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--points", type=Path, help="Folder with *.jsonl of figures of DeFiNES.")
    parser.add_argument("--no-optimum", action="store_true", help="The 108 schedules alone.")
    parser.add_argument("--output", type=Path, default=HERE / "results" / "depth_first.json")
    given = parser.parse_args()
    measured: dict[str, Any] = {"points": {}, "optimum": []}
    print("| 108 schedules | CPU time | DeFiNES, as published | times |\n| --- | ---: | ---: | ---: |")
    model = None
    for reading in READINGS:
        seconds, model = measure_points(reading)
        measured["points"][reading] = seconds
        for told, theirs in PEER_SECONDS.items():
            print(f"| rules of {reading} | {seconds:.1f} s | {told} | {theirs / seconds:,.0f} |")
    assert model is not None
    files = [SAMPLE, *(sorted(given.points.glob("*.jsonl")) if given.points else [])]
    measured["errors"] = found = errors(model, files)
    print(f"\n{len(found)} points with figures of DeFiNES, rules of {model.reading.name}:")
    for what in ("energy", "latency"):
        largest = sorted(found, key=lambda row: -abs(row[what]))
        within = [sum(abs(row[what]) <= limit for row in found) for limit in (1e-12, 0.0001, 0.001, 0.01)]
        print(
            f"{what}: {within[0]} equal, {within[1]} within 0.01 %, {within[2]} within 0.1 %, {within[3]} within 1 %;"
        )
        print("  largest: " + ", ".join(f"{row['mode']} {row['tile']} {row[what]:+.2%}" for row in largest[:3]))
    if not given.no_optimum:
        print("\n| optimum of | schedule | energy | latency | gap | CPU time | stacks costed |")
        print("| --- | --- | ---: | ---: | ---: | ---: | ---: |")
        for objective in OBJECTIVES:
            measured["optimum"].append(row := measure_optimum(objective))
            costs = f"{row['energy_pj'] / 1e6:,.2f} µJ | {row['latency_cycles']:,.0f} | {row['gap']:.2%}"
            print(
                f"| {objective} | {row['schedule']} | {costs} | {row['cpu_seconds']:.0f} s | {row['stacks_costed']} |"
            )
    given.output.parent.mkdir(parents=True, exist_ok=True)
    given.output.write_text(json.dumps(measured, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
