"""Plans whose weights pass through all cores in pieces, and parts that fill the cores."""

import math
import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
import yaml
from tilewright.multicore.scheduling.options import ScheduleSettings
from tilewright.plans.blocks import part_bits
from tilewright.plans.evaluate import PlanEvaluator
from tilewright.plans.opening import PASSING
from tilewright.plans.passing import PASSING_DEPTHS, passing_plan, passing_tasks
from tilewright.plans.segments import PART_RULES
from tilewright.plans.space import FEWEST_PASSING, LEAST_PASSING, Fixed, plan_space
from tilewright.search.options import CnSearchOptions

from tests.members import members
from tests.unit.plans.cases import fused, options, system_problem
from tests.unit.workload.onnx.dependency_checks import build_model

CORES = Path(__file__).resolve().parents[3] / "config" / "hardware" / "multi" / "cores"


def two_products(folder: Path, rows: int, inner: int, columns: int) -> Path:
    """Two matrix products with constant weights and a rectifier between them."""
    nodes = [
        onnx.helper.make_node("MatMul", ["a", "w"], ["b"], name="first"),
        onnx.helper.make_node("Relu", ["b"], ["c"], name="relu"),
        onnx.helper.make_node("MatMul", ["c", "v"], ["y"], name="second"),
    ]
    weights = {"w": np.zeros((inner, columns), np.float32), "v": np.zeros((columns, inner), np.float32)}
    path = folder / "products.onnx"
    onnx.save(build_model(nodes, {"a": (rows, inner)}, weights), str(path))
    return path


def on_a_bus(folder: Path, cores: int, kib: int, runs_all: bool = False) -> Path:
    """Equal cores with two memories of `kib` KiB, a vector unit and a DRAM on one bus.

    With `runs_all`, the equal cores can run all operators.
    """
    core = yaml.safe_load((CORES / "k16_c16.yaml").read_text())
    for name in ("sram_weight", "sram_activation"):
        core["memories"][name]["size"] = f"{kib} KiB"
    if runs_all:
        del core["operator_types"], core["exclusive_dataflows"]
    (folder / "core.yaml").write_text(yaml.safe_dump(core, sort_keys=False))
    for name in ("simd", "offchip"):
        (folder / f"{name}.yaml").write_text((CORES / f"{name}.yaml").read_text())
    system = {
        "name": "bus",
        "cores": {**dict.fromkeys(range(cores), "./core.yaml"), cores: "./simd.yaml", cores + 1: "./offchip.yaml"},
        "offchip_core_id": cores + 1,
        "unit_energy_cost": 0,
        "core_connectivity": [{"type": "bus", "cores": list(range(cores + 2)), "bandwidth": 64}],
    }
    path = folder / "bus.yaml"
    path.write_text(yaml.safe_dump(system, sort_keys=False))
    return path


@pytest.mark.parametrize("seed", range(members(60, 8)))
def test_pieces_are_as_large_as_the_room_allows(seed: int, tmp_path: Path) -> None:
    """A core has room for its part of inputs and outputs and for several pieces of the weights.

    If the weights were cut into fewer and larger pieces, the pieces would not fit.
    """
    draw = random.Random(seed)
    sizes = draw.randint(3, 80), draw.randint(40, 400), draw.randint(40, 400)
    cores, depth = draw.randint(2, 5), draw.choice(PASSING_DEPTHS)
    problem = system_problem(two_products(tmp_path, *sizes), on_a_bus(tmp_path, cores, draw.choice((1, 2, 4, 8))))
    space = plan_space(problem, Fixed())
    for one in (space.layers[0], space.layers[-1]):
        counts = {loop.dimension: int(loop.tiles) for loop in one.passing(depth).between}
        rows, pieces = counts.get("D", 1), counts.get("K", 1)
        assert one.machine is not None

        def fits(count: int, of: int, one: object = one, rows: int = rows) -> bool:
            part = {"D": math.ceil(one.size("D") / rows), "K": math.ceil(one.size("K") / count)}  # type: ignore[attr-defined]
            bits = part_bits(one.layer, part)  # type: ignore[attr-defined]
            rooms = one.machine.rooms  # type: ignore[attr-defined]
            return all(sum(bits[name] * (of if name == "W" else 1) for name in held) <= room for room, held in rooms)

        if rows == 1 and cores > 1:  # the inputs of a part do not fit
            assert not fits(one.size("K"), FEWEST_PASSING) or one.size("D") == 1
            continue
        assert rows == min(cores, one.size("D"))
        deep = LEAST_PASSING * pieces <= one.size("K")
        assert fits(pieces, depth if deep and fits(pieces, depth) else FEWEST_PASSING)
        before = [
            count for count in range(1, pieces) if math.ceil(one.size("K") / count) > math.ceil(one.size("K") / pieces)
        ]
        assert not before or not fits(before[-1], depth if deep and fits(pieces, depth) else FEWEST_PASSING)


