"""Verbs of the command line, each made from the Python function that does its work.

The signature of the function declares the options of the verb. Names, types and defaults come from this signature. Help
texts and limits are annotations, which are removed after they are read. If the annotation of an argument is a class of
parameters, the verb gets all options of this class. Some argument names, such as `network_options`, stand for a group
of options that several verbs share.
"""

import functools
import inspect
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from inspect import Parameter as Keyword
from os import PathLike
from typing import Annotated, Any, ForwardRef, Literal, NamedTuple, TypeVar, Union, get_args, get_origin

import click

from tilewright.base.parameters import Limits, OneOf, Parameters
from tilewright.cli.options import (
    FILE,
    common_options,
    echo_notices,
    jobs_option,
    network_options,
    only_option,
    pipeline_option,
    refuse_paper,
    store_options,
    strict_option,
)
from tilewright.cli.parameter_options import Named, parameter_option, parameter_options
from tilewright.results.other_widths import noting_removed, removed_notice
from tilewright.results.paper_notices import noting
from tilewright.results.sheet import PaperOptions, drawn_for

Function = TypeVar("Function", bound=Callable[..., Any])
Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]
_FILES = ("FilePath", "WorkloadSource", "AcceleratorSource", "MappingSource")
DECLARED: "dict[str, Verb]" = {}
"""Verbs, by name of the module that defines the function of the verb."""


class Help(NamedTuple):
    """Option of a verb with its help: `Annotated[FilePath, Help("File to write.")]`."""

    text: str
    flag: str = ""
    """Name of the option on the command line, if it differs from the name of the parameter."""
    metavar: str | None = None
    type: Any = None
    """Type of the value on the command line; None if it is the same as in Python."""
    is_required: bool = False
    """True if the command requires the option although the Python function has a default for it."""
    default: Any = None
    """Default on the command line, if its text differs from the Python default."""


class Argument(NamedTuple):
    """Positional argument of a verb: `Annotated[FilePath, ARGUMENT]`."""

    metavar: str | None = None
    type: Any = None
    is_required: bool = False
    """True if at least one value must be given. Only arguments that take several values use this field."""


ARGUMENT = Argument()
HARDWARE_FILE = Help("Hardware file or artifact.", is_required=True)
SYSTEM_FILE = Help("File or artifact of an accelerator of several cores.", is_required=True)
NETWORK_FILE = Help("ONNX or YAML file, or artifact.", is_required=True)
MAPPING_FILE = Help("Mapping file or artifact.", is_required=True)
"""Help texts of the options for input files. The command requires these options, even if a Python caller can pass the
input in another argument.
"""


class Paper(NamedTuple):
    """Option --paper of a verb that writes figures or tables: `Annotated[PaperWidth | None, Paper("output")]`.

    With this option, the verb and its Python function make all figures and tables for a paper of the given width.
    """

    needed: tuple[str, ...] = ()
    """Names of the parameters for the paths of written files. With --paper, the user must give at least one of them. ()
    if the verb always writes files.
    """


class OptionOf(NamedTuple):
    """Annotation of an argument whose option is declared by the class of parameters `kind`. Only the default of the
    option comes from the argument. Example: `model: Annotated[str, OptionOf(ModelChoice)] = "corrected"`.
    """

    kind: type[Parameters]


def silent(notices: Sequence[str]) -> None:
    """Function that prints no notices. Calls from Python pass it as `tell`, because their results contain the
    notices.
    """


Tell = Callable[[Sequence[str]], None]


