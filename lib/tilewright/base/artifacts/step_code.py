"""Code of each step of the pipeline, found through the imports in the source files, and the digest of this code.

The digest is a parameter of the Snakemake rule of the step. If the code changes, Snakemake therefore runs the rule
again. The digest covers the raw bytes of every file of the package that the step runs: the modules with which the step
begins, and all modules that they import, directly or through other modules.

The digests must take only milliseconds, because every command and the Snakefile compute them when they start. This
module therefore uses only the standard library, and no parser. The module searches the text of a source file for the
modules that the file can import. These are modules in import statements (except under `if TYPE_CHECKING:`), modules
whose names are in quotes (used for families of operators), and modules of registry entries. A test compares the result
with Python's own parser.
"""

import hashlib
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.util import find_spec
from pathlib import Path

from tilewright.base import bytecode
from tilewright.base.artifacts.digests import DIGEST_BYTES
from tilewright.base.registry import KINDS, all_entered, entered, installed, package_of
from tilewright.base.report_files import FIGURES, ONE_CORE_FILES, SEVERAL_CORES_FILES, TABLES, makers_of, of_part
from tilewright.base.stage_table import CORE, modules_of
from tilewright.base.steps import MULTI, SINGLE, STEPS

Entries = tuple[tuple[str, str, str], ...]
NAME = "tilewright"
_MENTION = re.compile(
    rb"tilewright(?:(?<=from tilewright)|(?<=import tilewright)|(?<=[\"']tilewright))"
    rb"((?:\.\w+)*)(?: import (\([^)]*\)|[^\n]*))?"
)
"""Pattern for modules of this package in three forms: the module is imported, names are imported from it, or its name
is in quotes. The first group is the module (".cost.kernel"), and the second has the imported names. The pattern begins
with a fixed word, because the search for such a pattern is fastest.
"""
_FOR_TYPES = re.compile(rb"^if TYPE_CHECKING:.*\n(?:[ \t]+.*\n|\n)+", re.MULTILINE)
_PROGRAM = re.compile(rb"with_name\([\"'](\w+\.py)[\"']")
_NAMES = re.compile(rb"\w+")


class SourceTree:
    """Sources of the package in a folder. Each file is read only one time. Files are named relative to the folder.

    The argument `imported` maps a module name to the source that was read when the module was imported. This source is
    used in place of the present content of the file, because the running code comes from this source.
    """

    def __init__(self, package: Path, imported: Mapping[str, bytes] | None = None) -> None:
        self.package = package
        self._as_imported = imported or {}
        self._prefix = f"{package}{os.sep}"
        self._sources: dict[str, bytes] = {}
        self._imports: dict[str, frozenset[str]] = {}
        self._run: dict[bytes, frozenset[str]] = {}

    @cached_property
    def files(self) -> frozenset[str]:
        """Paths of all files of the package except hidden and compiled ones."""
        found = []
        for folder, inner, names in os.walk(self.package):
            inner[:] = [name for name in inner if name != "__pycache__" and not name.startswith(".")]
            place = os.path.relpath(folder, self.package).replace(os.sep, "/")
            prefix = "" if place == "." else place + "/"
            found += [prefix + name for name in names if not name.startswith(".")]
        return frozenset(found)

    def source(self, file: str) -> bytes:
        """Bytes of a file of the package."""
        if file not in self._sources and (kept := self._as_imported.get(module_name(file))) is not None:
            self._sources[file] = kept
        elif file not in self._sources:
            with open(f"{self._prefix}{file}", "rb", buffering=0) as stream:  # faster than a Path
                self._sources[file] = stream.read()
        return self._sources[file]

    def closure(self, roots: Iterable[str], without: Iterable[str] = ()) -> list[str]:
        """Files that run when the modules `roots` run, sorted. Modules in `without`, and files that only these modules
        import, are left out.

        An element of `without` is the name of a module, or a pattern for all modules of a package
        (`tilewright.results.*`).
        """
        is_left_out = matcher(without)
        waiting = [file for root in roots for file in self._files_run(_place(root))]
        seen, left_out = set(waiting), set()
        while waiting:
            file = waiting.pop()
            if is_left_out(module_name(file)):
                left_out.add(file)
            else:
                waiting += self.imported(file) - seen
                seen |= self.imported(file)
        return sorted(seen - left_out)

    def imported(self, file: str) -> frozenset[str]:
        """Files that a file imports or reads: modules, the packages that contain the modules, and data files in the
        folder of the file.
        """
        if file not in self._imports:
            self._imports[file] = self._read_imports(file) if file.endswith(".py") else frozenset()
        return self._imports[file]

    def _read_imports(self, file: str) -> frozenset[str]:
        source = self.source(file)
        found = [self._files_run(_place(module)) for module in entered(module_name(file))]
        if b"if TYPE_CHECKING:" in source:
            source = _FOR_TYPES.sub(b"", source)
        for module, names in _MENTION.findall(source):
            found.append(self._files_run(module))
            if names and module not in self._modules:
                found += (self._files_run(b"%s.%s" % (module, name)) for name in _NAMES.findall(names))
        folder = file[: file.rfind("/") + 1]
        beside = [folder + name for name in self._data.get(folder, ()) if name.encode() in source]
        programs = [folder + name.decode() for name in _PROGRAM.findall(source)]
        return frozenset(beside).union(programs, *found)

    def _files_run(self, module: bytes) -> frozenset[str]:
        """Files that run when a module or package is imported: the file of the module, and the files of all packages
        above the module. `module` is the name without `tilewright` in front (b".cost.kernel").
        """
        if module not in self._run:
            place = module[1:].decode().replace(".", "/")
            both = (f"{place}.py", f"{place}/__init__.py") if place else ("__init__.py",)
            above = self._files_run(module[: module.rfind(b".")]) if place else frozenset()
            self._run[module] = above.union(file for file in both if file in self.files)
        return self._run[module]

    @cached_property
    def _modules(self) -> frozenset[bytes]:
        """Names of all modules that are not packages, without `tilewright` in front, as bytes (b".cost.kernel")."""
        return frozenset(_place(module_name(file)) for file in self.files if not file.endswith("__init__.py"))

    @cached_property
    def _data(self) -> dict[str, list[str]]:
        """Folder -> names of the data files in it (all files that are not modules)."""
        found: dict[str, list[str]] = {}
        for file in self.files:
            if not file.endswith(".py"):
                folder, slash, name = file.rpartition("/")
                found.setdefault(folder + slash, []).append(name)
        return found


