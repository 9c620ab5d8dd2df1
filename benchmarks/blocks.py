"""Check whether `tilewright fuse` finds the best uniform blocks of matrix products on grids of cores.

    .venv/bin/python benchmarks/blocks.py [--seconds 20] [--only 256x256x256-4x4]

There are 20 pairs of a matrix product and a grid. For each pair, the program schedules all cuts of the product into a x
b parts on n cores, with one to four parts per core. Parts are assigned to cores in turn or in runs of parts, in both
orders of the loops. The best of these schedules is compared with the result of a search without a mapping file.
`--seconds` are CPU seconds of the search, in one process. Prints a table in Markdown, and adds each row to
`benchmarks/results/blocks.jsonl`. The program reports results and never fails.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(PROJECT / "lib"))

import numpy as np  # noqa: E402
import onnx  # noqa: E402
import yaml  # noqa: E402
from tilewright.base.errors import TilewrightError  # noqa: E402
from tilewright.mapping.constraints import TilingEntry  # noqa: E402
from tilewright.mapping.source import parse_mapping  # noqa: E402
from tilewright.multicore.scheduling.options import ScheduleSettings  # noqa: E402
from tilewright.pipeline.configuration.fusion_options import FusionOptions  # noqa: E402
from tilewright.pipeline.sources import parse_accelerator, parse_workload  # noqa: E402
from tilewright.pipeline.stages.multi.items import SystemProblem  # noqa: E402
from tilewright.plans.call import fused  # noqa: E402
from tilewright.plans.cores import SchedulingJudge  # noqa: E402
from tilewright.plans.evaluate import PlanEvaluator  # noqa: E402
from tilewright.plans.plan import LayerTiles  # noqa: E402
from tilewright.plans.space import Fixed, plan_space  # noqa: E402
from tilewright.search.options import CnSearchOptions  # noqa: E402

CORES = PROJECT / "config" / "hardware" / "multi" / "cores"
PRODUCTS = ((256, 256, 256), (64, 512, 256), (512, 128, 192), (100, 300, 200), (384, 96, 768))
"""Matrix products: number of rows, inner size, and number of columns."""
GRIDS = ((2, 2, 256, 64), (1, 6, 256, 64), (4, 4, 64, 64), (4, 4, 256, 128))
"""Grids of cores: rows, columns, size in KiB of each of a core's two memories, and bits per cycle of the DRAM port."""
Row = dict[str, Any]


def product_file(folder: Path, sizes: tuple[int, int, int]) -> Path:
    """ONNX file with one matrix product whose weights are constants."""
    rows, inner, columns = sizes
    weights = onnx.numpy_helper.from_array(np.zeros((inner, columns), np.float32), "w")
    shapes = {"a": (rows, inner), "y": (rows, columns)}
    source, made = (
        onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape) for name, shape in shapes.items()
    )
    node = onnx.helper.make_node("MatMul", ["a", "w"], ["y"], name="mm")
    graph = onnx.helper.make_graph([node], "mm", [source], [made], [weights])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 13)])
    model.ir_version = 8
    path = folder / "mm.onnx"
    onnx.save(model, str(path))
    return path


def grid_file(folder: Path, rows: int, columns: int, memory_kib: int, port_bits: int) -> Path:
    """Accelerator file of a grid of equal cores, each with an array of 16 x 16."""
    core = yaml.safe_load((CORES / "k16_c16.yaml").read_text())
    for name in ("sram_weight", "sram_activation"):
        core["memories"][name]["size"] = f"{memory_kib} KiB"
    off_chip = yaml.safe_load((CORES / "offchip.yaml").read_text())
    for port in off_chip["memories"]["dram"]["ports"]:
        port["bandwidth_max"] = port_bits
    (folder / "core.yaml").write_text(yaml.safe_dump(core, sort_keys=False))
    (folder / "offchip.yaml").write_text(yaml.safe_dump(off_chip, sort_keys=False))
    links = {"type": "2d_mesh", "nb_rows": rows, "nb_cols": columns, "bandwidth": 64, "unit_energy_cost": 3.0}
    cores = [*["./core.yaml"] * (rows * columns), "./offchip.yaml"]
    path = folder / "grid.yaml"
    system = {"name": "grid", "cores": cores, "graph": {**links, "offchip_core_id": rows * columns}}
    path.write_text(yaml.safe_dump(system, sort_keys=False))
    return path


