"""Parameters, which are declared only as fields of frozen dataclasses.

A field has a name, a type (`Literal`, `Annotated` with `Limits`), a default, and a description: the docstring below it.
The command line, the configuration and its schema, the Python interface and the tables of the documentation are derived
from the fields. Every value is checked here, wherever it comes from. The module imports only packages that load fast,
because the Snakefile reads configurations with these classes.

The type hint of a field determines its allowed values, its check, and its description in words.
"""

import ast
import inspect
import math
import sys
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, Union

from tilewright.base.errors import InputError, Problem, nearest_name, shown

LARGEST_COUNT = 2**63 - 1
_WORDS = {int: "a whole number", float: "a number", bool: "true or false", str: "text", type(None): "null"}
_OF_MANY = {int: "whole numbers", float: "numbers", str: "texts"}
_UNIONS = (Union, types.UnionType)
T = TypeVar("T")


class Limits(NamedTuple):
    """Limits of the numbers that a parameter can have: `Annotated[int, Limits(least=1)]`."""

    least: float | None = None
    above: float | None = None
    most: float | None = None

    def hold(self, number: float) -> bool:
        """True if a number is within the limits. Infinite numbers and NaN are never within the limits."""
        return (
            math.isfinite(number)
            and (self.least is None or number >= self.least)
            and (self.above is None or number > self.above)
            and (self.most is None or number <= self.most)
        )

    @property
    def words(self) -> str:
        """Limits in words."""
        parts = (("from", self.least), ("above", self.above), ("to", self.most))
        return " ".join(f"{word} {limit:g}" for word, limit in parts if limit is not None)


class OneOf(NamedTuple):
    """Allowed texts of a parameter, if the type itself does not list them: `Annotated[str, OneOf(MODELS)]`."""

    given: tuple[str, ...] | Callable[[], tuple[str, ...]]
    """Allowed names, or a function that returns them. A function is called only when the names are needed, so that
    plug-ins are looked up late."""

    @property
    def names(self) -> tuple[str, ...]:
        """Allowed names, in the order in which they are listed."""
        return self.given() if callable(self.given) else self.given


class Told(NamedTuple):
    """Message that replaces the usual message about a wrong value: `Annotated[Literal[1, 2], Told("not a mode")]`."""

    message: str = ""
    allowed: str = ""


class Read(NamedTuple):
    """Reader of values that a type cannot describe. The reader is called with a value and the name of the parameter,
    and returns the value for the parameter. The reader raises InputError if the value is wrong; the paths of the
    problems then begin with the name.
    """

    read: Callable[[Any, str], Any]


class ParameterCheck(NamedTuple):
    """Additional check of a value, after the check of its type: a function that takes the value and raises
    InputError."""

    check: Callable[[Any], object]


Count = Annotated[int, Limits(least=0)]
PositiveCount = Annotated[int, Limits(least=1)]
PositiveNumber = Annotated[float, Limits(above=0)]


@dataclass(frozen=True, eq=False, repr=False)
class Parameter:
    """One field of a class of parameters."""

    name: str
    hint: Any
    """Type hint with its limits; Any if the annotation in a user's class cannot be resolved."""
    default: Any
    """Default value; MISSING if the parameter has none and must be given."""
    owner: type
    """Class, derived from `Parameters`, that declares the parameter."""

    @property
    def sentence(self) -> str:
        """Description of the parameter on one line; '' if its class has none."""
        return " ".join(field_docs(self.owner).get(self.name, "").split())

    @property
    def forms(self) -> tuple[Any, ...]:
        """Types that the type hint allows, without the metadata of `Annotated`. A union gives one type for each of its
        alternatives.
        """
        return tuple(_forms(self.hint))

    @property
    def choices(self) -> tuple[Any, ...]:
        """Allowed values, if the type lists them; otherwise ()."""
        return tuple(_choices(self.hint))

    @property
    def limits(self) -> tuple[Limits, ...]:
        """Limits of the numbers of the parameter."""
        return tuple(mark for mark in _marks(self.hint) if isinstance(mark, Limits))

    @property
    def is_switch(self) -> bool:
        """True if the parameter has only the values true and false."""
        return self.forms == (bool,)

    @property
    def takes_list(self) -> bool:
        """True if the type of the parameter allows a list as the value."""
        return any((typing.get_origin(form) or form) in (list, tuple, Sequence) for form in self.forms)

    def converted(self, value: Any) -> Any:
        """Value converted to the type of the parameter. Raises InputError with the name of the parameter as path."""
        try:
            return _converted(self.hint, value, self.name)
        except _MisfitError as misfit:
            told = Problem(misfit.message, "", 0, self.name, shown(value), misfit.allowed, misfit.nearest)
            raise InputError([told]) from None


