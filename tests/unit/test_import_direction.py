"""The rooms of the package: data types and algorithms below, wings above them, rules and command line on top."""

import ast
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path

import networkx
import tilewright

PACKAGE = Path(tilewright.__file__).parent
EVIDENCE = "tilewright_evidence"
"""The package that compares with other tools and chips; the library does not import it."""
MODULES = {
    path.relative_to(PACKAGE.parent).as_posix().removeprefix("tilewright/"): path
    for package in (PACKAGE, PACKAGE.with_name(EVIDENCE))
    for path in sorted(package.rglob("*.py"))
}
"""Maps a module, by its place in the package, to its file."""
WINGS = ("designs", "tiles", "plans", "tokens", "main_stage")
LEVELS = (
    ("base",),
    ("workload", "hardware"),
    ("mapping",),
    ("cost",),
    ("search",),
    ("multicore",),
    ("results",),
    ("peers",),
    ("pipeline",),
    WINGS,
    ("api",),
    ("cli",),
    ("__main__", "loading"),
)
"""Packages from the bottom up; a package may import packages on lower levels. `__init__` only names others."""
LEVELS_WITHIN = {
    "base": (
        ("harmless", "hashes", "json_values", "measures", "report_files"),
        ("bytecode", "errors", "noted_files", "operator_groups", "steps"),
        ("compiled", "missing_files", "registry"),
        (
            *("dominance", "parameters", "proof", "record_pointer", "remarks", "stage_table"),
            *("units", "unknown_keys", "unused", "yamlfile"),
        ),
        ("objectives", "profile"),
        ("file_kinds", "processes", "validation"),
        ("artifacts", "entries"),
    ),
    "multicore": (("nodes",), ("scheduling",), ("allocation",)),
    "pipeline": (("configuration",), ("sources",), ("stages", "argument_kinds")),
    "tiles": (("depth_first",), ("attention",)),
}
"""Packages inside a package, from the bottom up."""
LEVEL_OF: dict[str, tuple[int, ...]] = {
    **{room: (level,) for level, rooms in enumerate(LEVELS) for room in rooms},
    **{
        f"{room}.{inner}": (level, level_within)
        for level, rooms in enumerate(LEVELS)
        for room in rooms
        for level_within, inners in enumerate(LEVELS_WITHIN.get(room, ()))
        for inner in inners
    },
}
WITH_FACE = ("cost", "search", "multicore", "results", "pipeline")
"""Rooms from which wings import only the modules in their `FACE`; the rooms below are open."""
ROOMS = tuple(
    room
    for rooms in LEVELS
    for outer in rooms
    for room in (outer, *(f"{outer}.{inner}" for level in LEVELS_WITHIN.get(outer, ()) for inner in level))
)
"""All packages from the bottom up, each followed by its inner packages."""


@cache
def module_names() -> frozenset[str]:
    """Return all modules of the package by their names below it: `cost.kernel`, `cost`."""
    files = (path.relative_to(PACKAGE).with_suffix("") for path in PACKAGE.rglob("*.py"))
    return frozenset(".".join(file.parts).removesuffix(".__init__") for file in files)


def imported_names(node: ast.AST) -> Iterator[str]:
    """Return the modules of the package that a statement imports, by their names below the package."""
    names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
    if isinstance(node, ast.ImportFrom):
        inside = [f"{node.module}.{alias.name}" for alias in node.names]
        names = [name if name.removeprefix("tilewright.") in module_names() else node.module or "" for name in inside]
    return (name.removeprefix("tilewright.") for name in names if name.startswith("tilewright."))


@cache
def tree_of(path: Path) -> ast.Module:
    """Return the syntax tree of a module, for all tests of the shape of the code."""
    return ast.parse(path.read_text("utf-8"))


def statements_in(statement: ast.AST) -> Iterator[ast.AST]:
    """Yield a statement and all statements inside it; expressions hold no imports."""
    yield statement
    for part in ("body", "orelse", "finalbody", "handlers", "cases"):
        for inner in getattr(statement, part, ()):
            yield from statements_in(inner)


@cache
def imports(for_types: bool = True) -> tuple[tuple[str, str], ...]:
    """Return (module, imported module) of every import inside the package, with those for types on request."""
    found: list[tuple[str, str]] = []
    for path in sorted(PACKAGE.rglob("*.py")):
        module = ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__")
        for statement in tree_of(path).body:
            if for_types or not (isinstance(statement, ast.If) and "TYPE_CHECKING" in ast.unparse(statement.test)):
                found += ((module, name) for node in statements_in(statement) for name in imported_names(node))
    return tuple(found)


def test_every_room_has_a_level() -> None:
    """Each folder and module of the package has a level."""
    assert _names_in(PACKAGE) == {room for level in LEVELS for room in level}
    for outer, levels in LEVELS_WITHIN.items():
        assert _names_in(PACKAGE / outer) == {room for level in levels for room in level}, outer


def _names_in(folder: Path) -> set[str]:
    return {path.relative_to(folder).parts[0].removesuffix(".py") for path in folder.rglob("*.py")} - {"__init__"}


def room_of(module: str) -> str:
    """Return the room of a module, with the outer room for an inner one."""
    outer, _, rest = module.partition(".")
    return f"{outer}.{rest.partition('.')[0]}" if rest and outer in LEVELS_WITHIN else outer


def _may_import(room: str, other: str) -> bool:
    """Return whether a package may import another: itself, a lower one, or the one that contains it."""
    return room == other or LEVEL_OF[other] < LEVEL_OF[room] or room.startswith(f"{other}.")


def test_imports_point_down() -> None:
    """No module imports from another room on its own level or above, even inside a function or for types.

    So no wing imports another, and no lower room imports a wing.
    """
    upward = {
        f"{module} imports {imported}"
        for module, imported in imports()
        if room_of(module) != "__init__" and not _may_import(room_of(module), room_of(imported))
    }
    assert upward == set()


def test_levels_tell_up_from_down() -> None:
    """A package may import from packages on lower levels, but not from higher ones or from others on its own level."""
    assert _may_import("search", "cost")
    assert not _may_import("cost", "search")
    assert _may_import("multicore.scheduling", "multicore.nodes")
    assert not _may_import("multicore.nodes", "multicore.scheduling")
    assert _may_import("multicore.nodes", "search")
    assert not _may_import("search", "multicore.nodes")
    assert not _may_import("designs", "plans")
    assert room_of("base.artifacts.files") == "base.artifacts"
    assert room_of("designs.space") == "designs"


def test_wings_go_through_faces() -> None:
    """Wings import only modules in the `FACE` of a room of algorithms, and use each of them."""
    used: dict[str, set[str]] = {room: set() for room in WITH_FACE}
    for module, imported in imports():
        room, _, inside = imported.partition(".")
        if module.partition(".")[0] in WINGS and room in used:
            used[room].add(inside)
    assert used == {room: set(import_module(f"tilewright.{room}").FACE) for room in WITH_FACE}


def test_the_library_does_not_import_the_evidence() -> None:
    """The library never imports the evidence package."""
    importing = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Import | ast.ImportFrom) and EVIDENCE in ast.unparse(node)
    }
    assert importing == set()


def test_no_modules_import_each_other() -> None:
    """No modules import each other, directly or indirectly; imports for types do not count."""
    graph = networkx.DiGraph(pair for pair in imports(for_types=False) if pair[0] != pair[1])
    circles = [sorted(group) for group in networkx.strongly_connected_components(graph) if len(group) > 1]
    assert circles == []
