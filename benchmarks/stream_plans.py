"""Comparison of `tilewright fuse` with plans that stream-dse 2.x wrote, both costed by our scheduler.

    .venv/bin/python benchmarks/stream_plans.py MAPPING.yaml --hardware SYSTEM.yaml --workload NETWORK.onnx
        [--seconds 20]

The mapping file has the form of stream-dse 2.x (`layers` and `fused_groups`). Its layers can be a part of the network;
the comparison then has only these layers, as a network of their own. Each layer is fixed to the cores and the parts of
the file, and every layer of a group gets the tiles of rows, columns and channels that the file gives for a layer of the
group. Tiles of a reduction within a core are left out, because the loop order of a tile divides the reduction. The plan
is scheduled with both rules for the next node, with prefetch and without, in one stack and with one stack for each
layer. The least latency is that of the peer. The search then gets `--seconds` CPU seconds and no mapping file. Prints a
row in Markdown; `README.md` has the results.
"""

from __future__ import annotations

import argparse
import itertools
import math
import sys
import time
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(PROJECT / "lib"))

import yaml  # noqa: E402
from tilewright.mapping.constraints import TilingEntry  # noqa: E402
from tilewright.mapping.source import parse_mapping  # noqa: E402
from tilewright.multicore.scheduling.options import ScheduleSettings  # noqa: E402
from tilewright.pipeline.configuration.fusion_options import FusionOptions  # noqa: E402
from tilewright.pipeline.sources import parse_accelerator, parse_workload  # noqa: E402
from tilewright.pipeline.stages.multi.items import SystemProblem  # noqa: E402
from tilewright.plans.call import fused  # noqa: E402
from tilewright.plans.evaluate import PlanEvaluator, Task  # noqa: E402
from tilewright.plans.plan import LayerTiles, layers_of  # noqa: E402
from tilewright.plans.segments import part_of_network  # noqa: E402
from tilewright.plans.space import SELECTIONS, Fixed, LayerSpace, plan_space  # noqa: E402
from tilewright.search.options import CnSearchOptions  # noqa: E402
from tilewright.workload.layer import OUTPUT  # noqa: E402
from tilewright.workload.network_options import NetworkOptions  # noqa: E402

DIMENSIONS = {"Conv": ("B", "OX", "OY", "FX", "FY", "C", "K", "G"), "Gemm": ("D", "C", "K"), "MatMul": ("D", "C", "K")}
"""Operator -> names of the dimensions D0, D1, ... of stream-dse 2.1."""


def dimension(operator: str, name: str) -> str:
    """Name of a dimension such as D2 of an operator; '' if the operator is not in DIMENSIONS."""
    names = DIMENSIONS.get(operator, ())
    number = int(name.removeprefix("D"))
    return names[number] if number < len(names) else ""


def within(file: dict[str, Any], operators: dict[str, str], sizes: dict[str, dict[str, int]]) -> dict[str, list[Any]]:
    """Layer -> pairs (dimension, number of tiles) of its group."""
    found: dict[str, list[Any]] = {}
    for group in file["fused_groups"]:
        loops = []
        for tile in group["intra_core_tiling"]:
            layer, _, name = tile["dim"].rpartition(".")
            of = dimension(operators[layer], name)
            if of in ("OX", "OY", "D", "K", "B") and of in sizes[layer]:
                loops.append((of, math.ceil(sizes[layer][of] / tile["tile"])))
        found |= dict.fromkeys(group["layers"], loops)
    return found


def tiles_of(one: LayerSpace, entry: dict[str, Any], loops: list[Any]) -> LayerTiles:
    """Tiles of a layer in the plan of the file."""
    output = dict(one.layer.operand_dimensions)[OUTPUT]
    between = []
    for split in itertools.chain(*entry["inter_core_tiling"]):
        name = dimension(one.node.operator_type, split["dim"])
        if name not in output:
            raise SystemExit(f"{one.node.name}: {split} does not cut the output of the layer between cores")
        between.append(TilingEntry(name, split["split"]))
    inside = [TilingEntry(name, count) for name, count in loops if one.size(name) > 1 and name in output]
    return LayerTiles(tuple(between), tuple(inside) or one.rows_within(1))


def problem_of(file: dict[str, Any], hardware: Path, network: Path) -> SystemProblem:
    """Layers of the file on the system, without any fixed decision."""
    workload = parse_workload(network, "corrected", options=NetworkOptions(precision="file"))
    whole = SystemProblem(workload, parse_accelerator(hardware), parse_mapping([{"name": "default"}]))
    nodes, names = layers_of(workload), {entry["name"] for entry in file["layers"]}
    places = [place for place, node in enumerate(nodes) if node.name in names]
    return part_of_network(whole, nodes, places[0], places[-1])


def peer_latency(problem: SystemProblem, file: dict[str, Any]) -> tuple[int, int]:
    """Pair (least latency in cycles of the plan of the file, number of schedules)."""
    space, ids = plan_space(problem, Fixed()), problem.accelerator.core_ids
    entries = {entry["name"]: entry for entry in file["layers"]}
    operators = {one.node.name: one.node.operator_type for one in space.layers}
    loops = within(file, operators, {one.node.name: dict(one.layer.loop_sizes) for one in space.layers})
    tiles = [tiles_of(one, entries[one.node.name], loops[one.node.name]) for one in space.layers]
    cores = [
        [ids.index(core) for core in itertools.chain(*entries[one.node.name]["core_allocation"])]
        for one in space.layers
    ]
    evaluator = PlanEvaluator(problem, CnSearchOptions(), ScheduleSettings(), "latency")
    best, schedules = 1 << 62, 0
    for ends, selection, prefetches in itertools.product(((), range(len(tiles))), SELECTIONS, (True, False)):
        plan = space.plan(tiles, ends, selection, prefetches)
        counts = [math.prod(int(loop.tiles) for loop in layer.between) for layer in plan.tiles]
        fixed = tuple(
            tuple(of[part % len(of)] for part in range(count)) for of, count in zip(cores, counts, strict=True)
        )
        outcome = evaluator.evaluate(Task(plan, fixed, as_given=True))
        schedules += 1
        if outcome.figures is not None:
            best = min(best, outcome.figures.latency_cycles)
        else:
            print(f"not scheduled: {outcome.reason}", file=sys.stderr)
    return best, schedules


def main() -> None:
    """Compare the plan of one file with a search."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mapping", type=Path)
    parser.add_argument("--hardware", type=Path, required=True)
    parser.add_argument("--workload", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=20.0, help="CPU seconds of the search")
    arguments = parser.parse_args()
    file = yaml.safe_load(arguments.mapping.read_text())
    problem = problem_of(file, arguments.hardware, arguments.workload)
    peer, _ = peer_latency(problem, file)
    start = time.process_time()
    options = FusionOptions(fusion_cpu_budget_s=arguments.seconds, nb_plans=10**6, jobs=1)
    found = fused(problem, options)
    spent = time.process_time() - start
    ratio = found.latency_cycles / peer
    print(f"| {arguments.mapping.stem} | {peer:,} | {found.latency_cycles:,} | {ratio:.3f} | {spent:.1f} |")


if __name__ == "__main__":
    main()