@dataclass(frozen=True, eq=False, repr=False)
class Parameters:
    """Base of classes of parameters. If a value is not allowed, the construction of an object raises InputError. The
    error names every such value.

    Lists are accepted for tuples, and whole numbers for floats. Subclasses are frozen dataclasses that inherit eq and
    repr from here, which makes their import faster.
    """

    def __post_init__(self) -> None:
        problems: list[Problem] = []
        wrong = set()
        for parameter in parameters_of(type(self)):
            value = getattr(self, parameter.name)
            # Parameters of a user's class are checked when a pipeline sets them. From Python they can have any value.
            if value is parameter.default or not parameter.owner.__module__.startswith("tilewright."):
                continue
            try:
                object.__setattr__(self, parameter.name, parameter.converted(value))
            except InputError as error:
                problems += error.problems
                wrong.add(parameter.name)
                object.__setattr__(self, parameter.name, parameter.default)  # so that `conflicts` sees a valid value
        problems += self.conflicts(wrong)
        if problems:
            raise InputError(dict.fromkeys(problems))

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self._values() == other._values()

    def __hash__(self) -> int:
        return hash(self._values())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.as_dict().items())})"

    def _values(self) -> tuple[Any, ...]:
        return tuple(self.as_dict().values())

    def conflicts(self, wrong: set[str]) -> Iterable[Problem]:
        """Problems of values that contradict each other. `wrong` has the names of parameters that already have a
        problem."""
        return ()

    def without_effect(self) -> dict[str, str]:
        """Reasons why parameters have no effect, by name of the parameter. The cause is always the value of another
        parameter. A reason is a sentence without its subject, such as "has no effect with one island", and is reported
        only if a person gave the parameter.
        """
        return {}

    @classmethod
    def implied(cls, given: Mapping[str, Any]) -> Mapping[str, Any]:
        """Values that replace defaults because of the parameters in `given`. For example, a preset replaces the
        defaults of several parameters."""
        return {}

    def part(self, kind: type[T], **others: Any) -> T:
        """Object of the parameter class `kind`. Parameters that both classes have keep the values of this object."""
        known = {parameter.name for parameter in parameters_of(type(self))}
        names = [parameter.name for parameter in parameters_of(kind) if parameter.name in known]
        return kind(**({name: getattr(self, name) for name in names} | others))

    def as_dict(self) -> dict[str, Any]:
        """Dict of parameter name -> value, in the order of declaration."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


def parameters_of(kind: type) -> tuple[Parameter, ...]:
    """Parameters of a dataclass, in the order of its fields."""
    return _parameters_of(kind)  # type: ignore[arg-type]  # classes are hashable


@cache
def _parameters_of(kind: type) -> tuple[Parameter, ...]:
    return tuple(_parameter(kind, field) for field in fields(kind))


def _parameter(kind: type, field: "Field[Any]") -> Parameter:
    owner = next(base for base in kind.__mro__ if field.name in inspect.get_annotations(base))
    default = field.default if field.default_factory is MISSING else field.default_factory()
    return Parameter(field.name, _hint(owner, field.type), default, owner)


def _hint(owner: type, hint: Any) -> Any:
    if not isinstance(hint, str):
        return hint
    try:
        return eval(hint, vars(sys.modules[owner.__module__]))
    except Exception:
        return Any


def made_of(kind: type[T], settings: Mapping[str, Any]) -> T:
    """Object of a parameter class, made from a dict of values by name. Raises InputError for unknown names and wrong
    values."""
    known = [parameter.name for parameter in parameters_of(kind)]
    problems = unknown_names(settings, known, "no such setting")
    try:
        made = kind(**{name: value for name, value in settings.items() if name in known})
    except InputError as error:
        problems += error.problems
    if problems:
        raise InputError(problems)
    return made


def allowed_text(parameter: Parameter) -> str:
    """Text that describes the allowed values of a parameter, with the limits of its numbers."""
    text = words(parameter.hint)
    limits = ", ".join(limit.words for limit in parameter.limits)
    return f"{text}, {limits}" if limits else text


def unknown_names(given: Iterable[str], known: Sequence[str], message: str, otherwise: str = "none") -> list[Problem]:
    """Problem for every unknown name, with the nearest known name. If no name is known, the message has `otherwise` in
    place of the allowed names."""
    found = []
    for name in given:
        if name not in known:
            nearest = nearest_name(str(name), known)
            allowed = "" if nearest else ", ".join(known) or otherwise
            found.append(Problem(message, path=str(name), allowed=allowed, nearest=nearest))
    return found


# values ---------------------------------------------------------------------------------------------------------------


class _MisfitError(Exception):
    """Error of a value that is not allowed."""

    def __init__(self, message: str, allowed: str = "", nearest: str = "", is_of_kind: bool = False) -> None:
        self.message, self.allowed, self.nearest = message, allowed, nearest
        self.is_of_kind = is_of_kind
        """True if the value has the right type, although it is not allowed."""


def _converted(hint: Any, value: Any, name: str) -> Any:
    """Value converted to the type `hint`. Lists become tuples, and whole numbers become floats where the type requires
    this."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        return _annotated(arguments[0], arguments[1:], value, name)
    if origin in _UNIONS:
        return _one_of(arguments, value, name)
    if origin is Literal:
        return _named(arguments, value)
    if origin is tuple or hint is tuple:
        return _tuple(hint, arguments, value, name)
    if origin in (list, dict) or hint in (list, dict):
        return _if(isinstance(value, origin or hint), value, hint)
    if hint is float:
        return _number(_if(isinstance(value, int | float) and not isinstance(value, bool), value, hint))
    if hint is int:
        return _if(isinstance(value, int) and not isinstance(value, bool), value, hint)
    if hint in (str, bool):
        return _if(isinstance(value, hint), value, hint)
    if hint in (None, type(None)):
        return _if(value is None, value, type(None))
    return value


