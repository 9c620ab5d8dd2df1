"""The rooms of the package: data types at the bottom, rules and command line on top, imports point down only."""

import ast
from collections.abc import Iterator
from pathlib import Path

import tilewright

PACKAGE = Path(tilewright.__file__).parent
LEVELS = (
    ("causes", "errors", "profile", "units", "compiled", "record_pointer", "registry", "steps"),
    ("stage_table",),
    ("yamlfile",),
    ("file_kinds", "validation"),
    ("artifacts",),
    ("workload", "hardware"),
    ("mapping",),
    ("cost", "fusion"),
    ("search",),
    ("scheduling",),
    ("allocation",),
    ("report",),
    ("peers",),
    ("sources", "validate_files"),
    ("stages",),
    ("api", "api_multi"),
    ("cli", "__main__"),
    ("comparison",),
)
"""Rooms from the bottom up; a room may import its own level and those below. `__init__` only names others."""
LEVEL_OF = {room: level for level, rooms in enumerate(LEVELS) for room in rooms}


def imports() -> Iterator[tuple[Path, str, str]]:
    """(file, its room, imported room) of every import inside the package."""
    for path in sorted(PACKAGE.rglob("*.py")):
        room = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        for node in ast.walk(ast.parse(path.read_text())):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            for name in names:
                parts = name.split(".")
                if parts[0] == "tilewright" and len(parts) > 1:
                    yield path, room, parts[1]


def test_every_room_has_a_level() -> None:
    """A new folder or module must be given its place."""
    rooms = {path.relative_to(PACKAGE).parts[0].removesuffix(".py") for path in PACKAGE.rglob("*.py")}
    assert rooms - {"__init__"} == set(LEVEL_OF)


def test_imports_point_down() -> None:
    """No module imports from a room above its own, not even inside a function."""
    upward = [
        f"{path.relative_to(PACKAGE)} imports {imported}"
        for path, room, imported in imports()
        if room != "__init__" and imported in LEVEL_OF and LEVEL_OF[imported] > LEVEL_OF[room]
    ]
    assert upward == []
