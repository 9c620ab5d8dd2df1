"""The files of the reference (zigzag-dse 3.9.1) are read unchanged, with all their values."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from tilewright.cli.validate import validate_file
from tilewright.hardware.yaml_reader import read_accelerator
from tilewright.mapping.constraints import TemporalOrderingEntry
from tilewright.mapping.file_checks import check_mapping_against_core
from tilewright.mapping.yaml_reader import read_mapping
from tilewright.workload.yaml_reader import read_workload_yaml

CONFORMANCE = Path(__file__).resolve().parents[3].parent / "shared" / "conformance"
pytestmark = pytest.mark.skipif(not CONFORMANCE.is_dir(), reason="the reference files are not on this machine")


def files(kind: str) -> list[Any]:
    """Return the reference's files of a kind."""
    return [pytest.param(path, id=path.stem) for path in sorted((CONFORMANCE / kind).glob("*.yaml"))]


@pytest.mark.parametrize("path", files("hardware"))
def test_hardware_values(path: Path) -> None:
    """Each memory, port and array has the values of the plain YAML."""
    core = read_accelerator(path).cores[0]
    plain = yaml.safe_load(path.read_text())
    assert core.name == plain["name"]
    assert [memory.name for memory in core.memories] == list(plain["memories"])
    array = plain["operational_array"]
    assert core.operational_array.dimensions == tuple(zip(array["dimensions"], array["sizes"], strict=True))
    assert core.operational_array.unit_energy_pj == array["unit_energy"]
    assert core.operational_array.systolic_dimensions == tuple(array.get("systolic_dimensions", []))
    for memory, written in zip(core.memories, plain["memories"].values(), strict=True):
        assert memory.size_bits == written["size"]
        assert (memory.read_energy_pj, memory.write_energy_pj) == (written["r_cost"], written["w_cost"])
        assert memory.area_mm2 == written["area"]
        assert memory.latency_cycles == written["latency"]
        assert memory.operands == tuple(written["operands"])
        assert memory.served_dimensions == tuple(written["served_dimensions"])
        assert memory.force_double_buffering == written.get("force_double_buffering", False)
        for port, entry in zip(memory.ports, written["ports"], strict=True):
            assert (port.name, port.port_type) == (entry["name"], entry["type"])
            assert (port.bandwidth_min_bits, port.bandwidth_max_bits) == (
                entry["bandwidth_min"],
                entry["bandwidth_max"],
            )
            assert [", ".join(pair) for pair in port.allocation] == entry["allocation"]


def test_hardware_agrees_with_what_the_reference_read() -> None:
    """Array sizes and systolic dimensions equal those that the reference recorded for the same files."""
    records = json.loads((CONFORMANCE / "hardware_records.json").read_text())
    for name, record in records.items():
        array = read_accelerator(CONFORMANCE / "hardware" / f"{name}.yaml").cores[0].operational_array
        assert array.size_of == record["dimension_sizes"]
        assert list(array.systolic_dimensions) == record["systolic_dimensions"]


def test_a_repeated_key_and_an_overriding_port_are_noted() -> None:
    """A repeated key and a port that replaces another are read as in the reference, with a notice."""
    notices: list[str] = []
    core = read_accelerator(CONFORMANCE / "hardware" / "tpu_like.yaml", notices).cores[0]
    assert [port.name for port in core.memories[2].ports] == ["r_port_1", "w_port_1"]
    assert len(notices) == 1
    assert "ports: the key is given twice" in notices[0]
    notices.clear()
    core = read_accelerator(CONFORMANCE / "hardware" / "generic_array_cacti.yaml", notices).cores[0]
    assert core.memories[3].port_of["O", "tl"] == 1
    assert core.memories[3].port_of["I1", "tl"] == 0
    assert sum("only the last port that lists a pair carries it" in notice for notice in notices) == 4


@pytest.mark.parametrize("path", files("mapping"))
def test_mapping_values(path: Path) -> None:
    """Each entry has the values of the plain YAML."""
    mapping = read_mapping(path)
    plain = yaml.safe_load(path.read_text())
    for entry, written in zip(mapping.entries, plain, strict=True):
        assert entry.name == written["name"]
        unrolling = {
            dimension: [f"{name}, {factor}" for name, factor in factors] for dimension, factors in entry.spatial_mapping
        }
        assert unrolling == (written.get("spatial_mapping") or {})
        assert {k: list(v) for k, v in entry.spatial_mapping_hint} == written.get("spatial_mapping_hint", {})
        assert dict(entry.memory_operand_links) == written["memory_operand_links"]
        assert len(entry.temporal_ordering) == len(written.get("temporal_ordering", []))


def test_a_partial_ordering_is_read() -> None:
    """`[D1, "*"]` is read as a loop of any size."""
    ordering = read_mapping(CONFORMANCE / "mapping" / "gemm_l1.yaml").entries[0].temporal_ordering
    assert ordering == tuple(TemporalOrderingEntry(name) for name in ("D1", "D2", "D0"))


@pytest.mark.parametrize("name", ["ascend_like", "edge_tpu_like", "eyeriss_like", "gemm_l1", "gemm_l1_l3", "tpu_like"])
def test_mappings_go_with_their_cores(name: str) -> None:
    """Each mapping of the reference fits its core, including hints for other arrays."""
    core = read_accelerator(CONFORMANCE / "hardware" / f"{name}.yaml").cores[0]
    for mapping in sorted((CONFORMANCE / "mapping").glob(f"{name}*.yaml")):
        assert check_mapping_against_core(read_mapping(mapping), core, mapping) == []


@pytest.mark.parametrize("path", files("workload"))
def test_workload_values(path: Path) -> None:
    """Each layer has the values of the plain YAML."""
    workload = read_workload_yaml(path)
    assert workload.name == path.stem
    for node, written in zip(workload.nodes, yaml.safe_load(path.read_text()), strict=True):
        layer = node.layer
        assert layer is not None
        assert node.node_id == written["id"]
        assert node.name == layer.name == written.get("name", f"Layer{written['id']}")
        assert node.operator_type == written["operator_type"]
        assert layer.loop_sizes == tuple(zip(written["loop_dims"], written["loop_sizes"], strict=True))
        assert dict(layer.precision_bits) == written["operand_precision"]
        sources = written["operand_source"]
        assert node.sources == tuple(pair for pair in sources.items() if pair[1] != written["id"])
        assert layer.constant_operands == tuple(operand for operand, s in sources.items() if s == written["id"])
        assert len(layer.relations) == len(written.get("dimension_relations", []))
        equation = written["equation"].replace("+=", "=").replace("=", "+=").replace(" ", "")
        assert layer.equation.replace(" ", "").replace("*", "+") == equation.replace("*", "+")


@pytest.mark.parametrize("kind", ["hardware", "mapping", "workload"])
def test_every_file_is_recognised_and_valid(kind: str) -> None:
    """The kind of each file is detected from its content, and the file is valid."""
    for path in sorted((CONFORMANCE / kind).glob("*.yaml")):
        found, problems, _ = validate_file(path)
        assert (found, problems) == (kind, [])
