"""Data kept between layers: decisions, reduced cores and searches, compared with zigzag-dse 3.9.1."""

import json
import random
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from tilewright.base.artifacts.codec import encode
from tilewright.base.profile import CORRECTED, REFERENCE
from tilewright.cost.problem import port_services
from tilewright.cost.record import LayerRecord
from tilewright.hardware.core import Core
from tilewright.hardware.hierarchy import memory_hierarchy
from tilewright.hardware.yaml_reader import read_accelerator
from tilewright.mapping.constraints import Mapping, MappingConstraints
from tilewright.mapping.locality import MemoryReach, find_memory_reach, remove_unused_memories
from tilewright.mapping.yaml_reader import read_mapping
from tilewright.pipeline.stages.run import map_layer, map_workload
from tilewright.search.options import SearchOptions
from tilewright.workload.graph import Workload, WorkloadNode
from tilewright.workload.layer import DimensionRelation, Layer
from tilewright.workload.onnx import read_onnx

from tests.conformance.locality_networks import random_hardware, random_mapping, random_network
from tests.conformance.make_locality_inputs import nodes_of, read
from tests.unit.mapping.locality_cases import play

DATA = Path(__file__).parent / "data"
LARGE_SET = Path(__file__).resolve().parents[3] / "shared" / "conformance"
RUNS = sorted(path.stem for path in DATA.glob("locality-*-*.json"))
TOTALS_OF_THE_REFERENCE_TESTS = {
    ("ascend_like", "resnet18.onnx", False): (1756026366.3999999, 3014972.0),
    ("ascend_like", "resnet18.yaml", False): (2283731834.88, 3941172.0),
    ("edge_tpu_like", "resnet18.onnx", False): (1783892066.1100001, 2959128.0),
    ("edge_tpu_like", "resnet18.yaml", False): (2115121959.8699996, 3727268.0),
    ("meta_prototype", "resnet18.onnx", False): (1715225127.8400004, 2699152.0),
    ("meta_prototype", "resnet18.yaml", False): (2200938143.64, 3296374.0),
    ("tesla_npu_like", "resnet18.onnx", False): (1696005062.728, 2706959.0),
    ("tesla_npu_like", "resnet18.yaml", False): (2188269839.3200006, 3288695.0),
    ("tpu_like", "resnet18.onnx", False): (1735241704.2240005, 3783401.0),
    ("tpu_like", "resnet18.yaml", False): (2302362179.968, 5596155.0),
    ("ascend_like", "resnet18.onnx", True): (1766826314.5600004, 3119968.0),
    ("ascend_like", "resnet18.yaml", True): (2358058383.36, 3715904.0),
    ("edge_tpu_like", "resnet18.onnx", True): (1735517943.8700001, 3839472.0),
    ("edge_tpu_like", "resnet18.yaml", True): (2029477205.31, 4597617.0),
    ("meta_prototype", "resnet18.onnx", True): (1751507661.28, 2698392.0),
    ("meta_prototype", "resnet18.yaml", True): (2249214190.04, 3276491.0),
    ("tesla_npu_like", "resnet18.onnx", True): (1596842712.428, 2316210.0),
    ("tesla_npu_like", "resnet18.yaml", True): (2083670444.2840002, 2874405.0),
    ("tpu_like", "resnet18.onnx", True): (1759424218.3160002, 4277223.0),
    ("tpu_like", "resnet18.yaml", True): (2191903732.78, 4705324.0),
}
"""(hardware, network, mixed) -> (pJ, cycles) expected by zigzag-dse 3.9.1's tests, with default options.

The reference tests data locality, and mixed spatial mappings, which also keep data on chip.
"""


# inputs ---------------------------------------------------------------------------------------------------------------


@cache
def inputs() -> dict[str, Any]:
    """The committed inputs: hardware and mapping files as data, and nodes of networks."""
    loaded: dict[str, Any] = json.loads((DATA / "locality-inputs.json").read_text())
    return loaded


def all_runs() -> list[dict[str, Any]]:
    """The runs of the reference."""
    return [json.loads((DATA / f"{name}.json").read_text()) for name in RUNS]


def core_named(name: str) -> Core:
    """A core of the committed inputs."""
    return read_accelerator(inputs()["hardware"][name]).cores[0]


def mapping_named(name: str) -> Mapping:
    """A mapping of the committed inputs."""
    return read_mapping(inputs()["mapping"][name])


@cache
def workload_named(name: str) -> Workload:
    """A network of the committed inputs."""
    return Workload(name, tuple(node_of(entry) for entry in inputs()["workload"][name]))


def node_of(entry: dict[str, Any]) -> WorkloadNode:
    """A node, from plain data."""
    layer = entry.get("layer")
    return WorkloadNode(**{**as_tuples(entry), "layer": layer and layer_of(layer)})


