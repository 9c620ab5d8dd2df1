"""Options of verbs and keywords of Python functions, made from classes of parameters.

A class of parameters declares the name, type, default, limits and help of each parameter. The options of a command, the
signature of a Python function, and the check of its keywords are made from this class. A command gets a `Given` with
unchecked values instead of an object of the class. A call of the `Given` checks the values and returns the object. The
command can therefore report wrong parameters together with wrong files.
"""

import json
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from inspect import Parameter as Keyword
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import click

from tilewright.base.artifacts.files import FilePath
from tilewright.base.errors import InputError, Problem, Problems, Unused, shown
from tilewright.base.parameters import Parameter, Parameters, allowed_text, parameters_of, unknown_names
from tilewright.base.unused import unused_option
from tilewright.cli.options import echo_notices, is_given, of_signature, repeated_options
from tilewright.pipeline.configuration.arguments import default_text, flag_of
from tilewright.workload.network_options import NetworkOptions

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from tilewright.search.store import Store


Function = TypeVar("Function", bound=Callable[..., Any])
Kind = TypeVar("Kind", bound=Parameters)
_NOTHING = ("none", "null")
_STRUCTURES = (list, tuple, dict, Sequence, Mapping)


@dataclass(frozen=True, eq=False, repr=False)
class Given(Generic[Kind]):
    """Unchecked values of parameters from a command line. A call of this object checks the values, and returns the
    parameters as an object of the class `kind`.
    """

    kind: type[Kind]
    values: Mapping[str, Any]
    """Values that the user gave, by name of the parameter; lists and tables are JSON texts."""
    repeated: tuple[Unused, ...] = ()
    """Notices of all options of the command that are given more than once."""

    def __call__(self) -> Kind:
        """Parameters, with defaults for values that are not given. Raises InputError with all wrong values."""
        told = Problems()
        names = [parameter.name for parameter in parameters_of(self.kind) if parameter.name in self.values]
        read = {name: told.attempt(self.read, name) for name in names}
        unreadable = {problem.path for problem in told.found}
        made = told.attempt(self.kind, **{name: value for name, value in read.items() if name not in unreadable})
        told.finish()
        assert made is not None
        return made

    def read(self, name: str) -> Any:
        """Value of a parameter, read from its text. Raises InputError for invalid JSON."""
        parameter = next(parameter for parameter in parameters_of(self.kind) if parameter.name == name)
        return _value_of(parameter, self.values[name])

    def unused(self) -> list[Unused]:
        """Notices of options that other options switch off, and of options that are given more than once.

        If a value is wrong, only repeated options have notices.
        """
        made = Problems().attempt(self)
        without_effect = {} if made is None else made.without_effect()
        overruled = [
            unused_option(name, why, getattr(made, name)) for name, why in without_effect.items() if name in self.values
        ]
        return [*self.repeated, *overruled]

    def sound(self, essential: Sequence[str]) -> Kind | None:
        """Parameters in which defaults replace wrong values, so that the files can be checked although some options are
        wrong. None if a parameter in `essential` has a wrong value.
        """
        told = Problems()
        made = told.attempt(self)
        wrong = {problem.path.partition("[")[0] for problem in told.found}
        if made is not None or not wrong.isdisjoint(essential):
            return made
        others = {name: value for name, value in self.values.items() if name not in wrong}
        return told.attempt(type(self)(self.kind, others))