@dataclass(frozen=True, eq=False, repr=False)
class Verb:
    """Verb of the command line. It has a help text, options, and two functions: `run` makes the result, and `show`
    prints it.
    """

    function: Callable[..., Any]
    signature: inspect.Signature
    """Signature of the function. The annotations contain the help texts of the options. A class of parameters is a
    single argument here.
    """
    text: str
    run: Callable[..., Any]
    """Function that makes the result: `function` itself, or a function whose result has more details for `show`."""
    show: Callable[..., Any]
    order: Sequence[str]
    """Names of the options that the help lists first."""
    strict: str
    """Further condition under which --strict fails, for the help text of --strict."""
    shared: Mapping[str, Decorator]
    settings: Mapping[str, Any]

    def command(self) -> click.Command:
        """Click command with all options."""
        known = self.signature.parameters
        ordered = [*self.order, *(name for name in known if name not in self.order)]
        decorators = [made for name in ordered for made in self._options(known[name])]

        def called(**values: Any) -> Any:
            return self._called(values)

        callback: Callable[..., Any] = common_options(called)
        for decorate in reversed(decorators):
            callback = decorate(callback)
        declare: Any = click.command(self.function.__name__, help=self.text, **self.settings)
        command: click.Command = declare(callback)
        return command

    def _called(self, values: Mapping[str, Any]) -> Any:
        """Make the result, then show it. Options that are not given have the defaults of the function."""
        without = {"store"} if values.get("no_store") else set()
        known = self.signature.parameters.items()
        defaults = {name: one.default for name, one in known if one.default is not Keyword.empty}
        given = {
            name: value
            for name, value in values.items()
            if not (value is None or name in without or (value == () and name in defaults))
        }
        told = {**defaults, "tell": echo_notices, "show_progress": not values["as_json"], **given}
        with _for_paper(self.signature, told):
            return _by_name(self.show, told, _by_name(self.run, told))

    def _options(self, parameter: Keyword) -> Iterator[Decorator]:
        """Decorators that add the options of a parameter; none for a parameter that only Python callers can give."""
        if get_origin(parameter.annotation) is Named:
            yield parameter_options(get_args(parameter.annotation)[0], parameter.name)
        elif parameter.name == "jobs" and "store" in self.signature.parameters:
            return  # the options of the store contain --jobs
        elif parameter.name in ("strict", *_SHARED) and not _marks(parameter.annotation, Help):
            shared: dict[str, Decorator] = {"strict": strict_option(self.strict), **_SHARED, **self.shared}
            yield shared[parameter.name]
        elif _marks(parameter.annotation, Paper):
            yield parameter_option(PaperOptions, parameter.name)
        elif declared := _marks(parameter.annotation, OptionOf):
            yield parameter_option(declared[0].kind, parameter.name, default=parameter.default)
        elif found := _marks(parameter.annotation, Argument):
            yield _argument(parameter, found[0])
        elif told := _marks(parameter.annotation, Help):
            yield _option(parameter, told[0])


_SHARED: dict[str, Decorator] = {
    "network_options": network_options,
    "pipeline": pipeline_option,
    "only": only_option,
    "store": store_options,
    "jobs": jobs_option,
}
"""Decorators of options that several verbs share, by name of the argument."""


def verb(
    text: str,
    *,
    show: Callable[..., Any],
    run: Callable[..., Any] | None = None,
    order: str = "",
    strict: str = "",
    shared: Mapping[str, Decorator] | None = None,
    settings: Mapping[str, Any] | None = None,
) -> Callable[[Function], Function]:
    """Decorator that declares a function as a verb of the command. `text` is the text of `--help`. Python callers of
    the function see no difference.

    `run` makes the result for the command line; by default, the function itself makes it. A verb gives `run` if the
    result of the function has too few details for `show`. `show` prints the result, which is its first argument. Both
    functions also get keyword arguments, but only those that they accept: the arguments of the verb, `verbose`,
    `as_json`, `tell` (prints notices) and `show_progress`.

    `order` has the names of the options that the help lists first, separated by spaces. `strict` is a further condition
    under which --strict fails, besides input without effect. `shared` has decorators, by name of the argument, for
    shared options that this verb declares differently. `settings` are settings of the click command.
    """

    def declare(function: Function) -> Function:
        inner = inspect.unwrap(function)
        own = inspect.signature(inner)
        told = (order.split(), strict, shared or {}, settings or {})
        DECLARED[function.__module__] = Verb(function, own, text, run or inner, show, *told)
        made = _writing_for_paper(function, own) if "paper" in own.parameters else function
        _remove_help(made)
        return made

    return declare


@contextmanager
def _for_paper(signature: inspect.Signature, told: Mapping[str, Any]) -> Iterator[None]:
    """Context in which all figures and tables are made for a paper, if the option --paper of the verb is given.

    Out-of-date files of another width are removed, and a notice names them. Raises InputError if the width is unknown,
    or if --paper is given although no file is written.
    """
    marks = _marks(signature.parameters["paper"].annotation, Paper) if "paper" in signature.parameters else []
    if not marks:
        yield
        return
    given = [told.get(name) for name in marks[0].needed]
    names = " or ".join(f"`{name}`" for name in marks[0].needed)
    refuse_paper(told.get("paper"), (names, any(given) or not given))
    with drawn_for(told.get("paper")), noting_removed() as removed, noting() as noted:
        yield
    echo_notices([*filter(None, [removed_notice(removed)]), *noted])


def _writing_for_paper(function: Function, signature: inspect.Signature) -> Function:
    """Function that wraps `function`, the function of a verb with the option --paper. If the option is given, all
    figures and tables of the call are made for a paper of the given width.
    """

    @functools.wraps(function)
    def made(*arguments: Any, **keywords: Any) -> Any:
        told = {**dict(zip(signature.parameters, arguments, strict=False)), **keywords}
        with _for_paper(signature, told):
            return function(*arguments, **keywords)

    changed: Any = made
    return changed  # type: ignore[no-any-return]


