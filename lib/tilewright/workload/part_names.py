"""Names of the parts of a layer that was split: `conv1#2of4` is the second of four parts of `conv1`.

What a mapping file says for a layer, by its name or by a glob, holds for its parts too, unless it names the part.
"""

import re

_PART = re.compile(r"(.+?)(#[1-9][0-9]*of[1-9][0-9]*)+", re.DOTALL)


def part_name(name: str, place: int, count: int) -> str:
    """The name of part `place` (from 0) of `count`."""
    return f"{name}#{place + 1}of{count}"


def whole_name(name: str) -> str:
    """The name of the layer that a part, or a part of a part, is of; the name itself if it is not that of a part."""
    match = _PART.fullmatch(name) if "#" in name else None
    return match[1] if match else name
