"""Dotted paths in hardware files: what they lead to, and data with other values there."""

import copy

import pytest
from tilewright.errors import Problem
from tilewright.hardware.dotted_paths import key_path, with_values

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
    """Items of lists by name or number, keys that are numbers, a last key that is new."""
    assert key_path(DATA, path) == keys


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("memory.sram.size", Problem("the base has no such key", value="memory", nearest="memories")),
        ("array.sizes.2", Problem("the base has no such key", value="2", allowed="0, 1")),
        ("array.sizes.x", Problem("the base has no such key", value="x", allowed="0, 1")),
        ("memories.sram.ports.q.bits", Problem("the base has no such key", value="q", allowed="r, w")),
        ("name.first", Problem("not a table in the base, so nothing can be set in it", value="first")),
        ("name.first.of", Problem("the base has no such key", value="first")),
    ],
)
def test_where_no_path_leads(path: str, told: Problem) -> None:
    """With the nearest name, or all there are."""
    assert key_path(DATA, path) == told


def test_only_what_is_on_the_way_is_copied() -> None:
    """The data stay as they were, and share all else with the new ones."""
    before = copy.deepcopy(DATA)
    found = with_values(DATA, [(("array", "sizes", 0), 2), (("array", "sizes", 1), 3), (("memories", "rf"), {})])
    assert before == DATA
    assert found == DATA | {"array": {"sizes": [2, 3]}, "memories": DATA["memories"] | {"rf": {}}}
    assert found["memories"]["sram"] is DATA["memories"]["sram"]
    assert found["cores"] is DATA["cores"]
