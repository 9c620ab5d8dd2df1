"""Mappings exported from a run give the run's numbers when they are evaluated or mapped again."""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from tilewright.base.artifacts.codec import encode
from tilewright.base.artifacts.envelope import write_document
from tilewright.base.errors import InputError, MappingError
from tilewright.cli.main import main
from tilewright.hardware.core import Accelerator, Core
from tilewright.mapping.constraints import Mapping, MappingConstraints
from tilewright.mapping.file_checks import check_mapping_against_core
from tilewright.mapping.yaml_reader import read_mapping
from tilewright.mapping.yaml_writer import as_entry
from tilewright.pipeline.stages.base import Change
from tilewright.pipeline.stages.descriptions import NetworkProblem, of_core
from tilewright.pipeline.stages.items import LayerProblem, MappedWorkload
from tilewright.pipeline.stages.pipeline import Pipeline
from tilewright.pipeline.stages.run import map_problem, map_workload
from tilewright.results.recorded_mappings import mapping_entries, mapping_yaml
from tilewright.search.evaluate import evaluate_given
from tilewright.search.options import SearchOptions
from tilewright.workload.graph import Workload

from tests.members import members
from tests.unit.cost.engine_cases import LINKS, convolution, gemm, small_core, unrollings
from tests.unit.mapping.locality_cases import SWAPPED, buffered_core, entry, network, networks
from tests.unit.mapping.locality_cases import cores as locality_cores

SWITCHED = "zigzag-3.9.1+live_tensor_capacity+exact_temporal_sizes", "corrected-consistent_window_union"
ENGINES = (
    {"lpf_limit": 3},
    {"temporal_mapping_search_engine": "salsa", "salsa_iteration_number": 20},
    {"temporal_mapping_search_engine": "exact"},
    {"temporal_mapping_search_engine": "exact", "allocation": "free"},
)
SAME = ("energy_breakdown_pj", "latency_breakdown_cycles", "corrected", "memories", "memory_levels", "ports")
"""Fields of a record that must come back equal, beside energy and latency."""


@dataclass(frozen=True)
class Found:
    """A run that found mappings for all layers."""

    problem: NetworkProblem
    options: SearchOptions
    mapped: MappedWorkload

    @property
    def exported(self) -> Mapping:
        """The mapping file exported from the run, read again."""
        return read_mapping(yaml.safe_load(mapping_yaml(self.mapped.records)))

    def differing(self, exported: Mapping, again: SearchOptions | None = None) -> list[str]:
        """Layers whose numbers differ with the exported mapping, evaluated or mapped with options."""
        found = _by_layer(self.mapped)
        layers = [node.layer for node in self.problem.workload.layers_in_order if node.layer]
        if again is None:
            only_model = SearchOptions(model=self.options.model)
            core = self.problem.core
            other = {x.name: evaluate_given(x, core, exported.constraints_for(x), only_model) for x in layers}
        else:
            other = _by_layer(map_workload(self.problem.workload, self.problem.core, exported, again))
        keys = ("energy_pj", "latency_cycles", *SAME)
        return [
            name
            for name, record in found.items()
            if any(getattr(other[name], key) != getattr(record, key) for key in keys)
        ]


def _by_layer(mapped: MappedWorkload) -> dict[str, Any]:
    return {name: mapped.records[index] for name, index in mapped.summary["layer_index"]}


def find(workload: Workload, core: Core, mapping: Mapping, options: SearchOptions) -> Found:
    """Map a network and return the run."""
    problem = of_core(workload, core, mapping)
    return Found(problem, options, map_workload(workload, core, mapping, options))


@st.composite
def searches(draw: st.DrawFn) -> tuple[Workload, Core, Mapping, SearchOptions]:
    """Small networks on small cores, with every engine, model and kind of mapping."""
    workload = draw(networks())
    core = draw(st.one_of(locality_cores(), st.just(small_core()), st.just(buffered_core((3000, ("I1", "I2", "O"))))))
    links = draw(st.sampled_from([LINKS, LINKS, SWAPPED]))
    entries = [MappingConstraints("default", memory_operand_links=links)]
    for node in workload.layers_in_order:
        if node.layer and draw(st.booleans()):
            given_by_user = draw(unrollings(node.layer, core))
            entries.append(MappingConstraints(node.layer.name, given_by_user, memory_operand_links=links))
    engine = draw(st.sampled_from(ENGINES))
    even = draw(st.booleans()) and "allocation" not in engine
    options = SearchOptions(
        model=draw(st.sampled_from(["zigzag-3.9.1", "corrected", *SWITCHED])),
        objective=draw(st.sampled_from(["latency", "energy", "EDP"])),
        temporal_mapping_type="even" if even else "uneven",
        enable_mix_spatial_mapping=draw(st.booleans()),
        exploit_data_locality=draw(st.sampled_from([True, True, False])),
        workload_data_always_from_top_mem=draw(st.booleans()),
        **engine,
    )
    return workload, core, Mapping(tuple(entries)), options


