"""A part that saves exactly the least notable share of the time is named as the limit of a step."""

import pytest
from tilewright.tokens.bound import NOTABLE_GAIN, bound_text, saved_share, step_limit


@pytest.mark.parametrize("cycles", [1, 3, 7, 11, 12345])
def test_a_tenth_of_the_time_is_enough(cycles: int) -> None:
    """One port that saves a tenth of the time is the limit, and so are two ports together.

    The share is not computed as 1 - 9 / 10, which would be less than a tenth.
    """
    latency = 10.0 * cycles
    tenth = saved_share(latency, 9.0 * cycles)
    assert tenth == NOTABLE_GAIN
    kinds = {"array": latency, "spatial stall": 0.0, "moving data": 0.0}
    alone = step_limit(latency, {"m r": tenth, "m w": 0.0}, lambda _: tenth, kinds)
    assert bound_text(alone.row()) == "m r -10.0%"
    both = step_limit(latency, {"m r": 0.0, "m w": 0.0}, lambda _: tenth, kinds)
    assert bound_text(both.row()) == "m r and m w together -10.0%"
