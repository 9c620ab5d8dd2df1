"""Objects of plug-ins: attributes and methods that their kind needs."""

from typing import Any, Protocol

import pytest
from tilewright.base.registry import lacking, methods_of


class Kind(Protocol):
    """Kind with a property and two methods."""

    @property
    def links(self) -> str:
        """A text."""

    def cost(self, layer: str, core: str) -> float:
        """A number."""

    def waiting(self) -> float:
        """A number."""


class Sound:
    """Object with more arguments than needed, all of them with defaults."""

    links = "none"

    def cost(self, one: str, other: str, further: int = 0) -> float:
        """The names of arguments are free."""
        return 0.0

    waiting = staticmethod(float)


class Short(Sound):
    """Object with a method without its arguments, and a number in place of a method."""

    def cost(self) -> float:  # type: ignore[override]
        """No arguments."""
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
    """Missing attributes come before wrong methods."""
    assert lacking(entry, methods_of(Kind)) == reason
