"""Notices on values that `explore` proposes for an axis."""

import pytest
from tilewright.designs.proposed_values import with_proposed_values
from tilewright.designs.space_reader import read_space

from tests.unit.designs.test_slow_memories import answered, base, keys


@pytest.mark.parametrize(("clocks", "is_told"), [(["400 MHz", "800 MHz"], True), (["100 MHz", "200 MHz"], False)])
def test_a_proposed_value_that_needs_several_parts_says_so(clocks: list[str], is_told: bool) -> None:
    """A DRAM of 128 bits per cycle, with a part for 34 GB/s: 3200 MHz need 51.2 GB/s, and 1600 MHz need 25.6 GB/s."""
    changes = {"axes": {"clock": {"path": "clock_frequency", "values": clocks}}, "laws": {}}
    hardware = base(clocks[0])
    hardware["memories"]["memory"] |= {"cost": {"from": "dram", "type": "lpddr4x"}}
    changes["accelerator"] = hardware
    answer = with_proposed_values(read_space(keys(**changes)), answered(**changes))
    assert any("Values to try next" in one for one in answer.axis_notes)
    told = [one for one in answer.notes if "proposed value" in one]
    assert len(told) == is_told
    assert all(one.startswith("Axis clock, proposed value 3200 MHz: ") for one in told)
    assert all("one LPDDR4X gives 34.1328 GB/s" in one for one in told)