def matcher(patterns: Iterable[str]) -> Callable[[str], bool]:
    """Function that returns True for a module that one of `patterns` selects. A pattern is the name of a module, or
    selects all modules of a package (`tilewright.results.*`).
    """
    modules = frozenset(patterns)
    folders = tuple(name.removesuffix("*") for name in modules if name.endswith(".*"))
    return lambda module: module in modules or module.startswith(folders)


def _place(module: str) -> bytes:
    """Name of a module without `tilewright` at the start, as bytes. The text of sources is searched for this name."""
    return module.removeprefix(NAME).encode()


def module_name(file: str) -> str:
    """Name of the module in a file of the package. For a data file, the path with dots in place of slashes."""
    place = file.removesuffix(".py").removesuffix("/__init__")
    return NAME if place == "__init__" else f"{NAME}.{place.replace('/', '.')}"


PACKAGE = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class StepCode:
    """Code of a step of the pipeline: the modules `roots` and all modules that they import, except the modules
    `without`."""

    roots: tuple[str, ...]
    """Modules with which the step begins: the verb that the rule calls, and the stages that a user can name."""
    without: tuple[str, ...] = ()
    """Modules, or patterns of modules, that are imported but do not influence the files that the step writes. Examples
    are modules that only print on the terminal, and other ways to call the verb."""


