"""Plans in which weights pass through all cores, and the layers of a stack advance together."""

import json
import math
import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
import tilewright
from tilewright.multicore.nodes.partial_sums import reductions_of
from tilewright.multicore.nodes.tiling_options import TilingOptions
from tilewright.multicore.scheduling.options import ScheduleSettings
from tilewright.pipeline.stages.preflight.network import preflight
from tilewright.plans.advancing import (
    ADVANCING_DEPTHS,
    PROGRESS,
    advancing_plan,
    advancing_stacks,
    advancing_tasks,
    step_dimension,
    stepped,
    stepped_dimensions,
)
from tilewright.plans.blocks import part_bits
from tilewright.plans.evaluate import PlanEvaluator, Task
from tilewright.plans.opening import ADVANCING
from tilewright.plans.plan import has_steps, planned_mapping
from tilewright.plans.space import Fixed, plan_space
from tilewright.plans.tiling_bounds.bound import tiling_bounds
from tilewright.search.options import CnSearchOptions

from tests.members import members
from tests.unit.plans.cases import SHORT, options, system_problem
from tests.unit.plans.test_passing import on_a_bus, two_products
from tests.unit.workload.onnx.dependency_checks import build_model


def gated(folder: Path, rows: int, inner: int, columns: int) -> Path:
    """Two products of one input, joined by elementwise layers, and a product of the result."""
    nodes = [
        onnx.helper.make_node("MatMul", ["a", "u"], ["b"], name="gate"),
        onnx.helper.make_node("MatMul", ["a", "v"], ["c"], name="up"),
        onnx.helper.make_node("Relu", ["b"], ["d"], name="relu"),
        onnx.helper.make_node("Mul", ["c", "d"], ["e"], name="join"),
        onnx.helper.make_node("MatMul", ["e", "w"], ["y"], name="down"),
    ]
    weights = {"u": (inner, columns), "v": (inner, columns), "w": (columns, inner)}
    arrays = {name: np.zeros(shape, np.float32) for name, shape in weights.items()}
    path = folder / "gated.onnx"
    onnx.save(build_model(nodes, {"a": (rows, inner)}, arrays), str(path))
    return path


def test_layers_with_as_many_weighted_layers_before_them_are_a_stack(tmp_path: Path) -> None:
    """The two first products and their joining layers are one stack, the last product is another, and the plan has
    both.
    """
    problem = system_problem(gated(tmp_path, 16, 200, 300), on_a_bus(tmp_path, 3, 4))
    space = plan_space(problem, Fixed())
    gate, up, relu, join, down = space.node_ids
    assert advancing_stacks(problem, space) == ((gate, up, relu, join), (down,))
    plan = advancing_plan(problem, space, 16, 5)
    assert (plan.stacks, plan.selection) == (advancing_stacks(problem, space), PROGRESS)


@pytest.mark.parametrize("seed", range(members(80, 10)))
def test_steps_are_as_few_as_the_room_allows(seed: int, tmp_path: Path) -> None:
    """Inputs and outputs of a part and several steps of the weights fit in a core; with fewer, longer steps they do
    not.
    """
    draw = random.Random(seed)
    hardware = on_a_bus(tmp_path, draw.randint(2, 4), draw.choice((1, 2, 4, 8)), draw.random() < 0.5)
    problem = system_problem(
        gated(tmp_path, draw.randint(4, 40), draw.randint(40, 500), draw.randint(40, 500)), hardware
    )
    width, depth = draw.choice((8, 16, 32)), draw.choice(ADVANCING_DEPTHS)
    for one in plan_space(problem, Fixed()).layers:
        if not one.weight_bits:
            continue
        assert one.machine is not None
        tiles = stepped(one, width, depth)
        rows = math.ceil(one.size("D") / min(one.filling, one.size("D")))
        pieces = math.ceil(one.size("K") / width)
        part = {"D": rows, "K": math.ceil(one.size("K") / pieces)}
        whole = part_bits(one.layer, part)

        def fits(length: int, one: object = one, part: object = part, whole: object = whole) -> bool:
            bits = part_bits(one.layer, {**part, "C": length})  # type: ignore[attr-defined, dict-item]
            taken = {**whole, "W": depth * bits["W"]}  # type: ignore[dict-item]
            rooms = one.machine.rooms  # type: ignore[attr-defined]
            return all(sum(taken[name] for name in held) <= room for room, held in rooms)

        if tiles is None:
            assert not fits(1)
            continue
        assert {loop.dimension for loop in tiles.between} <= {"D", "K"}
        steps = {loop.dimension: int(loop.tiles) for loop in tiles.within}.get("C", 1)
        assert fits(math.ceil(one.size("C") / steps))
        assert steps == 1 or not fits(math.ceil(one.size("C") / (steps - 1)))