def layer_of(entry: dict[str, Any]) -> Layer:
    """A layer, from plain data."""
    relations = tuple(DimensionRelation(**as_tuples(relation)) for relation in entry.get("relations", ()))
    return Layer(**{**as_tuples(entry), "relations": relations})


def as_tuples(value: Any) -> Any:
    """The value with all lists inside turned into tuples."""
    if isinstance(value, dict):
        return {name: as_tuples(item) for name, item in value.items()}
    return tuple(as_tuples(item) for item in value) if isinstance(value, list) else value


# searches -------------------------------------------------------------------------------------------------------------


def mapped_layer(layer: Layer, core: Core, constraints: MappingConstraints, options: SearchOptions) -> LayerRecord:
    """The best mapping of a layer; layers that differ only in their names are mapped once."""
    return mapped_nameless(replace(layer, name=""), core, constraints, options)


@cache
def mapped_nameless(layer: Layer, core: Core, constraints: MappingConstraints, options: SearchOptions) -> LayerRecord:
    """The best mapping of a layer without a name."""
    return map_layer(layer, core, constraints, options)


def search(
    workload: Workload, core: Core, mapping: Mapping, options: SearchOptions, always_from_top: bool = False
) -> list[tuple[Layer, MemoryReach, Core, LayerRecord]]:
    """Each layer with its reach, its core and its mapping."""
    found = []
    for node, reach in zip(
        workload.layers_in_order,
        find_memory_reach(workload, core, mapping, REFERENCE, always_from_top),
        strict=True,
    ):
        assert node.layer is not None
        constraints = mapping.constraints_for(node.layer)
        reduced = remove_unused_memories(core, node.layer, constraints.memory_operand_links, reach)
        found.append((node.layer, reach, reduced, mapped_layer(node.layer, reduced, constraints, options)))
    return found


def memories_of(core: Core) -> list[list[Any]]:
    """The core in the form of the reference's runs: [memory, operands, level of each, [services of each port]]."""
    hierarchy = memory_hierarchy(core)
    services: dict[int, list[list[str]]] = {}
    for memory, _, served in port_services(core):
        rows = [f"{operand} {hierarchy.memories_of(operand).index(memory)} {way}" for operand, way in served]
        services.setdefault(memory, []).append(rows)
    return [
        [
            memory.name,
            list(memory.operands),
            [hierarchy.memories_of(operand).index(k) for operand in memory.operands],
            services.get(k, []),
        ]
        for k, memory in enumerate(core.memories)
    ]


@pytest.mark.parametrize("name", RUNS)
def test_runs_of_the_reference_are_equal(name: str) -> None:
    """Every run equals the reference in each layer's reach, remaining core, best mapping and costs, and in the totals.

    The remaining core has equal memories, order of operands, levels and order of services. All numbers are equal to the
    last digit.
    """
    run = json.loads((DATA / f"{name}.json").read_text())
    options = SearchOptions(
        objective=run["objective"],
        lpf_limit=run["lpf_limit"],
        temporal_mapping_type=run["temporal_mapping_type"],
        nb_spatial_mappings_generated=run["nb_spatial_mappings"],
        enable_mix_spatial_mapping=run["mixed_spatial_mapping"],
    )
    core, mapping = core_named(run["hardware"]), mapping_named(run["mapping"])
    found = search(workload_named(run["workload"]), core, mapping, options, run["always_from_top"])
    energy = latency = 0.0
    for (layer, reach, reduced, record), expected in zip(found, run["layers"], strict=True):
        assert layer.name == expected["name"]
        assert [reach.activation, reach.output] == [level for _, level in expected["reach"]], layer.name
        assert reach.weight == (run["weight_level"] if layer.constant_operands else reach.activation), layer.name
        assert memories_of(reduced) == run["cores"][expected["core"]], layer.name
        assert record.spatial_mapping == expected["spatial_mapping"], layer.name
        assert encode(record.temporal_mapping) == expected["temporal_mapping"], layer.name
        assert (record.energy_pj, record.energy_terms_pj["memory"]) == (expected["energy"], expected["mem_energy"])
        parts = record.latency_breakdown_cycles
        computing = parts["ideal"] + parts["spatial_stall"] + parts["temporal_stall"]
        assert [computing, computing + parts["onloading"], record.latency_cycles] == expected["latency"], layer.name
        energy += record.energy_pj
        latency += record.latency_cycles
    assert (energy, latency) == (run["energy"], run["latency"])


