"""Frozen dataclasses and named tuples as JSON and back without loss, driven by their type hints.

Tuples become lists; numbers keep being integers or floats, because the reference model computes them differently. A
field with the metadata LEFT_OUT is not written where it has its default, and may be missing.
"""

import types
import typing
from collections.abc import Callable
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cache
from typing import Any, Literal, TypeVar, Union

T = TypeVar("T")
LEFT_OUT = {"left_out": True}
"""Metadata of a field that stands only where it says something."""
_PLAIN = frozenset((type(None), str, int, float, bool))


def encode(value: Any) -> Any:
    """Plain JSON data of a dataclass or named tuple, or of a tuple, list, dict or scalar that holds such records."""
    if type(value) in _PLAIN:
        return value
    if is_dataclass(value) and not isinstance(value, type):
        pairs = ((name, field, getattr(value, name)) for name, field in _written(type(value)))
        return {name: encode(item) for name, field, item in pairs if not (field and _says_nothing(field, item))}
    if _is_named_tuple(type(value)):
        return {name: encode(item) for name, item in value._asdict().items()}
    if isinstance(value, tuple | list):
        return [encode(item) for item in value]
    if isinstance(value, dict):
        return {key: encode(item) for key, item in value.items()}
    if isinstance(value, str | int | float):
        return value
    raise TypeError(f"{type(value).__name__} has no form in an artifact")


def decode(kind: type[T], data: Any) -> T:
    """The record `kind` from what `encode` made of it. Raises ValueError where the data does not fit the type."""
    return typing.cast(T, _decode(kind, data, kind.__name__))


def _decode(hint: Any, data: Any, place: str) -> Any:
    read, part = _form(hint)
    return read(part, data, place)


@cache
def _form(hint: Any) -> tuple[Callable[[Any, Any, str], Any], Any]:
    """What reads data of a type, and what it needs to know of the type."""
    if isinstance(hint, type) and (is_dataclass(hint) or _is_named_tuple(hint)):
        return _decode_record, hint
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (Union, types.UnionType):
        return _decode_union, arguments
    if origin is tuple:
        return _decode_tuple, arguments
    if origin is dict:
        return _decode_dict, arguments[1]
    return _decode_scalar, hint


def _decode_record(kind: Any, data: Any, place: str) -> Any:
    hints = _hints(kind)
    if not isinstance(data, dict) or not hints.keys() - _left_out(kind) <= data.keys() <= hints.keys():
        raise ValueError(f"{place}: expected an object with {', '.join(hints)}")
    return kind(**{name: _decode(hints[name], item, f"{place}.{name}") for name, item in data.items()})


def _decode_dict(hint: Any, data: Any, place: str) -> Any:
    if not isinstance(data, dict):
        raise ValueError(f"{place}: expected an object, got {data!r}")
    return {key: _decode(hint, item, f"{place}.{key}") for key, item in data.items()}


@cache
def _written(kind: Any) -> tuple[tuple[str, Field[Any] | None], ...]:
    """The fields of a dataclass by name, None for those that are always written."""
    found = fields(kind) if is_dataclass(kind) else ()
    return tuple((field.name, field if "left_out" in field.metadata else None) for field in found)


def _says_nothing(field: Field[Any], value: Any) -> bool:
    default = field.default if field.default_factory is MISSING else field.default_factory()
    return bool(value == default)


@cache
def _left_out(kind: Any) -> frozenset[str]:
    return frozenset(name for name, field in _written(kind) if field)


def _decode_union(arguments: tuple[Any, ...], data: Any, place: str) -> Any:
    for argument in arguments:
        try:
            return _decode(argument, data, place)
        except ValueError:
            continue
    raise ValueError(f"{place}: {data!r} fits none of the allowed types")


def _decode_tuple(arguments: tuple[Any, ...], data: Any, place: str) -> Any:
    if not isinstance(data, list):
        raise ValueError(f"{place}: expected a list, got {data!r}")
    if len(arguments) == 2 and arguments[1] is Ellipsis:
        return tuple(_decode(arguments[0], item, f"{place}[{index}]") for index, item in enumerate(data))
    if len(arguments) != len(data):
        raise ValueError(f"{place}: expected {len(arguments)} items, got {len(data)}")
    pairs = zip(arguments, data, strict=True)
    return tuple(_decode(hint, item, f"{place}[{index}]") for index, (hint, item) in enumerate(pairs))


def _decode_scalar(hint: Any, data: Any, place: str) -> Any:
    if hint is Any or _is_scalar(hint, data) or (typing.get_origin(hint) is Literal and data in typing.get_args(hint)):
        return data
    raise ValueError(f"{place}: expected {hint}, got {data!r}")


def _is_scalar(hint: Any, data: Any) -> bool:
    if hint in (None, type(None)):
        return data is None
    if hint is float:
        return isinstance(data, int | float) and not isinstance(data, bool)
    if hint is int:
        return isinstance(data, int) and not isinstance(data, bool)
    return hint in (str, bool) and isinstance(data, hint)


def _is_named_tuple(kind: type) -> bool:
    return issubclass(kind, tuple) and hasattr(kind, "_fields")


@cache
def _hints(kind: Any) -> dict[str, Any]:
    hints = typing.get_type_hints(kind)
    names = [field.name for field in fields(kind)] if is_dataclass(kind) else kind._fields
    return {name: hints[name] for name in names}
