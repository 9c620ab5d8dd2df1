"""Tables of columns: values, groups, columns that do not apply, and duplicate names."""

from typing import Any

import pytest
from tilewright.base.errors import InputError
from tilewright.results.columns import ABSENT, Column, Columns, Table, attribute, frame_of, row_of
from tilewright.results.multi import layer_places, use_tables
from tilewright.results.multi.use import LinkUse
from tilewright.results.tables import EACH_ONCE, LAYERS

LINKS: Table[Any] = (
    attribute("name", "Name."),
    Column("speed", "Bits a cycle; absent without a limit.", lambda link: link.width_bits_per_cycle or ABSENT),
    Columns("<share>_share", "Shares.", lambda link: {"busy_share": link.busy, "used_share": link.utilisation}),
)
WIDE = LinkUse("a", "bus", None, 10, 0.5, None)
NARROW = LinkUse("b", "bus", 8, 10, 0.5, 0.25)


def test_a_row_has_what_applies() -> None:
    """A row has None for unknown values, and leaves out columns that do not apply."""
    assert row_of(LINKS, WIDE) == {"name": "a", "busy_share": 0.5, "used_share": None}
    assert row_of(LINKS, NARROW) == {"name": "b", "speed": 8, "busy_share": 0.5, "used_share": 0.25}


def test_a_table_without_rows_has_its_columns() -> None:
    """A table without rows has its columns, except groups, whose names depend on the rows."""
    assert list(frame_of(LINKS, [])) == ["name", "speed"]
    assert list(frame_of(LINKS, [NARROW, WIDE])["name"]) == ["b", "a"]


def test_a_name_stands_once() -> None:
    """A duplicate name raises InputError, also between a column and a group."""
    with pytest.raises(InputError, match="is the name of two columns"):
        row_of((*LINKS, attribute("name", "Again.")), WIDE)
    with pytest.raises(InputError, match="busy_share"):
        row_of((*LINKS, Column("busy_share", "Again.", lambda link: 0)), WIDE)


@pytest.mark.parametrize(
    "table", [LAYERS, EACH_ONCE, layer_places.LAYERS, use_tables.CORES, use_tables.MEMORIES, use_tables.LINKS]
)
def test_columns_are_told_apart_and_explained(table: Table[Any]) -> None:
    """Each column has a unique name and a sentence."""
    keys = [key for one in table for key in (one.key if isinstance(one, Column) else one.keys).split(", ")]
    assert len(keys) == len(set(keys))
    assert all(one.sentence.endswith(".") for one in table)


def test_tables_of_memories_and_links_are_those_of_the_summary() -> None:
    """Tables of memories and links have the summary's rows.

    Ids of cores are text, and the cell of a missing limit is empty.
    """
    summary = {
        "memories": [{"name": "0,1: l2", "cores": [0, 1], "capacity_bits": 8, "peak_bits": 4, "peak_share": 0.5}],
        "links": [
            {"name": "0->1", "kind": "bus", "width_bits_per_cycle": None, "bits": 3, "busy": 0.1, "utilisation": None}
        ],
    }
    (memory,) = use_tables.memory_use_table(summary).to_dict("records")
    assert memory == {"name": "0,1: l2", "cores": "0 1", "capacity_bits": 8, "peak_bits": 4, "peak_share": 0.5}
    (link,) = use_tables.link_use_table(summary).to_dict("records")
    assert link == summary["links"][0]
