"""Requests from mapping files, and mapping files from allocations."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from tilewright.base.errors import InputError
from tilewright.base.yamlfile import parse_yaml
from tilewright.hardware.system import SIMD, MultiCoreAccelerator
from tilewright.mapping.constraints import Mapping
from tilewright.mapping.source import parse_mapping
from tilewright.mapping.yaml_writer import as_entry, mapping_text
from tilewright.multicore.allocation.requests import fixed_entries, layer_requests
from tilewright.multicore.allocation.space import LayerRequest
from tilewright.workload.graph import Workload

from tests.unit.multicore.nodes.networks import two_convolutions
from tests.unit.multicore.scheduling.accelerators import accelerator, core, cut, with_place


def system() -> MultiCoreAccelerator:
    """Three cores; the last is a vector unit."""
    return with_place(accelerator([core("a"), core("b"), core("v")]), 2, role=SIMD)


def requests(
    workload: Workload, entries: list[dict[str, Any]], loops: Sequence[tuple[str, int]] = ()
) -> tuple[LayerRequest, ...]:
    """The requests of the layers of a network that is cut by loops."""
    return layer_requests(cut(workload, loops), workload, parse_mapping(entries), system())


def test_cores_of_an_entry_are_asked_for() -> None:
    """Free, fixed by group, and as the roles say where nothing is said."""
    workload = two_convolutions()
    loops = [("K", 2)]
    assert requests(workload, [{"name": "default", "core_allocation": [1, 0]}]) == (
        LayerRequest(0, (1, 0)),
        LayerRequest(1, (1, 0)),
    )
    fixed = {"name": "a", "core_allocation": [1, 1], "core_allocation_is_fixed": True}
    found = requests(workload, [fixed, {"name": "default"}], loops)
    assert found == (LayerRequest(0, (1, 1), True), LayerRequest(1, (0, 1)))


def test_fixed_cores_of_groups_are_free_where_a_layer_is_not_cut() -> None:
    """Layer by layer, the cores that were meant for its groups may each run the layer."""
    workload = two_convolutions()
    fixed = {"name": "a", "core_allocation": [1, 0], "core_allocation_is_fixed": True}
    assert requests(workload, [fixed, {"name": "default"}])[0] == LayerRequest(0, (1, 0), False)
    fixed["core_allocation"] = [1]
    assert requests(workload, [fixed, {"name": "default"}])[0] == LayerRequest(0, (1,), True)


def test_one_fixed_core_runs_all_groups() -> None:
    """Two groups of K on core 1, which need not be said twice."""
    fixed = {"name": "a", "core_allocation": [1], "core_allocation_is_fixed": True}
    found = requests(two_convolutions(), [fixed, {"name": "default"}], [("K", 2)])
    assert found[0] == LayerRequest(0, (1, 1), True)


def test_a_layer_that_no_core_can_run_is_told() -> None:
    """A pooling and a convolution on a vector unit that its file restricts."""
    workload = two_convolutions()
    only = with_place(accelerator([core("v")]), 0, operator_types=("vector",))
    with pytest.raises(InputError) as caught:
        layer_requests(cut(workload), workload, parse_mapping([{"name": "default"}]), only)
    assert [problem.path for problem in caught.value.problems] == ["a", "b"]
    assert "core 0 runs vector, not Conv" in str(caught.value)


def test_an_unknown_core_stays_to_be_told() -> None:
    """It becomes a column that the space of allocations does not have."""
    assert requests(two_convolutions(), [{"name": "default", "core_allocation": [0, 9]}])[0].cores == (0, 4)


FULL = {
    "name": "Conv",
    "spatial_mapping": {"D1": ["K, 4", "C, 2"], "D2": []},
    "spatial_mapping_hint": {"D3": ["OX", "OY"]},
    "memory_operand_links": {"O": "O", "W": "I1", "I": "I2"},
    "temporal_ordering": [["OX", 4], ["OY", "*"], ["*", "*"]],
    "core_allocation": [2, 0],
    "core_allocation_is_fixed": True,
    "intra_core_tiling": ["OY, all", "OX, 2"],
    "inter_core_tiling": ["K, *"],
    "layer_dimension_names": ["B", "K", "C"],
}
BOUNDED = {
    "name": "default",
    "temporal_ordering": [["OX", 4], ["OY", 2]],
    "level_boundaries": {"O": [1, 2], "W": [0, 2], "I": [2]},
}


def test_entries_are_written_as_they_were_read() -> None:
    """Every key of an entry, through the text of a file."""
    mapping = parse_mapping([FULL, BOUNDED])
    text = mapping_text([as_entry(entry) for entry in mapping.entries], "a remark")
    assert text.startswith("# a remark\n- name: Conv\n")
    data = parse_yaml(text).data
    assert parse_mapping(data) == mapping
    assert [as_entry(entry) for entry in mapping.entries] == [FULL, BOUNDED]


def test_fixed_entries_come_first_and_keep_what_was_said() -> None:
    """Each layer by its exact name, which goes before operator types; the original entries stay behind."""
    workload = two_convolutions()
    original = parse_mapping([{**FULL, "core_allocation_is_fixed": False}, {"name": "a"}, BOUNDED])
    entries = fixed_entries({0: [1], 1: [0, 2]}, cut(workload), workload, original)
    assert [entry["name"] for entry in entries] == ["a", "b", "Conv", "default"]
    assert entries[0] == {"name": "a", "core_allocation": [1], "core_allocation_is_fixed": True}
    assert entries[1] == {**FULL, "name": "b", "core_allocation": [0, 2], "inter_core_tiling": ["K, 2"]}
    back = parse_mapping(entries)
    layer = workload.nodes[1].layer
    assert layer is not None
    assert back.constraints_for(layer).core_allocation == (0, 2)
    assert isinstance(back, Mapping)


def test_layers_of_one_name_on_different_cores_cannot_be_told_apart() -> None:
    """A mapping file knows layers by their names; on the same cores one entry is enough for both."""
    workload = two_convolutions()
    nodes = [replace(node, layer=node.layer and replace(node.layer, name="same")) for node in workload.nodes]
    workload = replace(workload, nodes=tuple(nodes))
    with pytest.raises(InputError, match="two layers of this name"):
        fixed_entries({0: [0], 1: [2]}, cut(workload), workload, parse_mapping([{"name": "default"}]))
    entries = fixed_entries({0: [2], 1: [2]}, cut(workload), workload, parse_mapping([{"name": "default"}]))
    assert [entry["name"] for entry in entries] == ["same", "default"]


def test_tilings_of_fixed_entries_are_what_the_layer_has() -> None:
    """Layer a makes 8 channels, b makes 4: six tiles for all layers are four in the entry for b; no layer has D."""
    workload = two_convolutions()
    loops = {"inter_core_tiling": ["K, 6", "D, 2"], "intra_core_tiling": ["OY, all"]}
    cores = {"core_allocation": [0, 1, 2]}
    given = parse_mapping(
        [{"name": "default", **loops, **cores}, {"name": "b", "inter_core_tiling": ["OX, *"], **cores}]
    )
    a, b = fixed_entries({0: [0] * 6, 1: [0, 1, 2]}, cut(workload), workload, given)[:2]
    assert (a["inter_core_tiling"], a["intra_core_tiling"]) == (["K, 6"], ["OY, all"])
    assert b["inter_core_tiling"] == ["OX, 3"]
    small = parse_mapping([{"name": "default", **loops, **cores}])
    assert fixed_entries({0: [0] * 6, 1: [0] * 4}, cut(workload), workload, small)[1]["inter_core_tiling"] == ["K, 4"]
