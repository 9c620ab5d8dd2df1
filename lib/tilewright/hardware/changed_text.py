"""The text of a hardware or mapping file with values in other places: comments, order and units stay as written."""

from collections.abc import Iterable, Sequence
from typing import Any

import yaml

from tilewright.errors import KeyPath
from tilewright.hardware.dotted_paths import with_values
from tilewright.yamlfile import parse_yaml

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def changed_text(text: str, changes: Sequence[tuple[KeyPath, Any]]) -> str:
    """The text of a YAML file in which the values at some paths are others.

    Where a value stands in several places by an alias or a merge key, the whole is written anew, without comments: the
    data are always those of the file with these values alone changed.
    """
    wanted = with_values(parse_yaml(text).data, changes)
    edited = _edited(text, changes)
    if edited is not None and parse_yaml(edited).data == wanted:
        return edited
    return yaml.safe_dump(wanted, sort_keys=False, default_flow_style=None, width=118, allow_unicode=True)


def _edited(text: str, changes: Iterable[tuple[KeyPath, Any]]) -> str | None:
    """The text with what stands at these paths replaced; None where nothing does."""
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
    """Where a value ends: of a table or list over several lines with its last value, comments below are not of it."""
    if not isinstance(node, yaml.CollectionNode) or node.flow_style or not node.value:
        return int(node.end_mark.index)
    last = node.value[-1]
    return _end(last[1] if isinstance(node, yaml.MappingNode) else last)


def _node(node: yaml.Node | None, path: KeyPath) -> yaml.Node | None:
    """The node at a path; of a key that is given twice the last one."""
    for key in path:
        if isinstance(node, yaml.MappingNode):
            node = next((value for name, value in reversed(node.value) if name.value == str(key)), None)
        elif isinstance(node, yaml.SequenceNode) and isinstance(key, int) and key < len(node.value):
            node = node.value[key]
        else:
            return None
    return node


def _scalar(value: Any) -> str:
    """A value as it stands in a file."""
    return yaml.safe_dump(value, default_flow_style=True, width=10**6, allow_unicode=True).removesuffix("...\n").strip()