def cuts(rows: int, columns: int, most: int) -> Iterator[tuple[TilingEntry, ...]]:
    """Loops of all cuts into at most `most` parts, in both orders. Equal cuts are listed only once."""
    sides = [
        sorted({math.ceil(size / math.ceil(size / wanted)) for wanted in range(1, min(size, most) + 1)})
        for size in (rows, columns)
    ]
    for counts in itertools.product(*sides):
        if math.prod(counts) <= most:
            loops = [TilingEntry(name, count) for name, count in zip("DK", counts, strict=True) if count > 1]
            yield tuple(loops)
            if len(loops) > 1:
                yield tuple(reversed(loops))


def best_uniform(problem: SystemProblem) -> tuple[int, str, int]:
    """Triple (least latency in cycles, cut and number of cores, number of schedules) over all uniform blocks."""
    space = plan_space(problem, Fixed())
    one = space.layers[0]
    evaluator = PlanEvaluator(problem, FusionOptions().part(CnSearchOptions), ScheduleSettings(), "latency")
    best, text, schedules = 1 << 62, "", 0
    for loops in cuts(one.size("D"), one.size("K"), 4 * one.cores):
        try:
            made = evaluator.multi_core_problem(space.plan([LayerTiles(loops, one.rows_within(1))], (0,)))
        except TilewrightError:
            continue
        judge, parts = SchedulingJudge(made), math.prod(int(loop.tiles) for loop in loops)
        for used in range(math.ceil(parts / 4), min(parts, one.cores) + 1):
            ways = {tuple(part % used for part in range(parts)), tuple(part * used // parts for part in range(parts))}
            for way in sorted(ways):
                figures = judge(way, ())
                schedules += 1
                if figures is not None and figures.latency_cycles < best:
                    cut = " x ".join(f"{loop.dimension} {loop.tiles}" for loop in loops) or "whole"
                    best, text = figures.latency_cycles, f"{cut} on {used}"
    return best, text, schedules


def measured(sizes: tuple[int, int, int], grid: tuple[int, int, int, int], seconds: float) -> Row:
    """Result of the search and of the enumeration for one pair."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        problem = SystemProblem(
            parse_workload(product_file(folder, sizes), "corrected"),
            parse_accelerator(grid_file(folder, *grid)),
            parse_mapping([{"name": "default"}]),
        )
        start = time.process_time()
        options = FusionOptions(fusion_time_budget_s=seconds, nb_plans=10**6, jobs=1)
        found = fused(problem, options, clock=time.process_time)
        middle = time.process_time()
        best, text, schedules = best_uniform(problem)
        return {
            "product": "x".join(map(str, sizes)),
            "grid": f"{grid[0]}x{grid[1]}, {grid[2]} KiB, {grid[3]} bits",
            "found_cycles": found.latency_cycles,
            "found_s": middle - start,
            "best_uniform_cycles": best,
            "best_uniform": text,
            "schedules": schedules,
            "enumeration_s": time.process_time() - middle,
        }


def line(row: Row) -> str:
    """Row of the table."""
    ratio = row["found_cycles"] / row["best_uniform_cycles"]
    return (
        f"| {row['product']} | {row['grid']} | {row['found_cycles']:,} | {row['found_s']:.1f} |"
        f" {row['best_uniform_cycles']:,} | {row['best_uniform']} | {ratio:.3f} | {row['schedules']:,} |"
        f" {row['enumeration_s']:.0f} |"
    )


def main() -> None:
    """Measure the pairs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=20.0, help="CPU seconds of the search of each pair")
    parser.add_argument("--only", nargs="+", default=[], metavar="PRODUCT", help="such as 256x256x256")
    parser.add_argument("--output", type=Path, default=PROJECT / "benchmarks" / "results" / "blocks.jsonl")
    arguments = parser.parse_args()
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    heads = ("product", "grid, memories, port", "found, cycles", "CPU s", "best uniform, cycles", "its cut", "ratio")
    print(f"| {' | '.join((*heads, 'schedules', 'CPU s'))} |")
    print("|---|---|---:|---:|---:|---|---:|---:|---:|")
    for sizes, grid in itertools.product(PRODUCTS, GRIDS):
        if arguments.only and "x".join(map(str, sizes)) not in arguments.only:
            continue
        row = measured(sizes, grid, arguments.seconds)
        with arguments.output.open("a") as file:
            file.write(json.dumps(row) + "\n")
        print(line(row), flush=True)


if __name__ == "__main__":
    main()