DISPATCH = (
    "tilewright",
    "tilewright.base.bytecode",
    "tilewright.pipeline.stages",
    "tilewright.cli.main",
    "tilewright.cli.flags",
    "tilewright.cli.options",
    "tilewright.cli.parameter_options",
    "tilewright.cli.verb",
    "tilewright.cli.planned",
    "tilewright.cli.old_names",
    "tilewright.pipeline.configuration",
    "tilewright.pipeline.configuration.arguments",
    "tilewright.base.artifacts.step_code",
    "tilewright.base.report_files",
    "tilewright.base.steps",
    "tilewright.base.stage_table",
    "tilewright.base.registry",
    "tilewright.base.entries",
    "tilewright.base.noted_files",
    "tilewright.base.remarks",
    "tilewright.cli.interruption",
)
"""Modules that steps import, but that never influence a result. Examples are the tables of verbs and stages, which name
the modules of all steps.
"""
_REPORT = "tilewright.results.*"
_ONE_CORE = (
    *(_REPORT, "tilewright.peers.zigzag.exports.*"),
    *("tilewright.peers.stream", "tilewright.peers.stream.*"),
)
"""Modules that are not part of the code of steps on one core: modules that only print, and readers of the mapping files
of Stream, which these steps refuse.
"""
_OWN_PIPELINE = "tilewright.pipeline.stages.multi.pipeline"
_ONE_CORE_CHECKS = ("tilewright.cli.check_certificates",)
_FOR_PAPER = ("tilewright.results.paper_figure", "tilewright.results.paper_tables")
_MULTI_REPORT = "tilewright.cli.report_multi"
_READ_NETWORKS = "tilewright.workload.onnx.*"
"""Readers of ONNX files. They are not part of the code of steps that need only the hardware of a run: such steps do not
read the network."""
_PRINTED = "tilewright.cli.advise_command"
"""Module whose text `explain` only prints: it changes no file."""
CODE_OF: dict[str, StepCode] = {
    **{name: StepCode((f"tilewright.cli.{step.verb}",)) for name, step in STEPS.items() if step.verb != "parse"},
    "parse_hardware": StepCode(("tilewright.cli.parse_hardware",)),
    "parse_workload": StepCode(("tilewright.cli.parse_workload",)),
    "parse_mapping": StepCode(("tilewright.cli.parse_mapping",)),
    "map": StepCode(("tilewright.cli.map", *modules_of(SINGLE)), without=_ONE_CORE),
    "export": StepCode(("tilewright.pipeline.stages.watchers",)),
    "tokens": StepCode(("tilewright.cli.tokens", *modules_of(SINGLE)), without=_ONE_CORE),
    "split": StepCode(("tilewright.cli.split",), without=(_REPORT,)),
    "cns": StepCode(("tilewright.cli.cns",), without=(_REPORT, _OWN_PIPELINE)),
    "cost": StepCode(("tilewright.cli.cost", *modules_of(CORE)), without=(_REPORT, _OWN_PIPELINE)),
    "multi_pipeline": StepCode(("tilewright.cli.run_inputs", *modules_of(MULTI, CORE)), without=(_REPORT,)),
    "allocate": StepCode(("tilewright.cli.allocate",), without=(_REPORT, _OWN_PIPELINE)),
    "schedule": StepCode(
        ("tilewright.cli.schedule",),
        without=(
            *("tilewright.results.multi.summary_text", "tilewright.results.multi.gantt"),
            *("tilewright.results.multi.result_tables", _OWN_PIPELINE),
        ),
    ),
    "fuse": StepCode(("tilewright.cli.fuse",), without=(_REPORT, _OWN_PIPELINE)),
    "fuse_island": StepCode(("tilewright.cli.fuse",), without=(_REPORT, _OWN_PIPELINE)),
    "report": StepCode(
        ("tilewright.cli.report", *makers_of(of_part(ONE_CORE_FILES, TABLES))), without=(_MULTI_REPORT,)
    ),
    "report_multi": StepCode(("tilewright.cli.report", *makers_of(of_part(SEVERAL_CORES_FILES, TABLES)))),
    "figures_multi": StepCode(("tilewright.cli.report", *makers_of(of_part(SEVERAL_CORES_FILES, FIGURES)))),
    "explain": StepCode(("tilewright.cli.explain",), without=(_READ_NETWORKS, _PRINTED)),
    "figures": StepCode(
        ("tilewright.cli.report", "tilewright.cli.explain", *makers_of(of_part(ONE_CORE_FILES, FIGURES))),
        without=(_MULTI_REPORT, _READ_NETWORKS),
    ),
    "paper": StepCode(
        ("tilewright.cli.report", "tilewright.cli.explain", *_FOR_PAPER, *makers_of(ONE_CORE_FILES)),
        without=(_MULTI_REPORT, _READ_NETWORKS, _PRINTED),
    ),
    "paper_multi": StepCode(
        ("tilewright.cli.report", "tilewright.cli.explain", *_FOR_PAPER, *makers_of(SEVERAL_CORES_FILES)),
        without=(_READ_NETWORKS, _PRINTED),
    ),
    "check": StepCode(("tilewright.cli.check",), without=("tilewright.cli.check_multi", *_ONE_CORE_CHECKS)),
    "check_multi": StepCode(("tilewright.cli.check",), without=_ONE_CORE_CHECKS),
    "explore": StepCode(
        ("tilewright.designs.shard", *modules_of(SINGLE)),
        without=(*_ONE_CORE, "tilewright.designs.evaluate_system"),
    ),
    "explore_systems": StepCode(
        ("tilewright.designs.shard", *modules_of(MULTI, CORE)),
        without=(_REPORT, "tilewright.designs.evaluate"),
    ),
    "answer": StepCode(
        ("tilewright.cli.explore",),
        without=(
            "tilewright.designs.shard",
            "tilewright.pipeline.stages.*",
            "tilewright.cli.shown_design",
        ),
    ),
    "family_costs": StepCode(("tilewright.designs.family_costs", *modules_of(SINGLE)), without=_ONE_CORE),
    "front": StepCode(
        ("tilewright.cli.front",),
        without=(
            "tilewright.designs.family_costs",
            "tilewright.designs.shard",
            "tilewright.pipeline.stages.*",
        ),
    ),
    "draw": StepCode(("tilewright.cli.draw",)),
    "page": StepCode(("tilewright.cli.page",), without=("tilewright.cli.explain", _READ_NETWORKS)),
    "pareto": StepCode(("tilewright.cli.pareto",), without=(_READ_NETWORKS,)),
    "summarize": StepCode(("tilewright.cli.summarize",), without=("tilewright.cli.config", _READ_NETWORKS)),
}
"""Name of a step of the pipeline -> code of the step. By default, the only root of the code is the module of the
command that runs the step. The entries that are written out here replace this default.

`export` and `multi_pipeline` are not steps. `export` is the additional code that runs during mapping if a stage of the
pipeline writes files. `multi_pipeline` is the code that a user's pipeline can run on several cores.
"""


