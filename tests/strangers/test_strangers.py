"""A mistake in a file changes what it means, is refused, or is told: it is never dropped in silence."""

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
    """Files of hardware, mappings, workloads, language models, configurations and spaces, each some times."""
    found = list(outcomes(COUNT, SEED))
    assert [one for one in found if one.is_wrong] == []
    counts = Counter(one.outcome for one in found)
    assert counts[TOLD] > members(10, 4), "mistakes that are told are among them"


@pytest.mark.slow
def test_verbs_say_it() -> None:
    """Files of several cores, networks in ONNX, points and the others, given to each of the verbs that read them."""
    found = list(outcomes_of_calls(CALLS, SEED))
    assert [one for one in found if one.is_wrong] == []
    assert {one.outcome for one in found} >= {TOLD, REFUSED, CHANGED}


def test_each_mistake_is_one() -> None:
    """The same for the same seed, and another document than the one that it is made in."""
    for file in list(shipped())[::5]:
        made = [mistake(file.data, seed) for seed in range(2)]
        assert made == [mistake(file.data, seed) for seed in range(2)]
        assert all(one.text != yaml.safe_dump(file.data, sort_keys=False) for one in made)
