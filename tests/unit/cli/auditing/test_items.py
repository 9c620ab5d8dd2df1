"""Results that an audit draws, values that it calls different, and shares as text."""

import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from tilewright.base.errors import InputError
from tilewright.cli.auditing.items import LAYER, AuditItem, differences, drawn, read_share, share_text

ROOT = Path("results")
ITEMS = [AuditItem(ROOT / f"run{number % 7}", LAYER, f"conv{number}") for number in range(300)]


def test_the_draw_is_a_matter_of_the_seed_alone() -> None:
    """A seed draws the same results in order, in any place of the folder; another seed draws others."""
    first = drawn(ITEMS, Fraction(1, 10), 7, ROOT)
    assert first == drawn(ITEMS, Fraction(1, 10), 7, ROOT)
    assert first == sorted(first, key=ITEMS.index)
    assert first != drawn(ITEMS, Fraction(1, 10), 8, ROOT)
    elsewhere = [AuditItem(Path("copy") / item.folder.name, item.kind, item.name) for item in ITEMS]
    again = drawn(elsewhere, Fraction(1, 10), 7, Path("copy"))
    assert [item.name for item in again] == [item.name for item in first]


@pytest.mark.parametrize(
    ("share", "count"), [("1%", 3), ("0.01", 3), ("100%", 300), ("0.0001%", 1), ("50 %", 150), ("0.5%", 2)]
)
def test_how_many_are_drawn(share: str, count: int) -> None:
    """The number of drawn results is the share to the nearest whole number, and at least one."""
    assert len(drawn(ITEMS, read_share(share), 0, ROOT)) == count
    assert drawn([], read_share(share), 0, ROOT) == []


def test_a_larger_share_draws_the_same_and_more() -> None:
    """A larger share draws the results of a smaller one and further ones."""
    some, more = (drawn(ITEMS, Fraction(share, 100), 3, ROOT) for share in (5, 20))
    assert {item.name for item in some} < {item.name for item in more}


def test_every_result_is_drawn_by_some_seed() -> None:
    """Each result is drawn by some seed, and none much more often than others."""
    times = dict.fromkeys((item.name for item in ITEMS), 0)
    for seed in range(200):
        for item in drawn(ITEMS, Fraction(1, 10), seed, ROOT):
            times[item.name] += 1
    assert 0 < min(times.values()) <= max(times.values()) < 60


@pytest.mark.parametrize("text", ["0", "0%", "-1%", "101%", "1.5", "much", "", "1/0", "nan", "inf"])
def test_what_is_no_share(text: str) -> None:
    """A wrong share is refused with the allowed values."""
    with pytest.raises(
        InputError,
        match=r"share: not a valid share of the results, got .* \(allowed: a share above 0 % and up to 100 %",
    ):
        read_share(text)


def test_shares_as_text_and_as_numbers() -> None:
    """A share is given in percent or as a fraction, and is printed in percent."""
    assert read_share("1%") == read_share("0.01") == read_share(0.01) == Fraction(1, 100)
    assert [share_text(read_share(text)) for text in ("1%", "0.5%", "100%", "1")] == ["1 %", "0.5 %", "100 %", "100 %"]


@pytest.mark.parametrize(
    ("stored", "again", "columns"),
    [
        ({"a": 1.0, "b": [1, {"c": "x"}]}, {"a": 1.0, "b": [1, {"c": "x"}]}, []),
        ({"a": 0.1 + 0.2}, {"a": 0.3}, ["a"]),
        ({"a": 0.0}, {"a": -0.0}, ["a"]),
        ({"a": math.nan}, {"a": math.nan}, []),
        ({"a": 1}, {"a": 1.0}, []),
        ({"a": 1}, {"a": True}, ["a"]),
        ({"a": None}, {"a": 0}, ["a"]),
        ({"a": {"b": [1, 2]}}, {"a": {"b": [1, 3]}}, ["a.b[1]"]),
        ({"a": [1]}, {"a": [1, 2]}, ["a"]),
        ({"a": 1}, {"b": 1}, ["a", "b"]),
        ({"a": 10**400}, {"a": 1.0}, ["a"]),
    ],
)
def test_values_are_compared_bit_by_bit(stored: Any, again: Any, columns: list[str]) -> None:
    """Each value with other bits is reported with its path, and no other value."""
    assert [one.column for one in differences(stored, again)] == columns


def test_a_difference_has_all_digits_of_both_values() -> None:
    """A difference is printed with all digits of both values."""
    (told,) = differences({"energy_pj": 0.1 + 0.2}, {"energy_pj": 0.3})
    assert str(told) == "energy_pj: stored 0.30000000000000004, made again 0.3"
    (told,) = differences({}, {"energy_pj": 0.3})
    assert str(told) == "energy_pj: stored nothing, made again 0.3"