@pytest.mark.slow
@settings(max_examples=members(100, 40), deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(searches())
def test_exported_mappings_give_the_numbers_of_the_run(case: tuple[Workload, Core, Mapping, SearchOptions]) -> None:
    """An exported mapping gives the run's energy and latency to the last bit.

    It is evaluated, and mapped again with the options of the run or with the model alone. The entry as the project
    writes it gives the same mapping.
    """
    try:
        found = find(*case)
    except MappingError:
        event("nothing fits")
        return
    options, exported = found.options, found.exported
    event(f"{options.temporal_mapping_search_engine} {options.allocation}, locality {options.exploit_data_locality}")
    assert found.differing(exported) == []
    assert found.differing(exported, SearchOptions(model=options.model)) == []
    assert found.differing(exported, options) == []
    assert read_mapping([as_entry(one) for one in exported.entries]) == exported
    again = map_workload(found.problem.workload, found.problem.core, exported, options)
    assert mapping_entries(again.records) == mapping_entries(found.mapped.records)


CHAIN = network((entry("a", D=4, C=6, K=8),), (gemm("b", D=4, C=8, K=6), (0,)), (gemm("c", D=4, C=6, K=8), (1,)))
KEEPING = buffered_core((64, ("I2",)), (4000, ("I1", "I2", "O")))


def kept_run(model: str = "corrected") -> Found:
    """A run that keeps data between layers on chip."""
    options = SearchOptions(model=model, lpf_limit=3, exploit_data_locality=True)
    return find(CHAIN, KEEPING, Mapping((MappingConstraints("default"),)), options)


def test_a_free_search_says_all_of_the_mapping() -> None:
    """The file of a free search has all boundaries, also if time ends before the search has better ones.

    Otherwise the file would be searched again and give other numbers.
    """
    layer = replace(gemm("a", C=720, D=720, K=720), constant_operands=("W", "I"))
    free = SearchOptions(temporal_mapping_search_engine="exact", allocation="free", time_budget_s=1e-6)
    found = find(network((layer,)), small_core(buffer_bits=6000), Mapping((MappingConstraints("default"),)), free)
    assert not found.mapped.records[0].search["proven"]
    assert set(found.mapped.records[0].level_boundaries) == {"O", "I", "W"}
    assert found.differing(found.exported) == []
    assert found.differing(found.exported, replace(free, time_budget_s=5.0)) == []


def test_what_data_locality_decided_is_in_the_file() -> None:
    """The file has the last memory of each operand and the occupied room; without these, the numbers differ."""
    found = kept_run()
    assert {len(record.memories) for record in found.mapped.records} == {3}
    entries = mapping_entries(found.mapped.records)
    reach = entries[0]["memory_reach"]
    assert reach["topmost"] == {"O": "buffer1", "I": "buffer1", "W": "buffer1"}
    assert 0 < reach["occupied_bits"]["buffer1"] < 4000
    for one in entries:
        one.pop("memory_reach", None)
    forgotten = read_mapping(entries)
    assert len(found.differing(forgotten)) == 3


def test_data_locality_is_not_decided_twice() -> None:
    """A mapping file with `exploit_data_locality` has a reach for every layer or is refused."""
    found = kept_run()
    changed = mapping_entries(found.mapped.records)
    assert found.differing(read_mapping(changed), found.options) == []
    del next(one for one in changed if one["name"] == "b")["memory_reach"]
    with pytest.raises(InputError, match=r"1 of 3 layers have no memory_reach, such as b"):
        found.differing(read_mapping(changed), found.options)
    assert found.differing(read_mapping(changed), replace(found.options, exploit_data_locality=False)) == ["b"]


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"topmost": {"O": "bufer1", "W": "top", "I": "top"}}, "topmost.O: core buffered has no such memory"),
        ({"topmost": {"O": "buffer0", "W": "top", "I": "top"}}, "does not hold memory operand O"),
        ({"occupied_bits": {"buffer1": 4001}}, "more than the 4000 bits of this memory, got 4001"),
        ({"occupied_bits": {"sram": 1}}, "occupied_bits.sram: core buffered has no such memory"),
    ],
)
def test_a_reach_that_the_core_does_not_have_is_told(changes: dict[str, Any], told: str) -> None:
    """Names, operands and room in `memory_reach` are checked against the core."""
    reach = {"topmost": {"O": "top", "W": "top", "I": "top"}} | changes
    mapping = read_mapping([{"name": "default", "memory_reach": reach}])
    problems = [str(problem) for problem in check_mapping_against_core(mapping, KEEPING)]
    assert len(problems) == 1
    assert told in problems[0]
    with pytest.raises(MappingError, match="memory_reach of layer 'a'"):
        evaluate_given(CHAIN.nodes[0].layer, KEEPING, mapping.entries[0])


