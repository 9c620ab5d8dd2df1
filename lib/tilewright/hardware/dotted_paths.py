"""Values inside hardware and mapping files by dotted paths, as memories.sram.ports.r_port_1.bandwidth_max, read and
rewritten."""

import re
from typing import Any

from tilewright.base.errors import KeyPath, Problem, nearest_name


def key_path(data: Any, path: str) -> KeyPath | Problem:
    """The keys and list indices of a dotted path in the data of a hardware file, or what is wrong with it.

    Items of lists are called by their `name` (such as ports) or counted from 0: `sizes.0`, or `sizes[0]` as in
    messages. Keys may have dots and brackets of their own. The last key may be new in its table; what is above it, and
    items of lists, may not.
    """
    found, data, rest = _walked(data, path.removeprefix("."))
    if not rest:
        return found
    key, _, below = with_dots(rest).partition(".")
    if below or isinstance(data, list):
        return _no_such_key(data, key)
    if not isinstance(data, dict):
        return Problem("not a table in the base, so nothing can be set in it", value=key)
    has_numbers = bool(data) and all(type(known) is int for known in data)
    return (*found, int(key) if has_numbers and key.isdecimal() else key)


def path_text(data: Any, path: KeyPath) -> str:
    """The dotted path that `key_path` reads as these keys: items of lists by their `name`, else counted from 0."""
    words = []
    for key in path:
        name = ""
        if isinstance(data, list) and isinstance(key, int):
            item = data[key]
            own = item.get("name") if isinstance(item, dict) else None
            is_first = not any(isinstance(other, dict) and other.get("name") == own for other in data[:key])
            name = own if isinstance(own, str) and own and is_first else ""
            data = item
        elif isinstance(data, dict):
            data = data.get(key)
        words.append(name or str(key))
    return ".".join(words)


def _walked(data: Any, text: str) -> tuple[KeyPath, Any, str]:
    """How far the words of a path lead: the keys, what is there, and the words that are left, '' at the end.

    A key may have dots and brackets of its own, `reg.O[0]`: of keys with which the words begin the longest comes first
    that leads to the end, or else as far as any.
    """
    if not text:
        return (), data, ""
    best: tuple[KeyPath, Any, str] = (), data, text
    for word, key in sorted(_words_of(data), key=lambda pair: -len(pair[0])):
        rest = text[len(word) :]
        if not text.startswith(word) or (rest and rest[0] not in ".["):
            continue
        keys, reached, left = _walked(data[key], rest.removeprefix("."))
        if len(left) < len(best[2]):
            best = (key, *keys), reached, left
        if not left:
            break
    return best


def _words_of(data: Any) -> list[tuple[str, Any]]:
    """(what a path may call it, key or index) of what is in a table or a list."""
    if isinstance(data, dict):
        return [(str(key), key) for key in data if str(key)]
    if not isinstance(data, list):
        return []
    names = [(item.get("name"), index) for index, item in enumerate(data) if isinstance(item, dict)]
    named = [(name, index) for name, index in names if isinstance(name, str) and name]
    counted = [(word, index) for index in range(len(data)) for word in (f"[{index}]", str(index))]
    return [*named, *counted]


def with_dots(path: str) -> str:
    """A path in one spelling: `sizes[0]`, as messages have it, is `sizes.0`."""
    return re.sub(r"\[([0-9]+)\]", r".\1", path).removeprefix(".")


def keys_of(data: Any) -> list[str]:
    """What can be said next in a path: keys of a table; names of the items of a list, or their numbers."""
    if isinstance(data, dict):
        return [str(key) for key in data]
    if not isinstance(data, list):
        return []
    names = [str(item["name"]) for item in data if isinstance(item, dict) and "name" in item]
    return names or [str(index) for index in range(len(data))]


def _no_such_key(data: Any, key: str) -> Problem:
    known = keys_of(data)
    nearest = nearest_name(key, known)
    return Problem("the base has no such key", value=key, allowed="" if nearest else ", ".join(known), nearest=nearest)
