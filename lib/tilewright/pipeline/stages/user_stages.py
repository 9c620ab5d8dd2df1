"""Stages of the user: lookup by dotted path in the working folder, and identification by a digest of the code.

For example, `config.stages.bound.MinimalEnergyUnderLatency` is the class `MinimalEnergyUnderLatency` in
`config/stages/bound.py`. Modules are imported from their source under their dotted names, never from bytecode.
`sys.path` is changed only during an import.

The identity of a stage is JSON data. Two searches of the same layer problem give equal results if they use the same
tilewright code and stages with equal identities. A stored result of one search can then be used for the other search.
"""

import ast
import importlib.util
import inspect
import os
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from functools import lru_cache
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from tilewright.base.artifacts.codec import encode
from tilewright.base.artifacts.digests import content_digest, input_digest
from tilewright.base.artifacts.step_code import NAME, code_digest, code_digest_of_modules, files_of_package
from tilewright.base.bytecode import SourceLoader
from tilewright.base.errors import InputError, Problem, nearest_name
from tilewright.base.json_values import JsonObject
from tilewright.pipeline.stages.base import Stage, is_own, problem_in_code
from tilewright.pipeline.stages.items import LayerProblem
from tilewright.search.store import problem_key

_INSTALLED = {"site-packages", "dist-packages"}
"""Names of folders with installed packages."""
_lock = threading.RLock()
_loaded: dict[tuple[Path, str], tuple[str, ModuleType]] = {}
"""Imported modules, as (digest of the code, module), by (folder, dotted name of the module)."""


def is_dotted_path(name: str) -> bool:
    """True if a name has the form of a dotted path. The name of a user's stage has this form."""
    return "." in name and all(part.isidentifier() for part in name.split("."))


def load_class(dotted: str, folder: Path | None = None) -> type[Stage]:
    """Class of the stage with this dotted path, relative to `folder` (default: the working folder).

    Raises InputError if the file or the class does not exist, if the class is not a stage, or if the file cannot be
    imported.
    """
    place = (folder or Path()).resolve()
    path, class_name = _file_of(dotted, place)
    module = _load_module(dotted.rpartition(".")[0], path, place)
    kind = getattr(module, class_name, None)
    shown = _shown(path, place)
    if kind is None:
        stages = [name for name, value in vars(module).items() if _is_stage(value)]
        raise InputError([Problem(f"has no class {class_name}", shown, nearest=nearest_name(class_name, stages))])
    if not _is_stage(kind):
        raise InputError(
            [Problem(f"{class_name} is not a stage: make it a subclass of tilewright.pipeline.stages.Stage", shown)]
        )
    if "__dataclass_params__" not in vars(kind) and inspect.get_annotations(kind):
        raise InputError(
            [Problem(f"{class_name} has parameters, so it must be decorated with @dataclass(frozen=True)", shown)]
        )
    return cast(type[Stage], kind)


def _is_stage(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, Stage)


def _file_of(dotted: str, folder: Path) -> tuple[Path, str]:
    *parts, class_name = dotted.split(".")
    path = folder.joinpath(*parts).with_suffix(".py")
    if not path.is_file():
        known = sorted(other.name for other in path.parent.glob("*.py")) if path.parent.is_dir() else []
        nearest = nearest_name(path.name, known)
        raise InputError(
            [Problem(f"the file of the stage {dotted} does not exist", _shown(path, folder), nearest=nearest)]
        )
    return path, class_name


def _shown(path: Path, folder: Path) -> str:
    return str(path.relative_to(folder)) if path.is_relative_to(folder) else str(path)


# code -----------------------------------------------------------------------------------------------------------------


def digest_of_class(kind: type[Stage]) -> str | None:
    """Digest of the code of a stage: the files that `_files_of_class` returns. None if the file of the stage is not
    known.
    """
    files, folder = _files_of_class(kind)
    return None if folder is None else _digest_of_files(files, folder)


def _files_of_class(kind: type[Stage]) -> tuple[tuple[Path, ...], Path | None]:
    """Pair (Python files, folder that contains them) of the class of a stage. For an installed package, these are all
    files of the package; otherwise, the file of the class and all local files that it imports. ((), None) if the file
    of the class is not known.
    """
    file = getattr(sys.modules.get(kind.__module__), "__file__", None)
    if file is None:
        return (), None
    path = Path(file).resolve()
    if _INSTALLED & {*path.parts}:  # all files of the package, but no other installed packages
        files = tuple(one.resolve() for one in files_of_package(kind.__module__.partition(".")[0]))
        return files, next(folder for folder in path.parents if folder.name in _INSTALLED)
    for (folder, _), (_, module) in _loaded.items():
        if module.__name__ == kind.__module__ and path.is_relative_to(folder):
            return local_files(path, folder), folder
    return local_files(path, path.parent), path.parent


