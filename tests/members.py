"""Sizes of random families: a part of each family by default, or the whole family with an environment variable."""

import os

WHOLE_FAMILIES = bool(os.environ.get("TILEWRIGHT_WHOLE_FAMILIES"))
"""Whether each family is tried completely: `TILEWRIGHT_WHOLE_FAMILIES=1 make test`."""


def members(whole: int, part: int) -> int:
    """Return the tried or expected number of members of a family: `part`, or `whole` on request."""
    return whole if WHOLE_FAMILIES else part
