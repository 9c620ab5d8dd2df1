"""Costs of designs: to the last bit what `tilewright map` finds for each alone."""

import copy
import random
from pathlib import Path
from typing import Any

import pytest
from tilewright.base.errors import InputError
from tilewright.base.units import parse_frequency_mhz
from tilewright.base.yamlfile import load_yaml
from tilewright.designs.design_cost import DesignCost
from tilewright.designs.evaluate import NetworkEvaluator
from tilewright.designs.results import INFEASIBLE, INVALID, OK
from tilewright.pipeline.sources import parse_accelerator, parse_workload
from tilewright.search.options import SearchOptions
from tilewright.workload.graph import Workload

from tests.unit.designs.map_alone import mapped

CONFIG = Path(__file__).resolve().parents[3] / "config"
OPTIONS = (
    SearchOptions(lpf_limit=4, objective="EDP", model="corrected", exploit_data_locality=True),
    SearchOptions(lpf_limit=3, objective="energy", model="zigzag-3.9.1"),
    SearchOptions(
        lpf_limit=3, objective="latency", model="corrected", exploit_data_locality=True, nb_spatial_mappings_generated=2
    ),
)


def varied(rng: random.Random, base: dict[str, Any]) -> dict[str, Any]:
    """A design: arrays, capacities, bandwidths and energies changed; some fit nothing, some are no accelerators."""
    design = copy.deepcopy(base)
    memories = design["memories"]
    design["name"] = f"design_{rng.random()}"
    design["operational_array"]["sizes"] = [rng.choice((4, 8, 16, 32)), rng.choice((4, 8, 32))]
    design["operational_array"]["unit_area"] = rng.choice((0, 0.01))
    memories["sram_2MB"]["size"] = rng.choice((64, 1 << 15, 1 << 18, 1 << 21, 1 << 24))
    memories["sram_2MB"]["area"] = rng.choice((0.5, 1.25))
    memories["rf_128B"]["size"] = rng.choice((4, 8, 512, 4096))
    memories["rf_2B"]["size"] = rng.choice((8, 16, 64))
    memories["dram"]["r_cost"] = rng.choice((100, 700, -1))
    for port in memories["sram_2MB"]["ports"]:
        port["bandwidth_max"] = rng.choice((64, 256, 2048))
    if rng.random() < 0.1:
        memories["dram"]["operands"] = ["I1", "I2"]
    power = random.Random(design["name"])
    if power.random() < 0.2:
        design["clock_frequency"] = power.choice((100, "1 GHz"))
        memories["dram"]["leakage"], memories["rf_2B"]["leakage"] = power.choice((5, 500)), "1 uW"
    return design


@pytest.fixture(scope="module")
def network() -> Workload:
    """A small network of every kind of layer."""
    return parse_workload(CONFIG / "workload" / "bert_tiny.onnx", model="corrected")


@pytest.mark.parametrize("number", range(len(OPTIONS)))
@pytest.mark.parametrize("mapping", [None, CONFIG / "mapping" / "zigzag" / "tpu_like.yaml"], ids=["free", "given"])
def test_costs_are_those_of_map(network: Workload, mapping: Path | None, number: int) -> None:
    """Also which designs fit nothing or are none, and why nothing fits; whatever was evaluated before."""
    rng = random.Random(number)
    base = load_yaml(CONFIG / "hardware" / "zigzag" / "tpu_like.yaml").data
    evaluator = NetworkEvaluator(network, mapping, OPTIONS[number])
    seen = set()
    for _ in range(25):
        design = varied(rng, base)
        try:
            found = evaluator.cost(parse_accelerator(design))
        except InputError:
            found = DesignCost(INVALID)
        expected = mapped(design, network, evaluator.mapping, OPTIONS[number])
        seen.add(found.status)
        assert found.status == expected.status, (found, expected)
        if found.status == OK:
            assert (found.energy_pj, found.latency_cycles) == (expected.energy_pj, expected.latency_cycles)
            clock_mhz = design.get("clock_frequency") and parse_frequency_mhz(design["clock_frequency"])
            seconds = clock_mhz and pytest.approx(found.latency_cycles / clock_mhz / 1e6)
            assert found.further.get("latency_s") == seconds
            assert found.area_mm2 == expected.area_mm2 or found.area_mm2 != found.area_mm2
            assert found.energy_terms_pj == expected.energy_terms_pj
            assert found.latency_terms_cycles == expected.latency_terms_cycles
            assert sum(found.memory_energy_pj.values()) == pytest.approx(found.energy_terms_pj["memory"])
        elif found.status == INFEASIBLE:
            assert found.reason == expected.reason
    assert seen == {OK, INFEASIBLE, INVALID}
