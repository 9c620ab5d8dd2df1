"""Real files, and the operator tests of onnx, resolve to the shapes that are known of them."""

import csv
import warnings
from collections.abc import Iterator
from pathlib import Path

import onnx
import pytest
from tilewright.errors import InputError
from tilewright.workload.onnx.loading import load_model
from tilewright.workload.onnx.resolution import ResolvedGraph, resolve_graph

_LEFT_OPEN = ("is decided at run time", "is only known at run time", "is not supported: a network has to be a graph")
"""Why one-operator models of onnx may be refused: sizes that are inputs, open conditions, loops."""


def _given_shapes(text: str) -> dict[str, tuple[int, ...]]:
    parts = [part.split("=") for part in text.split(";") if part]
    return {name: tuple(int(size) for size in sizes.split(",")) for name, sizes in parts}


def _differences(model: onnx.ModelProto, graph: ResolvedGraph) -> Iterator[str]:
    """Outputs whose stored shape or element type is another than the resolved one."""
    for value in model.graph.output:
        tensor = value.type.tensor_type
        if not value.type.HasField("tensor_type") or not tensor.HasField("shape"):
            continue
        stored = [size.dim_value if size.HasField("dim_value") else None for size in tensor.shape.dim]
        facts = graph.tensors.get(value.name)
        if facts is None or facts.element_type != tensor.elem_type or len(facts.shape) != len(stored):
            yield value.name
        elif any(size not in (None, found) for size, found in zip(stored, facts.shape, strict=True)):
            yield value.name


def test_every_real_file_has_all_its_shapes(shared: Path) -> None:
    """No tensor of any listed file is left without a shape, and none is taken from what the file stores."""
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
            assert not list(_differences(model, graph)), row["file"]


def test_one_operator_files(shared: Path) -> None:
    """The shapes are those that onnx computes; only sequences of run-time sizes are refused."""
    files = sorted((shared / "models" / "onnx_node_tests").glob("*.onnx"))
    assert len(files) > 100
    refused = []
    for path in files:
        model, _, _ = load_model(path)
        try:
            graph = resolve_graph(model)
        except InputError as error:
            refused.append(path.stem)
            assert any(words in str(error) for words in _LEFT_OPEN), error
            continue
        assert not list(_differences(model, graph)), path
    assert refused == ["simple__test_sequence_model1", "simple__test_sequence_model4"]


def test_operator_tests_of_onnx() -> None:
    """Of the models that onnx itself tests its operators with, all resolve but those that leave something open."""
    from onnx.backend.test.case import node as cases

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        models = {case.name: case.model for case in cases.collect_testcases(None)}
    refused = 0
    for name, model in models.items():
        try:
            graph = resolve_graph(model)
        except InputError as error:
            refused += 1
            assert any(words in str(error) for words in _LEFT_OPEN), (name, str(error))
            continue
        assert not list(_differences(model, graph)), name
    assert len(models) > 1000
    assert refused < len(models) / 20
