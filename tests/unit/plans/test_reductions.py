"""Reductions cut between cores in the search of plans: tried cuts, found plans, and bounds that stay below."""

import json
import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from onnx.helper import make_node
from tilewright.base.errors import Problems
from tilewright.cli.main import main
from tilewright.mapping.constraints import Mapping, PartAdditions, TilingEntry
from tilewright.multicore.nodes.partial_sums import reductions_of, why_not_summed
from tilewright.multicore.nodes.reduction_cuts import cut_reductions
from tilewright.pipeline.stages.multi.items import SystemProblem
from tilewright.plans.plan import layers_of
from tilewright.plans.reductions import reduction_variants
from tilewright.plans.tiling_bounds.bound import tiling_bounds
from tilewright.plans.tiling_bounds.needed_shares import needed_boxes
from tilewright.search.options import CnSearchOptions

from tests.members import members
from tests.unit.multi_core.runs import core, off_chip, saved, write_accelerator
from tests.unit.plans.cases import fused, random_case, system_problem
from tests.unit.plans.random_plans import random_settings, schedules

SHAPES = ("one_core", "tree", "ring")


def with_random_cuts(draw: random.Random, problem: SystemProblem) -> SystemProblem:
    """The network with reductions of random layers cut into parts."""
    entries = []
    for node in layers_of(problem.workload):
        assert node.layer is not None
        sizes = node.layer.size_of
        names = [name for name in reductions_of(node.layer) if sizes[name] > 1]
        if names and not why_not_summed(node) and draw.random() < 0.7:
            name = draw.choice(names)
            loops = (TilingEntry(name, draw.randint(2, min(4, sizes[name]))),)
            own = problem.mapping.constraints_for(node.layer)
            sums = PartAdditions(draw.choice(SHAPES))
            entries.append(replace(own, name=node.name, inter_core_tiling=loops, reduction=sums))
    mapping = Mapping((*entries, *problem.mapping.entries))
    network, found = cut_reductions(problem.workload, mapping, problem.accelerator, Problems())
    return replace(problem, workload=network, mapping=found)


@pytest.mark.parametrize("seed", range(members(1000, 8)))
def test_no_random_plan_with_cut_reductions_is_below_the_bounds(seed: int, tmp_path: Path) -> None:
    """Schedules of random plans with random cuts of reductions have at least the latency and energy of the bounds."""
    draw = random.Random(seed)
    problem = system_problem(*random_case(seed, tmp_path))
    search, settings = CnSearchOptions(lpf_limit=2, objective=draw.choice(("latency", "energy"))), random_settings(draw)
    bounds = tiling_bounds(problem, search.model, settings, cuts_reductions=True)
    whole = tiling_bounds(problem, search.model, settings)
    assert bounds.latency_cycles <= whole.latency_cycles
    assert bounds.energy_pj <= whole.energy_pj * (1 + 1e-12)
    for _ in range(2):
        cut = with_random_cuts(draw, problem)
        for plan, found in schedules(draw, cut, search, settings, 3):
            assert found.latency_cycles >= bounds.latency_cycles, (seed, plan)
            assert found.energy_pj >= bounds.energy_pj, (seed, plan)


def test_a_part_waits_only_for_its_inputs(tmp_path: Path) -> None:
    """A tile of a cut reduction may need only one producer's channels; a whole sum needs both producers."""
    nodes = [
        make_node("Conv", ["x", "w0"], ["a"], name="a"),
        make_node("Conv", ["x", "w1"], ["b"], name="b"),
        make_node("Concat", ["a", "b"], ["k"], name="k", axis=1),
        make_node("Conv", ["k", "w2"], ["y"], name="y"),
    ]
    weights = {"w0": (4, 4, 1, 1), "w1": (4, 4, 1, 1), "w2": (4, 8, 1, 1)}
    network = saved(tmp_path, nodes, {"x": (1, 4, 4, 4)}, {name: np.ones(one) for name, one in weights.items()})
    workload = system_problem(network).workload
    last = layers_of(workload)[-1].node_id
    assert {"a", "b"} <= set(needed_boxes(workload, last))
    assert not {"a", "b"} & set(needed_boxes(workload, last, ("C",)))


def long_sum(folder: Path) -> tuple[Path, Path]:
    """A matrix product of few outputs, on four cores at one narrow bus."""
    nodes = [make_node("MatMul", ["x", "w"], ["y"], name="y")]
    network = saved(folder, nodes, {"x": (4, 512)}, {"w": np.ones((512, 4), np.float32)})
    system = {
        "cores": {number: core("lane", 2, "2 KiB") for number in range(4)},
        "offchip": off_chip(),
        "links": [{"type": "bus", "cores": [0, 1, 2, 3, 4], "bandwidth": 16, "energy_per_bit": "200 fJ"}],
    }
    return network, write_accelerator(folder / "hw", system)


def test_which_reductions_are_tried(tmp_path: Path) -> None:
    """Few outputs with a long sum are tried as trees and rings. Many outputs, or fixed parts, are not."""
    network, hardware = long_sum(tmp_path)
    problem = system_problem(network, hardware)
    found = reduction_variants(problem)
    assert [(one.shape, one.parts, one.layers) for one in found] == [
        ("tree", 4, ("y",)),
        ("ring", 4, ("y",)),
        ("tree", 2, ("y",)),
    ]
    assert [one.shape for one in reduction_variants(problem, with_rings=False)] == ["tree", "tree"]
    fixed = [{"name": "default"}, {"name": "y", "inter_core_tiling": ["K, 2"]}]
    assert reduction_variants(system_problem(network, hardware, fixed)) == []
    nodes = [make_node("MatMul", ["x", "w"], ["y"], name="y")]
    wide = saved(tmp_path / "wide", nodes, {"x": (64, 8)}, {"w": np.ones((8, 64), np.float32)})
    assert reduction_variants(system_problem(wide, hardware)) == []


@pytest.mark.slow
def test_fuse_cuts_a_long_sum(tmp_path: Path) -> None:
    """`fuse` with the option finds a faster plan, reproduces it from its mapping file, and passes all checks."""
    network, hardware = long_sum(tmp_path)
    whole = fused(network, hardware, nb_plans=24)
    found = fused(network, hardware, nb_plans=96, cut_reductions=True, output=tmp_path / "out")
    assert found.latency_cycles < whole.latency_cycles
    document = json.loads((tmp_path / "out" / "fusion.json").read_text())["payload"]
    assert [one["is_best"] for one in document["reductions"]].count(True) == 1
    assert document["any_plan"]["latency_cycles"] <= found.latency_cycles
    assert "may also cut reductions of sums of products" in document["any_plan"]["covers"]
    assert document["layer_by_layer"]["latency_cycles"] >= whole.latency_cycles
    assert main(["check", str(tmp_path / "out")]) == 0


def test_without_the_option_nothing_changes(tmp_path: Path) -> None:
    """The answer without the option has no reductions, and its bounds cover whole reductions."""
    network, hardware = long_sum(tmp_path)
    found = fused(network, hardware, nb_plans=6)
    assert "reductions" not in found.document
    assert "reduction" not in found.document["any_plan"]["covers"]
