"""A mistake in a shipped file changes what it means, is refused, or is told: it is never dropped in silence."""

from collections import Counter

import yaml

from tests.strangers.mistakes import mistake
from tests.strangers.readings import shipped
from tests.strangers.run import SILENT, TOLD, is_named, outcomes

COUNT, SEED = 180, 7


def test_nothing_is_dropped_in_silence() -> None:
    """Files of hardware, mappings, workloads, language models, configurations and spaces, each some times."""
    found = list(outcomes(COUNT, SEED))
    assert [one for one in found if one.outcome == SILENT] == []
    assert [one for one in found if not is_named(one)] == []
    counts = Counter(one.outcome for one in found)
    assert counts[TOLD] > 10, "mistakes that are told are among them"


def test_each_mistake_is_one() -> None:
    """The same for the same seed, and another document than the one that it is made in."""
    for file in list(shipped())[::5]:
        made = [mistake(file.data, seed) for seed in range(2)]
        assert made == [mistake(file.data, seed) for seed in range(2)]
        assert all(one.text != yaml.safe_dump(file.data, sort_keys=False) for one in made)
