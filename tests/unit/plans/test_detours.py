"""Results by way of the off-chip memory: steps between choices of layers, and the first plans of a search."""

import random
from pathlib import Path

import yaml
from hypothesis import given
from hypothesis import strategies as st
from tilewright.multicore.scheduling.options import ScheduleSettings
from tilewright.plans.detours import DetourSteps
from tilewright.plans.evaluate import PlanEvaluator, Task
from tilewright.plans.opening import LAYER_BY_LAYER_RULES, OFF_CHIP
from tilewright.plans.space import Fixed, plan_space
from tilewright.search.options import CnSearchOptions

from tests.unit.plans.cases import fused, options, system_problem
from tests.unit.plans.test_passing import CORES, two_products


@given(st.integers(0, 10**6), st.lists(st.integers(0, 100), min_size=1, max_size=12), st.data())
def test_a_step_changes_a_run_of_layers(seed: int, bits: list[int], data: st.DataObject) -> None:
    """A random step changes at least one layer; all changed layers gain a detour, or all of them lose their detours.

    The numbers of layers with detours stay in ascending order and below the number of layers.
    """
    chosen = tuple(sorted(data.draw(st.sets(st.integers(0, len(bits) - 1)))))
    found = DetourSteps(bits).next(random.Random(seed), chosen)
    changed = sorted(set(chosen) ^ set(found))
    assert found == tuple(sorted(set(found)))
    assert set(found) <= set(range(len(bits)))
    assert changed, "the first layer of the run always changes"
    assert not set(changed) & set(found) or set(changed) <= set(found)


def over_narrow_links(folder: Path, between: int) -> Path:
    """Four cores in a ring of links of `between` bits a cycle, each with a wide link to the off-chip memory."""
    core = yaml.safe_load((CORES / "k16_c16.yaml").read_text())
    del core["operator_types"], core["exclusive_dataflows"]
    (folder / "core.yaml").write_text(yaml.safe_dump(core, sort_keys=False))
    (folder / "offchip.yaml").write_text((CORES / "offchip.yaml").read_text())
    ring = [{"type": "link", "cores": [core, (core + 1) % 4], "bandwidth": between} for core in range(4)]
    ports = [{"type": "link", "cores": [core, 4], "bandwidth": 512} for core in range(4)]
    system = {
        "name": "ring",
        "cores": {**dict.fromkeys(range(4), "./core.yaml"), 4: "./offchip.yaml"},
        "offchip_core_id": 4,
        "unit_energy_cost": 0,
        "core_connectivity": [*ring, *ports],
    }
    path = folder / "ring.yaml"
    path.write_text(yaml.safe_dump(system, sort_keys=False))
    return path


def test_the_answer_is_no_worse_than_groups_that_run_one_after_another(tmp_path: Path) -> None:
    """The answer is no worse than groups of layers that exchange results through the off-chip memory.

    Tools that run one group after another make such plans. Over narrow links, the first plans of a search include them
    for each rule that cuts layers into parts.
    """
    network, hardware = two_products(tmp_path, 64, 128, 128), over_narrow_links(tmp_path, 1)
    problem = system_problem(network, hardware)
    space = plan_space(problem, Fixed())
    evaluator = PlanEvaluator(problem, options().part(CnSearchOptions), ScheduleSettings(), "latency")
    plans = [space.through_off_chip(space.layer_by_layer(rule)) for rule in LAYER_BY_LAYER_RULES]
    assert {plan.by_off_chip for plan in plans} == {space.node_ids[:-1]}
    apart = [evaluator.evaluate(Task(plan, thorough=True)).figures for plan in plans]
    found = fused(network, hardware, nb_plans=1)
    assert found.latency_cycles <= min(figures.latency_cycles for figures in apart if figures is not None)
    assert OFF_CHIP in {one.origin for one in found.found.tried if one.is_best}


def test_wide_links_need_few_more_plans(tmp_path: Path) -> None:
    """Further plans through the off-chip memory are left out if the first ones are no better.

    If the run fixes the detours, none is tried.
    """
    network, hardware = two_products(tmp_path, 64, 128, 128), over_narrow_links(tmp_path, 512)
    origins = [one.origin for one in fused(network, hardware, nb_plans=1).found.tried]
    filling = sum(rule.fills_cores for rule in LAYER_BY_LAYER_RULES)
    assert 1 < origins.count(OFF_CHIP) <= 1 + filling
    fixed = fused(network, hardware, nb_plans=1, layers_by_off_chip=[])
    assert OFF_CHIP not in [one.origin for one in fixed.found.tried]
