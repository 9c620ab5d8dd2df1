"""Keys for control rules in hardware files: values that are read, and values that are refused with their line."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from tilewright.base.errors import InputError
from tilewright.hardware.source import parse_accelerator

EXAMPLE = Path(__file__).parents[3] / "docs/examples/accelerator.yaml"


def document(array: dict[str, Any], **memories: dict[str, Any]) -> dict[str, Any]:
    """The data of the example with further keys of the array and of memories."""
    data: dict[str, Any] = yaml.safe_load(EXAMPLE.read_text())
    data["operational_array"] |= array
    for name, keys in memories.items():
        data["memories"][name] |= keys
    return data


def test_keys_are_read() -> None:
    """A file without the keys has no rules; an empty list of dimensions is a rule."""
    rules = {"buffer": {"tile_dimensions": []}, "dram": {"loop_order": ["C", "K"]}}
    core = parse_accelerator(document({"unrolled_dimensions": {"D2": ["C"]}}, **rules)).cores[0]
    assert core.operational_array.unrolled_dimensions == (("D2", ("C",)),)
    assert [memory.tile_dimensions for memory in core.memories] == [None, (), None]
    assert [memory.loop_order for memory in core.memories] == [(), (), ("C", "K")]
    bare = parse_accelerator(document({})).cores[0]
    assert bare.operational_array.unrolled_dimensions == ()
    assert {(memory.tile_dimensions, memory.loop_order) for memory in bare.memories} == {(None, ())}


@pytest.mark.parametrize(
    ("array", "memory", "parts"),
    [
        ({"unrolled_dimensions": {"D3": ["K"]}}, {}, ["unrolled_dimensions.D3: no such array dimension", "D1, D2"]),
        ({"unrolled_dimensions": {"D1": ["K", "K"]}}, {}, ["unrolled_dimensions.D1[1]: is listed twice"]),
        ({"unrolled_dimensions": {"D1": "K"}}, {}, ["operational_array.unrolled_dimensions.D1", "'K'"]),
        ({"unrolled_dimensions": {}}, {}, ["unrolled_dimensions: has no effect"]),
        ({"unroled_dimensions": {"D1": ["K"]}}, {}, ["did you mean 'unrolled_dimensions'?"]),
        ({}, {"tile_dimensions": ["K", 3]}, ["dram.tile_dimensions[1]", "3"]),
        ({}, {"tile_dimensions": ["K", "C", "K"]}, ["dram.tile_dimensions[2]: is listed twice"]),
        ({}, {"tile_dimension": ["K"]}, ["did you mean 'tile_dimensions'?"]),
        ({}, {"loop_order": ["K"]}, ["dram.loop_order: too few items", "at least 2 items"]),
        ({}, {"loop_order": ["K", "K"]}, ["dram.loop_order[1]: is listed twice"]),
        ({}, {"loop_order": {"K": 1}}, ["dram.loop_order"]),
    ],
)
def test_wrong_values_are_told_with_their_line(
    array: dict[str, Any], memory: dict[str, Any], parts: list[str], tmp_path: Path
) -> None:
    """Each problem has the line of its key in the file."""
    file = tmp_path / "core.yaml"
    file.write_text(yaml.safe_dump(document(array, dram=memory), sort_keys=False))
    with pytest.raises(InputError) as refused:
        parse_accelerator(file)
    said = str(refused.value)
    assert all(part in said for part in parts), said
    lines = file.read_text().splitlines()
    key = next(iter({**array, **memory}))
    line = next(number for number, text in enumerate(lines, 1) if key in text)
    assert any(f"core.yaml:{line + more} " in said for more in range(5)), said


def test_unusual_names_are_noted() -> None:
    """A rule for a loop dimension that layers usually do not have gets a notice with a similar name."""
    notices: list[str] = []
    parse_accelerator(document({}, dram={"tile_dimensions": ["K", "Ox"]}), notices)
    assert any("layers usually have no loop dimension Ox (did you mean 'OX'?)" in one for one in notices), notices


def test_at_most_four_memories_have_an_order() -> None:
    """The kernels have room for four loop orders."""
    data = document({})
    middle = data["memories"].pop("buffer")
    top = data["memories"].pop("dram")
    for number in range(4):
        data["memories"][f"b{number}"] = middle | {"loop_order": ["K", "C"]}
    data["memories"]["dram"] = top | {"loop_order": ["K", "C"]}
    with pytest.raises(InputError) as refused:
        parse_accelerator(data)
    assert "memories.dram.loop_order: at most 4 memories can have a loop order" in str(refused.value)


def test_one_of_several_cores_is_refused(tmp_path: Path) -> None:
    """A system refuses a core file with control rules, and the message names each key."""
    rules = {"dram": {"loop_order": ["C", "K"], "tile_dimensions": ["C", "K"]}}
    data = document({"unrolled_dimensions": {"D2": ["C"]}}, **rules)
    (tmp_path / "core.yaml").write_text(yaml.safe_dump(data))
    system = {"name": "two", "cores": {0: "core.yaml", 1: "core.yaml"}, "core_connectivity": [{"cores": [0, 1]}]}
    (tmp_path / "system.yaml").write_text(yaml.safe_dump(system))
    with pytest.raises(InputError) as refused:
        parse_accelerator(tmp_path / "system.yaml")
    for key in ("unrolled_dimensions", "tile_dimensions", "loop_order"):
        assert f"{key}: only runs on a single core obey rules of the control" in str(refused.value)
