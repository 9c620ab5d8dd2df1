"""Dotted paths to values in hardware and mapping files, such as memories.sram.ports.r_port_1.bandwidth_max.

Callers use a path to read or replace a value.
"""

import re
from typing import Any

from tilewright.base.errors import KeyPath, Problem, nearest_name


def key_path(data: Any, path: str) -> KeyPath | Problem:
    """Keys and list indices that a dotted path selects in the data of a hardware file. If the path is invalid, the
    result is a Problem.

    Items of lists are selected by their `name` (such as ports) or by an index from 0: `sizes.0`, or `sizes[0]` as in
    messages. Keys can contain dots and brackets. The last key of the path can be missing in the data. All tables and
    list items before the last key must exist.
    """
    found, data, rest = _walked(data, path.removeprefix("."))
    if not rest:
        return found
    key, _, below = with_dots(rest).partition(".")
    if below or isinstance(data, list):
        return _no_such_key(data, key)
    if not isinstance(data, dict):
        return Problem("is not a table in the base file, so it cannot have keys", value=key)
    has_numbers = bool(data) and all(type(known) is int for known in data)
    return (*found, int(key) if has_numbers and key.isdecimal() else key)


def path_text(data: Any, path: KeyPath) -> str:
    """Dotted path that selects the value at the given keys. List items are named by their `name` if possible, else by
    their index."""
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
    """Triple (keys, value, rest) for the longest prefix of a path that exists in the data. `keys` are the keys of the
    prefix, and `value` is the value at the prefix. `rest` is the remaining path; '' if the whole path exists.

    A key can contain dots and brackets, such as `reg.O[0]`. Several keys can therefore match the start of the path. The
    longest key with which the whole path exists is taken. If there is no such key, the key with the longest existing
    prefix is taken.
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
    """Pairs (word in a dotted path, key or index that the word selects) for every item of a table or list."""
    if isinstance(data, dict):
        return [(str(key), key) for key in data if str(key)]
    if not isinstance(data, list):
        return []
    names = [(item.get("name"), index) for index, item in enumerate(data) if isinstance(item, dict)]
    named = [(name, index) for name, index in names if isinstance(name, str) and name]
    counted = [(word, index) for index in range(len(data)) for word in (f"[{index}]", str(index))]
    return [*named, *counted]


def with_dots(path: str) -> str:
    """Path in the dotted spelling: `sizes[0]`, as in messages, becomes `sizes.0`."""
    return re.sub(r"\[([0-9]+)\]", r".\1", path).removeprefix(".")


def keys_of(data: Any) -> list[str]:
    """Words that can come next in a path: the keys of a table, or the names of the items of a list. If no item has a
    name, the words are the indices of the items.
    """
    if isinstance(data, dict):
        return [str(key) for key in data]
    if not isinstance(data, list):
        return []
    names = [str(item["name"]) for item in data if isinstance(item, dict) and "name" in item]
    return names or [str(index) for index in range(len(data))]


def _no_such_key(data: Any, key: str) -> Problem:
    known = keys_of(data)
    nearest = nearest_name(key, known)
    return Problem(
        "the base file has no such key", value=key, allowed="" if nearest else ", ".join(known), nearest=nearest
    )
