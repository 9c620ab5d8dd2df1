"""Schedules of random plans: no fault for the checker, and the same as those of the plain scheduler."""

import pytest

from tests.members import members
from tests.unit.plans.schedule_attack import attack


@pytest.mark.parametrize("seed", range(members(2000, 24)))
def test_schedules_with_sums_multicast_and_forwarding_keep_every_rule(seed: int) -> None:
    """Trees, rings and sums on one core; links with multicast; constants from other cores."""
    assert attack(seed).wrong == []
