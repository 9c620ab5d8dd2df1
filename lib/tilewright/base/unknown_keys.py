"""Unknown keys of input files: messages with the nearest known key, and with the table to which a key belongs."""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from tilewright.base.errors import nearest_name, some_of

TOP = "the top level of the file"
_UNIT = re.compile(r"_(?:k|m|g)?(?:hz|pj|nj|fj|mw|w|bits|bytes|b|kib|mib|mm2|um2|ns|s|nm)$")
"""Unit at the end of a name. Keys of files have no unit, because their values can have one."""
_CLOSE = 0.8
"""Smallest similarity with which a key of another table is suggested. The limit for keys of the same table is lower
(`nearest_name`), because the other tables have more keys."""


class UnknownKey(NamedTuple):
    """Parts of the message on an unknown key, as `Problems.at` takes them."""

    message: str
    allowed: str
    nearest: str


def unknown_key(key: str, known: Sequence[str], elsewhere: Mapping[str, Collection[str]]) -> UnknownKey:
    """Message on a key that is not among the keys `known` of its table. `elsewhere` has the keys of the other tables of
    the file, by the place of the table in words."""
    nearest = _nearest(key, known)
    meant = key if any(key in keys for keys in elsewhere.values()) else ""
    if not meant and not nearest:
        import difflib  # imported here, so that commands that find no error start faster

        others = list(dict.fromkeys(other for keys in elsewhere.values() for other in keys))
        close = difflib.get_close_matches(key, others, n=1, cutoff=_CLOSE)
        meant = close[0] if close else _by_stem(key, others)
    places = [place for place, keys in elsewhere.items() if meant in keys]
    if not places:
        return UnknownKey("unknown key", "" if nearest else ", ".join(known), nearest)
    return UnknownKey(f"unknown key here: '{meant}' belongs to {some_of(places)}", "", nearest)


def _nearest(key: str, known: Sequence[str]) -> str:
    """Key of `known` that is nearest to `key`; '' if none is near."""
    return nearest_name(key, known) or _by_stem(key, known)


def _by_stem(key: str, known: Sequence[str]) -> str:
    """Known key whose first word is `key` without its unit, such as `clock_frequency` for `clock_mhz`; '' if there is
    no such key, or if there are several."""
    stem = _UNIT.sub("", key.lower())
    found = [name for name in known if name.lower() == stem or name.lower().startswith(f"{stem}_")]
    return found[0] if len(found) == 1 else ""
