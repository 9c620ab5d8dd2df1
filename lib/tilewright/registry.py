"""Registries of entries that can be exchanged by name: written down as text, imported when used.

A module with such a step has a `Registry`; what is entered in it lies above that module, so that nothing there imports
or knows it. `tilewright.entries` lists what is entered when the package is imported.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Generic, TypeVar

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


def entered(owner: str) -> tuple[str, ...]:
    """The modules that the registry of a module may import."""
    return tuple(entry.partition(":")[0] for entry in _entries.get(owner, {}).values())


class Registry(Generic[Entry]):
    """The entries of one module; `owner` is its `__name__`."""

    def __init__(self, owner: str) -> None:
        self.owner = owner

    @property
    def names(self) -> tuple[str, ...]:
        """Names in the order in which they were entered; nothing is imported."""
        return tuple(_entries.get(self.owner, ()))

    def __getitem__(self, name: str) -> Entry:
        """What stands under a name. Raises KeyError."""
        module, _, attribute = _entries[self.owner][name].partition(":")
        found: Any = getattr(import_module(module), attribute)
        return found  # type: ignore[no-any-return]
