"""Keys in the wrong table of a file: the message names the right table, for each key of each table."""

from collections.abc import Iterator
from typing import Any

import pytest
from tilewright.base.errors import InputError, Unused
from tilewright.base.unknown_keys import TOP, unknown_key
from tilewright.base.validation import tables_of
from tilewright.hardware.attributes import attributes
from tilewright.hardware.source import parse_accelerator
from tilewright.hardware.yaml_schema import hardware_file

from tests.unit.hardware.system_cases import core, memory

PLACES = {
    TOP: (),
    "`memories.NAME`": ("memories", "memory"),
    "`memories.NAME.ports[...]`": ("memories", "memory", "ports", 0),
    "`operational_array`": ("operational_array",),
}
OWNERS = {"core": TOP, "memory": "`memories.NAME`", "array": "`operational_array`"}


def misplaced() -> Iterator[tuple[str, str]]:
    """Yield pairs (table, key that only other tables have)."""
    tables = tables_of(hardware_file())
    for place in PLACES:
        others = dict.fromkeys(key for other, keys in tables.items() if other in PLACES for key in keys)
        yield from ((place, key) for key in others if key not in tables[place])


@pytest.mark.parametrize(("place", "key"), list(misplaced()))
def test_a_key_of_another_table_is_told_with_its_table(place: str, key: str) -> None:
    """Each key of the schema, in each table that lacks it, is reported with the table to which it belongs."""
    data: Any = core("small", memory=memory())
    table = data
    for step in PLACES[place]:
        table = table[step]
    table[key] = 1
    with pytest.raises(InputError) as error:
        parse_accelerator(data)
    (problem,) = (one for one in error.value.problems if one.path.endswith(key))
    owner = next(other for other, keys in tables_of(hardware_file()).items() if key in keys)
    assert problem.message.startswith(f"unknown key here: '{key}' belongs to {owner}")


def test_each_attribute_has_its_table() -> None:
    """Each attribute is a key of the table that its declaration names."""
    tables = tables_of(hardware_file())
    assert {one.key: OWNERS[one.of] for one in attributes() if one.key not in tables[OWNERS[one.of]]} == {}


@pytest.mark.parametrize(
    ("key", "known", "message", "nearest"),
    [
        ("clock_mhz", ["clock_frequency", "name"], "unknown key", "clock_frequency"),
        ("clock", ["clock_frequency", "name"], "unknown key", "clock_frequency"),
        ("clock_mhz", ["size"], "unknown key here: 'clock_frequency' belongs to the top", ""),
        ("clock_frequncy", ["size"], "unknown key here: 'clock_frequency' belongs to the top", ""),
        ("colour", ["size"], "unknown key", ""),
        ("sise", ["size"], "unknown key", "size"),
    ],
)
def test_misspelt_keys_and_keys_with_a_unit(key: str, known: list[str], message: str, nearest: str) -> None:
    """The message suggests the nearest key of the same table, unless a key of another table is nearer."""
    found = unknown_key(key, known, {"the top": ["clock_frequency", "memories"]})
    assert (found.message, found.nearest) == (message, nearest)
    assert bool(found.allowed) == (key == "colour")


def test_a_key_among_the_memories_is_told() -> None:
    """A key that stands in place of a memory is reported with the table to which it belongs."""
    data: Any = core("small", memory=memory())
    data["memories"]["clock_frequency"] = "1 GHz"
    with pytest.raises(
        InputError, match=r"must be a table of keys; the key 'clock_frequency' belongs to the top level"
    ):
        parse_accelerator(data)


def test_keys_that_are_read_without_effect_are_told() -> None:
    """Notices list keys without effect: a latency, the precision of a digital array, and dataflows of a single core."""
    data: Any = core("small", memory=memory() | {"latency": 5}) | {"dataflows": {"D1": ["K, 2"]}}
    data["operational_array"]["input_precision"] = [8, 8]
    notices: list[str] = []
    parse_accelerator(data, notices)
    unused = [one.problem.path for one in notices if isinstance(one, Unused)]
    assert unused == ["memories.memory.latency", "operational_array.input_precision", "dataflows"]