@pytest.mark.parametrize("seed", range(members(12, 2)))
def test_the_answer_is_no_worse_than_passing_weights(seed: int, tmp_path: Path) -> None:
    """Passing weights is tried if weights do not fit on the chip, and the best of all plans is the answer."""
    draw = random.Random(seed)
    network = two_products(tmp_path, draw.randint(8, 40), draw.randint(100, 200), draw.randint(100, 200))
    hardware = on_a_bus(tmp_path, draw.randint(2, 4), 2)
    problem = system_problem(network, hardware)
    space = plan_space(problem, Fixed())
    tasks = list(passing_tasks(problem, space))
    assert {task.plan for task in tasks} == {passing_plan(space, depth) for depth in PASSING_DEPTHS}
    evaluator = PlanEvaluator(problem, options().part(CnSearchOptions), ScheduleSettings(), "latency")
    outcomes = [evaluator.evaluate(task) for task in tasks]
    assert all(
        outcome.figures is not None and outcome.cores == task.cores
        for outcome, task in zip(outcomes, tasks, strict=True)
    )
    found = fused(network, hardware, nb_plans=40)
    assert found.latency_cycles <= min(outcome.figures.latency_cycles for outcome in outcomes if outcome.figures)
    assert [one.origin for one in found.found.tried].count(PASSING) == len(tasks)


def test_weights_that_fit_do_not_pass(tmp_path: Path) -> None:
    """No plan that passes weights on is tried if each layer's weights fit in all of its cores together."""
    network, hardware = two_products(tmp_path, 16, 32, 32), on_a_bus(tmp_path, 3, 8)
    problem = system_problem(network, hardware)
    assert list(passing_tasks(problem, plan_space(problem, Fixed()))) == []
    large = system_problem(two_products(tmp_path, 16, 300, 300), hardware)
    assert list(passing_tasks(large, plan_space(large, Fixed())))
    assert list(passing_tasks(large, plan_space(large, Fixed(stacks=((0, 1, 2),))))) == []


@pytest.mark.parametrize("cores", [2, 3, 5])
def test_one_part_for_each_core_with_weights(cores: int, tmp_path: Path) -> None:
    """The rule that fills the cores gives layers without weights as many parts as layers with weights.

    They could run on one core more, but then data would have to move between cores.
    """
    problem = system_problem(two_products(tmp_path, 16, 64, 64), on_a_bus(tmp_path, cores, 8, True))
    space = plan_space(problem, Fixed())
    (rule,) = (rule for rule in PART_RULES if rule.fills_cores and not rule.in_image)
    assert [one.cores for one in space.layers] == [cores, cores + 1, cores]
    assert [one.parts_for(rule) for one in space.layers] == [cores] * 3


def test_known_costs_change_no_byte(tmp_path: Path) -> None:
    """A search writes the same answer with the costs it has kept and with costs computed again."""
    found = fused(two_products(tmp_path, 16, 64, 64), on_a_bus(tmp_path, 3, 8), nb_plans=20)
    assert found.known
    again = replace(found, known=None)
    assert again.document == found.document
    assert again.mapping_text == found.mapping_text
