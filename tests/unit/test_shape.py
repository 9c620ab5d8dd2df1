"""The shape of the code: one meaning a name, columns named in one place, sizes, and cycles of types.

Each check has a list or a number of what is left, which may only shrink: whoever mends one takes it from there.
"""

import ast
from collections import Counter
from pathlib import Path

import networkx
import tilewright

from tests.unit.test_import_direction import imports

PACKAGE = Path(tilewright.__file__).parent
TREES = {
    path.relative_to(PACKAGE).as_posix(): ast.parse(path.read_text("utf-8")) for path in sorted(PACKAGE.rglob("*.py"))
}
NAMES_OF_OTHERS = "main_stage/"
"""Classes there have the names that scripts for zigzag-dse and Stream use."""
SEVERAL_MEANINGS = {
    "Workload": "the stage that maps a network has the name that ZigZag gives it",
}
"""Public class name that stands in several modules -> why; at most ten."""
FILES_WITH_COLUMN = {"energy_pj": 61, "latency_cycles": 50, "edp_pj_cycles": 18, "area_mm2": 28}
"""Column of runs -> modules in which its name stands as a text."""
LARGE_CLASSES = {
    "cli/auditing/several_cores.py SeveralCoresRun": 307,
    "cli/config.py _Reader": 308,
    "cli/units.py Units": 422,
    "depth_first/tile_loops.py TileLoops": 215,
    "exploration/space.py Space": 227,
    "exploration/space_reader.py _Reader": 330,
    "fusion_search/moves.py PlanMoves": 223,
    "fusion_search/search.py FusionSearch": 254,
    "peers/stream/scheduler.py _Run": 210,
    "scheduling/check/bound_certificate.py _Exact": 290,
    "search/exact/search.py _Layer": 225,
    "workload/language_models/builder.py Builder": 330,
    "workload/onnx/resolution/control_flow.py LoopUnroller": 211,
    "workload/onnx/resolution/network.py _Resolver": 218,
    "workload/onnx/resolution/outputs.py OutputResolver": 242,
}
"""Class of more than 200 lines -> its lines."""
LARGE_FUNCTIONS = {"cli/schedule.py scheduled": 61, "search/summary.py summarize": 68}
"""Function of more than 60 lines -> its lines."""
MANY_PARAMETERS = {
    "api.py run_multi_core",
    "stages/multi/core_mapping.py map_core",
    "stages/run.py map_workload",
    "workload/language_models/builder.py nest",
    "workload/onnx/lowering.py nest",
    "workload/onnx/operators/normalization.py _normalise",
}
"""Functions of more than 8 parameters, but for verbs and kernels."""
UNTYPED_TABLES = 348
"""Parameters and results of functions that are a `dict[str, Any]`."""
CYCLES_OF_TYPES = 5
"""Groups of modules that import each other, imports for types included."""
ROOT_ENTRIES = 54
"""Files and folders at the top of the package."""


def test_a_public_class_name_means_one_thing() -> None:
    """Once in the package, but for names of others."""
    count = Counter(
        node.name
        for file, tree in TREES.items()
        if not file.startswith(NAMES_OF_OTHERS)
        for node in tree.body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert {name for name, times in count.items() if times > 1} == SEVERAL_MEANINGS.keys()
    assert len(SEVERAL_MEANINGS) <= 10


def test_columns_are_named_in_few_places() -> None:
    """As texts: who needs one asks `report.run_columns`, or an attribute of a typed record."""
    found = {
        column: sum(
            any(isinstance(node, ast.Constant) and node.value == column for node in ast.walk(tree))
            for tree in TREES.values()
        )
        for column in FILES_WITH_COLUMN
    }
    assert found == FILES_WITH_COLUMN


def lines_of(node: ast.FunctionDef | ast.ClassDef) -> int:
    """Lines of a definition."""
    return (node.end_lineno or node.lineno) - node.lineno + 1


def test_definitions_are_as_long_as_a_reader_can_hold() -> None:
    """Classes of at most 200 lines, functions of at most 60, at most 8 parameters outside verbs and kernels."""
    classes, functions, many = {}, {}, set()
    for file, tree in TREES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and lines_of(node) > 200:
                classes[f"{file} {node.name}"] = lines_of(node)
            if isinstance(node, ast.FunctionDef):
                own = node.args
                if lines_of(node) > 60:
                    functions[f"{file} {node.name}"] = lines_of(node)
                if len([*own.args, *own.kwonlyargs, *own.posonlyargs]) > 8 and not file.startswith("cli/"):
                    many.add(f"{file} {node.name}")
    many -= {name for name in many if name.split(" ")[0].endswith("_kernel.py")}
    assert (classes, functions, many) == (LARGE_CLASSES, LARGE_FUNCTIONS, MANY_PARAMETERS)


def test_tables_in_signatures_have_types() -> None:
    """A `dict[str, Any]` says nothing of what it holds."""
    found = 0
    for tree in TREES.values():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                own = node.args
                hints = [one.annotation for one in (*own.args, *own.kwonlyargs, *own.posonlyargs)]
                found += sum(
                    "dict[str, Any]" in ast.unparse(hint) for hint in (*hints, node.returns) if hint is not None
                )
    assert found == UNTYPED_TABLES


def test_types_need_no_cycles_of_modules() -> None:
    """Imports for types included."""
    graph = networkx.DiGraph(pair for pair in imports() if pair[0] != pair[1])
    cycles = [sorted(group) for group in networkx.strongly_connected_components(graph) if len(group) > 1]
    assert len(cycles) == CYCLES_OF_TYPES, cycles


def test_the_top_of_the_package_is_short() -> None:
    """Rooms and few modules."""
    assert len([path for path in PACKAGE.iterdir() if path.name != "__pycache__"]) == ROOT_ENTRIES
