"""Causes of failures: messages that count as equal."""

import pytest
from tilewright.base.errors import cause_of, count_of, some_of

SMALL = "with D1: K 32; D2: C 3: memory 'rf_128B' is too small for the tile of W: needs 8 bits, has 4"


@pytest.mark.parametrize(
    ("other", "alike"),
    [
        (
            "with D1: OX 7, K 2; D2: -: memory 'rf_128B' is too small for the tile of W: needs 16 bits, has 4",
            True,
        ),
        (
            "with no spatial unrolling: memory 'rf_128B' is too small for the tile of W: needs 1e+20 bits, has 4",
            True,
        ),
        ("with D1: K 32; D2: C 3: memory 'rf_256B' is too small for the tile of W: needs 8 bits, has 4", False),
        ("with D1: K 32; D2: C 3: memory 'rf_128B' is too small for the tile of I: needs 8 bits, has 4", False),
        (f"{SMALL}; {SMALL}", True),
        (f"{SMALL}; with D1: K 2: a port is narrower", False),
    ],
)
def test_numbers_and_spatial_mappings_tell_no_causes_apart(other: str, alike: bool) -> None:
    """Messages that differ only in numbers or spatial mappings have one cause; other memories or operands do not."""
    assert (cause_of([SMALL]) == cause_of([other])) is alike


def test_names_and_counts_in_short() -> None:
    """A list of names is shortened after four names, and counts have their noun in the right form."""
    assert some_of(["a", "b"]) == "a, b"
    assert some_of(list("abcdef")) == "a, b, c, d and 2 more"
    assert [count_of(number, "layer") for number in (1, 2, 1024)] == ["1 layer", "2 layers", "1,024 layers"]
