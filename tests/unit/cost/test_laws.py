"""Laws of physics and of consistent accounting under `corrected`; `benchmarks/laws.py` tries many more problems."""

import random
from dataclasses import replace

import pytest
from tilewright.base.profile import SWITCHES as PACKAGE_SWITCHES

from tests.members import members
from tests.plain.laws import (
    BUSY_PORTS,
    LAWS,
    MORE_IS_NOT_WORSE,
    OF_MAPPINGS,
    ORDER_OF_ENTRIES,
    RESTS_ON,
    TRAFFIC,
    UTILIZATION,
    Tally,
    random_mapping,
    try_laws,
)
from tests.plain.problems import random_problem
from tests.plain.switches import SWITCHES

CASES = members(500, 200)
PARTS = 10
NOT_OF_A_MAPPING = {
    "independent_spatial_candidates",
    "onnx_height_is_y",
    "trace_onnx_constants",
    "model_every_operator",
    "live_tensor_capacity",
    "effective_top_memory_option",
    "complete_in_memory_model",
    "in_memory_active_parts",
}


@pytest.mark.parametrize("part", range(PARTS))
def test_laws_hold(part: int) -> None:
    """Each law holds under `corrected`, also after a switch is turned off on which the law does not depend."""
    tally = Tally()
    for seed in range(part * CASES // PARTS, (part + 1) * CASES // PARTS):
        tally.add(try_laws(seed))
    assert not tally.wrong, "\n".join(tally.wrong[:10])
    for law in LAWS:
        assert tally.counts[f"corrected: {law}"] > CASES // PARTS // 4, law
    for law in (ORDER_OF_ENTRIES, BUSY_PORTS, TRAFFIC, UTILIZATION):
        assert tally.counts[f"one switch off: {law}"] > CASES // PARTS // 10, law


def test_switches_are_those_of_the_package() -> None:
    """The tests know every switch of the package that acts on a mapping."""
    assert set(SWITCHES) | NOT_OF_A_MAPPING == set(PACKAGE_SWITCHES)
    assert set(RESTS_ON) == set(LAWS) == {*OF_MAPPINGS, MORE_IS_NOT_WORSE}


@pytest.mark.parametrize(
    ("law", "switch", "first_seed"),
    [
        (BUSY_PORTS, "every_transfer_takes_port_time", 0),
        (BUSY_PORTS, "serial_half_shared_loading", 0),
        (TRAFFIC, "whole_tiles", 0),
        (TRAFFIC, "room_for_final_outputs", 0),
        (UTILIZATION, "whole_tiles", 1400),
        (UTILIZATION, "room_for_final_outputs", 0),
        (ORDER_OF_ENTRIES, "consistent_window_union", 0),
        (ORDER_OF_ENTRIES, "exact_window_sizes", 0),
    ],
)
def test_laws_rest_on_switches(law: str, switch: str, first_seed: int) -> None:
    """Each law is broken in some case if a switch on which it depends is off."""
    assert switch in RESTS_ON[law]
    for seed in range(first_seed, first_seed + 800):
        rng = random.Random(seed)
        problem = replace(random_problem(rng.getrandbits(48), (1, 7)), model="corrected")
        mapped = random_mapping(rng, problem, f"corrected-{switch}")
        if mapped is not None and any(OF_MAPPINGS[law](rng, mapped)):
            return
    pytest.fail("no case breaks the law")