@pytest.mark.parametrize("seed", range(members(12, 2)))
def test_the_answer_is_no_worse_and_its_files_reproduce_it(seed: int, tmp_path: Path) -> None:
    """The answer is no worse than the best advancing plan, if the search tries all advancing plans.

    The lower bounds hold for plans with steps. A search that starts from the written answer reads the same steps.
    """
    draw = random.Random(seed)
    network = gated(tmp_path, draw.randint(8, 24), draw.randint(100, 160), draw.randint(160, 300))
    hardware = on_a_bus(tmp_path, draw.randint(2, 3), draw.choice((2, 4)), True)
    problem = system_problem(network, hardware)
    space = plan_space(problem, Fixed())
    tasks = list(advancing_tasks(problem, space))
    assert tasks
    search = options().part(CnSearchOptions)
    evaluator = PlanEvaluator(problem, search, ScheduleSettings(), "latency")
    bounds = tiling_bounds(problem, search.model, ScheduleSettings(), steps=stepped_dimensions(space))
    outcomes = [evaluator.evaluate(task) for task in tasks]
    made = [one.figures for one in outcomes if one.figures is not None]
    assert made
    assert all(bounds.latency_cycles <= one.latency_cycles and bounds.energy_pj <= one.energy_pj for one in made)
    found = tilewright.fuse(network, hardware, **{**SHORT, "nb_plans": 20}, output=tmp_path / "out")
    origins = [one.origin for one in found.found.tried]
    assert origins.count(ADVANCING) in (1, len(tasks))
    if origins.count(ADVANCING) == len(tasks):
        assert found.latency_cycles <= min(one.latency_cycles for one in made)
    again = tilewright.fuse(
        network, hardware, **{**SHORT, "nb_plans": 1}, start=tmp_path / "out", output=tmp_path / "again"
    )
    assert json.loads((tmp_path / "again" / "fusion.json").read_text())["payload"]["start"]["latency_cycles"] == (
        found.latency_cycles
    )
    assert again.latency_cycles <= found.latency_cycles


def test_a_plan_with_steps_is_a_mapping_file(tmp_path: Path) -> None:
    """Layers with steps are tiled even if they are alone in their stack, and only their mapping entries say so."""
    problem = system_problem(gated(tmp_path, 16, 200, 300), on_a_bus(tmp_path, 2, 2, True))
    space = plan_space(problem, Fixed())
    plan = advancing_plan(problem, space, 16, 5)
    stepping = [has_steps(one.layer, tiles) for one, tiles in zip(space.layers, plan.tiles, strict=True)]
    assert any(stepping)
    nodes = [one.node for one in space.layers]
    entries = planned_mapping(problem.mapping, nodes, plan).entries
    assert [entry.tiles_if_alone for entry in entries[: len(nodes)]] == stepping
    evaluator = PlanEvaluator(problem, options().part(CnSearchOptions), ScheduleSettings(), "latency")
    count = {layer.name: layer.cn_count for layer in evaluator.costed(plan).graph.layers}
    for one, tiles in zip(space.layers, plan.tiles, strict=True):
        loops = [(one.size(loop.dimension), int(loop.tiles)) for loop in (*tiles.between, *tiles.within)]
        assert count[one.node.name] == math.prod(math.ceil(size / math.ceil(size / parts)) for size, parts in loops)


def test_only_reductions_of_sums_of_products_have_steps(tmp_path: Path) -> None:
    """Layers without weights have no steps. No layer has steps if the weights fit, or if the run fixes stacks or
    selection.
    """
    hardware = on_a_bus(tmp_path, 3, 8)
    problem = system_problem(gated(tmp_path, 16, 300, 300), hardware)
    space = plan_space(problem, Fixed())
    assert [set(names) for names in stepped_dimensions(space)] == [{"C"}, {"C"}, set(), set(), {"C"}]
    assert [step_dimension(one) for one in space.layers] == ["C", "C", "", "", "C"]
    for names, one in zip(stepped_dimensions(space), space.layers, strict=True):
        assert names <= set(reductions_of(one.layer))
    assert list(advancing_tasks(problem, plan_space(problem, Fixed(selection="memory")))) == []
    assert list(advancing_tasks(problem, plan_space(problem, Fixed(selection=PROGRESS))))
    small = system_problem(two_products(tmp_path, 16, 32, 32), hardware)
    assert list(advancing_tasks(small, plan_space(small, Fixed()))) == []
    assert not any(stepped_dimensions(plan_space(small, Fixed())))


def test_the_tasks_give_every_part_one_core(tmp_path: Path) -> None:
    """Each task gives a core to each part, and evaluates only these cores."""
    problem = system_problem(gated(tmp_path, 16, 300, 300), on_a_bus(tmp_path, 3, 4, True))
    tasks = list(advancing_tasks(problem, plan_space(problem, Fixed())))
    assert len({task.plan for task in tasks}) == len(tasks)
    evaluator = PlanEvaluator(problem, options().part(CnSearchOptions), ScheduleSettings(), "latency")
    for task in tasks[:2]:
        found = evaluator.evaluate(replace(task))
        assert isinstance(task, Task)
        assert found.figures is None or (found.cores == task.cores and found.evaluations == 1)


def test_tiles_of_a_layer_alone_are_used_or_told(tmp_path: Path) -> None:
    """`tiles_if_alone` cuts layers that are alone in their stacks; without a tiling, a notice says it has no effect."""
    network, hardware = two_products(tmp_path, 16, 32, 32), on_a_bus(tmp_path, 2, 8, True)

    def cut(**entry: object) -> tuple[list[int], bool]:
        problem = system_problem(network, hardware, [{"name": "default", **entry}])
        found = preflight(problem, TilingOptions(layer_stacks=[[0], [1], [2]]))
        assert found.tiling is not None
        counts = [math.prod(loop.count for loop in layer.loops) for layer in found.tiling.layers]
        return counts, any("tiles_if_alone" in notice for notice in map(str, found.notices))

    tiles = {"intra_core_tiling": ["D, 4"]}
    assert cut(**tiles) == ([1, 1, 1], False)
    assert cut(**tiles, tiles_if_alone=True)[0][0] == 4
    assert not cut(**tiles, tiles_if_alone=True)[1]
    assert cut(tiles_if_alone=True) == ([1, 1, 1], True)
