"""Which files of the package run when a module of it does: the closure of the import graph, read from the sources.

Standard library only, and without a parser: commands and the Snakefile ask for it whenever they start, and this takes
milliseconds. What is read is what Python could import: imports anywhere in a module, except under `if TYPE_CHECKING:`,
texts that are the name of a module, as of families of operators, and what stands in a registry. A test compares
with Python's own parser.
"""

import os
import re
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path

from tilewright.registry import entered

NAME = "tilewright"
_MENTION = re.compile(
    rb"tilewright(?:(?<=from tilewright)|(?<=import tilewright)|(?<=[\"']tilewright))"
    rb"((?:\.\w+)*(?: import (?:\([^)]*\)|[^\n]*))?)"
)
"""An import of a module or from it, or its name as a text; it begins with the word that is looked for fastest."""
_FOR_TYPES = re.compile(rb"^if TYPE_CHECKING:.*\n(?:[ \t]+.*\n|\n)+", re.MULTILINE)
_PROGRAM = re.compile(rb"with_name\([\"'](\w+\.py)[\"']")
_NAMES = re.compile(r"\w+")


class SourceTree:
    """The sources of the package in a folder, each file read once. Files are named relative to the folder."""

    def __init__(self, package: Path) -> None:
        self.package = package
        self._sources: dict[str, bytes] = {}
        self._imports: dict[str, frozenset[str]] = {}
        self._mentioned: dict[bytes, tuple[str, ...]] = {}

    @cached_property
    def files(self) -> frozenset[str]:
        """All files of the package, hidden and compiled ones left out."""
        found = []
        for folder, inner, names in os.walk(self.package):
            inner[:] = [name for name in inner if name != "__pycache__" and not name.startswith(".")]
            place = os.path.relpath(folder, self.package).replace(os.sep, "/")
            prefix = "" if place == "." else place + "/"
            found += [prefix + name for name in names if not name.startswith(".")]
        return frozenset(found)

    def source(self, file: str) -> bytes:
        """The bytes of a file."""
        if file not in self._sources:
            self._sources[file] = (self.package / file).read_bytes()
        return self._sources[file]

    def closure(self, roots: Iterable[str], without: Iterable[str] = ()) -> list[str]:
        """The files that run when the modules `roots` do, sorted; those of `without` do not count, nor what only they
        import.

        `without` are names of modules, or of all modules in a package (`tilewright.report.*`).
        """
        modules = set(without)
        folders = tuple(name.removesuffix("*") for name in modules if name.endswith(".*"))
        waiting = [file for root in roots for file in self._files_mentioned(root.removeprefix(NAME))]
        seen, left_out = set(waiting), set()
        while waiting:
            file = waiting.pop()
            module = module_name(file)
            if module in modules or module.startswith(folders):
                left_out.add(file)
            else:
                waiting += self.imported(file) - seen
                seen |= self.imported(file)
        return sorted(seen - left_out)

    def imported(self, file: str) -> frozenset[str]:
        """Files that a file imports or reads: modules, the packages that they are in, data files beside it."""
        if file not in self._imports:
            self._imports[file] = frozenset(self._read_imports(file)) if file.endswith(".py") else frozenset()
        return self._imports[file]

    def _read_imports(self, file: str) -> Iterable[str]:
        source = self.source(file)
        for module in entered(module_name(file)):
            yield from self._files_mentioned(module.removeprefix(NAME))
        if b"if TYPE_CHECKING:" in source:
            source = _FOR_TYPES.sub(b"", source)
        for mention in _MENTION.findall(source):
            if mention not in self._mentioned:
                self._mentioned[mention] = tuple(self._files_mentioned(mention.decode()))
            yield from self._mentioned[mention]
        folder = file[: file.rfind("/") + 1]
        yield from (folder + name for name in self._data.get(folder, ()) if name.encode() in source)
        yield from (folder + name.decode() for name in _PROGRAM.findall(source))

    def _files_mentioned(self, mention: str) -> Iterable[str]:
        """Files of a module (".cost.kernel"), of the packages that it is in, and of the modules imported from it."""
        module, _, names = mention.partition(" import ")
        place = module[1:].replace(".", "/")
        yield from self._file_at(place)
        for name in _NAMES.findall(names):
            yield from self._file_at(f"{place}/{name}" if place else name)
        while place:
            place = place[: max(0, place.rfind("/"))]
            yield from self._file_at(place)

    def _file_at(self, place: str) -> Iterable[str]:
        both = (f"{place}.py", f"{place}/__init__.py") if place else ("__init__.py",)
        return [file for file in both if file in self.files]

    @cached_property
    def _data(self) -> dict[str, list[str]]:
        """Folder -> names of files in it that are no modules."""
        found: dict[str, list[str]] = {}
        for file in self.files:
            if not file.endswith(".py"):
                folder, slash, name = file.rpartition("/")
                found.setdefault(folder + slash, []).append(name)
        return found


def module_name(file: str) -> str:
    """The module in a file of the package; for a file of data, its name with dots."""
    place = file.removesuffix(".py").removesuffix("/__init__")
    return NAME if place == "__init__" else f"{NAME}.{place.replace('/', '.')}"
