"""CPU time to evaluate a mapping on an in-memory core, compared with a digital array in the same core.

    .venv/bin/python benchmarks/in_memory.py [--rounds 9] [--lpf-limit 6]

The two cores differ only in the array, so both cost the same loop orders in the same memories. The program measures
them in turn over the distinct layers of resnet18. A row has the CPU time per mapping: a mean over the layers, and the
median over the rounds. The row `orders` covers making, allocating and costing all loop orders. The row `layer` covers
the whole search of a layer with its record. The target is a ratio of at most 1.2. A slow result is reported, but is no
failure.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from dataclasses import replace
from pathlib import Path

HERE = Path(__file__).resolve().parent
PROJECT = HERE.parent
sys.path[:0] = [str(HERE), str(PROJECT / "lib")]

from ours import distinct_layers, feasible_orders, timed  # noqa: E402
from shipped import shipped  # noqa: E402
from tilewright.base.profile import profile_by_name  # noqa: E402
from tilewright.hardware.core import Core, OperationalArray  # noqa: E402
from tilewright.hardware.yaml_reader import read_accelerator  # noqa: E402
from tilewright.mapping.spatial_generation import spatial_candidates  # noqa: E402
from tilewright.mapping.yaml_reader import read_mapping  # noqa: E402
from tilewright.pipeline.stages.run import map_layer  # noqa: E402
from tilewright.search.evaluate import prepare  # noqa: E402
from tilewright.search.options import SearchOptions  # noqa: E402
from tilewright.workload.onnx import read_onnx  # noqa: E402

EXAMPLES = ("aimc", "dimc")
MODELS = ("zigzag-3.9.1", "corrected")
TARGET = 1.2
Seconds = dict[str, float]
"""CPU seconds per mapping: `orders` and `layer`."""


def digital_twin(core: Core) -> Core:
    """Core with the same memories around an array of multipliers."""
    return replace(core, operational_array=OperationalArray(core.operational_array.dimensions, 0.04, 0.0))


def seconds_a_mapping(core: Core, name: str, options: SearchOptions) -> Seconds:
    """CPU seconds per mapping over all distinct layers of resnet18."""
    mapping = read_mapping(shipped("mapping", name))
    workload = read_onnx(PROJECT / "config" / "workload" / "resnet18.onnx", profile_by_name(options.model)).workload
    used = {"orders": [0.0, 0.0], "layer": [0.0, 0.0]}
    for layer in distinct_layers(workload):
        constraints = mapping.constraints_for(layer)
        problems = [
            prepare(layer, core, constraints.memory_operand_links, unrolling, options)
            for unrolling in spatial_candidates(layer, core, constraints, options.profile)
        ]
        ordering = constraints.temporal_ordering
        for what, measured in (
            ("orders", timed(lambda p=problems, o=ordering: sum(feasible_orders(one, o, options) for one in p))),
            ("layer", timed(lambda la=layer, c=constraints: int(map_layer(la, core, c, options).evaluations or 0))),
        ):
            used[what][0] += measured["cpu_seconds"] / max(1.0, measured["orders"])
            used[what][1] += 1
    return {what: total / count for what, (total, count) in used.items()}


def measure(name: str, model: str, rounds: int, lpf_limit: int) -> list[dict[str, object]]:
    """Rows of one array and one model."""
    in_memory = read_accelerator(shipped("hardware", name)).cores[0]
    cores = {"in_memory": in_memory, "digital": digital_twin(in_memory)}
    options = SearchOptions(model=model, lpf_limit=lpf_limit)
    found: dict[str, list[Seconds]] = {kind: [] for kind in cores}
    for turn in range(rounds + 1):
        for kind, core in cores.items():
            seconds = seconds_a_mapping(core, name, options)
            if turn:  # the first one loads kernels
                found[kind].append(seconds)
    rows = []
    for what in ("orders", "layer"):
        median = {kind: statistics.median(one[what] for one in rounds_of) for kind, rounds_of in found.items()}
        ratios = [one[what] / other[what] for one, other in zip(found["in_memory"], found["digital"], strict=True)]
        rows.append({"array": name, "model": model, "what": what, **median, "ratio": statistics.median(ratios)})
    return rows


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--lpf-limit", type=int, default=6)
    parser.add_argument("--output", type=Path, default=HERE / "results" / "in_memory.json")
    options = parser.parse_args()
    rows = [
        row for name in EXAMPLES for model in MODELS for row in measure(name, model, options.rounds, options.lpf_limit)
    ]
    print(f"{'array':8}{'model':14}{'CPU time a mapping':20}{'in memory':>12}{'digital':>12}{'ratio':>8}{'target':>8}")
    for row in rows:
        times = "".join(f"{1e6 * float(str(row[kind])):>9.2f} µs" for kind in ("in_memory", "digital"))
        print(f"{row['array']:8}{row['model']:14}{row['what']:20}{times}{row['ratio']:>8.3f}{TARGET:>8}")
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
