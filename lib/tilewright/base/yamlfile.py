"""YAML documents with line numbers for every key and list item, so that problems can name the line.

Only plain data (tables, lists, text, numbers, booleans, null) is read. A repeated key keeps its last value, as the
readers of zigzag-dse 3.9.1 do, and causes a notice. Files that would exhaust memory or stack are refused.
"""

import operator
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from yaml.constructor import SafeConstructor

from tilewright.base.errors import InputError, KeyPath, Problem, Unused
from tilewright.base.harmless import is_harmless
from tilewright.base.missing_files import missing_file

LARGEST_FILE_BYTES = 16 * 2**20
DEEPEST_NESTING = 64
_SPARE_ALIAS_VALUES = 100_000
_MOST_REPEATED_KEYS = 100
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TAG = "tag:yaml.org,2002:"


class HarmlessDumper(yaml.SafeDumper):
    """Writer of YAML. Text with control or format characters is quoted, with these characters as escapes."""

    def analyze_scalar(self, scalar: str) -> Any:
        """Allowed styles of a text. A text with control or format characters can only have double quotes."""
        analysis = super().analyze_scalar(scalar)
        if not is_harmless(scalar):
            analysis.allow_flow_plain = analysis.allow_block_plain = False
            analysis.allow_single_quoted = analysis.allow_block = False
        return analysis

    def write_double_quoted(self, text: str, split: bool = True) -> None:
        """Write a text in double quotes. If the text has control or format characters, every character beyond ASCII is
        written as an escape.
        """
        unicode_is_allowed = self.allow_unicode
        self.allow_unicode = unicode_is_allowed and is_harmless(text)
        super().write_double_quoted(text, split)
        self.allow_unicode = unicode_is_allowed


def yaml_text(value: Any, **options: Any) -> str:
    """YAML text of a value, with keys in the order of the value. Reading the text gives the value back."""
    text: str = yaml.dump(value, Dumper=HarmlessDumper, sort_keys=False, **options)
    return text


@dataclass(frozen=True)
class YamlDocument:
    """YAML document: plain data, and the line (1-based) of each key and list item."""

    file: str
    data: Any
    lines: Mapping[KeyPath, int] = field(default_factory=dict)
    repeated: tuple[KeyPath, ...] = ()
    """Keys that are given more than once; the last value of each is used."""

    def line_of(self, path: KeyPath) -> int:
        """Line of `path`. If `path` has no line, the line of the nearest enclosing value that has a line; 0 if
        unknown."""
        for length in range(len(path), -1, -1):
            if path[:length] in self.lines:
                return self.lines[path[:length]]
        return 0

    def place_of(self, path: KeyPath) -> tuple[str, int, str]:
        """File, line and path (as text) of a value, for problems."""
        return self.file, self.line_of(path), self.dotted(path)

    def written(self, path: KeyPath) -> Any:
        """Value at a path; None if there is none."""
        value = self.data
        for key in path:
            value = _child(value, key)
        return value

    def dotted(self, path: KeyPath) -> str:
        """Text of `path`. List items appear by their name if they have one: `memories.rf.ports.r_port_1.type`."""
        text, value = "", self.data
        for key in path:
            text += _step(value, key, first=not text)
            value = _child(value, key)
        return text


def load_yaml(path: str | Path, notices: list[str] | None = None) -> YamlDocument:
    """Read one YAML file. Raises InputError if it is missing, not text, not YAML, empty, or too large."""
    file = str(path)
    return parse_yaml(_read_text(Path(path), file), file, notices)


def parse_yaml(text: str, file: str = "", notices: list[str] | None = None) -> YamlDocument:
    """Read YAML text. `file` is the file name for problems. Raises InputError as `load_yaml` does."""
    try:
        event_count = _check_nesting(text, file)
        root = yaml.compose(text, Loader=_LOADER)
    except yaml.YAMLError as error:
        raise InputError([_syntax_problem(error, file)]) from None
    if root is None:
        raise InputError([Problem("the file is empty", file, 1)])
    reader = _NodeReader(file, event_count + _SPARE_ALIAS_VALUES)
    data = reader.read(root, (), 0)
    if reader.problems:
        raise InputError(reader.problems)
    if notices is not None:
        notices.extend(reader.notices)
    return YamlDocument(file, data, reader.lines, tuple(reader.repeated))


