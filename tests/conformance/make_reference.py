"""Generate the committed conformance set by running the pinned peer (zigzag-dse 3.9.1).

Run with the reference environment's Python (`benchmarks/reference/setup_environment.py` prints its path):

    python tests/conformance/make_reference.py

It rewrites `data/reference-points.jsonl.gz` (fixed mappings, also some that the peer refuses) and `data/flow-*.json`
(the peer's own search). Everything is seeded, so a second run writes the same bytes.

`--replay FILE --hardware-dir DIR` instead recomputes points of an existing corpus and reports differences, which shows
that this script drives the peer correctly.
"""

from __future__ import annotations

import argparse
import gzip
import io
import json
import random
import sys
from collections import Counter
from collections.abc import Iterator
from math import isclose
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parents[2]
DATA = Path(__file__).with_name("data")
sys.path.insert(0, str(PROJECT / "benchmarks" / "reference"))

import flow  # noqa: E402  (found through the line above)
import runner  # noqa: E402
from random_problems import KINDS, random_layer, random_order, random_unrolling  # noqa: E402

LAYERS_PER_KIND = 2
SPATIAL_MAPPINGS_PER_LAYER = 3
ORDERS_PER_SPATIAL_MAPPING = 3


def points_of_layer(hardware: str, accelerator: Any, index: int, kind: str) -> Iterator[dict[str, Any]]:
    """All points of one random layer on one accelerator, each a finished record."""
    rng = random.Random(f"{hardware}/{kind}/{index}")
    layer = runner.make_layer(random_layer(kind, rng))
    sizes = dict(zip(map(str, layer.layer_dims), layer.layer_dim_sizes.data.values(), strict=True))
    array = {str(dim): size for dim, size in accelerator.operational_array.dimension_sizes.items()}
    for s in range(SPATIAL_MAPPINGS_PER_LAYER):
        requested = random_unrolling(sizes, array, rng)
        head = {
            "id": f"{hardware}/{kind}{index}/s{s}",
            "hardware": hardware,
            "layer": runner.describe_layer(layer),
            "spatial_mapping_requested": requested,
        }
        try:
            limited = runner.limit_spatial(accelerator, layer, requested)
            pair = runner.convert_spatial(accelerator, layer, limited)
        except runner.PointError as refusal:
            yield head | {"error": refusal.kind, "stage": refusal.stage}
            continue
        loop_sizes = runner.temporal_loop_sizes(accelerator, layer, pair[0])
        for t in range(ORDERS_PER_SPATIAL_MAPPING):
            order = random_order(loop_sizes, rng)
            mapping_type = rng.choice(("uneven", "uneven", "even"))
            point = head | {
                "id": f"{hardware}/{kind}{index}/s{s}/t{t}",
                "spatial_mapping": limited,
                "temporal_loop_sizes": loop_sizes,
                "loop_order_inner_to_outer": order,
                "temporal_mapping_type": mapping_type,
                "access_same_data_considered_as_no_access": True,
            }
            try:
                cme = runner.evaluate(accelerator, layer, pair, order, mapping_type)
                yield point | {"result": runner.summarize(cme)}
            except runner.PointError as refusal:
                yield point | {"error": refusal.kind, "stage": refusal.stage}


def make_points() -> list[dict[str, Any]]:
    """Every fixed-mapping point of the committed set, in a fixed order."""
    points = []
    for path in sorted((DATA / "hardware").glob("*.yaml")):
        accelerator = runner.read_accelerator(path)
        for kind in KINDS:
            for index in range(LAYERS_PER_KIND):
                points += points_of_layer(path.stem, accelerator, index, kind)
    return runner.plain_numbers(points)


def write_points(points: list[dict[str, Any]], path: Path) -> None:
    """Write gzip'd JSON lines without time stamp and file name, so that the bytes depend on the content only."""
    lines = "".join(json.dumps(point, separators=(",", ":")) + "\n" for point in points)
    buffer = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", compresslevel=9, fileobj=buffer, mtime=0) as stream:
        stream.write(lines.encode())
    path.write_bytes(buffer.getvalue())


def replay(corpus: Path, hardware_dir: Path, count: int, seed: int) -> int:
    """Recompute `count` random points of a corpus, print the differences, and return the number of differing points."""
    with gzip.open(corpus, "rt") as stream:
        points = [json.loads(line) for line in stream]
    chosen = random.Random(seed).sample(points, min(count, len(points)))
    accelerators: dict[str, Any] = {}
    outcome: Counter[str] = Counter()
    for point in chosen:
        name = point["hardware"]
        if name not in accelerators:
            accelerators[name] = runner.read_accelerator(hardware_dir / f"{name}.yaml")
        differing = _differences(point, accelerators[name])
        outcome["different" if differing else "equal"] += 1
        if differing:
            print(point["id"], differing)
    print(dict(outcome))
    return outcome["different"]


def _differences(point: dict[str, Any], accelerator: Any) -> list[str]:
    layer = runner.make_layer(point["layer"])
    try:
        limited = runner.limit_spatial(accelerator, layer, point["spatial_mapping_requested"])
        pair = runner.convert_spatial(accelerator, layer, limited)
        flag = point.get("access_same_data_considered_as_no_access", True)
        order = point["loop_order_inner_to_outer"]
        cme = runner.evaluate(accelerator, layer, pair, order, point["temporal_mapping_type"], flag)
    except runner.PointError as refusal:
        return [] if (refusal.kind, refusal.stage) == (point.get("error"), point.get("stage")) else [str(refusal)]
    if "result" not in point:
        return [f"expected {point['error']}"]
    computed = runner.plain_numbers(runner.summarize(cme))
    names = ["spatial_mapping"] if limited != point["spatial_mapping"] else []
    return names + [key for key in computed if not _equal(key, computed[key], point["result"][key])]


def _equal(key: str, ours: Any, theirs: Any) -> bool:
    # Python 3.12 made sum() of floats compensated, so this one sum differs in the last bit between Python versions.
    if key == "mem_utilization_shared":
        return all(isclose(a, b, rel_tol=1e-14) for op in theirs for a, b in zip(ours[op], theirs[op], strict=True))
    return ours == theirs


def main() -> int:
    """Command line: generate the set, or replay another corpus."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replay", type=Path, help="corpus (.jsonl.gz) to recompute instead of generating")
    parser.add_argument("--hardware-dir", type=Path, default=DATA / "hardware", help="hardware files of the corpus")
    parser.add_argument("--count", type=int, default=100, help="points to replay")
    parser.add_argument("--seed", type=int, default=1, help="choice of the points to replay")
    arguments = parser.parse_args()
    if arguments.replay:
        return 1 if replay(arguments.replay, arguments.hardware_dir, arguments.count, arguments.seed) else 0
    points = make_points()
    write_points(points, DATA / "reference-points.jsonl.gz")
    print(Counter((point["hardware"], point.get("stage", "feasible")) for point in points))
    print(Counter(point.get("stage", "feasible") for point in points))
    for name, record in flow.make_flows(DATA):
        (DATA / f"{name}.json").write_text(json.dumps(runner.plain_numbers(record), indent=1) + "\n")
        print(name, record["network_energy"], record["network_latency"])
    return 0


if __name__ == "__main__":
    sys.exit(main())
