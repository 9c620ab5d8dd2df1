"""Records for the report tests: the worked example of a small convolution, and networks made from it."""

import copy
from collections.abc import Callable
from typing import Any

import pytest
from tilewright.cost.record import LayerRecord, record_of_row
from tilewright.hardware.core import Core, Memory, OperationalArray, Port

Record = dict[str, Any]
"""A row of layers.jsonl, which a test may change before it is read."""
Summary = dict[str, Any]
NONE = {"tl": 0, "fl": 0, "th": 0, "fh": 0}
WORDS: dict[str, list[dict[str, int]]] = {
    "O": [
        {"tl": 995328, "fl": 995328, "th": 995328, "fh": 995328},
        {"tl": 324, "fl": 324, "th": 9, "fh": 0},
        NONE | {"fl": 288},
    ],
    "W": [NONE | {"tl": 27648, "fh": 27648}, NONE | {"tl": 3456}],
    "I": [NONE | {"tl": 121, "fh": 6}, NONE | {"tl": 216}],
}
COSTS = {"rf_128B": (0.095, 0.095), "rf_2B": (0.021, 0.021), "sram_2MB": (416.16, 378.4), "dram": (700.0, 750.0)}
LEVELS = {"O": ["rf_2B", "sram_2MB", "dram"], "W": ["rf_128B", "dram"], "I": ["sram_2MB", "dram"]}
LOOPS = [["OX", 6], ["OY", 6], ["FX", 3], ["FY", 3], ["C", 2], ["K", 2]]


def worked_example(name: str = "/conv1/Conv") -> Record:
    """A 3x3 convolution, 48 to 64 channels, on a 32 x 32 array, with the figures of the reference model."""
    energy = {
        operand: [
            {d: n * COSTS[LEVELS[operand][level]][d in ("fl", "fh")] for d, n in words.items()}
            for level, words in enumerate(levels)
        ]
        for operand, levels in WORDS.items()
    }
    own = {"O": [1.0, 18432 / 16777216, 18432 / 1e10], "W": [288 / 1024, 221184 / 1e10]}
    own["I"] = [13824 / 16777216, 13824 / 1e10]
    shares: dict[str, float] = {}
    for operand, names in LEVELS.items():
        for level, memory in enumerate(names):
            shares[memory] = shares.get(memory, 0) + own[operand][level]
    return {
        "layer": {
            "name": name,
            "operator_type": "Conv",
            "equation": "O[b][k][oy][ox] += W[k][c][fy][fx] * I[b][c][iy][ix]",
            "loop_sizes": {"B": 1, "K": 64, "C": 48, "OY": 6, "OX": 6, "FY": 3, "FX": 3},
            "precision_bits": {"W": 8, "I": 8, "O": 16, "O_final": 8},
            "mac_count": 995328,
            "operation_count": 0,
        },
        "layer_names": [name],
        "core": "tpu_like",
        "objective": "latency",
        "model": "zigzag-3.9.1",
        "spatial_mapping": {"D1": {"K": 32}, "D2": {"C": 32}},
        "memory_operand_links": {"O": "O", "W": "I2", "I": "I1"},
        "loop_order": copy.deepcopy(LOOPS),
        "temporal_mapping": {"O": [[], LOOPS, []], "W": [LOOPS, []], "I": [LOOPS, []]},
        "spatial_levels": {
            "O": [[], [["K", 32.0], ["C", 24.0]], [], []],
            "W": [[], [["K", 32.0], ["C", 24.0]], []],
            "I": [[["K", 32.0], ["C", 24.0]], [], []],
        },
        "memory_levels": copy.deepcopy(LEVELS),
        "memories": {
            "rf_128B": {"size_bits": 1024, "operands": ["W"]},
            "rf_2B": {"size_bits": 16, "operands": ["O"]},
            "sram_2MB": {"size_bits": 16777216, "operands": ["I", "O"]},
            "dram": {"size_bits": 10000000000, "operands": ["I", "W", "O"]},
        },
        "energy_pj": 3228882.432,
        "mac_energy_pj": 39813.12,
        "memory_energy_pj": 3189069.312,
        "latency_cycles": 3807,
        "edp_pj_cycles": 3228882.432 * 3807,
        "latency_breakdown_cycles": {
            "ideal": 972,
            "spatial_stall": 324.0,
            "temporal_stall": 1294,
            "onloading": 866,
            "offloading": 289,
            "drain": 62,
        },
        "energy_breakdown_pj": energy,
        "word_accesses": copy.deepcopy(WORDS),
        "memory_utilization": {o: [shares[memory] for memory in names] for o, names in LEVELS.items()},
        "memory_utilization_individual": own,
        "mac_utilization": {
            "spatial": 0.75,
            "with_stalls": 0.3753,
            "with_onloading": 0.28125,
            "with_offloading": 0.2553,
        },
        "ports": [{"memory": "sram_2MB", "port": "r_port_1", "stall_slack_cycles": 1294, "activities": []}],
        "area_mm2": None,
        "corrected": {"energy_pj": 3228000.0, "latency_cycles": 3900},
        "candidates": [],
        "evaluations": 720,
    }