@pytest.mark.parametrize(
    ("reach", "told"),
    [
        ({}, "topmost"),
        ({"topmost": {"O": "top", "W": "top"}}, "required key is missing"),
        ({"topmost": {"O": 1, "W": "top", "I": "top"}}, "must be text"),
        ({"topmost": {"O": "top", "I": "top"}, "occupied_bits": {"top": -1}}, "must not be less than 0"),
        ({"topmost": {"O": "top", "I": "top"}, "occupied": {}}, "occupied"),
    ],
)
def test_a_wrong_reach_is_told(reach: dict[str, Any], told: str) -> None:
    """A wrong form of `memory_reach` is found when the file is read."""
    with pytest.raises(InputError, match=told):
        read_mapping([{"name": "default", "memory_reach": reach}])


@pytest.mark.parametrize(
    ("key", "buffer_bits"), [("temporal_mapping_type", 200), ("access_same_data_considered_as_no_access", 300)]
)
def test_even_mappings_and_reads_of_the_same_data_come_back(key: str, buffer_bits: int) -> None:
    """An exported file states that mappings are even, and that repeated reads of the same data count.

    Both statements hold whatever the options say, and without one of them the numbers differ.
    """
    settings_of = {"set": "SpatialMappingConversion", "parameters": {"access_same_data_considered_as_no_access": False}}
    options = SearchOptions(temporal_mapping_type="even", lpf_limit=3, objective="energy")
    user = Mapping((MappingConstraints("default", (("D1", (("K", 2),)), ("D2", ()))),))
    problem = of_core(network((entry("a", D=3, C=12, K=4),)), small_core(buffer_bits=buffer_bits), user)
    found = Found(problem, options, map_problem(problem, Pipeline.build([settings_of], options)))
    entries = mapping_entries(found.mapped.records)
    assert entries[0]["temporal_mapping_type"] == "even"
    assert entries[0]["access_same_data_considered_as_no_access"] is False
    assert found.differing(read_mapping(entries)) == []
    assert found.differing(read_mapping(entries), SearchOptions(lpf_limit=3)) == []
    without = [{name: value for name, value in one.items() if name != key} for one in entries]
    assert found.differing(read_mapping(without)) == ["a"]


def test_even_mappings_are_not_searched_freely() -> None:
    """An entry that asks for even mappings is an error with `allocation: free`, where each operand has its own
    boundaries.
    """
    even = Mapping((MappingConstraints("default", temporal_mapping_type="even"),))
    options = SearchOptions(temporal_mapping_search_engine="exact", allocation="free")
    with pytest.raises(MappingError, match=r"with `allocation: free`, .* all operands have the same level boundaries"):
        map_workload(CHAIN, KEEPING, even, options)


def test_boundaries_count_loops_that_do_nothing() -> None:
    """`map` and `evaluate` both count loops of size 1 and loops over dimensions that the layer lacks."""
    options = SearchOptions(temporal_mapping_search_engine="exact", allocation="free")
    found = find(CHAIN, KEEPING, Mapping((MappingConstraints("default"),)), options)
    entries = mapping_entries(found.mapped.records)
    for one in entries[:3]:
        one["temporal_ordering"] = [["D", 1], ["FX", 3], *one["temporal_ordering"]]
        one["level_boundaries"] = {o: [b and b + 2 for b in bounds] for o, bounds in one["level_boundaries"].items()}
    assert found.differing(read_mapping(entries)) == []
    assert found.differing(read_mapping(entries), SearchOptions(model=found.options.model)) == []


