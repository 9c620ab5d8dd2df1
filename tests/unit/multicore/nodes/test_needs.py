"""Layers that are cut alike are computed once.

Graphs and pieces that are built with kept results of other cuts equal graphs and pieces that are built without them.
"""

import random
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx.helper import make_node
from tilewright.multicore.nodes.cut_memory import CutMemory
from tilewright.multicore.nodes.generation import build_cn_graph
from tilewright.multicore.nodes.needs import LayerCut, layer_cuts, network_tensors
from tilewright.multicore.nodes.pieces import data_pieces
from tilewright.multicore.nodes.tiling import Tiling
from tilewright.multicore.nodes.tiling_options import network_tiling
from tilewright.pipeline.stages.multi.items import SystemProblem
from tilewright.plans.evaluate import PlanOutcome
from tilewright.plans.moves import PlanMoves
from tilewright.plans.plan import Plan, layers_of, planned_mapping
from tilewright.plans.segments import PART_RULES, blocks
from tilewright.plans.space import Fixed, plan_space
from tilewright.workload.graph import Workload

from tests.unit.multicore.nodes.networks import SAME, conv, read
from tests.unit.multicore.nodes.test_generation import tiled
from tests.unit.plans.cases import random_case, system_problem

WEIGHTS = {"w0": (4, 4, 3, 3), "w1": (4, 4, 3, 3), "w2": (4, 4, 3, 3)}


def cuts(workload: Workload, counts: dict[str, list[tuple[str, int | str]]]) -> list[LayerCut]:
    """The layers of a network, each cut into the given numbers of tiles."""
    network = network_tensors(workload)
    tiling = tiled(workload, counts)
    nodes = [node for node in workload.nodes if node.layer is not None]
    return layer_cuts(nodes, [tiling.of_node[node.node_id] for node in nodes], network)


def chain() -> Workload:
    """Three equal convolutions."""
    names = [("x", "w0", "a"), ("a", "w1", "b"), ("b", "w2", "c")]
    return read([conv(*each, **SAME) for each in names], constants=WEIGHTS)


def test_layers_that_differ_in_names_only_are_one() -> None:
    """Equal convolutions of a chain with equal cuts are one object."""
    first, second, third = cuts(chain(), {name: [("OY", 3)] for name in "abc"})
    assert first is second is third


def test_another_cut_is_another_layer() -> None:
    """Equal convolutions cut into three tiles are one object; the convolution cut into two tiles is another."""
    first, second, third = cuts(chain(), {"a": [("OY", 3)], "b": [("OY", 2)], "c": [("OY", 3)]})
    assert first is third is not second
    assert (first.grid.cn_count, second.grid.cn_count) == (3, 2)


def test_relations_tell_layers_of_equal_loops_apart() -> None:
    """Two convolutions with the same loops differ if one pads before and the other behind."""
    before, behind = {"pads": [2, 2, 0, 0]}, {"pads": [0, 0, 2, 2]}
    nodes = [conv("x", "w0", "a", **before), conv("x", "w1", "b", **behind), make_node("Add", ["a", "b"], ["y"])]
    first, second, _ = cuts(read(nodes, constants=WEIGHTS), {"a": [("OY", 3)], "b": [("OY", 3)]})
    assert first.node.layer.loop_sizes == second.node.layer.loop_sizes
    assert first is not second
    lines = [[demand.boxes[:, 2].tolist() for demand in cut.demands if demand.dimensions] for cut in (first, second)]
    assert lines == [[[[0, 2], [0, 4], [2, 6]]], [[[0, 4], [2, 6], [4, 6]]]]


PROJECT = Path(__file__).parents[4]


def same_columns(one: Any, other: Any) -> bool:
    """Whether all fields of two frozen values are equal."""
    return all(
        np.array_equal(a, b) and a.dtype == b.dtype if isinstance(a, np.ndarray) else a == b
        for a, b in ((getattr(one, field.name), getattr(other, field.name)) for field in fields(one))
    )


def tiling_of(problem: SystemProblem, plan: Plan) -> Tiling:
    """The tiling of the network under a plan."""
    mapping = planned_mapping(problem.mapping, layers_of(problem.workload), plan)
    return network_tiling(problem.workload, mapping, problem.accelerator, plan.tiling_options())


def plans(problem: SystemProblem, seed: int, count: int) -> list[Plan]:
    """A first plan, and plans that follow from it by random steps."""
    space, draw = plan_space(problem, Fixed()), random.Random(seed)
    moves = PlanMoves(space, blocks(space), draw)
    found = [space.uniform(4, PART_RULES[seed % len(PART_RULES)])]
    while len(found) < count:
        kind, task = moves.next_task(PlanOutcome(found[-1], None), 0)
        if kind != "cores":
            found.append(task.plan)
    return found


@pytest.mark.parametrize("most_entries", [10**7, 100])
@pytest.mark.parametrize("seed", range(3))
def test_what_is_known_changes_nothing(seed: int, most_entries: int, tmp_path: Path) -> None:
    """Successive random plans of random networks give the same graph with and without kept results of earlier plans.

    This holds even if most of the kept results are dropped.
    """
    problem = system_problem(*random_case(seed, tmp_path))
    known = CutMemory(problem.workload, most_entries)
    for plan in plans(problem, seed, 12):
        tiling = tiling_of(problem, plan)
        with_known = build_cn_graph(problem.workload, tiling, known)
        alone = build_cn_graph(problem.workload, tiling)
        assert same_columns(with_known, alone)
        pieces = data_pieces(problem.workload, with_known, known=known)
        assert same_columns(pieces, data_pieces(problem.workload, alone))
        assert data_pieces(problem.workload, with_known) is pieces


def test_a_network_with_moves_of_data(tmp_path: Path) -> None:
    """Kept results do not change the graph if heads of an attention are split and joined between layers."""
    network, hardware = PROJECT / "config/workload/bert_tiny.onnx", PROJECT / "config/hardware/multi/quad_core.yaml"
    problem = system_problem(network, hardware)
    known = CutMemory(problem.workload)
    for plan in plans(problem, 1, 4):
        tiling = tiling_of(problem, plan)
        with_known, alone = build_cn_graph(problem.workload, tiling, known), build_cn_graph(problem.workload, tiling)
        assert same_columns(with_known, alone)
        pieces = data_pieces(problem.workload, with_known, known=known)
        assert same_columns(pieces, data_pieces(problem.workload, alone))