def _digest_of_files(files: tuple[Path, ...], folder: Path) -> str:
    return content_digest([[_shown(file, folder), input_digest(file)] for file in files])


def local_files(path: Path, folder: Path) -> tuple[Path, ...]:
    """Python file and all local files that it imports directly or indirectly, sorted. A local file is in `folder` or in
    the folder of the Python file.
    """
    seen: set[Path] = set()
    waiting = [path]
    while waiting:
        file = waiting.pop()
        if file not in seen:
            seen.add(file)
            waiting += _imported(file, path.parent, folder)
    return tuple(sorted(seen))


def _imported(file: Path, beside: Path, folder: Path) -> list[Path]:
    try:
        imports = _imports_in(file.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return []  # the import reports the error
    found: list[Path] = []
    for level, parts in imports:
        bases = (file.parents[level - 1],) if level else (folder, beside)
        found += _files_of_module(bases, parts)
    return found


@lru_cache(maxsize=1024)  # the digest of a stage is asked for by every search of a layer
def _imports_in(source: bytes) -> tuple[tuple[int, tuple[str, ...]], ...]:
    """Imports anywhere in a source: pairs (number of leading dots, parts of the dotted name). Raises SyntaxError or
    ValueError if the source is not Python."""
    found: list[tuple[int, tuple[str, ...]]] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found += [(0, tuple(alias.name.split("."))) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            parts = node.module.split(".") if node.module else []
            found += [(node.level, (*parts, alias.name)) for alias in node.names]
    return tuple(found)


def _files_of_module(bases: tuple[Path, ...], parts: Sequence[str]) -> list[Path]:
    """Source files of a module and of the packages that contain the module. The files are in the first of the folders
    `bases` that has such a file.
    """
    for base in bases:
        found = []
        for length in range(1, len(parts) + 1):
            place = base.joinpath(*parts[:length])
            found += [file for file in (place.with_suffix(".py"), place / "__init__.py") if file.is_file()]
        if found:
            return found
    return []


# import ---------------------------------------------------------------------------------------------------------------


def _load_module(name: str, path: Path, folder: Path) -> ModuleType:
    """Module imported from a file under its dotted name. If the code has changed since an earlier import, the module is
    imported again. Raises InputError if the import fails.
    """
    files = local_files(path, folder)
    digest = _digest_of_files(files, folder)
    with _lock:
        known = _loaded.get((folder, name))
        if known is not None and known[0] == digest:
            return known[1]
        _forget(files, path, folder)
        spec = importlib.util.spec_from_file_location(name, path, loader=SourceLoader(name, str(path)))
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        try:
            with _importing_from(folder, path.parent):
                spec.loader.exec_module(module)
        except Exception as error:
            sys.modules.pop(name, None)
            raise InputError([problem_in_code(error, path, _shown(path, folder))]) from error
        _loaded[folder, name] = digest, module
        return module


def _forget(files: tuple[Path, ...], path: Path, folder: Path) -> None:
    """Remove modules with the names of these files from `sys.modules`. Names are relative to `folder` and to the folder
    of `path`. A module in `sys.modules` can be out of date, or can come from a file of the same name in another folder.
    """
    for file in files:
        for base in (folder, path.parent):
            if file.is_relative_to(base):
                parts = file.relative_to(base).with_suffix("").parts
                sys.modules.pop(".".join(parts[:-1] if parts[-1] == "__init__" else parts), None)


@contextmanager
def _importing_from(*folders: Path) -> Iterator[None]:
    """Context in which modules are looked up in these folders first. Bytecode is neither read nor written, because it
    can be out of date after quick edits of a file.
    """
    places = tuple(dict.fromkeys(str(folder) for folder in folders))
    before, finder = sys.path[:], _SourceFinder(places)
    sys.path[:0] = places
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.path[:] = before
        sys.meta_path.remove(finder)


class _SourceFinder:
    """Finder of modules. It works like the finder of Python, but runs modules in the given folders from source.
    Installed packages are an exception.
    """

    def __init__(self, folders: tuple[str, ...]) -> None:
        self.folders = tuple(os.path.join(folder, "") for folder in folders)

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Import specification of a module if it is a module of the user; otherwise None."""
        if name.partition(".")[0] == NAME:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is None or type(spec.loader) is not SourceFileLoader or not spec.origin:
            return None
        if not spec.origin.startswith(self.folders) or _INSTALLED & {*Path(spec.origin).parts}:
            return None
        return importlib.util.spec_from_file_location(name, spec.origin, loader=SourceLoader(name, spec.origin))


class SearchIdentity:
    """Identity of a search that maps layers, made from the stages of the search."""

    def __init__(self, stages: tuple[Stage, ...]) -> None:
        self.digest = content_digest([*(identity_of(stage) for stage in stages), search_code(stages)])
        """Digest of the stages, of their parameters, and of their code."""
        self.is_own = all(is_own(type(stage)) for stage in stages)

    def key_of(self, problem: LayerProblem) -> str:
        """Digest of a layer problem and its search. Searches with equal digests have equal results."""
        identity: list[Any] = [self.digest]
        if not self.is_own:
            # A stage of the user can use data that the stages of tilewright do not use.
            reach = None if problem.memory_reach is None else replace(problem.memory_reach, layer="")
            identity += [encode(reach), encode(problem.layer.constant_operands), encode(problem.core.operator_types)]
        return problem_key(problem.layer, problem.core, problem.constraints, identity)


def search_modules(stages: Iterable[Stage]) -> set[str]:
    """Names of the tilewright modules whose code determines the result of a search of layers: the module that calls the
    stages, and the modules of the stages. Modules that a user wrote are left out.
    """
    own = {type(stage).__module__ for stage in _all_of(stages) if is_own(type(stage))}
    return {"tilewright.pipeline.stages.layer_search", *own}


def search_code(stages: tuple[Stage, ...]) -> str:
    """Digest of the tilewright code on which the result of a search of layers depends.

    If a user wrote one of the stages, the digest covers all mapping code of tilewright, because this stage can call any
    part of this code.
    """
    code = code_digest_of_modules(search_modules(stages))
    return code if all(is_own(type(stage)) for stage in _all_of(stages)) else code + code_digest("map")


def _all_of(stages: Iterable[Stage]) -> Iterator[Stage]:
    """Stages, and all stages that run inside them."""
    for stage in stages:
        yield stage
        yield from _all_of(stage.inner())


def identity_of(stage: Stage) -> dict[str, Any]:
    """Identity of a stage: the name, the parameters, and the identities of the stages that run inside the stage. For a
    stage of the user, the identity also has the digest of the code, which is None if the code is not in a file.
    """
    own: dict[str, Any] = {"stage": stage.name(), "parameters": parameters_of(stage)}
    if stage.inner():
        own["inner"] = [identity_of(inside) for inside in stage.inner()]
    if is_own(type(stage)):
        return own

    return own | {"code": digest_of_class(type(stage))}


def code_digests(stages: Iterable[Stage]) -> list[str | None]:
    """Digests of the code of all stages of the user, including stages inside other stages. A digest is None if the code
    is not in a file.
    """
    return [identity_of(stage)["code"] for stage in _all_of(stages) if not is_own(type(stage))]


def code_files(stages: Iterable[Stage]) -> tuple[str, ...]:
    """Paths of the files of all stages of the user, sorted. Stages inside other stages, and imported files, are
    included.
    """
    kinds = {type(stage) for stage in _all_of(stages) if not is_own(type(stage))}
    return tuple(sorted({str(file) for kind in kinds for file in _files_of_class(kind)[0]}))


def is_identified(stage: Stage) -> bool:
    """True if the identity of a stage changes whenever its code or one of its parameters changes."""
    if is_own(type(stage)):
        return True
    values = (getattr(stage, field.name) for field in fields(stage))
    return identity_of(stage)["code"] is not None and all(_as_json(value) is not None for value in values)


def parameters_of(stage: Stage) -> JsonObject:
    """Parameters of a stage as JSON data, by name, in the order of definition. For a value that has no JSON form, the
    result has the `repr` of the value.
    """
    values = ((field.name, getattr(stage, field.name)) for field in fields(stage))
    return {name: repr(value) if (plain := _as_json(value)) is None else plain[0] for name, value in values}


def _as_json(value: Any) -> tuple[Any] | None:
    """Value as JSON data, in a tuple with one item; None if the value has no JSON form."""
    try:
        return (encode(value),)
    except TypeError:
        return None