def scaled_example(name: str, factor: int) -> Record:
    """The worked example with a batch of `factor`; every figure is scaled to match."""
    record = worked_example(name)
    record["layer"]["loop_sizes"]["B"] = factor
    record["layer"]["mac_count"] *= factor
    record["loop_order"].append(["B", factor])
    for operand in ("O", "W", "I"):
        record["temporal_mapping"][operand][-1] = [["B", factor]]
        for level, words in enumerate(record["word_accesses"][operand]):
            record["word_accesses"][operand][level] = {d: n * factor for d, n in words.items()}
            energy = record["energy_breakdown_pj"][operand][level]
            record["energy_breakdown_pj"][operand][level] = {d: pj * factor for d, pj in energy.items()}
    for key in ("energy_pj", "mac_energy_pj", "memory_energy_pj", "latency_cycles"):
        record[key] *= factor
    parts = record["latency_breakdown_cycles"]
    record["latency_breakdown_cycles"] = {part: cycles * factor for part, cycles in parts.items()}
    record["ports"][0]["stall_slack_cycles"] *= factor
    record["edp_pj_cycles"] = record["energy_pj"] * record["latency_cycles"]
    record["corrected"] = {"energy_pj": record["energy_pj"], "latency_cycles": record["latency_cycles"] * 1.2}
    return record


def network(count: int) -> tuple[list[Record], Summary]:
    """A network of `count` layers with at most 12 distinct problems, and its summary."""
    distinct = min(count, 12)
    records = [scaled_example(f"/layer{i}/layer{i}.0/conv{i}/Conv", 1 + (i * 5) % 7) for i in range(distinct)]
    index = []
    for i in range(count):
        name = f"/layer{i}/layer{i}.0/conv{i}/Conv"
        index.append([name, i % distinct])
        if i >= distinct:
            records[i % distinct]["layer_names"].append(name)
    return records, summarize(records, index)


def summarize(records: list[Record], index: list[list[Any]]) -> Summary:
    """The summary of a network whose layers are `index`."""
    placed = [records[i] for _, i in index]
    energy, latency = (sum(record[key] for record in placed) for key in ("energy_pj", "latency_cycles"))
    return {
        "workload": "small_network",
        "hardware": "tpu_like",
        "objective": "latency",
        "model": "zigzag-3.9.1",
        "layers": len(index),
        "distinct_layers": len(records),
        "energy_pj": energy,
        "latency_cycles": latency,
        "edp_pj_cycles": energy * latency,
        "mac_energy_pj": sum(record["mac_energy_pj"] for record in placed),
        "memory_energy_pj": sum(record["memory_energy_pj"] for record in placed),
        "mac_count": sum(record["layer"]["mac_count"] for record in placed),
        "operation_count": 0,
        "area_mm2": None,
        "area_note": "area not given for units",
        "latency_breakdown_cycles": {
            part: sum(record["latency_breakdown_cycles"][part] for record in placed)
            for part in records[0]["latency_breakdown_cycles"]
        },
        "evaluations": sum(record["evaluations"] for record in records),
        "corrected": {
            key: sum(record["corrected"][key] for record in placed) for key in ("energy_pj", "latency_cycles")
        },
        "layers_differing_over_5_percent": [name for name, _ in index],
        "layer_index": index,
    }


def small_core() -> Core:
    """The core of the worked example, with the word widths that its accesses imply."""

    def memory(name: str, size: int, ports: tuple[Port, ...], served: tuple[str, ...]) -> Memory:
        operands = tuple(dict.fromkeys(operand for port in ports for operand, _ in port.allocation))
        return Memory(name, size, *COSTS[name], operands, ports, served)

    def port(name: str, bits: int, *pairs: tuple[str, str]) -> Port:
        return Port(name, "read_write", bits, bits, pairs)

    weights = (port("r", 8, ("I2", "tl")), port("w", 8, ("I2", "fh")))
    sums = (port("rw", 16, ("O", "tl"), ("O", "fl"), ("O", "th"), ("O", "fh")),)
    buffer = (port("r", 2048, ("I1", "tl"), ("O", "tl"), ("O", "th")), port("w", 2048, ("I1", "fh"), ("O", "fl")))
    outside = (port("rw", 64, ("I1", "tl"), ("I2", "tl"), ("O", "fl"), ("O", "tl")),)
    memories = (
        memory("rf_128B", 1024, weights, ()),
        memory("rf_2B", 16, sums, ()),
        memory("sram_2MB", 16777216, buffer, ("D1", "D2")),
        memory("dram", 10000000000, outside, ("D1", "D2")),
    )
    return Core("tpu_like", OperationalArray((("D1", 32), ("D2", 32)), 0.04), memories)


@pytest.fixture
def record() -> Record:
    """The worked example as a row."""
    return worked_example()


@pytest.fixture
def core() -> Core:
    """The core of the worked example."""
    return small_core()


@pytest.fixture
def make_network() -> Callable[[int], tuple[list[LayerRecord], Summary]]:
    """Function that makes a network of any number of layers."""

    def make(count: int) -> tuple[list[LayerRecord], Summary]:
        rows, summary = network(count)
        return [record_of_row(row) for row in rows], summary

    return make


@pytest.fixture
def make_rows() -> Callable[[int], tuple[list[Record], Summary]]:
    """Function that makes a network with rows that can be changed."""
    return network