def _if(fits: bool, value: Any, hint: Any) -> Any:
    if not fits:
        raise _MisfitError("wrong kind of value", words(hint))
    return value


def _annotated(hint: Any, marks: tuple[Any, ...], value: Any, name: str) -> Any:
    reader = _mark(Read, marks)
    if reader:
        return reader.read(value, name)
    told = _mark(Told, marks) or Told()
    try:
        names = _mark(OneOf, marks)
        converted = _named(names.names, value) if names else _converted(hint, value, name)
        _check_limits(_mark(Limits, marks), converted)
    except _MisfitError as misfit:
        found = (told.message or misfit.message, told.allowed or misfit.allowed, misfit.nearest, misfit.is_of_kind)
        raise _MisfitError(*found) from None
    check = _mark(ParameterCheck, marks)
    if check:
        check.check(converted)
    return converted


def _mark(kind: type[T], marks: tuple[Any, ...]) -> T | None:
    return next((mark for mark in marks if isinstance(mark, kind)), None)


def _check_limits(limits: Limits | None, value: Any) -> None:
    is_count = isinstance(value, int)
    if limits is None or (limits.hold(value) and not (is_count and value > LARGEST_COUNT)):
        return
    if is_count:
        raise _MisfitError("not a count", f"integers {limits.words}", is_of_kind=True)
    is_positive = limits.above == 0 and limits.most is None
    message = "not a positive number" if is_positive else "out of range"
    raise _MisfitError(message, f"numbers {limits.words}", is_of_kind=True)


def _one_of(hints: tuple[Any, ...], value: Any, name: str) -> Any:
    misfits = []
    for hint in hints:
        try:
            return _converted(hint, value, name)
        except _MisfitError as misfit:
            misfits.append(misfit)
    closest = next((misfit for misfit in misfits if misfit.is_of_kind), None)
    if closest is None:
        raise _MisfitError("wrong kind of value", " or ".join(map(words, hints)))
    raise closest


