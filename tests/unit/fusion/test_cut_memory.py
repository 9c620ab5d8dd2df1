"""Graphs and pieces that are built with what is known of other cuts equal those that are built without."""

import random
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tilewright.fusion.cut_memory import CutMemory
from tilewright.fusion.generation import build_cn_graph
from tilewright.fusion.pieces import data_pieces
from tilewright.fusion.tiling import Tiling
from tilewright.fusion.tiling_options import network_tiling
from tilewright.fusion_search.evaluate import Outcome
from tilewright.fusion_search.moves import PlanMoves
from tilewright.fusion_search.plan import Plan, layers_of, planned_mapping
from tilewright.fusion_search.segments import PART_RULES, blocks
from tilewright.fusion_search.space import Fixed, plan_space
from tilewright.stages.multi.problem import SystemProblem

from tests.unit.fusion_search.cases import random_case, system_problem

PROJECT = Path(__file__).parents[3]


def same_columns(one: Any, other: Any) -> bool:
    """Whether all fields of two frozen values are equal."""
    return all(
        np.array_equal(a, b) and a.dtype == b.dtype if isinstance(a, np.ndarray) else a == b
        for a, b in ((getattr(one, field.name), getattr(other, field.name)) for field in fields(one))
    )


def tiling_of(problem: SystemProblem, plan: Plan) -> Tiling:
    """How the network is cut."""
    mapping = planned_mapping(problem.mapping, layers_of(problem.workload), plan)
    return network_tiling(problem.workload, mapping, problem.accelerator, plan.tiling_options())


def plans(problem: SystemProblem, seed: int, count: int) -> list[Plan]:
    """A plan, and random steps from each to the next."""
    space, draw = plan_space(problem, Fixed()), random.Random(seed)
    moves = PlanMoves(space, blocks(space), draw)
    found = [space.uniform(4, PART_RULES[seed % len(PART_RULES)])]
    while len(found) < count:
        kind, task = moves.next_task(Outcome(found[-1], None), 0)
        if kind != "cores":
            found.append(task.plan)
    return found


@pytest.mark.parametrize("most_entries", [10**7, 100])
@pytest.mark.parametrize("seed", range(3))
def test_what_is_known_changes_nothing(seed: int, most_entries: int, tmp_path: Path) -> None:
    """Random networks in random plans, one after the other; also where almost all is forgotten."""
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
    """Heads of an attention are split and joined between the layers."""
    network, hardware = PROJECT / "config/workload/bert_tiny.onnx", PROJECT / "config/hardware/multi/quad_core.yaml"
    problem = system_problem(network, hardware)
    known = CutMemory(problem.workload)
    for plan in plans(problem, 1, 4):
        tiling = tiling_of(problem, plan)
        with_known, alone = build_cn_graph(problem.workload, tiling, known), build_cn_graph(problem.workload, tiling)
        assert same_columns(with_known, alone)
        pieces = data_pieces(problem.workload, with_known, known=known)
        assert same_columns(pieces, data_pieces(problem.workload, alone))
