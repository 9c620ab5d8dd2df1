"""Many layers that fail for one cause are one message: what tells causes apart, and names in short."""

import re
from collections.abc import Iterable, Sequence

MOST_NAMED = 4
_SPATIAL_MAPPING = re.compile(r"\bwith (?:no spatial unrolling|D\d+: [^:;]*(?:; D\d+: [^:;]*)*): ")
_NUMBER = re.compile(r"(?<![\w.'])\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?(?![\w'])")
"""A number by itself: digits in the name of a memory or of a dimension belong to the name."""


def cause_of(reasons: Iterable[str]) -> tuple[str, ...]:
    """What reasons have in common with those of other layers: each once, without its spatial mapping and numbers."""
    parts = (part for reason in reasons for part in re.split(r"; (?=with )", reason))
    return tuple(dict.fromkeys(_NUMBER.sub("#", _SPATIAL_MAPPING.sub("", part.strip())) for part in parts))


def some_of(names: Sequence[str], most: int = MOST_NAMED) -> str:
    """The first names, and how many more there are: conv1, conv2 and 3 more."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{', '.join(names[:most])}{more}"


def count_of(number: int, one: str) -> str:
    """A number of things: 1 layer, 1,024 layers."""
    return f"{number:,} {one}{'' if number == 1 else 's'}"