def document_of(data: object, file: str = "") -> YamlDocument:
    """Document made from Python data (dicts, lists, numbers, also those of numpy). It has no line numbers. Raises
    InputError for a value of another type, and for data that are nested too deep.
    """
    return YamlDocument(file, _plain(data, file, 0))


def table(value: Any) -> dict[Any, Any]:
    """Value itself if it is a table, else an empty table. The function is for data that has not been checked."""
    return value if isinstance(value, dict) else {}


def items(value: Any) -> list[Any]:
    """Value itself if it is a list, else an empty list."""
    return value if isinstance(value, list) else []


def _read_text(path: Path, file: str) -> str:
    try:
        if path.stat().st_size > LARGEST_FILE_BYTES:
            raise InputError([Problem("the file is too large", file, allowed=f"{LARGEST_FILE_BYTES} bytes")])
        content = path.read_bytes()
    except FileNotFoundError:
        raise InputError([missing_file(path)]) from None
    except IsADirectoryError:
        raise InputError([Problem("is a directory; a YAML file is needed", file)]) from None
    except (OSError, ValueError) as error:
        raise InputError([Problem(f"cannot be read: {getattr(error, 'strerror', None) or error}", file)]) from None
    if b"\0" in content:
        what = "an ONNX model" if path.suffix.lower() == ".onnx" else "a binary file"
        raise InputError([Problem(f"is {what}; a YAML file is needed", file)])
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise InputError([Problem("is not UTF-8 text", file, line)]) from None


def _check_nesting(text: str, file: str) -> int:
    """Number of parser events in the text. Raises InputError for deep nesting, which would overflow the stack of
    libyaml's binding."""
    depth = count = 0
    for event in yaml.parse(text, Loader=_LOADER):
        count += 1
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > DEEPEST_NESTING:
                line = event.start_mark.line + 1  # type: ignore[union-attr]
                raise InputError([Problem(f"nested more than {DEEPEST_NESTING} levels deep", file, line)])
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
    return count


def _syntax_problem(error: yaml.YAMLError, file: str) -> Problem:
    mark: Any = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    what = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
    context = getattr(error, "context", None) or ""
    if "scanning an alias" in context:
        what = 'a * without quotes starts a YAML alias; write "*" in quotes'
    elif "single document" in context:
        what = "contains more than one YAML document; remove the '---' line"
    elif context:
        what = f"{context}, {what}"
    return Problem(f"is not valid YAML: {what}", file, mark.line + 1 if mark is not None else 0)


