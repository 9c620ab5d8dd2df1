"""Options of verbs, made from classes of parameters: name, type, limits, default and help stand in the class alone.

Commands get functions that make the parameters: what is wrong with them is told together with what is wrong with files.
"""

import json
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import click

from tilewright.configuration.arguments import default_text, flag_of
from tilewright.errors import InputError, Problem, Problems, shown
from tilewright.parameters import Parameter, Parameters, parameters_of

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

Function = TypeVar("Function", bound=Callable[..., Any])
Kind = TypeVar("Kind", bound=Parameters)
_NOTHING = ("none", "null")
_STRUCTURES = (list, tuple, dict, Sequence, Mapping)


@dataclass(frozen=True, eq=False, repr=False)
class Given(Generic[Kind]):
    """Parameters as a command line gives them."""

    kind: type[Kind]
    values: Mapping[str, Any]
    """Those that are given; lists and tables are JSON."""

    def __call__(self) -> Kind:
        """The parameters; what is not given has its default. Raises InputError with all that are wrong."""
        told = Problems()
        names = [parameter.name for parameter in parameters_of(self.kind) if parameter.name in self.values]
        read = {name: told.attempt(self.read, name) for name in names}
        unreadable = {problem.path for problem in told.found}
        made = told.attempt(self.kind, **{name: value for name, value in read.items() if name not in unreadable})
        told.finish()
        assert made is not None
        return made

    def read(self, name: str) -> Any:
        """What the text of a parameter says. Raises InputError for what is no JSON."""
        parameter = next(parameter for parameter in parameters_of(self.kind) if parameter.name == name)
        return _value_of(parameter, self.values[name])

    def sound(self, essential: Sequence[str]) -> Kind | None:
        """The parameters without those that are wrong, for checks of everything else; None if one of the essential
        ones is wrong."""
        told = Problems()
        made = told.attempt(self)
        wrong = {problem.path.partition("[")[0] for problem in told.found}
        if made is not None or not wrong.isdisjoint(essential):
            return made
        others = {name: value for name, value in self.values.items() if name not in wrong}
        return told.attempt(type(self)(self.kind, others))


def parameter_options(kind: type[Parameters], argument: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The parameters of a class as options: the argument of that name of the command is `Given` of them."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def with_parameters(*args: Any, **values: Any) -> Any:
            told = {parameter.name: values.pop(parameter.name) for parameter in parameters_of(kind)}
            given = {name: value for name, value in told.items() if value is not None}
            return function(*args, **{argument: Given(kind, given)}, **values)

        for parameter in reversed(parameters_of(kind)):
            declare = click.option(*_declarations(parameter), cls=_Option, parameter=parameter, default=None)
            with_parameters = declare(with_parameters)
        return with_parameters

    return decorate


def parameter_option(kind: type[Parameters], name: str, **changed: Any) -> Callable[[Function], Function]:
    """One parameter of a class as an option, given as text to the command; for verbs with another default."""
    parameter = next(parameter for parameter in parameters_of(kind) if parameter.name == name)
    return click.option(*_declarations(parameter), cls=_Option, parameter=replace(parameter, **changed), **changed)


def _declarations(parameter: Parameter) -> tuple[str, str]:
    flag = flag_of(parameter)
    return (f"{flag}/{flag_of(parameter, 'no-')}" if parameter.is_switch else flag), parameter.name


class _Option(click.Option):
    """An option whose help is read from the class of its parameter when somebody asks for it."""

    def __init__(self, declarations: Sequence[str], parameter: Parameter, **others: Any) -> None:
        super().__init__(declarations, metavar=_metavar(parameter), **others)
        self.parameter = parameter

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """The flag with its metavar, and sentence, limits and default of the parameter."""
        notes = [*parameter_limits(self.parameter), f"default: {default_text(self.parameter)}"]
        self.help = f"{self.parameter.sentence}  [{'; '.join(notes)}]"
        return super().get_help_record(ctx)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> "list[CompletionItem]":
        """The values that its class lists."""
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
    """The limits of a number, in words."""
    return [limits.words for limits in parameter.limits]


def _is_structure(parameter: Parameter) -> bool:
    return any((typing.get_origin(form) or form) in _STRUCTURES for form in parameter.forms)


def _value_of(parameter: Parameter, given: str | bool) -> Any:
    """What a text says; text that is of no type of the parameter stays text. Raises InputError for what is no JSON."""
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
