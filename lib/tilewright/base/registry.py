"""Registries of entries that can be exchanged by name; an entry is a text, and its object is imported when used.

A module with such entries has a `Registry`; what is entered in it lies above that module, so that nothing there imports
or knows it. `tilewright.base.entries` lists what is entered when the package is imported. Packages of others enter
theirs by the entry point group `tilewright`: `energy_term.refresh = "their_package:REFRESH"`, with one of KINDS before
the point.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cache
from importlib import import_module
from typing import Any, Generic, TypeVar

from tilewright.base.errors import InputError, Problem, nearest_name

GROUP = "tilewright"
"""The entry point group of packages that extend this one."""
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
"""Kind of an entry point -> module of the registry."""
Entry = TypeVar("Entry")
_entries: dict[str, dict[str, str]] = {}


def enter(entries: Mapping[str, Mapping[str, str]]) -> None:
    """Enter `module:attribute` under a name in the registry of a module: module of the registry -> name -> entry."""
    for owner, named in entries.items():
        _entries.setdefault(owner, {}).update(named)


def withdraw(entries: Mapping[str, Mapping[str, str]]) -> None:
    """Undo `enter`."""
    for owner, named in entries.items():
        for name in named:
            del _entries[owner][name]


def all_entered() -> tuple[tuple[str, str, str], ...]:
    """(registry, name, entry) of all that `enter` gave until now, in order: what is known of them may be kept by it."""
    return tuple((owner, name, entry) for owner, named in sorted(_entries.items()) for name, entry in named.items())


def entered(owner: str) -> tuple[str, ...]:
    """The modules that the registry of a module may import."""
    return tuple(entry.partition(":")[0] for entry in _named(owner).values())


def installed() -> dict[str, str]:
    """Entry point of an installed package, `kind.name` -> its entry, in the order of names.

    Raises InputError for entry points of an unknown kind, and for two that have one name.
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
            problems.append(Problem("is of no known kind", place, value=point.name, allowed=allowed, nearest=nearest))
        elif found.get(point.name, point.value) != point.value:
            problems.append(Problem(f"is {found[point.name]} of another package too", place, value=point.value))
        else:
            found[point.name] = point.value
    if problems:
        raise InputError(problems)
    return found


def _named(owner: str) -> dict[str, str]:
    """Entries of a registry by name: first those that `enter` gave, then those of installed packages by name.

    Raises InputError where both have a name: which one is meant is not known.
    """
    own, others = _entries.get(owner, {}), _of_others(owner)
    if both := sorted(own.keys() & others.keys()):
        problems = [Problem(f"has the name of {own[name]}", f"plug-in {name}", value=others[name]) for name in both]
        raise InputError(problems)
    return {**own, **others}


def _of_others(owner: str) -> dict[str, str]:
    """Entries of installed packages in a registry, by name; other registries than those of KINDS have none."""
    return _installed_by_registry().get(owner, {}) if owner in KINDS.values() else {}


@cache
def _installed_by_registry() -> dict[str, dict[str, str]]:
    """Entries of installed packages: module of the registry -> name -> entry. They do not change while this runs."""
    found: dict[str, dict[str, str]] = {}
    for point, entry in installed().items():
        kind, _, name = point.partition(".")
        found.setdefault(KINDS[kind], {})[name] = entry
    return found


class Registry(Generic[Entry]):
    """The entries of one module; `owner` is its `__name__`.

    `fault` says what is wrong with an entry under a name, '' for nothing: of another type, or of a name that is taken.
    """

    def __init__(self, owner: str, fault: Callable[[str, Any], str] = lambda name, entry: "") -> None:
        self.owner, self._fault = owner, fault
        self._sound: dict[str, Any] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """Names in the order in which they were entered; nothing is imported."""
        return tuple(_named(self.owner))

    def __getitem__(self, name: str) -> Entry:
        """Object under a name. Raises KeyError, and InputError where a package of others has no such thing, cannot be
        imported, or what it has is at fault."""
        entry = _named(self.owner)[name]
        module, _, attribute = entry.partition(":")
        try:
            found: Any = getattr(import_module(module), attribute)
        except (Exception, SystemExit) as error:
            if entry != _of_others(self.owner).get(name):
                raise
            what = f"{type(error).__name__}: {error}"
            raise InputError([Problem(f"cannot be loaded: {what}", f"plug-in {name}", value=entry)]) from error
        if self._sound.get(name) is not found:  # looked at once: array models are asked for by every layer
            if reason := self._fault(name, found):
                raise InputError([Problem(reason, f"plug-in {name}", value=entry)])
            self._sound[name] = found
        return found  # type: ignore[no-any-return]


def taken(name: str, known: Collection[str]) -> str:
    """Fault of an entry whose name is one of those that are built in; '' where it is none of them."""
    return f"has the name {name}, which is built in" if name in known else ""


def lacking(entry: object, attributes: Iterable[str]) -> str:
    """Fault of an object without some attributes that its kind has; '' where it has all of them."""
    lacks = [name for name in attributes if not hasattr(entry, name)]
    return f"has no {', '.join(lacks)}: it is none of its kind" if lacks else ""


def methods_of(protocol: type) -> tuple[str, ...]:
    """Methods and properties that a protocol declares."""
    return tuple(name for name in vars(protocol) if not name.startswith("_"))
