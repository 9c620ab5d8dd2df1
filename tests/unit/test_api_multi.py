"""The Python interface of the flow for several cores."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import tilewright
from tilewright.base.errors import InputError
from tilewright.hardware.system import MultiCoreAccelerator
from tilewright.pipeline.stages.multi.allocation import InterCoreMapping
from tilewright.pipeline.stages.multi.pipeline import multi_pipeline

from tests.unit.cli.multi_core import HARDWARE, MAPPING, write_network
from tests.unit.pipeline.stages.multi.multi_cases import GA, LAYERS


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write three convolutions in a row."""
    return write_network(tmp_path_factory.mktemp("network"))


@pytest.fixture(scope="module")
def costed(network: Path) -> Any:
    """Return the computation nodes of the network with their costs."""
    return tilewright.cost(tilewright.cns(network, HARDWARE, MAPPING, stack_cutoffs=[2]), lpf_limit=4)


def test_step_by_step_is_the_whole(network: Path, costed: Any, tmp_path: Path) -> None:
    """One call, four calls, and a run with the result's mapping file give the same schedule."""
    settings: dict[str, Any] = {**GA, "operands_to_prefetch": ["W"]}
    result = tilewright.allocate(costed, **settings)
    whole = tilewright.run_multi_core(network, HARDWARE, MAPPING, lpf_limit=4, stack_cutoffs=[2], **settings)
    assert (whole.latency_cycles, whole.energy_pj) == (result.latency_cycles, result.energy_pj)
    again = tilewright.schedule(costed, result, operands_to_prefetch=["W"])
    assert np.array_equal(again.artifact.schedule.start_cycles, result.artifact.schedule.start_cycles)
    (tmp_path / "fixed.yaml").write_text(result.mapping_text())
    fixed = tilewright.run_multi_core(
        network, HARDWARE, tmp_path / "fixed.yaml", lpf_limit=4, stack_cutoffs=[2], operands_to_prefetch=["W"]
    )
    assert (fixed.latency_cycles, fixed.allocation.evaluations) == (result.latency_cycles, 1)
    assert fixed.core_table().equals(result.core_table())


def test_cores_by_name(costed: Any) -> None:
    """Layers are allocated to cores by name and id; an exhaustive search finds the best of all eight allocations."""
    found = [
        tilewright.schedule(costed, dict(zip("abc", (a, b, c), strict=True))).latency_cycles
        for a in (0, 1)
        for b in (0, 1)
        for c in (0, 1)
    ]
    assert min(found) == tilewright.allocate(costed, exhaustive_nodes=10**6).latency_cycles
    assert len(set(found)) > 1
    groups = tilewright.schedule(costed, {"a": [1], "b": [1], "c": 0})
    assert groups.core_table()["core"].tolist() == ["right", "right", "left"]


def test_the_exact_engine_proves_the_best(costed: Any) -> None:
    """The exact engine proves the best of all eight allocations, and refuses another schedule model."""
    found = tilewright.allocate(costed, **{**GA, "nb_ga_generations": 0}, allocation_engine="exact", objective="EDP")
    assert found.edp == tilewright.allocate(costed, objective="EDP", exhaustive_nodes=10**6).edp
    search = found.document["search"]
    assert search["proof"]["is_proven"]
    assert (search["allocation_engine"], search["proof"]["lower_bound"]) == ("exact", found.edp)
    with pytest.raises(InputError, match="the exact engine does not support the schedule model stream-2023"):
        tilewright.allocate(costed, allocation_engine="exact", schedule_model="stream-2023")


def test_all_forms_of_descriptions(network: Path) -> None:
    """Descriptions can be paths, a model in memory, lists of layers and entries, or parsed objects."""
    expected = tilewright.run_multi_core(network, HARDWARE, MAPPING, **GA).latency_cycles
    accelerator: Any = tilewright.parse_accelerator(HARDWARE)
    assert isinstance(accelerator, MultiCoreAccelerator)
    mapping = tilewright.parse_mapping(MAPPING)
    parsed = tilewright.parse_workload(network, model="corrected")
    for source in (onnx.load(str(network)), parsed):
        assert tilewright.run_multi_core(source, accelerator, mapping, **GA).latency_cycles == expected
    result = tilewright.run_multi_core(LAYERS, HARDWARE, [{"name": "default"}], **GA)
    assert result.names.layer_names == ("one", "two")


