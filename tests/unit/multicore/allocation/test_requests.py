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
    """Three cores, of which the last is a vector unit."""
    return with_place(accelerator([core("a"), core("b"), core("v")]), 2, role=SIMD)


def requests(
    workload: Workload, entries: list[dict[str, Any]], loops: Sequence[tuple[str, int]] = ()
) -> tuple[LayerRequest, ...]:
    """The requests of the layers of a network that is cut by loops."""
    return layer_requests(cut(workload, loops), workload, parse_mapping(entries), system())


def test_cores_of_an_entry_are_asked_for() -> None:
    """An entry's cores are free or fixed by group. Without an entry, the roles of the cores decide."""
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
    """Cores fixed for the groups of a layer become free choices when the layer is not cut."""
    workload = two_convolutions()
    fixed = {"name": "a", "core_allocation": [1, 0], "core_allocation_is_fixed": True}
    assert requests(workload, [fixed, {"name": "default"}])[0] == LayerRequest(0, (1, 0), False)
    fixed["core_allocation"] = [1]
    assert requests(workload, [fixed, {"name": "default"}])[0] == LayerRequest(0, (1,), True)


def test_one_fixed_core_runs_all_groups() -> None:
    """One fixed core runs both groups of K; the entry names it once."""
    fixed = {"name": "a", "core_allocation": [1], "core_allocation_is_fixed": True}
    found = requests(two_convolutions(), [fixed, {"name": "default"}], [("K", 2)])
    assert found[0] == LayerRequest(0, (1, 1), True)


def test_a_layer_that_no_core_can_run_is_told() -> None:
    """A pooling and a convolution are reported where the only core is a vector unit that runs neither."""
    workload = two_convolutions()
    only = with_place(accelerator([core("v")]), 0, operator_types=("vector",))
    with pytest.raises(InputError) as caught:
        layer_requests(cut(workload), workload, parse_mapping([{"name": "default"}]), only)
    assert [problem.path for problem in caught.value.problems] == ["a", "b"]
    assert "core 0 runs vector, not Conv" in str(caught.value)


def test_an_unknown_core_stays_to_be_told() -> None:
    """An unknown core gets the number of a column that does not exist, so that the space of allocations reports it."""
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
    """Every key of an entry keeps its value when it is written to a file and read again."""
    mapping = parse_mapping([FULL, BOUNDED])
    text = mapping_text([as_entry(entry) for entry in mapping.entries], "a remark")
    assert text.startswith("# a remark\n- name: Conv\n")
    data = parse_yaml(text).data
    assert parse_mapping(data) == mapping
    assert [as_entry(entry) for entry in mapping.entries] == [FULL, BOUNDED]


def test_fixed_entries_come_first_and_keep_what_was_said() -> None:
    """Fixed entries name each layer exactly and stand before the original entries, whose other settings they keep."""
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
    """Layers of one name on different cores raise an error; on the same cores they share one entry."""
    workload = two_convolutions()
    nodes = [replace(node, layer=node.layer and replace(node.layer, name="same")) for node in workload.nodes]
    workload = replace(workload, nodes=tuple(nodes))
    with pytest.raises(InputError, match="two layers of this name"):
        fixed_entries({0: [0], 1: [2]}, cut(workload), workload, parse_mapping([{"name": "default"}]))
    entries = fixed_entries({0: [2], 1: [2]}, cut(workload), workload, parse_mapping([{"name": "default"}]))
    assert [entry["name"] for entry in entries] == ["same", "default"]


def test_tilings_of_fixed_entries_are_what_the_layer_has() -> None:
    """The entry of b asks for 4 tiles of K instead of 6, because b makes 4 channels. D is dropped: no layer has it."""
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
