"""Edits of values in the text of a hardware or mapping file.

If the values can be changed in place (`changed_text`), comments, units and the order of keys stay as written.
"""

import contextlib
import copy
from collections.abc import Iterable, Sequence
from typing import Any

import yaml

from tilewright.base.errors import InputError, KeyPath
from tilewright.base.yamlfile import parse_yaml, yaml_text


def with_values(data: Any, values: Iterable[tuple[KeyPath, Any]]) -> Any:
    """Data of a hardware file with changed values, which are applied in order. `data` itself is not changed.

    Tables and lists on the path to a changed value are copied. All other tables and lists are shared, so callers must
    change neither `data` nor the result.
    """
    copies: dict[KeyPath, Any] = {(): copy.copy(data)}
    for path, value in values:
        above = copies[()]
        for depth, key in enumerate(path[:-1], 1):
            place = path[:depth]
            if place not in copies:
                copies[place] = above[key] = copy.copy(above[key])
            above = copies[place]
        above[path[-1]] = value
    return copies[()]


_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def changed_text(text: str, changes: Sequence[tuple[KeyPath, Any]]) -> str:
    """Text of a YAML file in which the values at some paths are changed. No other value changes.

    Comments are kept if the values can be changed in place. Otherwise, the whole text is written anew, without
    comments. This is necessary, for example, if a changed value is in a table that an alias or a merge key uses
    elsewhere in the file.
    """
    wanted = with_values(parse_yaml(text).data, changes)
    for edit in (_edited_beside_aliases, _edited):
        edited = edit(text, changes)
        with contextlib.suppress(InputError):  # an alias whose anchor was removed
            if edited is not None and parse_yaml(edited).data == wanted:
                return edited
    return yaml_text(wanted, default_flow_style=None, width=118, allow_unicode=True)


def _edited_beside_aliases(text: str, changes: Sequence[tuple[KeyPath, Any]]) -> str | None:
    """Text in which one scalar or alias is replaced. None if there are several changes, or if the path leads to a table
    or list.

    If the old value is an alias, only the alias at the path is replaced. If the old value has an anchor, the first
    alias of this anchor gets the anchor and the old value.
    """
    if len(changes) != 1:
        return None
    (path, value), events = changes[0], list(yaml.parse(text, Loader=_LOADER))
    place = _event_at(events, path)
    if place is None or not isinstance(events[place], yaml.ScalarEvent | yaml.AliasEvent):
        return None
    event: Any = events[place]
    start, end = event.start_mark.index, event.end_mark.index
    edits = [(start, end, _scalar(value))]
    if isinstance(event, yaml.ScalarEvent) and event.anchor:
        later = [one for one in events[place:] if isinstance(one, yaml.AliasEvent) and one.anchor == event.anchor]
        alias: Any = later[0] if later else None
        if alias is not None:
            edits.append((alias.start_mark.index, alias.end_mark.index, text[start:end]))
    for first, last, written in sorted(edits, reverse=True):
        text = text[:first] + written + text[last:]
    return text


def _event_at(events: Sequence[Any], path: KeyPath) -> int | None:
    """Index in `events` of the YAML event at which the value at `path` begins. None if there is no value at the path,
    or if the path leads through an alias.
    """
    place = next((at for at, one in enumerate(events) if isinstance(one, yaml.DocumentStartEvent)), -1) + 1
    for key in path:
        if isinstance(events[place], yaml.MappingStartEvent):
            found, at = None, place + 1
            while not isinstance(events[at], yaml.MappingEndEvent):
                value = _after(events, at)
                if getattr(events[at], "value", None) == str(key):
                    found = value
                at = _after(events, value)
        elif isinstance(events[place], yaml.SequenceStartEvent) and isinstance(key, int):
            at, found = place + 1, None
            for _ in range(key):
                if isinstance(events[at], yaml.SequenceEndEvent):
                    break
                at = _after(events, at)
            found = None if isinstance(events[at], yaml.SequenceEndEvent) else at
        else:
            return None
        if found is None:
            return None
        place = found
    return place


def _after(events: Sequence[Any], place: int) -> int:
    """Index of the first event after a value. `place` is the index of the event at which the value begins."""
    depth = 0
    while True:
        depth += isinstance(events[place], yaml.CollectionStartEvent)
        depth -= isinstance(events[place], yaml.CollectionEndEvent)
        place += 1
        if depth == 0:
            return place


def _edited(text: str, changes: Iterable[tuple[KeyPath, Any]]) -> str | None:
    """Text with each value of `changes` at its path; None if one of the paths does not exist."""
    root = yaml.compose(text, Loader=_LOADER)
    found = []
    for path, value in changes:
        node = _node(root, path)
        if node is None:
            return None
        found.append((node.start_mark.index, _end(node), _scalar(value)))
    for start, end, written in sorted(found, reverse=True):
        text = text[:start] + written + text[end:]
    return text


def _end(node: yaml.Node) -> int:
    """Position in the text at which a value ends.

    A table or list over several lines ends with its last value. Comments below the last value do not belong to the
    table or list.
    """
    if not isinstance(node, yaml.CollectionNode) or node.flow_style or not node.value:
        return int(node.end_mark.index)
    last = node.value[-1]
    return _end(last[1] if isinstance(node, yaml.MappingNode) else last)


def _node(node: yaml.Node | None, path: KeyPath) -> yaml.Node | None:
    """Node at a path; None if there is none. If a key is repeated, its last value is taken."""
    for key in path:
        if isinstance(node, yaml.MappingNode):
            node = next((value for name, value in reversed(node.value) if name.value == str(key)), None)
        elif isinstance(node, yaml.SequenceNode) and isinstance(key, int) and key < len(node.value):
            node = node.value[key]
        else:
            return None
    return node


def _scalar(value: Any) -> str:
    """Text of a scalar value in the YAML file."""
    return yaml_text(value, default_flow_style=True, width=10**6, allow_unicode=True).removesuffix("...\n").strip()
