"""What stands in the registries: it can be had, and what asks for it knows nothing of it."""

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
    """The module has a registry of its own name, and each of its entries is there."""
    registries = [value for value in vars(import_module(owner)).values() if isinstance(value, Registry)]
    (registry,) = [one for one in registries if one.owner == owner]
    assert registry.names == tuple(ENTRIES[owner])
    assert all(registry[name] is not None for name in registry.names)


def _module(path: Path) -> str:
    """Name of a module below the package."""
    return ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__")


def test_the_model_names_no_peer() -> None:
    """Only what lies above the peers imports them; besides, there is the list of what steps run, in `artifacts`."""
    below = {room for room, level in LEVEL_OF.items() if level < LEVEL_OF["peers"]}
    below -= {"base.artifacts", "base.entries", "base.registry"}
    files = [path for path in PACKAGE.rglob("*.py") if room_of(_module(path)) in below]
    assert len(files) > 100
    assert [path for path in files if "peers" in re.findall(r"\w+", path.read_text())] == []


def test_an_entry_is_imported_when_it_is_used() -> None:
    """Names are known before, and say nothing of what is there."""
    enter({"a.module": {"one": "json:dumps", "none": "no.such.module:anything"}})
    assert Registry("a.module").names == ("one", "none")
    assert entered("a.module") == ("json", "no.such.module")
    assert Registry("a.module")["one"]([1]) == "[1]"
    with pytest.raises(KeyError):
        Registry("a.module")["two"]
    with pytest.raises(ModuleNotFoundError):
        Registry("a.module")["none"]