def test_costs_are_a_table(costed: Any) -> None:
    """The cost table has a row for each core and class of computation nodes."""
    table = tilewright.cost_table(costed)
    assert len(table) == sum(len(rows) for rows in costed.costs.values())


def test_a_pipeline_from_python(network: Path, tmp_path: Path) -> None:
    """A pipeline takes stages as classes or objects, or is built before; figures are written into the given folder."""
    pipeline = [{"replace": "InterCoreMapping", "stage": InterCoreMapping(plot_hof=True, nb_ga_generations=1)}]
    result = tilewright.run_multi_core(network, HARDWARE, MAPPING, pipeline=pipeline, exports=tmp_path)
    assert sorted(tmp_path.glob("hall_of_fame_*.png"))
    built = multi_pipeline([{"replace": "InterCoreMapping", "stage": InterCoreMapping}], sliced=False)
    assert tilewright.run_multi_core(network, HARDWARE, MAPPING, pipeline=built).energy_pj == result.energy_pj


@pytest.mark.parametrize(
    ("settings", "parts"),
    [
        ({"stack_cutofs": [1], "seed": -1}, ["seed: not a count"]),
        ({"stack_cutofs": [1], "mode": "fusd"},
         ["stack_cutofs: no such setting (did you mean 'stack_cutoffs'?)", "mode: not a mode"]),
        ({"hint_loops": [["OY", "all"]]}, ["hint_loops: needs a cn_define_mode"]),
        ({"layer_stacks": "x", "lpf_limit": 0}, ["lpf_limit: not a count"]),
        ({"layer_stacks": "x"}, ["layer_stacks: must be a list of stacks, got 'x' (allowed: lists of node ids"]),
        ({"pipeline": [{"drop": "Sum"}], "nb_ga_individuals": "x"},
         ["pipeline[0].drop: the pipeline has no such stage", "nb_ga_individuals: wrong kind of value"]),
        ({"pipeline": multi_pipeline(sliced=False), "mode": "lbl"},
         ["mode: no such setting (allowed: none, because the pipeline is already built"]),
        ({"operands_to_prefetch": ["V"]}, ["operands_to_prefetch[0]: no layer reads an operand of this name, got V"]),
    ],
)  # fmt: skip
def test_wrong_settings_are_told(settings: dict[str, Any], parts: list[str], network: Path) -> None:
    """Several wrong settings are reported together by name."""
    with pytest.raises(tilewright.InputError) as caught:
        tilewright.run_multi_core(network, HARDWARE, MAPPING, **settings)
    for part in parts:
        assert part in str(caught.value)


def test_wrong_steps_are_told(network: Path, costed: Any) -> None:
    """Wrong parameters, unknown layers and missing or unknown cores are refused."""
    with pytest.raises(tilewright.InputError, match="stack_cutofs: no such setting"):
        tilewright.cns(network, HARDWARE, MAPPING, stack_cutofs=[2])
    with pytest.raises(tilewright.InputError) as caught:
        tilewright.schedule(costed, {"a": 7, "bb": 1, "c": 0})
    said = str(caught.value).splitlines()
    assert said[0].startswith("bb: no such layer")
    assert "a, group 0: cannot run on this core, got 7 (allowed: 0, 1)" in said
    assert "b, group 0: needs a core (allowed: 0, 1)" in said
    with pytest.raises(tilewright.InputError, match="several cores"):
        tilewright.schedule(costed)
    assert tilewright.cns(network, HARDWARE, MAPPING, strict=True).graph.cn_count == 24


def test_splitting_layers(network: Path) -> None:
    """A layer with too large weights becomes several layers."""
    result = tilewright.run_multi_core(network, HARDWARE, MAPPING, split_layers=True, split_W_percentage=0.02, **GA)
    assert len(result.names.layer_names) == 6
