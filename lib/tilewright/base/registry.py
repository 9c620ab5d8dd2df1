"""Registries of interchangeable objects, which are selected by name and imported on first use.

A module with exchangeable objects has a `Registry`. The objects are defined in higher modules, so that the module
itself imports none of them. `tilewright.base.entries` lists the entries of tilewright itself. Other packages enter
objects by the entry point group `tilewright`: `energy_term.refresh = "their_package:REFRESH"`. The word before the
first dot is one of KINDS.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cache
from importlib import import_module
from typing import Any, Generic, NamedTuple, TypeVar

from tilewright.base.errors import InputError, Problem, nearest_name

GROUP = "tilewright"
"""Entry point group of packages that extend tilewright."""
KINDS = {
    "array": "tilewright.hardware.array_model",
    "attribute": "tilewright.hardware.attributes",
    "column": "tilewright.results.run_columns",
    "energy_term": "tilewright.cost.energy_terms",
    "latency_term": "tilewright.cost.latency_terms",
    "objective": "tilewright.base.objectives",
    "operator": "tilewright.workload.onnx.lowering",
    "schedule_term": "tilewright.multicore.scheduling.energy_terms",
    "stage": "tilewright.pipeline.stages.catalogue",
    "topology": "tilewright.hardware.topologies",
}
"""Kind of an entry point -> module of its registry."""
Entry = TypeVar("Entry")
_entries: dict[str, dict[str, str]] = {}


def enter(entries: Mapping[str, Mapping[str, str]]) -> None:
    """Enter objects into registries. The argument maps the module of a registry to its new entries, as name ->
    `module:attribute` of the object."""
    for owner, named in entries.items():
        _entries.setdefault(owner, {}).update(named)


def withdraw(entries: Mapping[str, Mapping[str, str]]) -> None:
    """Remove entries that `enter` made."""
    for owner, named in entries.items():
        for name in named:
            del _entries[owner][name]


def all_entered() -> tuple[tuple[str, str, str], ...]:
    """Entries made by `enter`, as (module of the registry, name, `module:attribute` of the object). The list is sorted
    by registry; within a registry, the entries keep the order of entry. The code of a step depends on these entries, so
    caches of code digests use the list as a key.
    """
    return tuple((owner, name, entry) for owner, named in sorted(_entries.items()) for name, entry in named.items())


def entered(owner: str) -> tuple[str, ...]:
    """Modules that contain the objects of the registry in the module `owner`."""
    return tuple(entry.partition(":")[0] for entry in _named(owner).values())


def installed() -> dict[str, str]:
    """Entry points of all installed packages in the group GROUP: name (`kind.name`) -> `module:attribute` of the
    object, sorted by name. Raises InputError for an unknown kind, and for two entry points with the same name and
    different objects.
    """
    from importlib.metadata import entry_points

    found: dict[str, str] = {}
    problems = []
    for point in sorted(entry_points(group=GROUP), key=lambda point: (point.name, point.value)):
        kind, dot, name = point.name.partition(".")
        place = f"entry point {point.name} of {point.dist.name if point.dist else point.value}"
        if kind not in KINDS or not dot or not name:
            nearest = nearest_name(kind, tuple(KINDS))
            allowed = f"<kind>.<name> with {', '.join(KINDS)}"
            problems.append(Problem("has no known kind", place, value=point.name, allowed=allowed, nearest=nearest))
        elif found.get(point.name, point.value) != point.value:
            problems.append(
                Problem(f"is also the name of {found[point.name]} in another package", place, value=point.value)
            )
        else:
            found[point.name] = point.value
    if problems:
        raise InputError(problems)
    return found


def package_of(point: str) -> str:
    """Name and version of the installed package that declares an entry point; '' if there is no such package."""
    from importlib.metadata import entry_points

    found = {one.dist for one in entry_points(group=GROUP, name=point) if one.dist}
    return ", ".join(sorted({f"{package.name} {package.version}" for package in found}))


def _named(owner: str) -> dict[str, str]:
    """Dict of name -> `module:attribute` of the object under this name in the registry of the module `owner`. The
    entries made by `enter` come first. The entries of installed packages follow, sorted by name.

    Raises InputError if a name is in both groups, because the name is then ambiguous.
    """
    own, others = _entries.get(owner, {}), _of_others(owner)
    if both := sorted(own.keys() & others.keys()):
        problems = [
            Problem(f"has the same name as {own[name]}", f"plug-in {name}", value=others[name]) for name in both
        ]
        raise InputError(problems)
    return {**own, **others}


def _of_others(owner: str) -> dict[str, str]:
    """Objects of installed packages for the registry of the module `owner`: name -> `module:attribute`. The result is
    {} if the registry is not in KINDS."""
    return _installed_by_registry().get(owner, {}) if owner in KINDS.values() else {}


@cache
def _installed_by_registry() -> dict[str, dict[str, str]]:
    """Module of a registry -> {name: `module:attribute` of an object of an installed package}. The result is cached,
    because installed packages do not change during a run.
    """
    found: dict[str, dict[str, str]] = {}
    for point, entry in installed().items():
        kind, _, name = point.partition(".")
        found.setdefault(KINDS[kind], {})[name] = entry
    return found


class Registry(Generic[Entry]):
    """Registry of the objects of one module. `owner` is the `__name__` of the module.

    `fault(name, object)` returns the reason why the object cannot be entered under the name, such as a wrong type or a
    name in use. It returns '' if the object can be entered.
    """

    def __init__(self, owner: str, fault: Callable[[str, Any], str] = lambda name, entry: "") -> None:
        self.owner, self._fault = owner, fault
        self._sound: dict[str, Any] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the objects. Names entered by `enter` come first, in the order of entry. The names from installed
        packages follow, sorted. No object is imported.
        """
        return tuple(_named(self.owner))

    def __getitem__(self, name: str) -> Entry:
        """Object under a name.

        Raises KeyError for an unknown name. Raises InputError if an object of another package cannot be imported, and
        for an object in which `fault` of the registry finds a fault.
        """
        entry = _named(self.owner)[name]
        module, _, attribute = entry.partition(":")
        try:
            found: Any = getattr(import_module(module), attribute)
        except (Exception, SystemExit) as error:
            if entry != _of_others(self.owner).get(name):
                raise
            what = f"{type(error).__name__}: {error}"
            raise InputError([Problem(f"cannot be loaded: {what}", f"plug-in {name}", value=entry)]) from error
        if self._sound.get(name) is not found:  # checked only once, because every layer asks for array models
            if reason := self._fault(name, found):
                raise InputError([Problem(reason, f"plug-in {name}", value=entry)])
            self._sound[name] = found
        return found  # type: ignore[no-any-return]


