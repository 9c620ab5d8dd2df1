"""Keywords of the functions that are verbs: parameters by name, files or objects.

They are what `parameter_options` are to commands: name, type and default stand in the class of a
parameter alone, and both the signature of the function and the check of names follow from it.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import wraps
from inspect import Parameter as Keyword
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from tilewright.artifacts.files import FilePath
from tilewright.cli.options import of_signature
from tilewright.cli.parameter_options import Given, Kind
from tilewright.errors import Problem, Problems
from tilewright.parameters import Parameters, allowed_text, parameters_of, unknown_names
from tilewright.workload.network_options import NetworkOptions

if TYPE_CHECKING:
    from tilewright.search.store import Store

Result = TypeVar("Result")


@dataclass(frozen=True, eq=False, repr=False)
class Named(Given[Kind]):
    """Parameters as Python gives them, by name."""

    unknown: tuple[Problem, ...] = ()
    """Names that the function does not have."""

    def __call__(self) -> Kind:
        """The parameters. Raises InputError with all that are wrong, and all names that are unknown."""
        told = Problems()
        told.found += self.unknown
        made = told.attempt(super().__call__)
        told.finish()
        assert made is not None
        return made

    def read(self, name: str) -> Any:
        """A value as it is."""
        return self.values[name]

    def over(self, options: Parameters | None) -> "Named[Kind]":
        """These, and for the rest those of an object that has parameters of the same names."""
        known = {parameter.name for parameter in parameters_of(self.kind)}
        values = {} if options is None else {name: one for name, one in options.as_dict().items() if name in known}
        return replace(self, values=values | dict(self.values))


def parameter_keywords(**kinds: type[Parameters]) -> Callable[[Callable[..., Result]], Callable[..., Result]]:
    """The parameters of classes as keywords of a function, whose arguments of these names are `Named` of them."""

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
                given[argument] = Named(kind, found, unknown)
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
    """The store of earlier results in a folder, or itself; None if none is given."""
    from tilewright.search.store import Store

    return given if given is None or isinstance(given, Store) else Store(Path(given))
