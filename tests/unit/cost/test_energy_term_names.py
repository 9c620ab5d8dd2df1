"""Energy terms of plug-ins: names that are refused, and the message on a wrong energy."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from tilewright.base.errors import InputError
from tilewright.base.registry import enter, withdraw
from tilewright.cost.energy_terms import ENERGY_TERMS, CheckedTerm
from tilewright.hardware.attributes import ENTERED, Attribute

POWER = Attribute("tree_power", "array", "tree_power_mw", "power_mw", "Power of the clock tree.", term="tree")


class Term:
    """A term that returns a plain number."""

    concerns = staticmethod(lambda core: True)
    cost = staticmethod(lambda layer, core, unrolling: 3.2)
    waiting_pj_a_cycle = staticmethod(lambda core: 0.0)


@contextmanager
def entered(name: str) -> Iterator[None]:
    """Register the power and a term with the given name while a test runs."""
    entries = {ENTERED.owner: {"power": f"{__name__}:POWER"}, ENERGY_TERMS.owner: {name: f"{__name__}:Term"}}
    enter(entries)
    try:
        yield
    finally:
        withdraw(entries)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("tree", "but the attribute tree_power already has an energy term of this name"),
        ("leakage", "which is built in"),
        ("mac", "which is built in"),
    ],
)
def test_names_of_other_terms_are_refused(name: str, reason: str) -> None:
    """A term with the name of a static power or a built-in term is refused before a core is read."""
    with entered(name), pytest.raises(InputError, match=f"has the name {name}, {reason}"):
        ENERGY_TERMS[name]


def test_a_plain_number_is_no_cost() -> None:
    """The message about a number in place of a `TermCost` names the class."""

    class Thing:
        name = "thing"

    with pytest.raises(InputError, match=r"got 3.2 \(allowed: TermCost\(fixed_pj, pj_a_cycle\) with finite numbers"):
        CheckedTerm("tree", Term()).cost(Thing, Thing, ())  # type: ignore[arg-type]
