"""Objects of plug-ins: attributes and methods that their kind needs."""

from typing import Any, Protocol

import pytest
from tilewright.base.registry import lacking, methods_of


class Kind(Protocol):
    """A kind with a property and two methods."""

    @property
    def links(self) -> str:
        """Return a text."""

    def cost(self, layer: str, core: str) -> float:
        """Return a number."""

    def waiting(self) -> float:
        """Return a number."""


class Sound:
    """An object with more arguments than needed, all with defaults."""

    links = "none"

    def cost(self, one: str, other: str, further: int = 0) -> float:
        """Return a number; arguments may have any names."""
        return 0.0

    waiting = staticmethod(float)


class Short(Sound):
    """An object whose method lacks arguments, with a number in place of another method."""

    def cost(self) -> float:  # type: ignore[override]
        """Return a number, without arguments."""
        return 0.0

    waiting: Any = 1.0


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        (Sound(), ""),
        (object(), "has no links, cost, waiting, which this kind needs"),
        (
            Short(),
            "has methods that do not accept their arguments: this kind needs cost(layer, core), waiting()",
        ),
        (Sound, "is the class Sound, but this kind needs an object of it: Sound()"),
    ],
    ids=["sound", "nothing", "arguments", "class"],
)
def test_the_reason_to_refuse_an_object_is_told(entry: object, reason: str) -> None:
    """The reason for refusing an object names missing attributes before wrong methods."""
    assert lacking(entry, methods_of(Kind)) == reason
