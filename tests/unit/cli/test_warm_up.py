"""`tilewright warm-up`: it compiles every function that a verb calls as machine code."""

import ast
from collections.abc import Iterator
from pathlib import Path

import tilewright
from tilewright.cli.warm_up import entry_points
from tilewright.search.exact import rounds, tables

PACKAGE = Path(tilewright.__file__).parent
LOOP_VARIABLE = "entry"


def called_as_machine_code() -> Iterator[tuple[Path, str]]:
    """Yield (module, name of the kernel) of each call of `native_function`."""
    for path in sorted(PACKAGE.rglob("*.py")):
        source = path.read_text()
        for node in ast.walk(ast.parse(source)) if "native_function" in source else ():
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "native_function":
                assert isinstance(node.args[0], ast.Name)
                yield path.relative_to(PACKAGE), node.args[0].id


def test_every_entry_point_is_compiled() -> None:
    """Warm-up compiles each entry point; only the exact search calls entry points from a loop over functions."""
    known = {entry.__name__ for entry, _ in entry_points()}
    calls = [(path.as_posix(), name) for path, name in called_as_machine_code() if path.as_posix() != "cli/warm_up.py"]
    named = {name for _, name in calls if name != LOOP_VARIABLE}
    assert named <= known
    loops = {path for path, name in calls if name == LOOP_VARIABLE}
    assert loops == {"search/exact/rounds.py", "search/exact/tables.py"}
    assert {entry.__name__ for entry in (*tables.TABLE_STEPS, *rounds.ENTRIES)} <= known
    assert len(known) == len(list(entry_points()))
