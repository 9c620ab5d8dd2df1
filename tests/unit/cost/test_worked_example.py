"""A convolution on tpu_like, worked out by hand step by step: 3 x 3, 48 to 64 channels, 6 x 6 outputs."""

from typing import Any

import pytest
from tilewright.cost.record import record_row
from tilewright.search.evaluate import evaluate, prepare
from tilewright.search.options import SearchOptions
from tilewright.workload.relevancy import operand_elements

from tests.plain.model import PlainModel
from tests.unit.cost.engine_cases import LINKS, convolution, tpu_like

LAYER = convolution(padding=1, K=64, C=48, OX=6, OY=6, FX=3, FY=3)
UNROLLING = (("D1", (("K", 32),)), ("D2", (("C", 32),)))
ORDER = (("OX", 6), ("OY", 6), ("FX", 3), ("FY", 3), ("C", 2), ("K", 2))
LOOPS = [list(loop) for loop in ORDER]


@pytest.fixture(scope="module")
def record() -> dict[str, Any]:
    """Return the record of the example in the form of a file."""
    return record_row(evaluate(LAYER, tpu_like(), LINKS, UNROLLING, ORDER))


def test_elements() -> None:
    """The operands have O 6*6*64, W 64*48*9 and I 6*6*48 elements; I has 8 positions less 2 of padding on each axis."""
    profile = SearchOptions().profile
    elements = {o: operand_elements(LAYER, o, profile) for o in ("O", "W", "I")}
    assert elements == {"O": 2304, "W": 27648, "I": 1728}


def test_spatial_conversion(record: dict[str, Any]) -> None:
    """C 48 over 32 lanes takes 2 passes of 24; spatial loops stand below the innermost memory that serves them."""
    lanes = [["K", 32], ["C", 24]]
    assert record["spatial_levels"] == {"O": [[], lanes, [], []], "W": [[], lanes, []], "I": [lanes, [], []]}


def test_units_and_boost() -> None:
    """Active instances are O 768, 768, 1, 1; W 768, 768, 1; I 768, 1, 1. Boosts are O 1, 32, 1; W 1, 768; I 24, 1."""
    arrays = prepare(LAYER, tpu_like(), LINKS, UNROLLING, SearchOptions()).arrays
    units = [arrays.units[o, : arrays.level_count[o] + 1].tolist() for o in range(3)]
    assert units == [[768, 768, 1, 1], [768, 768, 1], [768, 1, 1]]
    boost = [arrays.boost[0, o, : arrays.level_count[o] + 1].tolist() for o in range(3)]
    assert boost == [[1, 32, 1, 1], [1, 768, 1], [24, 1, 1]]


def test_temporal_sizes() -> None:
    """Temporal sizes are the loops above 1 that the spatial mapping leaves, in the order of the layer."""
    sizes = prepare(LAYER, tpu_like(), LINKS, UNROLLING, SearchOptions()).spatial.temporal_sizes
    assert sizes == (("K", 2), ("C", 2), ("OY", 6), ("OX", 6), ("FY", 3), ("FX", 3))


def test_allocation(record: dict[str, Any]) -> None:
    """All loops of O are in the SRAM, because rf_2B holds one partial sum; weights are in rf_128B and I in the SRAM."""
    assert record["temporal_mapping"] == {"O": [[], LOOPS, []], "W": [LOOPS, []], "I": [LOOPS, []]}


def test_word_accesses(record: dict[str, Any]) -> None:
    """I is read 3/32 of a word at a time: 1296 * 3 / 32 = 121.5, truncated to 121."""
    none = {"tl": 0, "fl": 0, "th": 0, "fh": 0}
    assert record["word_accesses"] == {
        "O": [
            {"tl": 995328, "fl": 995328, "th": 995328, "fh": 995328},
            {"tl": 324, "fl": 324, "th": 9, "fh": 0},
            none | {"fl": 288},
        ],
        "W": [none | {"tl": 27648, "fh": 27648}, none | {"tl": 3456}],
        "I": [none | {"tl": 121, "fh": 6}, none | {"tl": 216}],
    }


def test_energy(record: dict[str, Any]) -> None:
    """Energies of levels are O 83607.552, 261182.88, 216000; W 5253.12, 2419200; I 52625.76, 151200; MACs 39813.12."""
    per_level = {o: [sum(row.values()) for row in levels] for o, levels in record["energy_breakdown_pj"].items()}
    assert per_level["O"] == pytest.approx([83607.552, 261182.88, 216000])
    assert per_level["W"] == pytest.approx([5253.12, 2419200])
    assert per_level["I"] == pytest.approx([52625.76, 151200])
    assert record["mac_energy_pj"] == 39813.12
    assert record["memory_energy_pj"] == 3189069.312
    assert record["energy_pj"] == 3228882.432


def test_stall(record: dict[str, Any]) -> None:
    """The SRAM read port stalls 1295 + 1295 + 0 - 1296 = 1294 cycles; no other port stalls."""
    stalls = {(p["memory"], p["port"]): p["stall_slack_cycles"] for p in record["ports"]}
    assert stalls["sram_2MB", "r_port_1"] == 1294
    assert max(stalls.values()) == 1294


def test_loading_and_totals(record: dict[str, Any]) -> None:
    """On-loading takes 3456 - 2590 = 866 cycles for W on the DRAM port, off-loading 1 + 288, and the drain 31 + 31."""
    assert record["latency_breakdown_cycles"] == {
        "ideal": 972,
        "spatial_stall": 324,
        "temporal_stall": 1294,
        "onloading": 866,
        "offloading": 289,
        "drain": 62,
    }
    assert record["latency_cycles"] == 3807


def test_utilization(record: dict[str, Any]) -> None:
    """Utilizations are 972 ideal cycles over 1296, 2590, 3456 and 3807 cycles."""
    assert record["mac_utilization"] == {
        "spatial": 972 / 1296,
        "with_stalls": 972 / 2590,
        "with_onloading": 972 / 3456,
        "with_offloading": 972 / 3807,
    }


def test_plain_model_agrees() -> None:
    """The plain model gives the energy and latency of the worked example."""
    result = PlainModel(LAYER, tpu_like(), LINKS, UNROLLING).cost(ORDER)
    assert result.energy_pj == 3228882.432
    assert result.latency_cycles == 3807
