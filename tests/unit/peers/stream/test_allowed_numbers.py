"""Texts with the allowed numbers of parts and sizes of tiles."""

from tilewright.mapping.spatial_generation import divisors
from tilewright.peers.stream.allowed_numbers import allowed_numbers


def test_the_nearest_numbers_follow_the_list() -> None:
    """The text has the next smaller and the next larger number, unless the list has only these numbers."""
    assert allowed_numbers(7, [1, 2, 4, 8, 16]) == "1, 2, 4, 8, 16; nearest 4 and 8"
    assert allowed_numbers(20, [1, 2, 4]) == "1, 2, 4; nearest 4"
    assert allowed_numbers(2, [1, 3]) == "1, 3"
    assert allowed_numbers(2, [1]) == "1"


def test_a_long_list_is_left_out() -> None:
    """A number with many divisors has a short text."""
    assert allowed_numbers(11, divisors(720)) == "30 numbers; nearest 10 and 12"
