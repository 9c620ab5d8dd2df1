"""Parameters of stages: names and types checked against the fields of the stage's class."""

import inspect
import sys
import types
import typing
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, Union

from tilewright.errors import InputError, KeyPath, Problem, nearest_name
from tilewright.search.options import SearchOptions
from tilewright.stages.base import Stage, is_own
from tilewright.stages.findings import Finding, keys_of

WORDS = {
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    str: "text",
    type(None): "null",
}
OPTIONS = tuple(field.name for field in fields(SearchOptions))


class _MisfitError(Exception):
    """A value is not of the type that is asked for."""


def make_stage(
    kind: type[Stage],
    given: Any,
    options: SearchOptions,
    place: KeyPath,
    settings: Mapping[str, Any] = MappingProxyType({}),
) -> tuple[Stage | None, list[Finding]]:
    """A stage with the given parameters, and for the rest those of the run; or what is wrong with them.

    Those of the run are `options` and, by the names of parameters, `settings`.
    """
    if given is None:
        given = {}
    if not isinstance(given, Mapping):
        return None, [Finding(place, "must be a table of parameters", repr(given)[:40])]
    known = {field.name: field for field in fields(kind)}
    findings = []
    values = {name: getattr(options, name) for name in known if name in OPTIONS}
    for name in given:
        if name not in known:
            nearest = nearest_name(str(name), list(known))
            allowed = "" if nearest else ", ".join(known) or "none"
            message = f"{kind.name()} has no such parameter"
            findings.append(Finding((*place, str(name)), message, allowed=allowed, nearest=nearest))
    of_run = {name: value for name, value in settings.items() if name in known and name not in given}
    for name, value in (*of_run.items(), *((name, value) for name, value in given.items() if name in known)):
        at = (*place, name) if name in given else (name,)
        hint = _hint(kind, known[name])
        try:
            values[name] = _converted(hint, value)
        except _MisfitError:
            findings.append(Finding(at, "wrong kind of value", repr(value)[:60], words(hint)))
            continue
        findings += _beyond_its_limits(kind, name, values[name], at)
    for name, field in known.items():
        if name not in values and field.default is MISSING and field.default_factory is MISSING and name not in given:
            findings.append(Finding((*place, name), f"{kind.name()} needs this parameter"))
    if findings:
        return None, findings
    stage, findings = _construct(kind, values, place)
    return stage, [_at_setting(finding, place, of_run) for finding in findings]


def _at_setting(finding: Finding, place: KeyPath, of_run: Mapping[str, Any]) -> Finding:
    """What is wrong with a parameter that comes from the settings of the run is wrong there."""
    inside = finding.place[len(place) :]
    return replace(finding, place=inside) if inside and inside[0] in of_run else finding


def _construct(kind: type[Stage], values: dict[str, Any], place: KeyPath) -> tuple[Stage | None, list[Finding]]:
    try:
        return kind(**values), []
    except InputError as error:
        return None, [_finding_of(problem, place, values) for problem in error.problems]
    except Exception as error:
        if is_own(kind):
            raise
        from tilewright.stages.user_errors import problem_in_code

        file = getattr(sys.modules.get(kind.__module__), "__file__", None)
        return None, [Finding.of(problem_in_code(error, None if file is None else Path(file)), place)]


def _finding_of(problem: Problem, place: KeyPath, values: Mapping[str, Any]) -> Finding:
    """A problem that a stage tells of its parameters: where it names one, there."""
    inside = keys_of(problem.path)
    if not inside or inside[0] not in values:
        return Finding.of(problem, place)
    return Finding.of(replace(problem, path=""), (*place, *inside))


def _beyond_its_limits(kind: type[Stage], name: str, value: Any, place: KeyPath) -> list[Finding]:
    """Parameters of our stages that are options of a search have the limits of these."""
    if not is_own(kind) or name not in OPTIONS:
        return []
    try:
        # The engine that knows all options, so that only the value itself is judged.
        SearchOptions(**({"temporal_mapping_search_engine": "exact"} | {name: value}))
    except InputError as error:
        return [Finding(place, p.message, p.value, p.allowed, p.nearest) for p in error.problems]
    return []


def _hint(kind: type[Stage], field: "Field[Any]") -> Any:
    """The type of a field; Any where its annotation cannot be resolved."""
    if not isinstance(field.type, str):
        return field.type
    for owner in kind.__mro__:
        if field.name in inspect.get_annotations(owner):
            try:
                return eval(field.type, vars(sys.modules[owner.__module__]))
            except Exception:
                return Any
    return Any


def _converted(hint: Any, value: Any) -> Any:
    """`value` as `hint`: lists become tuples, whole numbers become floats where floats are asked for."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (Union, types.UnionType):
        for argument in arguments:
            try:
                return _converted(argument, value)
            except _MisfitError:
                continue
        raise _MisfitError
    if origin is Literal:
        return _if(value in arguments, value)
    if origin is tuple or hint is tuple:
        return _converted_tuple(arguments, value)
    if origin in (list, dict) or hint in (list, dict):
        return _if(isinstance(value, origin or hint), value)
    if hint is float:
        return float(_if(isinstance(value, int | float) and not isinstance(value, bool), value))
    if hint is int:
        return _if(isinstance(value, int) and not isinstance(value, bool), value)
    if hint in (str, bool):
        return _if(isinstance(value, hint), value)
    if hint in (None, type(None)):
        return _if(value is None, value)
    return value


def _if(fits: bool, value: Any) -> Any:
    if not fits:
        raise _MisfitError
    return value


def _converted_tuple(arguments: tuple[Any, ...], value: Any) -> tuple[Any, ...]:
    items = list(_if(isinstance(value, list | tuple), value))
    if not arguments:
        return tuple(items)
    if len(arguments) == 2 and arguments[1] is Ellipsis:
        return tuple(_converted(arguments[0], item) for item in items)
    _if(len(items) == len(arguments), value)
    return tuple(_converted(argument, item) for argument, item in zip(arguments, items, strict=True))


def words(hint: Any) -> str:
    """A type as a person would say it."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (Union, types.UnionType):
        return " or ".join(words(argument) for argument in arguments)
    if origin is Literal:
        return ", ".join(map(str, arguments))
    if origin in (tuple, list) or hint in (tuple, list):
        return "a list"
    if origin is dict or hint is dict:
        return "a table"
    return WORDS.get(hint, getattr(hint, "__name__", str(hint)))
