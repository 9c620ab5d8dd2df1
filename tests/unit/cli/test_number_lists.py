"""Lists of whole numbers in options: all verbs read them alike and report all wrong values together."""

import pytest
from tilewright.base.errors import InputError
from tilewright.cli.number_lists import batches_of, contexts_of


def test_texts_and_lists() -> None:
    """Equal numbers count once, and k and M are powers of two."""
    assert batches_of("8, 2,8,1k") == batches_of([8, 1024, 2, 8]) == [2, 8, 1024]
    assert batches_of("1M") == [1 << 20]
    assert contexts_of("4k,16") == contexts_of([16, 4096]) == [16, 4096]
    assert contexts_of("1k:4k:3") == [1024, 2048, 4096]


def values_of(error: InputError) -> list[str]:
    """Return the values that a message names."""
    return [str(problem.value) for problem in error.problems]


def test_all_wrong_values_are_told() -> None:
    """Wrong values are reported as they were written, with the allowed values."""
    with pytest.raises(InputError, match=r"^batches: is not a batch, got '0' \(allowed: whole numbers") as caught:
        batches_of("0,2,many,1.5,-4,2M,")
    assert values_of(caught.value) == ["'0'", "'many'", "'1.5'", "'-4'", "'2M'", "''"]
    with pytest.raises(InputError) as caught:
        batches_of([0, 2, "x", True, 1.5])
    assert values_of(caught.value) == ["0", "'x'", "True", "1.5"]
    with pytest.raises(InputError, match="got none"):
        batches_of([])
    with pytest.raises(InputError, match="is not a context") as caught:
        contexts_of("x,8,0")
    assert values_of(caught.value) == ["'x'", "'0'"]
    with pytest.raises(InputError) as caught:
        contexts_of("x:8:99999999")
    assert values_of(caught.value) == ["'x'", "'99999999'"]
    with pytest.raises(InputError, match="first:last:how-many"):
        contexts_of("1:8")
