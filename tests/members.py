"""Sizes of random families: a part of each family by default, the whole family with an environment variable."""

import os

WHOLE_FAMILIES = bool(os.environ.get("TILEWRIGHT_WHOLE_FAMILIES"))
"""Whether every family is tried as a whole: `TILEWRIGHT_WHOLE_FAMILIES=1 make test`."""


def members(whole: int, part: int) -> int:
    """Number of members of a family that a test tries, or that it expects to meet: `part`, or `whole` on request."""
    return whole if WHOLE_FAMILIES else part
