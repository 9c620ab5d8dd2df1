"""Bytecode that always matches its source: bytecode of a module is used only if it has the digest of the source.

Python itself compares only the time stamp and the size of the source. Both can stay the same although the source
changed: after two edits in one second, after `rsync -t`, or if an archive gives all files one date. All sources that
were read for this check are kept. Digests of code are computed from the kept sources, and therefore always belong to
the code that runs.
"""

import marshal
import os
import sys
from importlib.machinery import FileFinder, SourceFileLoader
from importlib.util import MAGIC_NUMBER, cache_from_source, source_hash
from types import CodeType

_PACKAGE = os.path.dirname(os.path.dirname(__file__))
_IS_CHECKED = (0b11).to_bytes(4, "little")
"""Flags in the header of bytecode that contains a digest of its source. Python compares this digest with the source at
every import (PEP 552)."""
_HEAD_BYTES = 16
SOURCES: dict[str, bytes] = globals().get("SOURCES", {})
"""Module name -> source that was read when the module was imported. The dict keeps its content if `bytecode` itself is
run again."""
_run_again: set[str] = globals().get("_run_again", set())


class CheckedLoader(SourceFileLoader):
    """Loader that uses bytecode only if it matches the current source. Otherwise, the source is compiled again, even if
    the bytecode is newer.
    """

    def get_code(self, fullname: str) -> CodeType:
        """Code of the module: loaded from matching bytecode or, if there is none, compiled from the source."""
        path = self.get_filename(fullname)
        source = SOURCES[fullname] = self.get_data(path)
        code = self._kept(source, path)
        if code is None:
            code = self.source_to_code(source, path)
            if not sys.dont_write_bytecode:
                self.set_data(cache_from_source(path), _head(source) + marshal.dumps(code))
        return code if code.co_filename == path else _moved(code, path)

    def is_kept(self) -> bool:
        """True if there is bytecode that matches the current source."""
        try:
            with open(cache_from_source(self.path), "rb") as stream:
                return stream.read(_HEAD_BYTES) == _head(self.get_data(self.path))
        except OSError:
            return False

    def _kept(self, source: bytes, path: str) -> CodeType | None:
        try:
            data = self.get_data(cache_from_source(path))
            if data[:_HEAD_BYTES] != _head(source):
                return None
            code = marshal.loads(memoryview(data)[_HEAD_BYTES:])
        except (OSError, EOFError, ValueError, TypeError):
            return None
        return code if isinstance(code, CodeType) else None


class SourceLoader(SourceFileLoader):
    """Loader that compiles a module at every import, and neither reads nor writes bytecode."""

    def get_code(self, fullname: str) -> CodeType:
        """Code of the module, compiled from the source."""
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)


def _head(source: bytes) -> bytes:
    return MAGIC_NUMBER + _IS_CHECKED + source_hash(source)


def _moved(code: CodeType, path: str) -> CodeType:
    """Code object with the present path of its source file. The path differs if the file was in another folder when the
    code was compiled."""
    inner = tuple(_moved(item, path) if isinstance(item, CodeType) else item for item in code.co_consts)
    return code.replace(co_filename=path, co_consts=inner)


def _finder(folder: str) -> FileFinder:
    """Finder of the modules in a folder of the package, for `sys.path_hooks`. Raises ImportError for a folder outside
    the package, so that Python asks its next path hook.
    """
    if folder != _PACKAGE and not folder.startswith(_PACKAGE + os.sep):
        raise ImportError
    return FileFinder(folder, (CheckedLoader, [".py"]))


def install() -> None:
    """Install the check of bytecode. This module and its package are checked now. Any other module of tilewright is
    checked when it is imported.
    """
    for module in (__name__.rpartition(".")[0], __name__):
        run_as_written(module)
    _find_modules()


def _find_modules() -> None:
    sys.path_hooks[:] = [_finder, *(hook for hook in sys.path_hooks if getattr(hook, "__module__", "") != __name__)]
    for folder in [folder for folder in sys.path_importer_cache if folder.startswith(_PACKAGE)]:
        del sys.path_importer_cache[folder]


def run_as_written(module: str) -> None:
    """Run a module again from its current source, at most one time. A module with bytecode that matches this source is
    not run again. The function is for modules that were imported before the check of bytecode was installed.
    """
    path = sys.modules[module].__file__
    if path is None or module in _run_again:
        return
    loader = CheckedLoader(module, path)
    if not loader.is_kept():
        _run_again.add(module)
        code = loader.get_code(module)
        exec(code, sys.modules[module].__dict__)
