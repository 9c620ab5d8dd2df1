"""Costs of designs: exactly those of `tilewright map` for each design."""

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
from tilewright.workload.network_options import NetworkOptions

from tests.members import members
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
    """Return a design with changed arrays, capacities, bandwidths and energies.

    Some designs fit no layer, and some are invalid.
    """
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
    """Read a small network of every kind of layer."""
    return parse_workload(CONFIG / "workload" / "bert_tiny.onnx", model="corrected")


@pytest.mark.parametrize("number", range(len(OPTIONS)))
@pytest.mark.parametrize("mapping", [None, CONFIG / "mapping" / "zigzag" / "tpu_like.yaml"], ids=["free", "given"])
def test_costs_are_those_of_map(network: Workload, mapping: Path | None, number: int) -> None:
    """Costs, status and reason of each design equal those of `map`, whatever was evaluated before."""
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


ZEROS = (("weights", 0.25), ("activations", 0.6), ("outputs", 0.5))
LOOPS = ("B", "D", "H", "K", "OX", "OY", "FX", "FY")
KEYS: tuple[tuple[str, str, Any], ...] = (
    ("operational_array", "zero_gating", {"operands": ["I1"], "reads_of": ["I2"]}),
    ("operational_array", "zero_gating", {"operands": ["I1", "I2"]}),
    ("operational_array", "unrolled_dimensions", {"D1": ["C"], "D2": ["K"]}),
    ("operational_array", "unrolled_dimensions", {"D1": ["K"]}),
    ("sram_2MB", "run_length", {"operands": ["I1", "O"], "run_bits": 3, "pairs": 1, "word": 12}),
    ("sram_2MB", "run_length", {"operands": ["I1"], "run_bits": 1, "pairs": 1, "word": 1000}),  # too long for 64 bits
    ("dram", "run_length", {"operands": ["I1", "I2", "O"], "run_bits": 3, "pairs": 2, "word": 24}),
    ("sram_2MB", "tile_dimensions", [*LOOPS]),
    ("dram", "tile_dimensions", ["C", *LOOPS[1:]]),
    ("dram", "loop_order", ["C", "K", "D"]),
    ("dram", "loop_order", ["D", "K", "C"]),
)
"""Triples (array or memory, key, value): keys for zeros, and rules of the control."""


def keyed(rng: random.Random, base: dict[str, Any]) -> dict[str, Any]:
    """Return a design with a random port width of the SRAM, a random energy of a MAC, and up to two keys of KEYS."""
    design = copy.deepcopy(base)
    design["operational_array"]["unit_energy"] = rng.choice((0.04, 0.5))
    width = rng.choice((64, 256))
    for port in design["memories"]["sram_2MB"]["ports"]:
        port["bandwidth_max"] = width
    for owner, key, value in rng.sample(KEYS, rng.choice((0, 1, 1, 2))):
        (design if owner == "operational_array" else design["memories"])[owner][key] = value
    return design


@pytest.mark.parametrize("number", range(len(OPTIONS)))
def test_costs_with_zeros_and_rules_are_those_of_map(number: int) -> None:
    """Designs that differ in keys for zeros, control rules or port widths have the costs of `map`."""
    rng, options = random.Random(number), OPTIONS[number]
    file = CONFIG / "workload" / "bert_tiny.onnx"
    network = parse_workload(file, model=options.model, options=NetworkOptions(zeros=ZEROS))
    evaluator = NetworkEvaluator(network, None, options)
    base = load_yaml(CONFIG / "hardware" / "zigzag" / "tpu_like.yaml").data
    seen, energies = set(), set()
    for _ in range(members(60, 24)):
        design = keyed(rng, base)
        found = evaluator.cost(parse_accelerator(design))
        expected = mapped(design, network, evaluator.mapping, options)
        assert found.status == expected.status, design
        assert found.status == OK or found.reason == expected.reason
        assert found.status != OK or (found.energy_pj, found.latency_cycles, found.energy_terms_pj) == (
            expected.energy_pj,
            expected.latency_cycles,
            expected.energy_terms_pj,
        ), design
        seen.add(found.status)
        energies.add(found.energy_pj)
    assert OK in seen
    assert len(energies) > 10


def test_a_port_that_is_too_narrow_for_compressed_data_shares_no_costs() -> None:
    """A design with a narrow port does not take the costs of an earlier design with a wide port."""
    options = OPTIONS[0]
    file = CONFIG / "workload" / "bert_tiny.onnx"
    network = parse_workload(file, model=options.model, options=NetworkOptions(zeros=ZEROS))
    evaluator = NetworkEvaluator(network, None, options)
    design = copy.deepcopy(load_yaml(CONFIG / "hardware" / "zigzag" / "tpu_like.yaml").data)
    sram = design["memories"]["sram_2MB"]
    sram["run_length"] = {"operands": ["I1"], "run_bits": 1, "pairs": 1, "word": 1000}
    for width, status in ((256, OK), (64, INFEASIBLE), (256, OK)):
        for port in sram["ports"]:
            port["bandwidth_max"] = width
        found = evaluator.cost(parse_accelerator(design))
        assert found.status == status
        assert found.reason == mapped(design, network, evaluator.mapping, options).reason
