"""Check of the arguments of Python functions: an argument of a wrong kind raises an error before the function runs.

The allowed kinds follow from the annotations of the function. Options are not checked here, but in
`base/parameters.py`.
"""

import inspect
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache, wraps
from numbers import Number
from os import PathLike
from typing import Any, Literal, Union, get_args, get_origin

from tilewright.base.errors import InputError, Problem

Kind = tuple[str, Callable[[Any], bool]]
"""Pair (name of a kind of values, function that returns True for the values of this kind)."""
PATH: Kind = ("a path", lambda value: isinstance(value, str | PathLike))
NOTHING: Kind = ("None", lambda value: value is None)
_SCALARS: tuple[type, ...] = (int, float, bool)
_PLAIN = (str, PathLike, Number)
_SOURCES = ("FilePath", "WorkloadSource", "AcceleratorSource", "MappingSource")
_RESULTS = ("MappedWorkload", "ScheduledRun", "MultiCoreResult", "Exploration", "DataFrame", "LayerRecord")


def told(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Wrapper of the function `tilewright.<name>`. It raises InputError for an argument of a wrong kind before the
    function runs.
    """

    @wraps(function)
    def checked(*args: Any, **keywords: Any) -> Any:
        problems = list(_problems(function, name, args, keywords))
        if problems:
            raise InputError(problems)
        return function(*args, **keywords)

    # Module and name under which other processes find the function when it is pickled.
    checked.__module__, checked.__qualname__ = "tilewright", name
    return checked


def _problems(
    function: Callable[..., Any], name: str, args: Sequence[Any], keywords: Mapping[str, Any]
) -> Iterator[Problem]:
    signature = inspect.signature(function)
    try:
        given = signature.bind(*args, **keywords).arguments
    except TypeError:
        return  # Python itself reports a missing or unknown argument
    for parameter, value in given.items():
        kinds = _kinds_of(signature.parameters[parameter].annotation)
        if not kinds or any(fits(value) for _, fits in kinds):
            continue
        words = " or ".join(dict.fromkeys(word for word, _ in kinds if word != "None"))
        hint = "; give the folder (argument `output`) of this result" if PATH in kinds and _is_result(value) else ""
        message = f"tilewright.{name} takes {words}, not {type(value).__name__}{hint}"
        yield Problem(message, path=parameter)


def _is_result(value: Any) -> bool:
    return any(kind.__name__ in _RESULTS for kind in type(value).__mro__)


@lru_cache(maxsize=1024)
def _kinds_of_text(text: str) -> tuple[Kind, ...]:
    """Kinds of values that an annotation (given as text) allows; () if the annotation cannot be checked."""
    found: list[Kind] = []
    for part in text.split(" | "):
        base = part.partition("[")[0]
        if base in _SOURCES:
            import tilewright.pipeline.sources as sources

            found += _kinds_of(getattr(sources, base))
        elif base == "None":
            found.append(NOTHING)
        elif base == "Sequence":
            found.append(("a list", lambda value: isinstance(value, Sequence) and not isinstance(value, str | bytes)))
        elif base in ("dict", "Mapping"):
            found.append(("a table", lambda value: isinstance(value, Mapping)))
        elif base.isidentifier() and base[:1].isupper() and base not in ("Any", "PipelineSource", "Cores"):
            found.append((base, _is_called(base)))
        else:
            return ()
    return tuple(found)


def _kinds_of(annotation: Any) -> tuple[Kind, ...]:
    """Kinds of values that an annotation allows; () if the annotation cannot be checked."""
    if isinstance(annotation, str):
        return _kinds_of_text(annotation)
    if annotation is inspect.Parameter.empty or annotation is Any:
        return ()
    origin = get_origin(annotation)
    if origin in (Union, types.UnionType):
        parts = [_kinds_of(part) for part in get_args(annotation)]
        return tuple(kind for part in parts for kind in part) if all(parts) else ()
    return _kind_of(annotation, origin)


def _kind_of(annotation: Any, origin: Any) -> tuple[Kind, ...]:
    """Kinds of values that an annotation allows; () if the annotation cannot be checked. The annotation must not be a
    union. `origin` is the result of `typing.get_origin`.
    """
    if annotation is types.NoneType or annotation is None:
        return (NOTHING,)
    if origin is Literal:
        return (("a word", lambda value: isinstance(value, _PLAIN)),)
    if annotation is str or origin is PathLike:
        return (PATH,)
    if annotation in _SCALARS:
        return (("a number", lambda value: isinstance(value, _PLAIN) or type(value).__module__ == "numpy"),)
    if hasattr(annotation, "__forward_arg__"):
        return _kinds_of_text(annotation.__forward_arg__.rpartition(".")[2])
    if origin is tuple and Ellipsis not in get_args(annotation):  # each element has a kind of its own
        return (("a list", _list_of(())),)
    if origin is not None and isinstance(origin, type) and issubclass(origin, Sequence):
        return (("a list", _list_of(get_args(annotation))),)
    if origin is not None and isinstance(origin, type) and issubclass(origin, Mapping):
        return (("a table", lambda value: isinstance(value, Mapping)),)
    if isinstance(annotation, type):
        return ((annotation.__name__, lambda value: isinstance(value, annotation)),)
    return ()


def _is_called(name: str) -> Callable[[Any], bool]:
    """Function that returns True for the instances of a class called `name`, and of its subclasses."""
    return lambda value: name in [kind.__name__ for kind in type(value).__mro__]


def _list_of(items: Sequence[Any]) -> Callable[[Any], bool]:
    kinds = _kinds_of(items[0]) if items else ()

    def fits(value: Any) -> bool:
        if not isinstance(value, Sequence) or isinstance(value, str | bytes):
            return False
        return not kinds or all(any(one(item) for _, one in kinds) for item in value)

    return fits