class _NodeReader:
    """Converter of YAML nodes into plain data. A limit on the number of values stops endless expansion of aliases."""

    def __init__(self, file: str, budget: int) -> None:
        self.file = file
        self.budget = budget
        self.lines: dict[KeyPath, int] = {}
        self.problems: list[Problem] = []
        self.notices: list[str] = []
        self.repeated: list[KeyPath] = []
        self._scalars = SafeConstructor()

    def read(self, node: yaml.Node, path: KeyPath, depth: int) -> Any:
        self._spend(node, depth)
        self.lines.setdefault(path, node.start_mark.line + 1)
        if isinstance(node, yaml.MappingNode) and node.tag == _TAG + "map":
            return self._table(node, path, depth)
        if isinstance(node, yaml.SequenceNode) and node.tag == _TAG + "seq":
            return [self.read(item, (*path, index), depth + 1) for index, item in enumerate(node.value)]
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node)
        return self._refuse(node, f"the YAML tag {node.tag.removeprefix(_TAG)} is not allowed here")

    def _spend(self, node: yaml.Node, depth: int) -> None:
        self.budget -= 1
        if self.budget < 0 or depth > DEEPEST_NESTING:
            raise InputError([Problem("aliases expand to too much data", self.file, node.start_mark.line + 1)])

    def _table(self, node: yaml.MappingNode, path: KeyPath, depth: int) -> dict[Any, Any]:
        table: dict[Any, Any] = {}
        for key_node, value_node, merged in self._pairs(node, depth):
            if not isinstance(key_node, yaml.ScalarNode):
                self._refuse(key_node, "a key must be text")
                continue
            key = self._scalar(key_node)
            key_path = (*path, key if isinstance(key, (str, int)) else str(key))
            line = key_node.start_mark.line + 1
            if key in table:
                self._override(key_path, line, silent=merged)
            self.lines[key_path] = line
            table[key] = self.read(value_node, key_path, depth + 1)
        return table

    def _override(self, path: KeyPath, line: int, silent: bool) -> None:
        """Report a repeated key, unless `silent` is true, and forget the line numbers of the key and of all keys inside
        its earlier value.
        """
        if not silent:
            first = self.lines.get(path, 0)
            self.repeated.append(path)
            message = f"the key is given twice; only the last value counts (the first is on line {first})"
            self.notices.append(Unused(Problem(message, self.file, line, ".".join(map(str, path)))))
            if len(self.notices) > _MOST_REPEATED_KEYS:
                raise InputError([Problem(f"more than {_MOST_REPEATED_KEYS} keys are given twice", self.file, line)])
        for known in [known for known in self.lines if known[: len(path)] == path]:
            del self.lines[known]

    def _pairs(self, node: yaml.MappingNode, depth: int) -> list[tuple[yaml.Node, yaml.Node, bool]]:
        """Triples (key, value, is_merged) of a table; is_merged is True for a pair from a merge key. Merged pairs come
        first, so that the table's own keys win."""
        own, merged = [], []
        for key_node, value_node in node.value:
            if key_node.tag != _TAG + "merge":
                own.append((key_node, value_node, False))
                continue
            sources = value_node.value if isinstance(value_node, yaml.SequenceNode) else [value_node]
            for source in reversed(sources):
                self._spend(source, depth)
                if not isinstance(source, yaml.MappingNode):
                    self._refuse(source, "a merge key (<<) needs a table")
                    continue
                merged += [(key, value, True) for key, value, _ in self._pairs(source, depth + 1)]
        self.budget -= len(merged)
        overriding = {key.value for key, _, _ in own if isinstance(key, yaml.ScalarNode)}
        kept = [pair for pair in merged if not (isinstance(pair[0], yaml.ScalarNode) and pair[0].value in overriding)]
        return kept + own

    def _scalar(self, node: yaml.ScalarNode) -> Any:
        kind = node.tag.removeprefix(_TAG)
        if kind in ("str", "timestamp", "value"):
            return node.value
        if kind == "null":
            return None
        try:
            if kind == "int":
                return self._scalars.construct_yaml_int(node)
            if kind == "float":
                return self._scalars.construct_yaml_float(node)
            if kind == "bool":
                return self._scalars.construct_yaml_bool(node)
        except (ValueError, IndexError, KeyError, OverflowError):
            return self._refuse(node, f"is not a valid {kind}", repr(node.value[:40]))
        return self._refuse(node, f"the YAML tag {kind} is not allowed here")

    def _refuse(self, node: yaml.Node, message: str, value: str = "") -> None:
        self.problems.append(Problem(message, self.file, node.start_mark.line + 1, value=value))


def _step(value: Any, key: str | int, first: bool) -> str:
    if isinstance(value, list) and isinstance(key, int):
        name = _item_name(value, key)
        if name is None:
            return f"[{key}]"
        key = name
    return str(key) if first else f".{key}"


def _item_name(items: list[Any], index: int) -> str | None:
    """Name of the list item at an index. A layer without a name is named by its id. The result is None if the item has
    no name, or if another item has the same name.
    """
    if not 0 <= index < len(items):
        return None
    names = [_own_name(item) for item in items]
    return names[index] if names[index] and names.count(names[index]) == 1 else None


def _own_name(item: Any) -> str | None:
    if not isinstance(item, dict):
        return None
    name, number = item.get("name"), item.get("id")
    if isinstance(name, str):
        return name
    return f"Layer{number}" if isinstance(number, int) and not isinstance(number, bool) else None


def _child(value: Any, key: str | int) -> Any:
    if isinstance(value, dict):
        return value.get(key)
    if isinstance(value, list) and isinstance(key, int) and 0 <= key < len(value):
        return value[key]
    return None


def _plain(data: object, file: str, depth: int) -> Any:
    if depth > DEEPEST_NESTING:
        raise InputError([Problem(f"nested more than {DEEPEST_NESTING} levels deep", file)])
    if data is None or isinstance(data, (bool, int, float, str)):
        return data
    if isinstance(data, Mapping):
        return {key: _plain(value, file, depth + 1) for key, value in data.items()}
    if isinstance(data, (list, tuple)):
        return [_plain(item, file, depth + 1) for item in data]
    try:
        return operator.index(data)  # type: ignore[arg-type]
    except TypeError:
        raise InputError([Problem(f"a value of type {type(data).__name__} cannot be read", file)]) from None
