"""The shape of the code: one meaning a name, columns named in one place, sizes, and cycles of types.

Each check has a list or a number of remaining exceptions, which may only shrink.
"""

import ast
from collections import Counter
from collections.abc import Iterator
from functools import cache

import networkx
from tilewright.base.measures import AREA_MM2, EDP_PJ_CYCLES, ENERGY_PJ, LATENCY_CYCLES, MEASURES

from tests.plain.code_lines import code_lines
from tests.unit.test_import_direction import MODULES, PACKAGE, imports, tree_of

SOURCES = {module: path.read_text("utf-8") for module, path in MODULES.items()}
NAMES_OF_OTHERS = "main_stage/"
"""Folder of classes with the names that scripts for zigzag-dse and Stream use."""
SEVERAL_MEANINGS = {
    "Workload": "the stage that maps a network has the name that ZigZag gives it",
}
"""Maps each class name that several modules define to the reason; at most ten names are allowed."""
ALSO_NAMED_IN = {
    "search/loma_kernel.py": "a field of a record that kernels share",
    "peers/defines/accesses_kernel.py": "a field of a record that kernels share",
    "hardware/": "a number of a hardware file",
    "cli/costs.py": "a number of the library of costs",
    "designs/evaluate.py": "a number of a memory",
    "designs/families.py": "a number of a memory",
}
"""Maps a module or folder to another meaning that the name of a measure has in its texts."""
PRODUCTS_OF_ENERGY_AND_LATENCY = {
    "designs/certify.py": 2,
    "results/checks.py": 2,
    "results/multi/checks.py": 1,
}
"""Maps a module to the number of its products of an energy and a latency; they check `energy_delay_product`."""
LARGE_CLASSES = {
    "cli/auditing/several_cores.py SeveralCoresRun",
    "cli/config.py _Reader",
    "cli/units.py Units",
    "designs/space.py Space",
    "designs/space_reader.py _Reader",
    "plans/moves.py PlanMoves",
    "peers/stream/scheduler.py _Run",
    "multicore/scheduling/check/bound_certificate.py _Exact",
    "search/exact/search.py _Layer",
    "workload/language_models/builder.py Builder",
    "workload/onnx/resolution/control_flow.py LoopUnroller",
    "workload/onnx/resolution/network.py _Resolver",
    "workload/onnx/resolution/outputs.py OutputResolver",
}
"""Classes of more than 190 lines of code."""
LARGE_FUNCTIONS = {"cli/schedule.py scheduled", "search/summary.py summarize"}
"""Functions of more than 60 lines of code."""
MANY_PARAMETERS = {
    "api.py run_multi_core",
    "pipeline/stages/multi/core_mapping.py map_core",
    "pipeline/stages/run.py map_workload",
    "workload/language_models/builder.py nest",
    "workload/onnx/lowering.py nest",
    "workload/onnx/operators/normalization.py _normalise",
}
"""Functions of more than 8 parameters, except verbs and kernels."""
UNTYPED_TABLES = 144
"""Number of parameters and results of functions with the type `dict[str, Any]`."""
ROOT_ENTRIES = 22
"""Number of files and folders at the top of the package."""


def definitions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.ClassDef]:
    """Yield classes and functions, including inner ones."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.If | ast.With | ast.Try):
            yield from definitions(node)


@cache
def defined() -> tuple[tuple[str, ast.FunctionDef | ast.ClassDef, bool], ...]:
    """Return (file, definition, whether it is at the top of its module) of all modules."""
    return tuple(
        (file, node, node in tree.body)
        for file, path in MODULES.items()
        for tree in [tree_of(path)]
        for node in definitions(tree)
    )


def test_a_public_class_name_means_one_thing() -> None:
    """A public class name is defined once in the package, except names of other tools and listed ones."""
    count = Counter(
        node.name
        for file, node, is_top in defined()
        if is_top and isinstance(node, ast.ClassDef) and not file.startswith(NAMES_OF_OTHERS)
        if not node.name.startswith("_")
    )
    assert {name for name, times in count.items() if times > 1} == SEVERAL_MEANINGS.keys()
    assert len(SEVERAL_MEANINGS) <= 10


def test_measures_are_named_in_one_place() -> None:
    """Names of measures are texts in one module; other modules import the name."""
    quoted = [f"{quote}{name}{quote}" for name in MEASURES for quote in "'\""]
    found = {file for file, source in SOURCES.items() if any(text in source for text in quoted)}
    rooms = {next((one for one in ALSO_NAMED_IN if file.startswith(one)), file) for file in found}
    assert rooms == {"base/measures.py", *ALSO_NAMED_IN}
    assert MEASURES == (ENERGY_PJ, LATENCY_CYCLES, EDP_PJ_CYCLES, AREA_MM2)


def quantity_of(node: ast.expr) -> str:
    """Return the last name of an operand, for example `energy_pj` of `run.energy_pj` or `run["energy_pj"]`."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.Subscript(slice=ast.Constant(value=str(name))):
            return name
        case ast.Subscript(slice=ast.Name(id=name)) if name.isupper():
            return name.lower()
        case ast.Subscript(value=inner) | ast.Call(func=inner):
            return quantity_of(inner)
    return ""