def test_what_no_file_can_say_is_not_exported() -> None:
    """A core that a stage changed, other than by the reach of data, cannot be exported."""

    class Dearer(Change):
        """Maps layers on a core whose operations take more energy."""

        takes = LayerProblem
        gives = LayerProblem

        def change(self, item: LayerProblem) -> LayerProblem:
            array = replace(item.core.operational_array, unit_energy_pj=7.0)
            return replace(item, core=replace(item.core, operational_array=array))

    pipeline = Pipeline.build([{"insert": Dearer, "after": "Workload"}], SearchOptions(lpf_limit=3))
    problem = of_core(CHAIN, KEEPING, Mapping((MappingConstraints("default"),)))
    mapped = map_problem(problem, pipeline)
    with pytest.raises(InputError, match="a stage changed the core of this layer, which no mapping file can express"):
        mapping_entries(mapped.records)


TINY = Path(__file__).resolve().parents[3] / "workflow" / "tiny"
DESCRIBED = (
    *("--hardware", str(TINY / "hardware" / "narrow.yaml")),
    *("--workload", str(TINY / "workload" / "two_layers.yaml")),
)


def test_commands_agree(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The commands agree: map with free boundaries, export without the hardware, then evaluate and map again."""
    hardware, workload = tmp_path / "hardware.json", tmp_path / "workload.json"
    write_document(hardware, "tilewright/accelerator", encode(Accelerator("small", (small_core(buffer_bits=600),))), {})
    layers = (convolution("one", K=8, C=6, OX=6, FX=3), gemm("two", C=12, D=5, K=6))
    write_document(workload, "tilewright/workload", encode(network(*((layer,) for layer in layers))), {})
    described = ["--hardware", str(hardware), "--workload", str(workload)]
    search = ["--temporal-mapping-search-engine", "exact", "--allocation", "free", "--no-store"]
    search += ["--no-exploit-data-locality"]  # points are of the whole core
    given_mapping = str(TINY / "mapping" / "free.yaml")
    assert main(["map", *described, "--mapping", given_mapping, *search, "-o", str(tmp_path / "run")]) == 0
    found, points = str(tmp_path / "found.yaml"), tmp_path / "points.jsonl"
    assert main(["export", str(tmp_path / "run"), "-o", found]) == 0
    rows = [json.loads(line) for line in (tmp_path / "run" / "layers.jsonl").read_text().splitlines()[1:-1]]
    assert any("level_boundaries" in row for row in rows)
    keys = ("spatial_mapping", "loop_order", "memory_operand_links", "level_boundaries")
    lines = [{"layer": row["layer"]["name"], **{key: row[key] for key in keys if key in row}} for row in rows]
    points.write_text("\n".join(map(json.dumps, lines)))
    capsys.readouterr()
    for given_as in (["--mapping", found], ["--points", str(points)]):
        assert main(["evaluate", *described, *given_as, "--json"]) == 0
        told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        for key in ("energy_pj", "latency_cycles", "corrected"):
            assert [row[key] for row in told] == [row[key] for row in rows]
    again = ["map", *described, "--mapping", found, "--no-exploit-data-locality", "--no-store", "--json"]
    assert main(again) == 0
    mapped = json.loads(capsys.readouterr().out)["records"]
    assert [row["energy_pj"] for row in mapped] == [row["energy_pj"] for row in rows]


def test_evaluate_does_not_pass_over_what_the_file_says(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`evaluate` reports an option that contradicts the mapping file.

    Entries that leave loops open are reported in one message, with the number of their layers.
    """
    path = tmp_path / "mapping.yaml"
    path.write_text("- {name: default, temporal_ordering: [[K, '*']], temporal_mapping_type: even}\n")
    given_as = ["--mapping", str(path), "--temporal-mapping-type", "uneven"]
    assert main(["evaluate", *DESCRIBED, *given_as]) == 2
    told = capsys.readouterr().err
    assert told.count("temporal_ordering does not fix every loop") == 1
    assert "(for 2 layers, such as first)" in told
    assert "default: the entry contradicts the option --temporal-mapping-type uneven, got even" in told
