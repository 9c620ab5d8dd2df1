"""Parts and tiles of any size in mapping files of stream-dse 2.x: equal pieces that cover each loop, or a refusal."""

import math
import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some
from tilewright.base.errors import InputError, Problem
from tilewright.multicore.nodes.tiling_options import TilingOptions
from tilewright.pipeline.stages.descriptions import Descriptions
from tilewright.pipeline.stages.multi.items import SystemProblem
from tilewright.pipeline.stages.preflight.network import checked_cn_graph, read_checked

from tests.members import members
from tests.unit.peers.stream.plan_networks import pooled_network

HARDWARE = Path(__file__).resolve().parents[4] / "config" / "hardware"
SYSTEM: dict[str, Any] = {
    "name": "eight",
    "cores": {place: str(HARDWARE / "zigzag" / "tpu_like_vector.yaml") for place in range(8)},
    "offchip_core": str(HARDWARE / "multi" / "cores" / "offchip.yaml"),
    "core_connectivity": ["0, 1, 2, 3, 4, 5, 6, 7"],
    "bandwidth": 64,
    "unit_energy_cost": 0,
}
LAYERS = ("first", "relu", "pool", "second")
CUT = {"first": (1, 2, 6), "relu": (1, 2, 3), "pool": (1, 2, 3), "second": (1, 2, 6)}
"""Loops of each layer that are cut: both axes of the image, and the output channels."""
NUMBERS = some.integers(1, 40)


@some.composite
def files(draw: some.DrawFn) -> dict[str, Any]:
    """Mapping file with one group of all layers, parts of two layers, and one tile; all numbers are random."""
    cuts = dict.fromkeys(LAYERS, ())
    for layer in draw(some.lists(some.sampled_from(LAYERS), max_size=2, unique=True)):
        cuts[layer] = ({"dim": f"D{draw(some.sampled_from(CUT[layer]))}", "split": draw(some.integers(1, 8))},)
    layers = [
        {
            "name": name,
            "core_allocation": [list(range(8))],
            "inter_core_tiling": [list(cuts[name])] if cuts[name] else [],
        }
        for name in LAYERS
    ]
    tiled = draw(some.sampled_from(LAYERS))
    tiles = [{"dim": f"{tiled}.D{draw(some.sampled_from(CUT[tiled]))}", "tile": draw(NUMBERS)}]
    return {"layers": layers, "fused_groups": [{"name": "g", "layers": list(LAYERS), "intra_core_tiling": tiles}]}


def problem_of(network: Path, file: dict[str, Any]) -> SystemProblem:
    """Problem of a network on eight equal cores with a mapping file."""
    return read_checked(Descriptions(SYSTEM, network, file), TilingOptions())


def nearest(problem: Problem) -> list[int]:
    """Numbers that a message names as the nearest allowed numbers. Without such numbers, all allowed numbers."""
    return [int(one) for one in re.findall(r"\d+", problem.allowed.rpartition("nearest ")[2])]


def repair(file: dict[str, Any], problem: Problem, number: int) -> None:
    """Put a number in the place of the value that a message reports."""
    *path, last = re.findall(r"\w+", problem.path)
    place: Any = file
    for step in path:
        place = place[int(step) if isinstance(place, list) else step]
    place[last] = number


@given(some.data(), files(), some.integers(1, 14), some.integers(1, 40))
@settings(max_examples=members(400, 40), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_pieces_are_equal_and_cover_each_loop(
    tmp_path: Path, data: some.DataObject, file: dict[str, Any], half: int, channels: int
) -> None:
    """Numbers that do not fit are refused, and the nearest numbers of the message are accepted in their place. The
    pieces of each loop then have one size and cover the loop exactly, so the nodes do all operations of the layer.
    """
    network = pooled_network(tmp_path, 2 * half, channels)
    replaced: set[str] = set()
    while True:
        try:
            problem = problem_of(network, file)
        except InputError as error:
            found = sorted(error.problems, key=lambda one: "fused_groups" in one.path)
            assert found[0].path not in replaced
            replaced.add(found[0].path)
            repair(file, found[0], data.draw(some.sampled_from(nearest(found[0]))))
        else:
            break
    graph, _ = checked_cn_graph(problem, TilingOptions())
    work: Counter[str] = Counter()
    for layer in graph.layers:
        for name, size in layer.loop_sizes:
            tiles = layer.grid.tiles[name]
            assert (int(tiles.start[0]), int(tiles.end[-1])) == (0, size)
            assert np.array_equal(tiles.end[:-1], tiles.start[1:])
            assert len(set(tiles.lengths.tolist())) == 1
        shapes = graph.shape[layer.first_cn : layer.first_cn + layer.cn_count]
        work[layer.name] += sum(graph.shapes[shape].mac_count for shape in shapes)
    assert work == {
        node.name: math.prod(dict(node.layer.loop_sizes).values()) for node in problem.workload.nodes if node.layer
    }
