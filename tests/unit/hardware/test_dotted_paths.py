"""Dotted paths in hardware files: the place a path leads to, and files with other values there."""

import copy
from typing import Any

import pytest
from tilewright.base.errors import KeyPath, Problem
from tilewright.base.yamlfile import parse_yaml
from tilewright.hardware.dotted_paths import key_path
from tilewright.hardware.text_edits import changed_text, with_values

DATA = {
    "name": "x",
    "array": {"sizes": [4, 8]},
    "memories": {"sram": {"size": 8, "ports": [{"name": "r", "bits": 1}, {"name": "w", "bits": 2}]}},
    "cores": {0: "a.yaml", 1: "b.yaml"},
}


@pytest.mark.parametrize(
    ("path", "keys"),
    [
        ("name", ("name",)),
        ("array.sizes.1", ("array", "sizes", 1)),
        ("memories.sram.ports.w.bits", ("memories", "sram", "ports", 1, "bits")),
        ("memories.sram.ports.0.bits", ("memories", "sram", "ports", 0, "bits")),
        ("memories.sram.ports.w", ("memories", "sram", "ports", 1)),
        ("memories.rf", ("memories", "rf")),
        ("cores.1", ("cores", 1)),
    ],
)
def test_where_a_path_leads(path: str, keys: tuple[str | int, ...]) -> None:
    """A path names list items by name or number, takes numbers as keys, and may end with a new key."""
    assert key_path(DATA, path) == keys


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("memory.sram.size", Problem("the base file has no such key", value="memory", nearest="memories")),
        ("array.sizes.2", Problem("the base file has no such key", value="2", allowed="0, 1")),
        ("array.sizes.x", Problem("the base file has no such key", value="x", allowed="0, 1")),
        ("memories.sram.ports.q.bits", Problem("the base file has no such key", value="q", allowed="r, w")),
        ("name.first", Problem("is not a table in the base file, so it cannot have keys", value="first")),
        ("name.first.of", Problem("the base file has no such key", value="first")),
    ],
)
def test_where_no_path_leads(path: str, told: Problem) -> None:
    """A path that leads nowhere is a problem with the nearest name or all allowed names."""
    assert key_path(DATA, path) == told


def test_only_what_is_on_the_way_is_copied() -> None:
    """The changed data are a copy; parts without a change are shared with the original."""
    before = copy.deepcopy(DATA)
    found = with_values(DATA, [(("array", "sizes", 0), 2), (("array", "sizes", 1), 3), (("memories", "rf"), {})])
    assert before == DATA
    assert found == DATA | {"array": {"sizes": [2, 3]}, "memories": DATA["memories"] | {"rf": {}}}
    assert found["memories"]["sram"] is DATA["memories"]["sram"]
    assert found["cores"] is DATA["cores"]


TEXT = """# an accelerator
memories:
  sram: # for activations
    size: 64 KiB
    "r_cost": 1.5   # pJ
    ports:
      - { name: r, bandwidth_min: 8, bandwidth_max: 64 } # to the array
"""
SIZE: KeyPath = ("memories", "sram", "size")
WIDTH: KeyPath = ("memories", "sram", "ports", 0, "bandwidth_max")


@pytest.mark.parametrize(
    ("changes", "edits"),
    [
        ([(SIZE, "128 KiB")], [("64 KiB", "128 KiB")]),
        ([(("memories", "sram", "r_cost"), 0.75)], [("1.5", "0.75")]),
        ([(WIDTH, 128)], [("bandwidth_max: 64", "bandwidth_max: 128")]),
        (
            [(WIDTH, 4), (("memories", "sram", "ports", 0, "bandwidth_min"), 4)],
            [("bandwidth_max: 64", "bandwidth_max: 4"), ("bandwidth_min: 8", "bandwidth_min: 4")],
        ),
    ],
)
def test_nothing_else_changes(changes: list[tuple[KeyPath, Any]], edits: list[tuple[str, str]]) -> None:
    """A change of values keeps the comments, quotes, order and units of the text."""
    expected = TEXT
    for before, after in edits:
        expected = expected.replace(before, after)
    assert changed_text(TEXT, changes) == expected


def test_a_value_that_stands_in_two_places() -> None:
    """A value behind an alias or a merge key changes at its path only."""
    text = "memories:\n  a: &one {size: 8, r_cost: 1}\n  b: *one\n  c: {<<: *one, r_cost: 2}\n"
    for path in (("memories", "b", "size"), ("memories", "a", "size"), ("memories", "c", "size")):
        changed = changed_text(text, [(path, 16)])
        assert parse_yaml(changed).data == with_values(parse_yaml(text).data, [(path, 16)])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "- name: a # one\n  spatial_mapping:\n    D1: ['K, 4'] # two\n    D2:\n      - C, 3\n  # three\n  b: 1\n",
            "- name: a # one\n  spatial_mapping:\n    {D1: ['C, 12']}\n  # three\n  b: 1\n",
        ),
        (
            "- { name: a, spatial_mapping: { D1: ['K, 4'] }, b: 1 } # one\n",
            "- { name: a, spatial_mapping: {D1: ['C, 12']}, b: 1 } # one\n",
        ),
    ],
)
def test_tables_are_replaced(text: str, expected: str) -> None:
    """Replaced tables, on one line or on several, keep the comments around them."""
    assert changed_text(text, [((0, "spatial_mapping"), {"D1": ["C, 12"]})]) == expected