def test_there_are_runs_enough() -> None:
    """Runs of alexnet, resnet18 and mobilenetv2 with the reference's default options exist for four accelerators or
    more.
    """
    defaults = {("lpf_limit", 6), ("objective", "latency"), ("mixed_spatial_mapping", False)}
    pairs = {
        (run["hardware"], run["workload"]) for run in all_runs() if all(run[key] == value for key, value in defaults)
    }
    networks = {"alexnet.onnx", "resnet18.onnx", "mobilenetv2.onnx"}
    complete = [hardware for hardware, _ in pairs if all((hardware, network) in pairs for network in networks)]
    assert len(set(complete)) >= 4


@pytest.mark.parametrize(("hardware", "network", "mixed"), TOTALS_OF_THE_REFERENCE_TESTS)
def test_totals_of_the_reference_tests(hardware: str, network: str, mixed: bool) -> None:
    """A run with the option gives the totals that the reference's own tests expect, to the last digit."""
    stem = "meta_prototype_like" if hardware == "meta_prototype" else hardware
    mapping = mapping_named(f"{stem}_mixed" if mixed else stem)
    options = SearchOptions(exploit_data_locality=True, enable_mix_spatial_mapping=mixed)
    summary = map_workload(workload_named(network), core_named(hardware), mapping, options).summary
    expected = TOTALS_OF_THE_REFERENCE_TESTS[hardware, network, mixed]
    assert (summary["energy_pj"], summary["latency_cycles"]) == expected


def test_corrected_decisions_fit_in_whole_networks() -> None:
    """Data kept under `corrected` fit in every step, on every committed core and network; data kept by the reference do
    not.

    In ResNet-18, an output of 802816 bits waits while the convolution of the shortcut runs as if it had the whole SRAM.
    """
    for hardware, network in {(run["hardware"], run["workload"]) for run in all_runs()}:
        stem = "meta_prototype_like" if hardware == "meta_prototype" else hardware
        workload, core, mapping = workload_named(network), core_named(hardware), mapping_named(stem)
        for always in (False, True):
            reaches = find_memory_reach(workload, core, mapping, CORRECTED, always)
            assert play(workload, core, mapping, reaches) == [], (hardware, network)
        if network == "resnet18.onnx":
            complaints = play(workload, core, mapping, find_memory_reach(workload, core, mapping, REFERENCE))
            assert any("holds 802816 bits beside" in complaint for complaint in complaints), hardware


# decisions in random networks -----------------------------------------------------------------------------------------


def random_case(seed: int, hardware: str) -> tuple[Workload, Core, Mapping]:
    """The case that the reference got for a seed."""
    rng = random.Random(seed)
    assert rng.choice(sorted(path.stem for path in (DATA / "hardware").glob("*.yaml"))) == hardware
    data = random_hardware(yaml.safe_load((DATA / "hardware" / f"{hardware}.yaml").read_text()), rng)
    mapping = read_mapping(random_mapping(rng))
    workload = read_onnx(random_network(rng), REFERENCE).workload
    return workload, read_accelerator(data).cores[0], mapping


@pytest.mark.slow
def test_reach_in_random_networks() -> None:
    """The operands of each layer reach as far as in the reference, in random branching networks on random cores.

    If the reference stops with an error, this project still decides, and the reduced cores can be built.
    """
    rows = json.loads((DATA / "locality-graphs.json").read_text())
    decided = 0
    for seed, hardware, weight, *layers in rows:
        workload, core, mapping = random_case(seed, hardware)
        found = {reach.layer: reach for reach in find_memory_reach(workload, core, mapping, REFERENCE)}
        assert list(found) == [node.name for node in workload.layers_in_order]
        if layers:
            decided += 1
            assert {name: (r.activation, r.output) for name, r in found.items()} == {n: (a, o) for n, a, o in layers[0]}
            kept = {found[n.name].weight for n in workload.layers_in_order if n.layer and n.layer.constant_operands}
            assert kept == {weight}, seed
    assert decided >= 300


# the committed inputs -------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not LARGE_SET.is_dir(), reason="the larger reference set ../shared/conformance is not here")
def test_committed_inputs_are_those_of_the_files() -> None:
    """The kept networks, cores and mappings equal the reference's example files."""
    compared = 0
    for kind, entries in inputs().items():
        for name, kept in entries.items():
            path = LARGE_SET / kind / file_name(kind, name)
            if path.is_file():
                compared += 1
                plain = nodes_of(read(path)) if kind == "workload" else yaml.safe_load(path.read_text())
                assert json.loads(json.dumps(plain)) == kept, name
    assert compared >= 12


def file_name(kind: str, name: str) -> str:
    """The file of an input in the larger set, which has tpu_like files of two versions of the reference."""
    if kind == "workload":
        return name
    return "tpu_like_v391.yaml" if (kind, name) == ("hardware", "tpu_like") else f"{name}.yaml"