def code_digest(step: str) -> str:
    """Current digest of the code that a step of the pipeline runs. `step` is a key of `CODE_OF`."""
    return _running_code_digest(CODE_OF[step], all_entered())


def plug_ins_of(step: str) -> dict[str, str]:
    """Plug-ins that can affect a step: name and version of each package -> digest of its Python files. The packages are
    those that add an object to a registry whose module the step runs. `step` is a key of `CODE_OF`.
    """
    return dict(_running_plug_ins(CODE_OF[step], all_entered()))


@cache
def _running_plug_ins(code: StepCode, entries: Entries) -> tuple[tuple[str, str], ...]:
    points = installed()
    if not points:
        return ()
    modules = {module_name(file) for file in _files_of(_running_tree(entries), code)}
    homes: dict[str, set[str]] = {}
    for point, entry in points.items():
        if KINDS[point.partition(".")[0]] in modules:
            home = entry.partition(":")[0].partition(".")[0]
            homes.setdefault(package_of(point) or home, set()).add(home)
    return tuple((package, _digest_of_packages(sorted(names))) for package, names in sorted(homes.items()))


def _digest_of_packages(names: Iterable[str]) -> str:
    """Digest over the names and bytes of the Python files of installed packages."""
    digest = hashlib.blake2b(digest_size=DIGEST_BYTES)
    for path in (path for name in names for path in files_of_package(name)):
        _add_file(digest, path)
    return digest.hexdigest()


def _add_file(digest: hashlib.blake2b, path: Path) -> None:
    digest.update(path.name.encode() + b"\0")
    digest.update(path.read_bytes() + b"\0")


def code_digest_of_modules(modules: Iterable[str]) -> str:
    """Current digest of the code that runs when some modules of the package run, with all their imports."""
    return _running_code_digest(StepCode(tuple(sorted(set(modules)))), all_entered())


def code_digests(package: Path) -> dict[str, str]:
    """Digest of the code of every step, for the package in this folder."""
    tree = SourceTree(package)
    return {step: digest_of(tree, code) for step, code in CODE_OF.items()}


def code_files(step: str, tree: SourceTree) -> list[str]:
    """Source files that a step runs, sorted, relative to the package."""
    return _files_of(tree, CODE_OF[step])


@cache
def _running_tree(entries: Entries) -> SourceTree:
    """Sources of the running package, cached by its registry entries (`entries`). If the entries change, other modules
    can be imported, so the sources are read again.
    """
    return SourceTree(PACKAGE, bytecode.SOURCES)


@cache
def _running_code_digest(code: StepCode, entries: Entries) -> str:
    """Digest of the code that a step runs with the given registry entries. The digest is cached, because searches need
    it for every layer."""
    return digest_of(_running_tree(entries), code)


def digest_of(tree: SourceTree, code: StepCode) -> str:
    """Digest over the names and bytes of the files that a step runs."""
    digest = hashlib.blake2b(digest_size=DIGEST_BYTES)
    files = _files_of(tree, code)
    for file in files:
        digest.update(file.encode() + b"\0")
        digest.update(tree.source(file) + b"\0")
    for path in _files_of_others(files):
        _add_file(digest, path)
    return digest.hexdigest()


def _files_of_others(files: Iterable[str]) -> list[Path]:
    """Source files of plug-ins: all Python files of each package that adds an object to a registry. A registry counts
    only if its module is in `files`."""
    modules = {module.partition(".")[0] for file in files for module in entered(module_name(file))} - {NAME}
    return [path for module in sorted(modules) for path in files_of_package(module)]


def files_of_package(name: str) -> list[Path]:
    """Source files of an installed package, sorted. If `name` is a module that is not a package, the result is the file
    of the module. If there is no such module, the result is [].
    """
    spec = find_spec(name)
    if spec is None:
        return []
    if folders := list(spec.submodule_search_locations or ()):
        return sorted(path for folder in folders for path in Path(folder).rglob("*.py"))
    return [Path(spec.origin)] if spec.origin else []


def _files_of(tree: SourceTree, code: StepCode) -> list[str]:
    return tree.closure(code.roots, without=(*DISPATCH, *code.without))