def parameter_options(kind: type[Parameters], argument: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add the parameters of a class as options of a command. The command gets their values as a `Given`, in the
    argument whose name is `argument`.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def with_parameters(*args: Any, **values: Any) -> Any:
            told = {parameter.name: values.pop(parameter.name) for parameter in parameters_of(kind)}
            given = {name: value for name, value in told.items() if value is not None}
            parameters = Given(kind, given, tuple(repeated_options()))
            # With a pipeline, its stages decide which options are unused. With strict, the verb reports them as errors.
            if not is_given(values.get("pipeline")) and not values.get("strict"):
                echo_notices(parameters.unused())
            return function(*args, **{argument: parameters}, **values)

        for parameter in reversed(parameters_of(kind)):
            declare = click.option(*_declarations(parameter), cls=_Option, parameter=parameter, default=None)
            with_parameters = declare(with_parameters)
        return with_parameters

    return decorate


def parameter_option(kind: type[Parameters], name: str, **changed: Any) -> Callable[[Function], Function]:
    """Add one parameter of a class as an option. `changed` replaces fields of the parameter, such as the default. The
    command gets the value as text.
    """
    parameter = next(parameter for parameter in parameters_of(kind) if parameter.name == name)
    return click.option(*_declarations(parameter), cls=_Option, parameter=replace(parameter, **changed), **changed)


def _declarations(parameter: Parameter) -> tuple[str, str]:
    flag = flag_of(parameter)
    return (f"{flag}/{flag_of(parameter, 'no-')}" if parameter.is_switch else flag), parameter.name


class _Option(click.Option):
    """Option whose help text is read from the class of the parameter only when the help is printed."""

    def __init__(self, declarations: Sequence[str], parameter: Parameter, **others: Any) -> None:
        super().__init__(declarations, metavar=_metavar(parameter), **others)
        self.parameter = parameter

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Pair (flag with its metavar, help text). The help text has the description, the limits and the default of the
        parameter.
        """
        notes = [*parameter_limits(self.parameter), f"default: {default_text(self.parameter)}"]
        self.help = f"{self.parameter.sentence}  [{'; '.join(notes)}]"
        return super().get_help_record(ctx)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> "list[CompletionItem]":
        """Completions of the option: the allowed values in the class of the parameter."""
        from click.shell_completion import CompletionItem

        return [CompletionItem(text) for text in map(str, self.parameter.choices) if text.startswith(incomplete)]


def _metavar(parameter: Parameter) -> str | None:
    if parameter.is_switch:
        return None
    if parameter.choices:
        return f"[{'|'.join(map(str, parameter.choices))}]"
    if _is_structure(parameter):
        return "JSON"
    return "INTEGER" if int in parameter.forms else "NUMBER" if float in parameter.forms else "TEXT"


def parameter_limits(parameter: Parameter) -> list[str]:
    """Texts on the limits of a parameter, one for each limit."""
    return [limits.words for limits in parameter.limits]


def _is_structure(parameter: Parameter) -> bool:
    return any((typing.get_origin(form) or form) in _STRUCTURES for form in parameter.forms)


def _value_of(parameter: Parameter, given: str | bool) -> Any:
    """Value of a parameter, read from a text. If the text fits no type of the parameter, the value is the text. Raises
    InputError for invalid JSON.
    """
    if isinstance(given, bool):
        return given
    if given.lower() in _NOTHING and type(None) in parameter.forms:
        return None
    if _is_structure(parameter):
        try:
            return json.loads(given)
        except (ValueError, RecursionError):
            told = Problem("is not JSON", path=parameter.name, value=shown(given), allowed='as [["OY", "all"]]')
            raise InputError([told]) from None
    for kind in (int, float):
        if kind in parameter.forms or any(type(choice) is kind for choice in parameter.choices):
            try:
                return kind(given)
            except ValueError:
                continue
    return given


Result = TypeVar("Result")


@dataclass(frozen=True, eq=False, repr=False)
class Named(Given[Kind]):
    """Unchecked values of parameters that a Python caller gave by name. A call of this object checks the values, and
    returns the parameters as an object of the class `kind`.
    """

    unknown: tuple[Problem, ...] = ()
    """Problems of keywords that the function does not have."""

    def __call__(self) -> Kind:
        """Parameters. Raises InputError with all wrong values and all unknown names."""
        told = Problems()
        told.found += self.unknown
        made = told.attempt(super().__call__)
        told.finish()
        assert made is not None
        return made

    def read(self, name: str) -> Any:
        """Value of a parameter, unchanged."""
        return self.values[name]

    def over(self, options: Parameters | None) -> "Named[Kind]":
        """Parameters with the values that were given by name; other values come from the object `options`."""
        known = {parameter.name for parameter in parameters_of(self.kind)}
        defaults = {parameter.name: parameter.default for parameter in parameters_of(self.kind)}
        # A value of the object that is equal to the default counts as not given.
        given = {} if options is None else options.as_dict()
        defaults |= self.kind.implied(given)
        values = {name: one for name, one in given.items() if name in known and one != defaults[name]}
        return replace(self, values=values | dict(self.values))


def parameter_keywords(**kinds: type[Parameters]) -> Callable[[Callable[..., Result]], Callable[..., Result]]:
    """Add the parameters of classes as keywords of a function. `kinds` maps some arguments of the function to classes
    of parameters. Each of these arguments gets a `Named` with the parameters of its class.
    """

    def decorate(function: Callable[..., Result]) -> Callable[..., Result]:
        own = [one for name, one in signature(function).parameters.items() if name not in kinds]
        names = [one.name for one in own]
        names_of = {argument: [one.name for one in parameters_of(kind)] for argument, kind in kinds.items()}
        known = [*dict.fromkeys(name for group in names_of.values() for name in group), *names]
        known += NetworkOptions._fields if "network_options" in names else []

        @wraps(function)
        def with_parameters(*args: Any, **values: Any) -> Result:
            unknown = tuple(unknown_names((name for name in values if name not in names), known, "no such setting"))
            given = {name: value for name, value in values.items() if name in names}
            for argument, kind in kinds.items():
                found = {name: values[name] for name in names_of[argument] if name in values}
                given[argument] = Named(kind, found, unknown=unknown)
            return function(*args, **given)

        keywords = {
            one.name: Keyword(one.name, Keyword.KEYWORD_ONLY, default=one.default, annotation=allowed_text(one))
            for kind in kinds.values()
            for one in parameters_of(kind)
        }
        with_parameters.parameter_kinds = tuple(kinds.values())  # type: ignore[attr-defined]  # for `type_stub`
        return of_signature(with_parameters, [*own, *keywords.values()])

    return decorate


def store_of(given: "FilePath | Store | None") -> "Store | None":
    """Store of earlier results in the given folder. A store object is returned unchanged; None gives None."""
    from tilewright.search.store import Store

    return given if given is None or isinstance(given, Store) else Store(Path(given))
