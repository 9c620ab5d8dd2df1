"""Modules of the package: each has one title that names its subject, and its parts belong together."""

import ast
import re
from collections.abc import Iterator

import networkx

from docs.plain_words import NAMES_NOTHING
from tests.plain.code_lines import docstring_lines
from tests.unit.test_import_direction import MODULES, tree_of

PARAPHRASES = NAMES_NOTHING | {"what", "which", "how", "where", "whether", "who", "he"}
"""Words that name no subject and cannot begin a title."""
TITLE = re.compile(r'(?:#![^\n]*\n)?r?"""(.*?)"""', re.DOTALL)
SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z`])")
PART_LINES = 36
"""Number of lines from which a part of a module counts as large."""
NOT_ONE = {
    "cost/reuse_kernel.py": "a kernel: tiles, then movement, as the model reads",
    "multicore/scheduling/candidate_kernel.py": "a kernel: the queue of events and the choice that it feeds",
    "search/exact/labels_kernel.py": "a kernel: labels by number, and what their keys hold",
    "search/exact/open_kernel.py": "a kernel: the terms of one bound",
    "search/loma_kernel.py": "a kernel: orders are made and costed block by block",
    "tiles/depth_first/tile_bounds.py": "energy and latency of one bound",
    "results/verdict.py": "a verdict, and the sets that it names",
    "multicore/scheduling/check/movement.py": "data and transfers of one log",
    "workload/onnx/resolution/outputs.py": "outputs, and the inner tensors that tell them",
}
"""Maps a module of several large parts to the reason why they stand together."""


def faults_of_title(text: str) -> list[str]:
    """Return the faults of the title of a docstring."""
    title = text.split("\n\n")[0]
    faults = {
        "several sentences": len(SENTENCE.split(" ".join(title.split()))) > 1,
        "more than two lines": len(title.splitlines()) > 2,
        "no end": not title.rstrip().endswith((".", ":")),
        "a first word that names nothing": title.split()[0].lower() in PARAPHRASES,
        "an excuse": "One module, since" in text,
    }
    return [fault for fault, is_so in faults.items() if is_so]


def test_a_module_has_one_title() -> None:
    """Each module has one sentence of at most two lines as a title, which begins with its subject or a verb."""
    texts = {module: TITLE.match(path.read_text("utf-8")) for module, path in MODULES.items()}
    assert [module for module, text in texts.items() if text is None] == []
    assert {module: faults for module, text in texts.items() if text and (faults := faults_of_title(text[1]))} == {}


def test_a_bad_title_is_found() -> None:
    """Each fault of a title is found by name."""
    assert faults_of_title("What it does. And more") == [
        "several sentences",
        "no end",
        "a first word that names nothing",
    ]
    assert faults_of_title("Costs\nof\nit.\n\nOne module, since.") == ["more than two lines", "an excuse"]


def parts(tree: ast.Module) -> Iterator[int]:
    """Yield the lines of each part of a module: top-level definitions, joined if one names the other."""
    graph: networkx.Graph = networkx.Graph()
    lines: dict[str, int] = {}
    named: dict[str, set[str]] = {}
    for node in tree.body:
        names = [node.name] if isinstance(node, ast.FunctionDef | ast.ClassDef) else []
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = [one.id for target in targets for one in ast.walk(target) if isinstance(one, ast.Name)]
        if not names:
            continue
        start = min([node.lineno, *(one.lineno for one in getattr(node, "decorator_list", []))])
        lines[names[0]] = (node.end_lineno or node.lineno) - start + 1 - docstring_lines(node)
        named[names[0]] = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)} | set(_words_of_hints(node))
        for name in names[1:]:
            graph.add_edge(names[0], name)
    graph.add_nodes_from(lines)
    graph.add_edges_from((one, other) for one, used in named.items() for other in used & graph.nodes)
    for component in networkx.connected_components(graph):
        yield sum(lines.get(name, 0) for name in component)


def _words_of_hints(node: ast.AST) -> Iterator[str]:
    """Yield words of type hints that are written as text."""
    for one in ast.walk(node):
        for hint in (getattr(one, "annotation", None), getattr(one, "returns", None)):
            for text in ast.walk(hint) if isinstance(hint, ast.AST) else ():
                if isinstance(text, ast.Constant) and isinstance(text.value, str):
                    yield from re.findall(r"\w+", text.value)


def test_parts_are_found() -> None:
    """Two functions that do not name each other are two parts; a hint in text joins them, a docstring does not."""
    body = "\n".join(f"    x{i} = {i}" for i in range(3))
    assert sorted(parts(ast.parse(f"A = 1\ndef f():\n{body}\ndef g():\n    return A\n"))) == [3, 4]
    assert sorted(parts(ast.parse(f'def f():\n    """Not g."""\ndef g():\n{body}\n'))) == [1, 4]
    assert list(parts(ast.parse("class A:\n    pass\ndef f() -> 'A':\n    pass\n"))) == [4]


def test_a_module_hangs_together() -> None:
    """Each module has one part of at least PART_LINES lines; exceptions have a reason, and there are at most ten."""
    assert len(NOT_ONE) <= 10
    found = set()
    for module, path in MODULES.items():
        source = path.read_text("utf-8")
        is_long = source.count("\n") >= 2 * PART_LINES and not module.endswith("__init__.py")
        if is_long and sum(lines >= PART_LINES for lines in parts(tree_of(path))) > 1:
            found.add(module)
    assert found == NOT_ONE.keys()
