"""A network with operators besides convolutions, on a core that runs convolutions only, and on an extended core."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from onnx import TensorProto, helper
from snakemake.exceptions import WorkflowError

from tests.workflow.conftest import Project

RUN = """
runs:
  whole:
    workload: small
    hardware: narrow
    mapping: free
    model: corrected
    strict: true
"""
CHECKS = "results/single/whole/checks.json"


def write_network(path: Path) -> None:
    """Write a network of Conv -> Relu -> GlobalAveragePool -> Softmax."""
    info = helper.make_tensor_value_info
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], name="conv"),
        helper.make_node("Relu", ["c"], ["r"], name="relu"),
        helper.make_node("GlobalAveragePool", ["r"], ["p"], name="pool"),
        helper.make_node("Softmax", ["p"], ["y"], name="softmax", axis=1),
    ]
    weights = helper.make_tensor("w", TensorProto.FLOAT, [4, 3, 1, 1], [0.0] * 12)
    ends = [info("x", TensorProto.FLOAT, [1, 3, 4, 4])], [info("y", TensorProto.FLOAT, [1, 4, 1, 1])]
    graph = helper.make_graph(nodes, "small", *ends, [weights])
    path.write_bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString())


def test_a_core_runs_what_it_says(project: Project, edit: Callable[[Path, str, str], None]) -> None:
    """`strict` stops the run with a reason while operators are left out; the edited core costs all of them."""
    write_network(project.root / "config" / "workload" / "small.onnx")
    config = project.root / "config" / "config.yaml"
    config.write_text(config.read_text() + RUN)
    with pytest.raises(WorkflowError):
        project.run(CHECKS)
    said = (project.root / "logs" / "single" / "whole" / "map.log").read_text()
    for left in ("1 Relu (64 operations)", "1 GlobalAveragePool (64 operations)", "1 Softmax"):
        assert f"small on narrow has operators without costs, which the option strict forbids: {left}" in said
    edit(project.root / "config" / "hardware" / "narrow.yaml", "name: narrow", "name: narrow\noperator_types: [all]")
    project.run(CHECKS)
    summary = json.loads((project.root / "results" / "single" / "whole" / "summary.json").read_text())["payload"]
    assert summary["coverage"]["complete"]
    assert summary["mac_count"] == 4 * 3 * 16
    assert summary["operation_count"] >= 64 + 64 + 4 * 4
    assert summary["layers"] > 4  # softmax is several layers
    assert json.loads((project.root / CHECKS).read_text())["payload"]["passed"]
