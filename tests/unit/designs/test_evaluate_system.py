"""Costs of designs of several cores: exactly those of a whole run for each design."""

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import tilewright
from tilewright.base.errors import InputError
from tilewright.base.measures import LATENCY_S
from tilewright.designs.columns import POWER
from tilewright.designs.design_cost import GRAPHS, TABLES, Sharing
from tilewright.designs.evaluate_system import NETWORK_MODEL, SystemEvaluator, schedule_cost
from tilewright.designs.results import OK
from tilewright.designs.space import USES, SystemOptions
from tilewright.designs.space_reader import read_space
from tilewright.hardware.source import parse_accelerator
from tilewright.hardware.system import MultiCoreAccelerator
from tilewright.pipeline.sources import parse_workload
from tilewright.pipeline.stages.multi import run
from tilewright.search.store import Store
from tilewright.workload.graph import Workload

from tests.unit.designs.system_cases import (
    BASES,
    BERT,
    HARDWARE,
    QUICK,
    SMALL,
    alone,
    of_cost,
    random_system,
    system_space,
)

OPTIONS = (SystemOptions(**QUICK), SystemOptions(**QUICK, objective="energy", mode="lbl", operands_to_prefetch=("W",)))


@pytest.fixture(scope="module")
def network() -> Workload:
    """Read a small network of every kind of layer."""
    return parse_workload(BERT, model=NETWORK_MODEL)


def costs_of(evaluator: SystemEvaluator, design: dict[str, Any]) -> Any:
    """Return the costs of a design."""
    accelerator = parse_accelerator(design)
    assert isinstance(accelerator, MultiCoreAccelerator)
    return evaluator.cost(accelerator)


@pytest.mark.parametrize("base", BASES)
def test_costs_are_those_of_a_run(network: Workload, base: str) -> None:
    """Costs and status of each design equal those of a whole run, whatever was evaluated before."""
    rng = random.Random(base)
    space = read_space(
        SMALL | {"accelerator": str(HARDWARE / f"{base}.yaml"), "axes": {"n": {"path": "name", "values": ["a"]}}}
    )
    for options in OPTIONS:
        evaluator = SystemEvaluator(network, None, options)
        for _ in range(4):
            design = random_system(rng, space.base)
            expected = alone(design, network, evaluator.mapping, options)
            try:
                found = costs_of(evaluator, design)
            except InputError:
                assert expected == ("InputError",)
                continue
            if found.status != OK:
                assert len(expected) == 1
                assert found.reason
                continue
            assert repr(of_cost(found)) == repr(expected)
            assert sum(found.energy_terms_pj.values()) == pytest.approx(found.energy_pj)
            assert sum(found.latency_terms_cycles.values()) == found.latency_cycles
            assert min(found.latency_terms_cycles.values()) >= 0
            assert 0 < found.further["fullest_memory_share"] <= 1
            assert 0 < found.further["fullest_link_share"] <= 1
            assert tuple(found.further) == (*USES, LATENCY_S, POWER)


@pytest.mark.filterwarnings("error")
def test_a_link_without_a_limit_is_never_full(network: Workload) -> None:
    """The share of the fullest link is from 0 to 1, although the mesh has links of infinite width."""
    given = parse_accelerator(HARDWARE / "quad_mesh.yaml")
    assert isinstance(given, MultiCoreAccelerator)
    nodes = tilewright.cns(BERT, HARDWARE / "quad_mesh.yaml", [{"name": "default"}])
    costs = tilewright.cost(nodes, lpf_limit=3)
    made = tilewright.allocate(costs, nb_ga_individuals=4, nb_ga_generations=1, exhaustive_nodes=0).artifact
    for more in range(8):
        schedule = replace(made.schedule, latency_cycles=made.schedule.latency_cycles + more)
        cost = schedule_cost(replace(made, schedule=schedule), costs.costs, given)
        assert 0 < cost.further["fullest_link_share"] <= 1


def test_what_designs_share_is_made_once(network: Workload, tmp_path: Path) -> None:
    """Cost tables are made once for each different core, whatever the links and the other cores are."""
    space = system_space()
    sharing = Sharing(Store(tmp_path))
    evaluator = SystemEvaluator(network, None, space.options, sharing)
    designs = [space.design(index) for index in (3, 4, 6, 7)]
    first = [of_cost(costs_of(evaluator, design.hardware)) for design in designs]
    assert (sharing.asked[GRAPHS], sharing.made[GRAPHS]) == (4, 1)
    assert (sharing.asked[TABLES], sharing.made[TABLES]) == (12, 4)
    assert str(sharing) == (
        "1 of 4 CN graphs made, 3 taken from other designs; 4 of 12 cost tables made, 8 taken from other designs"
    )
    stored = sorted(tmp_path.rglob("*.json"))
    assert stored
    again = SystemEvaluator(network, None, space.options, Sharing(Store(tmp_path)))
    assert [of_cost(costs_of(again, design.hardware)) for design in designs] == first
    assert sorted(tmp_path.rglob("*.json")) == stored


def test_a_core_of_another_use_has_a_table_of_its_own(network: Workload) -> None:
    """A core with other operator types has its own cost table."""
    space = system_space()
    evaluator = SystemEvaluator(network, None, space.options)
    design = space.design(4).hardware
    plain = costs_of(evaluator, design)
    other = costs_of(evaluator, design | {"core_operator_types": {key: ["Relu"] for key in range(3)}})
    assert other.latency_cycles != plain.latency_cycles
    expected = alone(design, network, evaluator.mapping, space.options)
    assert repr(of_cost(costs_of(evaluator, design))) == repr(expected)


def test_why_a_design_has_no_costs(network: Workload) -> None:
    """A design without costs has the reason: the layers that no core can run."""
    space = system_space()
    cost = costs_of(SystemEvaluator(network, None, space.options), space.design(0).hardware)
    assert cost.status in ("ok", "infeasible")
    few = {name: core for name, core in space.base["core_files"].items() if name != "simd"}
    design = space.base | {"core_files": few, "cores": {0: "k16_c16", 4: "pooling"}, "core_roles": {4: "pooling"}}
    design |= {"core_connectivity": [{"type": "bus", "cores": [0, 4], "bandwidth": 8}], "core_coordinates": {}}
    found = costs_of(SystemEvaluator(network, None, space.options), design)
    assert found.status == "invalid"
    assert "no core can run" in found.reason


def test_an_interruption_is_no_result(network: Workload, monkeypatch: pytest.MonkeyPatch) -> None:
    """An interrupted search for an allocation gives no costs."""
    space = system_space()
    evaluator = SystemEvaluator(network, None, space.options)
    judge_of = run.schedule_judge

    def interrupted(*given: Any) -> Any:
        judge, asked = judge_of(*given), iter(range(1000))

        def judged(allocation: Any) -> Any:
            if next(asked) == 5:
                raise KeyboardInterrupt
            return judge(allocation)

        return judged

    monkeypatch.setattr(run, "schedule_judge", interrupted)
    with pytest.raises(KeyboardInterrupt):
        costs_of(evaluator, space.design(4).hardware)
