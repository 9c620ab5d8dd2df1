"""Steps from one choice of layers by way of the off-chip memory to another."""

import random

from hypothesis import given
from hypothesis import strategies as st
from tilewright.plans.detours import DetourSteps


@given(st.integers(0, 10**6), st.lists(st.integers(0, 100), min_size=1, max_size=12), st.data())
def test_a_step_changes_a_run_of_layers(seed: int, bits: list[int], data: st.DataObject) -> None:
    """All of them to the same way; places stay ascending and below the number of layers."""
    chosen = tuple(sorted(data.draw(st.sets(st.integers(0, len(bits) - 1)))))
    found = DetourSteps(bits).next(random.Random(seed), chosen)
    changed = sorted(set(chosen) ^ set(found))
    assert found == tuple(sorted(set(found)))
    assert set(found) <= set(range(len(bits)))
    assert changed, "the first layer of the run always changes"
    assert not set(changed) & set(found) or set(changed) <= set(found)
