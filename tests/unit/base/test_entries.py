"""Entries of the registries: each can be loaded, and the model does not know the names of peers."""

import re
from importlib import import_module
from pathlib import Path

import pytest
import tilewright
from tilewright.base.entries import ENTRIES
from tilewright.base.registry import Registry, enter, entered

from tests.unit.test_import_direction import LEVEL_OF, room_of

PACKAGE = Path(tilewright.__file__).parent


@pytest.mark.parametrize("owner", ENTRIES)
def test_every_entry_can_be_had(owner: str) -> None:
    """Each module has one registry of its own name, with exactly the declared entries, and each loads."""
    registries = [value for value in vars(import_module(owner)).values() if isinstance(value, Registry)]
    (registry,) = [one for one in registries if one.owner == owner]
    assert registry.names == tuple(ENTRIES[owner])
    assert all(registry[name] is not None for name in registry.names)


def _module(path: Path) -> str:
    """Return the name of a module below the package."""
    return ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__")


def test_the_model_names_no_peer() -> None:
    """No module below the peers names them, except the registries and the list of code in `artifacts`."""
    below = {room for room, level in LEVEL_OF.items() if level < LEVEL_OF["peers"]}
    below -= {"base.artifacts", "base.entries", "base.registry"}
    files = [path for path in PACKAGE.rglob("*.py") if room_of(_module(path)) in below]
    assert len(files) > 100
    assert [path for path in files if "peers" in re.findall(r"\w+", path.read_text())] == []


def test_an_entry_is_imported_when_it_is_used() -> None:
    """A registered object is imported when it is used; its name is known before."""
    enter({"a.module": {"one": "json:dumps", "none": "no.such.module:anything"}})
    assert Registry("a.module").names == ("one", "none")
    assert entered("a.module") == ("json", "no.such.module")
    assert Registry("a.module")["one"]([1]) == "[1]"
    with pytest.raises(KeyError):
        Registry("a.module")["two"]
    with pytest.raises(ModuleNotFoundError):
        Registry("a.module")["none"]
