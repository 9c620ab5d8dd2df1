"""Verdicts: they name the largest item, its ties and the next item, or the smallest set of items that helps."""

import itertools
import random

import pytest
from tilewright.results.verdict import Rival, Verdict, smallest_set

from tests.plain.verdicts import try_verdicts


def test_the_winner_has_its_number_and_its_rivals() -> None:
    """A verdict gives its winner, the winner's value and the rivals, in words and as data."""
    found = Verdict.of("cycles", "cycles", 100, {"a": 30, "b": 50, "c": 20})
    assert found.winner == Rival("b", 50)
    assert found.text == "b 50.0%"
    assert found.full_text == "b 50.0% (next: a 30.0%)"
    told = found.as_object()
    assert (told["winner"], told["value"], told["rivals"]) == ("b", 50, {"b": 50, "a": 30, "c": 20})


@pytest.mark.parametrize(
    ("second", "text"), [(500, "a and b 50.0% each"), (499.9, "a and b 50.0% each"), (490, "a 50.0%")]
)
def test_what_cannot_be_told_apart_is_said_together(second: float, text: str) -> None:
    """Values that are equal as shown are named together."""
    assert Verdict.of("cycles", "cycles", 1000, [("a", 500), ("b", second)]).text == text


def test_nothing_wins_where_nothing_is_above_0() -> None:
    """No winner and no text are given if no value is above 0."""
    found = Verdict.of("cycles", "cycles", 100, {"a": 0, "b": -3})
    assert (found.winner, found.alike, found.next, found.text) == (None, (), None, "")


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("most", [600, 3])
def test_the_smallest_set_is_the_smallest(seed: int, most: int) -> None:
    """The found set is the smallest that helps, compared with all sets of random parts that hinder one another.

    The slowest part that is left decides. If few sets may be looked at, another set of this size may be found.
    """
    rng = random.Random(seed)
    parts = tuple("abcdefg"[: rng.randrange(2, 8)])
    load = {part: rng.choice((4, 8, 8, 8, 6)) for part in parts}

    def saved(chosen: tuple[str, ...]) -> float:
        return max(load.values()) - max(load[part] / (2 if part in chosen else 1) for part in parts)

    found = smallest_set(parts, saved, 1, most)
    sets = [chosen for size in range(2, len(parts) + 1) for chosen in itertools.combinations(parts, size)]
    helping = [chosen for chosen in sets if saved(chosen) >= 1]
    if not helping:
        assert found is None
        return
    assert found is not None
    assert found[1] == saved(found[0])
    least = [chosen for chosen in helping if len(chosen) == len(helping[0])]
    assert len(found[0]) == len(helping[0])
    if most == 600:
        assert found[0] == max(least, key=lambda one: (saved(one), [-parts.index(part) for part in one]))


@pytest.mark.parametrize("seed", range(15))
def test_no_verdict_is_false_or_contradicted(seed: int) -> None:
    """No verdict on random layers, mappings and cores is false by the plain model; `benchmarks/verdicts.py`
    tries 500.
    """
    assert try_verdicts(seed).wrong == []