def _named(names: tuple[Any, ...], value: Any) -> Any:
    # True does not count as 1.
    if any(type(value) is type(name) and value == name for name in names):
        return value
    texts = [str(name) for name in names]
    is_of_kind = type(value) in {type(name) for name in names}
    raise _MisfitError("unknown value", ", ".join(texts), nearest_name(str(value)[:60], texts), is_of_kind)


def _number(value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _tuple(hint: Any, arguments: tuple[Any, ...], value: Any, name: str) -> tuple[Any, ...]:
    items = list(_if(isinstance(value, list | tuple), value, hint))
    if not arguments:
        return tuple(items)
    if len(arguments) == 2 and arguments[1] is Ellipsis:
        arguments = (arguments[0],) * len(items)
    _if(len(items) == len(arguments), value, hint)
    try:
        return tuple(_converted(argument, item, name) for argument, item in zip(arguments, items, strict=True))
    except _MisfitError as misfit:
        if misfit.is_of_kind:
            raise
        raise _MisfitError("wrong kind of value", words(hint)) from None


def words(hint: Any) -> str:
    """Text that describes a type."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        told, names = _mark(Told, arguments[1:]), _mark(OneOf, arguments[1:])
        if told and told.allowed:
            return told.allowed
        return ", ".join(names.names) if names else words(arguments[0])
    if origin in _UNIONS:
        return " or ".join(words(argument) for argument in arguments)
    if origin is Literal:
        return ", ".join(map(str, arguments))
    if origin in (tuple, list, Sequence) or hint in (tuple, list):
        many = _OF_MANY.get(arguments[0], "") if arguments else ""
        return f"a list of {many}" if many else "a list"
    if origin in (dict, Mapping) or hint is dict:
        return "a table"
    return _WORDS.get(hint, getattr(hint, "__name__", str(hint)))


def _forms(hint: Any) -> Iterator[Any]:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        yield from _forms(arguments[0])
    elif origin in _UNIONS:
        for argument in arguments:
            yield from _forms(argument)
    else:
        yield hint


def _marks(hint: Any) -> Iterator[Any]:
    if typing.get_origin(hint) is Annotated:
        yield from hint.__metadata__
    for argument in typing.get_args(hint):
        yield from _marks(argument)


def _choices(hint: Any) -> Iterator[Any]:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is Literal:
        yield from arguments
    elif origin is Annotated:
        names = _mark(OneOf, arguments[1:])
        yield from names.names if names else _choices(arguments[0])
    elif origin in _UNIONS:
        for argument in arguments:
            yield from _choices(argument)


# sentences ------------------------------------------------------------------------------------------------------------


@cache
def field_docs(kind: type) -> dict[str, str]:
    """Name of a field -> text below the field in its class, including inherited fields."""
    found: dict[str, str] = {}
    for owner in reversed(kind.__mro__):
        if owner.__module__.startswith("tilewright.") and inspect.get_annotations(owner):
            docs = _docs_of(owner)  # type: ignore[arg-type]  # classes are hashable
            found |= {name: text for name, text in docs.items() if text or name not in found}
    return found


@cache
def _docs_of(owner: type) -> dict[str, str]:
    """Name of a field -> text below the field, for the fields that a class itself declares."""
    return dict(_texts(_classes_of(inspect.getsourcefile(owner) or "").get(owner.__name__)))


@cache
def _classes_of(file: str) -> dict[str, ast.ClassDef]:
    """Classes of a module by name, as syntax trees."""
    body = ast.parse(Path(file).read_text("utf-8")).body if file else []
    return {node.name: node for node in body if isinstance(node, ast.ClassDef)}


def _texts(kind: ast.ClassDef | None) -> Iterator[tuple[str, str]]:
    if kind is None:
        return
    for node, following in zip(kind.body, [*kind.body[1:], None], strict=True):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            is_told = isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant)
            yield node.target.id, inspect.cleandoc(str(following.value.value)) if is_told else ""  # type: ignore[union-attr, attr-defined]
