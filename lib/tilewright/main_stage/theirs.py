"""Scripts that import zigzag-dse and Stream: `tilewright.main_stage` replaces the imported modules.

To find the stages of a script, the script is run until it starts its stages.
"""

import copy
import importlib
import importlib.abc
import importlib.machinery
import runpy
import sys
from collections.abc import Iterator, MutableSequence, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from tilewright import main_stage
from tilewright.base.errors import InputError, Problem, nearest_name
from tilewright.base.missing_files import missing_file
from tilewright.main_stage.builtin import MainStage
from tilewright.pipeline.stages.base import problem_in_code

PACKAGES = ("zigzag", "stream")


class _Module(ModuleType):
    """Module that replaces a module of zigzag-dse or Stream. It provides every name of `tilewright.main_stage`."""

    __all__ = main_stage.__all__
    __path__: MutableSequence[str] = []  # noqa: RUF012  no module lies below

    def __getattr__(self, name: str) -> Any:
        """Object called `name`. The name is looked up in `tilewright.main_stage`, then in `HELPERS`, then among the
        submodules.

        Raises ImportError with the nearest name if no object has this name, and AttributeError if `name` begins with
        `__`.
        """
        if name.startswith("__"):
            raise AttributeError(name)
        if name in main_stage.__all__:
            return getattr(main_stage, name)
        if name in HELPERS:
            return HELPERS[name]
        if is_module_name(name):
            return importlib.import_module(f"{self.__name__}.{name}")
        near = nearest_name(name, main_stage.__all__)
        hint = f"; did you mean {near}?" if near else ""
        raise ImportError(f"tilewright does not provide {name} of {self.__name__}{hint}")

    def __call__(self, *values: Any, **keywords: Any) -> Any:
        """Raise ImportError, because a script called a module as a function. zigzag-dse or Stream has a function
        of this name, but tilewright does not provide it.
        """
        raise ImportError(f"tilewright does not provide the function {self.__name__}")


HELPERS: dict[str, Any] = {"pickle_deepcopy": copy.deepcopy}
"""Replacements for functions of zigzag-dse and Stream that scripts use in addition to stages."""
MODULES = ("ReduceStages", "SaveStage", "MainInputParserStages", "RunOptStages", "ModelParserStage")
"""Names of modules of zigzag-dse and Stream that contain capital letters. `is_module_name` recognises such a name only
if it is listed here. `tilewright.main_stage` has no objects with these names.
"""


def is_module_name(name: str) -> bool:
    """True if a module of zigzag-dse or Stream can have this name."""
    return name.islower() or name in MODULES or name in main_stage.__all__


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finder and loader for imports of the packages of zigzag-dse and Stream."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        """Import specification of a module of zigzag-dse or Stream; None for any other module."""
        parts = name.split(".")
        if parts[0] not in PACKAGES or not is_module_name(parts[-1]):
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        """New module that provides every name of `tilewright.main_stage`."""
        return _Module(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing. The module has no code to run."""


@contextmanager
def answering_imports() -> Iterator[None]:
    """Context in which a script can import the packages of zigzag-dse and Stream, and gets modules of tilewright
    instead.
    """
    finder, before = _Finder(), set(sys.modules)
    hidden = {name: sys.modules.pop(name) for name in list(sys.modules) if name.partition(".")[0] in PACKAGES}
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        for name in set(sys.modules) - before:
            if name.partition(".")[0] in PACKAGES:
                del sys.modules[name]
        sys.modules.update(hidden)


class _Found(BaseException):
    """Exception that ends the run of a script at the moment when the script starts its stages. It carries the MainStage
    that the script made.
    """

    def __init__(self, stage: MainStage) -> None:
        self.stage = stage


def stages_of(script: Path, arguments: Sequence[str] = ()) -> MainStage:
    """MainStage that a script makes. The script runs until it starts its stages.

    Raises InputError if the script cannot be read, fails before it starts its stages, or never starts them.
    """

    def stop(self: MainStage) -> Any:
        raise _Found(self)

    original = MainStage.run
    MainStage.run = stop  # type: ignore[method-assign]
    try:
        run_script(script, arguments)
    except _Found as found:
        return found.stage
    finally:
        MainStage.run = original  # type: ignore[method-assign]
    message = "the script ended, but it never called run() of a MainStage"
    raise InputError([Problem(message, str(script))])


def run_script(script: Path, arguments: Sequence[str] = ()) -> None:
    """Run a script with the stages of tilewright. Raises InputError with file and line if it fails."""
    if not script.is_file():
        raise InputError([missing_file(script)])
    before, path = sys.argv, sys.path[:]
    sys.argv = [str(script), *arguments]
    sys.path.insert(0, str(script.parent))
    try:
        with answering_imports():
            runpy.run_path(str(script.resolve()), run_name="__main__")
    except (InputError, KeyboardInterrupt):
        raise
    except SystemExit as error:
        if error.code:
            raise InputError([Problem(f"the script ends with exit code {error.code}", str(script))]) from error
    except Exception as error:
        raise InputError([problem_in_code(error, script.resolve(), str(script))]) from error
    finally:
        sys.argv, sys.path[:] = before, path
