"""Time and memory of a schedule on grids of 16, 64 and 256 cores, and of a search for an allocation of many layers.

    .venv/bin/python benchmarks/many_cores.py [--only product-weak] [--largest 256] [--multicast]
    .venv/bin/python benchmarks/many_cores.py --layers 50 100 200 400

Networks are a matrix product, and four convolutions. Each core gets four parts of the product, or four lines of each
convolution in two parts. With weak scaling, the network grows with the number of cores; with strong scaling, one
network is cut into more parts. The off-chip memory has one port, which is linked with all cores. All times are CPU
times. Each grid is measured in a separate process. One schedule is the shortest of twelve, without logs, as in a
search. The search evaluates 80 allocations. The columns at the end are ratios to the grid with a quarter of the cores.

With `--layers`, the program searches for an allocation of a chain of convolutions on the quad-core, with the default
number of evaluations.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(PROJECT / "lib"))
sys.path.insert(0, str(PROJECT / "benchmarks"))

import numpy as np  # noqa: E402
import onnx  # noqa: E402
import tilewright  # noqa: E402
import yaml  # noqa: E402
from blocks import grid_file, product_file  # noqa: E402
from onnx.helper import make_graph, make_model, make_node, make_opsetid, make_tensor_value_info  # noqa: E402
from tilewright.multicore.scheduling.bounds.lower_bounds import lower_bounds  # noqa: E402
from tilewright.multicore.scheduling.options import ScheduleOptions  # noqa: E402
from tilewright.multicore.scheduling.simulate import Scheduler  # noqa: E402

GRIDS = {16: (4, 4), 64: (8, 8), 256: (16, 16)}
"""Rows and columns of the grid, by number of cores."""
CASES = ("product-weak", "product-strong", "convolutions-weak", "convolutions-strong")
PREFETCHED = ["W"]
WEIGHTS_OPERAND = 2
CHANNELS, WIDTH = 32, 16
COLUMNS = {
    "cns_s": "nodes, s",
    "cost_s": "costs, s",
    "prepare_s": "arrays, s",
    "schedule_ms": "one schedule, ms",
    "bounds_s": "bounds, s",
    "verb_s": "`schedule` with files, s",
    "allocate_s": "`allocate`, s",
}
Row = dict[str, Any]


def convolutions_file(folder: Path, layers: int, lines: int) -> Path:
    """ONNX file with a chain of 3 x 3 convolutions of an image with `lines` lines."""
    weights = [
        onnx.numpy_helper.from_array(np.zeros((CHANNELS, CHANNELS, 3, 3), np.float32), f"w{layer}")
        for layer in range(layers)
    ]
    nodes = [
        make_node("Conv", [f"x{layer}", f"w{layer}"], [f"x{layer + 1}"], pads=[1] * 4, name=f"conv{layer}")
        for layer in range(layers)
    ]
    ends = [
        make_tensor_value_info(name, onnx.TensorProto.FLOAT, (1, CHANNELS, lines, WIDTH))
        for name in ("x0", f"x{layers}")
    ]
    graph = make_graph(nodes, "convolutions", ends[:1], ends[1:], weights)
    path = folder / "convolutions.onnx"
    onnx.save(make_model(graph, opset_imports=[make_opsetid("", 13)], ir_version=8), str(path))
    return path


def network(folder: Path, case: str, cores: int) -> tuple[Path, list[dict[str, Any]]]:
    """Network of a case and its mapping."""
    rows, columns = GRIDS[cores]
    name, scaling = case.split("-")
    if name == "product":
        sizes = (64 * rows, 256, 64 * columns) if scaling == "weak" else (1024, 256, 1024)
        loops = {"inter_core_tiling": [f"D, {2 * rows}", f"K, {2 * columns}"]}
        return product_file(folder, sizes), [{"name": "default", **loops}]
    lines = 4 * cores if scaling == "weak" else 1024
    loops = {"inter_core_tiling": [f"OY, {cores}"], "intra_core_tiling": ["OY, 4"]}
    return convolutions_file(folder, 4, lines), [{"name": "default", **loops}]


def timed(row: Row, name: str, function: Callable[[], Any]) -> Any:
    """Result of a function. Its CPU time in seconds becomes a value of the row."""
    start = time.process_time()
    result = function()
    row[name] = time.process_time() - start
    return result


def measure(case: str, cores: int, multicast: bool) -> Row:
    """Times of all steps for one grid, in this process."""
    row: Row = {"case": case, "cores": cores}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path, mapping = network(folder, case, cores)
        system = grid_file(folder, *GRIDS[cores], 256, 64)
        if multicast:
            content = yaml.safe_load(system.read_text())
            content["graph"]["multicast"] = True
            system.write_text(yaml.safe_dump(content, sort_keys=False))
        nodes = timed(row, "cns_s", lambda: tilewright.cns(str(path), str(system), mapping))
        costs = timed(row, "cost_s", lambda: tilewright.cost(nodes))
        graph = nodes.graph
        parts = sorted(set(zip(graph.cn_layer.tolist(), graph.group.tolist(), strict=True)))
        allocation: dict[str, list[int]] = {}
        for layer, group in parts:
            allocation.setdefault(graph.layers[layer].name, []).append(group % cores)
        tilewright.schedule(costs, allocation, operands_to_prefetch=PREFETCHED)  # loads the kernels
        settings = {"operands_to_prefetch": PREFETCHED, "output": folder / "out"}
        made = timed(row, "verb_s", lambda: tilewright.schedule(costs, allocation, **settings))
        problem, chosen = made.artifact.problem, made.artifact.schedule.allocation
        options = ScheduleOptions(operands_to_prefetch=(WEIGHTS_OPERAND,), record=False)
        scheduler = timed(row, "prepare_s", lambda: Scheduler(problem, options))
        times = []
        for _ in range(12):
            start = time.process_time()
            scheduler(chosen)
            times.append(time.process_time() - start)
        row["schedule_ms"] = min(times) * 1000
        timed(row, "bounds_s", lambda: lower_bounds(problem))
        search = {"nb_ga_individuals": 16, "nb_ga_generations": 4}
        timed(row, "allocate_s", lambda: tilewright.allocate(costs, operands_to_prefetch=PREFETCHED, **search))
        row["nodes"], row["transfers"] = graph.cn_count, len(made.artifact.schedule.transfers)
        row["latency_cycles"] = made.latency_cycles
    row["peak_mib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return row


def measure_layers(layers: int) -> Row:
    """Times for a chain of convolutions on the quad-core, in this process."""
    row: Row = {"layers": layers}
    with tempfile.TemporaryDirectory() as name:
        path = convolutions_file(Path(name), layers, WIDTH)
        system = str(PROJECT / "config" / "hardware" / "multi" / "quad_core.yaml")
        mapping = [{"name": "default", "intra_core_tiling": ["OY, 4"]}]
        costs = tilewright.cost(tilewright.cns(str(path), system, mapping))
        start = time.process_time()
        found = tilewright.allocate(costs, operands_to_prefetch=PREFETCHED)
        row["allocate_s"] = time.process_time() - start
        row["evaluations"] = found.allocation.evaluations
        row["nodes"] = found.summary["cn_count"]
        row["latency_cycles"] = found.latency_cycles
    return row


def line(row: Row, smaller: Row | None) -> str:
    """Row of the table of grids."""
    values = [f"{row['nodes']:,}", f"{row['transfers']:,}", f"{row['latency_cycles']:,}"]
    values += [f"{row[name]:.2f}" for name in COLUMNS]
    values.append(f"{row['peak_mib']:.0f}")
    for name in ("schedule_ms", "verb_s", "allocate_s"):
        values.append(f"{row[name] / smaller[name]:.1f} x" if smaller else "")
    return f"| {row['case']} | {row['cores']} | {' | '.join(values)} |"


def in_process(*arguments: str) -> Row:
    """Row that a separate process measures."""
    command = [sys.executable, __file__, *arguments]
    row: Row = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return row


def print_grids(cases: list[str], largest: int, more: list[str]) -> None:
    """Print the table of grids."""
    heads = ["case", "cores", "nodes", "transfers", "latency, cycles", *COLUMNS.values(), "peak, MiB"]
    heads += ["one schedule", "`schedule`", "`allocate`"]
    print(f"| {' | '.join(heads)} |")
    print(f"|---|{'---:|' * (len(heads) - 1)}")
    for case in cases:
        smaller: Row | None = None
        for cores in GRIDS:
            if cores <= largest:
                row = in_process("--one", case, str(cores), *more)
                print(line(row, smaller), flush=True)
                smaller = row


def print_layers(counts: list[int]) -> None:
    """Print the table of layers."""
    print("| layers | nodes | schedules | `allocate`, s | ms a schedule | us a schedule and layer | latency, cycles |")
    print(f"|{'---:|' * 7}")
    for layers in counts:
        row = in_process("--one", "layers", str(layers))
        each = row["allocate_s"] / row["evaluations"]
        print(
            f"| {layers} | {row['nodes']:,} | {row['evaluations']:,} | {row['allocate_s']:.2f} | {each * 1e3:.2f} |"
            f" {each / layers * 1e6:.1f} | {row['latency_cycles']:,} |",
            flush=True,
        )


def main() -> None:
    """Measure all grids of the chosen cases, or the chosen numbers of layers."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=CASES, default=list(CASES), help="cases to measure")
    parser.add_argument("--largest", type=int, default=256, help="largest number of cores")
    parser.add_argument("--multicast", action="store_true", help="links have multicast")
    parser.add_argument("--layers", nargs="+", type=int, default=[], help="numbers of layers, instead of grids")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        case, count = arguments.one[0], int(arguments.one[1])
        is_layers = case == "layers"
        print(json.dumps(measure_layers(count) if is_layers else measure(case, count, arguments.multicast)))
    elif arguments.layers:
        print_layers(arguments.layers)
    else:
        print_grids(arguments.only, arguments.largest, ["--multicast"] if arguments.multicast else [])


if __name__ == "__main__":
    main()
