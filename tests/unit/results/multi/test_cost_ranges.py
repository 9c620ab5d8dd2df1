"""Ranges of energy and area of schedules: each end equals a run with all costs at that end of their ranges."""

import copy
from typing import Any

import pytest
from tilewright.api import run_multi_core
from tilewright.designs.evaluate_system import NETWORK_MODEL, SystemEvaluator
from tilewright.designs.space import SystemOptions
from tilewright.hardware.source import parse_accelerator
from tilewright.pipeline.sources import parse_workload
from tilewright.results.multi.cost_ranges import schedule_cost_parts
from tilewright.results.multi.summary_text import summary_text
from tilewright.results.pareto import compare, multi_candidate

from tests.unit.multi_core.runs import core, off_chip, ports
from tests.unit.pipeline.stages.multi.multi_cases import LAYERS

SRAM, DRAM = {"from": "sram", "node_nm": 45}, {"from": "dram", "type": "lpddr4"}
LAWS = {"memory": "sram 45 nm hp", "buffer": "sram 22 nm hp", "dram": "dram lpddr4"}
COSTS = ("r_cost", "w_cost", "area")
MAPPING = [
    {"name": "default", "core_allocation": [0, 1], "memory_operand_links": {"O": "O", "W": "I2", "I": "I1"}},
    {"name": "one", "core_allocation": [0], "memory_operand_links": {"O": "O", "W": "I2", "I": "I1"}},
    {"name": "two", "core_allocation": [1], "memory_operand_links": {"O": "O", "W": "I2", "I": "I1"}},
]
QUICK: dict[str, Any] = {"lpf_limit": 1, "nb_spatial_mappings_generated": 1}


def sourced(described: dict[str, Any], memory: str, cost: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """A core with a memory that takes its costs from the library."""
    found = copy.deepcopy(described)
    (own,) = (found["memories"].pop(name) for name in list(found["memories"]))
    found["memories"][memory] = (
        {key: value for key, value in own.items() if key not in COSTS} | {"cost": cost} | changes
    )
    found["operational_array"]["unit_area"] = "500 um2"
    return found


def system(shared: bool) -> dict[str, Any]:
    """Two cores with costs from the library; with `shared`, both have one memory."""
    left = sourced(core("left", 2, "8 KiB"), "memory", SRAM)
    right = (
        copy.deepcopy(left) | {"name": "right"}
        if shared
        else sourced(core("right", 4, "8 KiB"), "buffer", SRAM | {"node_nm": 22})
    )
    files = {"left": left, "right": right, "offchip": sourced(off_chip(), "dram", DRAM, ports=ports(64))}
    found: dict[str, Any] = {"name": "duo", "cores": {0: "left", 1: "right"}, "offchip_core": "offchip"}
    found["core_files"] = files
    sharing = {"core_memory_sharing": [[0, 1]]} if shared else {}
    link = {"type": "link", "cores": [0, 1], "bandwidth": 32, "energy_per_bit": "100 fJ"}
    return (
        found | sharing | {"core_connectivity": [] if shared else [link], "bandwidth": 64, "energy_per_bit": "400 fJ"}
    )


def with_factors(hardware: dict[str, Any], factors: dict[str, float]) -> dict[str, Any]:
    """The hardware with the costs as numbers: those of the library times the factor of each law."""
    changed = copy.deepcopy(hardware)
    accelerator = parse_accelerator(hardware)
    for place, own in zip(accelerator.places, accelerator.cores, strict=True):
        for memory in own.memories:
            factor = factors[memory.cost_source.law]
            entry = changed["core_files"][place.file_name]["memories"][memory.name]
            del entry["cost"]
            entry |= {"r_cost": memory.read_energy_pj * factor, "w_cost": memory.write_energy_pj * factor}
            entry |= {"area": f"{memory.area_mm2 * factor!r} mm2"}
    return changed


@pytest.mark.parametrize("shared", [False, True])
def test_a_run_with_other_costs_is_the_sum_of_the_parts(shared: bool) -> None:
    """A run with other costs equals the sum of the parts: cost tables, schedule and area are computed anew."""
    hardware = system(shared)
    found = run_multi_core(LAYERS, hardware, MAPPING, **QUICK)
    accelerator = parse_accelerator(hardware)
    parts = schedule_cost_parts(found.artifact, found.core_costs, accelerator)
    names = ["0+1: memory", "2: dram"] if shared else ["0: memory", "1: buffer", "2: dram"]
    assert [part.memory for part in parts] == names
    assert all(part.energy_pj > 0 for part in parts)
    for sram, other, dram in ((0.7, 0.9, 1.0), (1.3, 1.1, 1.75)):
        factors = dict(zip(LAWS.values(), (sram, other, dram), strict=True))
        again = run_multi_core(LAYERS, with_factors(hardware, factors), MAPPING, **QUICK)
        assert again.latency_cycles == found.latency_cycles
        assert "cost_ranges" not in again.summary
        assert again.energy_pj == pytest.approx(
            found.energy_pj + sum(part.energy_pj * (factors[part.law] - 1) for part in parts)
        )
        assert again.summary["area_mm2"] == pytest.approx(
            found.summary["area_mm2"] + sum(part.area_mm2 * (factors[part.law] - 1) for part in parts)
        )


def test_summary_text_front_and_space_say_it() -> None:
    """The summary, its text, comparisons and designs of a space have the same parts of costs."""
    hardware = system(shared=False)
    found = run_multi_core(LAYERS, hardware, MAPPING, **QUICK)
    ranges = found.summary["cost_ranges"]
    low, high = ranges["energy_pj"]
    assert low < found.energy_pj < high
    assert ranges["area_mm2"][0] < found.summary["area_mm2"] < ranges["area_mm2"][1]
    assert "within the ranges of costs: energy" in summary_text(found.summary | {"baselines": []})
    summary = found.summary | {"model": "corrected"}
    made_by = {"inputs": {"workload": "digest"}}
    dearer = summary | {"energy_pj": summary["energy_pj"] * 1.05}
    (group,) = compare([multi_candidate("a", summary, made_by), multi_candidate("b", dearer, made_by)])
    assert group.front_probabilities == (1.0, 0.0)
    options = SystemOptions(**QUICK, nb_ga_generations=1, nb_ga_individuals=2)
    evaluator = SystemEvaluator(parse_workload(LAYERS, model=NETWORK_MODEL), MAPPING, options)
    cost = evaluator.cost(parse_accelerator(hardware))
    assert (cost.status, cost.reason) == ("ok", "")
    assert {part.law for part in cost.cost_parts} == set(LAWS.values())
    assert 0 < sum(part.energy_pj for part in cost.cost_parts) < cost.energy_pj
