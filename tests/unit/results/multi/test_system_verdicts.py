"""Verdicts of verbs and pages on several cores, compared with brute force; `benchmarks/system_verdicts.py`
tries more.
"""

import pytest

from tests.members import WHOLE_FAMILIES
from tests.plain.system_verdicts import try_system_verdicts


@pytest.mark.parametrize("seed", [8, 24, 55] if WHOLE_FAMILIES else [55])
def test_no_verdict_is_false(seed: int) -> None:
    """No verdict is false: on runs with free or fixed cores, on plans of `fuse`, or in advice."""
    tally = try_system_verdicts(seed)
    assert tally.wrong == []
    assert tally.counts["runs"] == 1
