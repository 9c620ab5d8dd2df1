"""The rooms of the package: data types at the bottom, rules and command line on top, imports point down only."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import networkx
import tilewright

PACKAGE = Path(tilewright.__file__).parent
LEVELS = (
    ("harmless",),
    ("bytecode", "errors", "noted_files", "operator_groups", "steps"),
    ("compiled", "registry"),
    ("dominance", "parameters", "proof", "record_pointer", "stage_table", "units", "unused", "yamlfile"),
    ("objectives", "profile"),
    ("file_kinds", "processes", "validation"),
    ("artifacts",),
    ("silicon",),
    ("workload", "hardware"),
    ("mapping",),
    ("cost", "fusion"),
    ("search",),
    ("scheduling",),
    ("allocation",),
    ("report",),
    ("peers", "entries"),
    ("configuration",),
    ("sources",),
    ("stages", "argument_kinds"),
    ("exploration", "depth_first", "fusion_search"),
    ("attention",),
    ("token_costs", "main_stage"),
    ("api", "validate_files"),
    ("cli",),
    ("__main__", "loading"),
    ("comparison",),
    ("type_stub",),
)
"""Rooms from the bottom up; a room may import those on lower levels. `__init__` only names others."""
LEVEL_OF = {room: level for level, rooms in enumerate(LEVELS) for room in rooms}


@cache
def module_names() -> frozenset[str]:
    """All modules of the package, by their names below it: `cost.kernel`, `cost`."""
    files = (path.relative_to(PACKAGE).with_suffix("") for path in PACKAGE.rglob("*.py"))
    return frozenset(".".join(file.parts).removesuffix(".__init__") for file in files)


def imported_names(node: ast.AST) -> Iterator[str]:
    """Modules of the package, by their names below it, that a statement imports."""
    names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
    if isinstance(node, ast.ImportFrom):
        inside = [f"{node.module}.{alias.name}" for alias in node.names]
        names = [name if name.removeprefix("tilewright.") in module_names() else node.module or "" for name in inside]
    return (name.removeprefix("tilewright.") for name in names if name.startswith("tilewright."))


def imports(for_types: bool = True) -> Iterator[tuple[str, str]]:
    """(module, imported module) of every import inside the package, those for types only if asked for."""
    for path in sorted(PACKAGE.rglob("*.py")):
        module = ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__")
        tree = ast.parse(path.read_text())
        if not for_types:
            tree.body = [n for n in tree.body if not (isinstance(n, ast.If) and "TYPE_CHECKING" in ast.unparse(n.test))]
        for node in ast.walk(tree):
            yield from ((module, name) for name in imported_names(node))


def test_every_room_has_a_level() -> None:
    """A new folder or module must be given its place."""
    rooms = {path.relative_to(PACKAGE).parts[0].removesuffix(".py") for path in PACKAGE.rglob("*.py")}
    assert rooms - {"__init__"} == set(LEVEL_OF)


def room_of(module: str) -> str:
    """The folder, or the module at the top, that a module is in."""
    return module.partition(".")[0]


def test_imports_point_down() -> None:
    """No module imports from another room on its own level or above, not even inside a function or for types."""
    upward = {
        f"{module} imports {imported}"
        for module, imported in imports()
        if room_of(module) not in ("__init__", room_of(imported))
        and LEVEL_OF[room_of(imported)] >= LEVEL_OF[room_of(module)]
    }
    assert upward == set()


def test_no_modules_import_each_other() -> None:
    """No module imports, over any number of others, one that imports it; what is for types only does not count."""
    graph = networkx.DiGraph(pair for pair in imports(for_types=False) if pair[0] != pair[1])
    circles = [sorted(group) for group in networkx.strongly_connected_components(graph) if len(group) > 1]
    assert circles == []
