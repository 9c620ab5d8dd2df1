"""What verbs and pages say of several cores, held against brute force; `benchmarks/system_verdicts.py` tries more."""

import pytest

from tests.members import WHOLE_FAMILIES
from tests.plain.system_verdicts import try_system_verdicts


@pytest.mark.parametrize("seed", [8, 24, 55] if WHOLE_FAMILIES else [55])
def test_no_verdict_is_false(seed: int) -> None:
    """Free and fixed cores, plans of `fuse`, advice."""
    tally = try_system_verdicts(seed)
    assert tally.wrong == []
    assert tally.counts["runs"] == 1