def command_of(module: str) -> click.Command:
    """Click command of the verb in a module. The module is imported."""
    imported = import_module(module)
    if module in DECLARED:
        return DECLARED[module].command()
    command: click.Command = imported.command
    return command


def _by_name(function: Callable[..., Any], told: Mapping[str, Any], *first: Any) -> Any:
    """Call a function with `first`, and with the values of `told` whose names are parameters of the function. Returns
    the result of the function.
    """
    names = [*inspect.signature(function).parameters][len(first) :]
    return function(*first, **{name: told[name] for name in names if name in told})


# from annotations -----------------------------------------------------------------------------------------------------


def _marks(annotation: Any, kind: type[Any]) -> list[Any]:
    """Parts of an `Annotated` type that are instances of a given class."""
    return [one for one in getattr(annotation, "__metadata__", ()) if isinstance(one, kind)]


def _bare(annotation: Any) -> Any:
    """Annotation without its help: `Annotated` and its metadata are removed."""
    if get_origin(annotation) is not Annotated:
        return annotation
    inner = annotation.__origin__
    return inner.__forward_arg__ if isinstance(inner, ForwardRef) else inner


def _remove_help(function: Callable[..., Any]) -> None:
    """Remove the help from the signature of a function, and of all functions that it wraps. Readers of the Python
    signature then see only types.
    """
    while function is not None:
        function.__annotations__ = {name: _bare(one) for name, one in function.__annotations__.items()}
        if "__signature__" in vars(function):
            own = inspect.signature(function)
            bare = [one.replace(annotation=_bare(one.annotation)) for one in own.parameters.values()]
            function.__signature__ = own.replace(parameters=bare)  # type: ignore[attr-defined]
        function = vars(function).get("__wrapped__")  # type: ignore[assignment]


def _argument(parameter: Keyword, told: Argument) -> Decorator:
    given, is_several = _type_of(parameter)
    settings: dict[str, Any] = {"nargs": -1, "required": told.is_required} if is_several else {}
    if parameter.default not in (Keyword.empty, None, ()):
        settings["default"] = parameter.default
    return click.argument(parameter.name, type=told.type or given, metavar=told.metavar, **settings)


def _option(parameter: Keyword, told: Help) -> Decorator:
    flag = told.flag or f"--{parameter.name.replace('_', '-')}"
    default = None if told.is_required or parameter.default is Keyword.empty else told.default or parameter.default
    settings: dict[str, Any] = {"help": told.text, "required": told.is_required or parameter.default is Keyword.empty}
    if _bare(parameter.annotation) is bool:
        if default:
            flag, settings["show_default"] = f"{flag}/--no-{flag.removeprefix('--')}", True
        return click.option(flag, parameter.name, is_flag=True, default=default, **settings)
    settings["type"], settings["multiple"] = (told.type, False) if told.type else _type_of(parameter)
    if default not in (None, "", ()) and not settings["multiple"]:
        settings |= {"default": default, "show_default": "default:" not in told.text}
    short = ("-o",) if parameter.name == "output" else ()
    return click.option(*short, flag, parameter.name, metavar=told.metavar, **settings)


def _type_of(parameter: Keyword) -> tuple[Any, bool]:
    """Pair (click type of the values of a parameter, True if several values can be given)."""
    annotation = _bare(parameter.annotation)
    if isinstance(annotation, str):
        parts = annotation.replace("[", " ").replace("]", " ").split()
        return (FILE if any(part in _FILES for part in parts) else None), annotation.startswith("Sequence")
    several = next((form for form in (annotation, *get_args(annotation)) if get_origin(form) is Sequence), None)
    return _click_type(get_args(several)[0] if several else annotation, parameter), several is not None


def _click_type(annotation: Any, parameter: Keyword) -> Any:
    """Click type of one value; None for text."""
    if named := _marks(parameter.annotation, OneOf):
        return click.Choice(named[0].names)
    forms = get_args(annotation) if get_origin(annotation) in (Union, types.UnionType) else (annotation,)
    if any(get_origin(form) is PathLike for form in forms):
        return FILE
    if get_origin(forms[0]) is Literal:
        return click.Choice([choice for choice in get_args(forms[0]) if choice])
    if forms[0] not in (int, float):
        return None
    limits = next(iter(_marks(parameter.annotation, Limits)), None)
    if limits is None:
        return forms[0]
    ranged: Any = click.IntRange if forms[0] is int else click.FloatRange
    return ranged(limits.least if limits.above is None else limits.above, min_open=limits.above is not None)
