"""Hardware files with other values: what people wrote stays, and the data are those that were asked for."""

from typing import Any

import pytest
from tilewright.errors import KeyPath
from tilewright.hardware.changed_text import changed_text
from tilewright.hardware.dotted_paths import with_values
from tilewright.yamlfile import parse_yaml

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
    """Comments, quotes, order and units stay."""
    expected = TEXT
    for before, after in edits:
        expected = expected.replace(before, after)
    assert changed_text(TEXT, changes) == expected


def test_a_value_that_stands_in_two_places() -> None:
    """Through an alias or a merge key an edit would change both: the file is written anew."""
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
    """On one line or over several; comments around them stay."""
    assert changed_text(text, [((0, "spatial_mapping"), {"D1": ["C, 12"]})]) == expected
