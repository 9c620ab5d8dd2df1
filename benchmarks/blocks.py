"""Check whether `tilewright fuse` finds the best uniform blocks of matrix products on grids of cores.

    .venv/bin/python benchmarks/blocks.py [--seconds 20] [--only 256x256x256] [--pairs first|other]

There are two sets. Each set has 20 pairs of a matrix product and a grid. The second set (`--pairs other`) has products
with prime sizes, long and thin products and products with a batch, on grids of 9 to 64 cores, a ring and a torus. For
each pair, the program schedules all cuts of the product into a x b parts (with a batch: a x b x c) on n cores, with one
to four parts per core. Parts are assigned to cores in turn or in runs of parts, in both orders of the loops. The best
of these schedules is compared with the result of `tilewright fuse` without a mapping file. `--seconds` are CPU seconds
of the search, in one process. Prints a table in Markdown, and adds each row to `benchmarks/results/blocks.jsonl`. The
program reports results and never fails.
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
from dataclasses import dataclass
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
from tilewright.plans.evaluate import PlanEvaluator, PlanToBeat  # noqa: E402
from tilewright.plans.plan import LayerTiles  # noqa: E402
from tilewright.plans.space import Fixed, plan_space  # noqa: E402
from tilewright.search.options import CnSearchOptions  # noqa: E402

CORES = PROJECT / "config" / "hardware" / "multi" / "cores"
PRODUCTS = ((256, 256, 256), (64, 512, 256), (512, 128, 192), (100, 300, 200), (384, 96, 768))
"""Matrix products: number of rows, inner size, and number of columns."""
OTHER_PRODUCTS = ((23, 127, 41), (211, 31, 8), (6, 251, 48), (3, 12, 64, 24))
"""Further matrix products. A product with four numbers has a batch; its first number is the size of the batch."""


@dataclass(frozen=True)
class Grid:
    """System of equal cores with one off-chip memory."""

    rows: int
    columns: int
    memory_kib: int
    """Size of each of the two memories of a core."""
    port_bits: int
    """Width of the DRAM port in bits per cycle."""
    kind: str = "2d_mesh"
    """Topology of the links: `2d_mesh`, `2d_torus` or `ring`."""

    @property
    def name(self) -> str:
        """Name of the grid in the table."""
        kind = "" if self.kind == "2d_mesh" else f"{self.kind.removeprefix('2d_')} "
        return f"{kind}{self.rows}x{self.columns}, {self.memory_kib} KiB, {self.port_bits} bits"


GRIDS = (Grid(2, 2, 256, 64), Grid(1, 6, 256, 64), Grid(4, 4, 64, 64), Grid(4, 4, 256, 128))
OTHER_GRIDS = (
    Grid(3, 3, 128, 64),
    Grid(2, 8, 32, 128),
    Grid(1, 10, 64, 96, "ring"),
    Grid(3, 4, 256, 64, "2d_torus"),
    Grid(8, 8, 64, 256),
)
Row = dict[str, Any]


def product_file(folder: Path, sizes: tuple[int, ...]) -> Path:
    """ONNX file with one matrix product. Its second operand is a constant, or an input if there is a batch."""
    *batch, rows, inner, columns = sizes
    shapes = {"a": (*batch, rows, inner), "w": (*batch, inner, columns), "y": (*batch, rows, columns)}
    left, right, made = (
        onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape) for name, shape in shapes.items()
    )
    constants = [] if batch else [onnx.numpy_helper.from_array(np.zeros((inner, columns), np.float32), "w")]
    node = onnx.helper.make_node("MatMul", ["a", "w"], ["y"], name="mm")
    graph = onnx.helper.make_graph([node], "mm", [left, right] if batch else [left], [made], constants)
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 13)])
    model.ir_version = 8
    path = folder / "mm.onnx"
    onnx.save(model, str(path))
    return path


def grid_file(folder: Path, grid: Grid) -> Path:
    """Accelerator file of a grid of equal cores, each with an array of 16 x 16."""
    core = yaml.safe_load((CORES / "k16_c16.yaml").read_text())
    for name in ("sram_weight", "sram_activation"):
        core["memories"][name]["size"] = f"{grid.memory_kib} KiB"
    off_chip = yaml.safe_load((CORES / "offchip.yaml").read_text())
    for port in off_chip["memories"]["dram"]["ports"]:
        port["bandwidth_max"] = grid.port_bits
    (folder / "core.yaml").write_text(yaml.safe_dump(core, sort_keys=False))
    (folder / "offchip.yaml").write_text(yaml.safe_dump(off_chip, sort_keys=False))
    count = grid.rows * grid.columns
    links = {"type": grid.kind, "bandwidth": 64, "unit_energy_cost": 3.0, "offchip_core_id": count}
    if grid.kind != "ring":
        links |= {"nb_rows": grid.rows, "nb_cols": grid.columns}
    path = folder / "grid.yaml"
    system = {"name": "grid", "cores": [*["./core.yaml"] * count, "./offchip.yaml"], "graph": links}
    path.write_text(yaml.safe_dump(system, sort_keys=False))
    return path


def cuts(sizes: dict[str, int], most: int) -> Iterator[tuple[TilingEntry, ...]]:
    """Loops of all cuts into at most `most` parts, in both orders. Equal cuts are listed only once. `sizes` has the
    size of each dimension that is cut.
    """
    sides = [
        sorted({math.ceil(size / math.ceil(size / wanted)) for wanted in range(1, min(size, most) + 1)})
        for size in sizes.values()
    ]
    for counts in itertools.product(*sides):
        if math.prod(counts) <= most:
            loops = [TilingEntry(name, count) for name, count in zip(sizes, counts, strict=True) if count > 1]
            yield tuple(loops)
            if len(loops) > 1:
                yield tuple(reversed(loops))


def best_uniform(problem: SystemProblem, found_cycles: int) -> tuple[int, str, int]:
    """Triple (least latency in cycles, cut and number of cores, number of schedules) over all uniform blocks. A cut is
    left out if a lower bound of its latency is above `found_cycles`, the latency that the search found.
    """
    space = plan_space(problem, Fixed())
    one = space.layers[0]
    evaluator = PlanEvaluator(problem, FusionOptions().part(CnSearchOptions), ScheduleSettings(), "latency")
    best, text, schedules = 1 << 62, "", 0
    rival = None if one.machine is None else PlanToBeat(found_cycles + 1, one.machine)
    for loops in cuts({name: one.size(name) for name in one.block_dimensions}, 4 * one.cores):
        try:
            made = evaluator.multi_core_problem(space.plan([LayerTiles(loops, one.rows_within(1))], (0,)), rival)
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


def measured(sizes: tuple[int, ...], grid: Grid, seconds: float) -> Row:
    """Result of the search and of the enumeration for one pair."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        problem = SystemProblem(
            parse_workload(product_file(folder, sizes), "corrected"),
            parse_accelerator(grid_file(folder, grid)),
            parse_mapping([{"name": "default"}]),
        )
        start = time.process_time()
        options = FusionOptions(fusion_time_budget_s=seconds, nb_plans=10**6, jobs=1)
        found = fused(problem, options, clock=time.process_time)
        middle = time.process_time()
        best, text, schedules = best_uniform(problem, found.latency_cycles)
        return {
            "product": "x".join(map(str, sizes)),
            "grid": grid.name,
            "seed": options.seed,
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
    parser.add_argument("--pairs", choices=("first", "other"), default="first")
    parser.add_argument("--output", type=Path, default=PROJECT / "benchmarks" / "results" / "blocks.jsonl")
    arguments = parser.parse_args()
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    heads = ("product", "grid, memories, port", "found, cycles", "CPU s", "best uniform, cycles", "its cut", "ratio")
    print(f"| {' | '.join((*heads, 'schedules', 'CPU s'))} |")
    print("|---|---|---:|---:|---:|---|---:|---:|---:|")
    chosen = (PRODUCTS, GRIDS) if arguments.pairs == "first" else (OTHER_PRODUCTS, OTHER_GRIDS)
    for sizes, grid in itertools.product(*chosen):
        if arguments.only and "x".join(map(str, sizes)) not in arguments.only:
            continue
        row = measured(sizes, grid, arguments.seconds)
        with arguments.output.open("a") as file:
            file.write(json.dumps(row) + "\n")
        print(line(row), flush=True)


if __name__ == "__main__":
    main()
