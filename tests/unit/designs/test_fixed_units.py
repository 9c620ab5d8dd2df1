"""Units of the array that a mapping file can use, as reported for a space with a varying array."""

from pathlib import Path
from typing import Any

import pytest
from tilewright.designs.explore import assumptions
from tilewright.designs.fixed_units import fixed_unit_lines

from tests.unit.designs.space_cases import space_of

ROWS = {"rows": {"path": "operational_array.sizes.0", "values": [4, 64]}}
ENTRIES = """
- {name: default, spatial_mapping: {D1: ['OY, 3', 'K, 4'], D2: ['C, 5']}}
- {name: Gemm, spatial_mapping: {D1: ['K, 7']}}
- {name: MatMul}
"""


def lines_of(folder: Path, text: str, **keys: Any) -> tuple[str, ...]:
    """Return the lines about a space with a mapping file."""
    (folder / "map.yaml").write_text(text)
    return fixed_unit_lines(space_of(mapping=str(folder / "map.yaml"), **({"axes": ROWS} | keys)))


def test_the_most_units_of_any_entry_are_told(tmp_path: Path) -> None:
    """A line for each array dimension names the most units that an entry uses: the product of its factors there.

    The line is also an assumption of the answer.
    """
    (line,) = lines_of(tmp_path, ENTRIES)
    assert "Layers with these loops use at most 12 units along D1, 5 units along D2 in every design." in line
    assert line.endswith(", but their registers count when the memory for data between layers is chosen.")
    (line,) = lines_of(tmp_path, ENTRIES, options={"exploit_data_locality": False})
    assert line.endswith("never compute for these layers.")
    assert line in assumptions(
        space_of(mapping=str(tmp_path / "map.yaml"), axes=ROWS, options={"exploit_data_locality": False})
    )


LAW = {"operational_array.sizes.0": "2 * half"}
COST = {"k": {"path": "memories.dram.r_cost", "values": [1, 9]}}


@pytest.mark.parametrize(
    ("text", "keys", "count"),
    [
        (ENTRIES, {"axes": {"half": {"values": [2, 4]}}, "laws": LAW}, 1),
        (ENTRIES, {"axes": COST}, 0),
        ("- {name: default}\n", {}, 0),
    ],
    ids=["a law sets the array", "the array is the same", "nothing is fixed"],
)
def test_only_of_an_array_that_varies_and_loops_that_are_fixed(
    tmp_path: Path, text: str, keys: dict[str, Any], count: int
) -> None:
    """The line appears only if the array varies and the mapping file fixes loops."""
    assert len(lines_of(tmp_path, text, **keys)) == count
    assert fixed_unit_lines(space_of(axes=ROWS)) == ()
