"""Bytecode that is never older than its source: each module of the package is read, and its bytecode is used only if it
has the digest of that source.

Python itself compares age and size, which two edits in one second, `rsync -t` or an archive with one date for all files
leave as they were. What was read is kept, so that digests of code are of the code that runs.
"""

import marshal
import os
import sys
from importlib.machinery import FileFinder, SourceFileLoader
from importlib.util import MAGIC_NUMBER, cache_from_source, source_hash
from types import CodeType

_PACKAGE = os.path.dirname(os.path.dirname(__file__))
_IS_CHECKED = (0b11).to_bytes(4, "little")
"""Flags of bytecode that goes with a digest of its source (PEP 552), which is always compared."""
_HEAD_BYTES = 16
SOURCES: dict[str, bytes] = globals().get("SOURCES", {})
"""What was read of each module that is imported, by its name; kept where this module is run again."""
_run_again: set[str] = globals().get("_run_again", set())


class CheckedLoader(SourceFileLoader):
    """Runs the bytecode of the source as it is now; what is kept besides, of any age, is compiled again."""

    def get_code(self, fullname: str) -> CodeType:
        """The code of a module."""
        path = self.get_filename(fullname)
        source = SOURCES[fullname] = self.get_data(path)
        code = self._kept(source, path)
        if code is None:
            code = self.source_to_code(source, path)
            if not sys.dont_write_bytecode:
                self.set_data(cache_from_source(path), _head(source) + marshal.dumps(code))
        return code if code.co_filename == path else _moved(code, path)

    def is_kept(self) -> bool:
        """Whether there is bytecode of the source as it is now."""
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
    """Compiles a module whenever it is imported, and neither reads nor writes bytecode."""

    def get_code(self, fullname: str) -> CodeType:
        """The code of a module."""
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)


def _head(source: bytes) -> bytes:
    return MAGIC_NUMBER + _IS_CHECKED + source_hash(source)


def _moved(code: CodeType, path: str) -> CodeType:
    """The code of a file that lay elsewhere when it was compiled."""
    inner = tuple(_moved(item, path) if isinstance(item, CodeType) else item for item in code.co_consts)
    return code.replace(co_filename=path, co_consts=inner)


def _finder(folder: str) -> FileFinder:
    """Hook of Python's search for modules: finds those in folders of the package."""
    if folder != _PACKAGE and not folder.startswith(_PACKAGE + os.sep):
        raise ImportError
    return FileFinder(folder, (CheckedLoader, [".py"]))


def install() -> None:
    """Have this module and its package checked, and all modules of tilewright that are imported from now on."""
    for module in (__name__.rpartition(".")[0], __name__):
        run_as_written(module)
    _find_modules()


def _find_modules() -> None:
    sys.path_hooks[:] = [_finder, *(hook for hook in sys.path_hooks if getattr(hook, "__module__", "") != __name__)]
    for folder in [folder for folder in sys.path_importer_cache if folder.startswith(_PACKAGE)]:
        del sys.path_importer_cache[folder]


def run_as_written(module: str) -> None:
    """Run a module again that Python's own loader imported, unless its bytecode is known to be of its source."""
    path = sys.modules[module].__file__
    if path is None or module in _run_again:
        return
    loader = CheckedLoader(module, path)
    if not loader.is_kept():
        _run_again.add(module)
        code = loader.get_code(module)
        exec(code, sys.modules[module].__dict__)
