"""The export of mappings as a mapping file."""

import copy

import pytest
import yaml
from tilewright.base.errors import InputError
from tilewright.cost.record import record_of_row
from tilewright.mapping.yaml_reader import read_mapping
from tilewright.results.recorded_mappings import mapping_entries, mapping_yaml


def test_reads_back_to_the_same_mapping(record, tmp_path):
    """The mapping reader gives the spatial mapping, links and complete ordering of the record, in the same order."""
    record["spatial_mapping"] = {"D2": {"OX": 2, "C": 16}, "D1": {"K": 32}}
    file = tmp_path / "mapping.yaml"
    file.write_text(mapping_yaml([record_of_row(record)]))
    entry = read_mapping(file).entries[0]
    assert entry.name == "/conv1/Conv"
    assert entry.spatial_mapping == (("D2", (("OX", 2), ("C", 16))), ("D1", (("K", 32),)))
    assert entry.memory_operand_links == tuple(record["memory_operand_links"].items())
    assert [[loop.dimension, loop.size] for loop in entry.temporal_ordering] == record["loop_order"]


def test_every_layer_of_the_network_has_an_entry_and_there_is_a_default(make_network):
    """Layers that share a problem share the mapping, each under its own name."""
    records, _ = make_network(14)
    entries = {entry["name"]: entry for entry in mapping_entries(records)}
    assert len(entries) == 15
    assert "default" in entries
    one, other = (entries[f"/layer{i}/layer{i}.0/conv{i}/Conv"] for i in (0, 12))
    assert {**one, "name": ""} == {**other, "name": ""}


def test_unused_array_dimensions_stay_unused(record):
    """Array dimensions that the mapping leaves out are written empty, so that no generator fills them."""
    entries = mapping_entries([record_of_row(record)], ("D1", "D2", "D3"))
    assert entries[0]["spatial_mapping"]["D3"] == []
    assert read_mapping(yaml.safe_load(mapping_yaml([record_of_row(record)], ("D1", "D2", "D3")))).entries[
        0
    ].spatial_mapping[2] == (
        "D3",
        (),
    )


def test_loops_of_size_one_are_left_out(record):
    """A layer without loops has an empty ordering, which is complete."""
    record["loop_order"] = [["B", 1]]
    assert mapping_entries([record_of_row(record)])[0]["temporal_ordering"] == []


def test_names_that_yaml_would_change_survive(record):
    """Layer names that look like numbers, booleans or YAML syntax read back as they are."""
    for name in ("yes", "12", "a: b", "- x", "täil", "#1", "default"):
        record["layer"]["name"], record["layer_names"] = name, [name]
        names = [entry["name"] for entry in yaml.safe_load(mapping_yaml([record_of_row(record)]))]
        assert names == list(dict.fromkeys([name, "default"]))


def test_two_layers_of_one_name_with_different_mappings_are_refused(record):
    """A mapping file cannot tell them apart; equal ones are no problem."""
    other = copy.deepcopy(record)
    assert len(mapping_entries([record_of_row(record), record_of_row(other)])) == 2
    other["loop_order"].reverse()
    with pytest.raises(InputError, match="/conv1/Conv"):
        mapping_entries([record_of_row(record), record_of_row(other)])
