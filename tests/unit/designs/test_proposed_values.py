"""Notices on values that `explore` proposes for an axis."""

from dataclasses import replace

import pytest
from tilewright.designs.axis_ends import AxisEnd
from tilewright.designs.decision import decision_of
from tilewright.designs.decision_trials import doubtful_statements
from tilewright.designs.proposed_values import new_notices, proposal_sentences, with_proposed_values
from tilewright.designs.space_reader import read_space

from tests.unit.designs.test_slow_memories import answered, base, keys


@pytest.mark.parametrize(("clocks", "is_told"), [(["400 MHz", "800 MHz"], True), (["100 MHz", "200 MHz"], False)])
def test_a_proposed_value_that_needs_several_parts_says_so(clocks: list[str], is_told: bool) -> None:
    """A proposed clock that needs several DRAM parts gets a notice.
    The DRAM moves 128 bits per cycle: 51.2 GB/s at 3200 MHz and 25.6 GB/s at 1600 MHz, and a part has 34 GB/s.
    """
    changes = {"axes": {"clock": {"path": "clock_frequency", "values": clocks}}, "laws": {}}
    hardware = base(clocks[0])
    hardware["memories"]["memory"] |= {"cost": {"from": "dram", "type": "lpddr4x"}}
    changes["accelerator"] = hardware
    answer = with_proposed_values(read_space(keys(**changes)), answered(**changes))
    assert any("Values to try next" in one for one in answer.axis_notes)
    told = [one for one in answer.notes if "proposed value" in one]
    assert len(told) == is_told
    start = "Axis clock, proposed value 3200 MHz instead of the value of "
    assert all(one.startswith(start) for one in told)
    assert all("one LPDDR4X gives 34.1328 GB/s" in one for one in told)
    decision = decision_of(answer, "latency")
    axes = {end.axis for end in decision.ends}
    found = [one.text for one in doubtful_statements(decision, read_space(keys(**changes)))]
    assert found == (told if "clock" in axes else [])
    assert axes == {"clock"}
    assert [*doubtful_statements(replace(decision, ends=()), read_space(keys(**changes)))] == []


def test_notices_on_a_proposed_value_name_their_designs() -> None:
    """Notices on one proposed value that differ between designs name the designs; equal notices are one sentence."""
    changes = {"axes": {"clock": {"path": "clock_frequency", "values": ["400 MHz", "800 MHz"]}}, "laws": {}}
    changes["axes"]["bits"] = {"path": "memories.memory.size", "values": ["1 MiB", "2 MiB"]}
    hardware = base("400 MHz")
    hardware["memories"]["memory"] |= {"cost": {"from": "sram", "node_nm": 28, "cells": "lstp"}, "size": "1 MiB"}
    changes["accelerator"] = hardware
    space = read_space(keys(**changes))
    indexes = [space.index_of((1, place)) for place in (0, 1)]
    end = AxisEnd("clock", "800 MHz", True, "latency_cycles", "400 MHz", 0.5, ("1600 MHz",))
    told = [*proposal_sentences(space, [(end, index) for index in (*indexes, indexes[0])])]
    names = [space.design_name(index) for index in indexes]
    slow = [one for one in told if "an access takes" in one]
    assert [name in one for one in slow for name in names] == [True, False, False, True]
    assert all("proposed value 1600 MHz instead of the value of " in one for one in slow)


def test_a_changed_bandwidth_keeps_its_unit_and_is_compared_with_the_part() -> None:
    """A changed bandwidth keeps its unit and is compared with the part: 64 GB/s need several parts, 17 GB/s do not."""
    hardware = base("400 MHz")
    hardware["memories"]["memory"] |= {"cost": {"from": "dram", "type": "lpddr4x"}}
    port = hardware["memories"]["memory"]["ports"][0]
    for key in ("bandwidth_min", "bandwidth_max"):
        port[key] = "17 GB/s"
    path = ("memories", "memory", "ports", 0, "bandwidth_max")
    assert new_notices(hardware, [(path, "34 GB/s")]) == []
    (told,) = [one for one in new_notices(hardware, [(path, "64 GB/s")]) if "one LPDDR4X gives" in one]
    assert "so the memory needs 2 of them" in told
    assert any("a clock of 0.7 MHz" in one for one in new_notices(base("400 MHz"), [(("clock_frequency",), 0.7)]))
