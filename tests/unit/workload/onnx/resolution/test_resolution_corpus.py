"""Real files and onnx's operator tests resolve to their known shapes."""

import csv
import importlib
import pkgutil
import warnings
from pathlib import Path

import onnx
import pytest
from tilewright.base.errors import InputError
from tilewright.workload.onnx.loading import load_model
from tilewright.workload.onnx.resolution.network import ResolvedGraph, resolve_graph

_LEFT_OPEN = ("decided at run time", "is only known at run time", "is not supported, because a network must be a graph")
"""Reasons for which one-operator models of onnx may be refused: sizes as inputs, open conditions, loops."""
_SLOW_TO_IMPORT = ("averagepool", "lppool", "maxpool")
"""Modules that compute for seconds when they are imported."""


def _given_shapes(text: str) -> dict[str, tuple[int, ...]]:
    parts = [part.split("=") for part in text.split(";") if part]
    return {name: tuple(int(size) for size in sizes.split(",")) for name, sizes in parts}


def _differences(model: onnx.ModelProto, graph: ResolvedGraph) -> list[str]:
    """Outputs whose stored shape or element type differs from the resolved one."""
    return [value.name for value in model.graph.output if not _agrees(value, graph)]


def _agrees(value: onnx.ValueInfoProto, graph: ResolvedGraph) -> bool:
    tensor = value.type.tensor_type
    if not value.type.HasField("tensor_type") or not tensor.HasField("shape"):
        return True
    stored = [size.dim_value if size.HasField("dim_value") else None for size in tensor.shape.dim]
    facts = graph.tensors.get(value.name)
    if facts is None or facts.element_type != tensor.elem_type or len(facts.shape) != len(stored):
        return False
    return all(size in (None, found) for size, found in zip(stored, facts.shape, strict=True))


def _resolved(model: onnx.ModelProto) -> tuple[ResolvedGraph | None, str]:
    """The resolved network and an empty text, or None and the error."""
    try:
        return resolve_graph(model), ""
    except InputError as error:
        return None, str(error)


def _is_left_open(reason: str) -> bool:
    return any(words in reason for words in _LEFT_OPEN)


def test_every_real_file_has_all_its_shapes(shared: Path) -> None:
    """Every tensor of every listed file has an inferred shape; no shape is taken from the file."""
    folder = shared / "models"
    with (folder / "expected.csv").open() as table:
        rows = list(csv.DictReader(table))
    assert len(rows) > 40
    for row in rows:
        model, _, _ = load_model(folder / row["file"])
        graph = resolve_graph(model, input_shapes=_given_shapes(row["input_shapes"]))
        unknown = [name for node in graph.nodes for name in node.outputs if name and name not in graph.tensors]
        assert not unknown, row["file"]
        assert not [notice for notice in graph.notices if "taken from the file" in notice], row["file"]
        if not row["input_shapes"]:
            assert not _differences(model, graph), row["file"]


def test_one_operator_files(shared: Path) -> None:
    """One-operator files have the shapes that onnx computes."""
    files = sorted((shared / "models" / "onnx_node_tests").glob("*.onnx"))
    assert len(files) > 100
    for path in files:
        model, _, _ = load_model(path)
        graph = resolve_graph(model)
        without_shape = {value.name for value in model.graph.output} - set(graph.tensors)
        assert set(_differences(model, graph)) == without_shape, path
        assert not without_shape or any("from a sequence" in notice for notice in graph.notices), path


@pytest.mark.slow
def test_operator_tests_of_onnx() -> None:
    """Onnx's own operator models all resolve, except those that leave something open."""
    from onnx.backend.test.case import node as cases

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for module in pkgutil.iter_modules(cases.__path__):
            if module.name not in _SLOW_TO_IMPORT:
                importlib.import_module(f"{cases.__name__}.{module.name}")
    models = {case.name: case.model for case in cases._NodeTestCases}
    refused = 0
    for name, model in models.items():
        graph, reason = _resolved(model)
        if graph is None:
            assert _is_left_open(reason), (name, reason)
            refused += 1
        elif not any("from a sequence" in notice for notice in graph.notices):
            assert not _differences(model, graph), name
    assert len(models) > 1000
    assert refused < len(models) / 20