def registry_of(kind: str) -> Registry[Any]:
    """Registry of a kind in KINDS."""
    module = import_module(KINDS[kind])
    (found,) = [value for value in vars(module).values() if isinstance(value, Registry)]
    return found


def taken(name: str, known: Collection[str]) -> str:
    """Reason to refuse an entry that has the name of a built-in object; '' for any other name."""
    return f"has the name {name}, which is built in" if name in known else ""


class Member(NamedTuple):
    """Attribute that the objects of a kind need."""

    name: str
    arguments: tuple[str, ...] | None
    """Names of the arguments with which tilewright calls the method; None for an attribute that is not a method."""


def lacking(entry: object, members: Iterable[Member]) -> str:
    """Reason to refuse an object that lacks attributes of its kind, or whose methods do not accept their arguments; ''
    if there is no reason.
    """
    members = tuple(members)
    lacks = [one.name for one in members if not hasattr(entry, one.name)]
    if lacks:
        return f"has no {', '.join(lacks)}, which this kind needs"
    wrong = [one for one in members if one.arguments is not None and not _accepts(getattr(entry, one.name), one)]
    if wrong and isinstance(entry, type):
        return f"is the class {entry.__name__}, but this kind needs an object of it: {entry.__name__}()"
    calls = ", ".join(f"{one.name}({', '.join(one.arguments or ())})" for one in wrong)
    return f"has methods that do not accept their arguments: this kind needs {calls}" if wrong else ""


def _accepts(method: object, member: Member) -> bool:
    """True if a method accepts the arguments of a member. The result is also True if Python does not know which
    arguments the method accepts.
    """
    import inspect

    if not callable(method):
        return False
    try:
        inspect.signature(method).bind(*(member.arguments or ()))
    except TypeError:
        return False
    except ValueError:
        return True
    return True


def methods_of(protocol: type) -> tuple[Member, ...]:
    """Methods and properties that a protocol declares."""
    found = ((name, one) for name, one in vars(protocol).items() if not name.startswith("_"))
    return tuple(Member(name, _arguments(one)) for name, one in found)


def _arguments(declared: object) -> tuple[str, ...] | None:
    """Names of the arguments, except `self`, that a declared method takes; None for a property."""
    code = getattr(declared, "__code__", None)
    return None if code is None else code.co_varnames[1 : code.co_argcount]
