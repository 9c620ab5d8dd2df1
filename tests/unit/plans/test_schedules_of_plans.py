"""Schedules of random plans: the checker finds no fault, and the plain scheduler makes equal schedules."""

import pytest

from tests.members import members
from tests.unit.plans.schedule_attack import attack


@pytest.mark.parametrize("seed", range(members(2000, 24)))
def test_schedules_with_sums_multicast_and_forwarding_keep_every_rule(seed: int) -> None:
    """Schedules with trees, rings and sums on one core, with multicast, and with constants from other cores keep every
    rule.
    """
    assert attack(seed).wrong == []
