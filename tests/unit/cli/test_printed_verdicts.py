"""Printed limits, gains and gaps, read back and compared with the plain model.
`benchmarks/printed_verdicts.py` tries more.
"""

from pathlib import Path

import pytest
from tilewright.results.terminal_tables import render, text_table

from tests.plain.printed_text import is_change, is_share, table
from tests.plain.printed_tokens import judge_tokens
from tests.plain.printed_verdicts import try_printed_verdicts

pytestmark = pytest.mark.usefixtures("unpainted")

LIMITS = ("moving data 62.5%: together: m1 rw and m2 rw -12.5%", "averyverylongwordthatgoeson", "array 50.0%")


@pytest.mark.parametrize("seed", [1, 3, 7, 13, 18, 22, 23, 28, 39])
def test_no_printed_verdict_is_false(seed: int) -> None:
    """No printed statement is false for networks of one to three layers.
    Seeds 13 and 18 have two equal ports, seed 39 has equal kinds of cycles, and no single change helps seeds 7 and 22.
    """
    tally = try_printed_verdicts(seed)
    assert tally.wrong == []
    assert tally.counts["statements"] > 50


def test_no_printed_step_is_bound_by_something_else(tmp_path: Path) -> None:
    """No printed limit of a step is false for a small language model."""
    tally = judge_tokens(3, tmp_path / "tokens")
    assert tally.wrong == []
    assert tally.counts["steps of tokens"] > 0


@pytest.mark.parametrize("width", [30, 34, 40, 120])
def test_folded_cells_are_read_as_one(width: int) -> None:
    """Folded and shortened cells of a table are read as one text."""
    made = text_table("Layers", ("layer", "limited by"), ("share",))
    for name, limit in zip(("one", "two", "three"), LIMITS, strict=True):
        made.add_row(name, limit, "12.5%")
    rows = table(f"{render(made, width)}  a legend\n", "Layers")
    assert [row["limited by"] for row in rows] == list(LIMITS)
    assert [(row["layer"], row["share"]) for row in rows] == [(name, "12.5%") for name in ("one", "two", "three")]


def test_numbers_are_read_with_their_digits() -> None:
    """Rounded shares and gains are accepted, and others are not."""
    assert is_share("12.5%", 0.12549)
    assert not is_share("12.5%", 0.1262)
    assert is_share("<0.1%", 0.0004)
    assert not is_share("<0.1%", 0.0)
    assert is_change("-3.2%", 0.0319)
    assert is_change("-<0.1%", 0.0002)
    assert not is_change("+<0.1%", 0.0002)
    assert not is_change("0", 0.01)
    assert not is_change("-3.2%", None)
