"""Modules: each has one title that names the thing, and hangs together."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import networkx
import pytest
import tilewright

PACKAGE = Path(tilewright.__file__).parent
MODULES = sorted(path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py"))
PARAPHRASES = {
    *("what", "which", "how", "where", "whether", "who", "that", "those", "these", "it", "they", "he"),
    *("of", "in", "on", "by", "for", "from", "with", "to", "as", "at", "when", "while", "if"),
}
"""Words that name nothing: a title does not begin with them."""
SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z`])")
PART_LINES = 40
"""Parts of a module that are smaller need no module of their own."""
NOT_ONE = {
    "cost/reuse_kernel.py": "a kernel: tiles, then movement, as the model reads",
    "scheduling/candidate_kernel.py": "a kernel: the queue of events and the choice that it feeds",
    "search/exact/labels_kernel.py": "a kernel: labels by number, and what their keys hold",
    "search/exact/open_kernel.py": "a kernel: the terms of one bound",
    "search/loma_kernel.py": "a kernel: orders are made and costed block by block",
    "depth_first/tile_bounds.py": "energy and latency of one bound",
    "report/verdict.py": "a verdict, and the sets that it names",
    "scheduling/check/movement.py": "data and transfers of one log",
    "stages/descriptions.py": "descriptions, and the problem that they make",
    "workload/onnx/resolution/outputs.py": "outputs, and the inner tensors that tell them",
}
"""Modules of several parts that do not name each other, with the reason why they stand together."""


@pytest.mark.parametrize("module", MODULES)
def test_a_module_has_one_title(module: str) -> None:
    """One sentence of at most two lines, whose first word names the thing or says what the module does."""
    text = ast.get_docstring(ast.parse((PACKAGE / module).read_text("utf-8"))) or ""
    title = text.split("\n\n")[0]
    assert len(SENTENCE.split(" ".join(title.split()))) == 1, title
    assert len(title.splitlines()) <= 2, title
    assert title.rstrip().endswith((".", ":")), title
    assert title.split()[0].lower() not in PARAPHRASES, title
    assert "One module, since" not in text


def parts(source: str) -> Iterator[int]:
    """Lines of the parts of a module: top-level definitions, joined where one names the other."""
    tree = ast.parse(source)
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
        lines[names[0]] = (node.end_lineno or node.lineno) - start + 1
        used = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
        used |= {
            word
            for one in ast.walk(node)
            if isinstance(one, ast.Constant) and isinstance(one.value, str)
            for word in re.findall(r"\w+", one.value)
        }
        named[names[0]] = used
        for name in names[1:]:
            graph.add_edge(names[0], name)
    graph.add_nodes_from(lines)
    graph.add_edges_from((one, other) for one, used in named.items() for other in used & graph.nodes)
    for component in networkx.connected_components(graph):
        yield sum(lines.get(name, 0) for name in component)


def test_parts_are_found() -> None:
    """Two functions that do not name each other are two parts; one that is named in a text hint is not."""
    body = "\n".join(f"    x{i} = {i}" for i in range(3))
    assert sorted(parts(f"A = 1\ndef f():\n{body}\ndef g():\n    return A\n")) == [3, 4]
    assert list(parts("class A:\n    pass\ndef f() -> 'A':\n    pass\n")) == [4]


@pytest.mark.parametrize("module", [one for one in MODULES if not one.endswith("__init__.py")])
def test_a_module_hangs_together(module: str) -> None:
    """It has one part of forty lines or more; exceptions say why, and there are at most ten."""
    assert len(NOT_ONE) <= 10
    large = [lines for lines in parts((PACKAGE / module).read_text("utf-8")) if lines >= PART_LINES]
    assert (len(large) > 1) == (module in NOT_ONE), large
