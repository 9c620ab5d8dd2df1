"""Generate the committed points of in-memory arrays by running the pinned peer (zigzag-dse 3.9.1).

Run with the reference environment's Python (`benchmarks/reference/setup_environment.py` prints its path):

    python tests/conformance/make_in_memory_reference.py

It rewrites `data/in_memory/points.jsonl.gz`: fixed mappings on `data/in_memory/hardware`, with energy, delays by
component and areas, and the points that the peer refuses. Everything is seeded, so a second run writes the same bytes.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parents[2]
DATA = Path(__file__).with_name("data") / "in_memory"
sys.path[:0] = [str(PROJECT / "benchmarks" / "reference"), str(Path(__file__).parent)]

import runner  # noqa: E402  (found through the line above)
from make_reference import write_points  # noqa: E402
from random_problems import KINDS, random_layer, random_order, random_unrolling  # noqa: E402
from zigzag.cost_model.cost_model_imc import CostModelEvaluationForIMC  # noqa: E402

LAYERS_PER_KIND = 3
SPATIAL_MAPPINGS_PER_LAYER = 5
ORDERS_PER_SPATIAL_MAPPING = 2
IN_MEMORY = ("mac_energy_breakdown", "tclk", "tclk_breakdown", "area_total", "imc_area", "mem_area", "cycles_per_op")
AREAS = ("imc_area_breakdown", "mem_area_breakdown")


def summary(evaluated: Any) -> dict[str, Any]:
    """The `result` object of a point, with the fields that only in-memory arrays have."""
    return runner.summarize(evaluated) | {"imc": {name: getattr(evaluated, name) for name in (*IN_MEMORY, *AREAS)}}


def points_of_layer(hardware: str, accelerator: Any, index: int, kind: str) -> Iterator[dict[str, Any]]:
    """All points of one random layer on one accelerator. Every second spatial mapping is not cut to the memories."""
    rng = random.Random(f"{hardware}/{kind}/{index}")
    described = random_layer(kind, rng)
    weight_bits = accelerator.operational_array.weight_precision
    described["operand_precision"]["W"] = min(weight_bits, described["operand_precision"]["W"])
    described["memory_operand_links"] = {"O": "O", "W": "I2", "I": "I1"}
    layer = runner.make_layer(described)
    sizes = dict(zip(map(str, layer.layer_dims), layer.layer_dim_sizes.data.values(), strict=True))
    array = {str(dim): size for dim, size in accelerator.operational_array.dimension_sizes.items()}
    for s in range(SPATIAL_MAPPINGS_PER_LAYER):
        requested = random_unrolling(sizes, array, rng)
        head = {"hardware": hardware, "layer": runner.describe_layer(layer), "spatial_mapping_requested": requested}
        try:
            mapped = runner.limit_spatial(accelerator, layer, requested) if s % 2 else requested
            pair = runner.convert_spatial(accelerator, layer, mapped)
        except runner.PointError:
            continue
        loop_sizes = runner.temporal_loop_sizes(accelerator, layer, pair[0])
        for t in range(ORDERS_PER_SPATIAL_MAPPING):
            order = random_order(loop_sizes, rng)
            point = {"id": f"{hardware}/{kind}{index}/s{s}/t{t}"} | head | {
                "spatial_mapping": mapped,
                "loop_order_inner_to_outer": order,
                "temporal_mapping_type": "uneven",
            }  # fmt: skip
            try:
                yield point | {"result": summary(runner.evaluate(accelerator, layer, pair, order, "uneven"))}
            except runner.PointError as refusal:
                yield point | {"error": refusal.kind, "stage": refusal.stage}


def main() -> int:
    """Write the points, and print how many there are of each outcome."""
    runner.CostModelEvaluation = CostModelEvaluationForIMC
    points = []
    for path in sorted((DATA / "hardware").glob("*.yaml")):
        accelerator = runner.read_accelerator(path)
        for kind in KINDS:
            for index in range(LAYERS_PER_KIND):
                points += points_of_layer(path.stem, accelerator, index, kind)
    points = [point for point in runner.plain_numbers(points) if point.get("stage") != "allocation"]
    write_points(points, DATA / "points.jsonl.gz")
    print(Counter((point["hardware"], point.get("stage", "feasible"), point.get("error", "")) for point in points))
    return 0


if __name__ == "__main__":
    sys.exit(main())