def factors_of(node: ast.expr) -> Iterator[ast.expr]:
    """Yield the factors of a product, including those of inner products."""
    match node:
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            yield from factors_of(left)
            yield from factors_of(right)
        case _:
            yield node


def products_of_energy_and_latency(tree: ast.AST) -> int:
    """Return the number of multiplications of an energy by a latency, in either order."""
    products = 0
    for node in ast.walk(tree):
        if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Mult):
            continue
        left, right = ({quantity_of(factor) for factor in factors_of(side)} for side in (node.left, node.right))
        products += any(
            any("energy" in name and "a_cycle" not in name for name in one)
            and any("latency" in name or "makespan" in name for name in other)
            for one, other in ((left, right), (right, left))
        )
    return products


def test_energy_is_multiplied_by_latency_in_few_places() -> None:
    """Products of an energy and a latency are only in the listed modules, as seen by the names of the factors."""
    found = {file: products_of_energy_and_latency(tree_of(path)) for file, path in MODULES.items()}
    assert {file: count for file, count in found.items() if count} == PRODUCTS_OF_ENERGY_AND_LATENCY


def test_products_of_energy_and_latency_are_seen() -> None:
    """Each form of a product of energy and latency is found, and no other expression."""
    for product in (
        "e.energy_pj * e.latency_cycles",
        'r["latency_cycles"] * r["energy_pj"]',
        "r[LATENCY_CYCLES] * r[ENERGY_PJ]",
        "2 * energy[0] * latency()",
    ):
        assert products_of_energy_and_latency(ast.parse(product)) == 1, product
    for other in ("energy + latency", "energy_pj_a_cycle * latency", "energy_pj / latency_cycles", "energy * count"):
        assert products_of_energy_and_latency(ast.parse(other)) == 0, other


def parameters_of(node: ast.FunctionDef) -> list[ast.arg]:
    """Return the parameters of a function."""
    return [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]


def test_definitions_are_as_long_as_a_reader_can_hold() -> None:
    """Classes have at most 190 lines of code, and functions 60; a function has at most 8 parameters.

    Verbs and kernels may have more parameters.
    """
    classes, functions, many = set(), set(), set()
    for file, node, _ in defined():
        name = f"{file} {node.name}"
        if isinstance(node, ast.ClassDef):
            classes |= {name} if code_lines(node) > 190 else set()
            continue
        functions |= {name} if code_lines(node) > 60 else set()
        if len(parameters_of(node)) > 8 and not file.startswith("cli/") and not file.endswith("_kernel.py"):
            many.add(name)
    assert (classes, functions, many) == (LARGE_CLASSES, LARGE_FUNCTIONS, MANY_PARAMETERS)


def test_tables_in_signatures_have_types() -> None:
    """The number of `dict[str, Any]` in signatures equals the listed number."""
    found = 0
    for _, node, _ in defined():
        if isinstance(node, ast.FunctionDef):
            hints = [node.returns, *(one.annotation for one in parameters_of(node))]
            found += sum("dict[str, Any]" in ast.unparse(hint) for hint in hints if hint is not None)
    assert found == UNTYPED_TABLES <= 150


def test_types_need_no_cycles_of_modules() -> None:
    """Modules have no import cycles, even for types."""
    graph = networkx.DiGraph(pair for pair in imports() if pair[0] != pair[1])
    cycles = [sorted(group) for group in networkx.strongly_connected_components(graph) if len(group) > 1]
    assert not cycles, cycles


def test_the_top_of_the_package_is_short() -> None:
    """The top of the package has only the listed number of files and folders."""
    assert len([path for path in PACKAGE.iterdir() if path.name != "__pycache__"]) == ROOT_ENTRIES <= 23
