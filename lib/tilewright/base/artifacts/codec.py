"""Conversion of frozen dataclasses and named tuples to JSON and back without loss, driven by their type hints.

Tuples become lists. An integer stays an integer and a float stays a float, because the reference model computes
integers and floats in different ways. Metadata of a field changes how the field is written:

* LEFT_OUT: the field is not written if it has its default value, and it can be missing in the JSON.
* DERIVED: the field is never written, because an outer object contains its value.
* `spread`: the field holds pairs (name, number). In the JSON object, each pair becomes a separate key, beside the other
  fields. The metadata value is a function that returns the names that such a key can have.
"""

import types
import typing
from collections.abc import Callable, Collection
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cache, partial
from typing import Any, Literal, TypeVar, Union

from tilewright.base.errors import shown
from tilewright.base.parameters import words

T = TypeVar("T")
LEFT_OUT = {"left_out": True}
"""Metadata of a field that is written only if its value differs from the default."""
DERIVED = {"derived": True}
"""Metadata of a field that is never written, because an outer object contains its value."""
_PLAIN = frozenset((type(None), str, int, float, bool))


def encode(value: Any) -> Any:
    """JSON data of a dataclass or named tuple, or of a tuple, list, dict or scalar that contains such objects. Raises
    TypeError for a value of any other type.
    """
    if type(value) in _PLAIN:
        return value
    if is_dataclass(value) and not isinstance(value, type):
        pairs = ((name, field, getattr(value, name)) for name, field in _written(type(value)))
        found = {name: encode(item) for name, field, item in pairs if not (field and _says_nothing(field, item))}
        for name, _ in _spread(type(value)):
            found |= dict(getattr(value, name))
        return found
    if _is_named_tuple(type(value)):
        return {name: encode(item) for name, item in value._asdict().items()}
    if isinstance(value, tuple | list):
        return [encode(item) for item in value]
    if isinstance(value, dict):
        return {key: encode(item) for key, item in value.items()}
    if isinstance(value, str | int | float):
        return value
    raise TypeError(f"an artifact cannot contain a value of type {type(value).__name__}")


def decode(kind: type[T], data: Any) -> T:
    """Object of type `kind`, made from the JSON data that `encode` returned for it. Raises ValueError if the data does
    not fit the type.
    """
    try:
        return typing.cast(T, _reader(typing.cast(Any, kind))(data))
    except _MisfitError as misfit:
        name = kind.__name__ if _is_record(kind) else "value"
        raise ValueError(f"{name}{misfit.place}: {misfit.message}") from None


class _MisfitError(ValueError):
    """Error of data that does not fit the type. `place` is the path of this data. Each value that encloses the data
    adds its key at the start of the path.
    """

    def __init__(self, message: str, place: str = "") -> None:
        super().__init__(message)
        self.message, self.place = message, place

    def within(self, place: str) -> "_MisfitError":
        return _MisfitError(self.message, place + self.place)


def _other_kind(hint: Any, data: Any) -> _MisfitError:
    """Error of data that has another type than `hint`."""
    return _MisfitError(f"expected {_words(hint)}, got {shown(data)}")


def _words(hint: Any) -> str:
    """Text that describes a type, in the words of JSON: an object is a dataclass, a named tuple or a dict."""
    origin = typing.get_origin(hint)
    if origin in (Union, types.UnionType):
        return " or ".join(map(_words, typing.get_args(hint)))
    return "an object" if _is_record(hint) or dict in (hint, origin) else words(hint)


Reader = Callable[[Any], Any]


@cache
def _reader(hint: Any) -> Reader:
    """Function that reads data of a type. The function raises _MisfitError if the data does not fit the type."""
    if _is_record(hint):
        return partial(_read_record, hint)
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (Union, types.UnionType):
        return partial(_read_union, hint, tuple(map(_reader, arguments)))
    if origin is tuple and len(arguments) == 2 and arguments[1] is Ellipsis:
        return partial(_read_items, _reader(arguments[0]))
    if origin is tuple:
        return partial(_read_tuple, tuple(map(_reader, arguments)))
    if origin is dict:
        return partial(_read_dict, _reader(arguments[1]))
    return partial(_read_scalar, hint)


def _read_record(kind: Any, data: Any) -> Any:
    readers, needed = _readers_of(kind)
    gathered: dict[str, Any] = {}
    if _spread(kind) and isinstance(data, dict):
        data, gathered = _gathered(kind, data)
    if not isinstance(data, dict):
        raise _MisfitError(f"expected an object with {', '.join(readers)}")
    if not needed <= data.keys() <= readers.keys():
        raise _MisfitError(_wrong_keys(kind, data.keys() - readers.keys(), needed - data.keys()))
    values = {}
    for name, item in data.items():
        try:
            values[name] = readers[name](item)
        except _MisfitError as misfit:
            raise misfit.within(f".{name}") from None
    return kind(**values, **gathered)


