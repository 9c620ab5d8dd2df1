"""The message of a search whose effort ends before a mapping is found."""

from tests.plain.attack_open import attack_open


def test_a_spent_effort_is_no_reason_that_no_mapping_exists() -> None:
    """The message names the effort, not the rule by which no spatial mapping is generated."""
    outcome = attack_open(7800008, engine="best", effort=6000)
    assert not outcome.differences
    assert any(name.startswith("refused") for name in outcome.counts)
    assert not attack_open(7800008, engine="best").differences
