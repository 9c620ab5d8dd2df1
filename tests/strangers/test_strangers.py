"""A mistake in a file changes its meaning, is refused, or is reported; it is never ignored silently."""

from collections import Counter

import pytest
import yaml

from tests.members import members
from tests.strangers.mistakes import mistake
from tests.strangers.outcomes import CHANGED, REFUSED, TOLD
from tests.strangers.readings import shipped
from tests.strangers.run import outcomes
from tests.strangers.verbs import outcomes_of_calls

COUNT, CALLS, SEED = members(120, 60), 22, 7


def test_nothing_is_dropped_in_silence() -> None:
    """No mistake is ignored in files of hardware, mappings, workloads, language models, configurations and spaces."""
    found = list(outcomes(COUNT, SEED))
    assert [one for one in found if one.is_wrong] == []
    counts = Counter(one.outcome for one in found)
    assert counts[TOLD] > members(10, 4), "mistakes that are told are among them"


@pytest.mark.slow
def test_verbs_say_it() -> None:
    """A mistake in the files or options of a verb is reported, is refused or changes the result.

    Cases include ONNX networks and systems of several cores.
    """
    found = list(outcomes_of_calls(CALLS, SEED))
    assert [one for one in found if one.is_wrong] == []
    assert {one.outcome for one in found} >= {TOLD, REFUSED, CHANGED}


def test_each_mistake_is_one() -> None:
    """Equal seeds give equal mistakes, and each mistake changes the document."""
    for file in list(shipped())[::5]:
        made = [mistake(file.data, seed) for seed in range(2)]
        assert made == [mistake(file.data, seed) for seed in range(2)]
        assert all(one.text != yaml.safe_dump(file.data, sort_keys=False) for one in made)