def _wrong_keys(kind: Any, unknown: Collection[str], lacking: Collection[str]) -> str:
    """Message on an object with keys that its type does not have, or without keys that its type needs. An unknown key
    of an object with a `spread` field can belong to a plug-in.
    """
    found = []
    if unknown:
        source = "; no installed plug-in defines it" if _spread(kind) else ""
        found.append(f"unknown key {', '.join(sorted(map(repr, unknown)))}{source}")
    if lacking:
        found.append(f"expected the key {', '.join(sorted(map(repr, lacking)))}")
    return "; ".join(found)


def _gathered(kind: Any, data: dict[str, Any]) -> tuple[dict[str, Any], dict[str, tuple[tuple[str, Any], ...]]]:
    """JSON data of an object, divided in two. The first part is the data without the keys of `spread` fields. The
    second part maps the name of each `spread` field to its pairs (key, number). Raises _MisfitError if a value in these
    pairs is not a number.
    """
    gathered = {}
    for name, names in _spread(kind):
        own = {key: item for key, item in data.items() if key in names()}
        misfit = next((key for key, item in own.items() if not _is_scalar(float, item)), None)
        if misfit is not None:
            raise _other_kind(float, own[misfit]).within(f".{misfit}")
        gathered[name] = tuple(sorted(own.items()))
        data = {key: item for key, item in data.items() if key not in own}
    return data, gathered


@cache
def _readers_of(kind: Any) -> tuple[dict[str, Reader], set[str]]:
    """Pair (readers, required names) for a dataclass or a named tuple. `readers` maps the name of each field to the
    function that reads its data. The required names are the names of the fields that must be present.
    """
    hints = typing.get_type_hints(kind)
    written = _written(kind)
    names = [name for name, _ in written] or list(getattr(kind, "_fields", []))
    left_out = {name for name, field in written if field}
    return {name: _reader(hints[name]) for name in names}, {*names} - left_out


def _read_dict(read: Reader, data: Any) -> Any:
    if not isinstance(data, dict):
        raise _other_kind(dict, data)
    values = {}
    for key, item in data.items():
        try:
            values[key] = read(item)
        except _MisfitError as misfit:
            raise misfit.within(f".{key}") from None
    return values


@cache
def _written(kind: Any) -> tuple[tuple[str, Field[Any] | None], ...]:
    """Pairs (name, field), one for each field that a dataclass writes to JSON. `field` is None if the field is always
    written. Any other field is left out when it has its default value.
    """
    own = fields(kind) if is_dataclass(kind) else ()
    found = [field for field in own if not {"derived", "spread"} & field.metadata.keys()]
    return tuple((field.name, field if "left_out" in field.metadata else None) for field in found)


@cache
def _spread(kind: Any) -> tuple[tuple[str, Callable[[], tuple[str, ...]]], ...]:
    """Pairs (field name, function), one for each field with the metadata `spread`. Such a field holds pairs (key,
    number). The function returns all keys that the field can have."""
    own = fields(kind) if is_dataclass(kind) else ()
    return tuple((field.name, field.metadata["spread"]) for field in own if "spread" in field.metadata)


def _says_nothing(field: Field[Any], value: Any) -> bool:
    default = field.default if field.default_factory is MISSING else field.default_factory()
    return bool(value == default)


def _read_union(hint: Any, readers: tuple[Reader, ...], data: Any) -> Any:
    for read in readers:
        try:
            return read(data)
        except ValueError:
            continue
    raise _other_kind(hint, data)


def _read_items(read: Reader, data: Any) -> Any:
    return _read_tuple((read,) * len(data) if isinstance(data, list) else (), data)


def _read_tuple(readers: tuple[Reader, ...], data: Any) -> Any:
    if not isinstance(data, list):
        raise _other_kind(list, data)
    if len(readers) != len(data):
        raise _MisfitError(f"expected {len(readers)} items, got {len(data)}")
    values = []
    for read, item in zip(readers, data, strict=True):
        try:
            values.append(read(item))
        except _MisfitError as misfit:
            raise misfit.within(f"[{len(values)}]") from None
    return tuple(values)


def _read_scalar(hint: Any, data: Any) -> Any:
    if hint is Any or _is_scalar(hint, data) or (typing.get_origin(hint) is Literal and data in typing.get_args(hint)):
        return data
    raise _other_kind(hint, data)


def _is_scalar(hint: Any, data: Any) -> bool:
    if hint in (None, type(None)):
        return data is None
    if hint is float:
        return isinstance(data, int | float) and not isinstance(data, bool)
    if hint is int:
        return isinstance(data, int) and not isinstance(data, bool)
    return hint in (str, bool) and isinstance(data, hint)


def _is_record(hint: Any) -> bool:
    return isinstance(hint, type) and (is_dataclass(hint) or _is_named_tuple(hint))


def _is_named_tuple(kind: type) -> bool:
    return issubclass(kind, tuple) and hasattr(kind, "_fields")
